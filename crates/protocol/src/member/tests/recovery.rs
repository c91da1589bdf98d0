//! Going on without members that are gone for good: standings, the recovery that follows from them,
//! and members that were declared lost.

use super::amendments::longer;
use super::one::*;
use super::prelude::*;
use super::table::key;
use crate::certificate::Verdict;
use crate::change::{ChangeError, PassageError};
use crate::epochs::Epochs;
use crate::identity::Strict;
use crate::message::{
    Block, Confirmation, Confirmed, Content, Passage, Proposal, Recovery, Standing,
};
use crate::parameters::Epoch;
use crate::recovery::{RecoveryError, resume_point, set};
use crate::work::WorkError;

pub(super) fn recover(lost: &[MemberIndex]) -> Input {
    let lost = lost.to_vec();
    Input::Recover {
        lost,
        abandon: false,
    }
}

/// A set of standings, as a member confirms it for the nth time.
pub(super) fn confirming(number: u64, standings: &[(MemberIndex, &Standing)]) -> Body {
    let set = set(standings.iter().copied());
    Confirmation { number, set }.body()
}

/// The end of the epoch among effects.
pub(super) fn over(effects: &[Effect]) -> Option<Passage> {
    effects.iter().find_map(|effect| match effect {
        Effect::EpochOver(passage) => Some((**passage).clone()),
        _ => None,
    })
}

impl One {
    /// The members without this one, in order, the first `n` of them.
    pub(super) fn first_others(&self, n: usize) -> Vec<MemberIndex> {
        self.others()[..n].to_vec()
    }

    /// The standing that the member under test signs now.
    pub(super) fn standing(&self, lost: &[MemberIndex]) -> Standing {
        let chain = &self.member.consensus.chain;
        Standing {
            number: 1,
            lost: lost.to_vec(),
            adopted: chain.checkpoint(),
            view: chain.tip.view,
            block: chain.tip.hash,
            notarised: 0,
        }
    }

    fn reports(&self, lost: &[MemberIndex], signed: &[MemberIndex], round: u64) -> Effect {
        self.reports_confirmed(lost, signed, &[], round)
    }

    fn reports_confirmed(
        &self,
        lost: &[MemberIndex],
        signed: &[MemberIndex],
        confirmed: &[MemberIndex],
        round: u64,
    ) -> Effect {
        Effect::Report(Report::Recovery {
            lost: lost.to_vec(),
            signed: signed.to_vec(),
            confirmed: confirmed.to_vec(),
            needed: self.epoch.roster.len() - lost.len(),
            round,
            notarised: None,
        })
    }

    /// The standing that it has signed last.
    fn own_standing(&self) -> Body {
        let own = self.member.governance.recoveries.own.as_ref();
        own.expect("it has signed").body.clone()
    }

    /// Another member's standing arrives.
    pub(super) fn hear_standing(&mut self, from: MemberIndex, standing: &Standing) -> Vec<Effect> {
        self.hear(from, 0, 0, standing.body())
    }

    fn verified(&self, passage: &Passage) -> Epoch {
        passage.verify(&self.epoch, &Strict).unwrap()
    }
}

/// A member of two, in whose federation round 1 is final, goes on alone.
fn alone() -> (One, Passage) {
    let mut one = One::follower(2).signed();
    one.finish_round(&one.all());
    let lost = one.others();
    let passage = over(&one.step(recover(&lost))).unwrap();
    (one, passage)
}

#[test]
fn a_member_signs_its_standing_durably_and_does_nothing_more_in_the_epoch() {
    let mut one = One::follower(4).contributed();
    let lost = one.first_others(2);
    let other = one.others()[2];
    let standing = one.standing(&lost);
    let (message, _) = one.sealed(one.me, 0, 0, standing.body());
    let expected = [
        Effect::Persist(Record::Standing(message.clone())),
        one.sends(other, 0, 0, standing.body()),
        one.reports(&lost, &[one.me], 0),
    ];
    assert_eq!(one.step(recover(&lost)), expected);
    // It signs for no manifest, and votes for and against nothing.
    one.hold_all();
    let contribution_list = one.contribution_list(&one.all());
    assert_eq!(one.hear_lead(1, contribution_list), []);
    let proposal = one.proposal(1, &one.all());
    assert_eq!(one.propose(1, &proposal), []);
    let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
    assert_eq!(one.add_certificate(&proof), []);
    // What it signed is sent again every four heartbeats, and to whoever comes back.
    let again = one.pass(100_000);
    let sent = expected[1].clone();
    assert!(again.iter().all(|effect| *effect == sent), "{again:?}");
    assert_eq!(again.len(), 25);
    let round_trip = Duration::from_millis(20);
    let back = one.step(Input::Up {
        peer: other,
        round_trip,
    });
    assert!(back.contains(&sent), "{back:?}");
    let back = one.step(Input::Up {
        peer: lost[0],
        round_trip,
    });
    assert!(
        !back
            .iter()
            .any(|effect| matches!(effect, Effect::Send { frame, .. }
        if frame[83] == crate::message::Kind::Standing as u8))
    );
    // Asked again, it only says how far it has come.
    assert_eq!(one.step(recover(&lost)), expected[2..]);
    // A restart forgets none of this.
    let records = vec![Record::Standing(message)];
    let (mut two, effects) = One::start(one.epoch.clone(), one.me, Start::Kept(records));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Work(Request::Plan { .. })))
    );
    assert_eq!(two.step(recover(&lost)), expected[2..]);
    assert_eq!(two.propose(1, &proposal), []);
}

#[test]
fn one_of_two_goes_on_alone_from_the_last_final_round() {
    let (one, passage) = alone();
    let recovery = passage.recovery().unwrap();
    assert_eq!(recovery.lost, one.others());
    assert_eq!(recovery.rounds_lost(), [0; 0]);
    let checkpoint = one.member.consensus.chain.checkpoint();
    assert_eq!((recovery.after, checkpoint.round), (checkpoint, 1));
    let next = one.verified(&passage);
    assert_eq!(
        next.roster.silos(),
        &one.epoch.roster.silos()[one.me.at()..][..1]
    );
    assert_eq!((next.number, next.began), (1, checkpoint));
    assert_eq!(next.protocol, one.epoch.protocol.for_members(2, 1));
    assert_eq!(next.federation, one.epoch.federation);
    // Its journal leads there, and it plans round 2 at once.
    let record = Record::Final {
        blocks: passage.blocks.clone(),
        proof: passage.proof.clone(),
    };
    let records = [Record::Applied { round: 1 }, record];
    let epochs = Epochs::replay(one.epoch.clone(), records).unwrap();
    assert_eq!(epochs.now.id, next.id);
    let start = Start::Kept(epochs.records.clone());
    let mut effects = Vec::new();
    let config = Config::new(epochs.now.clone(), MemberIndex(0), key(one.me.0), SEED);
    let member = Member::new(config, start, Time::ZERO, &mut effects);
    let (round, state) = (2, checkpoint.outcome);
    assert!(
        effects.contains(&Effect::Work(Request::Plan { round, state })),
        "{effects:?}"
    );
    assert_eq!(member.lead_now(), MemberIndex(0));
}

#[test]
fn a_federation_without_a_final_round_goes_on_from_its_start() {
    let mut one = One::follower(2);
    let lost = one.others();
    let passage = over(&one.step(recover(&lost))).unwrap();
    assert_eq!(passage.proof, Recovery::no_proof(&one.epoch));
    assert_eq!(one.verified(&passage).began, one.epoch.began);
}

#[test]
fn members_that_remain_go_on_from_the_newest_round_that_one_of_them_has() {
    let mut ahead = One::follower(4).signed();
    ahead.finish_round(&ahead.all());
    let (me, lost) = (ahead.me, ahead.first_others(2));
    let other = ahead.others()[2];
    let mut behind = One::of(ahead.epoch.clone(), other);
    let (newer, older) = (ahead.standing(&lost), behind.standing(&lost));
    let mut both = [me, other];
    both.sort_unstable();
    ahead.step(recover(&lost));
    behind.step(recover(&lost));
    // With the last standing each confirms the set.
    let mut of_both = [(me, &newer), (other, &older)];
    of_both.sort_unstable_by_key(|(by, _)| *by);
    let confirming = confirming(1, &of_both);
    let effects = behind.hear_standing(me, &newer);
    let confirms = |one: &One, to, effects: &[Effect]| {
        let Effect::Persist(Record::Confirmed(own)) = &effects[0] else {
            panic!("{effects:?}");
        };
        let expected = one.sealed(one.me, 0, 0, confirming.clone()).0;
        assert_eq!(own.message, expected);
        assert_eq!(own.standings.len(), 2);
        assert_eq!(effects[1], one.sends(to, 0, 0, one.own_standing()));
        assert_eq!(effects[2], one.sends(to, 0, 0, confirming.clone()));
        let by_itself = one.reports_confirmed(&lost, &both, &[one.me], 1);
        assert_eq!(effects[3..], [by_itself]);
    };
    confirms(&behind, me, &effects);
    assert_eq!(behind.hear_standing(me, &newer), []);
    let effects = ahead.hear_standing(other, &older);
    confirms(&ahead, other, &effects);
    assert!(
        over(&effects).is_none(),
        "not without the other's confirmation"
    );
    // The one behind knows that all have confirmed, and lacks the block.
    let effects = behind.hear(me, 0, 0, confirming.clone());
    assert_eq!(effects, [behind.reports_confirmed(&lost, &both, &both, 1)]);
    // The other one proves it, and sends that.
    let effects = ahead.hear(other, 0, 0, confirming.clone());
    let passage = over(&effects).unwrap();
    let frame = envelope::sign_passage(&ahead.epoch, &passage);
    let record = Record::Final {
        blocks: passage.blocks.clone(),
        proof: passage.proof.clone(),
    };
    let expected = [
        ahead.reports_confirmed(&lost, &both, &both, 1),
        Effect::Send {
            to: other,
            frame: frame.clone(),
        },
        Effect::Persist(record.clone()),
        Effect::EpochOver(Box::new(passage.clone())),
    ];
    assert_eq!(effects, expected);
    let effects = behind.read(&frame);
    let over = Effect::EpochOver(Box::new(passage.clone()));
    assert_eq!(effects, [Effect::Persist(record), over]);
    let next = ahead.verified(&passage);
    assert_eq!((next.began.round, next.roster.len()), (1, 2));
    // Both make the same epoch.
    assert_eq!(behind.verified(&passage).id, next.id);
}

#[test]
fn a_member_declared_lost_is_told_once_and_goes_on_as_before() {
    let (one, passage) = alone();
    let lost = one.others()[0];
    let frame = envelope::sign_passage(&one.epoch, &passage);
    let mut gone = One::of(one.epoch.clone(), lost);
    let left_behind = Effect::Report(Report::LeftBehind {
        recovery: passage.blocks[0].hash(),
        by: vec![one.me],
        round: 1,
    });
    assert_eq!(gone.read(&frame), [left_behind]);
    assert_eq!(gone.read(&frame), []);
    assert!(!gone.member.epoch_over());
    assert!(
        gone.plan()
            .contains(&Effect::Work(Request::Train { round: 1 }))
    );
    // Its institution may say that it follows.
    let mut gone = One::of(one.epoch.clone(), lost);
    let mut id = passage.blocks[0].hash();
    id.0[31] ^= 1;
    gone.member.config.follow = Some(id);
    assert!(over(&gone.read(&frame)).is_none());
    gone.member.config.follow = Some(passage.blocks[0].hash());
    assert_eq!(over(&gone.read(&frame)), Some(passage));
}

#[test]
fn a_round_whose_models_nobody_has_is_named_and_done_again() {
    let mut one = One::follower(2).signed();
    let view = one.member.view();
    let proposal = one.proposal(view, &one.all());
    one.propose(view, &proposal);
    let proof = one.certificate(view, Verdict::Final(proposal.block.hash()));
    one.has_cast(&proof);
    one.add_certificate(&proof);
    let lost = one.others();
    // Its outcome is being fetched, which may still succeed.
    assert_eq!(one.step(recover(&lost)), []);
    let unavailable = || {
        Input::Done(Answer::Applied {
            round: 1,
            ends: false,
            result: Err(WorkError::Unavailable),
        })
    };
    let mut passage = None;
    for second in 1..12 {
        let mut effects = one.step(unavailable());
        effects.extend(one.at(second * 1000));
        passage = passage.or(over(&effects));
        assert_eq!(passage.is_some(), second >= 8, "after {second} beats");
    }
    let passage = passage.unwrap();
    let recovery = passage.recovery().unwrap();
    assert_eq!(recovery.after, one.epoch.began);
    assert_eq!(recovery.rounds_lost(), [1]);
    assert_eq!(recovery.head, [proposal.block]);
    assert_eq!(one.verified(&passage).began, one.epoch.began);
}

#[test]
fn a_notarised_block_that_may_be_final_elsewhere_is_named() {
    let mut one = One::follower(2).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let notarised = one.certificate(1, Verdict::Notarised(proposal.block.hash()));
    one.has_cast(&notarised);
    one.add_certificate(&notarised);
    let lost = one.others();
    let effects = one.step(recover(&lost));
    let named = |effect: &Effect| {
        matches!(effect, Effect::Report(Report::Recovery { notarised, round: 0, .. })
            if *notarised == Some(1))
    };
    assert!(effects.iter().any(named), "{effects:?}");
    let passage = over(&effects).unwrap();
    assert_eq!(passage.recovery().unwrap().notarised(), Some(1));
    assert_eq!(one.verified(&passage).began.round, 0);
}

#[test]
fn a_recovery_is_checked_part_by_part() {
    let mut one = One::follower(4).signed();
    one.finish_round(&one.all());
    let lost = one.first_others(2);
    let other = one.others()[2];
    let standing = one.standing(&lost);
    one.step(recover(&lost));
    one.hear_standing(other, &standing);
    let own = standing.clone();
    let mut both = [(one.me, &own), (other, &standing)];
    both.sort_unstable_by_key(|(by, _)| *by);
    let confirmation = confirming(1, &both);
    let right = over(&one.hear(other, 0, 0, confirmation)).unwrap();
    one.verified(&right);
    let refused = |change: &dyn Fn(&mut Passage, &mut Recovery)| {
        let mut passage = right.clone();
        let mut recovery = right.recovery().unwrap().clone();
        change(&mut passage, &mut recovery);
        if !passage.blocks.is_empty() {
            passage.blocks[0].content = Content::Recovery(Box::new(recovery));
        }
        passage.verify(&one.epoch, &Strict).unwrap_err()
    };
    let why = |why: RecoveryError| PassageError::Change(ChangeError::Recovery(why));
    let members = 4;
    assert_eq!(
        refused(&|_, recovery| recovery.lost.clear()),
        why(RecoveryError::Lost { members })
    );
    assert_eq!(
        refused(&|_, recovery| recovery.lost.reverse()),
        why(RecoveryError::Lost { members })
    );
    assert_eq!(
        refused(&|_, recovery| recovery.lost[1] = MemberIndex(9)),
        why(RecoveryError::Lost { members })
    );
    let (got, needed) = (1, 2);
    assert_eq!(
        refused(&|_, recovery| drop(recovery.standings.pop())),
        why(RecoveryError::Signers { got, needed })
    );
    // Nobody can be left out by the others: whoever is not lost has to sign.
    let fewer = |recovery: &mut Recovery| {
        recovery.lost.push(other);
        recovery.lost.sort_unstable();
        recovery.standings.retain(|signed| signed.by != other);
    };
    let (got, needed) = (0, 1);
    assert_eq!(
        refused(&|_, recovery| fewer(recovery)),
        why(RecoveryError::Signers { got, needed })
    );
    assert_eq!(
        refused(&|_, recovery| recovery.standings[0].standing.notarised = 7),
        why(RecoveryError::Signature)
    );
    assert_eq!(
        refused(&|_, recovery| {
            recovery.standings[0].signature = recovery.standings[1].signature;
        }),
        why(RecoveryError::Signature)
    );
    assert_eq!(
        refused(&|_, recovery| recovery.standings[1].number = 2),
        why(RecoveryError::Signature)
    );
    assert_eq!(
        refused(&|_, recovery| {
            recovery.standings[1].confirmation = recovery.standings[1].signature;
        }),
        why(RecoveryError::Signature)
    );
    assert_eq!(
        refused(&|_, recovery| recovery.after = one.epoch.began),
        why(RecoveryError::Standings)
    );
    assert_eq!(
        refused(&|passage, _| passage.blocks[0].view += 1),
        why(RecoveryError::Standings)
    );
    assert_eq!(
        refused(&|_, recovery| recovery.head.clear()),
        why(RecoveryError::Head)
    );
    assert_eq!(
        refused(&|_, recovery| {
            let first = recovery.head[0].clone();
            recovery.head.push(first);
        }),
        why(RecoveryError::Head)
    );
    assert!(matches!(
        refused(&|passage, _| passage.proof.votes = passage.proof.votes[1..].into()),
        PassageError::Certificate(_)
    ));
    assert_eq!(
        refused(&|passage, _| passage.proof = Recovery::no_proof(&one.epoch)),
        PassageError::Blocks
    );
    assert_eq!(
        refused(&|passage, _| passage.proof.view += 1),
        PassageError::Blocks
    );
    assert_eq!(
        refused(&|passage, _| {
            let block = passage.blocks[0].clone();
            passage.blocks.push(block);
        }),
        PassageError::Blocks
    );
}

#[test]
fn a_recovery_that_a_lead_proposes_is_refused() {
    let (one, passage) = alone();
    let mut other = One::of(one.epoch.clone(), one.me);
    let block = Block {
        view: 1,
        parent: one.epoch.id,
        ..passage.blocks[0].clone()
    };
    let proposal = Proposal {
        block,
        parent: None,
        skipped: Vec::new(),
    };
    let why = ChangeError::Recovery(RecoveryError::Proposed);
    assert_eq!(
        other.propose(1, &proposal),
        other.refuses_lead(1, why.into())
    );
}

#[test]
fn wishes_and_standings_that_name_the_wrong_members_are_refused() {
    let mut one = One::follower(4);
    let why = |why: RecoveryError| Refusal::Change(ChangeError::Recovery(why));
    let members = 4;
    let me = one.me;
    for (lost, reason) in [
        (vec![], RecoveryError::Lost { members }),
        (one.all(), RecoveryError::Lost { members }),
        (vec![MemberIndex(4)], RecoveryError::Lost { members }),
        (vec![me], RecoveryError::Itself),
    ] {
        assert_eq!(one.step(recover(&lost)), [refused(me, 0, why(reason))]);
    }
    let from = one.others()[0];
    let itself = one.standing(&[from]);
    let effects = one.hear_standing(from, &itself);
    assert_eq!(effects, [refused(from, 0, why(RecoveryError::Itself))]);
    // The last of one member's standings counts.
    let sets = [vec![me], vec![one.others()[1]], vec![one.others()[2]]];
    let heard = [1, 3, 2].map(|number| {
        let standing = Standing {
            number,
            ..one.standing(&sets[number as usize - 1])
        };
        one.hear_standing(from, &standing)
    });
    assert_eq!(heard[0], [one.reports(&sets[0], &[from], 0)]);
    assert_eq!(heard[1], [one.reports(&sets[2], &[from], 0)]);
    // It is shown which one counts: whoever sends an older one may have lost its journal.
    let last = Standing {
        number: 3,
        ..one.standing(&sets[2])
    };
    let (message, _) = one.sealed(from, 0, 0, last.body());
    let frame = envelope::reseal(&one.epoch, &message);
    assert_eq!(heard[2], [Effect::Send { to: from, frame }]);
}

#[test]
fn standings_that_contradict_each_other_lead_nowhere() {
    let mut one = One::follower(4).signed();
    one.finish_round(&one.all());
    let lost = one.first_others(2);
    let other = one.others()[2];
    let mut standing = one.standing(&lost);
    standing.block = Hash::of(b"another block of that view");
    one.step(recover(&lost));
    let effects = one.hear_standing(other, &standing);
    let why = ChangeError::Recovery(RecoveryError::Standings);
    let mut both = [one.me, other];
    both.sort_unstable();
    let expected = [refused(one.me, 0, why.into()), one.reports(&lost, &both, 1)];
    assert_eq!(effects, expected);
    // Two outcomes of one round neither.
    let mut one = One::follower(4).signed();
    one.finish_round(&one.all());
    let mut standing = one.standing(&lost);
    standing.adopted.outcome = Hash::of(b"another outcome of that round");
    one.step(recover(&lost));
    let effects = one.hear_standing(other, &standing);
    assert_eq!(effects, expected);
}

#[test]
fn the_blocks_of_a_recovery_are_rounds_and_empty_blocks_of_its_epoch() {
    let one = One::follower(4);
    let lost = one.first_others(2);
    let with_head = |block: Block| {
        let standing = Standing {
            view: block.view,
            block: block.hash(),
            ..one.standing(&lost)
        };
        let signature = one.sealed(one.me, 0, 0, standing.body()).0.signature;
        let remaining = one.all().into_iter().filter(|by| !lost.contains(by));
        let confirmed = |by| Confirmed {
            by,
            standing: standing.clone(),
            signature,
            number: 1,
            confirmation: signature,
        };
        let point = resume_point(&one.epoch, [&standing]).unwrap();
        let standings = remaining.map(confirmed).collect();
        let block = Recovery::block(&one.epoch, &lost, &point, standings, vec![block]);
        one.epoch.next(&block).map(|next| next.roster.len())
    };
    let empty = one.block(1, one.epoch.id, Content::Empty);
    assert_eq!(with_head(empty.clone()), Ok(2));
    let head = ChangeError::Recovery(RecoveryError::Head);
    let elsewhere = Block {
        epoch: Hash::of(b"another epoch"),
        ..empty
    };
    assert_eq!(with_head(elsewhere), Err(head.clone()));
    let changing = one.changing(1, &longer(&one.epoch), &one.others()).block;
    assert_eq!(with_head(changing), Err(head));
}
