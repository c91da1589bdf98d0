//! The table of what silos would serve.

use lab::compare::{
    ComparisonRow, MetricResult, MetricScope, ServedGain, ServedSummary, VariantTable,
};
use lab::summary::Interval;
use task::metrics::MetricName;

use super::super::numbers;
use super::cells::{
    TextTable, counts, fine_decimals, interval_words, undecided, value, with_deviation,
};

fn scope(metrics: &[MetricResult], outside: bool) -> Option<&MetricScope> {
    metrics.first()?.scope(outside)
}

fn gain(served: &ServedSummary, outside: bool) -> Option<&ServedGain> {
    if outside {
        served.outside.as_ref()
    } else {
        served.inside.as_ref()
    }
}

/// The served models under every strategy; `None` where that was not measured.
pub(super) fn table(
    metric: MetricName,
    variant: &VariantTable,
    outside: bool,
) -> Option<TextTable> {
    let with = |row: &&ComparisonRow| {
        let served = row.served.as_ref();
        served.is_some_and(|served| scope(&served.metrics, outside).is_some())
    };
    let rows: Vec<&ComparisonRow> = variant.strategies.iter().filter(with).collect();
    let first = rows.first()?.served.as_ref()?;
    let own = scope(&first.own, outside);
    let served = || rows.iter().filter_map(|row| row.served.as_ref());
    let all = served().filter_map(|served| scope(&served.metrics, outside));
    let each = all
        .chain(own)
        .filter_map(|scope| Some(scope.silos.or(scope.rows)?.mean));
    let decimals = fine_decimals(each);
    let (mut lines, mut intervals) = (Vec::new(), Vec::new());
    if let Some(own) = own {
        let mut cells = means("local model".into(), Some(own), decimals);
        cells.resize(7, String::new());
        lines.push(cells);
        intervals.push(None);
    }
    for row in &rows {
        let Some(served) = &row.served else { continue };
        lines.push(line(&row.label, served, outside, decimals));
        intervals.push(interval(served, outside));
    }
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    lines
        .iter_mut()
        .for_each(|cells| cells.resize(width, String::new()));
    let columns = [
        "",
        "silos",
        "rows",
        "worst",
        "vs own (95 %)",
        "+/=/−",
        "harmed",
        "own",
        "strategy",
        "tuned",
        "other",
    ];
    let who = if outside { "unseen silos" } else { "members" };
    Some(TextTable {
        title: format!("what {who} would serve: {}", metric.key()),
        note: note(outside),
        // The gain, the harmed silos, the served models, and the mean.
        main: [4, 5, 6, 7, 8, 9, 10, 1]
            .into_iter()
            .filter(|&at| at < width)
            .collect(),
        columns: columns[..width]
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        undecided: undecided(intervals.into_iter()),
        rows: lines,
    })
}

/// A label, and the means of silos, of rows, and of the worst silos.
fn means(label: String, scope: Option<&MetricScope>, decimals: usize) -> Vec<String> {
    vec![
        label,
        with_deviation(scope.and_then(|own| own.silos), decimals),
        value(scope.and_then(|own| own.rows), decimals),
        value(scope.and_then(|own| own.worst), decimals),
    ]
}

/// Returns what was gained over the local model.
fn interval(served: &ServedSummary, outside: bool) -> Option<Interval> {
    gain(served, outside)?.difference.interval()
}

/// The line of one strategy.
fn line(label: &str, served: &ServedSummary, outside: bool, decimals: usize) -> Vec<String> {
    let gain = gain(served, outside);
    let interval = interval(served, outside);
    let mut cells = means(label.to_owned(), scope(&served.metrics, outside), decimals);
    cells.push(interval.map_or_else(String::new, |one| interval_words(&one, decimals)));
    cells.push(gain.map_or_else(String::new, |gain| counts(&gain.difference)));
    cells.push(gain.map_or_else(String::new, |gain| {
        format!("{} / {:.1}", gain.difference.losses, gain.by_chance)
    }));
    if !outside {
        cells.extend(choices(served));
    }
    cells
}

/// Returns what the columns mean.
fn note(outside: bool) -> String {
    format!(
        "Each silo chooses on its own rows between the strategy's model and models that it trains alone{}. local model: \
         the best one trained alone, by cross-validation. harmed: silos that are significantly worse off than with \
         it / how many of those that serve another model would seem so by chance.{}",
        if outside {
            ""
        } else {
            ", and weighs what it finds by what all silos find; a node does so where its agreement has `[serving]`"
        },
        if outside {
            ""
        } else {
            " own, strategy, tuned, other: how many members serve their local model, the strategy's, the strategy's \
             fine-tuned on their rows, or another one (robust and trained alone, the mean of all coalitions', or \
             under noise the strategy's with an own intercept, or an own fit shrunken towards it)."
        }
    )
}

/// Members by what they serve: their local model, the strategy's, a fine-tuned one, another one.
fn choices(served: &ServedSummary) -> [String; 4] {
    let of = |name: &str| served.candidates.get(name).copied().unwrap_or(0.0);
    let others = of("robust") + of("global") + of("own-intercept") + of("shrunken");
    let each = [of("local"), of("coalition"), of("fine-tuned"), others];
    each.map(|count| numbers::value(count, 1))
}
