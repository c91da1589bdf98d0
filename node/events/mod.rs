//! Output of a running node with `--json`: one [`Line`] for each event.
//! `rota schema events` prints its JSON Schema. Members are named as in the agreement; hashes have 64 digits.

mod line;
mod phase;
mod receipt;
use crate::status::document::{HeldOutMetrics, SpentSeconds};
pub use line::{Line, schema};
pub use phase::phase_name;
pub use receipt::UnkeptReceipt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Event at a node. Numbers that are not finite are null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[serde(rename_all_fields = "snake_case")]
pub enum NodeEvent {
    /// The node runs under an agreement.
    Start {
        /// The silo's name.
        member: String,
        /// Its position in the agreement, from 0.
        member_index: u16,
        /// Number of members.
        members: usize,
        /// Agreed rounds.
        rounds: u64,
        /// The federation's id.
        federation: String,
        /// Its name, for people; absent in lines of earlier versions.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        federation_name: String,
        /// Addresses at which the node listens.
        addresses: Vec<String>,
        /// Members that may break the rules.
        byzantine_members_tolerated: usize,
        /// Changes of the agreement so far.
        epoch: u64,
    },
    /// Facts about this silo's rows that others learn by the agreement.
    Privacy {
        /// In a few sentences; empty where rounds are in clear.
        learned: Vec<String>,
        /// The paragraph for the data protection officer.
        officer: Vec<String>,
        /// True if rounds have noise: other lines then have exact numbers of rows, which epsilon does not cover.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        noised: bool,
    },
    /// The round from which the silo goes on after a start.
    GoesOn {
        /// The round.
        round: u64,
        /// Hash of its outcome.
        outcome: String,
        /// The silo's coalition, from 0.
        coalition: u32,
        /// Number of coalitions.
        coalitions: usize,
        /// Its model on the silo's own held-out rows.
        held_out: Option<HeldOutMetrics>,
    },
    /// Page and metrics are served.
    Http {
        /// Their address.
        url: String,
    },
    /// The status cannot be asked for.
    NoStatus {
        /// Reason.
        why: String,
    },
    /// Something in the state folder was found and handled.
    State {
        /// Kind of the finding: "closed", "set-aside", "journal-gone" or "audit-log".
        what: String,
        /// In words.
        why: String,
    },
    /// The agreement protects this silo little.
    Weakness {
        /// Reason.
        why: String,
    },
    /// The silo's rows and what the agreement says of them do not go together.
    Rows {
        /// Reason.
        why: String,
    },
    /// The node asks the others for the model of the first round.
    AsksForStart {
        /// Its hash.
        hash: String,
        /// Its largest size.
        bytes: u64,
    },
    /// It has that model.
    HasStart {
        /// Its hash.
        hash: String,
    },
    /// The node waits until the members admit its institution.
    WaitsForAdmission {
        /// Its key.
        key: String,
    },
    /// The institution is no member any more.
    Left {
        /// Consequence for it.
        why: String,
    },
    /// The node ends.
    Leaving {
        /// Reason.
        why: String,
    },
    /// The silo stopped.
    Stopped {
        /// Reason.
        reason: String,
    },
    // ---- Views and their leads.
    /// A view begins.
    View {
        /// The view.
        view: u64,
        /// Its lead.
        lead: String,
        /// The round.
        round: u64,
    },
    /// This silo leads, and enters a phase.
    Leading {
        /// The view.
        view: u64,
        /// The round.
        round: u64,
        /// The phase.
        phase: String,
    },
    /// This silo votes to replace the lead.
    Nullifying {
        /// The view.
        view: u64,
        /// Reason.
        reason: String,
    },
    /// A view ended without a block.
    Nullified {
        /// The view.
        view: u64,
        /// Its lead, where this silo was in it.
        lead: Option<String>,
    },
    /// A quorum has voted for the block of a view.
    Notarised {
        /// The view.
        view: u64,
    },
    // ---- Rounds.
    /// A round is final.
    Final {
        /// The round.
        round: u64,
        /// The view in which it became final.
        view: u64,
        /// Its lead.
        lead: String,
        /// Hash of the block.
        block: String,
        /// Number of models in it.
        authors: usize,
        /// Members whose models are in it.
        contributors: Vec<String>,
        /// Members whose models its lead left out, or did not have in time.
        #[serde(default)]
        left_out: Vec<String>,
        /// Processor time of the node so far, in seconds; null where the system does not say.
        cpu_seconds: Option<f64>,
    },
    /// The silo adopted the model of its coalition.
    Adopted {
        /// The round.
        round: u64,
        /// Hash of the outcome.
        outcome: String,
        /// The silo's coalition, from 0.
        coalition: u32,
        /// Number of coalitions.
        coalitions: usize,
        /// The silo's mean training loss; null where it did not train.
        loss: Option<f64>,
        /// The model on the silo's own held-out rows; null where it was not measured.
        held_out: Option<HeldOutMetrics>,
        /// Hash of the block; null where the silo adopted a round without having seen it become final.
        block: Option<String>,
        /// Time spent since the round before, by activity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<SpentSeconds>,
    },
    /// All rounds are done.
    Finished {
        /// The last one.
        rounds: u64,
    },
    /// Another member holds the last round.
    MemberFinished {
        /// The member.
        member: String,
    },
    /// A piece of work begins: training, checking models, computing an outcome and the like.
    WorkBegins {
        /// Kind of work: "train", "evaluate", "decide", "check", "settle", "apply", "admit", "hold", "keep" or "plan".
        work: String,
    },
    /// It is over.
    WorkEnds {
        /// Kind of work.
        work: String,
        /// Seconds that it took.
        seconds: f64,
    },
    /// This silo cannot contribute to a round.
    TrainingFailed {
        /// The round.
        round: u64,
        /// Reason: this stays at the institution.
        reason: String,
    },
    /// Another member contributes nothing to a round.
    Nothing {
        /// The member.
        member: String,
        /// The round.
        round: u64,
    },
    /// A round was over before this silo's model was there.
    Late {
        /// The round.
        round: u64,
        /// Seconds after which the model was there; null where it was not yet.
        ready: Option<f64>,
        /// Seconds after which the round was over.
        over: f64,
        /// The agreed patience in seconds.
        patience: f64,
        /// Rounds in a row of which that is so.
        in_a_row: usize,
        /// The patience in heartbeats that would be enough; null where that is not the reason.
        suggested_patience: Option<u32>,
    },
    /// A round was over without this silo's model, although its lead had signed that it has it.
    ReceiptUnkept(UnkeptReceipt),
    /// The learner claims more rows than it has.
    RowsClaimed {
        /// The round.
        round: u64,
        /// Rows that it claims.
        claimed: u64,
        /// Rows that it has.
        rows: u64,
    },
    /// One contribution has more than half of the weight of a round.
    HeavyEntry {
        /// The round.
        round: u64,
        /// Rows that it claims.
        rows: u64,
        /// Its share of all.
        share: f64,
        /// Its author, where this silo knows.
        member: Option<String>,
        /// The agreed largest share.
        max_weight: Option<f64>,
    },
    /// A secure-aggregation round waits: no group is complete.
    GroupsIncomplete {
        /// The round.
        round: u64,
        /// Members of groups that are not ready; empty where too few are ready, or too many sums were void.
        missing: Vec<String>,
    },
    /// This silo does not answer a sum of other institutions than before.
    OtherSum {
        /// The institutions of the sums that it has answered, with commas between them.
        before: String,
        /// Those of the sum that is asked for.
        now: String,
    },
    /// This machine computed another outcome of a secure-aggregation round than a quorum.
    OtherOutcome {
        /// The round.
        round: u64,
        /// Hash of what it computed.
        computed: String,
        /// Hash of what it adopts.
        certified: String,
    },
    /// Numbers of the local model were clipped before it was masked.
    Clipped {
        /// The round.
        round: u64,
        /// Number of clipped coordinates.
        coordinates: u64,
    },
    /// A sum of a secure-aggregation round tells nothing.
    VoidSum {
        /// The round.
        round: u64,
        /// Its institutions, with commas between them.
        authors: String,
        /// The reason.
        why: String,
    },
    /// More is known of who corrupts sums with noise.
    Searched {
        /// The last adopted round.
        round: u64,
        /// Members that took part in every void sum; one alone is left out. Empty where more than one corrupts them.
        suspects: Vec<String>,
    },
    /// A column is far from that of the other members.
    FarColumn {
        /// Its name.
        column: String,
        /// Its mean here.
        mean: f64,
        /// Its mean at the others.
        others: f64,
    },
    /// Models are trained alone, to be compared with the federation's.
    Comparing {
        /// The round; absent in a line that says it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u64>,
        /// The rows on which they are compared; absent in a line that says it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Value>,
        /// Rounds that each is trained for; absent in a line that says it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rounds: Option<u64>,
        /// Seconds so far.
        seconds: u64,
    },
    /// The model that the silo serves was chosen.
    Serves {
        /// The round.
        round: u64,
        /// Candidate that was chosen.
        candidate: Value,
        /// The rows on which they were compared.
        on: Value,
        /// The decision of the members together; null where each decides alone.
        decided: Option<Value>,
        /// Measurements of the candidates.
        measured: Value,
        /// Tuning of the silo's local model.
        local: Value,
        /// The metric of the chosen model on held-out rows.
        metric: Option<String>,
        /// Its value.
        value: Option<f64>,
        /// Held-out rows.
        rows: Option<u64>,
        /// Seconds that the choice took.
        seconds: f64,
    },
    // ---- The other members.
    /// A member can be reached.
    PeerUp {
        /// The member.
        member: String,
        /// The round trip in milliseconds.
        round_trip_ms: f64,
        /// The member that relays; absent where the connection is direct.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<String>,
    },
    /// A member cannot be reached any more.
    PeerDown {
        /// The member.
        member: String,
    },
    /// A member cannot be reached for some time.
    PeerUnreachable {
        /// The member.
        member: String,
        /// Result of the last attempt.
        why: String,
        /// For how long.
        seconds: u64,
        /// Attempts that failed.
        attempts: u64,
        /// Seconds until it is reported again.
        again_in_seconds: u64,
    },
    /// The silo takes no part.
    Waiting {
        /// Reason.
        why: String,
    },
    /// It takes part again.
    TakingPart {},
    /// A member has another agreement.
    OtherAgreement {
        /// The member.
        member: String,
        /// The id of its federation.
        federation: String,
        /// True if it only checks its addresses.
        checking: bool,
    },
    /// A member runs a program that speaks other message formats.
    OtherFormat {
        /// The member.
        member: String,
        /// Version of its program.
        version: String,
        /// The oldest and the newest format that it speaks.
        formats: [u8; 2],
        /// The format in force there.
        in_force: Option<u8>,
        /// The format in force here.
        here: u8,
    },
    /// A node whose key is not in the agreement was refused.
    Stranger {
        /// Address from which it came.
        address: String,
        /// Its key.
        key: Option<String>,
    },
    /// Many connections say nothing.
    Crowd {
        /// Address from which they come.
        from: String,
        /// Number turned away within a minute.
        turned_away: u64,
    },
    /// Two processes have a member's key.
    Twins {
        /// The member.
        member: String,
        /// Their addresses.
        addresses: [String; 2],
    },
    /// Another process has this node's key.
    OtherProcess {
        /// Its address.
        address: Option<String>,
    },
    /// The key signed things of which the journal has nothing.
    KeyUsedBefore {
        /// Consequence.
        why: String,
    },
    /// This node signs nothing more, because another process has its key.
    KeyElsewhere {
        /// Remedy.
        why: String,
    },
    // ---- Messages.
    /// A message was not accepted.
    Refused {
        /// Its sender.
        member: String,
        /// Its round; 0 where it is not known.
        round: u64,
        /// Reason.
        reason: String,
    },
    /// A member is ignored for a while.
    Muted {
        /// The member.
        member: String,
        /// For how long.
        seconds: f64,
    },
    /// Messages did not fit into the queue to the network.
    Lost {
        /// Number of messages.
        messages: u64,
    },
    /// A member broke the rules, and there is proof.
    Fault {
        /// The member.
        member: String,
        /// Rule that it broke, as text.
        charge: String,
        /// The file with the proof.
        evidence: Option<String>,
    },
    /// Lines or events were too many for their reader.
    LinesLost {
        /// Number of lines.
        lines: u64,
    },
    /// Blobs are missing, and are fetched again.
    Gone {
        /// Kind of blobs.
        what: String,
        /// Of which round.
        round: u64,
        /// In words.
        why: String,
    },
    /// All blobs of a round are there again.
    Whole {
        /// The round.
        round: u64,
    },
    /// The disk refused something.
    Store {
        /// Reason.
        reason: String,
    },
    /// The others have things that this silo signed and its journal lacks.
    JournalOutdated {
        /// Kind of message that was signed.
        kind: String,
        /// Its round.
        round: u64,
        /// Its view.
        view: u64,
        /// Consequence.
        why: String,
    },
    // ---- Changes of the agreement.
    /// An agreement came into force.
    Epoch {
        /// Changes of the agreement so far.
        epoch: u64,
        /// Hash of the block that brought it.
        block: String,
    },
    /// A change of the agreement is proposed, or more members approve it.
    Amendment {
        /// Its hash.
        amendment: String,
        /// Members that approve it.
        approved: Vec<String>,
        /// Approvals that it needs.
        needed: usize,
        /// New keys whose nodes have to connect first.
        awaits: Vec<String>,
        /// Reason for which this institution could not live under it.
        objection: Option<String>,
    },
    /// A file of a change is not used.
    FileNotUsed {
        /// The file.
        file: String,
        /// Reason.
        why: String,
    },
    /// The institution has signed the agreement in force, and contributes again.
    Signed {},
    /// Members sign a recovery without others that are lost.
    Recovery {
        /// The lost ones, with commas between them.
        lost: String,
        /// Members that have signed, with commas between them.
        signed: String,
        /// Number of members that have to sign.
        needed: usize,
        /// Members that have confirmed, with commas between them.
        confirmed: String,
        /// The round after which they go on.
        round: u64,
        /// A later view whose block had the votes of a quorum; null where there is none.
        notarised: Option<u64>,
    },
    /// A recovery waits for members that had signed another one.
    RecoveryHeld {
        /// Members without which it was confirmed, with commas between them.
        confirmed_without: String,
        /// Members whose word is awaited, with commas between them.
        awaits: String,
    },
    /// Other members went on without this one.
    LeftBehind {
        /// Those members, with commas between them.
        by: String,
        /// After which round.
        round: u64,
        /// The recovery's id.
        recovery: String,
    },
    /// A node that waits for admission hears of a recovery that it does not follow (`--follow-recovery`).
    RecoveryMet {
        /// The recovery's id.
        recovery: String,
    },
    /// An event of a newer program.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
