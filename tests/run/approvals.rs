//! An approval of an institution is what its node signs, and an amendment that cannot be read hides no other.

use ::rota::node::institution::{AmendmentFolder, Institution, KnownAmendment};
use ::rota::protocol::{Formats, MemberIndex};

use super::amended::{Heard, changes, id, says};
use super::*;

/// An edited copy of the first agreement with this many rounds, proposed at a node. Gives its id.
pub(super) fn proposed(demo: &Demo, node: usize, rounds: u64) -> String {
    let agreed = fs::read_to_string(agreement(demo)).unwrap();
    assert!(agreed.contains("rounds = 3"), "{agreed}");
    let text = agreed.replace("\nrounds = 3", &format!("\nrounds = {rounds}"));
    let file = demo.folder.join(format!("{rounds}.toml"));
    fs::write(&file, text).unwrap();
    let said = says(&demo.configs[node], &["change", file.to_str().unwrap()]);
    id(&said).to_owned()
}

/// The agreement that all nodes start from.
fn agreement(demo: &Demo) -> PathBuf {
    let text = fs::read_to_string(&demo.configs[0]).unwrap();
    let line = text.lines().find(|line| line.starts_with("federation = "));
    let file = line.unwrap().split('"').nth(1).unwrap().to_owned();
    demo.configs[0].with_file_name(file)
}

/// A file of a node's folder of amendments.
fn kept(demo: &Demo, node: usize, id: &str, kind: &str) -> PathBuf {
    let state = demo.configs[node].with_file_name("state");
    state.join("amendments").join(format!("{id}.{kind}"))
}

/// Exit code and everything that a command about changes says, in one line.
pub(super) fn told(words: &[&str], config: &Path) -> (i32, String) {
    let config = config.to_str().unwrap();
    let told = output(&[&["federation"], words, &["--config", config]].concat());
    let said = text(&told.stdout) + &text(&told.stderr);
    let said: Vec<_> = said.split_whitespace().collect();
    (told.status.code().unwrap(), said.join(" "))
}

#[test]
fn a_node_signs_the_approved_bytes_whatever_has_their_name() {
    let demo = quick("run-approved-bytes", 4);
    let (one, other) = (proposed(&demo, 0, 4), proposed(&demo, 0, 5));
    // Somebody puts the bytes of the other one under the name of the first, and an empty mark beside.
    for kind in ["amendment", "approved"] {
        fs::rename(kept(&demo, 0, &other, kind), kept(&demo, 0, &one, kind)).unwrap();
    }
    fs::write(kept(&demo, 0, &other, "approved"), b"").unwrap();
    let mut nodes = Heard::of(&demo.configs, &[]);
    nodes.nodes.start(0);
    nodes.nodes.start(1);
    for _ in 0..2 {
        let line = nodes.until(0, "file-not-used");
        let file = line["file"].as_str().unwrap();
        assert!(file.contains(&one) || file.contains(&other), "{file}");
    }
    // The amendment that it approves afterwards is the first that others hear of, and the only one.
    let third = proposed(&demo, 0, 6);
    loop {
        let heard = nodes.until(1, "amendment");
        assert_eq!(heard["amendment"], third.as_str());
        if heard["approved"].as_array().unwrap().len() == 1 {
            break;
        }
    }
    // Its folder holds one that can be read, and says what is not used.
    let (code, said) = told(&["changes"], &demo.configs[0]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(&third) && said.contains("is not used"),
        "{said}"
    );
    assert_eq!(said.matches("rounds: 3 → 6").count(), 1, "{said}");
    for no in ["in 4 rounds", "in 5 rounds"] {
        assert!(!said.contains(no), "{said}");
    }
    assert!(!changes(&demo.configs[1]).contains("is not used"));
}

#[test]
fn ids_are_typed_whole_or_with_32_digits_and_not_with_fewer() {
    let demo = quick("run-typed-ids", 4);
    let one = proposed(&demo, 0, 4);
    let config = &demo.configs[0];
    for few in [&one[..8], &one[..16], &one[..31]] {
        let (code, said) = told(&["approve", few, "--yes"], config);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("at least the first 32"), "{said}");
    }
    let (code, said) = told(&["approve", &"0".repeat(64), "--yes"], config);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("is not known here"), "{said}");
    for enough in [&one[..32], &one[..]] {
        let (code, said) = told(&["approve", enough, "--text", "--yes"], config);
        assert_eq!(code, 0, "{said}");
        // The whole new text is there.
        assert!(
            said.contains("keep-rounds = ") && said.contains("rounds = 4"),
            "{said}"
        );
        let (code, said) = told(&["withdraw", enough, "--yes"], config);
        assert_eq!(code, 0, "{said}");
        let (code, said) = told(&["withdraw", enough, "--yes"], config);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("nothing to withdraw"), "{said}");
        assert!(changes(config).contains("withdrawn here"));
    }
    // A full list is reported before a proposal is refused, with what can be withdrawn.
    let all: Vec<String> = (5..9).map(|rounds| proposed(&demo, 0, rounds)).collect();
    let (code, said) = told(&["changes"], config);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("approves 4 changes, and may approve 4 at a time"),
        "{said}"
    );
    let line = said.split("withdraw one of").nth(1).unwrap();
    assert!(all.iter().all(|id| line.contains(&id[..32])), "{said}");
    assert!(
        !line.split("(rota").next().unwrap().contains(&one[..32]),
        "{said}"
    );
}

#[test]
fn an_amendment_in_a_future_format_is_shown_and_not_approved() {
    let demo = quick("run-unspoken", 4);
    let config = &demo.configs[0];
    let institution = Institution::load(config).unwrap();
    let mut amendment = institution.agreement.leaving(MemberIndex(1));
    amendment.format = Formats::SPOKEN.newest + 1;
    let known = KnownAmendment {
        epoch: institution.agreement.epoch.id,
        approved: vec![MemberIndex(1)],
        needed: 3,
        amendment,
    };
    let unspoken = format!("format {}", Formats::SPOKEN.newest + 1);
    let amendments = AmendmentFolder::of(&institution.state);
    amendments.keep(&known).unwrap();
    let id = format!("{:#}", known.hash());
    for words in [&["changes"][..], &["approve", &id, "--yes"]] {
        let (code, said) = told(words, config);
        assert_eq!(code, i32::from(words.len() > 1), "{said}");
        assert!(said.contains(&unspoken), "{said}");
    }
    assert!(amendments.found().words.is_empty());
    // One whose text is none hides no other either.
    let unreadable = KnownAmendment {
        amendment: {
            let mut amendment = institution.agreement.leaving(MemberIndex(2));
            amendment.text = vec![0xff; 100];
            amendment
        },
        ..known
    };
    amendments.keep(&unreadable).unwrap();
    let good = proposed(&demo, 0, 4);
    let (code, said) = told(&["changes"], config);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("one amendment cannot be read"), "{said}");
    assert!(
        said.contains("unreadable: ") && said.contains(&unspoken),
        "{said}"
    );
    assert!(
        said.contains(&good) && said.contains("rounds: 3 → 4"),
        "{said}"
    );
}
