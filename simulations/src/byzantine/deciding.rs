//! A lead that follows the protocol and decides worse than it could.

use std::sync::Arc;

use methods::coalitions::{CoalitionProgram, canonical};
use methods::strategy::{Claim, Decision, with_altered_decisions};
use methods::{Scores, Strategy};

/// Local optima that are looked at.
const STARTS: u64 = 64;

/// The strategy of a lead that groups silos worse than it could, wherever a strategy groups them by
/// the coalition program. The grouping that it proposes is one that no move and no swap of silos
/// improves, if there is one; its objective is true, the proof is one that holds, and the outcome
/// follows from it. So only who knows how good a grouping can be may refuse it.
pub(crate) fn worse_coalitions(strategy: Arc<dyn Strategy>) -> Arc<dyn Strategy> {
    with_altered_decisions(strategy, |manifest, honest| {
        let scores = manifest.scores.as_ref();
        let other = scores.and_then(|scores| changed(&honest, scores));
        other.unwrap_or(honest)
    })
}

/// A grouping that is worse than this one, with as many coalitions; its objective, and by how much that
/// is higher.
fn worse(scores: &Scores, grouping: &[u32]) -> Option<(Vec<u32>, f64, f64)> {
    let coalitions = grouping.iter().max().map_or(0, |&last| last as usize + 1);
    let program = CoalitionProgram::new(scores, coalitions).ok()?;
    let honest = program.objective(grouping);
    let optima = (0..STARTS).map(|seed| program.local_optimum(seed));
    let priced = optima.map(|found| (program.objective(&found), found));
    let worst = priced.max_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.filter(|(value, _)| *value > honest && !program.same(*value, honest));
    let (value, found) = worst.or_else(|| swapped(&program, grouping))?;
    (value > honest).then_some((found, value, value - honest))
}

/// The worst grouping that a swap of two entries makes.
fn swapped(program: &CoalitionProgram, grouping: &[u32]) -> Option<(f64, Vec<u32>)> {
    let n = grouping.len();
    let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let swaps = pairs.map(|(i, j)| {
        let mut other = grouping.to_vec();
        other.swap(i, j);
        let other = canonical(&other);
        (program.objective(&other), other)
    });
    swaps.max_by(|a, b| a.0.total_cmp(&b.0))
}

fn changed(honest: &Decision, scores: &Scores) -> Option<Decision> {
    let claim = honest.claim.as_ref()?;
    if claim.candidates.is_empty() {
        let (assignment, objective, _) = worse(scores, &honest.assignment)?;
        return Some(Decision {
            assignment,
            claim: Some(Claim {
                objective,
                ..claim.clone()
            }),
        });
    }
    // Of several groupings the first that can be made worse.
    let mut candidates = claim.candidates.clone();
    let mut found = candidates.iter_mut().filter_map(|candidate| {
        let (other, _, rise) = worse(scores, candidate)?;
        *candidate = other;
        Some(rise)
    });
    let rise = found.next()?;
    drop(found);
    Some(Decision {
        claim: Some(Claim {
            objective: claim.objective + rise / candidates.len() as f64,
            candidates,
            ..claim.clone()
        }),
        ..honest.clone()
    })
}
