//! Shards: rows sorted by class and cut into pieces of one size, of which every silo gets some.

use rand_chacha::ChaCha8Rng;

use super::{ShardShares, Traits};
use crate::random::{normal, shuffle};

/// Cuts the rows into `count` shards, and the test rows likewise, and deals them out: a silo gets the
/// same shards of both (HCCT's code, `sampling.py`: `r_i = |x_i| / Σ|x|`, `max(1, ⌊count · r_i⌋)`
/// shards).
pub(super) fn divide(
    rows: &[Traits],
    silos: usize,
    count: usize,
    shares: ShardShares,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Vec<u32>>, String> {
    if silos > count {
        return Err(format!(
            "`count` of a partition is {count}, but every one of {silos} silos gets at least one shard: \
             use more shards"
        ));
    }
    let sorted = |test: bool, rng: &mut ChaCha8Rng| {
        let of = |at: &u32| rows[*at as usize];
        let mut sorted: Vec<u32> = (0..rows.len() as u32)
            .filter(|at| of(at).test == test)
            .collect();
        shuffle(rng, &mut sorted);
        sorted.sort_by_key(|at| of(at).class);
        sorted
    };
    let (train, test) = (sorted(false, rng), sorted(true, rng));
    if train.len() < count {
        return Err(format!(
            "`count` of a partition is {count}, but there are only {} rows: use fewer shards",
            train.len()
        ));
    }
    let numbers = match shares {
        ShardShares::Equal => vec![count / silos; silos],
        ShardShares::HalfNormal => {
            let sizes: Vec<f64> = (0..silos).map(|_| normal(rng).abs()).collect();
            half_normal(&sizes, count)
        }
    };
    let mut order: Vec<usize> = (0..count).collect();
    shuffle(rng, &mut order);
    let mut order = order.into_iter();
    let shard = |rows: &[u32], at: usize| {
        rows[at * rows.len() / count..(at + 1) * rows.len() / count].to_vec()
    };
    let part = |number: usize| {
        let shards: Vec<usize> = order.by_ref().take(number).collect();
        let own = shards
            .iter()
            .flat_map(|&at| [shard(&train, at), shard(&test, at)].concat());
        let mut own: Vec<u32> = own.collect();
        own.sort_unstable();
        own
    };
    Ok(numbers.into_iter().map(part).collect())
}

/// Numbers of shards in proportion to these sizes, rounded down, at least one each. Where those that
/// were raised to one make them too many, the largest give way.
fn half_normal(sizes: &[f64], count: usize) -> Vec<usize> {
    let sum: f64 = sizes.iter().sum();
    let number = |size: &f64| ((count as f64 * size / sum) as usize).max(1);
    let mut numbers: Vec<usize> = sizes.iter().map(number).collect();
    while numbers.iter().sum::<usize>() > count {
        let most = (0..numbers.len()).max_by_key(|&at| (numbers[at], sizes.len() - at));
        numbers[most.expect("there are silos")] -= 1;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_down_to_at_least_one_and_never_too_many() {
        assert_eq!(half_normal(&[1.0, 2.0, 1.0], 10), [2, 5, 2]);
        assert_eq!(half_normal(&[0.001, 1.0], 10), [1, 9]);
        assert_eq!(half_normal(&[0.001, 0.001, 1.0, 1.0], 6), [1, 1, 2, 2]);
        assert_eq!(half_normal(&[0.0, 0.0, 5.0], 3), [1, 1, 1]);
    }
}
