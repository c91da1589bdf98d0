//! The attack by absence on the rounds that a node has kept: sums of other authors, one less the other.
//!
//! A node keeps no update of its own of a round that was adopted, so a difference of two sums is compared with
//! what is known: the sums themselves and, where silos add noise, the noise that both have. A difference
//! that is as long as its noise tells nothing that the noise does not cover.

use formatting::numbers::{plain, plural};
use node::verify::{NotComputed, ReopenedRound, ReopenedSum, ReopenedSums};
use serde::Serialize;

/// Information in the differences of the sums that a node can open.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct KeptAbsence {
    /// Name of the federation.
    pub federation: String,
    /// Final rounds in clear.
    pub clear: usize,
    /// Final secure-aggregation rounds.
    pub masked: usize,
    /// Secure-aggregation rounds whose sums were opened again.
    pub opened: Vec<u64>,
    /// The other secure-aggregation rounds.
    pub not_opened: Vec<NotComputed>,
    /// Every set of authors of an opened sum that told something.
    pub author_sets: Vec<Vec<String>>,
    /// Pairs of opened sums with some common authors, and not all.
    pub pairs: Vec<AbsencePair>,
}

/// Two opened sums whose authors differ, and one less the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct AbsencePair {
    /// The rounds, in order.
    pub rounds: [u64; 2],
    /// Authors of the first sum alone.
    pub first_only: Vec<String>,
    /// Authors of the second sum alone.
    pub second_only: Vec<String>,
    /// Length of the difference over that of the noise in it; near 1 there is nothing but noise. `None`
    /// without noise.
    pub over_noise: Option<f64>,
    /// Cosine of the difference and the first sum.
    pub with_first: f64,
    /// Cosine of the difference and the second sum.
    pub with_second: f64,
}

/// Compares the sums that a node can open, each with each.
pub fn kept(found: &ReopenedSums) -> KeptAbsence {
    let told: Vec<_> = found.opened.iter().flat_map(told).collect();
    let mut author_sets: Vec<_> = told.iter().map(|of| of.sum.authors.clone()).collect();
    author_sets.sort();
    author_sets.dedup();
    let pairs = told.iter().enumerate().flat_map(|(at, first)| {
        let later = told[at + 1..].iter();
        later.filter_map(|second| compared(first, second))
    });
    KeptAbsence {
        federation: found.federation_name.clone(),
        clear: found.clear,
        masked: found.masked,
        opened: found.opened.iter().map(|round| round.round).collect(),
        not_opened: found.not_opened.clone(),
        author_sets,
        pairs: pairs.collect(),
    }
}

/// A sum that told something.
struct Told<'a> {
    round: u64,
    sum: &'a ReopenedSum,
    values: Vec<f64>,
}

fn told(round: &ReopenedRound) -> impl Iterator<Item = Told<'_>> {
    round.sums.iter().filter_map(|sum| {
        let values = sum.values.as_ref()?.iter().map(|value| *value as f64);
        Some(Told {
            round: round.round,
            values: values.collect(),
            sum,
        })
    })
}

/// One sum less the other; `None` if they have all authors or none in common, so that nothing is left over
/// that fewer authors made.
fn compared(first: &Told<'_>, second: &Told<'_>) -> Option<AbsencePair> {
    let only = |of: &ReopenedSum, other: &ReopenedSum| -> Vec<String> {
        let authors = of.authors.iter();
        authors
            .filter(|author| !other.authors.contains(author))
            .cloned()
            .collect()
    };
    let first_only = only(first.sum, second.sum);
    let second_only = only(second.sum, first.sum);
    let same = first_only.is_empty() && second_only.is_empty();
    let none = first_only.len() == first.sum.authors.len();
    if same || none || first.values.len() != second.values.len() {
        return None;
    }
    let difference = super::minus(&first.values, &second.values);
    let length = difference.iter().map(|value| value * value).sum::<f64>();
    // The noise of every author of both sums, in every coordinate.
    let noise = |of: &ReopenedSum| Some(of.sigma?.powi(2) * of.authors.len() as f64);
    let noise = noise(first.sum).zip(noise(second.sum));
    let noise = noise.map(|(first, second)| (first + second) * difference.len() as f64);
    Some(AbsencePair {
        rounds: [first.round, second.round],
        first_only,
        second_only,
        over_noise: noise.map(|noise| (length / noise).sqrt()),
        with_first: super::cosine(&difference, &first.values),
        with_second: super::cosine(&difference, &second.values),
    })
}

impl KeptAbsence {
    /// Returns what was found, as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let federation = plain(&self.federation);
        if self.masked == 0 {
            return vec![match self.clear {
                0 => format!("{federation}: there is no final round yet"),
                _ => format!(
                    "{federation}: all {} are in clear, so every member sees every model and needs no subtraction",
                    plural(self.clear, "round")
                ),
            }];
        }
        let mut lines = vec![format!(
            "{federation}: {} of {} opened again, with {}",
            self.opened.len(),
            plural(self.masked, "secure-aggregation round"),
            plural(self.author_sets.len(), "author set"),
        )];
        for not in &self.not_opened {
            let which = match not.to {
                to if to == not.from => format!("round {to}"),
                to => format!("rounds {} to {to}", not.from),
            };
            lines.push(format!("  not opened, {which}: {}", plain(&not.why)));
        }
        if self.clear > 0 {
            let rounds = plural(self.clear, "round");
            lines.push(format!(
                "  in addition {rounds} in clear, where every member saw every model"
            ));
        }
        lines.extend(self.pairs.iter().map(AbsencePair::line));
        lines.push(self.verdict());
        lines
    }

    fn verdict(&self) -> String {
        if self.author_sets.is_empty() {
            return "No sum could be opened again from this folder, so there is nothing to subtract.".into();
        }
        if self.pairs.is_empty() {
            return "All opened sums of this federation have the same authors or none in common: this attack has \
                    nothing to subtract."
                .into();
        }
        let exact = self.pairs.iter().any(|pair| pair.over_noise.is_none());
        if exact {
            "There are sums without noise that differ in some of their authors: when learning has nearly \
             converged, such a difference is the update of the authors that one of them lacks. Secure-aggregation rounds do \
             not allow that."
                .into()
        } else {
            "A difference about as long as its noise (about 1) shows nothing but noise. What a longer one \
             discloses is bounded by the ε of all rounds together. This node keeps no update of its own to compare \
             with."
                .into()
        }
    }
}

impl AbsencePair {
    fn line(&self) -> String {
        let names = |all: &[String]| {
            let all: Vec<_> = all.iter().map(|name| plain(name)).collect();
            all.join(", ")
        };
        let [first, second] = self.rounds;
        let mut by = Vec::new();
        if !self.first_only.is_empty() {
            by.push(format!("with {}", names(&self.first_only)));
        }
        if !self.second_only.is_empty() {
            by.push(format!("without {}", names(&self.second_only)));
        }
        let noise = match self.over_noise {
            Some(ratio) => format!("{ratio:.2} times as long as its noise"),
            None => "without noise".into(),
        };
        format!(
            "  the sum of round {first} less that of round {second}, {}: {noise}; cosine {:.3} with the first sum, \
             {:.3} with the second",
            by.join(" and "),
            self.with_first,
            self.with_second
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(authors: &[&str], values: &[i64], sigma: Option<f64>) -> ReopenedSum {
        ReopenedSum {
            authors: authors.iter().map(|name| (*name).to_owned()).collect(),
            values: Some(values.to_vec()),
            sigma,
        }
    }

    fn sums(rounds: Vec<Vec<ReopenedSum>>) -> ReopenedSums {
        let opened = (1..)
            .zip(rounds)
            .map(|(round, sums)| ReopenedRound { round, sums });
        let opened: Vec<_> = opened.collect();
        ReopenedSums {
            federation_name: "f".into(),
            clear: 0,
            masked: opened.len(),
            opened,
            not_opened: Vec::new(),
        }
    }

    #[test]
    fn sums_of_the_same_or_of_disjoint_authors_cannot_be_subtracted() {
        let groups = |a: i64, b: i64| {
            vec![
                sum(&["A", "B", "C"], &[a, 2, 3], None),
                sum(&["D", "E", "F"], &[b, 5, 6], None),
            ]
        };
        let found = kept(&sums(vec![groups(1, 4), groups(2, 9), groups(3, 1)]));
        assert!(found.pairs.is_empty());
        assert_eq!((found.opened.len(), found.author_sets.len()), (3, 2));
        let said = found.lines().join("\n");
        assert!(
            said.contains("3 of 3 secure-aggregation rounds opened again, with 2 author sets"),
            "{said}"
        );
        assert!(
            said.contains("this attack has nothing to subtract"),
            "{said}"
        );
    }

    #[test]
    fn a_difference_without_noise_is_the_missing_authors_update() {
        let all = sum(&["A", "B", "C"], &[11, 22, 33], None);
        let without = sum(&["A", "B"], &[10, 22, 30], None);
        let found = kept(&sums(vec![vec![all], vec![without]]));
        let [pair] = &found.pairs[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (pair.rounds, &pair.first_only[..]),
            ([1, 2], &["C".to_owned()][..])
        );
        assert!(pair.second_only.is_empty() && pair.over_noise.is_none());
        let said = found.lines().join("\n");
        assert!(
            said.contains("the sum of round 1 less that of round 2, with C: without noise"),
            "{said}"
        );
        assert!(
            said.contains("Secure-aggregation rounds do not allow that"),
            "{said}"
        );
    }

    /// Five authors add noise of deviation 3 each: the difference of two sums of 3 and 2 has variance 45.
    #[test]
    fn with_noise_the_difference_is_measured_by_its_noise() {
        let (sigma, d) = (Some(3.0), 400);
        let spread = |length: f64| {
            let sign = |at: i64| if at % 2 == 0 { 1 } else { -1 };
            (0..d)
                .map(|at| sign(at) * length as i64)
                .collect::<Vec<_>>()
        };
        let still = sum(&["A", "B"], &vec![0; d as usize], sigma);
        for (length, ratio) in [
            (45_f64.sqrt() as i64, 6.0 / 45_f64.sqrt()),
            (67, 67.0 / 45_f64.sqrt()),
        ] {
            let all = sum(&["A", "B", "C"], &spread(length as f64), sigma);
            let found = kept(&sums(vec![vec![all], vec![still.clone()]]));
            let over = found.pairs[0].over_noise.unwrap_or_default();
            assert!((over - ratio).abs() < 1e-9, "{over} {ratio}");
            assert!((found.pairs[0].with_first - 1.0).abs() < 1e-12);
            let said = found.lines().join("\n");
            assert!(
                said.contains("bounded by the ε of all rounds together"),
                "{said}"
            );
        }
    }

    #[test]
    fn void_sums_and_rounds_in_clear_are_reported_and_not_compared() {
        let void = ReopenedSum {
            values: None,
            ..sum(&["A", "B"], &[], None)
        };
        let mut all = sums(vec![
            vec![sum(&["A", "B", "C"], &[1, 2, 3], None)],
            vec![void],
        ]);
        all.clear = 2;
        let found = kept(&all);
        assert!(found.pairs.is_empty() && found.author_sets.len() == 1);
        assert!(
            found
                .lines()
                .join("\n")
                .contains("in addition 2 rounds in clear")
        );
        let clear = ReopenedSums {
            masked: 0,
            opened: Vec::new(),
            ..all
        };
        let said = kept(&clear).lines().join("\n");
        assert!(said.contains("every member sees every model"), "{said}");
    }
}
