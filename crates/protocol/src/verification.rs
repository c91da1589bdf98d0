//! How thoroughly members check a round before they vote, the committee that is drawn to check it, and
//! how likely a draw goes wrong.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::roster::MemberIndex;

/// What members check before they vote for a round of learning. In files and on the command line a level
/// is a word: see [`Verification::from_str`].
///
/// Whatever the level, every member checks the place of the block in the chain, that the authors of all
/// entries signed for the manifest, that there are enough of them, and that its own entry is not left out
/// against a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// `full`: every member fetches every model of the manifest, checks the decision and computes the
    /// outcome itself.
    Full,
    /// `committee-C`: C members, drawn anew for every view, do that. A block counts as notarised only if
    /// two thirds of them (rounded up) vote for it. With C at least n all members are drawn.
    Committee(u16),
    /// `inclusion`: no member checks the decision or the outcome. The lead is believed.
    Inclusion,
}

impl Verification {
    /// A verification of each kind, with C = 5.
    pub const ALL: [Self; 3] = [Self::Full, Self::Committee(5), Self::Inclusion];

    /// The number of members of n that check the outcome.
    pub fn auditors(self, n: usize) -> usize {
        match self {
            Self::Full => n,
            Self::Committee(size) => usize::from(size).min(n),
            Self::Inclusion => 0,
        }
    }

    /// The votes of auditors that a notarisation needs in a federation of n members: two thirds of the
    /// committee, rounded up. Under `full` every vote is one, so the quorum is enough.
    pub fn needed(self, n: usize) -> usize {
        match self {
            Self::Committee(_) => (2 * self.auditors(n)).div_ceil(3),
            Self::Full | Self::Inclusion => 0,
        }
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Committee(size) => write!(f, "committee-{size}"),
            Self::Inclusion => f.write_str("inclusion"),
        }
    }
}

/// A word that is no level of verification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no level of verification: expected full, committee-C with C between 1 and 1000, or inclusion"
)]
pub struct NoVerification(pub String);

impl FromStr for Verification {
    type Err = NoVerification;

    fn from_str(text: &str) -> Result<Self, NoVerification> {
        let committee = |text: &str| {
            let size = text.strip_prefix("committee-")?;
            let size: u16 = size.parse().ok()?;
            // Only the word that this level is written as.
            let level = Self::Committee(size);
            ((1..=1000).contains(&size) && level.to_string() == text).then_some(level)
        };
        match text {
            "full" => Ok(Self::Full),
            "inclusion" => Ok(Self::Inclusion),
            other => committee(other).ok_or_else(|| NoVerification(other.to_owned())),
        }
    }
}

/// The members of n that check the round of a view, ascending: drawn by the hash of the last final
/// learning block (the epoch's id before the first) and the view. All members under `full`, none under
/// `inclusion`.
pub fn auditors(level: Verification, n: usize, last: &Hash, view: u64) -> Vec<MemberIndex> {
    let mut members: Vec<_> = (0..n as u16).map(MemberIndex).collect();
    let size = level.auditors(members.len());
    if size < members.len() {
        // The first places of a Fisher–Yates shuffle.
        for place in 0..size {
            let left = (members.len() - place) as u64;
            let drawn = draw(last, view, place as u64, left) as usize;
            members.swap(place, place + drawn);
        }
        members.truncate(size);
        members.sort_unstable();
    }
    members
}

/// A number below `count`, each with the same probability up to 2⁻⁵³.
fn draw(last: &Hash, view: u64, place: u64, count: u64) -> u64 {
    let Hash(bytes) = Hash::labelled(
        "committee",
        &[&last.0, &view.to_le_bytes(), &place.to_le_bytes()],
    );
    let (first, _) = bytes.split_first_chunk().expect("32 bytes hold 8");
    u64::from_le_bytes(*first) % count
}

/// How likely a committee goes wrong in one view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    /// The probability that so many of it are Byzantine that they can have a wrong outcome notarised:
    /// two thirds, rounded up.
    pub wrong: f64,
    /// The probability that so many are Byzantine that the view fails if they do not vote: more than a
    /// third.
    pub stuck: f64,
}

/// The odds of a committee of `size` that is drawn at random from n members, of which `byzantine` are
/// Byzantine (hypergeometric tails).
pub fn odds(n: usize, byzantine: usize, size: usize) -> Odds {
    let size = size.min(n);
    let needed = (2 * size).div_ceil(3);
    Odds {
        wrong: tail(n, byzantine, size, needed),
        stuck: tail(n, byzantine, size, size - needed + 1),
    }
}

/// The probability of at least `least` marked among `size` drawn from n, of which `marked` are.
fn tail(n: usize, marked: usize, size: usize, least: usize) -> f64 {
    let all = log_choose(n, size);
    let one = |k: usize| {
        let others = size - k;
        if k > marked || others > n - marked {
            return 0.0;
        }
        (log_choose(marked, k) + log_choose(n - marked, others) - all).exp()
    };
    // Smallest terms first.
    let mut terms: Vec<f64> = (least..=size).map(one).collect();
    terms.sort_by(f64::total_cmp);
    terms.iter().sum::<f64>().min(1.0)
}

/// The natural logarithm of n over k.
fn log_choose(n: usize, k: usize) -> f64 {
    let k = k.min(n - k);
    (0..k)
        .map(|at| ((n - at) as f64).ln() - ((at + 1) as f64).ln())
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;
    use crate::identity::SecretKey;
    use crate::parameters::{Epoch, Genesis, ProtocolParameters};
    use crate::roster::Silo;

    fn epoch(n: u8, verification: Verification) -> Epoch {
        let silo = |at: u8| Silo {
            name: format!("silo {at}"),
            key: SecretKey::from_bytes(&[at + 1; 32]).public(),
            rows: None,
        };
        let f = (usize::from(n) - 1) / 3;
        let protocol = ProtocolParameters {
            start: Hash([0; 32]),
            rounds: 1,
            patience: 4,
            min_contributions: (2 * f + 1) as u16,
            verification,
            blob_limit: 1,
            keep_rounds: 1,
            ..ProtocolParameters::small("test")
        };
        let silos = (0..n).map(silo).collect();
        Epoch::first(&Genesis { silos, protocol }).unwrap()
    }

    #[test]
    fn a_level_is_read_and_written_by_its_name() {
        for level in Verification::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        for wrong in [
            "",
            "all",
            "committee",
            "committee-0",
            "committee-05",
            "committee-1001",
        ] {
            let error = wrong.parse::<Verification>().unwrap_err();
            assert!(error.to_string().contains("expected full"), "{error}");
        }
    }

    #[test]
    fn a_committee_has_its_size_and_every_member_is_drawn_equally_often() {
        let epoch = epoch(10, Verification::Committee(4));
        let mut times = [0; 10];
        let mut seen = BTreeSet::new();
        for view in 1..=5000 {
            let drawn = epoch.auditors(&Hash([7; 32]), view);
            assert_eq!(drawn.len(), 4);
            assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            drawn.iter().for_each(|member| times[member.at()] += 1);
            seen.insert(drawn);
        }
        // 2000 each, with a deviation of 35.
        assert!(
            times.iter().all(|&times| (1860..2140).contains(&times)),
            "{times:?}"
        );
        // All but a few of the 210 committees.
        assert!(seen.len() > 200, "{}", seen.len());
        let other = epoch.auditors(&Hash([8; 32]), 1);
        let again = epoch.auditors(&Hash([7; 32]), 1);
        assert_eq!(again, epoch.auditors(&Hash([7; 32]), 1));
        assert_ne!(
            (1..9)
                .map(|view| epoch.auditors(&Hash([8; 32]), view))
                .collect::<Vec<_>>(),
            (1..9)
                .map(|view| epoch.auditors(&Hash([7; 32]), view))
                .collect::<Vec<_>>(),
            "{other:?}"
        );
    }

    #[test]
    fn all_are_auditors_under_full_and_none_under_inclusion() {
        let count = |verification| {
            let epoch = epoch(7, verification);
            (epoch.auditors(&epoch.id, 3).len(), verification.needed(7))
        };
        assert_eq!(count(Verification::Full), (7, 0));
        assert_eq!(count(Verification::Committee(3)), (3, 2));
        assert_eq!(count(Verification::Committee(4)), (4, 3));
        assert_eq!(count(Verification::Committee(900)), (7, 5));
        assert_eq!(count(Verification::Inclusion), (0, 0));
    }

    #[test]
    fn a_quorum_has_room_for_the_auditors_that_it_needs() {
        for n in 1..=60u8 {
            let quorum = epoch(n, Verification::Full).roster.quorum();
            for size in 1..=u16::from(n) {
                let needed = Verification::Committee(size).needed(n.into());
                assert!(
                    (1..=quorum).contains(&needed),
                    "{n} {size}: {needed} of {quorum}"
                );
            }
        }
    }

    #[test]
    fn the_odds_are_those_of_drawing_without_replacement() {
        // Of 4 members one is Byzantine; a committee of 1 is wrong if it is that one.
        assert!((odds(4, 1, 1).wrong - 0.25).abs() < 1e-12);
        // 3 of 10 Byzantine, committee of 3, two needed: (3·7 + 1)/120 by counting.
        assert!((odds(10, 3, 3).wrong - 22.0 / 120.0).abs() < 1e-12);
        // Stuck if two of the three do not vote: the same number here.
        assert!((odds(10, 3, 3).stuck - 22.0 / 120.0).abs() < 1e-12);
        // With all members drawn it cannot go wrong while at most f are Byzantine.
        for n in [4, 7, 10, 50, 100] {
            let odds = odds(n, (n - 1) / 3, n);
            assert_eq!((odds.wrong, odds.stuck), (0.0, 0.0), "{n}");
        }
    }
}
