//! `rota ask`: plays a question with the tables of all sites in one process.

mod file;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use agreement::bytes_of_round;
use formatting::numbers;
use node::answers::page::{AnswerCost, QuestionStory, page};
use node::answers::tables::SiteTable;
use node::answers::texts;
use node::commands::trees::{NO_TREES, TreesFile};
use questions::disclosure::AnswerRecord;
use questions::kinds::trees::TreesOutcome;
use questions::outcome::{PrintedTable, sheets};
use questions::{
    AskedNothing, AskedQuestion, FederatedQuestion, FirstCounts, Kind, Outcome, QuestionMode,
    QuestionProgress,
};
use serde::Serialize;

use super::{CommandError, wrapped};
use crate::cli::AskOptions;
use file::QuestionFile;

/// Said of every answer.
const SIMULATED: &str = "A simulation: one process plays all sites. `rota federation ask` asks the nodes of a federation.";

/// Records of the answers of the sites, by their names.
type Records = BTreeMap<String, AnswerRecord>;

/// An answered question as JSON.
#[derive(Serialize)]
struct AskedDocument<'a> {
    /// Always true: one process plays all sites.
    simulated: bool,
    question: &'a str,
    mode: &'a str,
    sites: Vec<&'a str>,
    rounds: usize,
    numbers_opened: u64,
    bytes_per_site: u64,
    stored: bool,
    answer: Vec<PrintedTable>,
    /// The trees themselves, where that is what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    trees: Option<&'a TreesOutcome>,
}

/// Explains, asks and prints.
pub(crate) fn run(options: &AskOptions) -> Result<(), CommandError> {
    let read = QuestionFile::read(&options.question)?;
    let question = &read.question;
    let mut out = BufWriter::new(io::stdout().lock());
    if question.mode == QuestionMode::Noised {
        return Err(CommandError::usage(
            "`mode = \"differential-privacy\"` is not played: the nodes of a federation answer with noise, which \
             `rota federation ask` asks",
        ));
    }
    let explanation = question.explain(&bytes_of_round);
    let explanation = explanation.map_err(|error| CommandError::usage(error.to_string()))?;
    let quiet = options.json || options.csv;
    if !quiet {
        writeln!(out, "{}\n", wrapped(SIMULATED))?;
        for line in explanation.lines() {
            writeln!(out, "{}", wrapped(line))?;
        }
    }
    if options.explain {
        return Ok(out.flush()?);
    }
    if let Some(page) = &options.html {
        super::vacant(page, false)?;
    }
    let export = options.export.as_deref().map(TreesFile::new).transpose()?;
    if export.is_some() && !matches!(question.kind, Kind::Trees(_)) {
        return Err(CommandError::usage(NO_TREES));
    }
    let sites = tables::read(question, &read.sites, options.data_folder().as_deref())?;
    let mut records = match &options.record {
        Some(path) => read_records(path)?,
        None => Records::new(),
    };
    let played = play(question, &sites, &read, &mut records)?;
    if let Some(path) = options.record.as_ref().filter(|_| !played.stored) {
        write_records(path, &records)?;
    }
    let asked = played.asked;
    let (outcome, counts) = match (asked.end.clone(), asked.counts.clone()) {
        (Ok(outcome), Some(counts)) => (outcome, counts),
        (Err(why), _) => {
            out.flush()?;
            return Err(refusal(&why, &sites));
        }
        (Ok(_), None) => return Err(CommandError::failed("the question ended without counts")),
    };
    let answer = sheets(question, &counts, &outcome);
    if let Some(file) = export {
        file.write(&outcome)?;
    }
    let cost = cost(&asked, question.mode);
    if let Some(file) = &options.html {
        let name = options
            .question
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let story = QuestionStory {
            name: &name,
            lead: SIMULATED,
            question,
            found: Some((&counts, &outcome)),
            sheets: &answer,
            left_out: &[],
            opened: cost,
            command: &format!("rota ask {}", options.question.display()),
        };
        super::write(file, &page(&story))?;
    }
    if options.json {
        let document = AskedDocument {
            simulated: true,
            question: question.kind.name(),
            mode: question.mode.name(),
            sites: sites.iter().map(|(name, _)| name.as_str()).collect(),
            rounds: asked.rounds.len(),
            numbers_opened: cost.numbers,
            bytes_per_site: cost.bytes,
            stored: played.stored,
            answer,
            trees: match &outcome {
                Outcome::Trees(found) => Some(found),
                _ => None,
            },
        };
        let json = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else if options.csv {
        let texts: Vec<String> = answer.iter().map(PrintedTable::csv).collect();
        write!(out, "{}", texts.join("\n"))?;
    } else {
        write!(out, "{}", texts(&answer, wrapped))?;
        let opened = match played.stored {
            true => "nothing: this is the stored answer of an identical question".to_owned(),
            false => cost.text(),
        };
        writeln!(out, "\n{}", wrapped(&format!("opened    {opened}")))?;
    }
    Ok(out.flush()?)
}

/// Returns what the rounds opened, and what a site sent for it.
fn cost(asked: &AskedQuestion, mode: QuestionMode) -> AnswerCost {
    let opened = asked.rounds.iter().map(|round| round.layout.len());
    AnswerCost::of(mode, opened)
}

/// A played question.
struct PlayedQuestion {
    asked: AskedQuestion,
    /// True if an identical question was answered before.
    stored: bool,
}

/// Plays a question: every site checks each round by its rules and its record, and encodes its vector; only the sum is
/// used.
fn play(
    question: &FederatedQuestion,
    sites: &[SiteTable],
    read: &QuestionFile,
    records: &mut Records,
) -> Result<PlayedQuestion, CommandError> {
    let rules = &read.sites.rules;
    let wrong = |error: questions::QuestionError| CommandError::usage(error.to_string());
    let tables: Vec<_> = sites.iter().map(|(_, table)| table.clone()).collect();
    for (name, _) in sites {
        records.entry(name.clone()).or_default();
    }
    if let Some((counts, outcome)) = stored(question, sites, records) {
        let asked = AskedQuestion {
            rounds: Vec::new(),
            counts: Some(counts),
            end: Ok(outcome),
        };
        return Ok(PlayedQuestion {
            asked,
            stored: true,
        });
    }
    let mut opened = 0;
    let asked = questions::ask(question, &tables, |site, progress, vector| {
        let (name, table) = &sites[site];
        let record = &records[name];
        if *progress == QuestionProgress::Counts {
            record.check(question, table, rules)?;
        }
        record.check_round(question, table, rules, progress, opened)?;
        if site + 1 == sites.len() {
            opened += vector.len() as u64;
        }
        Ok(())
    })
    .map_err(wrong)?;
    for (name, table) in sites {
        let record = records.entry(name.clone()).or_default();
        record.keep(question, table, &asked);
    }
    Ok(PlayedQuestion {
        asked,
        stored: false,
    })
}

/// The counts and the answer that all sites have stored.
fn stored(
    question: &FederatedQuestion,
    sites: &[SiteTable],
    records: &Records,
) -> Option<(FirstCounts, Outcome)> {
    let mut found = sites
        .iter()
        .map(|(name, _)| records.get(name)?.stored(question)?.answer.clone());
    let first = found.next()??;
    found
        .all(|answer| answer.as_ref() == Some(&first))
        .then_some(first)
}

/// Returns the error of a question without an answer, with the name of the site.
fn refusal(why: &AskedNothing, sites: &[SiteTable]) -> CommandError {
    match why {
        AskedNothing::Stopped(why) => {
            CommandError::failed(format!("the question ended without an answer: {why}"))
        }
        AskedNothing::Refused { site, why } => {
            let name = numbers::plain(&sites[*site].0);
            CommandError::failed(format!(
                "the question ended without an answer: {name} {why}"
            ))
        }
    }
}

fn read_records(path: &Path) -> Result<Records, CommandError> {
    if !path.exists() {
        return Ok(Records::new());
    }
    let text = task::file::read_text(path, task::file::DATA)?;
    serde_json::from_str(&text).map_err(|error| {
        CommandError::usage(format!(
            "{} is no record of questions ({error}): name another file with --record",
            path.display()
        ))
    })
}

fn write_records(path: &Path, records: &Records) -> Result<(), CommandError> {
    let text = serde_json::to_string(records).map_err(io::Error::from)?;
    // In place of the old file at once, so that a record is never half of one.
    let fresh = path.with_extension("new");
    fs::write(&fresh, text)?;
    Ok(fs::rename(fresh, path)?)
}
