//! The means of all models, references included, on the terminal and on the page.

use std::io::{self, Write};

use lab::summary::{ModelKind, ModelMean};
use maud::{Markup, html};

use super::story::Story;
use super::{download, numbers};

/// One line of the table.
struct ReferenceLine {
    model: String,
    values: [String; 3],
}

/// The heads of the columns.
const HEADS: [&str; 3] = ["mean of silos", "mean of rows", "worst silo"];

/// The lines; empty where there are no references.
fn lines(story: &Story) -> Vec<ReferenceLine> {
    let means = &story.means;
    if !means.iter().any(|mean| mean.model == ModelKind::Local) {
        return Vec::new();
    }
    let values = |mean: &ModelMean| [mean.per_silo, mean.per_row, mean.worst];
    let decimals = numbers::decimals_of(means.iter().map(|mean| mean.per_silo));
    let line = |mean: &ModelMean| {
        let mut model = name(story, mean.model);
        if mean.silos < story.silos.len() {
            model.push_str(&format!(" (at {})", numbers::plural(mean.silos, "silo")));
        }
        ReferenceLine {
            model,
            values: values(mean).map(|value| numbers::value(value, decimals)),
        }
    };
    means.iter().map(line).collect()
}

fn name(story: &Story, model: ModelKind) -> String {
    match (model, &story.tuning) {
        (ModelKind::Local, Some(tuning)) if tuning.silos < story.silos.len() => format!(
            "a model trained alone, tuned at {} of {}",
            tuning.silos,
            numbers::plural(story.silos.len(), "silo")
        ),
        (ModelKind::Local, Some(_)) => "a model trained alone, tuned".to_owned(),
        (ModelKind::Local, None) => "a model trained alone, not tuned".to_owned(),
        (ModelKind::Coalition, _) => format!("the coalition's model ({})", story.strategy),
        _ => model.words().to_owned(),
    }
}

/// Writes the table.
///
/// # Errors
///
/// Returns the error of the writer.
pub(crate) fn terminal(out: &mut impl Write, story: &Story) -> io::Result<()> {
    let lines = lines(story);
    if lines.is_empty() {
        return Ok(());
    }
    let widest = lines.iter().map(|line| line.model.chars().count());
    let width = widest.max().unwrap_or(0);
    writeln!(out, "\nAll models and the references:")?;
    let mut heads = String::new();
    HEADS
        .iter()
        .for_each(|head| heads.push_str(&format!("  {head:>13}")));
    writeln!(out, "  {:width$}{heads}", "")?;
    for ReferenceLine { model, values } in lines {
        let values: String = values
            .iter()
            .map(|value| format!("  {value:>13}"))
            .collect();
        writeln!(out, "  {model:width$}{values}")?;
    }
    Ok(())
}

/// The table of the page.
pub(crate) fn table(story: &Story) -> Markup {
    let lines = lines(story);
    html! {
        @if !lines.is_empty() {
            h3 { "All models and the references" }
            p.note {
                "Means over the members. The references to compare with: a constant prediction, a model "
                "that the silo trains alone, averages of all silos, and one model of all rows, which no "
                "federation may train."
            }
            div.scroll tabindex="0" role="region" aria-label="Means of all models" {
                table {
                    thead { tr {
                        th scope="col" { "Model" }
                        @for head in HEADS { th.number scope="col" { (capital(head)) } }
                    } }
                    tbody {
                        @for line in &lines {
                            tr {
                                th scope="row" { (line.model) }
                                @for value in &line.values { td.number { (value) } }
                            }
                        }
                    }
                }
            }
            div.saves { (download::data(&format!("{}-models", story.scenario), &csv(story))) }
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn csv(story: &Story) -> String {
    let rows = story.means.iter().map(|mean| {
        vec![
            name(story, mean.model),
            mean.silos.to_string(),
            mean.per_silo.to_string(),
            mean.per_row.to_string(),
            mean.worst.to_string(),
        ]
    });
    let head = ["model", "silos", HEADS[0], HEADS[1], HEADS[2]];
    download::csv(&head, rows)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture;
    use lab::summary::Tuning;

    fn text(story: &Story) -> String {
        let mut out = Vec::new();
        terminal(&mut out, story).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_model_has_a_line_with_its_means() {
        let mut story = fixture::story(4, 2, 2);
        story.tuning = Some(Tuning {
            silos: 4,
            fitted: 0,
            rates: true,
            trainings: 20.0,
            fits: 0.0,
        });
        let mean = |model, value: f64, silos| ModelMean {
            model,
            silos,
            per_silo: value,
            per_row: value + 1.0,
            worst: value + 20.0,
        };
        story.means = vec![
            mean(ModelKind::Local, 46.9, 4),
            mean(ModelKind::GlobalEqual, 44.4, 4),
            mean(ModelKind::Coalition, 43.1, 3),
        ];
        let text = text(&story);
        let expected = [
            "                                              mean of silos   mean of rows     worst silo",
            "  a model trained alone, tuned                        46.90          47.90          66.90",
            "  FedAvg, equal weights                               44.40          45.40          64.40",
            "  the coalition's model (cs-rcfl) (at 3 silos)          43.10          44.10          63.10",
        ];
        for (line, expected) in text.lines().skip(2).zip(expected) {
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(line), words(expected));
        }
        assert_eq!(text.lines().count(), 6);
        let page = table(&story).into_string();
        assert!(page.contains("FedAvg, equal weights") && page.contains("45.40"));
    }

    #[test]
    fn without_references_there_is_no_table() {
        let mut story = fixture::story(2, 1, 1);
        story
            .means
            .retain(|mean| mean.model == ModelKind::Coalition);
        assert_eq!(text(&story), "");
    }
}
