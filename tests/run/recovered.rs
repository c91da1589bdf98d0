//! One of two institutions is gone for good: the other goes on alone, and admits it again when it comes
//! back all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::amended::{Heard, says};
use super::*;

#[test]
fn one_of_two_continues_alone_and_the_other_comes_back() {
    let demo = quick("run-recovered", 2);
    let mut nodes = Heard::of(&demo.configs, &[]);
    let name = |line: &Value| line["member"].as_str().unwrap().to_owned();
    for node in 0..2 {
        nodes.nodes.start(node);
    }
    let stays = name(&nodes.until(0, "start"));
    let goes = name(&nodes.until(1, "start"));
    nodes.until(0, "finished");
    nodes.until(1, "finished");
    nodes.nodes.terminate(1);
    assert_eq!(nodes.nodes.code(1), 0);
    // Nobody can declare itself lost, or somebody that is no member.
    let config = demo.configs[0].to_str().unwrap();
    for (lost, why) in [
        (&*stays, "cannot declare itself lost"),
        ("nobody", "there is no member"),
    ] {
        let refused = output(&["recover", "--lost", lost, "--config", config, "--yes"]);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(why), "{said}");
    }
    // The node runs while its institution asks for it.
    let said = good(&["recover", "--lost", &goes, "--config", config, "--yes"]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for what in [
        "continue with 1 of 2 members",
        "3 of 3",
        "split in two for good",
        "continues alone",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    assert_eq!(nodes.until(0, "recovery")["lost"], goes.as_str());
    assert_eq!(nodes.until(0, "epoch")["epoch"], 1);
    // It decides alone now.
    let state = demo.configs[0].with_file_name("state");
    let agreed = fs::read_to_string(state.join("in-force.toml")).unwrap();
    let more = demo.folder.join("more.toml");
    fs::write(&more, agreed.replace("rounds = 3", "rounds = 5")).unwrap();
    says(&demo.configs[0], &["change", more.to_str().unwrap()]);
    assert_eq!(nodes.until(0, "epoch")["epoch"], 2);
    nodes.until(0, "finished");
    // The other one comes back, and learns what happened.
    nodes.nodes.start(1);
    let told = nodes.until(1, "left-behind");
    assert_eq!(
        (&told["by"], &told["round"]),
        (&stays.as_str().into(), &3.into())
    );
    let id = told["recovery"].as_str().unwrap().to_owned();
    nodes.nodes.terminate(1);
    assert_eq!(nodes.nodes.code(1), 0);
    // It is admitted again, with the key that it had.
    let first = fs::read_to_string(demo.folder.join("federation.toml")).unwrap();
    let key = first
        .lines()
        .filter_map(|line| line.strip_prefix("key = "))
        .next_back();
    let key = key.unwrap().trim_matches('"');
    let own = fs::read_to_string(&demo.configs[1]).unwrap();
    let listen = own.lines().find(|line| line.starts_with("listen = "));
    let address = listen.unwrap().split('"').nth(1).unwrap();
    says(&demo.configs[0], &["admit", &goes, key, address]);
    // It is admitted as soon as its node answers.
    let follow = ["--wait-for-admission", "--follow-recovery", &id];
    let mut again = Heard::of(&demo.configs[1..], &follow);
    again.nodes.start(0);
    assert_eq!(nodes.until(0, "epoch")["epoch"], 3);
    assert_eq!(again.until(0, "epoch")["epoch"], 3);
    again.until(0, "finished");
    // The kind of the block stays visible.
    let chain = good(&["chain", "--state", state.to_str().unwrap()]);
    for what in [
        "recovery  ",
        &format!("lost {goes}"),
        "without a quorum",
        "round    5",
    ] {
        assert!(chain.contains(what), "{what}: {chain}");
    }
    let said = good(&["verify", "--state", state.to_str().unwrap()]);
    let what =
        format!("after round 3 the other members continued without {goes} and without a quorum");
    assert!(said.contains(&what), "{said}");
    assert!(said.contains("1 to 5 computed again"), "{said}");
}

#[test]
fn who_named_the_wrong_members_corrects_that_on_a_running_node() {
    let demo = quick("run-corrected", 4);
    let mut nodes = Heard::of(&demo.configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    let names: Vec<_> = (0..4)
        .map(|node| {
            nodes.until(node, "start")["member"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    nodes.until(0, "finished");
    nodes.until(1, "finished");
    for node in 2..4 {
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
    }
    let recover = |node: usize, lost: &[&str]| {
        let lost = lost.iter().flat_map(|name| ["--lost", name]);
        let config = demo.configs[node].to_str().unwrap();
        let here = ["--config", config, "--yes"];
        let all: Vec<_> = ["recover"].into_iter().chain(lost).chain(here).collect();
        good(&all)
    };
    // The first names one that is there, then too few; the second, while it is stopped, too few as well.
    recover(0, &[&names[1]]);
    assert_eq!(nodes.until(0, "recovery")["lost"], names[1].as_str());
    recover(0, &[&names[2]]);
    let both = |line: &Value| {
        let lost = line["lost"].as_str().unwrap();
        lost.contains(&names[2]) && lost.contains(&names[3])
    };
    nodes.nodes.terminate(1);
    assert_eq!(nodes.nodes.code(1), 0);
    recover(1, &[&names[3]]);
    nodes.nodes.start(1);
    recover(1, &[&names[2], &names[3]]);
    recover(0, &[&names[3], &names[2]]);
    for node in 0..2 {
        while !both(&nodes.until(node, "recovery")) {}
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
}

/// Threads that keep all cores busy until this is dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..2 * cores {
            let stop = stop.clone();
            thread::spawn(move || while !stop.load(Ordering::Relaxed) {});
        }
        Self(stop)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn three_members_correct_two_mistakes_each_on_a_busy_machine() {
    let demo = quick("run-corrected-three", 5);
    let mut nodes = Heard::of(&demo.configs, &[]);
    for node in 0..5 {
        nodes.nodes.start(node);
    }
    let name = |line: &Value| line["member"].as_str().unwrap().to_owned();
    let names: Vec<_> = (0..5)
        .map(|node| name(&nodes.until(node, "start")))
        .collect();
    for node in 0..3 {
        nodes.until(node, "finished");
    }
    for node in 3..5 {
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
    }
    let _busy = Busy::new();
    let recover = |node: usize, lost: &[usize]| {
        let lost = lost.iter().flat_map(|&at| ["--lost", &names[at]]);
        let config = demo.configs[node].to_str().unwrap();
        let here = ["--config", config, "--yes"];
        let all: Vec<_> = ["recover"].into_iter().chain(lost).chain(here).collect();
        good(&all)
    };
    // Each names others by mistake, twice, and every one in another order; the second makes one of its
    // mistakes while its node is stopped.
    recover(0, &[1]);
    while nodes.until(0, "recovery")["lost"] != names[1].as_str() {}
    recover(2, &[0, 3]);
    recover(1, &[4]);
    // Lines tell of the wishes of others, too.
    while nodes.until(1, "recovery")["lost"] != names[4].as_str() {}
    recover(0, &[3]);
    nodes.nodes.terminate(1);
    assert_eq!(nodes.nodes.code(1), 0);
    recover(1, &[2, 3]);
    nodes.nodes.start(1);
    recover(2, &[4]);
    for (node, lost) in [(2, [4, 3]), (1, [3, 4]), (0, [4, 3])] {
        recover(node, &lost);
    }
    for node in 0..3 {
        let right = |line: &Value| {
            let lost = line["lost"].as_str().unwrap();
            lost.contains(&names[3]) && lost.contains(&names[4])
        };
        while !right(&nodes.until(node, "recovery")) {}
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    let verify = |node: usize| {
        let state = demo.configs[node].with_file_name("state");
        good(&["chain", "--state", state.to_str().unwrap()])
    };
    for node in 0..3 {
        assert_eq!(verify(node).matches("recovery  ").count(), 1, "{node}");
    }
}
