//! The signed consents beside an agreement.

use std::fs;
use std::path::Path;

use agreement::{Agreement, Consent, ConsentError};
use protocol::MemberIndex;

/// Consents to an agreement.
#[derive(Debug, Clone, Default)]
pub struct GivenConsents {
    /// Consents that hold: member and consent, ascending by member, one for each.
    pub by: Vec<(MemberIndex, Consent)>,
    /// Files that do not count, one sentence each.
    pub problems: Vec<String>,
}

/// Looks at all files in the folder of an agreement whose name contains `consent` and ends in
/// `.toml`.
pub fn consents_beside(file: &Path, agreement: &Agreement) -> GivenConsents {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter();
    let mut paths: Vec<_> = entries
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.contains("consent") && name.ends_with(".toml")
        })
        .collect();
    paths.sort();
    let mut signed = GivenConsents::default();
    for path in paths {
        let consent = match Consent::load(&path) {
            Ok(consent) => consent,
            Err(error) => {
                signed.problems.push(error.to_string());
                continue;
            }
        };
        match consent.check(agreement) {
            Ok(member) if signed.by.iter().all(|(other, _)| *other != member) => {
                signed.by.push((member, consent));
            }
            // A second one, or one to the agreement after a change, which stands beside the first.
            Ok(_) | Err(ConsentError::Epoch { .. }) => {}
            Err(why) => signed.problems.push(format!("{}: {why}", path.display())),
        }
    }
    signed.by.sort_by_key(|(member, _)| *member);
    signed
}

impl GivenConsents {
    /// The consents in sentences, one line each.
    pub fn lines(&self, agreement: &Agreement) -> Vec<String> {
        let roster = &agreement.epoch.roster;
        let mut lines: Vec<_> = self
            .by
            .iter()
            .map(|(member, consent)| {
                format!("signed by {} on {}", roster.name(*member), consent.time())
            })
            .collect();
        let missing = roster
            .members()
            .filter(|member| self.by.iter().all(|(by, _)| by != member));
        let missing: Vec<_> = missing.map(|member| roster.name(member)).collect();
        if !missing.is_empty() {
            lines.push(format!("no signed consent here of {}", missing.join(", ")));
        }
        lines.extend(
            self.problems
                .iter()
                .map(|why| format!("does not count: {why}")),
        );
        lines
    }
}
