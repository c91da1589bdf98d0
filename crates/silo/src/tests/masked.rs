//! Secure-aggregation rounds of whole silos: the sums are those of clear rounds, and nothing secret is left.

use std::sync::Arc;
use std::time::Duration;

use protocol::net::{Command, Event};
use protocol::privacy::{Group, Masked, Privacy, Sums};
use protocol::{Epoch, Hash, MemberIndex, ProtocolParameters};
use tokio::time::sleep;

use super::{TestSilos, kill};
use crate::rounds::PreparedRound;
use crate::testing::*;
use crate::{Blobs, JournalRecord, Notice, spawn};

/// Rounds of a test federation.
pub(super) const ROUNDS: u64 = 3;
/// Half a step of the fixed point.
const HALF_STEP: f32 = 1.0 / (1 << 19) as f32;

/// The groups of a parameter set, each a list of members with their weights.
pub(super) fn groups<'a>(groups: &'a [&'a [(u16, u64)]]) -> impl Fn(&mut ProtocolParameters) + 'a {
    let named = |group: &&[(u16, u64)]| {
        let authors = group
            .iter()
            .map(|(by, weight)| (format!("silo {by}"), *weight));
        Group {
            authors: authors.collect(),
        }
    };
    move |protocol| {
        protocol.privacy = Privacy::Masked(Masked {
            colluders: 1,
            shows: Vec::new(),
            smallest_sum: 3,
            sums: Sums::Groups(groups.iter().map(named).collect()),
        });
    }
}

/// One group of all four.
pub(super) const ALL: &[&[(u16, u64)]] = &[&[(0, 1), (1, 1), (2, 1), (3, 1)]];

/// Returns what every silo has adopted once all are done, and their environment.
fn adopted(
    n: u16,
    change: impl Fn(&mut ProtocolParameters),
    fault: SiloFault,
) -> (Vec<f32>, Vec<Rig>) {
    adopted_by(epoch_with(n, ROUNDS, change), fault)
}

/// The same of all silos of an epoch.
pub(super) fn adopted_by(epoch: Arc<Epoch>, fault: SiloFault) -> (Vec<f32>, Vec<Rig>) {
    virtually(async {
        let n = epoch.roster.len() as u16;
        let silos = TestSilos::of(epoch);
        let mut live: Vec<_> = (0..n).map(|i| silos.live(i)).collect();
        if let SiloFault::Killed { who, after, back } = fault {
            sleep(after).await;
            kill(&mut live[usize::from(who)]).await;
            sleep(back).await;
            live[usize::from(who)] = silos.live(who);
        }
        for i in 0..n {
            silos.until(i, ROUNDS).await;
        }
        sleep(Duration::from_secs(60)).await;
        for silo in &mut live {
            kill(silo).await;
        }
        let models: Vec<_> = silos.rigs.iter().map(Rig::adopted).collect();
        for own in &models {
            let last = own.last().map(|(round, outcome, _)| (*round, *outcome));
            let first = models[0]
                .last()
                .map(|(round, outcome, _)| (*round, *outcome));
            assert_eq!(last, first);
        }
        let values = models[0].iter().map(|(.., value)| *value).collect();
        (values, silos.rigs.clone())
    })
}

#[derive(Clone, Copy)]
pub(super) enum SiloFault {
    None,
    /// A silo is killed after a time, and starts again after another one.
    Killed {
        who: u16,
        after: Duration,
        back: Duration,
    },
}

/// Returns what rounds of these optima, weighted, give: every model goes half the way.
pub(super) fn expected(authors: &[(u16, u64)]) -> Vec<f32> {
    let weights: f64 = authors.iter().map(|(_, weight)| *weight as f64).sum();
    let sum = authors
        .iter()
        .map(|(by, weight)| f64::from(*by) * *weight as f64);
    let target = sum.sum::<f64>() / weights;
    let step = |model: &mut f64, _| {
        *model += (target - *model) / 2.0;
        Some(*model as f32)
    };
    (0..ROUNDS).scan(0.0, step).collect()
}

fn near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (round, (found, expected)) in (1..).zip(found.iter().zip(expected)) {
        let bound = HALF_STEP * round as f32;
        assert!(
            (found - expected).abs() <= bound,
            "round {round}: {found}, {expected}"
        );
    }
}

/// Blobs of what a silo keeps to itself.
pub(super) fn secrets(rig: &Rig) -> usize {
    let hashes = rig.blobs.hashes();
    let blobs = hashes.iter().filter_map(|hash| rig.blobs.get(hash));
    blobs
        .filter(|blob| blob.starts_with(b"rota prepared"))
        .count()
}

#[test]
fn masked_rounds_give_the_models_of_clear_rounds() {
    let (clear, _) = adopted(4, |_| {}, SiloFault::None);
    let (masked, rigs) = adopted(4, groups(ALL), SiloFault::None);
    near(&masked, &clear);
    near(&masked, &expected(ALL[0]));
    for rig in &rigs {
        let prepared = |record: &JournalRecord| matches!(record, JournalRecord::Prepared { .. });
        let rounds = rig.journal.transactions().concat();
        assert_eq!(
            rounds.iter().filter(|record| prepared(record)).count() as u64,
            ROUNDS
        );
        // What an adopted round was masked with is gone, and so are the trained models.
        assert_eq!(secrets(rig), 0);
    }
}

#[test]
fn groups_with_agreed_weights_add_up_to_the_weighted_mean_of_all() {
    let two: &[&[(u16, u64)]] = &[&[(0, 1), (1, 2), (2, 1)], &[(3, 3), (4, 2), (5, 1), (6, 4)]];
    let (masked, _) = adopted(7, groups(two), SiloFault::None);
    near(&masked, &expected(&two.concat()));
}

#[test]
fn a_silo_that_is_killed_at_any_moment_sends_the_same_and_the_models_stay() {
    let whole = expected(ALL[0]);
    for (who, millis) in (0..60).map(|at| (at % 4, 40 + 51 * u64::from(at))) {
        let (after, back) = (Duration::from_millis(millis), Duration::from_millis(20));
        let (masked, rigs) = adopted(4, groups(ALL), SiloFault::Killed { who, after, back });
        near(&masked, &whole);
        assert!(
            rigs.iter().all(|rig| secrets(rig) == 0),
            "{who} at {millis} ms"
        );
    }
}

#[test]
fn a_silo_that_is_away_stops_its_group_and_nothing_is_used_up() {
    let (after, back) = (Duration::from_millis(100), Duration::from_secs(300));
    let (masked, rigs) = adopted(
        4,
        groups(ALL),
        SiloFault::Killed {
            who: 3,
            after,
            back,
        },
    );
    near(&masked, &expected(ALL[0]));
    let waits = |notice: &Notice| {
        matches!(notice, Notice::Protocol(protocol::Report::GroupsIncomplete { members, .. })
            if *members == [MemberIndex(3)])
    };
    let told = |rig: &Rig| rig.notices.borrow().iter().any(|(_, notice)| waits(notice));
    assert!(rigs.iter().any(told));
}

#[test]
fn what_a_silo_keeps_to_itself_is_given_to_nobody() {
    virtually(async {
        let silos = TestSilos::of(epoch_with(4, ROUNDS, groups(ALL)));
        let (environment, ends) = silos.rigs[0].environment();
        let mut silo = spawn(config(&silos.epoch, 0), environment).unwrap();
        sleep(Duration::from_secs(1)).await;
        let prepared = silos.rigs[0].blobs.hashes().into_iter();
        let secret = |hash: &Hash| PreparedRound::is(&silos.rigs[0].blobs.get(hash).unwrap());
        let blobs: Vec<_> = prepared.filter(secret).collect();
        assert_eq!(blobs.len(), 1);
        let NetworkEnds {
            mut commands,
            events,
        } = ends;
        let (by, ticket) = (MemberIndex(1), 7);
        events
            .send(Event::Wanted { by, blobs, ticket })
            .await
            .unwrap();
        let given = loop {
            if let Command::Serve { blobs, .. } = commands.recv().await.unwrap() {
                break blobs;
            }
        };
        assert_eq!(given, [None]);
        kill(&mut silo).await;
    });
}
