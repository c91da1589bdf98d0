//! Holds the columns of a time to an event against an agreed schema.

use super::{DataError, LISTED, OPEN, SurveyBuilder, listed};
use crate::counted::{counted, rows_that};
use crate::data::same_class;
use crate::propose::Cells;

impl SurveyBuilder<'_> {
    /// Surveys the columns of the event, of its time and of the entry: their cells, and what does not fit.
    pub(super) fn survival(&mut self) -> Result<(), DataError> {
        let names: Vec<String> = self.schema.target.name.iter().map(str::to_owned).collect();
        for (at, name) in names.iter().enumerate() {
            let Some(cells) = self.cells(name)? else {
                continue;
            };
            match at {
                0 => self.event(name, &cells),
                1 => self.time(name, &cells),
                _ => self.entry(name, &cells),
            }
        }
        Ok(())
    }

    /// Events, each of which is 1 or 0.
    fn event(&mut self, name: &str, cells: &Cells<'_>) {
        let (mut events, mut censored, mut odd) = (0, 0, Vec::new());
        for (text, rows) in &cells.values {
            let value = self.local.value(name, text);
            match (same_class(value, "1"), same_class(value, "0")) {
                (true, _) => events += rows,
                (_, true) => censored += rows,
                _ => odd.push((text.clone(), *rows)),
            }
        }
        let what = format!(
            "to predict: {}, {censored} censored",
            counted(events, "event")
        );
        self.said(name, cells, what);
        if odd.is_empty() {
            return;
        }
        self.survey.misfits.push(format!(
            "{name}: not agreed are {}; agreed are 1, where the event happened, and 0, where observation ended without it \
             (censored)",
            listed(&odd)
        ));
        let codes = odd.iter().take(LISTED);
        let codes = codes.map(|(text, _)| (text.clone(), OPEN.to_owned()));
        self.codes.entry(name.to_owned()).or_default().extend(codes);
    }

    /// Times until an event, or until observation ended: above 0.
    fn time(&mut self, name: &str, cells: &Cells<'_>) {
        let odd = self.untranslated(name, cells);
        self.said(
            name,
            cells,
            format!("the time until then: {}", cells.range()),
        );
        self.no_numbers(name, &odd, cells);
        self.numbers(name, None, cells);
        let used = |time: f64| {
            let mut filters = self.schema.only.iter();
            filters.all(|filter| filter.column != name || filter.rule.holds_for(time))
        };
        let beyond = cells.numbers.iter();
        let beyond = beyond.filter(|(time, _)| *time <= 0.0 && used(*time));
        let rows: usize = beyond.map(|(_, rows)| rows).sum();
        if rows > 0 {
            self.survey.misfits.push(format!(
                "{name}: {} a time of 0 or less, and a time until an event is above 0; correct them, put what stands for a \
                 missing value into `missing` of this column, or ask for an agreement with `only = [\"{name} > 0\"]`, which \
                 leaves such rows out at every institution",
                rows_that(rows, "have")
            ));
        }
    }

    /// Times from which rows are observed.
    fn entry(&mut self, name: &str, cells: &Cells<'_>) {
        let odd = self.untranslated(name, cells);
        self.said(name, cells, format!("observed from: {}", cells.range()));
        self.no_numbers(name, &odd, cells);
    }
}
