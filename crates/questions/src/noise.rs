//! Questions with noise: what one row changes at most, and what an opened sum with noise says.
//!
//! A row is in one cell of a table, so that tables of counts and survival on a grid have a small bound that no row
//! exceeds (Dwork & Roth 2014, 3.3). Other kinds have none, or one that only very large tables could bear.

use privacy::masks::Fixed;

use crate::layout::power;
use crate::question::FederatedQuestion;
use crate::sums::CommonKnowledge;
use crate::table::RowTable;
use crate::{Kind, QuestionError, QuestionProgress, SiteRefusal, SumLayout};

/// Exponent of blocks of counts.
const COUNTS: i32 = 30;

impl FederatedQuestion {
    /// Why no noise can be added to its sums, in a sentence; `None` if it can.
    pub fn without_noise(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Describe(_) | Kind::Crosstab(_) | Kind::Km(_) => None,
            Kind::Cox(_) | Kind::Logrank(_) => Some(
                "one row changes the terms of all others that are at risk with it, so its part in the sum has no small \
                 bound: ask for kind \"km\", whose curves follow from counts",
            ),
            Kind::Quantiles(_) => Some(
                "the bins of a round follow from the counts of the one before, and every round would need noise of \
                 its own: ask for kind \"describe\", or for \"crosstab\" of agreed levels",
            ),
            Kind::Meta(_) | Kind::Mixed(_) | Kind::Baselines(_) => Some(
                "its sums are of the estimates of whole sites, which one row changes without a small bound: ask for \
                 kind \"describe\" by group",
            ),
            Kind::Trees(_) => Some(
                "every level of every tree would need noise of its own, and few rows are in a node: ask for kind \
                 \"describe\" by group, or \"crosstab\"",
            ),
            Kind::Glm(_) | Kind::Correlate(_) => Some(
                "one row changes the products of all pairs of columns, and noise of that size would hide them but in \
                 very large tables: ask for kind \"describe\" by group, or \"crosstab\"",
            ),
        }
    }

    /// The Euclidean norm by which one more row changes the numbers of a round at most, without the number of sites.
    ///
    /// # Errors
    /// If the question cannot be asked, or its kind has no such bound.
    pub fn row_norm(&self, progress: &QuestionProgress) -> Result<f64, QuestionError> {
        if let Some(why) = self.without_noise() {
            return Err(QuestionError::Other(why.to_owned()));
        }
        let squares = match (progress, &self.kind) {
            (QuestionProgress::Counts, kind) => {
                let gates = kind.gates(&self.known(Default::default())?);
                // A row that is complete, an event and in a group; one that is outside is not complete.
                2 + usize::from(gates.has_events) + usize::from(gates.groups > 0)
            }
            // 1, u and u² of every column, with |u| ≤ 1.
            (QuestionProgress::Rounds { .. }, Kind::Describe(describe)) => {
                3 * describe.columns.len()
            }
            // One cell.
            (QuestionProgress::Rounds { .. }, _) => 1,
        };
        Ok((squares as f64).sqrt())
    }

    /// Gives `each` the numbers of every row that the filter keeps, whose sum is the answer of a site but for the
    /// number of sites.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn row_numbers(
        &self,
        table: &RowTable,
        progress: &QuestionProgress,
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), SiteRefusal> {
        let counts = progress.counts().cloned().unwrap_or_default();
        let wrong = |error: QuestionError| SiteRefusal::Rows(error.to_string());
        let known: CommonKnowledge = self.known(counts).map_err(wrong)?;
        let rows = table.read(&self.filter, &known.inputs)?;
        for row in rows.chunks(1) {
            let mut numbers = self.answer_of(&known, row, progress)?;
            if let QuestionProgress::Counts = progress {
                numbers[0] = 0.0;
            }
            each(&numbers);
        }
        Ok(())
    }

    /// The words of a sum whose numbers have noise, of so many sites: counts are rounded to whole numbers, which may be
    /// negative.
    ///
    /// # Errors
    /// If the question cannot be asked, or there are more or fewer numbers than its round opens.
    pub fn noised_words(
        &self,
        progress: &QuestionProgress,
        numbers: &[f64],
        sites: u64,
    ) -> Result<Vec<u64>, QuestionError> {
        let layout: SumLayout = self.layout(progress)?;
        if layout.len() != numbers.len() {
            return Err(QuestionError::Other(format!(
                "the round opens {} numbers, and its sum has {}",
                layout.len(),
                numbers.len()
            )));
        }
        let mut words = Vec::with_capacity(numbers.len());
        let mut numbers = numbers.iter();
        for block in &layout.blocks {
            for number in numbers.by_ref().take(block.len) {
                words.push(match block.exponent {
                    COUNTS => number.round_ties_even() as i64,
                    exponent => {
                        let scaled = number / power(exponent);
                        Fixed::QUESTION.integer(scaled).0
                    }
                } as u64);
            }
        }
        if let (QuestionProgress::Counts, Some(first)) = (progress, words.first_mut()) {
            *first = sites;
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Step;
    use crate::kinds::TimeGrid;
    use crate::kinds::crosstab::Crosstab;
    use crate::kinds::describe::Describe;
    use crate::kinds::km::Km;
    use crate::table::CellColumn;
    use crate::tests::agreed;

    /// Two hundred rows, some of which lack a value or are out of range.
    fn table() -> RowTable {
        let numbers =
            |of: &dyn Fn(usize) -> Option<f64>| CellColumn::Numbers((0..200).map(of).collect());
        let mut table = RowTable::new(200);
        table.insert(
            "age",
            numbers(&|at| (at % 17 != 0).then_some(20.0 + (at % 90) as f64)),
        );
        table.insert("months", numbers(&|at| Some((at % 50) as f64)));
        table.insert("status", numbers(&|at| Some((at % 3 / 2) as f64)));
        let word = |at: usize| Some(["a", "b", "c"][at % 3].to_owned());
        table.insert("arm", CellColumn::Words((0..200).map(word).collect()));
        table.insert(
            "stage",
            CellColumn::Words((0..200).map(|at| word(at / 7)).collect()),
        );
        table
    }

    fn kinds() -> Vec<Kind> {
        let group = || Some("arm".to_owned());
        vec![
            Kind::Describe(Describe {
                columns: vec!["age".to_owned(), "months".to_owned()],
                group: group(),
            }),
            Kind::Crosstab(Crosstab {
                rows: "arm".to_owned(),
                columns: "stage".to_owned(),
            }),
            Kind::Km(Km {
                time: "months".to_owned(),
                event: "status > 0".to_owned(),
                causes: 1,
                grid: TimeGrid {
                    step: 6.0,
                    cells: 10,
                },
                group: group(),
            }),
        ]
    }

    fn question(kind: Kind) -> FederatedQuestion {
        let levels: &[&str] = &["a", "b", "c"];
        let agreed = agreed(
            &[("age", [0.0, 100.0]), ("months", [0.0, 100.0])],
            &[("arm", levels), ("stage", levels)],
        );
        FederatedQuestion::new(kind, agreed)
    }

    /// The rounds of a question about the table, as it is asked of one site.
    fn rounds(question: &FederatedQuestion) -> Vec<QuestionProgress> {
        let counts = QuestionProgress::Counts;
        let own = question.answer(&table(), &counts).unwrap();
        let layout = question.layout(&counts).unwrap();
        match question.step(&counts, &layout.opened(own)) {
            Step::Next(next) => vec![counts, next],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_add_up_to_the_answer_and_none_exceeds_its_bound() {
        for kind in kinds() {
            let question = question(kind);
            for progress in rounds(&question) {
                let norm = question.row_norm(&progress).unwrap();
                let mut sum = vec![0.0; question.layout(&progress).unwrap().len()];
                let (mut rows, mut longest) = (0, 0f64);
                let mut each = |numbers: &[f64]| {
                    rows += 1;
                    let pairs = sum.iter_mut().zip(numbers);
                    pairs.for_each(|(sum, number)| *sum += number);
                    let squares: f64 = numbers.iter().map(|number| number * number).sum();
                    longest = longest.max(squares.sqrt());
                };
                question
                    .row_numbers(&table(), &progress, &mut each)
                    .unwrap();
                let mut whole = question.answer(&table(), &progress).unwrap();
                if progress == QuestionProgress::Counts {
                    whole[0] = 0.0;
                }
                let kind = question.kind.name();
                for (sum, whole) in sum.iter().zip(&whole) {
                    assert!((sum - whole).abs() < 1e-9, "{kind}: {sum} and {whole}");
                }
                assert_eq!(rows, 200);
                assert!(longest <= norm + 1e-12, "{kind}: {longest} beyond {norm}");
                // The bound is not much larger than it has to be.
                assert!(longest > 0.4 * norm, "{kind}: {longest} of {norm}");
                let words = question.noised_words(&progress, &whole, 7).unwrap();
                let decoded = question.layout(&progress).unwrap().decode(&words).numbers;
                for (at, (found, whole)) in decoded.iter().zip(&whole).enumerate() {
                    let sites = progress == QuestionProgress::Counts && at == 0;
                    let expected = if sites { 7.0 } else { *whole };
                    assert!((found - expected).abs() < 1e-8, "{kind}: {found}");
                }
            }
        }
    }

    #[test]
    fn kinds_without_a_bound_say_why() {
        for kind in ["cox", "quantiles", "mixed", "trees"] {
            let text = match kind {
                "cox" => r#"{"kind":"cox","time":"months","event":"status > 0","terms":["age"]}"#,
                "quantiles" => {
                    r#"{"kind":"quantiles","columns":["age"],"probabilities":[0.5],"width":1}"#
                }
                "trees" => r#"{"kind":"trees","outcome":"status > 0","columns":["age"],"trees":2}"#,
                _ => r#"{"kind":"mixed","outcome":"age","terms":["months"]}"#,
            };
            let kind: Kind = serde_json::from_str(text).unwrap();
            let question = question(kind);
            let why = question.without_noise().unwrap();
            assert!(why.contains("ask for"), "{why}");
            assert!(question.row_norm(&QuestionProgress::Counts).is_err());
        }
    }
}
