//! Computations of one site from its lifetimes.

use std::collections::BTreeMap;

use super::HazardsTime;
use crate::algebra::{Symmetric, dot};
use crate::kinds::TimeGrid;

/// One row: under observation after `entry` and up to `time`.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) time: f64,
    pub(super) event: bool,
    pub(super) entry: f64,
    pub(super) stratum: usize,
    pub(super) features: Vec<f64>,
}

/// The rows of a site, by stratum.
pub(super) struct Lives {
    strata: Vec<Vec<Life>>,
    efron: bool,
    rows: usize,
}

/// Weighted sums over a set of rows.
#[derive(Clone)]
struct RiskSums {
    total: f64,
    first: Vec<f64>,
    second: Symmetric,
}

impl RiskSums {
    fn zero(width: usize) -> Self {
        Self {
            total: 0.0,
            first: vec![0.0; width],
            second: Symmetric::zeros(width),
        }
    }

    fn add(&mut self, weight: f64, x: &[f64]) {
        self.total += weight;
        self.first
            .iter_mut()
            .zip(x)
            .for_each(|(sum, x)| *sum += weight * x);
        self.second.add_outer(weight, x);
    }

    /// The sums without a part of those of another set.
    fn less(&self, part: f64, other: &Self) -> Self {
        let mut left = self.clone();
        left.total -= part * other.total;
        left.first
            .iter_mut()
            .zip(&other.first)
            .for_each(|(sum, other)| *sum -= part * other);
        left.second.add(-part, &other.second);
        left
    }
}

/// One term of the partial likelihood: the l-th of the events at a time, with the mean and variance of the rows at
/// risk.
struct Term {
    time: f64,
    /// Part of the weight that rows with an event at this time lack (Efron).
    part: f64,
    /// Events at this time.
    deaths: f64,
    total: f64,
    mean: Vec<f64>,
    variance: Symmetric,
}

impl Lives {
    pub(super) fn new(lives: Vec<Life>, efron: bool) -> Self {
        let rows = lives.len();
        let mut strata: BTreeMap<usize, Vec<Life>> = BTreeMap::new();
        for life in lives {
            strata.entry(life.stratum).or_default().push(life);
        }
        let mut strata: Vec<Vec<Life>> = strata.into_values().collect();
        strata
            .iter_mut()
            .for_each(|lives| lives.sort_by(|l, r| r.time.total_cmp(&l.time)));
        Self {
            strata,
            efron,
            rows,
        }
    }

    /// Log likelihood, score and information.
    pub(super) fn sums(&self, at: &[f64]) -> Vec<f64> {
        let width = at.len();
        let (mut log_likelihood, mut score, mut information) =
            (0.0, vec![0.0; width], Symmetric::zeros(width));
        for lives in &self.strata {
            for life in lives.iter().filter(|life| life.event) {
                log_likelihood += dot(&life.features, at);
                score
                    .iter_mut()
                    .zip(&life.features)
                    .for_each(|(sum, x)| *sum += x);
            }
            for term in self.terms(lives, at) {
                log_likelihood -= libm::log(term.total);
                score
                    .iter_mut()
                    .zip(&term.mean)
                    .for_each(|(sum, mean)| *sum -= mean);
                information.add(1.0, &term.variance);
            }
        }
        let mut numbers = vec![log_likelihood];
        numbers.extend(score);
        numbers.extend(information.triangle());
        numbers
    }

    /// The terms of the partial likelihood of a stratum, from the last event time to the first.
    fn terms(&self, lives: &[Life], at: &[f64]) -> Vec<Term> {
        let width = at.len();
        let weight = |life: &Life| libm::exp(dot(&life.features, at));
        let mut leaving: Vec<&Life> = lives
            .iter()
            .filter(|life| life.entry > f64::NEG_INFINITY)
            .collect();
        leaving.sort_by(|l, r| r.entry.total_cmp(&l.entry));
        let (mut entered, mut left) = (0, 0);
        let mut at_risk = RiskSums::zero(width);
        let mut terms = Vec::new();
        while entered < lives.len() {
            let time = lives[entered].time;
            let mut dead = RiskSums::zero(width);
            let mut deaths = 0;
            while let Some(life) = lives.get(entered).filter(|life| life.time == time) {
                at_risk.add(weight(life), &life.features);
                if life.event {
                    dead.add(weight(life), &life.features);
                    deaths += 1;
                }
                entered += 1;
            }
            while let Some(life) = leaving.get(left).filter(|life| life.entry >= time) {
                at_risk.add(-weight(life), &life.features);
                left += 1;
            }
            for number in 0..deaths {
                let part = if self.efron {
                    f64::from(number) / f64::from(deaths)
                } else {
                    0.0
                };
                let rest = at_risk.less(part, &dead);
                let mean: Vec<f64> = rest.first.iter().map(|sum| sum / rest.total).collect();
                let mut variance = Symmetric::zeros(width);
                variance.add(1.0 / rest.total, &rest.second);
                variance.add_outer(-1.0, &mean);
                terms.push(Term {
                    time,
                    part,
                    deaths: f64::from(deaths),
                    total: rest.total,
                    mean,
                    variance,
                });
            }
        }
        terms
    }

    /// The products of the rows' score residuals.
    pub(super) fn meat(&self, at: &[f64]) -> Symmetric {
        let mut meat = Symmetric::zeros(at.len());
        for lives in &self.strata {
            let terms = self.terms(lives, at);
            for life in lives {
                let weight = libm::exp(dot(&life.features, at));
                let mut residual = vec![0.0; at.len()];
                for term in &terms {
                    let dies = life.event && life.time == term.time;
                    if life.entry >= term.time || life.time < term.time {
                        continue;
                    }
                    let own = if dies { 1.0 / term.deaths } else { 0.0 };
                    let lacking = if dies { term.part } else { 0.0 };
                    let factor = own - weight * (1.0 - lacking) / term.total;
                    for ((residual, x), mean) in
                        residual.iter_mut().zip(&life.features).zip(&term.mean)
                    {
                        *residual += factor * (x - mean);
                    }
                }
                meat.add_outer(1.0, &residual);
            }
        }
        meat
    }

    /// Σg(x−e), ΣgV and Σg²V of the test of proportional hazards.
    pub(super) fn by_time(&self, at: &[f64], time: HazardsTime) -> Vec<f64> {
        let g = |t: f64| match time {
            HazardsTime::Identity => t,
            HazardsTime::Log => libm::log(t),
            HazardsTime::LogPlusOne => libm::log1p(t),
        };
        let width = at.len();
        let (mut score, mut first, mut second) = (
            vec![0.0; width],
            Symmetric::zeros(width),
            Symmetric::zeros(width),
        );
        for lives in &self.strata {
            for life in lives.iter().filter(|life| life.event) {
                let g = g(life.time);
                score
                    .iter_mut()
                    .zip(&life.features)
                    .for_each(|(sum, x)| *sum += g * x);
            }
            for term in self.terms(lives, at) {
                let g = g(term.time);
                score
                    .iter_mut()
                    .zip(&term.mean)
                    .for_each(|(sum, mean)| *sum -= g * mean);
                first.add(g, &term.variance);
                second.add(g * g, &term.variance);
            }
        }
        score.extend(first.triangle());
        score.extend(second.triangle());
        score
    }

    /// Concordant, discordant and tied pairs: an event, and a row under observation then that lives longer or is
    /// censored at the same time.
    pub(super) fn pairs(&self, at: &[f64]) -> [f64; 3] {
        let mut pairs = [0.0; 3];
        for lives in &self.strata {
            let risks: Vec<f64> = lives.iter().map(|life| dot(&life.features, at)).collect();
            for (life, risk) in lives.iter().zip(&risks).filter(|(life, _)| life.event) {
                for (other, other_risk) in lives.iter().zip(&risks) {
                    let longer = other.time > life.time || other.time == life.time && !other.event;
                    if longer && other.entry < life.time {
                        let gap = risk - other_risk;
                        // Sums of the same numbers may differ by rounding.
                        let tied = gap.abs() <= 1e-12 * (1.0 + risk.abs());
                        pairs[if tied { 2 } else { usize::from(gap < 0.0) }] += 1.0;
                    }
                }
            }
        }
        pairs
    }

    /// The site's rows times its cumulative baseline hazard at the end of each cell but the first.
    pub(super) fn hazards(&self, at: &[f64], factor: f64, grid: TimeGrid) -> Vec<f64> {
        let mut steps = vec![0.0; grid.cells + 2];
        for lives in &self.strata {
            let share = lives.len() as f64 / self.rows.max(1) as f64;
            for term in self.terms(lives, at) {
                steps[grid.cell(term.time)] += share * factor / term.total;
            }
        }
        let rows = self.rows as f64;
        let mut sum = steps[0];
        let cumulated = steps[1..=grid.cells].iter().map(|step| {
            sum += step;
            rows * sum
        });
        cumulated.collect()
    }
}
