//! Looks at everything that an institution's node needs, before it runs or while it does: agreement,
//! key, permissions, rows, disk, clock, ports, and every other member at its addresses.
//!
//! [`check`] changes nothing but that it tries connections. While the institution's own node runs, it
//! uses another key for that, which the others know from the node itself, so that they do not take the
//! check for the node.

mod data;
mod files;
mod line;
mod machine;
mod peers;
mod policy;
mod rehearsal;
mod training;

use std::io;
use std::time::Duration;

use formatting::numbers::plural;
pub use peers::{AddressOutcome, CheckedPeer, TriedAddress};
use serde::Serialize;
use task::questions::RowQuestion;

use crate::federation::{OwnSide, disclosure};
use crate::identity::{self, IdentityError};
use crate::institution::{Configured, Institution, Membership, PresentError, standing};
use crate::spending::Spending;

/// Options of a check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// True if other members are tried.
    pub network: bool,
    /// True if each of them is asked to mask a known vector.
    pub rehearse: bool,
    /// How long one address is tried.
    pub patience: Duration,
}

/// How something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Another member's node does not answer yet: it may not be up, or something is in between.
    Waiting,
    /// A node would not work, or not safely.
    Bad,
}

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// The node can take part, and all others that were tried answer.
    Ready,
    /// The node can take part; other members' nodes do not answer yet.
    Waiting,
    /// The node cannot take part as it is.
    NotReady,
}

impl CheckVerdict {
    /// Returns what these findings come to.
    fn of(findings: &[Finding]) -> Self {
        let worst = findings.iter().map(|finding| finding.level).max();
        match worst {
            Some(Level::Bad) => Self::NotReady,
            Some(Level::Waiting) => Self::Waiting,
            _ => Self::Ready,
        }
    }
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a word.
    pub topic: &'static str,
    /// How serious the finding is.
    pub level: Level,
    /// What was found, in a sentence without a full stop.
    pub text: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Lines to paste into a file, as the text or the remedy says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paste: Vec<String>,
}

impl Finding {
    fn good(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            topic,
            level: Level::Good,
            text: text.into(),
            remedy: None,
            paste: Vec::new(),
        }
    }

    fn note(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            level: Level::Note,
            ..Self::good(topic, text)
        }
    }

    fn waiting(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            level: Level::Waiting,
            ..Self::good(topic, text)
        }
    }

    fn bad(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            level: Level::Bad,
            ..Self::good(topic, text)
        }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    fn paste(self, paste: Vec<String>) -> Self {
        Self { paste, ..self }
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct CheckResult {
    /// True if nothing is [`Level::Bad`].
    pub good: bool,
    /// What the check comes to.
    pub verdict: CheckVerdict,
    /// Name of the institution; `None` if its key belongs to no member.
    pub silo: Option<String>,
    /// Name of the federation.
    pub federation: String,
    /// Id of the federation.
    pub id: String,
    /// True if the institution's own node runs.
    pub running: bool,
    /// What was looked at.
    pub findings: Vec<Finding>,
    /// The members at their addresses.
    pub peers: Vec<CheckedPeer>,
    /// What the firewall has to let through, in one line.
    pub firewall: String,
    /// What leaves the institution, who sees it, and what they could learn from it.
    pub owner: Vec<String>,
    /// What only a person can say of the rows, and has not said.
    #[serde(skip)]
    pub questions: Vec<RowQuestion>,
}

/// Where an institution stands as far as its journal knows, or why that is not known.
type PlaceOrError = Result<(Institution, Membership), PresentError>;

/// The configuration with the agreement in force in place of the first one, as far as the journal knows,
/// and what is said of it. `federation.toml` stays the first agreement. `standing` is `None` where the key
/// cannot be read, which is said elsewhere.
fn in_force(first: &Configured, standing: Option<&PlaceOrError>) -> (Configured, Option<Finding>) {
    let unchanged = || first.clone();
    let Some(standing) = standing else {
        return (unchanged(), None);
    };
    match standing {
        Ok((_, Membership::Member(present))) if present.institution.agreement.epoch.number > 0 => {
            let institution = &present.institution;
            let epoch = &institution.agreement.epoch;
            let finding = match &institution.agreement.unfit {
                Some(unfit) => Finding::bad(
                    "agreement",
                    format!(
                        "nobody can take part under the agreement in force, that of change {}: {}",
                        epoch.number, unfit.why
                    ),
                )
                .remedy("propose a correction with `rota federation change`"),
                None => Finding::good(
                    "agreement",
                    format!(
                        "the agreement in force is that of change {}, with {} and {}",
                        epoch.number,
                        plural(epoch.roster.len(), "member"),
                        plural(epoch.protocol.rounds as usize, "round")
                    ),
                ),
            };
            let now = Configured {
                agreement: institution.agreement.clone(),
                roster: institution.roster.clone(),
                ..unchanged()
            };
            (now, Some(finding))
        }
        Ok((_, Membership::Member(_) | Membership::Outside)) => (unchanged(), None),
        Ok((_, Membership::Left)) => (
            unchanged(),
            Some(
                Finding::bad(
                    "agreement",
                    "this institution is no member any more, by a change of the agreement",
                )
                .remedy("ask a member to admit it again, if that was a mistake"),
            ),
        ),
        Err(why) => (
            unchanged(),
            Some(Finding::note(
                "agreement",
                format!("the agreement in force is unknown: {why}"),
            )),
        ),
    }
}

/// Returns what the institution told and will tell, as far as its journal and its ledger know; `None` where it is no
/// member, or where that is unknown.
fn spending(standing: Option<&PlaceOrError>) -> Option<Spending> {
    match standing?.as_ref().ok()? {
        (_, Membership::Member(present)) => Some(present.spending()),
        (_, Membership::Left | Membership::Outside) => None,
    }
}

/// Looks at everything. Wherever the agreement matters, that is the one in force.
///
/// # Errors
/// The system gives no threads for the network.
pub fn check(first: &Configured, options: &CheckOptions) -> io::Result<CheckResult> {
    let readable = identity::read(&first.identity).is_ok();
    let standing = readable.then(|| standing(first.clone()));
    let (configured, said) = in_force(first, standing.as_ref());
    let configured = &configured;
    let agreement = &configured.agreement;
    let epoch = &agreement.epoch;
    let running = matches!(
        identity::hold(&configured.identity),
        Err(IdentityError::InUse(_))
    );
    let mut findings = files::agreement(first, configured);
    findings.extend(said);
    let (key, found) = files::key(configured, running);
    findings.extend(found);
    let me = key
        .as_ref()
        .and_then(|key| epoch.roster.position(&key.public()));
    findings.extend(files::consent(first, key.as_ref(), standing.as_ref()));
    findings.extend(files::permissions(configured));
    let name = me.map(|me| epoch.roster.name(me).to_owned());
    let rows = data::rows(configured, me);
    let own = rows.train;
    findings.extend(rows.findings);
    findings.extend(policy::policy(configured, me, own));
    findings.push(machine::device(configured));
    // The node's own training would be in the way, and it says itself when it is late.
    if let (false, Some(Ok((_, Membership::Member(present))))) = (running, &standing) {
        findings.extend(training::training(&present.institution));
    }
    findings.extend(machine::disk(configured));
    findings.extend(line::line(configured));
    findings.extend(machine::ports(configured, running));
    let challenge = match options.rehearse {
        true => rehearsal::challenge(epoch).map_err(io::Error::other)?,
        false => None,
    };
    let (peers, found) = match (&key, me) {
        (Some(key), Some(me)) if options.network => {
            let prober = peers::prober(configured, key, running, challenge);
            peers::peers(configured, me, &prober, running, options.patience)?
        }
        (_, None) => (
            Vec::new(),
            vec![Finding::note(
                "peers",
                "no member was contacted: they would refuse a key that is not in the agreement",
            )],
        ),
        _ => (
            Vec::new(),
            vec![Finding::note(
                "peers",
                "no member was contacted (--offline)",
            )],
        ),
    };
    findings.extend(machine::clock(&peers));
    findings.extend(found);
    if options.rehearse {
        findings.extend(rehearsal::rehearsal(challenge, &epoch.roster, &peers));
    }
    let verdict = CheckVerdict::of(&findings);
    Ok(CheckResult {
        good: verdict != CheckVerdict::NotReady,
        verdict,
        silo: name,
        federation: epoch.protocol.name.clone(),
        id: format!("{:#}", epoch.federation),
        running,
        firewall: machine::firewall(configured, me),
        findings,
        peers,
        questions: rows.questions,
        owner: disclosure(
            agreement,
            &OwnSide {
                training_rows: own,
                spending: spending(standing.as_ref()),
                room: configured.site.room(agreement),
            },
        ),
    })
}

impl CheckResult {
    /// The result for people, one line each.
    pub fn lines(&self) -> Vec<String> {
        let name = self.silo.as_deref().unwrap_or("an institution");
        let mut lines = vec![
            format!("{name} in the federation {}", self.federation),
            format!("id {}", self.id),
            String::new(),
        ];
        for finding in &self.findings {
            let mark = match finding.level {
                Level::Good => "good",
                Level::Note => "note",
                Level::Waiting => "wait",
                Level::Bad => "BAD",
            };
            lines.push(format!("{mark:5} {:12} {}", finding.topic, finding.text));
            lines.extend(
                finding
                    .remedy
                    .iter()
                    .map(|remedy| format!("{:18} → {remedy}", "")),
            );
            lines.extend(finding.paste.iter().cloned());
        }
        lines.push(String::new());
        lines.push(self.firewall.clone());
        lines.push(String::new());
        lines.extend(self.owner.iter().cloned());
        lines.push(String::new());
        let bad = self
            .findings
            .iter()
            .filter(|finding| finding.level == Level::Bad)
            .count();
        let waiting = |peer: &&CheckedPeer| {
            let met = |tried: &TriedAddress| matches!(tried.outcome, AddressOutcome::Met(_));
            !peer.addresses.is_empty() && !peer.addresses.iter().any(met)
        };
        let waiting = self.peers.iter().filter(waiting).count();
        lines.push(match bad {
            0 if self.verdict == CheckVerdict::Waiting => match (waiting, self.peers.len()) {
                (1, 1) => "This node is ready. The node of the other member does not answer yet.".into(),
                (1, all) => format!(
                    "This node is ready. The node of 1 of {all} other members does not answer yet."
                ),
                (some, all) => format!(
                    "This node is ready. The nodes of {some} of {all} other members do not answer yet."
                ),
            },
            0 => "All is well: this node can take part.".into(),
            bad => format!("{} found: see above.", plural(bad, "problem")),
        });
        lines
    }
}
