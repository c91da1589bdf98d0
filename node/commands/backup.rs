//! `rota backup` and `rota restore`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::backup::{self, Manifest, RestoreConsent, RestoreError, RestoredBackup};
use formatting::numbers;
use learn::export;
use task::TaskConfig;

use super::model::NodeModels;
use super::{NodeCommandError, wrapped};
use crate::cli::{Backup, Restore};
use crate::logging;
use crate::prompt::Prompt;

/// Writes a backup, and says what is in it and what is not.
pub(crate) fn backup(options: &Backup) -> Result<(), NodeCommandError> {
    // Before models are read, which takes longer.
    if options.file.exists() {
        return Err(backup::BackupError::Exists(options.file.clone()).into());
    }
    let config = options.node.file()?;
    let model = match model(&config) {
        Ok(model) => Some(model),
        Err(why) => {
            let why = numbers::message(&why.to_string());
            let _ = logging::say(&format!("note: no model is in the backup: {why}"));
            None
        }
    };
    let held = model.is_some();
    let saved = backup::save(&config, model, &options.file)?;
    let model = if held { ", its model" } else { "" };
    let lines = [
        format!(
            "written: {}, {}: {}, with its key, its agreement and its personal state{model}",
            options.file.display(),
            numbers::bytes(saved.size),
            of(&saved.manifest),
        ),
        "It holds the institution's secret key: whoever has the file can sign in its name. Keep it as \
         carefully as the key, and encrypt it before it leaves this machine."
            .to_owned(),
        "Not in it: what the node has signed (on purpose); its rows; programs; the models of others, which the \
         node fetches again."
            .to_owned(),
    ];
    say(&lines)
}

/// The model that the institution serves, or that of its coalition, with its card.
fn model(config: &Path) -> Result<Vec<u8>, NodeCommandError> {
    let node = NodeModels::load(config)?;
    let choice = crate::model::Choice {
        which: crate::model::Which::Served,
        round: None,
        instead: false,
    };
    if let TaskConfig::External(_) = node.institution.agreement.task {
        return Ok(node.choose(choice)?.model.document().to_vec());
    }
    let (card, model) = node.card_of(choice)?;
    Ok(export::safetensors(&card, &model))
}

/// Puts a backup back, and says what follows.
pub(crate) fn restore(options: &Restore) -> Result<(), NodeCommandError> {
    let restored = put_back(options)?;
    let Manifest { made, .. } = &restored.manifest;
    let mut lines = vec![format!(
        "restored: {}, as of {made}",
        of(&restored.manifest)
    )];
    let written = restored.written.iter();
    lines.extend(written.map(|path| format!("  {}", path.display())));
    lines.push(
        "The journal counts as lost, because the node may have signed since: the node only listens until none of \
         its earlier votes can have an effect, and reports when it takes part again."
            .to_owned(),
    );
    if restored.members < 3 {
        lines.push(format!(
            "In a federation of {} it would listen forever, because too few members are left to confirm that: ask \
             the other member for a new key (`rota federation rekey`), or continue without it (`rota recover`).",
            numbers::plural(restored.members, "member")
        ));
    }
    lines.extend(others_up(restored.members, restored.quorum));
    lines.push(
        "Never start it while another node with this key runs anywhere. If the key was replaced since, the others \
         will not know this one."
            .to_owned(),
    );
    let config = restored.config.display();
    lines.push(format!(
        "Next: rota check --config {config}, then rota run --config {config}"
    ));
    say(&lines)
}

/// Puts it back, after asking about what a backup that somebody changed could use.
fn put_back(options: &Restore) -> Result<RestoredBackup, NodeCommandError> {
    let mut consent = RestoreConsent {
        outside: options.outside,
        unsigned: options.unsigned,
    };
    loop {
        let why = match backup::restore(&options.file, &options.out, consent) {
            Err(why @ (RestoreError::Outside { .. } | RestoreError::Unsigned(_))) => why,
            restored => return Ok(restored?),
        };
        let (option, allowed) = match why {
            RestoreError::Outside { .. } => ("--outside", &mut consent.outside),
            _ => ("--unsigned", &mut consent.unsigned),
        };
        let mut ask = Prompt::at_terminal().ok_or_else(|| {
            NodeCommandError::Usage(format!(
                "{why}. If nobody else could change this backup, and that is right, add {option}"
            ))
        })?;
        *allowed = ask.says_yes(&wrapped(&format!("{why}. Restore it all the same?")))?;
        if !*allowed {
            return Err(why.into());
        }
    }
}

/// Returns the number of others that have to run at the same time before the node takes part, as text, in a federation
/// of so many members with this quorum; `None` where they are too few for that.
fn others_up(members: usize, quorum: usize) -> Option<String> {
    let others = members.saturating_sub(1);
    let how = match (others, quorum) {
        (others, quorum) if others < quorum => return None,
        (others, quorum) if others == quorum => format!("All {others} other nodes have"),
        (others, quorum) => format!("{quorum} of the {others} other nodes have"),
    };
    Some(format!(
        "{how} to run at the same time until then, because it asks them how far they are. Where one is down, nothing \
         may become final meanwhile, not even a new key for it: start that one first, and wait with everything that \
         stops another (a new key, another restore, an update) until this node reports that it takes part."
    ))
}

fn of(manifest: &Manifest) -> String {
    let Manifest {
        silo,
        name,
        federation,
        round,
        ..
    } = manifest;
    let when = match round {
        0 => "before its first round".to_owned(),
        round => format!("after round {round}"),
    };
    format!("{silo} in the federation {name} ({federation:.8}) {when}")
}

fn say(lines: &[String]) -> Result<(), NodeCommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in lines {
        writeln!(out, "{}", wrapped(line))?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_restores_reads_how_many_others_have_to_run() {
        for (members, quorum, said) in [
            (3, 2, "All 2 other nodes have to run"),
            (4, 3, "All 3 other nodes have to run"),
            (5, 4, "All 4 other nodes have to run"),
            (7, 5, "5 of the 6 other nodes have to run"),
        ] {
            let line = others_up(members, quorum).unwrap_or_default();
            assert!(
                line.starts_with(said) && line.contains("a new key"),
                "{line}"
            );
        }
        // It would listen for ever, which is said instead.
        assert_eq!(others_up(2, 2), None);
    }
}
