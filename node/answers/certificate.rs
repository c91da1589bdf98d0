//! Proof of an answer: the round whose state has it, and the quorum that made that round final.

use agreement::Agreement;
use serde::Serialize;

use crate::model::HeldRound;

/// The last round of a node's state, in which all answers so far are.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AnswerCertificate {
    /// Name of the federation.
    pub(crate) federation: String,
    /// Its id, in hexadecimal digits.
    pub(crate) federation_id: String,
    /// The round.
    pub(crate) round: u64,
    /// Hash of its final block.
    pub(crate) block: String,
    /// Hash of its outcome, which has the sums of all questions.
    pub(crate) outcome: String,
    /// Hash of the quorum's certificate; none where the journal has not got it.
    pub(crate) certificate: Option<String>,
    /// Members that have to sign.
    pub(crate) quorum: usize,
    /// Members in all.
    pub(crate) members: usize,
}

impl AnswerCertificate {
    /// The certificate of a round under the agreement in force.
    pub(crate) fn of(round: &HeldRound, agreement: &Agreement) -> Self {
        let epoch = &agreement.epoch;
        Self {
            federation: epoch.protocol.name.clone(),
            federation_id: format!("{:#}", epoch.federation),
            round: round.round,
            block: format!("{:#}", round.block),
            outcome: format!("{:#}", round.outcome),
            certificate: round.certificate.map(|hash| format!("{hash:#}")),
            quorum: epoch.roster.quorum(),
            members: epoch.roster.len(),
        }
    }
}
