//! Checks of the machine: disk, ports, clock, and what its firewall has to let through.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mesh::{MeshError, Port};
use protocol::MemberIndex;

use super::Finding;
use super::peers::CheckedPeer;
use crate::clock;
use crate::institution::Configured;
use crate::paths::free;
use formatting::numbers;

/// Bytes of a journal with room to spare.
const JOURNAL: u64 = 64 << 20;
/// How far clocks may differ in seconds before it is said.
const APART: f64 = 5.0;

/// Free space against what the parameter set's models need.
pub(super) fn disk(configured: &Configured) -> Vec<Finding> {
    let epoch = &configured.agreement.epoch;
    let protocol = &epoch.protocol;
    // In every round that is kept, in the one under way and the next: a model of every member, and at
    // most as many new ones.
    let models = 2 * epoch.roster.len() as u64 * (u64::from(protocol.keep_rounds) + 2);
    let needed = protocol
        .blob_limit
        .saturating_mul(models)
        .saturating_add(JOURNAL);
    let place = existing(&configured.state);
    vec![match free(&place) {
        None => Finding::note(
            "disk",
            format!(
                "the system does not say how much is free at {}",
                place.display()
            ),
        ),
        Some(free) if free < needed => Finding::bad(
            "disk",
            format!(
                "{} are free at {}, and the agreement's models and the journal may need {}",
                numbers::bytes(free),
                place.display(),
                numbers::bytes(needed)
            ),
        )
        .remedy("make room, or name a folder on another disk as `state` in node.toml"),
        Some(free) => Finding::good(
            "disk",
            format!(
                "{} are free at {}; models and journal need at most {}",
                numbers::bytes(free),
                place.display(),
                numbers::bytes(needed)
            ),
        ),
    }]
}

/// The device that the node trains on. That it can be used was checked with the file.
pub(super) fn device(configured: &Configured) -> Finding {
    let name = configured.device.name;
    let about = name.about();
    Finding::good("device", format!("trains on {name}: {about}"))
}

/// The folder, or the nearest one above it that exists.
fn existing(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
    let found = whole.ancestors().find(|folder| folder.is_dir());
    found.map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}

/// Returns whether the node can listen.
pub(super) fn ports(configured: &Configured, running: bool) -> Vec<Finding> {
    if configured.listen.is_empty() {
        let what =
            "this node does not listen: it connects to others, and they cannot connect to it";
        return vec![Finding::note("ports", what)];
    }
    let check = |address: &String| match mesh::bindable(address) {
        Ok(()) if running => Finding::bad(
            "ports",
            format!("{address} is free, although this institution's node is running"),
        )
        .remedy("node.toml was changed since the node started: restart the node"),
        Ok(()) => Finding::good("ports", format!("{address} is free to listen at")),
        Err(_) if running => Finding::good(
            "ports",
            format!("{address} is in use, by this institution's running node"),
        ),
        Err(MeshError::Listen { why, .. }) => {
            Finding::bad("ports", format!("cannot listen at {address}")).remedy(why)
        }
        Err(error) => Finding::bad("ports", error.to_string()),
    };
    configured.listen.iter().map(check).collect()
}

/// The clock, by itself and compared with those of members that answered.
pub(super) fn clock(peers: &[CheckedPeer]) -> Vec<Finding> {
    if let Some(what) = clock::fault(SystemTime::now()) {
        return vec![Finding::bad("clock", what).remedy("set it, for instance with NTP")];
    }
    let mut ahead: Vec<f64> = peers.iter().filter_map(CheckedPeer::ahead).collect();
    ahead.sort_by(f64::total_cmp);
    vec![match ahead.get(ahead.len() / 2) {
        None => Finding::good(
            "clock",
            "plausible; no member answered with which it could be compared",
        ),
        Some(median) if median.abs() > APART => Finding::note(
            "clock",
            format!(
                "this machine's clock is {} {} those of the members that answered",
                numbers::seconds(median.abs()),
                if *median > 0.0 { "behind" } else { "ahead of" }
            ),
        )
        .remedy(
            "rounds do not depend on the clock, but logs and signatures have its time: set it with NTP",
        ),
        Some(median) => Finding::good(
            "clock",
            format!(
                "agrees to {} with {} that answered",
                numbers::seconds(median.abs().max(0.001)),
                numbers::plural(ahead.len(), "member")
            ),
        ),
    }]
}

/// Returns what the firewall has to let through, in one line.
pub(super) fn firewall(configured: &Configured, me: Option<MemberIndex>) -> String {
    let port = |address: &String| mesh::port(address).map(|(_, port)| port);
    let listen = configured.listen.iter().filter(|_| configured.reachable);
    let inward: BTreeSet<Port> = listen.filter_map(port).collect();
    let outward: BTreeSet<Port> = configured
        .roster
        .iter()
        .filter(|contact| Some(contact.member) != me)
        .flat_map(|contact| &contact.addresses)
        .filter_map(port)
        .collect();
    let list = |ports: &BTreeSet<Port>| {
        if ports.is_empty() {
            "nothing".to_owned()
        } else {
            let ports: Vec<_> = ports.iter().map(Port::to_string).collect();
            ports.join(", ")
        }
    };
    format!(
        "Firewall: from the other members to this machine {}; from this machine to the other members \
         {}.",
        list(&inward),
        list(&outward)
    )
}
