//! An event and the time until it, as two columns of files that nobody has described yet: found, asked about, and
//! proposed as a survival target.

mod names;

use std::collections::{BTreeMap, BTreeSet};

use self::names::{TimeName, names_censoring, names_event, time_name};
use super::cells::Cells;
use super::personal::{are_dates, words};
use super::{OpenQuestions, Wishes};
use crate::counted::{counted, rows_that};
use crate::data::{DataError, DataSet, Format, RawFile, Target, nearest, number, same_class};
use crate::schema::{MeasuredColumn, TargetColumn};
use crate::typed::typed;

/// Most values of a column that may be an event, with competing ones.
const CAUSES: usize = 4;
/// Fewest different numbers of a column that may be a time of follow-up.
const TIMES: usize = 12;
/// Texts that mean that an event happened, where one of two is such a text.
const HAPPENED: [&str; 16] = [
    "yes",
    "true",
    "y",
    "t",
    "dead",
    "died",
    "deceased",
    "death",
    "event",
    "relapse",
    "relapsed",
    "recurred",
    "progressed",
    "ja",
    "tot",
    "verstorben",
];
/// Units of time that names of columns have, as they are named in reports.
const UNITS: [(&str, &str); 7] = [
    ("days", "days"),
    ("weeks", "weeks"),
    ("months", "months"),
    ("years", "years"),
    ("tage", "days"),
    ("monate", "months"),
    ("jahre", "years"),
];

/// The columns of a survival target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SurvivalColumns {
    /// The column that says whether the event happened.
    pub(super) event: String,
    /// The time until the event, or until a person was last seen without it.
    pub(super) time: String,
    /// The time from which on a person was under observation.
    pub(super) entry: Option<String>,
}

impl SurvivalColumns {
    /// These wishes with its columns as what is predicted.
    pub(super) fn wished(&self, wishes: Wishes) -> Wishes {
        Wishes {
            target: Some(self.event.clone()),
            time: Some(self.time.clone()),
            entry: self.entry.clone(),
            ..wishes
        }
    }
}

/// A column of the files that nobody has said anything about, which looks like a time or an event.
struct Candidates {
    times: Vec<(String, TimeName)>,
    events: Vec<String>,
}

impl Candidates {
    fn of(raw: &[(RawFile, Format)], wishes: &Wishes) -> Result<Self, DataError> {
        let header = raw.first().map_or(&[][..], |(file, _)| &file.header);
        let (mut times, mut events) = (Vec::new(), Vec::new());
        for name in header.iter().filter(|name| is_open(name, wishes)) {
            let (time, event) = (time_name(name), names_event(name));
            if time.is_none() && !event {
                continue;
            }
            let cells = Cells::of(raw, name, &MeasuredColumn::default())?;
            if let Some(kind) = time.filter(|_| holds_times(&cells)) {
                times.push((name.clone(), kind));
            }
            if event && (2..=CAUSES).contains(&cells.values.len()) {
                events.push(name.clone());
            }
        }
        Ok(Self { times, events })
    }

    /// The only time, or the only one whose name says what it is.
    fn time(&self) -> Option<&str> {
        let named = self.times.iter();
        let named = named.filter(|(_, kind)| *kind == TimeName::FollowUp);
        let mut named = named.map(|(name, _)| name.as_str());
        match (&self.times[..], named.next(), named.next()) {
            ([(one, _)], _, _) => Some(one),
            (_, Some(one), None) => Some(one),
            _ => None,
        }
    }
}

/// Returns whether nobody has said what becomes of a column.
fn is_open(name: &str, wishes: &Wishes) -> bool {
    let lists = [&wishes.drop, &wishes.numbers, &wishes.categories];
    let single = [&wishes.silo_column, &wishes.group];
    let dates = wishes.dates.iter().map(|(own, _)| own);
    let mut said = lists
        .into_iter()
        .flatten()
        .chain(single.into_iter().flatten())
        .chain(dates);
    !said.any(|own| own == name)
}

/// Returns whether the cells may be times of follow-up: numbers, of which hardly one is below 0.
fn holds_times(cells: &Cells<'_>) -> bool {
    let below: usize = cells
        .numbers
        .iter()
        .filter(|(number, _)| *number < 0.0)
        .map(|(_, rows)| rows)
        .sum();
    let many = cells.numbers.len() >= TIMES;
    (cells.all_numbers() || cells.mostly_numbers()) && many && 20 * below <= cells.numeric
}

/// The columns of a survival target: those that a person names, or the only two that look like an event and its
/// time where nobody says what is predicted. `None` where something else is predicted.
///
/// # Errors
/// [`DataError::Config`]: a time without an event, or an entry without a time.
pub(super) fn chosen(
    raw: &[(RawFile, Format)],
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Result<Option<SurvivalColumns>, DataError> {
    let fail = |text: String| Err(DataError::Config(text));
    let entry = wishes.entry.clone();
    let Some(time) = &wishes.time else {
        if let Some(entry) = &entry {
            return fail(format!(
                "--entry {} is when somebody came under observation: say with --time COLUMN until when",
                typed(entry)
            ));
        }
        if wishes.target.is_some() {
            return Ok(None);
        }
        let found = Candidates::of(raw, wishes)?;
        let ([event], Some(time)) = (&found.events[..], found.time()) else {
            return Ok(None);
        };
        notes.push(format!(
            "no --target was given: {event:?} and {time:?} look like an event and the time until it, and are taken as \
             a survival target (--target COLUMN predicts something else)"
        ));
        return Ok(Some(SurvivalColumns {
            event: event.clone(),
            time: time.to_owned(),
            entry,
        }));
    };
    let event = match &wishes.target {
        Some(event) => event.clone(),
        None => {
            let found = Candidates::of(raw, wishes)?;
            match &found.events[..] {
                [event] => event.clone(),
                _ => {
                    return fail(format!(
                        "--time {} is the time until which event? Say its column with --target",
                        typed(time)
                    ));
                }
            }
        }
    };
    let mut all: Vec<&String> = [&event, time].into_iter().chain(&entry).collect();
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        return fail("--target, --time and --entry need a column each: one is named twice".into());
    }
    Ok(Some(SurvivalColumns {
        event,
        time: time.clone(),
        entry,
    }))
}

/// Returns what to ask where a number is to be predicted that looks like a time of follow-up, beside an event.
pub(super) fn predicted_time(
    raw: &[(RawFile, Format)],
    target: &str,
    wishes: &Wishes,
) -> Result<Option<String>, DataError> {
    let found = Candidates::of(raw, wishes)?;
    let is_time = found.times.iter().any(|(name, _)| name == target);
    let Some(event) = found.events.first().filter(|_| is_time) else {
        return Ok(None);
    };
    Ok(Some(format!(
        "the target {target:?} looks like a time until {event:?}: of whoever had no event yet, only a lower bound of it \
         is known. For a survival target say --target {} --time {}; to predict the number all the same, --number {}",
        typed(event),
        typed(target),
        typed(target)
    )))
}

/// Returns what to ask about a column to learn from that looks like a time of follow-up, which tells the outcome.
/// `target` is what is predicted, and whether it may be the event.
pub(super) fn learned_time(
    cells: &Cells<'_>,
    (target, event): (&str, bool),
    wishes: &Wishes,
) -> Option<String> {
    let name = cells.name.to_owned();
    let kind = time_name(&name).filter(|_| is_open(&name, wishes) && holds_times(cells))?;
    let pair = event && (kind == TimeName::FollowUp || names_event(target));
    let typed_name = typed(&name);
    match (pair, wishes.time.is_some(), kind) {
        (true, false, _) => Some(format!(
            "column {name:?} looks like the time until {target:?}, which is known only after the outcome. If it is, say \
             --time {typed_name} for a survival target, or --drop {typed_name}; if it is known before, --number \
             {typed_name}"
        )),
        (_, true, TimeName::FollowUp) => Some(format!(
            "column {name:?} looks like a further time of follow-up, which is known only after the outcome. If it is, say \
             --drop {typed_name}; if it is known before, --number {typed_name}"
        )),
        _ => None,
    }
}

/// Returns what is said of columns that are learned from and by their names tell of the time after time 0.
pub(super) fn told_later(names: &[&str], survival: bool) -> Vec<String> {
    let time = |name: &&&str| matches!(time_name(name), Some(TimeName::FollowUp));
    let times = names.iter().filter(time).map(|name| {
        format!(
            "{name:?} is learned from, and looks like a time of follow-up: a model that is given it knows the outcome \
             beforehand"
        )
    });
    let event = |name: &&&str| survival && names_event(name);
    let events = names.iter().filter(event).map(|name| {
        format!("{name:?} is learned from, and looks like another event: is it known at time 0?")
    });
    times.chain(events).collect()
}

/// Returns what all rows together tell of their events: silos without one, or without a censored row. One sentence
/// each, without a full stop.
pub(super) fn noticed(data: &DataSet) -> Vec<String> {
    if !matches!(data.target, Target::Survival { .. }) {
        return Vec::new();
    }
    let several = data.silos.len() > 1;
    let silos = data.silos.iter().filter(|(_, table)| !table.is_empty());
    let notes = silos.filter_map(|(name, table)| {
        let rows = table.len();
        let events = (0..rows).filter(|row| table.targets(*row)[0] == 1.0).count();
        let place = match several {
            true => format!("{name}: "),
            false => String::new(),
        };
        match events {
            0 => Some(format!(
                "{place}none of {} has an event: risk sets are compared within a silo, so that these rows teach nothing of \
                 when it comes, and concordance has no value on them; is 1 the code of an event here?",
                counted(rows, "row")
            )),
            _ if events == rows => Some(format!(
                "{place}each of {} has an event, and none is censored: is 0 the code of a censored row here?",
                counted(rows, "row")
            )),
            _ => None,
        }
    });
    notes.collect()
}

/// The cells of the columns of a survival target.
pub(super) struct SurvivalCells<'n> {
    event: Cells<'n>,
    time: Cells<'n>,
    entry: Option<Cells<'n>>,
    /// The texts of the event, as they stand in the files.
    texts: BTreeSet<String>,
}

impl<'n> SurvivalCells<'n> {
    /// Reads them.
    pub(super) fn of(
        raw: &[(RawFile, Format)],
        columns: &'n SurvivalColumns,
        asked: &mut OpenQuestions<'_>,
    ) -> Result<Self, DataError> {
        let event = asked.cells(raw, &columns.event)?;
        let time = asked.cells(raw, &columns.time)?;
        let entry = columns.entry.as_deref();
        let entry = entry.map(|entry| asked.cells(raw, entry)).transpose()?;
        let marks = asked.wishes.marks_of(&columns.event, &raw[0].0.header);
        let mut texts = BTreeSet::new();
        for (file, format) in raw {
            let place = file.place(&columns.event)?;
            let cells = file.rows.iter();
            let cells = cells.map(|row| row.cells.get(place).unwrap_or_default());
            let present = cells.filter(|text| !format.is_missing_in(&marks, text));
            texts.extend(present.map(str::to_owned));
        }
        Ok(Self {
            event,
            time,
            entry,
            texts,
        })
    }

    /// The target, and what it holds in words, where nothing has to be asked first.
    ///
    /// # Errors
    /// [`DataError::Config`]: columns that are no event and no time.
    pub(super) fn target(
        &self,
        asked: &mut OpenQuestions<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Option<(TargetColumn, String)>, DataError> {
        for (cells, what) in [
            (Some(&self.event), "event"),
            (Some(&self.time), "time"),
            (self.entry.as_ref(), "entry"),
        ] {
            let Some(cells) = cells else { continue };
            if cells.present() == 0 {
                return Err(wrong(cells.name, "no row has a value"));
            }
            let texts: Vec<&str> = cells.values.keys().map(String::as_str).collect();
            if what != "event" && are_dates(&texts) {
                let why = "it holds dates, and a time until an event is a number: write the days from the beginning of \
                           observation until then into a column of the file";
                return Err(wrong(cells.name, why));
            }
            if cells.missing > 0 {
                notes.push(format!(
                    "{} no value of {:?}, the {what}, of {} in all: left out",
                    rows_that(cells.missing, "have"),
                    cells.name,
                    cells.count
                ));
            }
        }
        let happened = self.happened(asked, notes)?;
        self.times(asked);
        let Some(happened) = happened.filter(|_| asked.questions.sentences.is_empty()) else {
            return Ok(None);
        };
        self.encode(&happened, asked);
        let events = self.events(&happened);
        if events == 0 {
            return Err(wrong(
                self.event.name,
                "no row has an event: where nobody had one, nothing can be learned of when it comes",
            ));
        }
        let present = self.event.present();
        let words = format!(
            "{} in {}, and {} censored; {} {}",
            counted(events, "event"),
            counted(present, "row"),
            present - events,
            self.time.name,
            self.time
                .range()
                .trim_start_matches("whole ")
                .trim_start_matches("numbers ")
        );
        let measured = asked.wishes.measured(self.time.name);
        let unit = measured.units.first().map(|unit| (*unit).to_owned());
        let unit = unit.or_else(|| unit_of(self.time.name));
        let entry = self.entry.as_ref().map(|cells| cells.name);
        let column = TargetColumn {
            unit,
            ..TargetColumn::survival(self.event.name, self.time.name, entry)
        };
        Ok(Some((column, words)))
    }

    /// The value that means that the event happened; `None` where it is asked.
    fn happened(
        &self,
        asked: &mut OpenQuestions<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Option<String>, DataError> {
        let (name, values) = (self.event.name, &self.event.values);
        if let Some(positive) = &asked.wishes.positive {
            let known = values.keys().find(|value| same_class(value, positive));
            let Some(known) = known else {
                let all = values.keys().map(String::as_str);
                let near = nearest(positive, all);
                let what = format!("no row has the value {positive:?} that --positive names{near}");
                return Err(wrong(name, &what));
            };
            if values.len() > 2 {
                notes.push(format!(
                    "of the values of {name:?}, {known:?} is the event, and whoever had another one counts as censored \
                     then: competing events"
                ));
            }
            return Ok(Some(known.clone()));
        }
        if values.len() > CAUSES {
            let what = format!(
                "{} different values, and an event is there or not: choose another --target, or name the value with \
                 --positive",
                values.len()
            );
            return Err(wrong(name, &what));
        }
        let plain = values
            .keys()
            .all(|value| matches!(number(value), Some(0.0 | 1.0)));
        let one = values.keys().find(|value| number(value) == Some(1.0));
        if plain && !names_censoring(name) {
            return Ok(Some(one.cloned().unwrap_or_else(|| "1".to_owned())));
        }
        let usual: Vec<&String> = values
            .keys()
            .filter(|value| HAPPENED.contains(&value.to_lowercase().as_str()))
            .collect();
        if let (2, [usual], false) = (values.len(), &usual[..], names_censoring(name)) {
            notes.push(format!(
                "of the two values of {name:?}, {usual:?} is taken to mean that the event happened (--positive takes the \
                 other)"
            ));
            return Ok(Some((*usual).clone()));
        }
        let each = values
            .iter()
            .map(|(value, rows)| format!("{value:?} {rows}"));
        let options = values
            .keys()
            .map(|value| format!("--positive {}", typed(value)));
        asked.questions.sentences.push(format!(
            "column {name:?}: which value means that the event happened? It holds, with their rows, {}. Say {}",
            each.collect::<Vec<_>>().join(", "),
            options.collect::<Vec<_>>().join(" or ")
        ));
        Ok(None)
    }

    /// Asks what the times are that cannot be times until an event.
    fn times(&self, asked: &mut OpenQuestions<'_>) {
        for cells in [Some(&self.time), self.entry.as_ref()]
            .into_iter()
            .flatten()
        {
            if cells.all_numbers() {
                asked.stand_ins(cells);
            } else {
                asked.odd(cells);
            }
        }
        let name = self.time.name;
        let used = |time: f64| {
            let mut filters = asked.wishes.only.iter();
            filters.all(|filter| filter.column != name || filter.rule.holds_for(time))
        };
        let beyond = self.time.numbers.iter();
        let beyond = beyond.filter(|(time, _)| *time <= 0.0 && used(*time));
        let rows: usize = beyond.map(|(_, rows)| rows).sum();
        if rows > 0 {
            asked.questions.sentences.push(format!(
                "column {name:?}: {} a time of 0 or less, and a time until an event is above 0. Correct the file, or say \
                 --only {} to leave such rows out at every institution",
                rows_that(rows, "have"),
                typed(&format!("{name} > 0"))
            ));
        }
    }

    /// Notes what the texts of the event are called in the agreement: 1 where it happened, and 0.
    fn encode(&self, happened: &str, asked: &mut OpenQuestions<'_>) {
        let code = |text: &String| {
            let value = if same_class(text, happened) { "1" } else { "0" };
            (number(text) != number(value)).then(|| (text.clone(), value.to_owned()))
        };
        let codes: BTreeMap<String, String> = self.texts.iter().filter_map(code).collect();
        if !codes.is_empty() {
            asked.codes.insert(self.event.name.to_owned(), codes);
        }
    }

    fn events(&self, happened: &str) -> usize {
        let values = self.event.values.iter();
        let known = values.filter(|(value, _)| same_class(value, happened));
        known.map(|(_, rows)| rows).sum()
    }

    /// Returns the time, whose usual values and range are told.
    pub(super) fn time(&self) -> &Cells<'n> {
        &self.time
    }
}

/// The unit of time that a column's name has.
fn unit_of(name: &str) -> Option<String> {
    let words = words(name);
    let mut known = UNITS.iter();
    let found = known.find(|(word, _)| words.iter().any(|own| own == word));
    found.map(|(_, unit)| (*unit).to_owned())
}

/// The error of a column that cannot be part of a survival target.
fn wrong(name: &str, what: &str) -> DataError {
    DataError::Config(format!("the survival target, column {name:?}: {what}"))
}

#[cfg(test)]
mod tests;
