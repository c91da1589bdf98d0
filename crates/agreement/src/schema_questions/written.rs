//! A schema as TOML: with its reasons as comments, and in the text of a scenario or an agreement.

use task::schema::Schema;
use toml::Table;

use super::entries::{entries, push};
use super::settled::SettledSchema;

/// Where the schema stands in a file.
const PLACE: &str = "task.table.schema";
impl SettledSchema {
    /// The schema as TOML, from the header `[task.table.schema]` on, with a comment for each reason.
    ///
    /// # Errors
    /// A value that TOML cannot express.
    pub fn text(&self) -> Result<String, String> {
        let mut head = entries(&self.schema)?;
        // They have tables of their own.
        head.retain(|(key, _)| key != "target" && key != "feature");
        let mut text = format!("[{PLACE}]\n");
        push(&mut text, &head);
        text += "\n";
        self.push_reasons(&mut text, self.schema.target.name.iter());
        text += &format!("[{PLACE}.target]\n");
        push(&mut text, &entries(&self.schema.target)?);
        for feature in &self.schema.features {
            text += "\n";
            self.push_reasons(&mut text, feature.name.iter());
            text += &format!("[[{PLACE}.feature]]\n");
            push(&mut text, &entries(feature)?);
        }
        Ok(text)
    }

    fn push_reasons<'a>(&self, text: &mut String, columns: impl Iterator<Item = &'a str>) {
        for column in columns {
            for reason in self.reasons.get(column).into_iter().flatten() {
                *text += &format!("# {column:?}: {reason}\n");
            }
        }
    }
}

/// The text of a scenario or an agreement with another schema, which `written` has as
/// [`SettledSchema::text`] gives it, and whether everything else is as it was written: where the schema is not written
/// as tables of their own in one place, comments are lost.
///
/// # Errors
/// The text is no TOML, has no schema, or cannot be written.
pub fn with_schema(text: &str, schema: &Schema, written: &str) -> Result<(String, bool), String> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.to_string())?;
    let (rest, _) = apart(table.clone()).ok_or("there is no [task.table.schema]")?;
    let is_meant = |text: &str| {
        let read = text.parse::<Table>().ok().and_then(apart);
        read.is_some_and(|(others, read)| others == rest && read.as_ref() == Some(schema))
    };
    if let Some(new) = replaced(text, written).filter(|new| is_meant(new)) {
        return Ok((new, true));
    }
    let rest = toml::to_string(&rest).map_err(|error| error.to_string())?;
    let new = format!("{}\n\n{written}", rest.trim_end());
    match is_meant(&new) {
        true => Ok((new, false)),
        false => Err("the schema cannot be written into it".to_owned()),
    }
}

/// A file without its schema, and the schema, if it can be read.
fn apart(mut file: Table) -> Option<(Table, Option<Schema>)> {
    let task = file.get_mut("task")?.as_table_mut()?;
    let schema = task.get_mut("table")?.as_table_mut()?.remove("schema")?;
    Some((file, schema.try_into().ok()))
}

/// The text with other lines from the first header of the schema to the last line of its last table.
fn replaced(text: &str, written: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let header = |line: &&str| line.trim_start().starts_with('[');
    let of_schema = |line: &&str| {
        let name = line.trim_start().trim_start_matches('[');
        let rest = name.strip_prefix(PLACE);
        rest.is_some_and(|rest| rest.starts_with(['.', ']']))
    };
    let is_first = |line: &&str| header(line) && of_schema(line);
    let first = lines.iter().position(is_first)?;
    let is_next = |line: &&str| header(line) && !of_schema(line);
    let next = lines[first..].iter().position(is_next);
    let mut end = next.map_or(lines.len(), |next| first + next);
    // Comments above the next header belong to it.
    let is_of_next = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    while next.is_some() && is_of_next(lines[end - 1]) {
        end -= 1;
    }
    let before = lines[..first].join("\n");
    let after = lines[end..].join("\n");
    Some(format!("{before}\n{written}{after}\n"))
}
