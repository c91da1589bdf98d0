//! Passes datagrams between nodes on this machine, with the latency, bandwidth, loss and cuts of
//! simulated links.
//!
//! For every node and every other one that it may dial there is a socket, its *door*: the node has the
//! door's address in its configuration in place of the other's. Datagrams go through a second socket to
//! the other node, whose answers come back the same way.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use simulations::network::{LinkConfig, latencies};
use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep_until};

/// Largest datagram, in bytes.
const LARGEST: usize = 1 << 16;
/// Time that a datagram may wait for its sender's line; one that would wait longer is dropped, as by a router
/// whose queue is full.
const QUEUE: Duration = Duration::from_secs(1);

/// The links between all nodes. They end when this is dropped.
pub(super) struct Proxy {
    /// The port at which each node reaches each other one, by sender and receiver; 0 for itself.
    pub(super) doors: Vec<Vec<u16>>,
    links: Arc<ProxyLinks>,
    /// Runs until this is dropped.
    _runtime: Runtime,
}

struct ProxyLinks {
    config: LinkConfig,
    latency: Vec<Vec<Duration>>,
    sent: Vec<AtomicU64>,
    changing: Mutex<ProxyState>,
}

struct ProxyState {
    /// Time at which the line of each sender is free.
    free: Vec<Instant>,
    /// Links that are cut, by how many faults.
    cut: BTreeMap<(usize, usize), usize>,
    /// State of the pseudorandom numbers.
    random: u64,
}

impl Proxy {
    /// Starts the links between nodes that listen at these ports, with the latencies that a simulation
    /// with this seed draws.
    pub(super) fn start(nodes: &[u16], config: &LinkConfig, seed: u64) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("proxy")
            .enable_all()
            .build()?;
        let n = nodes.len();
        let links = Arc::new(ProxyLinks {
            config: config.clone(),
            latency: latencies(config, n, seed),
            sent: (0..n).map(|_| AtomicU64::new(0)).collect(),
            changing: Mutex::new(ProxyState {
                free: vec![Instant::now(); n],
                cut: BTreeMap::new(),
                random: seed,
            }),
        });
        let mut doors = vec![vec![0; n]; n];
        for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
            if from != to {
                let door = runtime.block_on(open(&links, (from, to), nodes[to]))?;
                doors[from][to] = door.port();
            }
        }
        Ok(Self {
            doors,
            links,
            _runtime: runtime,
        })
    }

    /// Bytes of the datagrams that each node has sent so far.
    pub(super) fn sent(&self) -> Vec<u64> {
        let sent = self.links.sent.iter();
        sent.map(|sent| sent.load(Ordering::Relaxed)).collect()
    }

    /// Cuts the nodes `apart` off from the others, or undoes one such cut; `one_way`: they still
    /// receive.
    pub(super) fn split(&self, apart: &[usize], one_way: bool, cut: bool) {
        let n = self.links.sent.len();
        let mut changing = self.links.changing();
        for (from, to) in (0..n).flat_map(|from| (0..n).map(move |to| (from, to))) {
            let (out, into) = (apart.contains(&from), apart.contains(&to));
            if out == into || (one_way && into) {
                continue;
            }
            let cuts = changing.cut.entry((from, to)).or_default();
            *cuts = if cut {
                *cuts + 1
            } else {
                cuts.saturating_sub(1)
            };
        }
    }
}

/// Opens the door for one node to another, which listens at `port`.
async fn open(
    links: &Arc<ProxyLinks>,
    (from, to): (usize, usize),
    port: u16,
) -> io::Result<SocketAddr> {
    let door = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
    let back = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
    let there = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let address = door.local_addr()?;
    // Address of the node that uses the door: it may be started again.
    let here = Arc::new(Mutex::new(None::<SocketAddr>));
    let user = here.clone();
    let (links_out, links_in) = (links.clone(), links.clone());
    let (door_in, back_out) = (door.clone(), back.clone());
    tokio::spawn(async move {
        let mut bytes = vec![0; LARGEST];
        loop {
            // An error is that of an earlier datagram: nobody listens there now.
            let Ok((length, by)) = door_in.recv_from(&mut bytes).await else {
                continue;
            };
            *locked(&user) = Some(by);
            links_out.pass((from, to), &bytes[..length], &back_out, there);
        }
    });
    tokio::spawn(async move {
        let mut bytes = vec![0; LARGEST];
        loop {
            let Ok((length, by)) = back.recv_from(&mut bytes).await else {
                continue;
            };
            let user = *locked(&here);
            if let Some(user) = user.filter(|_| by == there) {
                links_in.pass((to, from), &bytes[..length], &door, user);
            }
        }
    });
    Ok(address)
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds this lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProxyLinks {
    fn changing(&self) -> MutexGuard<'_, ProxyState> {
        locked(&self.changing)
    }

    /// Sends a datagram on, later, as the link is.
    fn pass(
        &self,
        (from, to): (usize, usize),
        bytes: &[u8],
        by: &Arc<UdpSocket>,
        target: SocketAddr,
    ) {
        self.sent[from].fetch_add(bytes.len() as u64, Ordering::Relaxed);
        for due in self.arrivals((from, to), bytes.len(), Instant::now()) {
            let (bytes, by) = (bytes.to_vec(), by.clone());
            tokio::spawn(async move {
                sleep_until(due).await;
                // Nobody may listen there now: then it is lost.
                let _ = by.send_to(&bytes, target).await;
            });
        }
    }

    /// Returns when copies of a datagram arrive: none if it is lost, two if it is duplicated.
    fn arrivals(&self, (from, to): (usize, usize), length: usize, now: Instant) -> Vec<Instant> {
        let mut changing = self.changing();
        if changing.cut.get(&(from, to)).is_some_and(|cuts| *cuts > 0) {
            return Vec::new();
        }
        let takes = length as f64 * 8.0 / (self.config.bandwidth_mbit * 1e6);
        let free = changing.free[from].max(now) + Duration::from_secs_f64(takes);
        if free > now + QUEUE {
            return Vec::new();
        }
        changing.free[from] = free;
        let lost = changing.uniform() < self.config.loss;
        let twice = changing.uniform() < self.config.duplication;
        let copies = if lost { 0 } else { 1 + usize::from(twice) };
        let mut due = || {
            let jitter = self.config.jitter.0.mul_f64(changing.uniform());
            free + self.latency[from][to] + jitter
        };
        (0..copies).map(|_| due()).collect()
    }
}

impl ProxyState {
    /// A pseudorandom number from 0 to 1, by SplitMix64.
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::UdpSocket;

    use agreement::Span;

    use super::*;

    fn proxy(config: LinkConfig) -> (Vec<UdpSocket>, Proxy) {
        let nodes: Vec<UdpSocket> = (0..2)
            .map(|_| {
                let node = UdpSocket::bind("127.0.0.1:0").unwrap();
                node.set_read_timeout(Some(Duration::from_millis(400)))
                    .unwrap();
                node
            })
            .collect();
        let ports: Vec<u16> = nodes
            .iter()
            .map(|node| node.local_addr().unwrap().port())
            .collect();
        let proxy = Proxy::start(&ports, &config, 1).unwrap();
        (nodes, proxy)
    }

    fn steady(millis: u64) -> LinkConfig {
        LinkConfig {
            latency: [Span::millis(millis); 2],
            jitter: Span::millis(0),
            ..LinkConfig::default()
        }
    }

    #[test]
    fn datagrams_and_answers_arrive_after_latency_and_are_counted() {
        let (nodes, proxy) = proxy(steady(60));
        let door = ("127.0.0.1", proxy.doors[0][1]);
        let began = std::time::Instant::now();
        nodes[0].send_to(b"question", door).unwrap();
        let mut bytes = [0; 16];
        let (length, by) = nodes[1].recv_from(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"question");
        assert!(began.elapsed() >= Duration::from_millis(60));
        nodes[1].send_to(b"yes", by).unwrap();
        let (length, by) = nodes[0].recv_from(&mut bytes).unwrap();
        assert_eq!(
            (&bytes[..length], by.port()),
            (&b"yes"[..], proxy.doors[0][1])
        );
        assert!(began.elapsed() >= Duration::from_millis(120));
        assert_eq!(proxy.sent(), [8, 3]);
    }

    #[test]
    fn a_cut_stops_datagrams_in_its_direction_until_it_is_mended() {
        let (nodes, proxy) = proxy(steady(1));
        let mut bytes = [0; 16];
        let mut arrives = |from: usize, to: usize| {
            let door = ("127.0.0.1", proxy.doors[from][to]);
            nodes[from].send_to(b"x", door).unwrap();
            nodes[to].recv_from(&mut bytes).is_ok()
        };
        proxy.split(&[0], true, true);
        assert!(!arrives(0, 1), "what is cut off does not send");
        assert!(arrives(1, 0), "it still receives");
        proxy.split(&[0], false, true);
        proxy.split(&[0], true, false);
        assert!(!arrives(0, 1) && !arrives(1, 0), "another cut remains");
        proxy.split(&[0], false, false);
        assert!(arrives(0, 1) && arrives(1, 0));
    }

    #[test]
    fn bandwidth_delays_a_sender_and_drops_what_would_wait_too_long() {
        let config = LinkConfig {
            bandwidth_mbit: 0.8,
            ..steady(0)
        };
        let (_nodes, proxy) = proxy(config);
        let now = Instant::now();
        let takes = |length| proxy.links.arrivals((0, 1), length, now);
        // 10,000 bytes take a tenth of a second.
        let first = takes(10_000)[0] - now;
        let second = takes(10_000)[0] - now;
        assert!((first.as_secs_f64() - 0.1).abs() < 0.01, "{first:?}");
        assert!((second.as_secs_f64() - 0.2).abs() < 0.01, "{second:?}");
        assert!(takes(100_000).is_empty());
        let other = proxy.links.arrivals((1, 0), 10_000, now)[0] - now;
        assert!(other < second, "every sender has a line of its own");
    }
}
