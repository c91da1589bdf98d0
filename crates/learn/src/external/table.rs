//! A learner of a table that trains with a program and does everything else itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use methods::learner::{Capabilities, GradientModifier, Job, Split, Work};
use methods::strategy::{DEVIATION, MEAN, REST, SCALE, SUM_REST, split_double};
use methods::{
    Layout, LearnError, Learner, Metrics, Params, Role, TensorSpec, Training, Update, Watch,
};

use super::folder::Exchanged;
use super::frozen::Frozen;
use super::locked;
use super::programs::Programs;
use super::session::{ProgramSilo, Session};
use super::wire::RowsOf;
use crate::data::{DataError, Rows};
use crate::learners::{TableLearner, fits};
use task::external::tensors_of;

/// Largest relative difference between the loss that a program and Rota measure of one model.
const APART: f64 = 1e-3;

/// Trains the model of a table with a program, which is given the silo's rows as the model takes
/// them; measures models as [`TableLearner`] does. So both compute the same function, which is
/// checked on one model before the first round.
pub struct TableByProgram {
    table: Arc<TableLearner>,
    session: Session,
    programs: Arc<Programs>,
    /// Tensors that the program does not see: the common scale, which its rows have already.
    scale: Arc<Layout>,
    /// Files of the rows, by the scale that they are on.
    files: Mutex<BTreeMap<[u8; 32], Arc<Exchanged>>>,
}

impl TableByProgram {
    /// The learner of the silo at position `place` of `of`, which otherwise is `table`. `start` is
    /// the seed of the initial model.
    ///
    /// # Errors
    /// [`DataError::Config`]: a program that cannot be started, or one with another model.
    pub fn open(
        table: &Arc<TableLearner>,
        programs: Arc<Programs>,
        (place, of, name): (usize, usize, &str),
        (own, start): (u64, u64),
    ) -> Result<Self, DataError> {
        let whole = table.layout();
        let is_scale = |tensor: &&TensorSpec| SCALE.contains(&tensor.name.as_str());
        let seen = whole.select(|tensor| !is_scale(tensor));
        let silo = ProgramSilo {
            place,
            name: name.to_owned(),
            of,
            seed: own,
            agreed: tensors_of(&seen),
            // All of the agreed model travels.
            frozen: Frozen::Open,
            rows: Some(RowsOf {
                features: table.features(),
                loss: table.loss_name(),
            }),
            columns: Vec::new(),
            classes: Vec::new(),
        };
        let learner = Self {
            session: Session::open(programs.clone(), silo, start)?,
            table: table.clone(),
            programs,
            scale: whole.select(is_scale),
            files: Mutex::default(),
        };
        let wrong = |error: LearnError| DataError::Config(format!("silo {name:?}: {error}"));
        learner.compare(start).map_err(wrong)?;
        Ok(learner)
    }

    /// Refuses a program whose model computes something else than the agreed one.
    fn compare(&self, seed: u64) -> Result<(), LearnError> {
        let model = self.lively(&self.table.initial(seed))?;
        let split = Split::Train;
        let own = self.table.evaluate(&model, &Params::empty(), split)?;
        let own = own.get("loss")?;
        let personal = self.initial_personal(seed);
        let (file, seen) = (self.rows(&model)?, self.seen(&model));
        let found = self
            .session
            .evaluate(Some(&file.path), &seen, &personal, split)?;
        let found = found.get("loss")?;
        if (own - found).abs() <= APART * own.abs().max(1.0) {
            Ok(())
        } else {
            Err(LearnError::Failed(format!(
                "the learner `{}` computes something else than the agreed model: of one model on the \
                 same training rows it measures the loss {found:.6}, and Rota {own:.6}",
                self.programs.config().name()
            )))
        }
    }

    /// A model that tells others apart: the initial one, on the scale of the silo's own rows, and with
    /// different values in tensors whose values are all equal. On the initial scale, which is none, a
    /// large target would hide what the model computes, and large features would saturate it; biases
    /// of 0 or norm layers of 1 would hide that one is missing.
    fn lively(&self, initial: &Params) -> Result<Params, LearnError> {
        let summary = match self.table.capabilities().summaries {
            Some(summaries) => Some(summaries.summarise()?),
            None => None,
        };
        let layout = initial.layout();
        Ok(Params::build(layout, |values| {
            values.copy_from_slice(initial.values());
            for (index, tensor) in layout.tensors().iter().enumerate() {
                let values = &mut values[layout.range(index)];
                match (tensor.name.as_str(), &summary) {
                    (MEAN, Some(summary)) => mean(summary, values, |(high, _)| high),
                    (REST, Some(summary)) => mean(summary, values, |(_, rest)| rest),
                    (DEVIATION, Some(summary)) => deviation(summary, values),
                    _ if values.windows(2).all(|pair| pair[0] == pair[1]) => {
                        let inputs: usize = tensor.shape.iter().skip(1).product();
                        let unit = 1.0 / (inputs as f32).sqrt();
                        for (at, value) in values.iter_mut().enumerate() {
                            *value += unit * (0.5 - 0.15 * ((at + 3 * index) % 7) as f32);
                        }
                    }
                    _ => {}
                }
            }
        }))
    }

    /// The tensors that the program sees.
    fn seen(&self, model: &Params) -> Params {
        let parts = Params::gather(&self.session.layout, &[model]);
        parts.expect("the program's tensors are a part of the model's")
    }

    /// The file of the rows on the scale of `model`.
    fn rows(&self, model: &Params) -> Result<Arc<Exchanged>, LearnError> {
        let scale = Params::gather(&self.scale, &[model]);
        let scale = scale.expect("the scale is a part of the model").hash();
        let mut files = locked(&self.files);
        if let Some(file) = files.get(&scale) {
            return Ok(file.clone());
        }
        // The scale is agreed on once, so that there is one file, or two.
        files.clear();
        let file = Arc::new(self.session.write("rows", &self.document(model))?);
        files.insert(scale, file.clone());
        Ok(file)
    }

    /// The rows of all parts as tensors `train.x` (rows × features), `train.y` (rows × targets) and
    /// so on.
    fn document(&self, model: &Params) -> Params {
        let parts = [
            ("train", Split::Train),
            ("validation", Split::Validation),
            ("test", Split::Test),
        ];
        let rows = parts.map(|(name, split)| (name, self.table.rows_of(model, split)));
        let present = || {
            let rows = rows.iter();
            rows.filter_map(|(name, rows)| Some((name, rows.as_deref()?)))
        };
        let specs = present().flat_map(|(name, rows): (_, &Rows)| {
            let targets = rows.targets().len() / rows.len();
            [("x", rows.width()), ("y", targets)].map(|(part, width)| {
                TensorSpec::new(format!("{name}.{part}"), [rows.len(), width], Role::Buffer)
            })
        });
        let layout = Layout::new(specs.collect()).expect("six names, of shapes that fit memory");
        Params::build(&layout, |into| {
            for (name, rows) in present() {
                for (part, values) in [("x", rows.all()), ("y", rows.targets())] {
                    let at = layout.position(&format!("{name}.{part}"));
                    let at = at.expect("the layout has all of them");
                    into[layout.range(at)].copy_from_slice(values);
                }
            }
        })
    }

    fn go(
        &self,
        start: &Params,
        personal: &Params,
        how: (&Training, Option<&GradientModifier<'_>>),
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        fits(&self.table.layout(), start)?;
        let file = self.rows(start)?;
        let seen = self.seen(start);
        let update = self
            .session
            .train(Some(&file.path), &seen, personal, how, seed, progress)?;
        let shared = Params::gather(start.layout(), &[&update.shared, start]);
        Ok(Update {
            shared: shared.expect("what the program does not see is as at the start"),
            ..update
        })
    }
}

/// One part of the mean of every column.
fn mean(summary: &Params, into: &mut [f32], part_of: impl Fn((f32, f32)) -> f32) {
    let (sums, rests) = (part(summary, "sum"), part(summary, SUM_REST));
    let count = f64::from(part(summary, "count")[0]);
    for (value, (&sum, &rest)) in into.iter_mut().zip(sums.iter().zip(rests)) {
        *value = part_of(split_double((f64::from(sum) + f64::from(rest)) / count));
    }
}

/// The standard deviation of every column.
fn deviation(summary: &Params, into: &mut [f32]) {
    let (count, squares) = (part(summary, "count")[0], part(summary, "squares"));
    for (value, square) in into.iter_mut().zip(squares) {
        *value = (square / count).sqrt();
    }
}

fn part<'a>(summary: &'a Params, name: &str) -> &'a [f32] {
    let found = summary.tensor(name);
    found.expect("summaries have a count, sums and squares")
}

impl Learner for TableByProgram {
    fn layout(&self) -> Arc<Layout> {
        self.table.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.table.initial(seed)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        self.session.initial_personal(seed)
    }

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        let seed = self.table.seed(silo_seed, round);
        self.session.note_round(seed, round);
        seed
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
                return self.table.learn(job, progress);
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
        self.table.evaluate(model, personal, split)
    }

    /// The model as it is: the personal state serves training alone.
    fn deployed(&self, model: &Params, _personal: &Params) -> Option<Params> {
        Some(model.clone())
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

    fn capabilities(&self) -> Capabilities<'_> {
        let table = self.table.capabilities();
        Capabilities {
            summaries: table.summaries,
            robust: table.robust,
            robust_fits: table.robust_fits,
            exact_fits: table.exact_fits,
            gradients: self.session.has_gradients(),
            // Chosen rows would be trained on without the program.
            row_access: None,
            outputs: table.outputs,
            classifiers: table.classifiers,
            stochastic: None,
            units: None,
            // They would be fitted without the program.
            linear_rows: None,
            answers: None,
        }
    }
}
