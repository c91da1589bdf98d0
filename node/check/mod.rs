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

use std::io;
use std::time::Duration;

pub use peers::{Outcome, Peer, Tried};
use serde::Serialize;

use crate::federation::{OwnSize, disclosure};
use crate::identity::{self, IdentityError};
use crate::institution::Configured;

/// Options of a check.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether other members are tried.
    pub network: bool,
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
    /// A node would not work, or not safely.
    Bad,
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a word.
    pub topic: &'static str,
    /// How it was found.
    pub level: Level,
    /// What was found, in a sentence without a full stop.
    pub text: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    fn good(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            topic,
            level: Level::Good,
            text: text.into(),
            remedy: None,
        }
    }

    fn note(topic: &'static str, text: impl Into<String>) -> Self {
        Self {
            level: Level::Note,
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
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// Whether nothing is [`Level::Bad`].
    pub good: bool,
    /// Name of the institution; `None` if its key belongs to no member.
    pub silo: Option<String>,
    /// Name of the federation.
    pub federation: String,
    /// Its id.
    pub id: String,
    /// Whether the institution's own node runs.
    pub running: bool,
    /// What was looked at.
    pub findings: Vec<Finding>,
    /// The members at their addresses.
    pub peers: Vec<Peer>,
    /// What the firewall has to let through, in one line.
    pub firewall: String,
    /// What leaves the institution, who sees it, and what they could learn from it.
    pub owner: Vec<String>,
}

/// Looks at everything.
///
/// # Errors
/// The system gives no threads for the network.
pub fn check(configured: &Configured, options: &Options) -> io::Result<Checked> {
    let agreement = &configured.agreement;
    let epoch = &agreement.epoch;
    let running = matches!(
        identity::hold(&configured.identity),
        Err(IdentityError::InUse(_))
    );
    let mut findings = files::agreement(configured);
    let (key, found) = files::key(configured, running);
    findings.extend(found);
    let me = key
        .as_ref()
        .and_then(|key| epoch.roster.position(&key.public()));
    findings.extend(files::consent(configured, key.as_ref()));
    findings.extend(files::permissions(configured));
    let name = me.map(|me| epoch.roster.name(me).to_owned());
    let (own, found) = data::rows(configured, me);
    findings.extend(found);
    findings.push(machine::device(configured));
    findings.extend(machine::disk(configured));
    findings.extend(line::line(configured));
    findings.extend(machine::ports(configured, running));
    let (peers, found) = match (&key, me) {
        (Some(key), Some(me)) if options.network => {
            peers::peers(configured, me, key, running, options.patience)?
        }
        (_, None) => (
            Vec::new(),
            vec![Finding::note(
                "peers",
                "no member was tried: they would refuse a key that is not in the agreement",
            )],
        ),
        _ => (
            Vec::new(),
            vec![Finding::note("peers", "no member was tried, as was asked")],
        ),
    };
    findings.extend(machine::clock(&peers));
    findings.extend(found);
    Ok(Checked {
        good: findings.iter().all(|finding| finding.level != Level::Bad),
        silo: name,
        federation: epoch.charter.name.clone(),
        id: format!("{:#}", epoch.federation),
        running,
        firewall: machine::firewall(configured, me),
        findings,
        peers,
        owner: disclosure(
            agreement,
            own.map(|training_rows| OwnSize { training_rows }),
        ),
    })
}

impl Checked {
    /// It for people, one line each.
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
                Level::Bad => "BAD",
            };
            lines.push(format!("{mark:5} {:12} {}", finding.topic, finding.text));
            lines.extend(
                finding
                    .remedy
                    .iter()
                    .map(|remedy| format!("{:18} → {remedy}", "")),
            );
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
        lines.push(match bad {
            0 => "All is well: this node can take part.".into(),
            1 => "One thing is bad: see above.".into(),
            bad => format!("{bad} things are bad: see above."),
        });
        lines
    }
}
