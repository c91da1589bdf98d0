//! Groups of a federation with secure aggregation change while its nodes run: only where the agreement names whose updates become
//! visible, and all of both groups approve it.

use super::amended::{Heard, changes, id, says};
use super::masked::SUMS;
use super::*;

#[test]
fn a_group_changes_once_all_approve_and_the_shown_are_named() {
    let file = scenario("regrouped", &SUMS.replace("rounds = 4", "rounds = 2"));
    let demo = Demo::new("regrouped", &["--scenario", file.to_str().unwrap()]);
    let mut nodes = Heard::of(&demo.configs, &[]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    let start = |nodes: &mut Heard, node| nodes.until(node, "start");
    let names: Vec<_> = (0..4)
        .map(|node| {
            start(&mut nodes, node)["member"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    (0..4).for_each(|node| {
        nodes.until(node, "finished");
    });
    let state = |node: usize| demo.configs[node].with_file_name("state");
    let agreed = fs::read_to_string(demo.folder.join("federation.toml")).unwrap();
    let longer = agreed.replace("rounds = 2", "rounds = 3");
    // The group goes on without the last institution, which stays a member.
    let author = agreed
        .lines()
        .find(|line| line.contains(&names[3]) && line.ends_with("= 1"));
    let author = author.unwrap_or_else(|| panic!("no group in {agreed}"));
    let smaller = longer.replace(&format!("{author}\n"), "");
    let more = demo.folder.join("more.toml");
    let config = demo.configs[0].to_str().unwrap();
    let change = ["federation", "change", more.to_str().unwrap()];
    fs::write(&more, &smaller).unwrap();
    let refused = output(&[&change[..], &["--config", config, "--yes"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let shows = format!("shows = [\"{}\"]", names[3]);
    assert!(said.contains(&shows), "{said}");
    let named = smaller.replacen("[privacy]\n", &format!("[privacy]\n{shows}\n"), 1);
    fs::write(&more, named).unwrap();
    let said = says(&demo.configs[0], &change[1..]);
    assert!(said.contains(&names[3]), "{said}");
    let change = id(&said).to_owned();
    // Three are a quorum, and not all of the group.
    for node in 1..3 {
        nodes.until(node, "amendment");
        says(&demo.configs[node], &["approve", &change]);
    }
    let line = nodes.until(3, "amendment");
    assert_eq!(line["amendment"], change.as_str());
    let waiting = changes(&demo.configs[3]);
    assert!(waiting.contains(&names[3]), "{waiting}");
    assert!(
        !state(0).join("in-force.toml").exists(),
        "it changed before"
    );
    says(&demo.configs[3], &["approve", &change]);
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
        assert_eq!(nodes.until(node, "adopted")["round"], 3);
    }
    // The agreed change is in effect: the sums before and after differ by the update of one.
    let kept = state(1);
    let attack = [
        "attack",
        "absence",
        "--json",
        "--state",
        kept.to_str().unwrap(),
    ];
    let json: Value = serde_json::from_str(&good(&attack)).unwrap();
    let pairs = json["pairs"].as_array().unwrap();
    let shows = |pair: &Value| pair.to_string().contains(&names[3]);
    assert!(!pairs.is_empty() && pairs.iter().all(shows), "{json}");
    for node in 0..4 {
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
        good(&["verify", "--state", state(node).to_str().unwrap()]);
    }
    // A federation that continues this one adds up the same three, or nobody of them.
    let next = demo.folder.join("next");
    fs::create_dir_all(&next).unwrap();
    let out = next.join("federation.toml");
    let out = out.to_str().unwrap();
    let go_on = ["federation", "continue", "--config", config, "--out", out];
    good(&go_on);
    let written = fs::read_to_string(out).unwrap();
    assert_eq!(
        written.matches("mode = \"secure-aggregation\"").count(),
        2,
        "{written}"
    );
    assert!(written.contains("[[continues.group]]"), "{written}");
    assert_eq!(written.matches(&author).count(), 0, "{written}");
    let flat = super::noised::flat;
    let shown = flat(&good(&["federation", "show", out]));
    assert!(
        shown.contains("these are added up with the same others"),
        "{shown}"
    );
    // Another group is refused by whoever reads the agreement.
    let (before, group) = written.split_once("[[privacy.group]]\n").unwrap();
    fs::write(out, format!("{before}[[privacy.group]]\n{author}\n{group}")).unwrap();
    let refused = output(&["federation", "check", out]);
    assert_eq!(refused.status.code(), Some(2));
    let said = flat(&text(&refused.stderr));
    assert!(said.contains("were added up"), "{said}");
    // Without one of the three there is no sum any more.
    let refused = output(&[&go_on[..], &["--force", "--without", &names[0]]].concat());
    assert_eq!(refused.status.code(), Some(2));
    let said = flat(&text(&refused.stderr));
    assert!(
        said.contains("no group of this federation would be whole without"),
        "{said}"
    );
    // Leaving the masks takes a word, and stands in the agreement.
    let said = flat(&good(
        &[&go_on[..], &["--force", "--give-up-masks"]].concat(),
    ));
    assert!(said.contains("protects less than the federation"), "{said}");
    let shown = flat(&good(&["federation", "show", out]));
    assert!(shown.contains("warning: this protects less"), "{shown}");
    // Whoever took part before knows what an agreement leaves out.
    let silo = fs::read_to_string(&demo.configs[0]).unwrap();
    let own = demo.configs[0].with_file_name("next.toml");
    let silo = silo
        .replace("\"../federation.toml\"", "\"../next/federation.toml\"")
        .replace("\"consent.toml\"", "\"next-consent.toml\"")
        .replace(
            "state = \"state\"",
            "state = \"next-state\"\nstart-model = \"state\"",
        );
    fs::write(&own, silo).unwrap();
    sign(&own);
    let written = fs::read_to_string(out).unwrap();
    let (before, group) = written.split_once("[[continues.group]]\n").unwrap();
    let after = group.split_once("\n\n").unwrap().1;
    let before = before.replace("mode = \"secure-aggregation\"\n", "");
    fs::write(out, format!("{before}{after}")).unwrap();
    let shown = flat(&good(&["federation", "show", out]));
    assert!(shown.contains("whose members saw every model"), "{shown}");
    let own = own.to_str().unwrap();
    let refused = output(&["federation", "sign", "--yes", "--config", own]);
    assert_eq!(refused.status.code(), Some(1));
    let said = flat(&text(&refused.stderr));
    assert!(said.contains("does not say rightly"), "{said}");
}
