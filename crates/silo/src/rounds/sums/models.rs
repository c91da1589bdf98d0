//! Models, whose weighted mean is the sum. Every silo sends by how much training has moved its model.

use bytes::Bytes;
use methods::Params;
use privacy::masks::{Fixed, Reach, Shape};
use protocol::Hash;
use protocol::privacy::Sum;

use super::{
    DrawnSecrets, OpenedTotal, PreparedInput, PreparedRound, PreparedSummand, SumBasis, Summand,
    ToldModel, Train,
};
use crate::config::SiloConfig;
use crate::environment::WorkSize;
use crate::rounds::Personal;
use crate::secrets::RoundSecrets;

/// The mean of the models of all authors, weighted as agreed.
pub(super) struct MeanOfModels;

/// Checks that secure-aggregation rounds may begin with a model.
///
/// # Errors
/// A number of it is not finite, or too large.
pub(super) fn check_start(model: &Params) -> Result<(), String> {
    let checked = Fixed::MODEL.check_start(model.values());
    checked.map_err(|error| error.to_string())
}

/// Returns how large the numbers of a sum of models may become.
///
/// # Errors
/// Larger than words can be.
pub(crate) fn reach(sum: &Sum) -> Result<Reach, String> {
    let weights: Vec<_> = sum.authors.iter().map(|(_, weight)| *weight).collect();
    Reach::of(&weights, Fixed::MODEL).map_err(|error| error.to_string())
}

impl Summand for MeanOfModels {
    fn check(&self, _: SumBasis<'_>) -> Result<(), String> {
        Ok(())
    }

    fn shape(&self, of: SumBasis<'_>, sum: &Sum) -> Result<Shape, String> {
        let numbers = of.base.gate.layout.len();
        Shape::new(numbers, reach(sum)?).map_err(|error| error.to_string())
    }

    fn weight(&self, _: SumBasis<'_>, sum: &Sum) -> u64 {
        let weights = sum.authors.iter().map(|(_, weight)| *weight);
        weights.fold(0, u64::saturating_add)
    }

    fn draw(&self, secrets: &mut dyn RoundSecrets) -> Result<DrawnSecrets, String> {
        DrawnSecrets::masks_alone(secrets)
    }

    fn effort(&self, _: &SiloConfig, training: WorkSize) -> WorkSize {
        training
    }

    fn prepare(
        &self,
        _: SumBasis<'_>,
        drawn: DrawnSecrets,
        train: Train<'_>,
        lay: &dyn Fn(Bytes) -> Bytes,
    ) -> Result<PreparedSummand, String> {
        let trained = train()?;
        let blob = lay(PreparedRound::blob(&drawn.secret, &trained.document));
        let (loss, samples, metrics) = (trained.loss(), trained.samples, trained.further());
        let model = trained
            .admitted
            .read_from(blob.slice(PreparedRound::BEGINNING..));
        Ok(PreparedSummand {
            secret: drawn.secret,
            input: PreparedInput::Model(model),
            hash: Hash::of(&blob),
            blob,
            personal: Some(Personal::new(trained.personal)),
            loss,
            metrics,
            samples,
        })
    }

    fn model(&self, of: SumBasis<'_>, opened: &mut dyn OpenedTotal) -> Result<ToldModel, String> {
        let weights = opened.weights();
        let mut whole = Ok(true);
        let mut mean = |start: &Params| {
            Params::build(&of.base.gate.layout, |values| {
                whole = opened.each_block(&mut |at, totals| {
                    let start = &start.values()[at..];
                    let parts = values[at..].iter_mut().zip(start).zip(totals);
                    for ((value, start), total) in parts {
                        let moved = Fixed::MODEL.mean(*total, weights);
                        *value = (f64::from(*start) + moved) as f32;
                    }
                });
            })
        };
        let model = of.base.start().map(|start| vec![mean(&start)]);
        Ok((model, whole?))
    }

    fn sigma(&self) -> Option<f64> {
        None
    }
}
