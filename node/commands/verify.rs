//! `rota verify`: checks a node's state folder, or evidence against a member.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::verify::{EVIDENCE, EvidenceFile, verify};
use agreement::Agreement;
use formatting::numbers;
use serde::Serialize;

use super::{NodeCommandError, journal_of, quietly};
use crate::cli::{Verify as Arguments, data_folder};

/// Verifies the state of a node, or a file of evidence.
pub(crate) fn run(arguments: &Arguments) -> Result<(), NodeCommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let federation = arguments.federation.as_deref();
    if let Some(path) = &arguments.evidence {
        if path.is_dir() {
            return Err(NodeCommandError::Usage(format!(
                "{} is a folder, and no file of evidence: name a node with --config, or a state folder with \
                 --state",
                path.display()
            )));
        }
        let file = EvidenceFile::read(path)?;
        let agreement = agreement(path, federation)?;
        let epoch = agreement.as_ref().map(|agreement| &*agreement.epoch);
        let proof = file.check(path, epoch)?;
        if arguments.json {
            print(&mut out, &proof)?
        } else {
            writeln!(out, "{}", super::wrapped(&proof.sentence()))?
        }
    } else {
        let state = journal_of(&arguments.of)?;
        let data = data_folder(arguments.data.as_deref());
        let verified = quietly(|| verify(&state, federation, data.as_deref()))?;
        if arguments.json {
            print(&mut out, &verified)?
        } else {
            verified.write(&mut out)?
        }
    }
    Ok(out.flush()?)
}

/// The agreement that is given, or that lies in the state folder around the file.
fn agreement(file: &Path, given: Option<&Path>) -> Result<Option<Agreement>, NodeCommandError> {
    if let Some(given) = given {
        return Ok(Some(Agreement::load_kept(given)?));
    }
    let folder = file.parent().filter(|folder| folder.ends_with(EVIDENCE));
    let kept = folder.and_then(Path::parent);
    let kept = kept.map(|state| state.join("federation.toml"));
    let kept = kept.filter(|kept| kept.is_file());
    Ok(kept.map(|kept| Agreement::load_kept(&kept)).transpose()?)
}

fn print(out: &mut impl Write, document: &impl Serialize) -> Result<(), NodeCommandError> {
    let json = serde_json::to_string_pretty(document).map_err(io::Error::from)?;
    Ok(writeln!(out, "{}", numbers::escaped(&json))?)
}
