//! Partitions the rows of a classed source into silos.
//!
//! Rows that the source gives for testing are partitioned like the others: by the same shares, but
//! apart from them. No row is in two silos; some partitions leave rows out. All randomness follows
//! from the seed.

mod config;
mod deal;
mod mixed;
mod shards;

use rand_chacha::ChaCha8Rng;

use crate::random::stream;

pub use config::{MixedShares, PartitionConfig, ShardShares};
pub(crate) use mixed::counts;

use deal::{deal, dirichlet, groups};

/// Draws after which a Dirichlet partition gives up finding one with enough rows in every silo.
const DRAWS: u64 = 1000;

/// Traits of a row that a partition may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Class of the row.
    pub class: u32,
    /// Domain of the row.
    pub domain: u32,
    /// The user that the row is from.
    pub user: u32,
    /// True if the row is for testing.
    pub test: bool,
}

/// All rows that are to be partitioned.
#[derive(Debug, Clone, Copy)]
pub struct RowsToPartition<'a> {
    /// Traits of each row.
    pub rows: &'a [Traits],
    /// Number of classes.
    pub classes: usize,
    /// Names of the domains; empty where none are known.
    pub domains: &'a [String],
    /// Names of the users; empty where none are known.
    pub users: &'a [String],
}

/// A silo as a partition makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionedSilo {
    /// Name of the silo.
    pub name: String,
    /// Rows of the silo, in ascending order.
    pub rows: Vec<u32>,
}

impl PartitionConfig {
    /// The number of silos, where it does not depend on how many are asked for.
    pub fn fixed(&self, population: &RowsToPartition<'_>) -> Option<usize> {
        match self {
            Self::Domains { silos } => Some(silos * population.domains.len()),
            Self::ThreeClients { .. } => Some(3),
            Self::Users { rows } => Some(enough(population, *rows).len()),
            Self::Mixed(MixedShares::Given(shares)) => Some(shares.len()),
            Self::Iid | Self::Dirichlet { .. } | Self::Shards { .. } | Self::Mixed(_) => None,
        }
    }

    /// The silos: as many as are asked for, or as [`fixed`](Self::fixed) says.
    ///
    /// # Errors
    /// Description of the fault, as text: a setting out of range, a source without the traits that the
    /// partition needs, or too few rows.
    pub fn divide(
        &self,
        population: &RowsToPartition<'_>,
        silos: usize,
        seed: u64,
    ) -> Result<Vec<PartitionedSilo>, String> {
        self.check(population)?;
        let mut rng = stream(seed, "partition");
        let rows = population.rows;
        let parts: Vec<PartitionedSilo> = match self {
            Self::Iid => {
                let groups = groups(rows, |row| (0, row.test));
                let shares = |_| vec![1.0 / silos as f64; silos];
                numbered(deal(groups, silos, shares, &mut rng))
            }
            Self::Dirichlet { alpha, rows: least } => numbered(self::dirichlet_classes(
                population, silos, *alpha, *least, seed,
            )?),
            Self::Shards { count, shares } => {
                numbered(shards::divide(rows, silos, *count, *shares, &mut rng)?)
            }
            Self::Domains { silos: each } => by_domain(population, *each, &mut rng),
            Self::Mixed(shares) => numbered(mixed::divide(population, silos, shares, &mut rng)?),
            Self::ThreeClients { a, b } => three_clients(population, (*a, *b), &mut rng),
            Self::Users { rows: least } => by_user(population, *least),
        };
        match parts.iter().find(|part| part.rows.is_empty()) {
            Some(part) => Err(format!(
                "the partition leaves {:?} without a row: use fewer silos",
                part.name
            )),
            None => Ok(parts),
        }
    }
}

/// Silos with these rows, named by their numbers.
fn numbered(parts: Vec<Vec<u32>>) -> Vec<PartitionedSilo> {
    let name = |(at, rows)| PartitionedSilo {
        name: format!("silo {}", at + 1),
        rows,
    };
    parts.into_iter().enumerate().map(name).collect()
}

/// `each` silos for every domain, with equal shares of its rows.
fn by_domain(
    population: &RowsToPartition<'_>,
    each: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<PartitionedSilo> {
    let places = population.domains.len() * each;
    let groups = groups(population.rows, |row| (row.domain, row.test));
    let shares = |domain: u32| {
        let first = domain as usize * each;
        let own = |place: usize| (first..first + each).contains(&place);
        let share = |place| if own(place) { 1.0 / each as f64 } else { 0.0 };
        (0..places).map(share).collect()
    };
    let name = |place: usize| match each {
        1 => population.domains[place].clone(),
        _ => format!("{} {}", population.domains[place / each], place % each + 1),
    };
    let parts = deal(groups, places, shares, rng).into_iter().enumerate();
    let named = parts.map(|(place, rows)| PartitionedSilo {
        name: name(place),
        rows,
    });
    named.collect()
}

/// Clients A and B with these shares of the first half of the classes, and C with the other half.
fn three_clients(
    population: &RowsToPartition<'_>,
    (a, b): (f64, f64),
    rng: &mut ChaCha8Rng,
) -> Vec<PartitionedSilo> {
    let half = population.classes.div_ceil(2) as u32;
    let groups = groups(population.rows, |row| (row.class, row.test));
    let shares = |class: u32| {
        if class < half {
            vec![a, b, 0.0]
        } else {
            vec![0.0, 0.0, 1.0]
        }
    };
    let parts = deal(groups, 3, shares, rng);
    let named = ["A", "B", "C"].into_iter().zip(parts);
    let named = named.map(|(name, rows)| PartitionedSilo {
        name: name.into(),
        rows,
    });
    named.collect()
}

/// A silo for every user with at least `least` rows.
fn by_user(population: &RowsToPartition<'_>, least: usize) -> Vec<PartitionedSilo> {
    let part = |name: &String| PartitionedSilo {
        name: name.clone(),
        rows: Vec::new(),
    };
    let mut parts: Vec<PartitionedSilo> = population.users.iter().map(part).collect();
    for (at, row) in population.rows.iter().enumerate() {
        parts[row.user as usize].rows.push(at as u32);
    }
    let enough = enough(population, least);
    let parts = parts.into_iter().enumerate();
    let kept = parts.filter(|(at, _)| enough.contains(at));
    kept.map(|(_, part)| part).collect()
}

/// Users with at least this number of rows, in their order.
fn enough(population: &RowsToPartition<'_>, least: usize) -> Vec<usize> {
    let mut counts = vec![0usize; population.users.len()];
    for row in population.rows {
        if let Some(count) = counts.get_mut(row.user as usize) {
            *count += 1;
        }
    }
    (0..counts.len())
        .filter(|&user| counts[user] >= least.max(1))
        .collect()
}

/// For every class, the silos' shares are drawn from a Dirichlet distribution; drawn again until every
/// silo has at least `least` rows to train on, and one to test on where the source gives test rows.
fn dirichlet_classes(
    population: &RowsToPartition<'_>,
    silos: usize,
    alpha: f64,
    least: usize,
    seed: u64,
) -> Result<Vec<Vec<u32>>, String> {
    let rows = population.rows;
    let tests = rows.iter().any(|row| row.test);
    let mut best = 0;
    for draw in 0..DRAWS {
        let mut rng = stream(seed, &format!("dirichlet {draw}"));
        let shares: Vec<Vec<f64>> = (0..population.classes)
            .map(|_| dirichlet(alpha, silos, &mut rng))
            .collect();
        let groups = groups(rows, |row| (row.class, row.test));
        let parts = deal(
            groups,
            silos,
            |class| shares[class as usize].clone(),
            &mut rng,
        );
        let count = |part: &[u32], test: bool| {
            part.iter()
                .filter(|&&at| rows[at as usize].test == test)
                .count()
        };
        let fewest = parts
            .iter()
            .map(|part| count(part, false))
            .min()
            .unwrap_or(0);
        let tested = !tests || parts.iter().all(|part| count(part, true) > 0);
        if fewest >= least && tested {
            return Ok(parts);
        }
        best = best.max(fewest);
    }
    Err(format!(
        "none of {DRAWS} draws from Dirichlet({alpha}) gives each of {silos} silos at least {least} rows \
         (the best draw gives {best}) and, where there are test rows, one of them: use fewer silos, a \
         larger `alpha`, or a smaller `rows`"
    ))
}

#[cfg(test)]
mod tests;
