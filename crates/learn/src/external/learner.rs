//! The learner of a task of its own: a program has the rows, trains and measures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use methods::learner::{Capabilities, GradientModifier, Job, Outputs, Split, Work, mixed_seed};
use methods::{Layout, LearnError, Learner, Metrics, Params, Training, Update, Watch};

use super::agreed::{Agreed, Begins};
use super::frozen::Frozen;
use super::locked;
use super::programs::Programs;
use super::session::{ProgramSilo, Session};
use super::targets::PartTargets;
use crate::data::DataError;
use crate::learners::fits;
use crate::study::RowCounts;
use task::external::ExternalTask;
use task::external::{Compared, Trial, made_up};

/// Trains and measures models of an [`ExternalTask`] with a program.
pub struct ExternalLearner {
    pub(super) session: Session,
    task: Arc<ExternalTask>,
    layout: Arc<Layout>,
    start: InitialSource,
    /// Outputs of the program for a made-up batch; `None` where it makes up none.
    trial: Option<Trial>,
    /// Properties that could not be compared.
    pub(super) doubts: Vec<Doubt>,
    /// The rows of every part with their targets, once they are known.
    pub(super) targets: Mutex<BTreeMap<&'static str, Arc<PartTargets>>>,
    /// Names of the metrics that the program has given so far; `None` before its first measurement.
    pub(super) given: Mutex<Option<BTreeSet<String>>>,
}

/// Property of a program that could not be compared with the agreed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The order of the columns of its rows.
    Columns,
    /// Outputs of the program for a made-up batch.
    Outputs,
}

impl Doubt {
    /// The doubt about these silos, without a full stop; `None` where it is about none.
    pub(super) fn of(self, silos: &[String]) -> Option<String> {
        let first = silos.first()?;
        let whose = match silos.len() {
            1 => format!("the program of silo {first:?}"),
            more => format!("the programs of silo {first:?} and {} more", more - 1),
        };
        Some(match self {
            Self::Columns => format!(
                "nobody knows whether {whose} has its columns in the agreed order: its rows have no names of \
                 columns"
            ),
            Self::Outputs => format!(
                "it was not compared what {whose} computes for a made-up batch: the rows have other dimensions \
                 than the proposer's, or it makes up no batch (`try`)"
            ),
        })
    }
}

/// Source of the initial model.
enum InitialSource {
    /// The agreement describes it.
    Tensors,
    /// The model is this one with every seed.
    Given(Params),
    /// The program gives it; the one of a seed.
    Own(Mutex<(u64, Params)>),
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
        Self::with(task, Agreed::by(task), programs, whose, seeds)
    }

    /// The learner of a silo as by [`open`](Self::open), where `agreed` holds besides the tensors.
    pub(super) fn with(
        task: &Arc<ExternalTask>,
        agreed: Agreed,
        programs: Arc<Programs>,
        (place, of, name): (usize, usize, &str),
        (own, start): (u64, u64),
    ) -> Result<Self, DataError> {
        let layout = task.layout()?;
        let silo = ProgramSilo {
            place,
            name: name.to_owned(),
            of,
            seed: own,
            agreed: task.tensors.clone(),
            frozen: agreed.frozen,
            rows: None,
            columns: agreed.columns.clone(),
            classes: agreed.classes,
        };
        let session = Session::open(programs, silo, start)?;
        let wrong = |what: &str| DataError::Config(format!("silo {name:?}: {what}"));
        let held = || {
            let given = session.initial(start);
            given.map_err(|error| DataError::Config(error.to_string()))
        };
        let begins = match agreed.begins {
            Begins::Tensors => InitialSource::Tensors,
            Begins::Own => InitialSource::Own(Mutex::new((start, held()?))),
            Begins::Copy(model) => InitialSource::Given(model),
            Begins::First(_) if session.gives_start() => InitialSource::Given(held()?),
            Begins::First(false) => InitialSource::Tensors,
            Begins::First(true) => {
                return Err(wrong(
                    "its program gives no model to start from, and `start = \"proposer\"` takes the start \
                     from it: give the learner a method `initial`, or write `start = \"tensors\"`",
                ));
            }
        };
        if let (InitialSource::Given(model), Some(agreed)) = (&begins, &task.model) {
            let found = hex(&model.hash());
            if found != *agreed {
                return Err(wrong(&format!(
                    "the program holds a model with the hash {found}, and `external.model` is {agreed}: \
                     remove `model`, or use the program that held that model"
                )));
            }
        }
        let mut doubts = Vec::new();
        if !agreed.columns.is_empty() && session.columns().is_empty() {
            doubts.push(Doubt::Columns);
        }
        let described = session.described(task, &layout, start);
        let found = session.try_out(&made_up(&layout, &described));
        let found = found.map_err(|error| wrong(&error.to_string()))?;
        if let Some(agreed) = &agreed.trial {
            let compared = found.as_ref().map(|found| agreed.compare(found));
            match compared.unwrap_or(Compared::Incomparable) {
                Compared::Alike => {}
                Compared::Incomparable => doubts.push(Doubt::Outputs),
                Compared::Apart(what) => {
                    return Err(wrong(&format!(
                        "its program computes something else than the agreed model: {what}; its tensors mean \
                         something else by the same names (say by `names` which is which), or its network is \
                         another"
                    )));
                }
            }
        }
        Ok(Self {
            session,
            task: task.clone(),
            layout,
            start: begins,
            trial: agreed.trial.or(found.filter(Trial::says_something)),
            doubts,
            targets: Mutex::default(),
            given: Mutex::default(),
        })
    }

    /// Returns what the silos after this one are held to: what is agreed, and where nothing is, what this
    /// program says.
    pub(super) fn agreed(&self) -> Agreed {
        let session = &self.session;
        let frozen = session.frozen().map(str::to_owned);
        Agreed {
            frozen: Frozen::Like(frozen, session.held().clone()),
            begins: match &self.start {
                InitialSource::Tensors => Begins::Tensors,
                InitialSource::Given(model) => Begins::Copy(model.clone()),
                InitialSource::Own(_) => Begins::Own,
            },
            columns: if self.task.columns.is_empty() {
                session.columns().to_vec()
            } else {
                self.task.columns.clone()
            },
            classes: if self.task.classes.is_empty() {
                session.classes().to_vec()
            } else {
                self.task.classes.clone()
            },
            trial: self.trial.clone(),
        }
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

    /// Key of the agreed metric.
    pub(super) fn agreed_metric(&self) -> &'static str {
        self.task.metric.key()
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

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        let seed = mixed_seed(silo_seed, round);
        self.session.note_round(seed, round);
        seed
    }

    fn initial(&self, seed: u64) -> Params {
        let given = match &self.start {
            InitialSource::Tensors => {
                return self.session.described(&self.task, &self.layout, seed);
            }
            InitialSource::Given(model) => return model.clone(),
            InitialSource::Own(given) => given,
        };
        let mut given = locked(given);
        if given.0 == seed {
            return given.1.clone();
        }
        // A program that gave one initial model and cannot give another is no reason to end; the
        // model of zeros is none that the others start from.
        let model = self.session.initial(seed);
        let model = model.unwrap_or_else(|_| Params::zeros(&self.layout));
        *given = (seed, model.clone());
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
        self.learn(Job::train(start, personal, training, seed), progress)
    }

    fn learn(&self, job: Job<'_>, progress: &mut Watch<'_>) -> Result<Update, LearnError> {
        let how = match job.work {
            Work::Train { training, .. } => (training, job.work.modifier()),
            Work::RobustFit { .. } | Work::ExactFit(_) | Work::Keep => {
                return job.without_fits(self.samples());
            }
        };
        self.go(job.start, job.personal, how, job.seed, progress)
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        fits(&self.layout, model)?;
        self.part(split)?;
        let mut metrics = self.session.evaluate(None, model, personal, split)?;
        if !metrics.values.contains_key("loss") {
            return Err(LearnError::Metric("loss".into()));
        }
        let names = metrics.values.keys().cloned();
        let mut given = locked(&self.given);
        given.get_or_insert_default().extend(names);
        drop(given);
        // What is agreed and the program does not measure, Rota measures of its outputs.
        let agreed = self.agreed_metric();
        if !metrics.values.contains_key(agreed) && self.session.outputs_of().is_some() {
            let values = self.outputs(model, personal, split)?;
            let more = self.measure(model, personal, &values, split)?.values;
            let value = more.get(agreed).map(|&value| (agreed.to_owned(), value));
            metrics.values.extend(value);
        }
        Ok(metrics)
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
            gradients: self.session.has_gradients(),
            outputs: self.session.outputs_of().is_some().then_some(self as _),
            ..Capabilities::NONE
        }
    }
}

/// The digits of a hash.
pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A stand-in for a silo whose program is elsewhere: layout and initial model are right, and
/// nothing can be trained or measured.
pub(super) struct AbsentLearner {
    pub(super) task: Arc<ExternalTask>,
    pub(super) layout: Arc<Layout>,
    pub(super) initial: OnceLock<(u64, Params)>,
}

impl Learner for AbsentLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, seed: u64) -> Params {
        let new = || (seed, self.task.initial(&self.layout, seed));
        let (of, model) = self.initial.get_or_init(new);
        if *of == seed {
            model.clone()
        } else {
            self.task.initial(&self.layout, seed)
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
            gradients: true,
            ..Capabilities::NONE
        }
    }
}
