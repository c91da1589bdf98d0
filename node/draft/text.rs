//! The TOML of a proposed scenario, with comments.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use methods::learner::Training;
use task::TaskConfig;
use task::data::{Format, Standardise, Target};
use task::propose::{SchemaProposal, Wishes};
use task::schema::{
    Censored, ClassValues, ColumnNames, ColumnType, Days, FeatureColumns, Filter, Levels,
    MissingRule, ReadCells, TargetColumn,
};

use super::plan::FederationPlan;
use crate::paths::relative;

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(quoted).collect();
    format!("[{}]", texts.join(", "))
}

/// A scenario that runs, to be kept in the file `scenario`: its paths are relative to that. Where members are not
/// to read every model, its rules are those of a plan that was made for that.
pub(super) fn scenario(
    proposal: &SchemaProposal,
    files: &[PathBuf],
    wishes: &Wishes,
    scenario: &Path,
    silo_rows: usize,
    plan: Option<&FederationPlan>,
) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    let common = matches!(proposal.target(), Target::Number { .. });
    write_head(&mut line, scenario, common, plan);
    line("");
    write_task(&mut line, proposal, common, plan);
    line("");
    line("[task.table.data.rows]");
    let first = &proposal.formats[0];
    let several = proposal.formats.iter().any(|format| format != first);
    write_files(&mut line, proposal, files, scenario, several);
    if let Some(column) = &wishes.silo_column {
        line(&format!("silo-column = {}", quoted(column)));
    }
    if let Some(count) = wishes.pretend_silos {
        line(&format!(
            "split-into = {count}     # the rows are dealt in turn, to try a federation out"
        ));
    }
    line(&format!(
        "silo-rows = {silo_rows}        # smaller silos are left out"
    ));
    write_ignored(&mut line, proposal);
    write_answers(&mut line, proposal);
    if !several {
        line(&format!("format = {}", format_table(first)));
    }
    line("");
    line("[task.table.schema]");
    line(&format!(
        "min-rows = {}          # an institution with fewer may not take part",
        proposal.schema.min_rows
    ));
    write_conditions(&mut line, &proposal.schema.only);
    line("");
    write_target(&mut line, proposal);
    for feature in &proposal.schema.features {
        line("");
        write_feature(&mut line, feature, proposal);
    }
    line("");
    line("[strategy]");
    line("name = \"fedavg\"        # `rota strategies` lists the others");
    match plan {
        // Those at risk together are the rows of a step.
        None if proposal.schema.target.survival => line(
            "training = { epochs = 10, batch = 0, optimiser = { name = \"sgd\", rate = 0.2 } }   # all rows in a step",
        ),
        None => {
            line(
                "training = { epochs = 5, batch = 16, optimiser = { name = \"sgd\", rate = 0.02 } }",
            );
        }
        Some(plan) => write_rules(&mut line, plan),
    }
    text
}

/// Writes what goes with sums alone.
fn write_rules(line: &mut dyn FnMut(&str), plan: &FederationPlan) {
    line("weight = \"equal\"       # numbers of rows stay at home");
    let Training {
        epochs,
        batch,
        optimiser,
        ..
    } = &plan.strategy.training;
    line(&format!(
        "training = {{ epochs = {epochs}, batch = {batch}, optimiser = {{ name = \"sgd\", rate = {:?} }} }}",
        optimiser.rate()
    ));
    line("");
    line("# What members read of each other's updates: docs/privacy.md.");
    let table = plan.privacy.as_ref();
    let table = table.map(|table| toml::to_string(&BTreeMap::from([("privacy", table)])));
    // Tables of texts and numbers are TOML.
    let table = table.and_then(Result::ok).unwrap_or_default();
    table.lines().for_each(line);
}

/// Writes where the scenario comes from, its name, and its rounds: one more where the silos agree on a
/// `common` scale first.
fn write_head(
    line: &mut dyn FnMut(&str),
    scenario: &Path,
    common: bool,
    plan: Option<&FederationPlan>,
) {
    let stem = scenario
        .file_stem()
        .map_or_else(|| "mine".into(), |stem| stem.to_string_lossy());
    line(
        "# Proposed by `rota init` from what the files hold. Read it before you trust it: a number",
    );
    line(
        "# may be a code, and a code a number. `rota schema scenario` prints a schema for editors.",
    );
    line("#");
    line(&format!("#   rota simulate {}", scenario.display()));
    line(&format!("name = {}", quoted(&stem)));
    line("seed = 1");
    match plan {
        Some(plan) => line(&format!("rounds = {}", plan.rounds)),
        None if common => line("rounds = 11           # the first agrees on a common scale"),
        None => line("rounds = 10"),
    }
}

/// Writes the model, the metric, and how rows are scaled and split.
fn write_task(
    line: &mut dyn FnMut(&str),
    proposal: &SchemaProposal,
    common: bool,
    plan: Option<&FederationPlan>,
) {
    line("[task.table]");
    let (model, metric, why) = model(proposal);
    line(&format!("model = {model}   # {why}"));
    line(&format!("metric = {}", quoted(metric)));
    let task = plan.and_then(|plan| match &plan.task {
        TaskConfig::Table(task) => Some(task),
        _ => None,
    });
    match task.map(|task| task.scaling()) {
        Some(Standardise::Ranges) => {
            line("standardise = \"ranges\"       # by the agreed ranges, which look at no row")
        }
        None if common => line("standardise = \"federation\"   # one scale for all silos"),
        _ => line("standardise = \"silo\"         # every silo scales its features itself"),
    }
    let group = proposal.group.as_ref().map(|(column, _)| column);
    let group = group.map(|column| format!(", group = {}", quoted(column)));
    let (keyed, how) = match task.is_some_and(|task| task.split.keyed) {
        true => (
            ", keyed = true",
            "a keyed hash of each row, or of its group, decides",
        ),
        false if group.is_some() => ("", "all rows of one stay together"),
        false => ("", "of every silo's rows, by seed"),
    };
    line(&format!(
        "split = {{ validation = 0.0, test = 0.3{}{keyed} }}   # {how}",
        group.unwrap_or_default()
    ));
}

/// Writes the files, each with its format where there are `several` formats.
fn write_files(
    line: &mut dyn FnMut(&str),
    proposal: &SchemaProposal,
    files: &[PathBuf],
    scenario: &Path,
    several: bool,
) {
    let folder = scenario.parent().unwrap_or(Path::new(""));
    let names = file_names(proposal);
    let entry = |(file, format): (&PathBuf, &Format)| {
        let path = relative(file, folder);
        let mut entry = format!("{{ path = {}", quoted(&path.to_string_lossy()));
        if several {
            entry += &format!(", format = {}", format_table(format));
        }
        if !names.is_empty() {
            entry += &format!(", names = {{ {} }}", names.join(", "));
        }
        entry + " }"
    };
    let entries: Vec<String> = files.iter().zip(&proposal.formats).map(entry).collect();
    if several || !names.is_empty() {
        line("files = [");
        entries
            .iter()
            .for_each(|entry| line(&format!("  {entry},")));
        line("]");
    } else {
        line(&format!("files = [{}]", entries.join(", ")))
    }
}

/// Writes the columns that are left out, with the reasons.
fn write_ignored(line: &mut dyn FnMut(&str), proposal: &SchemaProposal) {
    let group = proposal.group.as_ref().map(|(column, _)| column);
    let ignored = proposal
        .left_out
        .iter()
        .filter(|(name, _)| Some(name) != group);
    let ignored: Vec<_> = ignored.collect();
    if !ignored.is_empty() {
        line("ignore = [");
        for (name, why) in ignored {
            let name = quoted(name) + ",";
            line(&format!("  {name:24} # {}", one_line(why)));
        }
        line("]");
    }
}

/// Writes what the person has said about the rows.
fn write_answers(line: &mut dyn FnMut(&str), proposal: &SchemaProposal) {
    let answers = &proposal.answers;
    let mut keys = Vec::new();
    if !answers.keep.is_empty() {
        keys.push(format!("keep = {}", lists(&answers.keep)));
    }
    if !answers.learn.is_empty() {
        let learn = list(answers.learn.iter().map(String::as_str));
        keys.push(format!("learn = {learn}"));
    }
    if !keys.is_empty() {
        line(&format!("answers = {{ {} }}", keys.join(", ")));
    }
}

/// Writes the target, and between which numbers columns lie.
fn write_target(line: &mut dyn FnMut(&str), proposal: &SchemaProposal) {
    line("[task.table.schema.target]");
    let target = &proposal.schema.target;
    match target.survival {
        true => write_survival(line, target),
        false => line(&format!("name = {}", names(&target.name))),
    }
    if let Some(classes) = &target.classes {
        let class = |class: &ClassValues| match class {
            ClassValues::One(value) => quoted(value),
            ClassValues::Several { name, values } => format!(
                "{{ name = {}, values = {} }}",
                quoted(name),
                list(values.iter().map(String::as_str))
            ),
        };
        let classes: Vec<String> = classes.iter().map(class).collect();
        line(&format!("classes = [{}]", classes.join(", ")));
    }
    if let Some(positive) = &target.positive {
        line(&format!("positive = {}", quoted(positive)));
    }
    write_measured(line, target.unit.as_deref(), target.censored);
    write_range(line, target.range);
    if !proposal.schema.usual.is_empty() {
        line("");
        line(
            "# Between which numbers most lie here, to one digit. Whoever joins with others is told.",
        );
        line("[task.table.schema.usual]");
        for (name, [low, high]) in &proposal.schema.usual {
            line(&format!("{} = [{low:?}, {high:?}]", quoted(name)));
        }
    }
}

/// Writes the columns of a time to an event.
fn write_survival(line: &mut dyn FnMut(&str), target: &TargetColumn) {
    let keys = [
        (
            "event",
            "   # 1 where it happened, 0 where observation ended before (censored)",
        ),
        ("time", "   # when it happened, or observation ended"),
        ("entry", "   # from when on a row is observed"),
    ];
    for (name, (key, what)) in target.name.iter().zip(keys) {
        line(&format!("{key} = {}{what}", quoted(name)));
    }
    let at: Vec<String> = target.at.iter().map(|at| format!("{at:?}")).collect();
    match at.is_empty() {
        true => line("# at = [365.0]   # times at which survival is predicted"),
        false => line(&format!(
            "at = [{}]   # times at which survival is predicted",
            at.join(", ")
        )),
    }
}

/// Writes the conditions that a row must meet.
fn write_conditions(line: &mut dyn FnMut(&str), only: &[Filter]) {
    if !only.is_empty() {
        let texts: Vec<String> = only.iter().cloned().map(String::from).collect();
        let only = list(texts.iter().map(String::as_str));
        line(&format!(
            "only = {only}   # conditions that a row must meet"
        ));
    }
}

/// Writes the unit of a column of numbers, and how bounds are read.
fn write_measured(line: &mut dyn FnMut(&str), unit: Option<&str>, censored: Option<Censored>) {
    if let Some(unit) = unit {
        line(&format!("unit = {}", quoted(unit)));
    }
    if let Some(rule) = censored {
        let name = match rule {
            Censored::Limit => "limit",
            Censored::Half => "half",
        };
        line(&format!("censored = {}   # {rule}", quoted(name)));
    }
}

/// Writes between which numbers a column may lie.
fn write_range(line: &mut dyn FnMut(&str), range: Option<[f64; 2]>) {
    if let Some([low, high]) = range {
        line(&format!("range = [{low:?}, {high:?}]"));
    }
}

/// Writes a feature.
fn write_feature(line: &mut dyn FnMut(&str), feature: &FeatureColumns, proposal: &SchemaProposal) {
    line("[[task.table.schema.feature]]");
    let first = feature.name.iter().next().unwrap_or_default();
    let what = proposal.columns.iter().find(|(name, _)| name == first);
    let what = what.map_or("", |(_, what)| what);
    match feature.name.count() {
        1 => line(&format!(
            "name = {}   # {}",
            names(&feature.name),
            one_line(what)
        )),
        _ => line(&format!("name = {}", names(&feature.name))),
    }
    match &feature.kind {
        ColumnType::Number(quantity) => {
            line("type = \"number\"");
            write_measured(line, quantity.unit.as_deref(), quantity.censored);
        }
        ColumnType::Integer(quantity) => {
            line("type = \"integer\"");
            write_measured(line, quantity.unit.as_deref(), quantity.censored);
        }
        ColumnType::Date(Days {
            since,
            until,
            parts,
        }) => {
            line("type = \"date\"");
            line(&format!("since = \"{since}\""));
            if let Some(until) = until {
                line(&format!("until = \"{until}\""));
            }
            let parts = list(parts.iter().map(|part| part.name()));
            line(&format!(
                "parts = {parts}            # also \"year\", \"month\", \"weekday\", \"day-of-year\""
            ));
        }
        ColumnType::Category(Levels { listed, other }) => {
            line("type = \"category\"");
            let levels = list(listed.iter().map(String::as_str));
            line(&format!("levels = {levels}"));
            if *other {
                line("other = true");
            }
        }
    }
    match feature.kind.cells() {
        ReadCells::Numbers { agreed, .. } => write_range(line, agreed.range),
        ReadCells::Days(_) | ReadCells::Levels(_) => {}
    }
    match feature.missing {
        MissingRule::Refuse => {}
        MissingRule::Drop => line("missing = \"drop\""),
        MissingRule::Mean => line("missing = \"mean\""),
        MissingRule::Median => line("missing = \"median\"          # of the training rows"),
        MissingRule::Indicator => {
            line("missing = \"indicator\"       # the mean, and a column that says so");
        }
        MissingRule::Middle => line("missing = \"middle\"          # of the range"),
        MissingRule::MiddleIndicator => {
            line("missing = \"middle-indicator\" # of the range, and a column that says so");
        }
    }
}

/// The model that one would try first, the metric to compare, and why.
fn model(proposal: &SchemaProposal) -> (&'static str, &'static str, &'static str) {
    match proposal.target() {
        Target::Classes(classes) if classes.len() == 2 => (
            "\"logistic\"",
            "roc-auc",
            "two classes; or { mlp = { hidden = [32] } }",
        ),
        Target::Classes(_) => ("{ mlp = { hidden = [32] } }", "accuracy", "several classes"),
        Target::Survival { .. } => (
            "\"cox\"",
            "concordance",
            "a time to an event; or { mlp = { hidden = [32] } }",
        ),
        _ => (
            "{ linear = { loss = \"absolute\" } }",
            "mae",
            "a number; or { mlp = { hidden = [32] } }",
        ),
    }
}

fn names(names: &ColumnNames) -> String {
    match names {
        ColumnNames::One(name) => quoted(name),
        ColumnNames::Several(names) => list(names.iter().map(String::as_str)),
    }
}

/// The texts that mean another one, as an inline table.
fn codes(proposal: &SchemaProposal) -> String {
    let pair = |(from, to): (&String, &String)| format!("{} = {}", quoted(from), quoted(to));
    let column = |(name, codes): (&String, &BTreeMap<String, String>)| {
        let pairs: Vec<String> = codes.iter().map(pair).collect();
        format!("{} = {{ {} }}", quoted(name), pairs.join(", "))
    };
    let columns: Vec<String> = proposal.codes.iter().map(column).collect();
    format!("{{ {} }}", columns.join(", "))
}

/// Lists of texts by column, as an inline table.
fn lists(all: &BTreeMap<String, Vec<String>>) -> String {
    let column = |(name, texts): (&String, &Vec<String>)| {
        let texts = list(texts.iter().map(String::as_str));
        format!("{} = {texts}", quoted(name))
    };
    let columns: Vec<String> = all.iter().map(column).collect();
    format!("{{ {} }}", columns.join(", "))
}

/// The keys of `names` of every file.
fn file_names(proposal: &SchemaProposal) -> Vec<String> {
    let mut keys = Vec::new();
    if !proposal.codes.is_empty() {
        keys.push(format!("codes = {}", codes(proposal)));
    }
    if !proposal.missing.is_empty() {
        keys.push(format!("missing = {}", lists(&proposal.missing)));
    }
    if !proposal.dates.is_empty() {
        let forms = proposal.dates.iter();
        let forms = forms.map(|(name, form)| format!("{} = \"{}\"", quoted(name), form.name()));
        let forms: Vec<String> = forms.collect();
        keys.push(format!("dates = {{ {} }}", forms.join(", ")));
    }
    keys
}

fn format_table(format: &Format) -> String {
    let mut text = format!(
        "{{ delimiter = {}, decimal = {}, encoding = {}",
        quoted(&format.delimiter.to_string()),
        quoted(&format.decimal.to_string()),
        quoted(&format.encoding),
    );
    if let Some(mark) = format.thousands {
        write!(text, ", thousands = {}", quoted(&mark.to_string()))
            .expect("a String takes everything");
    }
    if let Some(sheet) = &format.sheet {
        write!(text, ", sheet = {}", quoted(sheet)).expect("a String takes everything");
    }
    if format.missing != Format::default().missing {
        let missing = list(format.missing.iter().map(String::as_str));
        write!(text, ", missing = {missing}").expect("a String takes everything");
    }
    text + " }"
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
