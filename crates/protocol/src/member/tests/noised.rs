//! Masked rounds with noise: one sum of all ready members, of as many as agreed at least.

use super::masked_one::{key_list, prepare, proposal};
use super::one::One;
use super::prelude::*;
use super::table::{TestFederation, epoch_declaring};
use crate::certificate::Verdict;
use crate::parameters::{
    Epoch, Masked, Noise, Privacy, ProtocolParameters, Real, Release, Sums, Unit,
};
use crate::roster::quorum;

/// A parameter set of n members with noise, and sums of so many authors at least.
fn noise(protocol: &mut ProtocolParameters, n: u16, fewest: u16) {
    protocol.privacy = Privacy::Masked(Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: fewest,
        sums: Sums::Noised(Noise {
            release: Release::Steps,
            unit: Unit::Row,
            clip: Real::new(1.0),
            z: Real::new(20.0),
            delta: Real::new(1e-5),
        }),
    });
    protocol.min_contributions = (quorum(n.into()) as u16).max(fewest);
}

pub(super) fn noised(n: u16, rounds: u64, fewest: u16) -> Arc<Epoch> {
    let rows = vec![10; n.into()];
    epoch_declaring(n, rounds, &rows, |protocol| noise(protocol, n, fewest))
}

/// Four members are left of more, and a sum has five authors at least.
fn too_few() -> Arc<Epoch> {
    let mut epoch = (*noised(4, 5, 4)).clone();
    if let Privacy::Masked(masked) = &mut epoch.protocol.privacy {
        masked.smallest_sum = 5;
    }
    Arc::new(epoch)
}

/// A member of this epoch that has contributed its keys to the first round, and does not lead soon.
fn contributed(epoch: Arc<Epoch>) -> One {
    let me = epoch.lead(0);
    let mut one = One::of(epoch, me);
    one.plan();
    prepare(&mut one);
    one
}

#[test]
fn noised_rounds_go_on_without_a_member_and_with_it_again() {
    let mut table = TestFederation::of(noised(4, 3, 3), false);
    table.kill(3);
    table.pass_while(200, |table| table.finals(0).is_empty());
    table.restart(3);
    table.pass(300);
    let ready = |i: usize| {
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
    // Sums of other authors than before are answered: what they differ by is noise.
    assert_eq!(ready(0)[0], 3);
    assert_eq!(table.finals(0).len(), 3);
    let circle = |report: &Report| matches!(report, Report::OtherCircle { .. });
    assert!(!table.reports.iter().any(|(_, report)| circle(report)));
    table.chains_agree();
}

#[test]
fn with_too_few_ready_members_a_noised_round_waits_and_says_who_is_missing() {
    let mut table = TestFederation::of(noised(4, 2, 4), false);
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
fn a_list_of_too_few_authors_of_a_noised_sum_is_refused() {
    let mut one = contributed(too_few());
    let (ready, fewest) = (4, 5);
    let expected = one.refuses_lead(1, Refusal::ListTooSmall { ready, fewest });
    let body = Body::KeyList(key_list(&one, &one.all()));
    assert_eq!(one.hear_lead(1, body), expected);
}

#[test]
fn no_share_is_given_away_for_a_noised_sum_of_too_few_authors() {
    for (epoch, unmasks) in [(noised(4, 5, 4), true), (too_few(), false)] {
        let mut one = contributed(epoch);
        let proposal = proposal(&one, |_| {});
        one.propose(1, &proposal);
        let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
        one.has_cast(&proof);
        let unmasking = |effect: &Effect| matches!(effect, Effect::Work(Request::Unmask { .. }));
        let effects = one.add_certificate(&proof);
        assert_eq!(effects.iter().any(unmasking), unmasks);
    }
}
