//! What a node tells its operator: lines for people, or one JSON document per line.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use protocol::certificate::Verdict;
use protocol::{Epoch, Hash, MemberIndex, Report, Time};
use serde_json::{Value, json};
use silo::Notice;

use crate::report::numbers;

/// Lines that may wait for a slow reader; more are dropped and counted.
const WAITING: usize = 4096;
/// Complaints that are remembered, so that each is spoken of once.
const COMPLAINTS: usize = 256;

/// Writes lines to standard output from a thread of its own, so that a reader who is slow, or
/// gone, never holds up the node.
#[derive(Clone)]
pub struct Teller {
    json: bool,
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
}

impl Teller {
    /// JSON or lines for people. The thread ends after the last clone of the teller.
    pub fn start(json: bool) -> (Self, JoinHandle<()>) {
        let (lines, waiting) = sync_channel(WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let teller = Self {
            json,
            lines,
            dropped: dropped.clone(),
        };
        let writer = thread::spawn(move || write(&waiting, &dropped, json));
        (teller, writer)
    }

    /// Tells it in the form that was asked for; an empty line for people is none.
    pub(super) fn tell(&self, document: Value, line: String) {
        self.put(if self.json {
            numbers::escaped(&document.to_string())
        } else {
            numbers::plain(&line)
        });
    }

    /// Tells people alone.
    fn line(&self, line: String) {
        if !self.json {
            self.put(numbers::plain(&line));
        }
    }

    fn put(&self, line: String) {
        if !line.is_empty() && self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(lines: &Receiver<String>, dropped: &AtomicU64, json: bool) {
    for line in lines {
        let mut out = io::stdout().lock();
        let mut written = writeln!(out, "{line}");
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 && json {
            let document = json!({ "event": "lines-lost", "lines": lost });
            written = written.and_then(|()| writeln!(out, "{document}"));
        }
        if written.and_then(|()| out.flush()).is_err() {
            // Nobody reads any more; the node goes on.
            return;
        }
    }
}

/// Turns a silo's notices into lines.
pub(super) struct News {
    teller: Teller,
    epoch: Arc<Epoch>,
    /// The round under way.
    round: u64,
    /// Training loss of a round.
    loss: Option<(u64, f64)>,
    /// Rounds that are final and not adopted yet.
    finals: Vec<Finality>,
    complaints: BTreeSet<(MemberIndex, String)>,
}

/// A round that became final.
struct Finality {
    round: u64,
    view: u64,
    lead: MemberIndex,
    block: Hash,
    authors: usize,
}

impl News {
    pub(super) fn new(teller: Teller, epoch: Arc<Epoch>) -> Self {
        Self {
            teller,
            epoch,
            round: 0,
            loss: None,
            finals: Vec::new(),
            complaints: BTreeSet::new(),
        }
    }

    /// Tells what a notice says, if it is for the operator.
    pub(super) fn hear(&mut self, at: Time, notice: &Notice) {
        match notice {
            Notice::Protocol(report) => self.report(at, report),
            // A round that only agrees on a scale has no loss.
            Notice::Trained { round, loss, .. } if loss.is_finite() => {
                self.loss = Some((*round, *loss));
            }
            Notice::Trained { .. } => {}
            Notice::Adopted {
                round,
                outcome,
                state,
                coalition,
                ..
            } => self.adopted(at, *round, *outcome, (*coalition, state.models.len())),
            Notice::Unopened { from, reason, .. } | Notice::Dropped { from, reason, .. } => {
                self.complain(at, *from, 0, reason);
            }
            Notice::Muted { member, span } => {
                let (member, seconds) = (self.name(*member), span.as_secs_f64());
                let line = format!(
                    "warning: {member} goes on against the rules: nothing is heard from it for {seconds} s"
                );
                let document = json!({ "member": member, "seconds": seconds });
                self.say(at, "muted", document, line);
            }
            Notice::Lost { messages } => {
                self.say(at, "lost", json!({ "messages": messages }), String::new());
            }
            // Said for as long as it lasts.
            Notice::Listening => {}
            Notice::Missing(gone) => {
                let (what, round) = (gone.what(), gone.round());
                let document = json!({ "what": what, "round": round, "why": gone.to_string() });
                self.say(at, "gone", document, format!("warning: {gone}"));
            }
            Notice::Recovered { round } => {
                let line = format!("all blobs of round {round} are here again");
                self.say(at, "whole", json!({ "round": round }), line);
            }
            Notice::Store { reason } => {
                self.say(at, "store", json!({ "reason": reason }), String::new());
            }
            Notice::Stopped(reason) => {
                let document = json!({ "reason": reason.to_string() });
                self.say(at, "stopped", document, format!("{reason}"));
            }
        }
    }

    fn report(&mut self, at: Time, report: &Report) {
        match report {
            Report::Entered { view, lead, round } => {
                self.round = *round;
                let document = json!({ "view": view, "lead": self.name(*lead), "round": round });
                self.say(at, "view", document, String::new());
            }
            Report::Nullifying { view, reason } => {
                // For people the log has it.
                let document = json!({ "view": view, "reason": reason.to_string() });
                self.say(at, "nullifying", document, String::new());
            }
            Report::Certified(certificate) if certificate.verdict == Verdict::Nullified => {
                let view = certificate.view;
                let lead = |view| self.name(self.epoch.lead(view));
                let line = format!(
                    "round {:>4}   view {view:>4}   {} did not bring it to an end; {} goes on",
                    self.round,
                    lead(view),
                    lead(view + 1),
                );
                self.say(at, "nullified", json!({ "view": view }), line);
            }
            Report::Refused {
                member,
                round,
                reason,
            } => self.complain(at, *member, *round, &reason.to_string()),
            Report::Final {
                round,
                view,
                lead,
                block,
                authors,
            } => {
                let document = json!({
                    "round": round, "view": view, "lead": self.name(*lead),
                    "block": format!("{block:#}"), "authors": authors.len(),
                });
                self.say(at, "final", document, String::new());
                self.finals.push(Finality {
                    round: *round,
                    view: *view,
                    lead: *lead,
                    block: *block,
                    authors: authors.len(),
                });
            }
            Report::Complete => {
                let rounds = self.epoch.charter.rounds;
                let line = format!("all {rounds} rounds are done");
                self.say(at, "finished", json!({ "rounds": rounds }), line);
            }
            Report::MemberComplete { member } => {
                let document = json!({ "member": self.name(*member) });
                self.say(at, "member-finished", document, String::new());
            }
            Report::KeyUsedBefore => {
                let line = "this institution's key has signed things in this federation that \
                            its journal does not hold: its state was lost or is an old copy, or \
                            another process uses the key";
                let document = json!({ "why": line });
                self.say(at, "key-used-before", document, format!("warning: {line}"));
            }
            Report::KeyUsedElsewhere => {
                let line = "another process uses this institution's key: stop one of the two; \
                            together they contradict themselves, and the others take that for a lie";
                let document = json!({ "why": line });
                self.say(
                    at,
                    "key-used-elsewhere",
                    document,
                    format!("warning: {line}"),
                );
            }
            Report::Fault(evidence) => {
                let (member, charge) = (self.name(evidence.member), evidence.charge());
                let line = format!("{member} broke the rules: {charge}");
                let document = json!({ "member": member, "charge": charge });
                self.say(at, "fault", document, line);
            }
            _ => {}
        }
    }

    fn adopted(&mut self, at: Time, round: u64, outcome: Hash, (own, of): (u32, usize)) {
        let loss = self.loss.filter(|(trained, _)| *trained == round);
        let loss = loss.map(|(_, loss)| loss);
        let finals = std::mem::take(&mut self.finals);
        let block = finals.iter().find(|last| last.round == round);
        let document = json!({
            "round": round, "outcome": format!("{outcome:#}"), "coalition": own,
            "coalitions": of, "loss": loss,
            "block": block.map(|last| format!("{:#}", last.block)),
        });
        for last in &finals {
            if last.round != round {
                self.teller
                    .line(format!("{}   passed over while away", self.head(last)));
            }
        }
        let head = block.map_or_else(|| format!("round {round:>4}"), |last| self.head(last));
        let loss = loss.map_or(String::new(), |loss| format!("   loss {loss:.4}"));
        let line = format!("{head}   coalition {} of {of}{loss}", own + 1);
        self.say(at, "adopted", document, line);
    }

    fn head(&self, last: &Finality) -> String {
        let Finality {
            round,
            view,
            lead,
            authors,
            ..
        } = last;
        let lead = self.name(*lead);
        format!("round {round:>4}   view {view:>4}   lead {lead}   {authors} models")
    }

    /// A message that was not accepted. Whoever can reach this node can cause it: each is spoken
    /// of once.
    fn complain(&mut self, at: Time, member: MemberIndex, round: u64, reason: &str) {
        let complaint = (member, reason.to_owned());
        if self.complaints.len() >= COMPLAINTS || !self.complaints.insert(complaint) {
            return;
        }
        let name = self.name(member);
        let document = json!({ "member": name, "round": round, "reason": reason });
        let line = format!("warning: something that {name} sent was not accepted: {reason}");
        self.say(at, "refused", document, line);
    }

    fn name(&self, member: MemberIndex) -> &str {
        self.epoch.roster.name(member)
    }

    fn say(&self, at: Time, event: &str, mut document: Value, line: String) {
        document["event"] = event.into();
        document["at"] = at.elapsed().as_secs_f64().into();
        self.teller.tell(document, line);
    }
}
