//! The plan of a new federation, put together from a scenario, a table, options, and answers to
//! questions.

mod error;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use methods::strategy::STRATEGIES;
use task::propose::{SchemaProposal, Wishes, propose};
use task::schema::{MissingRule, ReadCells};
use task::{TaskConfig, data::DataError};
use toml::{Table, Value};

pub use self::error::ComposeError;
use super::asked::proposed;
use super::plan::{BuiltInTexts, FederationPlan, PlanError};
use super::protect::{self, Protection};
use super::{described, text};
use crate::federation::rows_in_words;
use crate::prompt::Prompt;

/// Request from the command line.
#[derive(Debug, Clone, Default)]
pub struct InitRequest {
    /// A built-in scenario or a file; its data are not read.
    pub scenario: Option<String>,
    /// The built-in scenarios.
    pub built_in: BuiltInTexts,
    /// Tables of one institution, from which the columns are taken.
    pub tables: Vec<PathBuf>,
    /// Wishes for the columns of the tables.
    pub wishes: Wishes,
    /// Name of the federation.
    pub name: Option<String>,
    /// Rule for missing values in columns of the tables that have none.
    pub missing: Option<MissingRule>,
    /// The model: `logistic`, `linear`, `mlp`, or a value of `model` in TOML.
    pub model: Option<String>,
    /// Name of the strategy.
    pub strategy: Option<String>,
    /// Number of rounds.
    pub rounds: Option<u64>,
    /// Seed of the initial model.
    pub seed: Option<u64>,
    /// Protection of updates against the other members; `None`: as the scenario states, or nobody chose.
    pub protection: Option<Protection>,
}

/// Federation that was put together.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// Plan that was put together.
    pub plan: FederationPlan,
    /// Columns of the tables that are no part of it, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Facts about the data that the agreement will state, and findings to look at, one line each.
    pub says: Vec<String>,
    /// Protection of updates against the other members, and what was changed for it, one line each.
    pub protected: Vec<String>,
}

/// Heading of what an agreement states about data.
const SAYS: &str =
    "This stands in the agreement, and everybody who sees it or an invitation reads it:";

/// Factor between the rows of the drafter's table and the most that all members together are thought to have.
const OTHERS: usize = 10;

/// Origin of the columns.
enum Base {
    Scenario(String),
    Tables(Vec<PathBuf>),
}

/// The plan of a new federation. What is missing is asked for where somebody can be asked.
///
/// # Errors
/// [`ComposeError`]: something is missing or wrong.
pub fn compose(
    wanted: &InitRequest,
    mut ask: Option<&mut Prompt<'_>>,
) -> Result<Composed, ComposeError> {
    let base = match (&wanted.scenario, wanted.tables.as_slice()) {
        (Some(scenario), _) => Base::Scenario(scenario.clone()),
        (None, [_, ..]) => Base::Tables(wanted.tables.clone()),
        (None, []) => {
            let ask = ask.as_deref_mut().ok_or(ComposeError::Missing {
                what: "what is learned",
                option: "--scenario FILE (a TOML with a schema) or --table FILE (whose columns are taken)",
            })?;
            let question = "A table of yours whose columns are taken (CSV, .csv.gz, .parquet; its rows \
                            stay here), or a scenario (.toml)";
            let file = ask.ask(question, None, |answer| {
                if Path::new(answer).is_file() {
                    Ok(answer.to_owned())
                } else {
                    Err(format!("there is no file {answer:?}"))
                }
            })?;
            if file.ends_with(".toml") {
                Base::Scenario(file)
            } else {
                Base::Tables(vec![file.into()])
            }
        }
    };
    match base {
        Base::Scenario(name) => {
            let mut plan = of_scenario(wanted, &name, ask.as_deref_mut())?;
            let protected = match chosen(wanted, plan.privacy.is_some(), ask)? {
                Some(protection) => protect::fitted(&mut plan, &protection, None),
                None if plan.privacy.is_some() => Vec::new(),
                None => vec![protect::CLEAR.to_owned()],
            };
            let said = match &plan.task {
                TaskConfig::Table(task) => task.agreed_schema()?,
                _ => None,
            };
            let says = said.as_ref().map(rows_in_words).unwrap_or_default();
            Ok(Composed {
                plan,
                left_out: Vec::new(),
                says: [vec![SAYS.to_owned()], says].concat(),
                protected,
            })
        }
        Base::Tables(files) => of_tables(wanted, &files, ask),
    }
}

/// Returns what members are to read of each other's updates: as an option says, or as somebody answers where the
/// scenario does not say it.
fn chosen(
    wanted: &InitRequest,
    said: bool,
    ask: Option<&mut Prompt<'_>>,
) -> io::Result<Option<Protection>> {
    match (&wanted.protection, ask) {
        (Some(protection), _) => Ok(Some(protection.clone())),
        (None, Some(ask)) if !said => Protection::ask(ask).map(Some),
        (None, _) => Ok(None),
    }
}

/// From a scenario, in which keys may be missing.
fn of_scenario(
    wanted: &InitRequest,
    name: &str,
    mut ask: Option<&mut Prompt<'_>>,
) -> Result<FederationPlan, ComposeError> {
    let text = task::file::read_text(Path::new(name), task::file::CONFIGURATION);
    let table = text.ok().and_then(|text| text.parse::<Table>().ok());
    // A built-in one, or an error that names the line.
    let Some(mut table) = table else {
        return changed(FederationPlan::load(name, wanted.built_in)?, wanted);
    };
    let mut filled = false;
    if !table.contains_key("name") {
        let stem = Path::new(name)
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let known = wanted.name.clone();
        let given = answer(known, &mut ask, "the name", "--name NAME", |ask| {
            ask.ask("Name of the federation", Some(&stem), text_of)
        })?;
        table.insert("name".into(), given.into());
        filled = true;
    }
    if !table.contains_key("rounds") {
        let given = answer(
            wanted.rounds,
            &mut ask,
            "the number of rounds",
            "--rounds N",
            |ask| ask.ask("Rounds", Some("10"), number),
        )?;
        table.insert("rounds".into(), integer(given)?);
        filled = true;
    }
    if !table.contains_key("strategy") {
        let known = wanted.strategy.clone();
        let given = answer(known, &mut ask, "the strategy", "--strategy NAME", |ask| {
            ask.ask(
                "Strategy (`rota strategies` lists them)",
                Some("fedavg"),
                strategy,
            )
        })?;
        table.insert("strategy".into(), training(&given));
        filled = true;
    }
    let task = table.get_mut("task").and_then(|task| task.get_mut("table"));
    if let Some(task) = task.and_then(Value::as_table_mut) {
        let known = match (&wanted.model, task.contains_key("model")) {
            (Some(known), _) => Some(model(known).map_err(ComposeError::Option)?),
            (None, true) => None,
            (None, false) => Some(answer(
                None,
                &mut ask,
                "the model",
                "--model NAME",
                |ask| ask.ask("Model (logistic, linear, cox, mlp)", None, model),
            )?),
        };
        if let Some(known) = known {
            task.insert("model".into(), known);
            filled = true;
        }
    }
    if !filled {
        // Errors name the lines of the file as it is.
        return changed(FederationPlan::load(name, wanted.built_in)?, wanted);
    }
    let text = toml::to_string(&table).map_err(|error| ComposeError::Option(error.to_string()))?;
    let name = format!("{name} with what was added to it");
    changed(FederationPlan::parse(&name, &text)?, wanted)
}

/// From the columns of tables.
fn of_tables(
    wanted: &InitRequest,
    files: &[PathBuf],
    mut ask: Option<&mut Prompt<'_>>,
) -> Result<Composed, ComposeError> {
    let mut wishes = Wishes {
        alone: true,
        ..wanted.wishes.clone()
    };
    // Also checks that the files can be read, before anything is asked.
    let mut proposal = proposed(files, &mut wishes, ask.as_deref_mut())?;
    if let (None, Some(ask)) = (&wishes.target, ask.as_deref_mut()) {
        let chosen = target(&proposal, files, &wishes, ask)?;
        let found = &proposal.schema.target;
        let names: Vec<&str> = found.name.iter().collect();
        // Whoever takes the event that was found takes its time, too.
        if found.survival && names.first() == Some(&chosen.as_str()) {
            let column = |place: usize| names.get(place).map(|name| (*name).to_owned());
            (wishes.time, wishes.entry) = (column(1), column(2));
        }
        wishes.target = Some(chosen);
        proposal = proposed(files, &mut wishes, Some(ask))?;
    }
    if let Some(missing) = wanted.missing {
        fill_in(&mut proposal, missing);
    }
    let protection = chosen(wanted, false, ask.as_deref_mut())?;
    protection
        .iter()
        .try_for_each(|protection| protect::fits(&proposal, protection))?;
    let mut protected = match &protection {
        Some(protection) => protect::proposed(&mut proposal, protection),
        None => vec![protect::CLEAR.to_owned()],
    };
    let name = proposal
        .schema
        .target
        .name
        .iter()
        .next()
        .unwrap_or("federation");
    let name = name.to_owned();
    let drafted = Path::new("federation.toml");
    let least = proposal.schema.min_rows;
    let text = text::scenario(&proposal, files, &wishes, drafted, least, None);
    let mut table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| ComposeError::Option(error.to_string()))?;
    table.insert("name".into(), name.clone().into());
    if let Some(rounds) = protection.as_ref().and_then(Protection::rounds) {
        table.insert("rounds".into(), integer(rounds)?);
    }
    if let Some(ask) = ask.as_deref_mut() {
        for line in described(&proposal) {
            ask.say(&line)?;
        }
        ask_what_is_missing(&mut table, wanted, &name, ask)?;
    }
    let task = table.get_mut("task").and_then(|task| task.get_mut("table"));
    if let Some(task) = task.and_then(Value::as_table_mut) {
        let known = match (&wanted.model, ask) {
            (Some(known), _) => Some(model(known).map_err(ComposeError::Option)?),
            (None, Some(ask)) => {
                let usual = task.get("model").map(Value::to_string);
                let question = "Model (logistic, linear, cox, mlp, or as in a scenario)";
                Some(ask.ask(question, usual.as_deref(), model)?)
            }
            (None, None) => None,
        };
        known.map(|known| task.insert("model".into(), known));
    }
    let text = toml::to_string(&table).map_err(|error| ComposeError::Option(error.to_string()))?;
    let plan = FederationPlan::parse("the proposal for these tables", &text)?;
    let mut plan = changed(plan, wanted)?;
    if let Some(protection) = &protection {
        protected.extend(protect::fitted(
            &mut plan,
            protection,
            Some(OTHERS * proposal.rows),
        ));
    }
    let read = "How the tables were read (these lines stay here):";
    let notes = proposal.notes.iter().map(|note| format!("note: {note}"));
    let mut says = vec![read.to_owned()];
    says.extend(described(&proposal).into_iter().chain(notes));
    says.push(SAYS.to_owned());
    says.extend(rows_in_words(&proposal.schema));
    Ok(Composed {
        plan,
        left_out: proposal.left_out,
        says,
        protected,
    })
}

/// The column to predict, as a person names it.
fn target(
    proposal: &SchemaProposal,
    files: &[PathBuf],
    wishes: &Wishes,
    ask: &mut Prompt<'_>,
) -> io::Result<String> {
    let last = proposal
        .schema
        .target
        .name
        .iter()
        .next()
        .unwrap_or_default();
    let time = proposal.schema.target.name.iter().nth(1);
    let question = match time.filter(|_| proposal.schema.target.survival) {
        Some(time) => format!("Column to predict (an event, with the time until it in {time:?})"),
        None => "Column to predict".to_owned(),
    };
    ask.ask(&question, Some(last), |answer| {
        let wishes = Wishes {
            target: Some(answer.to_owned()),
            ..wishes.clone()
        };
        match propose(files, &wishes) {
            // Its questions are asked next.
            Ok(_) | Err(DataError::Unanswered(_)) => Ok(answer.to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
}

/// Lets features take missing values by this rule, where they refused them.
fn fill_in(proposal: &mut SchemaProposal, missing: MissingRule) {
    for feature in &mut proposal.schema.features {
        if feature.missing == MissingRule::Refuse {
            feature.missing = match (feature.kind.cells(), missing) {
                // There is no median of categories, nor of months and weekdays.
                (ReadCells::Levels(_), MissingRule::Median) => MissingRule::Mean,
                (ReadCells::Days(days), MissingRule::Median) if !days.has_medians() => {
                    MissingRule::Mean
                }
                (ReadCells::Levels(_) | ReadCells::Days(_) | ReadCells::Numbers { .. }, rule) => {
                    rule
                }
            };
        }
    }
}

/// Asks for the name, the strategy and the rounds that no option gives, and puts them into the scenario.
fn ask_what_is_missing(
    table: &mut Table,
    wanted: &InitRequest,
    name: &str,
    ask: &mut Prompt<'_>,
) -> Result<(), ComposeError> {
    if wanted.name.is_none() {
        let name = ask.ask("Name of the federation", Some(name), text_of)?;
        table.insert("name".into(), name.into());
    }
    if wanted.strategy.is_none() {
        let question = "Strategy (`rota strategies` lists them)";
        let name = ask.ask(question, Some("fedavg"), strategy)?;
        match table.get_mut("strategy").and_then(Value::as_table_mut) {
            Some(drafted) => {
                drafted.insert("name".into(), name.into());
            }
            None => {
                table.insert("strategy".into(), training(&name));
            }
        }
    }
    if wanted.rounds.is_none() {
        let usual = table.get("rounds").map(Value::to_string);
        let rounds = ask.ask("Rounds", usual.as_deref(), number)?;
        table.insert("rounds".into(), integer(rounds)?);
    }
    Ok(())
}

/// With the options that replace what a scenario says.
fn changed(mut plan: FederationPlan, wanted: &InitRequest) -> Result<FederationPlan, ComposeError> {
    let wrong = |what: String| PlanError::Override(what);
    if let Some(name) = &wanted.name {
        plan.name.clone_from(name);
    }
    plan.seed = wanted.seed.unwrap_or(plan.seed);
    plan.rounds = wanted.rounds.unwrap_or(plan.rounds);
    if let Some(name) = &wanted.strategy {
        let switched = plan.strategy.switch(name);
        plan.strategy = switched.map_err(|error| wrong(error.to_string()))?;
    }
    let rounds = plan.checked().check_rounds();
    rounds.map_err(|what| wrong(format!("--rounds {what}")))?;
    plan.strategy.set_rounds(plan.rounds);
    Ok(plan)
}

/// Returns what is known, or the answer to a question, or an error that names the option.
fn answer<T>(
    known: Option<T>,
    ask: &mut Option<&mut Prompt<'_>>,
    what: &'static str,
    option: &'static str,
    question: impl FnOnce(&mut Prompt<'_>) -> io::Result<T>,
) -> Result<T, ComposeError> {
    match (known, ask.as_deref_mut()) {
        (Some(known), _) => Ok(known),
        (None, Some(ask)) => Ok(question(ask)?),
        (None, None) => Err(ComposeError::Missing { what, option }),
    }
}

fn text_of(answer: &str) -> Result<String, String> {
    match protocol::name::check(answer) {
        Ok(()) => Ok(answer.to_owned()),
        Err(why) => Err(format!("the name {why}")),
    }
}

fn number(answer: &str) -> Result<u64, String> {
    match answer.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("a whole number of at least 1 is needed".into()),
    }
}

fn integer(number: u64) -> Result<Value, ComposeError> {
    let number = i64::try_from(number);
    number
        .map(Value::Integer)
        .map_err(|_| ComposeError::Option("the number of rounds is too large".into()))
}

fn strategy(answer: &str) -> Result<String, String> {
    let names = STRATEGIES.iter().map(|info| info.name);
    if names.clone().any(|name| name == answer) {
        Ok(answer.to_owned())
    } else {
        Err(format!(
            "there is no strategy {answer:?}{}",
            task::data::nearest(answer, names)
        ))
    }
}

/// A strategy with local training that is good to begin with.
fn training(name: &str) -> Value {
    let text = format!(
        "name = {}\ntraining = {{ epochs = 5, batch = 16, optimiser = {{ name = \"sgd\", rate = 0.02 }} }}",
        Value::from(name)
    );
    Value::Table(text.parse().expect("it is TOML"))
}

/// A model by its name with usual options, or as a scenario has it.
fn model(answer: &str) -> Result<Value, String> {
    let text = match answer.trim() {
        "linear" => "{ linear = {} }",
        "mlp" => "{ mlp = { hidden = [32] } }",
        "logistic" => "\"logistic\"",
        "cox" => "\"cox\"",
        other => other,
    };
    let wrong = |error: &dyn Display| {
        format!(
            "{answer:?} is no model: write logistic, linear, cox, mlp, or as in a scenario, such as {{ mlp = \
             {{ hidden = [32, 16] }} }} ({error})"
        )
    };
    let table: Table = format!("model = {text}")
        .parse()
        .map_err(|error: toml::de::Error| {
            let message = error.message().to_owned();
            wrong(&message)
        })?;
    let model = table.get("model").cloned().unwrap_or_else(|| text.into());
    let read: Result<task::ModelConfig, _> = model.clone().try_into();
    read.map(|_| model).map_err(|error| {
        let message = error.message().to_owned();
        wrong(&message)
    })
}

#[cfg(test)]
mod tests;
