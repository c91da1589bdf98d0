//! One piece of local work, and how a learner is asked for it.

use super::{
    Capability, ExactFit, GradientModifier, LearnError, Learner, MissingCapability, Training,
    Update, Watch,
};
use crate::params::Params;

/// One piece of local work: from which model, with which seed, and what is done.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The model that the work starts from, in the [layout](Learner::layout) of the learner.
    pub start: &'a Params,
    /// The personal state of the silo before the work.
    pub personal: &'a Params,
    /// Decides the order of rows and everything else that is drawn. Fits draw nothing.
    pub seed: u64,
    /// Work to do.
    pub work: Work<'a>,
}

/// Work of a silo on a model and its training rows.
#[derive(Debug, Clone, Copy)]
pub enum Work<'a> {
    /// Train in steps.
    Train {
        /// Settings of the training.
        training: &'a Training,
        /// The change of the gradient, if any; needs [`Capability::ModifiedGradients`]. A modifier
        /// that [changes nothing](GradientModifier::is_none) gives the same bits as none.
        modifier: Option<&'a GradientModifier<'a>>,
    },
    /// Find the model of least robust loss; needs [`Capability::RobustFits`]. The model has the
    /// buffers of the start model, which hold the scale of the rows.
    RobustFit {
        /// Radius ≥ 0 of the ball around the training rows, in standardised units.
        radius: f64,
        /// Strength ≥ 0 of a ridge: half of it times the squared norm of the weights is added.
        ridge: f64,
    },
    /// Find the model of least plain loss with a ridge; needs [`Capability::ExactFits`]. The model
    /// has the buffers of the start model.
    ExactFit(&'a ExactFit),
    /// Change nothing: the result is the start model as it is, with what a strategy reports beside
    /// it.
    Keep,
}

impl<'a> Job<'a> {
    /// Plain training.
    pub fn train(
        start: &'a Params,
        personal: &'a Params,
        training: &'a Training,
        seed: u64,
    ) -> Self {
        let work = Work::Train {
            training,
            modifier: None,
        };
        Self {
            start,
            personal,
            seed,
            work,
        }
    }

    /// Work in which nothing is drawn: a fit, or [`Work::Keep`].
    pub fn without_draws(start: &'a Params, personal: &'a Params, work: Work<'a>) -> Self {
        Self {
            start,
            personal,
            seed: 0,
            work,
        }
    }

    /// Asks `learner` to do it.
    ///
    /// # Errors
    /// [`LearnError::Missing`] if the learner lacks the capability that the work needs; those of
    /// [`Learner::learn`].
    pub fn run(
        self,
        learner: &dyn Learner,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let needed: Option<Capability> = self.work.needs();
        learner.capabilities().require(needed.as_slice())?;
        learner.learn(self, progress)
    }

    /// The answer to work other than training of a learner that has no fits: the start model where it
    /// is to be kept, at a silo of `samples` training rows.
    ///
    /// # Errors
    /// [`LearnError::Missing`] for everything else.
    pub fn without_fits(self, samples: u64) -> Result<Update, LearnError> {
        match self.work.needs() {
            Some(lacking) => Err(MissingCapability(lacking).into()),
            None => Ok(Update::kept(self.start, self.personal, samples)),
        }
    }

    /// The training of a job that is one.
    ///
    /// # Errors
    /// [`LearnError::Failed`] for any other work.
    pub fn training(&self) -> Result<&'a Training, LearnError> {
        match self.work {
            Work::Train { training, .. } => Ok(training),
            Work::RobustFit { .. } | Work::ExactFit(_) | Work::Keep => Err(LearnError::Failed(
                "the strategy changes how a silo trains, and was asked for something else".into(),
            )),
        }
    }

    /// This training with a modified gradient; other work stays as it is. Only one of all that is put
    /// around a learner modifies the gradient.
    pub(crate) fn modified<'b>(self, modifier: &'b GradientModifier<'b>) -> Job<'b>
    where
        Self: 'b,
    {
        let work = match self.work {
            Work::Train {
                training,
                modifier: before,
            } => {
                debug_assert!(before.is_none());
                Work::Train {
                    training,
                    modifier: Some(modifier),
                }
            }
            other => other,
        };
        Job { work, ..self }
    }
}

impl<'a> Work<'a> {
    /// The change of the gradient, where there is one that changes something.
    pub fn modifier(&self) -> Option<&'a GradientModifier<'a>> {
        match self {
            Self::Train { modifier, .. } => modifier.filter(|modifier| !modifier.is_none()),
            Self::RobustFit { .. } | Self::ExactFit(_) | Self::Keep => None,
        }
    }

    /// The capability that it needs, if any.
    pub fn needs(&self) -> Option<Capability> {
        match self {
            Self::Train { .. } => self.modifier().map(|_| Capability::ModifiedGradients),
            Self::RobustFit { .. } => Some(Capability::RobustFits),
            Self::ExactFit(_) => Some(Capability::ExactFits),
            Self::Keep => None,
        }
    }
}
