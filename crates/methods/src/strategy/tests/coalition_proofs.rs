//! CS-RCFL with more contributions than members group themselves: the lead proves how good its
//! grouping is.

use super::*;
use crate::coalitions::proof::{CLOSED, Proof};
use crate::coalitions::{CoalitionProgram, canonical};

/// Losses of `n` silos of four kinds whose true models are corners of a square, with models that are
/// off by up to `error`.
fn four_kinds(n: u32, error: f64) -> LoadedManifest {
    let off = |silo: u32, of: u32| error * f64::from((silo * of) % 17) / 17.0;
    let at = |silo: u32| {
        [
            f64::from(silo % 2) + off(silo, 7),
            f64::from(silo / 2 % 2) + off(silo, 5),
        ]
    };
    let loss = |i: u32, j: u32| {
        let (own, other) = (at(i), at(j));
        let apart = [own[0] - other[0], own[1] - other[1]];
        0.1 + apart[0] * apart[0] + apart[1] * apart[1]
    };
    let rows: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| loss(i, j)).collect())
        .collect();
    let entries = (0..n).map(|silo| entry(at(silo).map(|value| value as f32), Some(0), 1));
    manifest(entries.collect(), Some(&rows))
}

fn program(manifest: &LoadedManifest) -> CoalitionProgram {
    CoalitionProgram::new(manifest.scores.as_ref().unwrap(), 4).unwrap()
}

/// Another grouping in place of that of a decision, with its true objective.
fn regrouped(honest: &Decision, manifest: &LoadedManifest, assignment: Vec<u32>) -> Decision {
    let objective = program(manifest).objective(&assignment);
    let other = claiming(honest, |claim| claim.objective = objective);
    Decision {
        assignment,
        ..other
    }
}

#[test]
fn a_proof_is_confirmed_and_the_state_says_what_gap_it_leaves() {
    for (n, error) in [(16, 0.3), (30, 0.3), (50, 0.3), (20, 1.0)] {
        let (strategy, manifest) = (cs_rcfl(4, 1), four_kinds(n, error));
        let decision = strategy.decide(&genesis(), &manifest, 1).unwrap();
        strategy.check(&genesis(), &manifest, &decision, 1).unwrap();
        let outcome = strategy
            .settle(&genesis(), &manifest, &decision, 1)
            .unwrap();
        let Some(Kept::Number(gap)) = outcome.state.memory.get("coalitions.gap") else {
            panic!("no gap: {:?}", outcome.state.memory);
        };
        let clear = error < 0.5;
        assert!(*gap <= if clear { CLOSED } else { 0.1 }, "{n}: {gap}");
        // Later rounds keep coalitions and gap.
        let kept = strategy.decide(
            &outcome.state,
            &self::manifest(manifest.entries.clone(), None),
            2,
        );
        assert_eq!(kept.unwrap().claim, None);
    }
}

#[test]
fn with_few_contributions_the_gap_is_zero_and_a_proof_is_refused() {
    let (strategy, manifest) = (cs_rcfl(4, 1), four_kinds(15, 0.3));
    let decision = strategy.decide(&genesis(), &manifest, 1).unwrap();
    assert_eq!(decision.claim.as_ref().unwrap().proof, None);
    let outcome = strategy
        .settle(&genesis(), &manifest, &decision, 1)
        .unwrap();
    let gap = outcome.state.memory.get("coalitions.gap");
    assert_eq!(gap, Some(&Kept::Number(0.0)));
    let proving = claiming(&decision, |claim| claim.proof = Some(Proof::default()));
    let refused = strategy.check(&genesis(), &manifest, &proving, 1);
    assert!(matches!(refused, Err(Objection::Infeasible(_))));
}

#[test]
fn a_worse_grouping_is_refused_whatever_its_lead_claims() {
    for error in [0.3, 1.0] {
        let (strategy, manifest) = (cs_rcfl(4, 1), four_kinds(24, error));
        let honest = strategy.decide(&genesis(), &manifest, 1).unwrap();
        let check = |decision: &Decision| strategy.check(&genesis(), &manifest, decision, 1);
        let program = program(&manifest);
        let mut worse: Vec<Vec<u32>> = (0..200).map(|seed| program.local_optimum(seed)).collect();
        let mut swapped = honest.assignment.clone();
        let other = swapped.iter().position(|own| *own != swapped[0]).unwrap();
        swapped.swap(0, other);
        worse.push(canonical(&swapped));
        let best = program.objective(&honest.assignment);
        worse.retain(|grouping| !program.same(program.objective(grouping), best));
        let local = worse.len() - 1;
        assert!(local > 0, "every descent ends at the best grouping");
        for grouping in worse {
            let decision = regrouped(&honest, &manifest, grouping);
            let refused = check(&decision);
            assert!(
                matches!(refused, Err(Objection::NotBest { .. })),
                "{refused:?}"
            );
            // A bound that closes the gap is more than the proof says.
            let claimed = decision.claim.as_ref().unwrap().objective;
            let boast = claiming(&decision, |claim| claim.lower_bound = claimed);
            assert!(check(&boast).is_err());
        }
    }
}

#[test]
fn a_proof_that_is_missing_weak_or_damaged_is_refused() {
    let (strategy, manifest) = (cs_rcfl(4, 1), four_kinds(20, 0.3));
    let honest = strategy.decide(&genesis(), &manifest, 1).unwrap();
    let check = |decision: &Decision| strategy.check(&genesis(), &manifest, decision, 1);
    let proving = |change: &dyn Fn(&mut Proof)| {
        claiming(&honest, |claim| {
            change(claim.proof.as_mut().unwrap());
        })
    };
    let missing = claiming(&honest, |claim| claim.proof = None);
    let short = proving(&|proof| proof.prices.truncate(7));
    let negative = proving(&|proof| proof.prices[0] = -1.0);
    let steep = proving(&|proof| proof.level += 1.0);
    for decision in [missing, short, negative, steep] {
        let refused = check(&decision);
        assert!(
            matches!(refused, Err(Objection::Infeasible(_))),
            "{refused:?}"
        );
        let settled = strategy.settle(&genesis(), &manifest, &decision, 1);
        assert!(matches!(settled, Err(SettleError::Infeasible(_))));
    }
    // A valid proof of less: the bound that is claimed is not confirmed.
    let weak = proving(&|proof| proof.level -= 0.01);
    assert!(matches!(check(&weak), Err(Objection::Misstated { .. })));
    // And where less is claimed, the gap is too large.
    let nothing = claiming(&weak, |claim| {
        claim.proof.as_mut().unwrap().level -= 100.0;
        claim.lower_bound = 0.0;
    });
    let refused = check(&nothing);
    assert!(
        matches!(
            refused,
            Err(Objection::Unproven {
                gap: 1.0,
                accepted: 0.25
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn a_gap_that_is_not_accepted_fails_the_round_with_a_sentence() {
    let manifest = four_kinds(20, 1.0);
    let strict = CsRcfl {
        gap: 0.0,
        ..cs_rcfl(4, 1)
    };
    let error = strict.decide(&genesis(), &manifest, 1).unwrap_err();
    assert!(matches!(error, DecideError::Unproven { accepted: 0.0, .. }));
    assert!(
        error.to_string().contains("members accept 0.00 %"),
        "{error}"
    );
    // If a lead sends such a decision, the other members refuse it.
    let decision = cs_rcfl(4, 1).decide(&genesis(), &manifest, 1).unwrap();
    let refused = strict.check(&genesis(), &manifest, &decision, 1);
    assert!(
        matches!(refused, Err(Objection::Unproven { .. })),
        "{refused:?}"
    );
}

#[test]
fn the_order_of_contributions_changes_no_gap_beyond_rounding() {
    let (strategy, manifest) = (cs_rcfl(4, 1), four_kinds(20, 0.3));
    let rows = |order: &[usize]| -> Vec<Vec<f64>> {
        let scores = manifest.scores.as_ref().unwrap();
        let row = |&i: &usize| order.iter().map(|&j| scores.at(i, j)).collect();
        order.iter().map(row).collect()
    };
    let order: Vec<usize> = (0..20).rev().collect();
    let entries = order
        .iter()
        .map(|&at| manifest.entries[at].clone())
        .collect();
    let reversed = self::manifest(entries, Some(&rows(&order)));
    let objective = |manifest: &LoadedManifest| {
        let decision = strategy.decide(&genesis(), manifest, 1).unwrap();
        decision.claim.unwrap().objective
    };
    assert!((objective(&manifest) - objective(&reversed)).abs() < 1e-9);
}
