//! Plans connection attempts.
//!
//! Every member that is not connected and has an address is dialled, with pauses that double and
//! are shortened at random. Of two members the one that stands first in the roster begins at once,
//! the other a moment later, so that there is mostly one connection to a pair.

use std::collections::BTreeMap;
use std::time::Duration;

use libp2p::core::transport::TransportError;
use libp2p::multiaddr::{Multiaddr, Protocol};
use libp2p::swarm::DialError;
use protocol::{Hash, MemberIndex};
use tokio::time::Instant;

/// Addresses from multicast DNS for one member; more are ignored.
const FOUND: usize = 8;

struct Target {
    addresses: Vec<Multiaddr>,
    /// Addresses from multicast DNS.
    found: Vec<Multiaddr>,
    failures: u32,
    /// None while connected or being dialled.
    due: Option<Instant>,
    /// The last logged failure, so that it is not logged again.
    logged: String,
}

/// The members that this node dials.
pub(crate) struct Dialer {
    me: MemberIndex,
    pauses: (Duration, Duration),
    targets: BTreeMap<MemberIndex, Target>,
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
            let target = Target {
                due: (!addresses.is_empty()).then_some(now + wait),
                addresses,
                found: Vec::new(),
                failures: 0,
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

    /// When the next attempt is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.targets.values().filter_map(|target| target.due).min()
    }

    /// The attempts that are due; each is answered with one of the following calls.
    pub(crate) fn due(&mut self) -> Vec<(MemberIndex, Vec<Multiaddr>)> {
        let now = Instant::now();
        let due = |(&member, target): (&MemberIndex, &mut Target)| {
            target.due.take_if(|due| *due <= now)?;
            let all = target.addresses.iter().chain(&target.found);
            Some((member, all.cloned().collect()))
        };
        self.targets.iter_mut().filter_map(due).collect()
    }

    /// There is a connection.
    pub(crate) fn connected(&mut self, member: MemberIndex) {
        if let Some(target) = self.targets.get_mut(&member) {
            target.due = None;
        }
    }

    /// The connection works: resets the failures.
    pub(crate) fn works(&mut self, member: MemberIndex) {
        if let Some(target) = self.targets.get_mut(&member) {
            target.failures = 0;
            target.logged.clear();
        }
    }

    /// Whether there was no failure since a connection worked.
    pub(crate) fn is_calm(&self, member: MemberIndex) -> bool {
        let target = self.targets.get(&member);
        target.is_some_and(|target| target.failures == 0)
    }

    /// The connection ended: plans an attempt soon.
    pub(crate) fn lost(&mut self, member: MemberIndex) {
        self.again(member);
    }

    /// An attempt failed: plans the next one.
    pub(crate) fn failed(&mut self, member: MemberIndex, why: String) {
        let next = match self.again(member) {
            Some(pause) => format!("next attempt in {:.1} s", pause.as_secs_f64()),
            None => "no address of it is known, so this node waits for its connection".into(),
        };
        let Some(target) = self.targets.get_mut(&member) else {
            return;
        };
        if why == target.logged {
            tracing::debug!(%member, "cannot reach the member: {why}; {next}");
        } else {
            tracing::warn!(%member, "cannot reach the member: {why}; {next}");
            target.logged = why;
        }
    }

    /// Plans the next attempt, if an address is known; gives the pause before it.
    fn again(&mut self, member: MemberIndex) -> Option<Duration> {
        let target = self.targets.get_mut(&member)?;
        let pause = pause(self.me, member, target.failures, self.pauses);
        target.failures = target.failures.saturating_add(1);
        let known = !target.addresses.is_empty() || !target.found.is_empty();
        target.due = known.then(|| Instant::now() + pause);
        known.then_some(pause)
    }

    /// Adds an address from multicast DNS.
    pub(crate) fn found(&mut self, member: MemberIndex, address: Multiaddr, connected: bool) {
        let Some(target) = self.targets.get_mut(&member) else {
            return;
        };
        if target.found.len() < FOUND && !target.found.contains(&address) {
            target.found.push(address);
            if !connected {
                target.due.get_or_insert_with(Instant::now);
            }
        }
    }
}

/// Doubled with each failure up to the longest, then shortened by up to a half. The random part is
/// a hash: nodes and attempts differ, and nothing needs a generator.
fn pause(
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

/// Describes why a dial failed.
pub(crate) fn explain(error: &DialError) -> String {
    match error {
        DialError::Transport(tried) => {
            let each = |(address, error): &(Multiaddr, TransportError<std::io::Error>)| match error
            {
                TransportError::MultiaddrNotSupported(_) => format!("{address}: not supported"),
                TransportError::Other(error) => format!("{address}: {}", root(error)),
            };
            tried.iter().map(each).collect::<Vec<_>>().join("; ")
        }
        DialError::WrongPeerId { obtained, address } => format!(
            "the node at {address} has another key than the roster ({obtained}): is the address right, or was its identity replaced?"
        ),
        DialError::LocalPeerId { address } => format!("{address} is this node itself"),
        DialError::NoAddresses => "no address of it is known".into(),
        other => other.to_string(),
    }
}

/// The innermost reason: the outer ones only name layers.
pub(crate) fn root(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
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
            first.failed(B, "refused".into());
            let next = first.next().expect("a next attempt is planned");
            waited.push(next - Instant::now());
            tokio::time::advance(next - Instant::now()).await;
            assert_eq!(first.due().len(), 1);
        }
        assert!(waited.is_sorted(), "{waited:?}");
        first.connected(B);
        first.works(B);
        first.failed(B, "closed".into());
        assert!(
            first
                .next()
                .is_some_and(|next| next - Instant::now() <= PAUSES.0)
        );
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
}
