//! Wraps a learner for FedCG: trains the parts of a model with branches, and computes its outputs.
//!
//! A layer with a branch is the same layer with other values: `f_θ(z) + λ·f_V̂d(z) = f_θ+λV̂d(z)`,
//! because a dense or convolutional layer is linear in its values. So the rows of a domain are
//! trained by the silo's own learner on `θ + λ·V̂_d`, one plain step, and how far that went is the
//! learning rate times the gradient with respect to those values: all that V, W and λ need. It is
//! read from two `f32` models, so it is as exact as a step of training in `f32` is.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Assignment;
use super::branches::{Branched, no_rows, unusable};
use super::running::{FedCgTraining, Sgd};
use super::shape::FedCgParts;
use crate::learner::{
    Capability, Job, LearnError, Learner, Metrics, Optimiser, Progress, Split, Training, Update,
    Watch, mixed_seed,
};
use crate::params::{Layout, Params};
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, later};

impl Branched {
    fn classifier(
        &self,
        inner: &dyn Learner,
        labels: &[u32],
    ) -> Result<Arc<dyn Learner>, LearnError> {
        let classifiers = inner.classifiers()?;
        Ok(classifiers.classifier(labels, self.shape.domains(), &self.options.hidden))
    }

    /// Outputs of a student or teacher for every row of a part: rows × domains, before the softmax.
    fn opinions(
        &self,
        inner: &dyn Learner,
        opinion: &Params,
        base: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        let classifier = self.classifier(inner, &vec![0; inner.samples() as usize])?;
        let (model, personal) = complete(&*classifier, opinion, base);
        classifier.outputs()?.outputs(&model, &personal, split)
    }

    /// Outputs of every row of a part, rows × k, from the shares of the domains in it.
    fn by_shares(
        &self,
        inner: &dyn Learner,
        parts: &FedCgParts,
        personal: &Params,
        split: Split,
        shares: &[Vec<f64>],
    ) -> Result<Vec<f64>, LearnError> {
        let generated = parts.graph.generate().map_err(unusable)?;
        let lambdas: Vec<f64> = parts
            .graph
            .layers
            .iter()
            .map(|layer| layer.lambda)
            .collect();
        let branch = |domain: usize| generated.iter().map(|made| made.row(domain)).collect();
        let model = |shares: &[f64]| {
            let of = |(domain, &share): (usize, &f64)| (share, branch(domain));
            let shares: Vec<_> = shares.iter().enumerate().map(of).collect();
            self.effective(&parts.base, &lambdas, &shares)
        };
        if self.mixes {
            let mut mixed: Vec<f64> = Vec::new();
            for domain in 0..self.shape.domains() {
                let alone: Vec<f64> = (0..self.shape.domains())
                    .map(|other| f64::from(u8::from(other == domain)))
                    .collect();
                let outputs = inner.outputs()?.outputs(&model(&alone), personal, split)?;
                let width = outputs.len() / shares.len().max(1);
                mixed.resize(outputs.len(), 0.0);
                for (at, output) in outputs.into_iter().enumerate() {
                    mixed[at] += shares[at / width][domain] * output;
                }
            }
            return Ok(mixed);
        }
        // Rows with the same shares have the same model.
        let mut order: Vec<u32> = (0..shares.len() as u32).collect();
        let of = |row: u32| &shares[row as usize];
        order.sort_by(|&a, &b| {
            let mut pairs = of(a).iter().zip(of(b)).map(|(a, b)| a.total_cmp(b));
            pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        let mut outputs: Vec<Vec<f64>> = vec![Vec::new(); shares.len()];
        for rows in order.chunk_by(|&a, &b| of(a) == of(b)) {
            let only = inner.row_access()?.only(split, rows).ok_or_else(no_rows)?;
            let got = only
                .outputs()?
                .outputs(&model(of(rows[0])), personal, split)?;
            let width = got.len() / rows.len();
            for (&row, output) in rows.iter().zip(got.chunks(width.max(1))) {
                outputs[row as usize] = output.to_vec();
            }
        }
        Ok(outputs.concat())
    }

    /// The share of every domain in each of these rows.
    fn shares(&self, opinions: &[f64]) -> Vec<Vec<f64>> {
        let rows = opinions.chunks(self.shape.domains());
        let share = |row: &[f64]| match self.options.assignment {
            Assignment::Soft => softmax(row),
            Assignment::Hard => {
                let best = largest(row);
                let mine = |domain| f64::from(u8::from(domain as u32 == best));
                (0..row.len()).map(mine).collect()
            }
        };
        rows.map(share).collect()
    }
}

impl LearnerWrapper for Branched {
    fn needs(&self) -> &'static [Capability] {
        use Capability::{Classifiers, Outputs, RowAccess};
        &[Classifiers, Outputs, RowAccess]
    }

    /// Capabilities that this learner uses up: it takes plain steps itself, and no robust loss is known
    /// of a model with branches.
    fn uses_up(&self) -> &'static [Capability] {
        use Capability::{ExactFits, ModifiedGradients, RobustFits, RobustLosses};
        &[ModifiedGradients, RobustFits, ExactFits, RobustLosses]
    }

    fn layout(&self, _: &dyn Learner) -> Arc<Layout> {
        self.shape.whole().clone()
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        let classifier = self.classifier(inner, &vec![0; inner.samples() as usize]);
        let classifier = classifier.expect("the learner was equipped with one");
        self.shape.initial(inner, &*classifier, seed)
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (self.shape.split(model).base, personal.clone())
    }

    /// The model of the silo's mean training row: its branches in the shares that the student gives
    /// the domains over all of these rows.
    fn deployed(&self, inner: &dyn Learner, model: &Params, personal: &Params) -> Option<Params> {
        let parts = self.shape.split(model);
        if self.is_silent() {
            return inner.deployed(&parts.base, personal);
        }
        let opinions = self.opinions(inner, &parts.student, &parts.base, Split::Train);
        let each = self.shares(&opinions.ok()?);
        let mut mean = vec![0.0; self.shape.domains()];
        for shares in &each {
            for (sum, share) in mean.iter_mut().zip(shares) {
                *sum += share / each.len() as f64;
            }
        }
        let generated = parts.graph.generate().ok()?;
        let lambdas: Vec<f64> = parts.graph.layers.iter().map(|own| own.lambda).collect();
        let of = |(domain, &share): (usize, &f64)| {
            (
                share,
                generated.iter().map(|made| made.row(domain)).collect(),
            )
        };
        let shares: Vec<_> = mean.iter().enumerate().map(of).collect();
        inner.deployed(&self.effective(&parts.base, &lambdas, &shares), personal)
    }

    fn outputs(
        &self,
        inner: &dyn Learner,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        let parts = self.shape.split(model);
        if self.is_silent() {
            return inner.outputs()?.outputs(&parts.base, personal, split);
        }
        let opinions = self.opinions(inner, &parts.student, &parts.base, split)?;
        self.by_shares(inner, &parts, personal, split, &self.shares(&opinions))
    }

    fn evaluate(
        &self,
        inner: &dyn Learner,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let outputs = self.outputs(inner, model, personal, split)?;
        let (base, personal) = self.inside(model, personal);
        inner.outputs()?.measure(&base, &personal, &outputs, split)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let training = job.training()?;
        let &Optimiser::Sgd {
            rate,
            momentum,
            weight_decay,
        } = &training.optimiser
        else {
            return Err(LearnError::Failed(
                "fedcg takes its steps by sgd, as its options say: expected optimiser sgd, found \
                 another"
                    .into(),
            ));
        };
        let mut parts = self.shape.split(job.start);
        let labels = self.labels(inner, &parts)?;
        let batches = inner.row_access()?.batches(training, job.seed)?;
        let steps = batches.len() as u64;
        parts.student = {
            let mut watch = later(progress, 0, 2 * steps);
            self.student(inner, &parts, &labels, job, &mut watch)?
        };
        let sgd = Sgd {
            rate,
            momentum,
            weight_decay,
        };
        let mut running = FedCgTraining::new(self, inner, &parts, job.personal, sgd);
        let epoch = (batches.len() / training.epochs.max(1) as usize).max(1);
        let (mut sum, mut seen, mut last) = (0.0, 0, f64::NAN);
        for (step, batch) in (1..).zip(&batches) {
            let loss = running.step(&labels, batch, mixed_seed(job.seed, step));
            let loss = loss.map_err(|error| match error {
                LearnError::Diverged { .. } => LearnError::Diverged { step, rate },
                other => other,
            })?;
            sum += loss * batch.len() as f64;
            seen += batch.len();
            let ends = (step as usize).is_multiple_of(epoch);
            if ends || step as usize <= epoch {
                last = sum / seen as f64;
            }
            if ends {
                (sum, seen) = (0.0, 0);
            }
            let at = Progress {
                step: steps + step,
                steps: 2 * steps,
                loss: last,
            };
            if progress(at).is_break() {
                return Err(LearnError::Stopped);
            }
        }
        let (mut parts, personal) = running.finish(parts);
        let mut metrics = Metrics {
            samples: inner.samples(),
            values: [("loss".to_owned(), last)].into(),
        };
        for domain in 0..self.shape.domains() {
            let rows = labels.iter().filter(|&&label| label as usize == domain);
            let (rows, all) = (rows.count() as f64, labels.len().max(1) as f64);
            metrics.values.insert(format!("domain-{domain}"), rows);
            parts.shares.push(rows / all);
        }
        Ok(Update {
            shared: self.shape.join(&parts),
            personal,
            samples: inner.samples(),
            metrics,
        })
    }
}

impl Branched {
    /// The domain of every training row: the output of the teacher, or what is given where there
    /// is no teacher.
    fn labels(&self, inner: &dyn Learner, parts: &FedCgParts) -> Result<Vec<u32>, LearnError> {
        let domains = self.shape.domains();
        if let Some(teacher) = &parts.teacher {
            let opinions = self.opinions(inner, teacher, &parts.base, Split::Train)?;
            return Ok(opinions.chunks(domains).map(largest).collect());
        }
        let given = inner.row_domains();
        let given = given.filter(|rows| rows.iter().all(|&domain| (domain as usize) < domains));
        given.ok_or_else(|| {
            LearnError::Failed(format!(
                "a silo that trains needs the domains of its rows, from 0 to {}",
                domains - 1
            ))
        })
    }

    /// The student, after it has heard these `labels` in as many passes as the task takes.
    fn student(
        &self,
        inner: &dyn Learner,
        parts: &FedCgParts,
        labels: &[u32],
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Params, LearnError> {
        let classifier = self.classifier(inner, labels)?;
        let (start, personal) = complete(&*classifier, &parts.student, &parts.base);
        let training = Training {
            optimiser: Optimiser::Sgd {
                rate: self.options.student_rate,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            ..job.training()?.clone()
        };
        let update = classifier.train(&start, &personal, &training, job.seed, progress)?;
        let student = Params::gather(parts.student.layout(), &[&update.shared]);
        Ok(student.expect("tensors of this classifier"))
    }
}

/// A classifier's whole model and personal state; what buffers it has are the model's.
fn complete(classifier: &dyn Learner, opinion: &Params, base: &Params) -> (Params, Params) {
    let model = Params::gather(&classifier.layout(), &[opinion, base]);
    let model = model.expect("a classifier's buffers are among the model's");
    (model, classifier.initial_personal(0))
}

/// Place of the largest value; the first of equals.
fn largest(values: &[f64]) -> u32 {
    let mut best = 0;
    for (at, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = at;
        }
    }
    best as u32
}

fn softmax(values: &[f64]) -> Vec<f64> {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let each: Vec<f64> = values.iter().map(|value| libm::exp(value - top)).collect();
    let sum: f64 = each.iter().sum();
    each.into_iter().map(|value| value / sum).collect()
}
