//! Questions in agreements, and what follows from their sums.

#![allow(clippy::unwrap_used)]
use crate::{Agreement, AmendError, Routine};
use protocol::parameters::{Noise, Real};
use protocol::privacy::{Masked, Sums};

use super::*;

const EXAMPLE: &str = include_str!("../../../../examples/federation.toml");
const AGE: &str = "\n[[question]]\nreason = \"how old the patients are\"\nkind = \"describe\"\ncolumns = [\"age\"]\n\
                   [question.ranges]\nage = [0, 120]\n";

const TREES: &str = "\n[[question]]\nreason = \"a score\"\nkind = \"trees\"\noutcome = \"ill = 1\"\n\
                     columns = [\"age\", \"bmi\"]\ntrees = 20\ndepth = 3\nlambda = 1\nedges = { bmi = [20, 25] }\n\
                     [question.ranges]\nage = [0, 120]\n";

fn agreement() -> Agreement {
    Agreement::parse("federation.toml", EXAMPLE).unwrap()
}

fn asked(text: &str) -> AgreedQuestion {
    let table: toml::Table = toml::from_str(text).unwrap();
    let list = table["question"].as_array().unwrap();
    list[0].clone().try_into().unwrap()
}

#[test]
fn a_question_comes_with_its_rounds_and_reads_as_it_was_written() {
    let old = agreement();
    for question in [TREES, AGE] {
        let text = old.asking(asked(question)).unwrap();
        let new = Agreement::parse("new", &text).unwrap();
        assert_eq!(new.questions, [asked(question)]);
        let rounds = |of: &Agreement| of.epoch.protocol.rounds;
        assert_eq!(
            rounds(&new),
            rounds(&old) + new.questions[0].most_rounds(QuestionMode::Clear)
        );
        let again = Agreement::parse("again", &new.to_toml().unwrap()).unwrap();
        assert_eq!(again.questions, new.questions);
        assert_ne!(new.contents(), old.contents());
    }
    // One without questions has the bytes that it had before there were any.
    assert_eq!(
        Agreement::parse("old", &old.to_toml().unwrap())
            .unwrap()
            .contents(),
        old.contents()
    );
}

#[test]
fn questions_are_only_added_behind_those_that_there_are() {
    let old = agreement();
    let one = Agreement::parse("one", &old.asking(asked(AGE)).unwrap()).unwrap();
    let other = AGE
        .replace("\"age\"]", "\"bmi\"]")
        .replace("age = [", "bmi = [");
    let two = one.asking(asked(&other)).unwrap();
    assert!(one.amended("two.toml", &two, learn::stand_in).is_ok());
    for wrong in [old.to_toml().unwrap(), old.asking(asked(&other)).unwrap()] {
        let why = one
            .amended("wrong.toml", &wrong, learn::stand_in)
            .unwrap_err();
        assert!(matches!(why, AmendError::Fixed { .. }), "{why}");
        assert!(
            why.to_string().contains("the questions that there are"),
            "{why}"
        );
    }
}

#[test]
fn nobody_answers_in_silence_unless_its_policy_allows_it() {
    let old = agreement();
    let new = Agreement::parse("new", &old.asking(asked(AGE)).unwrap()).unwrap();
    let why = old.needs_signature(&new, &Routine::ALL).unwrap();
    assert!(why.contains("question"), "{why}");
    let mut standing = Routine::ALL.to_vec();
    standing.push(Routine::Questions);
    assert_eq!(old.needs_signature(&new, &standing), None);
    let without_rounds = [Routine::Questions];
    assert!(old.needs_signature(&new, &without_rounds).is_some());
}

#[test]
fn a_question_that_cannot_be_answered_is_refused() {
    let text = agreement().asking(asked(AGE)).unwrap();
    let wrong = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        let why = Agreement::parse("new.toml", &text.replace(from, to)).err();
        why.unwrap().to_string()
    };
    let rounds = agreement().epoch.protocol.rounds + asked(AGE).most_rounds(QuestionMode::Clear);
    let few = wrong(&format!("rounds = {rounds}"), "rounds = 3");
    assert!(few.contains("`rounds` must be more than"), "{few}");
    let kind = wrong("\"describe\"", "\"descrieb\"");
    assert!(kind.contains("descrieb"), "{kind}");
    let range = wrong("age = [", "bmi = [");
    assert!(range.contains("is not agreed"), "{range}");
}

/// Secure aggregation in groups of these sizes, with two colluders.
fn masked(groups: &[usize]) -> Privacy {
    let group = |(at, size): (usize, &usize)| {
        let authors = (0..*size).map(|member| (format!("{at} {member:02}"), 1));
        Group {
            authors: authors.collect(),
        }
    };
    Privacy::Masked(Masked {
        colluders: 2,
        smallest_sum: 4,
        shows: Vec::new(),
        sums: Sums::Groups(groups.iter().enumerate().map(group).collect()),
    })
}

fn noised(unit: Unit) -> Privacy {
    Privacy::Masked(Masked {
        colluders: 1,
        smallest_sum: 3,
        shows: Vec::new(),
        sums: Sums::Noised(Noise {
            release: Release::Steps,
            unit,
            clip: Real::new(1.0),
            z: Real::new(20.0),
            delta: Real::new(1e-5),
        }),
    })
}

fn kind(text: &str) -> AgreedQuestion {
    let text = format!("reason = \"how\"\n{text}\n[ranges]\nage = [0, 120]\n");
    toml::from_str(&text).unwrap()
}

#[test]
fn the_mode_and_the_colluders_are_those_of_the_agreement() {
    let age = asked(AGE);
    for (privacy, mode, colluders) in [
        (Privacy::Clear, QuestionMode::Clear, 1),
        (masked(&[9]), QuestionMode::Masked, 2),
        (noised(Unit::Row), QuestionMode::Noised, 1),
    ] {
        let question = age.question(&privacy);
        assert_eq!((question.mode, question.rules.colluders), (mode, colluders));
        assert_eq!(age.impossible(&privacy), None);
    }
    let noise = age.question(&noised(Unit::Row)).noise.unwrap();
    assert_eq!((noise.multiplier, noise.min_authors), (20.0, 3));
    assert_eq!(age.question(&masked(&[9])).noise, None);
}

#[test]
fn every_group_has_to_pass_the_limits_of_counts() {
    let (age, two) = (asked(AGE), masked(&[9, 9]));
    assert_eq!(age.question(&two).groups, 2);
    assert_eq!(age.impossible(&two), None);
    let state = |groups: [u64; 2]| {
        let counts = groups.map(|rows| vec![9, rows, rows, 0]);
        let total = vec![18, groups[0] + groups[1], groups[0] + groups[1], 0];
        QuestionState {
            opened: vec![total],
            groups: [1, 2].into_iter().zip(counts).collect(),
            ..QuestionState::default()
        }
    };
    let rounds = AgreedRounds {
        replay: QuestionReplay::new(age.question(&two)),
        possible: true,
    };
    assert!(rounds.allows(&state([400, 400]).groups));
    let stage = age.stage(&state([400, 400]), &two);
    assert!(matches!(stage, QuestionStage::Open { rounds: 1 }));
    // All have enough rows, and one group has not.
    assert!(!rounds.allows(&state([797, 3]).groups));
    let QuestionStage::Stopped { rounds: 1, why } = age.stage(&state([797, 3]), &two) else {
        panic!()
    };
    assert!(why.contains("one of 2 groups is too small"), "{why}");
    assert!(why.contains("fewer than 5"), "{why}");
}

#[test]
fn trees_and_small_groups_are_not_asked_for_in_groups() {
    let trees = asked(TREES).impossible(&masked(&[9, 9])).unwrap();
    assert!(trees.contains("federation with one group"), "{trees}");
    assert_eq!(asked(TREES).impossible(&masked(&[9])), None);
    let losses = kind("kind = \"baselines\"\noutcome = \"age > 60\"\nterms = [\"age\"]");
    let in_groups = losses.impossible(&masked(&[9, 9])).unwrap();
    assert!(in_groups.contains("rows in every fold"), "{in_groups}");
    assert_eq!(losses.impossible(&masked(&[9])), None);
    let meta = kind("kind = \"meta\"\neffect = { mean = { column = \"age\" } }");
    assert_eq!(meta.impossible(&masked(&[15, 15])), None);
    let few = meta.impossible(&masked(&[29, 14])).unwrap();
    assert!(few.contains("needs 15 sites or more"), "{few}");
}

#[test]
fn sums_that_would_tell_single_sites_are_not_asked_for() {
    let meta = |more: &str| {
        kind(&format!(
            "kind = \"meta\"\neffect = {{ mean = {{ column = \"age\" }} }}\n{more}"
        ))
    };
    let few = meta("").impossible(&masked(&[14])).unwrap();
    assert!(few.contains("needs 15 sites or more"), "{few}");
    assert_eq!(meta("").impossible(&masked(&[15])), None);
    let reml = meta("reml = true").impossible(&masked(&[99])).unwrap();
    assert!(reml.contains("REML"), "{reml}");
    assert_eq!(meta("reml = true").impossible(&Privacy::Clear), None);
}

#[test]
fn noise_goes_with_sums_that_one_row_changes_little() {
    let describe = asked(AGE);
    let persons = describe.impossible(&noised(Unit::Person("id".into())));
    assert!(persons.unwrap().contains("persons"));
    let quantiles =
        kind("kind = \"quantiles\"\ncolumns = [\"age\"]\nprobabilities = [0.5]\nwidth = 1.0");
    let why = quantiles.impossible(&noised(Unit::Row)).unwrap();
    assert!(why.contains("every round would need noise"), "{why}");
    let regression =
        kind("kind = \"glm\"\nfamily = \"binomial\"\noutcome = \"ill = 1\"\nterms = [\"age\"]");
    assert_eq!(regression.impossible(&noised(Unit::Row)), None);
    let rounds =
        [QuestionMode::Clear, QuestionMode::Noised].map(|mode| regression.most_rounds(mode));
    assert_eq!(rounds, [30 + REPEATED, 7 + REPEATED]);
    // One row of 20 Δ, shared by two of three authors, in the sum of four.
    let sums = [vec![4, 400, 400, 0], vec![400, 0, 0]];
    let noise = describe.noise(&noised(Unit::Row), &sums, 4.0).unwrap();
    let expected = 20.0 * 3f64.sqrt() * (4.0f64 / 2.0).sqrt();
    assert!((noise / expected - 1.0).abs() < 0.01, "{noise}, {expected}");
    // More than can be drawn in steps as fine.
    let mut loud = noised(Unit::Row);
    if let Privacy::Masked(masked) = &mut loud
        && let Sums::Noised(noise) = &mut masked.sums
    {
        noise.z = Real::new(100_000.0);
    }
    let why = describe.impossible(&loud).unwrap();
    assert!(why.contains("lower z"), "{why}");
}

#[test]
fn bytes_of_a_round_are_those_of_what_is_sent() {
    // As a contribution in clear, and as words behind which stand refusals and checks.
    assert_eq!(bytes_of_round(QuestionMode::Clear, 7), answer_size(7));
    let words = |mode| bytes_of_round(mode, 7) / 8;
    assert_eq!(words(QuestionMode::Masked), 7 + REFUSAL_RULES as u64 + 4);
    assert_eq!(words(QuestionMode::Noised), 7 + 4);
}
