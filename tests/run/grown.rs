//! Boosted trees that the nodes of a federation grow, and losses that they measure: those of one process with all
//! tables, bit by bit.

use super::amended::Heard;
use super::asked::{answers, configured, proposed, question};
use super::*;

/// Two trees of two levels, few enough for the 442 rows of four silos by the rule of numbers.
const TREES: &str = "kind = \"trees\"\noutcome = \"bp > 0\"\ncolumns = [\"bmi\", \"s5\"]\ntrees = 2\ndepth = 2\nrate = 0.3\n\
                     min-rows = 40\nedges = { bmi = [-0.03, 0, 0.03], s5 = [-0.03, 0, 0.03] }";
/// Losses of local and global models; one process plays them in clear, too.
const BASELINES: &str =
    "kind = \"baselines\"\noutcome = \"bp > 0\"\nterms = [\"age\", \"bmi\"]\nmode = \"clear\"";
/// The fourth institution answers what the others have approved.
const ANSWERS: &str = "[policy]\nmin-rows = 0\nmin-sum-size = 0\n\
                       auto-approve = [\"rounds\", \"addresses\", \"training-epochs\", \"members\", \"questions\"]\n";

/// A question to all sites of a federation.
fn of_all(demo: &Demo, name: &str, kind: &str) -> PathBuf {
    let configs = demo.configs.iter();
    let tables: Vec<_> = configs
        .map(|config| config.with_file_name("rows.csv"))
        .collect();
    let files: Vec<_> = tables.iter().map(PathBuf::as_path).collect();
    question(&demo.folder, name, kind, &files)
}

/// Asks four nodes of a federation in this mode for trees, and compares with one process that plays them. Gives the
/// federation with its nodes.
fn nodes_grow_trees(name: &str, mode: &str) -> (Demo, Heard) {
    let agreed = crate::masked::SUMS.replace("rounds = 4", "rounds = 2");
    let agreed = agreed.replace("'secure-aggregation'", &format!("'{mode}'"));
    // On a busy machine a contribution may be late, and a clear round would be without it.
    let agreed = format!("{agreed}straggler-timeout = 200\n");
    let file = scenario(name, &agreed);
    let demo = Demo::new(name, &["--scenario", file.to_str().unwrap()]);
    let configs = &demo.configs;
    configured(&configs[3], ANSWERS);
    let asked = of_all(&demo, "trees.toml", TREES);
    let mut nodes = Heard::of(configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    proposed(&mut nodes, configs, &asked, &[1, 2]);
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
        nodes.until(node, "finished");
    }
    let asked = asked.to_str().unwrap();
    let played: Value = serde_json::from_str(&good(&["ask", asked, "--json"])).unwrap();
    assert_eq!(played["trees"]["trees"].as_array().unwrap().len(), 2);
    for config in configs {
        let found = &answers(config)[0];
        assert_eq!(
            (&found["state"], &found["mode"]),
            (&"answered".into(), &mode.into()),
            "{found:#}"
        );
        for same in ["rounds", "numbers_opened", "answer", "trees"] {
            assert_eq!(found[same], played[same], "{same}");
        }
    }
    // A node writes the files that the one process writes.
    for format in ["onnx", "json"] {
        let written = ["node", "played"].map(|by| demo.folder.join(format!("{by}.{format}")));
        let [by_node, by_one] = written.each_ref().map(|file| file.to_str().unwrap());
        let config = configs[1].to_str().unwrap();
        let export = [
            "federation",
            "answers",
            "--export",
            by_node,
            "--config",
            config,
        ];
        good(&export);
        good(&["ask", asked, "--export", by_one]);
        let [found, expected] = written.each_ref().map(|file| fs::read(file).unwrap());
        assert!(found == expected && found.len() > 500, "{format}");
        assert!(!output(&export).status.success(), "it is not overwritten");
    }
    let state = configs[2].with_file_name("state");
    let said = good(&["verify", "--state", state.to_str().unwrap()]);
    assert!(said.contains("computed again"), "{said}");
    (demo, nodes)
}

#[test]
fn nodes_grow_trees_and_measure_losses_in_clear() {
    let (demo, mut nodes) = nodes_grow_trees("run-grown-clear", "clear");
    let asked = of_all(&demo, "baselines.toml", BASELINES);
    proposed(&mut nodes, &demo.configs, &asked, &[1, 2]);
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 2);
        nodes.until(node, "finished");
    }
    let played = good(&["ask", asked.to_str().unwrap(), "--json"]);
    let played: Value = serde_json::from_str(&played).unwrap();
    for config in &demo.configs {
        let found = &answers(config)[1];
        assert_eq!(found["state"], "answered", "{found:#}");
        assert_eq!(found["answer"], played["answer"]);
        assert_eq!(found["rounds"], played["rounds"]);
    }
    assert_eq!(played["answer"][2]["name"], "gain");
    assert_eq!(played["answer"][0]["rows"][0][0], 4);
}

#[test]
fn nodes_grow_the_trees_of_one_process_under_masks() {
    nodes_grow_trees("run-grown-masked", "secure-aggregation");
}
