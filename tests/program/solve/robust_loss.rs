//! `rota solve robust-loss`.

use std::collections::BTreeSet;

use crate::solve::{SolveFiles, close, keys, printed, refused, solved};

const LOGISTIC: &str = "x1,y,x2\n1,1,2\n2,-1,-1\n3,1,1\n";
const LINEAR: &str = "a,b,y\n1,0,1\n0,2,1\n1,1,0\n2,-1,4\n";

#[test]
fn every_radius_and_norm_gives_the_known_loss() {
    let files = SolveFiles::new();
    let data = files.put("data.csv", LOGISTIC);
    let zeros = files.put("zeros.csv", &LOGISTIC.replace("-1,-1", "0,-1"));
    let model = files.put("theta.csv", "1,0.5\n");
    let root = 1.118033988749895;
    for (radius, cost, norm, loss, lambda) in [
        ("0.1", "1", "2", 0.9693639024327818, 3.5),
        ("0.5", "1", "2", 2.1193639024327817, 2.0),
        ("0.1", "0.5", "2", 1.319363902432782, 7.0),
        ("0.2", "0.25", "2", 2.489965035391112, root),
        ("1", "0.5", "2", 3.198053228266045, root),
        ("0.1", "inf", "2", 0.7311673013077713, root),
        ("0.3", "1", "1", 1.6693639024327818, 3.5),
        ("0.3", "1", "inf", 1.669363902432782, 3.5),
        ("0.3", "3", "2", 0.9693639024327818, 1.1666666666666667),
    ] {
        for data in [&data, &zeros] {
            let answer = solved(&[
                "robust-loss",
                data,
                "--target",
                "y",
                "--model",
                &model,
                "--loss",
                "logistic",
                "--radius",
                radius,
                "--label-cost",
                cost,
                "--norm",
                norm,
            ]);
            close(&answer["loss"], loss);
            close(&answer["lambda"], lambda);
            close(&answer["empirical_loss"], 0.6193639024327818);
            assert_eq!(
                keys(&answer),
                BTreeSet::from(["loss", "empirical_loss", "lambda"])
            );
        }
    }
    let plain = [
        "--target", "y", "--model", &model, "--loss", "logistic", "--radius", "0.1",
    ];
    close(
        &solved(&[&["robust-loss", &data], &plain[..]].concat())["loss"],
        0.9693639024327818,
    );
    let text = printed(&[&["robust-loss", &data], &plain[..]].concat());
    assert!(
        text.contains("logistic loss") && text.contains("0.969364"),
        "{text}"
    );
    assert!(
        text.contains("0.619364") && text.contains("3.500000"),
        "{text}"
    );

    let data = files.put("linear.csv", LINEAR);
    let model = files.put("line.csv", "1.5,-0.5\n");
    for (radius, norm, loss) in [
        ("0", "2", 1.0),
        ("0.1", "2", 1.187082869338697),
        ("0.3", "2", 1.5612486080160912),
        ("0.1", "1", 1.15),
        ("0.1", "inf", 1.3),
    ] {
        let answer = solved(&[
            "robust-loss",
            &data,
            "--target",
            "y",
            "--model",
            &model,
            "--loss",
            "absolute",
            "--radius",
            radius,
            "--norm",
            norm,
        ]);
        close(&answer["loss"], loss);
        close(&answer["empirical_loss"], 1.0);
    }
}

#[test]
fn data_and_models_that_do_not_fit_are_refused() {
    let files = SolveFiles::new();
    let model = files.put("theta.csv", "1,0.5\n");
    let data = files.put("data.csv", LOGISTIC);
    let run = |data: &str, model: &str, more: &[&str]| {
        let options = [
            "--target", "y", "--model", model, "--loss", "logistic", "--radius", "0.1",
        ];
        refused(&[&["robust-loss", data], &options[..], more].concat())
    };
    for (name, text, said) in [
        (
            "two.csv",
            LOGISTIC.replace("2,-1,-1", "2,2,-1"),
            "two.csv, row 3, column 2: label 2: expected -1 and 1",
        ),
        (
            "mixed.csv",
            LOGISTIC.to_owned() + "1,0,1\n",
            "mixed.csv, row 5, column 2: label 0, but row 3 has -1",
        ),
        (
            "none.csv",
            LOGISTIC.replace('y', "z"),
            "none.csv has no column \"y\"; its columns are x1, z, x2",
        ),
        ("head.csv", "x1,y,x2\n".to_owned(), "head.csv has no rows"),
        (
            "bare.csv",
            "1,1,2\n2,-1,-1\n".to_owned(),
            "bare.csv, row 1, column 1: the first line must be the names",
        ),
        (
            "twice.csv",
            LOGISTIC.replace("x2", "x1"),
            "twice.csv, row 1, column 3: another column is also named \"x1\"",
        ),
        (
            "name.csv",
            LOGISTIC.replace("x2", ""),
            "name.csv, row 1, column 3: this column has no name",
        ),
        (
            "short.csv",
            LOGISTIC.to_owned() + "1,1\n",
            "short.csv, row 5, column 3: a value is missing; every row must have 3 columns, as row 1",
        ),
        (
            "word.csv",
            LOGISTIC.to_owned() + "1,yes,1\n",
            "word.csv, row 5, column 2: \"yes\" is not a number",
        ),
        ("empty.csv", String::new(), "empty.csv has no rows"),
    ] {
        let error = run(&files.put(name, &text), &model, &[]);
        assert!(error.contains(said), "{name}: {error}");
    }
    for (name, text, said) in [
        (
            "more.csv",
            "1,0.5,3\n",
            "data.csv has 2 feature columns (x1, x2)",
        ),
        ("more.csv", "1,0.5,3\n", "no intercept"),
        ("less.csv", "1\n", "less.csv has 1 number, but"),
        (
            "rows.csv",
            "1\n0.5\n",
            "rows.csv has 2 rows: a model must be one row",
        ),
        (
            "word.csv",
            "x1,x2\n1,2\n",
            "word.csv, row 1, column 1: \"x1\" is not a number",
        ),
    ] {
        let error = run(&data, &files.put(name, text), &[]);
        assert!(error.contains(said), "{name}: {error}");
    }
    let absolute = [
        "robust-loss",
        &data,
        "--target",
        "y",
        "--model",
        &model,
        "--loss",
        "absolute",
        "--radius",
        "0.1",
        "--label-cost",
        "1",
    ];
    assert!(refused(&absolute).contains("--label-cost is only for --loss logistic"));
    for cost in ["0", "-1", "nan"] {
        let error = run(&data, &model, &["--label-cost", cost]);
        assert!(
            error.contains("cost of changing a label must be above 0"),
            "{error}"
        );
    }
    for radius in ["-0.1", "inf", "nan"] {
        let error = refused(&[
            "robust-loss",
            &data,
            "--target",
            "y",
            "--model",
            &model,
            "--loss",
            "logistic",
            "--radius",
            radius,
        ]);
        assert!(error.contains("radius of a Wasserstein ball"), "{error}");
    }
}
