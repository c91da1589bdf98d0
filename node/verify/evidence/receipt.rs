//! A lead's receipt for a contribution that is not in the round: what it had said.

use protocol::accusation::{Lineage, statement};
use protocol::envelope;
use protocol::identity::Strict;
use protocol::message::{Body, Message};
use protocol::{Epoch, MemberIndex};

use super::{EvidenceFile, FORMAT_OF_ONE, hex};

/// Part of the file's name: one is kept of every lead.
const KIND: &str = "left-out";

impl EvidenceFile {
    /// The file of a receipt of this epoch.
    pub fn of_receipt(lineage: &Lineage, epoch: &Epoch, receipt: &Message) -> Self {
        let messages = vec![hex(&envelope::reseal(epoch, receipt))];
        let file = Self::new(
            lineage,
            epoch,
            receipt.sender,
            (said(receipt), KIND),
            messages,
        );
        Self {
            format: FORMAT_OF_ONE.into(),
            ..file
        }
    }
}

/// Returns what the sealed receipt of a member of these epochs says: the epoch, the member, and its word.
///
/// # Errors
/// It is no receipt.
pub(super) fn charge<'a>(
    epochs: &'a [Epoch],
    frame: &[u8],
) -> Result<(&'a Epoch, MemberIndex, String), String> {
    let (epoch, message) = statement(epochs, &Strict, frame).map_err(|why| why.to_string())?;
    match message.body {
        Body::Receipt { .. } => Ok((epoch, message.sender, said(&message))),
        _ => Err("it has one message, which proves nothing alone".into()),
    }
}

fn said(receipt: &Message) -> String {
    let entry = match receipt.body {
        Body::Receipt { entry } => format!("{entry:#}"),
        _ => String::new(),
    };
    format!(
        "as the lead of view {}, that it has the contribution {entry}",
        receipt.view
    )
}
