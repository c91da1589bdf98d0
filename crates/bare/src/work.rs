//! Toy work of bare members: hashes instead of models, so that agreement can be tested alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::effects::{Answer, Case, Planned, Request, Trained, WorkError};
use protocol::message::{Entry, EntryFields, RoundManifest};
use protocol::privacy::Voids;
use protocol::{Hash, MemberIndex};

use crate::genesis::MODEL_BYTES;
use crate::random::Random;

use super::BareOptions;
use super::masks::BareSecret;

/// The members that the plan of a round names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plans {
    /// Every member.
    All,
    /// One member, two, or any number of them, drawn from the state that the round starts from.
    Subset,
}

impl Plans {
    /// The participants of a round that starts from this state, ascending; `None`: all members.
    pub(super) fn participants(
        self,
        n: usize,
        round: u64,
        state: &Hash,
    ) -> Option<Vec<MemberIndex>> {
        let drawn = Hash::labelled("participants", &[&round.to_le_bytes(), &state.0]);
        let mut random = Random::new(0, &drawn.to_string());
        let count = match self {
            Self::All => return None,
            Self::Subset => match random.below(4) {
                0 => 1,
                1 => 2.min(n),
                2 => 1 + random.below(n),
                _ => return None,
            },
        };
        let mut members: Vec<_> = (0..n as u16).map(MemberIndex).collect();
        random.shuffle(&mut members);
        members.truncate(count);
        members.sort();
        Some(members)
    }
}

/// The outcome of any acceptable decision on a manifest, in a round that starts from this state.
pub(super) fn outcome(state: &Hash, round: u64, manifest: &Hash) -> Hash {
    Hash::labelled("outcome", &[&state.0, &round.to_le_bytes(), &manifest.0])
}

/// The decision of an honest lead on a manifest.
pub(super) fn decision(manifest: &Hash) -> Vec<u8> {
    manifest.0.to_vec()
}

/// Returns whether a decision is acceptable for a manifest. It may have additional bytes, so that there are
/// several acceptable decisions.
fn acceptable(decision: &[u8], manifest: &Hash) -> bool {
    decision.starts_with(&manifest.0)
}

/// What a member stores besides its journal.
#[derive(Debug, Clone, Default)]
pub(super) struct MemberStore {
    /// Models.
    pub(super) blobs: BTreeSet<Hash>,
    /// Outcomes computed or adopted.
    pub(super) outcomes: BTreeSet<Hash>,
    /// The state that every round started from.
    pub(super) states: BTreeMap<u64, Hash>,
    /// Secrets of secure-aggregation rounds, by epoch and round.
    pub(super) secrets: BTreeMap<(Hash, u64), BareSecret>,
}

/// Draws how long a piece of work takes.
pub(super) fn duration(random: &mut Random, request: &Request) -> Duration {
    let (least, most) = match request {
        Request::Train { .. } | Request::Prepare { .. } if random.chance(0.05) => (3_000, 12_000),
        Request::Train { .. } | Request::Prepare { .. } => (300, 1_500),
        Request::Evaluate { .. } | Request::Decide { .. } => (50, 400),
        Request::Check { .. } | Request::Settle { .. } => (20, 200),
        _ => (1, 20),
    };
    random.span(Duration::from_millis(least), Duration::from_millis(most))
}

/// Performs a piece of work of the node `at`, one of `n` members. `fetch` says whether one of the holders serves a blob.
pub(super) fn perform(
    (at, n): (usize, usize),
    store: &mut MemberStore,
    options: &BareOptions,
    request: &Request,
    fetch: &dyn Fn(&Hash, &[MemberIndex]) -> bool,
) -> Option<Answer> {
    let mut worker = Worker {
        at,
        n,
        store,
        options,
        fetch,
    };
    Some(match request {
        &Request::Plan { round, state } => worker.plan(round, state),
        &Request::Train { round } => worker.train(round),
        Request::Admit {
            round,
            fields,
            from,
        } => worker.admit(*round, fields, *from),
        Request::Evaluate {
            round,
            entries,
            holders,
        } => worker.evaluate(*round, entries, holders),
        Request::Hold {
            round,
            entries,
            holders,
        } => worker.hold(*round, entries, holders),
        Request::Decide {
            manifest, holders, ..
        } => worker.decide(manifest, holders),
        Request::Check { case, .. } => check(case),
        Request::Settle { case, holders } => worker.settle(case, holders),
        Request::Keep {
            round,
            outcome,
            holders,
        } => Answer::Kept {
            round: *round,
            outcome: *outcome,
            result: worker.get_outcome(outcome, holders),
        },
        // Done by the simulator itself: see `masked_work`.
        Request::Prepare { .. }
        | Request::CheckKeys { .. }
        | Request::Mask { .. }
        | Request::Verify { .. }
        | Request::Unmask { .. }
        | Request::Combine { .. } => return None,
        Request::Apply { rounds, holders } => {
            let last = rounds.last()?;
            Answer::Applied {
                round: last.round,
                ends: false,
                result: worker.get_outcome(&last.outcome, holders),
            }
        }
    })
}

/// The node `at`, one of `n` members, at work.
struct Worker<'a> {
    at: usize,
    n: usize,
    store: &'a mut MemberStore,
    options: &'a BareOptions,
    /// Whether one of the holders serves a blob.
    fetch: &'a dyn Fn(&Hash, &[MemberIndex]) -> bool,
}

impl Worker<'_> {
    /// Stores a model; an error if it is neither here nor served.
    fn get(&mut self, blob: &Hash, holders: &[MemberIndex]) -> Result<(), WorkError> {
        let here = self.store.blobs.contains(blob) || (self.fetch)(blob, holders);
        if here {
            self.store.blobs.insert(*blob);
            Ok(())
        } else {
            Err(WorkError::Unavailable)
        }
    }

    /// Stores the models of all entries; an error at the first that is neither here nor served.
    fn get_all(&mut self, entries: &[Entry], holders: &[MemberIndex]) -> Result<(), WorkError> {
        let mut all = entries.iter();
        all.try_for_each(|entry| self.get(&entry.fields.blob, holders))
    }

    /// Stores an outcome; an error if it is neither here nor served.
    fn get_outcome(&mut self, outcome: &Hash, holders: &[MemberIndex]) -> Result<(), WorkError> {
        let here = self.store.outcomes.contains(outcome) || (self.fetch)(outcome, holders);
        if here {
            self.store.outcomes.insert(*outcome);
            Ok(())
        } else {
            Err(WorkError::Unavailable)
        }
    }

    fn plan(&mut self, round: u64, state: Hash) -> Answer {
        self.store.states.insert(round, state);
        let plan = Hash::labelled("plan", &[&round.to_le_bytes(), &state.0]);
        Answer::Planned(Planned {
            round,
            plan,
            participants: self.options.plans.participants(self.n, round, &state),
            // The hash serves as a random number.
            cross_evaluate: self
                .options
                .cross_evaluate
                .unwrap_or(plan.0[0].is_multiple_of(2)),
            weights: false,
            blob_size: MODEL_BYTES,
            voids: Voids::default(),
        })
    }

    fn train(&mut self, round: u64) -> Answer {
        let at = (self.at as u16).to_le_bytes();
        let blob = Hash::labelled("model", &[&at, &round.to_le_bytes()]);
        self.store.blobs.insert(blob);
        let fields = EntryFields {
            blob,
            size: MODEL_BYTES,
            coalition: None,
            weight: None,
            member: None,
        };
        Answer::Trained {
            round,
            result: Ok(Trained {
                fields,
                metrics: Vec::new(),
            }),
        }
    }

    fn admit(&mut self, round: u64, fields: &EntryFields, from: MemberIndex) -> Answer {
        let result = self.get(&fields.blob, &[from]);
        Answer::Admitted {
            round,
            from,
            fields: fields.clone(),
            result,
        }
    }

    fn evaluate(&mut self, round: u64, entries: &[Entry], holders: &[MemberIndex]) -> Answer {
        let mut losses: Result<Vec<_>, _> = entries
            .iter()
            .map(|entry| {
                let blob = entry.fields.blob;
                self.get(&blob, holders)?;
                let hash = Hash::labelled("loss", &[&(self.at as u16).to_le_bytes(), &blob.0]);
                Ok((blob, f64::from(u16::from_le_bytes([hash.0[0], hash.0[1]]))))
            })
            .collect();
        if let Ok(losses) = &mut losses {
            losses.sort_by_key(|&(blob, _)| blob);
        }
        Answer::Evaluated {
            round,
            result: losses,
        }
    }

    fn hold(&mut self, round: u64, entries: &[Entry], holders: &[MemberIndex]) -> Answer {
        let result = self.get_all(entries, holders);
        Answer::Held {
            round,
            blobs: entries.iter().map(|entry| entry.fields.blob).collect(),
            result,
        }
    }

    fn decide(&mut self, manifest: &RoundManifest, holders: &[MemberIndex]) -> Answer {
        let root = manifest.root();
        let result = self.get_all(&manifest.entries, holders);
        Answer::Decided {
            manifest: root,
            result: result.map(|()| decision(&root)),
        }
    }

    fn settle(&mut self, case: &Case, holders: &[MemberIndex]) -> Answer {
        let result = self
            .get_all(&case.manifest.entries, holders)
            .and_then(|()| settle(self.store, case));
        Answer::Settled {
            case: case.id(),
            result,
        }
    }
}

fn check(case: &Case) -> Answer {
    let right = acceptable(&case.decision, &case.manifest.root());
    let no = || WorkError::Refused("not the decision that this sheet asks for".into());
    Answer::Checked {
        case: case.id(),
        result: if right { Ok(()) } else { Err(no()) },
    }
}

fn settle(store: &mut MemberStore, case: &Case) -> Result<Hash, WorkError> {
    let state = store
        .states
        .get(&case.round)
        .ok_or(WorkError::Unavailable)?;
    let outcome = outcome(state, case.round, &case.manifest.root());
    store.outcomes.insert(outcome);
    Ok(outcome)
}
