//! The model of links: latency, bandwidth, loss and cuts.

use std::time::Duration;

use agreement::Span;
use serde::{Deserialize, Serialize};

use bare::cuts::CutLinks;
use bare::random::Random;

/// Latency, bandwidth and faults of a federation's links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LinkConfig {
    /// Shortest and longest latency; every pair of silos draws its own.
    pub latency: [Span; 2],
    /// Largest additional delay of a message.
    pub jitter: Span,
    /// Upload bandwidth of a silo, in megabits per second. Models use it one after another;
    /// messages are small and do not wait for them.
    pub bandwidth_mbit: f64,
    /// Probability that a message is lost.
    pub loss: f64,
    /// Probability that a message arrives twice.
    pub duplication: f64,
}

impl Default for LinkConfig {
    /// A guess for institutions of one continent on ordinary lines: 5–40 ms, 100 Mbit/s, no loss.
    fn default() -> Self {
        Self {
            latency: [Span::millis(5), Span::millis(40)],
            jitter: Span::millis(3),
            bandwidth_mbit: 100.0,
            loss: 0.0,
            duplication: 0.0,
        }
    }
}

impl LinkConfig {
    /// The first key that is out of range, with the allowed range.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str)> {
        let wrong = [
            (
                self.latency[0].0 > self.latency[1].0,
                "latency",
                "shortest first",
            ),
            (
                !(self.bandwidth_mbit.is_finite() && self.bandwidth_mbit > 0.0),
                "bandwidth-mbit",
                "a number above 0",
            ),
            (
                !(0.0..1.0).contains(&self.loss),
                "loss",
                "at least 0 and below 1",
            ),
            (
                !(0.0..1.0).contains(&self.duplication),
                "duplication",
                "at least 0 and below 1",
            ),
        ];
        wrong
            .into_iter()
            .find_map(|(wrong, key, allowed)| wrong.then_some((key, allowed)))
    }
}

/// The latency of every link between `n` silos, from sender to receiver, as simulations with this seed
/// draw it.
pub fn latencies(config: &LinkConfig, n: usize, seed: u64) -> Vec<Vec<Duration>> {
    let links = Links::new(config.clone(), n, seed);
    let from = |from| (0..n).map(|to| links.latency(from, to)).collect();
    (0..n).map(from).collect()
}

/// The links between all silos.
pub(super) struct Links {
    config: LinkConfig,
    silos: usize,
    /// By sender and receiver.
    latency: Vec<Duration>,
    /// Links that are cut.
    pub(super) cuts: CutLinks,
    random: Random,
}

impl Links {
    pub(super) fn new(config: LinkConfig, n: usize, seed: u64) -> Self {
        let mut random = Random::new(seed, "links");
        let [least, most] = config.latency;
        let mut latency = vec![Duration::ZERO; n * n];
        for (a, b) in (0..n).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let takes = random.span(least.0, most.0);
            latency[a * n + b] = takes;
            latency[b * n + a] = takes;
        }
        Self {
            config,
            silos: n,
            latency,
            cuts: CutLinks::default(),
            random,
        }
    }

    /// The latency of a link without jitter.
    pub(super) fn latency(&self, from: usize, to: usize) -> Duration {
        self.latency[from * self.silos + to]
    }

    /// Returns how long this number of bytes occupy a sender's line.
    pub(super) fn transfer(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / (self.config.bandwidth_mbit * 1e6))
    }

    /// The delays after which copies of a message arrive: none if it is lost, two if it is
    /// duplicated.
    pub(super) fn copies(&mut self, from: usize, to: usize, bytes: usize) -> Vec<Duration> {
        let lost = self.random.chance(self.config.loss);
        let twice = self.random.chance(self.config.duplication);
        let count = if lost { 0 } else { 1 + usize::from(twice) };
        let usual = self.latency(from, to) + self.transfer(bytes);
        (0..count)
            .map(|_| usual + self.config.jitter.0.mul_f64(self.random.uniform()))
            .collect()
    }
}
