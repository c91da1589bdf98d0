//! Members that are added to the draft of an agreement: one member by name, or the lines that members sent.

use std::path::Path;

use crate::federation::addresses;
use agreement::{Joining, read_configuration};

use super::NodeCommandError;
use crate::cli::key;

/// The members that these words name. `rows` is what the command line declares for one in words.
pub(super) fn members(
    words: &[String],
    rows: Option<u64>,
) -> Result<Vec<Joining>, NodeCommandError> {
    if let [_, public, ..] = words
        && key(public).is_ok()
    {
        return Ok(vec![member(words, rows).map_err(NodeCommandError::Usage)?]);
    }
    let files = words.iter().map(Path::new);
    if let Some(missing) = files.clone().find(|file| !file.is_file()) {
        let [first, rest @ ..] = words else {
            return Err(NodeCommandError::Usage("nobody is named".into()));
        };
        return Err(NodeCommandError::Usage(match rest {
            [] => format!(
                "{first:?} is no file with the line of a member: give its name, its key and its address, or \
                 the file"
            ),
            [public, ..] => format!(
                "{}, and there is no file {} either: give name, key and address of a member, or files with \
                 the lines that members sent",
                key(public).err().unwrap_or_default(),
                missing.display()
            ),
        }));
    }
    if rows.is_some() {
        let what = "--rows is for a member given by name, key and address: lines in files already have the rows of their \
             members";
        return Err(NodeCommandError::Usage(what.into()));
    }
    let mut found = Vec::new();
    for file in files {
        found.extend(sent(file)?);
    }
    Ok(found)
}

/// The members whose lines are in a file.
fn sent(file: &Path) -> Result<Vec<Joining>, NodeCommandError> {
    let text = read_configuration(file)?;
    let mut found = Vec::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let wrong = |why: &str| {
            NodeCommandError::Failed(format!(
                "{}, line {}: {why}: it has to be the line that `rota identity new --name` prints",
                file.display(),
                at + 1
            ))
        };
        let mut words =
            shlex::split(line).ok_or_else(|| wrong("a quotation mark is not closed"))?;
        let rows = match words.iter().position(|word| word == "--rows") {
            None => None,
            Some(place) => {
                let mut rest = words.drain(place..).skip(1);
                match (rest.next().map(|number| number.parse()), rest.next()) {
                    (Some(Ok(rows)), None) if rows > 0 => Some(rows),
                    _ => return Err(wrong("one number has to follow --rows, at the end")),
                }
            }
        };
        found.push(member(&words, rows).map_err(|why| wrong(&why))?);
    }
    if found.is_empty() {
        Err(NodeCommandError::Failed(format!(
            "{} is empty: it has to have the line that `rota identity new --name` prints",
            file.display()
        )))
    } else {
        Ok(found)
    }
}

/// A member by its name, key and addresses.
fn member(words: &[String], rows: Option<u64>) -> Result<Joining, String> {
    let [name, public, reached @ ..] = words else {
        return Err("a name and a key are needed".into());
    };
    let mut all = Vec::new();
    for address in reached {
        all.extend(addresses(address)?);
    }
    Ok(Joining {
        name: name.clone(),
        key: key(public)?,
        rows,
        addresses: all,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::commands::identity::line;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn one_member_as_options_and_several_in_files_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let public = protocol::SecretKey::from_bytes(&[7; 32]).public();
        let digits = public.to_string();
        let names = ["St. Mary's", "north"];
        let mut files = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let file = folder.path().join(format!("member {at}.txt"));
            let address = ["127.0.0.1:7001".to_owned()];
            fs::write(
                &file,
                format!("\n{}\n", line(name, &public, &address, Some(40))),
            )
            .unwrap();
            files.push(file.display().to_string());
        }
        let found = members(&files, None).unwrap();
        for (name, found) in names.iter().zip(&found) {
            let said = words(&[name, &digits, "127.0.0.1:7001"]);
            let said = members(&said, Some(40)).unwrap();
            assert_eq!((&said[0].name, said[0].key), (&found.name, found.key));
            assert_eq!(
                (&said[0].addresses, said[0].rows),
                (&found.addresses, found.rows)
            );
        }
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].name, "St. Mary's");
    }

    #[test]
    fn what_is_neither_a_member_nor_a_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut count = 0;
        let mut file = |text: &str| {
            count += 1;
            let file = folder.path().join(format!("member {count}.txt"));
            fs::write(&file, text).unwrap();
            file.display().to_string()
        };
        let digits = "ab".repeat(32);
        for (said, expected) in [
            (words(&["nowhere.txt"]), "is no file with the line"),
            (words(&["north", "abc"]), "64 hexadecimal digits"),
            (words(&[&file("")]), "is empty"),
            (words(&[&file("north")]), "line 1: a name and a key"),
            (
                words(&[&file(&format!("north {digits} --rows x"))]),
                "--rows",
            ),
            (
                words(&[&file(&format!("'north {digits}"))]),
                "quotation mark",
            ),
            (words(&[&file("north 12")]), "line 1: a key has"),
        ] {
            let why = members(&said, None).unwrap_err().to_string();
            assert!(why.contains(expected), "{expected}: {why}");
        }
        let why = members(&words(&[&file("north")]), Some(3)).unwrap_err();
        assert!(
            why.to_string()
                .contains("--rows is for a member given by name, key and address"),
            "{why}"
        );
    }
}
