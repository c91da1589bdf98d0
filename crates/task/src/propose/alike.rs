//! Values of one column that look like the same thing, written in several ways.

use std::collections::BTreeMap;

use crate::data::meant;

/// Words that mean the same, of columns that hold nothing else.
const MEANINGS: [&[(&str, &str)]; 2] = [
    &[
        ("true", "yes"),
        ("t", "yes"),
        ("yes", "yes"),
        ("y", "yes"),
        ("ja", "yes"),
        ("j", "yes"),
        ("oui", "yes"),
        ("si", "yes"),
        ("sí", "yes"),
        ("1", "yes"),
        ("false", "no"),
        ("f", "no"),
        ("no", "no"),
        ("n", "no"),
        ("nein", "no"),
        ("non", "no"),
        ("0", "no"),
    ],
    &[
        ("m", "m"),
        ("male", "m"),
        ("man", "m"),
        ("männlich", "m"),
        ("f", "f"),
        ("female", "f"),
        ("woman", "f"),
        ("w", "f"),
        ("weiblich", "f"),
    ],
];

/// Groups of values that look alike: equal but for case and spaces, or in another encoding, or words for yes and no, or for the
/// sexes, in a column of nothing else. The value with most rows first, and the others behind it.
pub(super) fn alike(values: &BTreeMap<String, usize>) -> Vec<Vec<String>> {
    let plain = |text: &String| {
        // In another encoding, beside the text that is meant.
        let meant = meant(text).filter(|meant| values.contains_key(meant));
        let text = meant.as_ref().unwrap_or(text);
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        words.join(" ")
    };
    let meaning = MEANINGS.into_iter().find(|meanings| {
        let known = |text: &String| meanings.iter().any(|(word, _)| *word == plain(text));
        values.keys().all(known)
    });
    let mut groups: BTreeMap<String, Vec<(&String, usize)>> = BTreeMap::new();
    for (text, &rows) in values {
        let plain = plain(text);
        let found = meaning.and_then(|all| all.iter().find(|(word, _)| *word == plain));
        let means = found.map_or(plain, |(_, meaning)| (*meaning).to_owned());
        groups.entry(means).or_default().push((text, rows));
    }
    let mut found: Vec<Vec<String>> = Vec::new();
    for (_, mut group) in groups.into_iter().filter(|(_, group)| group.len() > 1) {
        group.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        found.push(group.into_iter().map(|(text, _)| text.clone()).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[(&str, usize)]) -> Vec<Vec<String>> {
        alike(
            &texts
                .iter()
                .map(|(text, rows)| ((*text).to_owned(), *rows))
                .collect(),
        )
    }

    #[test]
    fn case_spaces_and_words_for_yes_and_no_are_alike() {
        assert_eq!(
            of(&[("TRUE", 3), ("True", 5), ("False", 2), ("no", 1)]),
            [["False", "no"], ["True", "TRUE"]]
        );
        assert_eq!(of(&[("m", 4), ("M", 9), ("f", 1)]), [["M", "m"]]);
        assert_eq!(of(&[("male", 4), ("m", 9), ("F", 1)]), [["m", "male"]]);
        assert_eq!(
            of(&[("South  ward", 1), ("south ward", 2)]),
            [["south ward", "South  ward"]]
        );
        assert_eq!(of(&[("SÃ¼d", 4), ("Süd", 9)]), [["Süd", "SÃ¼d"]]);
        for different in [
            &[("yes", 3), ("no", 4)][..],
            &[("1", 3), ("0", 2)],
            &[("t", 1), ("true", 2), ("blue", 3)],
            &[("01", 1), ("1", 2)],
            &[("4E2", 1), ("400", 1)],
        ] {
            assert!(of(different).is_empty(), "{different:?}");
        }
    }
}
