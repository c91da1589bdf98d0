//! `rota identity`: makes or shows the key of an institution.

use std::io::{self, Write};

use rota::identity;

use super::CommandError;
use crate::cli::Identity;

/// Makes or reads a key file, and prints the public key.
pub(crate) fn run(identity: &Identity) -> Result<(), CommandError> {
    let key = match identity {
        Identity::New { out } => identity::create(out)?,
        Identity::Show { file } => identity::read(file)?.public(),
    };
    Ok(writeln!(io::stdout().lock(), "{key}")?)
}
