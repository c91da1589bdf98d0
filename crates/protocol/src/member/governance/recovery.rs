//! Going on without members that are gone for good: this member's standing, those of others, the
//! confirmations of a set of them, and the recovery that follows when all that remain have confirmed it.
//!
//! An institution may correct itself any number of times: the last standing of each member counts. What
//! keeps two recoveries from completing is the confirmation. A member confirms one set of last standings,
//! and another one only after a member of the first set has signed a later standing: that member never
//! confirms the first set, so it never completes.

use crate::certificate::Verdict;
use crate::change::ChangeError;
use crate::effects::{Effect, Input, OwnConfirmation, Record, Report};
use crate::envelope::{self, Opened};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::stage::Lead;
use crate::member::consensus::views::View;
use crate::member::governance::recoveries::{Lost, Recoveries, Standings, Wanted};
use crate::member::rounds::adoption::Adoption;
use crate::member::{Config, Member};
use crate::message::{Body, Confirmation, Confirmed, Message, Passage, Recovery, Standing};
use crate::parameters::Checkpoint;
use crate::recovery::{RecoveryError, remaining, resume_point, set};
use crate::roster::MemberIndex;
use crate::time::Time;

/// Beats after which a standing is sent again.
const REPEAT: u32 = 4;
/// Beats that a member waits for the outcomes of final rounds before it signs without them.
const FETCHES: u32 = 8;
/// Most recoveries without this member that are reported in an epoch: whoever is left out by a few can
/// be told of many.
const TOLD: usize = 8;

/// Going on without members that are gone. Borrows what that depends on.
pub(in crate::member) struct Recovering<'a> {
    config: &'a Config,
    now: Time,
    out: &'a mut Outbox,
    chain: &'a Chain,
    adoption: &'a Adoption,
    view: &'a mut View,
    lead: &'a mut Option<Lead>,
    recoveries: &'a mut Recoveries,
}

impl Member {
    /// Lends what going on without others depends on.
    pub(in crate::member) fn recovering(&mut self) -> Recovering<'_> {
        Recovering {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            adoption: &self.rounds.adoption,
            view: &mut self.consensus.view,
            lead: &mut self.consensus.lead,
            recoveries: &mut self.governance.recoveries,
        }
    }
}

impl Recovering<'_> {
    /// This member's institution wants to go on without members that are gone.
    pub(in crate::member) fn recover(&mut self, lost: Lost, abandon: bool) {
        let possible = Recovery::is_possible(&self.config.epoch, &lost);
        let checked = possible.and_then(|()| {
            if lost.contains(&self.config.me) {
                Err(RecoveryError::Itself.into())
            } else {
                Ok(())
            }
        });
        match checked {
            Ok(()) if !lost.is_empty() => self.want(lost, abandon),
            Ok(()) => self
                .out
                .refuse(self.config.me, 0, self.nothing_lost().into()),
            Err(why) => self.out.refuse(self.config.me, 0, why.into()),
        }
    }

    /// This member's institution gives a final round up whose outcome nobody certifies.
    pub(in crate::member) fn give_up(&mut self, round: u64) {
        let possible = Recovery::is_possible(&self.config.epoch, &[]);
        let open = self.chain.unsettled();
        let open = open.is_some_and(|(_, masked)| masked.round == round);
        match possible {
            Err(why) => self.out.refuse(self.config.me, 0, why.into()),
            Ok(()) if open || self.is_asked_to_give_up() => self.want(Lost::new(), false),
            Ok(()) => {
                let why = ChangeError::from(RecoveryError::NothingOpen);
                self.out.refuse(self.config.me, 0, why.into());
            }
        }
    }

    /// Nobody is named as lost.
    fn nothing_lost(&self) -> ChangeError {
        let members = self.config.epoch.roster.len();
        RecoveryError::Lost { members }.into()
    }

    fn want(&mut self, lost: Lost, abandon: bool) {
        let recoveries = &mut self.recoveries;
        recoveries.abandon = abandon;
        // What was reported before is news to whoever asks again.
        recoveries.reported = [None, None];
        recoveries.misfit = None;
        let since = recoveries
            .wanted
            .take()
            .map_or(self.now, |wanted| wanted.since);
        if recoveries.lost() != Some(&lost) {
            recoveries.wanted = Some(Wanted { lost, since });
        }
    }

    /// Whether another member has signed to give a final round up, without anybody being lost.
    fn is_asked_to_give_up(&self) -> bool {
        let mut heard = self.recoveries.heard.values();
        heard.any(|(standing, _)| standing.lost.is_empty())
    }

    /// Whether to wait before a round is given up, which the institution wants since then: the outcome may
    /// still be certified within patience. Once it is, and nobody else has given the round up, there is
    /// nothing to sign.
    fn may_still_be_certified(&mut self, since: Time) -> bool {
        if self.is_asked_to_give_up() {
            return false;
        }
        if self.chain.settled() {
            self.recoveries.wanted = None;
            let why = ChangeError::from(RecoveryError::NothingOpen);
            self.out.refuse(self.config.me, 0, why.into());
            return true;
        }
        self.now < since + self.config.epoch.patience()
    }

    /// Signs what the institution wants: at first as soon as everything final is adopted or cannot be,
    /// later as soon as this member is free of what it has confirmed.
    pub(in crate::member) fn sign_standing(&mut self) {
        let Some(wanted) = &self.recoveries.wanted else {
            return;
        };
        let (since, nobody) = (wanted.since, wanted.lost.is_empty());
        if nobody && self.recoveries.own.is_none() && self.may_still_be_certified(since) {
            return;
        }
        let Some(wanted) = &self.recoveries.wanted else {
            return;
        };
        let number = match &self.recoveries.own {
            None => {
                let late = self.now >= wanted.since + self.config.epoch.heartbeat() * FETCHES;
                let adopted = self.adoption.waiting.is_empty() || late;
                if self.adoption.is_running() || !adopted {
                    return;
                }
                1
            }
            Some(own) => {
                if !self.is_free(&wanted.lost) {
                    return self.report_held();
                }
                match &own.body {
                    Body::Standing(standing) => standing.number + 1,
                    _ => 1,
                }
            }
        };
        let number = number.max(self.recoveries.reminded + 1);
        let Some(Wanted { lost, .. }) = self.recoveries.wanted.take() else {
            return;
        };
        let tip = &self.chain.tip;
        let notarised = self.chain.newest_notarised();
        let standing = Standing {
            number,
            lost,
            adopted: self.adopted_checkpoint(),
            view: tip.view,
            block: tip.hash,
            notarised: notarised.map_or(0, |certificate| certificate.view),
        };
        let (message, _) = self.config.sign(0, 0, standing.body());
        self.out
            .push(Effect::Persist(Record::Standing(message.clone())));
        *self.lead = None;
        // Its own votes under way count no more.
        self.out.drop_own();
        self.view.early.clear();
        let me = self.config.me;
        self.recoveries.add(me, standing, message.signature);
        self.recoveries.own = Some(message);
        self.send_standings(&self.config.others());
    }

    /// Whether this member may sign for another set than it has confirmed.
    fn is_free(&self, lost: &[MemberIndex]) -> bool {
        self.recoveries.is_free(lost)
    }

    /// Says that a correction waits, and for whom.
    fn report_held(&mut self) {
        let Some(own) = &self.recoveries.confirmed else {
            return;
        };
        let lost = own.standings.first().map(|(_, standing, _)| &standing.lost);
        let report = Report::RecoveryHeld {
            confirmed: lost.cloned().unwrap_or_default(),
            awaits: self.recoveries.unconfirmed(own),
        };
        self.report_recovery(1, report);
    }

    /// Reports what is known of a recovery, unless it was reported last.
    fn report_recovery(&mut self, of: usize, report: Report) {
        let last = &mut self.recoveries.reported[of];
        if last.as_ref() != Some(&report) {
            *last = Some(report.clone());
            self.out.push(Effect::Report(report));
        }
    }

    /// The last round that this member has adopted.
    fn adopted_checkpoint(&self) -> Checkpoint {
        let applied = self.adoption.applied;
        let began = self.config.epoch.began;
        let newest = self.chain.checkpoint();
        let of_history = || {
            let rounds = self
                .chain
                .final_rounds(&self.config.epoch, applied.checked_sub(1)?);
            let of = rounds.into_iter().find(|of| of.round == applied)?;
            Some(Checkpoint {
                round: of.round,
                block: of.block,
                outcome: of.outcome,
            })
        };
        match applied {
            _ if applied >= newest.round => newest,
            _ if applied == began.round => began,
            // One that passed into this epoch and has nothing of it yet stands before its beginning.
            _ => of_history().unwrap_or(Checkpoint {
                round: applied,
                block: Hash([0; 32]),
                outcome: Hash([0; 32]),
            }),
        }
    }

    /// Another member's standing.
    pub(in crate::member) fn receive(
        &mut self,
        by: MemberIndex,
        standing: Standing,
        signature: Signature,
    ) {
        let remaining = remaining(&self.config.epoch, &standing.lost);
        let why = match remaining {
            Ok(remaining) if remaining.contains(&by) => {
                let lost = standing.lost.clone();
                let number = standing.number;
                if self.recoveries.add(by, standing, signature) {
                    if !self.recoveries.signed() {
                        self.report_standings(&lost);
                    }
                } else {
                    self.remind_of_standing(by, number, signature);
                }
                return;
            }
            Ok(_) => RecoveryError::Itself,
            Err(why) => why,
        };
        self.out.refuse(by, 0, ChangeError::from(why).into());
    }

    /// A member sent a standing that does not count, because a later one is known, or another one with
    /// this number: it has lost its journal. It is shown what its key has signed.
    fn remind_of_standing(&mut self, of: MemberIndex, number: u64, signature: Signature) {
        let Some((last, signed)) = self.recoveries.heard.get(&of) else {
            return;
        };
        if last.number == number && *signed == signature {
            return;
        }
        let message = Message {
            round: 0,
            view: 0,
            sender: of,
            body: last.body(),
            signature: *signed,
        };
        let frame = envelope::reseal(&self.config.epoch, &message);
        self.out.push(Effect::Send { to: of, frame });
    }

    /// This member's key has signed a standing that is not in its journal: what it signs now has to have
    /// a higher number to count.
    pub(in crate::member) fn reminded(&mut self, standing: &Standing) {
        let own = self.recoveries.own.as_ref().map(|own| &own.body);
        let Some(Body::Standing(own)) = own else {
            self.recoveries.reminded = self.recoveries.reminded.max(standing.number);
            return;
        };
        let (lost, number) = (own.lost.clone(), own.number);
        if standing.number >= number && **own != *standing {
            self.recoveries.reminded = self.recoveries.reminded.max(standing.number);
            let since = self.now;
            let wanted = self.recoveries.wanted.take();
            self.recoveries.wanted = wanted.or(Some(Wanted { lost, since }));
        }
    }

    /// Another member's confirmation.
    pub(in crate::member) fn confirmed(
        &mut self,
        by: MemberIndex,
        Confirmation { number, set }: Confirmation,
        signature: Signature,
    ) {
        let last = self.recoveries.confirmed_by.get(&by);
        if last.is_none_or(|(last, ..)| *last < number) {
            let word = (number, set, signature);
            self.recoveries.confirmed_by.insert(by, word);
        }
    }

    /// After this member's standing: confirms the last standings of all that remain once they name the
    /// same lost members, and goes on once all have confirmed them.
    pub(in crate::member) fn go_on(&mut self) -> Option<Passage> {
        let lost = self.recoveries.lost().cloned()?;
        let remaining = remaining(&self.config.epoch, &lost).ok()?;
        if let Some(standings) = self.recoveries.complete_set(&remaining, &lost)
            && self.recoveries.wanted.is_none()
        {
            self.confirm(&lost, standings);
        }
        self.report_standings(&lost);
        self.complete()
    }

    /// Signs for a set of standings, if this member is free to and they fit together.
    fn confirm(&mut self, lost: &[MemberIndex], standings: Standings) {
        let of_set = standings.iter().map(|(by, (standing, _))| (*by, standing));
        let set = set(of_set);
        let me = self.config.me;
        let last = self.recoveries.confirmed_by.get(&me);
        if last.is_some_and(|(_, last, _)| *last == set) {
            return;
        }
        if !self.is_free(lost) {
            return self.report_held();
        }
        let all = standings.values().map(|(standing, _)| standing);
        if let Err(why) = resume_point(&self.config.epoch, all) {
            if self.recoveries.misfit.replace(set) != Some(set) {
                self.out.refuse(me, 0, ChangeError::from(why).into());
            }
            return;
        }
        let number = self.recoveries.confirmations + 1;
        let (message, _) = self.config.sign(0, 0, Confirmation { number, set }.body());
        let standings = standings.into_iter();
        let own = OwnConfirmation {
            message,
            standings: standings
                .map(|(by, (standing, signature))| (by, standing, signature))
                .collect(),
        };
        let record = Record::Confirmed(Box::new(own.clone()));
        self.out.push(Effect::Persist(record));
        self.recoveries.abandon = false;
        self.recoveries.add_own_confirmation(own);
        self.send_standings(&self.config.others());
    }

    /// Reports who has signed and confirmed to go on without these.
    fn report_standings(&mut self, lost: &Lost) {
        let Ok(remaining) = remaining(&self.config.epoch, lost) else {
            return;
        };
        let heard = self.recoveries.heard.iter();
        let standings = heard.filter(|(_, (standing, _))| standing.lost == *lost);
        let standings: Vec<_> = standings
            .map(|(by, (standing, _))| (*by, standing))
            .collect();
        let newest = standings.iter().map(|(_, standing)| standing.view).max();
        let notarised = standings.iter().map(|(_, standing)| standing.notarised);
        let notarised = notarised.max().filter(|view| Some(*view) > newest);
        let round = standings.iter().map(|(_, standing)| standing.adopted.round);
        let confirmed = match self.recoveries.complete_set(&remaining, lost) {
            Some(_) => {
                let set = set(standings.iter().copied());
                let all = self.recoveries.confirmed_by.iter();
                let all = all.filter(|(_, (_, of, _))| *of == set);
                all.map(|(by, _)| *by).collect()
            }
            None => Vec::new(),
        };
        let report = Report::Recovery {
            signed: standings.iter().map(|(by, _)| *by).collect(),
            confirmed,
            needed: remaining.len(),
            round: round.max().unwrap_or(0),
            notarised,
            lost: lost.clone(),
        };
        self.report_recovery(0, report);
    }

    /// The end of the epoch, if all that remain have confirmed the same standings as this member. The
    /// others are told.
    fn complete(&mut self) -> Option<Passage> {
        let own = self.recoveries.confirmed.as_ref()?;
        let open = self.recoveries.unconfirmed(own);
        if !open.is_empty() {
            return None;
        }
        let others: Vec<_> = own.standings.iter().map(|(by, ..)| *by).collect();
        let passage = self.recovered(own)?;
        let frame = envelope::sign_passage(&self.config.epoch, &passage);
        let me = self.config.me;
        for to in others.into_iter().filter(|&to| to != me) {
            let frame = frame.clone();
            self.out.push(Effect::Send { to, frame });
        }
        Some(passage)
    }

    /// The end of the epoch that follows from a set that all have confirmed, if this member has the
    /// newest final block and its proof. Otherwise one that has them sends it.
    fn recovered(&self, own: &OwnConfirmation) -> Option<Passage> {
        let epoch = &self.config.epoch;
        let point = resume_point(epoch, own.standings.iter().map(|(_, of, _)| of)).ok()?;
        let history = &self.chain.history;
        let (mut head, mut proof) = (Vec::new(), Recovery::no_proof(epoch));
        if point.view > 0 {
            let last = history
                .iter()
                .rposition(|(block, _)| block.view == point.view)?;
            let certificate = history[last].1.as_ref()?;
            if certificate.verdict != Verdict::Final(point.block) {
                return None;
            }
            proof = certificate.clone();
            let first = if point.after == epoch.began {
                0
            } else {
                history.iter().rposition(|(block, _)| {
                    block
                        .round()
                        .is_some_and(|of| of.round == point.after.round)
                })?
            };
            let blocks = history.get(first..=last)?.iter();
            head = blocks.map(|(block, _)| block.clone()).collect();
        }
        let confirmed = |(by, standing, signature): &(MemberIndex, Standing, Signature)| {
            let (number, _, confirmation) = self.recoveries.confirmed_by.get(by)?;
            Some(Confirmed {
                by: *by,
                standing: standing.clone(),
                signature: *signature,
                number: *number,
                confirmation: *confirmation,
            })
        };
        let standings: Option<Vec<_>> = own.standings.iter().map(confirmed).collect();
        let lost = &own.standings.first()?.1.lost;
        let block = Recovery::block(epoch, lost, &point, standings?, head);
        // It is what the others check.
        epoch.next(&block).ok()?;
        let blocks = vec![block];
        Some(Passage { blocks, proof })
    }

    /// Sends what this member has signed to those that have to sign too; after a correction to all.
    pub(in crate::member) fn send_standings(&mut self, to: &[MemberIndex]) {
        let Some(standing) = &self.recoveries.own else {
            return;
        };
        let lost = match &standing.body {
            // What it said before may have reached those that it declares lost now.
            Body::Standing(standing) if standing.number > 1 => Lost::new(),
            Body::Standing(standing) => standing.lost.clone(),
            _ => return,
        };
        let confirmed = self.recoveries.confirmed.as_ref();
        let confirmed = confirmed.map(|own| own.message.clone());
        let frames: Vec<_> = [Some(standing.clone()), confirmed]
            .into_iter()
            .flatten()
            .map(|message| envelope::reseal(&self.config.epoch, &message))
            .collect();
        for &to in to.iter().filter(|to| !lost.contains(to)) {
            for frame in &frames {
                let frame = frame.clone();
                self.out.push(Effect::Send { to, frame });
            }
        }
    }

    /// Every few heartbeats: sends again what this member has signed.
    pub(in crate::member) fn repeat(&mut self) {
        self.recoveries.pause += 1;
        if self.recoveries.pause >= REPEAT {
            self.recoveries.pause = 0;
            self.send_standings(&self.config.others());
        }
    }

    /// Whether this member follows a recovery: one that it signed. One that declares it lost is only
    /// reported, unless its institution has said to follow it.
    pub(in crate::member) fn follows(&mut self, passage: &Passage) -> bool {
        let (Some(recovery), Some(block)) = (passage.recovery(), passage.blocks.first()) else {
            return true;
        };
        if !recovery.lost.contains(&self.config.me) {
            return true;
        }
        let id = block.hash();
        if self.config.follow == Some(id) {
            return true;
        }
        let by: Vec<_> = recovery.standings.iter().map(|signed| signed.by).collect();
        // The same members can make any number of recoveries.
        if self.recoveries.told.len() < TOLD && self.recoveries.told.insert(by.clone()) {
            self.out.push(Effect::Report(Report::LeftBehind {
                recovery: id,
                by,
                round: recovery.after.round,
            }));
        }
        false
    }
}

/// Whether a member takes an input although it has signed a standing: only what leads out of
/// the epoch, and questions of others that still have to catch up.
pub(in crate::member) fn still_handles(input: &Input) -> bool {
    match input {
        Input::Opened(Opened::Message(message)) => matches!(
            message.body,
            Body::Standing(_) | Body::Confirmation(_) | Body::SyncRequest { .. }
        ),
        Input::Opened(Opened::Passage(_))
        | Input::Up { .. }
        | Input::Down { .. }
        | Input::Recover { .. }
        | Input::GiveUp { .. }
        | Input::Time => true,
        _ => false,
    }
}
