//! `rota data`: lists public data sets, downloads them, and verifies their files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lab::datasets::{Catalogue, Client, FileState, Got, PublicFile, PublicSet, get, verify};
use serde_json::{Value, json};

use super::CommandError;
use crate::cli::{DataCommand, GetData, ListData, VerifyData, data_folder};

/// Carries out a subcommand.
pub(crate) fn run(data: &DataCommand) -> Result<(), CommandError> {
    match data {
        DataCommand::List(options) => list(options),
        DataCommand::Get(options) => download(options),
        DataCommand::Verify(options) => check(options),
    }
}

fn catalogue(file: Option<&Path>) -> Result<Catalogue, CommandError> {
    Ok(match file {
        Some(file) => Catalogue::read(file)?,
        None => Catalogue::built_in(),
    })
}

fn list(options: &ListData) -> Result<(), CommandError> {
    let catalogue = catalogue(options.catalogue.as_deref())?;
    let sets = catalogue.named(&options.names)?;
    let mut out = io::stdout().lock();
    if options.json {
        let text = json!({ "sets": sets });
        return Ok(writeln!(out, "{text:#}")?);
    }
    for set in sets {
        writeln!(out, "{}", set.name)?;
        writeln!(out, "    {}", set.title)?;
        writeln!(out, "    read by {}", set.used)?;
        writeln!(out, "    from {}: {}", set.source, set.page)?;
        let how = if set.is_downloadable() {
            "can be downloaded"
        } else {
            "no download"
        };
        let files = match set.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        writeln!(
            out,
            "    licence {}; {files} in {}/, {}; {how}",
            set.licence,
            set.folder,
            size(set.bytes())
        )?;
        if let Some(note) = &set.note {
            writeln!(out, "    {note}")?;
        }
    }
    writeln!(
        out,
        "\nThe data folder is --data DIR, ROTA_DATA or ./data. `rota data get NAME` downloads into it, \
         `rota data verify`\ncompares what is there with the checksums, which `rota data list --json` \
         prints."
    )?;
    Ok(())
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn download(options: &GetData) -> Result<(), CommandError> {
    let catalogue = catalogue(options.catalogue.as_deref())?;
    let sets = catalogue.named(&options.names)?;
    let folder = data_folder(options.data.as_deref()).unwrap_or_else(|| PathBuf::from("data"));
    let client = Client::default();
    for set in sets {
        let told = |file: &PublicFile, got: Got| {
            let what = match got {
                Got::Kept => "there already",
                Got::Downloaded => "downloaded",
            };
            let path = folder.join(&set.folder).join(&file.name);
            let line = format!("{}: {}, {what}", path.display(), size(file.bytes));
            // Whoever does not read the lines wants the files all the same.
            let _ = writeln!(io::stdout(), "{line}");
        };
        get(&client, set, &folder, options.force, told)?;
    }
    Ok(())
}

fn check(options: &VerifyData) -> Result<(), CommandError> {
    let catalogue = catalogue(options.catalogue.as_deref())?;
    let sets = catalogue.named(&options.names)?;
    let folder = data_folder(options.data.as_deref()).ok_or_else(|| {
        CommandError::usage(
            "there is no data folder: give it with --data DIR or ROTA_DATA, or make ./data",
        )
    })?;
    if !folder.is_dir() {
        return Err(CommandError::usage(format!(
            "{} is no folder",
            folder.display()
        )));
    }
    let named = !options.names.is_empty();
    let mut out = io::stdout().lock();
    let (mut wrong, mut absent, mut documents) = (0, 0, Vec::new());
    for set in sets {
        let states = verify(set, &folder);
        let missing = states
            .iter()
            .filter(|(_, state)| *state == FileState::Absent)
            .count();
        wrong += states.iter().filter(|(_, state)| bad(state)).count();
        // A set that nobody has asked for need not be there.
        if missing == states.len() && !named {
            if options.json {
                documents.push(document(set, &states));
            } else {
                writeln!(out, "{}: not there", set.name)?;
            }
            continue;
        }
        absent += if named { missing } else { 0 };
        if options.json {
            documents.push(document(set, &states));
            continue;
        }
        let right = states
            .iter()
            .filter(|(_, state)| *state == FileState::Right)
            .count();
        if right == states.len() {
            writeln!(out, "{}: right", set.name)?
        } else {
            writeln!(
                out,
                "{}: {right} of {} files are right",
                set.name,
                states.len()
            )?
        }
        for (file, state) in states
            .iter()
            .filter(|(_, state)| *state != FileState::Right)
        {
            let path = folder.join(&set.folder).join(&file.name);
            writeln!(out, "    {}: {}", path.display(), words(file, state))?;
        }
    }
    if options.json {
        writeln!(out, "{:#}", json!({ "folder": folder, "sets": documents }))?;
    }
    match (wrong, absent) {
        (0, 0) => Ok(()),
        _ => Err(CommandError::failed(format!(
            "{wrong} files are not as expected and {absent} are absent: `rota data get NAME --force` \
             downloads them anew, where they have a public address"
        ))),
    }
}

/// Returns whether a file is there and is another one than expected.
fn bad(state: &FileState) -> bool {
    !matches!(state, FileState::Right | FileState::Absent)
}

fn words(file: &PublicFile, state: &FileState) -> String {
    match state {
        FileState::Right => "right".into(),
        FileState::Absent => "absent".into(),
        FileState::Size(found) => format!("expected {} bytes, found {found}", file.bytes),
        FileState::Sum(found) => format!("expected the SHA-256 {}, found {found}", file.sha256),
        FileState::Unreadable(why) => format!("cannot be read: {why}"),
    }
}

fn document(set: &PublicSet, states: &[(&PublicFile, FileState)]) -> Value {
    let each = states.iter().map(|(file, state)| {
        let name = match state {
            FileState::Right => "right",
            FileState::Absent => "absent",
            FileState::Size(_) | FileState::Sum(_) => "different",
            FileState::Unreadable(_) => "unreadable",
        };
        json!({ "name": file.name, "state": name, "words": words(file, state) })
    });
    json!({ "name": set.name, "files": each.collect::<Vec<_>>() })
}
