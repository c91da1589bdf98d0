//! `rota solve coalitions`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::solve::{LOSSES, SolveFiles, close, keys, misused, printed, refused, solved};

/// As [`LOSSES`], on data where models of similar silos are better than local models.
const FRESH: &str = include_str!("../../../examples/solve/fresh.csv");

/// A table of random losses.
fn noise(silos: usize) -> String {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        format!("{}", (state >> 40) as f64 / 16_777_216.0)
    };
    let mut row = |_| (0..silos).map(|_| next()).collect::<Vec<_>>().join(",") + "\n";
    (0..silos).map(&mut row).collect()
}

#[test]
fn every_number_of_coalitions_gives_the_known_grouping() {
    let files = SolveFiles::new();
    let losses = files.put("losses.csv", LOSSES);
    for (number, objective, coalitions) in [
        ("1", 3.675, json!([[0, 1, 2, 3, 4, 5]])),
        ("2", 2.5125, json!([[0, 1, 4, 5], [2, 3]])),
        ("3", 1.7, json!([[0, 1], [2, 3], [4, 5]])),
        ("4", 1.55, json!([[0, 1], [2], [3], [4, 5]])),
        ("5", 1.45, json!([[0], [1], [2], [3], [4, 5]])),
        ("6", 1.35, json!([[0], [1], [2], [3], [4], [5]])),
    ] {
        let answer = solved(&["coalitions", &losses, "--coalitions", number]);
        close(&answer["objective"], objective);
        // For 5 there are two optimal groupings.
        assert!(
            answer["coalitions"] == coalitions || number == "5",
            "{answer}"
        );
        assert_eq!(answer["number"].to_string(), number);
        assert_eq!(answer["optimal"], true);
        assert_eq!(answer["lower_bound"], answer["objective"]);
        assert_eq!(answer["gap"], 0.0);
        assert_eq!(answer["time_limit_hit"], false);
        let expected = [
            "objective",
            "lower_bound",
            "gap",
            "optimal",
            "time_limit_hit",
            "number",
            "coalitions",
            "seconds",
        ];
        assert_eq!(keys(&answer), BTreeSet::from(expected));
    }
    let text = printed(&["coalitions", &losses, "-k", "3"]);
    for said in [
        "3 coalitions of 6 silos, proven optimal in ",
        "numbered from 0",
        "A    2 silos  0, 1\n",
        "C    2 silos  4, 5\n",
        "objective      1.7\n",
    ] {
        assert!(text.contains(said), "{said} is missing in\n{text}");
    }
}

#[test]
fn auto_chooses_the_number_with_the_least_held_out_loss() {
    let files = SolveFiles::new();
    let losses = files.put("losses.csv", LOSSES);
    let fresh = files.put("fresh.csv", FRESH);
    let auto = ["coalitions", &losses, "--coalitions", "auto"];

    let answer = solved(&[&auto[..], &["--held-out", &fresh]].concat());
    assert_eq!(answer["coalitions"], json!([[0, 1], [2, 3], [4, 5]]));
    // (0.5 + 0.3 + 0.35 + 0.55)/2 + …
    close(&answer["held_out"], 2.6);
    let candidates = answer["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 6);
    assert_eq!(
        keys(&candidates[2]),
        BTreeSet::from(["coalitions", "objective", "held_out"])
    );
    close(&candidates[2]["objective"], 1.7);
    close(&candidates[2]["held_out"], 2.6);
    close(&candidates[5]["held_out"], 3.15);
    assert_eq!(keys(&answer).len(), 10);

    // With in-sample losses single silos win, and the text explains that.
    let alone = solved(&auto);
    assert_eq!(alone["number"], 6);
    assert_eq!(alone["held_out"], alone["objective"]);
    let warned = printed(&auto);
    assert!(warned.contains("cross-fitted"), "{warned}");
    let informed = printed(&[&auto[..], &["--held-out", &fresh]].concat());
    assert!(!informed.contains("cross-fitted"), "{informed}");
    assert!(
        informed.contains("           3             1.7             2.6  chosen\n"),
        "{informed}"
    );

    // Cross-fitted losses need no held-out losses.
    let fitted = solved(&["coalitions", &fresh, "--coalitions", "auto"]);
    assert_eq!(fitted["number"], 3);
    close(&fitted["held_out"], 2.6);

    // Held-out losses are also reported for a given number.
    let given = solved(&["coalitions", &losses, "-k", "6", "--held-out", &fresh]);
    close(&given["held_out"], 3.15);
    assert_eq!(given.get("candidates"), None);
}

#[test]
fn at_most_allows_fewer_coalitions() {
    let files = SolveFiles::new();
    let fresh = files.put("fresh.csv", FRESH);
    let exactly = solved(&["coalitions", &fresh, "-k", "6"]);
    assert_eq!(exactly["number"], 6);
    let fewer = solved(&["coalitions", &fresh, "-k", "6", "--at-most"]);
    assert_eq!(
        (&fewer["number"], &fewer["optimal"]),
        (&json!(3), &json!(true))
    );
    close(&fewer["objective"], 2.6);
    let error = refused(&["coalitions", &fresh, "-k", "auto", "--at-most"]);
    assert!(error.contains("--at-most needs a number"), "{error}");
}

#[test]
fn the_time_limit_is_kept_and_reported() {
    let files = SolveFiles::new();
    let losses = files.put("noise.csv", &noise(100));
    let start = Instant::now();
    let limited = ["coalitions", &losses, "-k", "10", "--time-limit", "1"];
    let answer = solved(&limited);
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        (&answer["optimal"], &answer["time_limit_hit"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(answer["coalitions"].as_array().unwrap().len(), 10);
    let [objective, bound, gap] =
        ["objective", "lower_bound", "gap"].map(|key| answer[key].as_f64().unwrap());
    assert!(bound < objective && (gap - (objective - bound) / objective).abs() < 1e-12);

    let start = Instant::now();
    let hasty = solved(&["coalitions", &losses, "-k", "auto", "--time-limit", "0.05"]);
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(hasty["time_limit_hit"], true);
    // Numbers may be skipped, but never 1 and the number of silos.
    let candidates = hasty["candidates"].as_array().unwrap();
    assert_eq!(candidates[0]["coalitions"], 1);
    assert_eq!(candidates.last().unwrap()["coalitions"], 100);

    let text = printed(&["coalitions", &losses, "-k", "10", "--time-limit", "0"]);
    assert!(
        text.contains("not proven optimal") && text.contains("lower bound"),
        "{text}"
    );
    assert!(text.contains("The time limit of 0 s was hit"), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let files = SolveFiles::new();
    let losses = files.put("noise.csv", &noise(24));
    let answer = |seed| {
        let mut answer = solved(&["coalitions", &losses, "-k", "3", "--seed", seed]);
        answer["seconds"] = Value::Null;
        answer
    };
    assert_eq!(answer("7"), answer("7"));
    close(
        &answer("8")["objective"],
        answer("7")["objective"].as_f64().unwrap(),
    );
}

#[test]
fn impossible_numbers_of_coalitions_are_refused() {
    let files = SolveFiles::new();
    let losses = files.put("losses.csv", LOSSES);
    for asked in ["0", "7"] {
        let error = refused(&["coalitions", &losses, "--coalitions", asked]);
        assert!(
            error.contains(&format!("--coalitions is {asked}")),
            "{error}"
        );
        assert!(
            error.contains("losses.csv has 6 rows: ask for 1 to 6"),
            "{error}"
        );
    }
    for asked in ["-1", "2.5", "many"] {
        let error = misused(&["coalitions", &losses, "--coalitions", asked]);
        assert!(error.contains("expected a whole number or auto"), "{error}");
    }
    for limit in ["-1", "soon", "inf", "nan"] {
        let error = misused(&["coalitions", &losses, "-k", "2", "--time-limit", limit]);
        assert!(error.contains("--time-limit"), "{error}");
    }
    let four = files.put("four.csv", "1,2\n3,4\n");
    let error = refused(&["coalitions", &losses, "-k", "auto", "--held-out", &four]);
    assert!(
        error.contains("four.csv has 2 rows") && error.contains("has 6 rows"),
        "{error}"
    );
}
