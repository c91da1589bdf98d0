//! Distribution of the rows that an institution signed for, and check that those that its node reads later are of the
//! same kind.
//!
//! A profile of the rows stays in the state folder, for the institution alone. Where rows are of another kind, or hold
//! numbers that may stand for missing values, the node contributes nothing until somebody has signed again. With noise that would show everybody what a row tips: the node
//! says so at home, takes part, and people decide.

use std::path::{Path, PathBuf};

use task::questions::{RowQuestion, RowsProfile};

use crate::institution::config::Institution;
use crate::store::{self, StoreOpenError};

/// Name of the profile in the state folder.
const FILE: &str = "rows.json";

/// Keeps the profile of the rows that an institution signs for.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn keep_profile(state: &Path, profile: &RowsProfile) -> Result<(), StoreOpenError> {
    store::make_folder(state)?;
    store::keep_file(state, FILE, &document(profile))
}

/// A profile as the file has it.
fn document(profile: &RowsProfile) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(profile).expect("a profile is names and numbers");
    text.push(b'\n');
    text
}

/// Returns whether the institution signed for rows of exactly this profile.
fn is_signed_for(state: &Path, profile: &RowsProfile) -> bool {
    let kept = store::kept_file(state, FILE).ok().flatten();
    kept.is_some_and(|kept| kept == document(profile))
}

/// The profile of the rows that the institution signed for; `None` where there is none that can be read.
pub fn signed_profile(state: &Path) -> Option<RowsProfile> {
    let bytes = store::kept_file(state, FILE).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

/// Rows of another kind than those that were signed for.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::institution) struct ChangedRows {
    state: PathBuf,
    profile: RowsProfile,
    differences: Vec<String>,
}

impl ChangedRows {
    /// Returns the differences of the rows of this `profile` in kind, and those that were not `asked` when somebody
    /// signed; `None` where they are of the same kind, or nobody knows what was signed for, so that these count as
    /// signed for from now on.
    ///
    /// # Errors
    /// [`StoreOpenError`]: the profile cannot be kept.
    pub(in crate::institution) fn of(
        institution: &Institution,
        profile: &RowsProfile,
        asked: &[RowQuestion],
    ) -> Result<Option<Self>, StoreOpenError> {
        let state = &institution.state;
        let Some(signed) = signed_profile(state) else {
            keep_profile(state, profile)?;
            return Ok(None);
        };
        let mut differences = signed.differences(profile);
        if !is_signed_for(state, profile) {
            differences.extend(asked.iter().map(|question| question.what.clone()));
        }
        Ok((!differences.is_empty()).then(|| Self {
            state: state.clone(),
            profile: profile.clone(),
            differences,
        }))
    }

    /// Returns whether the institution has signed with these rows meanwhile.
    pub(in crate::institution) fn is_signed(&self) -> bool {
        is_signed_for(&self.state, &self.profile)
    }

    /// Returns what is awaited, in a sentence without a full stop.
    pub(in crate::institution) fn line(&self) -> String {
        format!(
            "contributions are paused: the rows are of another kind than those that this institution signed for. {}. \
             If that is right, run `rota federation sign`; if not, correct the rows and start the node again",
            self.differences.join("; ")
        )
    }

    /// Returns what is said at home where the node takes part all the same.
    pub(in crate::institution) fn at_home(&self) -> impl Iterator<Item = String> {
        self.differences.iter().map(|difference| {
            let end = if difference.ends_with('?') { "" } else { "." };
            format!(
                "otherwise than in the rows that were signed for: {difference}{end} With noise the node takes part all the \
                 same, because staying away would tell of its rows: stop it if they are wrong, or run `rota federation \
                 sign` if they are right"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::fixture::North;

    #[test]
    fn rows_in_another_unit_wait_until_somebody_signs_with_them() {
        let north = North::new();
        let profile = || north.institution.equipment(None).unwrap().profile.unwrap();
        let before = profile();
        let of = |profile: &RowsProfile| ChangedRows::of(&north.institution, profile, &[]);
        assert_eq!(of(&before).unwrap(), None);
        assert_eq!(of(&before).unwrap(), None);
        let file = north.folder.path().join("rows.csv");
        let months = |line: &str| match line.split_once(',') {
            Some((age, rest)) if age != "age" => {
                format!("{},{rest}\n", age.parse::<u32>().unwrap() / 20)
            }
            _ => format!("{line}\n"),
        };
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.lines().map(months).collect::<String>()).unwrap();
        let other = of(&profile()).unwrap().unwrap();
        let said = other.line();
        assert!(
            said.contains("paused") && said.contains("age: the middle value is 1 now"),
            "{said}"
        );
        assert!(!other.is_signed());
        keep_profile(&north.institution.state, &profile()).unwrap();
        assert!(other.is_signed());
    }

    #[test]
    fn numbers_that_nobody_was_asked_about_wait_for_an_answer() {
        for odd in ["8888", "-77", "65534", "-32768", "9999997"] {
            let north = North::new();
            let rows = || {
                let own = north.institution.equipment(None).unwrap();
                let profile = own.profile.unwrap();
                let found = ChangedRows::of(&north.institution, &profile, &own.questions).unwrap();
                (profile, found)
            };
            assert_eq!(rows().1, None);
            let file = north.folder.path().join("rows.csv");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, format!("{text}33,{odd},general,4\n")).unwrap();
            let (profile, other) = rows();
            let other = other.unwrap();
            let said = format!("{}\n{}", other.line(), other.at_home().collect::<String>());
            let what = format!("column \"severity\": 1 row holds {odd}, unlike all other numbers");
            assert!(said.matches(&what).count() == 2, "{said}");
            assert!(said.contains("of the column. With noise"), "{said}");
            assert!(!other.is_signed());
            // Somebody signed for these rows as they are.
            keep_profile(&north.institution.state, &profile).unwrap();
            assert!(other.is_signed() && rows().1.is_none());
        }
    }
}
