//! Members that took no part in recent rounds, and how long they are marked absent (not waited for).

use crate::member::ByMember;
use crate::roster::MemberIndex;

/// The members without a contribution in the last final round that waited for them.
#[derive(Default)]
pub(in crate::member) struct Absences(ByMember<Absence>);

struct Absence {
    /// Rounds that waited for the member in vain.
    missed: u32,
    /// The first round that waits for it again, if it can be reached then: the second after the
    /// first missed round, then the fourth, the eighth, and so on.
    until: u64,
}

/// Most doublings of the rounds that do not wait.
const DOUBLINGS: u32 = 10;

impl Absences {
    /// Whether `round` need not wait for a member beyond D.
    pub(in crate::member) fn excuse(
        &self,
        member: MemberIndex,
        reachable: bool,
        round: u64,
    ) -> bool {
        let absence = self.0.get(&member);
        absence.is_some_and(|absence| !reachable || round < absence.until)
    }

    /// `round` became final after it waited for these members; those with a contribution in it are
    /// removed by [`returned`](Self::returned).
    pub(in crate::member) fn waited(&mut self, round: u64, members: &[MemberIndex]) {
        for &member in members {
            let absence = self.0.entry(member).or_insert(Absence {
                missed: 0,
                until: 0,
            });
            absence.missed = (absence.missed + 1).min(DOUBLINGS);
            absence.until = round + (1 << absence.missed);
        }
    }

    /// `authors` (ascending) have a contribution in a final round: their absences are forgotten.
    pub(in crate::member) fn returned(&mut self, authors: &[MemberIndex]) {
        self.0
            .retain(|member, _| authors.binary_search(member).is_err());
    }

    /// For tests: a member is marked absent in rounds before `until`.
    #[cfg(test)]
    pub(in crate::member) fn set(&mut self, member: MemberIndex, until: u64) {
        let missed = 1;
        self.0.insert(member, Absence { missed, until });
    }
}
