//! Nodes on this machine, each in a network namespace of its own, with links shaped by `tc`.
//!
//! A namespace for the hub holds two bridges; every node's interface is connected to the first one. A
//! network split moves interfaces to the second. Nothing outside these namespaces is changed, and they
//! are deleted at the end.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use mesh::Transport;
use simulations::Scenario;
use simulations::network::{LinkConfig, latencies};

use super::hosting::{Facts, Hosting, links};
use super::local::{Processes, cpu, terminate};
use super::{DeployError, output};
use crate::demo::{DemoMember, NodePlaces};

/// The port of every node.
const PORT: u16 = 4001;
/// Bytes that may leave at once where the bandwidth alone is limited.
const BURST: u32 = 128 * 1024;
/// Number of the next group of namespaces of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Abilities of `tc` on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shaping {
    /// Delay, loss and duplication (`netem`).
    delays: bool,
    /// Bandwidth (`tbf`).
    limits: bool,
}

impl Shaping {
    /// Tries it in a namespace.
    ///
    /// # Errors
    /// Reason for which this machine makes no namespaces, as text.
    pub(super) fn probe() -> Result<Self, String> {
        let hub = name("probe");
        let made = ip(&["netns", "add", &hub]);
        made.map_err(|error| format!("no network namespace can be made ({error})"))?;
        let _end = Deleted(vec![hub.clone()]);
        let pair = [
            "-n", &hub, "link", "add", "v0", "type", "veth", "peer", "name", "v1",
        ];
        let bridge = ["-n", &hub, "link", "add", "b0", "type", "bridge"];
        for words in [&pair[..], &bridge[..]] {
            ip(words).map_err(|error| format!("namespaces cannot be connected ({error})"))?;
        }
        let accepts = |words: &[&str]| tc(&hub, "v0", words).is_ok();
        Ok(Self {
            delays: accepts(&["netem", "delay", "1ms"]),
            limits: accepts(&["tbf", "rate", "1mbit", "burst", "32kbit", "latency", "50ms"]),
        })
    }

    /// Returns what these links need and `tc` cannot do here, in words.
    pub(super) fn lacks(self, config: &LinkConfig) -> Vec<&'static str> {
        let delayed = !config.latency[1].0.is_zero() || !config.jitter.0.is_zero();
        let needs = [
            (delayed, self.delays, "delay"),
            (config.loss > 0.0, self.delays, "loss"),
            (config.duplication > 0.0, self.delays, "duplication"),
            (true, self.delays || self.limits, "bandwidth"),
        ];
        let lacks = needs.iter().filter(|(needed, can, _)| *needed && !can);
        lacks.map(|(.., what)| *what).collect()
    }
}

/// A name for a namespace that no other run uses.
fn name(what: &str) -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("rota-lab-{}-{number}-{what}", std::process::id())
}

fn ip(words: &[&str]) -> Result<String, DeployError> {
    output(Command::new("ip").args(words))
}

/// Sets how an interface in a namespace sends.
fn tc(namespace: &str, interface: &str, how: &[&str]) -> Result<String, DeployError> {
    let mut command = Command::new("tc");
    command.args([
        "-n", namespace, "qdisc", "replace", "dev", interface, "root",
    ]);
    output(command.args(how))
}

/// Namespaces that are deleted when this is dropped.
struct Deleted(Vec<String>);

impl Drop for Deleted {
    fn drop(&mut self) {
        for name in &self.0 {
            if let Err(error) = ip(&["netns", "delete", name]) {
                tracing::warn!("the network namespace {name} was not deleted: {error}");
            }
        }
    }
}

/// The namespaces of one run.
pub(super) struct Namespaces {
    processes: Processes,
    places: NodePlaces,
    hub: String,
    /// By node.
    names: Vec<String>,
    /// By how many faults each node is cut off.
    cut: Vec<usize>,
    words: String,
    lacks: Vec<&'static str>,
    _end: Deleted,
}

impl Namespaces {
    pub(super) fn new(
        program: &Path,
        shaping: Shaping,
        scenario: &Scenario,
        n: usize,
    ) -> Result<Self, DeployError> {
        let hub = name("hub");
        let mut end = Deleted(Vec::new());
        let mut make = |name: &str| -> Result<(), DeployError> {
            ip(&["netns", "add", name])?;
            end.0.push(name.to_owned());
            ip(&["-n", name, "link", "set", "lo", "up"]).map(drop)
        };
        make(&hub)?;
        let names: Vec<String> = (0..n).map(|node| name(&node.to_string())).collect();
        for bridge in ["together", "apart"] {
            ip(&["-n", &hub, "link", "add", bridge, "type", "bridge"])?;
            ip(&["-n", &hub, "link", "set", bridge, "up"])?;
        }
        let latency = latencies(&scenario.network, n, scenario.seed);
        for (node, own) in names.iter().enumerate() {
            make(own)?;
            let port = format!("v{node}");
            ip(&[
                "-n", &hub, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns",
                own,
            ])?;
            ip(&["-n", &hub, "link", "set", &port, "master", "together", "up"])?;
            let address = format!("{}/24", address(node));
            ip(&["-n", own, "addr", "add", &address, "dev", "eth0"])?;
            ip(&["-n", own, "link", "set", "eth0", "up"])?;
            let others = latency[node].iter().sum::<Duration>() / (n as u32 - 1).max(1);
            if let Some(words) = sending(shaping, &scenario.network, others) {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                tc(own, "eth0", &words)?;
            }
        }
        let listen = (0..n).map(|node| Transport::Quic.addresses(&address(node), PORT));
        Ok(Self {
            processes: Processes::new(program),
            places: NodePlaces::open(listen.collect()),
            hub,
            names,
            cut: vec![0; n],
            words: links(&scenario.network),
            lacks: shaping.lacks(&scenario.network),
            _end: end,
        })
    }
}

/// The address of a node.
fn address(node: usize) -> String {
    format!("10.77.0.{}", node + 1)
}

/// The words of `tc` for a node that sends with this latency.
fn sending(shaping: Shaping, config: &LinkConfig, latency: Duration) -> Option<Vec<String>> {
    let rate = format!("{}kbit", (config.bandwidth_mbit * 1000.0).ceil() as u64);
    let micros = |span: Duration| format!("{}us", span.as_micros());
    if shaping.delays {
        let jitter = config.jitter.0 / 2;
        let percent = |share: f64| format!("{}%", 100.0 * share);
        let words = [
            "netem",
            "limit",
            "10000",
            "delay",
            // `tc` draws around the delay, the simulation adds to it.
            &micros(latency + jitter),
            &micros(jitter),
            "loss",
            &percent(config.loss),
            "duplicate",
            &percent(config.duplication),
            "rate",
            &rate,
        ];
        return Some(words.map(str::to_owned).to_vec());
    }
    let burst = BURST.to_string();
    let words = ["tbf", "rate", &rate, "burst", &burst, "latency", "1s"];
    shaping.limits.then(|| words.map(str::to_owned).to_vec())
}

impl Hosting for Namespaces {
    fn places(&self) -> &NodePlaces {
        &self.places
    }

    fn install(&mut self, _: &Path, members: &[DemoMember]) -> Result<(), DeployError> {
        self.processes.install(members);
        Ok(())
    }

    fn command(&self, node: usize, lost: bool) -> Command {
        // `ip` becomes the node, so its process is the node's.
        let before = ["ip", "netns", "exec", &self.names[node]];
        self.processes.command(node, lost, &before)
    }

    fn kill(&mut self, _: usize, child: &mut Child) -> SystemTime {
        // It may have ended already.
        let _ = child.kill();
        SystemTime::now()
    }

    fn terminate(&mut self, _: usize, child: &Child) {
        terminate(child);
    }

    fn forget(&mut self, node: usize) -> Result<(), DeployError> {
        self.processes.forget(node)
    }

    fn cpu(&self, _: usize, child: &Child) -> Option<f64> {
        cpu(child)
    }

    fn sent(&self) -> Option<Vec<u64>> {
        let said = ip(&["-n", &self.hub, "-j", "-s", "link", "show"]).ok()?;
        let links: Vec<serde_json::Value> = serde_json::from_str(&said).ok()?;
        // The hub receives the bytes that the node has sent.
        let received = |node: usize| {
            let name = format!("v{node}");
            let link = links.iter().find(|link| link["ifname"] == *name)?;
            link["stats64"]["rx"]["bytes"].as_u64()
        };
        (0..self.names.len()).map(received).collect()
    }

    fn split(&mut self, apart: &[usize], _: bool, cut: bool) -> Result<(), DeployError> {
        for &node in apart {
            self.cut[node] = if cut {
                self.cut[node] + 1
            } else {
                self.cut[node].saturating_sub(1)
            };
            let bridge = if self.cut[node] > 0 {
                "apart"
            } else {
                "together"
            };
            let port = format!("v{node}");
            ip(&["-n", &self.hub, "link", "set", &port, "master", bridge])?;
        }
        Ok(())
    }

    fn ahead(&self, _: usize) -> f64 {
        0.0
    }

    fn fetch(&mut self, _: usize, _: &Path, _: &Path) -> Result<(), DeployError> {
        Ok(())
    }

    fn facts(&self) -> Facts {
        let lacks = self.lacks.join(", ");
        let shaped = if self.lacks.is_empty() {
            format!(
                "tc gives each interface {} (the mean over its links)",
                self.words
            )
        } else {
            "tc limits the bandwidth of each interface".into()
        };
        let note = format!("The links have no {lacks}: tc cannot do that on this machine.");
        Facts {
            network: format!(
                "processes on one machine, each in a network namespace of its own; {shaped}"
            ),
            machines: 1,
            bytes: Some("Bytes that the nodes' interfaces sent, headers included.".into()),
            notes: (!self.lacks.is_empty())
                .then_some(note)
                .into_iter()
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use agreement::Span;

    use super::*;

    #[test]
    fn what_tc_cannot_do_is_named_and_the_rest_is_done() {
        let all = Shaping {
            delays: true,
            limits: true,
        };
        let config = LinkConfig {
            loss: 0.01,
            bandwidth_mbit: 12.5,
            ..LinkConfig::default()
        };
        assert!(all.lacks(&config).is_empty());
        let words = sending(all, &config, Duration::from_millis(20)).unwrap_or_default();
        let words = words.join(" ");
        let expected = "netem limit 10000 delay 21500us 1500us loss 1% duplicate 0% rate 12500kbit";
        assert_eq!(words, expected);
        let rate = Shaping {
            delays: false,
            limits: true,
        };
        assert_eq!(rate.lacks(&config), ["delay", "loss"]);
        let words = sending(rate, &config, Duration::ZERO).unwrap_or_default();
        assert_eq!(
            words.join(" "),
            "tbf rate 12500kbit burst 131072 latency 1s"
        );
        let flat = LinkConfig {
            latency: [Span::millis(0); 2],
            jitter: Span::millis(0),
            ..LinkConfig::default()
        };
        assert!(rate.lacks(&flat).is_empty());
    }
}
