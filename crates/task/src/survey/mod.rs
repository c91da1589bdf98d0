//! Holds an institution's files against an agreed schema: what every column holds there, and all that
//! does not fit, with the names and codes that would make it fit.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::TableTask;
use crate::counted::{counted, rows_that};
use crate::data::{
    DataError, Format, OwnRows, RawFile, SplitConfig, nearest, open, open_row_by_row, same_class,
};
use crate::propose::Cells;
use crate::schema::{
    ClassValues, ColumnType, FeatureColumns, Levels, LocalNames, MissingRule, Schema,
};

/// How often the middle value may lie beyond the usual ones before it is asked about.
const FAR: f64 = 10.0;
/// Most values of a column that are listed as not fitting.
const LISTED: usize = 40;

/// What was found in the files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// What every agreed column holds, in one phrase.
    pub columns: Vec<(String, String)>,
    /// All that does not fit, in sentences without a full stop; empty where the files fit.
    pub misfits: Vec<String>,
    /// Names and codes to paste below the key `data.rows.names`, as TOML, a `?` where only a person knows;
    /// nothing where names and codes would not help.
    pub names: Option<String>,
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
        ignore: Vec::new(),
    };
    found.headers();
    for (name, feature) in schema.columns() {
        found.feature(name, feature)?;
    }
    for name in schema.target.name.iter() {
        found.target(name)?;
    }
    for name in split.group.iter() {
        found.group(name)?;
    }
    found.survey.names = found.names();
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
        let agreed = self.agreed();
        let locals: Vec<&str> = agreed.iter().map(|name| self.local.column(name)).collect();
        for (file, _) in self.raw {
            let known = |name: &&String| {
                !locals.contains(&name.as_str()) && !self.local.ignore.contains(name)
            };
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
                let guess = same.or(near).map_or("?", |own| own.as_str());
                taken.push(guess);
                self.survey.misfits.push(format!(
                    "{}: there is no column {local:?}{}",
                    file.path.display(),
                    match guess {
                        "?" => String::new(),
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
        let local = self.local.column(name);
        let there = |(file, _): &(RawFile, Format)| file.header.iter().any(|own| own == local);
        if self.raw.iter().all(there) {
            let marks = self.local.missing.get(name).map_or(&[][..], Vec::as_slice);
            Cells::marked(self.raw, local, marks).map(|cells| Some(cells.unnamed()))
        } else {
            Ok(None)
        }
    }

    fn feature(&mut self, name: &str, feature: &FeatureColumns) -> Result<(), DataError> {
        let Some(cells) = self.cells(name)? else {
            return Ok(());
        };
        let means = |text: &str| self.local.value(name, text).to_owned();
        if let ColumnType::Category(Levels {
            listed: levels,
            other,
        }) = &feature.kind
        {
            let mut by_level: BTreeMap<&str, usize> = BTreeMap::new();
            let (mut others, mut odd) = (0, Vec::new());
            for (text, rows) in &cells.values {
                let value = means(text);
                match levels.iter().find(|level| **level == value) {
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
                write!(what, "; all others together {others}").expect("a String takes everything");
            }
            self.said(name, &cells, what);
            self.unknown(name, &odd, levels);
        } else {
            let translated = |text: &&String| means(text) != **text;
            let odd: Vec<(String, usize)> = cells
                .odd()
                .into_iter()
                .map(|(text, rows)| (text.to_owned(), rows))
                .filter(|(text, _)| !translated(&text))
                .collect();
            self.said(name, &cells, cells.range());
            self.no_numbers(name, &odd);
            let quantity = feature.kind.quantity();
            self.numbers(name, quantity.and_then(|quantity| quantity.range), &cells);
            if matches!(feature.kind, ColumnType::Integer(_)) && !cells.whole() {
                self.not_whole(name, &cells);
            }
        }
        if feature.missing == MissingRule::Refuse && cells.missing > 0 {
            self.survey.misfits.push(format!(
                "{name}: {} no value, and the agreement has no rule for missing values here",
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
            let odd: Vec<(String, usize)> = cells
                .odd()
                .into_iter()
                .map(|(text, rows)| (text.to_owned(), rows))
                .collect();
            self.said(name, &cells, format!("to predict: {}", cells.range()));
            self.no_numbers(name, &odd);
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
        self.survey.misfits.push(format!(
            "{name}: not agreed are {}; agreed are {}",
            listed(odd),
            agreed.join(", ")
        ));
        let guess = |text: &str| {
            let same = agreed
                .iter()
                .find(|own| own.to_lowercase() == text.to_lowercase());
            same.map_or("?", String::as_str).to_owned()
        };
        let codes = odd
            .iter()
            .take(LISTED)
            .map(|(text, _)| (text.clone(), guess(text)));
        self.codes.entry(name.to_owned()).or_default().extend(codes);
    }

    /// Cells that should be numbers.
    fn no_numbers(&mut self, name: &str, odd: &[(String, usize)]) {
        if odd.is_empty() {
            return;
        }
        let marks: Vec<String> = odd
            .iter()
            .take(8)
            .map(|(text, _)| format!("{text:?}"))
            .collect();
        self.survey.misfits.push(format!(
            "{name}: no numbers are {}; if they are missing values, add {} to `missing` in `format`",
            listed(odd),
            marks.join(", ")
        ));
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
        if far {
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

    /// The keys to paste.
    fn names(&self) -> Option<String> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let table = |pairs: &BTreeMap<String, String>| {
            let pairs = pairs
                .iter()
                .map(|(from, to)| format!("{} = {}", quoted(from), quoted(to)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        };
        let mut text = String::new();
        if !self.columns.is_empty() {
            // A name that is known already stays.
            let known = self
                .local
                .columns
                .iter()
                .map(|(a, b)| (a.clone(), b.clone()));
            let all = known.chain(self.columns.clone()).collect();
            text += &format!("columns = {}\n", table(&all));
        }
        if !self.codes.is_empty() {
            let mut all = self.local.codes.clone();
            for (column, codes) in &self.codes {
                all.entry(column.clone()).or_default().extend(codes.clone());
            }
            let all = all
                .iter()
                .map(|(column, codes)| format!("{} = {}", quoted(column), table(codes)));
            text += &format!("codes = {{ {} }}\n", all.collect::<Vec<_>>().join(", "));
        }
        if !self.ignore.is_empty() {
            let all = self
                .local
                .ignore
                .iter()
                .chain(&self.ignore)
                .map(|name| quoted(name));
            text += &format!("ignore = [{}]\n", all.collect::<Vec<_>>().join(", "));
        }
        (!text.is_empty()).then_some(text)
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
