//! Compares the models that a silo could serve.

use std::sync::Arc;

use super::alone::Alone;
use super::folds::{
    CandidateLosses, HeldOutLoss, by_groups, loss, losses_of, measured, share_of_seen,
    without_folds,
};
use super::local::{FoldLosses, LocalModels};
use super::{
    Adaptation, Candidate, ComparedModels, ComparedOn, PersonalParts, Served, is_never_trained,
};
use crate::learner::{LearnError, Learner, Split, Task};
use crate::params::Params;
use crate::selection::selection_bias;

/// Fewest validation rows to compare on.
pub const VALIDATION_ROWS: usize = 20;

/// The candidates of a silo, and the settings of the comparison.
#[derive(Clone, Copy)]
pub struct CandidateComparison<'a> {
    /// The silo without a strategy.
    pub plain: &'a dyn Learner,
    /// The silo as the strategy equips it.
    pub equipped: &'a dyn Learner,
    /// Training of the silo alone.
    pub alone: &'a Alone,
    /// The models that the silo trained alone.
    pub local: &'a LocalModels,
    /// The model of its coalition, and the personal state.
    pub coalition: &'a (Params, Params),
    /// Number of silos that share that model. By cross-validation, one that no other shares is not
    /// compared.
    pub members: usize,
    /// The mean of all coalitions' models, where that is another, and how many silos it is of.
    pub global: Option<(&'a Params, usize)>,
    /// Parts that its training rows are divided into, at least 2.
    pub folds: usize,
    /// True if its coalition's model is a candidate in every [adaptation](Adaptation) to its own rows.
    pub adapted: bool,
}

/// The rows on which a silo can compare what it trains alone with the `coalition`'s model, found out before
/// it trains: validation rows whose losses its learner tells, or folds of training rows that the learner can
/// leave out while it trains by `task`. `folds` is their number, or 0 for none.
pub fn comparable(
    plain: &dyn Learner,
    equipped: &dyn Learner,
    coalition: &(Params, Params),
    (task, folds): (&Task, usize),
    seed: u64,
) -> ComparedOn {
    let divided = matches!(task, Task::Train(_)) && folds > 0;
    let losses = row_losses(equipped, coalition);
    match losses.is_some_and(|(losses, _)| losses.len() >= VALIDATION_ROWS) {
        true => ComparedOn::ValidationRows,
        false if divided && without_folds(plain, folds, seed).is_some() => ComparedOn::Folds,
        false => ComparedOn::Nothing,
    }
}

/// A model's loss on every validation row, or the mean of every group of them, and the rows of each; `None`
/// where the learner does not tell them, or one is not finite.
fn row_losses(
    learner: &dyn Learner,
    (model, personal): &(Params, Params),
) -> Option<(Vec<HeldOutLoss>, Vec<f64>)> {
    let outputs = learner.outputs().ok()?;
    let split = Split::Validation;
    let values = outputs.outputs(model, personal, split).ok()?;
    let results = outputs.row_results(model, personal, &values, split).ok()?;
    let losses = losses_of(&results, results.len() as f64);
    let finite = losses.iter().all(|loss| loss.is_finite());
    finite.then(|| by_groups(&losses, &results))
}

impl CandidateComparison<'_> {
    /// Compares, and lets the silo choose alone.
    pub fn serve(&self) -> Served {
        self.compare().alone()
    }

    /// Compares. A candidate that cannot be trained or measured is left out. Personal parts that no
    /// round has trained are trained around the coalition's model, as they are for the comparison.
    pub fn compare(&self) -> ComparedModels {
        let (model, personal) = self.coalition;
        if !is_never_trained(self.equipped, (model, personal), self.alone.initial) {
            return self.compared();
        }
        let around = self.alone.around(self.equipped, model);
        let (coalition, parts) = match &around {
            Ok(around) => (around, PersonalParts::TrainedAtTheEnd),
            Err(_) => (self.coalition, PersonalParts::NeverTrained),
        };
        let compared = CandidateComparison { coalition, ..*self }.compared();
        ComparedModels { parts, ..compared }
    }

    fn compared(&self) -> ComparedModels {
        let global = self.global.and_then(|(model, _)| {
            let around = self.alone.around(self.equipped, model);
            around.ok()
        });
        let tuned = self.tune(self.equipped, self.coalition).ok();
        let adaptations = if self.adapted {
            &Adaptation::ALL[..]
        } else {
            &[]
        };
        let adapted = adaptations.iter().filter_map(|&how| {
            let model = how.adapt(self.equipped, self.coalition);
            Some((how, model.ok()?))
        });
        let adapted: Vec<_> = adapted.collect();
        let models = RowModels {
            global: global.as_ref(),
            tuned: tuned.as_ref(),
            adapted: &adapted,
        };
        let (on, measured) = if let Some((all, rows)) = self.by_rows(models) {
            let on = ComparedOn::ValidationRows;
            (on, measured(&all, (on, &rows), 0.0))
        } else if let Some(folds) = &self.local.folds {
            let all = self.by_folds(models, folds);
            let on = ComparedOn::Folds;
            (on, measured(&all, (on, &folds.rows), self.selection()))
        } else {
            (ComparedOn::Nothing, Vec::new())
        };
        let robust = self.local.robust.as_ref().map(|fitted| &fitted.model);
        let model = |candidate| match candidate {
            Candidate::Local => Some(&self.local.model),
            Candidate::Robust => robust,
            Candidate::Coalition => Some(self.coalition),
            Candidate::Global => models.global,
            Candidate::FineTuned => models.tuned,
            Candidate::OwnIntercept | Candidate::Shrunken => models.adapted(candidate),
        };
        let candidates = measured.iter().map(|one| one.candidate);
        let all = candidates.filter_map(|one| Some((one, model(one)?.clone())));
        ComparedModels {
            on,
            models: all.collect(),
            coalition: self.coalition.clone(),
            measured,
            parts: PersonalParts::Trained,
        }
    }

    /// Bias from the selection of its coalition by the rows that compare, in standard errors; none where there is one only.
    fn selection(&self) -> f64 {
        let coalitions = |silos: usize| silos as f64 / self.members as f64;
        let bias = |(_, silos)| selection_bias(coalitions(silos));
        self.global.map_or(0.0, bias)
    }

    /// Losses on every validation row, or the mean of every group of them, which no model has seen, and the
    /// rows of each; `None` where there are too few.
    fn by_rows(&self, models: RowModels<'_>) -> Option<(Vec<CandidateLosses>, Vec<f64>)> {
        let (local, sizes) = row_losses(self.plain, &self.local.model)?;
        if local.len() < VALIDATION_ROWS {
            return None;
        }
        let robust = self.local.robust.as_ref().map(|fitted| &fitted.model);
        let own = |model| row_losses(self.equipped, model);
        let others = [
            (
                Candidate::Robust,
                robust.and_then(|robust| row_losses(self.plain, robust)),
            ),
            (Candidate::Coalition, own(self.coalition)),
            (Candidate::Global, models.global.and_then(own)),
            (Candidate::FineTuned, models.tuned.and_then(own)),
        ];
        let adapted = models.adapted.iter();
        let adapted = adapted.map(|(how, model)| (how.candidate(), own(model)));
        let others = others
            .into_iter()
            .chain(adapted)
            .filter_map(|(one, losses)| Some((one, losses?.0)));
        let all = [(Candidate::Local, local)].into_iter().chain(others);
        let all = all.map(|(candidate, losses)| CandidateLosses {
            candidate,
            losses,
            seen: Vec::new(),
        });
        Some((all.collect(), sizes))
    }

    /// Losses by fold of the training rows.
    fn by_folds(&self, models: RowModels<'_>, folds: &FoldLosses) -> Vec<CandidateLosses> {
        let without = without_folds(self.equipped, self.folds, self.alone.seed);
        let count: f64 = folds.rows.iter().sum();
        let each = |measure: &dyn Fn(&dyn Learner) -> Result<HeldOutLoss, LearnError>| {
            let losses = without.iter().flatten();
            let losses: Vec<HeldOutLoss> = losses
                .map(|own| measure(&**own).ok())
                .collect::<Option<_>>()?;
            (losses.len() == folds.rows.len()).then_some(losses)
        };
        // What is known to have seen the folds cannot be compared where nobody knows how much that is.
        let shares = self.members > 1 || self.global.is_some();
        let all_of_it = shares
            .then(|| self.seen(without.as_deref(), folds))
            .flatten();
        let seen = |members: usize| Some(share_of_seen(all_of_it.as_ref()?, 1.0 / members as f64));
        let fixed = |model: &Params| each(&|own| loss(own, &self.alone.around(own, model)?, count));
        let tune = |model: &Params| {
            each(&|own| {
                loss(
                    own,
                    &self.tune(own, &self.alone.around(own, model)?)?,
                    count,
                )
            })
        };
        let adapt = |how: Adaptation, model: &Params| {
            each(&|own| {
                let around = self.alone.around(own, model)?;
                loss(own, &how.adapt(own, &around)?, count)
            })
        };
        let shared = (self.members > 1).then_some(&self.coalition.0);
        let mut all = vec![CandidateLosses {
            candidate: Candidate::Local,
            losses: folds.best.clone(),
            seen: Vec::new(),
        }];
        all.extend(self.local.robust.iter().map(|fitted| CandidateLosses {
            candidate: Candidate::Robust,
            losses: fitted.losses.clone(),
            seen: Vec::new(),
        }));
        let entries = self.global.map_or(1, |(_, entries)| entries);
        let tunable = shared.filter(|_| models.tuned.is_some());
        let mean = self.global.filter(|_| models.global.is_some());
        let others = [
            (Candidate::Coalition, shared.and_then(fixed), self.members),
            (
                Candidate::Global,
                mean.and_then(|(model, _)| fixed(model)),
                entries,
            ),
            (Candidate::FineTuned, tunable.and_then(tune), self.members),
        ];
        let adapted = models.adapted.iter().map(|(how, _)| {
            let losses = shared.and_then(|model| adapt(*how, model));
            (how.candidate(), losses, self.members)
        });
        all.extend(
            others
                .into_iter()
                .chain(adapted)
                .filter_map(|(candidate, losses, members)| {
                    Some(CandidateLosses {
                        candidate,
                        losses: losses?,
                        seen: seen(members)?,
                    })
                }),
        );
        all
    }

    /// The amount by which the loss of every fold falls where the shared part of a model, trained alone as the
    /// federation trains, has seen it, too. Personal parts are trained around it without the fold, as they are around the
    /// coalition's model.
    fn seen(
        &self,
        without: Option<&[Arc<dyn Learner>]>,
        folds: &FoldLosses,
    ) -> Option<Vec<HeldOutLoss>> {
        let alone = folds.federations.as_ref()?;
        let count = folds.rows.iter().sum();
        let models = || alone.without.iter().chain([&alone.with]);
        let layout = self.coalition.0.layout();
        let shared: Option<Vec<Params>> = models()
            .map(|model| Params::gather(layout, &[model]))
            .collect();
        // Where the strategy's model has other tensors than one that is trained alone, the latter tells.
        let plain;
        let (learners, models) = match shared {
            Some(shared) => (without?, shared),
            None => {
                plain = without_folds(self.plain, self.folds, self.alone.seed)?;
                (&plain[..], models().cloned().collect())
            }
        };
        let (with, unseen) = models.split_last()?;
        let loss = |learner: &dyn Learner, model: &Params| {
            let around = self.alone.around(learner, model).ok()?;
            loss(learner, &around, count).ok()
        };
        let each = learners.iter().zip(unseen);
        let each = each.map(|(one, unseen)| Some(loss(&**one, unseen)? - loss(&**one, with)?));
        each.collect()
    }

    /// The coalition's model after one more round of training at the silo.
    fn tune(
        &self,
        learner: &dyn Learner,
        (model, personal): &(Params, Params),
    ) -> Result<(Params, Params), LearnError> {
        let round = self.alone.rounds.end() + 1;
        let (shared, personal) = self.alone.step(learner, model, personal, round)?;
        // What goes with a contribution is no part of the model.
        let shared = Params::gather(model.layout(), &[&shared]);
        let why = || LearnError::Failed("the training contributes no model".into());
        Ok((shared.ok_or_else(why)?, personal))
    }
}

/// The models of all rows that the comparison makes.
#[derive(Clone, Copy)]
struct RowModels<'a> {
    global: Option<&'a (Params, Params)>,
    tuned: Option<&'a (Params, Params)>,
    adapted: &'a [(Adaptation, (Params, Params))],
}

impl<'a> RowModels<'a> {
    fn adapted(self, candidate: Candidate) -> Option<&'a (Params, Params)> {
        let mut all = self.adapted.iter();
        all.find_map(|(how, model)| (how.candidate() == candidate).then_some(model))
    }
}
