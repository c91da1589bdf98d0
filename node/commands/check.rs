//! `rota check`: looks at everything that an institution's node needs.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::check::{CheckOptions, CheckResult, CheckVerdict, check};
use crate::federation::own_tables;
use crate::institution::{Configured, Data, SetupError};
use crate::prompt::Prompt;
use crate::row_answers::SaidOfRows;
use formatting::numbers;
use task::questions::RowQuestion;

use super::names::write_names;
use super::{NodeCommandError, wrapped};
use crate::cli::CheckNode;

/// Prints what was found, and asks at a terminal what only a person can say of the rows; fails if something is bad, and
/// in another way if only others are missing.
pub(crate) fn run(options: &CheckNode) -> Result<(), NodeCommandError> {
    let config = options.node.file()?;
    let looked = CheckOptions {
        network: !options.offline,
        rehearse: options.rehearse,
        patience: options.timeout,
    };
    let mut ask = Prompt::at_terminal().filter(|_| !options.json);
    let found = loop {
        let configured = Configured::load(&config).map_err(SetupError::from)?;
        let found = check(&configured, &looked)?;
        print(&found, options.json)?;
        let Some(ask) = ask.as_mut().filter(|_| !found.questions.is_empty()) else {
            break found;
        };
        if !answered(&config, &configured, &found.questions, ask)? {
            break found;
        }
    };
    match found.verdict {
        CheckVerdict::Ready => Ok(()),
        CheckVerdict::Waiting => Err(NodeCommandError::Waiting),
        CheckVerdict::NotReady if !found.questions.is_empty() => {
            Err(NodeCommandError::Usage(format!(
                "{} about the rows, which only a person can answer: in {} as above, or by running this at a terminal",
                numbers::plural(found.questions.len(), "question"),
                config.display()
            )))
        }
        CheckVerdict::NotReady => Err(NodeCommandError::Failed(
            "this node cannot take part as it is".into(),
        )),
    }
}

fn print(found: &CheckResult, json: bool) -> Result<(), NodeCommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        let document = serde_json::to_string_pretty(found).map_err(io::Error::other)?;
        writeln!(out, "{}", numbers::escaped(&document))?;
    } else {
        for line in found.lines() {
            writeln!(out, "{}", wrapped(&line))?;
        }
    }
    Ok(out.flush()?)
}

/// Asks about the rows, shows what stands for the answers in `node.toml`, and writes it there if the person says yes;
/// whether it did.
fn answered(
    config: &Path,
    configured: &Configured,
    questions: &[RowQuestion],
    ask: &mut Prompt<'_>,
) -> Result<bool, NodeCommandError> {
    let Data::Rows(before) = &configured.data else {
        return Ok(false);
    };
    let mut rows = before.clone();
    for question in questions {
        let said = SaidOfRows::asked(question, "The agreement", ask)?;
        if !said.add_to(question, &mut rows) {
            // The findings name the remedy.
            return Ok(false);
        }
    }
    let tables = own_tables(before).into_iter().zip(own_tables(&rows));
    for (_, now) in tables.filter(|(before, now)| before != now) {
        now.iter().try_for_each(|line| ask.say(line))?;
    }
    let wanted = ask.says_yes(&format!("Write this into {}?", config.display()))?;
    Ok(wanted && write_names(config, &rows)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::fixture::North;

    /// Returns what a check of north's rows asks, in which every severity of 3 is 7777.
    fn asked(configured: &Configured) -> Vec<RowQuestion> {
        let options = CheckOptions {
            network: false,
            rehearse: false,
            patience: Duration::from_secs(1),
        };
        check(configured, &options).unwrap().questions
    }

    #[test]
    fn answers_are_written_after_a_yes_and_asked_no_more() {
        for (answers, line) in [
            ("perhaps\nmeasured\ny\n", "keep = { severity = [\"7777\"] }"),
            ("missing\nyes\n", "missing.severity = [\"7777\"]"),
            ("missing\nn\n", ""),
        ] {
            let north = North::new();
            let (file, config) = ("rows.csv", north.folder.path().join("node.toml"));
            let file = north.folder.path().join(file);
            let rows = fs::read_to_string(&file).unwrap();
            fs::write(&file, rows.replace(",3,", ",7777,")).unwrap();
            let before = fs::read_to_string(&config).unwrap();
            let configured = Configured::load(&config).unwrap();
            let questions = asked(&configured);
            assert_eq!(questions.len(), 1);
            let mut shown = Vec::new();
            let mut ask = Prompt::scripted(answers, &mut shown);
            let wrote = answered(&config, &configured, &questions, &mut ask).unwrap();
            drop(ask);
            let shown = String::from_utf8(shown).unwrap();
            let after = fs::read_to_string(&config).unwrap();
            assert!(shown.contains("Write this into"), "{shown}");
            assert_eq!((wrote, after != before), (!line.is_empty(), wrote));
            assert!(after.contains(line) && shown.contains(line), "{after}");
            let left = asked(&Configured::load(&config).unwrap());
            assert_eq!(left.is_empty(), wrote, "{left:?}");
        }
    }
}
