//! The laboratory of rotating leads with real processes: every silo is a process `rota run` with files
//! as an institution has them, and leads are killed on schedule.
//!
//! [`rotation()`] runs the experiment that [`crate::rotation`] runs in virtual time, and gives the same
//! document, with the simulation beside it. Where the nodes run is one of three grounds:
//!
//! | ground | nodes | links |
//! |---|---|---|
//! | loopback | processes on this machine | datagrams pass through a proxy in this program, which delays, loses, limits and cuts them |
//! | namespaces | each in a network namespace of its own, on this machine | `tc` on the interface of each |
//! | hosts | on machines that `ssh` reaches | as they are |
//!
//! A director reads the JSON lines of all nodes while they run, carries out the faults, and ends the
//! federation when all rounds are done or the time is over. The result is read from the lines by
//! [`crate::history`], with the times of the kills as the director knows them.

mod director;
mod faults;
mod hosting;
mod hosts;
mod local;
mod namespaces;
mod prepared;
mod proxy;
mod trial;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::rotation::{
    self, Deployment, Findings, LabOptions, Laboratory, RotationExperiment, RotationRun,
};
use learn::Study;
use protocol::parameters::Rotation;
use simulations::{RunError, Scenario};
use task::data::DataError;

use crate::demo::{self, DemoError};
use crate::history::HistoryError;
use formatting::numbers;

use director::DeployDirector;
use hosting::Hosting;
use prepared::PreparedHosting;

pub use hosting::NetworkKind;
pub use hosts::{Host, HostsError, parse as parse_hosts};

/// Most nodes of a deployment on one machine; links between more need more sockets than a process may
/// have open.
pub const MOST: usize = 16;
/// What runs have, beyond the limit of the simulation, for processes to start and to connect.
const STARTING: Duration = Duration::from_secs(20);

/// A deployment.
pub struct DeploymentPlan<'a> {
    /// The experiment; its limit of time counts from the start of the processes.
    pub experiment: &'a RotationExperiment,
    /// The network, on this machine; `None`: namespaces if all that the scenario asks of links can be
    /// done there, otherwise loopback.
    pub network: Option<NetworkKind>,
    /// The machines to run on, instead of this one.
    pub hosts: Vec<Host>,
    /// Configuration of `ssh` (`ssh -F`), where it is not the user's own.
    pub ssh_config: Option<PathBuf>,
    /// First port of the nodes on every host.
    pub base_port: u16,
    /// The program to run: `rota` itself.
    pub program: PathBuf,
    /// Folder for what every run leaves: lines and logs of the nodes.
    pub folder: PathBuf,
    /// Folder of data files.
    pub data: Option<PathBuf>,
    /// Called with a sentence about what happens now.
    pub say: Box<dyn FnMut(&str) + 'a>,
}

/// Why a deployment failed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Something that processes cannot carry out, or a number out of range.
    #[error("{0}")]
    Refused(String),
    /// The simulation beside it.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The files of the nodes.
    #[error(transparent)]
    Files(#[from] DemoError),
    /// The lines of the nodes.
    #[error(transparent)]
    Lines(#[from] HistoryError),
    /// A file or folder.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A program that this needs.
    #[error("{program} failed: {why}")]
    Program {
        /// The program with its arguments.
        program: String,
        /// What the program said.
        why: String,
    },
    /// A node ended by itself.
    #[error(
        "the node of {silo} ended by itself ({status}); the end of its log {}:\n{tail}", log.display()
    )]
    Ended {
        /// The silo.
        silo: String,
        /// Exit status of the node, and the rotation.
        status: String,
        /// The file of its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The user interrupted the experiment.
    #[error("interrupted: all nodes were stopped")]
    Interrupted,
}

impl DeployError {
    /// Returns whether the command line or a file has to be changed.
    pub fn is_usage(&self) -> bool {
        let refused = matches!(self, Self::Refused(_));
        refused
            || matches!(
                self,
                Self::Run(RunError::Setup(_) | RunError::Data(DataError::Config(_)))
            )
    }
}

/// Runs the experiment in virtual time, and then with processes.
///
/// # Errors
/// [`DeployError`]: the scenario asks for what processes cannot do, a program that is needed fails, or
/// a node ends by itself. A federation that does not finish is no error: that is what is measured.
pub fn rotation(mut plan: DeploymentPlan<'_>) -> Result<Laboratory, DeployError> {
    let experiment = plan.experiment;
    let scenario = &experiment.scenario;
    let study = silos(scenario, plan.data.as_deref())?;
    let names: Vec<String> = study.silos.iter().map(|silo| silo.name.clone()).collect();
    let faults = planned(&plan, &names)?;
    (plan.say)("simulating the same experiment first");
    let simulated = rotation::rotation(
        experiment,
        LabOptions {
            data: plan.data.clone(),
            ..LabOptions::default()
        },
    )?;
    let limit = Duration::from_secs_f64(simulated.limit_seconds) + STARTING;
    let prepared = PreparedHosting::new(&plan, scenario, names.len())?;
    let runs = experiment.seeds * experiment.policies.len();
    (plan.say)(&format!(
        "{}; {}, each at most {}",
        prepared.words(),
        numbers::plural(runs, "run"),
        numbers::seconds(limit.as_secs_f64()),
    ));
    let mut trials: Vec<Vec<RotationRun>> = vec![Vec::new(); experiment.policies.len()];
    let mut network = None;
    for seed in 0..experiment.seeds as u64 {
        for (nth, &policy) in experiment.policies.iter().enumerate() {
            let mut scenario = scenario.clone();
            scenario.seed += seed;
            scenario.protocol.rotation.0 = policy;
            let folder = plan.folder.join(format!("{policy}-{}", scenario.seed));
            let mut ground = prepared.ground(&scenario, names.len())?;
            let trial = run(
                &mut plan,
                &scenario,
                policy,
                &mut *ground,
                &faults,
                (&folder, limit),
            )?;
            let done = nth + 1 + seed as usize * experiment.policies.len();
            (plan.say)(&format!(
                "{done}/{runs} {policy}, seed {}: {} of {} rounds in {}",
                scenario.seed,
                trial.rounds,
                scenario.rounds,
                numbers::seconds(trial.seconds),
            ));
            trials[nth].push(trial);
            network.get_or_insert_with(|| ground.facts());
        }
    }
    let facts = network.unwrap_or_default();
    let mut notes = prepared.notes();
    notes.extend(facts.notes);
    let all = rotation::laboratory(Findings {
        scenario,
        policies: &experiment.policies,
        silos: names,
        faults: &experiment.faults(study.silos.len()),
        limit,
        metric: rotation::metric_of(&study),
        trials,
    });
    Ok(Laboratory {
        deployment: Some(Deployment {
            network: facts.network,
            machines: facts.machines,
            bytes: facts.bytes,
            notes,
            simulated: Box::new(simulated),
        }),
        ..all
    })
}

/// The silos of a scenario, where processes can be their nodes.
fn silos(scenario: &Scenario, data: Option<&Path>) -> Result<Study, DeployError> {
    if !scenario.outside.is_empty() {
        let what =
            "`unseen` names silos that take no part; a deployment runs all of them: remove it";
        return Err(DeployError::Refused(format!("{}: {what}", scenario.file)));
    }
    let study = scenario.study(data);
    let study = study.map_err(|error| DeployError::Run(RunError::Data(error)))?;
    if !(2..=MOST).contains(&study.silos.len()) {
        return Err(DeployError::Refused(format!(
            "a deployment runs 2 to {MOST} nodes, and {} has {} silos: choose with --silos",
            scenario.file,
            study.silos.len()
        )));
    }
    Ok(study)
}

/// The faults of the experiment, where the nodes of these names can have them.
fn planned(
    plan: &DeploymentPlan<'_>,
    names: &[String],
) -> Result<Vec<faults::PlannedFault>, DeployError> {
    let faults = plan.experiment.faults(names.len());
    let nodes = faults::Where {
        on_hosts: !plan.hosts.is_empty(),
        network: plan.network,
    };
    faults::check(&faults, names, nodes)
}

/// One run: a rotation and a seed.
fn run(
    plan: &mut DeploymentPlan<'_>,
    scenario: &Scenario,
    policy: Rotation,
    ground: &mut dyn Hosting,
    faults: &[faults::PlannedFault],
    (folder, limit): (&Path, Duration),
) -> Result<RotationRun, DeployError> {
    let work = |reason| DeployError::Write {
        path: folder.into(),
        reason,
    };
    std::fs::create_dir_all(folder).map_err(work)?;
    // Keys and rows are for the time of the run; lines and logs stay.
    let files = tempfile::Builder::new().prefix("rota-lab-").tempdir();
    let files = files.map_err(work)?;
    let places = ground.places().clone();
    let (_, members) = demo::files(files.path(), plan.data.as_deref(), scenario, |_| Ok(places))?;
    for member in &members {
        without_serving(&member.config)?;
    }
    ground.install(files.path(), &members)?;
    let mut director = DeployDirector::new(ground, &members, folder, policy)?;
    let ran = director.run(faults, limit, scenario.rounds);
    let logs = director.end();
    trial::trial(scenario, &ran?, &logs?)
}

/// Returns what a silo serves after the last round is no part of the experiment, and takes many trainings.
fn without_serving(config: &Path) -> Result<(), DeployError> {
    let changed = std::fs::read_to_string(config)
        .and_then(|text| std::fs::write(config, format!("{text}\n[serve]\nfolds = 0\n")));
    changed.map_err(|reason| DeployError::Write {
        path: config.into(),
        reason,
    })
}

/// Runs a program to its end and gives what it printed.
fn output(command: &mut std::process::Command) -> Result<String, DeployError> {
    let program = || {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    };
    let program = program();
    let failed = |why: String| DeployError::Program {
        program: program.clone(),
        why,
    };
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(failed(if said.is_empty() {
            output.status.to_string()
        } else {
            said.to_owned()
        }));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
