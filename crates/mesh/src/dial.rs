//! Plans connection attempts.
//!
//! Every member that is not connected is dialled, with pauses that double and are shortened at random:
//! at its addresses, or, if it has none, through one member after the other that is connected to this
//! node. Of two members the one that stands first in the roster begins at once, the other a moment
//! later, so that there is mostly one connection to a pair.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use libp2p::core::transport::TransportError;
use libp2p::multiaddr::{Multiaddr, Protocol};
use libp2p::swarm::DialError;
use protocol::{Hash, MemberIndex};
use tokio::time::Instant;

use crate::config::{is_relayed, socket};

/// Addresses from multicast DNS for one member; more are ignored.
const FOUND: usize = 8;
/// Pause between attempts to reach a member directly that is connected through another one.
const DIRECTLY: Duration = Duration::from_secs(60);

struct DialTarget {
    addresses: Vec<Multiaddr>,
    /// Addresses from multicast DNS.
    found: Vec<Multiaddr>,
    failures: u32,
    /// Time at which the next attempt is due; `None` while the member is connected or being dialled.
    due: Option<Instant>,
    /// True if the member is connected through another member.
    relayed: bool,
    /// The last logged failure, so that it is not logged again.
    logged: String,
}

/// An attempt that is due.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) member: MemberIndex,
    /// Addresses of the member; empty if it has to be reached through another member.
    pub(crate) addresses: Vec<Multiaddr>,
    /// Number of attempts that failed before it.
    pub(crate) failures: u32,
}

/// The members that this node dials.
pub(crate) struct Dialer {
    me: MemberIndex,
    pauses: (Duration, Duration),
    targets: BTreeMap<MemberIndex, DialTarget>,
}

impl Dialer {
    /// With the pauses after the first failure and after many.
    pub(crate) fn new(
        me: MemberIndex,
        pauses: (Duration, Duration),
        addresses: impl IntoIterator<Item = (MemberIndex, Vec<Multiaddr>)>,
    ) -> Self {
        let now = Instant::now();
        let target = |(member, addresses): (MemberIndex, Vec<Multiaddr>)| {
            let wait = if me < member {
                Duration::ZERO
            } else {
                pauses.0
            };
            let target = DialTarget {
                due: Some(now + wait),
                addresses,
                found: Vec::new(),
                failures: 0,
                relayed: false,
                logged: String::new(),
            };
            (member, target)
        };
        let targets = addresses.into_iter().map(target).collect();
        Self {
            me,
            pauses,
            targets,
        }
    }

    /// Returns when the next attempt is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.targets.values().filter_map(|target| target.due).min()
    }

    /// The attempts that are due; each is answered with one of the following calls.
    pub(crate) fn due(&mut self) -> Vec<Attempt> {
        let now = Instant::now();
        let due = |(&member, target): (&MemberIndex, &mut DialTarget)| {
            target.due.take_if(|due| *due <= now)?;
            let all = target.addresses.iter().chain(&target.found);
            Some(Attempt {
                member,
                addresses: all.cloned().collect(),
                failures: target.failures,
            })
        };
        self.targets.iter_mut().filter_map(due).collect()
    }

    /// There is a connection. One that another member relays is replaced by a direct one where that
    /// is possible: a member with addresses is dialled there now and then.
    pub(crate) fn connected(&mut self, member: MemberIndex, relayed: bool) {
        if let Some(target) = self.targets.get_mut(&member) {
            target.relayed = relayed;
            target.due = None;
        }
        self.again_directly(member);
    }

    /// An attempt to replace a relayed connection by a direct one failed: plans the next one.
    pub(crate) fn again_directly(&mut self, member: MemberIndex) {
        if let Some(target) = self.targets.get_mut(&member)
            && target.relayed
            && target.is_known()
        {
            target.due = Some(Instant::now() + DIRECTLY);
        }
    }

    /// There was no member through which this one could be tried: plans the next attempt.
    pub(crate) fn waits(&mut self, member: MemberIndex) {
        self.again(member);
    }

    /// There is a new member through which others may be reached: those without an address are tried
    /// soon.
    pub(crate) fn may_relay(&mut self) {
        let soon = Instant::now() + self.pauses.0;
        for target in self.targets.values_mut() {
            if !target.is_known()
                && let Some(due) = &mut target.due
            {
                *due = soon.min(*due);
                target.failures = 0;
            }
        }
    }

    /// The connection works: resets the failures.
    pub(crate) fn works(&mut self, member: MemberIndex) {
        if let Some(target) = self.targets.get_mut(&member) {
            target.failures = 0;
            target.logged.clear();
        }
    }

    /// Returns whether there was no failure since a connection worked.
    pub(crate) fn is_calm(&self, member: MemberIndex) -> bool {
        let target = self.targets.get(&member);
        target.is_some_and(|target| target.failures == 0)
    }

    /// The connection ended: plans an attempt soon.
    pub(crate) fn lost(&mut self, member: MemberIndex) {
        self.again(member);
    }

    /// An attempt failed: plans the next one. `configured` if that is because of the configuration,
    /// which is logged as a warning even where the member connects by itself.
    pub(crate) fn failed(&mut self, member: MemberIndex, why: String, configured: bool) {
        let Some(pause) = self.again(member) else {
            return;
        };
        let next = format!("next attempt in {:.1} s", pause.as_secs_f64());
        let Some(target) = self.targets.get_mut(&member) else {
            return;
        };
        if why == target.logged {
            tracing::debug!(%member, "cannot reach the member, which {why}; {next}");
        } else {
            if configured {
                tracing::warn!(%member, "cannot reach the member, which {why}; {next}")
            } else {
                tracing::info!(%member, "cannot reach the member, which {why}; {next}")
            }
            target.logged = why;
        }
    }

    /// Plans the next attempt; gives the pause before it.
    fn again(&mut self, member: MemberIndex) -> Option<Duration> {
        let target = self.targets.get_mut(&member)?;
        let pause = pause(self.me, member, target.failures, self.pauses);
        target.failures = target.failures.saturating_add(1);
        target.relayed = false;
        target.due = Some(Instant::now() + pause);
        Some(pause)
    }

    /// Adds an address from multicast DNS.
    pub(crate) fn found(&mut self, member: MemberIndex, address: Multiaddr, connected: bool) {
        let Some(target) = self.targets.get_mut(&member) else {
            return;
        };
        if target.found.len() < FOUND && !target.found.contains(&address) {
            target.found.push(address);
            if !connected || target.relayed {
                target.due = Some(Instant::now());
            }
        }
    }
}

impl DialTarget {
    /// Returns whether an address of it is known.
    fn is_known(&self) -> bool {
        !self.addresses.is_empty() || !self.found.is_empty()
    }
}

/// Doubled with each failure up to the longest, then shortened by up to a half. The random part is
/// a hash: nodes and attempts differ, and nothing needs a generator.
pub(crate) fn pause(
    me: MemberIndex,
    member: MemberIndex,
    failures: u32,
    (first, last): (Duration, Duration),
) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(last);
    let parts = [me.0.to_le_bytes(), member.0.to_le_bytes()].concat();
    let draw = Hash::labelled("pause", &[&parts, &failures.to_le_bytes()]).0[0];
    full.mul_f64(1.0 - f64::from(draw) / 512.0)
}

/// Resolved addresses.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) addresses: Vec<Multiaddr>,
    /// A sentence for each address that could not be resolved.
    pub(crate) problems: Vec<String>,
}

/// Resolves names as the operating system does (hosts file, search domains, resolver of a VPN).
pub(crate) async fn resolve(addresses: Vec<Multiaddr>) -> Resolved {
    let (mut resolved, mut problems) = (Vec::new(), Vec::new());
    for address in addresses {
        let mut parts = address.iter();
        let host = parts.next();
        let (name, wanted): (_, fn(&std::net::IpAddr) -> bool) = match &host {
            Some(Protocol::Dns(name)) => (name, |_| true),
            Some(Protocol::Dns4(name)) => (name, |ip| ip.is_ipv4()),
            Some(Protocol::Dns6(name)) => (name, |ip| ip.is_ipv6()),
            _ => {
                resolved.push(address);
                continue;
            }
        };
        let found = tokio::net::lookup_host((&**name, 0)).await;
        let ips: Vec<_> = match found {
            Ok(found) => found.map(|socket| socket.ip()).filter(wanted).collect(),
            Err(error) => {
                problems.push(format!("{name} does not resolve ({error})"));
                continue;
            }
        };
        if ips.is_empty() {
            problems.push(format!(
                "{name} has no address of the kind that {address} asks for"
            ));
        }
        let rest: Vec<_> = parts.collect();
        resolved.extend(ips.into_iter().map(|ip| {
            std::iter::once(Protocol::from(ip))
                .chain(rest.iter().cloned())
                .collect::<Multiaddr>()
        }));
    }
    Resolved {
        addresses: resolved,
        problems,
    }
}

/// Describes why a dial failed, in words that follow the member's name.
pub(crate) fn explain(error: &DialError) -> String {
    match error {
        DialError::Transport(tried) => {
            let each = |(address, error): &(Multiaddr, TransportError<io::Error>)| match error {
                TransportError::MultiaddrNotSupported(_) => {
                    format!("has an address that is not supported, {address}")
                }
                TransportError::Other(error) => silence(address, error),
            };
            tried.iter().map(each).collect::<Vec<_>>().join("; ")
        }
        DialError::WrongPeerId { obtained, address } => format!(
            "at {} has another key than the roster ({obtained}): is the address right, or was its identity replaced?",
            place(address).0
        ),
        DialError::LocalPeerId { address } => {
            format!("has an address of this node itself, {}", place(address).0)
        }
        DialError::NoAddresses => "has no known address".into(),
        other => format!("cannot be dialled: {other}"),
    }
}

/// The innermost reason of any error: the outer ones only name layers.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Returns whether a dial failed because of the configuration.
pub(crate) fn is_configuration(error: &DialError) -> bool {
    matches!(
        error,
        DialError::WrongPeerId { .. } | DialError::LocalPeerId { .. }
    )
}

/// Returns what an address answered: nothing, a refusal, or an error of the system.
fn silence(address: &Multiaddr, error: &io::Error) -> String {
    let (place, transport) = place(address);
    let (kind, text) = root(error);
    if is_relayed(address) {
        let text = if text.contains("no reservation") {
            "the last one that was tried is not connected to it"
        } else {
            &text
        };
        return format!("has no address, and cannot be reached through another member: {text}");
    }
    match kind {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("at {place} refuses connections over {transport}: no program listens there")
        }
        Some(io::ErrorKind::TimedOut) => format!("at {place} does not answer over {transport}"),
        // Some layers pass on the words alone.
        None if text.contains("refused") => {
            format!("at {place} refuses connections over {transport}: no program listens there")
        }
        // libp2p's own words for a time-out of QUIC and of the transport.
        None if ["timed out", "Timeout"]
            .iter()
            .any(|words| text.contains(words)) =>
        {
            format!("at {place} does not answer over {transport}")
        }
        _ => format!("at {place} cannot be reached over {transport}: {text}"),
    }
}

/// `192.0.2.7:4001`, and the protocol to open for it in a firewall.
fn place(address: &Multiaddr) -> (String, &'static str) {
    match socket(address) {
        Some((ip, port, udp)) => {
            let transport = if udp { "UDP" } else { "TCP" };
            (SocketAddr::new(ip, port).to_string(), transport)
        }
        None => (address.to_string(), "the network"),
    }
}

/// The innermost reason, because the outer ones only name layers; with its kind if it is one of the
/// system.
fn root(error: &io::Error) -> (Option<io::ErrorKind>, String) {
    let mut inner: &(dyn std::error::Error + 'static) = error;
    let mut kind = None;
    loop {
        let system = inner.downcast_ref::<io::Error>();
        let known = system.map(io::Error::kind);
        kind = known.filter(|kind| *kind != io::ErrorKind::Other).or(kind);
        // An error that was wrapped in one of the system is not its source.
        let wrapped = system.and_then(io::Error::get_ref);
        let wrapped = wrapped.map(|wrapped| wrapped as &(dyn std::error::Error + 'static));
        match wrapped.or_else(|| inner.source()) {
            Some(next) => inner = next,
            None => return (kind, inner.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MemberIndex = MemberIndex(0);
    const B: MemberIndex = MemberIndex(1);
    const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));

    #[test]
    fn pauses_double_up_to_a_limit_and_differ_between_nodes() {
        for failures in 0..40 {
            let full = PAUSES.0.saturating_mul(1 << failures.min(16)).min(PAUSES.1);
            let pause = pause(A, B, failures, PAUSES);
            assert!(full / 2 <= pause && pause <= full, "{failures}: {pause:?}");
        }
        assert_ne!(pause(A, B, 3, PAUSES), pause(B, A, 3, PAUSES));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_of_a_pair_dials_first_and_both_retry() {
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().expect("valid");
        let mut first = Dialer::new(A, PAUSES, [(B, vec![address.clone()])]);
        let second = Dialer::new(B, PAUSES, [(A, vec![address])]);
        assert_eq!(first.due().len(), 1);
        assert_eq!(first.next(), None);
        assert_eq!(second.next(), Some(Instant::now() + PAUSES.0));
        let mut waited = Vec::new();
        for _ in 0..3 {
            first.failed(B, "refused".into(), false);
            let next = first.next().expect("a next attempt is planned");
            waited.push(next - Instant::now());
            tokio::time::advance(next - Instant::now()).await;
            assert_eq!(first.due().len(), 1);
        }
        assert!(waited.is_sorted(), "{waited:?}");
        first.connected(B, false);
        assert_eq!(first.next(), None);
        first.works(B);
        first.failed(B, "closed".into(), false);
        assert!(
            first
                .next()
                .is_some_and(|next| next - Instant::now() <= PAUSES.0)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_without_address_is_retried_once_another_may_relay() {
        let mut dialer = Dialer::new(A, PAUSES, [(B, Vec::new())]);
        let wait = |dialer: &Dialer| dialer.next().expect("planned") - Instant::now();
        for failures in 0..8 {
            tokio::time::advance(wait(&dialer)).await;
            let due = dialer.due();
            assert!(due[0].addresses.is_empty() && due[0].failures == failures);
            dialer.waits(B);
        }
        assert!(wait(&dialer) > PAUSES.0);
        dialer.may_relay();
        assert!(wait(&dialer) <= PAUSES.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_relayed_member_of_known_address_is_tried_directly() {
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().expect("valid");
        let mut dialer = Dialer::new(A, PAUSES, [(B, Vec::new())]);
        dialer.connected(B, true);
        assert_eq!(dialer.next(), None);
        let mut dialer = Dialer::new(A, PAUSES, [(B, vec![address])]);
        dialer.connected(B, true);
        assert_eq!(dialer.next(), Some(Instant::now() + DIRECTLY));
        tokio::time::advance(DIRECTLY).await;
        assert_eq!(dialer.due().len(), 1);
        dialer.again_directly(B);
        assert_eq!(dialer.next(), Some(Instant::now() + DIRECTLY));
        dialer.connected(B, false);
        assert_eq!(dialer.next(), None);
    }

    #[tokio::test]
    async fn names_become_addresses_or_problems() {
        let parse = |text: &str| text.parse::<Multiaddr>().expect("valid");
        let ip = parse("/ip4/192.0.2.7/udp/4400/quic-v1");
        let name = parse("/dns4/localhost/tcp/4400");
        let nowhere = parse("/dns/nowhere.invalid/tcp/4400");
        let Resolved {
            addresses: resolved,
            problems,
        } = resolve(vec![ip.clone(), name, nowhere]).await;
        assert_eq!(resolved, [ip, parse("/ip4/127.0.0.1/tcp/4400")]);
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("nowhere.invalid does not resolve"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_failed_attempt_is_described_by_place_and_protocol() {
        let at = |text: &str| text.parse::<Multiaddr>().expect("valid");
        let (quic, tcp) = (
            at("/ip4/192.0.2.7/udp/4001/quic-v1"),
            at("/ip6/2001:db8::7/tcp/4001"),
        );
        let timeout = io::Error::other("Handshake with the remote timed out.");
        let refused = io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused));
        let other = io::Error::from(io::ErrorKind::HostUnreachable);
        let tried = vec![
            (quic, TransportError::Other(timeout)),
            (tcp.clone(), TransportError::Other(refused)),
            (tcp, TransportError::Other(other)),
        ];
        assert_eq!(
            explain(&DialError::Transport(tried)),
            "at 192.0.2.7:4001 does not answer over UDP; at [2001:db8::7]:4001 refuses connections \
             over TCP: no program listens there; at [2001:db8::7]:4001 cannot be reached over TCP: \
             host unreachable"
        );
    }
}
