//! The comparison of models per silo: its own, one global model, and its coalition's.

use std::fmt;

use methods::serving::Candidate;

use super::story::{Silo, Story};

use super::numbers;

/// A model that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The silo's own model, trained alone.
    Own,
    /// One model for all silos.
    Global,
    /// The model of its coalition, which the silo adopted.
    Coalition,
}

impl Column {
    /// All of them, in the order of the table.
    pub const ALL: [Column; 3] = [Column::Own, Column::Global, Column::Coalition];

    /// The head of the column.
    pub fn title(self) -> &'static str {
        match self {
            Column::Own => "own model",
            Column::Global => "global model",
            Column::Coalition => "coalition's",
        }
    }

    fn of(self, silo: &Silo) -> Option<f64> {
        match self {
            Column::Own => silo.local,
            Column::Global => silo.global,
            Column::Coalition => silo.coalition,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Column::Own => "own models",
            Column::Global => "one global model",
            Column::Coalition => "the coalitions' models",
        })
    }
}

/// One value of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The measured value; may not be finite.
    pub value: f64,
    /// As it is printed.
    pub text: String,
    /// Whether nothing in its row is better, compared as printed: equal texts are equally good.
    pub best: bool,
}

/// The table: one row per silo and one of means.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The columns that were measured.
    pub columns: Vec<Column>,
    /// By silo, in roster order, and by measured column.
    pub rows: Vec<Vec<Option<Cell>>>,
    /// Means over the silos that have a value.
    pub means: Vec<Option<Cell>>,
    /// The same for silos outside the federation.
    pub outside: Vec<Vec<Option<Cell>>>,
    /// Their means; none if no silo is outside.
    pub outside_means: Option<Vec<Option<Cell>>>,
    /// The metric of one model trained on the rows of all members together, by silo, members
    /// first. Empty if it was not trained. It is shown beside the table and not compared, because
    /// a federation may not pool rows.
    pub pooled: Vec<Option<String>>,
    /// The mean of [`pooled`](Self::pooled) over members.
    pub pooled_mean: Option<String>,
    /// The model that each silo serves and its metric, members first; empty if none was chosen.
    pub served: Vec<Option<(Candidate, String)>>,
    /// The mean of [`served`](Self::served) over members.
    pub served_mean: Option<String>,
}

/// The name of a served model, in a word or two.
pub fn choice(candidate: Candidate) -> &'static str {
    match candidate {
        Candidate::Local => "own",
        Candidate::Coalition => "coalition's",
        Candidate::Global => "mean of all",
        Candidate::FineTuned => "fine-tuned",
    }
}

impl Comparison {
    /// Compares the models that were measured.
    pub fn of(story: &Story) -> Comparison {
        let silos = &story.silos;
        let columns: Vec<Column> = Column::ALL
            .into_iter()
            .filter(|column| silos.iter().any(|silo| column.of(silo).is_some()))
            .collect();
        let largest = silos
            .iter()
            .flat_map(|silo| columns.iter().filter_map(|column| column.of(silo)))
            .filter(|value| value.is_finite())
            .fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let decimals = numbers::decimals(largest);
        let row = |values: Vec<Option<f64>>| mark(values, decimals, story.metric.higher_is_better);
        let rows = |silos: &[Silo]| -> Vec<_> {
            let cells = |silo: &Silo| columns.iter().map(|column| column.of(silo)).collect();
            silos.iter().map(|silo| row(cells(silo))).collect()
        };
        let means = |silos: &[Silo]| {
            let mean = |column: &Column| mean(silos.iter().map(|silo| column.of(silo)));
            row(columns.iter().map(mean).collect())
        };
        let outside = &story.outside;
        let text = |value: f64| numbers::value(value, decimals);
        let all = || silos.iter().chain(outside);
        let served = |silo: &Silo| {
            let (candidate, value) = silo.served?;
            Some((candidate, text(value?)))
        };
        let served_by = |silo: &Silo| silo.served.and_then(|(_, value)| value);
        let measured = |cell: &Option<_>| cell.is_some();
        let pooled: Vec<_> = all().map(|silo| silo.pooled.map(text)).collect();
        let served: Vec<_> = all().map(served).collect();
        Comparison {
            rows: rows(silos),
            means: means(silos),
            outside: rows(outside),
            outside_means: (!outside.is_empty()).then(|| means(outside)),
            pooled: if pooled.iter().any(|cell| cell.is_some()) {
                pooled
            } else {
                Vec::new()
            },
            pooled_mean: mean(silos.iter().map(|silo| silo.pooled)).map(text),
            served: if served.iter().any(measured) {
                served
            } else {
                Vec::new()
            },
            served_mean: mean(silos.iter().map(served_by)).map(text),
            columns,
        }
    }

    /// For how many silos a measured column is best; ties count for each.
    pub fn wins(&self, column: usize) -> usize {
        self.rows
            .iter()
            .filter(|row| row[column].as_ref().is_some_and(|cell| cell.best))
            .count()
    }

    /// The table in sentences, whichever model is best.
    pub fn verdict(&self) -> String {
        if self.columns.is_empty() {
            return "Nothing was measured on held-out rows.".to_owned();
        }
        if self.columns.len() == 1 {
            return "No reference models were trained, so there is nothing to compare with."
                .to_owned();
        }
        let mut sentences = vec![self.on_average(), self.for_how_many()];
        sentences.extend(self.what_is_served());
        sentences.extend(self.pooled_mean.as_ref().map(|mean| {
            format!("One model trained on all members' rows together, for comparison: {mean}.")
        }));
        sentences.extend(self.outsiders());
        sentences.join(" ")
    }

    /// How many members serve which model.
    fn what_is_served(&self) -> Option<String> {
        let mean = self.served_mean.as_ref()?;
        let members = self.served.iter().take(self.rows.len()).flatten();
        let chosen: Vec<Candidate> = members.map(|(candidate, _)| *candidate).collect();
        let kinds = [
            (Candidate::Coalition, "the coalition's model"),
            (Candidate::FineTuned, "the fine-tuned coalition's model"),
            (Candidate::Global, "the mean of all coalitions' models"),
            (Candidate::Local, "their own model"),
        ];
        let parts: Vec<String> = kinds
            .iter()
            .map(|(kind, name)| (chosen.iter().filter(|one| *one == kind).count(), name))
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        Some(format!(
            "If each silo serves the model that is best in cross-validation on its own rows, the \
             mean is {mean}: {}.",
            parts.join(", ")
        ))
    }

    /// The means of silos outside the federation.
    fn outsiders(&self) -> Option<String> {
        let means = self.outside_means.as_ref()?;
        let each = self.columns.iter().zip(means);
        let parts: Vec<String> = each
            .filter_map(|(column, cell)| {
                Some(format!(
                    "{} with {}",
                    cell.as_ref()?.text,
                    match column {
                        Column::Own => "their own models",
                        Column::Global => "one global model",
                        Column::Coalition => "the model that the federation gives them",
                    }
                ))
            })
            .collect();
        Some(format!(
            "{} outside the federation, on average: {}.",
            numbers::plural(self.outside.len(), "silo"),
            parts.join(", ")
        ))
    }

    fn on_average(&self) -> String {
        let mut best = Vec::new();
        let mut others = Vec::new();
        let mut value = "";
        for (column, cell) in self.columns.iter().zip(&self.means) {
            match cell {
                Some(cell) if cell.best => {
                    value = &cell.text;
                    best.push(column.to_string());
                }
                Some(cell) => others.push(format!("{} for {column}", cell.text)),
                None => {}
            }
        }
        let against = match others.is_empty() {
            true => String::new(),
            false => format!(", against {}", others.join(" and ")),
        };
        match best.as_slice() {
            [] => "On average no model can be called best.".to_owned(),
            [one] if one.starts_with("one") => {
                format!("On average {one} is best ({value}{against}).")
            }
            [one] => format!("On average {one} are best ({value}{against})."),
            several => {
                format!(
                    "On average {} are equally good ({value}{against}).",
                    several.join(" and ")
                )
            }
        }
    }

    fn for_how_many(&self) -> String {
        let wins: Vec<usize> = (0..self.columns.len())
            .map(|column| self.wins(column))
            .collect();
        let parts: Vec<String> = self
            .columns
            .iter()
            .zip(&wins)
            .rev()
            .enumerate()
            .map(|(place, (column, wins))| {
                let name = match column {
                    Column::Own => "its own model",
                    Column::Global => "the global model",
                    Column::Coalition => "the coalition's model",
                };
                format!(
                    "{name} {}for {wins}",
                    if place == 0 { "is best " } else { "" }
                )
            })
            .collect();
        let ties = match wins.iter().sum::<usize>() > self.rows.len() {
            true => "; ties count for each",
            false => "",
        };
        format!(
            "Of {}, {}{ties}.",
            numbers::plural(self.rows.len(), "silo"),
            parts.join(", ")
        )
    }
}

/// Mean over those that have a value.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let present: Vec<f64> = values.flatten().collect();
    (!present.is_empty()).then(|| present.iter().sum::<f64>() / present.len() as f64)
}

fn mark(values: Vec<Option<f64>>, decimals: usize, higher_is_better: bool) -> Vec<Option<Cell>> {
    let best = values
        .iter()
        .flatten()
        .copied()
        .filter(|value| value.is_finite())
        .reduce(|a, b| match higher_is_better {
            true => a.max(b),
            false => a.min(b),
        });
    let best = best.map(|best| numbers::value(best, decimals));
    values
        .into_iter()
        .map(|value| {
            value.map(|value| {
                let text = numbers::value(value, decimals);
                Cell {
                    value,
                    best: best.as_ref() == Some(&text),
                    text,
                }
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::fixture;

    fn table(metric_up: bool, rows: &[[Option<f64>; 3]]) -> Comparison {
        let mut story = fixture::story(rows.len(), 1, 1);
        story.metric.higher_is_better = metric_up;
        for (silo, [local, global, coalition]) in story.silos.iter_mut().zip(rows) {
            (silo.local, silo.global, silo.coalition) = (*local, *global, *coalition);
            (silo.pooled, silo.served) = (None, None);
        }
        Comparison::of(&story)
    }

    fn best(row: &[Option<Cell>]) -> Vec<bool> {
        row.iter().map(|cell| cell.as_ref().unwrap().best).collect()
    }

    #[test]
    fn lower_is_best_for_errors_and_higher_for_accuracies() {
        let rows = [[Some(3.0), Some(2.0), Some(1.0)]];
        assert_eq!(best(&table(false, &rows).rows[0]), [false, false, true]);
        assert_eq!(best(&table(true, &rows).rows[0]), [true, false, false]);
    }

    #[test]
    fn equal_printed_values_are_equally_good() {
        let table = table(false, &[[Some(43.101), Some(43.104), Some(43.2)]]);
        assert_eq!(best(&table.rows[0]), [true, true, false]);
        assert_eq!(
            table.verdict(),
            "On average own models and one global model are equally good (43.10, against 43.20 for \
             the coalitions' models). Of 1 silo, the coalition's model is best for 0, the global \
             model for 1, its own model for 1; ties count for each."
        );
    }

    #[test]
    fn the_verdict_names_the_global_model_where_it_is_best() {
        let rows = [
            [Some(5.0), Some(1.0), Some(3.0)],
            [Some(5.0), Some(4.0), Some(3.0)],
        ];
        assert_eq!(
            table(false, &rows).verdict(),
            "On average one global model is best (2.500, against 5.000 for own models and 3.000 for \
             the coalitions' models). Of 2 silos, the coalition's model is best for 1, the global \
             model for 1, its own model for 0."
        );
    }

    #[test]
    fn values_that_are_not_finite_are_never_best_and_missing_ones_are_skipped() {
        let table = table(
            true,
            &[[Some(f64::NAN), Some(0.5), None], [None, Some(0.5), None]],
        );
        assert_eq!(table.columns, [Column::Own, Column::Global]);
        assert_eq!(best(&table.rows[0]), [false, true]);
        assert_eq!(table.wins(1), 2);
        assert_eq!(table.means[0].as_ref().unwrap().text, "not finite");
    }

    #[test]
    fn the_verdict_has_served_pooled_and_outside_models() {
        let mut story = fixture::story(3, 1, 1);
        let values = [(5.0, 4.0), (6.0, 6.0), (9.0, 8.0)];
        for (silo, (own, coalition)) in story.silos.iter_mut().zip(values) {
            (silo.local, silo.coalition) = (Some(own), Some(coalition));
            (silo.global, silo.pooled) = (Some(7.0), Some(coalition - 1.0));
            silo.served = Some((Candidate::Coalition, Some(coalition)));
        }
        story.silos[1].served = Some((Candidate::Local, Some(6.0)));
        let outsider = story.silos.pop().unwrap();
        story.outside.push(outsider);
        let table = Comparison::of(&story);
        assert_eq!((table.rows.len(), table.outside.len()), (2, 1));
        assert_eq!(table.pooled.len(), 3);
        assert!(table.verdict().ends_with(
            "If each silo serves the model that is best in cross-validation on its own rows, the \
             mean is 5.000: 1 the coalition's model, 1 their own model. One model trained on all \
             members' rows together, for comparison: 4.000. 1 silo outside the federation, on \
             average: 9.000 with their own models, 7.000 with one global model, 8.000 with the \
             model that the federation gives them."
        ), "{}", table.verdict());
    }

    #[test]
    fn without_reference_models_nothing_is_compared() {
        assert!(
            table(true, &[[None, None, Some(0.5)]])
                .verdict()
                .starts_with("No reference")
        );
        assert!(
            table(true, &[[None; 3]])
                .verdict()
                .starts_with("Nothing was measured")
        );
    }
}
