//! Answers to challenges, by which others see that a node's program computes as theirs does.

use std::fmt;
use std::sync::Arc;

type ChallengeAnswer = dyn Fn([u8; 32]) -> Option<[u8; 32]> + Send + Sync;

/// Answer of a node to a challenge of a program that checks addresses: a function of the challenge
/// alone, or nothing.
#[derive(Clone)]
pub struct Rehearsal(Arc<ChallengeAnswer>);

impl Rehearsal {
    /// `answer` makes the answer. It may take some milliseconds; a member asks once for each connection.
    pub fn new(answer: impl Fn([u8; 32]) -> Option<[u8; 32]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(answer))
    }

    pub(crate) fn answer(&self, challenge: [u8; 32]) -> Option<[u8; 32]> {
        self.0(challenge)
    }
}

impl Default for Rehearsal {
    /// Answers nothing.
    fn default() -> Self {
        Self::new(|_| None)
    }
}

impl fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rehearsal")
    }
}
