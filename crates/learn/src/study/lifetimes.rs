//! Notes on rows with a time to an event before anything is learned from them.

use task::survival::{NoBasis, concordance, horizon, observed};

use crate::data::{DataError, Prepared, Target};

/// Most names of silos in a sentence.
const NAMED: usize = 5;

/// Silos where something is missing of times to an event.
#[derive(Default)]
pub(super) struct Lifetimes {
    silos: usize,
    /// Silos that train, and those of them without an event.
    training: usize,
    no_event: Vec<String>,
    /// Silos where no two test rows are comparable.
    no_pair: Vec<String>,
    /// Silos where a tenth of the training rows is not observed as long as agreed.
    short: Vec<String>,
    late: Vec<String>,
    /// The agreed time, with its unit.
    agreed: Option<String>,
}

impl Lifetimes {
    /// Looks at one silo more; at nothing where the target is another one.
    pub(super) fn add(&mut self, name: &str, data: &Prepared) {
        let Target::Survival { unit, at } = &data.target else {
            return;
        };
        self.silos += 1;
        let last = at.last().copied();
        self.agreed = last.map(|time| format!("{time} {unit}"));
        let train = observed(data.train.targets());
        let test = observed(data.test.targets());
        let mut note = |into: fn(&mut Self) -> &mut Vec<String>| into(self).push(name.to_owned());
        if !test.is_empty() && concordance(&vec![0.0; test.len()], &test).is_none() {
            note(|all| &mut all.no_pair);
        }
        if train.is_empty() {
            return;
        }
        match horizon(&train, last) {
            Err(NoBasis::NoEvent) => note(|all| &mut all.no_event),
            Err(NoBasis::FarHorizon) => note(|all| &mut all.short),
            Err(NoBasis::LateEntry) => note(|all| &mut all.late),
            Ok(_) => {}
        }
        self.training += 1;
    }

    /// The notes, in sentences without a full stop.
    ///
    /// # Errors
    /// [`DataError::Config`]: none of several silos has a training row with an event.
    pub(super) fn notes(self) -> Result<Vec<String>, DataError> {
        // One institution without an event may learn from the others.
        if self.silos > 1 && self.training > 0 && self.no_event.len() == self.training {
            return Err(DataError::Config(
                "every training row is censored, so there is nothing to learn: an event is 1 where it was observed and 0 \
                 where it was not; are they the other way round?"
                    .into(),
            ));
        }
        let mut notes = Vec::new();
        let mut say = |silos: &[String], what: String| {
            if !silos.is_empty() {
                let names: Vec<&str> = silos.iter().take(NAMED).map(String::as_str).collect();
                let more = match silos.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                notes.push(format!(
                    "at {} of {} silos {what}: {}{more}",
                    silos.len(),
                    self.silos,
                    names.join(", ")
                ));
            }
        };
        say(
            &self.no_event,
            "every training row is censored, so that nothing is learned there".into(),
        );
        say(
            &self.no_pair,
            "no test row has an event while another one is at risk, so that there is no concordance".into(),
        );
        say(
            &self.short,
            format!(
                "fewer than a tenth of the training rows are observed up to {}, so that survival is not measured there \
                 (integrated-brier, calibration-at-time)",
                match &self.agreed {
                    Some(time) => format!("the agreed {time}"),
                    None => "any event".into(),
                }
            ),
        );
        say(
            &self.late,
            "rows are observed from a later time on (`entry`), so that survival is not measured there \
             (integrated-brier, calibration-at-time)"
                .into(),
        );
        Ok(notes)
    }
}
