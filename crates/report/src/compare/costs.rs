//! Costs of a strategy: communication and work; and the stability of its groups.

use lab::compare::{Comparison, ComparisonRow, CostToReach, Spread, VariantTable};

use super::super::numbers;
use super::cells::{TextTable, value};

/// Rounds, bytes and numbers to the best round, close to it, and in all.
pub(super) fn communication(comparison: &Comparison, variant: &VariantTable) -> TextTable {
    let cells = |row: &ComparisonRow| {
        let each = |of: &dyn Fn(&CostToReach) -> String| -> String {
            let all = [&row.to_near, &row.to_best, &row.to_end];
            let known: Vec<String> = all
                .iter()
                .filter_map(|one| Some(of((*one).as_ref()?)))
                .collect();
            known.join(" / ")
        };
        let sends = row.to_end.as_ref().is_some_and(|all| all.bytes.mean > 0.0);
        let if_sent = |text: String| if sends { text } else { String::new() };
        vec![
            row.label.clone(),
            match row.parameters {
                0 => String::new(),
                _ => each(&|reach| value(Some(reach.rounds), 1)),
            },
            if_sent(each(&|reach| numbers::bytes(reach.bytes.mean as u64))),
            // Sums over rows are no models.
            if row.strategy == "hierarchical" {
                String::new()
            } else {
                if_sent(each(&|reach| {
                    numbers::count(reach.parameters.mean.round() as u64)
                }))
            },
            numbers::count(row.parameters),
        ]
    };
    let note = if comparison.tune.validation > 0.0 {
        format!(
            "Each cell has three numbers: up to the first round whose {by} on validation rows is within 1 % of the \
             best / up to the best round by it, which is the result / over all rounds. bytes: sent by all members. \
             numbers: parameters that one member sent as models.",
            by = comparison.tune.by.key()
        )
    } else {
        "Each cell has two numbers: up to the round of the result / over all rounds. bytes: sent by all members. \
         numbers: parameters that one member sent as models."
            .into()
    };
    let columns = ["", "rounds", "bytes", "numbers", "parameters"];
    TextTable {
        title: "communication".into(),
        note,
        columns: columns.map(str::to_owned).to_vec(),
        rows: variant.strategies.iter().map(cells).collect(),
        ..TextTable::default()
    }
}

/// The work, and how stable the grouping is.
pub(super) fn work(variant: &VariantTable) -> TextTable {
    let columns = [
        "",
        "tuning",
        "seconds",
        "coalitions",
        "regroupings",
        "same in seeds",
    ];
    let cells = |row: &ComparisonRow| {
        let one = |spread: Option<Spread>| value(spread, 1);
        let grouped = row
            .coalitions
            .is_some_and(|own| own.mean > 1.0 || own.sd > 0.0);
        vec![
            row.label.clone(),
            numbers::count(row.tuning.round() as u64),
            numbers::seconds(row.seconds.0),
            one(row.coalitions),
            one(row.changes.filter(|_| grouped)),
            row.stability
                .filter(|_| grouped)
                .map_or_else(String::new, |same| format!("{:.0} %", 100.0 * same)),
        ]
    };
    TextTable {
        title: "work and grouping".into(),
        note: "tuning: trainings of single silos for the choice of settings. seconds: of the training that is \
               measured. regroupings: rounds, up to the result's, in which the grouping changed. same in \
               seeds: pairs of silos that two seeds group alike."
            .into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: variant.strategies.iter().map(cells).collect(),
        ..TextTable::default()
    }
}
