//! What an institution sets for its own silo: a ledger that counts or refuses, and rounds that are not allowed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ledger::{Contribution, Cost, Ledger, LedgerError, Limits, Place, SourceUnit};
use privacy::accountant::{Accountant, Bound, Delta};
use privacy::noise::{Authors, Multiplier};
use protocol::message::Amendment;
use protocol::{Epoch, Hash, MemberIndex, Record, Report};
use tokio::time::sleep;

use super::noised::noised;
use super::{TestSilos, epochs, kill};
use crate::testing::*;
use crate::{Blobs, JournalRecord, Notice, RoundPolicy, Site, Stopped};

/// The silo whose institution sets something; it is no lead of the first view.
pub(super) const OWN: u16 = 2;
const ROUNDS: u64 = 3;

/// A ledger in memory, which looks into the silo's journal whenever it is asked.
#[derive(Default)]
pub(super) struct TestLedger {
    journal: MemoryJournal,
    lines: Mutex<Vec<Contribution>>,
    /// From this round on it refuses.
    spent_from: Option<u64>,
    /// In this round another process has it.
    locked_in: Option<u64>,
    /// So often another process has it when it is asked what it holds.
    locked: Mutex<u32>,
    /// What all lines together may cost.
    limits: Option<Limits>,
    /// Where the silo keeps what it has computed, and what of it had no line.
    blobs: Arc<MemoryBlobs>,
    refused: Mutex<Vec<Bytes>>,
}

impl TestLedger {
    pub(super) fn of(rig: &Rig) -> Self {
        Self {
            journal: rig.journal.clone(),
            blobs: rig.blobs.clone(),
            ..Self::default()
        }
    }

    /// One that has the first lines of another.
    fn copy(rig: &Rig, lines: &[Contribution]) -> Self {
        Self {
            lines: Mutex::new(lines.to_vec()),
            ..Self::of(rig)
        }
    }

    /// One that refuses from this round on.
    pub(super) fn refusing(rig: &Rig, from: u64) -> Self {
        Self {
            spent_from: Some(from),
            ..Self::of(rig)
        }
    }

    pub(super) fn lines(&self) -> Vec<Contribution> {
        self.lines.lock().unwrap().clone()
    }

    /// Returns what the silo had computed when its line was refused.
    pub(super) fn refused(&self) -> Vec<Bytes> {
        self.refused.lock().unwrap().clone()
    }
}

impl Ledger for TestLedger {
    fn record(&self, contribution: &Contribution) -> Result<Bound, LedgerError> {
        let place = contribution.place;
        let records = self.journal.records();
        let (mut prepared, mut signed) = (None, false);
        for record in &records {
            match record {
                JournalRecord::Trained { round, blob, .. }
                | JournalRecord::Prepared { round, blob, .. }
                    if *round == place.round =>
                {
                    prepared = Some(Hash(*blob));
                }
                JournalRecord::Protocol(Record::Contributed(message)) => {
                    signed |= message.round == place.round;
                }
                _ => {}
            }
        }
        assert_eq!(prepared, Some(contribution.commitment), "durable before");
        assert!(!signed, "round {} was signed before its line", place.round);
        if self.locked_in == Some(place.round) {
            return Err(in_use());
        }
        if self.spent_from.is_some_and(|from| place.round >= from) {
            let computed = self.blobs.get(&contribution.commitment);
            self.refused.lock().unwrap().extend(computed);
            return Err(LedgerError::Second { place });
        }
        let mut lines = self.lines.lock().unwrap();
        let mut accountant = Accountant::new();
        for line in lines.iter() {
            line.cost.spend(&mut accountant, 1);
        }
        if let Some(known) = lines.iter().find(|line| line.place == place) {
            assert_eq!(known, contribution);
            return Ok(accountant.bound(delta()));
        }
        contribution.cost.spend(&mut accountant, 1);
        let bound = accountant.bound(delta());
        let limit = self.limits.and_then(|limits| limits.exceeded(&bound));
        if let Some(limit) = limit {
            return Err(LedgerError::Spent { bound, limit });
        }
        lines.push(contribution.clone());
        Ok(bound)
    }

    fn expect(&self, places: &[Place]) -> Result<(), LedgerError> {
        let mut locked = self.locked.lock().unwrap();
        if *locked > 0 {
            *locked -= 1;
            return Err(in_use());
        }
        let lines = self.lines();
        let has = |place: &Place| lines.iter().any(|line| line.place == *place);
        match places.iter().find(|place| !has(place)) {
            None => Ok(()),
            Some(place) => Err(LedgerError::RolledBack {
                file: "ledger".into(),
                why: format!("it lacks {place}"),
            }),
        }
    }
}

fn in_use() -> LedgerError {
    LedgerError::InUse {
        file: "ledger".into(),
    }
}

fn delta() -> Delta {
    Delta::new(1e-5).unwrap()
}

/// Lets no silo train for some rounds.
struct Not(&'static [u64]);

impl RoundPolicy for Not {
    fn allows(&self, round: u64, bytes: u64) -> Result<(), String> {
        assert!(bytes > 0);
        let refused = self.0.contains(&round);
        (!refused).then_some(()).ok_or_else(|| "not today".into())
    }
}

/// The rounds that a silo signed a contribution for.
fn signed(rig: &Rig) -> Vec<u64> {
    let done = rig.journal.transactions();
    let signed = done.iter().flatten().filter_map(|record| match record {
        JournalRecord::Protocol(Record::Contributed(message)) => Some(message.round),
        _ => None,
    });
    signed.collect()
}

/// The final rounds in which a member's contribution is.
fn included(rig: &Rig, member: u16) -> Vec<u64> {
    let done = rig.journal.transactions();
    let mut rounds = Vec::new();
    for record in done.iter().flatten() {
        if let JournalRecord::Protocol(Record::Final { blocks, .. }) = record {
            let blocks = blocks.iter().filter_map(|block| block.round());
            let with = blocks.filter(|block| {
                let mut authors = block.inclusions.iter();
                authors.any(|(author, _)| *author == MemberIndex(member))
            });
            rounds.extend(with.map(|block| block.round));
        }
    }
    rounds
}

/// Why a silo had nothing to contribute, with the rounds.
fn reasons(rig: &Rig) -> Vec<(u64, String)> {
    let notices = rig.notices.borrow();
    let failed = notices.iter().filter_map(|(_, notice)| match notice {
        Notice::Protocol(Report::TrainingFailed { round, reason }) => {
            Some((*round, reason.clone()))
        }
        _ => None,
    });
    failed.collect()
}

/// The rounds that were under way when a silo voted.
fn voted(rig: &Rig) -> BTreeSet<u64> {
    let (mut rounds, mut now) = (BTreeSet::new(), 1);
    for record in rig.journal.transactions().concat() {
        match record {
            JournalRecord::Protocol(Record::Applied { round }) => now = round + 1,
            JournalRecord::Protocol(Record::Vote(_)) => drop(rounds.insert(now)),
            _ => {}
        }
    }
    rounds
}

/// Four silos, of which one has these settings, until all have adopted all rounds.
fn rounds(site: impl FnOnce(&Rig) -> Site) -> Vec<Rig> {
    rounds_of(|| TestSilos::new(4, ROUNDS, 3), site)
}

/// The same with noise.
fn noised_rounds(site: impl FnOnce(&Rig) -> Site) -> Vec<Rig> {
    rounds_of(|| TestSilos::of(noised(Some(1), 3)), site)
}

/// The silos, of which one has these settings, after all have adopted all rounds.
fn rounds_of(silos: impl FnOnce() -> TestSilos, site: impl FnOnce(&Rig) -> Site) -> Vec<Rig> {
    virtually(async {
        let mut silos = silos();
        let own = usize::from(OWN);
        silos.rigs[own].site = site(&silos.rigs[own]);
        let mut live: Vec<_> = (0..4).map(|i| silos.live(i)).collect();
        for i in 0..4 {
            silos.until(i, ROUNDS).await;
        }
        sleep(Duration::from_secs(5)).await;
        for silo in &mut live {
            kill(silo).await;
        }
        silos.rigs.clone()
    })
}

#[test]
fn a_contribution_is_signed_only_after_its_line_is_durable() {
    let mut kept = None;
    let rigs = rounds(|rig| {
        let ledger = Arc::new(TestLedger::of(rig));
        kept = Some(ledger.clone());
        Site {
            ledger: Some(ledger),
            rounds: None,
        }
    });
    let lines = kept.unwrap().lines();
    let own = &rigs[usize::from(OWN)];
    let rounds: Vec<_> = lines.iter().map(|line| line.place.round).collect();
    assert_eq!(rounds, signed(own));
    assert_eq!(rounds, [1, 2, 3]);
}

#[test]
fn a_silo_whose_ledger_refuses_votes_and_signs_no_contribution() {
    let rigs = rounds(|rig| Site {
        ledger: Some(Arc::new(TestLedger {
            spent_from: Some(2),
            ..TestLedger::of(rig)
        })),
        rounds: None,
    });
    let own = &rigs[usize::from(OWN)];
    assert_eq!(signed(own), [1]);
    let reasons = reasons(own);
    assert_eq!(
        reasons.iter().map(|(round, _)| *round).collect::<Vec<_>>(),
        [2, 3]
    );
    assert!(reasons[0].1.contains("another contribution"), "{reasons:?}");
    // All others have its first one, and adopted every round with it or without it.
    for rig in &rigs {
        assert_eq!(included(rig, OWN), [1]);
        assert_eq!(rig.adopted().last().unwrap().0, ROUNDS);
    }
}

#[test]
fn a_silo_whose_ledger_another_process_has_sits_out_that_round_alone() {
    let rigs = noised_rounds(|rig| Site {
        ledger: Some(Arc::new(TestLedger {
            locked_in: Some(2),
            ..TestLedger::of(rig)
        })),
        rounds: None,
    });
    let own = &rigs[usize::from(OWN)];
    assert_eq!(signed(own), [1, 3]);
    let [(2, why)] = &reasons(own)[..] else {
        panic!("{:?}", reasons(own))
    };
    assert!(why.contains("locked by another process"), "{why}");
    assert!(voted(own).is_superset(&BTreeSet::from([1, 2, 3])));
}

#[test]
fn what_could_not_be_compared_at_the_start_is_compared_before_the_first_line() {
    // With a ledger that was whole, and with an older one.
    for (older, expected) in [(false, Some(ROUNDS)), (true, None)] {
        let (signed, reasons) = virtually(async {
            let mut silos = TestSilos::new(4, ROUNDS, 3);
            let own = usize::from(OWN);
            let ledger = Arc::new(TestLedger::of(&silos.rigs[own]));
            silos.rigs[own].site.ledger = Some(ledger.clone());
            let mut live: Vec<_> = (0..4).map(|i| silos.live(i)).collect();
            silos.until(OWN, 1).await;
            kill(&mut live[own]).await;
            let (lines, before) = (ledger.lines(), signed(&silos.rigs[own]).len());
            let kept = if older { &lines[..0] } else { &lines[..] };
            let again = TestLedger::copy(&silos.rigs[own], kept);
            *again.locked.lock().unwrap() = 1;
            silos.rigs[own].site.ledger = Some(Arc::new(again));
            live[own] = silos.live(OWN);
            for i in 0..4 {
                silos.until(i, ROUNDS).await;
            }
            for silo in &mut live {
                kill(silo).await;
            }
            let rig = &silos.rigs[own];
            (signed(rig).split_off(before), reasons(rig))
        });
        assert_eq!(signed.last(), expected.as_ref(), "{reasons:?}");
        assert_eq!(reasons.is_empty(), !older, "{reasons:?}");
    }
}

#[test]
fn the_line_of_a_noised_round_has_its_noise_and_unit_and_comes_before_the_signature() {
    let mut kept = None;
    let rigs = noised_rounds(|rig| {
        let ledger = Arc::new(TestLedger::of(rig));
        kept = Some(ledger.clone());
        Site {
            ledger: Some(ledger),
            rounds: None,
        }
    });
    let lines = kept.unwrap().lines();
    let rounds: Vec<_> = lines.iter().map(|line| line.place.round).collect();
    assert_eq!(rounds, signed(&rigs[usize::from(OWN)]));
    assert_eq!(rounds, [1, 2, 3]);
    let cost = Cost::Noised {
        z: Multiplier::new(1.0 / 128.0).unwrap(),
        authors: Authors::new(3, 1).unwrap(),
        unit: SourceUnit::Row,
    };
    assert!(lines.iter().all(|line| line.cost == cost), "{lines:?}");
    let commitments: BTreeSet<_> = lines.iter().map(|line| line.commitment).collect();
    assert_eq!(commitments.len(), lines.len());
}

#[test]
fn a_silo_whose_noised_rounds_have_spent_its_ledger_sits_out_and_goes_on_voting() {
    let mut accountant = Accountant::new();
    let one = Cost::of(&noised(Some(1), 3).protocol.privacy).unwrap();
    one.spend(&mut accountant, 1);
    let bound = accountant.bound(delta());
    // Room for one round, by either number.
    for (epsilon, alone) in [
        (Some(bound.epsilon().value()), None),
        (None, Some(bound.alone().value())),
    ] {
        let limits = Limits {
            epsilon,
            alone,
            delta: delta(),
        };
        let rigs = noised_rounds(|rig| Site {
            ledger: Some(Arc::new(TestLedger {
                limits: Some(limits),
                ..TestLedger::of(rig)
            })),
            rounds: None,
        });
        let own = &rigs[usize::from(OWN)];
        assert_eq!(signed(own), [1]);
        let reasons = reasons(own);
        let refused: Vec<_> = reasons.iter().map(|(round, _)| *round).collect();
        assert_eq!(refused, [2, 3]);
        assert!(reasons[0].1.contains("the ledger is spent"), "{reasons:?}");
        assert!(voted(own).is_superset(&BTreeSet::from([2, 3])));
        for rig in &rigs {
            assert_eq!(included(rig, OWN), [1]);
            assert_eq!(rig.adopted().last().unwrap().0, ROUNDS);
        }
    }
}

#[test]
fn a_refused_silo_that_starts_again_within_a_noised_round_signs_nothing() {
    // Before, while and after it computes what it would send.
    for millis in (290..400).step_by(10).chain([348]) {
        let own = virtually(async {
            let mut silos = TestSilos::of(noised(Some(1), 3));
            let ledger = TestLedger {
                spent_from: Some(1),
                ..TestLedger::of(&silos.rigs[0])
            };
            silos.rigs[0].site.ledger = Some(Arc::new(ledger));
            let mut live: Vec<_> = (0..4).map(|i| silos.live(i)).collect();
            sleep(Duration::from_millis(millis)).await;
            kill(&mut live[0]).await;
            sleep(Duration::from_millis(20)).await;
            live[0] = silos.live(0);
            for i in 0..4 {
                silos.until(i, ROUNDS).await;
            }
            for silo in &mut live {
                kill(silo).await;
            }
            silos.rigs[0].clone()
        });
        assert_eq!(signed(&own), [0; 0], "killed at {millis} ms");
        assert_eq!(included(&own, 0), [0; 0], "killed at {millis} ms");
    }
}

#[test]
fn a_silo_sits_out_the_rounds_that_its_institution_does_not_allow() {
    let rigs = rounds(|_| Site {
        ledger: None,
        rounds: Some(Arc::new(Not(&[2]))),
    });
    let own = &rigs[usize::from(OWN)];
    assert_eq!(signed(own), [1, 3]);
    assert_eq!(reasons(own), [(2, "not today".to_owned())]);
    // It does not even train.
    let trained = own.journal.transactions().into_iter().flatten();
    let trained = trained.filter(|record| matches!(record, JournalRecord::Trained { .. }));
    assert_eq!(trained.count(), 2);
    assert_eq!(own.adopted().last().unwrap().0, ROUNDS);
}

#[test]
fn a_silo_whose_journal_knows_more_than_its_ledger_contributes_nothing() {
    let later = virtually(async {
        let mut silos = TestSilos::new(4, ROUNDS, 3);
        let own = usize::from(OWN);
        let fresh = |rig: &Rig| Site {
            ledger: Some(Arc::new(TestLedger::of(rig))),
            rounds: None,
        };
        silos.rigs[own].site = fresh(&silos.rigs[own]);
        let mut live: Vec<_> = (0..4).map(|i| silos.live(i)).collect();
        silos.until(OWN, 1).await;
        kill(&mut live[own]).await;
        let before = signed(&silos.rigs[own]);
        // The ledger is as it was when it was made.
        silos.rigs[own].site = fresh(&silos.rigs[own]);
        live[own] = silos.live(OWN);
        for i in 0..4 {
            silos.until(i, ROUNDS).await;
        }
        let (after, why) = (signed(&silos.rigs[own]), reasons(&silos.rigs[own]));
        for silo in &mut live {
            kill(silo).await;
        }
        assert_eq!(before, after);
        why
    });
    assert!(
        later.iter().any(|(_, why)| why.contains("an older copy")),
        "{later:?}"
    );
}

#[test]
fn a_ledger_and_a_journal_that_are_put_back_together_are_noticed_by_the_chain_of_the_others() {
    virtually(async {
        let mut silos = TestSilos::new(4, 200, 2);
        let own = usize::from(OWN);
        let first = Arc::new(TestLedger::of(&silos.rigs[own]));
        let site = |ledger| Site {
            ledger: Some(ledger),
            rounds: None,
        };
        silos.rigs[own].site = site(first.clone());
        let mut live: Vec<_> = (0..4).map(|i| silos.live(i)).collect();
        silos.until(OWN, 4).await;
        let (records, lines) = (silos.rigs[own].journal.records(), first.lines());
        silos.until(OWN, 9).await;
        kill(&mut live[own]).await;
        // Both are of the same moment, so that they agree.
        let journal = MemoryJournal::of(records);
        silos.rigs[own].journal = journal.clone();
        let older = Arc::new(TestLedger::copy(&silos.rigs[own], &lines));
        silos.rigs[own].site = site(older.clone());
        live[own] = silos.live(OWN);
        silos.until(OWN, 30).await;
        assert_eq!(signed(&silos.rigs[own]), [0; 0], "it only listens");
        kill(&mut live[own]).await;
        // The institution declares the journal lost, and does not think of the ledger.
        live[own] = silos.live_with(OWN, |config| config.journal_lost = true);
        silos.until(OWN, 90).await;
        for silo in &mut live {
            kill(silo).await;
        }
        let rig = &silos.rigs[own];
        let back = Notice::Protocol(Report::TakingPart);
        let at = rig
            .notices
            .borrow()
            .iter()
            .position(|(_, notice)| *notice == back);
        assert!(at.is_some(), "it votes again");
        assert!(voted(rig).contains(&89), "{:?}", voted(rig));
        assert_eq!(signed(rig), [0; 0]);
        assert_eq!(older.lines(), lines);
        let last = included(rig, OWN).into_iter().max();
        assert!(last < Some(20), "{last:?}");
        let reasons = reasons(rig);
        assert!(!reasons.is_empty());
        for (_, why) in &reasons {
            assert!(
                why.contains("is an older copy, or another one: it lacks round"),
                "{why}"
            );
        }
    });
}

/// The change that adds rounds, and nothing else.
fn more_rounds(epoch: &Epoch, rounds: u64) -> Amendment {
    let mut protocol = epoch.protocol.clone();
    protocol.rounds = rounds;
    Amendment {
        format: epoch.format,
        silos: epoch.roster.silos().to_vec(),
        protocol,
        text: Vec::new(),
        stolen: Vec::new(),
    }
}

/// Returns what a silo signed, and why it did not, after its ledger was put back as it was before the last rounds of an
/// epoch that is over. In the present one it has contributed nothing yet.
fn put_back_after_a_change(first: Arc<Epoch>) -> (Vec<u64>, Vec<(u64, String)>) {
    virtually(async move {
        let mut silos = TestSilos::of(first.clone());
        let own = usize::from(OWN);
        let ledger = Arc::new(TestLedger::of(&silos.rigs[own]));
        silos.rigs[own].site.ledger = Some(ledger.clone());
        let start = |silos: &TestSilos, i: u16| {
            epochs::live(&first, &silos.rigs[usize::from(i)], &silos.hub, i)
        };
        let mut live: Vec<_> = (0..4).map(|i| start(&silos, i)).collect();
        for i in 0..4 {
            silos.until(i, ROUNDS).await;
        }
        for silo in &live {
            silo.approve(more_rounds(&first, ROUNDS + 2), 1);
        }
        for silo in &mut live {
            assert_eq!(silo.stopped().await, Stopped::EpochOver);
        }
        let lines = ledger.lines();
        assert_eq!(lines.len() as u64, ROUNDS);
        let older = TestLedger::copy(&silos.rigs[own], &lines[..1]);
        silos.rigs[own].site.ledger = Some(Arc::new(older));
        let before = signed(&silos.rigs[own]).len();
        let mut live: Vec<_> = (0..4).map(|i| start(&silos, i)).collect();
        for i in 0..4 {
            silos.until(i, ROUNDS + 2).await;
        }
        for silo in &mut live {
            kill(silo).await;
        }
        let rig = &silos.rigs[own];
        (signed(rig).split_off(before), reasons(rig))
    })
}

#[test]
fn an_older_ledger_is_noticed_by_noised_rounds_of_an_epoch_that_is_over() {
    let (signed, reasons) = put_back_after_a_change(noised(Some(1), 3));
    assert_eq!(signed, [0; 0]);
    let rounds: Vec<_> = reasons.iter().map(|(round, _)| *round).collect();
    assert_eq!(rounds, [ROUNDS + 1, ROUNDS + 2]);
    for (_, why) in &reasons {
        assert!(why.contains("it lacks round 2 in epoch 0"), "{why}");
    }
}

/// An institution may begin its ledger when a federation goes on with noise: nothing bounds the rounds before.
#[test]
fn rounds_without_noise_of_an_epoch_that_is_over_are_not_looked_for() {
    let (signed, reasons) = put_back_after_a_change(epoch(4, ROUNDS));
    assert_eq!(signed, [ROUNDS + 1, ROUNDS + 2]);
    assert_eq!(reasons, []);
}
