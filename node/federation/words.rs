//! An agreement in words, for those who sign it.

use agreement::Agreement;
use learn::TaskConfig;
use learn::data::Target;
use learn::schema::{FeatureColumns, MissingRule, Schema};
use methods::strategy::StrategyConfig;
use protocol::charter::Charter;

use crate::report::numbers;

/// The agreement in sentences and lists, one line each.
pub fn words(agreement: &Agreement) -> Vec<String> {
    let epoch = &agreement.epoch;
    let (charter, roster) = (&epoch.charter, &epoch.roster);
    let mut lines = vec![
        format!(
            "{}, a federation of {}",
            charter.name,
            numbers::plural(roster.len(), "member")
        ),
        format!("id {:#}", epoch.federation),
        String::new(),
        "Members:".to_owned(),
    ];
    for silo in roster.silos() {
        lines.push(format!("  {:24}  key {}", silo.name, silo.key));
    }
    lines.push(String::new());
    lines.push("What is learned:".into());
    match &agreement.task {
        TaskConfig::Table(task) => match task.agreed_schema() {
            Ok(Some(schema)) => lines.extend(rows(&schema)),
            _ => lines
                .push("  a share of the data that the task names, to try a federation out".into()),
        },
        TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => {
            lines.push("  a benchmark with data of its own".into());
        }
    }
    lines.push(format!(
        "  by the strategy {}, in {}{}",
        agreement.strategy_config.name(),
        numbers::plural(charter.rounds as usize, "round"),
        match agreement.strategy_config {
            StrategyConfig {
                standardise: true, ..
            } => ", the first of which agrees on a common scale",
            StrategyConfig {
                scale_agreed: true, ..
            } => ", on the scale of the model that it starts from",
            _ => "",
        }
    ));
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
    }
    lines.push(String::new());
    lines.push("What leaves each institution, and who sees it:".into());
    lines.extend(leaves(agreement, charter));
    lines.push(String::new());
    lines.push("Who may fail:".into());
    lines.push(match roster.faulty() {
        0 => "  none: a federation of fewer than four has no protection against a member that breaks \
              the rules"
            .into(),
        f => format!("  up to {f} of {}, in any way, also if they work together", roster.len()),
    });
    lines.push(format!(
        "  a round waits {} for a slow member, and needs {} contributions",
        numbers::seconds(charter.beat_ms as f64 / 1000.0 * f64::from(charter.patience)),
        charter.min_contributions
    ));
    lines
}

/// The rows: what every member has to bring.
fn rows(schema: &Schema) -> Vec<String> {
    let target: Vec<&str> = schema.target.name.iter().collect();
    let target = target.join(", ");
    let mut lines = vec![match schema.target() {
        Target::Classes(classes) => format!("  to predict {target}: one of {}", classes.join(", ")),
        Target::Number { unit } => format!("  to predict {target}, in {unit}"),
        Target::Numbers { unit, .. } => format!("  to predict {target}, all in {unit}"),
        Target::Mask { pixels } => format!("  to predict a mask of {pixels} pixels"),
    }];
    lines.push(format!(
        "  from at least {} rows with the columns",
        schema.min_rows
    ));
    lines.extend(
        schema
            .columns()
            .map(|(name, feature)| column(name, feature)),
    );
    for filter in &schema.only {
        lines.push(format!("  only rows with {}", String::from(filter.clone())));
    }
    lines
}

fn column(name: &str, feature: &FeatureColumns) -> String {
    let mut text = match &feature.levels {
        Some(levels) => format!("one of {}", levels.join(", ")),
        None => "a number".to_owned(),
    };
    if feature.other {
        text += ", or another";
    }
    if let Some(unit) = &feature.unit {
        text += &format!(" in {unit}");
    }
    if let Some([low, high]) = feature.range {
        text += &format!(", {low} to {high}");
    }
    text += match feature.missing {
        MissingRule::Refuse => "",
        MissingRule::Drop => "; rows without it are left out",
        MissingRule::Mean => "; the mean where it is missing",
        MissingRule::Median => "; the median where it is missing",
        MissingRule::Indicator => "; the mean where it is missing, and a mark that it was",
    };
    format!("    {name}: {text}")
}

fn leaves(agreement: &Agreement, charter: &Charter) -> Vec<String> {
    let mut lines = vec![
        "  rows: never".to_owned(),
        format!(
            "  in every round, a model of at most {}: the lead of the round knows whose it is, {}",
            numbers::bytes(charter.blob_limit),
            match charter.names_shown {
                true => "and so does every other member",
                false => "the other members see it without the name",
            }
        ),
    ];
    if agreement.strategy_config.standardise {
        lines.push(
            "  in the first round, how many rows there are, and sum and spread of every column"
                .into(),
        );
    }
    lines.push("  how many rows a model was trained on, and its training loss".into());
    lines.push(
        "  a model can reveal things about the rows that it was trained on: names are removed, the \
         model is not"
            .into(),
    );
    lines
}
