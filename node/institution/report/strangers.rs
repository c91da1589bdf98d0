//! Lines about nodes that knocked and are not of this federation.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use mesh::{Notice, Program};
use protocol::{Epoch, Hash, MemberIndex};
use tokio::sync::mpsc;

use super::format_texts::other_format;
use super::output::OutputLines;
use crate::events::NodeEvent;

/// Prints the notices of the network until it ends. The network limits their rate.
pub(in crate::institution) async fn print(
    mut notices: mpsc::Receiver<Notice>,
    epoch: Arc<Epoch>,
    output: OutputLines,
) {
    let began = Instant::now();
    while let Some(notice) = notices.recv().await {
        let Some((event, line)) = warning(notice, &epoch) else {
            continue;
        };
        let at = began.elapsed().as_secs_f64();
        output.print(SystemTime::now(), at, event, &format!("warning: {line}"));
    }
}

/// The event of a notice, and the line about it; `None` where a program of another format can go on.
fn warning(notice: Notice, epoch: &Epoch) -> Option<(NodeEvent, String)> {
    match notice {
        Notice::OtherAgreement {
            member,
            federation,
            probing,
        } => Some(other_agreement(epoch, member, federation, probing)),
        Notice::OtherFormat { member, program } => {
            let name = epoch.roster.name(member);
            let ours = Program::this(Some(epoch.format));
            let line = other_format(name, &program, &ours)?;
            let event = NodeEvent::OtherFormat {
                member: name.into(),
                version: program.version,
                formats: [program.formats.oldest, program.formats.newest],
                in_force: program.in_force,
                here: epoch.format,
            };
            Some((event, line))
        }
        Notice::Stranger { key, address } => {
            let key = key.map(|key| key.to_string());
            let line = format!(
                "refused a node whose key is not in the agreement: it came from {address} with the key {}. If it \
                 belongs to a member, that member uses another key or another agreement",
                key.as_deref().unwrap_or("of another kind")
            );
            Some((NodeEvent::Stranger { address, key }, line))
        }
        Notice::Crowd { from, turned_away } => {
            let line = format!(
                "many connections from {from} send nothing: {turned_away} were refused within a minute, so that \
                 others get through. Ask whoever is responsible for {from} to stop them, or block them with a \
                 firewall"
            );
            Some((NodeEvent::Crowd { from, turned_away }, line))
        }
        Notice::Twins { member, addresses } => Some(twins(epoch, member, addresses)),
        Notice::KeyElsewhere { address } => {
            let line = match &address {
                Some(address) => {
                    format!("another process with this node's key is at {address}")
                }
                None => {
                    "other members are connected to another process with this node's key".into()
                }
            };
            Some((NodeEvent::OtherProcess { address }, line))
        }
    }
}

/// A member whose agreement has another id, which runs `rota check` where it is `probing`.
fn other_agreement(
    epoch: &Epoch,
    member: MemberIndex,
    federation: Hash,
    probing: bool,
) -> (NodeEvent, String) {
    let name = epoch.roster.name(member);
    let line = format!(
        "{name} has another agreement: its federation is {federation}, this one is {}. \
         Compare federation.toml with it; until both have the same, it takes no part{}",
        epoch.federation,
        if probing {
            " (it ran `rota check`)"
        } else {
            ""
        }
    );
    let event = NodeEvent::OtherAgreement {
        member: name.into(),
        federation: format!("{federation:#}"),
        checking: probing,
    };
    (event, line)
}

/// A member whose key two processes use, at these addresses.
fn twins(epoch: &Epoch, member: MemberIndex, [one, other]: [String; 2]) -> (NodeEvent, String) {
    let name = epoch.roster.name(member);
    let line = format!(
        "two processes use the key of {name} at the same time, at {one} and at {other}: \
         tell {name}. If it has started only one of them, its key was copied and has to be \
         replaced (`rota federation rekey`)"
    );
    let event = NodeEvent::Twins {
        member: name.into(),
        addresses: [one, other],
    };
    (event, line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fixture;

    #[test]
    fn a_crowd_is_named_with_the_net_that_it_comes_from_and_its_size() {
        let epoch = fixture::epoch(fixture::silos(4, 0), fixture::protocol());
        let (from, turned_away) = ("203.0.113.0/24".to_owned(), 132);
        let notice = Notice::Crowd { from, turned_away };
        let (event, line) = warning(notice, &epoch).unwrap();
        assert!(
            line.contains("203.0.113.0/24") && line.contains("132 were"),
            "{line}"
        );
        let expected = NodeEvent::Crowd {
            from: "203.0.113.0/24".into(),
            turned_away: 132,
        };
        assert_eq!(event, expected);
    }
}
