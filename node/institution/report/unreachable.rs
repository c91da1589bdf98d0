//! Reports members that are not connected, in words: soon after the first failure, and then again with
//! pauses that double.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use mesh::PeerState;
use protocol::MemberIndex;

/// Time for which a member is tried before it is reported: nodes are not all started at the same moment.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first pause and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));

/// Time of the last report about each member.
#[derive(Debug, Default)]
pub(in crate::institution) struct Unreachable {
    reported: BTreeMap<MemberIndex, (SystemTime, Duration)>,
}

/// A member to be reported now.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::institution) struct UnreachableMember {
    pub(in crate::institution) member: MemberIndex,
    /// In words that follow the member's name.
    pub(in crate::institution) why: String,
    /// For how long it could not be reached.
    pub(in crate::institution) lasting: Duration,
    /// Time until it is reported again.
    pub(in crate::institution) pause: Duration,
    /// Failed attempts.
    pub(in crate::institution) attempts: u64,
}

impl Unreachable {
    /// The members to be reported now.
    pub(in crate::institution) fn due(
        &mut self,
        peers: &[PeerState],
        now: SystemTime,
    ) -> Vec<UnreachableMember> {
        let mut due = Vec::new();
        for peer in peers {
            let Some(problem) = &peer.problem else {
                self.reported.remove(&peer.member);
                continue;
            };
            let since = |earlier| now.duration_since(earlier).unwrap_or_default();
            let lasting = since(problem.since);
            let pause = match self.reported.get(&peer.member) {
                None if lasting < PATIENCE => continue,
                None => PAUSES.0,
                Some((at, pause)) if since(*at) < *pause => continue,
                Some((_, pause)) => (*pause * 2).min(PAUSES.1),
            };
            self.reported.insert(peer.member, (now, pause));
            due.push(UnreachableMember {
                member: peer.member,
                why: problem.why.clone(),
                lasting,
                pause,
                attempts: peer.attempts,
            });
        }
        due
    }
}

impl UnreachableMember {
    /// The line for people.
    pub(in crate::institution) fn line(&self, name: &str) -> String {
        let span = crate::status::text::span;
        format!(
            "{name} {} (for {}); this node keeps trying, and reports again in {}",
            self.why,
            span(self.lasting),
            span(self.pause)
        )
    }
}

#[cfg(test)]
mod tests {
    use mesh::Problem;

    use super::*;

    fn peer(since: SystemTime, why: &str) -> PeerState {
        PeerState {
            member: MemberIndex(2),
            connected: None,
            through: None,
            round_trip: None,
            attempts: 7,
            problem: Some(Problem {
                why: why.into(),
                since,
            }),
            program: None,
        }
    }

    #[test]
    fn an_unreachable_member_is_reported_with_growing_pauses() {
        let start = SystemTime::UNIX_EPOCH;
        let at = |seconds| start + Duration::from_secs(seconds);
        let why = "at 192.0.2.7:4001 does not answer over UDP";
        let mut unreachable = Unreachable::default();
        let mut reported = Vec::new();
        for second in 0..20_000 {
            let due = unreachable.due(&[peer(at(0), why)], at(second));
            reported.extend(due.first().map(|_| second));
        }
        let expected = [5, 65, 185, 425, 905, 1865, 3785, 7385, 10985, 14585, 18185];
        assert_eq!(reported, expected);
        let answers = PeerState {
            problem: None,
            program: None,
            ..peer(at(0), why)
        };
        assert_eq!(unreachable.due(&[answers], at(20_000)), []);
        // After an answer the count begins anew.
        assert_eq!(unreachable.due(&[peer(at(20_001), why)], at(20_002)), []);
        let again = unreachable.due(&[peer(at(20_001), why)], at(20_066));
        assert_eq!(
            again.first().map(|report| report.line("south")),
            Some(
                "south at 192.0.2.7:4001 does not answer over UDP (for 1m 5s); this node keeps \
                 trying, and reports again in 1m"
                    .into()
            )
        );
    }
}
