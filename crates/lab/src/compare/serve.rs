//! Lets the silos of a run choose what they serve.

use std::sync::Arc;

use methods::serving::{Candidate, Served, Together};

use super::alone::OwnModels;
use super::measured_model::MeasuredModel;
use super::result::{ModelResult, ServedResult, UnitResult, is_honest};
use super::trial::TrainedFederation;

impl UnitResult {
    /// Lets every silo choose what it serves: the strategy's model of the chosen round, or one that it
    /// makes alone. Honest members choose [together](Together), unseen silos alone.
    pub(super) fn serve(
        &mut self,
        trial: &TrainedFederation,
        chosen: &[Option<MeasuredModel>],
        alone: &[Arc<Option<OwnModels>>],
    ) {
        let (honest, round) = (trial.honest(), self.round);
        let places = (0..chosen.len()).filter(|place| is_honest(&honest, *place));
        let compare = |(place, silo): (usize, _)| {
            let strategys = chosen.get(place)?.as_ref()?;
            let own = (**alone.get(place)?).as_ref()?;
            let compared = trial.compare(place, round, strategys, &own.local)?;
            Some((silo, (strategys, own), compared))
        };
        let all = places.zip(&mut self.silos).filter_map(compare);
        let all: Vec<_> = all.collect();
        let members = all.iter().filter(|(silo, ..)| !silo.outside);
        let together = Together::of(members.map(|(.., compared)| compared));
        for (silo, (strategys, own), compared) in all {
            let served = if silo.outside {
                compared.alone()
            } else {
                together.serve(compared)
            };
            silo.served = Some(ServedResult {
                candidate: served.candidate,
                own: ModelResult::of(&own.measured),
                other: other(served, strategys, own).as_ref().map(ModelResult::of),
            });
        }
    }
}

/// The served model, measured, where it is neither the strategy's nor the best that the silo makes alone.
fn other(served: Served, strategys: &MeasuredModel, own: &OwnModels) -> Option<MeasuredModel> {
    let learner = match served.candidate {
        Candidate::Local | Candidate::Coalition => return None,
        Candidate::Robust => &own.measured.learner,
        Candidate::Global
        | Candidate::FineTuned
        | Candidate::OwnIntercept
        | Candidate::Shrunken => &strategys.learner,
    };
    Some(MeasuredModel::of(learner.clone(), served.model))
}
