//! Sixteen kinds of silos whose true models are known: what a rule for groups has to stand.
//!
//! Rows, truths, features and noise vary, with linear and logistic models, so that no fixed threshold
//! can be right for all.

use methods::learner::mixed_seed;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Part of the rows that is held out: with so many, the loss on them is nearly that on the distribution.
pub(crate) const HELD_OUT: f64 = 0.9;

/// One kind of silos.
pub(crate) struct PlantedKind {
    pub(crate) name: &'static str,
    /// True if targets are classes 0 and 1, drawn by the probability of the true model; otherwise numbers.
    pub(crate) classes: bool,
    /// Silos of every true model.
    sizes: &'static [usize],
    /// Training rows of the silos of one true model, over and over.
    rows: &'static [usize],
    features: usize,
    /// Deviation of what all true models have in common, and of what each has besides.
    common: f64,
    own: f64,
    /// True if the targets of the last true model are noise.
    noise: bool,
}

const PLAIN: PlantedKind = PlantedKind {
    name: "",
    classes: false,
    sizes: &[4, 4, 4],
    rows: &[30],
    features: 10,
    common: 0.0,
    own: 1.0,
    noise: false,
};
const CLASSES: PlantedKind = PlantedKind {
    classes: true,
    rows: &[60],
    ..PLAIN
};

/// All kinds.
pub(crate) const KINDS: [PlantedKind; 16] = [
    PlantedKind {
        name: "linear, equal rows",
        ..PLAIN
    },
    PlantedKind {
        name: "linear, rows 10:1",
        rows: &[300, 30, 30, 30],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, own truths",
        sizes: &[1; 12],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, own truths, many rows",
        sizes: &[1; 12],
        rows: &[100],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, one truth",
        sizes: &[12],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, four silos of noise",
        sizes: &[3, 3, 2, 4],
        noise: true,
        ..PLAIN
    },
    PlantedKind {
        name: "linear, 30 silos",
        sizes: &[10, 10, 10],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, 4 silos",
        sizes: &[2, 2],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, 3 features",
        features: 3,
        ..PLAIN
    },
    PlantedKind {
        name: "linear, 40 features",
        features: 40,
        rows: &[80],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, groups of 7, 3, 1, 1",
        sizes: &[7, 3, 1, 1],
        ..PLAIN
    },
    PlantedKind {
        name: "linear, truths overlap",
        common: 1.0,
        own: 0.35,
        ..PLAIN
    },
    PlantedKind {
        name: "logistic, equal rows",
        ..CLASSES
    },
    PlantedKind {
        name: "logistic, rows 10:1",
        rows: &[400, 40, 40, 40],
        ..CLASSES
    },
    PlantedKind {
        name: "logistic, own truths",
        sizes: &[1; 12],
        ..CLASSES
    },
    PlantedKind {
        name: "logistic, truths overlap",
        common: 0.7,
        own: 0.5,
        ..CLASSES
    },
];

/// Rows of a silo: features, and the target as a file has it.
pub(crate) type PlantedRows = Vec<(Vec<f64>, String)>;

impl PlantedKind {
    /// Number of true models.
    pub(crate) fn truths(&self) -> usize {
        self.sizes.len()
    }

    /// The rows of every silo, of which a tenth is trained on, and its true model.
    pub(crate) fn draw(&self, seed: u64) -> (Vec<PlantedRows>, Vec<u32>) {
        let at = KINDS.iter().position(|kind| kind.name == self.name);
        let at = at.expect("it is one of them") as u64;
        let mut random = ChaCha8Rng::seed_from_u64(mixed_seed(seed, at));
        let mut normals = |scale: f64| -> Vec<f64> {
            let draws = (0..=self.features).map(|_| scale * normal(&mut random));
            draws.collect()
        };
        let common = normals(self.common);
        let truths: Vec<Vec<f64>> = (self.sizes.iter())
            .map(|_| {
                let own = normals(self.own).into_iter();
                own.zip(&common).map(|(own, common)| own + common).collect()
            })
            .collect();
        let (mut tables, mut of) = (Vec::new(), Vec::new());
        for (truth, &size) in self.sizes.iter().enumerate() {
            for silo in 0..size {
                let rows = self.rows[silo % self.rows.len()];
                let rows = (rows as f64 / (1.0 - HELD_OUT)).round() as usize;
                let noise = self.noise && truth + 1 == self.sizes.len();
                tables.push(self.silo(rows, &truths[truth], noise, &mut random));
                of.push(truth as u32);
            }
        }
        (tables, of)
    }

    fn silo(
        &self,
        rows: usize,
        truth: &[f64],
        noise: bool,
        random: &mut ChaCha8Rng,
    ) -> PlantedRows {
        let means: Vec<f64> = (0..self.features).map(|_| 0.3 * normal(random)).collect();
        let scales: Vec<f64> = (0..self.features)
            .map(|_| (0.2 * normal(random)).exp())
            .collect();
        let one = |_| {
            let each = means.iter().zip(&scales);
            let x: Vec<f64> = each
                .map(|(mean, scale)| mean + scale * normal(random))
                .collect();
            let (intercept, weights) = truth.split_last().expect("it has an intercept");
            let output = x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() + intercept;
            let target = match (self.classes, noise) {
                (true, _) => u8::from(uniform(random) < 1.0 / (1.0 + (-output).exp())).to_string(),
                (false, true) => (2.0 * normal(random)).to_string(),
                (false, false) => (output + normal(random)).to_string(),
            };
            (x, target)
        };
        (0..rows).map(one).collect()
    }
}

/// Above 0 and at most 1.
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Standard normal (Box & Muller 1958).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (radius, angle) = (uniform(random), uniform(random));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
