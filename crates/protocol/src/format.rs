//! Formats of messages: which of them a program speaks.
//!
//! A *format* is a number for the layout of everything that members send each other: headers, kinds of
//! messages, bodies. An agreement says which one is in force, and an amendment may raise it. Whatever
//! the format, a message begins with its number, the federation and the epoch.
//!
//! | format | what is new |
//! |---|---|
//! | 1 | |
//! | 2 | [`Abstain`](crate::message::Body::Abstain) |
//! | 3 | masked rounds: [`Keys`](crate::message::Body::Keys) and all that follows from them |

use std::fmt;

/// The formats that a program speaks: all from the oldest to the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// The oldest format.
    pub oldest: u8,
    /// The newest format.
    pub newest: u8,
}

impl Formats {
    /// The formats that this program speaks.
    pub const SPOKEN: Self = Self {
        oldest: 1,
        newest: 3,
    };

    /// The one that a new federation begins with, unless its rounds are masked.
    pub const FIRST: u8 = 2;

    /// The first that has the messages of masked rounds.
    pub const MASKED: u8 = 3;

    /// Returns true if a format is one of them.
    pub fn contains(self, format: u8) -> bool {
        (self.oldest..=self.newest).contains(&format)
    }
}

impl Default for Formats {
    fn default() -> Self {
        Self::SPOKEN
    }
}

impl fmt::Display for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oldest == self.newest {
            write!(f, "format {}", self.newest)
        } else {
            write!(f, "formats {} to {}", self.oldest, self.newest)
        }
    }
}
