//! Notices that two processes have the key of one member.
//!
//! Every process says a number in its handshakes that no other has. A process that has ended does not
//! greet any more, so a restart is followed by the new number and never by the old one again. If it is,
//! on a connection that was made after the new number was heard, both processes run: somebody has
//! copied the key. Several connections of one process, by two transports or dialled from both sides,
//! have one number.
//!
//! A node tells the other end of a connection in its handshake which two numbers it has heard under the
//! other's key ([`Twins::of`]). One that hears its own number there counts the members that say so:
//! alone, a Byzantine member could silence others with a lie.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use protocol::MemberIndex;

/// Numbers that are remembered for one member.
const REMEMBERED: usize = 8;
/// How long others are told of two processes after they were noticed last.
const TOLD: Duration = Duration::from_secs(600);

/// The numbers of two processes with one key.
pub(crate) type ProcessPair = (u64, u64);

#[derive(Debug, Default)]
struct HeardNumbers {
    /// Each number, when it was first heard after another, and from where; newest last.
    numbers: VecDeque<(u64, Instant, String)>,
    both: Option<(ProcessPair, Instant)>,
}

/// The numbers of all members, and who says what of this node's own key.
#[derive(Debug, Default)]
pub(crate) struct Twins {
    heard: BTreeMap<MemberIndex, HeardNumbers>,
    witnesses: BTreeSet<MemberIndex>,
}

impl Twins {
    /// A member's process said its number on a connection to `address` that was made at `since`. Gives
    /// the addresses of both if another process has its key, too.
    pub(crate) fn heard(
        &mut self,
        member: MemberIndex,
        number: u64,
        (since, address): (Instant, String),
    ) -> Option<[String; 2]> {
        if number == 0 {
            return None;
        }
        let now = Instant::now();
        let heard = self.heard.entry(member).or_default();
        let (newest, first, other) = match heard.numbers.back() {
            Some((newest, first, other)) => (*newest, *first, other.clone()),
            None => (number, now, address.clone()),
        };
        let known = heard.numbers.iter().position(|(one, ..)| *one == number);
        if known.is_some() && (newest == number || since <= first) {
            return None;
        }
        if let Some(known) = known {
            heard.numbers.remove(known);
        }
        // The next time the other one is the older.
        heard.numbers.push_back((number, now, address.clone()));
        if heard.numbers.len() > REMEMBERED {
            heard.numbers.pop_front();
        }
        known?;
        heard.both = Some(((number, newest), now));
        Some([address, other])
    }

    /// The two processes that have this member's key, if that was noticed lately.
    pub(crate) fn of(&self, member: MemberIndex) -> Option<ProcessPair> {
        let (pair, at) = self.heard.get(&member)?.both?;
        (at.elapsed() < TOLD).then_some(pair)
    }

    /// A member says that these two processes have this node's key. Gives how many members say so.
    pub(crate) fn witness(&mut self, by: MemberIndex, pair: ProcessPair, own: u64) -> usize {
        if pair.0 != pair.1 && (pair.0 == own || pair.1 == own) {
            self.witnesses.insert(by);
        }
        self.witnesses.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MemberIndex = MemberIndex(1);

    fn hear(twins: &mut Twins, member: MemberIndex, number: u64) -> Option<[String; 2]> {
        twins.heard(member, number, (Instant::now(), format!("at {number}")))
    }

    #[test]
    fn restarts_and_further_connections_of_one_process_are_no_twins() {
        let mut twins = Twins::default();
        for number in [5, 5, 6, 6, 7, 5_000] {
            assert_eq!(hear(&mut twins, ONE, number), None, "{number}");
            assert_eq!(hear(&mut twins, MemberIndex(2), 5), None);
        }
        // A program that says none.
        assert_eq!(hear(&mut twins, ONE, 0), None);
        assert_eq!(twins.of(ONE), None);
    }

    #[test]
    fn a_late_greeting_on_an_old_connection_is_no_twin() {
        let mut twins = Twins::default();
        let before = Instant::now();
        hear(&mut twins, ONE, 5);
        hear(&mut twins, ONE, 6);
        assert_eq!(twins.heard(ONE, 5, (before, String::new())), None);
        assert_eq!(twins.of(ONE), None);
    }

    #[test]
    fn a_number_that_comes_back_after_another_shows_two_processes() {
        let mut twins = Twins::default();
        let both = |one: u64, other: u64| Some([one, other].map(|n| format!("at {n}")));
        assert_eq!(hear(&mut twins, ONE, 5), None);
        assert_eq!(hear(&mut twins, ONE, 6), None);
        assert_eq!(hear(&mut twins, ONE, 5), both(5, 6));
        assert_eq!(twins.of(ONE), Some((5, 6)));
        assert_eq!(twins.of(MemberIndex(2)), None);
        assert_eq!(hear(&mut twins, ONE, 5), None);
        assert_eq!(hear(&mut twins, ONE, 6), both(6, 5));
    }

    #[test]
    fn members_that_name_this_process_count_once_each_and_others_do_not() {
        let mut twins = Twins::default();
        assert_eq!(twins.witness(ONE, (5, 6), 7), 0);
        assert_eq!(twins.witness(ONE, (7, 7), 7), 0);
        assert_eq!(twins.witness(ONE, (7, 6), 7), 1);
        assert_eq!(twins.witness(ONE, (6, 7), 7), 1);
        assert_eq!(twins.witness(MemberIndex(2), (6, 7), 7), 2);
    }
}
