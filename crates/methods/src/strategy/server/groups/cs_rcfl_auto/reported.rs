//! Reports of a silo: the loss of its coalition under every candidate.

use std::collections::BTreeMap;

use super::formed::{Formed, coalition};
use super::held_out::FoldModels;
use crate::learner::LearnError;
use crate::params::Params;
use crate::selection::selection_bias;

/// Standard errors, over a handful of folds, by which a coalition is so far behind another that it was no choice.
const BEHIND: f64 = 3.0;

/// The losses of the coalition of silo `own` on its held-out rows, by candidate: of the means, by `combined`, that have its
/// fold's model in place of the one of all its rows.
///
/// To those of a coalition that has others a [selection bias](selection_bias) is added, in standard errors over the folds of
/// the difference to its own model: the rows that the losses are measured on also decided who is with whom, so that silos
/// which have nothing in common seem to gain. It is chosen among as many as the largest coalition of this silo has silos that
/// is at most [`BEHIND`]: where all that are larger are clearly worse, nobody else could have been in it.
pub(super) fn reported(
    formed: &Formed<'_>,
    own: usize,
    (held_out, radius): (&FoldModels, f64),
    combined: impl Fn(&[(&Params, f64)]) -> Result<Params, LearnError>,
) -> Result<Vec<f64>, LearnError> {
    let losses = |members: &[usize]| {
        held_out.losses(radius, |fold| {
            let part = |&member: &usize| {
                let model = match member == own {
                    true => fold,
                    false => &formed.models[member],
                };
                (model, formed.weights[member])
            };
            combined(&members.iter().map(part).collect::<Vec<_>>())
        })
    };
    let coalitions = formed.candidates.iter().map(|one| coalition(one, own));
    let coalitions: Vec<Vec<usize>> = coalitions.collect();
    let only = [own];
    let mut measured = BTreeMap::from([(&only[..], losses(&only)?)]);
    for members in &coalitions {
        if !measured.contains_key(&members[..]) {
            measured.insert(members, losses(members)?);
        }
    }
    let reported = |members: &[usize]| {
        let own = &measured[members];
        let behind = |other: &[f64]| held_out.mean(other) - held_out.mean(own);
        let near = measured
            .iter()
            .filter(|(_, other)| behind(other) <= BEHIND * held_out.error(other, own));
        let most = near.map(|(others, _)| others.len()).max();
        let count = members.len();
        let bias = selection_bias(most.unwrap_or(count).max(count) as f64 / count as f64);
        held_out.mean(own) + bias * held_out.error(own, &measured[&only[..]])
    };
    Ok(coalitions.iter().map(|members| reported(members)).collect())
}
