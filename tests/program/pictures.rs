//! The pictures on the page of a simulation: each where the strategy has what it shows, and nowhere else.

#![allow(clippy::unwrap_used)]

use std::fs;

use serde_json::Value;

use super::cli::{folder, json, scenario};

/// The heads of the pictures.
const HEADS: [&str; 4] = [
    "Client topology",
    "Weights of members",
    "Losses of each model at each silo",
    "Merges into groups",
];

/// Runs the built-in scenario with a strategy, and returns its summary and its page.
fn run(strategy: &str, options: &str, mesh: &str) -> (Value, String) {
    let name = format!("pictures-{strategy}-{mesh}");
    let file = scenario(
        &name,
        &format!(
            "name = 'pictures'\nseed = 1\nrounds = 6\n\n[task.table]\ndata = 'diabetes'\nstandardise = 'federation'\n\
             split = {{ validation = 0.0, test = 0.3 }}\nmodel = {{ linear = {{ loss = 'absolute' }} }}\n\n\
             [strategy]\nname = '{strategy}'\n{options}\n\
             training = {{ epochs = 2, batch = 8, optimiser = {{ name = 'sgd', rate = 0.01 }} }}\n"
        ),
    );
    let out = folder(&format!("{name}-page"));
    let summary = json(&[
        &file,
        "--mesh",
        mesh,
        "--no-references",
        "--out",
        out.to_str().unwrap(),
    ]);
    (
        summary,
        fs::read_to_string(out.join("pictures.html")).unwrap(),
    )
}

/// Asserts that the page has these pictures and no other.
fn assert_pictures(page: &str, heads: &[&str]) {
    for head in HEADS {
        let drawn = page.contains(&format!("<h2>{head}</h2>"));
        assert_eq!(drawn, heads.contains(&head), "{head}");
    }
    let drawn = page.split("<script>").next().unwrap();
    assert!(!drawn.contains("NaN"));
}

#[test]
fn the_page_of_tfl_has_its_topology_and_weights() {
    let (summary, page) = run("tfl", "period = 2", "direct");
    assert_pictures(&page, &["Client topology", "Weights of members"]);
    let rounds = summary["rounds"].as_array().unwrap();
    let last = &rounds.last().unwrap()["memory"];
    let edges = last["tfl.graph"]["edges"].as_array().unwrap().len();
    let drawn = format!("{edges} edge{}", if edges == 1 { "" } else { "s" });
    assert!(page.contains(&drawn), "{drawn}");
}

#[test]
fn the_page_of_hcct_has_its_merges_on_every_mesh() {
    let runs = ["direct", "virtual"].map(|mesh| run("hcct", "", mesh));
    for (summary, page) in &runs {
        assert_pictures(page, &["Merges into groups"]);
        let merges = &summary["merges"];
        let silos = merges["silos"].as_array().unwrap().len();
        assert_eq!(silos, 8);
        assert_eq!(merges["merges"].as_array().unwrap().len(), silos - 1);
        assert_eq!(page.matches("<g class=\"branch").count(), silos - 1);
    }
    let [(direct, _), (network, _)] = &runs;
    assert_eq!(direct["merges"], network["merges"]);
}

#[test]
fn the_page_of_cs_rcfl_has_its_losses_on_every_mesh() {
    let runs = ["direct", "virtual"].map(|mesh| run("cs-rcfl", "coalitions = 3", mesh));
    for (summary, page) in &runs {
        assert_pictures(page, &["Losses of each model at each silo"]);
        assert_eq!(page.matches("<title>Model of").count(), 64);
        assert_eq!(page.matches("<rect class=\"frame\"").count(), 3);
        assert!(page.contains("Proven: no other grouping into as many coalitions"));
        assert_eq!(summary["losses"]["losses"].as_array().unwrap().len(), 8);
        // All together before coalitions are formed, and then not.
        assert!(page.contains("Round by round") && page.contains("Coalitions by round"));
    }
    let [(direct, _), (network, _)] = &runs;
    assert_eq!(direct["losses"], network["losses"]);
}

#[test]
fn the_page_of_fedavg_has_none_of_them() {
    let (summary, page) = run("fedavg", "", "direct");
    assert_pictures(&page, &[]);
    assert!(!page.contains("Round by round"));
    assert!(summary.get("losses").is_none() && summary.get("merges").is_none());
}
