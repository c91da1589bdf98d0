//! Signing an agreement with noise makes the ledger that counts it, or takes the one that there is, and nothing
//! happens unasked.

use super::*;

/// A command of `rota federation` at a node: its exit code and what it says.
fn told(words: &[&str]) -> (i32, String) {
    let told = output(&[&["federation"], words].concat());
    let said = flat(&(text(&told.stdout) + &text(&told.stderr)));
    (told.status.code().unwrap(), said)
}

#[test]
fn signing_makes_the_ledger_or_takes_the_one_that_there_is() {
    let demo = noised("run-counted", NOISED);
    let [first, second, ..] = &demo.configs[..] else {
        panic!("there are four")
    };
    let silo = fs::read_to_string(first).unwrap();
    let bare = silo.replace("\n[policy]\nledger = \"rows.ledger\"\n", "");
    assert_ne!(silo, bare);
    fs::write(first, &bare).unwrap();
    fs::remove_file(first.with_file_name("rows.ledger")).unwrap();
    let config = first.to_str().unwrap();
    let sign = ["sign", "--yes", "--config", config];
    // Nothing is signed unasked, and a node without a ledger says that it would contribute nothing.
    let (code, said) = told(&sign);
    assert_eq!(code, 2, "{said}");
    for option in ["--ledger FILE", "--new-ledger NAME"] {
        assert!(said.contains(option), "{said}");
    }
    let check = flat(&text(
        &output(&["check", "--offline", "--config", config]).stdout,
    ));
    assert!(
        check.contains("BAD policy rounds of this agreement have noise, and no ledger counts"),
        "{check}"
    );
    // One is made, and named.
    let (code, said) = told(&[&sign[..], &["--new-ledger", "patients of A"]].concat());
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("made the ledger") && said.contains("signed as"),
        "{said}"
    );
    let named = fs::read_to_string(first).unwrap();
    assert!(
        named.ends_with("[policy]\nledger = \"patients-of-a.ledger\"\n"),
        "{named}"
    );
    assert_eq!(ledger(first), [Value::Null; 0]);
    let check = flat(&text(
        &output(&["check", "--offline", "--config", config]).stdout,
    ));
    assert!(
        check.contains("good ledger patients of A (unit row)"),
        "{check}"
    );
    // It is there now, and another one is not taken.
    let (code, said) = told(&sign);
    assert_eq!(code, 0, "{said}");
    let other = second.with_file_name("rows.ledger");
    let (code, said) = told(&[&sign[..], &["--ledger", other.to_str().unwrap()]].concat());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("and --ledger another one"), "{said}");
    // The ledger of another federation's node is taken.
    fs::write(first, &bare).unwrap();
    let own = first.with_file_name("patients-of-a.ledger");
    let (code, said) = told(&[&sign[..], &["--ledger", own.to_str().unwrap()]].concat());
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(first).unwrap(), named);
    // A person may decide against one, and every page says so.
    fs::write(first, bare + "\n[policy]\nledger = false\n").unwrap();
    let (code, said) = told(&sign);
    assert_eq!(code, 0, "{said}");
    let check = flat(&text(
        &output(&["check", "--offline", "--config", config]).stdout,
    ));
    let page = first.with_file_name("agreement.html");
    good(&[
        "federation",
        "print",
        "--config",
        config,
        "--out",
        page.to_str().unwrap(),
    ]);
    for page in [check, flat(&fs::read_to_string(page).unwrap())] {
        assert!(
            page.contains("no ledger counts what this institution discloses"),
            "{page}"
        );
    }
}

#[test]
fn joining_a_federation_with_noise_makes_the_ledger() {
    let demo = noised("run-counted-join", NOISED);
    let config = &demo.configs[0];
    let at = |name: &str| config.with_file_name(name).to_str().unwrap().to_owned();
    let federation = demo.folder.join("federation.toml");
    let out = demo.folder.join("joined");
    let (key, rows) = (at("identity.key"), at("rows.csv"));
    let join = [
        "join",
        federation.to_str().unwrap(),
        "--identity",
        &key,
        "--data",
        &rows,
        "--out",
        out.to_str().unwrap(),
        "--yes",
    ];
    let (code, said) = told(&join);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("--new-ledger NAME") && !out.exists(),
        "{said}"
    );
    let (code, said) = told(&[&join[..], &["--new-ledger", "patients"]].concat());
    assert_eq!(code, 0, "{said}");
    let silo = fs::read_to_string(out.join("node.toml")).unwrap();
    assert!(
        silo.ends_with("[policy]\nledger = \"patients.ledger\"\n"),
        "{silo}"
    );
    assert!(out.join("patients.ledger").is_file());
    // The same once more is the same.
    let (code, said) = told(&join);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(out.join("node.toml")).unwrap(), silo);
}
