//! An agreement in words, for those who sign it.

use agreement::{Agreement, DeltaDoubt, Draft, confusing};
use methods::strategy::StrategyConfig;
use protocol::Roster;
use protocol::parameters::{Rotation, Verification};
use protocol::verification::odds;
use task::TaskConfig;
use task::data::Target;
use task::external::StartFrom;
use task::schema::{FeatureColumns, MissingRule, Schema};

use super::disclosure::{OwnSide, disclosure};
use super::rows::undeclared;
use super::start::too_large;
use formatting::numbers;

/// The agreement in sentences and lists, one line each, for somebody of whom nothing else is known.
pub fn words(agreement: &Agreement) -> Vec<String> {
    words_for(agreement, &OwnSide::default())
}

/// The agreement in sentences and lists, one line each, for an institution.
pub fn words_for(agreement: &Agreement, own: &OwnSide) -> Vec<String> {
    let epoch = &agreement.epoch;
    let (protocol, roster) = (&epoch.protocol, &epoch.roster);
    let mut lines = vec![
        format!(
            "{}, a federation of {}",
            protocol.name,
            numbers::plural(roster.len(), "member")
        ),
        format!("id {:#}", epoch.federation),
        String::new(),
        "Members:".to_owned(),
    ];
    for (silo, addresses) in roster.silos().iter().zip(&agreement.addresses) {
        lines.extend(member(
            &silo.name,
            &silo.key.to_string(),
            silo.rows,
            addresses,
        ));
    }
    lines.extend(
        confusing(roster.silos())
            .iter()
            .map(|pair| format!("  warning: {pair}")),
    );
    lines.extend(undeclared(agreement).map(|line| format!("  {line}")));
    lines.extend(too_large(agreement).map(|why| format!("  warning: {why}")));
    lines.extend(DeltaDoubt::of(epoch).map(|doubt| format!("  warning: {doubt}")));
    lines.push(String::new());
    let learning = agreement.learning_rounds() as usize;
    let rounds = Some((learning, &agreement.strategy_config));
    lines.extend(task(
        &agreement.task,
        agreement.strategy_config.name(),
        rounds,
    ));
    let mode = agreement.question_mode();
    for (at, question) in agreement.questions.iter().enumerate() {
        lines.push(format!(
            "  answering question {} ({}) before, in at most {}: {}",
            at + 1,
            question.kind(),
            numbers::plural(question.most_rounds(mode) as usize, "round"),
            numbers::plain(&question.reason)
        ));
    }
    if let Some(serving) = &agreement.serving {
        lines.push(format!(
            "  deciding together which model each serves, afterwards, in at most {}: compared on {} parts of its own \
             training rows, or on its validation rows",
            numbers::plural(serving.most_rounds() as usize, "round"),
            serving.folds
        ));
    }
    if let Some(continues) = &agreement.continues {
        lines.push(format!(
            "  starting from a model, with the hash {:#}, of",
            continues.model
        ));
        lines.push(format!(
            "    the federation {}, id {:#},",
            continues.name, continues.federation
        ));
        lines.push(format!(
            "    as its members agreed on it in round {}, block {:#}",
            continues.round, continues.block
        ));
        lines.push(format!(
            "    whose members saw {} of each other's contributions",
            continues.seen.words()
        ));
        lines.extend(continues.summed.iter().map(|group| {
            let names = group.authors.iter().map(|(name, _)| numbers::plain(name));
            format!(
                "    and added up {}: these are added up with the same others, or with nobody",
                names.collect::<Vec<_>>().join(", ")
            )
        }));
        lines.extend(
            agreement
                .protects_less()
                .map(|less| format!("  warning: {less}")),
        );
    }
    lines.push(String::new());
    lines.extend(disclosure(agreement, own));
    lines.push(String::new());
    lines.push("Who may fail:".into());
    lines.push(match roster.faulty() {
        0 => "  none: a federation of fewer than four members has no protection against a member that breaks the \
              rules"
            .into(),
        f => format!("  up to {f} of {}, in any way (Byzantine), also if they collude", roster.len()),
    });
    lines.push(format!("  {}", rotation(protocol.rotation, roster)));
    lines.push(format!("  {}", verification(protocol.verification, roster)));
    lines.push(format!(
        "  a round waits {} for a slow member, and needs {} contributions",
        numbers::seconds(protocol.heartbeat_ms as f64 / 1000.0 * f64::from(protocol.patience)),
        protocol.min_contributions
    ));
    if let Some(share) = agreement.max_weight {
        lines.push(format!(
            "  no model weighs more than {} % of all in an average",
            100.0 * share
        ));
    }
    lines
}

/// Returns who leads, in a sentence.
pub fn rotation(rotation: Rotation, roster: &Roster) -> String {
    let first = roster.silos().first().map_or("", |silo| &silo.name);
    match rotation {
        Rotation::EveryRound => "the lead changes with every attempt at a round".into(),
        Rotation::EveryRounds(rounds) => {
            format!("the lead changes after {rounds} rounds, and whenever it fails")
        }
        Rotation::OnFailure => "the lead changes only when it fails".into(),
        Rotation::Reliability => {
            "the lead of every round is drawn at random; members that failed or were absent seldom lead"
                .into()
        }
        Rotation::Fixed => {
            format!("{first} leads every round: without it no round becomes final")
        }
    }
}

/// Returns who checks a round before it counts, in a sentence.
pub fn verification(level: Verification, roster: &Roster) -> String {
    let (n, f) = (roster.len(), roster.faulty());
    match level {
        Verification::Full => "every member computes every model again before it votes".into(),
        Verification::Committee(_) => {
            let (size, needed) = (level.auditors(n), level.needed(n));
            let odds = odds(n, f, size);
            format!(
                "{size} of the {n} members, drawn for every attempt, compute the models again, and {needed} of \
                 them have to agree: if {f} members break the rules, a wrong model passes with probability {}, and \
                 an attempt fails with probability {}",
                share(odds.wrong),
                share(odds.stuck)
            )
        }
        Verification::Inclusion => {
            "nobody computes the models again: members trust the lead of a round".into()
        }
    }
}

/// A probability for people.
fn share(probability: f64) -> String {
    match probability {
        0.0 => "0".into(),
        p if p < 0.001 => format!("{p:.0e}"),
        p => format!("{p:.3}"),
    }
}

/// A draft in sentences and lists: what stands already.
pub fn draft_words(draft: &Draft) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{}, the draft of a federation with {} so far",
            draft.name,
            numbers::plural(draft.members.len(), "member")
        ),
        "no id yet: it follows when the members are complete".to_owned(),
        String::new(),
        "Members:".to_owned(),
    ];
    for one in &draft.members {
        lines.extend(member(
            &one.name,
            &one.key.to_string(),
            one.rows,
            &one.addresses,
        ));
    }
    lines.push(String::new());
    lines.extend(task(&draft.task, draft.strategy.name(), None));
    lines
}

fn member(name: &str, key: &str, rows: Option<u64>, addresses: &[String]) -> Vec<String> {
    let mut lines = vec![format!("  {name:24}  key {key}")];
    lines.extend(rows.map(|rows| {
        let rows = numbers::plural(rows as usize, "training row");
        format!("  {:24}  claims at most {rows}", "")
    }));
    lines.extend(match addresses {
        [] => vec![format!(
            "  {:24}  no address: it connects to the others",
            ""
        )],
        some => some
            .iter()
            .map(|address| format!("  {:24}  at {address}", ""))
            .collect(),
    });
    lines
}

/// Returns what is learned, from what and how.
fn task(
    task: &TaskConfig,
    strategy: &str,
    rounds: Option<(usize, &StrategyConfig)>,
) -> Vec<String> {
    let mut lines = vec!["What is learned:".to_owned()];
    match task {
        TaskConfig::Table(task) => match task.agreed_schema() {
            Ok(Some(schema)) => lines.extend(rows_in_words(&schema)),
            _ => lines.push("  a share of the data that the task names (a trial)".into()),
        },
        TaskConfig::External(task) => {
            let numbers: usize = task
                .tensors
                .iter()
                .map(|tensor| tensor.shape.iter().product::<usize>())
                .sum();
            lines.push(format!(
                "  a model of {} in {}, which the members' own programs train and measure",
                numbers::plural(numbers, "number"),
                numbers::plural(task.tensors.len(), "tensor")
            ));
            lines.push(match (task.start(), &task.model) {
                (StartFrom::Proposer, Some(hash)) => format!(
                    "  starting from the values that the proposer's program held, with the hash {hash}"
                ),
                (StartFrom::Learner, _) => {
                    "  starting from the values of the programs, which must be the same at every member"
                        .into()
                }
                _ => "  starting from values that every member draws alike, as the agreement describes \
                      them"
                    .into(),
            });
            if !task.columns.is_empty() {
                lines.push(format!(
                    "  of rows with the columns {}",
                    task.columns.join(", ")
                ));
            }
            if let Some(digest) = &task.frozen {
                lines.push(format!(
                    "  with frozen tensors that the programs already have (digest {digest})"
                ));
            }
        }
        TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => {
            lines.push("  a benchmark with data of its own".into());
        }
    }
    lines.push(match rounds {
        None => format!("  with the strategy {strategy}"),
        Some((rounds, config)) => format!(
            "  with the strategy {strategy}, in {}{}",
            numbers::plural(rounds, "round"),
            match config {
                StrategyConfig {
                    standardise: true, ..
                } => ", the first of which agrees on a common scale",
                StrategyConfig {
                    scale_agreed: true, ..
                } => ", on the scale of the model that it starts from",
                _ => "",
            }
        ),
    });
    if let Some((rounds, config)) = rounds {
        let remarks = config.remarks(rounds as u64).into_iter();
        lines.extend(remarks.map(|remark| format!("  note: {remark}")));
    }
    lines
}

/// The rows that every member has to bring, in words: all that an agreement says of data.
pub fn rows_in_words(schema: &Schema) -> Vec<String> {
    let target: Vec<&str> = schema.target.name.iter().collect();
    let target = target.join(", ");
    let mut lines = vec![match schema.target() {
        Target::Classes(classes) => format!("  to predict {target}: one of {}", classes.join(", ")),
        Target::Number { unit } => format!("  to predict {target}, in {unit}"),
        Target::Numbers { unit, .. } => format!("  to predict {target}, all in {unit}"),
        Target::Mask { pixels } => format!("  to predict a mask of {pixels} pixels"),
        Target::Survival { unit, at } => survival(schema, &unit, &at),
    }];
    lines.push(format!(
        "  from at least {} rows with the columns",
        schema.min_rows
    ));
    lines.extend(
        schema
            .columns()
            .map(|(name, feature)| column(name, feature, schema.usual.get(name))),
    );
    for filter in &schema.only {
        lines.push(format!("  only rows with {}", String::from(filter.clone())));
    }
    lines
}

/// A time to an event, in a line.
fn survival(schema: &Schema, unit: &str, at: &[f64]) -> String {
    let mut names = schema.target.name.iter();
    let mut next = || names.next().unwrap_or_default();
    let (event, time, entry) = (next(), next(), next());
    let mut text = format!(
        "  to predict when {event} happens (1; 0 where observation ended before), by the time in {time}"
    );
    if time != unit {
        text += &format!(", in {unit}");
    }
    if !entry.is_empty() {
        text += &format!(", observed from {entry} on");
    }
    if !at.is_empty() {
        let at: Vec<String> = at.iter().map(f64::to_string).collect();
        text += &format!("; survival at {}", at.join(", "));
    }
    text
}

fn column(name: &str, feature: &FeatureColumns, usual: Option<&[f64; 2]>) -> String {
    let mut text = feature.kind.to_string();
    if let Some([low, high]) = usual {
        text += &format!(", mostly from {low} to {high} in the drafter's table");
    }
    text += match feature.missing {
        MissingRule::Refuse => "",
        MissingRule::Drop => "; rows without it are left out",
        MissingRule::Mean => "; the mean where it is missing",
        MissingRule::Median => "; the median where it is missing",
        MissingRule::Indicator => "; the mean where it is missing, and an indicator column",
        MissingRule::Middle => "; the middle of the range where it is missing",
        MissingRule::MiddleIndicator => {
            "; the middle of the range where it is missing, and an indicator column"
        }
    };
    format!("    {name}: {text}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_time_to_an_event_is_said_in_a_line() {
        let line = |target: &str| {
            let schema = format!("target = {target}\n[[feature]]\nname = 'age'\n");
            rows_in_words(&toml::from_str(&schema).unwrap()).swap_remove(0)
        };
        assert_eq!(
            line("{ event = 'died', time = 'days', unit = 'days' }"),
            "  to predict when died happens (1; 0 where observation ended before), by the time in days"
        );
        assert_eq!(
            line("{ event = 'E', time = 'T', entry = 'S', unit = 'months', at = [12.0, 60.0] }"),
            "  to predict when E happens (1; 0 where observation ended before), by the time in T, in months, observed from S \
             on; survival at 12, 60"
        );
    }
}
