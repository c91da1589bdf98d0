#![allow(clippy::unwrap_used)]

use super::*;
use crate::params::{Layout, Params, Role, TensorSpec};
use crate::serving::{ComparedOn, Measured, PersonalParts};

const ROUNDS: TogetherRounds = TogetherRounds { waiting: 3 };

/// The comparison of a silo that measured these advantages and standard errors of its coalition's and its tuned model.
fn silo(of: [(f64, f64); 2]) -> ComparedModels {
    let model = || {
        let layout = Layout::new(vec![TensorSpec::new("w", [1], Role::Weight)]).unwrap();
        (Params::from_values(&layout, &[1.0]), Params::empty())
    };
    let measured = |candidate, (advantage, error)| Measured {
        candidate,
        loss: 1.0 - advantage,
        advantage,
        error,
        together: Advantage {
            mean: advantage,
            error,
        },
        parts: 1_000_000,
        seen: 0.0,
    };
    let candidates = [Candidate::Local, Candidate::Coalition, Candidate::FineTuned];
    let of = [(0.0, 0.0), of[0], of[1]];
    ComparedModels {
        on: ComparedOn::Folds,
        measured: candidates
            .iter()
            .zip(of)
            .map(|(candidate, of)| measured(*candidate, of))
            .collect(),
        models: candidates.map(|one| (one, model())).into(),
        coalition: model(),
        parts: PersonalParts::Trained,
    }
}

/// The sum of what these silos add, modulo 2⁶⁴.
fn sum(silos: &[ComparedModels]) -> Vec<u64> {
    let mut sum = vec![0_u64; TogetherRounds::NUMBERS];
    for silo in silos {
        let own = TogetherRounds::own(Some(silo));
        sum.iter_mut()
            .zip(own)
            .for_each(|(sum, own)| *sum = sum.wrapping_add(own));
    }
    sum
}

/// Six silos of which none but the fourth can tell alone that it gains by its coalition's model.
fn six() -> Vec<ComparedModels> {
    [
        [(0.02, 0.03), (0.01, 0.02)],
        [(0.01, 0.03), (-0.02, 0.01)],
        [(-0.01, 0.03), (-0.3, 0.01)],
        [(0.04, 0.03), (0.05, 0.06)],
        [(0.015, 0.03), (0.001, 1e-4)],
        [(0.02, 0.03), (100.0, 90.0)],
    ]
    .map(silo)
    .into()
}

#[test]
fn members_wait_until_none_compares_or_the_agreed_rounds_end() {
    let next = |opened: &[Vec<u64>]| ROUNDS.next(opened);
    assert_eq!(next(&[]), Some(1));
    assert_eq!(next(&[vec![2]]), Some(1));
    assert_eq!(next(&[vec![2], vec![0]]), Some(16));
    assert_eq!(next(&[vec![0]]), Some(16));
    // Somebody is never done.
    assert_eq!(next(&[vec![2], vec![1]]), Some(1));
    assert_eq!(next(&[vec![2], vec![1], vec![1]]), Some(16));
    let all = [vec![2], vec![1], vec![1], vec![0; 16]];
    assert_eq!(next(&all), None);
    assert_eq!(ROUNDS.stage(&all), TogetherStage::Opened(&[0; 16]));
    assert_eq!((ROUNDS.most(), ROUNDS.largest()), (4, 16));
}

#[test]
fn opened_sums_decide_as_the_comparisons_themselves() {
    let silos = six();
    let (whole, opened) = (Together::of(&silos), Together::opened(&sum(&silos)));
    assert_eq!(opened.silos(), 6);
    for silo in &silos {
        let pairs = whole.shrunken(&silo.measured).into_iter();
        for (exact, found) in pairs.zip(opened.shrunken(&silo.measured)) {
            let apart = (exact.advantage - found.advantage).abs();
            let errors = (exact.error - found.error).abs();
            assert!(apart < 1e-8 && errors < 1e-8, "{exact:?} {found:?}");
        }
        let choice = |of: &Together| of.serve(silo.clone()).candidate;
        assert_eq!(choice(&whole), choice(&opened));
    }
    // Not all choose as they would alone.
    let alone = silos.iter().map(|one| one.clone().alone().candidate);
    let together = silos.iter().map(|one| opened.serve(one.clone()).candidate);
    assert!(!alone.eq(together));
}

#[test]
fn what_is_beyond_reach_adds_zeros() {
    let zeros = vec![0; TogetherRounds::NUMBERS];
    assert_eq!(TogetherRounds::own(None), zeros);
    // A square reaches up to 2¹⁶.
    for beyond in [
        (257.0, 0.1),
        (0.1, 257.0),
        (f64::NAN, 0.1),
        (0.1, f64::INFINITY),
    ] {
        let own = TogetherRounds::own(Some(&silo([beyond, (-0.5, 0.25)])));
        assert_eq!(own[4..8], [0; 4], "{beyond:?}");
        let half = (-(1_i64 << 29)).cast_unsigned();
        assert_eq!(own[12..], [1, half, 1 << 34, 1 << 32]);
    }
    let own = TogetherRounds::own(Some(&silo([(-256.0, 0.0), (0.0, 0.0)])));
    assert_eq!(own[4..8], [1, (-(1_i64 << 38)).cast_unsigned(), 1 << 52, 0]);
}

#[test]
fn sums_that_no_silos_can_have_decide_nothing() {
    let silos = six();
    let whole = sum(&silos);
    for (at, word) in [(4, 0), (4, u64::MAX), (6, u64::MAX), (7, 1 << 63)] {
        let mut made_up = whole.clone();
        made_up[at] = word;
        let together = Together::opened(&made_up);
        // The coalition's model is judged alone, the tuned one as before.
        let [_, coalition, tuned] = &together.shrunken(&silos[0].measured)[..] else {
            panic!("three candidates");
        };
        assert_eq!(*coalition, silos[0].measured[1]);
        assert_ne!(*tuned, silos[0].measured[2]);
    }
    assert_eq!(Together::opened(&[1, 2, 3]), Together::default());
}

#[test]
fn why_members_do_not_decide_together_is_told() {
    let silos = six();
    let state = |opened: &[Vec<u64>]| QuestionState {
        opened: opened.to_vec(),
        ..QuestionState::default()
    };
    let decided = |state: &QuestionState| ROUNDS.decided(state);
    let whole = state(&[vec![0], sum(&silos)]);
    assert_eq!(decided(&whole).unwrap(), Together::opened(&sum(&silos)));
    let lone = state(&[vec![0], sum(&silos[..1])]);
    assert_eq!(decided(&lone), Err(NotTogether::TooFew));
    let begun = state(&[vec![1]]);
    assert_eq!(decided(&begun), Err(NotTogether::NoRoundLeft));
    let ended = |of: &QuestionState, refused: Vec<u64>| QuestionState {
        ended: true,
        refused,
        ..of.clone()
    };
    assert_eq!(
        decided(&ended(&begun, vec![0, 2])),
        Err(NotTogether::Refused)
    );
    for learned_on in [&whole, &begun] {
        let learned_on = ended(learned_on, Vec::new());
        assert_eq!(decided(&learned_on), Err(NotTogether::LearnedOn));
    }
    let away = QuestionState { missed: 3, ..begun };
    assert_eq!(decided(&away), Err(NotTogether::StayedAway));
}

#[test]
fn three_unknowns_of_the_others_hide_each_number() {
    assert_eq!([1, 2].map(TogetherRounds::least_silos), [8, 9]);
    let unknowns = TogetherRounds::unknowns_per_number;
    assert_eq!([unknowns(8, 1), unknowns(7, 1)], [3.0, 2.5]);
    assert_eq!(unknowns(2, 3), 0.0);
}
