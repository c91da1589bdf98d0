//! Protection of updates in a new federation against the other members: asked for, and a plan made to go with it.

use std::io;

use agreement::{NOISED, PrivacyTable};
use task::TaskConfig;
use task::data::Target;
use task::propose::SchemaProposal;
use task::schema::ColumnType;

use super::compose::ComposeError;
use super::plan::FederationPlan;
use crate::prompt::Prompt;

/// Protection of updates against the other members.
#[derive(Debug, Clone, PartialEq)]
pub enum Protection {
    /// Every model.
    Clear,
    /// Sums of the groups of this table.
    Masked(PrivacyTable),
    /// Sums with noise, which bounds by this ε what all rounds tell of one row or person.
    Noised(f64),
}

/// Requirements and costs of every answer, shown before somebody answers.
const ANSWERS: &str = "\
What may the other members read of an update?
  clear   every model, without its author's name but mostly recognisable. Needs nothing
  masked  only sums over all members (secure aggregation; not reviewed by a cryptographer). Bounds nothing about
          a single patient. Needs four members and equal weights, and waits while one of them is down
  1       only such sums with noise: a bound epsilon (here 1; smaller is stricter) on what all rounds together
          tell of one row, or of one patient where a column says whose a row is. Costs accuracy: `rota advise
          --epsilon` says how much. Needs also ranges of all numbers, declared rows, and a ledger of every member";

/// Text for a plan for which nobody chose.
pub(super) const CLEAR: &str = "privacy: every member can read every model (`clear`). --secure-aggregation opens only sums, and --epsilon E \
                         adds noise, which bounds what they tell of one row or patient (see docs/privacy.md)";

impl Protection {
    /// Sums of one group of all members.
    pub fn masked() -> Self {
        Self::Masked(PrivacyTable::of_groups(Vec::new()))
    }

    /// Rounds that a federation has whose rounds nobody chose; `None`: as without masks.
    pub(super) fn rounds(&self) -> Option<u64> {
        matches!(self, Self::Noised(_)).then_some(NOISED.rounds)
    }

    /// Asks a person.
    ///
    /// # Errors
    /// The terminal was closed.
    pub fn ask(ask: &mut Prompt<'_>) -> io::Result<Self> {
        ask.say(ANSWERS)?;
        let question = "clear, secure-aggregation, or epsilon as a number";
        ask.ask(question, Some("clear"), |answer| match answer {
            "clear" => Ok(Self::Clear),
            "secure-aggregation" => Ok(Self::masked()),
            number => epsilon(number).map(Self::Noised),
        })
    }

    /// The table of an agreement; `None` in clear. `group` names the column that says whose a row is, and all
    /// members together are thought to have up to `rows` rows.
    pub fn table(&self, group: Option<&str>, rows: Option<usize>) -> Option<PrivacyTable> {
        match self {
            Self::Clear => None,
            Self::Masked(table) => Some(table.clone()),
            Self::Noised(epsilon) => {
                let group = group.map(str::to_owned);
                Some(PrivacyTable::noised(
                    *epsilon,
                    group,
                    rows.map(|rows| rows as u64),
                ))
            }
        }
    }
}

/// An ε on the command line.
///
/// # Errors
/// A clause: it is none.
pub fn epsilon(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(epsilon) if (0.001..=1000.0).contains(&epsilon) => Ok(epsilon),
        _ => Err(format!(
            "{text:?} is no epsilon: write a number from 0.001 to 1000, such as 1"
        )),
    }
}

/// Refuses a proposal that cannot go with what members may read.
///
/// # Errors
/// [`ComposeError::Option`]: a time to an event with noise.
pub(super) fn fits(proposal: &SchemaProposal, protection: &Protection) -> Result<(), ComposeError> {
    match protection {
        Protection::Noised(_) if proposal.schema.target.survival => Err(ComposeError::Option(
            "noise (--epsilon) does not go with a time to an event: a row takes part in the terms of all others that were \
             at risk with it, so that nothing bounds what one row changes. Learn in secure-aggregation rounds \
             (--secure-aggregation), or predict classes, such as death within a year"
                .into(),
        )),
        Protection::Noised(_) | Protection::Masked(_) | Protection::Clear => Ok(()),
    }
}

/// Gives the numbers of a proposal ranges to agree on, where they are to be scaled by them; columns of which none
/// can be told are left out. What was done, one sentence each.
pub(super) fn proposed(proposal: &mut SchemaProposal, protection: &Protection) -> Vec<String> {
    let number = matches!(proposal.target(), Target::Number { .. });
    match protection {
        Protection::Noised(_) => {}
        // A common scale would be a sum of its own.
        Protection::Masked(_) if number => {}
        Protection::Clear | Protection::Masked(_) => return Vec::new(),
    }
    let (ranges, schema) = (&proposal.ranges, &mut proposal.schema);
    let mut without = Vec::new();
    let columns = std::mem::take(&mut schema.features).into_iter();
    let columns = columns.flat_map(|feature| {
        let names: Vec<String> = feature.name.iter().map(str::to_owned).collect();
        names.into_iter().map(move |name| (name, feature.clone()))
    });
    let mut features = Vec::new();
    for (name, mut feature) in columns {
        feature.name = name.as_str().into();
        let known = ranges.get(&name).copied();
        let agreed = match &mut feature.kind {
            ColumnType::Number(quantity) | ColumnType::Integer(quantity) => {
                quantity.range = quantity.range.or(known);
                quantity.range.is_some()
            }
            ColumnType::Date(days) => {
                let known = known.filter(|[low, _]| *low >= 0.0);
                let until = known.map(|[_, high]| days.day(high));
                days.until = days.until.or(until);
                days.has_ranges()
            }
            ColumnType::Category(_) => true,
        };
        if agreed {
            features.push(feature);
        } else {
            without.push(name);
        }
    }
    schema.features = task::schema::merged(features);
    schema.usual.retain(|name, _| !without.contains(name));
    let target = &schema.target;
    if target.classes.is_none() && target.rule.is_none() && !target.survival {
        let target = schema.target.name.iter().next().unwrap_or_default();
        schema.target.range = schema.target.range.or(ranges.get(target).copied());
    }
    proposal.columns.retain(|(name, _)| !without.contains(name));
    let why = "no range of it can be agreed on: fewer than 50 numbers, or nearly all equal";
    let out = without.into_iter().map(|name| (name, why.to_owned()));
    proposal.left_out.extend(out);
    let uncounted = match protection {
        Protection::Noised(_) => {
            ". Epsilon does not count what they tell of its rows: write what is known of such numbers in general"
        }
        Protection::Clear | Protection::Masked(_) => "",
    };
    vec![format!(
        "ranges: proposed from this table, to one digit and without what fewer than 5 rows hold{uncounted}"
    )]
}

/// Makes a plan go with what members may read; what was changed, one sentence each.
pub(super) fn fitted(
    plan: &mut FederationPlan,
    protection: &Protection,
    rows: Option<usize>,
) -> Vec<String> {
    let group = match &plan.task {
        TaskConfig::Table(task) => task.split.group.clone(),
        _ => None,
    };
    let Some(table) = protection.table(group.as_deref(), rows) else {
        plan.privacy = None;
        return Vec::new();
    };
    let mut said = table.fit(&mut plan.task, &mut plan.strategy);
    if let Some(rows) = table.rows_for_delta() {
        said.extend(needed(group.as_deref(), plan, rows));
    }
    plan.privacy = Some(table);
    said
}

/// Returns what a federation with noise needs besides its keys.
fn needed(group: Option<&str>, plan: &FederationPlan, rows: u64) -> Vec<String> {
    let whom = match group {
        Some(column) => format!("every person that the column {column:?} tells apart"),
        None => "every single row: a patient with several rows is protected less; --group COLUMN says whose a row is"
            .to_owned(),
    };
    vec![
        format!("epsilon: for all {} rounds together, of {whom}", plan.rounds),
        format!("delta: enough for {rows} rows of all members together"),
        "min-authors: a quorum of the members, since the key is left out: rounds continue without the others".into(),
        "rows: every member declares how many it has (`rota identity new --rows N`, or the end of its line)".into(),
        "ledger: `rota federation join --new-ledger NAME` makes one for each member; without it a node contributes nothing"
            .into(),
        "worth: `rota advise SCENARIO --epsilon E` says whether the model is still better than one's own".into(),
    ]
}
