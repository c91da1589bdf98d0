//! Everything that can be wrong with an invitation, a key or the rows of a new member.

use super::*;

/// The exit code and what was said on standard error.
fn refused(hospitals: &JoiningHospitals, at: usize, token: &str, more: &[&str]) -> (i32, String) {
    let words = hospitals.joining(at, token);
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    let refused = output(&words);
    (refused.status.code().unwrap(), text(&refused.stderr))
}

#[test]
fn every_wrong_invitation_has_one_sentence_and_writes_nothing() {
    let hospitals = JoiningHospitals::new("join-wrong");
    let draft = hospitals.draft(2);
    let token = good(&["federation", "invite", "--file", &draft]);
    let token = token.trim();
    let mut damaged = token.to_owned();
    let place = damaged.len() - 20;
    let other = if &damaged[place..=place] == "A" {
        "B"
    } else {
        "A"
    };
    damaged.replace_range(place..=place, other);
    let newer = token.replacen("rota-invite-1-", "rota-invite-3-", 1);
    for (token, expected) in [
        (
            damaged.as_str(),
            "this invitation is damaged, its checksum does not match",
        ),
        (&token[..200], "this invitation is damaged"),
        (
            &newer,
            "has version 3, and this program reads versions 1 and 2",
        ),
        ("hello", "this is no invitation"),
    ] {
        let (code, said) = refused(&hospitals, 0, token, &[]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
    // A key that is not in the agreement: what to send back.
    let (code, said) = refused(
        &hospitals,
        2,
        token,
        &["--name", "east coast", "--address", "east.example:4001"],
    );
    assert_eq!(code, 1);
    assert!(said.contains("is not in this agreement"), "{said}");
    let (_, rest) = hospitals.lines[2].rsplit_once("' ").unwrap();
    let (key, _) = rest.split_once(' ').unwrap();
    let line = format!("'east coast' {key} east.example:4001");
    assert!(said.contains(&line), "{said}");
    // Another member's invitation.
    let south = good(&["federation", "invite", "south", "--file", &draft]);
    let (code, said) = refused(&hospitals, 0, &south, &[]);
    assert_eq!(code, 2);
    assert!(
        said.contains("this invitation is for south, and the key in")
            && said.contains("is that of north"),
        "{said}"
    );
    for at in 0..3 {
        for file in ["node.toml", "federation.toml", "consent.toml"] {
            assert!(
                !Path::new(&hospitals.path(at, file)).exists(),
                "{at} {file}"
            );
        }
    }
}

#[test]
fn an_invitation_before_keys_are_known_states_what_to_send_back() {
    let hospitals = JoiningHospitals::new("join-early");
    let draft = hospitals.draft(0);
    let token = good(&["federation", "invite", "south", "--file", &draft]);
    let words = hospitals.joining(1, &token);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let early = output(&[&words[..], &["--address", "south.example:4001"]].concat());
    let (shown, said) = (text(&early.stdout), text(&early.stderr));
    assert_eq!(early.status.code(), Some(1));
    assert!(
        shown.contains("to predict outcome: one of home, died"),
        "{shown}"
    );
    let key = hospitals.lines[1].split(' ').nth(1).unwrap();
    assert!(
        said.contains(&format!("\n  south {key} south.example:4001")),
        "{said}"
    );
}

#[test]
fn a_member_that_does_not_go_with_the_others_is_not_added() {
    let hospitals = JoiningHospitals::new("join-add");
    let draft = hospitals.draft(1);
    let before = fs::read_to_string(&draft).unwrap();
    let key = hospitals.lines[1].split(' ').nth(1).unwrap().to_owned();
    let own = hospitals.lines[0].split(' ').nth(1).unwrap().to_owned();
    let zeros = "0".repeat(64);
    for (member, expected) in [
        (
            ["north", key.as_str(), "south.example:4001"],
            "two members are named",
        ),
        (
            ["south", &own, "south.example:4001"],
            "has the same key as another member",
        ),
        (
            ["south", &zeros, "south.example:4001"],
            "is not a usable Ed25519 key",
        ),
        (
            ["south", "abc", "south.example:4001"],
            "a key has the 64 hexadecimal digits",
        ),
        (["south", &key, "south.example"], "write HOST:PORT"),
        (
            ["south", &key, "0.0.0.0:4001"],
            "where a node listens, and not where others reach it",
        ),
        (["so\u{202e}uth", &key, "south.example:4001"], "U+202E"),
        // Cyrillic о in a Latin word, and all of it in letters that look like others.
        (["s\u{43e}uth", &key, "south.example:4001"], "U+043E"),
        (
            ["n0rth", &key, "south.example:4001"],
            "looks like \"north\"",
        ),
    ] {
        let mut words = vec!["federation", "add"];
        words.extend(member);
        words.extend(["--file", &draft]);
        let refused = output(&words);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{member:?}: {said}");
        assert!(said.contains(expected), "{member:?}: {said}");
    }
    assert_eq!(fs::read_to_string(&draft).unwrap(), before);
}

#[test]
fn existing_files_are_kept_and_consent_is_for_its_agreement() {
    let hospitals = JoiningHospitals::joined("join-again");
    let config = hospitals.path(0, "node.toml");
    // The same again changes nothing that matters.
    let draft = hospitals.path(0, "draft.toml");
    let token = good(&["federation", "invite", "--file", &draft]);
    assert!(hospitals.join(0, &token).status.success());
    // A configuration that its owner has changed stays as it is, and one of another node is not overwritten.
    let changed = fs::read_to_string(&config).unwrap() + "# mine\n";
    fs::write(&config, &changed).unwrap();
    assert!(hospitals.join(0, &token).status.success());
    assert_eq!(fs::read_to_string(&config).unwrap(), changed);
    let other = changed.replace("state = \"state\"", "state = \"elsewhere\"");
    assert_ne!(other, changed);
    fs::write(&config, &other).unwrap();
    let (code, said) = refused(&hospitals, 0, &token, &[]);
    assert_eq!(code, 2);
    assert!(
        said.contains("node.toml exists with other contents"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&config).unwrap(), other);
    fs::write(&config, &changed).unwrap();
    // Somebody changes the agreement after it was signed.
    let agreed = hospitals.path(0, "federation.toml");
    let text = fs::read_to_string(&agreed).unwrap();
    fs::write(&agreed, text.replace("rounds = 3", "rounds = 4")).unwrap();
    let run = output(&["run", "--config", &config]);
    let said = crate::nodes::text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(
        said.contains("it is the consent of north to another agreement"),
        "{said}"
    );
}

#[test]
fn an_agreement_needs_its_target_and_only_a_terminal_is_asked() {
    let hospitals = JoiningHospitals::new("join-new");
    let out = hospitals.path(0, "federation.toml");
    let refused = output(&["federation", "new", "--out", &out]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said.contains("what is learned is missing: give --scenario FILE"),
        "{said}"
    );
    // From a table of the first hospital: the schema, and none of its rows.
    let table = hospitals.path(0, "more.csv");
    let own = rows(0);
    // A column whose values differ in all rows would be taken for a number of each patient.
    let (header, once) = own.split_once('\n').unwrap();
    fs::write(
        &table,
        format!(
            "case,{header}\n{}",
            [once, once]
                .concat()
                .lines()
                .enumerate()
                .map(|(at, row)| format!("{at},{row}\n"))
                .collect::<String>()
        ),
    )
    .unwrap();
    let made = good(&[
        "federation",
        "new",
        "--table",
        &table,
        "--target",
        "outcome",
        "--positive",
        "died",
        "--name",
        "wards",
        "--missing",
        "median",
        "--rounds",
        "5",
        "--strategy",
        "fedprox",
        "--model",
        "{ mlp = { hidden = [4] } }",
        "--out",
        &out,
    ]);
    assert!(
        made.contains("not complete yet") && made.contains("--ignore case"),
        "{made}"
    );
    let written = fs::read_to_string(&out).unwrap();
    for part in [
        "name = \"wards\"",
        "rounds = 5",
        "fedprox",
        "hidden = [4]",
        "missing = \"median\"",
        "positive = \"died\"",
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }
    assert!(!written.contains("more.csv"), "{written}");
    hospitals.add(&out, 0);
    good(&[
        "federation",
        "check",
        &out,
        "--data",
        &table,
        "--ignore",
        "case",
    ]);
    let unread = output(&["federation", "check", &out, "--data", &table]);
    assert!(
        text(&unread.stderr).contains("case"),
        "{}",
        text(&unread.stderr)
    );
    let other = hospitals.path(1, "rows.csv");
    let unfit = output(&["federation", "check", &out, "--data", &other]);
    assert_eq!(unfit.status.code(), Some(1));
    assert!(
        text(&unfit.stderr).contains("there is no column"),
        "{}",
        text(&unfit.stderr)
    );
}
