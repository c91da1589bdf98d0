//! The section on metrics that the institutions' programs give and Rota does not know.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::numbers;
use super::story::Story;

/// The section; nothing where no program gives such a metric.
pub(crate) fn section(story: &Story) -> Markup {
    let members = story.silos.iter();
    let held_out: BTreeSet<&String> = members.flat_map(|silo| silo.own.keys()).collect();
    let points = story.curves.iter();
    let training: BTreeSet<&String> = points.flat_map(|point| point.metrics.keys()).collect();
    // Of a silo's last training that gave it.
    let last = |silo: &str, metric: &String| {
        let points = story.curves.iter().filter(|point| point.silo == silo);
        let mut values = points.filter_map(|point| point.metrics.get(metric));
        values.next_back().copied()
    };
    html! {
        @if !held_out.is_empty() || !training.is_empty() {
            section {
                h2 { "Metrics of the programs" }
                p.note {
                    "As the institutions' programs give them: of the model that a silo adopted, on held-out rows, and of its \
                     last training. Nobody can check them."
                }
                div.scroll tabindex="0" role="region" aria-label="Metrics of the programs" {
                    table {
                        thead { tr {
                            th scope="col" { "Silo" }
                            @for &metric in &held_out { th.number scope="col" { (metric) } }
                            @for &metric in &training { th.number scope="col" { (metric) ", training" } }
                        } }
                        tbody { @for silo in &story.silos { tr {
                            th scope="row" { (silo.name) }
                            @for &metric in &held_out { td.number { (cell(silo.own.get(metric).copied())) } }
                            @for &metric in &training { td.number { (cell(last(&silo.name, metric))) } }
                        } } }
                    }
                }
            }
        }
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| {
        numbers::value(value, numbers::decimals(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn metrics_of_programs_have_a_column_each() {
        let mut story = fixture::story(2, 1, 2);
        assert_eq!(section(&story).into_string(), "");
        story.silos[1].own.insert("f1".to_owned(), 0.75);
        for (at, epsilon) in [(0, 1.5), (1, 2.5)] {
            let metrics = &mut story.curves[at].metrics;
            metrics.insert("epsilon".to_owned(), epsilon);
        }
        let page = section(&story).into_string();
        for part in [
            ">f1</th>",
            ">epsilon, training</th>",
            ">0.750</td>",
            ">2.500</td>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("1.500"), "{page}");
    }
}
