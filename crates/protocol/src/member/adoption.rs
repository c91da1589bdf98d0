//! Adopting final outcomes (R4).

use crate::effects::FinalRound;

/// Final rounds, and how far this member has adopted them.
#[derive(Default)]
pub(super) struct Adoption {
    /// Final rounds that are not adopted yet, oldest first.
    pub(super) waiting: Vec<FinalRound>,
    /// The last round adopted; 0 for none.
    pub(super) applied: u64,
    pub(super) state: AdoptionState,
}

#[derive(Default, Clone, Copy, PartialEq)]
pub(super) enum AdoptionState {
    #[default]
    Idle,
    Running,
    /// The adoption failed; tried again after a beat.
    Stalled,
}

impl Adoption {
    /// Whether outcomes are being adopted.
    pub(super) fn is_running(&self) -> bool {
        self.state == AdoptionState::Running
    }

    /// A beat has passed: an outcome that could not be fetched may be requested again.
    pub(super) fn retry(&mut self) {
        if self.state == AdoptionState::Stalled {
            self.state = AdoptionState::Idle;
        }
    }
}
