//! Two rounds more with other noise: what those who approve them read, what every page says afterwards, and what
//! every ledger holds, is one number.

use super::*;
use crate::amended::{id, says};

#[test]
fn after_a_change_every_page_and_ledger_has_the_approved_number() {
    let demo = of_all(
        "run-noised-amended",
        &NOISED.replace("rounds = 6", "rounds = 2"),
    );
    let mut nodes = Heard::of(&demo.configs, &[]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    (0..4).for_each(|node| drop(nodes.until(node, "finished")));
    let federation = fs::read_to_string(demo.folder.join("federation.toml")).unwrap();
    let noise = federation
        .lines()
        .find(|line| line.starts_with("noise-multiplier = "));
    let longer = federation.replacen("rounds = 2", "rounds = 4", 1).replacen(
        noise.unwrap(),
        "noise-multiplier = 30.0",
        1,
    );
    let more = demo.folder.join("more.toml");
    fs::write(&more, longer).unwrap();
    let said = says(&demo.configs[0], &["change", more.to_str().unwrap()]);
    let change = id(&said).to_owned();
    let begin = "2 contributions so far (2 of them before the last change of the agreement)";
    let approved = both(
        &flat(&said),
        &format!("{begin} and the 2 rounds to come together: "),
    );
    for node in 1..4 {
        while nodes.until(node, "amendment")["amendment"] != change.as_str() {}
        let said = flat(&says(&demo.configs[node], &["approve", &change]));
        let read = both(
            &said,
            &format!("{begin} and the 2 rounds to come together: "),
        );
        assert_eq!(read, approved);
    }
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
        nodes.until(node, "finished");
    }
    let begin = begin.replacen('2', "4", 1) + " together: ";
    for config in &demo.configs {
        let config_text = config.to_str().unwrap();
        let printed = config.with_file_name("agreement.html");
        let printed_text = printed.to_str().unwrap();
        good(&[
            "federation",
            "print",
            "--config",
            config_text,
            "--out",
            printed_text,
        ]);
        let pages = [
            text(&output(&["check", "--offline", "--config", config_text]).stdout),
            good(&["status", "--config", config_text]),
            fs::read_to_string(printed).unwrap(),
        ];
        for page in pages {
            assert_eq!(both(&flat(&page), &begin), approved);
        }
        let lines = ledger(config);
        assert_eq!(lines.len(), 4, "{lines:?}");
        let last = lines.last().unwrap();
        let held = ["epsilon", "epsilon-alone"].map(|key| last[key].as_str().unwrap().to_owned());
        assert_eq!(held, approved);
    }
    (0..4).for_each(|node| nodes.nodes.kill(node));
    // With noise the lines of an institution are its own alone.
    let lines = demo.configs[0].with_file_name("lines");
    let out = demo.folder.join("history.html");
    let report = good(&[
        "report",
        lines.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(both(&flat(&report), &begin), approved);
}

/// Both numbers behind these words.
fn both(page: &str, begin: &str) -> [String; 2] {
    let (_, said) = page
        .split_once(begin)
        .unwrap_or_else(|| panic!("{begin}: {page}"));
    let said = said.strip_prefix("epsilon ").unwrap();
    let (epsilon, said) = said.split_once(" and epsilon_alone ").unwrap();
    let (alone, _) = said
        .split_once(", both at delta 1e-5, for one row")
        .unwrap();
    [epsilon.to_owned(), alone.to_owned()]
}
