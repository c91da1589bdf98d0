//! The utility and Algorithm 2 straight from their definitions, on the vectors themselves.

use super::Merge;

/// Clients with their gradients, and the constant `C` that the library leaves out.
pub(super) struct Reference<'a> {
    pub(super) gradients: &'a [Vec<f64>],
    pub(super) samples: &'a [u64],
    pub(super) alphas: &'a [f64],
    pub(super) constant: f64,
}

impl Reference<'_> {
    /// `U_c`: eqs. (8), (9), (13), (14).
    pub(super) fn worth(&self, members: &[usize]) -> f64 {
        let total: f64 = members.iter().map(|&k| self.samples[k] as f64).sum();
        let mut mean = vec![0.0; self.gradients[0].len()];
        for &k in members {
            for (mean, value) in mean.iter_mut().zip(&self.gradients[k]) {
                *mean += self.samples[k] as f64 * value / total;
            }
        }
        let one = |&k: &usize| {
            -self.alphas[k] / total + cosine(&self.gradients[k], &mean) + self.constant
        };
        members.iter().map(one).sum()
    }

    /// Δ of eq. (15).
    pub(super) fn benefit(&self, a: &[usize], b: &[usize]) -> f64 {
        self.worth(&[a, b].concat()) - self.worth(a) - self.worth(b)
    }

    /// Algorithm 2: the groups left, and the merges with their benefits.
    pub(super) fn merge(&self) -> (Vec<Vec<usize>>, Vec<Merge>) {
        let mut groups: Vec<Vec<usize>> = (0..self.samples.len()).map(|k| vec![k]).collect();
        let mut merges = Vec::new();
        loop {
            let mut best = (0.0, None);
            for i in 1..groups.len() {
                for j in 0..i {
                    let benefit = self.benefit(&groups[j], &groups[i]);
                    if benefit > best.0 {
                        best = (benefit, Some([j, i]));
                    }
                }
            }
            let (benefit, Some([j, i])) = best else {
                return (groups, merges);
            };
            let pair = [groups[j][0], groups[i][0]];
            merges.push(Merge {
                groups: pair,
                benefit,
            });
            let gone = groups.remove(i);
            groups[j].extend(gone);
            groups[j].sort_unstable();
        }
    }
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt())
}

/// Every grouping of `n` clients, in canonical numbers.
pub(super) fn groupings(n: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        all = all
            .into_iter()
            .flat_map(|head: Vec<u32>| {
                let next = head.iter().max().map_or(0, |last| last + 1);
                (0..=next).map(move |own| [head.as_slice(), &[own]].concat())
            })
            .collect();
    }
    all
}
