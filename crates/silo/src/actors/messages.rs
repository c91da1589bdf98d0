//! The messages that the actors of one silo send each other.

use actix::{Message, Recipient};
use bytes::Bytes;
use protocol::envelope::Known;
use protocol::net::{BlobRequest, Command};
use protocol::work::{Answer, Request};
use protocol::{Hash, Input, MemberIndex, Time};

use crate::notice::Notice;
use crate::record::JournalRecord;
use crate::site::LedgerLine;

/// Silo → worker: heavy work. Answered at most once, and not at all if its round
/// is already over.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct WorkRequest {
    pub(crate) request: Request,
    pub(crate) reply: Recipient<WorkResult>,
}

/// Worker → silo: the result of a [`WorkRequest`].
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct WorkResult {
    /// Records to make durable before anything else happens.
    pub(crate) records: Vec<JournalRecord>,
    /// The line that the ledger must have before the state machine hears of the result.
    pub(crate) line: Option<LedgerLine>,
    /// The only blobs that are needed once the records are durable, ascending, and newer ones than
    /// this mark.
    pub(crate) retain: Option<(Vec<Hash>, u64)>,
    /// Notices to send once the records are durable.
    pub(crate) notices: Vec<Notice>,
    /// The answer for the state machine, or the defect that stops the silo.
    pub(crate) answer: Result<Answer, String>,
}

impl From<Answer> for WorkResult {
    fn from(answer: Answer) -> Self {
        Self {
            records: Vec::new(),
            line: None,
            retain: None,
            notices: Vec::new(),
            answer: Ok(answer),
        }
    }
}

impl WorkResult {
    /// Stops the silo because of a defect of this program.
    pub(crate) fn defect(why: String) -> Self {
        Self {
            records: Vec::new(),
            line: None,
            retain: None,
            notices: Vec::new(),
            answer: Err(why),
        }
    }

    /// The result where the ledger has refused its line: the silo has nothing to contribute.
    pub(crate) fn refused(mut self, why: String) -> Self {
        self.answer = self.answer.map(|answer| match answer {
            Answer::Trained { round, .. } => Answer::Trained {
                round,
                result: Err(why),
            },
            Answer::Prepared { round, .. } => Answer::Prepared {
                round,
                result: Err(why),
            },
            other => other,
        });
        self
    }
}

/// Silo → mesh: starts delivery of network events.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Subscribe {
    /// Receives the events.
    pub(crate) events: Recipient<Incoming>,
    /// Answers which certificates are already verified.
    pub(crate) verified: Recipient<VerifiedCertificates>,
}

/// Mesh → silo: an event of the network.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Incoming {
    /// An input of the state machine.
    Input(Box<Input>),
    /// A member asks for blobs.
    Wanted {
        by: MemberIndex,
        blobs: Vec<Hash>,
        ticket: u64,
    },
    /// The network ended.
    End,
}

/// Mesh → silo: asks which certificates the member has verified before, so that they need not be
/// verified again.
#[derive(Message)]
#[rtype(result = "Known")]
pub(crate) struct VerifiedCertificates;

/// Silo → mesh: all network commands of one step.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Outgoing(pub(crate) Vec<Command>);

/// Worker → mesh: fetches these blobs, none of which is being fetched already. Each is answered
/// once.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Fetch {
    pub(crate) blobs: Vec<BlobRequest>,
    /// Members to ask, in this order.
    pub(crate) from: Vec<MemberIndex>,
    pub(crate) reply: Recipient<Fetched>,
}

/// Mesh → worker: fetched blobs, and hashes of blobs that no member gave.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Fetched {
    pub(crate) blobs: Vec<(Hash, Bytes)>,
    pub(crate) missing: Vec<Hash>,
}

/// Any actor → observer: notices of one moment, in order.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Notices {
    pub(crate) at: Time,
    pub(crate) list: Vec<Notice>,
}

/// Handle → silo: what the institution wants, as an input of the protocol.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct WishMessage(pub(crate) Input);

/// Handle → silo: finish the current step, then stop.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StopSilo;

/// Stop at once. The handle sends it to kill a silo; a silo actor that ends sends it to the other
/// actors.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Halt;
