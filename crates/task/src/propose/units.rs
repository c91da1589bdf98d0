//! Texts around the numbers of a column: units, and the signs of bounds.

use super::form::WrittenForm;
use super::{Cells, Wishes};
use crate::counted::verb;
use crate::schema::MeasuredColumn;
use crate::typed::{typed, typed_pair};

/// Fewest different numbers of a column that is asked about: of fewer it is one of two or three kinds.
const NUMBERS: usize = 3;

/// Most different whole numbers, one for every row, that are measured ones.
pub(super) const COUNTED: usize = 50;

/// Text that keeps cells of numbers from being read as such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// The text around the numbers; `None` where they are bounds.
    pub unit: Option<String>,
    /// Description of it, in a sentence without a remedy.
    pub what: String,
}

impl Wishes {
    /// Returns how the numbers of a column are read.
    pub(super) fn measured(&self, column: &str) -> MeasuredColumn<'_> {
        let units = self.units.iter().filter(|(name, _)| name == column);
        let rule = self.censored.iter().find(|(name, _)| name == column);
        let since = self.dates.iter().find(|(name, _)| name == column);
        let form = self.date_forms.iter().find(|(name, _)| name == column);
        MeasuredColumn {
            dates: since.map(|(_, since)| (*since, form.map(|(_, form)| *form))),
            units: units.map(|(_, unit)| unit.as_str()).collect(),
            censored: rule.map(|(_, rule)| *rule),
        }
    }
}

impl Cells<'_> {
    /// That the numbers are written as no program writes those that are measured, and why, if they are.
    pub fn written_as_codes(&self) -> Option<String> {
        self.form.as_ref().filter(|form| !form.whole).map(as_codes)
    }

    /// Returns what to ask where the numbers are written as codes are.
    pub(super) fn form_question(&self) -> Option<String> {
        let why = as_codes(self.form.as_ref()?);
        let (name, typed) = (self.name, typed(self.name));
        Some(format!(
            "column {name:?}: {why}. If it holds codes, say --category \
             {typed}; if it holds numbers, --number {typed}"
        ))
    }

    /// The different numbers of the column, with something around them or not.
    fn all_around(&self) -> Vec<f64> {
        let mut numbers = self.around.numbers.clone();
        numbers.extend(self.numbers.iter().map(|(number, _)| *number));
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
        numbers
    }

    /// Returns what stands around the numbers of this column; nothing where the cells are no such numbers.
    pub fn misread(&self) -> Vec<Misread> {
        let around = &self.around;
        let known = self.numeric + around.cells;
        let few = self.all_around().len() < NUMBERS;
        if around.cells == 0 || 10 * known < 9 * self.present() || few {
            return Vec::new();
        }
        let share = |cells: usize| format!("{cells} of {} cells", self.present());
        let mut units: Vec<(&String, &(usize, String))> = around.units.iter().collect();
        units.sort_by_key(|(_, (cells, _))| std::cmp::Reverse(*cells));
        let mut found = Vec::new();
        if let [(unit, (cells, text)), others @ ..] = units.as_slice() {
            // Free text begins with numbers, too.
            if 2 * cells < around.units.values().map(|(cells, _)| cells).sum::<usize>() {
                return Vec::new();
            }
            let other = others.first().map(|(other, (cells, text))| {
                format!("; {} {other:?}, such as {text:?}", have(*cells))
            });
            found.push(Misread {
                unit: Some((*unit).clone()),
                what: format!(
                    "a number is needed, without {unit:?}: {} {} it, such as {text:?}{}",
                    share(*cells),
                    verb(*cells, "have"),
                    other.unwrap_or_default()
                ),
            });
        }
        found.extend(around.bounds.as_ref().map(|(cells, text)| Misread {
            unit: None,
            what: format!(
                "a number is needed, not a bound: {} {} one, such as {text:?}",
                share(*cells),
                verb(*cells, "are")
            ),
        }));
        found
    }

    /// The options that answer what stands around the numbers, in phrases.
    pub(super) fn remedies(&self) -> Vec<String> {
        let name = self.name;
        let remedy = |found: Misread| match found.unit {
            Some(unit) => format!(
                "to leave {unit:?} out, and agree on it as the unit, say --unit {}",
                typed_pair(name, &unit)
            ),
            None => format!(
                "to read a bound as its limit, say --censored {}, as half of it, --censored {}",
                typed_pair(name, "limit"),
                typed_pair(name, "half")
            ),
        };
        self.misread().into_iter().map(remedy).collect()
    }

    /// Returns what to ask where most cells are numbers with something around them.
    pub(super) fn around_question(&self) -> Option<String> {
        let found = self.misread();
        let numbers = self.all_around();
        // `case 1`, `case 2` and so on are no numbers to learn from.
        let counted = numbers.len() == self.present() && numbers.len() > COUNTED;
        let counted = counted && numbers.iter().all(|number| number.fract() == 0.0);
        if found.is_empty() || self.mostly_numbers() || counted {
            return None;
        }
        let (name, typed) = (self.name, typed(self.name));
        let what: Vec<&str> = found.iter().map(|found| found.what.as_str()).collect();
        Some(format!(
            "column {name:?}: {}. {}; if the column holds categories, --category {typed}; to leave it out, \
             --drop {typed}",
            what.join("; "),
            capitalised(&self.remedies().join("; "))
        ))
    }
}

fn as_codes(form: &WrittenForm) -> String {
    format!("its numbers are written as codes are: {}", form.why)
}

/// "3 have", "1 has".
fn have(cells: usize) -> String {
    format!("{cells} {}", verb(cells, "have"))
}

/// A sentence that begins with a capital letter.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Format, RawFile};

    /// Returns what stands around the numbers of a column with these cells, each six times.
    fn of(cells: &[&str]) -> Vec<String> {
        let rows: String = cells.iter().map(|cell| format!("\"{cell}\",1\n")).collect();
        let text = format!("x,y\n{}", rows.repeat(6));
        let file = RawFile::of_text("a.csv".into(), &text, &Format::default()).expect("a table");
        let files = [(file, Format::default())];
        let cells = Cells::of(&files, "x", &MeasuredColumn::default()).expect("a column");
        cells
            .misread()
            .into_iter()
            .map(|found| found.what)
            .collect()
    }

    #[test]
    fn units_and_bounds_are_found_in_most_cells_of_a_column() {
        assert_eq!(
            of(&["2.55 mg", "3 mg", "4.1 mg", ""]),
            ["a number is needed, without \"mg\": 18 of 18 cells have it, such as \"2.55 mg\""]
        );
        for cells in [
            &["037Y", "041Y", "052Y"][..],
            &["mg 2.5", "mg 3", "mg 4"],
            &["37.5 \u{B0}C", "38", "36.9"],
            &["80 kg/m2", "81 kg/m2", "82 kg/m2"],
            &["12 years", "13 years", "14 years"],
        ] {
            assert!(of(cells)[0].contains("without"), "{cells:?}");
        }
        for cells in [
            &["<0.5", "1", "2"][..],
            &[">100", "80", "90"],
            &["90+", "80", "70"],
            &["\u{2264}5", "6", "7"],
            &["< 0.5", "> 20", "7"],
        ] {
            assert!(of(cells)[0].contains("not a bound"), "{cells:?}");
        }
        let both = of(&["<0.5 mg", "1 mg", "2 mg"]);
        assert!(both.len() == 2, "{both:?}");
        let two = of(&["1 mg", "2 mg", "3 g"]);
        assert!(two[0].contains("6 have \"g\", such as \"3 g\""), "{two:?}");
    }

    #[test]
    fn codes_classes_and_free_text_are_none() {
        for cells in [
            &["<30", ">30", "NO"][..],
            &["T1", "T2", "T3", "T4"],
            &["v1.1", "v1.2", "v1.3"],
            &["2 tablets a day", "3 nights here", "4 visits since", "none"],
            &["2024-05-31", "2024-06-01", "2024-06-02"],
            &["12:30", "13:45", "09:10"],
            &["120/80", "130/85", "110/70"],
            &["yes", "no", "5 mg"],
            &["5 mg", "10 mg"],
            &["1", "2", "3"],
        ] {
            assert!(of(cells).is_empty(), "{cells:?}: {:?}", of(cells));
        }
    }
}
