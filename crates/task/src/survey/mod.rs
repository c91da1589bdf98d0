//! Holds an institution's files against an agreed schema: what every column holds there, and all that
//! does not fit, with the names and codes that would make it fit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::TableTask;
use crate::counted::{counted, rows_that};
use crate::data::{
    Charset, DataError, Format, OwnRows, RawFile, SplitConfig, composed, nearest, open,
    open_row_by_row, same_bytes, same_class,
};
use crate::propose::Cells;
use crate::schema::{
    ClassValues, DateForm, Days, FeatureColumns, Levels, LocalNames, MissingRule, OPEN, ReadCells,
    Schema,
};
use crate::typed::typed_pair;

mod proposed;
mod survival;

use self::proposed::called;

/// Factor by which the middle value may lie beyond the usual ones before it is asked about.
const FAR: f64 = 10.0;
/// Fewest numbers of which it is told that all are elsewhere.
const FEWEST: usize = 10;
/// Most values of a column that are listed as not fitting.
const LISTED: usize = 40;

/// Findings in the files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// Content of every agreed column, in one phrase.
    pub columns: Vec<(String, String)>,
    /// All that does not fit, in sentences without a full stop; empty where the files fit.
    pub misfits: Vec<String>,
    /// Names and codes that would fit, whole: what was right stays, and [`OPEN`] stands where only a person
    /// knows. Nothing where names and codes would not help.
    pub names: Option<LocalNames>,
    /// Columns of the files that no agreed one is thought to be.
    pub unread: Vec<String>,
    /// Numbers far from the usual ones of the table that the agreement was drafted from, in sentences.
    pub doubts: Vec<String>,
}

/// Surveys files in `folder`, read as `task` has them read, in which the columns that its split names are needed as
/// well.
///
/// # Errors
/// [`DataError`]: a file cannot be read, or is no table.
pub fn survey(
    task: &TableTask,
    schema: &Schema,
    rows: &OwnRows,
    folder: &Path,
) -> Result<Survey, DataError> {
    let opened = match task.is_noised() {
        true => open_row_by_row,
        false => open,
    };
    let split = &task.split;
    let config = rows.of_silo("", folder);
    let mut raw = Vec::with_capacity(config.files.len());
    for file in &config.files {
        let format = file.format.as_ref().unwrap_or(&config.format);
        raw.push((opened(file.path.clone(), format)?, format.clone()));
    }
    let mut found = SurveyBuilder {
        schema,
        split,
        local: &rows.names,
        raw: &raw,
        survey: Survey::default(),
        columns: BTreeMap::new(),
        codes: BTreeMap::new(),
        units: BTreeMap::new(),
        dates: BTreeMap::new(),
        ignore: Vec::new(),
    };
    found.headers();
    for (name, feature) in schema.columns() {
        found.feature(name, feature)?;
    }
    match schema.target.survival {
        true => found.survival()?,
        false => {
            for name in schema.target.name.iter() {
                found.target(name)?;
            }
        }
    }
    for name in split.group.iter() {
        found.group(name)?;
    }
    found.survey.names = found.names();
    found.survey.unread = found.ignore;
    Ok(found.survey)
}

struct SurveyBuilder<'a> {
    schema: &'a Schema,
    split: &'a SplitConfig,
    local: &'a LocalNames,
    raw: &'a [(RawFile, Format)],
    survey: Survey,
    /// Agreed columns that are not there, and what they may be called.
    columns: BTreeMap<String, String>,
    /// By agreed column, texts that are no agreed value, and the value that each may mean.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    /// By agreed column, the text around its numbers that nobody agreed on.
    units: BTreeMap<String, String>,
    /// By agreed column, how its dates are written, where only one form fits.
    dates: BTreeMap<String, DateForm>,
    ignore: Vec<String>,
}

impl SurveyBuilder<'_> {
    /// All columns that a file must have.
    fn agreed(&self) -> Vec<String> {
        let schema = self.schema;
        let filters = schema.only.iter().map(|filter| filter.column.as_str());
        let beside = filters.chain(schema.subgroup.as_deref());
        let SplitConfig {
            column,
            time,
            group,
            ..
        } = self.split;
        let all = schema
            .names()
            .chain(schema.target.name.iter())
            .chain(beside)
            .chain(
                [column, time, group]
                    .into_iter()
                    .flatten()
                    .map(String::as_str),
            );
        let mut all: Vec<String> = all.map(str::to_owned).collect();
        all.dedup();
        all
    }

    /// Columns that are missing, and columns that nobody agreed on.
    fn headers(&mut self) {
        self.unknown_names();
        let agreed = self.agreed();
        let here = agreed.into_iter().filter(|name| !self.lacks(name));
        let agreed: Vec<String> = here.collect();
        let locals = agreed.iter().map(|name| called(self.local, name));
        let locals: Vec<Cow<'_, str>> = locals.collect();
        let ignored = self.local.ignore.iter().map(|own| composed(own));
        let ignored: Vec<Cow<'_, str>> = ignored.collect();
        for (file, _) in self.raw {
            let known = |name: &&String| locals.iter().chain(&ignored).all(|own| own != *name);
            let extra: Vec<&String> = file.header.iter().filter(known).collect();
            let plain = |name: &str| -> String {
                name.chars()
                    .filter(|letter| letter.is_alphanumeric())
                    .flat_map(char::to_lowercase)
                    .collect()
            };
            let mut taken: Vec<&str> = Vec::new();
            for (name, local) in agreed.iter().zip(&locals) {
                if file.header.iter().any(|own| own == local) {
                    continue;
                }
                let same = extra.iter().find(|own| plain(own) == plain(name));
                let near = extra
                    .iter()
                    .find(|own| !nearest(name, [own.as_str()]).is_empty());
                let guess = same.or(near).map_or(OPEN, |own| own.as_str());
                taken.push(guess);
                self.survey.misfits.push(format!(
                    "{}: there is no column {local:?}{}",
                    file.path.display(),
                    match guess {
                        OPEN if self.is_filled(name) =>
                            "; if it has none, name it in `absent`: the agreement fills its gaps"
                                .into(),
                        OPEN => String::new(),
                        guess => format!("; is it {guess:?}?"),
                    }
                ));
                self.columns.insert(name.clone(), guess.to_owned());
            }
            for name in extra.iter().filter(|name| !taken.contains(&name.as_str())) {
                self.survey.misfits.push(format!(
                    "{}: the column {name:?} is in no agreement",
                    file.path.display()
                ));
                if !self.ignore.contains(name) {
                    self.ignore.push((*name).clone());
                }
            }
        }
    }

    /// The cells of an agreed column, if all files have it.
    fn cells(&self, name: &str) -> Result<Option<Cells<'static>>, DataError> {
        let local = called(self.local, name);
        let there = |(file, _): &(RawFile, Format)| file.header.iter().any(|own| *own == local);
        if self.raw.iter().all(there) {
            let marks = self.local.marks(self.schema, name);
            let measured = self.schema.measured(name, self.local);
            let cells = Cells::marked(self.raw, &local, &marks, &measured);
            cells.map(|cells| Some(cells.unnamed()))
        } else {
            Ok(None)
        }
    }

    fn feature(&mut self, name: &str, feature: &FeatureColumns) -> Result<(), DataError> {
        let Some(cells) = self.cells(name)? else {
            self.survey.columns.extend(self.lacking(name));
            return Ok(());
        };
        let means = |text: &str| self.local.value(name, text).to_owned();
        match feature.kind.cells() {
            ReadCells::Levels(Levels {
                listed: levels,
                other,
            }) => {
                let mut by_level: BTreeMap<&str, usize> = BTreeMap::new();
                let (mut others, mut odd) = (0, Vec::new());
                for (text, rows) in &cells.values {
                    let value = means(text);
                    match levels.iter().find(|level| composed(level) == value) {
                        Some(level) => *by_level.entry(level).or_default() += rows,
                        None if *other => others += rows,
                        None => odd.push((text.clone(), *rows)),
                    }
                }
                let each = levels.iter().map(|level| {
                    let rows = by_level.get(level.as_str()).copied().unwrap_or_default();
                    format!("{level} {rows}")
                });
                let mut what = each.collect::<Vec<_>>().join(", ");
                if *other {
                    write!(what, "; all others together {others}")
                        .expect("a String takes everything");
                }
                self.said(name, &cells, what);
                self.unknown(name, &odd, levels);
            }
            ReadCells::Days(agreed) => {
                let odd = self.untranslated(name, &cells);
                self.said(name, &cells, dates_of(agreed, &cells));
                self.no_dates(name, &odd);
                self.days(name, agreed, &cells);
            }
            ReadCells::Numbers { agreed, whole } => {
                let odd = self.untranslated(name, &cells);
                self.said(name, &cells, cells.range());
                self.no_numbers(name, &odd, &cells);
                self.numbers(name, agreed.range, &cells);
                let codes = cells.written_as_codes();
                let doubt = codes.map(|why| format!("{name}: {why}, and numbers are agreed"));
                self.survey.doubts.extend(doubt);
                if whole && !cells.whole() {
                    self.not_whole(name, &cells);
                }
            }
        }
        if feature.missing == MissingRule::Refuse && cells.missing > 0 {
            let read = self.read_as_missing(name, feature);
            self.survey.misfits.push(format!(
                "{name}: {} no value, and the agreement has no rule for missing values here{read}; leave these rows out, or \
                 ask for an agreement that has one (`missing`; `rota federation new` takes --missing)",
                rows_that(cells.missing, "have")
            ));
        }
        Ok(())
    }

    fn target(&mut self, name: &str) -> Result<(), DataError> {
        let Some(cells) = self.cells(name)? else {
            return Ok(());
        };
        let Some(classes) = &self.schema.target.classes else {
            let odd = self.untranslated(name, &cells);
            self.said(name, &cells, format!("to predict: {}", cells.range()));
            self.no_numbers(name, &odd, &cells);
            self.numbers(name, self.schema.target.range, &cells);
            return Ok(());
        };
        let values: Vec<String> = classes
            .iter()
            .flat_map(ClassValues::values)
            .cloned()
            .collect();
        let mut odd = Vec::new();
        let mut rows_of: Vec<usize> = vec![0; classes.len()];
        for (text, rows) in &cells.values {
            let value = self.local.value(name, text);
            let is = |class: &ClassValues| class.values().iter().any(|own| same_class(own, value));
            match classes.iter().position(is) {
                Some(at) => rows_of[at] += rows,
                None => odd.push((text.clone(), *rows)),
            }
        }
        let each = classes.iter().zip(rows_of);
        let each: Vec<String> = each
            .map(|(class, rows)| format!("{} {rows}", class.name()))
            .collect();
        self.said(name, &cells, format!("to predict: {}", each.join(", ")));
        self.unknown(name, &odd, &values);
        Ok(())
    }

    /// The column that says whose a row is.
    fn group(&mut self, name: &str) -> Result<(), DataError> {
        let Some(cells) = self.cells(name)? else {
            return Ok(());
        };
        let groups = cells.values.len();
        self.said(name, &cells, format!("whose a row is: {groups} different"));
        if cells.missing > 0 {
            self.survey.misfits.push(format!(
                "{name}: {} no value, and every row needs one, so that rows of one are not in two parts",
                rows_that(cells.missing, "have")
            ));
        }
        Ok(())
    }

    fn said(&mut self, name: &str, cells: &Cells<'_>, what: String) {
        self.survey
            .columns
            .push((name.to_owned(), cells.with_missing(what)));
    }

    /// Texts that are none of the agreed values.
    fn unknown(&mut self, name: &str, odd: &[(String, usize)], agreed: &[String]) {
        if odd.is_empty() {
            return;
        }
        let pairs = odd
            .iter()
            .take(LISTED)
            .flat_map(|(text, _)| agreed.iter().map(move |own| (text, own)));
        let mut pairs = pairs.filter_map(|(text, own)| Some((text, own, same_bytes(text, own)?)));
        let encoding = pairs.next().map(|(text, own, (read, meant))| {
            let option = match meant {
                meant if meant == Charset::UTF_8 => String::new(),
                meant => format!(
                    ": say --encoding {}, or which value it means",
                    meant.label()
                ),
            };
            format!(
                "; {text:?} is {own:?} in another encoding, {} read as {}{option}",
                meant.name(),
                read.name()
            )
        });
        self.survey.misfits.push(format!(
            "{name}: not agreed are {}; agreed are {}{}",
            listed(odd),
            agreed.join(", "),
            encoding.unwrap_or_default()
        ));
        let guess = |text: &str| {
            let alike = |own: &&String| {
                own.to_lowercase() == text.to_lowercase() || same_bytes(text, own).is_some()
            };
            let same = agreed.iter().find(alike);
            same.map_or(OPEN, String::as_str).to_owned()
        };
        let codes = odd
            .iter()
            .take(LISTED)
            .map(|(text, _)| (text.clone(), guess(text)));
        self.codes.entry(name.to_owned()).or_default().extend(codes);
    }

    /// Cells that should be numbers.
    fn no_numbers(&mut self, name: &str, odd: &[(String, usize)], cells: &Cells<'_>) {
        if odd.is_empty() {
            return;
        }
        let misread = cells.misread();
        for found in &misread {
            let remedy = match &found.unit {
                Some(unit) => {
                    let agreed = self.schema.measured(name, self.local).units;
                    let pair = typed_pair(name, unit);
                    self.units.insert(name.to_owned(), unit.clone());
                    match agreed.as_slice() {
                        [] => format!("if it is the unit that all mean, say --unit {pair}"),
                        [agreed, ..] => format!(
                            "the agreed unit is {agreed:?}: if it is the same one, say --unit {pair}"
                        ),
                    }
                }
                None => {
                    "the agreement has no rule for such values (`censored`): propose one, or write \
                         numbers in their place"
                        .to_owned()
                }
            };
            self.survey
                .misfits
                .push(format!("{name}: {}; {remedy}", found.what));
        }
        if !misread.is_empty() {
            return;
        }
        self.survey.misfits.push(format!(
            "{name}: no numbers are {}; if one is a missing value, put it into `missing` of this column, or else \
             its number into `codes`",
            listed(odd)
        ));
        let codes = odd.iter().take(LISTED);
        let codes = codes.map(|(text, _)| (text.clone(), OPEN.to_owned()));
        self.codes.entry(name.to_owned()).or_default().extend(codes);
    }

    /// Cells that should be dates.
    fn no_dates(&mut self, name: &str, odd: &[(String, usize)]) {
        if odd.is_empty() {
            return;
        }
        let forms = DateForm::of(odd.iter().map(|(text, _)| text.as_str()));
        let remedy = match forms[..] {
            [] => "write them as 2024-05-31; if one is a missing value, put it into `missing` of this column".to_owned(),
            [form] => {
                self.dates.insert(name.to_owned(), form);
                format!("if they are meant as {}, say so (`dates`)", form.name())
            }
            [first, second, ..] => format!(
                "they could be meant as {} or as {}: say which (`dates`)",
                first.name(),
                second.name()
            ),
        };
        self.survey.misfits.push(format!(
            "{name}: not read as dates are {}; {remedy}",
            listed(odd)
        ));
    }

    /// Days before the first or behind the last that is agreed on.
    fn days(&mut self, name: &str, agreed: &Days, cells: &Cells<'_>) {
        let (Some([low, high]), Some(until)) = (agreed.range(), agreed.until) else {
            return;
        };
        let outside = cells.numbers.iter();
        let outside = outside.filter(|(value, _)| !(low..=high).contains(value));
        let rows: usize = outside.map(|(_, rows)| rows).sum();
        if rows > 0 {
            self.survey.misfits.push(format!(
                "{name}: outside of the agreed days {} to {until} in {}; the files hold {}",
                agreed.since,
                counted(rows, "row"),
                dates_of(agreed, cells)
            ));
        }
    }

    /// Numbers outside of the agreed range, and unlike the usual ones.
    fn numbers(&mut self, name: &str, range: Option<[f64; 2]>, cells: &Cells<'_>) {
        let beyond = |(value, _): &&(f64, usize)| match range {
            Some([low, high]) => !(low..=high).contains(value),
            None => false,
        };
        let outside: Vec<&(f64, usize)> = cells.numbers.iter().filter(beyond).collect();
        if let (Some([low, high]), Some(first), Some(last)) =
            (range, outside.first(), outside.last())
        {
            let rows: usize = outside.iter().map(|(_, rows)| rows).sum();
            self.survey.misfits.push(format!(
                "{name}: outside of the agreed range {low} to {high} in {}, from {} to {}",
                counted(rows, "row"),
                first.0,
                last.0
            ));
        }
        let Some([low, high]) = self.schema.usual.get(name).copied() else {
            return;
        };
        let middle = cells.median();
        let most = low.abs().max(high.abs());
        let far = middle.abs() > FAR * most || (low > 0.0 && middle < low / FAR);
        // Of eight rows in ten none is among the usual ones, and the middle is as far from them as they are apart.
        let width = high - low;
        let above = cells.quantile(0.1) > high && middle > high + width;
        let below = cells.quantile(0.9) < low && middle < low - width;
        let rows: usize = cells.numbers.iter().map(|(_, rows)| rows).sum();
        if far || (rows >= FEWEST && (above || below)) {
            self.survey.doubts.push(format!(
                "{name}: the middle value here is {middle}, and in the table that the agreement was drafted \
                 from most lie from {low} to {high}: is a mark of thousands read as a decimal mark \
                 (`thousands` and `decimal` in `format`), or is it in another unit?"
            ));
        }
    }

    /// A fraction where whole numbers are agreed.
    fn not_whole(&mut self, name: &str, cells: &Cells<'_>) {
        let first = cells.numbers.iter().find(|(value, _)| value.fract() != 0.0);
        let first = first.map_or(f64::NAN, |(value, _)| *value);
        self.survey.misfits.push(format!(
            "{name}: whole numbers are agreed, and it holds {first}: is a mark of thousands read as a \
             decimal mark?"
        ));
    }
}

/// The first and the last date of a column.
fn dates_of(agreed: &Days, cells: &Cells<'_>) -> String {
    match (cells.numbers.first(), cells.numbers.last()) {
        (Some((low, _)), Some((high, _))) => {
            format!("dates from {} to {}", agreed.day(*low), agreed.day(*high))
        }
        _ => "no date".into(),
    }
}

/// Texts with their rows, the most frequent first.
fn listed(odd: &[(String, usize)]) -> String {
    let mut odd: Vec<&(String, usize)> = odd.iter().collect();
    odd.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
    let some = odd.iter().take(8).map(|(text, rows)| {
        let text: String = text.chars().take(40).collect();
        format!("{text:?} {rows}")
    });
    let mut text = some.collect::<Vec<_>>().join(", ");
    if odd.len() > 8 {
        write!(text, " and {} more", odd.len() - 8).expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests;
