//! The alert rules and the board name no metric that a node does not serve.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::file;
use super::nodes::{Demo, TestNodes, scenario};

/// Names of metrics in a text: words that begin with `rota_`.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_part(c));
    let metrics = words.filter(|word| word.starts_with("rota_"));
    metrics.map(str::to_owned).collect()
}

/// Returns what a node serves under `/metrics`.
fn served(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn alerts_and_board_use_metrics_that_a_node_serves() {
    let text = std::fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let text = text.replace("heartbeat = \"5s\"", "heartbeat = \"100ms\"");
    let scenario = scenario("deploy-alerts", &text);
    let demo = Demo::new(
        "deploy-alerts",
        &["--silos", "4", "--scenario", scenario.to_str().unwrap()],
    );
    let mut nodes = TestNodes::new(&demo.configs, &["--http", "127.0.0.1:0"]);
    (0..4).for_each(|node| nodes.start(node));
    let line = nodes.until(0, "http", 20);
    let url = line["url"].as_str().unwrap().to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    // The values of a training are absent until its first step, so the node is asked after every round.
    let mut known = BTreeSet::new();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let said = nodes
            .next(end)
            .unwrap_or_else(|| panic!("{}", nodes.tails()));
        let event = said.line["event"].as_str().filter(|_| said.node == 0);
        if let Some("adopted" | "finished") = event {
            known.extend(named(&served(address)));
        }
        if event == Some("finished") {
            break;
        }
    }
    assert!(
        known.contains("rota_round") && known.len() > 25,
        "{known:?}"
    );
    for name in ["alerts.yml", "grafana.json"] {
        let text = file(name);
        let used = named(&text);
        assert!(used.len() > 5, "{name}: {used:?}");
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{name} names {unknown:?}");
    }
    // Every metric that is an alarm by itself has a rule.
    let alarms = named(&file("alerts.yml"));
    for metric in ["rota_participating", "rota_peer_up", "rota_held_out"] {
        assert!(alarms.contains(metric), "{metric}");
    }
}

#[test]
fn the_board_is_json_with_panels_that_lie_beside_each_other() {
    let board: serde_json::Value = serde_json::from_str(&file("grafana.json")).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let mut taken = BTreeSet::new();
    for panel in panels {
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{panel}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "{}", panel["title"]);
            }
        }
        assert!(!panel["targets"][0]["expr"].as_str().unwrap().is_empty());
    }
}

/// Every rule has what Prometheus and whoever reads the alarm need. `promtool` is not asked, because few
/// machines have it.
#[test]
fn every_rule_has_an_expression_a_severity_and_words() {
    let text = file("alerts.yml");
    let rules: Vec<&str> = text.split("- alert: ").skip(1).collect();
    assert!(rules.len() > 5);
    for rule in rules {
        for key in ["expr: ", "severity: ", "summary: ", "description: "] {
            assert_eq!(rule.matches(key).count(), 1, "{key}{rule}");
        }
        let open = rule.matches('(').count();
        assert_eq!(open, rule.matches(')').count(), "{rule}");
    }
}
