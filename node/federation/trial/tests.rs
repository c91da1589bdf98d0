#![allow(clippy::unwrap_used)]

use std::fs;

use agreement::AmendError;
use protocol::SecretKey;
use silo::{Blobs, Journal};
use store::{OpenedStore, Owner};

use super::*;
use crate::fixture::{EXAMPLE, North};

impl North {
    /// Has adopted a round whose only model has this layout, and these values everywhere.
    fn adopted(self, round: u64, layout: &Arc<Layout>, value: f32) -> Self {
        let owner = Owner {
            federation: self.institution.agreement.epoch.federation,
            me: self.institution.me,
            key: self.institution.key.clone(),
        };
        let opened = store::open(&self.institution.state, &owner, 1 << 20).unwrap();
        let OpenedStore {
            mut journal, blobs, ..
        } = opened;
        let model = Params::from_values(layout, &vec![value; layout.len()]).document();
        let hash = Hash::of(&model);
        let document = Document {
            round,
            entries: Vec::new(),
            assignment: Vec::new(),
            models: vec![hash],
            memory: Default::default(),
            tables: Default::default(),
            masked: None,
        };
        let document = document.encode();
        let outcome = Hash::of(&document);
        blobs.put(hash, model).unwrap();
        blobs.put(outcome, document).unwrap();
        journal.load().unwrap();
        let adopted = Adopted {
            round,
            block: [1; 32],
            outcome: outcome.0,
            coalition: 0,
            personal: [2; 32],
            blobs: vec![hash.0, outcome.0],
        };
        journal
            .commit(vec![JournalRecord::Adopted(adopted)])
            .unwrap();
        self
    }

    fn layout(&self) -> Arc<Layout> {
        let equipment = self.institution.equipment(None).unwrap();
        equipment.equipped.layout()
    }

    /// Returns what would keep north from living under its agreement with these edits, as they are read.
    fn tried(&self, edits: &[(&str, &str)]) -> Vec<String> {
        tried(&self.institution, &North::agreement(edits))
    }
}

fn one(found: Vec<String>) -> String {
    let [only] = &found[..] else {
        panic!("one sentence was expected: {found:#?}");
    };
    only.clone()
}

#[test]
fn a_node_that_could_go_on_has_nothing_against_it() {
    let north = North::new();
    let none: [String; 0] = [];
    assert_eq!(north.tried(&[]), none);
    let other = [
        ("rounds = 6", "rounds = 9"),
        ("blob-limit = 392", "blob-limit = 3920"),
        ("verification = \"full\"", "verification = \"committee-3\""),
        ("max-model-norm = 1000.0", "max-model-norm = 500"),
        ("epochs = 10", "epochs = 3"),
    ];
    assert_eq!(north.tried(&other), none);
    let layout = north.layout();
    let north = north.adopted(6, &layout, 0.5);
    assert_eq!(north.tried(&other), none);
    // Where it is no member, it lives under nothing.
    let key = SecretKey::from_bytes(&[8; 32]).public();
    let text = north.institution.agreement.rekeyed("north", key).unwrap();
    let without = Agreement::parse("f.toml", &text).unwrap();
    assert_eq!(tried(&north.institution, &without), none);
}

#[test]
fn a_limit_below_a_contribution_is_named_with_the_remedy() {
    let north = North::new();
    let said = one(north.tried(&[("blob-limit = 392", "blob-limit = 31")]));
    assert_eq!(
        said,
        "`protocol.blob-limit` is 31, and a contribution of this institution has 392 bytes: set it to 392 \
         or more"
    );
    // With numbers beside the model, what was enough is too little.
    let stop = (
        "personal = []",
        "stop = { patience = 3, measure = \"loss\" }",
    );
    let split = ("validation = 0.0", "validation = 0.2");
    let said = north.tried(&[stop, split]);
    assert!(
        said[0].contains("blob-limit` is 392, and a contribution"),
        "{said:#?}"
    );
}

#[test]
fn a_norm_below_that_of_the_newest_models_is_named_with_the_remedy() {
    let north = North::new();
    let layout = north.layout();
    let north = north.adopted(3, &layout, 2.0);
    let said = one(north.tried(&[("max-model-norm = 1000.0", "max-model-norm = 1")]));
    assert!(
        said.starts_with("`protocol.max-model-norm` is 1, and a model of round 3 has the norm "),
        "{said}"
    );
    assert!(said.contains("set it well above"), "{said}");
}

#[test]
fn rounds_that_are_final_already_cannot_be_cut() {
    let north = North::new();
    let layout = north.layout();
    let north = north.adopted(5, &layout, 0.5);
    let said = one(north.tried(&[("rounds = 6", "rounds = 4")]));
    assert_eq!(
        said,
        "`rounds` is 4, and round 5 is final already: set it to 5 or more"
    );
    assert!(north.tried(&[("rounds = 6", "rounds = 5")]).is_empty());
}

#[test]
fn another_model_than_that_of_the_newest_round_is_named() {
    let north = North::new();
    let layout = north.layout();
    let north = north.adopted(3, &layout, 0.5);
    let said = north.tried(&[("personal = []", "personal = [\"intercept\"]")]);
    assert!(
        said.iter()
            .any(|why| why.contains("federation would have started from")),
        "{said:#?}"
    );
    assert!(
        said.iter()
            .any(|why| why.starts_with("`strategy` cannot continue from the models of round 3")),
        "{said:#?}"
    );
}

#[test]
fn rows_that_do_not_fit_keep_a_node_from_taking_part() {
    let north = North::new();
    let said = one(north.tried(&[("min-rows = 10", "min-rows = 1000")]));
    assert!(
        said.starts_with("this institution's node could not take part under it: "),
        "{said}"
    );
    assert!(said.contains("1000"), "{said}");
    // A member too few for the domains that the task lists.
    let gone = north.institution.agreement.without("south").unwrap();
    let gone = Agreement::parse("f.toml", &gone).unwrap();
    let said = one(tried(&north.institution, &gone));
    assert!(said.contains("domains"), "{said}");
    fs::remove_file(north.folder.path().join("rows.csv")).unwrap();
    assert!(one(north.tried(&[])).contains("rows.csv"));
}

#[test]
fn an_address_that_no_node_can_use_is_refused_without_rows() {
    let old = Agreement::parse("f.toml", EXAMPLE).unwrap();
    let with = |from: &str, to: &str| {
        let text = EXAMPLE.replacen(from, to, 1);
        old.amended("new.toml", &text, learn::stand_in)
    };
    let odd = with(
        "/dns/rota.north.example/tcp/4001",
        "/dns/rota.north.example/tcp",
    )
    .unwrap();
    let why = examined(&old, &odd).err().unwrap();
    assert!(why.starts_with("`addresses` of north holds "), "{why}");
    let good = with("rounds = 6", "rounds = 7").unwrap();
    assert_eq!(examined(&old, &good).unwrap().epoch.protocol.rounds, 7);
    let small = with("blob-limit = 392", "blob-limit = 31").err().unwrap();
    assert!(
        matches!(
            small,
            AmendError::Limit {
                size: 392,
                limit: 31
            }
        ),
        "{small}"
    );
}

#[test]
fn a_delta_above_one_part_in_the_declared_rows_does_not_come_in_by_a_change() {
    let with = |delta: &str| {
        let keys = format!("noise-multiplier = 20.0\nmin-authors = 3\ndelta = {delta}");
        let text = North::noised(&keys);
        (North::read(&text), text)
    };
    // Four institutions with 120 rows each.
    let (small, _) = with("1e-5");
    let (large, text) = with("0.1");
    let amendment = small.amended("f.toml", &text, learn::stand_in).unwrap();
    let why = examined(&small, &amendment).err().unwrap();
    assert!(
        why.contains("`delta` of [privacy] is 1e-1, which is above 1 / 480"),
        "{why}"
    );
    // Where it is in force, everything else may change.
    let longer = text.replacen("rounds = 6", "rounds = 7", 1);
    let amendment = large.amended("f.toml", &longer, learn::stand_in).unwrap();
    assert!(examined(&large, &amendment).is_ok());
    // Whoever reads the agreement is warned.
    let words = crate::federation::words(&large).join("\n");
    assert!(
        words.contains("  warning: `delta` of [privacy] is 1e-1"),
        "{words}"
    );
    let words = crate::federation::words(&small).join("\n");
    assert!(!words.contains("warning: `delta`"), "{words}");
}
