//! One's own part of a round. Everything here belongs to the round and its plan, never to a view:
//! a change of view neither stops nor restarts it, and nobody trains twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::sheets::Sheets;
use super::{ByMember, Inclusions, Member};
use crate::charter::Epoch;
use crate::effects::{Effect, FinalRound, Planned, Record, Report, Trained, WorkError};
use crate::envelope;
use crate::hash::Hash;
use crate::message::{Body, Bundle, Contribution, Entry, Message, Scores, Sheet};
use crate::message::{METRIC_NAME, METRICS};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

pub(super) struct Round {
    pub(super) number: u64,
    /// When the last learning block became final here, or when this member started.
    pub(super) started: Time,
    pub(super) plan: Option<Planned>,
    /// Whom the plan names, ascending.
    pub(super) participants: Vec<MemberIndex>,
    planning: bool,
    training: Training,
    /// A finished training that is not signed yet.
    trained: Option<Trained>,
    own: Option<Own>,
    losses: BTreeMap<Hash, f64>,
    evaluating: bool,
    /// Entries that the lead waits for scores of.
    wanted: Option<Vec<Entry>>,
    /// The whole bundle was seen: one's own blob is no secret any more.
    pub(super) open: bool,
    pub(super) sheets: Sheets,
    /// Blobs of entries that are kept here, so that this member can give them to others.
    pub(super) held: BTreeSet<Hash>,
    /// The sheet that this member signs for once it holds all of its blobs.
    pub(super) signing: Option<Hash>,
    pub(super) holding: bool,
    /// A sheet with its inclusions, as proposed in an earlier view.
    pub(super) proposed: Option<(Arc<Sheet>, Inclusions)>,
    /// Cases found acceptable, and outcomes computed.
    pub(super) checked: BTreeSet<Hash>,
    pub(super) settled: BTreeMap<Hash, Result<Hash, WorkError>>,
    /// Contributions received, for this round and the next.
    pub(super) inbox: ByMember<Message>,
    early: ByMember<Message>,
    /// Who sent a contribution of an earlier round.
    stale: BTreeSet<MemberIndex>,
    /// What became of the blob that each member contributed.
    pub(super) admissions: ByMember<Admission>,
    /// Whose contribution is not what the plan asks for, whatever its model.
    pub(super) objected: BTreeSet<MemberIndex>,
    pub(super) rows: ByMember<Scores>,
    /// Who took no part in the last final round that it was asked to take part in.
    absent: ByMember<Absence>,
    /// Final rounds not adopted yet, oldest first.
    pub(super) unapplied: Vec<FinalRound>,
    applying: Applying,
    pub(super) applied: u64,
}

/// How long a member has been missing.
#[derive(Clone, Copy)]
struct Absence {
    /// Rounds that waited for it in vain.
    missed: u32,
    /// The first round that waits for it again, if it can be reached then: the second after the
    /// first such round, then the fourth, the eighth, and so on. So a slow member gets back in, and
    /// one that is there and never contributes costs less and less.
    until: u64,
}

/// Whether outcomes are being adopted.
#[derive(Clone, Copy, PartialEq)]
enum Applying {
    Idle,
    Running,
    /// Something could not be had; again after a beat.
    Stalled,
}

#[derive(PartialEq)]
enum Training {
    Due,
    Running,
    Over,
}

/// What became of a contributed blob.
#[derive(Clone, PartialEq)]
pub(super) enum Admission {
    Pending,
    Retry,
    Usable,
    Refused,
}

pub(super) struct Own {
    message: Message,
    frame: Bytes,
    entry: Entry,
}

impl Round {
    pub(super) fn new(number: u64, now: Time) -> Self {
        Self {
            number,
            started: now,
            plan: None,
            participants: Vec::new(),
            planning: false,
            training: Training::Due,
            trained: None,
            own: None,
            losses: BTreeMap::new(),
            evaluating: false,
            wanted: None,
            open: false,
            sheets: Sheets::default(),
            held: BTreeSet::new(),
            signing: None,
            holding: false,
            proposed: None,
            checked: BTreeSet::new(),
            settled: BTreeMap::new(),
            inbox: BTreeMap::new(),
            early: BTreeMap::new(),
            stale: BTreeSet::new(),
            admissions: BTreeMap::new(),
            objected: BTreeSet::new(),
            rows: BTreeMap::new(),
            absent: BTreeMap::new(),
            unapplied: Vec::new(),
            applying: Applying::Idle,
            applied: 0,
        }
    }

    /// Goes on to another round, the one before it final with contributions of `authors`; what is
    /// still to be adopted stays. `waited_for` says who was.
    pub(super) fn close(
        &mut self,
        number: u64,
        authors: &[MemberIndex],
        waited_for: &[MemberIndex],
        now: Time,
    ) {
        let mut next = Self::new(number, now);
        let mut absent = self.absent.clone();
        if number == self.number + 1 {
            next.inbox = std::mem::take(&mut self.early);
            for &member in waited_for {
                let absence = absent.entry(member).or_insert(Absence {
                    missed: 0,
                    until: 0,
                });
                absence.missed = (absence.missed + 1).min(10);
                absence.until = self.number + (1 << absence.missed);
            }
        }
        absent.retain(|member, _| authors.binary_search(member).is_err());
        next.absent = absent;
        next.unapplied = std::mem::take(&mut self.unapplied);
        (next.applying, next.applied) = (self.applying, self.applied);
        *self = next;
    }

    /// For tests: a member is excused in rounds before `until`.
    #[cfg(test)]
    pub(super) fn excuse(&mut self, member: MemberIndex, until: u64) {
        let missed = 1;
        self.absent.insert(member, Absence { missed, until });
    }

    /// Whether this round need not wait for a member beyond D.
    pub(super) fn excuses(&self, member: MemberIndex, reachable: bool) -> bool {
        let absence = self.absent.get(&member);
        absence.is_some_and(|absence| !reachable || self.number < absence.until)
    }

    /// One's own contribution, as made durable before a restart.
    pub(super) fn take_back(&mut self, epoch: &Epoch, message: Message) {
        let Body::Contribution(contribution) = &message.body else {
            return;
        };
        let entry = contribution.entry(&epoch.federation, self.number);
        let frame = envelope::reseal(epoch, &message);
        self.held.insert(entry.fields.blob);
        self.own = Some(Own {
            entry,
            frame,
            message,
        });
        self.training = Training::Over;
    }

    pub(super) fn own_entry(&self) -> Option<&Entry> {
        self.own.as_ref().map(|own| &own.entry)
    }

    pub(super) fn may_serve(&self, blob: &Hash) -> bool {
        let signed = self.own_entry().map(|entry| entry.fields.blob);
        let trained = self.trained.as_ref().map(|trained| trained.fields.blob);
        self.open || signed.or(trained) != Some(*blob)
    }

    /// Whether a member takes part in this round.
    pub(super) fn participates(&self, member: MemberIndex) -> bool {
        self.participants.binary_search(&member).is_ok()
    }

    /// A contribution that a member is known to have signed, of this round or the next.
    pub(super) fn contributed(&self, member: MemberIndex) -> Option<&Message> {
        self.early.get(&member).or_else(|| self.inbox.get(&member))
    }

    /// Whether this is one's own contribution.
    pub(super) fn remembers(&self, message: &Message) -> bool {
        let own = self.own.as_ref().map(|own| &own.message);
        own.is_some_and(|own| match (&own.body, &message.body) {
            (Body::Contribution(a), Body::Contribution(b)) => {
                own.round == message.round && a.same(b)
            }
            _ => false,
        })
    }

    /// These blobs are kept here.
    pub(super) fn hold(&mut self, blobs: impl IntoIterator<Item = Hash>) {
        self.held.extend(blobs);
    }

    /// The entries whose blobs are not kept here.
    pub(super) fn not_held(&self, entries: &[Entry]) -> Vec<Entry> {
        let missing = |entry: &&Entry| !self.held.contains(&entry.fields.blob);
        entries.iter().filter(missing).cloned().collect()
    }

    /// A beat has passed: what could not be had may be asked for again.
    pub(super) fn retry(&mut self) {
        self.admissions
            .retain(|_, admission| *admission != Admission::Retry);
    }

    /// One's own losses of these entries, if all were measured.
    pub(super) fn row(&self, entries: &[Entry]) -> Option<Vec<f64>> {
        entries
            .iter()
            .map(|entry| self.losses.get(&entry.fields.blob).copied())
            .collect()
    }
}

impl Member {
    /// Adopts what became final (R4).
    pub(super) fn apply(&mut self) {
        if self.round.applying != Applying::Idle || self.round.unapplied.is_empty() {
            return;
        }
        self.round.applying = Applying::Running;
        // Who voted is asked first, but only who computed it is sure to have it.
        let voters = self.chain.tip.proof.iter().flat_map(|proof| &*proof.votes);
        let voters: BTreeSet<_> = voters.map(|vote| vote.member).collect();
        let mut holders = self.others();
        holders.sort_by_key(|member| !voters.contains(member));
        self.out.push(Effect::Apply {
            rounds: self.round.unapplied.clone(),
            holders,
        });
    }

    pub(super) fn applied(&mut self, round: u64, result: Result<(), WorkError>) {
        match result {
            Ok(()) => {
                self.round.applying = Applying::Idle;
                self.round.applied = self.round.applied.max(round);
                self.round.unapplied.retain(|waiting| waiting.round > round);
            }
            Err(WorkError::Unavailable) => self.round.applying = Applying::Stalled,
            Err(WorkError::Refused(reason)) => {
                self.round.applying = Applying::Stalled;
                self.refuse(self.me(), round, Refusal::Work(reason));
            }
        }
        let last = self.config.epoch.charter.rounds;
        if self.round.applied >= last && !self.complete {
            self.completed();
        }
    }

    /// Asks for the plan once the state it follows from is adopted.
    pub(super) fn plan(&mut self) {
        let ready = self.round.applied + 1 == self.round.number;
        if !ready || self.complete || self.round.planning || self.round.plan.is_some() {
            return;
        }
        self.round.planning = true;
        let state = self.chain.learned.outcome;
        self.out.push(Effect::Plan {
            round: self.round.number,
            state,
        });
    }

    pub(super) fn planned(&mut self, planned: Planned) {
        if planned.round == self.round.number {
            let all = || self.config.epoch.roster.members().collect();
            self.round.participants = planned.participants.clone().unwrap_or_else(all);
            self.round.plan = Some(planned);
        }
    }

    /// Trains and scores, as far as that is due.
    pub(super) fn work(&mut self) {
        let Some(plan) = &self.round.plan else { return };
        let idle = self.complete || self.sync.lost();
        let round = plan.round;
        if self.round.training == Training::Due && !idle && self.round.participates(self.me()) {
            self.round.training = Training::Running;
            self.out.push(Effect::Train { round });
        }
        let Some(entries) = self.round.wanted.clone() else {
            return;
        };
        let Some(own) = self.round.own_entry().map(|entry| entry.id) else {
            return;
        };
        let missing: Vec<_> = entries
            .iter()
            .filter(|entry| !self.round.losses.contains_key(&entry.fields.blob))
            .cloned()
            .collect();
        if missing.is_empty() {
            self.round.wanted = None;
            let mut losses: Vec<_> = entries
                .iter()
                .filter_map(|entry| {
                    let blob = entry.fields.blob;
                    self.round.losses.get(&blob).map(|&loss| (blob, loss))
                })
                .collect();
            losses.sort_by_key(|(blob, _)| *blob);
            losses.dedup_by_key(|(blob, _)| *blob);
            let scores = Body::Scores(Scores { entry: own, losses });
            let (message, frame) = self.seal(round, 0, scores);
            self.send(self.view.lead, &message, &frame);
        } else if !self.round.evaluating {
            self.round.evaluating = true;
            let holders = self.holders();
            self.out.push(Effect::Evaluate {
                round,
                entries: missing,
                holders,
            });
        }
    }

    /// Who may have the blobs of this round: its lead first, then anybody.
    pub(super) fn holders(&self) -> Vec<MemberIndex> {
        let mut holders = self.others();
        let lead = self.view.lead;
        holders.sort_by_key(|&member| member != lead);
        holders
    }

    pub(super) fn trained(&mut self, round: u64, result: Result<Trained, String>) {
        if round != self.round.number || self.round.training != Training::Running {
            return;
        }
        self.round.training = Training::Over;
        match result {
            Ok(trained) => self.round.trained = Some(trained),
            Err(reason) => {
                let report = Report::TrainingFailed { round, reason };
                self.out.push(Effect::Report(report));
            }
        }
    }

    /// Signs a finished training, unless this member only listens, and sends it to the lead.
    pub(super) fn contribute(&mut self) {
        if self.sync.listening() || self.complete {
            return;
        }
        let Some(trained) = self.round.trained.take() else {
            return;
        };
        let round = self.round.number;
        let Some(plan) = self.round.plan.as_ref().map(|plan| plan.plan) else {
            return;
        };
        let epoch = &self.config.epoch;
        let nonce = self
            .config
            .key
            .derive("nonce", &[&epoch.federation.0, &round.to_le_bytes()]);
        let blob = trained.fields.blob;
        let mut trained = trained;
        let sane = |(name, value): &(String, f64)| value.is_finite() && name.len() <= METRIC_NAME;
        trained.metrics.retain(sane);
        trained.metrics.truncate(METRICS);
        let contribution = Contribution {
            plan,
            fields: trained.fields,
            nonce,
            metrics: trained.metrics,
        };
        let entry = contribution.entry(&epoch.federation, round);
        let (message, frame) = self.seal(round, 0, Body::Contribution(contribution));
        self.out
            .push(Effect::Persist(Record::Contributed(message.clone())));
        self.out
            .push(Effect::Report(Report::Contributed { round, blob }));
        self.round.hold([blob]);
        self.round.own = Some(Own {
            message,
            frame,
            entry,
        });
        self.send_contribution();
    }

    /// To the lead of the view, unless it has given its receipt.
    pub(super) fn send_contribution(&mut self) {
        let Some(own) = &self.round.own else { return };
        if self.view.receipt.is_none() && !self.sync.listening() && !self.complete {
            let (message, frame) = (own.message.clone(), own.frame.clone());
            self.send(self.view.lead, &message, &frame);
        }
    }

    pub(super) fn repeat_contribution(&mut self) {
        if self.view.lead != self.me() {
            self.send_contribution();
        }
        // A blob or an outcome that nobody had a beat ago may be there now.
        if self.round.applying == Applying::Stalled {
            self.round.applying = Applying::Idle;
        }
    }

    pub(super) fn receipt(&mut self, entry: Hash) {
        if self.round.own_entry().is_some_and(|own| own.id == entry) {
            self.view.receipt = Some(entry);
        }
    }

    /// A contribution, kept for whoever leads this round or the next.
    pub(super) fn contribution(&mut self, message: Message) {
        let sender = message.sender;
        if matches!(&message.body, Body::Contribution(own) if !own.has_sane_metrics()) {
            return self.refuse(sender, message.round, Refusal::Metrics);
        }
        let (kept, current) = match message.round.checked_sub(self.round.number) {
            Some(0) => (&mut self.round.inbox, true),
            Some(1) => (&mut self.round.early, false),
            _ => {
                let (round, now) = (message.round, self.round.number);
                if round < now && self.round.stale.insert(sender) {
                    let reason = Refusal::StaleContribution { got: round, now };
                    self.refuse(sender, now, reason);
                }
                return;
            }
        };
        match kept.get(&sender) {
            None => {
                kept.insert(sender, message);
            }
            // Signing the same again gives the same signature.
            Some(earlier) if earlier.signature != message.signature => {
                if let Some(evidence) = crate::evidence::Evidence::of(earlier, &message) {
                    let reason = Refusal::Contradiction(evidence.charge());
                    self.refuse(sender, message.round, reason);
                    self.accuse(evidence);
                }
            }
            Some(_) if current => self.repeat_receipt(sender),
            Some(_) => {}
        }
    }

    /// The set is closed: score its entries, or sign for it.
    pub(super) fn bundle(&mut self, round: u64, bundle: Bundle) {
        let Some(plan) = self.round.plan.as_ref().filter(|plan| plan.round == round) else {
            return;
        };
        let cross_evaluate = plan.cross_evaluate;
        if let Err(reason) = self.plausible(&bundle.entries) {
            let lead = self.view.lead;
            self.refuse(lead, round, reason.clone());
            return self.nullify(reason);
        }
        let listed = self.listed(&bundle.entries);
        self.round.open |= listed || self.round.own.is_none();
        if !cross_evaluate {
            self.include(Sheet {
                entries: bundle.entries,
                scores: None,
            });
        } else if listed {
            self.round.wanted = Some(bundle.entries);
        }
    }

    /// Entries and score rows: sign if one's own are in unchanged.
    pub(super) fn sheet(&mut self, round: u64, sheet: Sheet) {
        let Some(plan) = self.round.plan.as_ref().filter(|plan| plan.round == round) else {
            return;
        };
        let k = sheet.entries.len();
        let square = sheet.scores.as_ref().is_none_or(|rows| {
            let finite = |row: &Vec<f64>| row.len() == k && row.iter().all(|loss| loss.is_finite());
            rows.len() == k && rows.iter().all(finite)
        });
        let fitting = sheet.scores.is_some() == plan.cross_evaluate && square;
        let flaw = if fitting {
            self.plausible(&sheet.entries).err()
        } else {
            Some(Refusal::SheetShape)
        };
        match flaw {
            None => self.include(sheet),
            Some(reason) => {
                let lead = self.view.lead;
                self.refuse(lead, round, reason.clone());
                self.nullify(reason);
            }
        }
    }

    pub(super) fn evaluated(&mut self, round: u64, result: Result<Vec<(Hash, f64)>, WorkError>) {
        if round != self.round.number {
            return;
        }
        self.round.evaluating = false;
        match result {
            Ok(losses) => {
                // Their models were kept when they were fetched.
                self.round.hold(losses.iter().map(|(blob, _)| *blob));
                self.round.losses.extend(losses);
            }
            // The lead says its bundle again with its next beat.
            Err(WorkError::Unavailable) => self.round.wanted = None,
            Err(WorkError::Refused(reason)) => {
                self.round.wanted = None;
                let (lead, reason) = (self.view.lead, Refusal::Work(reason));
                self.refuse(lead, round, reason.clone());
                self.nullify(reason);
            }
        }
    }
}
