//! `rota solve topology`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use crate::nodes::{output, text};
use crate::solve::{SolveFiles, all_close, keys, misused, numbers, printed, refused, solved};

const PATH: &str = "\
0,0.9,0.3,0.1,0.05
0.9,0,0.8,0.2,0.1
0.3,0.8,0,0.7,0.35
0.1,0.2,0.7,0,0.6
0.05,0.1,0.35,0.6,0
";
const THIRD: f64 = 2.0 / 3.0;

#[test]
fn the_topology_of_a_path_is_known() {
    let files = SolveFiles::new();
    let similarity = files.put("path.csv", PATH);
    let topology = ["topology", "--similarity", &similarity];
    let answer = solved(&topology);
    let expected = [
        "similarity",
        "adjacency",
        "centrality",
        "prior",
        "components",
        "isolated",
    ];
    assert_eq!(keys(&answer), BTreeSet::from(expected));
    // Everything is in [0, 1] and taken as it is.
    assert_eq!(answer["similarity"][0], json!([0.0, 0.9, 0.3, 0.1, 0.05]));
    assert_eq!(
        answer["adjacency"],
        json!([
            [0, 1, 0, 0, 0],
            [1, 0, 1, 0, 0],
            [0, 1, 0, 1, 0],
            [0, 0, 1, 0, 1],
            [0, 0, 0, 1, 0]
        ])
    );
    all_close(&answer["centrality"], &[0.0, 0.5, THIRD, 0.5, 0.0]);
    let prior = [
        0.1380228609502245,
        0.22756122669152126,
        0.2688318247165084,
        0.22756122669152126,
        0.1380228609502245,
    ];
    all_close(&answer["prior"], &prior);
    assert_eq!(answer["components"], json!([[0, 1, 2, 3, 4]]));
    assert_eq!(answer["isolated"], json!([]));

    let with = |options: &[&str]| solved(&[&topology[..], options].concat());
    for (name, centrality) in [
        ("degree", [0.25, 0.5, 0.5, 0.5, 0.25]),
        ("closeness", [0.4, 4.0 / 7.0, THIRD, 4.0 / 7.0, 0.4]),
        (
            "eigenvector",
            [
                0.28867513459481314,
                0.5,
                0.577350269189626,
                0.5,
                0.28867513459481314,
            ],
        ),
        ("current-flow-betweenness", [0.0, 0.5, THIRD, 0.5, 0.0]),
        (
            "current-flow-closeness",
            [0.1, 1.0 / 7.0, 1.0 / 6.0, 1.0 / 7.0, 0.1],
        ),
    ] {
        all_close(&with(&["--centrality", name])["centrality"], &centrality);
    }
    let raw = with(&["--raw"]);
    all_close(&raw["centrality"], &[0.0, 3.0, 4.0, 3.0, 0.0]);
    let prior = [
        0.010333864010783306,
        0.20756120714778833,
        0.5642098576828567,
        0.20756120714778833,
        0.010333864010783306,
    ];
    all_close(&raw["prior"], &prior);

    let strict = with(&["--epsilon", "0.85"]);
    assert_eq!(strict["components"], json!([[0, 1], [2], [3], [4]]));
    assert_eq!(strict["isolated"], json!([2, 3, 4]));
    let shown = printed(&[&topology[..], &["--epsilon", "0.85"]].concat());
    for said in [
        "Topology of 5 silos: 1 edge, 4 components.",
        "numbered from 0",
        "of at least 0.85",
        "Without neighbours: 2, 3, 4\n",
        "        0           1      0.000000  0.200000\n",
    ] {
        assert!(shown.contains(said), "{said} is missing in\n{shown}");
    }
}

const PARAMS: &str = "1,0,2\n1,1,2\n0,1,1\n-1,2,0\n";

#[test]
fn every_metric_gives_the_known_similarities() {
    let files = SolveFiles::new();
    let params = files.put("params.csv", PARAMS);
    for (metric, similarity) in [
        ("dot", [1.0, 0.5, 0.0, THIRD, 1.0 / 3.0, 0.5]),
        (
            "cosine",
            [
                1.0,
                0.7480252293503521,
                0.0,
                0.957905697630583,
                0.3437722882370306,
                0.7480252293503521,
            ],
        ),
        ("l1", [1.0, 0.6, 0.0, 0.8, 0.2, 0.6]),
        (
            "l2",
            [
                1.0,
                0.7029137097789888,
                0.0,
                0.8319007788362094,
                0.18834516088404454,
                0.7029137097789888,
            ],
        ),
    ] {
        let answer = solved(&["topology", &params, "--metric", metric]);
        let rows: Vec<Vec<f64>> = answer["similarity"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect();
        let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        for ((a, b), expected) in pairs.into_iter().zip(similarity) {
            assert!((rows[a][b] - expected).abs() < 1e-9, "{metric}: {rows:?}");
            assert!(
                (rows[a][b] - rows[b][a]).abs() < 1e-12,
                "{metric}: {rows:?}"
            );
        }
        assert_eq!(
            answer["adjacency"],
            json!([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
        );
        all_close(&answer["centrality"], &[0.0, 0.0, THIRD, 0.0]);
        let low = 0.2021127230571263;
        all_close(&answer["prior"], &[low, low, 0.39366183082862116, low]);
    }
}

#[test]
fn similarities_of_another_range_are_normalised() {
    let files = SolveFiles::new();
    let raw = files.put("raw.csv", "9,5,2,-1\n5,6,3,1\n2,3,2,2\n-1,1,2,5\n");
    let params = files.put("params.csv", PARAMS);
    let given = solved(&["topology", "--similarity", &raw]);
    assert_eq!(given, solved(&["topology", &params]));
}

#[test]
fn silos_share_the_prior_of_their_cluster() {
    let files = SolveFiles::new();
    // Five places on a line, one to three silos each; neighbours are alike by distance.
    let points = [0.0, 10.0, 0.1, 20.0, 30.0, 20.1, 0.2, 40.0];
    let rows: String = points.iter().map(|point| format!("{point},0\n")).collect();
    let params = files.put("params.csv", &rows);
    let options = [
        "topology",
        &params,
        "--clusters",
        "5",
        "--metric",
        "l2",
        "--epsilon",
        "0.8",
    ];
    let answer = solved(&options);
    assert_eq!(answer["clusters"], json!([0, 1, 0, 2, 3, 2, 0, 4]));
    assert_eq!(keys(&answer).len(), 7);
    for of_clusters in ["similarity", "adjacency", "centrality"] {
        assert_eq!(answer[of_clusters].as_array().unwrap().len(), 5);
    }
    all_close(&answer["centrality"], &[0.0, 0.5, THIRD, 0.5, 0.0]);
    let cluster = [0.1380228609502245, 0.22756122669152126, 0.2688318247165084];
    let (ends, second, middle) = (cluster[0], cluster[1], cluster[2] / 2.0);
    let third = ends / 3.0;
    all_close(
        &answer["prior"],
        &[third, second, third, middle, second, middle, third, ends],
    );
    assert_eq!(answer, solved(&[&options[..], &["--seed", "9"]].concat()));
    let shown = printed(&options);
    assert!(
        shown.contains("Topology of 5 clusters of 8 silos: 4 edges, 1 component."),
        "{shown}"
    );
    assert!(shown.contains("0.138023  0, 2, 6\n"), "{shown}");

    for clusters in ["0", "9"] {
        let error = refused(&["topology", &params, "--clusters", clusters]);
        assert!(
            error.contains(&format!("--clusters is {clusters}")),
            "{error}"
        );
        assert!(error.contains("8 rows: ask for 1 to 8"), "{error}");
    }
}

#[test]
fn topologies_are_drawn() {
    let files = SolveFiles::new();
    let similarity = files.put("path.csv", PATH);
    let (dot, svg) = (files.path("t.dot"), files.path("t.svg"));
    let options = ["topology", "--similarity", &similarity, "--epsilon", "0.65"];
    let drawn = solved(&[&options[..], &["--dot", &dot, "--svg", &svg]].concat());
    assert_eq!(drawn, solved(&options));
    let shown = printed(&[&options[..], &["--svg", &svg]].concat());
    assert!(
        shown.ends_with(&format!("\ndrawing written to {svg}\n")),
        "{shown}"
    );
    let dot = fs::read_to_string(dot).unwrap();
    assert!(dot.contains("  0 -- 1\n  1 -- 2\n  2 -- 3\n}"), "{dot}");
    assert!(
        dot.contains("label=\"Topology of 5 silos: 3 edges, 2 components\""),
        "{dot}"
    );
    let svg = fs::read_to_string(svg).unwrap();
    assert!(
        svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>"),
        "{svg}"
    );
    assert_eq!(svg.matches("<circle class=\"node\"").count(), 5);
    assert_eq!(svg.matches("<g class=\"alone\">").count(), 1);
    assert!(svg.contains("silo 1: prior ") && svg.contains("prefers-color-scheme: dark"));

    // The result is printed even if the drawing cannot be written.
    let nowhere = files.path("no/such/folder.svg");
    let output = output(&[&["solve"], &options[..], &["--svg", &nowhere]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("Topology of 5 silos"));
    let error = text(&output.stderr);
    assert!(
        error.contains("cannot write ") && error.contains("no/such/folder.svg"),
        "{error}"
    );
}

#[test]
fn invalid_similarities_and_options_are_refused() {
    let files = SolveFiles::new();
    let params = files.put("params.csv", PARAMS);
    let similarity = files.put("path.csv", PATH);
    let skew = files.put("skew.csv", "0,0.5,1\n0.5,0,0.25\n1,0.75,0\n");
    let error = refused(&["topology", "--similarity", &skew]);
    assert!(
        error.contains("skew.csv, row 3, column 2: 0.75, but"),
        "{error}"
    );
    assert!(error.contains("across the diagonal is 0.25"), "{error}");
    let error = refused(&["topology", "--similarity", &params]);
    assert!(
        error.contains("params.csv has 4 rows and 3 columns"),
        "{error}"
    );
    for epsilon in ["-0.1", "1.5", "nan"] {
        let error = refused(&["topology", &params, "--epsilon", epsilon]);
        assert!(error.contains("epsilon must be between 0 and 1"), "{error}");
    }
    for (options, said) in [
        (&[][..], "required"),
        (
            &[&params, "--similarity", &similarity],
            "cannot be used with",
        ),
        (
            &["--similarity", &similarity, "--metric", "l1"],
            "cannot be used with",
        ),
        (
            &["--similarity", &similarity, "--clusters", "2"],
            "cannot be used with",
        ),
        (&[&params, "--metric", "cosin"], "'cosine'"),
        (
            &[&params, "--centrality", "pagerank"],
            "current-flow-betweenness",
        ),
    ] {
        let error = misused(&[&["topology"], options].concat());
        assert!(error.contains(said), "{options:?}: {error}");
    }
}
