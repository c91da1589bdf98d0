//! Adopting final outcomes (R4).

use crate::effects::FinalRound;

/// Final rounds, and how far this member has adopted them.
#[derive(Default)]
pub(in crate::member) struct Adoption {
    /// Final rounds that are not adopted yet, oldest first.
    pub(in crate::member) waiting: Vec<FinalRound>,
    /// The last round adopted; 0 for none.
    pub(in crate::member) applied: u64,
    pub(in crate::member) state: AdoptionState,
}

#[derive(Default, Clone, Copy, PartialEq)]
pub(in crate::member) enum AdoptionState {
    #[default]
    Idle,
    Running,
    /// The adoption failed; tried again after a heartbeat.
    Stalled,
}

impl Adoption {
    /// Whether outcomes are being adopted.
    pub(in crate::member) fn is_running(&self) -> bool {
        self.state == AdoptionState::Running
    }

    /// A heartbeat has passed: an outcome that could not be fetched may be requested again.
    pub(in crate::member) fn retry(&mut self) {
        if self.state == AdoptionState::Stalled {
            self.state = AdoptionState::Idle;
        }
    }
}
