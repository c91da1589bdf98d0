//! `rota lab rotation --deploy --hosts`: against an sshd on loopback, where one is installed
//! (`ROTA_SSHD`, or in its usual place). Nothing is installed or changed outside of the test's folder.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::lab::deployed;
use crate::nodes::{nowhere, scenario};

/// An sshd for this user alone.
struct Sshd {
    child: Child,
    /// Configuration for `ssh`, with two names of this machine.
    config: PathBuf,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("ROTA_SSHD").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from("/usr/sbin/sshd")).filter(|path| path.exists()))
}

fn key(file: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(file)
        .status();
    assert!(made.unwrap().success());
}

/// Starts one in a folder of its own.
fn sshd(program: &Path) -> Sshd {
    let folder = nowhere("lab-ssh");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let (host, user) = (folder.join("host"), folder.join("user"));
    key(&host);
    key(&user);
    fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let there = folder.join("sshd_config");
    let lines = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
         UsePAM no\nPasswordAuthentication no\nPidFile none\nPermitRootLogin yes\nMaxStartups 100\n\
         MaxSessions 100\n",
        host.display(),
        folder.join("authorized").display(),
    );
    fs::write(&there, lines).unwrap();
    let log = fs::File::create(folder.join("log")).unwrap();
    let child = Command::new(program)
        .args(["-D", "-e", "-f"])
        .arg(&there)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let config = folder.join("ssh_config");
    let lines = format!(
        "Host one two\nHostName 127.0.0.1\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\n\
         StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n\
         ConnectionAttempts 50\n",
        user.display()
    );
    fs::write(&config, lines).unwrap();
    Sshd { child, config }
}

/// Folders that a deployment makes on a host.
fn left() -> usize {
    let names = fs::read_dir("/tmp").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("rota-lab.")).count()
}

#[test]
fn two_names_of_one_machine_are_reported_and_leave_nothing() {
    let Some(program) = program() else {
        crate::skipped::skipped("there is no sshd here");
        return;
    };
    let sshd = sshd(&program);
    let file = scenario(
        "lab-hosts",
        "name = 'lab-hosts'
rounds = 4
silos = 4
[task.table]
data = 'diabetes'
standardise = 'federation'
split = { validation = 0.0, test = 0.3 }
model = { mlp = { hidden = [32] } }
[strategy]
name = 'fedavg'
training = { epochs = 1000, batch = 8, optimiser = { name = 'sgd', rate = 0.005 } }
[protocol]
heartbeat = '300ms'
straggler-timeout = 10
[[fault]]
kill = 'lead'
round = 2
phase = 'collecting'
restart-after = '2s'
",
    );
    let before = left();
    let hosts = sshd.config.with_file_name("hosts");
    fs::write(&hosts, "one 127.0.0.1\ntwo 127.0.0.1 # the same machine\n").unwrap();
    let out = nowhere("lab-hosts-out");
    let (hosts, config) = (hosts.to_str().unwrap(), sshd.config.to_str().unwrap());
    let port = crate::nodes::base_port().to_string();
    let options = [
        "--hosts",
        hosts,
        "--ssh-config",
        config,
        "--base-port",
        &port,
        "--policies",
        "on-failure",
    ];
    let all = deployed(&file, &out, &options);
    let deployment = &all["deployment"];
    assert_eq!(deployment["machines"], 1);
    let network = deployment["network"].as_str().unwrap();
    assert!(network.contains("this is one machine, not 2"), "{network}");
    assert_eq!(deployment["bytes"], serde_json::Value::Null);
    let policy = &all["policies"][0];
    assert_eq!(policy["rounds_lost"]["mean"], 0.0, "{policy}");
    assert_eq!(policy["leads_stopped"], 1);
    assert_eq!(policy["never"], 0);
    assert!(policy["work_per_round"]["mean"].as_f64().unwrap() > 0.0);
    let lines = fs::read_to_string(out.join("runs/on-failure-0/2.jsonl")).unwrap();
    assert!(
        lines.contains("\"leaving\""),
        "the lines were not fetched to their end: {lines}"
    );
    assert_eq!(left(), before, "a folder stayed in /tmp");
}
