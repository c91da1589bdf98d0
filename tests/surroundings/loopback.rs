//! Federations over real sockets learn the same models as in virtual time, even if silos fail.

#![allow(clippy::unwrap_used)]

use crate::skipped;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

use rota::lab::loopback::{self, Loopback};
use rota::lab::summary::Refused;
use rota::lab::{Summary, run};
use rota::mesh::Transport;
use rota::node::pool::Workers;
use rota::simulations::{
    EnvironmentConfig, EnvironmentFactory, Options, Overrides, RunError, Scenario, Surrounding,
};

/// Time within which every run must end, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const BOTH: [Transport; 2] = [Transport::Quic, Transport::Tcp];

/// Runs a scenario, over sockets or in virtual time.
fn federate(scenario: &Scenario, sockets: Option<Transport>) -> Result<Summary, RunError> {
    let scenario = scenario.clone();
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        let mut options = Options {
            references: false,
            data: env::var_os("ROTA_DATA").map(PathBuf::from),
            ..Options::default()
        };
        if let Some(transport) = sockets {
            options.surrounding =
                Surrounding::Made(Box::new(move |config: &EnvironmentConfig<'_>| {
                    let environment = Loopback::new(config, transport, Workers::all_cores())?;
                    Ok(Box::new(environment) as Box<dyn EnvironmentFactory>)
                }));
        }
        let _ = done.send(run(&scenario, options));
    });
    finished.recv_timeout(PATIENCE).expect("it ends in time")
}

fn built_in(name: &str, overrides: &Overrides) -> Scenario {
    Scenario::load(name).unwrap().with(overrides).unwrap()
}

/// Checks that both environments give the same coalitions and bit-identical models.
fn same_models(scenario: &Scenario) {
    let simulated = federate(scenario, None).unwrap();
    assert_eq!(
        (simulated.mesh.name, simulated.mesh.transport),
        ("virtual", None)
    );
    for (transport, name) in BOTH.into_iter().zip(["quic", "tcp"]) {
        let real = federate(scenario, Some(transport)).unwrap();
        assert_eq!(
            (real.mesh.name, real.mesh.transport),
            ("loopback", Some(name))
        );
        assert_eq!(real.virtual_seconds, None);
        let learned = |summary: &Summary| {
            let rounds = summary.rounds.iter();
            let rounds: Vec<_> = rounds
                .map(|round| (round.round, round.coalitions.clone(), round.authors.len()))
                .collect();
            (rounds, summary.silos.clone(), summary.curves.clone())
        };
        assert_eq!(learned(&real), learned(&simulated), "{name}");
        let bits = |sum: Option<f64>| sum.map(f64::to_bits);
        assert_eq!(
            bits(real.weights_abs_sum),
            bits(simulated.weights_abs_sum),
            "{name}"
        );
        // No member was too slow: heartbeats are seconds long.
        assert_eq!(
            (&real.nullified[..], &real.left_out[..]),
            (&[][..], &[][..]),
            "{name}"
        );
        assert_eq!(real.faults, [], "{name}");
        // The only refusals are contributions that were in transit when their round ended.
        let late = |refused: &Refused| refused.reason.contains("it contributes to round");
        assert!(real.refused.iter().all(late), "{name}: {:?}", real.refused);
        assert!(real.bytes_messages > Some(0), "{name}");
        // On a busy machine a member may be late to judge a round. Then it fetches the model that is
        // final, one blob, and no contributions, of which there are fewer than members.
        let silos = real.silos.len() as u64;
        let blobs = |summary: &Summary| summary.bytes_blobs.unwrap();
        assert!(blobs(&real) * silos >= blobs(&simulated), "{name}");
        assert_eq!(real.invariants, simulated.invariants);
    }
}

#[test]
fn the_diabetes_federation_learns_the_same_models_over_sockets() {
    same_models(&built_in("diabetes", &Overrides::default()));
    let one_model = Overrides {
        strategy: Some("fedavg".into()),
        seed: Some(2),
        rounds: Some(3),
        ..Overrides::default()
    };
    let scenario = built_in("diabetes", &one_model);
    same_models(&scenario);
    assert!(federate(&scenario, None).unwrap().weights_abs_sum.is_some());
}

#[test]
fn data_from_files_give_the_same_models_over_sockets() {
    if env::var_os("ROTA_DATA").is_none() {
        skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    }
    same_models(&built_in("heart", &Overrides::default()));
    same_models(&built_in("digits20", &Overrides::default()));
}

const SMALL: &str = "name = 'small'
rounds = 3
silos = 4
task = { constant = { parameters = 1000 } }
protocol = { heartbeat = '300ms' }
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
";

fn small(faults: &str) -> Scenario {
    Scenario::parse("small.toml", &format!("{SMALL}{faults}")).unwrap()
}

#[test]
fn drawn_members_alone_train_over_sockets() {
    let scenario = small("participation = 3\n");
    same_models(&scenario);
    let drawn = federate(&scenario, None).unwrap().rounds;
    assert!(drawn.iter().all(|round| round.authors.len() == 3));
}

#[test]
fn kills_and_byzantine_members_work_over_sockets() {
    let calm = federate(&small(""), None).unwrap();
    let kill = |moment| {
        format!("[[fault]]\nkill = 'lead'\nphase = '{moment}'\nround = 2\nrestart-after = '1s'\n")
    };
    let failing = "[[fault]]\nkill = 'silo 2'\ncommit = 4\ncut = 'before'\nrestart-after = '1s'\n";
    let lying = "[[fault]]\nmember = 'silo 4'\nbehaviour = 'nan'\n";
    let scripts = [
        kill("collecting"),
        kill("voting"),
        failing.into(),
        lying.into(),
    ];
    // All scenarios run at the same time, because they mostly wait.
    thread::scope(|scope| {
        for (transport, script) in BOTH
            .iter()
            .flat_map(|t| scripts.iter().map(move |s| (*t, s)))
        {
            let calm = &calm;
            scope.spawn(move || {
                let summary = federate(&small(script), Some(transport)).unwrap();
                assert_eq!(summary.rounds.len(), 3, "{script}");
                let not_finite = |said: &str| said.contains("not finite");
                let refused = summary
                    .refused
                    .iter()
                    .any(|refused| not_finite(&refused.reason));
                assert_eq!(refused, script == lying, "{script}: {:?}", summary.refused);
                if !refused {
                    // Every silo that was killed came back, and the models contain every silo's contributions.
                    assert_eq!(summary.weights_abs_sum, calm.weights_abs_sum, "{script}");
                }
            });
        }
    });
}

#[test]
fn faults_that_are_impossible_with_sockets_are_refused() {
    assert_eq!(loopback::check(&small("")), Ok(()));
    let cut = "[[fault]]\nsplit = ['silo 1']\nat = '1s'\nlasts = '1s'\n";
    for (more, what) in [
        (cut, "a [[fault]] cuts links"),
        ("[network]\nloss = 0.1\n", "[network] loses messages"),
        (
            "[network]\nduplication = 0.1\n",
            "[network] duplicates messages",
        ),
    ] {
        let refused = loopback::check(&small(more)).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("small.toml: {what}")),
            "{refused}"
        );
        assert!(refused.contains("--mesh virtual"), "{refused}");
    }
    let environment = federate(&small(cut), Some(Transport::Quic));
    assert!(
        matches!(environment, Err(RunError::Environment(_))),
        "{environment:?}"
    );
}
