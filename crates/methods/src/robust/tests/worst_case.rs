//! Distributions within the ball attain the robust loss, and none exceeds it.

use proptest::prelude::*;

use super::{any_model, any_rows, labels_of, norm};
use crate::robust::{LinearModel, Norm, RowLoss, Samples, TransportCost, robust_loss};

/// A mass so small that what it would lose by staying does not matter.
const LITTLE: f64 = 1e-9;

/// A mass at a point, and the row that it came from.
struct Atom {
    mass: f64,
    x: Vec<f64>,
    y: f64,
    from: usize,
}

fn size(vector: &[f64], norm: Norm) -> f64 {
    let sizes = vector.iter().map(|value| value.abs());
    match norm {
        Norm::L1 => sizes.sum(),
        Norm::L2 => sizes.map(|size| size * size).sum::<f64>().sqrt(),
        Norm::Linf => sizes.fold(0.0, f64::max),
    }
}

/// The vector of size 1 in which `slope` grows fastest.
fn steepest(slope: &[f64], norm: Norm) -> Vec<f64> {
    let largest = (0..slope.len()).max_by(|&a, &b| slope[a].abs().total_cmp(&slope[b].abs()));
    let direction: Vec<f64> = match norm {
        Norm::L1 => (0..slope.len())
            .map(|at| {
                if Some(at) == largest {
                    slope[at].signum()
                } else {
                    0.0
                }
            })
            .collect(),
        Norm::L2 => slope.to_vec(),
        Norm::Linf => slope.iter().map(|value| value.signum()).collect(),
    };
    let length = size(&direction, norm).max(f64::MIN_POSITIVE);
    direction.into_iter().map(|value| value / length).collect()
}

/// Returns what moving all atoms from their rows costs: at least the Wasserstein distance.
fn moved(atoms: &[Atom], rows: &Samples, loss: RowLoss, cost: TransportCost) -> f64 {
    let TransportCost { norm, label_cost } = cost;
    let rows: Vec<_> = rows.iter().collect();
    let each = atoms.iter().map(|atom| {
        let (x, y) = rows[atom.from];
        let mut step: Vec<f64> = atom.x.iter().zip(x).map(|(to, from)| to - from).collect();
        let distance = match loss {
            RowLoss::Absolute => {
                step.push(atom.y - y);
                size(&step, norm)
            }
            RowLoss::Logistic if atom.y != y => size(&step, norm) + label_cost,
            RowLoss::Logistic => size(&step, norm),
        };
        atom.mass * distance
    });
    each.sum()
}

fn expected(atoms: &[Atom], model: &LinearModel, loss: RowLoss) -> f64 {
    let each = atoms.iter().map(|atom| {
        let output = model.output(&atom.x);
        atom.mass
            * match loss {
                RowLoss::Absolute => (atom.y - output).abs(),
                RowLoss::Logistic => {
                    let margin = atom.y * output;
                    (-margin).max(0.0) + libm::log1p(libm::exp(-margin.abs()))
                }
            }
    });
    each.sum()
}

/// Moves the whole of the first row in the direction that its residual grows in: attains.
fn worst_absolute(rows: &Samples, model: &LinearModel, radius: f64, norm: Norm) -> Vec<Atom> {
    let mass = 1.0 / rows.len() as f64;
    let each = rows.iter().enumerate().map(|(from, (x, y))| {
        let (mut x, mut y) = (x.to_vec(), y);
        if from == 0 {
            let sign = if y < model.output(&x) { -1.0 } else { 1.0 };
            let slope = model.weights.iter().map(|weight| -sign * weight);
            let slope: Vec<f64> = slope.chain([sign]).collect();
            let step = steepest(&slope, norm);
            let length = radius / mass;
            x.iter_mut()
                .zip(&step)
                .for_each(|(x, step)| *x += length * step);
            y += length * step[step.len() - 1];
        }
        Atom { mass, x, y, from }
    });
    each.collect()
}

/// Changes the labels of the widest margins while that pays, and sends a little mass of the first
/// row far enough to spend the rest: approaches.
fn worst_logistic(
    rows: &Samples,
    model: &LinearModel,
    radius: f64,
    cost: TransportCost,
) -> Vec<Atom> {
    let TransportCost { norm, label_cost } = cost;
    let mass = 1.0 / rows.len() as f64;
    let slope = norm.dual(model.weights.iter().copied());
    let mut order: Vec<(f64, usize)> = rows
        .iter()
        .enumerate()
        .map(|(row, (x, y))| (y * model.output(x), row))
        .filter(|(margin, _)| *margin > label_cost * slope)
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = radius;
    let mut flipped = vec![0.0; rows.len()];
    for (_, row) in order {
        // A little keeps its label, for the last step.
        flipped[row] = (left / label_cost).min(mass - LITTLE);
        left -= flipped[row] * label_cost;
    }
    let mut atoms = Vec::new();
    for (from, (x, y)) in rows.iter().enumerate() {
        let mut stays = mass - flipped[from];
        if from == 0 {
            stays -= LITTLE;
            let down: Vec<f64> = model.weights.iter().map(|weight| -y * weight).collect();
            let step = steepest(&down, norm)
                .into_iter()
                .map(|step| left / LITTLE * step);
            let x = x.iter().zip(step).map(|(x, step)| x + step).collect();
            atoms.push(Atom {
                mass: LITTLE,
                x,
                y,
                from,
            });
        }
        let x = x.to_vec();
        if flipped[from] > 0.0 {
            atoms.push(Atom {
                mass: flipped[from],
                x: x.clone(),
                y: -y,
                from,
            });
        }
        atoms.push(Atom {
            mass: stays,
            x,
            y,
            from,
        });
    }
    atoms
}

proptest! {
    #[test]
    fn the_worst_distribution_is_in_the_ball_and_loses_that_much(
        rows in any_rows(3),
        model in any_model(3),
        radius in 0.0..2.0f64,
        label_cost in prop_oneof![0.05..4.0f64, Just(f64::INFINITY)],
        norm in norm(),
    ) {
        let (loss, cost) = (RowLoss::Absolute, TransportCost { norm, label_cost });
        let atoms = worst_absolute(&rows, &model, radius, norm);
        let robust = robust_loss(&rows, &model, radius, loss, cost).unwrap().loss;
        prop_assert!(moved(&atoms, &rows, loss, cost) <= radius + 1e-12);
        prop_assert!((expected(&atoms, &model, loss) - robust).abs() < 1e-10);

        let (rows, loss) = (labels_of(&rows), RowLoss::Logistic);
        let atoms = worst_logistic(&rows, &model, radius, cost);
        let robust = robust_loss(&rows, &model, radius, loss, cost).unwrap().loss;
        let approached = expected(&atoms, &model, loss);
        prop_assert!((atoms.iter().map(|atom| atom.mass).sum::<f64>() - 1.0).abs() < 1e-12);
        prop_assert!(moved(&atoms, &rows, loss, cost) <= radius + 1e-9);
        prop_assert!((approached - robust).abs() < 1e-6, "{approached} {robust}");
    }

    /// Any other distribution: parts of rows moved anywhere, their labels changed or not, and the
    /// whole drawn back until it is in the ball.
    #[test]
    fn no_distribution_in_the_ball_loses_more(
        rows in any_rows(2),
        model in any_model(2),
        radius in 0.01..1.0f64,
        label_cost in 0.05..4.0f64,
        norm in norm(),
        moves in prop::collection::vec((any::<prop::sample::Index>(), 0.0..1.0f64, [-9.0..9.0f64, -9.0..9.0], any::<bool>()), 1..8),
    ) {
        let cost = TransportCost { norm, label_cost };
        for loss in [RowLoss::Absolute, RowLoss::Logistic] {
            let labels = loss == RowLoss::Logistic;
            let rows = if labels { labels_of(&rows) } else { rows.clone() };
            let each: Vec<_> = rows.iter().collect();
            let mut left = vec![1.0 / each.len() as f64; each.len()];
            let mut atoms = Vec::new();
            for (from, part, step, flip) in &moves {
                let from = from.index(each.len());
                let (x, y) = each[from];
                let mass = left[from] * part;
                left[from] -= mass;
                let x = vec![x[0] + step[0], x[1] + step[1]];
                let y = match (labels, flip) {
                    (true, true) => -y,
                    (true, false) => y,
                    (false, _) => y + step[0] - step[1],
                };
                atoms.push(Atom { mass, x, y, from });
            }
            let spent = moved(&atoms, &rows, loss, cost);
            let keep = (radius / spent).min(1.0);
            for atom in &mut atoms {
                left[atom.from] += (1.0 - keep) * atom.mass;
                atom.mass *= keep;
            }
            for (from, (x, y)) in each.iter().enumerate() {
                atoms.push(Atom { mass: left[from], x: x.to_vec(), y: *y, from });
            }
            prop_assert!(moved(&atoms, &rows, loss, cost) <= radius + 1e-12);
            let robust = robust_loss(&rows, &model, radius, loss, cost).unwrap().loss;
            prop_assert!(expected(&atoms, &model, loss) <= robust + 1e-10);
        }
    }
}
