//! The program from outside: its output, its errors and its exit codes.

#![allow(clippy::unwrap_used)]

use crate::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

/// Runs `rota` with these arguments, and without data unless they name a folder.
fn rota(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env_remove("ROTA_DATA")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard output of a run that must succeed.
pub(super) fn good(arguments: &[&str]) -> String {
    let output = rota(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    text(&output.stdout)
}

pub(super) fn json(arguments: &[&str]) -> Value {
    let arguments: Vec<_> = [&["simulate", "--json", "--quiet"], arguments].concat();
    serde_json::from_str(&good(&arguments)).unwrap()
}

/// Exit code and error of a run that must print nothing to standard output.
pub(super) fn refused(arguments: &[&str]) -> (i32, String) {
    let output = rota(&[&["simulate", "--quiet"], arguments].concat());
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    (output.status.code().unwrap(), text(&output.stderr))
}

/// An empty folder of that name.
pub(super) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file with this text in a new folder.
pub(super) fn scenario(name: &str, text: &str) -> String {
    let file = folder(name).join("s.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

pub(super) const NULL: &str = "name = 'small'
rounds = 3
silos = 4
task = { constant = { parameters = 8 } }
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
";

#[test]
fn json_is_one_document_with_what_scripts_read() {
    let summary = json(&["diabetes", "--rounds", "2", "--no-references"]);
    for key in [
        "seed",
        "trace",
        "seconds",
        "bytes",
        "weights_abs_sum",
        "events",
    ] {
        assert!(summary.get(key).is_some(), "{key}");
    }
    let rounds = summary["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    for key in [
        "round",
        "view",
        "lead",
        "coalitions",
        "at",
        "cross_evaluated",
    ] {
        assert!(rounds[1].get(key).is_some(), "{key}");
    }
    assert_eq!(rounds[0]["kind"], "summarise");
    assert_eq!(
        [&rounds[0]["cross_evaluated"], &rounds[1]["cross_evaluated"]],
        [false, true]
    );
    let silos = summary["silos"].as_array().unwrap();
    assert_eq!(silos.len(), 8);
    for key in ["name", "rows", "local", "global", "coalition"] {
        assert!(silos[0].get(key).is_some(), "{key}");
    }
    assert!(silos.iter().all(|silo| silo["trainings"] == 1));
    for key in ["signatures", "bytes_hashed", "cache"] {
        assert!(summary["checks"].get(key).is_some(), "{key}");
    }
    assert_eq!(summary["invariants"].as_array().unwrap().len(), 10);
}

#[test]
fn reports_over_sockets_name_the_transport_and_no_virtual_time() {
    let file = scenario("sockets", NULL);
    let tcp = [file.as_str(), "--mesh", "loopback", "--transport", "tcp"];
    let summary = json(&tcp);
    assert_eq!(
        [
            &summary["mesh"],
            &summary["transport"],
            &summary["virtual_seconds"]
        ],
        [&Value::from("loopback"), &Value::from("tcp"), &Value::Null]
    );
    let simulated = json(&[&file]);
    assert_eq!(simulated["mesh"], "virtual");
    assert!(simulated["virtual_seconds"].is_number());
    assert_eq!(summary["weights_abs_sum"], simulated["weights_abs_sum"]);

    let out = folder("sockets-page");
    let (out, page) = (out.to_str().unwrap(), out.join("small.html"));
    let text = good(&["simulate", "-q", &file, "--mesh", "loopback", "--out", out]);
    assert!(
        text.contains("mesh      loopback, QUIC: real sockets"),
        "{text}"
    );
    assert!(
        !text.contains("trace ") && !text.contains("virtual time,"),
        "{text}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("loopback, QUIC") && page.contains("--mesh loopback"));
    assert!(!page.contains("of virtual time,"));

    let cut = "[[fault]]\nsplit = ['silo 1']\nat = '1s'\nlasts = '1s'\n";
    let file = scenario("sockets-cut", &format!("{NULL}{cut}"));
    let (code, error) = refused(&[&file, "--mesh", "loopback"]);
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("cuts links") && error.contains("--mesh virtual"),
        "{error}"
    );
}

#[test]
fn scenarios_lists_the_built_in_ones() {
    let list = good(&["scenarios"]);
    assert!(
        list.starts_with("breast-cancer ") && list.contains("\nheart "),
        "{list}"
    );
}

#[test]
fn strategies_lists_options_with_defaults() {
    let list = good(&["strategies"]);
    let proximal: Vec<_> = list.lines().skip_while(|line| *line != "fedprox").collect();
    let [_, _, paper, options, ..] = proximal[..] else {
        panic!("{list}");
    };
    assert!(
        paper.contains("Li et al. 2020") && !paper.contains("names"),
        "{paper}"
    );
    assert_eq!(options.trim(), "mu = 0.01, weight = \"exact\"");
    let shown = list
        .lines()
        .filter(|line| line.ends_with("; needs names = \"shown\""));
    assert_eq!(shown.count(), 3, "{list}");
    assert!(
        list.lines().all(|line| line.chars().count() <= 120),
        "{list}"
    );
    assert!(list.contains("centralised"), "{list}");
    let all: Value = serde_json::from_str(&good(&["strategies", "--json"])).unwrap();
    let all = all.as_array().unwrap();
    let heads = list.lines().take_while(|line| !line.is_empty());
    assert_eq!(
        all.len(),
        heads.filter(|line| !line.starts_with(' ')).count()
    );
    let coalitions = all.iter().find(|one| one["name"] == "cs-rcfl").unwrap();
    assert_eq!(coalitions["options"]["coalitions"], 2);
    assert_eq!(coalitions["names"], "removed");
}

#[test]
fn wrong_options_exit_with_2_and_name_what_is_allowed() {
    for (arguments, said) in [
        (
            &["nowhere"][..],
            "built-in scenarios are breast-cancer, diabetes, heart",
        ),
        (
            &["null", "--rounds", "0"],
            "--rounds is 0, it must be at least 1",
        ),
        (&["diabetes", "--rounds", "1"], "at least 2"),
        (
            &["null", "--silos", "0"],
            "--silos is 0, it must be between 1 and 65535",
        ),
        (&["null", "--silos", "100000000"], "between 1 and 65535"),
        (
            &["null", "--strategy", "nonsense"],
            "fedavg, local, cs-rcfl",
        ),
        (&["diabetes", "--silos", "400"], "58 different ages"),
        (
            &["diabetes", "--silos", "1"],
            "diabetes.toml (built in): `coalitions`",
        ),
        (&["null", "--silos", "many"], "--silos"),
        (&["null", "--transport", "tcp"], "add --mesh loopback"),
    ] {
        let (code, error) = refused(arguments);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn wrong_scenarios_exit_with_2_and_name_file_line_and_key() {
    let table = "task = { table = { data = 'diabetes', model = { linear = {} }, \
                 split = { test = 1.5 } } }";
    let constant = "task = { constant = { parameters = 8 } }";
    let fedavg = "name = 'fedavg'";
    for (name, text, said) in [
        (
            "unknown-key",
            NULL.replace("rounds = 3", "rounds = 3\nround = 3"),
            &["line 3: there is no key `round`", "`rounds`, `silos`"][..],
        ),
        (
            "wrong-type",
            NULL.replace("rounds = 3", "rounds = 'three'"),
            &["line 2: `rounds`", "a whole number"],
        ),
        (
            "too-many-coalitions",
            NULL.replace(fedavg, "name = 'cs-rcfl'\ncoalitions = 5"),
            &["`coalitions`", "at most 4"],
        ),
        (
            "rate",
            NULL.replace("rate = 0.1", "rate = 0.0"),
            &["line 7: `training.optimiser.rate` must be a number above 0"],
        ),
        (
            "split",
            NULL.replace(constant, table),
            &["`split`", "`test` is 1.5"],
        ),
        (
            "fault",
            format!("{NULL}[[fault]]\nkill = 'unknown'\nat = '1s'\n"),
            &["silo 1, silo 2"],
        ),
    ] {
        let file = scenario(name, &text);
        let (code, error) = refused(&[&file]);
        assert_eq!(code, 2, "{name}: {error}");
        assert!(error.contains(&file) || name == "fault", "{name}: {error}");
        for said in said {
            assert!(error.contains(said), "{name}: {error}");
        }
    }
}

#[test]
fn missing_data_exit_with_2_and_say_where_to_get_them() {
    let (code, error) = refused(&["heart"]);
    assert_eq!(code, 2);
    for said in [
        "--data",
        "archive.ics.uci.edu",
        "rota data get heart",
        "SHA-256",
    ] {
        assert!(error.contains(said), "{error}");
    }
    let empty = folder("no-data");
    let (code, error) = refused(&["heart", "--data", empty.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(error.contains("processed.cleveland.data"), "{error}");
}

#[test]
fn wrong_rows_exit_with_1_and_name_file_and_place() {
    let good = "x,y\n1,2\n2,3\n3,5\n4,6\n";
    for (name, wrong, said) in [
        (
            "text",
            "x,y\n1,2\ntwo,3\n3,5\n4,6\n",
            &["b.csv, line 3", "\"two\""][..],
        ),
        ("column", "z,y\n1,2\n2,3\n", &["b.csv", "no column \"x\""]),
        ("empty", "x,y\n?,2\n?,3\n", &["b.csv", "no usable row"]),
        ("few", "x,y\n1,2\n", &["silo \"b\" has 1 usable row"]),
    ] {
        let task = "task.table = { data = { rows = { files = [{ path = 'a.csv' }, \
                    { path = 'b.csv' }], columns = { target = 'y' } } }, \
                    standardise = 'silo', model = { linear = {} } }";
        let constant = "task = { constant = { parameters = 8 } }";
        let text = NULL.replace(constant, task).replace("silos = 4\n", "");
        let file = scenario(&format!("csv-{name}"), &text);
        let data = Path::new(&file).parent().unwrap();
        let run = |rows: &str| {
            fs::write(data.join("a.csv"), good).unwrap();
            fs::write(data.join("b.csv"), rows).unwrap();
            rota(&["simulate", "--json", "-q", &file])
        };
        assert_eq!(run(good).status.code(), Some(0), "{name}");
        let output = run(wrong);
        let error = self::text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {error}");
        for said in said {
            assert!(error.contains(said), "{name}: {error}");
        }
    }
}

#[test]
fn refusals_and_failed_views_are_in_text_page_and_json() {
    let faults = "[[fault]]\nmember = 'silo 4'\nbehaviour = 'nan'\n\
                  [[fault]]\nkill = 'lead'\nphase = 'collecting'\nround = 2\n";
    let file = scenario("faults", &format!("{NULL}{faults}"));
    let out = folder("faults-page");
    let (out, page) = (out.to_str().unwrap(), out.join("small.html"));
    let text = good(&["simulate", "-q", &file, "--out", out]);
    let page = fs::read_to_string(page).unwrap();
    let summary = json(&[&file]);

    let views = summary["timeline"].as_array().unwrap();
    let lost = views
        .iter()
        .find(|view| view["result"] == "nullified")
        .unwrap();
    assert_eq!(lost["round"], 2, "{lost}");
    let vote = &summary["nullified"][0];
    assert_eq!(vote["view"], lost["view"]);
    let refused = summary["refused"].as_array().unwrap();
    let nan = refused
        .iter()
        .find(|refused| refused["member"] == "silo 4")
        .unwrap();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for reason in [&vote["reason"], &nan["reason"]] {
        let reason = reason.as_str().unwrap();
        assert!(line.contains(reason), "{reason} in\n{text}");
        let escaped = reason.replace('&', "&amp;").replace('"', "&quot;");
        assert!(page.contains(&escaped), "{reason} on the page");
    }
    assert!(nan["reason"].as_str().unwrap().contains("not finite"));
    assert!(line.contains("safety S1–S10 held after each of"), "{text}");
    assert!(!page.contains("http://") && !page.contains("https://"));
}

/// Squared loss in full batches: with this learning rate every step multiplies the error.
fn squared(rate: f64) -> String {
    format!(
        "name = 'squared'
rounds = 4
silos = 4
[task.table]
data = 'diabetes'
model = {{ linear = {{ loss = 'squared' }} }}
[strategy]
name = 'fedavg'
training = {{ epochs = 3, batch = 0, optimiser = {{ name = 'sgd', rate = {rate} }} }}
"
    )
}

#[test]
fn a_run_that_diverges_is_named_everywhere_and_exits_with_1() {
    let file = scenario("diverges", &squared(5.0));
    let out = folder("diverges-page");
    let out = out.to_str().unwrap();
    let output = rota(&["simulate", "-q", &file, "--out", out]);
    let (shown, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("is of no use at 4 of 4 silos"), "{error}");
    let lines = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "The federation's model is of no use at 4 of 4 silos",
        "try a smaller learning rate (now 5)",
        "Of no use: the coalition's model at all 4 silos: at",
        "that of a constant prediction",
    ] {
        assert!(lines.contains(part), "{part} in\n{shown}");
    }
    // The coalition's model and the global one, at every silo; local models are tuned and do not.
    assert_eq!(shown.matches("diverged").count() - 1, 2 * 6, "{shown}");
    assert!(!shown.contains('*'), "nothing is best in\n{shown}");
    let page = fs::read_to_string(Path::new(out).join("squared.html")).unwrap();
    assert!(page.contains("is of no use at 4 of 4 silos") && page.contains("Of no use"));
    let again = page.rsplit_once("<code>").unwrap_or_default().1;
    assert!(again.starts_with("rota simulate -q "), "{again}");
    assert!(!again.contains("--seed"), "{again}");
    let output = rota(&["simulate", "-q", "--json", &file]);
    assert_eq!(output.status.code(), Some(1));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["usable"], false);
    let unusable = summary["unusable"].as_array().unwrap();
    let adopted = unusable.iter().filter(|one| one["model"] == "coalition");
    assert_eq!(adopted.count(), 4, "{unusable:?}");
}

#[test]
fn a_model_that_hardly_learned_is_weak_and_not_of_no_use() {
    let summary = json(&[&scenario("weak", &squared(1e-6))]);
    assert_eq!(summary["usable"], true);
    assert_eq!(summary["unusable"].as_array().unwrap().len(), 0);
}

#[test]
fn a_warning_names_silo_round_and_view() {
    let fault = "[[fault]]\nkill = 'lead'\nphase = 'collecting'\nround = 2\n";
    let file = scenario("warning", &format!("{NULL}{fault}"));
    let output = rota(&["simulate", "--json", "--no-references", &file]);
    let log = text(&output.stderr);
    let vote = log.lines().find(|line| line.contains("voting against"));
    let vote = vote.unwrap_or_else(|| panic!("no vote in\n{log}"));
    for field in ["name=\"silo ", "round=2", "view="] {
        assert!(vote.contains(field), "{field} in {vote}");
    }
}

#[test]
fn the_digits_scenario_reproduces_the_models_of_the_benchmark() {
    let Some(data) = env::var_os("ROTA_DATA") else {
        skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    for (name, expected) in [("digits20", 610.335), ("digits100", 574.564)] {
        let data = data.to_str().unwrap();
        let summary = json(&[name, "--memo", "--no-references", "--data", data]);
        let sum = summary["weights_abs_sum"].as_f64().unwrap();
        assert!((sum - expected).abs() < 0.01, "{name}: {sum}");
    }
}

#[test]
fn public_data_are_listed_downloaded_and_verified() {
    let listed = good(&["data", "list"]);
    for said in [
        "heart\n",
        "licence CC BY 4.0; 4 files in heart_disease/",
        "no download",
    ] {
        assert!(listed.contains(said), "{listed}");
    }
    let all: Value = serde_json::from_str(&good(&["data", "list", "--json"])).unwrap();
    assert_eq!(
        all["sets"][0]["files"][0]["sha256"].as_str().unwrap().len(),
        64
    );

    // A server of this machine with one file, for two requests.
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/abc", server.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        use std::io::{Read, Write};
        for _ in 0..2 {
            let (mut stream, _) = server.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
            stream.write_all(answer).unwrap();
        }
    });
    let home = folder("public-data");
    let catalogue = home.join("catalogue.toml");
    // SHA-256 of "abc" (FIPS 180-2).
    let text = format!(
        "[[set]]\nname = 'abc'\ntitle = 'Letters'\nused = ''\nsource = ''\npage = ''\nlicence = 'none'\n\
         folder = 'letters'\nfiles = [{{ name = 'abc.txt', bytes = 3, address = '{address}', sha256 = \
         'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' }}]\n"
    );
    fs::write(&catalogue, text).unwrap();
    let data = home.join("data");
    fs::create_dir(&data).unwrap();
    let options = [
        "--catalogue",
        catalogue.to_str().unwrap(),
        "--data",
        data.to_str().unwrap(),
    ];
    let run = |what: &[&str]| rota(&[&["data"], what, &options].concat());
    let out = |output: &Output| self::text(&output.stdout);

    let absent = run(&["verify"]);
    assert_eq!(
        (absent.status.code(), out(&absent).as_str()),
        (Some(0), "abc: not there\n")
    );
    assert_eq!(
        run(&["verify", "abc"]).status.code(),
        Some(1),
        "asked for by name"
    );
    let got = run(&["get", "abc"]);
    assert!(
        out(&got).contains("abc.txt: 3 bytes, downloaded"),
        "{got:?}"
    );
    assert!(out(&run(&["get", "abc"])).contains("there already"));
    assert_eq!(out(&run(&["verify"])), "abc: right\n");
    fs::write(data.join("letters").join("abc.txt"), "abd").unwrap();
    let wrong = run(&["verify"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        out(&wrong).contains("expected the SHA-256 ba7816bf"),
        "{wrong:?}"
    );
    assert_eq!(
        run(&["get", "abc"]).status.code(),
        Some(1),
        "it is another file"
    );
    assert_eq!(run(&["get", "abc", "--force"]).status.code(), Some(0));
    serving.join().unwrap();
    assert_eq!(run(&["get", "abd"]).status.code(), Some(2), "no such set");
}

#[test]
fn pictures_of_ones_own_are_simulated() {
    let home = folder("pictures");
    let idx = |shape: &[u32], values: &[u8]| {
        let head = [0, 0, 8, shape.len() as u8];
        let lengths: Vec<u8> = shape
            .iter()
            .flat_map(|length| length.to_be_bytes())
            .collect();
        [&head, &*lengths, values].concat()
    };
    // Bright on the left or on the right.
    let labels: Vec<u8> = (0..60).map(|row| row % 2).collect();
    let pictures: Vec<u8> = labels
        .iter()
        .flat_map(|&label| [255 - 200 * label, 55 + 200 * label].repeat(2))
        .collect();
    fs::write(home.join("images"), idx(&[60, 2, 2], &pictures)).unwrap();
    fs::write(home.join("labels"), idx(&[60], &labels)).unwrap();
    let file = home.join("s.toml");
    let text = "name = 'pictures'\nrounds = 3\nsilos = 3\n\
        [task.table]\nmodel = 'logistic'\n\
        data = { images = { from = { files = [{ path = 'images', labels = 'labels' }] }, \
        partition = { dirichlet = { alpha = 5.0, rows = 5 } } } }\n\
        [strategy]\nname = 'fedavg'\n\
        training = { epochs = 5, batch = 8, optimiser = { name = 'sgd', rate = 0.5 } }\n";
    fs::write(&file, text).unwrap();
    let report = json(&[file.to_str().unwrap()]);
    let silos = report["silos"].as_array().unwrap();
    assert_eq!(silos.len(), 3);
    let curves = report["curves"].as_array().unwrap();
    let last = curves.iter().filter(|point| point["round"] == 3);
    let reached: Vec<f64> = last
        .map(|point| point["metric"].as_f64().unwrap())
        .collect();
    assert_eq!(reached, [1.0; 3], "every silo tells them apart");
}
