//! Names that people would take for each other: names of two members that look alike, and names with
//! letters of several scripts in one word, of which some stand for others.
//!
//! The members agree on a roster by its bytes, and two programs may know different tables of characters
//! that look alike. So no roster is unusable because of its names; they are refused where a person
//! writes a new member down, and shown with their keys where they are in an agreement already. What
//! looks alike is defined by Unicode Technical Standard 39, version as in the crate `unicode-security`.

use protocol::PublicKey;
use protocol::roster::Silo;
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::skeleton;

/// Reason to keep a name out of a roster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookError {
    /// The name looks like the name of another member.
    #[error(
        "{name:?} (key {key}) looks like {other:?} (key {other_key}): give the members names that people \
         can tell apart"
    )]
    Alike {
        /// The name.
        name: String,
        /// Key of the member with this name.
        key: PublicKey,
        /// The other name.
        other: String,
        /// The other member's key.
        other_key: PublicKey,
    },
    /// The name mixes scripts in one word.
    #[error(
        "{name:?} (key {key}) has letters of several scripts in the word {word:?}, which may look like \
         another one: {letters}"
    )]
    Mixed {
        /// The name.
        name: String,
        /// Key of the member with this name.
        key: PublicKey,
        /// The word.
        word: String,
        /// Letters of the word outside of ASCII, by number.
        letters: String,
    },
}

/// A name as it looks: two names with the same look are confused. Case, blanks and accents that are
/// written in two ways make no difference.
fn look(name: &str) -> String {
    let of = |text: &str| skeleton(text).collect::<String>().to_lowercase();
    let words: Vec<_> = name.split_whitespace().collect();
    of(&words.join(" "))
}

/// Returns whether people would take one of these names for the other.
fn alike(one: &str, other: &str) -> bool {
    let lower = |name: &str| look(&name.to_lowercase());
    look(one) == look(other) || lower(one) == lower(other)
}

/// The first word of a name whose letters are of several scripts. Latin beside Chinese, Japanese or
/// Korean letters is ordinary.
fn mixed(name: &str) -> Option<&str> {
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    words.find(|word| {
        let of = |text: String| AugmentedScriptSet::for_str(&text);
        let letters = word.chars().filter(|c| c.is_alphabetic());
        let several = of(letters.clone().collect()).is_empty();
        let others = of(letters.filter(|c| !c.is_ascii()).collect());
        several && !(others.hanb || others.jpan || others.kore)
    })
}

fn look_of(silo: &Silo) -> Option<LookError> {
    let word = mixed(&silo.name)?;
    let letters = word.chars().filter(|c| !c.is_ascii());
    let letters: Vec<_> = letters
        .map(|c| format!("{c} is U+{:04X}", u32::from(c)))
        .collect();
    Some(LookError::Mixed {
        name: silo.name.clone(),
        key: silo.key,
        word: word.to_owned(),
        letters: letters.join(", "),
    })
}

fn like(silo: &Silo, other: &Silo) -> Option<LookError> {
    alike(&silo.name, &other.name).then(|| LookError::Alike {
        name: silo.name.clone(),
        key: silo.key,
        other: other.name.clone(),
        other_key: other.key,
    })
}

/// Checks the names that `silos` have and `before` have not: whether people can tell them from all
/// others, and read them.
///
/// # Errors
/// [`LookError`]: the first that they cannot.
pub fn check_new(before: &[Silo], silos: &[Silo]) -> Result<(), LookError> {
    let is_new = |silo: &&Silo| before.iter().all(|old| old.name != silo.name);
    for silo in silos.iter().filter(is_new) {
        let others = silos.iter().filter(|other| other.key != silo.key);
        let found =
            look_of(silo).or_else(|| others.into_iter().find_map(|other| like(silo, other)));
        if let Some(error) = found {
            return Err(error);
        }
    }
    Ok(())
}

/// The names of a roster that people would confuse, with their keys, in sentences.
pub fn confusing(silos: &[Silo]) -> Vec<String> {
    let mut found: Vec<LookError> = silos.iter().filter_map(look_of).collect();
    for (at, silo) in silos.iter().enumerate() {
        found.extend(silos[..at].iter().filter_map(|other| like(silo, other)));
    }
    found.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use protocol::SecretKey;

    use super::*;

    fn silos(names: &[&str]) -> Vec<Silo> {
        let silo = |(nth, name): (usize, &&str)| Silo {
            name: (*name).to_owned(),
            key: SecretKey::from_bytes(&[nth as u8 + 1; 32]).public(),
            rows: None,
        };
        names.iter().enumerate().map(silo).collect()
    }

    #[test]
    fn names_that_people_would_confuse_are_alike() {
        for (one, other) in [
            ("Klinik Nord", "KIinik Nord"),
            ("site 1", "site l"),
            ("site 1", "site I"),
            ("site 0", "site O"),
            ("site 0", "site o"),
            ("Haus II", "Haus 11"),
            ("Silo  A", "silo a"),
            ("silo A", "silo A "),
            // Cyrillic а, с, е, о, р, х; Greek ο.
            ("Charite", "Ch\u{430}rite"),
            ("oxo", "\u{43e}\u{445}\u{43e}"),
            ("North", "N\u{3bf}rth"),
            // An accent as one character, and as two.
            ("Charit\u{e9}", "Charite\u{301}"),
            ("modern", "modem"),
            ("\u{ff2e}orth", "North"),
        ] {
            assert!(alike(one, other), "{one:?} and {other:?}");
        }
        for (one, other) in [
            ("silo 1", "silo 2"),
            ("silo 1", "silo 11"),
            ("age Q1 · sex A", "age Q1 · sex B"),
            ("North", "Northern"),
            ("Charité", "Charite"),
            ("東京大学", "京都大学"),
        ] {
            assert!(!alike(one, other), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn mixed_script_words_are_named_and_ordinary_names_are_not() {
        for (name, word) in [
            ("Klinik N\u{43e}rd", "N\u{43e}rd"),
            ("p\u{430}ypal", "p\u{430}ypal"),
            ("Ελλ\u{430}δα", "Ελλ\u{430}δα"),
            ("St. M\u{3b1}ry's", "M\u{3b1}ry"),
        ] {
            assert_eq!(mixed(name), Some(word), "{name:?}");
        }
        for name in [
            "silo 1",
            "age Q1 · sex A",
            "Charité – Berlin",
            "東京大学医学部附属病院",
            "東京Hospital",
            "東京 Hospital",
            "ソニー銀行Bank",
            "서울대학교병원 SNUH",
            "مستشفى 1",
            "Ελλάδα Clinic",
            "β-Klinik",
            "Больница №1",
            "Hôpital Œuvre ß",
            "🏥 4",
        ] {
            assert_eq!(mixed(name), None, "{name:?}");
        }
    }

    #[test]
    fn new_names_are_refused_with_both_keys_and_old_ones_are_shown() {
        let all = silos(&["Klinik Nord", "KIinik Nord", "S\u{43e}uth"]);
        let keys: Vec<_> = all.iter().map(|silo| silo.key.to_string()).collect();
        let error = check_new(&all[..1], &all[..2]).unwrap_err().to_string();
        let expected = format!(
            "\"KIinik Nord\" (key {}) looks like \"Klinik Nord\" (key {}): give the members names that \
             people can tell apart",
            keys[1], keys[0]
        );
        assert_eq!(error, expected);
        let error = check_new(&all[..2], &all).unwrap_err().to_string();
        assert!(error.contains("\u{43e} is U+043E"), "{error}");
        assert!(error.contains(&keys[2]), "{error}");
        // Whoever is in the roster stays, with a new key too.
        assert_eq!(check_new(&all, &all), Ok(()));
        let mut rekeyed = all.clone();
        rekeyed[1].key = SecretKey::from_bytes(&[9; 32]).public();
        assert_eq!(check_new(&all, &rekeyed), Ok(()));
        let shown = confusing(&all);
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert!(shown[1] == expected, "{shown:?}");
        assert!(confusing(&silos(&["silo 1", "silo 2", "silo 11"])).is_empty());
    }
}
