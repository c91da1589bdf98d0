//! Runs one round of four hospitals without actors, async code or a network: a loop carries the
//! messages between the members and does the work that they ask for.
//!
//! `cargo run --release --example round_by_hand`

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rota::methods::learner::{Optimiser, Training};
use rota::methods::strategy::{CsRcflOptions, Method, StrategyConfig, build};
use rota::methods::{
    self, Decision, Layout, Params, Plan, Role, Scores, State, Strategy, TensorSpec,
};
use rota::protocol::effects::{Answer, Case, Planned, Request, Trained};
use rota::protocol::identity::Strict;
use rota::protocol::member::{Config, Start};
use rota::protocol::message::{EntryFields, LoadedManifest};
use rota::protocol::parameters::{Privacy, Rotation, Verification};
use rota::protocol::privacy::Voids;
use rota::protocol::roster::Silo;
use rota::protocol::{
    Effect, Epoch, Genesis, Hash, Input, Member, MemberIndex, ProtocolParameters, Report,
    SecretKey, Time, codec, envelope,
};

/// Waiting days of five patients in each hospital. The model is one number: the usual wait.
const DAYS: [[f32; 5]; 4] = [
    [3.0, 4.0, 4.0, 5.0, 4.0],
    [21.0, 19.0, 20.0, 22.0, 18.0],
    [5.0, 3.0, 4.0, 6.0, 2.0],
    [20.0, 23.0, 20.0, 17.0, 20.0],
];
const NAMES: [&str; 4] = ["Aachen", "Bern", "Como", "Dijon"];

/// The work of all hospitals, with the models that they can read by hash.
struct HospitalWork {
    layout: Arc<Layout>,
    strategy: Box<dyn Strategy>,
    states: BTreeMap<Hash, State>,
    blobs: BTreeMap<Hash, Params>,
    /// The state that the round started from.
    state: Hash,
}

fn main() -> Result<(), Box<dyn Error>> {
    let keys: Vec<_> = (1..=4).map(|i| SecretKey::from_bytes(&[i; 32])).collect();
    let layout = Layout::new(vec![TensorSpec::new("days", [1], Role::Weight)])?;
    let start = Params::zeros(&layout);
    let epoch = agreement(&keys, Hash(start.hash()))?;
    println!("{} leads the first view", epoch.roster.name(epoch.lead(1)));

    let state = epoch.protocol.start;
    let mut work = HospitalWork {
        layout,
        strategy: strategy()?,
        states: [(state, State::genesis(start))].into(),
        blobs: BTreeMap::new(),
        state,
    };

    // Start the members. From here on there are only inputs and effects.
    let mut todo: VecDeque<(MemberIndex, Effect)> = VecDeque::new();
    let mut members = Vec::new();
    for (me, key) in epoch.roster.members().zip(keys) {
        let mut effects = Vec::new();
        members.push(Member::new(
            // The seed of its nonces is random in a real node.
            Config::new(epoch.clone(), me, key, [0; 32]),
            Start::New,
            Time::ZERO,
            &mut effects,
        ));
        todo.extend(effects.into_iter().map(|effect| (me, effect)));
    }
    // Every member can reach every other. A new member first asks others whether its key was used
    // before.
    for me in epoch.roster.members() {
        for peer in epoch.roster.members().filter(|&peer| peer != me) {
            let mut effects = Vec::new();
            let round_trip = Duration::from_millis(20);
            let up = Input::Up { peer, round_trip };
            members[me.at()].step(Time::ZERO, up, &mut effects);
            todo.extend(effects.into_iter().map(|effect| (me, effect)));
        }
    }
    while let Some((me, effect)) = todo.pop_front() {
        let inputs: Vec<(MemberIndex, Input)> = match effect {
            Effect::Send { to, frame } => {
                let known = members[to.at()].known();
                let opened = envelope::open(&epoch, &Strict, &known, &frame)?;
                vec![(to, Input::Opened(opened))]
            }
            Effect::Publish { frame } => {
                let others = epoch.roster.members().filter(|&to| to != me);
                let opened = others.map(|to| {
                    let known = members[to.at()].known();
                    let opened = envelope::open(&epoch, &Strict, &known, &frame)?;
                    Ok((to, Input::Opened(opened)))
                });
                opened.collect::<Result<_, envelope::OpenError>>()?
            }
            Effect::Report(report) => {
                tell(&epoch, me, &report);
                continue;
            }
            // Nothing crashes here, so nothing is written to disk.
            Effect::Persist(_) => continue,
            other => vec![(me, work.run(me, other)?)],
        };
        for (to, input) in inputs {
            let mut effects = Vec::new();
            members[to.at()].step(Time::ZERO, input, &mut effects);
            todo.extend(effects.into_iter().map(|effect| (to, effect)));
        }
    }
    Ok(())
}

/// The agreement: the members and a parameter set.
fn agreement(keys: &[SecretKey], start: Hash) -> Result<Arc<Epoch>, Box<dyn Error>> {
    let silo = |(key, name): (&SecretKey, &&str)| Silo {
        name: (*name).into(),
        key: key.public(),
        rows: None,
    };
    let silos = keys.iter().zip(&NAMES).map(silo).collect();
    let protocol = ProtocolParameters {
        name: "waiting days".into(),
        work: "one number per coalition, cs-rcfl with two coalitions".into(),
        start,
        rounds: 1,
        heartbeat_ms: 1000,
        patience: 12,
        view_timeout: 60,
        min_contributions: 3,
        rotation: Rotation::EveryRound,
        verification: Verification::Full,
        privacy: Privacy::Clear,
        blob_limit: 1 << 20,
        keep_rounds: 1,
        discovery: false,
    };
    Ok(Arc::new(Epoch::first(&Genesis { silos, protocol })?))
}

/// Returns what the round computes: two groups of hospitals, each with a number that suits it.
fn strategy() -> Result<Box<dyn Strategy>, Box<dyn Error>> {
    let training = Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    };
    let method = Method::CsRcfl(CsRcflOptions {
        coalitions: 2.into(),
        freeze: 1,
        ..CsRcflOptions::default()
    });
    Ok(build(&StrategyConfig::new(method, training), 4)?)
}

impl HospitalWork {
    /// Does one piece of work for a hospital and returns the result.
    fn run(&mut self, me: MemberIndex, effect: Effect) -> Result<Input, Box<dyn Error>> {
        Ok(match effect {
            Effect::Work(Request::Plan { round, state }) => {
                self.state = state;
                let plan: Plan = self.strategy.plan(&self.states[&state], round);
                Input::Done(Answer::Planned(Planned {
                    round,
                    plan: Hash::of(&codec::encode(&plan)),
                    participants: None,
                    cross_evaluate: plan.cross_evaluate,
                    weights: plan.weights,
                    blob_size: self.layout.document_len() as u64,
                    voids: Voids::default(),
                }))
            }
            Effect::Work(Request::Train { round }) => Input::Done(Answer::Trained {
                round,
                result: Ok(self.train(me)),
            }),
            Effect::Work(Request::Admit {
                round,
                fields,
                from,
            }) => Input::Done(Answer::Admitted {
                round,
                from,
                fields,
                result: Ok(()),
            }),
            Effect::Work(Request::Hold { round, entries, .. }) => Input::Done(Answer::Held {
                round,
                blobs: entries.iter().map(|entry| entry.fields.blob).collect(),
                result: Ok(()),
            }),
            Effect::Work(Request::Evaluate { round, entries, .. }) => {
                let blobs = entries.iter().map(|entry| entry.fields.blob);
                let losses = blobs.map(|blob| (blob, self.loss(me, &blob)));
                Input::Done(Answer::Evaluated {
                    round,
                    result: Ok(losses.collect()),
                })
            }
            Effect::Work(Request::Decide {
                round, manifest, ..
            }) => {
                let decision = self.strategy.decide(
                    &self.states[&self.state],
                    &self.manifest(&manifest)?,
                    round,
                )?;
                Input::Done(Answer::Decided {
                    manifest: manifest.root(),
                    result: Ok(codec::encode(&decision)),
                })
            }
            Effect::Work(Request::Check { case, .. }) => {
                let decision: Decision = codec::decode(&case.decision, 1 << 16)?;
                let (state, manifest) = (&self.states[&self.state], self.manifest(&case.manifest)?);
                self.strategy
                    .check(state, &manifest, &decision, case.round)?;
                Input::Done(Answer::Checked {
                    case: case.id(),
                    result: Ok(()),
                })
            }
            Effect::Work(Request::Settle { case, .. }) => {
                let hash = self.settle(&case)?;
                Input::Done(Answer::Settled {
                    case: case.id(),
                    result: Ok(hash),
                })
            }
            Effect::Work(Request::Apply { rounds, .. }) => {
                let adopted = rounds.last().ok_or("a round is adopted")?;
                self.say(me, &adopted.outcome);
                Input::Done(Answer::Applied {
                    round: adopted.round,
                    ends: false,
                    result: Ok(()),
                })
            }
            other => return Err(format!("{other:?} is not work").into()),
        })
    }

    /// Trains a hospital's model: the mean of its days.
    fn train(&mut self, me: MemberIndex) -> Trained {
        let mean = DAYS[me.at()].iter().sum::<f32>() / 5.0;
        let model = Params::from_values(&self.layout, &[mean]);
        let blob = Hash(model.hash());
        self.blobs.insert(blob, model);
        let fields = EntryFields {
            blob,
            size: self.layout.document_len() as u64,
            coalition: Some(0),
            weight: None,
            member: None,
        };
        Trained {
            fields,
            metrics: Vec::new(),
        }
    }

    /// By how many days a model is wrong at a hospital, on average.
    fn loss(&self, me: MemberIndex, blob: &Hash) -> f64 {
        let usual = self.blobs[blob].values()[0];
        let off: f32 = DAYS[me.at()].iter().map(|day| (day - usual).abs()).sum();
        f64::from(off / 5.0)
    }

    /// The hash of the state after a round, which is kept.
    fn settle(&mut self, case: &Case) -> Result<Hash, Box<dyn Error>> {
        let decision: Decision = codec::decode(&case.decision, 1 << 16)?;
        let (state, manifest) = (&self.states[&self.state], self.manifest(&case.manifest)?);
        let outcome = self
            .strategy
            .settle(state, &manifest, &decision, case.round)?;
        let models: Vec<_> = outcome.state.models.iter().map(Params::hash).collect();
        let hash = Hash::of(&codec::encode(&(&outcome.assignment, &models)));
        self.states.insert(hash, outcome.state);
        Ok(hash)
    }

    /// Prints what a hospital adopts.
    fn say(&self, me: MemberIndex, outcome: &Hash) {
        let models = &self.states[outcome].models;
        let usual: Vec<_> = models.iter().map(|model| model.values()[0]).collect();
        println!("{:>8}  adopts one of {usual:?} days", NAMES[me.at()]);
    }

    /// The entries of a manifest with their models, for the strategy.
    fn manifest(
        &self,
        manifest: &LoadedManifest,
    ) -> Result<methods::LoadedManifest, Box<dyn Error>> {
        let entry = |entry: &rota::protocol::message::Entry| methods::ModelEntry {
            model: self.blobs[&entry.fields.blob].clone(),
            coalition: entry.fields.coalition,
            weight: entry.fields.weight,
            member: entry.fields.member.map(|member| member.0),
        };
        let scores = manifest
            .scores
            .as_deref()
            .map(Scores::from_rows)
            .transpose()?;
        Ok(methods::LoadedManifest {
            entries: manifest.entries.iter().map(entry).collect(),
            scores,
        })
    }
}

fn tell(epoch: &Epoch, me: MemberIndex, report: &Report) {
    let name = epoch.roster.name(me);
    match report {
        Report::Leading { phase, .. } => println!("{name:>8}  leads: {phase:?}"),
        Report::Contributed { blob, .. } => println!("{name:>8}  contributes model {blob}"),
        Report::Final {
            round,
            block,
            authors,
            ..
        } => println!(
            "{name:>8}  knows that round {round} is final: block {block}, {} contributions",
            authors.len()
        ),
        Report::Complete { .. } => println!("{name:>8}  is done"),
        _ => {}
    }
}
