//! Status of all nodes of a federation, as one of them sees it: one document, and the ways in which people read it.
//!
//! An agreement with `status = "members"` in `[protocol]` has a node report to the members that ask what
//! [`MemberAnswer`] holds, and nothing of its data, models or losses. [`Nodes`] is what one node makes of the answers.
//! `rota status --federation` prints it ([`text`]), `rota watch --federation` follows it in a terminal ([`screen`]),
//! and the node's page has it at `/federation` ([`page`]).

pub mod page;
pub mod screen;
pub mod text;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Status;
use super::document::{FORMAT, FederationFacts, since, time};
use formatting::numbers::short;

/// Version of what nodes tell each other. A node reads other versions as far as it knows their keys.
const SAID: u32 = 1;
/// Characters of a text from another node.
const TEXT: usize = 120;

/// Asks all nodes how they are doing, or gives the answers of a moment ago.
pub type NodesSource = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Nodes> + Send>> + Send + Sync>;

/// Answer of a node to the members that ask. Members are positions in the agreement in force; times are RFC 3339 by the
/// node's own clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MemberAnswer {
    /// Version of this document.
    pub said: u32,
    /// Time at which it was made.
    pub time: String,
    /// Version of the program.
    pub version: String,
    /// Time at which it started.
    pub started: String,
    /// The round under way.
    pub round: u64,
    /// Its view.
    pub view: u64,
    /// The lead of the view; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<u16>,
    /// Current activity of the node, as text.
    pub phase: String,
    /// True if its silo takes part. Why it does not stays with its institution.
    pub takes_part: bool,
    /// True if all rounds are done.
    pub complete: bool,
    /// The last adopted round, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<(u64, String)>,
    /// Members that it is not connected to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconnected: Vec<u16>,
    /// Bytes that are free on the disk of its state folder; absent where the system does not say, and where rounds
    /// have noise: the institution's rows may take up the same disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
}

/// Status of all nodes of a federation, as one node sees it. Keys without a value are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct Nodes {
    /// Version of this document's format.
    pub format: u32,
    /// Time at which the node made this document (RFC 3339, in UTC).
    pub time: String,
    /// The silo whose node asked the others.
    pub silo: String,
    /// The federation.
    pub federation: FederationFacts,
    /// True if members see the status of each other's nodes: `status` in the agreement's `[protocol]`.
    pub shown: bool,
    /// All nodes, in the order of the agreement.
    pub nodes: Vec<NodeStatus>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct NodeStatus {
    /// The silo's name in the agreement.
    pub name: String,
    /// Its position in the agreement, from 0.
    pub member: u16,
    /// True if it is the node that asked.
    pub own: bool,
    /// Its status. Absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Doing>,
    /// Reason for which it does not report it, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Status of a node, by its own word. Times are by its own clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct Doing {
    /// Time at which it reported so.
    pub time: String,
    /// Version of its program.
    pub version: String,
    /// Time at which it started.
    pub started: String,
    /// The round under way.
    pub round: u64,
    /// Its view.
    pub view: u64,
    /// The lead of the view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// True if it leads.
    pub leads: bool,
    /// Current activity, as text.
    pub phase: String,
    /// True if its silo takes part.
    pub takes_part: bool,
    /// True if all rounds are done.
    pub complete: bool,
    /// The last adopted round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<LastAdopted>,
    /// Members that it is not connected to.
    pub unconnected: Vec<String>,
    /// Bytes that are free on the disk of its state folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
}

/// The last round that a node adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct LastAdopted {
    /// The round.
    pub round: u64,
    /// Time of the adoption.
    pub time: String,
}

impl MemberAnswer {
    /// Returns what a node with this status tells other members.
    pub fn of(status: &Status) -> Self {
        let position = |name: &String| status.peers.iter().find(|peer| peer.name == *name);
        let lead = if status.leads {
            Some(status.member)
        } else {
            status
                .lead
                .as_ref()
                .and_then(position)
                .map(|peer| peer.member)
        };
        let adopted = status.adopted();
        Self {
            said: SAID,
            time: status.time.clone(),
            version: status.node.version.clone(),
            started: status.node.started.clone(),
            round: status.round,
            view: status.view,
            lead,
            phase: status.phase.clone(),
            takes_part: status.waiting.is_none(),
            complete: status.complete,
            adopted: adopted.map(|round| (round.round, round.time.clone())),
            unconnected: status
                .peers
                .iter()
                .filter(|peer| !peer.connected)
                .map(|peer| peer.member)
                .collect(),
            free: status.node.free,
        }
    }

    /// The same where rounds have noise: nothing in it follows from rows.
    pub fn noised(status: &Status) -> Self {
        Self {
            free: None,
            ..Self::of(status)
        }
    }

    /// Returns what another node told.
    ///
    /// # Errors
    /// It is no such document.
    pub fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The bytes for another node.
    pub fn written(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Doing {
    /// Of what the node of `member` said, where `names` are the members by position. Texts are bounded, and a list
    /// names every member once, because another node may say anything.
    pub fn new(said: MemberAnswer, member: u16, names: &[String]) -> Self {
        let name = |position: u16| names.get(usize::from(position)).cloned();
        let text = |text: String| short(&text, TEXT);
        let unconnected: BTreeSet<u16> = said.unconnected.into_iter().collect();
        Self {
            time: text(said.time),
            version: text(said.version),
            started: text(said.started),
            round: said.round,
            view: said.view,
            leads: said.lead == Some(member) && !said.complete,
            lead: said.lead.and_then(name),
            phase: text(said.phase),
            takes_part: said.takes_part,
            complete: said.complete,
            adopted: said.adopted.map(|(round, time)| LastAdopted {
                round,
                time: text(time),
            }),
            unconnected: unconnected.into_iter().filter_map(name).collect(),
            free: said.free,
        }
    }
}

impl Nodes {
    /// Returns what a node with this status knows, and what the others said: for each position an answer, or why
    /// there is none. Without an answer or a reason, what is known of the connection.
    pub fn new(
        status: &Status,
        shown: bool,
        mut answers: impl FnMut(u16) -> Option<Result<MemberAnswer, String>>,
    ) -> Self {
        let mut names: Vec<_> = status.peers.iter().map(|peer| peer.name.clone()).collect();
        let own = usize::from(status.member).min(names.len());
        names.insert(own, status.silo.clone());
        let of_peer = |member: u16| status.peers.iter().find(|peer| peer.member == member);
        let mut node = |(position, name): (usize, &String)| {
            let member = position as u16;
            let own = member == status.member;
            let peer = of_peer(member);
            let answer = match peer {
                None => Some(Ok(MemberAnswer::of(status))),
                Some(peer) if !peer.connected => Some(Err(match &peer.problem {
                    Some(problem) => format!("not connected: {name} {problem}"),
                    None => "not connected yet".to_owned(),
                })),
                Some(_) => answers(member),
            };
            let (status, why) = match answer {
                Some(Ok(said)) => (Some(Doing::new(said, member, &names)), None),
                Some(Err(why)) => (None, Some(why)),
                None => (None, Some("connected".to_owned())),
            };
            NodeStatus {
                name: name.clone(),
                member,
                own,
                status,
                why,
            }
        };
        Self {
            format: FORMAT,
            time: time(std::time::SystemTime::now()),
            silo: status.silo.clone(),
            federation: status.federation.clone(),
            shown,
            nodes: names.iter().enumerate().map(&mut node).collect(),
        }
    }

    /// The positions of the members that can be asked: those that are connected.
    pub fn asked(status: &Status) -> Vec<u16> {
        let peers = status.peers.iter().filter(|peer| peer.connected);
        peers.map(|peer| peer.member).collect()
    }

    /// Returns what to say where members do not see each other's status.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        (!self.shown).then_some(
            "Under this agreement every institution sees only its own node. With `status = \"members\"` in \
             [protocol], members see all nodes; that is a change which the members have to approve.",
        )
    }
}

impl NodeStatus {
    /// Returns what is the matter, in words, if anything is.
    pub(crate) fn trouble(&self) -> Option<String> {
        let Some(doing) = &self.status else {
            return self.why.clone();
        };
        let mut said = Vec::new();
        if !doing.takes_part {
            said.push("takes no part".to_owned());
        }
        if !doing.unconnected.is_empty() {
            said.push(format!("not connected to {}", doing.unconnected.join(", ")));
        }
        (!said.is_empty()).then(|| said.join("; "))
    }
}

impl Doing {
    /// Returns what the node does, with whom it waits for: `waiting for the lead, west`.
    pub(crate) fn doing(&self) -> String {
        match &self.lead {
            Some(lead) if !self.complete && !self.leads && self.phase.ends_with("the lead") => {
                format!("{}, {lead}", self.phase)
            }
            _ => self.phase.clone(),
        }
    }

    /// The last adopted round and how long ago: `2, 30s ago`.
    pub(crate) fn adopted(&self) -> String {
        let Some(adopted) = &self.adopted else {
            return "none".to_owned();
        };
        let ago = since(&self.time, &adopted.time).map(about);
        match ago {
            Some(ago) => format!("{}, {ago} ago", adopted.round),
            None => adopted.round.to_string(),
        }
    }
}

/// A span of time in its largest unit: `2h`.
fn about(span: std::time::Duration) -> String {
    let whole = super::text::span(span);
    whole.split(' ').next().unwrap_or_default().to_owned()
}

/// The JSON Schema of the document.
pub fn schema() -> serde_json::Value {
    agreement::schema_of::<Nodes>("the status of all nodes of a federation")
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;
    use crate::status::fixture;

    /// Returns what the node of `north` knows: `south` answers, `west` is older, `east` cannot be reached.
    pub(crate) fn nodes() -> Nodes {
        let status = fixture::status();
        let mut nodes = Nodes::new(&status, true, |member| {
            Some(match member {
                1 => Ok(MemberAnswer {
                    lead: Some(3),
                    phase: "waiting for the lead".into(),
                    version: "0.1.1".into(),
                    unconnected: vec![2, 3],
                    free: Some(80_000_000),
                    takes_part: false,
                    ..MemberAnswer::of(&status)
                }),
                _ => Err("its program is older".into()),
            })
        });
        nodes.time = status.time;
        nodes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::status::fixture;

    #[test]
    fn a_node_reports_its_state_and_no_data_models_or_reasons() {
        let mut status = fixture::status();
        status.waiting = Some("the table /srv/patients.csv has other columns".into());
        let told = String::from_utf8(MemberAnswer::of(&status).written()).unwrap();
        for kept in [
            "patients",
            "loss",
            "mae",
            "0.59",
            "held",
            "abab",
            "192.0.2.3",
            "4711",
        ] {
            assert!(!told.contains(kept), "{kept}: {told}");
        }
        let read = MemberAnswer::read(told.as_bytes()).unwrap();
        assert_eq!(read, MemberAnswer::of(&status));
        assert!(!read.takes_part);
        // With noise, what the disk has left tells of the institution's files.
        let (mut more, mut fewer) = (status.clone(), status);
        (more.node.free, fewer.node.free) = (Some(1 << 30), Some((1 << 30) - 17));
        let noised = |status| MemberAnswer::noised(status).written();
        assert_eq!(noised(&more), noised(&fewer));
        assert_eq!((read.lead, &read.unconnected[..]), (Some(3), &[2][..]));
        // Fields that only a newer node reports are passed over.
        let newer = told.replacen('{', "{\"temperature\": 3, ", 1);
        assert_eq!(MemberAnswer::read(newer.as_bytes()).unwrap(), read);
    }

    #[test]
    fn what_another_node_states_is_bounded_and_names_only_members() {
        let status = fixture::status();
        let hostile = MemberAnswer {
            phase: "x".repeat(5000),
            version: "\u{1b}[31m".repeat(200),
            lead: Some(999),
            unconnected: (0..u16::MAX).collect(),
            adopted: Some((u64::MAX, "never".into())),
            ..MemberAnswer::of(&status)
        };
        let names = ["a", "b"].map(str::to_owned);
        let doing = Doing::new(hostile, 1, &names);
        assert!(doing.phase.chars().count() <= TEXT + 1, "{}", doing.phase);
        assert!(doing.version.chars().count() <= TEXT + 1);
        assert_eq!((doing.lead.as_deref(), doing.leads), (None, false));
        assert_eq!(doing.unconnected, names);
        for unconnected in [
            vec![0; 30_000],
            [vec![1; 900], vec![0; 900]].concat(),
            vec![9; 999],
        ] {
            let once: BTreeSet<_> = unconnected.iter().filter(|at| **at < 2).collect();
            let repeating = MemberAnswer {
                unconnected: unconnected.clone(),
                ..MemberAnswer::of(&status)
            };
            assert_eq!(
                Doing::new(repeating, 1, &names).unconnected.len(),
                once.len()
            );
        }
        assert_eq!(doing.adopted(), u64::MAX.to_string());
    }

    #[test]
    fn every_member_has_a_line_whether_it_answers_or_not() {
        let nodes = fixture::status();
        let nodes = Nodes::new(&nodes, false, |_| None);
        let all: Vec<_> = nodes.nodes.iter().map(|node| &*node.name).collect();
        assert_eq!(all, ["north", "south", "east", "west <coast>"]);
        let why: Vec<_> = nodes.nodes.iter().map(|node| node.why.as_deref()).collect();
        assert_eq!(why[0], None);
        assert_eq!(why[1], Some("connected"));
        assert_eq!(
            why[2],
            Some("not connected: east at 192.0.2.3:4001 does not answer over UDP")
        );
        assert!(nodes.nodes[0].own && nodes.nodes[0].status.is_some());
        assert!(nodes.hint().is_some());
    }
}
