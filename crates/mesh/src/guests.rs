//! Stays of former members.
//!
//! A former member needs a moment to learn that it is none any more. It may stay connected for so long,
//! and is refused for a while then. No more than [`AT_ONCE`] are there at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use libp2p::PeerId;
use tokio::time::Instant;

/// Time for which a former member is refused after its stay.
pub const AWAY: Duration = Duration::from_secs(600);
/// Former members that are connected at the same time; then the one that is there longest has to go.
const AT_ONCE: usize = 8;

/// Change of what a former member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestChange {
    /// The guest's stay is over.
    Leave,
    /// The guest may come again.
    Return,
}

#[derive(Debug, Clone, Copy)]
enum GuestState {
    /// The guest came at this time; whether it is connected.
    Here(Instant, bool),
    /// The guest had to go at this time.
    Away(Instant),
}

/// The former members that came.
#[derive(Debug)]
pub(crate) struct Guests {
    stay: Duration,
    states: BTreeMap<PeerId, GuestState>,
}

impl Guests {
    pub(crate) fn new(stay: Duration) -> Self {
        let states = BTreeMap::new();
        Self { stay, states }
    }

    /// A former member has connected. Gives the one that has to go for it, if there are too many.
    pub(crate) fn came(&mut self, guest: PeerId) -> Option<PeerId> {
        let now = Instant::now();
        let since = match self.states.get(&guest) {
            Some(GuestState::Here(since, _)) => *since,
            _ => now,
        };
        self.states.insert(guest, GuestState::Here(since, true));
        let here = self.states.iter().filter_map(|(one, state)| match state {
            GuestState::Here(since, true) => Some((*since, *one)),
            _ => None,
        });
        let here: Vec<_> = here.collect();
        if here.len() <= AT_ONCE {
            return None;
        }
        let (_, first) = here.into_iter().min()?;
        self.states.insert(first, GuestState::Away(now));
        Some(first)
    }

    /// The guest's last connection has ended.
    pub(crate) fn went(&mut self, guest: &PeerId) {
        if let Some(GuestState::Here(_, connected)) = self.states.get_mut(guest) {
            *connected = false;
        }
    }

    /// Returns when the next turn is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.states.values().map(|state| self.end(state)).min()
    }

    /// The turns that are due.
    pub(crate) fn due(&mut self) -> Vec<(PeerId, GuestChange)> {
        let now = Instant::now();
        let due = self.states.iter();
        let due = due.filter(|(_, state)| self.end(state) <= now);
        let due: Vec<_> = due
            .map(|(guest, state)| match state {
                GuestState::Here(..) => (*guest, GuestChange::Leave),
                GuestState::Away(_) => (*guest, GuestChange::Return),
            })
            .collect();
        for (guest, turn) in &due {
            match turn {
                GuestChange::Leave => drop(self.states.insert(*guest, GuestState::Away(now))),
                GuestChange::Return => drop(self.states.remove(guest)),
            }
        }
        due
    }

    fn end(&self, state: &GuestState) -> Instant {
        match state {
            GuestState::Here(since, _) => *since + self.stay,
            GuestState::Away(since) => *since + AWAY,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const STAY: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_guest_stays_a_while_connected_or_not_and_may_return() {
        let (mut guests, guest) = (Guests::new(STAY), PeerId::random());
        assert_eq!(guests.next(), None);
        assert_eq!(guests.came(guest), None);
        let end = Instant::now() + STAY;
        advance(STAY / 2).await;
        guests.went(&guest);
        assert_eq!(guests.came(guest), None);
        assert_eq!((guests.next(), guests.due()), (Some(end), Vec::new()));
        advance(STAY / 2).await;
        assert_eq!(guests.due(), [(guest, GuestChange::Leave)]);
        assert_eq!(guests.next(), Some(Instant::now() + AWAY));
        advance(AWAY).await;
        assert_eq!(guests.due(), [(guest, GuestChange::Return)]);
        assert_eq!(guests.next(), None);
        assert_eq!(guests.came(guest), None);
        assert_eq!(guests.next(), Some(Instant::now() + STAY));
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_guests_the_one_there_longest_has_to_go() {
        let mut guests = Guests::new(STAY);
        let all: Vec<_> = (0..=AT_ONCE).map(|_| PeerId::random()).collect();
        for guest in &all[..AT_ONCE] {
            assert_eq!(guests.came(*guest), None);
            advance(Duration::from_secs(1)).await;
        }
        // One that is not connected takes no place.
        guests.went(&all[1]);
        assert_eq!(guests.came(all[AT_ONCE]), None);
        assert_eq!(guests.came(all[1]), Some(all[0]));
        assert_eq!(guests.came(all[2]), None);
    }
}
