//! The learner of a silo with its own rows, for models that represent a row by a distribution.

use std::sync::Arc;

use methods::learner::{Capabilities, RowAccess, Stochastic, Summaries};
use methods::{Layout, LearnError, Learner, Metrics, Params, Role, Split, Training, Update, Watch};

use super::{TableLearner, fits};
use crate::learners::scale::ColumnScaling;
use crate::models::{Encoder, NamedValues};

/// The classifier of FedSR on the rows of a [`TableLearner`]. The distributions of the classes'
/// representations are personal.
pub(super) struct StochasticLearner {
    table: TableLearner,
    encoder: Encoder,
    layout: Arc<Layout>,
    personal: Arc<Layout>,
}

impl StochasticLearner {
    /// Replaces the perceptron of `table`, which has these widths.
    pub(super) fn new(table: &TableLearner, widths: &[usize], options: Stochastic) -> Self {
        let encoder = Encoder::new(widths, options, &table.device);
        let (mut shared, own) = encoder.tensors();
        shared.extend(table.scale.iter().flat_map(ColumnScaling::tensors));
        let layout = |tensors| Layout::by_depth(tensors).expect("names of different layers");
        Self {
            table: table.clone(),
            encoder,
            layout: layout(shared),
            personal: layout(own),
        }
    }

    /// This model on other rows of the silo.
    fn on(&self, table: TableLearner) -> Arc<dyn Learner> {
        Arc::new(Self {
            table,
            encoder: self.encoder.clone(),
            layout: self.layout.clone(),
            personal: self.personal.clone(),
        })
    }

    fn fits(&self, model: &Params, personal: &Params) -> Result<(), LearnError> {
        fits(&self.layout, model)?;
        fits(&self.personal, personal)
    }
}

/// Values of `layout`: those given by name, and the others as in `base`.
fn params(layout: &Arc<Layout>, base: Option<&Params>, named: &NamedValues) -> Params {
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

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        self.table.seed(silo_seed, round)
    }

    fn initial(&self, seed: u64) -> Params {
        let mut named = self.encoder.initial(seed);
        named.extend(self.table.scale.iter().flat_map(ColumnScaling::initial));
        params(&self.layout, None, &named)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        params(&self.personal, None, &self.encoder.initial(seed))
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.fits(start, personal)?;
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

    /// The perceptron that predicts from mean representations: one network, whose probabilities are near
    /// to the mean over drawn representations.
    fn deployed(&self, model: &Params, personal: &Params) -> Option<Params> {
        self.fits(model, personal).ok()?;
        let rows = self.table.scaled(model, &self.table.train);
        let named = self.encoder.perceptron(model, &rows);
        let layout = self.table.layout();
        let scale = layout.select(|tensor| tensor.role == Role::Buffer);
        let scale = Params::gather(&scale, &[model])?;
        let mut own: NamedValues = named;
        for tensor in scale.layout().tensors() {
            let values = scale.tensor(&tensor.name).unwrap_or_default();
            own.push((tensor.name.clone(), values.to_vec()));
        }
        Some(params(&layout, None, &own))
    }

    fn samples(&self) -> u64 {
        self.table.samples()
    }

    fn domain(&self) -> Option<u32> {
        self.table.domain()
    }

    fn row_domains(&self) -> Option<Vec<u32>> {
        self.table.row_domains()
    }

    /// A stochastic model has no robust loss, and its gradient cannot be modified.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            summaries: self.table.scale.is_some().then_some(self as _),
            robust: None,
            robust_fits: None,
            exact_fits: false,
            gradients: false,
            row_access: Some(self),
            outputs: None,
            classifiers: None,
            stochastic: None,
            units: None,
            linear_rows: None,
            answers: None,
        }
    }
}

impl Summaries for StochasticLearner {
    fn summary_layout(&self) -> Arc<Layout> {
        self.table.summary_layout()
    }

    fn summarise(&self) -> Result<Params, LearnError> {
        self.table.summarise()
    }
}

impl RowAccess for StochasticLearner {
    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        Some(self.on(self.table.without_fold(fold, folds, seed)?))
    }

    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        self.table.batches(training, seed)
    }

    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        Some(self.on(self.table.picked(split, rows)?))
    }
}
