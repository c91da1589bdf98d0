//! The tables of an experiment as text cells, for the terminal and the page alike.

use lab::compare::Spread;
use lab::rotation::{Laboratory, PolicyResult};

use super::super::numbers;

/// A table: names of columns, and rows of cells, the first of which is a name.
pub(super) struct LabTable {
    pub(super) title: &'static str,
    pub(super) note: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// All tables.
pub(super) fn tables(all: &Laboratory) -> Vec<LabTable> {
    let own = [rounds(all), burden(all), seen(all)];
    let beside = all.deployment.as_ref();
    let beside = beside.map(|deployed| beside_simulation(all, &deployed.simulated));
    beside.into_iter().chain(own).collect()
}

/// Returns what processes did, beside the simulation of the same experiment.
fn beside_simulation(all: &Laboratory, simulated: &Laboratory) -> LabTable {
    let note = "The same scenario, faults and seeds, with real processes / in virtual time. Taken over: \
                time from the stop of a lead until another one was at work, median and worst. Longest \
                pause: time without a final round after such a stop.";
    let columns = [
        "taken over",
        "worst",
        "longest pause",
        "rounds lost",
        "all rounds after",
    ];
    table(all, "Real / simulated", note.into(), &columns, |policy| {
        let mut of = simulated.policies.iter();
        let other = of.find(|other| other.policy == policy.policy);
        let both = |cell: &dyn Fn(&PolicyResult) -> String| {
            let pair = [cell(policy), other.map_or_else(String::new, cell)];
            if pair.iter().all(String::is_empty) {
                String::new()
            } else {
                pair.join(" / ")
            }
        };
        let never = || "never".to_owned();
        let span = |policy: &PolicyResult, span: Option<f64>| match policy.leads_stopped {
            0 => String::new(),
            _ => span.map_or_else(never, numbers::seconds),
        };
        vec![
            both(&|policy| span(policy, policy.take_over_median)),
            both(&|policy| span(policy, policy.take_over_worst)),
            both(&|policy| span(policy, policy.stalled_worst)),
            both(&|policy| spread(policy.rounds_lost, 1)),
            both(&|policy| {
                policy
                    .seconds
                    .map_or_else(never, |seconds| numbers::seconds(seconds.mean))
            }),
        ]
    })
}

fn table(
    all: &Laboratory,
    title: &'static str,
    note: String,
    columns: &[&str],
    cells: impl Fn(&PolicyResult) -> Vec<String>,
) -> LabTable {
    let row = |policy: &PolicyResult| {
        let mut row = vec![policy.policy.clone()];
        row.extend(cells(policy));
        row
    };
    let names = ["rotation"].iter().chain(columns);
    LabTable {
        title,
        note,
        columns: names.map(|name| (*name).to_owned()).collect(),
        rows: all.policies.iter().map(row).collect(),
    }
}

fn rounds(all: &Laboratory) -> LabTable {
    let limit = numbers::seconds(all.limit_seconds);
    let note = format!(
        "Lost: of {}, not final when a run ended, after {limit} at the latest. Failed: views that ended \
         without a block. Taken over: time from the stop of a lead until members entered the view of the \
         next lead that finished a round. Longest pause: time from such a stop until the next final \
         round. All means over {}; ± is the standard deviation.",
        numbers::plural(all.rounds as usize, "round"),
        numbers::plural(all.seeds, "seed"),
    );
    let columns = [
        "rounds lost",
        "views failed",
        "taken over",
        "worst",
        "never",
        "longest pause",
        "all rounds after",
    ];
    let never = || "never".to_owned();
    table(all, "Rounds", note, &columns, |policy| {
        let stopped = policy.leads_stopped;
        let span = |span: Option<f64>| match stopped {
            0 => String::new(),
            _ => span.map_or_else(never, numbers::seconds),
        };
        vec![
            spread(policy.rounds_lost, 1),
            spread(policy.views_failed, 1),
            span(policy.take_over_median),
            span(policy.take_over_worst),
            format!("{} of {stopped}", policy.never),
            span(policy.stalled_worst),
            policy
                .seconds
                .map_or_else(never, |seconds| numbers::seconds(seconds.mean)),
        ]
    })
}

fn burden(all: &Laboratory) -> LabTable {
    let what = match &all.deployment {
        None => "Bytes sent, and modelled work besides training (signatures, reading, checking, averaging \
                 and evaluating models, by the scenario's [costs]), for each final round."
            .to_owned(),
        Some(deployed) => format!(
            "{} CPU: CPU time of the processes, training included. Both for each final round.",
            deployed.bytes.as_deref().unwrap_or("Bytes were not counted.")
        ),
    };
    let note = format!(
        "{what} Lead: the lead of that round, while it lasted. Gini: 0 if all members carry the same, \
         nearly 1 if one carries everything."
    );
    let work = if all.deployment.is_some() {
        "CPU"
    } else {
        "work"
    };
    let of_work = format!("of {work}");
    let columns = [
        "bytes",
        "by the lead",
        work,
        "by the lead",
        "Gini of bytes",
        &of_work,
        "of rounds led",
    ];
    let counted = match &all.deployment {
        None => true,
        Some(deployed) => deployed.bytes.is_some(),
    };
    table(
        all,
        "Burden for each final round",
        note,
        &columns,
        |policy| {
            let share = |part: Spread, of: Spread| {
                format!("{:.0} %", 100.0 * part.mean / of.mean.max(1e-12))
            };
            let if_counted = |cell: String| if counted { cell } else { "–".to_owned() };
            vec![
                if_counted(numbers::bytes(policy.bytes_per_round.mean as u64)),
                if_counted(share(policy.lead_bytes_per_round, policy.bytes_per_round)),
                numbers::seconds(policy.work_per_round.mean),
                share(policy.lead_work_per_round, policy.work_per_round),
                if_counted(spread(policy.gini_bytes, 2)),
                spread(policy.gini_work, 2),
                spread(policy.gini_led, 2),
            ]
        },
    )
}

fn seen(all: &Laboratory) -> LabTable {
    let metric = &all.metric.name;
    let better = if all.metric.higher_is_better {
        "higher is better"
    } else {
        "lower is better"
    };
    let first = all
        .policies
        .first()
        .map_or("", |policy| policy.policy.as_str());
    let leads = match all.deployment {
        None => "",
        Some(_) => " (counted from final rounds: what leads of failed views got is in no line)",
    };
    let note = format!(
        "Authors seen: share of the other members that sent a member a contribution, which a lead learns \
         with its author{leads}; after the first round, after the tenth part of the rounds, and at the end. \
         {metric}: mean over silos on held-out rows ({better}), and the difference to {first}, seed by \
         seed."
    );
    let columns = [
        "seen, round 1",
        "a tenth",
        "end",
        "most, end",
        metric,
        "difference",
    ];
    let values = all.policies.iter().filter_map(|policy| policy.metric);
    let decimals = numbers::decimals_of(values.map(|value| value.mean));
    table(
        all,
        "What a curious member sees, and accuracy",
        note,
        &columns,
        |policy| {
            let at = |round: u64| {
                let of = |trial: &lab::rotation::RotationRun| {
                    let found = trial.seen.iter().find(|seen| seen.round >= round);
                    found.or(trial.seen.last()).map(|seen| seen.mean)
                };
                let found: Vec<f64> = policy.trials.iter().filter_map(of).collect();
                percent(found.iter().sum::<f64>() / found.len().max(1) as f64)
            };
            vec![
                at(1),
                at(all.rounds.div_ceil(10)),
                percent(policy.seen_mean.mean),
                percent(policy.seen_most.mean),
                policy
                    .metric
                    .map_or_else(String::new, |value| spread(value, decimals)),
                policy
                    .metric_more
                    .map_or_else(String::new, |more| numbers::signed(more.mean, decimals)),
            ]
        },
    )
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A mean with its standard deviation, if there is one.
fn spread(spread: Spread, decimals: usize) -> String {
    let mean = numbers::value(spread.mean, decimals);
    let sd = numbers::value(spread.sd, decimals);
    if sd.trim_matches(['0', '.']).is_empty() {
        mean
    } else {
        format!("{mean} ± {sd}")
    }
}
