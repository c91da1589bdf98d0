//! The learner of a task of its own: a program has the rows, trains and measures.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use methods::learner::{Capabilities, GradientModifier, ModifiedGradients, Split};
use methods::{Layout, LearnError, Learner, Metrics, Params, Training, Update, Watch};

use super::frozen::Frozen;
use super::locked;
use super::programs::Programs;
use super::session::{Session, Silo};
use super::task::{ExternalTask, StartFrom};
use crate::data::{DataError, Rows};
use crate::learners::fits;
use crate::task::RowCounts;

/// Trains and measures models of an [`ExternalTask`] with a program.
pub struct ExternalLearner {
    pub(super) session: Session,
    task: Arc<ExternalTask>,
    layout: Arc<Layout>,
    /// The initial model of a seed, where it comes from the program.
    given: Mutex<Option<(u64, Params)>>,
    /// The rows of every part with their targets, once they are known.
    pub(super) targets: Mutex<BTreeMap<&'static str, Arc<Rows>>>,
}

impl ExternalLearner {
    /// The learner of the silo at position `place` of `of`. `start` is the seed of the initial
    /// model.
    ///
    /// # Errors
    /// [`DataError::Config`]: tensors that make no model, a program that cannot be started, or one
    /// with another model or other frozen tensors.
    pub fn open(
        task: &Arc<ExternalTask>,
        programs: Arc<Programs>,
        whose: (usize, usize, &str),
        seeds: (u64, u64),
    ) -> Result<Self, DataError> {
        let frozen = Frozen::Agreed(task.frozen.clone());
        Self::with_frozen(task, frozen, programs, whose, seeds)
    }

    /// The same, where something else is agreed about frozen tensors.
    pub(super) fn with_frozen(
        task: &Arc<ExternalTask>,
        frozen: Frozen,
        programs: Arc<Programs>,
        (place, of, name): (usize, usize, &str),
        (own, start): (u64, u64),
    ) -> Result<Self, DataError> {
        let layout = task.layout()?;
        let silo = Silo {
            place,
            name: name.to_owned(),
            of,
            seed: own,
            agreed: task.tensors.clone(),
            frozen,
            rows: None,
        };
        let session = Session::open(programs, silo, start)?;
        let given = match task.start {
            StartFrom::Tensors => None,
            StartFrom::Learner => {
                let given = session.initial(start);
                let given = given.map_err(|error| DataError::Config(error.to_string()))?;
                Some((start, given))
            }
        };
        Ok(Self {
            session,
            task: task.clone(),
            layout,
            given: Mutex::new(given),
            targets: Mutex::default(),
        })
    }

    /// Rows by part.
    pub fn rows(&self) -> RowCounts {
        let rows = self.session.rows();
        RowCounts {
            train: rows.train,
            validation: rows.validation,
            test: rows.test,
        }
    }

    /// Digest of the program's frozen tensors.
    pub(super) fn frozen(&self) -> Option<String> {
        self.session.frozen().map(str::to_owned)
    }

    pub(super) fn part(&self, split: Split) -> Result<usize, LearnError> {
        let name = match split {
            Split::Train => "training",
            Split::Validation => "validation",
            Split::Test => "test",
        };
        match self.rows().of(split) {
            0 => Err(LearnError::NoRows(name)),
            rows => Ok(rows),
        }
    }

    fn go(
        &self,
        start: &Params,
        personal: &Params,
        how: (&Training, Option<&GradientModifier<'_>>),
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        fits(&self.layout, start)?;
        self.part(Split::Train)?;
        self.session
            .train(None, start, personal, how, seed, progress)
    }
}

impl Learner for ExternalLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, seed: u64) -> Params {
        if self.task.start == StartFrom::Tensors {
            return self.task.initial(&self.layout, seed);
        }
        let mut given = locked(&self.given);
        if let Some((of, model)) = &*given
            && *of == seed
        {
            return model.clone();
        }
        // A program that gave one initial model and cannot give another is no reason to end; the
        // model of zeros is none that the others start from.
        let model = self.session.initial(seed);
        let model = model.unwrap_or_else(|_| Params::zeros(&self.layout));
        *given = Some((seed, model.clone()));
        model
    }

    fn initial_personal(&self, seed: u64) -> Params {
        self.session.initial_personal(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.go(start, personal, (training, None), seed, progress)
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        fits(&self.layout, model)?;
        self.part(split)?;
        let metrics = self.session.evaluate(None, model, personal, split)?;
        match metrics.values.contains_key("loss") {
            true => Ok(metrics),
            false => Err(LearnError::Metric("loss".into())),
        }
    }

    /// The model as it is: the personal state serves training alone.
    fn deployed(&self, model: &Params, _personal: &Params) -> Option<Params> {
        Some(model.clone())
    }

    fn samples(&self) -> u64 {
        self.session.rows().train as u64
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            gradients: self.session.has_gradients().then_some(self as _),
            outputs: self.session.outputs_of().is_some().then_some(self as _),
            ..Capabilities::NONE
        }
    }
}

impl ModifiedGradients for ExternalLearner {
    fn train_modified(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        modifier: &GradientModifier<'_>,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let modifier = (!modifier.is_none()).then_some(modifier);
        self.go(start, personal, (training, modifier), seed, progress)
    }
}

/// A stand-in for a silo whose program is elsewhere: layout and initial model are right, and
/// nothing can be trained or measured.
pub(super) struct Absent {
    pub(super) task: Arc<ExternalTask>,
    pub(super) layout: Arc<Layout>,
    pub(super) initial: OnceLock<(u64, Params)>,
}

impl Learner for Absent {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, seed: u64) -> Params {
        let new = || (seed, self.task.initial(&self.layout, seed));
        let (of, model) = self.initial.get_or_init(new);
        match *of == seed {
            true => model.clone(),
            false => self.task.initial(&self.layout, seed),
        }
    }

    fn train(
        &self,
        _: &Params,
        _: &Params,
        _: &Training,
        _: u64,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        Err(LearnError::NoRows("training"))
    }

    fn evaluate(&self, _: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        Err(LearnError::NoRows("test"))
    }

    fn samples(&self) -> u64 {
        0
    }

    /// All that a program may have: whether one has it is known where it runs.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            gradients: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl ModifiedGradients for Absent {
    fn train_modified(
        &self,
        _: &Params,
        _: &Params,
        _: &Training,
        _: &GradientModifier<'_>,
        _: u64,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        Err(LearnError::NoRows("training"))
    }
}
