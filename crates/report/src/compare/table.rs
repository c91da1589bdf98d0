//! The tables of a comparison as text cells, for the terminal and the page alike.

use lab::compare::{
    BY_CHANCE, BestOf, Comparison, ComparisonRow, DECIDING_SEEDS, MeanDifference, NoInterval,
    Spread, TELLING, TELLING_SEEDS, VariantTable, holm,
};
use lab::summary::Interval;
use serde_json::Value;
use task::metrics::MetricName;

use super::super::numbers;
use super::super::pitfalls::SEE;
use super::cells::{
    OPEN, TextTable, counts, fine_decimals, interval_words, scope, undecided, value, with_deviation,
};
use super::{costs, noise, papers, served, subgroups};

/// All tables of a variant.
pub(super) fn tables(comparison: &Comparison, variant: &VariantTable) -> Vec<TextTable> {
    let metric = comparison.metrics[0];
    let mut tables = Vec::new();
    for outside in [false, true] {
        let test_rows = if outside {
            variant.rows.1
        } else {
            variant.rows.0
        };
        // Without test rows there is nothing to show, but that nothing worked is.
        let worked = variant.strategies.iter().any(|row| !row.metrics.is_empty());
        if outside && variant.outside.is_empty() || worked && test_rows < 1.0 {
            continue;
        }
        tables.push(results(metric, variant, outside));
        if comparison.metrics.len() > 1 {
            tables.push(others(&comparison.metrics[1..], variant, outside));
        }
        tables.extend(subgroups::table(metric, variant, outside));
        tables.extend(served::table(metric, variant, outside));
    }
    tables.extend(papers::tables(variant));
    tables.extend(noise::table(variant));
    tables.push(costs::communication(comparison, variant));
    tables.push(costs::work(variant));
    tables
}

/// A metric in words, with its direction.
pub(super) fn metric_words(metric: MetricName) -> String {
    let better = if metric.higher_is_better() {
        "higher is better"
    } else {
        "lower is better"
    };
    format!("{} ({better})", metric.key())
}

/// The most important metric, and the differences to local training and to the other references.
fn results(metric: MetricName, variant: &VariantTable, outside: bool) -> TextTable {
    let rows = &variant.strategies;
    let all = rows.iter().filter_map(|row| scope(row, 0, outside));
    let decimals = fine_decimals(all.filter_map(|scope| Some(scope.silos.or(scope.rows)?.mean)));
    let who = if outside {
        numbers::plural(variant.outside.len(), "silo") + " outside"
    } else {
        numbers::plural(variant.members.len(), "member")
    };
    let test_rows = if outside {
        variant.rows.1
    } else {
        variant.rows.0
    };
    let mut columns: Vec<String> = ["", "silos", "rows", "worst", "apart", "best round"]
        .map(str::to_owned)
        .to_vec();
    let local = rows
        .iter()
        .find(|row| Some(&row.label) == variant.alone.as_ref());
    if let Some(local) = local {
        columns.push(format!("vs {} (95 %)", local.label));
        columns.push("+/=/−".to_owned());
    }
    let interval = |row: &ComparisonRow| difference(row, local?, outside)?.interval();
    // A gain says nothing certain where it, or what it is over, would go on.
    let is_open = |row: &ComparisonRow| {
        let mut both = [Some(row), local].into_iter().flatten();
        both.any(|one| !one.unfinished.is_empty())
    };
    let cells = |row: &ComparisonRow| {
        let own = scope(row, 0, outside);
        let cell = |spread: Option<Spread>| value(spread, decimals);
        let mean = own.and_then(|own| own.silos);
        let mut cells = vec![
            row.label.clone(),
            with_deviation(mean, decimals),
            cell(own.and_then(|own| own.rows)),
            cell(own.and_then(|own| own.worst)),
            cell(own.and_then(|own| own.apart)),
            cell(own.and_then(|own| own.best)),
        ];
        if let Some(local) = local {
            let mark = if is_open(row) { OPEN } else { "" };
            let words = |one: Interval| interval_words(&one, decimals) + mark;
            cells.push(interval(row).map_or_else(String::new, words));
            let difference = difference(row, local, outside);
            cells.push(difference.map_or_else(String::new, counts));
        }
        cells
    };
    let tested = rows
        .iter()
        .filter_map(|row| difference(row, local?, outside))
        .map(|one| one.wins + one.ties + one.losses)
        .max()
        .unwrap_or(0);
    let open = rows
        .iter()
        .any(|row| interval(row).is_some() && is_open(row));
    let mut warnings = [
        weak_reference(local, rows.iter().any(|row| row.strategy == "own-fit")),
        no_interval(variant, local, outside),
        how_sure(variant, local, outside),
        few_seeds(rows.iter().map(|row| row.seeds).max().unwrap_or(0)),
        best_of(variant, outside, decimals),
    ]
    .concat();
    if open {
        warnings += " *: it, or what it is compared with, is not finished, so that the gain may be another one.";
    }
    if !warnings.is_empty() {
        warnings += &format!(" {SEE}");
    }
    TextTable {
        title: format!("{who}, {test_rows:.0} test rows: {}", metric_words(metric)),
        note: results_note(tested) + &warnings,
        main: match local {
            // The gain, the number of silos with one, the mean, and the worst silo.
            Some(_) => vec![6, 7, 1, 3],
            None => Vec::new(),
        },
        undecided: undecided(rows.iter().map(interval)),
        columns,
        rows: rows.iter().map(cells).collect(),
    }
}

/// Returns what the columns mean, where this many silos were compared with local training.
fn results_note(tested: usize) -> String {
    let chance = BY_CHANCE * tested as f64;
    let what = "silos: mean over silos, each counting once. rows: over all test rows. worst: the worst silo. \
                apart: standard deviation over silos, so how unlike their results are. best round: as silos, but \
                after the round that is best on test rows (of the unseen silos, where there are any).";
    match tested {
        0 => what.to_owned(),
        _ => format!(
            "{what} vs: mean gain per silo. +/=/−: silos that are significantly better / not significantly \
             different / significantly worse (harmed), by their own 95 % intervals; by chance about {chance:.1} of \
             {tested} would seem harmed."
        ),
    }
}

/// Returns how much better a strategy is than a reference.
fn difference<'a>(
    row: &'a ComparisonRow,
    reference: &ComparisonRow,
    outside: bool,
) -> Option<&'a MeanDifference> {
    let mut against = row.against.iter();
    let against = against.find(|against| against.over == reference.label)?;
    against.difference(outside)
}

/// That a reference is not the best that silos make alone, or which of two it is.
fn weak_reference(local: Option<&ComparisonRow>, tuned: bool) -> String {
    match local.map(|local| (&*local.strategy, &local.label)) {
        None | Some(("own-fit", _)) => String::new(),
        Some(("local", label)) if tuned => format!(
            " `{label}`, with settings that are chosen over all silos, is better over the members than the local model \
             that each silo tunes (`own-fit`), so that all are compared with it."
        ),
        Some(("local", label)) => format!(
            " `{label}` trains with the federation's settings: a local model that each silo tunes (`own-fit`) may be better."
        ),
        Some(_) => " No row here is a model that a silo makes alone (`own-fit`, `local`).".into(),
    }
}

/// That there is no interval, where a class is too rare.
fn no_interval(variant: &VariantTable, local: Option<&ComparisonRow>, outside: bool) -> String {
    let rare = |row: &ComparisonRow| {
        let reason = local.and_then(|local| difference(row, local, outside)?.no_interval);
        reason == Some(NoInterval::RareClass)
    };
    match variant.strategies.iter().any(rare) {
        true => format!(
            " No interval where a class has fewer than {TELLING} test {}.",
            units(variant)
        ),
        false => String::new(),
    }
}

/// Returns what test rows are counted in.
fn units(variant: &VariantTable) -> &'static str {
    if variant.grouped { "persons" } else { "rows" }
}

/// Returns what the intervals are of, and which differences stand when all are looked at together.
fn how_sure(variant: &VariantTable, local: Option<&ComparisonRow>, outside: bool) -> String {
    let (Some(local), rows) = (local, &variant.strategies) else {
        return String::new();
    };
    let interval = |row| difference(row, local, outside)?.interval();
    let all = rows.iter().filter_map(|row| Some((row, interval(row)?)));
    let all: Vec<(&ComparisonRow, Interval)> = all.collect();
    let mut said = String::new();
    if all.iter().any(|(row, _)| row.seeds < TELLING_SEEDS) {
        said += &format!(
            " The intervals are of test {} alone: their spread over seeds is known from {TELLING_SEEDS} seeds on.",
            units(variant)
        );
    }
    let p: Vec<f64> = all.iter().map(|(_, one)| one.p()).collect();
    let clear = all.iter().filter(|(_, one)| one.is_clear()).count();
    if p.len() < 2 || clear == 0 {
        return said;
    }
    let stand = all.iter().zip(holm(&p)).filter(|(_, stands)| *stands);
    let stand: Vec<String> = stand.map(|((row, _), _)| row.label.clone()).collect();
    let stand = match stand.is_empty() {
        true => "none".into(),
        false => numbers::names(&stand, 40),
    };
    said += &format!(
        " Of {} intervals {clear} leave out 0; significant when all are looked at together (Holm): {stand}.",
        p.len()
    );
    said
}

/// That these are too few seeds for a decision.
fn few_seeds(seeds: usize) -> String {
    if seeds == 0 || seeds >= DECIDING_SEEDS {
        return String::new();
    }
    format!(
        " With {} this is a first look: a decision takes {DECIDING_SEEDS} seeds or more.",
        numbers::plural(seeds, "seed")
    )
}

/// Returns what remains of the best of several strategies on seeds that did not choose it.
fn best_of(variant: &VariantTable, outside: bool, decimals: usize) -> String {
    let best = variant.best.as_ref().filter(|best| best.outside == outside);
    best.map_or_else(String::new, |best| confirmed(best, decimals))
}

fn confirmed(best: &BestOf, decimals: usize) -> String {
    let BestOf {
        label, of, over, ..
    } = best;
    let chosen = format!(
        " Of {of} compared with {over}, {label} is the best on every second seed, with a gain of {};",
        interval_words(&best.chosen, decimals)
    );
    let Some(found) = best.confirmed else {
        return chosen
            + " no other seed confirms it, and what looks best of many looks better than it is.";
    };
    let few = match best.seeds {
        seeds if seeds < TELLING_SEEDS => {
            format!(", too few to confirm it ({TELLING_SEEDS} are needed)")
        }
        _ => String::new(),
    };
    format!(
        "{chosen} on the other {}, which did not choose it{few}, it is {}.",
        numbers::plural(best.seeds, "seed"),
        interval_words(&found, decimals)
    )
}

/// The other metrics: means over silos, or over all rows where single silos may lack the metric.
fn others(metrics: &[MetricName], variant: &VariantTable, outside: bool) -> TextTable {
    let rows = &variant.strategies;
    let spread = |row: &ComparisonRow, at: usize| {
        let own = scope(row, at + 1, outside)?;
        if is_union(metrics[at]) {
            own.rows.or(own.silos)
        } else {
            own.silos.or(own.rows)
        }
    };
    let decimals: Vec<usize> = (0..metrics.len())
        .map(|at| fine_decimals(rows.iter().filter_map(|row| Some(spread(row, at)?.mean))))
        .collect();
    let name = |metric: &MetricName| {
        if is_union(*metric) {
            format!("{}, all rows", metric.key())
        } else {
            metric.key().to_owned()
        }
    };
    let mut columns = vec![String::new()];
    columns.extend(metrics.iter().map(name));
    let cells = |row: &ComparisonRow| {
        let values = (0..metrics.len()).map(|at| with_deviation(spread(row, at), decimals[at]));
        std::iter::once(row.label.clone()).chain(values).collect()
    };
    TextTable {
        title: if outside {
            "other metrics, unseen silos".into()
        } else {
            "other metrics".into()
        },
        columns,
        rows: rows.iter().map(cells).collect(),
        ..TextTable::default()
    }
}

/// Metrics that a silo with rows of one class does not have, or that need many rows.
fn is_union(metric: MetricName) -> bool {
    let others = [
        "roc-auc",
        "balanced-accuracy",
        "calibration-error",
        "concordance",
        "calibration-at-time",
    ];
    others.contains(&metric.key())
}

/// Settings that were chosen and numbers that strategies report, a line for each strategy.
pub(super) fn settings(variant: &VariantTable) -> Vec<(String, String)> {
    let line = |row: &ComparisonRow| {
        let chosen = row.chosen.iter().filter(|one| !one.settings.is_empty());
        let chosen = chosen.map(|one| {
            let each = one.settings.iter().map(|(key, value)| {
                let short = key.rsplit('.').next().unwrap_or(key);
                format!("{short} {}", setting(value))
            });
            let each = each.collect::<Vec<_>>().join(", ");
            format!("{each} (in {})", numbers::plural(one.seeds, "seed"))
        });
        let memory = row
            .memory
            .iter()
            .map(|(name, spread)| format!("{name} {:.3}", spread.mean));
        let chosen = chosen.chain(memory).collect::<Vec<_>>().join("; ");
        (!chosen.is_empty()).then(|| (row.label.clone(), chosen))
    };
    variant.strategies.iter().filter_map(line).collect()
}

/// The value of a setting, a number with six digits at most: `0.15` for `0.15000000000000002`.
fn setting(value: &Value) -> String {
    let six = |number: f64| format!("{number:.5e}").parse::<f64>().unwrap_or(number);
    match value {
        Value::Number(number) if number.is_f64() => {
            format!("{:?}", six(number.as_f64().unwrap_or(f64::NAN)))
        }
        other => other.to_string(),
    }
}

/// Strategies that were not trained to the end, a line for each.
pub(super) fn unfinished(variant: &VariantTable) -> Vec<String> {
    let rows = variant.strategies.iter();
    let rows = rows.filter(|row| !row.unfinished.is_empty());
    rows.map(|row| format!("{}: {}.", row.label, row.unfinished.join("; ")))
        .collect()
}

/// Seeds that failed, a line for each strategy.
pub(super) fn failures(variant: &VariantTable) -> Vec<String> {
    let line = |row: &ComparisonRow| {
        let (seed, reason) = row.failed.first()?;
        let seeds = numbers::plural(row.failed.len(), "seed");
        Some(format!(
            "{} failed in {seeds}, first in seed {seed}: {reason}",
            row.label
        ))
    };
    variant.strategies.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{between, comparison, gains, row};
    use super::*;

    /// The gains in the first table, and its note.
    fn first(strategies: Vec<ComparisonRow>) -> (Vec<String>, String) {
        let comparison = comparison(strategies);
        let table = tables(&comparison, &comparison.variants[0]).remove(0);
        let gains = table.rows.iter().map(|row| row[6].clone());
        (gains.collect(), table.note)
    }

    #[test]
    fn gains_that_are_not_finished_carry_a_mark() {
        let rows = |own: bool, one: bool| {
            let mut rows = vec![
                row("own-fit"),
                gains("fedavg", "own-fit", between(0.1, 0.3)),
                gains("ditto", "own-fit", between(-0.1, 0.3)),
            ];
            let clause = || vec!["the best round is the last one".to_owned()];
            for (row, open) in rows.iter_mut().zip([own, one]) {
                row.unfinished = if open { clause() } else { Vec::new() };
            }
            first(rows)
        };
        let (fedavg, ditto) = ("+0.200 [+0.100, +0.300]", "+0.100 [−0.100, +0.300]");
        let marked = |gain: &str| format!("{gain} *");
        let legend = " *: it, or what it is compared with, is not finished,";
        let (found, note) = rows(false, false);
        assert_eq!(found, ["", fedavg, ditto]);
        assert!(!note.contains(legend), "{note}");
        let (found, note) = rows(false, true);
        assert_eq!(found, ["", &marked(fedavg), ditto]);
        assert!(note.contains(legend), "{note}");
        // Over a reference that is not finished no gain is.
        let (found, _) = rows(true, false);
        assert_eq!(found, ["", &marked(fedavg), &marked(ditto)]);
    }

    #[test]
    fn that_a_reference_is_not_tuned_alone_is_stated() {
        let weak = "`local` trains with the federation's settings: a local model that each silo tunes (`own-fit`) may be \
                    better.";
        let of = |over: &str| first(vec![row(over), gains("fedavg", over, between(0.1, 0.3))]).1;
        assert!(of("local").contains(weak), "{}", of("local"));
        assert!(!of("own-fit").contains("federation's settings"));
        // Of two, the one that counts is named.
        let mut both = comparison(vec![row("own-fit"), row("local")]);
        both.variants[0].alone = Some("local".into());
        let table = tables(&both, &both.variants[0]).remove(0);
        assert!(table.columns.iter().any(|one| one == "vs local (95 %)"));
        assert!(
            table.note.contains("is better over the members than"),
            "{}",
            table.note
        );
        let none = "No row here is a model that a silo makes alone";
        assert!(of("constant").contains(none) && !of("own-fit").contains(none));
    }

    #[test]
    fn fewer_than_five_seeds_are_stated() {
        assert_eq!(
            few_seeds(3),
            " With 3 seeds this is a first look: a decision takes 5 seeds or more."
        );
        assert_eq!([0, 5, 20].map(few_seeds), ["", "", ""]);
    }

    #[test]
    fn the_best_of_many_is_stated_with_its_result_on_other_seeds() {
        let interval = |by: f64| Interval {
            by,
            low: by - 1.0,
            high: by + 1.0,
        };
        let mut best = BestOf {
            label: "way 7".into(),
            of: 16,
            over: "own-fit".into(),
            outside: false,
            chosen: interval(3.0),
            seeds: 5,
            confirmed: Some(interval(0.5)),
        };
        assert_eq!(
            confirmed(&best, 1),
            " Of 16 compared with own-fit, way 7 is the best on every second seed, with a gain of +3.0 [+2.0, +4.0]; on \
             the other 5 seeds, which did not choose it, it is +0.5 [−0.5, +1.5]."
        );
        best.seeds = 2;
        assert!(confirmed(&best, 1).contains("too few to confirm it (3 are needed), it is"));
        best.confirmed = None;
        assert!(confirmed(&best, 1).contains("no other seed confirms it"));
    }

    #[test]
    fn a_setting_is_written_with_six_digits_at_most() {
        for (value, written) in [
            (0.15000000000000002, "0.15"),
            (1e-7, "1e-7"),
            (1234567.0, "1234570.0"),
            (3.0, "3.0"),
        ] {
            assert_eq!(setting(&value.into()), written);
        }
        assert_eq!(setting(&12.into()), "12");
        assert_eq!(setting(&"adam".into()), "\"adam\"");
    }
}
