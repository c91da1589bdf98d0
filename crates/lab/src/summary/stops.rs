//! Members that a fault stopped.

use serde::Serialize;
use simulations::ProtocolRecord;

/// A member that stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoppedMember {
    /// Time of the stop, in seconds.
    pub at: f64,
    /// The member, by position in the roster.
    pub member: usize,
    /// Time of the restart; `None`: never.
    pub back: Option<f64>,
}

/// Returns when members stopped, and when they were back before the end.
pub(crate) fn stops(protocol: &ProtocolRecord) -> Vec<StoppedMember> {
    let end = protocol.ended.elapsed().as_secs_f64();
    protocol
        .stops
        .iter()
        .map(|stop| {
            let at = stop.at.as_secs_f64();
            let back = stop.back.map(|after| at + after.as_secs_f64());
            StoppedMember {
                at,
                member: stop.member.at(),
                back: back.filter(|&back| back < end),
            }
        })
        .collect()
}
