//! `rota simulate`: a whole federation in this process, and a report on it.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rota::report::{self, Story};
use rota::simulations::{Options, Scenario, run as federate, scenario::BUILT_IN};

use super::CommandError;
use crate::cli::Simulate;
use crate::logging::colours;
use crate::progress::{Progress, say};

/// Runs the federation, prints what came of it and writes the report.
pub(crate) fn run(simulate: &Simulate) -> Result<(), CommandError> {
    let name = simulate.scenario.as_deref().unwrap_or(BUILT_IN[0].0);
    let scenario = Scenario::load(name)?.with(&simulate.overrides())?;
    let report = report_file(simulate, &scenario.name);
    if let Some(file) = &report {
        // Now, and not after minutes of work.
        prepare(file)?;
    }

    let progress = Progress::new(simulate.quiet, scenario.rounds);
    let options = Options {
        data: simulate.data_folder(),
        memo: simulate.memo,
        references: !simulate.no_references,
        progress: Box::new(|round| progress.round(round)),
        ..Options::default()
    };
    let summary = federate(&scenario, options);
    progress.end();
    let summary = summary?;
    let story = Story::of(&summary, &scenario.description);

    if let Some(file) = &report {
        let page = report::page(&story, &simulate.again(&scenario.name, scenario.seed));
        fs::write(file, page).map_err(|reason| unwritable(file, reason))?;
    }
    let colour = colours(&io::stdout());
    let mut out = BufWriter::new(io::stdout().lock());
    if simulate.json {
        serde_json::to_writer_pretty(&mut out, &summary).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        report::terminal::write(&mut out, &story, colour)?;
    }
    if let Some(file) = &report {
        let line = format!("report    {}", file.display());
        if simulate.json { say(&line)? } else { writeln!(out, "{line}")? }
    }
    Ok(out.flush()?)
}

/// Where the report goes: a file named after the scenario; none with `--json` unless asked for.
fn report_file(simulate: &Simulate, scenario: &str) -> Option<PathBuf> {
    let folder = match &simulate.out {
        Some(folder) => folder.as_path(),
        None if simulate.json => return None,
        None => Path::new("rota-report"),
    };
    let harmless = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let name: String = scenario.chars().map(harmless).take(64).collect();
    let name = if name.is_empty() { "federation" } else { &name };
    Some(folder.join(format!("{name}.html")))
}

/// Makes the folder and an empty file in it, or keeps the file that is there.
fn prepare(file: &Path) -> Result<(), CommandError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|reason| unwritable(folder, reason))?;
    let open = fs::OpenOptions::new().append(true).create(true).open(file);
    open.map(drop).map_err(|reason| unwritable(file, reason))
}

fn unwritable(path: &Path, reason: io::Error) -> CommandError {
    CommandError::Report { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_files_in_their_folder_whatever_the_name() {
        let simulate = Simulate::default();
        let file = |simulate, name| report_file(simulate, name).unwrap_or_default();
        assert_eq!(file(&simulate, "heart"), Path::new("rota-report/heart.html"));
        assert_eq!(file(&simulate, "../a b/ü"), Path::new("rota-report/---a-b-ü.html"));
        assert_eq!(file(&simulate, ""), Path::new("rota-report/federation.html"));
    }

    #[test]
    fn with_json_a_report_is_written_only_where_asked_for() {
        let json = Simulate { json: true, ..Simulate::default() };
        assert_eq!(report_file(&json, "heart"), None);
        let both = Simulate { out: Some("x".into()), ..json };
        assert_eq!(report_file(&both, "heart"), Some("x/heart.html".into()));
    }
}
