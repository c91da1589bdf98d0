//! Three of four institutions agree on more rounds with noise, and the fourth says nothing: it votes, and nothing
//! of it is in a further round.

use super::*;
use crate::amended::{id, says};

const SILENT: usize = 3;

#[test]
fn who_refused_more_private_rounds_votes_and_spends_nothing() {
    let demo = noised("run-silent", &NOISED.replace("rounds = 6", "rounds = 2"));
    let silent = name(&demo.configs[SILENT]);
    let mut nodes = Heard::of(&demo.configs, &[]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    let spent = ledger(&demo.configs[SILENT]);
    let agreed = fs::read_to_string(demo.folder.join("federation.toml")).unwrap();
    let more = demo.folder.join("more.toml");
    fs::write(&more, agreed.replace("\nrounds = 2", "\nrounds = 1000")).unwrap();
    let said = says(&demo.configs[0], &["change", more.to_str().unwrap()]);
    let change = id(&said).to_owned();
    for node in 1..3 {
        nodes.until(node, "amendment");
        says(&demo.configs[node], &["approve", &change]);
    }
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    // It says why, in its log, its status and its check.
    let why = loop {
        let line = nodes.until(SILENT, "waiting");
        let why = line["why"].as_str().unwrap().to_owned();
        if why.contains("contributions are paused") {
            break why;
        }
    };
    assert!(why.contains("`rounds` changes from 2 to 1000"), "{why}");
    let config = demo.configs[SILENT].to_str().unwrap();
    let status = flat(&good(&["status", "--config", config]));
    assert!(
        status.contains("`rounds` changes from 2 to 1000"),
        "{status}"
    );
    let check = output(&["check", "--offline", "--config", config]);
    assert_eq!(check.status.code(), Some(1));
    assert!(flat(&text(&check.stdout)).contains("contributions are paused"));
    // Rounds are made without it, with its votes.
    let votes = |config: &Path| {
        let sent = sent(config).into_iter();
        let kind = |line: &Value| line["kind"].as_str().map(str::to_owned);
        let kinds = sent
            .filter(|line| line["event"] == "message")
            .filter_map(|line| kind(&line));
        kinds.filter(|kind| VOTES.contains(&&kind[..])).count()
    };
    let before = votes(&demo.configs[SILENT]);
    let mut seen = 0;
    while seen < 3 {
        let line = nodes.until(SILENT, "final");
        if line["round"].as_u64().unwrap() > 2 {
            let authors = line["contributors"].as_array().unwrap();
            assert!(
                authors.iter().all(|author| *author != silent.as_str()),
                "{line}"
            );
            seen += 1;
        }
    }
    assert_eq!(ledger(&demo.configs[SILENT]), spent);
    assert!(votes(&demo.configs[SILENT]) > before, "it does not vote");
    // Whoever contributed before makes no new ledger in place of one that is lost.
    for node in 0..4 {
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
    }
    fs::remove_file(demo.configs[0].with_file_name("rows.ledger")).unwrap();
    let sign = [
        "federation",
        "sign",
        "--yes",
        "--new-ledger",
        "rows",
        "--config",
    ];
    let refused = output(&[&sign[..], &[demo.configs[0].to_str().unwrap()]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let said = flat(&text(&refused.stderr));
    assert!(
        said.contains("this institution contributed to round 1 with noise"),
        "{said}"
    );
    // A federation that continues this one has its noise.
    let next = demo.folder.join("next");
    fs::create_dir_all(&next).unwrap();
    let out = next.join("federation.toml");
    let go_on = ["federation", "continue", "--rounds", "5", "--config"];
    let config = demo.configs[1].to_str().unwrap();
    let out = ["--out", out.to_str().unwrap()];
    good(&[&go_on[..], &[config], &out].concat());
    let written = fs::read_to_string(out[1]).unwrap();
    let noise = |text: &str| {
        let lines = text
            .lines()
            .filter(|line| line.starts_with("noise-multiplier = "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let in_force = demo.configs[1]
        .with_file_name("state")
        .join("in-force.toml");
    let in_force = fs::read_to_string(in_force).unwrap();
    assert_eq!(noise(&written).len(), 1, "{written}");
    assert_eq!(noise(&written), noise(&in_force));
    let give_up = ["--give-up-noise", "--force"];
    let said = flat(&good(&[&go_on[..], &[config], &out, &give_up].concat()));
    assert!(
        said.contains("this protects less than the federation noised"),
        "{said}"
    );
    let shown = flat(&good(&["federation", "show", out[1]]));
    assert!(
        shown.contains("members saw only sums with noise there, and see only sums of groups here"),
        "{shown}"
    );
}
