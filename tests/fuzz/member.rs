//! `Member::step` on arbitrary sequences of inputs: messages of other members that may say anything,
//! certificates of a quorum, answers to work, time, crashes.
//!
//! Every other member is faulty here, far more than the protocol tolerates, so nothing is asserted
//! but that the member goes on.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rota::protocol::certificate::{Certificate, Checked, Verdict, Vote};
use rota::protocol::effects::{Effect, Input, Report};
use rota::protocol::envelope::{self, Opened};
use rota::protocol::identity::Signature;
use rota::protocol::member::{Config, Start};
use rota::protocol::message::{
    Amendment, Block, Body, Content, Contribution, ContributionList, Entry, EntryFields, Learning,
    Message, Proposal, RoundManifest,
};
use rota::protocol::privacy::Voids;
use rota::protocol::work::{Answer, Planned, Request, Trained, WorkError};
use rota::protocol::{Epoch, Hash, Member, MemberIndex, Record, Time, codec};

use super::engine::{FuzzTarget, fuzz, gist};
use super::world::{epoch, frames, key};

/// Inputs that are kept for later at most, of each kind.
const KEPT: usize = 64;

/// The bytes of an input, one after another; 0 behind the last.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        (*first).into()
    }
}

/// One member, and what it has said and asked for.
pub(crate) struct MemberWorld {
    epoch: Arc<Epoch>,
    member: Member,
    now: Time,
    pub(crate) journal: Vec<Record>,
    work: VecDeque<Effect>,
    /// Bodies of messages: examples of every kind, and then its own.
    bodies: Vec<Body>,
    examples: usize,
    plan: Hash,
    contribution: Option<Contribution>,
    tip: (Hash, Option<Certificate>),
    /// Hashes of blocks that were proposed.
    blocks: Vec<Hash>,
    starts: u8,
    over: bool,
    /// What was reported, in words.
    reports: BTreeSet<String>,
}

fn fields(blob: Hash) -> EntryFields {
    EntryFields {
        blob,
        size: 100,
        coalition: None,
        weight: None,
        member: None,
    }
}

fn config(epoch: &Arc<Epoch>, starts: u8) -> Config {
    Config::new(epoch.clone(), MemberIndex(0), key(0), [starts; 32])
}

impl MemberWorld {
    pub(crate) fn new() -> Self {
        let epoch = Arc::new(epoch());
        let bodies = frames()
            .into_iter()
            .filter_map(|frame| envelope::read(&frame).ok());
        let bodies: Vec<_> = bodies.map(|message| message.body).collect();
        let mut effects = Vec::new();
        let member = Member::new(config(&epoch, 0), Start::New, Time::ZERO, &mut effects);
        let mut world = Self {
            tip: (epoch.id, None),
            epoch,
            member,
            now: Time::ZERO,
            journal: Vec::new(),
            work: VecDeque::new(),
            examples: bodies.len(),
            bodies,
            plan: Hash([4; 32]),
            contribution: None,
            blocks: Vec::new(),
            starts: 0,
            over: false,
            reports: BTreeSet::new(),
        };
        world.follow(effects);
        world
    }

    fn follow(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { frame, .. } | Effect::Publish { frame } => {
                    let Ok(message) = envelope::read(&frame) else {
                        continue;
                    };
                    if let Body::Contribution(contribution) = &message.body {
                        self.contribution = Some(contribution.clone());
                    }
                    if let Body::Proposal(proposal) = &message.body {
                        self.blocks.push(proposal.block.hash());
                    }
                    if self.bodies.len() > self.examples + KEPT {
                        self.bodies.remove(self.examples);
                    }
                    self.bodies.push(message.body);
                }
                Effect::Persist(record) => {
                    if let Record::Final { blocks, proof } = &record
                        && let Some(last) = blocks.last()
                    {
                        self.tip = (last.hash(), Some(proof.clone()));
                    }
                    self.journal.push(record);
                }
                Effect::EpochOver(_) => self.over = true,
                Effect::Report(report) => drop(
                    self.reports.insert(match report {
                        Report::Refused { reason, .. } => gist(&reason.to_string()),
                        Report::Nullifying { reason, .. } => gist(&reason.to_string()),
                        report => gist(
                            format!("{report:?}")
                                .split(['(', '{'])
                                .next()
                                .unwrap_or_default(),
                        ),
                    }),
                ),
                work if self.work.len() < KEPT => self.work.push_back(work),
                _ => {}
            }
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.member.step(self.now, input, &mut effects);
        self.follow(effects);
    }

    /// A member says something in this round and view, or near them.
    fn say(&mut self, bytes: &mut Bytes<'_>, sender: MemberIndex, body: Body) {
        let scope = body.kind().scope();
        let near = |number: u64, shift: usize| match shift % 16 {
            0..12 => number,
            12 => number + 1,
            13 => number.saturating_sub(1).max(1),
            14 => number + 7,
            _ => u64::MAX,
        };
        let (round, view) = (
            near(self.member.round(), bytes.next()),
            near(self.member.view(), bytes.next()),
        );
        self.step(Input::Opened(Opened::Message(Message {
            round: if scope.round { round } else { 0 },
            view: if scope.view { view } else { 0 },
            sender,
            body,
            signature: Signature::from_bytes(&[7; 64]),
        })));
    }

    /// The result of a piece of work, right or not.
    fn answer(&mut self, work: Effect, fails: bool) -> Option<Input> {
        let failed = |fails: bool| {
            if fails {
                Err(WorkError::Unavailable)
            } else {
                Ok(())
            }
        };
        Some(match work {
            Effect::Work(Request::Plan { round, state }) => {
                self.plan = Hash::labelled("plan", &[&round.to_le_bytes(), &state.0]);
                Input::Done(Answer::Planned(Planned {
                    round,
                    plan: self.plan,
                    participants: fails.then(|| vec![MemberIndex(0), MemberIndex(2)]),
                    cross_evaluate: self.plan.0[0].is_multiple_of(2),
                    weights: false,
                    blob_size: 100,
                    voids: Voids::default(),
                }))
            }
            Effect::Work(Request::Train { round }) => Input::Done(Answer::Trained {
                round,
                result: if fails {
                    Err("no rows".into())
                } else {
                    Ok(Trained {
                        fields: fields(Hash::labelled("model", &[&round.to_le_bytes()])),
                        metrics: Vec::new(),
                    })
                },
            }),
            Effect::Work(Request::Admit {
                round,
                fields,
                from,
            }) => Input::Done(Answer::Admitted {
                round,
                from,
                fields,
                result: failed(fails),
            }),
            Effect::Work(Request::Evaluate { round, entries, .. }) => {
                let mut losses: Vec<_> = entries
                    .iter()
                    .map(|entry| (entry.fields.blob, 0.5))
                    .collect();
                losses.sort_by_key(|(blob, _)| *blob);
                Input::Done(Answer::Evaluated {
                    round,
                    result: failed(fails).map(|()| losses),
                })
            }
            Effect::Work(Request::Hold { round, entries, .. }) => Input::Done(Answer::Held {
                round,
                blobs: entries.iter().map(|entry| entry.fields.blob).collect(),
                result: failed(fails),
            }),
            Effect::Work(Request::Decide { manifest, .. }) => Input::Done(Answer::Decided {
                manifest: manifest.root(),
                result: failed(fails).map(|()| vec![1]),
            }),
            Effect::Work(Request::Check { case, .. }) => Input::Done(Answer::Checked {
                case: case.id(),
                result: if fails {
                    Err(WorkError::Refused("worse".into()))
                } else {
                    Ok(())
                },
            }),
            Effect::Work(Request::Settle { case, .. }) => Input::Done(Answer::Settled {
                case: case.id(),
                result: failed(fails).map(|()| outcome(&case.manifest.root())),
            }),
            Effect::Work(Request::Keep { round, outcome, .. }) => Input::Done(Answer::Kept {
                round,
                outcome,
                result: failed(fails),
            }),
            Effect::Work(Request::Apply { rounds, .. }) => Input::Done(Answer::Applied {
                round: rounds.last()?.round,
                ends: false,
                result: failed(fails),
            }),
            _ => return None,
        })
    }

    /// What a lead would send: a contribution list, a manifest or a proposal around this member's own entry.
    fn lead(&mut self, bytes: &mut Bytes<'_>) {
        let round = self.member.round();
        let invented = |nonce: u8| Contribution {
            plan: self.plan,
            fields: fields(Hash([nonce; 32])),
            nonce: [nonce; 32],
            metrics: Vec::new(),
        };
        let others = (0..1 + bytes.next() % 4).map(|at| invented(at as u8));
        let all = self.contribution.clone().into_iter().chain(others);
        let mut entries: Vec<Entry> = all
            .map(|one| one.entry(&self.epoch.federation, round))
            .collect();
        entries.sort_by_key(|entry| entry.id);
        let scored = bytes.next().is_multiple_of(2);
        let row = || entries.iter().map(|_| 0.5).collect();
        let manifest = RoundManifest {
            scores: scored.then(|| entries.iter().map(|_| row()).collect()),
            entries: entries.clone(),
        };
        let root = manifest.root();
        let signed = |at: u16| (MemberIndex(at), Signature::from_bytes(&[7; 64]));
        let body = match bytes.next() % 3 {
            0 => Body::ContributionList(ContributionList { entries }),
            1 => Body::Manifest(manifest),
            _ => {
                let content = match bytes.next() % 4 {
                    0 => Content::Empty,
                    _ => Content::Learning(Learning {
                        round,
                        plan: self.plan,
                        manifest: root,
                        inclusions: (0..entries.len().min(4) as u16).map(signed).collect(),
                        decision: vec![1],
                        outcome: outcome(&root),
                    }),
                };
                let block = Block {
                    epoch: self.epoch.id,
                    view: self.member.view(),
                    parent: self.tip.0,
                    content,
                };
                self.blocks.push(block.hash());
                Body::Proposal(Box::new(Proposal {
                    block,
                    parent: self.tip.1.clone(),
                    skipped: Vec::new(),
                }))
            }
        };
        let lead = self.member.lead_now();
        self.say(bytes, lead, body);
    }

    fn certificate(&mut self, bytes: &mut Bytes<'_>) {
        let block = self.blocks.len().checked_sub(1 + bytes.next() % 4);
        let block = block.map_or(Hash([6; 32]), |at| self.blocks[at]);
        let (verdict, checked) = match bytes.next() % 3 {
            0 => (Verdict::Nullified, Checked::Structure),
            1 => (
                Verdict::Notarised(block),
                Checked::Outcome(self.epoch.protocol.verification),
            ),
            _ => (Verdict::Final(block), Checked::Structure),
        };
        let vote = |member: u16| Vote {
            member: MemberIndex(member),
            checked,
            signature: Signature::from_bytes(&[7; 64]),
        };
        let view = self.member.view() + bytes.next() as u64 % 8;
        self.step(Input::Opened(Opened::Certificate(Certificate {
            view: view.saturating_sub(2).max(1),
            verdict,
            votes: (1..4).map(vote).collect(),
        })));
    }

    /// The member crashes, and restarts with its journal or without.
    fn restart(&mut self, lost: bool) {
        self.starts = self.starts.wrapping_add(1);
        self.work.clear();
        let start = if lost {
            Start::Lost
        } else {
            Start::Kept(self.journal.clone())
        };
        if lost {
            self.journal.clear();
        }
        let mut effects = Vec::new();
        self.member = Member::new(
            config(&self.epoch, self.starts),
            start,
            self.now,
            &mut effects,
        );
        self.follow(effects);
    }

    /// Does what the bytes say.
    pub(crate) fn play(&mut self, input: &[u8]) {
        let mut bytes = Bytes(input);
        let bytes = &mut bytes;
        while !bytes.0.is_empty() && !self.over {
            let other = |byte: usize| MemberIndex(1 + byte as u16 % 3);
            match bytes.next() % 16 {
                0 | 1 => {
                    let body = self.bodies[bytes.next() % self.bodies.len()].clone();
                    let sender = other(bytes.next());
                    self.say(bytes, sender, body);
                }
                2 => {
                    // What it said last, as if another member had said it.
                    let back = bytes.next() % 4;
                    let last = self.bodies.len().saturating_sub(1 + back);
                    let body = self.bodies[last].clone();
                    let sender = other(bytes.next());
                    self.say(bytes, sender, body);
                }
                3 => {
                    let body = &self.bodies[bytes.next() % self.bodies.len()];
                    let mut changed = codec::encode(body);
                    for _ in 0..1 + bytes.next() % 3 {
                        let at = (bytes.next() * 256 + bytes.next()) % changed.len();
                        changed[at] = bytes.next() as u8;
                    }
                    let sender = other(bytes.next());
                    if let Ok(body) = codec::decode::<Body>(&changed, codec::LIMIT) {
                        self.say(bytes, sender, body);
                    }
                }
                4..=6 => {
                    if let Some(work) = self.work.pop_front()
                        && let Some(input) = self.answer(work, false)
                    {
                        self.step(input);
                    }
                }
                7 => {
                    let work = self.work.pop_back();
                    let fails = !bytes.next().is_multiple_of(3);
                    if let Some(input) = work.and_then(|work| self.answer(work, fails)) {
                        self.step(input);
                    }
                }
                8 => {
                    self.now = self.now + Duration::from_millis(250) * bytes.next() as u32;
                    self.step(Input::Time);
                }
                9 => {
                    if let Some(due) = self.member.deadline() {
                        self.now = self.now.max(due);
                    }
                    self.step(Input::Time);
                }
                10 | 11 => self.lead(bytes),
                12 => self.certificate(bytes),
                13 => {
                    let (peer, up) = (MemberIndex(bytes.next() as u16 % 4), bytes.next());
                    let round_trip = Duration::from_millis(up as u64);
                    self.step(match up % 2 {
                        0 => Input::Up { peer, round_trip },
                        _ => Input::Down { peer },
                    });
                }
                14 => {
                    let leaver = MemberIndex(bytes.next() as u16 % 4);
                    let mut amendment = Amendment::leaving(&self.epoch, leaver);
                    amendment.protocol.rounds += bytes.next() as u64;
                    self.step(Input::Approve {
                        amendment: Box::new(amendment),
                        number: 1 + bytes.next() as u64,
                    });
                }
                _ => {
                    let lost = bytes.next() % 8 == 7;
                    self.restart(lost);
                }
            }
        }
    }
}

fn outcome(manifest: &Hash) -> Hash {
    Hash::labelled("outcome", &[&manifest.0])
}

/// Sequences that lead somewhere: work is answered, other members repeat what this one says, time
/// passes, leads propose.
pub(crate) fn sequences() -> Vec<Vec<u8>> {
    let answers = [4, 4, 4];
    let repeated = [2, 0, 0, 0, 0, 2, 0, 1, 0, 0, 2, 0, 2, 0, 0];
    let proposed = [10, 1, 1, 0, 0, 0, 10, 1, 1, 1, 0, 0, 10, 1, 1, 2, 1, 0, 0];
    let certified = [12, 0, 1, 2, 4, 12, 0, 2, 2, 4];
    let rounds = |pieces: &[&[u8]]| pieces.concat().repeat(12);
    vec![
        rounds(&[&answers, &repeated, &[9]]),
        rounds(&[&answers, &proposed, &answers, &certified, &repeated]),
        rounds(&[&answers, &[12, 0, 0, 2, 4], &repeated, &[9, 9, 8, 40]]),
        rounds(&[&answers, &repeated, &certified, &[15, 0], &answers, &[9]]),
        rounds(&[&[14, 3, 0], &answers, &repeated, &[9], &certified]),
    ]
}

#[test]
fn steps_of_a_member() {
    let mut run = |input: &[u8]| {
        let mut world = MemberWorld::new();
        world.play(&input[..input.len().min(4096)]);
        if !world.over {
            world.restart(false);
        }
        let (view, round) = (world.member.view().min(9), world.member.round().min(9));
        // The rarest reports say most.
        let reports: Vec<_> = world.reports.iter().map(String::as_str).collect();
        format!(
            "{view} {round} {} {} {}",
            world.over,
            world.member.complete(),
            reports.join(",")
        )
    };
    fuzz(FuzzTarget {
        name: "member",
        examples: sequences(),
        words: &[],
        inputs: 400,
        memory: |length| (32 << 20) + 16_000 * length,
        run: &mut run,
    });
}
