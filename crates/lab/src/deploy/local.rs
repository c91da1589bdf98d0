//! Nodes as processes of this machine, which reach each other through the proxy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::SystemTime;

use mesh::Transport;
use simulations::Scenario;

use super::DeployError;
use super::hosting::{Facts, Hosting, links};
use super::proxy::Proxy;
use crate::demo::{DemoMember, NodePlaces, ports};
use node::institution::cpu_seconds;

/// The processes of one run, on any network of this machine.
pub(super) struct Processes {
    program: PathBuf,
    configs: Vec<PathBuf>,
}

impl Processes {
    pub(super) fn new(program: &Path) -> Self {
        Self {
            program: program.into(),
            configs: Vec::new(),
        }
    }

    pub(super) fn install(&mut self, members: &[DemoMember]) {
        self.configs = members.iter().map(|member| member.config.clone()).collect();
    }

    /// `rota run` for a node; `before` are a program and arguments to run it with.
    pub(super) fn command(&self, node: usize, lost: bool, before: &[&str]) -> Command {
        let mut words = before.iter().map(std::ffi::OsStr::new);
        let mut command = match words.next() {
            Some(program) => {
                let mut command = Command::new(program);
                command.args(words).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .args(["run", "--json", "--config"])
            .arg(&self.configs[node])
            .env_remove("RUST_LOG");
        if lost {
            command.arg("--journal-lost");
        }
        command
    }

    pub(super) fn forget(&self, node: usize) -> Result<(), DeployError> {
        let state = self.configs[node].with_file_name("state");
        fs::remove_dir_all(&state).map_err(|reason| DeployError::Write {
            path: state,
            reason,
        })
    }
}

/// CPU seconds of a process, with its threads.
pub(super) fn cpu(child: &Child) -> Option<f64> {
    cpu_seconds(&fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?)
}

/// Asks a process to end, as a service manager does.
pub(super) fn terminate(child: &Child) {
    let id = i32::try_from(child.id()).ok();
    #[cfg(unix)]
    if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
        // It may have ended already.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
}

/// Nodes over 127.0.0.1.
pub(super) struct LoopbackNodes {
    processes: Processes,
    places: NodePlaces,
    proxy: Proxy,
    words: String,
}

impl LoopbackNodes {
    pub(super) fn new(program: &Path, scenario: &Scenario, n: usize) -> Result<Self, DeployError> {
        let own = ports(None, n)?;
        let address = |port: u16| Transport::Quic.addresses("127.0.0.1", port);
        let proxy = Proxy::start(&own, &scenario.network, scenario.seed);
        let proxy = proxy.map_err(|reason| DeployError::Program {
            program: "the proxy between nodes".into(),
            why: reason.to_string(),
        })?;
        let doors = proxy.doors.iter();
        let reach = doors.map(|doors| doors.iter().map(|&port| address(port)).collect());
        let places = NodePlaces {
            listen: own.iter().map(|&port| address(port)).collect(),
            reach: reach.collect(),
        };
        Ok(Self {
            processes: Processes::new(program),
            places,
            proxy,
            words: links(&scenario.network),
        })
    }
}

impl Hosting for LoopbackNodes {
    fn places(&self) -> &NodePlaces {
        &self.places
    }

    fn install(&mut self, _: &Path, members: &[DemoMember]) -> Result<(), DeployError> {
        self.processes.install(members);
        Ok(())
    }

    fn command(&self, node: usize, lost: bool) -> Command {
        self.processes.command(node, lost, &[])
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
        Some(self.proxy.sent())
    }

    fn split(&mut self, apart: &[usize], one_way: bool, cut: bool) -> Result<(), DeployError> {
        self.proxy.split(apart, one_way, cut);
        Ok(())
    }

    fn ahead(&self, _: usize) -> f64 {
        0.0
    }

    fn fetch(&mut self, _: usize, _: &Path, _: &Path) -> Result<(), DeployError> {
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            network: format!(
                "processes on one machine over loopback; a proxy in this program gives every link its \
                 {}",
                self.words
            ),
            machines: 1,
            bytes: Some("Bytes of the datagrams that nodes sent, QUIC included.".into()),
            notes: Vec::new(),
        }
    }
}
