//! Rows drawn to resemble those of several silos: as many silos and rows as one likes.
//!
//! Within a class of a silo the columns follow a normal distribution. All silos share its spread and the
//! distances between classes; each has its own share of every class, and its own distance from the common
//! centre. That distance is shrunk by what chance alone gives to a silo of its size (empirical Bayes with
//! moments, Efron & Morris 1973). A number to predict is one more column. Values stay within the range that a
//! column has in the rows.
//!
//! Not in such rows: shapes that are not normal, interactions, and differences between silos in
//! how columns and target go together.

use methods::learner::Split;
use simulations::random::Random;
use task::data::{DataSet, Table, Target};

/// Test rows of a silo.
const TEST: usize = 100;
/// Steps by which centres of classes and distances of silos are found, which depend on each other.
const STEPS: usize = 5;

/// Distribution of the rows of several silos.
#[derive(Debug, Clone)]
pub(super) struct Imitation {
    target: Target,
    columns: Vec<String>,
    /// The centre of every class, by column; where a number is predicted there is one, and the number is the
    /// last column.
    centres: Vec<Vec<f64>>,
    /// Lower triangle of the common spread, row by row.
    spread: Vec<Vec<f64>>,
    /// Least and largest value of every column.
    ranges: Vec<(f64, f64)>,
    silos: Vec<ImitatedSilo>,
}

/// Parameters of one silo.
#[derive(Debug, Clone)]
struct ImitatedSilo {
    /// Training rows.
    train: usize,
    /// Share of every class.
    shares: Vec<f64>,
    /// Distance from the common centre, by column.
    distance: Vec<f64>,
}

/// The complete rows of a silo: its columns, and the class.
type SiloRows = Vec<(Vec<f64>, usize)>;

impl Imitation {
    /// That of these silos, of which each has so many training rows. `None` where the target is neither a
    /// number nor a class, or a class has no complete row.
    pub(super) fn of(data: &DataSet, train: &[usize]) -> Option<Self> {
        let classes = match &data.target {
            Target::Classes(names) => names.len(),
            Target::Number { .. } => 1,
            Target::Numbers { .. } | Target::Mask { .. } | Target::Survival { .. } => return None,
        };
        let number = classes == 1;
        let silos = data.silos.iter().map(|(_, table)| rows_of(table, number));
        let silos: Vec<SiloRows> = silos.collect();
        let columns = data.silos.first()?.1.columns.clone();
        let width = columns.len() + usize::from(number);
        let all = || silos.iter().flatten();
        if (0..classes).any(|class| all().all(|row| row.1 != class)) || all().count() < 2 {
            return None;
        }
        let (centres, distances) = centres(&silos, classes, width);
        let residuals = silos.iter().zip(&distances).flat_map(|(rows, distance)| {
            rows.iter()
                .map(|(row, class)| less(row, &[&centres[*class], distance]))
        });
        let range = |column: usize| {
            let values = all().map(|(row, _)| row[column]);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let spread = cholesky(&covariance(residuals.collect(), width));
        let own = silos.iter().zip(distances).zip(train);
        let own = own.map(|((rows, distance), &train)| ImitatedSilo {
            train,
            // As if there were one row more of each class.
            shares: (0..classes)
                .map(|class| {
                    let rows_of = rows.iter().filter(|row| row.1 == class).count();
                    (rows_of + 1) as f64 / (rows.len() + classes) as f64
                })
                .collect(),
            distance,
        });
        Some(Self {
            target: data.target.clone(),
            columns,
            centres,
            spread,
            ranges: (0..width).map(range).collect(),
            silos: own.collect(),
        })
    }

    /// Rows of so many times the silos, each with so many times the training rows; a function of `seed`.
    pub(super) fn draw(&self, silos: usize, rows: usize, seed: u64) -> DataSet {
        let all = (0..silos * self.silos.len()).map(|at| {
            let silo = &self.silos[at % self.silos.len()];
            let mut random = Random::new(seed, &format!("imitated rows of silo {at}"));
            let mut table = Table::new(self.columns.clone());
            let parts = [(Split::Train, silo.train * rows), (Split::Test, TEST)];
            for (part, count) in parts {
                for _ in 0..count {
                    let (row, target) = self.row(silo, &mut random);
                    table.push(&row, target);
                    table.parts.push(part);
                }
            }
            (format!("silo {}", at + 1), table)
        });
        DataSet {
            target: self.target.clone(),
            silos: all.collect(),
            schema: None,
            notes: Vec::new(),
            subgroups: Vec::new(),
        }
    }

    /// The features and the target of one row.
    fn row(&self, silo: &ImitatedSilo, random: &mut Random) -> (Vec<f64>, f64) {
        let mut left = random.uniform();
        let class = silo.shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        let class = class.unwrap_or(silo.shares.len() - 1);
        let normal: Vec<f64> = self
            .spread
            .iter()
            .map(|_| methods::random::normal(random.words()))
            .collect();
        let value = |(column, weights): (usize, &Vec<f64>)| {
            let drawn = weights.iter().zip(&normal).map(|(a, b)| a * b);
            let drawn: f64 = drawn.sum();
            let (low, high) = self.ranges[column];
            (self.centres[class][column] + silo.distance[column] + drawn).clamp(low, high)
        };
        let mut row: Vec<f64> = self.spread.iter().enumerate().map(value).collect();
        let number = row.split_off(self.columns.len());
        (row, number.first().copied().unwrap_or(class as f64))
    }
}

/// The complete rows of a table.
fn rows_of(table: &Table, number: bool) -> SiloRows {
    let rows = (0..table.len()).map(|at| {
        let (mut row, target) = (table.row(at).to_vec(), table.target[at]);
        if number {
            row.push(target);
            return (row, 0);
        }
        (row, target as usize)
    });
    let complete = |row: &(Vec<f64>, usize)| row.0.iter().all(|value| value.is_finite());
    rows.filter(complete).collect()
}

/// The centre of every class, and the distance of every silo from it.
fn centres(silos: &[SiloRows], classes: usize, width: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let mut distances = vec![vec![0.0; width]; silos.len()];
    let mut centres = vec![vec![0.0; width]; classes];
    for _ in 0..STEPS {
        for (class, centre) in centres.iter_mut().enumerate() {
            let rows = silos.iter().zip(&distances).flat_map(|(rows, distance)| {
                let own = rows.iter().filter(|row| row.1 == class);
                own.map(|(row, _)| less(row, &[distance]))
            });
            *centre = mean(rows, width);
        }
        let residuals = silos.iter().map(|rows| -> Vec<Vec<f64>> {
            let rows = rows.iter();
            rows.map(|(row, class)| less(row, &[&centres[*class]]))
                .collect()
        });
        distances = shrunk(&residuals.collect::<Vec<_>>(), width);
    }
    (centres, distances)
}

/// The mean of every silo, shrunk towards 0.
fn shrunk(silos: &[Vec<Vec<f64>>], width: usize) -> Vec<Vec<f64>> {
    let mut means: Vec<Vec<f64>> = silos
        .iter()
        .map(|rows| mean(rows.iter().cloned(), width))
        .collect();
    let rows: usize = silos.iter().map(Vec::len).sum();
    for column in 0..width {
        let squares = silos.iter().zip(&means).flat_map(|(rows, mean)| {
            rows.iter()
                .map(move |row| (row[column] - mean[column]).powi(2))
        });
        let within = squares.sum::<f64>() / rows.saturating_sub(silos.len()).max(1) as f64;
        // The part that chance gives to the mean of a silo.
        let chance = |rows: &Vec<Vec<f64>>| within / rows.len().max(1) as f64;
        let count = silos.len() as f64;
        let found = means.iter().map(|mean| mean[column].powi(2)).sum::<f64>() / count;
        let between = (found - silos.iter().map(chance).sum::<f64>() / count).max(0.0);
        for (mean, rows) in means.iter_mut().zip(silos) {
            let whole = between + chance(rows);
            mean[column] *= if whole > 0.0 { between / whole } else { 0.0 };
        }
    }
    means
}

/// The covariance of centred rows, drawn towards its diagonal where there are few of them.
fn covariance(rows: Vec<Vec<f64>>, width: usize) -> Vec<Vec<f64>> {
    let count = rows.len() as f64;
    let diagonal = width as f64 / (width as f64 + count);
    let entry = |i: usize, j: usize| {
        let sum: f64 = rows.iter().map(|row| row[i] * row[j]).sum();
        let kept = if i == j { 1.0 } else { 1.0 - diagonal };
        kept * sum / count
    };
    let row = |i: usize| (0..width).map(|j| entry(i, j)).collect();
    (0..width).map(row).collect()
}

/// The lower triangle whose product with itself is this matrix; 0 for a column without spread.
fn cholesky(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut lower: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
    for (i, row) in matrix.iter().enumerate() {
        let mut own = vec![0.0; i + 1];
        for j in 0..=i {
            let before = if j < i { &lower[j][..j] } else { &own[..j] };
            let known: f64 = own[..j].iter().zip(before).map(|(a, b)| a * b).sum();
            let left = row[j] - known;
            own[j] = if i == j {
                left.max(0.0).sqrt()
            } else if lower[j][j] > 0.0 {
                left / lower[j][j]
            } else {
                0.0
            };
        }
        lower.push(own);
    }
    lower
}

/// A row less these, column by column.
fn less(row: &[f64], others: &[&Vec<f64>]) -> Vec<f64> {
    let value = |(at, value): (usize, &f64)| value - others.iter().map(|one| one[at]).sum::<f64>();
    row.iter().enumerate().map(value).collect()
}

fn mean(rows: impl Iterator<Item = Vec<f64>>, width: usize) -> Vec<f64> {
    let (mut sum, mut count) = (vec![0.0; width], 0.0_f64);
    for row in rows {
        count += 1.0;
        sum.iter_mut()
            .zip(&row)
            .for_each(|(sum, value)| *sum += value);
    }
    sum.iter().map(|sum| sum / count.max(1.0)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Two silos that differ by 4 in the first column, and two classes that differ by 2 in the second.
    fn data(rows: usize) -> DataSet {
        let mut random = Random::new(1, "rows");
        let silos = [-2.0, 2.0].into_iter().enumerate().map(|(at, centre)| {
            let mut table = Table::new(vec!["a".into(), "b".into()]);
            for row in 0..rows {
                // A quarter of the first silo is of class 1, and half of the second.
                let class = f64::from(u8::from(row % (4 - 2 * at) == 0));
                let a = centre + methods::random::normal(random.words());
                table.push(
                    &[
                        a,
                        2.0 * class + 0.5 * a + methods::random::normal(random.words()),
                    ],
                    class,
                );
            }
            (format!("s{at}"), table)
        });
        DataSet {
            target: Target::Classes(vec!["0".into(), "1".into()]),
            silos: silos.collect(),
            schema: None,
            notes: Vec::new(),
            subgroups: Vec::new(),
        }
    }

    fn close(found: f64, expected: f64, within: f64) {
        assert!(
            (found - expected).abs() < within,
            "{found} and not {expected}"
        );
    }

    #[test]
    fn drawn_rows_resemble_those_they_were_drawn_from() {
        let imitation = Imitation::of(&data(2_000), &[30, 50]).unwrap();
        let drawn = imitation.draw(2, 40, 9);
        assert_eq!(drawn.silos.len(), 4);
        for (at, (_, table)) in drawn.silos.iter().enumerate() {
            let train = table.parts.iter().filter(|part| **part == Split::Train);
            let expected = [1_200, 2_000][at % 2];
            assert_eq!((train.count(), table.len()), (expected, expected + TEST));
            let rows = (0..table.len()).map(|row| (table.row(row), table.target[row]));
            let rows: Vec<_> = rows.collect();
            let count = rows.len() as f64;
            let share = rows.iter().map(|row| row.1).sum::<f64>() / count;
            close(share, [0.25, 0.5][at % 2], 0.05);
            let a = rows.iter().map(|row| row.0[0]).sum::<f64>() / count;
            close(a, [-2.0, 2.0][at % 2], 0.15);
            let of = |class: f64| {
                let own: Vec<_> = rows.iter().filter(|row| row.1 == class).collect();
                own.iter().map(|row| row.0[1] - 0.5 * row.0[0]).sum::<f64>() / own.len() as f64
            };
            close(of(1.0) - of(0.0), 2.0, 0.2);
            let along = rows
                .iter()
                .map(|row| (row.0[0] - a) * row.0[1])
                .sum::<f64>()
                / count;
            close(along, 0.5, 0.12);
        }
        assert_eq!(drawn, imitation.draw(2, 40, 9));
        assert_ne!(drawn, imitation.draw(2, 40, 10));
    }

    #[test]
    fn a_number_is_predicted_by_what_it_went_with() {
        let mut random = Random::new(2, "rows");
        let mut table = Table::new(vec!["a".into()]);
        for _ in 0..1_000 {
            let a = methods::random::normal(random.words());
            table.push(
                &[a],
                3.0 * a + 10.0 + methods::random::normal(random.words()),
            );
        }
        let set = DataSet {
            target: Target::Number {
                unit: String::new(),
            },
            silos: vec![("one".into(), table)],
            ..data(2)
        };
        let drawn = Imitation::of(&set, &[500]).unwrap().draw(1, 2, 3);
        let table = &drawn.silos[0].1;
        let rows = 0..table.len();
        let slope: f64 = rows.map(|row| table.row(row)[0] * table.target[row]).sum();
        close(slope / table.len() as f64, 3.0, 0.3);
    }

    #[test]
    fn silos_that_differ_by_chance_alone_are_drawn_alike() {
        let mut alike = data(40);
        let (_, second) = alike.silos[1].clone();
        let halves = [0..20, 20..40].map(|rows| {
            let mut table = Table::new(second.columns.clone());
            rows.for_each(|row| table.push(second.row(row), second.target[row]));
            ("half".to_owned(), table)
        });
        alike.silos = halves.to_vec();
        let imitation = Imitation::of(&alike, &[20, 20]).unwrap();
        for silo in &imitation.silos {
            assert!(silo.distance.iter().all(|one| one.abs() < 0.3), "{silo:?}");
        }
    }
}
