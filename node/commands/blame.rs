//! `rota blame`: who corrupted the sum of a void round.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::blame::{Blame, DisclosureFile, blame, disclosure};
use crate::institution::short_id::{DIGITS, typed};
use crate::prompt::Prompt;
use crate::store;
use formatting::numbers;
use protocol::Hash;

use super::{NodeCommandError, journal_of, quietly, vacant, wrapped, write};
use crate::cli::BlameRound;

/// Says what is known of a void round, discloses this institution's secret of it, or examines those of
/// others.
pub(crate) fn run(options: &BlameRound) -> Result<(), NodeCommandError> {
    let (state, federation) = (journal_of(&options.of)?, options.federation.as_deref());
    let found = quietly(|| blame(&state, federation, options.round, &options.with))?;
    if let Some(file) = &options.disclose {
        vacant(file, false)?;
        let own = quietly(|| disclosure(&state, federation, options.round))?;
        return disclose(options, &found, &own, file);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let json = serde_json::to_string_pretty(&found).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        found.write(&mut out, wrapped)?;
    }
    Ok(out.flush()?)
}

/// Shows what is given away, asks, and writes the file.
fn disclose(
    options: &BlameRound,
    found: &Blame,
    own: &DisclosureFile,
    file: &Path,
) -> Result<(), NodeCommandError> {
    let mut out = io::stdout().lock();
    for line in found.head().iter().chain(&own.warning()) {
        writeln!(out, "{}", wrapped(line))?;
    }
    if !agreed(options, own)? {
        return Ok(());
    }
    let text = own.text().map_err(io::Error::from)?;
    write(file, &text)?;
    // Until the institution gives it to the others, it is for nobody else on this machine.
    store::close_file(file)?;
    let line = format!(
        "wrote the secret of {} in round {} into {}: give it to those who shall examine it; they run `rota blame {} \
         --with FILE...` with the files of all",
        numbers::plain(&own.member),
        own.round,
        file.display(),
        own.round
    );
    Ok(writeln!(out, "{}", wrapped(&line))?)
}

/// Returns whether the institution agrees, for this round and no other.
fn agreed(options: &BlameRound, own: &DisclosureFile) -> Result<bool, NodeCommandError> {
    let block = agreement::public_key(&own.block).map(|key| Hash(key.0));
    if let Some(consent) = &options.consent {
        let same = typed(consent, block);
        return same.map(|_| true).map_err(|why| {
            NodeCommandError::Usage(format!(
                "--consent names another round than {}: the block {why}",
                own.round
            ))
        });
    }
    let mut ask = Prompt::at_terminal().ok_or_else(|| {
        NodeCommandError::Usage(format!(
            "nobody can be asked here: read the lines above and add --consent {}",
            &own.block[..DIGITS.min(own.block.len())]
        ))
    })?;
    Ok(ask.says_yes(&format!("Disclose it for {}?", numbers::plain(&own.member)))?)
}
