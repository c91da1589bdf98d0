//! Word of an institution on an amendment: that it approves it, or does no more.

use std::time::SystemTime;

use protocol::Hash;
use protocol::message::Amendment;
use serde::{Deserialize, Serialize};

/// Word of an institution on an amendment. Its node signs these bytes and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmendmentWord {
    /// The epoch that the amendment would end.
    pub epoch: Hash,
    /// The amendment, whole.
    pub amendment: Amendment,
    /// Counts up with every word of the institution: of those to one amendment the highest counts.
    pub number: u64,
    /// True if the institution approves the amendment. If not, an approval that was given before is
    /// withdrawn.
    pub stands: bool,
}

impl AmendmentWord {
    /// The next word to an amendment of `epoch`, after those that the institution has said so far.
    pub fn after(
        said: &[Self],
        (epoch, amendment): (Hash, &Amendment),
        stands: bool,
        now: SystemTime,
    ) -> Self {
        let now = now.duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let last = said.iter().map(|word| word.number).max();
        let least = last.map_or(0, |last| last.saturating_add(1));
        Self {
            epoch,
            amendment: amendment.clone(),
            number: now.max(least),
            stands,
        }
    }
}
