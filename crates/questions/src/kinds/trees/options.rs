//! The options of boosted trees, and their limits.

use super::target::TreesTarget;
use super::{FEWEST_ROWS, MOST_NUMBERS, Trees};
use crate::table::QuestionInput;
use crate::{AgreedColumns, QuestionError};

/// Most trees, levels of a tree and bins of a column.
const MOST: [usize; 3] = [10_000, 10, 256];
/// Most levels of a column: their bins and that of missing values are numbers of 16 bits.
const MOST_LEVELS: usize = u16::MAX as usize - 1;
/// Most levels of an outcome, each of which has trees of its own.
const MOST_CLASSES: usize = 100;

impl Trees {
    /// Checks the options.
    pub(super) fn check(&self, agreed: &AgreedColumns) -> Result<(), QuestionError> {
        let other = |text: String| Err(QuestionError::Other(text));
        let bound = |name: &str, value: usize, least: usize, most: usize| {
            let wrong = format!("`{name}` must be {least} to {most}, found {value}");
            (least..=most)
                .contains(&value)
                .then_some(())
                .ok_or(QuestionError::Other(wrong))
        };
        if self.columns.is_empty() {
            return other("trees need `columns`".to_owned());
        }
        if let TreesTarget::Classes(count) = self.target(agreed)
            && !(2..=MOST_CLASSES).contains(&count)
        {
            return other(format!(
                "the outcome \"{}\" has {count} levels, and 2 to {MOST_CLASSES} are needed: name a condition, or join rare \
                 levels",
                self.outcome
            ));
        }
        bound("trees", self.trees, 1, MOST[0])?;
        bound("depth", self.depth, 1, MOST[1])?;
        bound("bins", self.bins, 2, MOST[2])?;
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return other(format!(
                "`rate` must be above 0 and at most 1, found {}",
                self.rate
            ));
        }
        for (name, value) in [("lambda", self.lambda), ("min-hessian", self.min_hessian)] {
            if !(value >= 0.0 && value.is_finite()) {
                return other(format!("`{name}` must be 0 or more, found {value}"));
            }
        }
        if self.min_rows < FEWEST_ROWS {
            return other(format!(
                "`min-rows` must be {FEWEST_ROWS} or more, found {}: a leaf tells the mean residual of its rows",
                self.min_rows
            ));
        }
        if !(0.0..=0.5).contains(&self.held_out) {
            return other(format!(
                "`held-out` must be 0 to 0.5, found {}",
                self.held_out
            ));
        }
        if let Some(name) = self.edges.keys().find(|name| !self.columns.contains(name)) {
            return other(format!(
                "`edges` names \"{name}\", which is none of the columns"
            ));
        }
        for (name, edges) in &self.edges {
            let single: Vec<f32> = edges.iter().map(|edge| *edge as f32).collect();
            let ascending = single.windows(2).all(|pair| pair[0] < pair[1]);
            if edges.is_empty() || edges.len() >= MOST[2] || !ascending || !single[0].is_finite() {
                return other(format!(
                    "`edges` of \"{name}\" must be 1 to {} ascending numbers that differ in single precision",
                    MOST[2] - 1
                ));
            }
        }
        let levels = |name: &&String| {
            agreed
                .levels
                .get(*name)
                .is_some_and(|all| all.len() > MOST_LEVELS)
        };
        if let Some(name) = self.columns.iter().find(levels) {
            return other(format!(
                "\"{name}\" has more than {MOST_LEVELS} levels: join rare ones"
            ));
        }
        let numbers = self.most_in_a_round(agreed);
        if numbers > MOST_NUMBERS {
            return other(format!(
                "a round would open up to {numbers} numbers, at most {MOST_NUMBERS} are allowed: ask for fewer columns, \
                 bins or levels of `depth`"
            ));
        }
        Ok(())
    }

    /// Returns what is read of a column.
    pub(super) fn column(
        &self,
        name: &str,
        agreed: &AgreedColumns,
    ) -> Result<QuestionInput, QuestionError> {
        if agreed.levels.contains_key(name) {
            return agreed.level(name);
        }
        match name.parse() {
            Ok(condition) => Ok(QuestionInput::Indicator(condition)),
            Err(_) if self.edges.contains_key(name) => Ok(agreed.number(name)),
            Err(_) => agreed.range(name).map(|_| agreed.number(name)),
        }
    }
}
