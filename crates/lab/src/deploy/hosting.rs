//! Where the nodes of a deployment run, and how they reach each other.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use agreement::Span;
use simulations::network::LinkConfig;

use super::DeployError;
use crate::demo::{DemoMember, NodePlaces};

/// How nodes on this machine reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkKind {
    /// Over 127.0.0.1, through a proxy in this program.
    Loopback,
    /// Each in a network namespace of its own.
    Namespaces,
}

/// What is said of a ground in the report.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// The network, in words.
    pub(super) network: String,
    /// Different machines.
    pub(super) machines: usize,
    /// What the bytes count.
    pub(super) bytes: Option<String>,
    /// What could not be done or measured.
    pub(super) notes: Vec<String>,
}

/// The environment of the nodes of one run. What it made is removed when it is dropped.
pub(super) trait Hosting {
    /// Returns where the nodes listen, and reach each other.
    fn places(&self) -> &NodePlaces;
    /// Brings the files of all nodes to where they run.
    fn install(&mut self, files: &Path, members: &[DemoMember]) -> Result<(), DeployError>;
    /// The command that runs a node, whose JSON lines are its standard output; `lost`: its journal is
    /// lost.
    fn command(&self, node: usize, lost: bool) -> Command;
    /// Standard input of that command.
    fn stdin(&self) -> Stdio {
        Stdio::null()
    }
    /// Ends a node at once, as a power cut does. Returns when that was.
    fn kill(&mut self, node: usize, child: &mut Child) -> SystemTime;
    /// Asks a node to end.
    fn terminate(&mut self, node: usize, child: &Child);
    /// Removes the state folder of a node that was killed.
    fn forget(&mut self, node: usize) -> Result<(), DeployError>;
    /// CPU seconds that the process of a node has used; `None` if they are known from its lines alone.
    fn cpu(&self, node: usize, child: &Child) -> Option<f64>;
    /// Bytes that every node has sent so far; `None` if nobody counts them.
    fn sent(&self) -> Option<Vec<u64>>;
    /// Cuts the nodes `apart` off from the others, or undoes that.
    fn split(&mut self, apart: &[usize], one_way: bool, cut: bool) -> Result<(), DeployError>;
    /// Seconds by which the clock of a node's machine is ahead of this one's.
    fn ahead(&self, node: usize) -> f64;
    /// Fetches what nodes wrote elsewhere: into `lines` and `log`.
    fn fetch(&mut self, node: usize, lines: &Path, log: &Path) -> Result<(), DeployError>;
    /// Returns what is said of it.
    fn facts(&self) -> Facts;
}

/// The links of a scenario in words.
pub(super) fn links(config: &LinkConfig) -> String {
    let [least, most] = config.latency;
    let millis = |span: Span| format!("{}", span.0.as_secs_f64() * 1e3);
    let mut words = if least == most {
        format!("latency {} ms", millis(least))
    } else {
        format!("latency {} to {} ms", millis(least), millis(most))
    };
    if !config.jitter.0.is_zero() {
        words.push_str(&format!(
            " and up to {} ms of jitter",
            millis(config.jitter)
        ));
    }
    words.push_str(&format!(
        ", {} Mbit/s for each sender",
        config.bandwidth_mbit
    ));
    for (share, what) in [(config.loss, "lost"), (config.duplication, "duplicated")] {
        if share > 0.0 {
            words.push_str(&format!(", {} % of packets {what}", 100.0 * share));
        }
    }
    words
}
