//! Names of the columns and codes of an institution's files in the agreement.

use clap::Args;
use task::schema::{DateForm, LocalNames};

/// Names and codes of own files that differ from the agreed ones; node.toml keeps them in `[data.rows.names]`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Names in own files")]
pub struct OwnNames {
    /// Column with another name in the files, by its agreed name and its own; may be repeated
    #[arg(long, num_args = 2, value_names = ["AGREED", "OWN"], allow_hyphen_values = true)]
    pub column: Vec<String>,
    /// Text of a column in the files, and the agreed value that it means; may be repeated
    #[arg(long, num_args = 3, value_names = ["COLUMN", "TEXT", "VALUE"], allow_hyphen_values = true)]
    pub code: Vec<String>,
    /// Text that means a missing value in this column alone; may be repeated
    #[arg(long, num_args = 2, value_names = ["COLUMN", "TEXT"], allow_hyphen_values = true)]
    pub missing: Vec<String>,
    /// Agreed column that the files do not have, where the agreement fills gaps; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub absent: Vec<String>,
    /// Text before or behind each number of a column, which is left out; may be repeated
    #[arg(long, value_name = "COLUMN=TEXT", value_parser = super::column_text, allow_hyphen_values = true)]
    pub unit: Vec<(String, String)>,
    /// Form in which the dates of a column are written, where it is not as 2024-05-31 or 31.05.2024, such as MM/DD/YYYY; may be
    /// repeated
    #[arg(long, value_name = "COLUMN=FORM", value_parser = super::date_form, allow_hyphen_values = true)]
    pub date_form: Vec<(String, DateForm)>,
}

impl OwnNames {
    /// Adds them to names that are known; of two the new one counts.
    pub fn add_to(&self, names: &mut LocalNames) {
        for pair in self.column.chunks_exact(2) {
            names.ignore.retain(|own| *own != pair[1]);
            names.absent.retain(|agreed| *agreed != pair[0]);
            names.columns.insert(pair[0].clone(), pair[1].clone());
        }
        for three in self.code.chunks_exact(3) {
            if let Some(marks) = names.missing.get_mut(&three[0]) {
                marks.retain(|mark| *mark != three[1]);
            }
            let codes = names.codes.entry(three[0].clone()).or_default();
            codes.insert(three[1].clone(), three[2].clone());
        }
        for pair in self.missing.chunks_exact(2) {
            if let Some(codes) = names.codes.get_mut(&pair[0]) {
                codes.remove(&pair[1]);
            }
            let marks = names.missing.entry(pair[0].clone()).or_default();
            if !marks.contains(&pair[1]) {
                marks.push(pair[1].clone());
            }
        }
        for agreed in &self.absent {
            names.columns.remove(agreed);
            if !names.absent.contains(agreed) {
                names.absent.push(agreed.clone());
            }
        }
        names.units.extend(self.unit.iter().cloned());
        names.dates.extend(self.date_form.iter().cloned());
        names.codes.retain(|_, codes| !codes.is_empty());
        names.missing.retain(|_, marks| !marks.is_empty());
    }

    /// The options that say what these names say, as a shell takes them.
    pub fn options(names: &LocalNames) -> String {
        let mut words: Vec<String> = Vec::new();
        let mut add = |option: &str, values: &[&String]| {
            words.push(option.to_owned());
            words.extend(values.iter().map(|value| super::quoted(value)));
        };
        for (agreed, own) in &names.columns {
            add("--column", &[agreed, own]);
        }
        for (column, codes) in &names.codes {
            for (text, value) in codes {
                add("--code", &[column, text, value]);
            }
        }
        for (column, marks) in &names.missing {
            for mark in marks {
                add("--missing", &[column, mark]);
            }
        }
        for agreed in &names.absent {
            add("--absent", &[agreed]);
        }
        for (column, unit) in &names.units {
            add("--unit", &[&format!("{column}={unit}")]);
        }
        for (column, form) in &names.dates {
            add("--date-form", &[&format!("{column}={}", form.name())]);
        }
        for own in &names.ignore {
            add("--ignore", &[own]);
        }
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        names: OwnNames,
        #[arg(long)]
        ignore: Vec<String>,
        last: Option<String>,
    }

    /// Options that are printed for a shell are read as they were meant, whatever the names have in them.
    #[test]
    fn options_that_are_printed_give_the_names_that_they_are_of() {
        let text = "columns = { 'a b' = '--x', age = \"l'âge\" }\nabsent = ['-y']\nignore = ['z=1', 'p']\n\
                    codes = { ward = { 'I T S' = '-', '' = 'x' } }\nmissing = { cost = ['-9', '?'] }\ndates = { 'a day' = 'MM/DD/YYYY' }\n";
        let names: LocalNames = toml::from_str(text).unwrap();
        let line = format!("rota {} TOKEN", OwnNames::options(&names));
        let read = Line::parse_from(shlex::split(&line).unwrap());
        let mut found = LocalNames {
            ignore: read.ignore,
            ..LocalNames::default()
        };
        read.names.add_to(&mut found);
        assert_eq!((found, read.last.as_deref()), (names, Some("TOKEN")));
    }

    #[test]
    fn the_last_answer_about_a_column_or_a_text_counts() {
        let mut names: LocalNames =
            toml::from_str("columns = { a = '?' }\ncodes = { b = { x = '?' } }\nignore = ['own']")
                .unwrap();
        let answer = |line: &str| Line::parse_from(shlex::split(line).unwrap()).names;
        answer("rota --absent a --missing b x").add_to(&mut names);
        assert_eq!(
            names.written(),
            [
                "missing.b = [\"x\"]",
                "absent = [\"a\"]",
                "ignore = [\"own\"]"
            ]
        );
        answer("rota --column a own --code b x y").add_to(&mut names);
        assert_eq!(
            names.written(),
            ["columns.a = \"own\"", "codes.b.x = \"y\""]
        );
    }
}
