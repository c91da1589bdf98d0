//! The attack by absence on sums with noise: one sum less the next one without an institution.
//!
//! A round with noise goes on without an institution that is down, so the difference is open to all members.
//! It has the noise of the authors of both sums.

use serde::Serialize;
use simulations::{Federation, Options, RunError, Scenario};

use agreement::bound;

use super::{cosine, minus};
use crate::attack::{AttackEstimate, replay, total};
use crate::run::study;

/// What sums with noise tell that differ by one institution. Cosines are without their sign, from 0 to 1: at 1
/// the update is known but for its length.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct NoisedAbsence {
    /// Name of the scenario.
    pub scenario: String,
    /// ε, ε_alone and δ of all rounds, in words.
    pub bound: String,
    /// Rounds of a run.
    pub rounds: u64,
    /// Runs, each with noise of its own.
    pub runs: u64,
    /// Numbers of the model.
    pub numbers: usize,
    /// The sum of all, less the next sum without one institution, against the update of that institution: the mean
    /// over rounds and institutions, with an interval over runs.
    pub cosine: AttackEstimate,
    /// The same for each institution.
    pub silos: Vec<AbsentSilo>,
    /// The sum of all alone against the update of one institution.
    pub sum: AttackEstimate,
    /// The mean of a random direction against any update.
    pub chance: f64,
}

/// What the absence of one institution tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct AbsentSilo {
    /// Its name.
    pub name: String,
    /// The mean over rounds, with an interval over runs.
    pub cosine: AttackEstimate,
}

/// Fewest runs: the interval is rough with fewer.
const FEWEST_RUNS: u64 = 6;

/// Plays the scenario `runs` times, at least six times, with other noise each time, and measures all differences.
///
/// # Errors
/// [`RunError`]: as for [`run`](crate::run); a scenario without noise, or with a single round.
pub fn noised(
    scenario: &Scenario,
    options: &Options<'_>,
    runs: u64,
) -> Result<NoisedAbsence, RunError> {
    let refused = |what: &str| Err(RunError::Setup(format!("{}: {what}", scenario.file)));
    let study = study(scenario, options)?;
    let federation = Federation::of(scenario, &study)?;
    let protocol = &federation.epoch.protocol;
    let Some(bound) = bound(protocol) else {
        return refused("its sums have no noise");
    };
    let members = federation.members.len();
    if protocol.rounds < 2 {
        return refused("this attack needs two rounds at least: set `rounds`");
    }
    let mut found = Vec::new();
    for run in 0..runs.max(FEWEST_RUNS) {
        found.push(played(&federation, scenario.seed.wrapping_add(run))?);
    }
    let over = |of: &dyn Fn(&RunMeans) -> f64| {
        let each: Vec<_> = found.iter().map(of).collect();
        let over = AttackEstimate::over(&each);
        over.ok_or_else(|| RunError::Setup("an interval needs two runs at least".into()))
    };
    let silos = study.silos.iter().enumerate();
    let silos = silos.map(|(at, silo)| {
        Ok(AbsentSilo {
            name: silo.name.clone(),
            cosine: over(&|run| run.differences[at])?,
        })
    });
    let numbers = federation.members[0].learner.layout().len();
    Ok(NoisedAbsence {
        scenario: scenario.name.clone(),
        bound: bound.to_string(),
        rounds: protocol.rounds,
        runs: found.len() as u64,
        numbers,
        cosine: over(&|run| run.differences.iter().sum::<f64>() / members as f64)?,
        silos: silos.collect::<Result<_, RunError>>()?,
        sum: over(&|run| run.sum)?,
        chance: chance(numbers),
    })
}

/// The means of the cosines over the rounds of one run.
struct RunMeans {
    /// For each silo: two sums, of which the second lacks it.
    differences: Vec<f64>,
    /// One sum alone.
    sum: f64,
}

/// Plays one run.
fn played(federation: &Federation, seed: u64) -> Result<RunMeans, RunError> {
    let members = &federation.members;
    let mut before: Option<(Vec<f64>, Vec<Vec<f64>>)> = None;
    let (mut differences, mut sums, mut rounds) = (vec![0.0; members.len()], 0.0, 0.0);
    replay(members, seed, |played| {
        if let Some((sum, updates)) = &before {
            for (at, update) in updates.iter().enumerate() {
                let others = played.parts.iter().enumerate();
                let others = others.filter(|(other, _)| *other != at);
                let without = total(others.map(|(_, part)| part));
                differences[at] += cosine(&minus(sum, &floats(&without)), update).abs();
                sums += cosine(sum, update).abs() / members.len() as f64;
            }
            rounds += 1.0;
        }
        let updates = played.parts.iter().map(|part| floats(&part.units));
        before = Some((floats(played.sum), updates.collect()));
        Ok(())
    })?;
    for difference in &mut differences {
        *difference /= rounds;
    }
    let sum = sums / rounds;
    Ok(RunMeans { differences, sum })
}

fn floats(integers: &[i64]) -> Vec<f64> {
    integers.iter().map(|integer| *integer as f64).collect()
}

/// The mean of the cosine, without its sign, of a random direction in so many dimensions and a given one:
/// Γ(d/2)/(√π·Γ((d+1)/2)), which is 1 for d = 1, 2/π for d = 2, and d/(d+1) times as much for d + 2 as for d.
fn chance(dimensions: usize) -> f64 {
    let (mut at, mut mean) = match dimensions % 2 {
        0 => (2, std::f64::consts::FRAC_2_PI),
        _ => (1, 1.0),
    };
    while at < dimensions {
        mean *= at as f64 / (at as f64 + 1.0);
        at += 2;
    }
    mean
}

impl NoisedAbsence {
    /// Returns what was found, as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "{}: how well the update of an institution is recovered from a sum with noise minus the next sum \
                 without that institution (absolute cosine; 1: known except for its length)",
                self.scenario
            ),
            String::new(),
            format!("  all rounds together: {}", self.bound),
            format!("  difference of two sums   {}", self.cosine.words(3)),
        ];
        for silo in &self.silos {
            let name = formatting::numbers::plain(&silo.name);
            lines.push(format!("    {name:22} {}", silo.cosine.words(3)));
        }
        lines.extend([
            format!("  one sum alone            {}", self.sum.words(3)),
            format!("  a random direction       {:.3}", self.chance),
            String::new(),
            format!(
                "Means over {} rounds of {} numbers, with intervals over {} runs with different noise. Not tried: \
                 differences added up over several absences, and members that subtract their own noise.",
                self.rounds - 1,
                self.numbers,
                self.runs
            ),
        ]);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_of_chance_is_that_of_random_directions() {
        assert!((chance(1) - 1.0).abs() < 1e-12 && (chance(3) - 0.5).abs() < 1e-12);
        assert!((chance(2) - std::f64::consts::FRAC_2_PI).abs() < 1e-12);
        let mut random = simulations::random::Random::new(1, "directions");
        let drawn = (0..20_000).map(|_| {
            let direction: Vec<_> = (0..14)
                .map(|_| methods::random::normal(random.words()))
                .collect();
            let mut first = vec![0.0; 14];
            first[0] = 1.0;
            cosine(&direction, &first).abs()
        });
        let mean = drawn.sum::<f64>() / 20_000.0;
        assert!((chance(14) - mean).abs() < 0.005, "{} {mean}", chance(14));
    }
}
