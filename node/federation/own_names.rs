//! Writes the names of own files, and what was answered about their rows, into a `node.toml` that somebody may have
//! edited: everything else stays as it is.

use serde::Serialize;
use serde::de::DeserializeOwned;
use task::data::OwnRows;
use task::questions::RowAnswers;

/// The text of a `node.toml` with the names and answers of these rows in place of its own; `None` where a person has
/// to write them, as in a file that has them in a table with another header.
pub fn with_names(text: &str, rows: &OwnRows) -> Option<String> {
    let [names, answers] = own_tables(rows);
    let text = with_table(text, "names", &rows.names, &names)?;
    with_table(&text, "answers", &rows.answers, &answers)
}

/// The names and the answers of rows as tables of a `node.toml`, each a header and its lines.
pub fn own_tables(rows: &OwnRows) -> [Vec<String>; 2] {
    let table = |key: &str, lines| [vec![header(key)], lines].concat();
    [
        table("names", rows.names.written()),
        table("answers", written(&rows.answers)),
    ]
}

/// The header of the table that is called so in `[data.rows]`.
fn header(key: &str) -> String {
    format!("[data.rows.{key}]")
}

/// Answers as lines of TOML.
fn written(answers: &RowAnswers) -> Vec<String> {
    let table = toml::Table::try_from(answers).expect("texts are TOML");
    let line = |(key, value)| format!("{key} = {value}");
    table.iter().map(line).collect()
}

/// The text with this value in `[data.rows]`, whose table has these lines with its header.
fn with_table<T: Default + PartialEq + Serialize + DeserializeOwned>(
    text: &str,
    key: &str,
    value: &T,
    lines: &[String],
) -> Option<String> {
    let mut wanted: toml::Table = text.parse().ok()?;
    let rows = wanted.get_mut("data")?.get_mut("rows")?.as_table_mut()?;
    let found = rows.get(key).cloned();
    let known = found.map(toml::Value::try_into::<T>).transpose();
    if known.ok()?.unwrap_or_default() == *value {
        return Some(text.to_owned());
    }
    rows.insert(key.into(), toml::Value::try_from(value).ok()?);
    let written = replaced(text, lines);
    let reads: toml::Table = written.parse().ok()?;
    (reads == wanted).then_some(written)
}

/// The text with these lines in the table of their header, the first, whose comments behind the last key stay.
fn replaced(text: &str, lines: &[String]) -> String {
    let (table, lines) = lines.split_first().expect("a table has a header");
    let header = |line: &&str| line.split('#').next().unwrap_or_default().trim() == table;
    let all: Vec<&str> = text.lines().collect();
    let own: Vec<&str> = lines.iter().map(String::as_str).collect();
    let Some(at) = all.iter().position(header) else {
        let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
        return format!("{text}{gap}{table}\n{}\n", own.join("\n"));
    };
    let behind = &all[at + 1..];
    let next = behind.iter().position(|line| is_header(line));
    let body = &behind[..next.unwrap_or(behind.len())];
    let says = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let last = body.iter().rposition(says).map_or(0, |last| last + 1);
    [&all[..=at], &own, &behind[last..]].concat().join("\n") + "\n"
}

/// Returns whether a line begins another table. One that is part of a value does not parse as a table.
fn is_header(line: &str) -> bool {
    line.trim_start().starts_with('[') && line.parse::<toml::Table>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use task::data::Format;

    use super::*;

    /// Rows of a file with these names.
    fn names(text: &str) -> OwnRows {
        OwnRows {
            files: Vec::new(),
            format: Format::default(),
            names: toml::from_str(text).unwrap(),
            answers: RowAnswers::default(),
        }
    }

    /// The names and answers of a text.
    fn read(text: &str) -> OwnRows {
        let table: toml::Table = text.parse().unwrap();
        let rows: OwnRows = table["data"]["rows"].clone().try_into().unwrap();
        OwnRows {
            files: Vec::new(),
            ..rows
        }
    }

    const BEFORE: &str = "seed = 3   # ours\n[data.rows]\nfiles = [\"a.csv\"]\n\n";
    const BEHIND: &str = "\n# Others are elsewhere:\n# [[peer]]\n[policy]\nmin-rows = 50\n";

    #[test]
    fn only_the_names_change_and_comments_around_them_stay() {
        let new = names("columns = { a = 'b' }\nabsent = ['c']\nignore = ['d', 'e']");
        for own in [
            "[data.rows.names]\ncolumns = {}   # agreed = \"own\"\nignore = []\n",
            "[data.rows.names] # names\ncodes = { x = { \"[1]\" = \"[2]\" } }\nignore = [\n\"d\",\n]\n",
            "[data.rows.names]\n",
        ] {
            let text = format!("{BEFORE}{own}{BEHIND}");
            let written = with_names(&text, &new).unwrap();
            assert_eq!(read(&written), new, "{written}");
            assert!(
                written.starts_with(BEFORE) && written.ends_with(BEHIND),
                "{written}"
            );
        }
        let none = format!("{BEFORE}[policy]\nmin-rows = 50");
        let written = with_names(&none, &new).unwrap();
        assert_eq!(read(&written), new);
        assert!(written.starts_with(&none));
    }

    #[test]
    fn answers_stand_in_a_table_of_their_own_and_replace_the_former() {
        let mut new = names("ignore = ['d']");
        new.answers.add("blood level", Some("8888"));
        new.answers.add("bed", None);
        for own in [
            "",
            "[data.rows.answers]  # ours\nkeep = { \"blood level\" = [\"77\"] }\n",
            "[data.rows.answers]\nlearn = [\n\"x\" ]\n\n[data.rows.names]\nignore = [\"d\"]\n",
        ] {
            let text = format!("{BEFORE}{own}{BEHIND}");
            let written = with_names(&text, &new).unwrap();
            assert_eq!(read(&written), new, "{written}");
            assert!(written.starts_with(BEFORE) && written.contains(BEHIND));
            assert_eq!(with_names(&written, &new).unwrap(), written);
        }
        let inline = format!("{BEFORE}answers = {{ learn = ['x'] }}\n");
        assert_eq!(with_names(&inline, &new), None);
    }

    #[test]
    fn existing_names_stay_and_unknown_places_are_left_to_a_person() {
        let same = format!("{BEFORE}[data.rows.names]\nignore = [ 'd' ]\n");
        let known = names("ignore = ['d']");
        assert_eq!(with_names(&same, &known).unwrap(), same);
        let inline = "[data]\nrows = { files = ['a.csv'], names = { ignore = ['x'] } }\n";
        assert_eq!(with_names(inline, &known), None);
        assert_eq!(with_names("[data]\nshare = '1 of 2'\n", &known), None);
    }
}
