//! Breaks every rule of the protocol in turn, and prints which transition tests notice, as a table in
//! Markdown. Fails if one goes unnoticed:
//!
//! ```text
//! mutants [CLAUSE-OR-NAME]     the transition tests of the protocol
//! mutants federations          the tests that look for broken rules in simulated federations
//! mutants list                 what can be broken
//! ```
//!
//! The mutants are edits in `crates/protocol/mutants`. All of them are applied to a copy of the workspace,
//! which is built once; an environment variable then chooses the one that acts. The sources that are
//! shipped have no switch.

mod copy;
mod edit;
mod entries;
mod table;

use std::path::Path;
use std::process::{Command, ExitCode};

use copy::Copy;
use entries::{Mutant, MutantEntries};

fn mutants(only: Option<&str>) -> Result<(), String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = MutantEntries::read(&workspace.join("crates/protocol/mutants"))?;
    if only == Some("list") {
        let line = |of: &Mutant| println!("{}: {}: {}", of.clause, of.name, of.sentence);
        entries.mutants.iter().for_each(line);
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // target/PROFILE/examples/mutants
    let target = program
        .ancestors()
        .nth(3)
        .ok_or("this program is not where Cargo builds it")?;
    let copy = Copy::make(&workspace, target, &entries)?;
    if only == Some("federations") {
        let status = Command::new(copy.tests("bare")?).arg("broken::").status();
        let passed = status.map_err(|error| error.to_string())?.success();
        return passed
            .then_some(())
            .ok_or("a broken rule goes unnoticed".into());
    }
    let wanted = |of: &&Mutant| only.is_none_or(|only| only == of.clause || only == of.name);
    let wanted: Vec<_> = entries.mutants.iter().filter(wanted).collect();
    if wanted.is_empty() {
        return Err(format!(
            "there is no clause and no mutant {only:?}; `mutants list` has all"
        ));
    }
    table::print(&copy.tests("protocol")?, &wanted)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [] => mutants(None),
        [only] => mutants(Some(only)),
        _ => Err("mutants [CLAUSE-OR-NAME | federations | list]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
