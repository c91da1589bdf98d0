//! Marks of a missing value in one column: a word may be a value of one and a gap in another.

use super::{Format, MISSING};

/// Knowledge of the texts of one column, besides the format that holds for all columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnMarks {
    /// Texts that a person gave a meaning here: values, whatever the format says.
    pub codes: Vec<String>,
    /// Agreed values: no mark that is one by default stands for a gap here.
    pub agreed: Vec<String>,
    /// Texts that mean a missing value in this column alone.
    pub missing: Vec<String>,
}

impl Format {
    /// Returns whether a cell of a column means that the value is missing. What a person said of the column comes
    /// first, then what the format says of all.
    pub fn is_missing_in(&self, column: &ColumnMarks, text: &str) -> bool {
        let text = text.trim();
        let same = |own: &String| own.trim() == text;
        if column.codes.iter().any(same) {
            return false;
        }
        self.marks(&column.missing, text) || (self.is_missing(text) && !self.is_value(column, text))
    }

    /// Returns whether a text that is a mark by default only is a value of the column.
    fn is_value(&self, column: &ColumnMarks, text: &str) -> bool {
        let known = || column.agreed.iter().chain(&column.codes);
        let is = |own: &String| !own.is_empty() && own.eq_ignore_ascii_case(text);
        if !known().any(is) || !self.has_default_marks() {
            return false;
        }
        let chosen = self.missing.iter();
        let mut chosen = chosen.filter(|mark| !MISSING.contains(&mark.as_str()));
        !chosen.any(|mark| mark.trim().eq_ignore_ascii_case(text))
    }

    /// Returns whether the marks that are usual are among its own: then nobody chose them.
    pub(super) fn has_default_marks(&self) -> bool {
        let has = |mark: &&str| self.missing.iter().any(|own| own == mark);
        MISSING.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(codes: &[&str], agreed: &[&str], missing: &[&str]) -> ColumnMarks {
        let [codes, agreed, missing] =
            [codes, agreed, missing].map(|all| all.iter().map(|text| (*text).to_owned()).collect());
        ColumnMarks {
            codes,
            agreed,
            missing,
        }
    }

    /// The marks of `rota init --missing-mark`: the usual ones and this one.
    fn with(mark: &str) -> Format {
        let mut format = Format::default();
        format.missing.push(mark.to_owned());
        format
    }

    #[test]
    fn a_word_that_one_column_agrees_on_is_missing_in_all_others() {
        let (therapy, other) = (
            column(&[], &["none", "drug"], &[]),
            column(&[], &["a"], &[]),
        );
        for format in [Format::default(), with("-9")] {
            for text in ["none", "None", " NONE "] {
                assert!(!format.is_missing_in(&therapy, text), "{text}");
                assert!(format.is_missing_in(&other, text), "{text}");
            }
            assert!(format.is_missing_in(&therapy, "NULL") && format.is_missing_in(&therapy, ""));
        }
    }

    #[test]
    fn a_code_is_a_value_of_its_column_in_any_format() {
        let coded = column(&["-", "None"], &["stable", "worse"], &[]);
        let chosen = Format {
            missing: ["-", "None", "x"].map(String::from).to_vec(),
            ..Format::default()
        };
        for format in [Format::default(), chosen, with("-")] {
            assert!(!format.is_missing_in(&coded, "-") && !format.is_missing_in(&coded, "None"));
            assert!(format.is_missing_in(&ColumnMarks::default(), "-"));
        }
    }

    #[test]
    fn marks_chosen_for_all_columns_stay_marks_of_agreed_values() {
        let agreed = column(&[], &["unknown", "none", "x"], &[]);
        let chosen = Format {
            missing: ["unknown", "none"].map(String::from).to_vec(),
            ..Format::default()
        };
        assert!(chosen.is_missing_in(&agreed, "none") && chosen.is_missing_in(&agreed, "unknown"));
        let both = with("x");
        assert!(both.is_missing_in(&agreed, "x") && !both.is_missing_in(&agreed, "none"));
    }

    #[test]
    fn a_mark_of_one_column_is_a_value_in_others_even_a_number() {
        let own = column(&[], &["none"], &["none", "-9", "999"]);
        let format = Format::default();
        for text in ["none", "-9", "-9.0", "999", "999,0".trim_end_matches(",0")] {
            assert!(format.is_missing_in(&own, text), "{text}");
        }
        for text in ["-9", "999"] {
            assert!(!format.is_missing_in(&ColumnMarks::default(), text));
        }
    }
}
