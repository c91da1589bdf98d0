//! Writes names of own files into a `silo.toml` that somebody may have edited: everything else stays as it is.

use task::schema::LocalNames;

/// Begins the table of names.
const TABLE: &str = "[data.rows.names]";

/// The text of a `silo.toml` with these names in place of its own; `None` where a person has to write them, as
/// in a file that has them in a table with another header.
pub fn with_names(text: &str, names: &LocalNames) -> Option<String> {
    let mut wanted: toml::Table = text.parse().ok()?;
    let rows = wanted.get_mut("data")?.get_mut("rows")?.as_table_mut()?;
    let found = rows.get("names").cloned();
    let known = found.map(toml::Value::try_into::<LocalNames>).transpose();
    if known.ok()?.unwrap_or_default() == *names {
        return Some(text.to_owned());
    }
    rows.insert("names".into(), toml::Value::try_from(names).ok()?);
    let written = replaced(text, &names.written());
    let reads: toml::Table = written.parse().ok()?;
    (reads == wanted).then_some(written)
}

/// The text with these lines in the table of names, whose comments behind the last key stay.
fn replaced(text: &str, lines: &[String]) -> String {
    let header = |line: &&str| line.split('#').next().unwrap_or_default().trim() == TABLE;
    let all: Vec<&str> = text.lines().collect();
    let own: Vec<&str> = lines.iter().map(String::as_str).collect();
    let Some(at) = all.iter().position(header) else {
        let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
        return format!("{text}{gap}{TABLE}\n{}\n", own.join("\n"));
    };
    let behind = &all[at + 1..];
    let next = behind.iter().position(|line| is_header(line));
    let body = &behind[..next.unwrap_or(behind.len())];
    let says = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let last = body.iter().rposition(says).map_or(0, |last| last + 1);
    [&all[..=at], &own, &behind[last..]].concat().join("\n") + "\n"
}

/// Whether a line begins another table. One that is part of a value does not parse as a table.
fn is_header(line: &str) -> bool {
    line.trim_start().starts_with('[') && line.parse::<toml::Table>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(text: &str) -> LocalNames {
        toml::from_str(text).unwrap()
    }

    fn read(text: &str) -> LocalNames {
        let table: toml::Table = text.parse().unwrap();
        let names = table["data"]["rows"].get("names").cloned();
        names.map_or_else(LocalNames::default, |names| names.try_into().unwrap())
    }

    const BEFORE: &str = "seed = 3   # ours\n[data.rows]\nfiles = [\"a.csv\"]\n\n";
    const BEHIND: &str = "\n# Others are elsewhere:\n# [[peer]]\n[policy]\nfewest-rows = 50\n";

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
        let none = format!("{BEFORE}[policy]\nfewest-rows = 50");
        let written = with_names(&none, &new).unwrap();
        assert_eq!(read(&written), new);
        assert!(written.starts_with(&none));
    }

    #[test]
    fn what_is_there_already_is_left_alone_and_what_cannot_be_found_is_for_a_person() {
        let same = format!("{BEFORE}[data.rows.names]\nignore = [ 'd' ]\n");
        let known = names("ignore = ['d']");
        assert_eq!(with_names(&same, &known).unwrap(), same);
        let inline = "[data]\nrows = { files = ['a.csv'], names = { ignore = ['x'] } }\n";
        assert_eq!(with_names(inline, &known), None);
        assert_eq!(with_names("[data]\nshare = '1 of 2'\n", &known), None);
    }
}
