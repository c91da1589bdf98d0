//! Groups that change although their silos answer one circle only: with the consent of all concerned.

use super::amendments::word;
use super::masked::{group, mask};
use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use crate::change::ChangeError;
use crate::message::{Amendment, Passage};
use crate::parameters::privacy::Circle;
use crate::parameters::{Epoch, Group, Privacy, Sums};

fn circle(members: impl IntoIterator<Item = u16>) -> Circle {
    Circle(group(members).authors)
}

/// Seven members, of whom six are a group.
fn six() -> Arc<Epoch> {
    epoch_with(7, 2, |protocol| mask(protocol, 7, vec![group(0..6)]))
}

/// Other groups, which show these updates.
fn regrouped(epoch: &Epoch, groups: Vec<Group>, shows: &[u16]) -> Amendment {
    let mut protocol = epoch.protocol.clone();
    if let Privacy::Masked(masked) = &mut protocol.privacy {
        masked.shows = shows.iter().map(|i| format!("silo {i}")).collect();
        masked.sums = Sums::Groups(groups);
    }
    Amendment {
        format: epoch.format,
        silos: epoch.roster.silos().to_vec(),
        protocol,
        text: b"other groups".to_vec(),
        stolen: Vec::new(),
    }
}

/// The end of the epoch with this amendment, approved by these members.
fn approved(one: &One, amendment: &Amendment, by: &[u16]) -> Passage {
    let by: Vec<_> = by.iter().map(|i| MemberIndex(*i)).collect();
    let proposal = one.changing(1, amendment, &by);
    let hash = proposal.block.hash();
    Passage {
        blocks: vec![proposal.block],
        proof: one.certificate(1, crate::certificate::Verdict::Final(hash)),
    }
}

/// What a member that has answered sums of these keeps when the epoch ends: whether it is free.
fn freed(amendment: &Amendment, by: &[u16], before: Circle) -> bool {
    let epoch = six();
    let journal = vec![Record::Circle(before.clone()), Record::Applied { round: 0 }];
    let (mut one, _) = One::restart(epoch, MemberIndex(1), journal);
    let passage = approved(&one, amendment, by);
    let none = Effect::Persist(Record::Circle(Circle(Vec::new())));
    let effects = one.step(Input::Opened(Opened::Passage(Box::new(passage.clone()))));
    let over = Effect::EpochOver(Box::new(passage));
    let over = effects.iter().position(|effect| *effect == over).unwrap();
    let freed = effects.iter().position(|effect| *effect == none);
    // Durable before the change is.
    assert!(freed.is_none_or(|at| at < over && at == 0), "{effects:?}");
    freed.is_some()
}

#[test]
fn a_silo_answers_another_circle_once_all_concerned_have_agreed_to_what_that_shows() {
    let epoch = six();
    let smaller = || vec![group(0..5)];
    let all = [0, 1, 2, 3, 4, 5];
    let right = regrouped(&epoch, smaller(), &[5]);
    assert!(freed(&right, &all, circle(0..6)));
    // Nobody is named, or somebody else.
    assert!(!freed(
        &regrouped(&epoch, smaller(), &[]),
        &all,
        circle(0..6)
    ));
    // The silo has answered a circle of which the change says nothing.
    assert!(!freed(&right, &all, circle([0, 1, 2, 6])));
    // It stays in its group.
    assert!(!freed(&right, &all, circle(0..5)));
    // A member that was in no group comes in.
    let larger = regrouped(&epoch, vec![group(0..7)], &[6]);
    assert!(freed(&larger, &[0, 1, 2, 3, 4, 5, 6], circle(0..6)));
    let clear = Amendment {
        protocol: crate::parameters::ProtocolParameters {
            privacy: Privacy::Clear,
            ..epoch.protocol.clone()
        },
        ..right
    };
    assert!(!freed(&clear, &all, circle(0..6)));
}

#[test]
pub(super) fn a_change_that_shows_an_update_needs_everybody_whom_it_concerns() {
    let epoch = six();
    let amendment = regrouped(&epoch, vec![group(0..5)], &[5]);
    let one = One::of(epoch.clone(), MemberIndex(1));
    let why = |by: &[u16]| {
        let passage = approved(&one, &amendment, by);
        let change = passage.blocks[0].change().unwrap().clone();
        change.check(&epoch, &epoch.began)
    };
    let missing = 1;
    for without in 0..6 {
        let by: Vec<_> = (0..7).filter(|i| *i != without).collect();
        assert_eq!(why(&by), Err(ChangeError::Consent { missing }), "{without}");
    }
    // The seventh is in neither group.
    assert_eq!(why(&[0, 1, 2, 3, 4, 5]), Ok(()));
    // Without names a quorum is enough, and the silos answer no such sum.
    let amendment = regrouped(&epoch, vec![group(0..5)], &[]);
    let passage = approved(&one, &amendment, &[0, 1, 2, 3, 4]);
    let change = passage.blocks[0].change().unwrap();
    assert_eq!(change.check(&epoch, &epoch.began), Ok(()));
}

#[test]
fn a_withdrawn_consent_does_not_count_even_where_more_than_a_quorum_is_left() {
    let epoch = six();
    let amendment = regrouped(&epoch, vec![group(0..5)], &[5]);
    assert_eq!(amendment.needed(&epoch), 6);
    let mut one = One::of(
        epoch.clone(),
        epoch
            .roster
            .members()
            .find(|by| *by != epoch.lead(1))
            .unwrap(),
    );
    let others = one.others();
    let concerned = others.iter().copied().find(|by| by.0 < 6).unwrap();
    one.hear(concerned, 0, 0, word(&amendment, 2, false));
    let all: Vec<_> = epoch.roster.members().collect();
    let proposal = one.changing(1, &amendment, &all);
    let why = ChangeError::Consent { missing: 1 };
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, why.into()));
}

#[test]
fn a_freed_silo_keeps_no_circle_over_a_restart_and_notes_the_next_one() {
    let (old, none) = (circle(0..6), Circle(Vec::new()));
    let journal = vec![
        Record::Circle(old),
        Record::Circle(none),
        Record::Applied { round: 0 },
    ];
    let (one, _) = One::restart(six(), MemberIndex(1), journal);
    assert_eq!(one.member.rounds.circle, None);
}

#[test]
fn two_circles_show_what_is_in_one_of_them_only_or_all_if_weights_change() {
    let names = |of: &[u16]| of.iter().map(|i| format!("silo {i}")).collect::<Vec<_>>();
    let shows = |a: &Circle, b: &Circle| a.shows(b).into_iter().collect::<Vec<_>>();
    assert_eq!(shows(&circle(0..6), &circle(0..5)), names(&[5]));
    assert_eq!(shows(&circle(0..4), &circle([0, 1, 2, 5])), names(&[3, 5]));
    assert_eq!(shows(&circle(0..4), &circle(0..4)), names(&[]));
    let mut heavier = circle(0..4);
    heavier.0[0].1 = 2;
    assert_eq!(shows(&circle(0..4), &heavier), names(&[0, 1, 2, 3]));
    let doubled = Circle(
        circle(0..4)
            .0
            .into_iter()
            .map(|(name, _)| (name, 2))
            .collect(),
    );
    assert_eq!(shows(&circle(0..4), &doubled), names(&[]));
}
