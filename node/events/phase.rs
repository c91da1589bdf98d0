//! Names of a lead's phases.

use protocol::message::Phase;

/// The name of a lead's phase, as in the faults of a scenario.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "waiting",
        Phase::Collecting => "collecting",
        Phase::Scoring => "scoring",
        Phase::Including => "including",
        Phase::Deciding => "deciding",
        Phase::Voting => "voting",
        Phase::Masking => "masking",
    }
}
