//! `rota identity`: makes or shows the key of an institution.

use std::io::{self, Write};

use crate::federation::addresses;
use crate::identity;
use protocol::{PublicKey, name};

use super::NodeCommandError;
use crate::cli::{Called, Identity, quoted};

/// Makes or reads a key file, and prints the public key.
pub(crate) fn run(identity: &Identity) -> Result<(), NodeCommandError> {
    let (Identity::New { called, .. } | Identity::Show { called, .. }) = identity;
    check(called)?;
    let key = match identity {
        Identity::New { out, .. } => identity::create(out)?,
        Identity::Show { file, .. } => identity::read(file)?.public(),
    };
    let mut out = io::stdout().lock();
    match &called.name {
        None => writeln!(out, "{key}")?,
        Some(name) => writeln!(out, "{}", line(name, &key, &called.address, called.rows))?,
    }
    Ok(())
}

/// Refuses a name or an address that no agreement can have, before a key is made.
fn check(called: &Called) -> Result<(), NodeCommandError> {
    if let Some(name) = &called.name {
        name::check(name).map_err(|why| NodeCommandError::Usage(format!("the name {why}")))?;
    }
    for address in &called.address {
        addresses(address).map_err(NodeCommandError::Usage)?;
    }
    Ok(())
}

/// The line that a member sends to whoever drafts the agreement: what `rota federation add` takes.
pub(crate) fn line(name: &str, key: &PublicKey, addresses: &[String], rows: Option<u64>) -> String {
    let mut words = vec![quoted(name), key.to_string()];
    words.extend(addresses.iter().map(|address| quoted(address)));
    words.extend(rows.map(|rows| format!("--rows {rows}")));
    words.join(" ")
}
