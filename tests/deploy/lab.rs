//! `rota lab rotation --deploy`: leads of real processes are killed on schedule.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::nodes::{good, nowhere, output, rota, scenario, text};

/// Hospitals with a short heartbeat.
fn hospitals(name: &str, rest: &str) -> PathBuf {
    let text = format!(
        "name = '{name}'
rounds = 6
[task.table]
data = 'diabetes'
standardise = 'federation'
split = {{ validation = 0.0, test = 0.3 }}
model = {{ linear = {{ loss = 'absolute' }} }}
[strategy]
name = 'fedavg'
training = {{ epochs = 2, batch = 8, optimiser = {{ name = 'sgd', rate = 0.005 }} }}
[protocol]
heartbeat = '200ms'
straggler-timeout = 10
{rest}"
    );
    scenario(name, &text)
}

/// Runs the experiment with processes, and reads its document.
pub(crate) fn deployed(scenario: &Path, out: &Path, options: &[&str]) -> Value {
    let (scenario, out) = (scenario.to_str().unwrap(), out.to_str().unwrap());
    let all = [
        "lab", "rotation", scenario, "--deploy", "--json", "--out", out,
    ];
    serde_json::from_str(&good(&[&all[..], options].concat())).unwrap()
}

#[test]
fn killed_leads_are_replaced_except_a_fixed_one_and_the_report_finds_them_in_the_lines() {
    let file = hospitals(
        "lab-deployed",
        "[[fault]]
kill = 'lead'
round = 3
phase = 'collecting'
restart-after = '2s'
[[fault]]
kill = 'lead'
round = 5
phase = 'collecting'
",
    );
    let out = nowhere("lab-deployed-out");
    let options = ["--network", "loopback", "--silos", "4", "--limit", "12s"];
    let policies = ["--policies", "every-round,fixed"];
    let all = deployed(&file, &out, &[&options[..], &policies].concat());
    let deployment = &all["deployment"];
    let network = deployment["network"].as_str().unwrap();
    assert!(
        network.contains("loopback") && network.contains("100 Mbit/s"),
        "{network}"
    );
    assert_eq!(deployment["machines"], 1);
    let [every, fixed] = &all["policies"].as_array().unwrap()[..] else {
        panic!("two rotations")
    };
    assert_eq!(every["rounds_lost"]["mean"], 0.0, "{every}");
    assert_eq!(
        (&every["leads_stopped"], &every["never"]),
        (&2.into(), &0.into())
    );
    let worst = every["take_over_worst"].as_f64().unwrap();
    // Seconds, with room for a machine that has much else to do.
    assert!((0.05..30.0).contains(&worst), "{worst}");
    // Its lead dies in round 5, which may become final all the same on a machine that is slow to kill it.
    let lost = fixed["rounds_lost"]["mean"].as_f64().unwrap();
    assert!((1.0..=2.0).contains(&lost), "{fixed}");
    assert_eq!(fixed["never"], 1);
    for policy in [every, fixed] {
        let trial = &policy["trials"][0];
        for (key, least) in [("bytes", 1e4), ("work", 0.02)] {
            let of = trial[key].as_array().unwrap();
            assert!(
                of.iter().all(|of| of.as_f64().unwrap() > least),
                "{key}: {of:?}"
            );
        }
        assert!(trial["lead_bytes"].as_f64().unwrap() > 0.0);
        let metric = policy["metric"]["mean"].as_f64().unwrap();
        assert!((20.0..90.0).contains(&metric), "{metric}");
    }
    let led = &fixed["trials"][0]["led"];
    assert_eq!(*led, serde_json::json!([6 - lost as u64, 0, 0, 0]));
    assert_eq!(fixed["seen_most"]["mean"], 1.0);
    // The same in virtual time.
    let simulated = &deployment["simulated"]["policies"];
    assert_eq!(simulated[0]["rounds_lost"]["mean"], 0.0);
    assert_eq!(simulated[1]["never"], 1);
    let page = fs::read_to_string(out.join("rotation.html")).unwrap();
    assert!(page.contains("With real processes") && page.contains("Real / simulated"));

    // The report on the lines of the first run, the last of which is cut off at a node that was killed.
    let runs = out.join("runs/every-round-0");
    let logs: Vec<PathBuf> = (0..4)
        .map(|node| runs.join(format!("{node}.jsonl")))
        .collect();
    let gone = &every["trials"][0]["stops"][1];
    assert_eq!(gone["back"], Value::Null);
    let log = &logs[gone["member"].as_u64().unwrap() as usize];
    let bytes = fs::read(log).unwrap();
    fs::write(log, &bytes[..bytes.len() - 20]).unwrap();
    let mut arguments = vec!["report", "--json"];
    arguments.extend(logs.iter().map(|log| log.to_str().unwrap()));
    let history: Value = serde_json::from_str(&good(&arguments)).unwrap();
    let skipped = history["logs"].as_array().unwrap().iter();
    assert_eq!(
        skipped
            .map(|log| log["skipped"].as_u64().unwrap())
            .sum::<u64>(),
        1
    );
    assert_eq!(history["rounds"].as_array().unwrap().len(), 6);
    let names = &all["silos"];
    let name = |of: &Value, member: &Value| of[member.as_u64().unwrap() as usize].clone();
    // One silo may be killed twice: the stops are told apart by their order.
    let in_order = |stops: &Value, names: &Value| {
        let stops = stops.as_array().unwrap().iter();
        let mut stops: Vec<(f64, Value)> = stops
            .map(|stop| (stop["at"].as_f64().unwrap(), name(names, &stop["member"])))
            .collect();
        stops.sort_by(|one, other| one.0.total_cmp(&other.0));
        stops
    };
    let found = in_order(&history["stops"], &history["silos"]);
    let known = in_order(&every["trials"][0]["stops"], names);
    assert_eq!(found.len(), known.len(), "{found:?}");
    for ((found, silo), (known, killed)) in found.iter().zip(&known) {
        let late = found - known;
        assert_eq!(silo, killed);
        assert!(
            (-0.5..15.0).contains(&late),
            "{silo}: {late} s after it was killed"
        );
    }
    assert_eq!(history["take_overs"].as_array().unwrap().len(), 2);
    let cpu = history["logs"][0]["cpu_seconds"].as_f64().unwrap();
    assert!(cpu > 0.01, "{cpu}");
}

#[test]
fn a_node_that_lost_its_journal_only_listens_at_first_and_has_all_rounds_in_the_end() {
    let file = hospitals(
        "lab-lost",
        "[[fault]]
kill = '1'
at = '1s'
restart-after = '500ms'
journal = 'lost'
",
    );
    let out = nowhere("lab-lost-out");
    let options = ["--network", "loopback", "--silos", "4", "--rounds", "16"];
    let policies = ["--policies", "every-round"];
    let all = deployed(&file, &out, &[&options[..], &policies].concat());
    let trial = &all["policies"][0]["trials"][0];
    assert_eq!(
        (&trial["rounds"], &trial["complete"]),
        (&16.into(), &true.into())
    );
    assert_eq!(trial["stops"][0]["member"], 1);
    let lines = fs::read_to_string(out.join("runs/every-round-0/1.jsonl")).unwrap();
    let events = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = |line: &Value| match line["event"].as_str().unwrap() {
        "start" => Some("start"),
        "waiting" if line["why"].as_str().unwrap().contains("journal was lost") => Some("listens"),
        "taking-part" => Some("takes part"),
        "finished" => Some("finished"),
        _ => None,
    };
    let mut told: Vec<&str> = events.filter_map(|line| told(&line)).collect();
    told.dedup();
    let after: Vec<&str> = told
        .into_iter()
        .skip_while(|word| *word != "listens")
        .collect();
    assert_eq!(after.first(), Some(&"listens"), "{lines}");
    assert_eq!(after.last(), Some(&"finished"), "{lines}");
}

/// The network namespaces that a process of the laboratory made.
fn namespaces(process: u32) -> Vec<String> {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let names = text(&listed.stdout);
    let begin = format!("rota-lab-{process}-");
    let ours = names.lines().filter(|name| name.starts_with(&begin));
    ours.map(str::to_owned).collect()
}

#[test]
fn nodes_in_network_namespaces_go_on_after_a_split_and_leave_no_namespace() {
    let file = hospitals(
        "lab-namespaces",
        "[[fault]]
split = ['0']
at = '0s'
lasts = '3s'
",
    );
    let out = nowhere("lab-namespaces-out");
    let options = [
        "--network",
        "namespaces",
        "--silos",
        "4",
        "--policies",
        "on-failure",
    ];
    let arguments = [
        "lab",
        "rotation",
        file.to_str().unwrap(),
        "--deploy",
        "--json",
        "--out",
    ];
    let all = [&arguments[..], &[out.to_str().unwrap()], &options].concat();
    let mut started = rota(&all);
    let started = started.stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = started.spawn().unwrap();
    let process = started.id();
    let done = started.wait_with_output().unwrap();
    let said = text(&done.stderr);
    if done.status.code() == Some(2) && said.contains("--network namespaces: ") {
        crate::skipped::skipped(said);
        return;
    }
    assert_eq!(done.status.code(), Some(0), "{said}");
    let all: Value = serde_json::from_str(&text(&done.stdout)).unwrap();
    let network = all["deployment"]["network"].as_str().unwrap();
    assert!(
        network.contains("network namespace of its own"),
        "{network}"
    );
    let policy = &all["policies"][0];
    assert_eq!(policy["rounds_lost"]["mean"], 0.0, "{policy}");
    assert!(policy["bytes_per_round"]["mean"].as_f64().unwrap() > 1e4);
    // The node that was cut off learned of the first round when the split was over.
    let first = |node: usize| {
        let lines =
            fs::read_to_string(out.join(format!("runs/on-failure-0/{node}.jsonl"))).unwrap();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut finals = lines.filter(|line| line["event"] == "final");
        finals.next().unwrap()["at"].as_f64().unwrap()
    };
    let others = (1..4).map(first).fold(0.0, f64::max);
    assert!(
        first(0) > others + 0.2,
        "{} and {others}: nobody was cut off",
        first(0)
    );
    let left = namespaces(process);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_processes_cannot_do_is_refused_before_anything_runs() {
    let refused = |name: &str, fault: &str, options: &[&str]| {
        let file = hospitals(name, fault);
        let all = [
            "lab",
            "rotation",
            file.to_str().unwrap(),
            "--deploy",
            "--json",
        ];
        let output = output(&[&all[..], options].concat());
        assert_eq!(output.status.code(), Some(2), "{name}");
        text(&output.stderr)
    };
    let byzantine = "[[fault]]\nmember = '1'\nbehaviour = 'nan'\n";
    let said = refused("lab-byzantine", byzantine, &[]);
    assert!(
        said.contains("[[fault]] number 1") && said.contains("simulations only"),
        "{said}"
    );
    let commit = "[[fault]]\nkill = '1'\ncommit = 3\ncut = 'before'\n";
    assert!(refused("lab-commit", commit, &[]).contains("commit of the journal"));
    let said = refused("lab-many", "", &["--silos", "50"]);
    assert!(said.contains("2 to 16 nodes"), "{said}");
    let one_way = "[[fault]]\nsplit = ['0']\nat = '1s'\nlasts = '1s'\none-way = true\n";
    let said = refused("lab-one-way", one_way, &["--network", "namespaces"]);
    assert!(said.contains("one-way"), "{said}");
}
