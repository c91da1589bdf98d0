//! A silo with rows of its own and a model whose representations are distributions.

use std::ops::ControlFlow;
use std::sync::Arc;

use methods::learner::Stochastic;
use methods::{Layout, LearnError, Learner, Metrics, Params, Progress, Split, Task, Update};

use super::fits;
use super::table::TableLearner;
use crate::models::{Encoder, Named};

/// The classifier of FedSR on the rows of a [`TableLearner`]. What the classes' representations
/// are taken for is personal.
pub(super) struct StochasticLearner {
    table: TableLearner,
    encoder: Encoder,
    layout: Arc<Layout>,
    personal: Arc<Layout>,
}

impl StochasticLearner {
    /// In the place of the perceptron of `table`; `None` if it is none, has no hidden layer, or
    /// predicts a number.
    pub(super) fn new(table: &TableLearner, options: Stochastic) -> Option<Self> {
        let encoder = Encoder::new(table.class_widths()?, options)?;
        let (mut shared, own) = encoder.tensors();
        shared.extend(table.scale_tensors());
        let layout = |tensors| Layout::new(tensors).expect("names of different layers");
        Some(Self {
            table: table.clone(),
            encoder,
            layout: layout(shared),
            personal: layout(own),
        })
    }

    fn fits(&self, model: &Params, personal: &Params) -> Result<(), LearnError> {
        fits(&self.layout, model)?;
        fits(&self.personal, personal)
    }
}

/// Values of `layout`, those by name and else as in `base`.
fn params(layout: &Arc<Layout>, base: Option<&Params>, named: &Named) -> Params {
    Params::build(layout, |into| {
        if let Some(base) = base {
            into.copy_from_slice(base.values());
        }
        for (name, values) in named {
            if let Some(at) = layout.position(name) {
                into[layout.range(at)].copy_from_slice(values);
            }
        }
    })
}

impl Learner for StochasticLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn summary_layout(&self) -> Option<Arc<Layout>> {
        self.table.summary_layout()
    }

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        self.table.seed(silo_seed, round)
    }

    fn initial(&self, seed: u64) -> Params {
        let mut named = self.encoder.initial(seed);
        named.extend(self.table.scale_initial());
        params(&self.layout, None, &named)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        params(&self.personal, None, &self.encoder.initial(seed))
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        task: &Task,
        seed: u64,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Update, LearnError> {
        self.fits(start, personal)?;
        let Task::Train(training) = task else {
            // What is kept or summarised has nothing to do with the model.
            let update = self.table.train(start, personal, task, seed, progress)?;
            return Ok(Update {
                personal: personal.clone(),
                ..update
            });
        };
        let optimiser = &training.optimiser;
        let fit = self.encoder.fit(start, personal, optimiser, seed);
        let (named, loss) = self.table.run(fit, start, training, seed, progress)?;
        let samples = self.samples();
        Ok(Update {
            shared: params(&self.layout, Some(start), &named),
            personal: params(&self.personal, None, &named),
            samples,
            metrics: Metrics {
                samples,
                values: [("loss".into(), loss)].into(),
            },
        })
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.fits(model, personal)?;
        let rows = self.table.scaled(model, self.table.part(split)?);
        let outputs = self.encoder.outputs(model, &rows);
        // The softmax of log-probabilities is the probabilities.
        Ok(self.table.measured(model, &outputs, &rows))
    }

    fn robust_loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
    ) -> Result<f64, LearnError> {
        if radius != 0.0 {
            return Err(LearnError::Unsupported(
                "no exact robust loss is known of a stochastic model: use radius 0".into(),
            ));
        }
        Ok(self.evaluate(model, personal, Split::Train)?.values["loss"])
    }

    fn samples(&self) -> u64 {
        self.table.samples()
    }

    fn domain(&self) -> Option<u32> {
        self.table.domain()
    }

    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        Some(Arc::new(Self {
            table: self.table.without_fold(fold, folds, seed)?,
            encoder: self.encoder.clone(),
            layout: self.layout.clone(),
            personal: self.personal.clone(),
        }))
    }
}
