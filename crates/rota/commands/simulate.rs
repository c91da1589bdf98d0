//! `rota simulate`: runs a whole federation in this process and reports on it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use formatting::numbers;
use indicatif::ProgressBar;
use lab::loopback::{self, Loopback};
use lab::summary::{ModelKind, Summary, Unusable};
use lab::{KeepError, run as federate, run_and_keep};
use mesh::Transport;
use methods::strategy::Method;
use node::pool::Workers;
use report::{self, Story};
use simulations::{
    EnvironmentConfig, EnvironmentFactory, Options, RoundDone, RunError, Scenario, Signatures,
    Surrounding, scenario::BUILT_IN,
};

use super::CommandError;
use crate::caller::Caller;
use crate::cli::{Check, MeshKind, SigningKind, Simulate, typed};
use crate::progress::{RoundProgress, say};
use node::cli::TransportKind;
use node::commands::ask_about_scenario;
use node::logging::colours;
use node::prompt::Prompt;
use task::data::DataError;

/// Runs the federation, prints the result and writes the HTML report.
pub(crate) fn run(simulate: &Simulate, bar: ProgressBar) -> Result<(), CommandError> {
    let caller = simulate.caller.connected();
    let name = simulate.scenario.as_deref().unwrap_or(BUILT_IN[0].0);
    let mut scenario = Scenario::load(name)?.with(&simulate.overrides())?;
    if let Some(custom) = simulate.caller.rule.first() {
        scenario.strategy.method = Method::Custom(custom.clone());
    }
    let report = report_file(simulate, &scenario.name);
    let began = SystemTime::now().duration_since(UNIX_EPOCH);
    let date = began.map_or_else(|_| String::new(), |since| numbers::date(since.as_secs()));
    if let Some(folder) = &simulate.keep {
        empty(folder)?;
    }
    // A program that runs this one cannot be asked.
    let mut ask = Prompt::at_terminal().filter(|_| caller.is_none());
    let summary = loop {
        let found = federated(simulate, &scenario, caller.clone(), bar.clone());
        match (found, &mut ask) {
            (Err(CommandError::Run(RunError::Data(DataError::Unanswered(open)))), Some(ask))
                if !open.questions.is_empty() =>
            {
                ask_about_scenario(&open.questions, &mut scenario.task, &scenario.file, ask)?;
            }
            (found, _) => break found?,
        }
    };
    let story = Story::of(&summary, &scenario.description);

    // Files are written first, so that they are complete even if the reader of the text closes the
    // pipe early. If one cannot be written, the text is still printed.
    let written = report
        .as_deref()
        .map(|file| write_page(file, &report::page(&story, &typed(), &date)));
    let drawn = simulate
        .timeline
        .as_deref()
        .map_or(Ok(()), |file| draw(file, &story));
    let colour = colours(&io::stdout());
    let mut out = BufWriter::new(io::stdout().lock());
    if simulate.json {
        let json = serde_json::to_string_pretty(&summary).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        report::terminal::write(&mut out, &story, colour)?;
    }
    out.flush()?;
    drawn?;
    let Some(written) = written else {
        return of_use(&summary);
    };
    let file = written?;
    let line = format!("report    {}", file.display());
    if simulate.json {
        say(&line)?;
    } else {
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    of_use(&summary)
}

/// The federation of a scenario, run once.
fn federated(
    simulate: &Simulate,
    scenario: &Scenario,
    caller: Option<Caller>,
    bar: ProgressBar,
) -> Result<Summary, CommandError> {
    let surrounding = surrounding(simulate, scenario)?;
    let progress = RoundProgress::new(bar, simulate.quiet, scenario.rounds);
    let options = Options {
        data: simulate.data_folder(),
        cache: simulate.check == Check::Once,
        signatures: signatures(simulate)?,
        references: !simulate.no_references,
        keep_basis: true,
        progress: Box::new(|round| progress.round(round)),
        ends: caller.filter(|_| simulate.caller.watched).map(ends),
        surrounding,
        ..Options::default()
    };
    let summary = match &simulate.keep {
        Some(folder) => run_and_keep(scenario, options, folder).map_err(|error| match error {
            KeepError::Run(error) => error.into(),
            error => CommandError::failed(error.to_string()),
        }),
        None => federate(scenario, options).map_err(CommandError::from),
    };
    progress.end();
    summary
}

/// Returns what asks the process that runs this one after every round whether to go on.
fn ends(caller: Caller) -> Box<dyn FnMut(&RoundDone) -> bool> {
    Box::new(move |done| caller.ends(done))
}

/// Refuses a result whose models are of no use, after it has been reported.
fn of_use(summary: &Summary) -> Result<(), CommandError> {
    let adopted = |one: &&Unusable| one.model == ModelKind::Coalition;
    let found = || summary.unusable.iter().filter(adopted);
    match (summary.usable, found().next()) {
        (false, Some(first)) => Err(CommandError::NoUse {
            silos: found().count(),
            members: summary.silos.iter().filter(|silo| !silo.outside).count(),
            silo: first.silo.clone(),
            reason: first.reason.clone(),
        }),
        _ => Ok(()),
    }
}

/// Returns what the silos live in.
fn surrounding(
    simulate: &Simulate,
    scenario: &Scenario,
) -> Result<Surrounding<'static>, CommandError> {
    if let Some(transport) = sockets(simulate)? {
        loopback::check(scenario)?;
        return Ok(over(transport));
    }
    if (simulate.mesh, simulate.check) == (MeshKind::Direct, Check::EveryMember) {
        return Err(CommandError::usage(
            "--check every-member is for members that check each other, which --mesh direct has none of: leave \
             one of them out",
        ));
    }
    if simulate.mesh == MeshKind::Direct && simulate.timeline.is_some() {
        return Err(CommandError::usage(
            "--timeline draws who led when, and --mesh direct has no leads: leave one of them out",
        ));
    }
    Ok(match simulate.mesh {
        MeshKind::Direct => Surrounding::Direct,
        MeshKind::Auto => Surrounding::of(scenario),
        MeshKind::Virtual | MeshKind::Loopback => Surrounding::Virtual,
    })
}

/// Refuses a folder that has something in it already.
pub(super) fn empty(folder: &Path) -> Result<(), CommandError> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(CommandError::usage(format!(
                "--keep {} is not empty: name a new folder",
                folder.display()
            ))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(reason) => Err(unwritable(folder, reason)),
    }
}

/// Returns how members sign.
///
/// # Errors
/// [`CommandError`]: simulated signatures are asked for where members check each other.
fn signatures(simulate: &Simulate) -> Result<Signatures, CommandError> {
    let alone = simulate.check == Check::EveryMember || simulate.mesh == MeshKind::Loopback;
    match simulate.signatures {
        Some(SigningKind::Simulated) if alone => Err(CommandError::usage(
            "--signatures simulated is for members whose messages one process checks for all: leave it out \
             with --check every-member and --mesh loopback",
        )),
        Some(SigningKind::Ed25519) => Ok(Signatures::Ed25519),
        Some(SigningKind::Simulated) | None => Ok(Signatures::Simulated),
    }
}

/// Makes an environment over real sockets.
fn over(transport: Transport) -> Surrounding<'static> {
    Surrounding::Made(Box::new(move |config: &EnvironmentConfig<'_>| {
        let environment = Loopback::new(config, transport, Workers::all_cores())?;
        Ok(Box::new(environment) as Box<dyn EnvironmentFactory>)
    }))
}

/// The file of the report, named after the scenario (a second one gets a number); none with `--json` without `--out`.
fn report_file(simulate: &Simulate, scenario: &str) -> Option<PathBuf> {
    let folder = match &simulate.out {
        Some(folder) => folder.as_path(),
        None if simulate.json => return None,
        None => Path::new("rota-report"),
    };
    let name = node::commands::file_name(scenario, "federation");
    Some(folder.join(format!("{name}.html")))
}

/// Writes a page to `NAME.html`, or where there is one to `NAME-2.html`, `NAME-3.html` and so on, so
/// that no report of another run is lost. Returns the file.
fn write_page(file: &Path, page: &str) -> Result<PathBuf, CommandError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|reason| unwritable(folder, reason))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let numbered = |number: u64| match number {
        1 => file.to_owned(),
        _ => folder.join(format!("{name}-{number}.html")),
    };
    for number in 1.. {
        let file = numbered(number);
        match File::create_new(&file) {
            Ok(mut new) => {
                let written = new.write_all(page.as_bytes());
                return written
                    .map(|()| file.clone())
                    .map_err(|reason| unwritable(&file, reason));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(reason) => return Err(unwritable(&file, reason)),
        }
    }
    unreachable!("one of 2^64 names is free")
}

/// Writes the drawing of who led when.
fn draw(file: &Path, story: &Story) -> Result<(), CommandError> {
    fs::write(file, report::leads_svg(story)).map_err(|reason| {
        let file = file.display();
        CommandError::failed(format!("cannot write --timeline {file}: {reason}"))
    })
}

fn unwritable(path: &Path, reason: io::Error) -> CommandError {
    CommandError::Report {
        path: path.to_owned(),
        reason,
    }
}

/// The sockets to run on; none without them. Refuses a transport for anything else.
fn sockets(simulate: &Simulate) -> Result<Option<Transport>, CommandError> {
    match (simulate.mesh, simulate.transport) {
        (MeshKind::Loopback, chosen) => Ok(Some(chosen.unwrap_or(TransportKind::Quic).into())),
        (_, None) => Ok(None),
        (_, Some(_)) => Err(CommandError::Transport),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_transport_is_for_real_sockets() {
        let sockets = |mesh, transport| {
            let simulate = Simulate {
                mesh,
                transport,
                ..Simulate::default()
            };
            sockets(&simulate).ok()
        };
        let (tcp, none) = (Some(TransportKind::Tcp), None);
        assert_eq!(sockets(MeshKind::Virtual, none), Some(None));
        for without in [MeshKind::Virtual, MeshKind::Direct, MeshKind::Auto] {
            assert_eq!(sockets(without, tcp), None);
        }
        assert_eq!(
            sockets(MeshKind::Loopback, none),
            Some(Some(Transport::Quic))
        );
        assert_eq!(sockets(MeshKind::Loopback, tcp), Some(Some(Transport::Tcp)));
    }

    #[test]
    fn the_report_stays_in_its_folder_for_any_scenario_name() {
        let simulate = Simulate::default();
        let file = |simulate, name| report_file(simulate, name).unwrap_or_default();
        assert_eq!(
            file(&simulate, "heart"),
            Path::new("rota-report/heart.html")
        );
        assert_eq!(
            file(&simulate, "../a b/ü"),
            Path::new("rota-report/---a-b-ü.html")
        );
        assert_eq!(
            file(&simulate, ""),
            Path::new("rota-report/federation.html")
        );
    }

    #[test]
    fn a_second_report_does_not_overwrite_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let file = folder.join("heart.html");
        let written: Vec<_> = ["one", "two", "three"]
            .into_iter()
            .filter_map(|page| write_page(&file, page).ok())
            .collect();
        let names = ["heart.html", "heart-2.html", "heart-3.html"];
        assert_eq!(written, names.map(|name| folder.join(name)));
        let texts = written
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok());
        assert_eq!(texts.collect::<Vec<_>>(), ["one", "two", "three"]);
    }

    #[test]
    fn the_error_names_the_folder_that_cannot_be_made() {
        let file = Path::new(env!("CARGO_MANIFEST_PATH")).join("below/x.html");
        let error = write_page(&file, "").map_err(|error| error.to_string());
        assert!(
            error.is_err_and(|text| text.contains("Cargo.toml/below") && text.contains("--out"))
        );
    }

    #[test]
    fn with_json_a_report_is_written_only_with_out() {
        let json = Simulate {
            json: true,
            ..Simulate::default()
        };
        assert_eq!(report_file(&json, "heart"), None);
        let both = Simulate {
            out: Some("x".into()),
            ..json
        };
        assert_eq!(report_file(&both, "heart"), Some("x/heart.html".into()));
    }
}
