//! Nothing of what an institution's settings refuse is among the bytes that its silo sends.

use std::sync::Arc;

use bytes::Bytes;
use protocol::envelope::heading;
use protocol::message::Kind;
use protocol::{Epoch, Hash, MemberIndex, Report};

use super::masked::{ROUNDS, groups};
use super::noised::noised;
use super::site::{OWN, TestLedger};
use super::{TestSilos, kill};
use crate::testing::*;
use crate::{Notice, Site};

/// The silo that is compared with the refused one.
const OTHER: u16 = 3;

/// Messages that only an author of a round sends.
const OF_AUTHORS: [Kind; 3] = [Kind::Contribution, Kind::Keys, Kind::MaskedVector];

/// Everything that a silo has sent.
struct SentBytes {
    frames: Vec<Bytes>,
    blobs: Vec<Bytes>,
}

impl SentBytes {
    fn of(hub: &Hub, silo: u16) -> Self {
        let by = |all: Vec<(MemberIndex, Bytes)>| {
            let own = all.into_iter().filter(|(by, _)| *by == MemberIndex(silo));
            own.map(|(_, bytes)| bytes).collect()
        };
        Self {
            frames: by(hub.frames()),
            blobs: by(hub.given()),
        }
    }

    /// Returns whether these bytes are in any of it.
    fn has(&self, bytes: &[u8]) -> bool {
        assert!(bytes.len() >= 4, "shorter ones are everywhere");
        let mut all = self.frames.iter().chain(&self.blobs);
        all.any(|sent| sent.windows(bytes.len()).any(|part| part == bytes))
    }

    /// Messages of authors among it.
    fn as_author(&self) -> usize {
        let kinds = self.frames.iter().filter_map(|frame| heading(frame)?.kind);
        kinds.filter(|kind| OF_AUTHORS.contains(kind)).count()
    }
}

/// The silos of an epoch, of which one has these settings, until all have adopted all rounds.
fn all_rounds(epoch: Arc<Epoch>, site: impl FnOnce(&Rig) -> Site) -> TestSilos {
    virtually(async {
        let mut silos = TestSilos::of(epoch);
        let own = usize::from(OWN);
        silos.rigs[own].site = site(&silos.rigs[own]);
        let n = silos.epoch.roster.len() as u16;
        let mut live: Vec<_> = (0..n).map(|i| silos.live(i)).collect();
        for i in 0..n {
            silos.until(i, ROUNDS).await;
        }
        for silo in &mut live {
            kill(silo).await;
        }
        silos
    })
}

/// Returns what is kept of a round is a secret and what follows from it, or a model: all of it is searched for, and its
/// hash.
fn pieces(computed: &Bytes) -> Vec<Vec<u8>> {
    let mut pieces = vec![Hash::of(computed).0.to_vec()];
    if computed.starts_with(b"rota prepared") {
        // Behind the first line: the secret, the epoch, and integers or a model.
        pieces.push(computed[16..48].to_vec());
        pieces.push(computed[16..].to_vec());
    } else {
        pieces.push(computed.to_vec());
    }
    pieces
}

/// Agreements of each mode under which rounds go on without one silo.
fn modes() -> [Arc<Epoch>; 3] {
    let two: &[&[(u16, u64)]] = &[
        &[(0, 1), (1, 1), (OWN, 1)],
        &[(OTHER, 1), (4, 1), (5, 1), (6, 1)],
    ];
    [
        epoch_with(4, ROUNDS, |_| {}),
        epoch_with(7, ROUNDS, groups(two)),
        noised(Some(1), 3),
    ]
}

/// The rounds that a silo sat out.
fn sat_out(rig: &Rig) -> Vec<u64> {
    let notices = rig.notices.borrow();
    let rounds = notices.iter().filter_map(|(_, notice)| match notice {
        Notice::Protocol(Report::TrainingFailed { round, .. }) => Some(*round),
        _ => None,
    });
    rounds.collect()
}

#[test]
fn what_a_ledger_refuses_is_computed_and_not_sent() {
    for epoch in modes() {
        let mut kept = None;
        let silos = all_rounds(epoch, |rig| {
            let ledger = Arc::new(TestLedger::refusing(rig, 1));
            kept = Some(ledger.clone());
            Site {
                ledger: Some(ledger),
                rounds: None,
            }
        });
        let rounds: Vec<_> = (1..=ROUNDS).collect();
        assert_eq!(sat_out(&silos.rigs[usize::from(OWN)]), rounds);
        let refused = kept.unwrap().refused();
        assert_eq!(refused.len(), rounds.len());
        let sent = SentBytes::of(&silos.hub, OWN);
        assert!(!sent.frames.is_empty(), "it votes");
        assert_eq!(sent.as_author(), 0);
        for piece in refused.iter().flat_map(pieces) {
            assert!(!sent.has(&piece));
        }
        // Of a silo that is not refused the same search finds something.
        assert!(SentBytes::of(&silos.hub, OTHER).as_author() > 0);
    }
}

#[test]
fn what_an_allowed_silo_sends_is_found_by_the_same_search() {
    let [clear, ..] = modes();
    let mut kept = None;
    let silos = all_rounds(clear, |rig| {
        let ledger = Arc::new(TestLedger::of(rig));
        kept = Some(ledger.clone());
        Site {
            ledger: Some(ledger),
            rounds: None,
        }
    });
    let sent = SentBytes::of(&silos.hub, OWN);
    let commitments = kept.unwrap().lines();
    assert_eq!(commitments.len() as u64, ROUNDS);
    for line in commitments {
        // In clear, what is contributed is what is committed to.
        assert!(sent.has(&line.commitment.0));
        let mut models = sent.blobs.iter();
        assert!(models.any(|blob| Hash::of(blob) == line.commitment));
    }
}
