//! Masked rounds of small federations.

use super::prelude::*;
use super::table::{TestFederation, epoch_with};
use crate::certificate::Verdict;
use crate::parameters::{Epoch, Group, Masked, Privacy, ProtocolParameters, Rotation, Sums};
use crate::refusal::Omission;
use crate::roster::quorum;

/// One group of members with equal weights.
pub(super) fn group(members: impl IntoIterator<Item = u16>) -> Group {
    let named = members.into_iter().map(|i| (format!("silo {i}"), 1));
    let mut authors: Vec<_> = named.collect();
    authors.sort();
    Group { authors }
}

/// A parameter set of n members with masked rounds of these groups.
pub(super) fn mask(protocol: &mut ProtocolParameters, n: u16, groups: Vec<Group>) {
    protocol.privacy = Privacy::Masked(Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: 3,
        sums: Sums::Groups(groups),
    });
    protocol.min_contributions = quorum(n.into()) as u16;
}

pub(super) fn masked(n: u16, rounds: u64) -> Arc<Epoch> {
    epoch_with(n, rounds, |protocol| mask(protocol, n, vec![group(0..n)]))
}

fn outcomes(table: &TestFederation, i: usize) -> Vec<Hash> {
    let certified = |report: &Report| match report {
        Report::Certified(certificate) => match certificate.verdict {
            Verdict::Outcome { outcome, .. } => Some(outcome),
            _ => None,
        },
        _ => None,
    };
    let of = table.reports.iter().filter(|(at, _)| *at == i);
    of.filter_map(|(_, report)| certified(report)).collect()
}

#[test]
fn masked_rounds_are_final_opened_certified_and_adopted() {
    for n in [4, 7] {
        let mut table = TestFederation::of(masked(n, 3), false);
        table.pass(100);
        for i in 0..usize::from(n) {
            assert_eq!(table.finals(i), [(1, 1), (2, 2), (3, 3)]);
            assert_eq!(outcomes(&table, i).len(), 3);
            assert_eq!(outcomes(&table, i), outcomes(&table, 0));
        }
        table.chains_agree();
    }
}

#[test]
fn every_rotation_gives_the_leads_that_it_gives_in_clear_rounds() {
    for rotation in [
        Rotation::EveryRound,
        Rotation::EveryRounds(2),
        Rotation::OnFailure,
        Rotation::Reliability,
        Rotation::Fixed,
    ] {
        let leads = |masked: bool| {
            let epoch = epoch_with(4, 6, |protocol| {
                protocol.rotation = rotation;
                if masked {
                    mask(protocol, 4, vec![group(0..4)]);
                }
            });
            // The order of leads follows from the ids.
            let mut epoch = (*epoch).clone();
            (epoch.federation, epoch.id) = (Hash([1; 32]), Hash([2; 32]));
            let epoch = Arc::new(epoch);
            let mut table = TestFederation::of(epoch, false);
            table.pass(100);
            let lead = |report: &Report| match report {
                Report::Final {
                    round, view, lead, ..
                } => Some((*round, *view, *lead)),
                _ => None,
            };
            let of = table.reports.iter().filter(|(at, _)| *at == 0);
            of.filter_map(|(_, report)| lead(report))
                .collect::<Vec<_>>()
        };
        assert_eq!(leads(true), leads(false), "{rotation}");
    }
}

#[test]
pub(super) fn without_a_vector_of_a_group_the_lead_votes_against_its_view() {
    let mut table = TestFederation::of(masked(4, 1), false);
    table.toys.wrong.insert(2);
    let given_up = |table: &TestFederation| {
        let mut reports = table.reports.iter();
        reports.any(|(_, report)| matches!(report, Report::Nullifying { .. }))
    };
    table.pass_while(100, |table| !given_up(table));
    // Not at once: the next lead would get the same.
    assert!(table.now >= Time::ZERO + table.epoch.patience());
    let (missing, reason) = (1, Omission::Vector);
    let expected = Report::Nullifying {
        view: 1,
        reason: Refusal::TooFewLeft { missing, reason },
    };
    let lead = table.epoch.lead(1).at();
    assert!(table.reports.contains(&(lead, expected)));
}

/// A member whose transcripts are always wrong, in the only group: nothing becomes final, and views take their
/// time, so that nobody masks without a pause.
#[test]
fn a_group_with_a_member_that_is_always_wrong_waits_and_does_not_spin() {
    let mut table = TestFederation::of(masked(4, 1), false);
    table.toys.wrong.insert(2);
    let patience = table.epoch.patience();
    let until = Time::ZERO + patience * 10;
    table.pass_while(1000, |table| table.now < until);
    let views = table
        .members
        .iter()
        .flatten()
        .map(|member| member.consensus.view.number);
    let most = views.max().unwrap();
    assert!(
        (3..=12).contains(&most),
        "{most} views in ten times patience"
    );
    assert_eq!(table.finals(0), []);
}

/// Lets time pass until the round is final at every running member.
fn until_final(table: &mut TestFederation, round: u64) {
    let knows = |member: &Member| member.consensus.chain.learned.round >= round;
    table.pass_while(100, |table| !table.members.iter().flatten().all(knows));
}

fn loses_votes(_: usize, message: &Message) -> bool {
    matches!(message.body, Body::Outcome { .. })
}

fn reported(table: &TestFederation, i: usize, is: impl Fn(&Report) -> bool) -> bool {
    table
        .reports
        .iter()
        .any(|(at, report)| *at == i && is(report))
}

#[test]
fn a_round_begins_with_the_outcome_before_it_and_its_patience_with_the_certificate() {
    let mut table = TestFederation::of(masked(4, 2), false);
    table.lost = loses_votes;
    until_final(&mut table, 1);
    // Only blocks that are empty could come, and none is needed.
    let later = table.now + table.epoch.heartbeat() * 30;
    table.pass_while(40, |table| table.now < later);
    for member in table.members.iter().flatten() {
        assert_eq!(
            (member.round(), member.consensus.chain.learned.round),
            (1, 1)
        );
        assert_eq!(member.consensus.chain.history.len(), 1);
    }
    table.lost = |_, _| false;
    table.pass_while(5, |table| {
        table.members.iter().flatten().any(|of| of.round() == 1)
    });
    let now = table.now;
    for member in table.members.iter().flatten() {
        assert!(now - member.rounds.round.started <= table.epoch.heartbeat());
    }
    table.pass(100);
    table.chains_agree();
}

#[test]
fn a_final_round_has_its_outcome_without_as_many_members_as_a_quorum_may_lack() {
    for n in [4, 7, 10] {
        let mut table = TestFederation::of(masked(n, 1), false);
        table.lost = |_, message| matches!(message.body, Body::Unmasking(_) | Body::Outcome { .. });
        until_final(&mut table, 1);
        (0..usize::from(n) - quorum(n.into())).for_each(|i| table.kill(i));
        table.lost = |_, _| false;
        table.pass(100);
        table.chains_agree();
    }
}

#[test]
fn members_that_restart_between_finality_and_certificate_go_on() {
    let mut table = TestFederation::of(masked(4, 2), false);
    table.lost = loses_votes;
    until_final(&mut table, 1);
    table.run();
    for i in 0..4 {
        table.kill(i);
    }
    (0..4).for_each(|i| table.restart(i));
    table.lost = |_, _| false;
    table.pass(100);
    table.chains_agree();
    for i in 0..4 {
        assert_eq!(outcomes(&table, i).len(), 2);
    }
}

/// Seven members in two groups: without one of them, three or four are left.
fn two_groups(rounds: u64) -> TestFederation {
    let groups = || vec![group(0..3), group(3..7)];
    TestFederation::of(
        epoch_with(7, rounds, |protocol| mask(protocol, 7, groups())),
        false,
    )
}

#[test]
fn members_that_were_away_new_or_without_journal_get_the_outcome_by_its_hash() {
    for start in [Start::New, Start::Lost, Start::Kept(Vec::new())] {
        let mut table = two_groups(2);
        table.kill(6);
        let others =
            |table: &TestFederation| table.members.iter().flatten().any(|of| !of.complete());
        table.pass_while(200, others);
        table.start(6, start);
        table.pass(100);
        assert!(table.members[6].as_ref().unwrap().complete());
        assert_eq!(outcomes(&table, 6).last(), outcomes(&table, 0).last());
    }
}

#[test]
fn a_group_without_a_member_sits_out_and_the_other_is_opened() {
    let mut table = two_groups(2);
    table.kill(6);
    table.pass(300);
    let ready = |table: &TestFederation, i: usize| {
        let history = table.members[i]
            .as_ref()
            .unwrap()
            .consensus
            .chain
            .history
            .iter();
        let ready = history.filter_map(|(block, _)| Some(block.masked()?.ready.len()));
        ready.collect::<Vec<_>>()
    };
    assert_eq!(ready(&table, 0), [6, 6]);
}

#[test]
fn a_round_without_a_complete_group_waits_and_says_who_is_missing() {
    let mut table = TestFederation::of(masked(4, 2), false);
    table.kill(3);
    table.pass_while(60, |table| {
        table.now < Time::ZERO + table.epoch.heartbeat() * 50
    });
    let missing = Report::GroupsIncomplete {
        round: 1,
        members: vec![MemberIndex(3)],
    };
    assert!(table.reports.iter().any(|(_, report)| *report == missing));
    assert_eq!(table.finals(0), []);
    table.restart(3);
    table.pass(200);
}

#[test]
fn a_member_with_a_wrong_transcript_or_a_lost_secret_is_left_out_of_the_next_list() {
    for lost in [false, true] {
        let mut table = two_groups(1);
        if lost {
            table.toys.lost.insert(6)
        } else {
            table.toys.wrong.insert(6)
        };
        table.pass(100);
        let members = vec![MemberIndex(6)];
        let left_out = |report: &Report| match report {
            Report::LeftOut {
                members: out,
                reason,
                ..
            } => (out, reason) == (&members, &Omission::Vector),
            _ => false,
        };
        assert!(table.reports.iter().any(|(_, report)| left_out(report)));
    }
}

/// The lead waits for no other, and shows others what is wrong with each.
#[test]
fn two_members_with_wrong_transcripts_for_one_list_are_named_and_left_out_at_once() {
    let groups = || vec![group(0..5), group(5..10)];
    let epoch = epoch_with(10, 1, |protocol| mask(protocol, 10, groups()));
    let mut table = TestFederation::of(epoch, false);
    table.toys.wrong.extend([8, 9]);
    table.pass(300);
    let both = vec![MemberIndex(8), MemberIndex(9)];
    let left_out = table.reports.iter().filter_map(|(_, report)| match report {
        Report::LeftOut {
            members, reason, ..
        } => Some((members, reason)),
        _ => None,
    });
    assert_eq!(left_out.collect::<Vec<_>>(), [(&both, &Omission::Vector)]);
    let wrong = table.reports.iter().filter_map(|(_, report)| match report {
        Report::WrongVector { vector } => Some(vector.sender),
        _ => None,
    });
    assert_eq!(wrong.collect::<Vec<_>>(), both);
    for member in table.members.iter().flatten() {
        let history = member.consensus.chain.history.iter();
        let ready = history.filter_map(|(block, _)| Some(block.masked()?.ready.clone()));
        let ready: Vec<_> = ready.collect();
        assert_eq!(ready, [(0..8).map(MemberIndex).collect::<Vec<_>>()]);
    }
}

#[test]
fn a_machine_that_computes_another_outcome_follows_the_others_and_says_so() {
    let mut table = TestFederation::of(masked(4, 2), false);
    table.toys.strange.insert(1);
    table.pass(100);
    assert!(reported(&table, 1, |report| matches!(
        report,
        Report::OtherOutcome { .. }
    )));
    assert!(!reported(&table, 0, |report| matches!(
        report,
        Report::OtherOutcome { .. }
    )));
    assert_eq!(outcomes(&table, 1), outcomes(&table, 0));
}

#[test]
fn false_shares_are_refused_and_those_of_the_others_are_enough() {
    let mut table = TestFederation::of(masked(4, 2), false);
    table.toys.false_shares.insert(2);
    table.pass(100);
    let refused = |report: &Report| {
        let by = MemberIndex(2);
        matches!(report, Report::Refused { member, reason: Refusal::Unmasking, .. } if *member == by)
    };
    assert!((0..4).any(|i| reported(&table, i, refused)));
    table.chains_agree();
}

#[test]
fn a_lead_that_dies_in_any_phase_of_a_masked_round_is_replaced() {
    use crate::message::Phase;
    for phase in [
        Phase::Collecting,
        Phase::Masking,
        Phase::Including,
        Phase::Voting,
    ] {
        // Back with its journal, or gone for good: the other group goes on then.
        for back in [true, false] {
            let mut table = two_groups(2);
            let leads = |report: &Report| match report {
                Report::Leading {
                    phase: now,
                    round: 1,
                    ..
                } => *now == phase,
                _ => false,
            };
            let found =
                |table: &TestFederation| table.reports.iter().any(|(_, report)| leads(report));
            table.pass_while(100, |table| !found(table));
            let (dead, _) = table
                .reports
                .iter()
                .find(|(_, report)| leads(report))
                .unwrap();
            let dead = *dead;
            table.kill(dead);
            if back {
                table.restart(dead);
            }
            table.pass(400);
            table.chains_agree();
        }
    }
}
