//! `rota completions` and `rota man`: what the program prints about itself, from its own command line.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::generate;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::NodeCommandError;
use crate::cli::{GROUPS, ProgramCommand};
use crate::exit::Exit;

/// Prints about the program with this command line.
///
/// # Errors
/// [`NodeCommandError`]: a page or standard output cannot be written.
pub fn run(asked: &ProgramCommand, program: Command) -> Result<(), NodeCommandError> {
    let name = called().unwrap_or_else(|| program.get_name().to_owned());
    let mut program = program.bin_name(&name).display_name(&name);
    let mut out = io::stdout().lock();
    match asked {
        ProgramCommand::Completions { shell } => {
            let mut script = Vec::new();
            generate(*shell, &mut program, name, &mut script);
            Ok(out.write_all(&script)?)
        }
        ProgramCommand::Man(options) => {
            // A page of `help` would say nothing that the other pages do not.
            let mut program = in_groups(program).disable_help_subcommand(true);
            program.build();
            let Some(folder) = &options.to else {
                return Ok(out.write_all(&page(program)?)?);
            };
            fs::create_dir_all(folder).map_err(|reason| unwritten(folder, reason))?;
            let pages = pages(&program, folder)?;
            let folder = folder.display();
            Ok(writeln!(out, "written: {pages} pages in {folder}")?)
        }
    }
}

/// The name by which the program was called: that of the package for Debian is `rota`.
fn called() -> Option<String> {
    let typed = env::args_os().next()?;
    let name = Path::new(&typed).file_stem()?;
    Some(name.to_str()?.to_owned())
}

/// Writes the page of a command and those of all visible commands below it. Returns their number.
fn pages(command: &Command, folder: &Path) -> Result<usize, NodeCommandError> {
    let file = folder.join(Man::new(command.clone()).get_filename());
    fs::write(&file, page(command.clone())?).map_err(|reason| unwritten(&file, reason))?;
    let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
    visible
        .map(|one| pages(one, folder))
        .sum::<Result<usize, _>>()
        .map(|below| below + 1)
}

fn unwritten(path: &Path, reason: io::Error) -> NodeCommandError {
    NodeCommandError::Write {
        path: path.into(),
        reason,
    }
}

/// The program with its subcommands in the order of its help.
fn in_groups(program: Command) -> Command {
    let names: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).collect();
    program.mut_subcommands(|one| {
        let place = names.iter().position(|name| **name == one.get_name());
        one.display_order(place.unwrap_or(names.len()))
    })
}

/// The page of one command, which ends with the exit codes.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string);
    // The heading of a section in place of the first line.
    let examples = after
        .as_deref()
        .and_then(|after| after.strip_prefix("Examples:\n"));
    let (heading, command) = match examples.map(str::to_owned) {
        Some(examples) => ("EXAMPLES", command.after_help(examples)),
        None => ("NOTES", command),
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    let mut page = page
        .replace("\n.SH EXTRA\n", &format!("\n.SH {heading}\n"))
        .into_bytes();
    let mut codes = Roff::new();
    codes.control("SH", ["EXIT STATUS"]);
    for exit in Exit::ALL {
        codes.control("TP", ["6"]);
        codes.text([roman(exit.code().to_string())]);
        codes.text([roman(exit.meaning())]);
    }
    page.extend(codes.to_roff().into_bytes());
    Ok(page)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Subcommand;

    use super::*;
    use crate::cli::{NodeCommand, PrintMan};

    /// The names of the pages of a command and of all visible commands below it.
    fn names(command: &Command, name: &str) -> Vec<String> {
        let mut all = vec![format!("{name}.1")];
        for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            all.extend(names(below, &format!("{name}-{}", below.get_name())));
        }
        all
    }

    #[test]
    fn every_visible_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let hidden = Command::new("hidden").hide(true);
        let program = NodeCommand::augment_subcommands(Command::new("x")).subcommand(hidden);
        let expected = names(&program, &called().unwrap());
        let to = folder.path().join("man1");
        run(
            &ProgramCommand::Man(PrintMan {
                to: Some(to.clone()),
            }),
            program,
        )
        .unwrap();
        let written = fs::read_dir(to).unwrap();
        let mut written: Vec<_> = written
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        written.sort();
        assert!(expected.len() > 20 && !expected.iter().any(|name| name.contains("hidden")));
        let mut expected = expected;
        expected.sort();
        assert_eq!(written, expected);
    }
}
