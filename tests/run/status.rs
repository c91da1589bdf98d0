//! What running nodes say of themselves: lines with times, `rota status`, page and metrics.

use std::io::Write;
use std::net::TcpStream;

use super::*;

/// A federation of patients, so that models have metrics on own rows, with a short heartbeat.
fn patients(name: &str) -> Demo {
    let text = fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let file = scenario(
        name,
        &text.replace("heartbeat = \"5s\"", "heartbeat = \"100ms\""),
    );
    let options = ["--silos", "4", "--rounds", "3"];
    Demo::new(
        name,
        &[&options[..], &["--scenario", file.to_str().unwrap()]].concat(),
    )
}

pub(super) fn status(config: &Path) -> (i32, Value, String) {
    let asked = output(&["status", "--json", "--config", config.to_str().unwrap()]);
    let document = serde_json::from_slice(&asked.stdout).unwrap_or_default();
    (asked.status.code().unwrap(), document, text(&asked.stderr))
}

/// The answer of a server on this machine.
pub(crate) fn get(url: &str, path: &str) -> String {
    let host = url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn running_nodes_agree_on_the_round_and_serve_status_page_and_metrics() {
    let demo = patients("run-status");
    let (code, stopped, said) = status(&demo.configs[0]);
    assert_eq!((code, &stopped["running"]), (1, &Value::Bool(false)));
    assert!(
        said.contains("no node runs with the state folder"),
        "{said}"
    );
    assert!(said.contains("rota run --config"), "{said}");

    let mut nodes = TestNodes::new(&demo.configs, &["--http", "127.0.0.1:0"]);
    (0..4).for_each(|node| nodes.start(node));
    let mut urls = vec![String::new(); 4];
    let mut measured = vec![Vec::new(); 4];
    let mut finished = 0;
    let end = Instant::now() + Duration::from_secs(60);
    while finished < 4 {
        let Some(said) = nodes.next(end) else {
            panic!("not done after 60 s\n{}", nodes.tails());
        };
        let line = &said.line;
        let time = humantime::parse_rfc3339(line["time"].as_str().unwrap_or_default());
        assert!(time.is_ok(), "{line}");
        match line["event"].as_str() {
            Some("http") => urls[said.node] = line["url"].as_str().unwrap().to_owned(),
            Some("adopted") => measured[said.node].push(line["held_out"].clone()),
            Some("finished") => finished += 1,
            _ => {}
        }
    }
    let documents: Vec<_> = demo.configs.iter().map(|config| status(config)).collect();
    for (node, (code, document, said)) in documents.iter().enumerate() {
        assert_eq!(*code, 0, "{said}");
        assert_eq!(document["format"], 1);
        assert_eq!(document["complete"], true, "{document:#}");
        assert_eq!(document["phase"], "all rounds are done");
        assert_eq!(document["federation"]["id"], demo.id.as_str());
        let rounds = document["rounds"].as_array().unwrap();
        let numbers: Vec<_> = rounds.iter().map(|round| &round["round"]).collect();
        assert_eq!(numbers, [1, 2, 3], "{document:#}");
        assert_eq!(rounds[2]["outcome"], documents[0].1["rounds"][2]["outcome"]);
        // The metrics in the lines are those of the document, on this silo's own rows.
        for (round, held_out) in rounds.iter().zip(&measured[node]) {
            assert_eq!(round["held_out"], *held_out);
            assert!(held_out["metrics"]["mae"].as_f64().unwrap() > 0.0);
            assert!(held_out["rows"].as_u64().unwrap() > 10, "{held_out}");
        }
        let peers = document["peers"].as_array().unwrap();
        for peer in peers {
            assert_eq!(peer["connected"], true, "{peer}");
            assert!(peer["round_trip_ms"].as_f64().unwrap() > 0.0, "{peer}");
            assert_eq!(peer["version"], env!("CARGO_PKG_VERSION"), "{peer}");
        }
        let page = get(&urls[node], "/");
        assert!(page.contains("3 of 3, done"), "{page}");
        let metrics = get(&urls[node], "/metrics");
        for line in [
            "rota_complete 1.0\n",
            "rota_adopted_round 3.0\n",
            "rota_held_out{metric=\"mae\"} ",
        ] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
        assert_eq!(metrics.matches("rota_peer_up{").count(), 3, "{metrics}");
        let socket = demo.configs[node]
            .with_file_name("state")
            .join("status.sock");
        let rights = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(rights(&socket), 0o600);
        assert_eq!(rights(socket.parent().unwrap()), 0o700);
    }
    let config = demo.configs[1].to_str().unwrap();
    let text = good(&["status", "--config", config]);
    assert!(text.contains("all 3 rounds are done"), "{text}");
    // The agreement shows a node's status to its own institution only.
    let all = good(&["status", "--federation", "--json", "--config", config]);
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["shown"], false, "{all:#}");
    let own = |node: &&Value| node["status"].is_object();
    let each = all["nodes"].as_array().unwrap();
    assert_eq!(each.iter().filter(own).count(), 1, "{all:#}");
    assert_eq!(each[1]["status"]["adopted"]["round"], 3, "{all:#}");
    let all = good(&["status", "--federation", "--config", config]);
    assert!(all.contains("`status = \"members\"`"), "{all}");
    assert!(
        get(&urls[1], "/federation").contains("members have to approve"),
        "{all}"
    );
    assert!(text.contains("3 of 3 others are connected"), "{text}");

    // One ends, another is killed: the first leaves no socket, the second one that nobody answers.
    nodes.terminate(0);
    assert_eq!(nodes.code(0), 0);
    nodes.kill(1);
    for node in [0, 1] {
        let (code, document, said) = status(&demo.configs[node]);
        assert_eq!(
            (code, &document["running"]),
            (1, &Value::Bool(false)),
            "{said}"
        );
    }
    let mut unreachable = std::collections::BTreeSet::new();
    while unreachable.len() < 2 {
        let line = nodes.until(2, "peer-unreachable", 60);
        assert!(line["why"].is_string(), "{line}");
        unreachable.insert(line["member"].to_string());
    }
    let (_, document, _) = status(&demo.configs[2]);
    let peers = document["peers"].as_array().unwrap();
    let gone: Vec<_> = peers
        .iter()
        .filter(|peer| peer["connected"] == false)
        .collect();
    assert_eq!(gone.len(), 2, "{document:#}");
    assert!(
        gone.iter().all(|peer| peer["problem"].is_string()),
        "{document:#}"
    );
    // The killed one starts again at the same place.
    nodes.start(1);
    let served = nodes.until(1, "http", 20);
    let goes_on = nodes.until(1, "goes-on", 20);
    // A restart is no loss: rounds, who was there, and the measured model are as they were.
    let before = documents[1].1["rounds"].as_array().unwrap();
    assert_eq!(goes_on["held_out"], before[2]["held_out"]);
    let (code, document, said) = status(&demo.configs[1]);
    assert_eq!(code, 0, "{said}");
    let after = document["rounds"].as_array().unwrap();
    let numbers: Vec<_> = after.iter().map(|round| &round["round"]).collect();
    assert_eq!(numbers, [1, 2, 3], "{document:#}");
    for (after, before) in after.iter().zip(before) {
        for key in [
            "view",
            "lead",
            "models",
            "authors",
            "coalition",
            "coalitions",
            "outcome",
        ] {
            assert_eq!(after[key], before[key], "{key}: {document:#}");
        }
    }
    assert_eq!(after[2]["authors"].as_array().unwrap().len(), 4);
    assert_eq!(after[2]["held_out"], before[2]["held_out"]);
    let text = good(&["status", "--config", demo.configs[1].to_str().unwrap()]);
    assert!(text.contains("adopted     round 3, coalition"), "{text}");
    assert!(text.contains("own rows    mae "), "{text}");
    let metrics = get(served["url"].as_str().unwrap(), "/metrics");
    for line in ["rota_adopted_round 3.0\n", "rota_held_out{metric=\"mae\"} "] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn a_page_for_other_machines_is_refused_in_file_and_option() {
    let demo = quick("run-public", 1);
    let config = demo.configs[0].to_str().unwrap();
    let refused = output(&["run", "--config", config, "--http", "0.0.0.0:9600"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("reverse proxy"), "{said}");
    let before = fs::read_to_string(config).unwrap();
    let table = "[http]\nlisten = \"192.0.2.1:9600\"\n[data]";
    fs::write(config, before.replacen("[data]", table, 1)).unwrap();
    let refused = output(&["run", "--config", config]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("`listen` in [http]") && said.contains("reverse proxy"),
        "{said}"
    );
}

#[test]
fn the_log_can_be_json_with_the_round_and_view_of_every_event() {
    let demo = quick("run-json-log", 1);
    let config = demo.configs[0].to_str().unwrap();
    let arguments = ["run", "--until-done", "-v", "--log-format", "json"];
    let run = output(&[&arguments[..], &["--config", config]].concat());
    assert_eq!(run.status.code(), Some(0));
    let said = text(&run.stderr);
    let lines: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let trained = lines
        .iter()
        .find(|line| line["fields"]["message"] == "trained");
    let spans = &trained.unwrap()["spans"];
    let names: Vec<_> = spans
        .as_array()
        .unwrap()
        .iter()
        .map(|span| &span["name"])
        .collect();
    assert_eq!(names, ["silo", "round", "view"], "{spans}");
    assert_eq!(spans[1]["round"], 1);
    assert!(lines.iter().all(|line| line["timestamp"].is_string()));
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_program_without_traces_says_how_to_build_one_with_them() {
    let demo = quick("run-no-otlp", 1);
    let config = demo.configs[0].to_str().unwrap();
    let refused = output(&["run", "--config", config, "--otlp", "http://127.0.0.1:4318"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("--features otlp"), "{said}");
}
