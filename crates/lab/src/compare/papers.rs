//! Figures of papers for the measures of built-in experiments, beside those measured here.

use std::collections::BTreeMap;

use serde::Deserialize;
use task::metrics::MetricName;

use super::comparison::{ComparisonRow, VariantTable};
use super::paper_table::{PaperData, PaperFigure, PaperTable, PaperVerdict};
use crate::statistic::Interval;

/// The papers' figures.
const FIGURES: &str = include_str!("../../../../simulations/experiments/papers.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FiguresFile {
    table: Vec<FigureTable>,
}

/// A table as it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureTable {
    experiment: String,
    source: String,
    data: PaperData,
    how: String,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    over: String,
    #[serde(default)]
    outside: bool,
    #[serde(default)]
    mean: PaperMean,
    /// Values by variant and label.
    #[serde(default)]
    there: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The mean that a paper reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PaperMean {
    #[default]
    Silos,
    Rows,
}

fn figures() -> Vec<FigureTable> {
    let file: FiguresFile =
        toml::from_str(FIGURES).expect("the figures that come with the program are read by a test");
    file.table
}

impl VariantTable {
    /// Adds the tables of papers that stand beside this one of an experiment.
    pub(super) fn add_papers(&mut self, experiment: &str, metric: MetricName) {
        let tables = figures().into_iter();
        let own = tables.filter(|table| table.experiment == experiment);
        self.papers = own.filter_map(|table| table.beside(self, metric)).collect();
    }
}

impl FigureTable {
    fn beside(&self, variant: &VariantTable, metric: MetricName) -> Option<PaperTable> {
        let named = |label: &str| variant.strategies.iter().find(|row| row.label == label);
        let value = |label: &str| self.value(named(label)?);
        let there = self.there.get(&variant.name);
        if there.is_none() && self.note.is_none() {
            return None;
        }
        let reference = there.and_then(|there| there.get(&self.over).copied());
        let figures = there.into_iter().flatten();
        let figures = figures
            .filter(|(label, _)| **label != self.over)
            .map(|(label, &there)| {
                let gain = named(label).and_then(|row| self.gain(row));
                let here = value(label);
                let verdict = match (here.zip(gain), reference.zip(value(&self.over))) {
                    (Some((_, gain)), Some(references)) => {
                        self.judge(metric, there, references, &gain)
                    }
                    _ => PaperVerdict::NotMeasured,
                };
                let both = [named(label), named(&self.over)];
                PaperFigure {
                    label: label.clone(),
                    there,
                    here,
                    gain,
                    unfinished: both.iter().flatten().any(|row| !row.unfinished.is_empty()),
                    verdict,
                }
            });
        Some(PaperTable {
            source: self.source.clone(),
            data: self.data,
            how: self.how.clone(),
            note: self.note.clone(),
            over: self.over.clone(),
            reference: (reference, value(&self.over)),
            figures: figures.collect(),
        })
    }

    /// The value here that the paper's is of.
    fn value(&self, row: &ComparisonRow) -> Option<f64> {
        let scope = row.metrics.first()?.scope(self.outside)?;
        let spread = match self.mean {
            PaperMean::Silos => scope.silos,
            PaperMean::Rows => scope.rows,
        };
        spread.map(|spread| spread.mean)
    }

    /// Returns how much better a strategy is here than the reference.
    fn gain(&self, row: &ComparisonRow) -> Option<Interval> {
        let against = row
            .against
            .iter()
            .find(|against| against.over == self.over)?;
        let difference = against.difference(self.outside)?;
        match self.mean {
            PaperMean::Silos => difference.per_silo,
            PaperMean::Rows => difference.per_row,
        }
    }

    /// `references` are the reference's values in the paper and here.
    fn judge(
        &self,
        metric: MetricName,
        there: f64,
        references: (f64, f64),
        gain: &Interval,
    ) -> PaperVerdict {
        let sign = if metric.higher_is_better() { 1.0 } else { -1.0 };
        let claimed = sign * (there - references.0);
        match self.data {
            PaperData::Other => PaperVerdict::NotComparable,
            _ if claimed <= 0.0 => PaperVerdict::NoGain,
            _ if gain.low <= 0.0 => PaperVerdict::NotReached,
            _ if gain.by / references.1 > claimed / references.0 => PaperVerdict::Beaten,
            _ => PaperVerdict::Reached,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Choices, Experiment};
    use super::*;

    fn table(data: PaperData) -> FigureTable {
        FigureTable {
            experiment: String::new(),
            source: String::new(),
            data,
            how: String::new(),
            note: None,
            over: String::new(),
            outside: false,
            mean: PaperMean::Silos,
            there: BTreeMap::new(),
        }
    }

    #[test]
    fn gain_over_local_is_judged_by_interval_and_share_of_reference() {
        let judge = |data, metric, there, low: f64, by: f64| {
            let gain = Interval {
                by,
                low,
                high: 2.0 * by - low,
            };
            table(data).judge(metric, there, (0.5, 0.2), &gain)
        };
        use PaperVerdict::{Beaten, NoGain, NotComparable, NotReached, Reached};
        let (same, error) = (PaperData::Same, MetricName::Mse);
        // The paper gains a fifth of the error.
        assert_eq!(judge(same, error, 0.4, 0.01, 0.03), Reached);
        assert_eq!(judge(same, error, 0.4, 0.01, 0.05), Beaten);
        assert_eq!(judge(same, error, 0.4, -0.01, 0.05), NotReached);
        assert_eq!(judge(same, error, 0.4, -0.05, -0.02), NotReached);
        assert_eq!(judge(same, error, 0.5, 0.01, 0.03), NoGain);
        assert_eq!(judge(same, error, 0.6, 0.01, 0.03), NoGain);
        let score = MetricName::Accuracy;
        assert_eq!(judge(same, score, 0.6, 0.01, 0.03), Reached);
        assert_eq!(judge(same, score, 0.4, 0.01, 0.03), NoGain);
        let reduced = judge(PaperData::Reduced, score, 0.6, -0.01, 0.03);
        assert_eq!(reduced, NotReached);
        assert_eq!(
            judge(PaperData::Other, score, 0.6, 0.01, 0.03),
            NotComparable
        );
    }

    #[test]
    fn every_figure_stands_beside_something_that_is_measured() {
        for table in figures() {
            let of = &table.source;
            let experiment = Experiment::load(&table.experiment, &Choices::default()).unwrap();
            assert!(
                table.note.is_some() == table.there.is_empty(),
                "{of}: either figures or why there are none"
            );
            for (variant, values) in &table.there {
                let known = experiment.variants.iter().any(|one| one.name == *variant);
                assert!(known, "{of}: no variant {variant:?}");
                assert!(values.contains_key(&table.over), "{of}: {variant:?}");
                for label in values.keys() {
                    let known = experiment.entries.iter().any(|one| one.label == *label);
                    assert!(known, "{of}: no strategy {label:?}");
                }
            }
        }
    }
}
