//! Several rows of one person: which column names whose a row is, and which rows are there twice.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::counted::verb;
use crate::data::Table;

/// Words of a column that names persons, or what comes several times of one.
const PERSONS: [&str; 26] = [
    "patient",
    "patients",
    "patienten",
    "pat",
    "patid",
    "patientid",
    "patnr",
    "person",
    "personid",
    "persons",
    "subject",
    "subjects",
    "subjectid",
    "pid",
    "mrn",
    "proband",
    "participant",
    "member",
    "client",
    "case",
    "caseid",
    "fall",
    "fallnr",
    "fallid",
    "aufenthalt",
    "animal",
];
/// Words that go with them, and names of identifiers without them.
const IDENTIFIERS: [&str; 18] = [
    "id",
    "ids",
    "nr",
    "no",
    "num",
    "number",
    "nummer",
    "key",
    "code",
    "uid",
    "uuid",
    "guid",
    "hash",
    "pseudonym",
    "identifier",
    "record",
    "study",
    "index",
];
/// Fewest different values of a column that names persons.
const FEWEST: usize = 5;
/// Fewest of one whose name does not say so.
const FEWEST_UNNAMED: usize = 10;
/// Fewest rows for each value on average, where the name says so and where it does not.
const REPEATS: (f64, f64) = (1.1, 1.5);
/// Most rows for each value on average of a column whose name does not say so: more are a place.
const VISITS: f64 = 20.0;
/// Logarithm of the odds against a companion that never changes by chance.
const ODDS: f64 = 20.0;

/// The cells of a column: which of its values every row has.
pub struct ColumnCells<'a> {
    /// The column's name.
    pub name: &'a str,
    values: Vec<&'a str>,
    cells: Vec<u32>,
}

impl<'a> ColumnCells<'a> {
    /// A column of so many rows, whose cells are empty where there is no value. `None` where so many values are
    /// different that they can say neither whose a row is nor anything of whose rows they are.
    pub fn of(name: &'a str, rows: usize, cells: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut column = Self {
            name,
            values: Vec::new(),
            cells: Vec::with_capacity(rows),
        };
        let most = (rows as f64 / REPEATS.0) as usize;
        let mut places = BTreeMap::new();
        for cell in cells {
            let at = *places.entry(cell).or_insert(column.values.len() as u32);
            if at as usize == column.values.len() {
                column.values.push(cell);
            }
            if column.values.len() > most {
                return None;
            }
            column.cells.push(at);
        }
        Some(column)
    }
}

/// A column that seems to say whose a row is.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupColumn {
    /// Name of the column, for `split = { group = "…" }`.
    pub column: String,
    /// Different values, each at its silo.
    pub groups: usize,
    /// Rows that have a value.
    pub rows: usize,
    /// Reason, in one sentence without a full stop.
    pub reason: String,
}

/// The column whose values seem to be persons, of whom there are several rows; `None` where there is
/// none, as where every row has a value of its own.
///
/// A column is proposed if its name says so and its values repeat; or if it looks like an identifier,
/// repeats a few times for each value, and others (such as the sex or the year of birth) never change
/// within one. Of several that say so, the one with the fewest values is taken: a patient has several
/// cases. `silos` has the silo of every row, or is empty where there is one: identifiers of two silos
/// are different persons. The target and the column of the silo must not be among `columns`.
pub fn group_column(columns: &[ColumnCells<'_>], silos: &[u32]) -> Option<GroupColumn> {
    let found = columns
        .iter()
        .filter_map(|column| ColumnValues::of(column, silos));
    let mut named: Vec<ColumnValues<'_>> = Vec::new();
    let mut unnamed: Vec<(Vec<&str>, ColumnValues<'_>)> = Vec::new();
    for values in found {
        if values.names_persons() {
            named.push(values);
        } else if values.may_be_visits() {
            let companions = columns.iter().filter(|other| values.determines(other));
            let companions: Vec<&str> = companions.map(|other| other.name).collect();
            if !companions.is_empty() {
                unnamed.push((companions, values));
            }
        }
    }
    if let Some(values) = named.iter().min_by_key(|values| values.groups.len()) {
        return Some(values.proposed("by its name these are persons or their cases"));
    }
    let (companions, values) = unnamed
        .into_iter()
        .max_by_key(|(companions, values)| (companions.len(), values.groups.len()))?;
    let quoted: Vec<String> = companions
        .iter()
        .take(3)
        .map(|name| format!("{name:?}"))
        .collect();
    let verb = if quoted.len() == 1 {
        "never changes"
    } else {
        "never change"
    };
    let why = format!("{} {verb} within one", quoted.join(" and "));
    Some(values.proposed(&why))
}

/// The rows of every value of a column.
struct ColumnValues<'a> {
    column: &'a ColumnCells<'a>,
    rows: usize,
    groups: Vec<Vec<usize>>,
}

impl<'a> ColumnValues<'a> {
    /// `None` where a value is missing, or none repeats.
    fn of(column: &'a ColumnCells<'a>, silos: &[u32]) -> Option<Self> {
        if column.values.contains(&"") {
            return None;
        }
        let mut places = BTreeMap::<(u32, u32), usize>::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (row, &cell) in column.cells.iter().enumerate() {
            let silo = silos.get(row).copied().unwrap_or(0);
            let at = *places.entry((silo, cell)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(row);
        }
        let rows = column.cells.len();
        (groups.len() < rows).then_some(Self {
            column,
            rows,
            groups,
        })
    }

    fn mean(&self) -> f64 {
        self.rows as f64 / self.groups.len() as f64
    }

    fn names_persons(&self) -> bool {
        let words = words(self.column.name);
        let persons = words.iter().any(|word| PERSONS.contains(&word.as_str()));
        let others = |word: &String| {
            [&PERSONS[..], &IDENTIFIERS[..]]
                .concat()
                .contains(&word.as_str())
        };
        persons
            && words.iter().all(others)
            && self.groups.len() >= FEWEST
            && self.mean() >= REPEATS.0
    }

    /// Returns whether the values look like identifiers of which a few rows each are.
    fn may_be_visits(&self) -> bool {
        let words = words(self.column.name);
        let named = words
            .iter()
            .any(|word| IDENTIFIERS.contains(&word.as_str()));
        let enough = self.groups.len() >= FEWEST_UNNAMED;
        let each = (REPEATS.1..=VISITS).contains(&self.mean());
        enough && each && (named || self.column.values.iter().all(|cell| is_identifier(cell)))
    }

    /// Returns whether the other column has one value within each value of this one, which chance would not do.
    fn determines(&self, other: &ColumnCells<'_>) -> bool {
        if other.name == self.column.name {
            return false;
        }
        let mut counts = vec![0; other.values.len()];
        other
            .cells
            .iter()
            .for_each(|&cell| counts[cell as usize] += 1);
        // As many values as groups are this column in other words.
        if counts.len() < 2 || counts.len() >= self.groups.len() {
            return false;
        }
        let equal: f64 = counts
            .iter()
            .map(|&count| (count as f64 / self.rows as f64).powi(2))
            .sum();
        let repeats = (self.rows - self.groups.len()) as f64;
        let same = |rows: &Vec<usize>| {
            rows.iter()
                .all(|&row| other.cells[row] == other.cells[rows[0]])
        };
        repeats * -equal.ln() >= ODDS && self.groups.iter().all(same)
    }

    fn proposed(&self, why: &str) -> GroupColumn {
        let (column, rows, groups) = (self.column.name, self.rows, self.groups.len());
        GroupColumn {
            column: column.to_owned(),
            groups,
            rows,
            reason: format!(
                "{column:?} has {groups} values in {rows} rows, and {why}: `split = {{ group = {column:?} }}` \
                 keeps the rows of each value in one part, so that a model is not tested on persons that it has \
                 seen"
            ),
        }
    }
}

/// The words of a name, in lower case: divided at other characters, and where a small letter or a
/// digit is followed by a capital.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        let begins = letter.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit());
        if !letter.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            let word = words.last_mut().expect("there is always one");
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a cell looks like an identifier: digits with letters, or many digits.
fn is_identifier(cell: &str) -> bool {
    let digits = cell.chars().filter(char::is_ascii_digit).count();
    let letters = cell.chars().filter(|letter| letter.is_alphabetic()).count();
    let others = cell
        .chars()
        .any(|letter| letter == '.' || letter == ',' || letter.is_whitespace());
    digits > 0 && !others && (letters > 0 || digits >= 5)
}

/// Rows that are there more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeated {
    /// Rows that another one of the same silo equals, counted without the first.
    pub within: usize,
    /// Rows of another silo that equal one of an earlier silo, counted once for each silo.
    pub across: usize,
    /// Rows in all.
    pub rows: usize,
    /// Different rows.
    pub different: usize,
    /// Silos that have some of either kind, with their number, in order.
    pub silos: Vec<(String, usize)>,
}

impl Repeated {
    /// A sentence without a full stop for the user; `None` where there are none, and where so few columns
    /// or values make equal rows likely that they mean nothing.
    pub fn note(&self) -> Option<String> {
        if self.within + self.across == 0 || 2 * self.different < self.rows {
            return None;
        }
        let shown = self.silos.iter().take(5);
        let shown: Vec<String> = shown
            .map(|(name, count)| format!("{name} ({count})"))
            .collect();
        let more = match self.silos.len() {
            0..=5 => String::new(),
            count => format!(" and {} more", count - 5),
        };
        let rows = self.rows;
        let repeat = |count: usize| format!("{count} of {rows} rows {}", verb(count, "repeat"));
        let what = match (self.within, self.across) {
            (within, 0) => format!("{} another row of the same silo", repeat(within)),
            (0, across) => format!("{} a row of another silo", repeat(across)),
            (within, across) => format!(
                "{} another row of the same silo, and {across} a row of another silo",
                repeat(within)
            ),
        };
        Some(format!(
            "{what}: {}{more}; a model seems better than it is if the same row is used for training and for \
             testing: remove the copies, or keep them together with `split = {{ group = \"COLUMN\" }}`",
            shown.join(", ")
        ))
    }
}

/// Counts rows with equal features and targets, of silos in one process. Nothing of a row is compared
/// with rows in another process, not even by a hash: who knows how it is made confirms a guess of a row.
pub fn repeated(silos: &[(String, Table)]) -> Repeated {
    let rows = silos.iter().enumerate();
    let mut rows: Vec<(usize, usize)> = rows
        .flat_map(|(silo, (_, table))| (0..table.len()).map(move |row| (silo, row)))
        .collect();
    let numbers = |(silo, row): (usize, usize)| {
        let table = &silos[silo].1;
        table.row(row).iter().chain(table.targets(row))
    };
    let order = |a: (usize, usize), b: (usize, usize)| {
        let pairs = numbers(a).zip(numbers(b));
        let mut orders = pairs.map(|(a, b)| a.total_cmp(b));
        orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    rows.sort_by(|&a, &b| order(a, b));
    let mut found = Repeated {
        rows: rows.len(),
        ..Repeated::default()
    };
    let mut counts = vec![0; silos.len()];
    for equal in rows.chunk_by(|&a, &b| order(a, b).is_eq()) {
        found.different += 1;
        // The sort keeps the order of silos.
        for pair in equal.windows(2) {
            let ((before, _), (silo, _)) = (pair[0], pair[1]);
            if before == silo {
                found.within += 1
            } else {
                found.across += 1
            }
            counts[silo] += 1;
        }
    }
    let named = silos.iter().zip(counts).filter(|(_, count)| *count > 0);
    found.silos = named
        .map(|((name, _), count)| (name.clone(), count))
        .collect();
    found
}

#[cfg(test)]
mod tests;
