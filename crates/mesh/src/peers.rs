//! What is known of the connections to the other members, for operators.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use protocol::MemberIndex;

use crate::hello::Program;

/// What is known of the connection to another member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerState {
    /// The member.
    pub member: MemberIndex,
    /// Since when it has answered over the present connection; `None` if it is not connected.
    pub connected: Option<SystemTime>,
    /// The member that relays the present connection; `None` if it is direct or there is none.
    pub through: Option<MemberIndex>,
    /// The last measured round trip of the present connection.
    pub round_trip: Option<Duration>,
    /// Attempts that failed since it was last connected.
    pub attempts: u64,
    /// What was found when it was last tried or lost; `None` after it has answered.
    pub problem: Option<Problem>,
    /// Program of the member, as it said in its last handshake.
    pub program: Option<Program>,
}

/// Why a member is not connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What the last attempt found, in words that follow the member's name: "at 192.0.2.7:4001 does
    /// not answer over UDP".
    pub why: String,
    /// When the first attempt failed or the connection ended.
    pub since: SystemTime,
}

/// The states of all other members. Clones share them; the mesh keeps them up to date.
#[derive(Debug, Clone, Default)]
pub struct Peers(Arc<Mutex<BTreeMap<MemberIndex, PeerState>>>);

impl Peers {
    pub(crate) fn new(members: impl IntoIterator<Item = MemberIndex>) -> Self {
        let unknown = |member| PeerState {
            member,
            connected: None,
            through: None,
            round_trip: None,
            attempts: 0,
            problem: None,
            program: None,
        };
        let states = members.into_iter().map(|member| (member, unknown(member)));
        Self(Arc::new(Mutex::new(states.collect())))
    }

    /// The states at this moment, in the order of the roster.
    pub fn list(&self) -> Vec<PeerState> {
        self.states().values().cloned().collect()
    }

    /// The member that relays the connection to this one; `None` if it is direct or there is none.
    pub fn through(&self, member: MemberIndex) -> Option<MemberIndex> {
        self.states().get(&member).and_then(|state| state.through)
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<MemberIndex, PeerState>> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, member: MemberIndex, change: impl FnOnce(&mut PeerState)) {
        if let Some(state) = self.states().get_mut(&member) {
            change(state);
        }
    }

    /// A member answered over its connection.
    pub(crate) fn answered(&self, member: MemberIndex, round_trip: Duration) {
        self.change(member, |state| {
            state.connected.get_or_insert_with(SystemTime::now);
            state.round_trip = Some(round_trip);
            state.attempts = 0;
            state.problem = None;
        });
    }

    /// The present connection is direct, or another member relays it.
    pub(crate) fn goes_through(&self, member: MemberIndex, relay: Option<MemberIndex>) {
        self.change(member, |state| state.through = relay);
    }

    /// A member said what its program is.
    pub(crate) fn greeted(&self, member: MemberIndex, program: &Program) {
        self.change(member, |state| state.program = Some(program.clone()));
    }

    /// An attempt failed.
    pub(crate) fn failed(&self, member: MemberIndex, why: &str) {
        self.change(member, |state| {
            state.attempts += 1;
            state.trouble(why);
        });
    }

    /// The last connection ended.
    pub(crate) fn lost(&self, member: MemberIndex, why: &str) {
        self.change(member, |state| {
            state.connected = None;
            state.through = None;
            state.round_trip = None;
            state.trouble(&format!("was connected, and the connection ended: {why}"));
        });
    }
}

impl PeerState {
    fn trouble(&mut self, why: &str) {
        let since = self.problem.as_ref().map(|problem| problem.since);
        self.problem = Some(Problem {
            why: why.to_owned(),
            since: since.unwrap_or_else(SystemTime::now),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_keeps_its_beginning_until_the_member_answers() {
        let (one, two) = (MemberIndex(1), MemberIndex(2));
        let peers = Peers::new([one, two]);
        let state = || peers.list().swap_remove(0);
        assert_eq!((state().connected, state().problem), (None, None));
        peers.failed(one, "at 192.0.2.7:4001 does not answer over UDP");
        let since = state().problem.map(|problem| problem.since);
        peers.failed(
            one,
            "at 192.0.2.7:4001 refuses connections over TCP: no program listens there",
        );
        let problem = state().problem.expect("it has failed twice");
        assert_eq!((Some(problem.since), state().attempts), (since, 2));
        assert!(problem.why.contains("TCP"));
        peers.answered(one, Duration::from_millis(20));
        assert!(state().connected.is_some());
        assert_eq!((state().attempts, state().problem), (0, None));
        let connected = state().connected;
        peers.answered(one, Duration::from_millis(30));
        assert_eq!(state().connected, connected);
        peers.lost(one, "it was closed");
        assert_eq!((state().connected, state().round_trip), (None, None));
        assert!(
            state()
                .problem
                .is_some_and(|problem| problem.why.ends_with("it was closed"))
        );
        assert!(peers.list()[1].problem.is_none());
    }
}
