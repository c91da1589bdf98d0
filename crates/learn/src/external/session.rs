//! A silo's side of the conversation with its program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use methods::learner::{GradientModifier, Split};
use methods::{Layout, LearnError, Metrics, Params, Progress, Training, Update, Watch};

use super::child::silent;
use super::folder::Exchanged;
use super::frozen::Frozen;
use super::locked;
use super::programs::{Programs, Talk, Trouble, read, unexpected};
use super::results::{outputs_in, trial_in};
use super::wire::{
    Modifier, OpenSilo, OpenedSilo, OutputsOf, PartsOf, ProgramRequest, Reply, RowsOf,
};
use crate::data::DataError;
use task::external::{ExternalTask, TensorConfig, Trial, layout_of};

/// Interval at which a training that gives no sign looks whether it is still needed. Until then its silo does not
/// adopt the round that went on without it, and the others wait where it leads next.
const GLANCE: Duration = Duration::from_millis(20);
/// Longest time for a program to stop a training.
const STOPPING: Duration = Duration::from_secs(10);
/// Capability beyond the core: the program computes gradients for a strategy to modify.
pub(super) const GRADIENTS: &str = "gradients";
/// The program gives the model that it holds before any training.
pub(super) const INITIAL: &str = "initial";
/// The program tries a model on a batch that it makes up.
const TRY: &str = "try";
/// Progress of a training before its program reports any.
const BEGINNING: Progress = Progress {
    step: 0,
    steps: 0,
    loss: f64::NAN,
};

/// A silo as its program knows it.
#[derive(Clone)]
pub(super) struct ProgramSilo {
    /// Position of the silo in the federation.
    pub(super) place: usize,
    /// Name of the silo.
    pub(super) name: String,
    /// Number of silos.
    pub(super) of: usize,
    /// Seed of the silo.
    pub(super) seed: u64,
    /// The tensors of the agreed model; empty if none are agreed yet.
    pub(super) agreed: Vec<TensorConfig>,
    /// Agreement about tensors that the program has besides and does not train.
    pub(super) frozen: Frozen,
    /// Form of the rows that Rota hands over, if it does.
    pub(super) rows: Option<RowsOf>,
    /// The agreed names of the columns of its own rows; empty if none are agreed.
    pub(super) columns: Vec<String>,
    /// The agreed labels of the classes, in order; empty if none are agreed.
    pub(super) classes: Vec<String>,
}

/// A silo's side of the conversation with its program.
pub(super) struct Session {
    programs: Arc<Programs>,
    silo: ProgramSilo,
    pub(super) opened: OpenedSilo,
    /// Layout of the models that travel between the two.
    pub(super) layout: Arc<Layout>,
    pub(super) personal: Arc<Layout>,
    /// The seed that it was opened with, and the personal state of that seed.
    pub(super) first: (u64, Params),
    rounds: Mutex<KnownRounds>,
}

/// Rounds in which a silo trains, as far as they are known.
#[derive(Default)]
struct KnownRounds {
    /// By the seeds of their trainings.
    by_seed: BTreeMap<u64, u64>,
    /// That of the last training.
    last: Option<u64>,
}

impl Session {
    /// Introduces a silo to its program. `start` is the seed of what there is before the first round.
    ///
    /// # Errors
    /// [`DataError::Config`]: the program cannot be started, does not have the agreed model, or gives
    /// no personal state to begin with.
    pub(super) fn open(
        programs: Arc<Programs>,
        silo: ProgramSilo,
        start: u64,
    ) -> Result<Self, DataError> {
        let mut opened = None;
        let introduced = programs.with(
            silo.place,
            |talk| {
                opened = Some(introduce(talk, &silo)?);
                Ok(())
            },
            |_| Ok(()),
        );
        let wrong = |trouble| {
            let error = programs.error(trouble);
            DataError::Config(format!("silo {:?}: {error}", silo.name))
        };
        introduced.map_err(wrong)?;
        let opened = opened.ok_or_else(|| {
            wrong(Trouble::Broken(
                "the silo was introduced to it before".into(),
            ))
        })?;
        let broken = |what| wrong(Trouble::Broken(what));
        // Roles are agreed, whatever the program says of them.
        let layout = if silo.agreed.is_empty() {
            layout_of(&opened.layout)
        } else {
            layout_of(&silo.agreed)
        };
        let layout = layout.map_err(broken)?;
        let personal = layout_of(&opened.personal).map_err(broken)?;
        let mut session = Self {
            programs,
            silo,
            opened,
            layout,
            personal,
            first: (start, Params::empty()),
            rounds: Mutex::default(),
        };
        session.first.1 = session
            .ask_personal(start)
            .map_err(|error| DataError::Config(format!("silo {:?}: {error}", session.silo.name)))?;
        Ok(session)
    }

    pub(super) fn name(&self) -> &str {
        &self.silo.name
    }

    /// Notes the round of a training with this seed, so that the program is told in which round it trains.
    pub(super) fn note_round(&self, seed: u64, round: u64) {
        locked(&self.rounds).by_seed.insert(seed, round);
    }

    /// Returns whether strategies can modify its gradients.
    pub(super) fn has_gradients(&self) -> bool {
        self.opened.can(GRADIENTS)
    }

    /// Returns whether the program gives the model that it holds before any training.
    pub(super) fn gives_start(&self) -> bool {
        self.opened.can(INITIAL)
    }

    /// Names of the columns of its rows.
    pub(super) fn columns(&self) -> &[String] {
        &self.opened.columns
    }

    /// Labels of the classes that its model tells apart.
    pub(super) fn classes(&self) -> &[String] {
        &self.opened.classes
    }

    pub(super) fn outputs_of(&self) -> Option<OutputsOf> {
        self.opened.outputs
    }

    pub(super) fn rows(&self) -> PartsOf {
        self.opened.rows
    }

    /// Digest of the tensors that the program has besides and does not train.
    pub(super) fn frozen(&self) -> Option<&str> {
        self.opened.frozen.as_deref()
    }

    /// The short digests of these tensors one by one.
    pub(super) fn held(&self) -> &BTreeMap<String, String> {
        &self.opened.held
    }

    pub(super) fn write(&self, what: &str, model: &Params) -> Result<Exchanged, LearnError> {
        self.programs
            .write(what, model)
            .map_err(|trouble| self.programs.error(trouble))
    }

    /// A conversation with the program, to which the silo has been introduced.
    fn with<T>(
        &self,
        request: impl FnOnce(&mut Talk<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let again = |talk: &mut Talk<'_>| match introduce(talk, &self.silo)? {
            opened if opened.is_like(&self.opened) => Ok(()),
            _ => Err(Trouble::Broken(
                "after it was started again, it says something else of its model or its rows"
                    .into(),
            )),
        };
        self.programs.with(self.silo.place, again, request)
    }

    /// A request that changes nothing: asked again once of a new program, where the program breaks.
    fn twice<T>(
        &self,
        request: impl Fn(&mut Talk<'_>) -> Result<T, Trouble>,
    ) -> Result<T, LearnError> {
        let first = self.with(&request);
        let result = match first {
            Err(Trouble::Broken(_)) => self.with(&request),
            other => other,
        };
        result.map_err(|trouble| self.programs.error(trouble))
    }

    /// The file of a personal state, where there is one.
    fn personal_file(&self, personal: &Params) -> Result<Option<Exchanged>, Trouble> {
        if personal.layout() == &self.personal && !self.personal.is_empty() {
            self.programs.write("personal", personal).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The personal state of a seed, before the first round. If the program cannot give that of another
    /// seed than at first, the one of the first seed takes its place.
    pub(super) fn initial_personal(&self, seed: u64) -> Params {
        let (of, first) = &self.first;
        if *of == seed {
            first.clone()
        } else {
            self.ask_personal(seed).unwrap_or_else(|_| first.clone())
        }
    }

    fn ask_personal(&self, seed: u64) -> Result<Params, LearnError> {
        if self.personal.is_empty() {
            return Ok(Params::empty());
        }
        self.twice(|talk| {
            let into = self.programs.file("personal");
            let request = ProgramRequest::Initial {
                silo: self.silo.place,
                seed,
                into: None,
                personal_into: Some(&into.path),
            };
            done(&talk.ask(&request, "while it made its personal state")?)?;
            read(&into.path, &self.personal)
        })
    }

    /// The program's own initial model of a seed.
    pub(super) fn initial(&self, seed: u64) -> Result<Params, LearnError> {
        self.twice(|talk| {
            let into = self.programs.file("initial");
            let request = ProgramRequest::Initial {
                silo: self.silo.place,
                seed,
                into: Some(&into.path),
                personal_into: None,
            };
            done(&talk.ask(&request, "while it made its initial model")?)?;
            read(&into.path, &self.layout)
        })
    }

    /// Returns what the program computes with this model for a batch that it makes up; `None` where it makes
    /// up none.
    pub(super) fn try_out(&self, model: &Params) -> Result<Option<Trial>, LearnError> {
        if !self.opened.can(TRY) {
            return Ok(None);
        }
        self.twice(|talk| {
            let model = self.programs.write_shared(model)?;
            let into = self.programs.file("tried");
            let request = ProgramRequest::Try {
                silo: self.silo.place,
                model: &model.path,
                into: &into.path,
            };
            done(&talk.ask(&request, "while it computed a made-up batch")?)?;
            trial_in(&into.path).map(Some)
        })
    }

    /// Trains. `rows` is the file of the rows, where Rota hands them over; the round is told where it was
    /// [noted](Self::note_round).
    pub(super) fn train(
        &self,
        rows: Option<&PathBuf>,
        start: &Params,
        personal: &Params,
        (training, modifier): (&Training, Option<&GradientModifier<'_>>),
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let round = {
            let mut known = locked(&self.rounds);
            let round = known.by_seed.get(&seed).copied();
            known.last = round.or(known.last);
            round
        };
        let rounds = self.programs.config().rounds;
        let go = |talk: &mut Talk<'_>| {
            // The program may have been asked something else for long.
            if progress(BEGINNING).is_break() {
                return Err(Trouble::Stopped);
            }
            let start = self.programs.write_shared(start)?;
            let own = self.personal_file(personal)?;
            let into = self.programs.file("trained");
            let own_into = own.as_ref().map(|_| self.programs.file("personal"));
            let write = |params: &Params| self.programs.write("modifier", params);
            let anchor = modifier
                .map(|modifier| write(modifier.anchor))
                .transpose()?;
            let shift = modifier.and_then(|modifier| modifier.shift);
            let shift = shift.map(write).transpose()?;
            let modifier = modifier.zip(anchor.as_ref()).map(|(modifier, anchor)| {
                let frozen = modifier.frozen.into_iter();
                Modifier {
                    mu: modifier.mu,
                    anchor: &anchor.path,
                    shift: shift.as_ref().map(|shift| &shift.path),
                    frozen: frozen
                        .flat_map(|layout| layout.tensors())
                        .map(|tensor| tensor.name.clone())
                        .collect(),
                }
            });
            talk.send(&ProgramRequest::Train {
                silo: self.silo.place,
                rows,
                start: &start.path,
                personal: own.as_ref().map(|own| &own.path),
                into: &into.path,
                personal_into: own_into.as_ref().map(|own| &own.path),
                training,
                seed,
                round,
                rounds,
                modifier,
            })?;
            let (samples, values) = follow(talk, progress)?;
            if samples == 0 {
                let what = "it says that it trained on no rows, with which a model has no weight";
                return Err(Trouble::Refused(what.into()));
            }
            let shared = read(&into.path, &self.layout)?;
            let personal = match &own_into {
                Some(own) => read(&own.path, &self.personal)?,
                None => personal.clone(),
            };
            let metrics = measured(samples, values);
            Ok(Update {
                shared,
                personal,
                samples,
                metrics,
            })
        };
        self.with(go)
            .map_err(|trouble| self.programs.error(trouble))
    }

    /// The initial model of a seed as the agreement describes it.
    pub(super) fn described(&self, task: &ExternalTask, layout: &Arc<Layout>, seed: u64) -> Params {
        self.programs.initial(task, layout, seed)
    }

    /// Measures a model.
    pub(super) fn evaluate(
        &self,
        rows: Option<&PathBuf>,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let round = locked(&self.rounds).last;
        self.twice(|talk| {
            let model = self.programs.write_shared(model)?;
            let own = self.personal_file(personal)?;
            let request = ProgramRequest::Evaluate {
                silo: self.silo.place,
                rows,
                model: &model.path,
                personal: own.as_ref().map(|own| &own.path),
                split,
                round,
                rounds: self.programs.config().rounds,
            };
            match talk.ask(&request, "while it measured a model")? {
                Reply::Measured { samples, metrics } => Ok(measured(samples, metrics)),
                other => Err(unexpected("`measured`", &other)),
            }
        })
    }

    /// Outputs of a model row by row, and the targets.
    pub(super) fn outputs(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
        rows: usize,
    ) -> Result<(Vec<f64>, Vec<f64>), LearnError> {
        self.twice(|talk| {
            let model = self.programs.write_shared(model)?;
            let own = self.personal_file(personal)?;
            let into = self.programs.file("outputs");
            let request = ProgramRequest::Outputs {
                silo: self.silo.place,
                model: &model.path,
                personal: own.as_ref().map(|own| &own.path),
                split,
                into: &into.path,
            };
            done(&talk.ask(&request, "while it gave the outputs of a model")?)?;
            outputs_in(&into.path, rows)
        })
    }
}

/// Introduces a silo, and checks that the program has the agreed model.
fn introduce(talk: &mut Talk<'_>, silo: &ProgramSilo) -> Result<OpenedSilo, Trouble> {
    let request = ProgramRequest::Open(OpenSilo {
        silo: silo.place,
        name: &silo.name,
        silos: silo.of,
        seed: silo.seed,
        layout: &silo.agreed,
        rows: silo.rows.as_ref(),
        columns: &silo.columns,
        classes: &silo.classes,
    });
    let opened = match talk.ask(&request, "while it was introduced to a silo")? {
        Reply::Opened(opened) => *opened,
        other => return Err(unexpected("`opened`", &other)),
    };
    let known = [GRADIENTS, INITIAL, TRY];
    let mut capabilities = opened.capabilities.iter();
    if let Some(name) = capabilities.find(|name| !known.contains(&name.as_str())) {
        return Err(Trouble::Broken(format!(
            "it says that it has the capability {name:?}; there are {}",
            known.join(", ")
        )));
    }
    if !silo.agreed.is_empty() {
        let shapes = |tensors: &[TensorConfig]| {
            let pairs = tensors.iter();
            let pairs = pairs.map(|tensor| (tensor.name.clone(), tensor.shape.clone()));
            pairs.collect::<BTreeMap<_, _>>()
        };
        let (agreed, found) = (shapes(&silo.agreed), shapes(&opened.layout));
        let differs = agreed
            .iter()
            .find(|(name, shape)| found.get(*name) != Some(shape));
        if let Some((name, shape)) = differs {
            let has = match found.get(name) {
                Some(found) => format!("its own has {found:?}"),
                None => "its own has no such tensor".into(),
            };
            return Err(Trouble::Broken(format!(
                "its model is another than the agreed one, which has {name} {shape:?}: {has}"
            )));
        }
        if let Some(name) = found.keys().find(|name| !agreed.contains_key(*name)) {
            return Err(Trouble::Broken(format!(
                "its model is another than the agreed one, which has no tensor {name:?}"
            )));
        }
    }
    let frozen = silo.frozen.check(opened.frozen.as_deref(), &opened.held);
    frozen.map_err(Trouble::Broken)?;
    // A program whose columns have no names says nothing that could be compared.
    let (agreed, found) = (&silo.columns, &opened.columns);
    if !agreed.is_empty() && !found.is_empty() && agreed != found {
        return Err(Trouble::Broken(columns_apart(agreed, found)));
    }
    let (agreed, found) = (&silo.classes, &opened.classes);
    if !agreed.is_empty() && !found.is_empty() && agreed != found {
        return Err(Trouble::Broken(classes_apart(agreed, found)));
    }
    Ok(opened)
}

/// Returns how these names differ from the agreed ones, as a clause; each is the name of such a thing.
fn apart(agreed: &[String], found: &[String], thing: &str) -> String {
    let missing = agreed.iter().find(|name| !found.contains(name));
    let surplus = found.iter().find(|name| !agreed.contains(name));
    match (missing, surplus) {
        (Some(name), _) => format!("it has no {thing} {name:?}"),
        (None, Some(name)) => format!("nobody agreed on its {thing} {name:?}"),
        (None, None) => "it has them in another order".into(),
    }
}

/// Returns how classes differ from the agreed ones, as a clause.
fn classes_apart(agreed: &[String], found: &[String]) -> String {
    format!(
        "its classes are others than the agreed ones, so that the model would take one for another: {}; agreed \
         are {}, it has {}; give the learner `silo=silo`, which puts them into the agreed order, or the agreed \
         `classes`",
        apart(agreed, found, "class"),
        agreed.join(", "),
        found.join(", ")
    )
}

/// Returns how columns differ from the agreed ones, as a clause.
fn columns_apart(agreed: &[String], found: &[String]) -> String {
    let what = apart(agreed, found, "column");
    format!(
        "the columns of its rows are others than the agreed ones, so that the model would take one for \
         another: {what}; agreed are {}, it has {}; give the learner `silo=silo`, which puts columns of a \
         DataFrame into the agreed order, or choose the agreed columns",
        agreed.join(", "),
        found.join(", ")
    )
}

/// Follows a training to its end. Returns rows and metrics.
fn follow(
    talk: &mut Talk<'_>,
    progress: &mut Watch<'_>,
) -> Result<(u64, BTreeMap<String, Option<f64>>), Trouble> {
    let mut last = BEGINNING;
    let mut heard = Instant::now();
    loop {
        let reply = talk.receive(GLANCE.min(talk.timeout))?;
        match reply {
            Some(Reply::Trained { samples, metrics }) => return Ok((samples, metrics)),
            Some(Reply::Progress { step, steps, loss }) => {
                heard = Instant::now();
                last = Progress {
                    step,
                    steps,
                    loss: loss.unwrap_or(f64::NAN),
                };
            }
            Some(other) => return Err(unexpected("`progress` or `trained`", &other)),
            None if heard.elapsed() >= talk.timeout => {
                return Err(Trouble::Broken(silent(talk.timeout, "while it trained")));
            }
            None => {}
        }
        // A program that says nothing for long may not be needed any more either.
        if progress(last).is_break() {
            return Err(stop(talk));
        }
    }
}

/// Stops a training, and says whether the program did.
fn stop(talk: &mut Talk<'_>) -> Trouble {
    if talk.send(&ProgramRequest::Stop).is_err() {
        return Trouble::Stuck;
    }
    let until = Instant::now() + STOPPING;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match talk.receive(left) {
            Ok(Some(Reply::Progress { .. })) => {}
            Ok(Some(Reply::Stopped | Reply::Trained { .. })) | Err(Trouble::Refused(_)) => {
                return Trouble::Stopped;
            }
            Ok(_) | Err(_) => return Trouble::Stuck,
        }
    }
}

fn done(reply: &Reply) -> Result<(), Trouble> {
    match reply {
        Reply::Done => Ok(()),
        other => Err(unexpected("`done`", other)),
    }
}

/// Metrics; what is not a finite number is NaN.
fn measured(samples: u64, values: BTreeMap<String, Option<f64>>) -> Metrics {
    let values = values.into_iter();
    Metrics {
        samples,
        values: values
            .map(|(name, value)| (name, value.unwrap_or(f64::NAN)))
            .collect(),
    }
}
