//! Nodes on machines that `ssh` reaches, installed as a user would: the program and each node's files
//! are copied there, the nodes run there, and everything is removed at the end.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use mesh::Transport;

use super::hosting::{Facts, Hosting};
use super::{DeployError, DeploymentPlan, output};
use crate::demo::{DemoMember, NodePlaces};

/// A machine to run nodes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// What `ssh` calls it: USER@HOST, or a name in its configuration.
    pub destination: String,
    /// The IP address or name at which the other nodes reach it.
    pub address: String,
}

/// Why a list of hosts cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// A line that is none.
    #[error(
        "line {line}: expected DESTINATION, or DESTINATION and ADDRESS, such as `rota@10.0.0.7` or \
         `north 10.0.0.7`, found {found:?}"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Text of the line.
        found: String,
    },
    /// No lines.
    #[error("names no host: expected a line `DESTINATION ADDRESS` for each")]
    Empty,
}

/// The hosts in the text of a file: a line for each, with what `ssh` calls it and the address at which
/// the other nodes reach it, which may be left out if it is the same. `#` begins a comment.
///
/// # Errors
/// [`HostsError`]: a line that is none, or no lines.
pub fn parse(text: &str) -> Result<Vec<Host>, HostsError> {
    let mut hosts = Vec::new();
    for (line, found) in (1..).zip(text.lines()) {
        let words: Vec<&str> = found
            .split('#')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .collect();
        let host = match words[..] {
            [] => continue,
            // What begins with a dash would be an option of ssh.
            [name, ..] if name.starts_with('-') => None,
            [name] => Some((name, name.rsplit_once('@').map_or(name, |(_, host)| host))),
            [name, address] => Some((name, address)),
            _ => None,
        };
        let (destination, address) = host.ok_or_else(|| HostsError::Line {
            line,
            found: found.trim().to_owned(),
        })?;
        hosts.push(Host {
            destination: destination.into(),
            address: address.into(),
        });
    }
    if hosts.is_empty() {
        Err(HostsError::Empty)
    } else {
        Ok(hosts)
    }
}

/// A host with the program on it.
struct Machine {
    host: Host,
    /// The folder of everything that is there.
    folder: String,
    /// Identifies the machine, whatever it is called.
    id: String,
    /// Seconds by which its clock is ahead, if its `date` says fractions of seconds.
    ahead: Option<f64>,
}

/// The connections to all hosts. What was copied there is removed when this is dropped.
struct HostConnections {
    config: Option<PathBuf>,
    /// Sockets of the connections, which are kept open.
    sockets: tempfile::TempDir,
    machines: Vec<Machine>,
}

impl HostConnections {
    /// `ssh` to a destination.
    fn ssh(&self, destination: &str) -> Command {
        let mut command = Command::new("ssh");
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        let socket = format!("ControlPath={}/%C", self.sockets.path().display());
        let options = [
            "BatchMode=yes",
            "ConnectTimeout=10",
            "ControlMaster=auto",
            "ControlPersist=60",
            "ServerAliveInterval=5",
            &socket,
        ];
        for option in options {
            command.args(["-o", option]);
        }
        command.arg(destination);
        command
    }

    /// Runs a line of shell there.
    fn run(&self, destination: &str, line: &str) -> Result<String, DeployError> {
        output(self.ssh(destination).arg(line))
    }

    /// Copies the output of a local program into a line of shell there.
    fn pipe(&self, mut from: Command, to: &str, line: &str) -> Result<(), DeployError> {
        let failed = |program: &str, why: String| DeployError::Program {
            program: program.into(),
            why,
        };
        let started = from.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut started = started.map_err(|error| failed("tar", error.to_string()))?;
        let bytes = started.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let copied = self.ssh(to).arg(line).stdin(bytes).output();
        let ended = started.wait();
        let copied = copied.map_err(|error| failed("ssh", error.to_string()))?;
        let sent = ended.is_ok_and(|status| status.success());
        if copied.status.success() && sent {
            Ok(())
        } else {
            let why = String::from_utf8_lossy(&copied.stderr).trim().to_owned();
            Err(failed(&format!("ssh {to} {line}"), why))
        }
    }

    /// Copies the program to a host, and looks at its clock.
    fn prepare(&self, host: &Host, program: &Path) -> Result<Machine, DeployError> {
        let to = &host.destination;
        let line = "mktemp -d /tmp/rota-lab.XXXXXX && \
                    (cat /proc/sys/kernel/random/boot_id 2>/dev/null || hostname)";
        let said = self.run(to, line)?;
        let mut lines = said.lines().map(str::to_owned);
        let (Some(folder), Some(id)) = (lines.next(), lines.next()) else {
            return Err(DeployError::Program {
                program: format!("ssh {to}"),
                why: format!("expected a folder and an id of the machine, found {said:?}"),
            });
        };
        let machine = |ahead| Machine {
            host: host.clone(),
            folder: folder.clone(),
            id: id.clone(),
            ahead,
        };
        let copied = || -> Result<(), DeployError> {
            let mut cat = Command::new("cat");
            cat.arg(program);
            let line = format!("cat > {folder}/rota && chmod 700 {folder}/rota");
            self.pipe(cat, to, &line)?;
            self.run(to, &format!("{folder}/rota --version")).map(drop)
        };
        if let Err(error) = copied() {
            self.clear(&machine(None));
            return Err(error);
        }
        let before = SystemTime::now();
        let there = self.run(to, "date +%s.%N")?;
        let took = before.elapsed().unwrap_or_default();
        let here = (before + took / 2).duration_since(SystemTime::UNIX_EPOCH);
        let here = here.map_or(0.0, |here| here.as_secs_f64());
        let there = there.trim().parse::<f64>().ok();
        Ok(machine(there.map(|there| there - here)))
    }

    /// Ends all nodes on a host, and removes everything that was copied there.
    fn clear(&self, machine: &Machine) {
        let folder = &machine.folder;
        let line = format!(
            "for pid in {folder}/run/*/pid; do [ -f \"$pid\" ] && kill -9 $(cat \"$pid\") \
             2>/dev/null; done; rm -rf {folder}"
        );
        if let Err(error) = self.run(&machine.host.destination, &line) {
            tracing::warn!(
                "{folder} on {} was not removed: {error}",
                machine.host.destination
            );
        }
    }
}

impl Drop for HostConnections {
    fn drop(&mut self) {
        for machine in &self.machines {
            self.clear(machine);
            // The connection ends by itself after a while, if this fails.
            let mut end = self.ssh(&machine.host.destination);
            let _ = end.args(["-O", "exit"]).stderr(Stdio::null()).status();
        }
    }
}

/// Hosts that are ready to run nodes.
pub(super) struct Remote {
    links: Arc<HostConnections>,
    nodes: usize,
    base_port: u16,
}

impl Remote {
    /// Copies the program to all hosts.
    pub(super) fn new(plan: &DeploymentPlan<'_>, nodes: usize) -> Result<Self, DeployError> {
        let sockets = tempfile::Builder::new().prefix("rota-ssh-").tempdir();
        let sockets = sockets.map_err(|reason| DeployError::Write {
            path: std::env::temp_dir(),
            reason,
        })?;
        let mut links = HostConnections {
            config: plan.ssh_config.clone(),
            sockets,
            machines: Vec::new(),
        };
        for host in &plan.hosts {
            let machine = links.prepare(host, &plan.program)?;
            links.machines.push(machine);
        }
        Ok(Self {
            links: Arc::new(links),
            nodes,
            base_port: plan.base_port,
        })
    }

    /// The environment of one run. Node i is on host i, modulo the number of hosts.
    pub(super) fn ground(&self) -> Result<Hosts, DeployError> {
        let machines = &self.links.machines;
        let port = |node: usize| u16::try_from(usize::from(self.base_port) + node);
        let mut places = NodePlaces {
            listen: Vec::new(),
            reach: Vec::new(),
        };
        let mut there = Vec::new();
        for node in 0..self.nodes {
            let port = port(node).map_err(|_| {
                let most = usize::from(u16::MAX) - self.nodes;
                DeployError::Refused(format!("--base-port must be at most {most}"))
            })?;
            let address = &machines[node % machines.len()].host.address;
            places
                .listen
                .push(Transport::Quic.addresses("0.0.0.0", port));
            there.push(Transport::Quic.addresses(address, port));
        }
        places.reach = vec![there; self.nodes];
        Ok(Hosts {
            links: self.links.clone(),
            places,
            folders: Vec::new(),
        })
    }

    /// The hosts in words.
    pub(super) fn words(&self) -> String {
        words(&self.links.machines)
    }
}

/// Returns the number of machines that the hosts are, in words.
fn words(machines: &[Machine]) -> String {
    let names: Vec<&str> = machines
        .iter()
        .map(|machine| machine.host.destination.as_str())
        .collect();
    let names = names.join(", ");
    match (different(machines), machines.len()) {
        (1, 1) => format!("processes on one machine, which ssh reaches as {names}"),
        (1, hosts) => format!(
            "processes on one machine, which ssh reaches under {hosts} names ({names}): this is one \
             machine, not {hosts}"
        ),
        (several, _) => format!("processes on {several} machines, which ssh reaches as {names}"),
    }
}

/// Number of different machines.
fn different(machines: &[Machine]) -> usize {
    let ids: BTreeSet<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
    ids.len()
}

/// The nodes of one run on these hosts.
pub(super) struct Hosts {
    links: Arc<HostConnections>,
    places: NodePlaces,
    /// The folder of each node on its host.
    folders: Vec<String>,
}

impl Hosts {
    fn machine(&self, node: usize) -> &Machine {
        let machines = &self.links.machines;
        &machines[node % machines.len()]
    }

    /// Runs a line of shell in the folder of a node.
    fn there(&self, node: usize, line: &str) -> Result<String, DeployError> {
        let line = format!("cd '{}' && {line}", self.folders[node]);
        self.links.run(&self.machine(node).host.destination, &line)
    }
}

impl Hosting for Hosts {
    fn places(&self) -> &NodePlaces {
        &self.places
    }

    fn install(&mut self, files: &Path, members: &[DemoMember]) -> Result<(), DeployError> {
        for machine in &self.links.machines {
            let run = format!("{}/run", machine.folder);
            let line = format!("rm -rf {run} && mkdir {run}");
            self.links.run(&machine.host.destination, &line)?;
        }
        for (node, member) in members.iter().enumerate() {
            let text = fs::read_to_string(&member.config).unwrap_or_default();
            if text.lines().any(|line| line.starts_with("folder = ")) {
                let what = "the scenario's data are in a folder of this machine, which the hosts do \
                            not have: use data whose rows are written into files, such as diabetes \
                            or synthetic";
                return Err(DeployError::Refused(what.into()));
            }
            let folder = member.config.parent().and_then(Path::file_name);
            let folder = folder.map(|name| name.to_string_lossy().into_owned());
            let folder = folder.unwrap_or_default();
            let machine = self.machine(node);
            let run = format!("{}/run", machine.folder);
            let mut tar = Command::new("tar");
            tar.arg("-C")
                .arg(files)
                .args(["-cf", "-", "federation.toml", &folder]);
            let line = format!("tar -C {run} -xf -");
            self.links.pipe(tar, &machine.host.destination, &line)?;
            self.folders.push(format!("{run}/{folder}"));
        }
        Ok(())
    }

    fn command(&self, node: usize, lost: bool) -> Command {
        let machine = self.machine(node);
        let lost = if lost { " --journal-lost" } else { "" };
        // A line on standard input kills the node, without the time that another connection takes.
        let line = format!(
            "cd '{}' || exit 1; exec 3<&0; \
             {{ read -r word && kill -9 $(cat pid); }} <&3 > /dev/null 2>&1 & \
             sh -c 'echo $$ > pid; exec {}/rota run --json --config node.toml{lost} \
             2>> log < /dev/null' | tee -a lines.jsonl",
            self.folders[node], machine.folder
        );
        let mut command = self.links.ssh(&machine.host.destination);
        command.arg(line);
        command
    }

    fn stdin(&self) -> Stdio {
        Stdio::piped()
    }

    fn kill(&mut self, node: usize, child: &mut Child) -> SystemTime {
        let told = child.stdin.take();
        let told = told.is_some_and(|mut input| input.write_all(b"kill\n").is_ok());
        let at = SystemTime::now();
        // The same again over another connection, in case that the first one is broken.
        let again = self.there(node, "kill -9 $(cat pid) 2> /dev/null; true");
        if let Err(error) = again
            && !told
        {
            tracing::warn!("{error}");
            // The node may run on; its lines are not read any more.
            let _ = child.kill();
        }
        at
    }

    fn terminate(&mut self, node: usize, _: &Child) {
        if let Err(error) = self.there(node, "kill -TERM $(cat pid)") {
            tracing::warn!("{error}");
        }
    }

    fn forget(&mut self, node: usize) -> Result<(), DeployError> {
        self.there(node, "rm -rf state").map(drop)
    }

    fn cpu(&self, _: usize, _: &Child) -> Option<f64> {
        None
    }

    fn sent(&self) -> Option<Vec<u64>> {
        None
    }

    fn split(&mut self, _: &[usize], _: bool, _: bool) -> Result<(), DeployError> {
        Ok(())
    }

    fn ahead(&self, node: usize) -> f64 {
        self.machine(node).ahead.unwrap_or(0.0)
    }

    fn fetch(&mut self, node: usize, lines: &Path, log: &Path) -> Result<(), DeployError> {
        for (name, file) in [("lines.jsonl", lines), ("log", log)] {
            let text = self.there(node, &format!("cat {name}"))?;
            fs::write(file, text).map_err(|reason| DeployError::Write {
                path: file.into(),
                reason,
            })?;
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        let machines = &self.links.machines;
        let mut notes = vec![
            "Bytes are not counted on other machines. CPU time is what the nodes say with every \
             final round."
                .to_owned(),
        ];
        let unknown: Vec<&str> = machines
            .iter()
            .filter(|machine| machine.ahead.is_none())
            .map(|machine| machine.host.destination.as_str())
            .collect();
        if !unknown.is_empty() {
            let names = unknown.join(", ");
            notes.push(format!(
                "The clocks of {names} could not be compared with this one."
            ));
        }
        Facts {
            network: format!("{}; the links are as they are", words(machines)),
            machines: different(machines),
            bytes: None,
            notes,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn host(destination: &str, address: &str) -> Host {
        Host {
            destination: destination.into(),
            address: address.into(),
        }
    }

    #[test]
    fn a_line_names_a_host_and_perhaps_its_address() {
        let text = "# three\nrota@10.0.0.7\n\nnorth 10.0.0.8   # by its alias\nsouth.example.org\n";
        let expected = [
            host("rota@10.0.0.7", "10.0.0.7"),
            host("north", "10.0.0.8"),
            host("south.example.org", "south.example.org"),
        ];
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("# none\n"), Err(HostsError::Empty));
        let wrong = parse("north\n10.0.0.7 4001 22\n").unwrap_err().to_string();
        assert!(
            wrong.contains("line 2") && wrong.contains("10.0.0.7 4001 22"),
            "{wrong}"
        );
        assert!(parse("-oProxyCommand=x\n").is_err(), "no options of ssh");
    }

    #[test]
    fn one_machine_under_several_names_is_one_machine() {
        let machine = |name: &str, id: &str| Machine {
            host: host(name, "127.0.0.1"),
            folder: "/tmp/x".into(),
            id: id.into(),
            ahead: None,
        };
        let same = [machine("a", "1"), machine("b", "1")];
        assert_eq!(different(&same), 1);
        assert!(words(&same).ends_with("this is one machine, not 2"));
        let two = [machine("a", "1"), machine("b", "2")];
        assert_eq!(different(&two), 2);
        assert!(words(&two).contains("2 machines"));
    }
}
