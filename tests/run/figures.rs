//! The figures of `docs/performance.md` that need processes:
//!
//! ```sh
//! cargo test --release --test run -- figures:: --ignored --nocapture --test-threads 1
//! ```

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use crate::nodes::{Demo, TestNodes, scenario};
use rota::node::institution::Institution;

/// Seconds since `moment`.
fn since(moment: Instant) -> f64 {
    moment.elapsed().as_secs_f64()
}

#[test]
#[ignore = "a measurement"]
fn measure_four_processes_with_a_million_parameters() {
    for transport in ["quic", "tcp"] {
        let options = ["--scenario", "null", "--silos", "4", "--rounds", "10"];
        let demo = Demo::new(
            "figures-null",
            &[&options[..], &["--transport", transport]].concat(),
        );
        let mut nodes = TestNodes::new(&demo.configs, &[]);
        let began = Instant::now();
        (0..4).for_each(|node| nodes.start(node));
        let end = began + Duration::from_secs(300);
        let (mut first, mut finished) = (None, 0);
        while finished < 4 {
            let said = nodes
                .next(end)
                .unwrap_or_else(|| panic!("{}", nodes.tails()));
            if said.line["event"] == "final" {
                first.get_or_insert_with(|| since(began));
            }
            finished += usize::from(said.line["event"] == "finished");
        }
        let all = since(began);
        let peaks: Vec<_> = (0..4)
            .map(|node| format!("{:.0}", nodes.memory(node, "VmHWM")))
            .collect();
        println!(
            "{transport}: 4 processes, 1,000,000 parameters, 10 rounds: {all:.2} s from the first \
             process on, {:.2} s of it after the first final round; peak memory {} MiB",
            all - first.unwrap(),
            peaks.join(", "),
        );
    }
}

/// A federation of `ROTA_LARGE`, as silos, parameters and rounds: `4 100_000_000 1` without it. Its rounds are
/// masked where `ROTA_PRIVACY` says so.
#[test]
#[ignore = "a measurement"]
fn measure_a_round_of_a_large_model() {
    let text = std::env::var("ROTA_LARGE").unwrap_or_else(|_| "4 100_000_000 1".into());
    let text = text.replace('_', "");
    let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>().unwrap());
    let mut next = || numbers.next().unwrap();
    let (silos, parameters, rounds) = (next() as usize, next(), next());
    let mode = std::env::var("ROTA_PRIVACY").unwrap_or_else(|_| "clear".into());
    // Patience and view timeout are far beyond what a machine with these silos needs.
    let file = scenario(
        "large",
        &format!(
            "name = 'large'\nrounds = {rounds}\nsilos = {silos}\n\
             task = {{ constant = {{ parameters = {parameters} }} }}\n\
             [privacy]\nmode = '{mode}'\n\
             [strategy]\nname = 'fedavg'\nweight = 'equal'\n\
             training = {{ epochs = 1, batch = 0, optimiser = {{ name = 'sgd', rate = 0.1 }} }}\n\
             [protocol]\nstraggler-timeout = 60\nkeep-rounds = 1\n"
        ),
    );
    let megabytes = 4.0 * parameters as f64 / 1e6;
    for transport in ["tcp", "quic"] {
        let options = [
            "--scenario",
            file.to_str().unwrap(),
            "--transport",
            transport,
        ];
        let demo = Demo::new("figures-large", &options);
        let mut nodes = TestNodes::new(&demo.configs, &[]);
        let began = Instant::now();
        (0..silos).for_each(|node| nodes.start(node));
        let (mut finished, mut finals, mut anonymous) = (0, Vec::new(), vec![0f64; silos]);
        let end = began + Duration::from_secs(1800);
        while finished < silos {
            assert!(Instant::now() < end, "{}", nodes.tails());
            let said = nodes.next(Instant::now() + Duration::from_millis(20));
            for (node, most) in anonymous.iter_mut().enumerate() {
                *most = most.max(nodes.memory(node, "RssAnon"));
            }
            let Some(said) = said else { continue };
            assert!(!said.line.is_null(), "{}", nodes.tails());
            if said.line["event"] == "final" && said.node == 0 {
                finals.push(since(began));
            }
            finished += usize::from(said.line["event"] == "finished");
        }
        let of_model = |mebibytes: f64| format!("{:.2}", mebibytes * 1.048_576 / megabytes);
        let anonymous: Vec<_> = anonymous.into_iter().map(of_model).collect();
        let all = (0..silos).map(|node| of_model(nodes.memory(node, "VmHWM")));
        println!(
            "{transport}, {mode}: {silos} processes, a model of {megabytes:.0} MB, final after {finals:.1?} s, \
             done after {:.1} s; peak memory in models: {}, with mapped files {}",
            since(began),
            anonymous.join(" "),
            all.collect::<Vec<_>>().join(" "),
        );
        drop(nodes);
        std::fs::remove_dir_all(&demo.folder).unwrap();
    }
}

const LEARNING: &str = "name = 'led'
rounds = 100000
silos = 5
[task.table]
data = 'diabetes'
standardise = 'federation'
split = { validation = 0.0, test = 0.3 }
model = { mlp = { hidden = [32] } }
[strategy]
name = 'cs-rcfl'
coalitions = 2
training = { epochs = 300, batch = 8, optimiser = { name = 'sgd', rate = 0.001 } }
[protocol]
straggler-timeout = 10
";

#[test]
#[ignore = "a measurement"]
fn measure_the_time_from_the_kill_of_a_lead_to_the_next_final_round() {
    // Either the lead restarts at once, as with a service manager, or only after the round is final
    // without it.
    let cases = [
        ("100ms", true, 9),
        ("1s", true, 7),
        ("100ms", false, 9),
        ("1s", false, 7),
    ];
    for (heartbeat, at_once, samples) in cases {
        let file = scenario("led", &format!("{LEARNING}heartbeat = '{heartbeat}'\n"));
        let demo = Demo::new("figures-lead", &["--scenario", file.to_str().unwrap()]);
        let names: Vec<_> = demo
            .configs
            .iter()
            .map(|config| {
                let institution = Institution::load(config).unwrap();
                institution
                    .agreement
                    .epoch
                    .roster
                    .name(institution.me)
                    .to_owned()
            })
            .collect();
        let mut nodes = TestNodes::new(&demo.configs, &[]);
        (0..5).for_each(|node| nodes.start(node));
        let end = Instant::now() + Duration::from_secs(500);
        // The view whose lead was killed, the time, and the lead.
        let mut killed: Option<(u64, Instant, usize)> = None;
        let (mut seconds, mut newest, mut back) = (Vec::new(), 0, 0);
        while seconds.len() < samples {
            let said = nodes
                .next(end)
                .unwrap_or_else(|| panic!("{}", nodes.tails()));
            let view = said.line["view"].as_u64().unwrap_or(0);
            match (said.line["event"].as_str(), killed) {
                // After the node that was killed last takes part again.
                (Some("view"), None)
                    if view > newest.max(back + 10) && said.start == nodes.starts[said.node] =>
                {
                    newest = view;
                    let lead = names
                        .iter()
                        .position(|name| said.line["lead"] == **name)
                        .unwrap();
                    nodes.kill(lead);
                    if at_once {
                        nodes.start(lead);
                    }
                    killed = Some((view, Instant::now(), lead));
                }
                (Some("final"), Some((of, at, lead))) if view >= of && said.node != lead => {
                    seconds.push(since(at));
                    if !at_once {
                        nodes.start(lead);
                    }
                    (killed, back) = (None, view);
                }
                _ => {}
            }
        }
        seconds.sort_by(f64::total_cmp);
        println!(
            "beat {heartbeat}, the lead {}: from its SIGKILL to the next final round {:.2} s (median of {}; {:.2}–{:.2})",
            if at_once { "restarted at once" } else { "away" },
            seconds[samples / 2],
            samples,
            seconds[0],
            seconds[samples - 1],
        );
    }
}
