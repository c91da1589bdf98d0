//! `rota solve merge`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::solve::{SolveFiles, all_close, close, keys, misused, printed, refused, solved};

const UPDATES: &str = "1,0,0\n0.9,0.2,0\n0,1,0.1\n-0.1,0.8,0.3\n";
const SAMPLES: &str = "100\n50\n80\n40\n";

#[test]
fn every_alpha_gives_the_known_merges() {
    let files = SolveFiles::new();
    let updates = files.put("updates.csv", UPDATES);
    let samples = files.put("n.csv", SAMPLES);
    let pairs = json!([[0, 1], [2, 3]]);
    let (first, second) = (0.986_429_415_109_571_4, 0.976_704_390_710_369_1);
    for (alpha, groups, utility, total, merges) in [
        ("0", json!([[0], [1], [2], [3]]), vec![1.0; 4], 4.0, vec![]),
        (
            "1",
            json!([[0, 1], [2], [3]]),
            vec![0.9909636617563164, 0.9821324200199215, 0.9875, 0.975],
            3.935596081776238,
            vec![([0, 1], 0.003096081776237991)],
        ),
        (
            "20",
            pairs.clone(),
            vec![
                0.8642969950896499,
                0.8554657533532549,
                0.8297515612519585,
                0.8136194961250772,
            ],
            3.3631338058199405,
            vec![([2, 3], 0.3933710573770357), ([0, 1], 0.31976274844290486)],
        ),
        (
            "60",
            pairs.clone(),
            vec![
                0.5976303284229831,
                0.5887990866865882,
                0.4964182279186251,
                0.48028616279174385,
            ],
            2.1631338058199403,
            vec![([2, 3], 1.226704390710369), ([0, 1], 0.9864294151095713)],
        ),
        (
            "200",
            json!([[0, 1, 2, 3]]),
            vec![
                0.011165694502096257,
                0.134392447716975,
                -0.08277135448910689,
                -0.18592105173599094,
            ],
            -0.12313426400602656,
            vec![
                ([2, 3], 4.143371057377036),
                ([0, 1], 3.319762748442905),
                ([0, 2], 1.9137319301740332),
            ],
        ),
        (
            "own",
            pairs,
            vec![
                0.33096366175631653,
                0.6554657533532549,
                0.3297515612519585,
                0.6469528294584106,
            ],
            1.9631338058199406,
            vec![([0, 1], first), ([2, 3], second)],
        ),
    ] {
        let answer = solved(&["merge", &updates, "--samples", &samples, "--alpha", alpha]);
        assert_eq!(answer["groups"], groups, "alpha {alpha}");
        all_close(&answer["utility"], &utility);
        close(&answer["total_utility"], total);
        let steps = answer["merges"].as_array().unwrap();
        assert_eq!(steps.len(), merges.len());
        for (step, (pair, benefit)) in steps.iter().zip(merges) {
            assert_eq!(step["merge"], json!(pair));
            close(&step["benefit"], benefit);
            assert_eq!(keys(step), BTreeSet::from(["merge", "benefit"]));
        }
        let expected = ["groups", "utility", "total_utility", "merges"];
        assert_eq!(keys(&answer), BTreeSet::from(expected));
    }
    // `own` is the default; --groups merges even with negative benefits.
    let text = printed(&["merge", &updates, "--samples", &samples]);
    for said in [
        "2 groups of 4 silos after 2 merges, total utility 1.963134",
        "numbered from 0",
        "A    2 silos  0, 1\n",
        "     0 + 1     benefit     0.986429\n",
        "     3  B              40      0.646953\n",
    ] {
        assert!(text.contains(said), "{said} is missing in\n{text}");
    }
    let one = solved(&[
        "merge",
        &updates,
        "--samples",
        &samples,
        "--alpha",
        "0",
        "--groups",
        "1",
    ]);
    assert_eq!(one["groups"], json!([[0, 1, 2, 3]]));
    assert!(one["merges"][0]["benefit"].as_f64().unwrap() < 0.0);
}

#[test]
fn newcomers_are_assigned_independently() {
    let files = SolveFiles::new();
    let updates = files.put("updates.csv", UPDATES);
    let samples = files.put("n.csv", SAMPLES);
    // Similar to the first group, to the second, and to none.
    let new = files.put("new.csv", "1,0.1,0\n0,0.9,0.2\n-1,-1,0\n");
    let merge = ["merge", &updates, "--samples", &samples, "--admit", &new];
    let answer = solved(&merge);
    assert_eq!(answer["groups"], json!([[0, 1], [2, 3]]));
    close(&answer["total_utility"], 1.9631338058199406);
    let admitted = answer["admitted"].as_array().unwrap();
    let place = |of: &Value| (of["silo"].clone(), of["group"].clone());
    assert_eq!(
        admitted.iter().map(place).collect::<Vec<_>>(),
        [
            (json!(4), json!(0)),
            (json!(5), json!(1)),
            (json!(6), Value::Null)
        ]
    );
    for newcomer in admitted {
        assert_eq!(keys(newcomer), BTreeSet::from(["silo", "group", "benefit"]));
        let gains = newcomer["benefit"].as_f64().unwrap() > 0.0;
        assert_eq!(gains, !newcomer["group"].is_null());
    }
    // 270 samples of four silos.
    assert_eq!(answer["newcomer_samples"], 68);
    assert_eq!(keys(&answer).len(), 6);
    let text = printed(&merge);
    for said in [
        "4  joins A, benefit ",
        "5  joins B",
        "6  stays alone",
        "silos' mean, 68",
    ] {
        assert!(text.contains(said), "{said} is missing in\n{text}");
    }

    // Samples in the file count, and one newcomer does not affect another.
    let all = files.put("all.csv", &format!("{SAMPLES}68\n68\n68\n"));
    let same = solved(&["merge", &updates, "--samples", &all, "--admit", &new]);
    assert_eq!(
        (&same["admitted"], &same["newcomer_samples"]),
        (&answer["admitted"], &Value::Null)
    );
    let last = files.put("last.csv", "-1,-1,0\n");
    let alone = solved(&["merge", &updates, "--samples", &samples, "--admit", &last]);
    assert_eq!(alone["admitted"][0]["benefit"], admitted[2]["benefit"]);
    let more = files.put("more.csv", &format!("{SAMPLES}5000\n68\n68\n"));
    let other = solved(&["merge", &updates, "--samples", &more, "--admit", &new]);
    assert_ne!(other["admitted"][0]["benefit"], admitted[0]["benefit"]);
    assert_eq!(other["admitted"][1], admitted[1]);
}

#[test]
fn invalid_samples_newcomers_and_options_are_refused() {
    let files = SolveFiles::new();
    let updates = files.put("updates.csv", UPDATES);
    let samples = files.put("n.csv", SAMPLES);
    let new = files.put("new.csv", "1,0,0\n");
    let merge = |samples: &str, more: &[&str]| {
        refused(&[&["merge", &updates, "--samples", samples], more].concat())
    };
    for (name, text, said) in [
        ("few.csv", "1\n2\n3\n", "few.csv has 3 numbers"),
        (
            "many.csv",
            "1\n2\n3\n4\n5\n",
            "updates.csv has 4 silos: 4 are needed, one per line",
        ),
        (
            "zero.csv",
            "1\n0\n3\n4\n",
            "zero.csv, row 2, column 1: 0 is not a number of samples",
        ),
        (
            "half.csv",
            "1\n2\n3.5\n4\n",
            "half.csv, row 3, column 1: 3.5 is not a number of samples",
        ),
        (
            "row.csv",
            "1,2,3,4\n",
            "row.csv, row 1, column 2: expected one number per line",
        ),
        (
            "word.csv",
            "n\n1\n2\n3\n4\n",
            "word.csv, row 1, column 1: \"n\" is not a number",
        ),
    ] {
        let error = merge(&files.put(name, text), &[]);
        assert!(error.contains(said), "{name}: {error}");
    }
    let six = files.put("six.csv", "1\n2\n3\n4\n5\n6\n");
    let error = merge(&six, &["--admit", &new]);
    assert!(
        error.contains("4 or, with the newcomers', 5 are needed"),
        "{error}"
    );
    let narrow = files.put("narrow.csv", "1,0\n");
    let error = merge(&samples, &["--admit", &narrow]);
    assert!(
        error.contains("narrow.csv has 2 columns") && error.contains("3 columns"),
        "{error}"
    );
    for groups in ["0", "5"] {
        let error = merge(&samples, &["--groups", groups]);
        assert!(error.contains(&format!("--groups is {groups}")), "{error}");
        assert!(error.contains("4 rows: ask for 1 to 4"), "{error}");
    }
    for alpha in ["-1", "inf", "nan"] {
        let error = merge(&samples, &["--alpha", alpha]);
        assert!(
            error.contains("--alpha: α must be between 0 and"),
            "{error}"
        );
    }
    let error = misused(&["merge", &updates, "--samples", &samples, "--alpha", "much"]);
    assert!(error.contains("expected a number or own"), "{error}");
}
