//! Promised and actual benefits of serving, over many splits of rows into training and held-out rows.
//! `docs/methods/serving.md` quotes the output of these tests.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use lab::run;
use lab::summary::{ModelKind, SiloInfo};
use methods::serving::Candidate;
use simulations::{Options, Scenario};

/// Seeds, unless `ROTA_SEEDS` says otherwise.
const SEEDS: u64 = 20;

/// Sums over silos and seeds.
#[derive(Default)]
struct MeasuredSums {
    choices: BTreeMap<String, usize>,
    /// Choices of another model than the own.
    others: f64,
    /// Benefits of these, in loss: as measured, as corrected, and actual.
    raw: f64,
    promised: f64,
    brought: f64,
    /// By kind of candidate, chosen or not: their number, what they promise as measured and corrected, and
    /// what they bring.
    candidates: BTreeMap<String, [f64; 4]>,
    /// With this many standard errors asked for, coalition's model or own: how often the former, what
    /// it brings, at how many silos it harms.
    thresholds: [[f64; 3]; 3],
    harmed: usize,
    by_chance: f64,
    silos: usize,
    local: f64,
    served: f64,
    /// Losses of the models that silos serve that choose alone, and of their coalition's model.
    alone: f64,
    coalition: f64,
}

fn name(candidate: Candidate) -> String {
    serde_json::to_value(candidate)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

impl MeasuredSums {
    fn add(&mut self, silo: &SiloInfo) {
        let served = silo.served.as_ref().unwrap();
        *self.choices.entry(name(served.candidate)).or_default() += 1;
        self.silos += 1;
        let (local, own) = (silo.local.unwrap(), served.metric.unwrap());
        self.local += local;
        self.served += own;
        self.alone += served.alone.metric.unwrap();
        self.coalition += silo.coalition.unwrap();
        let chosen = served
            .measured
            .iter()
            .find(|one| one.candidate == served.candidate);
        if let Some(chosen) = chosen.filter(|one| one.candidate != Candidate::Local) {
            self.others += 1.0;
            self.raw += chosen.advantage + chosen.seen;
            self.promised += chosen.advantage;
            self.brought += local - own;
        }
        let coalition = served
            .measured
            .iter()
            .find(|one| one.candidate == Candidate::Coalition);
        if let (Some(one), Some(coalition)) = (coalition, silo.coalition) {
            for (sums, errors) in self.thresholds.iter_mut().zip([0.0, 0.5, 1.0]) {
                if one.advantage > errors * one.error {
                    let gain = silo.gains.iter().find(|gain| {
                        (gain.model, gain.over) == (ModelKind::Coalition, ModelKind::Local)
                    });
                    sums[0] += 1.0;
                    sums[1] += local - coalition;
                    sums[2] +=
                        f64::from(u8::from(gain.is_some_and(|gain| gain.interval.high < 0.0)));
                }
            }
        }
        for one in &served.measured {
            let sums = self.candidates.entry(name(one.candidate)).or_default();
            let brought = match one.candidate {
                Candidate::Coalition => silo.coalition.map(|coalition| local - coalition),
                _ => None,
            };
            sums[0] += 1.0;
            sums[1] += one.advantage + one.seen;
            sums[2] += one.advantage;
            sums[3] += brought.unwrap_or(f64::NAN);
        }
    }

    fn print(&self, what: &str) {
        let (n, silos) = (self.others.max(1.0), self.silos as f64);
        println!(
            "{what}: own {:.4}, coalition's {:.4}, served together {:.4}, alone {:.4}; others chosen at \
             {:.0} of {silos}: uncorrected {:+.4}, promised {:+.4}, brought {:+.4}; harmed {}, by chance {:.1}; choices {:?}",
            self.local / silos,
            self.coalition / silos,
            self.served / silos,
            self.alone / silos,
            self.others,
            self.raw / n,
            self.promised / n,
            self.brought / n,
            self.harmed,
            self.by_chance,
            self.choices,
        );
        let each = self.thresholds.iter().map(|[count, brought, harmed]| {
            format!(
                "{count:.0}: {:+.4} on average, {harmed:.0} harmed",
                brought / silos
            )
        });
        println!(
            "    the coalition's model from 0, 0.5, 1 standard errors on: {}",
            each.collect::<Vec<_>>().join("; ")
        );
        for (name, [count, raw, promised, brought]) in &self.candidates {
            println!(
                "    {name} ({count:.0}): uncorrected {:+.4}, promised {:+.4}, brought {:+.4}",
                raw / count,
                promised / count,
                brought / count
            );
        }
    }
}

fn measure(what: &str, scenario: impl Fn(u64) -> String) -> Option<MeasuredSums> {
    let only = std::env::var("ROTA_ONLY").unwrap_or_default();
    if !what.contains(&only) {
        return None;
    }
    let seeds = std::env::var("ROTA_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let mut sums = MeasuredSums::default();
    for seed in 1..=seeds.unwrap_or(SEEDS) {
        let options = Options {
            data: std::env::var_os("ROTA_DATA").map(PathBuf::from),
            cache: true,
            ..Options::default()
        };
        let scenario = Scenario::parse("measured.toml", &scenario(seed)).unwrap();
        let summary = run(&scenario, options).unwrap();
        let members = summary.silos.iter().filter(|silo| !silo.outside);
        members.for_each(|silo| sums.add(silo));
        // Silos with a handful of held-out rows have no intervals.
        if let Some(harmed) = summary.harmed {
            sums.harmed += harmed.harmed.len();
            sums.by_chance += harmed.by_chance;
        }
    }
    sums.print(what);
    Some(sums)
}

fn heart(seed: u64, rounds: u64, validation: f64, strategy: &str) -> String {
    format!(
        "name = \"heart\"
        seed = {seed}
        rounds = {rounds}
        [task.table]
        data = \"heart\"
        standardise = \"silo\"
        split = {{ validation = {validation}, test = 0.34 }}
        model = \"logistic\"
        metric = \"log-loss\"
        [strategy]
        {strategy}
        training = {{ epochs = {epochs}, batch = 16, optimiser = {{ name = \"sgd\", rate = 0.02, \
         weight-decay = 0.01 }} }}",
        epochs = 100 / rounds,
    )
}

/// Patients dealt to eight hospitals.
pub(crate) fn diabetes(seed: u64, model: &str, strategy: &str) -> String {
    format!(
        "name = \"diabetes\"
        seed = {seed}
        rounds = 6
        silos = 8
        [task.table]
        data = \"diabetes\"
        standardise = \"silo\"
        split = {{ validation = 0.0, test = 0.3 }}
        model = {model}
        metric = \"loss\"
        [strategy]
        {strategy}
        training = {{ epochs = 10, batch = 8, optimiser = {{ name = \"sgd\", rate = 0.02 }} }}"
    )
}

/// Not judged here: printed for the book.
#[test]
#[ignore = "minutes; cargo test -p simulations --test serving_measured -- --ignored --nocapture"]
fn what_serving_promises_and_brings() {
    let data = std::env::var_os("ROTA_DATA").is_some();
    let strategies = [
        (1, "name = \"cs-rcfl\"\ncoalitions = 2"),
        (5, "name = \"fedavg\""),
        (5, "name = \"fedavg\"\nweight = \"equal\""),
        (5, "name = \"hcct\""),
        (5, "name = \"fedavg\"\npersonal = [\"intercept\"]"),
        (5, "name = \"ditto\""),
    ];
    for (rounds, strategy) in strategies.into_iter().filter(|_| data) {
        for validation in [0.0, 0.2] {
            measure(
                &format!("heart, {strategy:?}, validation {validation}"),
                |seed| heart(seed, rounds, validation, strategy),
            );
        }
    }
    let linear = "{ linear = { loss = \"absolute\" } }";
    let network = "{ mlp = { hidden = [8] } }";
    for (kind, model) in [("linear", linear), ("mlp", network)] {
        for strategy in [
            "name = \"fedavg\"",
            "name = \"cs-rcfl\"\ncoalitions = 2",
            "name = \"hcct\"",
            "name = \"fedper\"",
            "name = \"ditto\"",
        ] {
            if kind == "linear" && strategy.contains("fedper") {
                continue;
            }
            measure(&format!("diabetes, {kind}, {strategy:?}"), |seed| {
                diabetes(seed, model, strategy)
            });
        }
    }
}

/// Synthetic rows of one of `groups` true logistic models at every silo.
pub(crate) fn synthetic(
    seed: u64,
    silos: usize,
    groups: usize,
    rows: usize,
    strategy: &str,
) -> String {
    format!(
        "name = \"synthetic\"
        seed = {seed}
        rounds = 10
        silos = {silos}
        [task.table]
        data = {{ synthetic = {{ target = \"logistic\", groups = {groups}, features = 10, scale = 0.5, \
         rows = [{rows}, {rows}] }} }}
        model = \"logistic\"
        standardise = \"none\"
        split = {{ validation = 0.0 }}
        metric = \"log-loss\"
        [strategy]
        {strategy}
        training = {{ epochs = 10, batch = 8, optimiser = {{ name = \"sgd\", rate = 0.3 }} }}"
    )
}

/// Patients of twenty hospitals.
fn eicu_los(seed: u64, strategy: &str) -> String {
    format!(
        "name = \"eicu-los\"
        seed = {seed}
        rounds = 10
        [task.table]
        data = {{ eicu-los = {{ hospitals = 20, least-rows = 10 }} }}
        model = \"logistic\"
        split = {{ validation = 0.0, test = 0.3 }}
        metric = \"log-loss\"
        [strategy]
        {strategy}
        training = {{ epochs = 5, batch = 8, optimiser = {{ name = \"sgd\", rate = 0.03, \
         weight-decay = 0.1 }} }}"
    )
}

/// Temperatures of 24 states.
fn tpt48(seed: u64, strategy: &str) -> String {
    format!(
        "name = \"tpt48\"
        seed = {seed}
        rounds = 10
        [task.table]
        data = {{ tpt48 = {{ from = \"east\", to = \"east\" }} }}
        model = {{ mlp = {{ hidden = [] }} }}
        metric = \"mse\"
        [strategy]
        {strategy}
        training = {{ epochs = 1, batch = 32, optimiser = {{ name = \"sgd\", rate = 0.01, \
         momentum = 0.9 }} }}"
    )
}

/// Not judged here: printed for the book.
#[test]
#[ignore = "minutes; cargo test --workspace --test federations -- deciding_together --ignored --nocapture"]
fn what_deciding_together_brings() {
    let strategies = ["name = \"fedavg\"", "name = \"hcct\""];
    for strategy in strategies {
        if std::env::var_os("ROTA_DATA").is_some() {
            measure(&format!("heart, {strategy}"), |seed| {
                heart(seed, 5, 0.0, strategy)
            });
            measure(&format!("eicu-los, {strategy}"), |seed| {
                eicu_los(seed, strategy)
            });
            measure(&format!("tpt48, {strategy}"), |seed| tpt48(seed, strategy));
        }
        let linear = "{ linear = { loss = \"absolute\" } }";
        measure(&format!("diabetes, {strategy}"), |seed| {
            diabetes(seed, linear, strategy)
        });
        for (silos, groups, rows) in [(29, 1, 60), (12, 3, 60), (12, 12, 60)] {
            let what = format!("{silos} synthetic silos in {groups} groups, {strategy}");
            measure(&what, |seed| synthetic(seed, silos, groups, rows, strategy));
        }
    }
}
