//! The lead's part of a round: take contributions, close the set, have it scored and signed for,
//! decide, propose.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::round::Admission;
use super::{ByMember, Inclusions, Member, Mutation};
use crate::certificate::Certificate;
use crate::effects::{Case, Effect, Record, Report, WorkError};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::message::{
    Block, Body, Bundle, Content, Contribution, Entry, Learning, Message, Phase, Proposal, Scores,
    Sheet,
};
use crate::roster::MemberIndex;
use crate::time::Time;

pub(super) struct Lead {
    stage: Stage,
    /// Whose contribution is in, with its entry.
    receipts: ByMember<Entry>,
    /// Sets closed again without somebody.
    reissues: usize,
    beats: u64,
    announced: Option<Phase>,
}

enum Stage {
    /// A notarised block has to become final first.
    Waiting,
    Collecting,
    Scoring {
        entries: Vec<Entry>,
        since: Time,
    },
    Including {
        sheet: Arc<Sheet>,
        root: Hash,
        since: Time,
        signed: ByMember<Signature>,
    },
    Deciding {
        sheet: Arc<Sheet>,
        root: Hash,
        inclusions: Inclusions,
    },
    Settling {
        case: Case,
        id: Hash,
        root: Hash,
        inclusions: Inclusions,
    },
    Voting {
        message: Message,
        frame: Bytes,
    },
    /// Gave up; somebody else will lead.
    Over,
}

impl Lead {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Collecting,
            receipts: BTreeMap::new(),
            reissues: 0,
            beats: 0,
            announced: None,
        }
    }

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Waiting => Phase::Waiting,
            Stage::Collecting => Phase::Collecting,
            Stage::Scoring { .. } => Phase::Scoring,
            Stage::Including { .. } => Phase::Including,
            Stage::Deciding { .. } | Stage::Settling { .. } => Phase::Deciding,
            // A lead that gave up still says that it is alive; its own Nullify says the rest.
            Stage::Voting { .. } | Stage::Over => Phase::Voting,
        }
    }

    /// The members whose entries these are.
    fn authors(&self, entries: &[Entry]) -> Vec<MemberIndex> {
        let listed = |entry: &Entry| entries.iter().any(|other| other.id == entry.id);
        self.receipts
            .iter()
            .filter(|(_, entry)| listed(entry))
            .map(|(&member, _)| member)
            .collect()
    }
}

impl Member {
    /// A view that this member leads begins, or a round within it.
    pub(super) fn take_the_lead(&mut self) {
        let durable = self.ballots.proposal(self.view.number).cloned();
        let waiting =
            self.chain.newest_notarised().is_some() && !self.broken(Mutation::RoundFromNotarised);
        let Some(lead) = &mut self.lead else { return };
        lead.stage = match durable {
            Some((message, frame)) => Stage::Voting { message, frame },
            None if waiting => Stage::Waiting,
            None => Stage::Collecting,
        };
        lead.receipts.clear();
        if lead.beats == 0 {
            self.progress();
        }
        if let Some(Lead {
            stage: Stage::Voting { message, frame },
            ..
        }) = &self.lead
        {
            let (message, frame) = (message.clone(), frame.clone());
            self.publish(message, frame);
        }
    }

    /// Tells everybody that the lead is alive.
    fn progress(&mut self) {
        let Some(lead) = &mut self.lead else { return };
        let body = Body::Progress {
            phase: lead.phase(),
            counter: lead.beats,
        };
        lead.beats += 1;
        let (message, frame) = self.seal(0, self.view.number, body);
        self.publish(message, frame);
    }

    /// Does whatever the lead can do now.
    pub(super) fn lead(&mut self) {
        loop {
            let before = self.lead.as_ref().map(Lead::phase);
            match self.lead.as_ref().map(|lead| &lead.stage) {
                None | Some(Stage::Over | Stage::Voting { .. }) => {}
                Some(Stage::Waiting) => self.wait(),
                Some(Stage::Collecting) => self.collect_contributions(),
                Some(Stage::Scoring { .. }) => self.collect_scores(),
                Some(Stage::Including { .. }) => self.collect_inclusions(),
                Some(Stage::Deciding { .. }) => {}
                Some(Stage::Settling { .. }) => self.propose_settled(),
            }
            let Some(lead) = &mut self.lead else { return };
            let phase = lead.phase();
            if lead.announced != Some(phase) && !matches!(lead.stage, Stage::Over) {
                lead.announced = Some(phase);
                let (view, round) = (self.view.number, self.round.number);
                self.out
                    .push(Effect::Report(Report::Leading { view, round, phase }));
            }
            if before == Some(phase) {
                return;
            }
        }
    }

    /// When the lead has to look again.
    pub(super) fn lead_deadline(&self) -> Vec<Time> {
        let entered = self.view.entered + self.phase_time();
        match self.lead.as_ref().map(|lead| &lead.stage) {
            Some(Stage::Waiting) => vec![entered],
            Some(Stage::Collecting) => {
                vec![entered, self.round.started + self.config.epoch.patience()]
            }
            Some(Stage::Scoring { since, .. }) => vec![*since + self.config.epoch.patience()],
            Some(Stage::Including { since, .. }) => vec![*since + self.phase_time()],
            _ => Vec::new(),
        }
    }

    /// A notarised block that does not become final in time gets an empty block on top, whose
    /// finality is its own.
    fn wait(&mut self) {
        let Some(notarised) = self.chain.newest_notarised().cloned() else {
            return self.stage(Stage::Collecting);
        };
        if self.now < self.view.entered + self.phase_time() {
            return;
        }
        let Some(parent) = notarised.verdict.block() else {
            return;
        };
        self.propose(Content::Empty, parent, Some(notarised));
    }

    fn stage(&mut self, stage: Stage) {
        if let Some(lead) = &mut self.lead {
            lead.stage = stage;
        }
    }

    /// Admits contributions, gives receipts, and closes the set when it is time.
    fn collect_contributions(&mut self) {
        let Some(plan) = self.round.plan.clone() else {
            return;
        };
        if self.adopt_sheet() {
            return;
        }
        let Some(lead) = &self.lead else { return };
        let admission = |message: &Message| match &message.body {
            Body::Contribution(contribution) => {
                self.round.admissions.get(&contribution.fields.blob)
            }
            _ => None,
        };
        let due: Vec<_> = self
            .round
            .inbox
            .values()
            .filter(|message| !lead.receipts.contains_key(&message.sender))
            .filter(|message| matches!(admission(message), None | Some(Admission::Usable)))
            .cloned()
            .collect();
        for message in due {
            let Body::Contribution(contribution) = &message.body else {
                continue;
            };
            let blob = contribution.fields.blob;
            match self.round.admissions.get(&blob) {
                Some(_) => self.accept(message.sender, contribution),
                None => match self.objection(&message, contribution) {
                    Some(reason) => {
                        self.round.admissions.insert(blob, Admission::Refused);
                        self.refuse(message.sender, plan.round, reason);
                    }
                    None => {
                        self.round.admissions.insert(blob, Admission::Pending);
                        self.out.push(Effect::Admit {
                            round: plan.round,
                            fields: contribution.fields.clone(),
                            from: message.sender,
                        });
                    }
                },
            }
        }
        if self.closing() {
            let Some(lead) = &self.lead else { return };
            let mut entries: Vec<_> = lead.receipts.values().cloned().collect();
            entries.sort_by_key(|entry| entry.id);
            self.issue_bundle(entries, plan.cross_evaluate);
        }
    }

    /// What is wrong with a contribution, before its blob is looked at.
    fn objection(&self, message: &Message, contribution: &Contribution) -> Option<String> {
        let plan = self.round.plan.as_ref()?;
        let fields = &contribution.fields;
        if !self.round.participates(message.sender) {
            return Some("it contributes though the plan does not name it".into());
        }
        if contribution.plan != plan.plan {
            return Some(format!(
                "it carried out plan {}, not {}",
                contribution.plan, plan.plan
            ));
        }
        let limit = self.config.epoch.charter.blob_limit;
        if fields.size > limit {
            return Some(format!(
                "its model has {} bytes, the charter allows {limit}",
                fields.size
            ));
        }
        if fields.size != plan.blob_size {
            return Some(format!(
                "its model has {} bytes, one of the agreed shape has {}: wrong names or shapes",
                fields.size, plan.blob_size
            ));
        }
        (fields.weight.is_some() != plan.weights)
            .then(|| "it does not carry exactly the fields that the plan asks for".into())
    }

    pub(super) fn admitted(&mut self, round: u64, blob: Hash, result: Result<(), WorkError>) {
        if round != self.round.number {
            return;
        }
        let admission = match result {
            Ok(()) => Admission::Usable,
            Err(WorkError::Unavailable) => Admission::Retry,
            Err(WorkError::Refused(reason)) => {
                let author = self.round.inbox.iter().find(|(_, message)| {
                    matches!(&message.body, Body::Contribution(c) if c.fields.blob == blob)
                });
                if let Some((&member, _)) = author {
                    self.refuse(member, round, reason);
                }
                Admission::Refused
            }
        };
        self.round.admissions.insert(blob, admission);
    }

    /// The entry is in, and its author gets a receipt of this view.
    fn accept(&mut self, member: MemberIndex, contribution: &Contribution) {
        let entry = contribution.entry(&self.config.epoch.federation, self.round.number);
        let Some(lead) = &mut self.lead else { return };
        lead.receipts.insert(member, entry);
        self.give_receipt(member);
    }

    fn give_receipt(&mut self, member: MemberIndex) {
        let Some(entry) = self
            .lead
            .as_ref()
            .and_then(|lead| lead.receipts.get(&member))
        else {
            return;
        };
        let body = Body::Receipt { entry: entry.id };
        let (message, frame) = self.seal(0, self.view.number, body);
        self.send(member, &message, &frame);
    }

    /// A contribution came again: its author did not get the receipt.
    pub(super) fn repeat_receipt(&mut self, member: MemberIndex) {
        if member != self.me() {
            self.give_receipt(member);
        }
    }

    /// Fewest entries that a round may have.
    fn minimum(&self) -> usize {
        let participants = self.participants();
        usize::from(self.config.epoch.charter.minimum).min(participants)
    }

    pub(super) fn participants(&self) -> usize {
        let all = self.config.epoch.roster.len();
        let plan = self.round.plan.as_ref();
        plan.and_then(|plan| plan.participants.as_ref())
            .map_or(all, Vec::len)
    }

    /// Whether to go on without whoever is missing.
    fn closing(&self) -> bool {
        let Some(lead) = &self.lead else { return false };
        let blob = |member: &MemberIndex| match &self.round.inbox.get(member)?.body {
            Body::Contribution(contribution) => Some(contribution.fields.blob),
            _ => None,
        };
        let refused = |member: &MemberIndex| {
            let admission = blob(member).and_then(|blob| self.round.admissions.get(&blob));
            admission == Some(&Admission::Refused)
        };
        let mut missing = self.config.epoch.roster.members().filter(|member| {
            self.round.participates(*member)
                && !lead.receipts.contains_key(member)
                && !refused(member)
        });
        if lead.receipts.len() < self.minimum() {
            return false;
        }
        let Some(first) = missing.next() else {
            return true;
        };
        if self.now < self.view.entered + self.phase_time() {
            return false;
        }
        // Who was not in the last final sheet need not be waited for beyond D.
        let last = &self.chain.learned.authors;
        let mut missing = std::iter::once(first).chain(missing);
        let absent = !last.is_empty() && missing.all(|member| !last.contains(&member));
        absent || self.patience_over()
    }

    fn issue_bundle(&mut self, entries: Vec<Entry>, cross_evaluate: bool) {
        let (round, view) = (self.round.number, self.view.number);
        let body = Body::Bundle(Bundle {
            entries: entries.clone(),
        });
        let (message, frame) = self.seal(round, view, body);
        if cross_evaluate {
            self.stage(Stage::Scoring {
                entries,
                since: self.now,
            });
        } else {
            self.include_from(Sheet {
                entries,
                scores: None,
            });
        }
        self.publish(message, frame);
    }

    fn include_from(&mut self, sheet: Sheet) {
        let root = sheet.root();
        let sheet = Arc::new(sheet);
        self.round.sheets.insert(root, sheet.clone());
        let (since, signed) = (self.now, BTreeMap::new());
        self.stage(Stage::Including {
            sheet,
            root,
            since,
            signed,
        });
    }

    /// A member's losses, kept for whoever leads this round.
    pub(super) fn scores(&mut self, sender: MemberIndex, round: u64, scores: Scores) {
        if round != self.round.number {
            return;
        }
        let ascending = scores.losses.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !ascending || scores.losses.iter().any(|(_, loss)| !loss.is_finite()) {
            let reason = "its scores are not finite numbers in order".to_owned();
            return self.refuse(sender, round, reason);
        }
        self.round.rows.insert(sender, scores);
    }

    fn collect_scores(&mut self) {
        let Some(Lead {
            stage: Stage::Scoring { entries, since },
            ..
        }) = &self.lead
        else {
            return;
        };
        let (entries, since) = (entries.clone(), *since);
        let Some(lead) = &self.lead else { return };
        let patient = self.now < since + self.config.epoch.patience();
        if self.round.rows.len() < entries.len() && patient {
            return;
        }
        let scored = |entry: &Entry| {
            let author = lead.receipts.iter().find(|(_, own)| own.id == entry.id)?.0;
            let scores = self
                .round
                .rows
                .get(author)
                .filter(|scores| scores.entry == entry.id)?;
            scores
                .row(&entries)
                .map(|_| (entry.clone(), scores.clone()))
        };
        let rows: Vec<_> = entries.iter().filter_map(scored).collect();
        if rows.len() < entries.len() && patient {
            return;
        }
        let kept: Vec<_> = rows.iter().map(|(entry, _)| entry.clone()).collect();
        if kept.len() < entries.len() && !self.leave_out(&entries, &kept, "sent no scores") {
            return;
        }
        let mut scores: Vec<Vec<f64>> = rows
            .iter()
            .filter_map(|(_, scores)| scores.row(&kept))
            .collect();
        if self.broken(Mutation::ForgedScore)
            && let Some(score) = scores.first_mut().and_then(|row| row.first_mut())
        {
            *score += 1.0;
        }
        self.issue_sheet(Sheet {
            entries: kept,
            scores: Some(scores),
        });
    }

    fn issue_sheet(&mut self, sheet: Sheet) {
        let (round, view) = (self.round.number, self.view.number);
        let (message, frame) = self.seal(round, view, Body::Sheet(sheet.clone()));
        self.include_from(sheet);
        self.publish(message, frame);
    }

    /// Goes on without some authors; false if that is not allowed any more.
    fn leave_out(&mut self, entries: &[Entry], kept: &[Entry], failing: &str) -> bool {
        let minimum = self.minimum();
        let most = self.config.epoch.roster.faulty() + 1;
        let Some(lead) = &mut self.lead else {
            return false;
        };
        let staying = lead.authors(kept);
        let members: Vec<_> = lead
            .authors(entries)
            .into_iter()
            .filter(|member| !staying.contains(member))
            .collect();
        lead.reissues += 1;
        if kept.len() < minimum || lead.reissues > most {
            lead.stage = Stage::Over;
            let reason = format!("too few members are left: {} {failing}", members.len());
            self.nullify(reason);
            return false;
        }
        let (view, round, reason) = (self.view.number, self.round.number, failing.to_owned());
        self.out.push(Effect::Report(Report::LeftOut {
            view,
            round,
            members,
            reason,
        }));
        true
    }

    /// An author's signature over the sheet.
    pub(super) fn inclusion(&mut self, message: &Message, sheet: Hash) {
        let Some(lead) = &mut self.lead else { return };
        if message.round != self.round.number {
            return;
        }
        if let Stage::Including {
            root,
            signed,
            sheet: full,
            ..
        } = &mut lead.stage
            && *root == sheet
            && lead
                .receipts
                .get(&message.sender)
                .is_some_and(|own| full.position(&own.id).is_some())
        {
            signed.insert(message.sender, message.signature);
        }
    }

    fn collect_inclusions(&mut self) {
        let Some(Lead {
            stage:
                Stage::Including {
                    sheet,
                    root,
                    since,
                    signed,
                },
            ..
        }) = &self.lead
        else {
            return;
        };
        let short = usize::from(self.broken(Mutation::InclusionMissing));
        let waiting = self.now < *since + self.phase_time();
        if signed.len() + short < sheet.entries.len() && waiting {
            return;
        }
        let (sheet, root, signed) = (sheet.clone(), *root, signed.clone());
        if signed.len() + short >= sheet.entries.len() {
            let inclusions = signed.into_iter().collect();
            return self.decide(sheet, root, inclusions);
        }
        let Some(lead) = &self.lead else { return };
        let kept: Vec<_> = sheet
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| {
                lead.receipts
                    .iter()
                    .any(|(m, own)| own.id == entry.id && signed.contains_key(m))
            })
            .map(|(at, _)| at)
            .collect();
        let entries: Vec<_> = kept.iter().map(|&at| sheet.entries[at].clone()).collect();
        if !self.leave_out(&sheet.entries, &entries, "did not sign for the sheet") {
            return;
        }
        match &sheet.scores {
            None => self.issue_bundle(entries, false),
            Some(rows) => {
                let scores = kept
                    .iter()
                    .map(|&i| kept.iter().map(|&j| rows[i][j]).collect());
                let scores = Some(scores.collect());
                self.issue_sheet(Sheet { entries, scores });
            }
        }
    }

    /// Takes over a sheet that was proposed in an earlier view, with its inclusions: nobody has
    /// to contribute, score or sign again. Allowed if it covers every receipt given in this view
    /// and holds enough.
    fn adopt_sheet(&mut self) -> bool {
        let Some((sheet, inclusions)) = self.round.proposed.clone() else {
            return false;
        };
        let Some(lead) = &self.lead else { return false };
        let covered = lead
            .receipts
            .values()
            .all(|entry| sheet.position(&entry.id).is_some());
        let faulty = self.config.epoch.roster.faulty();
        if !covered || sheet.entries.len() + faulty < self.participants() {
            return false;
        }
        let root = sheet.root();
        let (round, view) = (self.round.number, self.view.number);
        let body = if sheet.scores.is_some() {
            Body::Sheet((*sheet).clone())
        } else {
            Body::Bundle(Bundle {
                entries: sheet.entries.clone(),
            })
        };
        let (message, frame) = self.seal(round, view, body);
        self.publish(message, frame);
        self.decide(sheet, root, inclusions);
        true
    }

    fn decide(&mut self, sheet: Arc<Sheet>, root: Hash, inclusions: Inclusions) {
        let holders = self.holders();
        let round = self.round.number;
        self.out.push(Effect::Decide {
            round,
            sheet: sheet.clone(),
            holders,
        });
        self.stage(Stage::Deciding {
            sheet,
            root,
            inclusions,
        });
    }

    pub(super) fn decided(&mut self, root: Hash, result: Result<Vec<u8>, WorkError>) {
        let Some(lead) = &mut self.lead else { return };
        let stage = std::mem::replace(&mut lead.stage, Stage::Over);
        let Stage::Deciding {
            sheet,
            root: own,
            inclusions,
        } = stage
        else {
            lead.stage = stage;
            return;
        };
        if own != root {
            lead.stage = Stage::Deciding {
                sheet,
                root: own,
                inclusions,
            };
            return;
        }
        let round = self.round.number;
        match result {
            Ok(decision) => {
                let case = Case::new(round, root, sheet, decision.into());
                let id = case.id();
                lead.stage = Stage::Settling {
                    case: case.clone(),
                    id,
                    root,
                    inclusions,
                };
                if !self.round.settled.contains_key(&id) {
                    let holders = self.holders();
                    self.out.push(Effect::Settle { case, holders });
                }
            }
            Err(error) => self.nullify(failure("decide", &error)),
        }
    }

    fn propose_settled(&mut self) {
        let Some(Lead {
            stage:
                Stage::Settling {
                    case,
                    id,
                    root,
                    inclusions,
                },
            ..
        }) = &self.lead
        else {
            return;
        };
        let Some(result) = self.round.settled.get(id).cloned() else {
            return;
        };
        let (case, id, sheet, inclusions) = (case.clone(), *id, *root, inclusions.clone());
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                self.stage(Stage::Over);
                return self.nullify(failure("settle", &error));
            }
        };
        let Some(plan) = self.round.plan.as_ref().map(|plan| plan.plan) else {
            return;
        };
        // What the lead decided and settled itself it need not check again.
        self.round.checked.insert(id);
        let learning = Learning {
            round: case.round,
            plan,
            sheet,
            inclusions,
            decision: case.decision.to_vec(),
            outcome,
        };
        let mut parent = (self.chain.tip.hash, self.chain.tip.proof.clone());
        if self.broken(Mutation::RoundFromNotarised)
            && let Some(notarised) = self.chain.newest_notarised().cloned()
        {
            parent = (
                notarised.verdict.block().unwrap_or(parent.0),
                Some(notarised),
            );
        }
        self.propose(Content::Learning(learning), parent.0, parent.1);
    }

    /// A block for this view, durable before anybody sees it (R5).
    fn propose(&mut self, content: Content, parent: Hash, proof: Option<Certificate>) {
        let view = self.view.number;
        let from = proof.as_ref().map_or(0, |proof| proof.view);
        let unproven = self.broken(Mutation::SkippedWithoutProof);
        let skipped = match self.chain.skipped(from, view) {
            Some(skipped) => skipped,
            None if unproven => Vec::new(),
            None => {
                self.stage(Stage::Over);
                return self.nullify(
                    "this member does not know how every view since the last block ended".into(),
                );
            }
        };
        let block = Block {
            epoch: self.config.epoch.id,
            view,
            parent,
            content,
        };
        let proposal = Proposal {
            block,
            parent: proof,
            skipped,
        };
        let (message, frame) = self.seal(0, view, Body::Proposal(Box::new(proposal)));
        self.out
            .push(Effect::Persist(Record::Proposed(message.clone())));
        self.ballots.remember(&self.config.epoch, message.clone());
        self.stage(Stage::Voting {
            message: message.clone(),
            frame: frame.clone(),
        });
        self.publish(message, frame);
    }

    /// Says again what members have not answered.
    pub(super) fn repeat_as_lead(&mut self) {
        if self.lead.is_none() {
            return;
        }
        self.progress();
        let Some(lead) = &self.lead else { return };
        let (round, view) = (self.round.number, self.view.number);
        let (body, to): (Body, Vec<_>) = match &lead.stage {
            Stage::Scoring { entries, .. } => {
                let silent = |member: &MemberIndex| {
                    let scores = self.round.rows.get(member);
                    scores.is_none_or(|scores| scores.row(entries).is_none())
                };
                let body = Body::Bundle(Bundle {
                    entries: entries.clone(),
                });
                (
                    body,
                    lead.authors(entries).into_iter().filter(silent).collect(),
                )
            }
            Stage::Including { sheet, signed, .. } => {
                let silent = |member: &MemberIndex| !signed.contains_key(member);
                (
                    sheet_body(sheet),
                    self.others().into_iter().filter(silent).collect(),
                )
            }
            Stage::Voting { message, frame } => {
                let (message, frame) = (message.clone(), frame.clone());
                let silent: Vec<_> = self
                    .others()
                    .into_iter()
                    .filter(|&member| !self.ballots.voted(view, member))
                    .collect();
                let sheet = match &message.body {
                    Body::Proposal(proposal) => proposal.block.learning(),
                    _ => None,
                }
                .and_then(|learning| self.round.sheets.get(&learning.sheet).cloned());
                if let Some(sheet) = sheet {
                    let (sheet, bytes) = self.seal(round, view, sheet_body(&sheet));
                    for &to in &silent {
                        self.send(to, &sheet, &bytes);
                    }
                }
                for to in silent {
                    self.send(to, &message, &frame);
                }
                return;
            }
            _ => return,
        };
        let (message, frame) = self.seal(round, view, body);
        for member in to {
            self.send(member, &message, &frame);
        }
    }
}

/// How a sheet travels: without scores it is the bundle.
fn sheet_body(sheet: &Sheet) -> Body {
    if sheet.scores.is_some() {
        Body::Sheet(sheet.clone())
    } else {
        Body::Bundle(Bundle {
            entries: sheet.entries.clone(),
        })
    }
}

fn failure(what: &str, error: &WorkError) -> String {
    match error {
        WorkError::Unavailable => format!("a model needed to {what} could not be had"),
        WorkError::Refused(reason) => format!("could not {what}: {reason}"),
    }
}
