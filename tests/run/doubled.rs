//! A copied key file runs beside the original, on another machine: other ports, another state folder.

use super::storage::long;
use super::*;

/// The institution with this configuration once more, with a copy of its key and an address of its own.
fn copied(config: &Path) -> PathBuf {
    let folder = config.parent().unwrap().with_extension("copy");
    fs::create_dir_all(&folder).unwrap();
    let to = folder.join("node.toml");
    let text = fs::read_to_string(config).unwrap();
    let line = |key: &str| {
        let mut lines = text.lines();
        lines.find(|line| line.starts_with(key)).unwrap().to_owned()
    };
    let path = |key: &str| {
        let line = line(key);
        let file = line.split('"').nth(1).unwrap();
        fs::canonicalize(config.with_file_name(file)).unwrap()
    };
    fs::copy(path("identity"), folder.join("copied.key")).unwrap();
    let federation = format!("federation = {:?}", path("federation").to_str().unwrap());
    let mut copy = text
        .replace(&line("identity"), "identity = \"copied.key\"")
        .replace(&line("federation"), &federation)
        .replace(
            &line("listen"),
            "listen = [\"/ip4/127.0.0.1/udp/0/quic-v1\"]",
        );
    if text.contains("\nconsent = ") {
        let consent = format!("consent = {:?}", path("consent").to_str().unwrap());
        copy = copy.replace(&line("consent"), &consent);
    }
    fs::write(&to, copy).unwrap();
    to
}

#[test]
fn a_copied_key_is_noticed_by_both_nodes_and_signs_nothing_more() {
    let demo = long("run-doubled", 100_000);
    let mut configs = demo.configs.clone();
    configs.push(copied(&demo.configs[3]));
    let mut nodes = amended::Heard::of(&configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    let adopted = |nodes: &mut amended::Heard, node: usize| {
        nodes.until(node, "adopted")["round"].as_u64().unwrap()
    };
    adopted(&mut nodes, 3);
    nodes.nodes.start(4);
    for node in [3, 4] {
        let why = nodes.until(node, "key-elsewhere");
        let why = why["why"].as_str().unwrap();
        for part in ["another process uses", "signs nothing more", "rekey"] {
            assert!(why.contains(part), "{why}");
        }
        let waits = nodes.until(node, "waiting");
        let waits = waits["why"].as_str().unwrap();
        assert!(waits.contains("only listening"), "{waits}");
    }
    // The others go on. Whatever either of the two had signed before is in rounds that are over now.
    let name = nodes.until(0, "final")["lead"].clone();
    assert!(name.is_string(), "{name}");
    let now = nodes.latest(0, "final");
    while nodes.until(0, "final")["round"].as_u64().unwrap() < now + 8 {}
    let state = demo.configs[0].with_file_name("state");
    let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let doubled = chain["members"][3].as_str().unwrap().to_owned();
    let blocks = chain["blocks"].as_array().unwrap();
    let of = |block: &Value| block.to_string().contains(&format!("\"{doubled}\""));
    assert!(
        blocks
            .iter()
            .any(|block| block["included"].to_string().contains(&doubled))
    );
    for block in blocks {
        if block["round"].as_u64().is_some_and(|round| round > now + 2) {
            assert!(!block["included"].to_string().contains(&doubled), "{block}");
            assert_ne!(block["lead"], doubled.as_str(), "{block}");
            assert!(of(block), "it is left out by name: {block}");
        }
    }
}
