//! Federations without messages, on the command line.

#![allow(clippy::unwrap_used)]

use std::fs;

use serde_json::Value;

use super::cli::{NULL, folder, good, json, refused, scenario};

#[test]
fn a_direct_federation_has_the_outcomes_and_no_messages() {
    let file = scenario("direct", NULL);
    let (direct, simulated) = (json(&[&file, "--mesh", "direct"]), json(&[&file]));
    let outcomes = |summary: &Value| -> Vec<String> {
        let rounds = summary["rounds"].as_array().unwrap().iter();
        rounds.map(|round| round["outcome"].to_string()).collect()
    };
    assert_eq!(outcomes(&direct), outcomes(&simulated));
    assert_eq!(direct["bytes_blobs"], simulated["bytes_blobs"]);
    for key in ["trace", "bytes", "checks", "timeline", "traffic"] {
        assert!(
            direct.get(key).is_none() && simulated.get(key).is_some(),
            "{key}"
        );
    }

    let out = folder("direct-page");
    let (out, page) = (out.to_str().unwrap(), out.join("small.html"));
    let text = good(&["simulate", "-q", &file, "--mesh", "direct", "--out", out]);
    assert!(text.contains("mesh      direct: no messages"), "{text}");
    let page = fs::read_to_string(page).unwrap();
    for absent in [
        "Leads:",
        "Who led when",
        "views that failed",
        "What was sent",
    ] {
        assert!(!text.contains(absent) && !page.contains(absent), "{absent}");
    }

    let kill = "[[fault]]\nkill = 'lead'\nphase = 'voting'\nround = 2\nrestart-after = '8s'\n";
    let faulty = scenario("direct-fault", &format!("{NULL}{kill}"));
    let (code, error) = refused(&[&faulty, "--mesh", "direct"]);
    assert!(
        code == 2 && error.contains("a [[fault]] needs messages"),
        "{error}"
    );
    assert_eq!(json(&[&faulty, "--mesh", "auto"])["mesh"], "virtual");
    assert_eq!(json(&[&file, "--mesh", "auto"])["mesh"], "direct");
    for (what, table) in [
        ("links", "[network]\nlatency = ['1ms', '2ms']\n"),
        ("times", "[costs]\nevaluate-model-ms = 50.0\n"),
    ] {
        let own = scenario(&format!("direct-{what}"), &format!("{NULL}{table}"));
        assert_eq!(json(&[&own, "--mesh", "auto"])["mesh"], "virtual", "{what}");
        // A scenario without a network ignores them.
        assert_eq!(
            json(&[&own, "--mesh", "direct"])["mesh"],
            "direct",
            "{what}"
        );
    }
    let (code, error) = refused(&[&file, "--mesh", "direct", "--check", "every-member"]);
    assert!(code == 2 && error.contains("every-member"), "{error}");
}
