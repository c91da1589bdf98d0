//! Federations over real sockets: the same models as in virtual time, also where silos fail.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

use rota::loopback::{self, Loopback};
use rota::mesh::Transport;
use rota::pool::Workers;
use rota::simulations::summary::Refused;
use rota::simulations::{
    Environment, EnvironmentConfig, Options, Overrides, RunError, Scenario, Summary, run,
};

/// Nothing here takes longer, also on a busy machine.
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
            options.environment = Some(Box::new(move |config: &EnvironmentConfig<'_>| {
                let environment = Loopback::new(config, transport, Workers::all_cores())?;
                Ok(Box::new(environment) as Box<dyn Environment>)
            }));
        }
        let _ = done.send(run(&scenario, options));
    });
    finished.recv_timeout(PATIENCE).expect("it ends in time")
}

fn built_in(name: &str, overrides: &Overrides) -> Scenario {
    Scenario::load(name).unwrap().with(overrides).unwrap()
}

/// Both give the same coalitions, and models that are equal in every bit.
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
        // Nobody was too slow, and nothing was waited for: beats last for seconds.
        assert_eq!(
            (&real.nullified[..], &real.left_out[..]),
            (&[][..], &[][..]),
            "{name}"
        );
        assert_eq!(real.faults, [], "{name}");
        // What was under way when its round ended is refused, and nothing else.
        let late = |refused: &Refused| refused.reason.contains("contribution belongs to round");
        assert!(real.refused.iter().all(late), "{name}: {:?}", real.refused);
        assert!(
            real.bytes_messages > 0 && real.bytes_blobs >= simulated.bytes_blobs,
            "{name}"
        );
        assert_eq!(real.invariants, simulated.invariants);
    }
}

#[test]
fn the_embedded_federation_learns_the_same_over_sockets() {
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
fn real_data_teach_the_same_over_sockets() {
    if env::var_os("ROTA_DATA").is_none() {
        eprintln!("SKIPPED: ROTA_DATA is not set");
        return;
    }
    same_models(&built_in("heart", &Overrides::default()));
    same_models(&built_in("digits20", &Overrides::default()));
}

const SMALL: &str = "name = 'small'
rounds = 3
silos = 4
task = { constant = { parameters = 1000 } }
charter = { beat = '300ms' }
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
";

fn small(faults: &str) -> Scenario {
    Scenario::parse("small.toml", &format!("{SMALL}{faults}")).unwrap()
}

#[test]
fn kills_and_byzantine_members_are_carried_out() {
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
    // All at once: most of it is waiting.
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
                    // Whoever was away came back, and everybody's work is in the models.
                    assert_eq!(summary.weights_abs_sum, calm.weights_abs_sum, "{script}");
                }
            });
        }
    });
}

#[test]
fn what_sockets_cannot_be_told_to_do_is_refused() {
    assert_eq!(loopback::check(&small("")), Ok(()));
    let cut = "[[fault]]\nsplit = ['silo 1']\nat = '1s'\nlasts = '1s'\n";
    for (more, what) in [
        (cut, "a [[fault]] cuts links"),
        ("[network]\nloss = 0.1\n", "[network] loses messages"),
        (
            "[network]\nduplication = 0.1\n",
            "[network] doubles messages",
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
