//! Outputs of models row by row, and classifiers and stochastic models over the same rows.

use std::sync::Arc;

use methods::learner::{Classifiers, Outputs, RowResults, Stochastic, StochasticModels};
use methods::{LearnError, Learner, Metrics, Params, Split};

use super::rows::RowOrder;
use super::stochastic::StochasticLearner;
use super::{TableLearner, fits, layout_of};
use crate::data::Rows;
use crate::learners::scale::ColumnScaling;
use crate::metrics::{constant, mean_target, row_results, survival_results};
use crate::models::{Encoder, Loss};

impl Outputs for TableLearner {
    fn outputs(
        &self,
        model: &Params,
        _personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        Ok(self.model.outputs(model, &rows))
    }

    fn measure(
        &self,
        model: &Params,
        _personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        Ok(self.measured(model, outputs, &rows))
    }

    fn row_results(
        &self,
        model: &Params,
        _personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<RowResults, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        if self.loss == Loss::Cox {
            let basis = self.survival_basis(model, outputs, &rows);
            return Ok(survival_results(outputs, &rows, basis.as_ref()));
        }
        Ok(row_results(self.loss, outputs, &rows, self.unit_of(model)))
    }

    fn mean_target(&self, model: &Params, _personal: &Params, width: usize) -> Option<Vec<f64>> {
        fits(&self.layout, model).ok()?;
        let rows = self.scaled(model, self.part(Split::Train).ok()?);
        Some(mean_target(self.loss, &rows, width))
    }

    fn constant(&self, mean_target: &[f64]) -> Vec<f64> {
        constant(self.loss, mean_target)
    }

    fn output_layer(&self) -> Option<String> {
        self.model.output_layer()
    }
}

impl Classifiers for TableLearner {
    fn classifier(&self, labels: &[u32], classes: usize, hidden: &[usize]) -> Arc<dyn Learner> {
        let features = self.train.width();
        let model = self.model.classifier(features, classes, hidden);
        let model = model.on(&self.device);
        let scale = self.scale.as_ref().map(ColumnScaling::of_labelled);
        let layout = layout_of(&*model, scale.as_ref());
        let none = |rows: &Rows| Arc::new(rows.labelled(&vec![0; rows.len()]));
        let order = match &self.order {
            RowOrder::Script(script) => RowOrder::ScriptOrders(script.clone()),
            other => other.clone(),
        };
        Arc::new(Self {
            train: Arc::new(self.train.labelled(labels)),
            validation: none(&self.validation),
            test: none(&self.test),
            unit: 1.0,
            model,
            loss: Loss::Softmax,
            horizon: None,
            scale,
            transport_cost: self.transport_cost,
            order,
            domain: self.domain,
            layout,
            device: self.device.clone(),
        })
    }
}

impl TableLearner {
    /// Widths from the features to the classes, where dense layers sort rows into classes and at
    /// least one of them is hidden.
    pub(super) fn stochastic_widths(&self) -> Option<&[usize]> {
        let widths = self.model.widths().filter(|_| self.loss == Loss::Softmax)?;
        Encoder::suits(widths).then_some(widths)
    }
}

impl StochasticModels for TableLearner {
    fn stochastic(&self, options: &Stochastic) -> Arc<dyn Learner> {
        let widths = self.stochastic_widths();
        let widths = widths.expect("stochastic models are a capability of perceptrons only");
        Arc::new(StochasticLearner::new(self, widths, *options))
    }
}
