//! Federations with secure-aggregation rounds that are drawn from a seed: their size, their groups, how many pool what
//! they know, and what goes wrong.

use protocol::roster::quorum;

use super::{BareOptions, Byzantine, Faults, JournalLoss};
use crate::random::Random;

impl BareOptions {
    /// The federation with secure-aggregation rounds of this seed, of 4 to 10 members.
    pub fn masked_world(seed: u64) -> Self {
        let mut random = Random::new(seed, "masked world");
        let members = [4, 4, 5, 6, 7, 7, 8, 10][random.below(8)];
        // Every choice of colluders is looked at, and in larger federations there are too many.
        let most = most_colluders(members).min(if members <= 7 { 2 } else { 1 });
        let colluders = 1 + random.below(most);
        let mut options = Self {
            rounds: 3 + random.below(3) as u64,
            groups: groups(&mut random, members, (colluders + 2).max(3)),
            colluders,
            simulated_signatures: true,
            ..Self::new(members, faults(&mut random))
        };
        let honest = options.faults.byzantine == Byzantine::None;
        match random.below(4) {
            0 => {
                options.changes = 1;
                // Up to two members are gone afterwards, and fewer allow fewer colluders. Fewer than four do not go
                // on with secure-aggregation rounds.
                let fewer = (members.max(6) - 2..members).map(most_colluders);
                options.colluders = fewer.fold(options.colluders, usize::min);
            }
            // Whoever goes on without others must know that these keep to the rules.
            1 if honest && options.faults.journal_loss == JournalLoss::Never => {
                options.recoveries = true;
            }
            _ => {}
        }
        options
    }

    /// The federation with noise of this seed: as [`masked_world`](Self::masked_world) draws it, with one sum
    /// of all that are ready in place of its groups.
    pub fn noised_world(seed: u64) -> Self {
        let masked = Self::masked_world(seed);
        let mut random = Random::new(seed, "noised world");
        let (least, most) = ((masked.colluders + 1).max(3), quorum(masked.members));
        Self {
            fewest_authors: Some((least + random.below(most - least + 1)) as u16),
            groups: Vec::new(),
            ..masked
        }
    }
}

/// Most members that may collude: 2q − n − 1.
pub(super) fn most_colluders(members: usize) -> usize {
    2 * quorum(members) - members - 1
}

/// Groups of at least so many members, drawn: one, or two if there are enough.
fn groups(random: &mut Random, members: usize, smallest: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<_> = (0..members).collect();
    random.shuffle(&mut all);
    let first = smallest + random.below(members - smallest + 1);
    let rest = all.split_off(first);
    let second = Some(rest).filter(|rest| rest.len() >= smallest);
    let mut groups: Vec<_> = [all].into_iter().chain(second).collect();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

fn faults(random: &mut Random) -> Faults {
    let journal_loss = match random.below(5) {
        0 | 1 => JournalLoss::Never,
        2 => JournalLoss::Declared,
        3 => JournalLoss::Hidden,
        _ => JournalLoss::PutBack,
    };
    let byzantine = match random.below(5) {
        0 => Byzantine::None,
        1 => Byzantine::Twins,
        _ => Byzantine::AnyMasked,
    };
    Faults {
        journal_loss,
        byzantine,
        ..Faults::all()
    }
}
