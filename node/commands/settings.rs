//! `rota federation questions` and `settings`: a schema by sums over all institutions, in place of one table.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use agreement::{
    AgreedQuestion, Mode, SchemaAnswers, SchemaQuestions, SettledSchema, read_configuration,
    schema_questions, settled, with_schema,
};
use formatting::numbers;
use task::schema::Schema;
use toml::{Table, Value};

use super::{NodeCommandError, vacant, wrapped, write};
use crate::cli::{ProposeSettings, WriteQuestions, quoted};
use crate::draft::FederationPlan;
use crate::paths::relative;

/// Rows that a federation is thought to have where nobody says it.
const ROWS: u64 = 1000;
/// Keys that an agreement has, and a scenario has not.
const OF_MEMBERS: [&str; 4] = ["format", "start", "continues", "member"];
/// Rules of the rounds that a new agreement keeps; the others follow from its members and its model.
const KEPT_RULES: [&str; 6] = [
    "heartbeat",
    "keep-rounds",
    "max-model-norm",
    "max-weight",
    "rotation",
    "verification",
];

/// A scenario or an agreement with a schema.
struct DescribedFile {
    path: PathBuf,
    text: String,
    table: Table,
    schema: Schema,
}

impl DescribedFile {
    fn read(path: &Path) -> Result<Self, NodeCommandError> {
        let shown = path.display();
        let text = read_configuration(path)?;
        let wrong = |why: String| NodeCommandError::Usage(format!("{shown}: {why}"));
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        let schema = table_of_rows(&table).and_then(|task| task.get("schema"));
        let schema = schema.ok_or_else(|| {
            wrong(
                "there is no [task.table.schema], which says what rows have in common: `rota init` and `rota \
                 federation new` write one"
                    .into(),
            )
        })?;
        let schema: Schema = schema
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        schema.check()?;
        Ok(Self {
            path: path.to_owned(),
            text,
            table,
            schema,
        })
    }

    fn is_agreement(&self) -> bool {
        self.table.contains_key("start")
    }

    /// The rows that all members declare; `None` where one declares none.
    fn declared(&self) -> Option<u64> {
        let members = self.table.get("member")?.as_array()?;
        let rows = |member: &Value| u64::try_from(member.get("rows")?.as_integer()?).ok();
        members.iter().map(rows).sum()
    }

    /// The tables of a scenario's silos as the `[sites]` of a question in this folder, by which `rota ask` plays it;
    /// empty where the file has none.
    fn sites(&self, folder: &Path) -> String {
        let rows = table_of_rows(&self.table).and_then(|task| task.get("data")?.get("rows"));
        let files = rows.and_then(|rows| rows.get("files")?.as_array());
        let (Some(rows), Some(files)) = (rows, files) else {
            return String::new();
        };
        let beside = self.path.parent().unwrap_or(Path::new(""));
        let file = |file: &Value| {
            let mut file = file.clone();
            if let Some(path) = file.get_mut("path")
                && let Some(own) = path.as_str()
            {
                let seen = relative(&beside.join(own), folder);
                *path = Value::String(seen.to_string_lossy().into_owned());
            }
            file
        };
        let files = Value::Array(files.iter().map(file).collect());
        let mut text = format!("\n[sites]\nfiles = {files}\n");
        for (key, own) in [("site-column", "silo-column"), ("format", "format")] {
            if let Some(value) = rows.get(own) {
                text += &format!("{key} = {value}\n");
            }
        }
        text
    }

    /// The text of a scenario that learns the same.
    fn scenario(&self) -> Result<String, NodeCommandError> {
        if !self.is_agreement() {
            return Ok(self.text.clone());
        }
        let mut table = self.table.clone();
        for key in OF_MEMBERS {
            table.remove(key);
        }
        // The rounds of its questions are over.
        let asked: Vec<AgreedQuestion> = match table.remove("question") {
            Some(questions) => questions
                .try_into()
                .map_err(|error: toml::de::Error| failed(&self.path, &error.to_string()))?,
            None => Vec::new(),
        };
        let mode = table.get("privacy").and_then(|privacy| privacy.get("mode"));
        let mode = mode.and_then(|mode| mode.clone().try_into().ok());
        let mode = mode.unwrap_or(Mode::Clear).of_questions();
        let taken: u64 = asked.iter().map(|one| one.most_rounds(mode)).sum();
        if let Some(Value::Integer(rounds)) = table.get_mut("rounds") {
            *rounds = rounds.saturating_sub_unsigned(taken).max(1);
        }
        if let Some(rules) = table.get_mut("protocol").and_then(Value::as_table_mut) {
            rules.retain(|key, _| KEPT_RULES.contains(&key));
        }
        toml::to_string(&table).map_err(|error| NodeCommandError::Toml(error.to_string()))
    }
}

fn failed(file: &Path, why: &str) -> NodeCommandError {
    NodeCommandError::Failed(format!("{}: {why}", file.display()))
}

/// `[task.table]` of a file.
fn table_of_rows(table: &Table) -> Option<&Value> {
    table.get("task")?.get("table")
}

/// Writes the questions that a schema needs, a file for each.
pub(super) fn questions(options: &WriteQuestions) -> Result<(), NodeCommandError> {
    let file = DescribedFile::read(&options.file)?;
    let rows = options.rows.or_else(|| file.declared()).unwrap_or(ROWS);
    let SchemaQuestions {
        questions,
        left_out,
    } = schema_questions(&file.schema, rows);
    let sites = file.sites(&options.out);
    let head = format!(
        "# Written by `rota federation questions` for {}. Read the ranges before you ask: a value beyond its range\n\
         # is counted as outside, and no more is known of it.\n",
        numbers::plain(&options.file.display().to_string())
    );
    let mut files = Vec::new();
    for question in &questions {
        let path = options.out.join(format!("{}.toml", question.name));
        vacant(&path, options.force)?;
        let text = question.text().map_err(NodeCommandError::Toml)?;
        files.push((path, format!("{head}{text}{sites}"), question));
    }
    if !files.is_empty() {
        fs::create_dir_all(&options.out).map_err(|reason| NodeCommandError::Write {
            path: options.out.clone(),
            reason,
        })?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for (path, text, question) in &files {
        write(path, text)?;
        let line = format!(
            "written: {}, {}",
            path.display(),
            numbers::plain(&question.agreed.reason)
        );
        writeln!(out, "{}", wrapped(&line))?;
    }
    for line in &left_out {
        writeln!(out, "{}", wrapped(&format!("not asked: {line}")))?;
    }
    if files.is_empty() {
        out.flush()?;
        return Err(failed(
            &options.file,
            "the schema has no column that a question could settle",
        ));
    }
    let next = format!(
        "Outer quantiles fit about {rows} rows (--rows). Members ask each with `rota federation ask`, and one process \
         that has all tables with `rota ask`; both print answers with --json, from which `rota federation settings {}` \
         proposes a schema.",
        quoted(&options.file.display().to_string())
    );
    writeln!(out, "{}", wrapped(&next))?;
    Ok(out.flush()?)
}

/// Proposes a schema by answers.
pub(super) fn settings(options: &ProposeSettings) -> Result<(), NodeCommandError> {
    if !(options.margin >= 0.0 && options.margin.is_finite()) {
        let why = format!(
            "--margin is {}, and a number from 0 on is needed",
            options.margin
        );
        return Err(NodeCommandError::Usage(why));
    }
    let file = DescribedFile::read(&options.file)?;
    if let Some(out) = &options.out {
        vacant(out, options.force)?;
    }
    let settled = settle(&file, options)?;
    let text = settled.text().map_err(NodeCommandError::Toml)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match &options.out {
        Some(path) => {
            let kept = write_scenario(&file, path, &settled, &text)?;
            print_settled(&mut out, &settled)?;
            for line in last_lines(&file, path, kept) {
                writeln!(out, "{}", wrapped(&line))?;
            }
        }
        // TOML that can be pasted.
        None => {
            for note in &settled.notes {
                writeln!(out, "# {}", numbers::plain(note))?;
            }
            for line in text.lines() {
                writeln!(out, "{}", numbers::plain(line))?;
            }
        }
    }
    Ok(out.flush()?)
}

/// The schema that follows from the answers in files.
fn settle(
    file: &DescribedFile,
    options: &ProposeSettings,
) -> Result<SettledSchema, NodeCommandError> {
    let mut answers = SchemaAnswers::default();
    for path in &options.answers {
        let text = task::file::read_text(path, task::file::DATA);
        let text = text.map_err(|error| NodeCommandError::Usage(error.to_string()))?;
        let added = answers.add(&path.display().to_string(), &text, &file.schema);
        added.map_err(|error| NodeCommandError::Usage(error.to_string()))?;
    }
    if answers.is_empty() {
        return Err(NodeCommandError::Failed(format!(
            "no answer is about a column of the schema of {}: `rota federation questions` writes the questions that \
             it needs",
            file.path.display()
        )));
    }
    let scaling = table_of_rows(&file.table).and_then(|task| task.get("standardise")?.as_str());
    let settled = settled(
        &file.schema,
        &answers,
        options.margin,
        scaling == Some("ranges"),
    );
    settled.schema.check()?;
    Ok(settled)
}

/// Writes the file with another schema; whether its comments are kept.
fn write_scenario(
    file: &DescribedFile,
    path: &Path,
    settled: &SettledSchema,
    text: &str,
) -> Result<bool, NodeCommandError> {
    let scenario = file.scenario()?;
    let (new, kept) =
        with_schema(&scenario, &settled.schema, text).map_err(|why| failed(&file.path, &why))?;
    FederationPlan::parse(&path.display().to_string(), &new)
        .map_err(|error| NodeCommandError::Failed(error.to_string()))?;
    write(path, &new)?;
    Ok(kept && !file.is_agreement())
}

fn print_settled(out: &mut impl Write, settled: &SettledSchema) -> io::Result<()> {
    let target = settled.schema.target.name.iter();
    let features = settled.schema.columns().map(|(name, _)| name);
    for column in target.chain(features) {
        for reason in settled.reasons.get(column).into_iter().flatten() {
            writeln!(out, "{}", wrapped(&format!("{column}: {reason}")))?;
        }
    }
    for note in &settled.notes {
        writeln!(out, "{}", wrapped(&format!("note: {note}")))?;
    }
    let columns = numbers::plural(settled.changed, "column");
    writeln!(out, "changed: {columns}; nothing is in force by that")
}

/// Returns what to do with the file that was written.
fn last_lines(file: &DescribedFile, path: &Path, kept: bool) -> Vec<String> {
    let shown = path.display();
    let mut lines = vec![format!(
        "written: {shown}. Read it, change what you know better, and propose it: `rota federation new --scenario {}` \
         makes an agreement of it, which every institution reads and signs.",
        quoted(&shown.to_string())
    )];
    if file.is_agreement() {
        lines.push(
            "The schema of a running federation stays as it is, because the models that there are were trained by it. \
             Members, addresses and the timers of rounds are not part of the scenario."
                .to_owned(),
        );
    } else if !kept {
        lines.push(
            "The schema was not written as tables of their own, so comments are lost.".to_owned(),
        );
    }
    lines
}
