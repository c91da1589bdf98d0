//! Makes ledgers, and names them in `node.toml`.

use std::io;
use std::path::{Path, PathBuf};

use ledger::{LedgerError, LedgerFile, Source, SourceUnit};

use crate::paths::relative;

/// Folder of the states of the shipped services, each in a folder of its own.
const SERVICES: &str = "/var/lib/rota";

/// Folder into which all shipped services may write, so that nodes of several federations have one ledger.
const LEDGERS: &str = "/var/lib/rota-ledgers";

/// Makes the ledger of the source of this name, which must not exist, in a folder that may not exist either.
///
/// # Errors
/// [`LedgerError::Exists`], or [`LedgerError::Io`] where the file cannot be written.
pub fn make_ledger(file: &Path, name: &str, unit: SourceUnit) -> Result<(), LedgerError> {
    let failed = |why: io::Error| LedgerError::Io {
        file: file.to_owned(),
        why,
    };
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|why| failed(io::Error::other(why)))?;
    if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(failed)?;
    }
    let source = Source {
        name: name.to_owned(),
        unit,
    };
    LedgerFile::create(file, &source, &id)
}

/// Returns the default place of the ledger of the source of this name, for a node with this state folder whose
/// `node.toml` is in `beside`: where the shipped service may write, for one of those, and else beside `node.toml`.
pub(crate) fn ledger_beside(beside: &Path, state: &Path, name: &str) -> PathBuf {
    let words = name.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let name = match words.join("-").to_lowercase() {
        none if none.is_empty() => "rows".into(),
        name => name,
    };
    let folder = match beside.join(state) {
        state if state.starts_with(SERVICES) => Path::new(LEDGERS),
        _ => beside,
    };
    folder.join(format!("{name}.ledger"))
}

/// The text of a `node.toml` in the folder `beside` with this ledger; `None` where it cannot be written without
/// a person.
pub(crate) fn with_ledger(text: &str, beside: &Path, ledger: &Path) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let path = relative(ledger, beside).to_string_lossy().into_owned();
    let line = format!("ledger = {}\n", toml::Value::String(path));
    let Some(policy) = table.get("policy") else {
        let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
        return Some(format!("{text}{gap}[policy]\n{line}"));
    };
    if policy.get("ledger").is_some() {
        return None;
    }
    let mut all = String::new();
    let mut found = false;
    for own in text.split_inclusive('\n') {
        all += own;
        let header = own.split('#').next().unwrap_or_default().trim();
        if header == "[policy]" && !found {
            found = true;
            let end = if own.ends_with('\n') { "" } else { "\n" };
            all = all + end + &line;
        }
    }
    let reads = all.parse::<toml::Table>().ok()?;
    let written = reads.get("policy")?.get("ledger").is_some();
    (found && written).then_some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_ledger_is_named_in_a_table_that_is_there_or_in_a_new_one() {
        let with =
            |text: &str| with_ledger(text, Path::new("/house"), Path::new("/house/rows.ledger"));
        assert_eq!(
            with("seed = 1").unwrap(),
            "seed = 1\n\n[policy]\nledger = \"rows.ledger\"\n"
        );
        assert_eq!(
            with("[policy]  # ours\nepsilon = 1.0\n[data]\n").unwrap(),
            "[policy]  # ours\nledger = \"rows.ledger\"\nepsilon = 1.0\n[data]\n"
        );
        // A person has to look at these.
        assert_eq!(with("policy = { epsilon = 1.0 }\n"), None);
        assert_eq!(with("[policy]\nledger = false\n"), None);
        let elsewhere = Path::new("/srv/rota/patients.ledger");
        let text = with_ledger("", Path::new("/house"), elsewhere).unwrap();
        assert!(
            text.contains("ledger = \"/srv/rota/patients.ledger\""),
            "{text}"
        );
    }

    #[test]
    fn shared_ledgers_are_where_all_services_may_write() {
        let of = |beside: &str, state: &str, name: &str| {
            let file = ledger_beside(Path::new(beside), Path::new(state), name);
            file.display().to_string()
        };
        assert_eq!(
            of(
                "/etc/rota/stays",
                "/var/lib/rota/stays",
                "Patients of Clinic A"
            ),
            "/var/lib/rota-ledgers/patients-of-clinic-a.ledger"
        );
        assert_eq!(of("/house", "state", "rows"), "/house/rows.ledger");
        assert_eq!(of("/house", "state", "../x"), "/house/x.ledger");
        assert_eq!(of("/house", "state", "§"), "/house/rows.ledger");
    }
}
