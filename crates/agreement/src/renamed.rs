//! Keys and words of TOML files that have another name now.
//!
//! A file with an old name is refused, with the new one beside it. What a node or a backup kept is
//! [translated](current) instead, and the bytes that ids depend on [keep](hashed) the first names.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use crate::canonical::Canonical;

/// A key: its table, by the name that this has now, its old name, and its new one.
type RenamedKey = (&'static str, &'static str, &'static str);

/// All keys.
const KEYS: &[RenamedKey] = &[
    ("", "charter", "protocol"),
    ("", "silo", "member"),
    ("", "outside", "unseen"),
    ("protocol", "beat", "heartbeat"),
    ("protocol", "patience", "straggler-timeout"),
    ("privacy", "z", "noise-multiplier"),
    ("privacy", "clip", "clipping-norm"),
    ("privacy", "unit", "privacy-unit"),
    ("privacy", "rows-norm", "max-row-norm"),
    ("privacy", "targets-within", "max-target"),
    ("privacy", "release", "mechanism"),
    ("privacy", "fewest-authors", "min-authors"),
    ("privacy", "smallest-sum", "min-sum-size"),
    ("strategy.stop", "gain", "min-delta"),
    ("task.table.data.rows", "pretend-silos", "split-into"),
    ("policy", "approve", "auto-approve"),
    ("policy", "never-leave", "forbidden-columns"),
    ("policy", "hours", "training-hours-utc"),
    ("policy", "modes", "allowed-modes"),
    ("policy", "strategies", "allowed-strategies"),
    ("policy", "peers", "allowed-peers"),
    ("policy", "fewest-rows", "min-rows"),
    ("policy", "smallest-sum", "min-sum-size"),
    ("policy", "bytes-a-round", "max-bytes-per-round"),
    ("policy", "epsilon-alone", "epsilon-all-collude"),
];

/// All words: the path of their key, by the names that it has now, the old word, and the new one.
const WORDS: &[(&str, &str, &str)] = &[
    ("privacy.mode", MASKED, SECURE),
    ("privacy.mode", NOISED, PRIVATE),
    ("continues.mode", MASKED, SECURE),
    ("continues.mode", NOISED, PRIVATE),
    ("policy.allowed-modes", MASKED, SECURE),
    ("policy.allowed-modes", NOISED, PRIVATE),
    ("privacy.mechanism", "steps", "gradients"),
    ("privacy.mechanism", "once", "sufficient-statistics"),
    ("policy.auto-approve", "epochs", "training-epochs"),
];

const MASKED: &str = "masked";
const NOISED: &str = "masked+noised";
const SECURE: &str = "secure-aggregation";
const PRIVATE: &str = "differential-privacy";

/// The new name of an old key in this table.
fn new_key(table: &str, key: &str) -> Option<&'static str> {
    let mut keys = KEYS.iter();
    let found = keys.find(|(of, old, _)| (*of, *old) == (table, key));
    found.map(|(.., new)| *new)
}

/// The new word for an old one at this key.
fn new_word(path: &str, word: &str) -> Option<&'static str> {
    let mut words = WORDS.iter();
    let found = words.find(|(of, old, _)| (*of, *old) == (path, word));
    found.map(|(.., new)| *new)
}

/// The path of a key in a table. What an experiment sets of a scenario has the path that it has there.
fn inside(table: &str, key: &str) -> String {
    match (table, key) {
        ("variant" | "strategy", "set") | ("", "scenario" | "quick") => String::new(),
        ("strategy", "tune") | ("tune", "grid") => "strategy".to_owned(),
        ("", _) => key.to_owned(),
        _ => format!("{table}.{key}"),
    }
}

/// An old name in a text: where it is, and what it is called now.
pub(crate) type OldName = (Range<usize>, String);

/// The old names in a text, in their order; none in one that is no TOML.
pub(crate) fn old_names(text: &str) -> Vec<OldName> {
    let mut found = Vec::new();
    if let Ok(document) = DeTable::parse(text) {
        old_keys(document.get_ref(), "", &mut found);
    }
    found.sort_by_key(|(span, _)| span.start);
    found
}

fn old_keys(table: &DeTable<'_>, path: &str, found: &mut Vec<OldName>) {
    for (key, value) in table.iter() {
        // An experiment names a key of a scenario by its path: `"protocol.patience" = 3`.
        let mut path = path.to_owned();
        let whole: &str = key.get_ref();
        for name in whole.split('.') {
            let new = new_key(&path, name);
            if let Some(new) = new {
                found.push((key.span(), format!("`{name}` is called `{new}` now")));
            }
            path = inside(&path, new.unwrap_or(name));
        }
        old_words(value, &path, found);
    }
}

fn old_words(value: &Spanned<DeValue<'_>>, path: &str, found: &mut Vec<OldName>) {
    match value.get_ref() {
        DeValue::Table(table) => old_keys(table, path, found),
        DeValue::Array(values) => values
            .iter()
            .for_each(|value| old_words(value, path, found)),
        DeValue::String(word) => {
            if let Some(new) = new_word(path, word) {
                found.push((value.span(), format!("{word:?} is called {new:?} now")));
            }
        }
        _ => {}
    }
}

/// A text that a node or a backup kept, with the names that its keys have now.
pub fn current(text: &str) -> Cow<'_, str> {
    if old_names(text).is_empty() {
        return text.into();
    }
    let written = text.parse::<Table>().ok();
    let written = written.and_then(|table| toml::to_string(&renamed(table, "")?).ok());
    // What cannot be translated is refused by whoever reads it.
    written.map_or(text.into(), Cow::from)
}

/// The table with the new names; `None` where it has an old name and the new one.
fn renamed(table: Table, path: &str) -> Option<Table> {
    let mut new = Table::new();
    for (key, value) in table {
        let key = new_key(path, &key).map_or(key, str::to_owned);
        let value = reworded(value, &inside(path, &key))?;
        if new.insert(key, value).is_some() {
            return None;
        }
    }
    Some(new)
}

fn reworded(value: Value, path: &str) -> Option<Value> {
    Some(match value {
        Value::Table(table) => Value::Table(renamed(table, path)?),
        Value::Array(values) => {
            let values = values.into_iter().map(|value| reworded(value, path));
            Value::Array(values.collect::<Option<_>>()?)
        }
        Value::String(word) => Value::String(match new_word(path, &word) {
            Some(new) => new.to_owned(),
            None => word,
        }),
        other => other,
    })
}

/// A value at this path with the names of the first version, which the bytes that ids depend on have for ever.
pub(crate) fn hashed(value: Canonical, path: &str) -> Canonical {
    match value {
        Canonical::Table(table) => {
            let first = |(key, value): (String, Canonical)| {
                let value = hashed(value, &inside(path, &key));
                let mut keys = KEYS.iter();
                let old = keys.find(|(of, _, new)| (*of, *new) == (path, &*key));
                (old.map_or(key, |(_, old, _)| (*old).to_owned()), value)
            };
            Canonical::Table(table.into_iter().map(first).collect())
        }
        Canonical::List(values) => {
            let values = values.into_iter().map(|value| hashed(value, path));
            Canonical::List(values.collect())
        }
        Canonical::Text(word) => {
            let mut words = WORDS.iter();
            let old = words.find(|(of, _, new)| (*of, *new) == (path, &*word));
            Canonical::Text(old.map_or(word, |(_, old, _)| (*old).to_owned()))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::source::TomlText;

    const OLD: &str = "rounds = 3\n[charter]\nbeat = '5s'\npatience = 12\n[privacy]\nmode = 'masked'\n\
                       group = [{ z = 1, silo = 2 }]\n[[silo]]\nname = 'masked'\n[strategy.stop]\npatience = 3\n\
                       gain = 0.1\n";
    const NEW: &str = "rounds = 3\n[protocol]\nheartbeat = '5s'\nstraggler-timeout = 12\n[privacy]\n\
                       mode = 'secure-aggregation'\ngroup = [{ z = 1, silo = 2 }]\n[[member]]\nname = 'masked'\n\
                       [strategy.stop]\npatience = 3\nmin-delta = 0.1\n";

    #[test]
    fn old_names_are_refused_with_their_line_and_the_new_name() {
        let source = TomlText {
            file: "f.toml",
            text: OLD,
        };
        assert_eq!(
            source.check_format(1).unwrap_err().to_string(),
            "f.toml, line 2: `charter` is called `protocol` now\n\
             f.toml, line 3: `beat` is called `heartbeat` now\n\
             f.toml, line 4: `patience` is called `straggler-timeout` now\n\
             f.toml, line 6: \"masked\" is called \"secure-aggregation\" now\n\
             f.toml, line 8: `silo` is called `member` now\n\
             f.toml, line 12: `gain` is called `min-delta` now"
        );
        for (text, line) in [
            ("[protocol]\nbeat = '5s'", 2),
            ("charter.beat = '5s'", 1),
            ("charter = { rows-declared = true }", 1),
            ("[policy]\nallowed-modes = ['clear', 'masked+noised']", 2),
            ("[policy]\napprove = ['epochs']", 2),
            ("strategy = { stop = { gain = 1 } }", 1),
            ("[[strategy]]\nname = 'a'\nstop = { gain = 1 }", 3),
            ("[[variant]]\nset = { charter = { patience = 3 } }", 2),
            ("[[variant]]\n[variant.set.privacy]\nz = 3", 3),
            ("[[variant]]\nset = { 'charter.rotation' = 'fixed' }", 2),
            ("[tune]\ngrid = { 'stop.gain' = [0.1] }", 2),
        ] {
            let refused = TomlText { file: "f", text }.check_format(1).unwrap_err();
            assert_eq!(refused.line, line, "{refused}");
        }
    }

    #[test]
    fn kept_texts_are_read_by_the_new_names_and_others_stay() {
        let read = |text: &str| text.parse::<Table>().unwrap();
        assert_eq!(read(&current(OLD)), read(NEW));
        assert!(matches!(current(NEW), Cow::Borrowed(NEW)));
        // Of two values nobody knows which is meant.
        let both = "[charter]\nbeat = '5s'\nheartbeat = '6s'\n";
        assert_eq!(current(both), both);
    }

    #[test]
    fn hashed_values_have_the_first_names() {
        let value = |text: &str| Canonical::of(&text.parse::<Table>().unwrap()).unwrap();
        assert_eq!(hashed(value(NEW), ""), value(OLD));
        assert_eq!(hashed(value(OLD), ""), value(OLD));
    }

    #[test]
    fn no_new_name_is_an_old_one() {
        for (table, _, new) in KEYS {
            assert_eq!(new_key(table, new), None);
        }
        for (path, _, new) in WORDS {
            assert_eq!(new_word(path, new), None);
        }
    }
}
