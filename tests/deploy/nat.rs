//! Federations with members behind NAT: every node in a network namespace of its own, those behind NAT
//! with a router in between that lets no connection in.
//!
//! The routers translate addresses with `nft` or `iptables`. Where neither is installed, the members
//! behind NAT have no route to each other instead. Where no namespaces can be made, the tests are
//! skipped with a message.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::nodes::{Demo, TestNodes, inside, output, rota, scenario, text};

/// Time within which everything that is expected must occur.
const BOUND: Duration = Duration::from_secs(90);

/// Rule by which a router gives ports to connections from inside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// Another one for every address outside: nobody can guess it.
    Random,
    /// The one that the node has itself, to all addresses outside.
    Kept,
}

/// Runs a command to its end.
fn run(words: &[&str]) -> Result<(), String> {
    let done = Command::new(words[0]).args(&words[1..]).output();
    let done = done.map_err(|error| format!("{}: {error}", words[0]))?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("{}: {}", words.join(" "), text(&done.stderr)))
    }
}

/// The namespaces of one test. They are deleted when this is dropped.
struct Net {
    made: Vec<String>,
    /// By node.
    names: Vec<String>,
    /// True if routers translate addresses.
    translates: bool,
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.made {
            let _ = run(&["ip", "netns", "delete", name]);
        }
    }
}

impl Net {
    /// With the first `open` of `n` nodes in public, and each of the others behind a router of its own.
    fn new(what: &str, open: usize, n: usize, ports: Ports) -> Result<Self, String> {
        let of = |part: &str| format!("rota-nat-{}-{what}-{part}", std::process::id());
        let mut net = Self {
            made: Vec::new(),
            names: (0..n).map(|node| of(&node.to_string())).collect(),
            translates: true,
        };
        let public = of("public");
        net.make(&public)?;
        let bridge = ["ip", "-n", &public, "link", "add", "wan", "type", "bridge"];
        run(&bridge)?;
        run(&["ip", "-n", &public, "link", "set", "wan", "up"])?;
        for node in 0..n {
            let own = net.names[node].clone();
            net.make(&own)?;
            if node < open {
                net.plug(&public, &own, node)?;
                continue;
            }
            let router = of(&format!("router{node}"));
            net.make(&router)?;
            net.plug(&public, &router, node)?;
            if translate(&router, ports).is_err() {
                net.translates = false;
            }
        }
        if !net.translates {
            // Without routers: in public, but without a way to each other.
            for node in open..n {
                let own = net.names[node].clone();
                net.plug(&public, &own, 100 + node)?;
                for other in (open..n).filter(|other| *other != node) {
                    let to = place(100 + other);
                    run(&["ip", "-n", &own, "route", "add", "blackhole", &to])?;
                }
            }
            return Ok(net);
        }
        for node in open..n {
            let (own, router) = (&net.names[node], of(&format!("router{node}")));
            let pair = [
                "ip", "-n", &router, "link", "add", "inside", "type", "veth", "peer", "name",
                "eth0", "netns", own,
            ];
            run(&pair)?;
            let (gateway, inner) = (format!("10.79.{node}.1"), format!("10.79.{node}.2/24"));
            let outer = format!("{gateway}/24");
            run(&["ip", "-n", &router, "addr", "add", &outer, "dev", "inside"])?;
            run(&["ip", "-n", &router, "link", "set", "inside", "up"])?;
            run(&["ip", "-n", own, "addr", "add", &inner, "dev", "eth0"])?;
            run(&["ip", "-n", own, "link", "set", "eth0", "up"])?;
            let route = ["ip", "-n", own, "route", "add", "default", "via", &gateway];
            run(&route)?;
            let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
            run(&["ip", "netns", "exec", &router, "sh", "-c", forward])?;
        }
        Ok(net)
    }

    fn make(&mut self, name: &str) -> Result<(), String> {
        run(&["ip", "netns", "add", name])?;
        self.made.push(name.to_owned());
        run(&["ip", "-n", name, "link", "set", "lo", "up"])
    }

    /// Connects a namespace with the public network.
    fn plug(&self, public: &str, name: &str, at: usize) -> Result<(), String> {
        let port = format!("v{at}");
        run(&[
            "ip", "-n", public, "link", "add", &port, "type", "veth", "peer", "name", "outside",
            "netns", name,
        ])?;
        run(&[
            "ip", "-n", public, "link", "set", &port, "master", "wan", "up",
        ])?;
        let address = format!("{}/24", place(at));
        run(&["ip", "-n", name, "addr", "add", &address, "dev", "outside"])?;
        run(&["ip", "-n", name, "link", "set", "outside", "up"])
    }

    fn within(&self, node: usize) -> Vec<String> {
        let words = ["ip", "netns", "exec", &self.names[node]];
        words.map(str::to_owned).to_vec()
    }
}

/// A public address.
fn place(at: usize) -> String {
    format!("10.78.0.{}", at + 1)
}

/// Makes a router give its own address to what goes outside, and drop what comes in unasked.
fn translate(router: &str, ports: Ports) -> Result<(), String> {
    let (nft, iptables) = match ports {
        Ports::Random => ("masquerade fully-random", &["--random-fully"][..]),
        Ports::Kept => ("masquerade", &[][..]),
    };
    let rules = format!(
        "table ip nat {{
chain out {{
type nat hook postrouting priority 100
oifname \"outside\" {nft}
}}
chain in {{
type filter hook input priority 0
iifname \"outside\" ct state new drop
}}
}}
"
    );
    let by_nft = || -> Result<(), String> {
        let mut nft = Command::new("ip")
            .args(["netns", "exec", router, "nft", "-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut input = nft.stdin.take().unwrap();
        // It may have ended already, which its status says.
        let _ = input.write_all(rules.as_bytes());
        drop(input);
        let done = nft.wait().map_err(|error| error.to_string())?;
        done.success().then_some(()).ok_or("nft".into())
    };
    let by_iptables = |rule: &[&str], more: &[&str]| {
        let words = ["ip", "netns", "exec", router, "iptables"];
        run(&[&words, rule, more].concat())
    };
    by_nft().or_else(|_| {
        let out = "-t nat -A POSTROUTING -o outside -j MASQUERADE";
        let inward = "-A INPUT -i outside -m conntrack --ctstate NEW -j DROP";
        let words = |rule: &'static str| rule.split(' ').collect::<Vec<_>>();
        by_iptables(&words(out), iptables)?;
        by_iptables(&words(inward), &[])
    })
}

/// A federation in these namespaces: its nodes, started.
struct NatFederation {
    demo: Demo,
    nodes: TestNodes,
    names: Vec<String>,
    /// By two nodes, how the first said last that it reaches the second: `Some(None)` directly,
    /// `Some(Some(name))` through the member of that name.
    ways: BTreeMap<(usize, usize), Option<String>>,
    finished: BTreeSet<usize>,
    net: Net,
}

/// Returns whether namespaces can be made and connected here.
fn can_connect(what: &str) -> Result<(), String> {
    let name = format!("rota-nat-{}-{what}-try", std::process::id());
    run(&["ip", "netns", "add", &name])?;
    let bridge = ["ip", "-n", &name, "link", "add", "b0", "type", "bridge"];
    let pair = [
        "ip", "-n", &name, "link", "add", "v0", "type", "veth", "peer", "name", "v1",
    ];
    let can = run(&bridge).and_then(|()| run(&pair));
    run(&["ip", "netns", "delete", &name])?;
    can
}

/// Rounds of which every member sees the models.
const CLEAR: &str = "name = 'nat'
rounds = 12
[task.table]
data = 'diabetes'
standardise = 'federation'
split = { validation = 0.0, test = 0.3 }
model = { mlp = { hidden = [16] } }
[strategy]
name = 'fedavg'
training = { epochs = 300, batch = 8, optimiser = { name = 'sgd', rate = 0.005 } }
[protocol]
heartbeat = '200ms'
straggler-timeout = 10
";

/// Rounds of which only the sum of all is opened.
const MASKED: &str = "name = 'nat'
rounds = 4
[privacy]
mode = 'secure-aggregation'
[task.table]
data = 'diabetes'
standardise = 'silo'
model = { mlp = { hidden = [16] } }
[strategy]
name = 'fedavg'
weight = 'equal'
training = { epochs = 30, batch = 8, optimiser = { name = 'sgd', rate = 0.005 } }
[protocol]
heartbeat = '200ms'
straggler-timeout = 30
";

/// `None`, with a message, where no namespaces can be made.
fn federation(what: &str, open: usize, n: usize, ports: Ports) -> Option<NatFederation> {
    of(what, CLEAR, open, n, ports)
}

/// As [`federation`], of this scenario.
fn of(what: &str, text: &str, open: usize, n: usize, ports: Ports) -> Option<NatFederation> {
    if let Err(why) = can_connect(what) {
        crate::skipped::skipped(format!("no network namespaces can be made here ({why})"));
        return None;
    }
    let net = Net::new(what, open, n, ports).unwrap();
    if !net.translates {
        println!(
            "neither nft nor iptables works here: members have no route to each other instead"
        );
    }
    let file = scenario(&format!("nat-{what}"), text);
    let (file, count) = (file.to_str().unwrap(), n.to_string());
    let options = ["--scenario", file, "--silos", &count];
    let demo = Demo::new(&format!("nat-{what}"), &options);
    let mut names = Vec::new();
    let ports: Vec<String> = demo.configs.iter().map(|config| port(config)).collect();
    for (node, config) in demo.configs.iter().enumerate() {
        let mut silo: toml::Table = fs::read_to_string(config).unwrap().parse().unwrap();
        let listen = format!("/ip4/0.0.0.0/udp/{}/quic-v1", ports[node]);
        silo.insert("listen".into(), vec![listen].into());
        if node >= open {
            silo.insert("reachable".into(), false.into());
        }
        silo.insert("serve".into(), toml::toml! { folds = 0 }.into());
        let peers = silo["peer"].as_array_mut().unwrap();
        let others = (0..n).filter(|other| *other != node);
        for (other, peer) in others.zip(peers) {
            let at = format!("/ip4/{}/udp/{}/quic-v1", place(other), ports[other]);
            let addresses = if other < open { vec![at] } else { Vec::new() };
            peer.as_table_mut()
                .unwrap()
                .insert("addresses".into(), addresses.into());
        }
        fs::write(config, toml::to_string(&silo).unwrap()).unwrap();
        let institution = rota::node::institution::Institution::load(config).unwrap();
        let roster = &institution.agreement.epoch.roster;
        names.push(roster.name(institution.me).to_owned());
    }
    let mut nodes = TestNodes::new(&demo.configs, &[]);
    for node in 0..n {
        nodes.within[node] = net.within(node);
        nodes.start(node);
    }
    Some(NatFederation {
        demo,
        nodes,
        names,
        ways: BTreeMap::new(),
        finished: BTreeSet::new(),
        net,
    })
}

/// The port at which a node listens.
fn port(config: &std::path::Path) -> String {
    let silo: toml::Table = fs::read_to_string(config).unwrap().parse().unwrap();
    let listen = silo["listen"][0].as_str().unwrap();
    listen.split('/').nth(4).unwrap().to_owned()
}

impl NatFederation {
    fn status(&self, node: usize) -> Value {
        let config = self.demo.configs[node].to_str().unwrap();
        let asked = output(&["status", "--json", "--config", config]);
        serde_json::from_slice(&asked.stdout).unwrap_or_default()
    }

    /// Reads what the nodes print until that is so.
    fn until(&mut self, is: impl Fn(&Self) -> bool) {
        let end = Instant::now() + BOUND;
        while !is(self) {
            let Some(said) = self.nodes.next(end) else {
                panic!("not in time: {:?}\n{}", self.ways, self.nodes.tails());
            };
            let (node, line) = (said.node, &said.line);
            let member = self.names.iter().position(|name| line["member"] == **name);
            match (line["event"].as_str(), member) {
                (Some("finished"), _) => drop(self.finished.insert(node)),
                (Some("peer-up"), Some(other)) => {
                    let through = line["through"].as_str().map(str::to_owned);
                    self.ways.insert((node, other), through);
                }
                (Some("peer-down"), Some(other)) => drop(self.ways.remove(&(node, other))),
                _ => {}
            }
        }
    }

    /// The name of the member through which a node reaches another one.
    fn relay(&self, node: usize, other: usize) -> Option<&str> {
        self.ways.get(&(node, other))?.as_deref()
    }

    fn is_direct(&self, node: usize, other: usize) -> bool {
        self.ways.get(&(node, other)) == Some(&None)
    }

    /// Waits until these nodes have adopted the last round.
    fn finish(&mut self, nodes: &[usize]) {
        self.until(|all| nodes.iter().all(|node| all.finished.contains(node)));
        let outcome = |node: usize| {
            let status = self.status(node);
            status["rounds"].as_array().unwrap().last().unwrap()["outcome"].clone()
        };
        assert!(nodes.iter().all(|node| outcome(*node) == outcome(nodes[0])));
    }
}

#[test]
fn a_member_behind_nat_takes_part_with_public_members() {
    let Some(mut all) = federation("one", 3, 4, Ports::Random) else {
        return;
    };
    all.finish(&[0, 1, 2, 3]);
    for other in 0..3 {
        assert!(all.is_direct(3, other) && all.is_direct(other, 3));
    }
}

#[test]
fn two_nat_members_are_relayed_and_survive_the_relays_death() {
    let Some(mut all) = federation("two", 3, 5, Ports::Random) else {
        return;
    };
    all.until(|all| all.relay(3, 4).is_some() && all.relay(3, 4) == all.relay(4, 3));
    let relay = all.relay(3, 4).unwrap().to_owned();
    // Texts that people read.
    let config = all.demo.configs[3].to_str().unwrap();
    let status = text(&output(&["status", "--config", config]).stdout);
    let expected = format!("connected through {relay} for ");
    assert!(status.contains(&expected), "{status}");
    let check = rota(&["check", "--config", config]);
    let check = inside(&all.net.within(3), check).output().unwrap();
    let said = text(&check.stdout);
    let words: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!("{} answers through ", all.names[4]);
    assert!(words.contains(&expected), "{said}");

    let died = (0..3).find(|node| all.names[*node] == relay).unwrap();
    all.nodes.kill(died);
    let moved = |all: &NatFederation, node, other| {
        let now = all.relay(node, other);
        now.is_some_and(|now| now != relay)
    };
    all.until(|all| moved(all, 3, 4) && moved(all, 4, 3));
    let left: Vec<usize> = (0..5).filter(|node| *node != died).collect();
    all.finish(&left);
}

/// A secure-aggregation round needs all of its group, and vectors, transcripts and unmaskings of all at each.
#[test]
fn two_members_behind_nats_learn_from_sums_with_the_others() {
    let Some(mut all) = of("sums", MASKED, 2, 4, Ports::Random) else {
        return;
    };
    all.until(|all| all.relay(2, 3).is_some() && all.relay(3, 2).is_some());
    all.finish(&[0, 1, 2, 3]);
    assert!(all.relay(2, 3).is_some());
}

#[test]
fn two_members_whose_nats_keep_ports_get_a_direct_connection() {
    let Some(mut all) = federation("direct", 1, 3, Ports::Kept) else {
        return;
    };
    if !all.net.translates {
        return crate::skipped::skipped("without translation of addresses there is no way to make");
    }
    all.until(|all| all.is_direct(1, 2) && all.is_direct(2, 1));
    all.finish(&[0, 1, 2]);
}
