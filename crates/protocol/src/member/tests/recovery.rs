//! Going on without members that are gone for good: standings, the recovery that follows from them,
//! and members that were declared lost.

use super::super::*;
use super::one::*;
use super::table::key;
use crate::certificate::Verdict;
use crate::change::{ChangeError, PassageError};
use crate::charter::Epoch;
use crate::effects::OwnConfirmation;
use crate::epochs::Epochs;
use crate::identity::Strict;
use crate::message::{Block, Confirmation, Content, Passage, Proposal, Recovery, Standing};
use crate::recovery::{RecoveryError, set};
use crate::work::WorkError;

fn recover(lost: &[MemberIndex]) -> Input {
    let lost = lost.to_vec();
    Input::Recover {
        lost,
        abandon: false,
    }
}

/// A set of standings, as a member confirms it for the nth time.
fn confirming(number: u64, standings: &[(MemberIndex, &Standing)]) -> Body {
    let set = set(standings.iter().copied());
    Confirmation { number, set }.body()
}

/// The end of the epoch among effects.
fn over(effects: &[Effect]) -> Option<Passage> {
    effects.iter().find_map(|effect| match effect {
        Effect::EpochOver(passage) => Some((**passage).clone()),
        _ => None,
    })
}

impl One {
    /// The members without this one, in order, the first `n` of them.
    fn first_others(&self, n: usize) -> Vec<MemberIndex> {
        self.others()[..n].to_vec()
    }

    /// What it signs now.
    fn standing(&self, lost: &[MemberIndex]) -> Standing {
        let chain = &self.member.chain;
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
        let own = self.member.recoveries.own.as_ref();
        own.expect("it has signed").body.clone()
    }

    /// Another member's standing arrives.
    fn hear_standing(&mut self, from: MemberIndex, standing: &Standing) -> Vec<Effect> {
        self.hear(from, 0, 0, standing.body())
    }

    fn verified(&self, passage: &Passage) -> Epoch {
        passage.verify(&self.epoch, &Strict).unwrap()
    }
}

/// One of two members, in whose federation round 1 is final, goes on alone.
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
    // It signs for no sheet, and votes for and against nothing.
    one.hold_all();
    let bundle = one.bundle(&one.all());
    assert_eq!(one.hear_lead(1, bundle), []);
    let proposal = one.proposal(1, &one.all());
    assert_eq!(one.propose(1, &proposal), []);
    let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
    assert_eq!(one.add_certificate(&proof), []);
    // What it signed is sent again every four beats, and to whoever comes back.
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
            .any(|effect| matches!(effect, Effect::Plan { .. }))
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
    let checkpoint = one.member.chain.checkpoint();
    assert_eq!((recovery.after, checkpoint.round), (checkpoint, 1));
    let next = one.verified(&passage);
    assert_eq!(
        next.roster.silos(),
        &one.epoch.roster.silos()[one.me.at()..][..1]
    );
    assert_eq!((next.number, next.began), (1, checkpoint));
    assert_eq!(next.charter, one.epoch.charter.for_members(2, 1));
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
        effects.contains(&Effect::Plan { round, state }),
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
    let frame = envelope::seal_passage(&ahead.epoch, &passage);
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
    let frame = envelope::seal_passage(&one.epoch, &passage);
    let mut gone = One::of(one.epoch.clone(), lost);
    let left_behind = Effect::Report(Report::LeftBehind {
        recovery: passage.blocks[0].hash(),
        by: vec![one.me],
        round: 1,
    });
    assert_eq!(gone.read(&frame), [left_behind]);
    assert_eq!(gone.read(&frame), []);
    assert!(!gone.member.epoch_over());
    assert!(gone.plan().contains(&Effect::Train { round: 1 }));
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
    let unavailable = || Input::Applied {
        round: 1,
        ends: false,
        result: Err(WorkError::Unavailable),
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

/// One of four that goes on with another one, without two that are lost.
struct Two {
    one: One,
    other: MemberIndex,
    lost: Vec<MemberIndex>,
}

impl Two {
    fn new() -> Self {
        let one = One::follower(4);
        let lost = one.first_others(2);
        let other = one.others()[2];
        Self { one, other, lost }
    }

    /// Its own nth standing, and the other's.
    fn standings(&self, own: u64, others: u64) -> [Standing; 2] {
        [own, others].map(|number| Standing {
            number,
            ..self.one.standing(&self.lost)
        })
    }

    /// The other one's nth confirmation of these standings.
    fn confirmation(&self, nth: u64, [own, others]: &[Standing; 2]) -> Body {
        let mut both = [(self.one.me, own), (self.other, others)];
        both.sort_unstable_by_key(|(by, _)| *by);
        confirming(nth, &both)
    }
}

fn confirmed(effects: &[Effect]) -> Option<OwnConfirmation> {
    effects.iter().find_map(|effect| match effect {
        Effect::Persist(Record::Confirmed(own)) => Some((**own).clone()),
        _ => None,
    })
}

fn signed(effects: &[Effect]) -> Option<Standing> {
    effects.iter().find_map(|effect| match effect {
        Effect::Persist(Record::Standing(message)) => match &message.body {
            Body::Standing(standing) => Some((**standing).clone()),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn an_institution_corrects_itself_any_number_of_times_while_its_node_runs() {
    let Two {
        mut one,
        other,
        lost,
    } = Two::new();
    // Wrong twice, then right, then wrong and right again.
    let wrong = [vec![other], vec![lost[0]]];
    let tries = [&wrong[0], &wrong[1], &lost, &wrong[1], &lost];
    for (number, lost) in (1..).zip(tries) {
        let effects = one.step(recover(lost));
        let standing = signed(&effects).unwrap();
        assert_eq!((standing.number, &standing.lost), (number, lost));
        // After a correction everybody is told, also those that were to remain before.
        let told = one
            .others()
            .into_iter()
            .filter(|to| number > 1 || !lost.contains(to));
        for to in told {
            let sent = one.sends(to, 0, 0, standing.body());
            assert!(effects.contains(&sent), "{number}: {effects:?}");
        }
    }
    // The others need not have erred: their first standing fits to its fifth.
    let standing = one.standing(&lost);
    let effects = one.hear_standing(other, &standing);
    let own = confirmed(&effects).unwrap();
    let numbers: Vec<_> = own
        .standings
        .iter()
        .map(|(by, of, _)| (*by, of.number))
        .collect();
    let mut expected = [(one.me, 5), (other, 1)];
    expected.sort_unstable();
    assert_eq!(numbers, expected);
}

#[test]
fn whoever_has_confirmed_signs_for_another_set_only_when_one_of_it_has_given_it_up() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    two.one.step(recover(&two.lost));
    assert!(confirmed(&two.one.hear_standing(two.other, &first[1])).is_some());
    // A correction waits, and says for whom; also after a restart.
    let corrected = vec![two.lost[0]];
    let held = Effect::Report(Report::RecoveryHeld {
        confirmed: two.lost.clone(),
        awaits: vec![two.other],
    });
    let effects = two.one.step(recover(&corrected));
    assert!(
        effects.contains(&held) && signed(&effects).is_none(),
        "{effects:?}"
    );
    assert!(signed(&two.one.pass(20_000)).is_none());
    // The other one says that it never will.
    let later = two.standings(1, 2)[1].clone();
    let effects = two.one.hear_standing(two.other, &later);
    let standing = signed(&effects).unwrap();
    assert_eq!((standing.number, standing.lost), (2, corrected));
    // Nor does its old standing, sent again, bring the first set back.
    let effects = two.one.hear_standing(two.other, &first[1]);
    assert!(confirmed(&effects).is_none(), "{effects:?}");
}

#[test]
fn a_correction_that_comes_after_all_have_confirmed_changes_nothing() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    two.one.step(recover(&two.lost));
    two.one.hear_standing(two.other, &first[1]);
    two.one.step(recover(&[two.lost[0]]));
    let confirmation = two.confirmation(1, &first);
    let effects = two.one.hear(two.other, 0, 0, confirmation);
    assert!(over(&effects).is_some(), "{effects:?}");
}

#[test]
fn a_confirmation_of_another_set_does_not_complete_a_recovery() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    two.one.step(recover(&two.lost));
    two.one.hear_standing(two.other, &first[1]);
    let confirmation = two.confirmation(1, &two.standings(2, 1));
    let effects = two.one.hear(two.other, 0, 0, confirmation);
    assert!(over(&effects).is_none(), "{effects:?}");
    // The last confirmation of a member counts.
    let confirmation = two.confirmation(2, &first);
    let effects = two.one.hear(two.other, 0, 0, confirmation);
    assert!(over(&effects).is_some(), "{effects:?}");
}

#[test]
fn what_was_confirmed_is_remembered_through_a_restart() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    let mut effects = two.one.step(recover(&two.lost));
    effects.extend(two.one.hear_standing(two.other, &first[1]));
    let records: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Persist(record) => Some(record.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(records.len(), 2);
    let start = Start::Kept(records);
    let (one, _) = One::start(two.one.epoch.clone(), two.one.me, start);
    two.one = one;
    let effects = two.one.step(recover(&[two.lost[0]]));
    assert!(signed(&effects).is_none(), "{effects:?}");
    let confirmation = two.confirmation(1, &first);
    assert!(over(&two.one.hear(two.other, 0, 0, confirmation)).is_some());
}

#[test]
fn what_was_confirmed_is_abandoned_only_where_all_that_may_have_completed_it_are_lost() {
    let two = || {
        let mut two = Two::new();
        let first = two.standings(1, 1);
        two.one.step(recover(&two.lost));
        two.one.hear_standing(two.other, &first[1]);
        two
    };
    let abandon = |lost: &[MemberIndex]| Input::Recover {
        lost: lost.to_vec(),
        abandon: true,
    };
    // The other one, whose confirmation is not here, is not among the lost.
    let mut first = two();
    let effects = first.one.step(abandon(&first.lost[..1]));
    assert!(signed(&effects).is_none(), "{effects:?}");
    // It died before it confirmed, for good: this one goes on alone.
    let mut second = two();
    let all = second.one.others();
    assert!(signed(&second.one.step(recover(&all))).is_none());
    let effects = second.one.step(abandon(&all));
    assert_eq!(signed(&effects).map(|of| of.lost), Some(all));
    assert!(over(&effects).is_some(), "{effects:?}");
}

#[test]
fn a_member_that_lost_its_journal_learns_how_far_its_standings_have_come() {
    let mut two = Two::new();
    two.one.step(recover(&two.lost));
    // Another one holds a third standing of its key.
    let [third, _] = two.standings(3, 1);
    let me = two.one.me;
    let effects = two.one.hear(me, 0, 0, third.body());
    let standing = signed(&effects).unwrap();
    assert_eq!((standing.number, standing.lost), (4, two.lost.clone()));
}

#[test]
fn a_member_left_behind_is_told_of_the_same_others_once() {
    let mut gone = None;
    let mut told = 0;
    // Any number of recoveries by one other member.
    for number in 1..20 {
        let mut one = One::follower(2);
        let lost = one.others();
        one.member.recoveries.reminded = number;
        let passage = over(&one.step(recover(&lost))).unwrap();
        let frame = envelope::seal_passage(&one.epoch, &passage);
        let gone = gone.get_or_insert_with(|| One::of(one.epoch.clone(), lost[0]));
        told += gone.read(&frame).len();
    }
    assert_eq!(told, 1);
}
