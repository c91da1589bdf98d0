#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::domains::adjacency::{self, BETA};
use crate::domains::{residual, residual_gradient};

fn rows<R: AsRef<[f64]>>(rows: &[R]) -> Matrix {
    Matrix::from_rows(rows).unwrap()
}

fn near(a: &Matrix, b: &Matrix, tolerance: f64) -> bool {
    (a.rows(), a.columns()) == (b.rows(), b.columns())
        && a.values()
            .iter()
            .zip(b.values())
            .all(|(a, b)| (a - b).abs() <= tolerance)
}

/// Three domains of two values.
fn three() -> (Matrix, Matrix, Propagation) {
    let parameters = rows(&[[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]]);
    let shares = adjacency::by_parameters(&parameters, BETA).unwrap();
    let weight = rows(&[[1.0, -1.0], [0.5, 2.0]]);
    let propagation = Propagation {
        activation: Activation::Relu,
        projection: Projection::Full(weight),
    };
    (shares, parameters, propagation)
}

#[test]
fn three_domains_give_the_known_parameters() {
    let (shares, parameters, with) = three();
    let gathered = rows(&[
        [0.6666666666666667, 2.0],
        [1.5, 3.25],
        [0.8571428571428572, 3.1428571428571432],
    ]);
    let made = rows(&[
        [1.6666666666666667, 3.333333333333333],
        [3.125, 5.0],
        [2.428571428571429, 5.428571428571429],
    ]);
    let without = Propagation {
        projection: Projection::None,
        ..with.clone()
    };
    assert!(near(
        &without.forward(&shares, &parameters).unwrap(),
        &gathered,
        1e-12
    ));
    // Nothing is below 0 here, so the activation does nothing.
    for activation in [Activation::Relu, Activation::Identity] {
        let with = Propagation {
            activation,
            ..with.clone()
        };
        assert!(near(
            &with.forward(&shares, &parameters).unwrap(),
            &made,
            1e-12
        ));
    }
    let negative = Matrix::from_fn(3, 2, |i, j| -parameters[(i, j)]);
    assert_eq!(
        with.forward(&shares, &negative).unwrap(),
        Matrix::zeros(3, 2)
    );
}

#[test]
fn three_domains_give_the_known_gradients() {
    let (shares, parameters, propagation) = three();
    let upstream = rows(&[[1.0, 2.0], [-1.0, 0.5], [0.3, -0.7]]);
    let gradients = propagation
        .backward(&shares, &parameters, &upstream)
        .unwrap();
    let known = rows(&[
        [-0.5669642857142857, 2.075892857142857],
        [-0.6865079365079365, 0.8928571428571428],
        [-0.24652777777777782, 0.7812500000000001],
    ]);
    assert!(near(&gradients.parameters, &known, 1e-12));
    let Projection::Full(weight) = &gradients.projection else {
        panic!("{gradients:?}");
    };
    let known = rows(&[
        [-0.5761904761904761, 1.4833333333333334],
        [-0.30714285714285705, 3.425],
    ]);
    assert!(near(weight, &known, 1e-12));
    // Only domain 0 loses anything, and all three learn from it.
    let only = rows(&[[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]);
    let gradients = propagation.backward(&shares, &parameters, &only).unwrap();
    let known = rows(&[
        [-0.5, 2.25],
        [-0.22222222222222224, 1.0],
        [-0.2777777777777778, 1.25],
    ]);
    assert!(near(&gradients.parameters, &known, 1e-12));
}

#[test]
fn one_and_two_passes_of_a_bottleneck_equal_their_formulas() {
    let (shares, parameters, _) = three();
    let (down, up) = (rows(&[[1.0], [-0.4]]), rows(&[[2.0, -1.0]]));
    let made = |activation, passes| {
        let projection = Projection::Bottleneck {
            down: down.clone(),
            up: up.clone(),
            passes,
        };
        let propagation = Propagation {
            activation,
            projection,
        };
        propagation.forward(&shares, &parameters).unwrap()
    };
    let relu = |mut matrix: Matrix| {
        matrix.values_mut().iter_mut().for_each(|x| *x = x.max(0.0));
        matrix
    };
    let through = product(&product(&shares, &parameters), &down);
    // So that an activation in between matters.
    assert!(through.values().iter().any(|&x| x < 0.0));
    assert!(through.values().iter().any(|&x| x > 0.0));
    let one = product(&through, &up);
    assert_eq!(made(Activation::Identity, Passes::One), one);
    assert_eq!(made(Activation::Relu, Passes::One), relu(one));
    let linear = product(&product(&shares, &through), &up);
    assert_eq!(made(Activation::Identity, Passes::Two), linear);
    let two = relu(product(&product(&shares, &relu(through)), &up));
    assert_eq!(made(Activation::Relu, Passes::Two), two);
}

#[test]
fn unusable_input_is_refused() {
    let (shares, parameters, propagation) = three();
    let shape =
        |what, (rows, columns), (expected_rows, expected_columns)| PropagationError::Shape {
            what,
            rows,
            columns,
            expected_rows,
            expected_columns,
        };
    let error = propagation
        .forward(&Matrix::zeros(2, 3), &parameters)
        .unwrap_err();
    assert_eq!(error, shape("the adjacency A", (2, 3), (3, 3)));
    let error = propagation
        .forward(&shares, &Matrix::zeros(3, 4))
        .unwrap_err();
    assert_eq!(error, shape("the projection W", (2, 2), (4, 4)));
    let upstream = Matrix::zeros(3, 1);
    let error = propagation
        .backward(&shares, &parameters, &upstream)
        .unwrap_err();
    assert_eq!(error, shape("the upstream gradient", (3, 1), (3, 2)));
    let narrow = |down, up| Propagation {
        activation: Activation::Relu,
        projection: Projection::Bottleneck {
            down,
            up,
            passes: Passes::Two,
        },
    };
    let bad = narrow(Matrix::zeros(3, 1), Matrix::zeros(1, 2));
    let error = bad.forward(&shares, &parameters).unwrap_err();
    assert_eq!(error, shape("the projection W₁", (3, 1), (2, 1)));
    let bad = narrow(Matrix::zeros(2, 1), Matrix::zeros(2, 2));
    let error = bad.forward(&shares, &parameters).unwrap_err();
    assert_eq!(error, shape("the projection W₂", (2, 2), (1, 2)));
    // An activation would turn it into 0.
    let mut broken = parameters.clone();
    broken[(1, 1)] = f64::NAN;
    let error = propagation.forward(&shares, &broken).unwrap_err();
    assert_eq!(
        error,
        PropagationError::NotFinite("the parameters' matrix V")
    );
}

/// Everything that a loss of one sample depends on: domains whose branches are linear layers of
/// `outputs × inputs`.
#[derive(Debug, Clone)]
struct BranchNetwork {
    shares: Matrix,
    parameters: Matrix,
    propagation: Propagation,
    lambda: f64,
    weights: Vec<f64>,
    input: Vec<f64>,
    /// The loss is the output's inner product with this.
    slopes: Vec<f64>,
}

impl BranchNetwork {
    fn branches(&self) -> Matrix {
        let made = self
            .propagation
            .forward(&self.shares, &self.parameters)
            .unwrap();
        Matrix::from_fn(made.rows(), self.slopes.len(), |domain, output| {
            let layer = &made.row(domain)[output * self.input.len()..];
            layer.iter().zip(&self.input).map(|(w, x)| w * x).sum()
        })
    }

    fn loss(&self) -> f64 {
        let agnostic = vec![0.25; self.slopes.len()];
        let output = residual(&agnostic, &self.branches(), &self.weights, self.lambda).unwrap();
        output
            .iter()
            .zip(&self.slopes)
            .map(|(z, slope)| z * slope)
            .sum()
    }

    fn gradients(&self) -> (Gradients, f64) {
        let branches = self.branches();
        let of = residual_gradient(&self.slopes, &branches, &self.weights, self.lambda).unwrap();
        let inputs = self.input.len();
        let made = Matrix::from_fn(branches.rows(), self.slopes.len() * inputs, |domain, at| {
            of.branches[(domain, at / inputs)] * self.input[at % inputs]
        });
        let gradients = self
            .propagation
            .backward(&self.shares, &self.parameters, &made);
        (gradients.unwrap(), of.lambda)
    }

    /// Central difference of the loss along one number.
    fn slope(&self, number: impl Fn(&mut Self) -> &mut f64) -> f64 {
        const STEP: f64 = 1e-5;
        let at = |step: f64| {
            let mut moved = self.clone();
            *number(&mut moved) += step;
            moved.loss()
        };
        (at(STEP) - at(-STEP)) / (2.0 * STEP)
    }

    /// Returns whether a ReLU is so near its kink that a difference would reach across.
    fn at_a_kink(&self) -> bool {
        let (_, traces) = self.propagation.run(&self.shares, &self.parameters);
        traces
            .iter()
            .flat_map(|trace| trace.raw.values())
            .any(|raw| raw.abs() < 1e-3)
    }
}

fn weights(projection: &mut Projection) -> Vec<&mut Matrix> {
    match projection {
        Projection::None => vec![],
        Projection::Full(weight) => vec![weight],
        Projection::Bottleneck { down, up, .. } => vec![down, up],
    }
}

fn network() -> impl Strategy<Value = BranchNetwork> {
    const INPUTS: usize = 2;
    const OUTPUTS: usize = 2;
    const VALUES: usize = INPUTS * OUTPUTS;
    let matrix = |rows: usize, columns: usize| {
        prop::collection::vec(-1.0..1.0f64, rows * columns)
            .prop_map(move |values| Matrix::from_fn(rows, columns, |i, j| values[i * columns + j]))
    };
    let narrow =
        move |passes| {
            (matrix(VALUES, 1), matrix(1, VALUES))
                .prop_map(move |(down, up)| Projection::Bottleneck { down, up, passes })
        };
    let projection = prop_oneof![
        Just(Projection::None),
        matrix(VALUES, VALUES).prop_map(Projection::Full),
        narrow(Passes::Two),
        narrow(Passes::One),
    ];
    let activation = prop_oneof![Just(Activation::Relu), Just(Activation::Identity)];
    (1..=4usize)
        .prop_flat_map(move |domains| {
            let shares = prop::collection::vec(0.05..1.0f64, domains);
            (matrix(domains, VALUES), shares)
        })
        .prop_flat_map(move |(parameters, shares)| {
            let total: f64 = shares.iter().sum();
            let weights: Vec<f64> = shares.iter().map(|share| share / total).collect();
            (
                (Just(parameters), Just(weights)),
                (activation.clone(), projection.clone(), -2.0..2.0f64),
                prop::collection::vec(-1.0..1.0f64, INPUTS),
                prop::collection::vec(-1.0..1.0f64, OUTPUTS),
            )
        })
        .prop_map(
            |((parameters, weights), (activation, projection, lambda), input, slopes)| {
                BranchNetwork {
                    shares: adjacency::by_parameters(&parameters, 0.4).unwrap(),
                    propagation: Propagation {
                        activation,
                        projection,
                    },
                    parameters,
                    lambda,
                    weights,
                    input,
                    slopes,
                }
            },
        )
}

proptest! {
    #[test]
    fn alone_and_without_projection_parameters_stay(
        values in prop::collection::vec(0.0..9.0f64, 6),
        activation in prop_oneof![Just(Activation::Relu), Just(Activation::Identity)],
    ) {
        let parameters = Matrix::from_fn(3, 2, |i, j| values[2 * i + j]);
        for projection in [Projection::None, Projection::Full(adjacency::identity(2))] {
            let propagation = Propagation { activation, projection };
            let made = propagation.forward(&adjacency::identity(3), &parameters).unwrap();
            prop_assert_eq!(&made, &parameters);
        }
    }

    #[test]
    fn gradients_are_slopes(network in network()) {
        prop_assume!(network.propagation.activation == Activation::Identity || !network.at_a_kink());
        let (mut gradients, lambda) = network.gradients();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-7;
        prop_assert!(near(lambda, network.slope(|network| &mut network.lambda)));
        for at in 0..network.parameters.values().len() {
            let slope = network.slope(|network| &mut network.parameters.values_mut()[at]);
            prop_assert!(near(gradients.parameters.values()[at], slope));
        }
        for (which, gradient) in weights(&mut gradients.projection).into_iter().enumerate() {
            for at in 0..gradient.values().len() {
                let slope = network.slope(|network| {
                    &mut weights(&mut network.propagation.projection).swap_remove(which).values_mut()[at]
                });
                prop_assert!(near(gradient.values()[at], slope));
            }
        }
    }
}
