//! One silo and its program.

use learn::TaskStudy;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use rota::learn::StudySilo;
use rota::learn::external::{ExternalLearner, LearnerConfig, Programs, external_silo};
use rota::methods::learner::{GradientModifier, Job, Progress, Split, Work};
use rota::methods::{LearnError, Learner, Params, Training};
use rota::task::external::ExternalTask;
use rota::task::{TaskConfig, data::DataError};

use super::child::FROZEN;

pub(crate) const TENSORS: &str = "tensors = [
    { name = 'bias', shape = [1], role = 'bias' },
    { name = 'weight', shape = [1, 1], role = 'weight', initial = { uniform = 0.5 } },
]";

/// A file for the child's notes that does not exist.
pub(crate) fn log(name: &str) -> PathBuf {
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}.log"));
    let _ = fs::remove_file(&log);
    log
}

/// The command of a child that behaves so.
pub(crate) fn command(how: &str, name: &str) -> Vec<String> {
    let me = std::env::current_exe().unwrap();
    let words = [me.to_str().unwrap(), "--child", how];
    let mut words = words.map(str::to_owned).to_vec();
    words.push(log(name).to_str().unwrap().to_owned());
    words
}

pub(crate) fn config(how: &str, name: &str) -> LearnerConfig {
    let mut config = LearnerConfig::command(command(how, name));
    config.timeout = std::time::Duration::from_secs(2);
    config
}

fn task() -> Arc<ExternalTask> {
    Arc::new(toml::from_str(TENSORS).unwrap())
}

fn open(task: &Arc<ExternalTask>, config: &LearnerConfig) -> Result<ExternalLearner, DataError> {
    let programs = Programs::new(config, 1)?;
    ExternalLearner::open(task, programs, (0, 3, "north"), (1, 2))
}

/// The silo of an institution called north with a program, as its node opens it.
pub(crate) fn opened(task: &TaskConfig, config: &LearnerConfig) -> Result<StudySilo, DataError> {
    let TaskConfig::External(external) = task else {
        panic!("a task of programs");
    };
    let study = external.stand_ins(&["north".into()], 1)?;
    let programs = Programs::new(config, 1)?;
    external_silo(task, &study.silos[0], &programs, (0, 3), (1, 2))
}

fn training() -> Training {
    toml::from_str("epochs = 1\nbatch = 0\noptimiser = { name = 'sgd', rate = 0.5 }").unwrap()
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn train(
    learner: &dyn Learner,
    start: &Params,
    personal: &Params,
) -> Result<(Params, Params), LearnError> {
    let update = learner.train(start, personal, &training(), 9, &mut go_on)?;
    Ok((update.shared, update.personal))
}

pub(crate) fn a_program_trains_and_measures() {
    let learner = open(&task(), &config("well", "well")).unwrap();
    assert_eq!((learner.rows().train, learner.rows().test), (12, 4));
    let (start, personal) = (learner.initial(2), learner.initial_personal(2));
    assert_eq!(personal.tensor("trainings").unwrap(), [0.0]);
    let before = learner.evaluate(&start, &personal, Split::Test).unwrap();
    let mut heard = Vec::new();
    let mut progress = |progress: Progress| {
        heard.push((progress.step, progress.steps));
        ControlFlow::Continue(())
    };
    let update = learner
        .train(&start, &personal, &training(), 9, &mut progress)
        .unwrap();
    assert_eq!(heard.last(), Some(&(20, 20)));
    assert_eq!(update.samples, 12);
    assert_eq!(update.personal.tensor("trainings").unwrap(), [1.0]);
    // Written in another order of tensors, it is the canonical document here.
    assert_eq!(update.shared.layout(), &learner.layout());
    assert!((update.shared.tensor("weight").unwrap()[0] - 2.0).abs() < 0.2);
    let after = learner
        .evaluate(&update.shared, &update.personal, Split::Test)
        .unwrap();
    assert!(after.get("loss").unwrap() < before.get("loss").unwrap() / 10.0);
    assert_eq!(after.samples, 4);
    let none = learner.evaluate(&start, &personal, Split::Validation);
    assert_eq!(none.unwrap_err(), LearnError::NoRows("validation"));
}

pub(crate) fn a_proximal_term_reaches_the_program() {
    let learner = open(&task(), &config("well", "proximal")).unwrap();
    let learner: &dyn Learner = &learner;
    let (start, personal) = (learner.initial(2), learner.initial_personal(2));
    let (free, _) = train(learner, &start, &personal).unwrap();
    let modifier = GradientModifier {
        mu: 1.0,
        ..GradientModifier::none(&start)
    };
    let training = training();
    let modified = |modifier| {
        let work = Work::Train {
            training: &training,
            modifier: Some(modifier),
        };
        let plain = Job::train(&start, &personal, &training, 9);
        Job { work, ..plain }.run(learner, &mut go_on).unwrap()
    };
    let held = modified(&modifier);
    let way = |model: &Params| rota::methods::params::squared_distance(&start, model).unwrap();
    assert!(way(&held.shared) < way(&free) / 2.0);
    let none = GradientModifier::none(&start);
    assert_eq!(modified(&none).shared, free);
}

pub(crate) fn outputs_are_measured_row_by_row() {
    let learner = open(&task(), &config("well", "outputs")).unwrap();
    let learner: &dyn Learner = &learner;
    let (model, personal) = (learner.initial(2), learner.initial_personal(2));
    let outputs = learner.outputs().unwrap();
    let given = outputs.outputs(&model, &personal, Split::Test).unwrap();
    assert_eq!(given.len(), 4);
    let rows = outputs
        .row_results(&model, &personal, &given, Split::Test)
        .unwrap();
    let mean = rows.scores["loss"].iter().sum::<f64>() / 4.0;
    let measured = learner.evaluate(&model, &personal, Split::Test).unwrap();
    assert!((mean - measured.get("loss").unwrap()).abs() < 1e-6);
    let mean = outputs.mean_target(&model, &personal, 1).unwrap();
    assert_eq!(outputs.constant(&mean), mean);
}

pub(crate) fn a_program_that_breaks_is_started_again() {
    let cases = [
        ("crash", "MemoryError: out of memory, as a test", 2),
        ("hang", "no sign of life for 2 seconds while it trained", 2),
        ("nan", "\"weight\" holds a value that is not finite", 2),
        ("layout", "\"weight\" must be F32 [1, 1], it is F32 [2]", 2),
        ("babble", "does it print to its standard output", 2),
        ("left", "RuntimeError: a worker is left, as a test", 2),
        (
            "escaped",
            "RuntimeError: a worker is elsewhere, as a test",
            2,
        ),
        (
            "daemon",
            "RuntimeError: a worker is elsewhere, as a test",
            2,
        ),
        ("pipe", "it is a pipe, expected a regular file", 2),
        // The initial values that it says are others at every start.
        ("redrawn", "MemoryError: out of memory, as a test", 2),
        ("none", "it says that it trained on no rows", 1),
        // It says so itself, so it is in order.
        ("refuse", "the ward is closed today", 1),
    ];
    for (how, said, starts) in cases {
        let learner = open(&task(), &config(how, how)).unwrap();
        let (start, personal) = (learner.initial(2), learner.initial_personal(2));
        let (first, _) = train(&learner, &start, &personal).unwrap();
        let error = train(&learner, &start, &personal).unwrap_err().to_string();
        assert!(error.contains(said), "{how}: {error}");
        assert!(error.starts_with("the learner `"), "{how}: {error}");
        // The third training is well again, and the silo's state is what the silo has kept.
        let (third, personal) = train(&learner, &start, &personal).unwrap();
        assert_eq!(third, first, "{how}");
        assert_eq!(personal.tensor("trainings").unwrap(), [1.0], "{how}");
        assert_eq!(noted(how).0, starts, "{how}");
        drop(learner);
        assert!(is_gone(how), "{how}: it, or what it started, is left");
    }
}

/// Returns whether nothing is left of a child with these notes, nor of what it started.
pub(crate) fn is_gone(name: &str) -> bool {
    let alive = format!("learner-{name}.log.alive");
    let alive = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(alive);
    fs::File::open(alive).unwrap().try_lock().is_ok()
}

/// Returns how often a child with these notes was started, and has begun a training.
pub(crate) fn noted(name: &str) -> (usize, usize) {
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}.log"));
    let notes = fs::read_to_string(log).unwrap();
    let count = |what| notes.matches(what).count();
    (count("started"), count("trained"))
}

pub(crate) fn a_training_that_is_not_needed_is_stopped() {
    // Before its program is asked, in the middle, and by a program that says nothing for long or does
    // not stop.
    let cases = [
        ("progress", 0, (1, 0)),
        ("progress", 2, (1, 1)),
        ("quiet", 2, (1, 1)),
        ("held", 2, (2, 1)),
    ];
    for (how, after, expected) in cases {
        let name = format!("{how}-{after}");
        let learner = open(&task(), &config(how, &name)).unwrap();
        let (start, personal) = (learner.initial(2), learner.initial_personal(2));
        let mut asked = 0;
        let mut stop = |_: Progress| {
            asked += 1;
            if asked > after {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let stopped = learner.train(&start, &personal, &training(), 9, &mut stop);
        assert_eq!(stopped.unwrap_err(), LearnError::Stopped, "{name}");
        // A program still answers: the same one, where it stopped.
        learner.evaluate(&start, &personal, Split::Test).unwrap();
        assert_eq!(noted(&name), expected, "{name}");
    }
}

pub(crate) fn programs_end_in_the_middle_of_a_training() {
    let programs = Programs::new(&config("quiet", "ended"), 1).unwrap();
    let whose = (0, 3, "north");
    let learner = ExternalLearner::open(&task(), programs.clone(), whose, (1, 2)).unwrap();
    let (start, personal) = (learner.initial(2), learner.initial_personal(2));
    let mut asked = 0;
    let mut end = |_: Progress| {
        asked += 1;
        if asked == 2 {
            programs.end();
        }
        ControlFlow::Continue(())
    };
    let ended = learner.train(&start, &personal, &training(), 9, &mut end);
    let ended = ended.unwrap_err().to_string();
    assert!(ended.contains("it ended (signal: 9"), "{ended}");
    assert!(is_gone("ended"));
    // None is started any more.
    let measured = learner.evaluate(&start, &personal, Split::Test);
    assert_eq!(measured.unwrap_err(), LearnError::Stopped);
    assert_eq!(noted("ended"), (1, 1));
}

pub(crate) fn a_program_with_another_model_is_refused() {
    let wrong: ExternalTask = toml::from_str(&TENSORS.replace("[1, 1]", "[1, 4]")).unwrap();
    let error = open(&Arc::new(wrong), &config("well", "other"))
        .err()
        .unwrap();
    let error = error.to_string();
    assert!(
        error.contains("which has weight [1, 4]: its own has [1, 1]"),
        "{error}"
    );
    let nobody = LearnerConfig::command(vec!["/nowhere/learner".into()]);
    let error = open(&task(), &nobody).err().unwrap().to_string();
    assert!(
        error.contains("\"/nowhere/learner\" cannot be started"),
        "{error}"
    );
}

pub(crate) fn a_program_with_other_frozen_tensors_is_refused() {
    let with = |frozen: &str| {
        let task: ExternalTask = toml::from_str(&format!("{frozen}\n{TENSORS}")).unwrap();
        Arc::new(task)
    };
    let agreed = with(&format!("frozen = '{FROZEN}'"));
    assert!(open(&agreed, &config("frozen", "frozen")).is_ok());
    let other = format!("frozen = '{}'", "7".repeat(64));
    for (task, how, said) in [
        (
            with(&other),
            "frozen",
            "its frozen tensors are others than the agreed ones",
        ),
        (agreed, "well", "it has no frozen tensors"),
        // The node of an institution sees no other program, and says which tensor it is.
        (
            with(&format!("{other}\nheld = {{ body = '0', mask = '9' }}")),
            "apart-1",
            "\"mask\" has other values than agreed; ",
        ),
        (
            with(&format!("{other}\nheld = {{ body = '0' }}")),
            "apart-1",
            "\"mask\" is none that is agreed; ",
        ),
        (
            with(&format!(
                "{other}\nheld = {{ body = '0', head = '1', mask = '1' }}"
            )),
            "apart-1",
            "\"head\" is missing; ",
        ),
        (
            task(),
            "frozen",
            "the agreement does not say which: write frozen = \"5f78c332",
        ),
    ] {
        let error = open(&task, &config(how, "other-frozen")).err().unwrap();
        assert!(error.to_string().contains(said), "{how}: {error}");
    }
}

pub(crate) fn the_initial_model_may_come_from_the_program() {
    let task: ExternalTask = toml::from_str(&format!("start = 'learner'\n{TENSORS}")).unwrap();
    let learner = open(&Arc::new(task), &config("well", "start")).unwrap();
    assert_eq!(learner.initial(2).tensor("bias").unwrap(), [7.0]);
}

pub(crate) fn silos_share_a_bounded_number_of_programs() {
    let config = config("well", "shared");
    let task = task();
    let programs = Programs::new(
        &LearnerConfig {
            programs: 2,
            ..config
        },
        5,
    )
    .unwrap();
    let silos: Vec<_> = (0..5)
        .map(|place| {
            let name = format!("silo {place}");
            let whose = (place, 5, name.as_str());
            ExternalLearner::open(&task, programs.clone(), whose, (1, 2)).unwrap()
        })
        .collect();
    let start = silos[0].initial(2);
    let biases = silos.iter().map(|silo| {
        let (model, _) = train(silo, &start, &silo.initial_personal(2)).unwrap();
        model.tensor("bias").unwrap()[0].round()
    });
    // Each has its own rows, whose bias is its number.
    assert_eq!(biases.collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(noted("shared").0, 2);
}

/// Two files of rows y = 3x + `above`, and the beginning of a task on them.
pub(crate) fn table(name: &str, above: f64) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}"));
    fs::create_dir_all(&folder).unwrap();
    let row = |row: u32| {
        let x = f64::from(row * 7 % 40) / 20.0;
        format!("{x},{}\n", 3.0 * x + above)
    };
    let mut files = Vec::new();
    for (silo, from) in [("a", 0), ("b", 40)] {
        let file = folder.join(format!("{silo}.csv"));
        let rows: String = (from..from + 40).map(row).collect();
        fs::write(&file, format!("x,y\n{rows}")).unwrap();
        files.push(format!("{{ path = {:?} }}", file.to_str().unwrap()));
    }
    format!(
        "[task.table]
model = {{ linear = {{ loss = 'squared' }} }}
split = {{ validation = 0.0, test = 0.25 }}
[task.table.data.rows]
files = [{}]
[task.table.data.rows.columns]
target = 'y'
",
        files.join(", ")
    )
}

#[derive(serde::Deserialize)]
struct WrittenTask {
    task: TaskConfig,
}

pub(crate) fn a_program_trains_the_model_of_a_table() {
    let WrittenTask { task } = toml::from_str(&table("table", 1.0)).unwrap();
    let study = task.study(None, None, 1).unwrap();
    let programs = Programs::new(&config("well", "table"), 1).unwrap();
    let silo = external_silo(&task, &study.silos[0], &programs, (0, 2), (1, 1)).unwrap();
    let (learner, plain) = (&silo.learner, &study.silos[0].learner);
    assert_eq!(learner.layout(), plain.layout());
    // The scale that the members agree on is no matter of the program.
    let initial = learner.initial(1);
    let mut scaled = initial.values().to_vec();
    let at = learner.layout().position("scale.deviation").unwrap();
    scaled[learner.layout().range(at)].fill(2.0);
    let start = Params::from_values(&learner.layout(), &scaled);
    let (model, _) = train(&**learner, &start, &learner.initial_personal(1)).unwrap();
    assert_eq!(
        model.tensor("scale.deviation"),
        start.tensor("scale.deviation")
    );
    let mae = |model: &Params| {
        let measured = plain
            .evaluate(model, &Params::empty(), Split::Test)
            .unwrap();
        measured.get("mae").unwrap()
    };
    assert!(
        mae(&model) < mae(&start) / 3.0,
        "{} {}",
        mae(&model),
        mae(&start)
    );
    assert!(learner.robust().is_err() && learner.outputs().is_ok());
    assert!(learner.summaries().is_ok() && learner.row_access().is_err());
}

/// The rows' targets are far from 0, where a model that is slightly off hardly changes the loss.
pub(crate) fn a_program_that_is_a_little_off_is_refused() {
    let WrittenTask { task } = toml::from_str(&table("off", 1000.0)).unwrap();
    let study = task.study(None, None, 1).unwrap();
    let with = |how: &str| {
        let programs = Programs::new(&config(how, "off"), 1).unwrap();
        external_silo(&task, &study.silos[0], &programs, (0, 2), (1, 1))
    };
    assert!(with("well").is_ok());
    let error = with("off").err().unwrap().to_string();
    let said =
        "computes something else than the agreed model: of one model on the same training rows";
    assert!(error.contains(said), "{error}");
}
