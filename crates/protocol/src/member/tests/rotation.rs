//! Rotations under which the lead of a view follows from the final rounds.

use super::amendments::longer;
use super::one::*;
use super::prelude::*;
use super::table::{TestFederation, epoch_with};
use crate::certificate::{Certificate, Verdict};
use crate::message::{Phase, Proposal};
use crate::parameters::{Epoch, Rotation};

fn under(rotation: Rotation, n: u16) -> Arc<Epoch> {
    epoch_with(n, 6, |protocol| protocol.rotation = rotation)
}

/// The leads of views 1, 2, 3, ... if all of them fail.
fn order(epoch: &Epoch) -> Vec<MemberIndex> {
    let views = 1..=epoch.roster.len() as u64;
    views.map(|view| epoch.lead(view)).collect()
}

/// A member that leads neither of the first two views, under `on-failure`.
fn third() -> (One, Vec<MemberIndex>) {
    let epoch = under(Rotation::OnFailure, 4);
    let order = order(&epoch);
    (One::of(epoch, order[2]), order)
}

/// Round 1 is notarised in view 1; gives its proposal and the final certificate that follows.
fn notarised(one: &mut One) -> (Proposal, Certificate) {
    one.hold_all();
    one.hear_lead(1, one.contribution_list(&one.all()));
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let block = proposal.block.hash();
    let certificate = one.certificate(1, Verdict::Notarised(block));
    one.add_certificate(&certificate);
    (proposal, one.certificate(1, Verdict::Final(block)))
}

fn entered(view: u64, lead: MemberIndex, round: u64) -> Effect {
    Effect::Report(Report::Entered { view, lead, round })
}

#[test]
fn a_final_round_gives_the_view_that_has_begun_back_to_its_lead() {
    let (one, order) = third();
    let mut one = one.contributed();
    let (_, last) = notarised(&mut one);
    // Until the round is known to be final, the next member would have to make it so.
    assert_eq!((one.member.view(), one.member.lead_now()), (2, order[1]));
    let effects = one.add_certificate(&last);
    assert!(effects.contains(&entered(2, order[0], 2)), "{effects:?}");
    assert_eq!((one.member.view(), one.member.lead_now()), (2, order[0]));
    // The contribution to round 2 goes to it.
    let (round, result) = (1, Ok(()));
    one.step(Input::Done(Answer::Applied {
        round,
        ends: false,
        result,
    }));
    one.plan();
    let effects = one.train();
    let contribution = one.contributes(order[0]);
    assert!(effects.contains(&contribution), "{effects:?}");
    // A view that fails passes the round on.
    let effects = one.skip(2);
    assert!(effects.contains(&entered(3, order[1], 2)), "{effects:?}");
    assert!(effects.contains(&one.contributes(order[1])));
}

#[test]
fn an_empty_block_of_the_member_that_led_before_its_parent_was_known_to_be_final_gets_a_vote() {
    let (one, order) = third();
    let mut one = one.contributed();
    let (proposal, last) = notarised(&mut one);
    let parent = one.certificate(1, Verdict::Notarised(proposal.block.hash()));
    let empty = one.empty(2, &parent);
    one.add_certificate(&last);
    let body = |proposal: &Proposal| Body::Proposal(Box::new(proposal.clone()));
    // Not of a member that led the view neither before nor after.
    assert_eq!(one.hear(order[3], 0, 2, body(&empty)), []);
    // A learning block of the former lead is not the lead's.
    let (round, result) = (1, Ok(()));
    one.step(Input::Done(Answer::Applied {
        round,
        ends: false,
        result,
    }));
    one.plan();
    let learning = one.proposal(2, &one.all());
    assert_eq!(one.hear(order[1], 0, 2, body(&learning)), []);
    // Neither is its change, although enough members approve it.
    let change = one.changing(2, &longer(&one.epoch), &one.others());
    assert_eq!(one.hear(order[1], 0, 2, body(&change)), []);
    let effects = one.hear(order[1], 0, 2, body(&empty));
    let votes = |effect: &Effect| matches!(effect, Effect::Persist(Record::Vote(_)));
    assert!(effects.iter().any(votes), "{effects:?}");
    // One vote in a view: the lead's own block gets none any more.
    let effects = one.hear(order[0], 0, 2, body(&one.proposal(2, &one.all())));
    assert!(!effects.iter().any(votes), "{effects:?}");
}

#[test]
fn a_member_that_proposed_before_the_view_got_another_lead_proposes_nothing_else_in_it() {
    for rotation in [Rotation::OnFailure, Rotation::Reliability] {
        let epoch = under(rotation, 4);
        let me = epoch.lead(2);
        let mut one = One::of(epoch, me).contributed();
        let (_, last) = notarised(&mut one);
        let proposed = |effects: &[Effect]| {
            let all = effects.iter();
            all.filter(|effect| matches!(effect, Effect::Persist(Record::Proposed(_))))
                .count()
        };
        // After D it proposes an empty block, and then learns that the round is final.
        assert_eq!(proposed(&one.pass(2500)), 1);
        let mut effects = one.add_certificate(&last);
        let (round, result) = (1, Ok(()));
        effects.extend(one.step(Input::Done(Answer::Applied {
            round,
            ends: false,
            result,
        })));
        one.plan();
        effects.extend(one.train());
        let others = one.others();
        for member in others {
            effects.extend(one.take_in(member));
        }
        effects.extend(one.hold_all());
        effects.extend(one.pass(5000));
        assert_eq!(proposed(&effects), 0, "{rotation}");
        // It still sends its block to those that have not voted.
        let block = |effect: &Effect| {
            match effect {
            Effect::Send { frame, .. } => envelope::open(
                &one.epoch,
                &crate::identity::Strict,
                &Known::default(),
                frame,
            )
            .is_ok_and(|opened| {
                matches!(opened, Opened::Message(message) if message.body.kind() == Kind::Proposal)
            }),
            _ => false,
        }
        };
        assert!(effects.iter().any(block), "{rotation}");
    }
}

#[test]
fn while_a_round_may_become_final_the_next_lead_does_not_announce_itself_at_once() {
    let epoch = under(Rotation::OnFailure, 4);
    let me = epoch.lead(2);
    let mut one = One::of(epoch, me).contributed();
    let (_, last) = notarised(&mut one);
    let announced = |one: &One, effects: &[Effect]| {
        let phases = [Phase::Waiting, Phase::Voting];
        phases.map(|phase| effects.contains(&one.progress(2, phase, 0))) != [false; 2]
    };
    let effects = one.pass(999);
    assert!(!announced(&one, &effects));
    let effects = one.pass(1000);
    assert!(announced(&one, &effects), "{effects:?}");
    one.add_certificate(&last);
    assert_eq!(one.member.lead_now(), one.epoch.lead(1));
}

#[test]
fn a_restarted_member_knows_whose_turn_it_is() {
    for rotation in [
        Rotation::OnFailure,
        Rotation::EveryRounds(2),
        Rotation::Reliability,
    ] {
        let mut table = TestFederation::under(rotation, 4, 6);
        table.run_to_round(4);
        let before: Vec<_> = table.leads();
        for i in 0..4 {
            table.kill(i);
            table.restart(i);
        }
        assert_eq!(table.leads(), before, "{rotation}");
        table.pass(400);
        table.chains_agree();
        assert_eq!(table.finals(0).len(), 6, "{rotation}");
    }
}

/// Who led the final rounds, as their blocks' members reported it.
fn led(table: &TestFederation) -> Vec<MemberIndex> {
    let mut led = BTreeMap::new();
    for (_, report) in &table.reports {
        if let Report::Final { round, lead, .. } = report {
            assert_eq!(*led.entry(*round).or_insert(*lead), *lead, "round {round}");
        }
    }
    led.into_values().collect()
}

#[test]
fn each_policy_gives_the_rounds_the_leads_that_it_promises() {
    let rounds = |rotation| {
        let mut table = TestFederation::under(rotation, 4, 6);
        table.pass(400);
        let order = order(&table.epoch);
        let place = |lead| order.iter().position(|&member| member == lead).unwrap();
        led(&table).into_iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(rounds(Rotation::OnFailure), [0; 6]);
    assert_eq!(rounds(Rotation::EveryRounds(2)), [0, 0, 1, 1, 2, 2]);
    let mut table = TestFederation::under(Rotation::Fixed, 4, 6);
    table.pass(400);
    assert_eq!(led(&table), [MemberIndex(0); 6]);
    let mut table = TestFederation::under(Rotation::Reliability, 4, 6);
    table.pass(400);
    assert_eq!(led(&table).len(), 6);
}

#[test]
fn a_dead_lead_is_replaced_under_every_policy_but_fixed() {
    for rotation in Rotation::ALL {
        let mut table = TestFederation::under(rotation, 4, 6);
        table.run_to_round(3);
        let dead = table.leads()[0].at();
        table.kill(dead);
        let until = table.now + table.epoch.heartbeat() * 600;
        let ended = |table: &TestFederation| {
            let all = table.members.iter().flatten();
            table.now >= until || all.into_iter().all(Member::complete)
        };
        table.pass_while(601, |table| !ended(table));
        let alive = (dead + 1) % 4;
        let rounds = table.finals(alive).len();
        match rotation {
            Rotation::Fixed => assert!(rounds < 6, "no round becomes final without its lead"),
            _ => assert_eq!(rounds, 6, "{rotation}"),
        }
        if rotation == Rotation::Fixed {
            table.restart(dead);
            table.pass(600);
            assert_eq!(table.finals(alive).len(), 6, "its lead is back");
        }
    }
}
