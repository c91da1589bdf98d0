#![allow(clippy::unwrap_used)]

use methods::strategy::LAST_QUESTION;
use protocol::parameters::{Noise, Real, Release, Unit};
use protocol::privacy::{Group, Masked, Sums};

use super::*;
use crate::{Agreement, AmendError, ConfigError};

const EXAMPLE: &str = include_str!("../../../../examples/federation.toml");

/// The example with so many rounds and room for answers, and this table.
fn read(rounds: u64, keys: &str) -> Result<Agreement, ConfigError> {
    let first = "[[member]]\nname = \"north\"";
    let serving = format!("[serving]\n{keys}\n\n{first}");
    let text = EXAMPLE
        .replacen("rounds = 6 ", &format!("rounds = {rounds} "), 1)
        .replacen("blob-limit = 392", "blob-limit = 4000", 1)
        .replacen(first, &serving, 1);
    Agreement::parse("f.toml", &text)
}

fn agreement(rounds: u64, keys: &str) -> Agreement {
    read(rounds, keys).unwrap_or_else(|error| panic!("{error}"))
}

fn why(rounds: u64, keys: &str) -> String {
    read(rounds, keys).err().unwrap().to_string()
}

/// Secure aggregation in groups of these sizes, with one colluder.
fn masked(groups: &[u16]) -> Privacy {
    let group = |(at, size): (usize, &u16)| {
        let authors = (0..*size).map(|member| (format!("{at} {member:02}"), 1));
        Group {
            authors: authors.collect(),
        }
    };
    let groups = groups.iter().enumerate().map(group);
    of_sums(Sums::Groups(groups.collect()))
}

fn of_sums(sums: Sums) -> Privacy {
    Privacy::Masked(Masked {
        colluders: 1,
        smallest_sum: 3,
        shows: Vec::new(),
        sums,
    })
}

#[test]
fn deciding_together_is_agreed_with_its_rounds() {
    let new = agreement(40, "together = true");
    let table = new.serving.clone().unwrap();
    assert_eq!((table.folds, table.waiting_rounds), (5, 20));
    assert_eq!((table.most_rounds(), new.learning_rounds()), (26, 14));
    let written = new.to_toml().unwrap();
    let again = Agreement::parse("again", &written).unwrap();
    assert_eq!(again.serving, new.serving);
    assert_eq!(again.epoch.federation, new.epoch.federation);
    // The defaults are part of the id as they are written.
    let spelled = "together = true\nfolds = 5\nwaiting-rounds = 20";
    assert_eq!(
        agreement(40, spelled).epoch.federation,
        new.epoch.federation
    );
    let fewer = agreement(40, "together = true\nwaiting-rounds = 3");
    assert_eq!(fewer.learning_rounds(), 31);
    assert_ne!(fewer.epoch.federation, new.epoch.federation);
    // What an institution sends has room, and the rounds are those of the question at last.
    let layout = learn::stand_in(&new.task, new.seed).unwrap();
    let layouts = new.strategy.layouts(&layout.learner.layout(), None);
    let longest = layouts.iter().map(|layout| layout.document_len() as u64);
    assert_eq!(longest.max(), Some(table.largest_answer()));
    assert!(new.questions.len() < LAST_QUESTION);
}

#[test]
fn what_cannot_be_decided_together_is_refused_at_its_key() {
    for (rounds, keys, expected) in [
        (
            40,
            "together = false",
            "`together` must be true: an agreement",
        ),
        (
            40,
            "together = true\nfolds = 1",
            "`folds` must be between 2",
        ),
        (
            40,
            "together = true\nwaiting-rounds = 0",
            "`waiting-rounds` must be between 1 and 1000",
        ),
        (
            26,
            "together = true",
            "`rounds` must be more than 26, which `[serving]` takes at most",
        ),
    ] {
        let why = why(rounds, keys);
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn sums_that_hide_no_institution_are_refused() {
    let new = agreement(40, "together = true");
    let (table, strategy) = (new.serving.unwrap(), new.strategy_config);
    let fault = |privacy: &Privacy| table.fault(privacy, &strategy, 4000);
    assert_eq!(fault(&Privacy::Clear), None);
    assert_eq!(fault(&masked(&[8])), None);
    let (key, what) = fault(&masked(&[7])).unwrap();
    assert_eq!(key, "serving.together");
    assert!(
        what.contains("a group of 8 institutions or more, and there are 7"),
        "{what}"
    );
    let two = fault(&masked(&[8, 8])).unwrap().1;
    assert!(two.contains("needs one `[[privacy.group]]`"), "{two}");
    let noised = of_sums(Sums::Noised(Noise {
        release: Release::Steps,
        unit: Unit::Row,
        clip: Real::new(1.0),
        z: Real::new(20.0),
        delta: Real::new(1e-5),
    }));
    let noised = fault(&noised).unwrap().1;
    assert!(noised.contains("where rounds have noise"), "{noised}");
    let local = strategy.switch("local").unwrap();
    let alone = table.fault(&Privacy::Clear, &local, 4000).unwrap().1;
    assert!(
        alone.contains("there is no model of several members to serve"),
        "{alone}"
    );
    let (key, small) = table.fault(&Privacy::Clear, &strategy, 392).unwrap();
    assert_eq!(key, "protocol.blob-limit");
    assert!(small.starts_with("must be at least "), "{small}");
}

#[test]
fn no_amendment_changes_how_members_decide() {
    let old = agreement(40, "together = true");
    let other = agreement(40, "together = true\nfolds = 4");
    let none = Agreement::parse("f.toml", EXAMPLE).unwrap();
    for (before, after) in [(&old, &other), (&old, &none), (&none, &old)] {
        let text = after.to_toml().unwrap();
        let why = before.amended("f.toml", &text, learn::stand_in);
        let why = why.unwrap_err();
        let AmendError::Fixed { key, .. } = &why else {
            panic!("{why}");
        };
        assert!(key.starts_with("serving"), "{key}");
    }
}
