//! Tries every other member at all of its addresses.

use std::io;
use std::time::Duration;

use mesh::{Contact, Met, ProbeError, Prober, Program, probe_key};
use protocol::{Hash, MemberIndex, Roster, SecretKey};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime;
use tokio::task::JoinSet;

use super::Finding;
use crate::institution::{Configured, other_format};
use formatting::numbers;

/// Members that are tried at the same time.
const AT_ONCE: usize = 32;

/// A member, and what was found at its addresses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedPeer {
    /// Name of the member.
    pub member: String,
    /// Addresses of the member, in the order of the configuration.
    pub addresses: Vec<TriedAddress>,
}

/// An address that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedAddress {
    /// The address; of a member without one, that of the member through which it was tried.
    pub address: String,
    /// The name of the member through which it was tried, if it has no address.
    pub through: Option<String>,
    /// Outcome of the attempt.
    pub outcome: AddressOutcome,
}

/// Outcome of trying an address.
#[derive(Debug, Clone, PartialEq)]
pub enum AddressOutcome {
    /// The member answered.
    Met(Met),
    /// The member did not answer.
    Failed(ProbeError),
}

impl Serialize for TriedAddress {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = match &self.outcome {
            AddressOutcome::Met(met) => json!({
                "address": self.address, "answers": true,
                "federation": format!("{:#}", met.federation), "version": met.program.version,
                "handshake_ms": met.handshake.as_secs_f64() * 1e3,
                "round_trip_ms": met.round_trip.as_secs_f64() * 1e3,
                "clock_ahead_s": met.ahead,
            }),
            AddressOutcome::Failed(why) => {
                json!({ "address": self.address, "answers": false, "why": why.to_string() })
            }
        };
        if let Some(relay) = &self.through {
            document["through"] = json!(relay);
        }
        Value::serialize(&document, serializer)
    }
}

impl CheckedPeer {
    /// Returns how far its clock is ahead, in seconds, if it answered.
    pub(super) fn ahead(&self) -> Option<f64> {
        self.addresses
            .iter()
            .find_map(|tried| match &tried.outcome {
                AddressOutcome::Met(met) => Some(met.ahead),
                AddressOutcome::Failed(_) => None,
            })
    }
}

/// Returns what the check says of itself. `key` is this institution's; its node may be running.
pub(super) fn prober(
    configured: &Configured,
    key: &SecretKey,
    running: bool,
    challenge: Option<[u8; 32]>,
) -> Prober {
    let key = key.to_bytes();
    Prober {
        key: if running { probe_key(&key) } else { key },
        federation: configured.agreement.epoch.federation,
        challenge,
    }
}

/// Tries all members but `me`.
pub(super) fn peers(
    configured: &Configured,
    me: MemberIndex,
    prober: &Prober,
    running: bool,
    patience: Duration,
) -> io::Result<(Vec<CheckedPeer>, Vec<Finding>)> {
    let federation = prober.federation;
    let others = configured.roster.iter().filter(|one| one.member != me);
    let others: Vec<Contact> = others.cloned().collect();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tried = runtime.block_on(async {
        let (mut tasks, mut waiting) = (JoinSet::new(), others.iter().cloned());
        let mut tried = Vec::new();
        loop {
            while tasks.len() < AT_ONCE
                && let Some(contact) = waiting.next()
            {
                tasks.spawn(one(contact, *prober, patience));
            }
            match tasks.join_next().await {
                Some(Ok(done)) => tried.push(done),
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(tried),
            }
        }
    });
    let mut tried = tried?;
    tried.sort_by_key(|(member, _)| *member);
    let roster = &configured.agreement.epoch.roster;
    runtime.block_on(through_others(
        &others, roster, &mut tried, prober, patience,
    ));
    // Resolving a name may still go on.
    runtime.shutdown_background();
    let (mut peers, mut findings) = (Vec::new(), Vec::new());
    for (member, addresses) in tried {
        let peer = CheckedPeer {
            member: roster.name(member).to_owned(),
            addresses,
        };
        findings.extend(found(&peer, federation, running));
        peers.push(peer);
    }
    Ok((peers, findings))
}

/// Tries the addresses of one member, one after the other: a second connection would replace the first.
async fn one(
    contact: Contact,
    prober: Prober,
    patience: Duration,
) -> (MemberIndex, Vec<TriedAddress>) {
    let mut tried = Vec::new();
    for address in contact.addresses {
        let outcome = mesh::probe(&prober, &contact.key, &address, patience).await;
        tried.push(TriedAddress {
            address,
            through: None,
            outcome: outcome.map_or_else(AddressOutcome::Failed, AddressOutcome::Met),
        });
    }
    (contact.member, tried)
}

/// Members through which one without an address is tried.
const RELAYS: usize = 4;

/// Tries members without an address through those that answered, one after the other.
async fn through_others(
    contacts: &[Contact],
    roster: &Roster,
    tried: &mut [(MemberIndex, Vec<TriedAddress>)],
    prober: &Prober,
    patience: Duration,
) {
    let key = |member: MemberIndex| contacts.iter().find(|one| one.member == member);
    let answers = |(member, all): &(MemberIndex, Vec<TriedAddress>)| {
        let met = |one: &&TriedAddress| matches!(&one.outcome, AddressOutcome::Met(met) if met.federation == prober.federation);
        let at = all.iter().find(met)?.address.clone();
        Some((*member, key(*member)?.key, at))
    };
    let relays: Vec<_> = tried.iter().filter_map(answers).collect();
    for (member, ways) in tried.iter_mut().filter(|(_, ways)| ways.is_empty()) {
        let Some(contact) = key(*member) else {
            continue;
        };
        let mut order: Vec<_> = relays.iter().collect();
        order.sort_by_key(|(relay, ..)| mesh::rank(*member, *relay));
        for (relay, relay_key, at) in order.into_iter().take(RELAYS) {
            let relay_at = (relay_key, at.as_str());
            let outcome = mesh::probe_through(prober, &contact.key, relay_at, patience).await;
            let met = outcome.is_ok();
            ways.push(TriedAddress {
                address: at.clone(),
                through: Some(roster.name(*relay).to_owned()),
                outcome: outcome.map_or_else(AddressOutcome::Failed, AddressOutcome::Met),
            });
            if met {
                break;
            }
        }
    }
}

/// Returns what is said about a member without an address.
fn found_through_others(peer: &CheckedPeer, federation: Hash, running: bool) -> Vec<Finding> {
    let name = &peer.member;
    let met = peer
        .addresses
        .iter()
        .find_map(|tried| match &tried.outcome {
            AddressOutcome::Met(met) => Some((met, tried.through.as_deref().unwrap_or_default())),
            AddressOutcome::Failed(_) => None,
        });
    let finding = match met {
        Some((met, relay)) if met.federation == federation => Finding::good(
            "peers",
            format!(
                "{name} answers through {relay}, which relays to it: right key, same agreement, \
                 connected in {}, round trip {}",
                numbers::seconds(met.handshake.as_secs_f64()),
                trip(met.round_trip),
            ),
        ),
        Some((met, relay)) => Finding::bad(
            "peers",
            format!(
                "{name} answers through {relay} and has another agreement: {} there, {federation} here",
                met.federation
            ),
        )
        .remedy(OLD),
        None if peer.addresses.is_empty() => Finding::note(
            "peers",
            format!("no address of {name} is known: it has to reach this node"),
        ),
        None => {
            let each = peer.addresses.iter().map(|tried| {
                let relay = tried.through.as_deref().unwrap_or_default();
                match &tried.outcome {
                    AddressOutcome::Failed(why) => format!("through {relay}: {}", said(why, running)),
                    AddressOutcome::Met(_) => String::new(),
                }
            });
            let each: Vec<_> = each.collect();
            Finding::note(
                "peers",
                format!(
                    "no address of {name} is known, and no member that answers relays to it now ({}): \
                     it has to reach this node, or one of them",
                    each.join("; ")
                ),
            )
        }
    };
    vec![finding]
}

/// Remedy for two agreements.
const OLD: &str = "compare what `rota federation show` prints on both sides; one of the two has an old \
                   federation.toml";

/// Returns what is said about a member.
fn found(peer: &CheckedPeer, federation: Hash, running: bool) -> Vec<Finding> {
    let name = &peer.member;
    if peer.addresses.iter().all(|tried| tried.through.is_some()) {
        return found_through_others(peer, federation, running);
    }
    let reached = peer
        .addresses
        .iter()
        .any(|tried| matches!(tried.outcome, AddressOutcome::Met(_)));
    let each = peer.addresses.iter().map(|tried| {
        let address = &tried.address;
        match &tried.outcome {
            AddressOutcome::Met(met) if met.federation == federation && unlike(name, met).is_some() => {
                let why = unlike(name, met).unwrap_or_default();
                Finding::bad("peers", format!("at {address}: {why}"))
            }
            AddressOutcome::Met(met) if met.federation == federation => Finding::good(
                "peers",
                format!(
                    "{name} answers at {address}: right key, same agreement, connected in {}, round \
                     trip {}",
                    numbers::seconds(met.handshake.as_secs_f64()),
                    trip(met.round_trip),
                ),
            ),
            AddressOutcome::Met(met) => Finding::bad(
                "peers",
                format!(
                    "{name} answers at {address} and has another agreement: {} there, {federation} here",
                    met.federation
                ),
            )
            .remedy(OLD),
            AddressOutcome::Failed(why) => {
                let text = format!("{name} at {}: {}", transport(address), said(why, running));
                let absent = matches!(why, ProbeError::Silent(_) | ProbeError::Refused);
                // One way to a member is enough.
                let finding = match reached || (running && *why == ProbeError::TurnedAway) {
                    true => Finding::note("peers", text),
                    false if absent => Finding::waiting("peers", text),
                    false => Finding::bad("peers", text),
                };
                match advice(why, running) {
                    Some(advice) => finding.remedy(advice),
                    None => finding,
                }
            }
        }
    });
    each.collect()
}

/// Returns the reason for which a member's program and this one do not understand each other.
fn unlike(name: &str, met: &Met) -> Option<String> {
    // The format in force here stands in the journal, which the node may be writing.
    other_format(name, &met.program, &Program::this(None))
}

/// A round trip: tenths of a millisecond matter in one house.
fn trip(span: Duration) -> String {
    match span.as_secs_f64() {
        short if short < 0.01 => format!("{:.1} ms", short * 1e3),
        long => numbers::seconds(long),
    }
}

/// The address, and by what it was tried.
fn transport(address: &str) -> String {
    match mesh::port(address) {
        Some((_, port)) if port.udp => format!("{address} (QUIC over UDP)"),
        Some(_) => format!("{address} (TCP)"),
        None => address.to_owned(),
    }
}

fn said(why: &ProbeError, running: bool) -> String {
    match why {
        ProbeError::TurnedAway if running => {
            "its node answers with the right key. It has not met this institution's running node since \
             it started, so it does not answer this check"
                .into()
        }
        other => other.to_string(),
    }
}

fn advice(why: &ProbeError, running: bool) -> Option<&'static str> {
    match why {
        ProbeError::Silent(_) => Some(
            "is its node running, is the address right, and does a firewall on the way let this port \
             through?",
        ),
        ProbeError::Refused => {
            Some("its node is not running, or listens at another port: ask there")
        }
        ProbeError::Unresolved(_) => Some("is the name right, and known to this machine's DNS?"),
        ProbeError::OtherKey(_) => {
            Some("is the address that of another member, or has its key changed? Ask there")
        }
        ProbeError::TurnedAway if running => {
            Some("what this institution's node prints says whether the two are connected")
        }
        ProbeError::TurnedAway => Some(
            "one of the two has an old federation.toml: compare what `rota federation show` prints",
        ),
        ProbeError::Mute => Some("use the same version of Rota on both sides"),
        ProbeError::Unrelayed | ProbeError::Unusable(_) | ProbeError::Failed(_) => None,
    }
}
