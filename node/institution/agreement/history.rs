//! The agreements of all epochs so far, as a node's journal shows them.

use agreement::Agreement;
use protocol::Epochs;

/// The agreements of all epochs, oldest first; the last one is in force. There is at least one.
pub(crate) fn agreements(first: &Agreement, epochs: &Epochs) -> Vec<Agreement> {
    let mut now = first.clone();
    let over = epochs.former.iter().map(|(epoch, _)| epoch.clone());
    let next = over.skip(1).chain([epochs.now.clone()]);
    let mut all = Vec::new();
    for ((_, passage), epoch) in epochs.former.iter().zip(next) {
        let block = passage.blocks.first();
        let after = block.and_then(|block| now.following(block, epoch, learn::stand_in).ok());
        // Every epoch of a journal begins with a block that ends the one before.
        let after = after.unwrap_or_else(|| now.clone());
        all.push(std::mem::replace(&mut now, after));
    }
    all.push(now);
    all
}
