//! The section on classifiers: ROC curves, calibration and confusion by silo.

mod all;
mod axes;

use lab::summary::{Bin, ClassResults};
use maud::{Markup, html};

use super::story::{SiloStory, Story};
use super::svg::{colour, drawing, px};
use super::{download, many, numbers};
use axes::{SIZE, axes, scales};

/// The fewest rows of a bin of probabilities that is drawn: with ten rows, the observed fraction has a
/// standard error of up to 0.16 (a choice, that of tables of subgroups, too).
const ENOUGH: u64 = lab::compare::LEAST_ROWS as u64;
/// The most silos whose details are open at first.
const OPEN: usize = 3;
/// The most silos whose details are listed without a box that scrolls.
const MANY: usize = 12;
/// The most classes of a confusion matrix that is printed.
const CLASSES: usize = 30;

/// The section; empty where the target is no class.
pub(crate) fn section(story: &Story) -> Markup {
    let all: Vec<(&SiloStory, &ClassResults)> = story
        .silos
        .iter()
        .chain(&story.outside)
        .filter_map(|silo| Some((silo, silo.classes.as_ref()?)))
        .collect();
    if all.is_empty() {
        return html! {};
    }
    let two = story.settings.classes.len() == 2;
    html! {
        section {
            h2 { "Errors of the classifiers" }
            p.note {
                "Of the model that each silo adopted, on its held-out rows. "
                @if two {
                    "Calibration: how often a row is of class “" (positive(story)) "” where that is predicted with "
                    "this probability; on the diagonal the model is calibrated. "
                } @else {
                    "Calibration: how often the predicted class is right where it is predicted with this "
                    "probability. There are ROC curves for two classes only. "
                }
                "Bins hold a tenth of the probabilities each; those with fewer than " (ENOUGH) " rows are not drawn, as "
                "chance alone moves them far, and stand in the data."
            }
            (all::charts(story, &all))
            @if !many::are_many(story) { div.many[all.len() > MANY].tall[all.len() > MANY] {
                @for (silo, classes) in &all {
                    details open[all.len() <= OPEN] {
                        summary { (silo.name) span.muted { ", " (numbers::plural(silo.held_out() as usize, "held-out row")) } }
                        (one(story, silo, classes))
                    }
                }
            } }
        }
    }
}

fn positive(story: &Story) -> &str {
    story.settings.classes.get(1).map_or("1", String::as_str)
}

/// One silo: ROC against its local model, calibration with rows, confusion.
fn one(story: &Story, silo: &SiloStory, classes: &ClassResults) -> Markup {
    let name = |what: &str| format!("{}-{}-{what}", story.scenario, silo.name);
    html! {
        div.trio {
            @if !classes.roc.is_empty() {
                figure {
                    figcaption { "ROC: adopted model, and local model dashed" }
                    (drawing(&format!("ROC curves of {}", silo.name), SIZE, SIZE, html! {
                        (axes("false positive rate", "true positive rate"))
                        (curve(silo, &classes.roc_local, "dashed"))
                        (curve(silo, &classes.roc, ""))
                    }))
                    (download::plot(&name("roc"), &roc_csv(&[(silo, classes)])))
                }
            }
            figure {
                @let drawn = enough(&classes.calibration);
                @let few = classes.calibration.len() - drawn.len();
                figcaption { "Calibration: area by rows" }
                (drawing(&format!("Calibration of {}", silo.name), SIZE, SIZE, html! {
                    (axes("predicted probability", "observed fraction"))
                    (curve(silo, &places(&drawn), ""))
                    (bins(silo, &drawn))
                }))
                @if few > 0 { p.note { (numbers::plural(few, "bin")) " with fewer than " (ENOUGH) " rows not drawn" } }
                (download::plot(&name("calibration"), &calibration_csv(&[(silo, classes)])))
            }
            figure {
                figcaption { "Confusion: rows by true class" }
                (confusion(story, classes))
                div.saves { (download::data(&name("confusion"), &confusion_csv(story, classes))) }
            }
        }
    }
}

fn curve(silo: &SiloStory, points: &[(f64, f64)], more: &str) -> Markup {
    let (x, y) = scales();
    let places: Vec<String> = points
        .iter()
        .map(|(a, b)| format!("{} {}", x.at(*a), y.at(*b)))
        .collect();
    html! {
        @if !places.is_empty() {
            g class={ "curve " (colour(silo.in_coalition())) " " (more) } {
                title { (silo.name) @if !more.is_empty() { ", local model" } }
                path.hit d=(format!("M{}", places.join("L"))) {}
                path d=(format!("M{}", places.join("L"))) {}
            }
        }
    }
}

/// The bins with enough rows.
fn enough(bins: &[Bin]) -> Vec<Bin> {
    let enough = bins.iter().filter(|bin| bin.rows >= ENOUGH);
    enough.cloned().collect()
}

fn places(bins: &[Bin]) -> Vec<(f64, f64)> {
    bins.iter()
        .map(|bin| (bin.predicted, bin.observed))
        .collect()
}

fn bins(silo: &SiloStory, bins: &[Bin]) -> Markup {
    let (x, y) = scales();
    let most = bins.iter().map(|bin| bin.rows).max().unwrap_or(1) as f64;
    html! {
        g class={ "curve " (colour(silo.in_coalition())) } {
            @for bin in bins {
                circle cx=(x.at(bin.predicted)) cy=(y.at(bin.observed)) r=(px(2.0 + 5.0 * (bin.rows as f64 / most).sqrt())) {
                    title {
                        (numbers::plural(bin.rows as usize, "row")) ": predicted " (numbers::value(bin.predicted, 2))
                        ", observed " (numbers::value(bin.observed, 2))
                    }
                }
            }
        }
    }
}

fn class_name(story: &Story, class: usize) -> String {
    let name = story.settings.classes.get(class);
    name.map_or_else(|| class.to_string(), |name| numbers::short(name, 16))
}

fn confusion(story: &Story, classes: &ClassResults) -> Markup {
    let count = classes.confusion.len();
    if count > CLASSES {
        return html! { p.note { "There are " (count) " classes: the table is in the CSV file." } };
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Confusion" {
            table.confusion {
                thead { tr {
                    th scope="col" { "true \\ given" }
                    @for class in 0..count { th.number scope="col" { (class_name(story, class)) } }
                } }
                tbody { @for (truth, row) in classes.confusion.iter().enumerate() {
                    @let all = row.iter().sum::<u64>().max(1) as f64;
                    tr {
                        th scope="row" { (class_name(story, truth)) }
                        @for (class, &rows) in row.iter().enumerate() {
                            td class=(if class == truth { "number right" } else { "number wrong" })
                                style=(format!("--share:{:.0}%", 100.0 * rows as f64 / all)) { (numbers::count(rows)) }
                        }
                    }
                } }
            }
        }
    }
}

fn roc_csv(all: &[(&SiloStory, &ClassResults)]) -> String {
    let of = |silo: &SiloStory, model: &str, curve: &[(f64, f64)]| -> Vec<Vec<String>> {
        let row = |(fpr, tpr): &(f64, f64)| {
            vec![
                silo.name.clone(),
                model.to_owned(),
                fpr.to_string(),
                tpr.to_string(),
            ]
        };
        curve.iter().map(row).collect()
    };
    let rows = all.iter().flat_map(|(silo, classes)| {
        let adopted = of(silo, "adopted", &classes.roc);
        [adopted, of(silo, "own", &classes.roc_local)].concat()
    });
    download::csv(
        &["silo", "model", "false positive rate", "true positive rate"],
        rows,
    )
}

fn calibration_csv(all: &[(&SiloStory, &ClassResults)]) -> String {
    let rows = all.iter().flat_map(|(silo, classes)| {
        classes.calibration.iter().map(|bin| {
            let (predicted, observed) = (bin.predicted.to_string(), bin.observed.to_string());
            vec![silo.name.clone(), predicted, observed, bin.rows.to_string()]
        })
    });
    download::csv(&["silo", "predicted", "observed", "rows"], rows)
}

fn confusion_csv(story: &Story, classes: &ClassResults) -> String {
    let rows = classes
        .confusion
        .iter()
        .enumerate()
        .flat_map(|(truth, row)| {
            row.iter().enumerate().map(move |(class, rows)| {
                vec![
                    class_name(story, truth),
                    class_name(story, class),
                    rows.to_string(),
                ]
            })
        });
    download::csv(&["true class", "given class", "rows"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn story(silos: usize) -> Story {
        let mut story = fixture::story(silos, 1, 2);
        story.settings.classes = vec!["well".into(), "<ill>".into()];
        for silo in &mut story.silos {
            silo.classes = Some(ClassResults {
                confusion: vec![vec![40, 3], vec![5, 12]],
                calibration: vec![Bin {
                    predicted: 0.25,
                    observed: 0.5,
                    rows: 60,
                }],
                roc: vec![(0.0, 0.0), (0.2, 0.9), (1.0, 1.0)],
                roc_local: vec![(0.0, 0.0), (0.5, 0.6), (1.0, 1.0)],
            });
        }
        story
    }

    #[test]
    fn every_silo_has_roc_calibration_and_confusion() {
        let page = section(&story(2)).into_string();
        for (part, times) in [
            ("<details open>", 2),
            ("ROC: adopted model, and local model dashed", 2),
            // At each silo and, being the only bin, among those of all.
            ("60 rows: predicted 0.25, observed 0.50", 4),
            ("<th scope=\"row\">&lt;ill&gt;</th>", 2),
            ("download=\"diabetes-Hospital 01-confusion.csv\"", 1),
            ("download=\"diabetes-roc.csv\"", 1),
        ] {
            assert_eq!(page.matches(part).count(), times, "{part} in {page}");
        }
        assert!(page.contains("of class “&lt;ill&gt;”"));
    }

    #[test]
    fn details_of_many_silos_are_closed_at_first() {
        let page = section(&story(8)).into_string();
        assert_eq!(page.matches("<details>").count(), 8);
    }

    #[test]
    fn numbers_have_no_such_section() {
        assert_eq!(section(&fixture::story(3, 1, 2)).into_string(), "");
    }
}
