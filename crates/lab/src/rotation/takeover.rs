//! Time that a federation goes without a working lead after one of its leads stopped.

use std::collections::BTreeSet;

use serde::Serialize;

/// Something that members report, with its time in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemberEvent {
    /// A member entered a view with this lead.
    Entered {
        /// Time of the entry.
        at: f64,
        /// The view.
        view: u64,
        /// Lead of the view, by position in the roster.
        lead: usize,
        /// The round that the member works on.
        round: u64,
    },
    /// A round became final.
    Final {
        /// Time at which the first member knew.
        at: f64,
        /// The round.
        round: u64,
        /// The view of its block.
        view: u64,
        /// The lead of that view.
        lead: usize,
    },
    /// A member stopped.
    Stopped {
        /// Time of the stop.
        at: f64,
        /// The member, by position in the roster.
        member: usize,
    },
}

impl MemberEvent {
    fn at(&self) -> f64 {
        match self {
            Self::Entered { at, .. } | Self::Final { at, .. } | Self::Stopped { at, .. } => *at,
        }
    }
}

/// Consequences of the stop of a member that led at that moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TakeOver {
    /// Time of the stop, in seconds.
    pub at: f64,
    /// The member that stopped.
    pub lead: usize,
    /// The round under way.
    pub round: u64,
    /// Lead of the next final round that was not decided yet.
    pub next: Option<usize>,
    /// Seconds until members entered the view in which that one led; `None`: never.
    pub seconds: Option<f64>,
    /// Seconds until the next round became final; `None`: never.
    pub stalled: Option<f64>,
}

/// The take-overs in the events of a federation.
///
/// A member that stopped counts if it led the newest view that any member had entered. Its successor
/// is the lead of the first final round whose view began after that moment: so a lead that takes over
/// and fails as well is no successor, and a member may succeed itself after a restart.
pub fn take_overs(events: &[MemberEvent]) -> Vec<TakeOver> {
    let mut events = events.to_vec();
    events.sort_by(|a, b| a.at().total_cmp(&b.at()));
    // A member that comes back learns of old rounds, which were final long before.
    let mut known = BTreeSet::new();
    events.retain(|event| match event {
        MemberEvent::Final { round, .. } => known.insert(*round),
        _ => true,
    });
    let mut found = Vec::new();
    let (mut newest, mut done) = ((0, 0, None), 0);
    for (nth, event) in events.iter().enumerate() {
        match *event {
            MemberEvent::Entered {
                view, lead, round, ..
            } => {
                if (view, round) >= (newest.0, newest.1) {
                    newest = (view, round, Some(lead));
                }
            }
            MemberEvent::Final { round, .. } => done = done.max(round),
            MemberEvent::Stopped { at, member } => {
                if newest.2 == Some(member) {
                    // Members may have entered the view before they knew that a round was final.
                    let round = newest.1.max(done + 1);
                    found.push(after(&events[nth + 1..], at, member, round));
                }
            }
        }
    }
    found
}

/// Returns what follows after the lead of a round stopped.
fn after(later: &[MemberEvent], at: f64, lead: usize, round: u64) -> TakeOver {
    let mut next = None;
    let mut stalled = None;
    for event in later {
        let MemberEvent::Final {
            at: end,
            round: done,
            view,
            lead: by,
        } = *event
        else {
            continue;
        };
        if stalled.is_none() && done >= round {
            stalled = Some(end - at);
        }
        let began = later.iter().find_map(|event| match *event {
            MemberEvent::Entered {
                at,
                view: entered,
                lead,
                ..
            } => (entered == view && lead == by && at <= end).then_some(at),
            _ => None,
        });
        if let Some(began) = began {
            next = Some((by, began - at));
            break;
        }
    }
    TakeOver {
        at,
        lead,
        round,
        next: next.map(|(by, _)| by),
        seconds: next.map(|(_, seconds)| seconds),
        stalled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(at: f64, view: u64, lead: usize, round: u64) -> MemberEvent {
        MemberEvent::Entered {
            at,
            view,
            lead,
            round,
        }
    }

    fn last(at: f64, round: u64, view: u64, lead: usize) -> MemberEvent {
        MemberEvent::Final {
            at,
            round,
            view,
            lead,
        }
    }

    #[test]
    fn the_successor_leads_the_first_round_whose_view_began_later() {
        let stopped = MemberEvent::Stopped {
            at: 10.0,
            member: 0,
        };
        let events = [
            entered(5.0, 1, 0, 1),
            stopped,
            // The next lead fails, too.
            entered(25.0, 2, 1, 1),
            entered(40.0, 3, 2, 1),
            last(43.0, 1, 3, 2),
        ];
        let expected = TakeOver {
            at: 10.0,
            lead: 0,
            round: 1,
            next: Some(2),
            seconds: Some(30.0),
            stalled: Some(33.0),
        };
        assert_eq!(take_overs(&events), [expected]);
    }

    #[test]
    fn a_block_that_was_voted_on_already_is_no_take_over() {
        let events = [
            entered(5.0, 1, 0, 1),
            MemberEvent::Stopped {
                at: 10.0,
                member: 0,
            },
            last(11.0, 1, 1, 0),
            // It would have led the next round, too.
            entered(11.0, 2, 0, 2),
            entered(26.0, 3, 1, 2),
            last(30.0, 2, 3, 1),
        ];
        let found = take_overs(&events);
        assert_eq!(found[0].next, Some(1));
        assert_eq!(found[0].seconds, Some(16.0));
        assert_eq!(found[0].stalled, Some(1.0));
    }

    #[test]
    fn without_a_lead_or_a_next_round_there_is_no_successor() {
        let events = [
            entered(5.0, 1, 0, 1),
            MemberEvent::Stopped { at: 9.0, member: 1 },
            MemberEvent::Stopped {
                at: 10.0,
                member: 0,
            },
            entered(20.0, 2, 0, 1),
        ];
        let [one] = &take_overs(&events)[..] else {
            panic!("one lead stopped")
        };
        assert_eq!((one.next, one.seconds, one.stalled), (None, None, None));
    }
}
