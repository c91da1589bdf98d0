//! ROC curves and calibration of all silos in one drawing each: of a few silos a line each, of more
//! the median and the band of the middle half.

use lab::summary::{Bin, ClassResults};
use maud::{Markup, html};

use super::super::band::{self, quartiles};
use super::super::story::{SiloStory, Story};
use super::super::svg::drawing;
use super::super::{download, many, numbers};
use super::axes::{SIZE, axes, scales};
use super::{ENOUGH, bins, calibration_csv, curve, enough, places, roc_csv};

/// The most silos that have a line each.
const LINES: usize = 4;
/// The fewest rows of either class with which a silo's ROC curve counts: with fewer, the curve is a
/// few steps (a choice).
const ENOUGH_OF_CLASS: u64 = 5;
/// The fewest silos that make a band.
const BAND: usize = 3;
/// Steps of the false positive rate at which curves are read off.
const STEPS: usize = 40;
/// Bins of probability.
const BINS: usize = 10;

/// Both drawings.
pub(super) fn charts(story: &Story, all: &[(&SiloStory, &ClassResults)]) -> Markup {
    let curves = all.iter().any(|(_, classes)| !classes.roc.is_empty());
    html! {
        div.pair.squares {
            @if curves { (roc(story, all)) }
            (calibration(story, all))
        }
        @if all.len() > LINES { (key()) }
    }
}

/// The download of a drawing; none of many silos, whose curves would be most of the page.
fn saved(story: &Story, what: &str, csv: impl FnOnce() -> String) -> Markup {
    html! {
        @if !many::are_many(story) { (download::plot(&format!("{}-{what}", story.scenario), &csv())) }
    }
}

fn key() -> Markup {
    html! {
        ul.legend.inline {
            li { svg.key viewBox="0 0 14 14" aria-hidden="true" {
                rect.band y="1" width="14" height="12" {} path.median d="M0 7L14 7" {}
            } "median and middle half of the silos" }
            li { svg.key viewBox="0 0 14 14" aria-hidden="true" { path.together d="M0 7L14 7" {} } "rows of all silos together" }
        }
    }
}

/// The silos with at least this many rows of either class.
fn with_both<'a>(
    all: &[(&'a SiloStory, &'a ClassResults)],
) -> Vec<(&'a SiloStory, &'a ClassResults)> {
    let both = |classes: &ClassResults| {
        let rows = classes.confusion.iter().map(|row| row.iter().sum::<u64>());
        !classes.roc.is_empty() && rows.min().unwrap_or(0) >= ENOUGH_OF_CLASS
    };
    let found = all.iter().filter(|(_, classes)| both(classes));
    found.copied().collect()
}

fn roc(story: &Story, all: &[(&SiloStory, &ClassResults)]) -> Markup {
    let shown = with_both(all);
    let (x, y) = scales();
    let places: Vec<(f64, [f64; 3])> = (0..=STEPS)
        .filter(|_| shown.len() >= BAND)
        .map(|step| {
            let at = step as f64 / STEPS as f64;
            let rates = shown.iter().map(|(_, classes)| rate(&classes.roc, at));
            let rates = quartiles(&mut rates.collect::<Vec<_>>());
            (x.at(at), rates.map(|rate| y.at(rate)))
        })
        .collect();
    let title = if all.len() > LINES {
        "ROC curves: median of the silos"
    } else {
        "ROC curves of all silos"
    };
    html! {
        figure {
            figcaption { (title) }
            @if all.len() > LINES && shown.len() < BAND {
                p.note {
                    "Too few for a median: " (of(shown.len(), all.len())) " held out " (ENOUGH_OF_CLASS)
                    " rows of either class or more. The curves of single silos are below."
                }
                div.saves { (download::data(&format!("{}-roc", story.scenario), &roc_csv(all))) }
            } @else {
                (drawing(title, SIZE, SIZE, html! {
                    (axes("false positive rate", "true positive rate"))
                    @if all.len() > LINES { (band::drawn(&places)) } @else {
                        @for (silo, classes) in &shown { (curve(silo, &classes.roc, "")) }
                    }
                }))
                p.note {
                    "From " (of(shown.len(), all.len())) ": those that held out " (ENOUGH_OF_CLASS)
                    " rows of either class or more."
                }
                (saved(story, "roc", || roc_csv(all)))
            }
        }
    }
}

/// The true positive rate of a curve at this false positive rate: on the line between two of its
/// points, at the top of a vertical part.
fn rate(curve: &[(f64, f64)], at: f64) -> f64 {
    let segments = curve.windows(2).rev();
    let found = segments
        .map(|pair| (pair[0], pair[1]))
        .find(|(from, to)| from.0 <= at && at <= to.0);
    match found {
        Some((from, to)) if to.0 > from.0 => {
            from.1 + (at - from.0) / (to.0 - from.0) * (to.1 - from.1)
        }
        Some((_, to)) => to.1,
        None => at,
    }
}

fn calibration(story: &Story, all: &[(&SiloStory, &ClassResults)]) -> Markup {
    let many = all.len() > LINES;
    let shown = || {
        let each = all.iter();
        let each = each.map(|(silo, classes)| (*silo, enough(&classes.calibration)));
        each.filter(|(_, bins)| !bins.is_empty())
    };
    let (x, y) = scales();
    let middle: Vec<(f64, [f64; 3])> = (0..BINS)
        .filter_map(|tenth| {
            let bins: Vec<Bin> = shown()
                .flat_map(|(_, bins)| bins)
                .filter(|bin| tenth_of(bin) == tenth)
                .collect();
            (bins.len() >= BAND).then(|| {
                let predicted =
                    quartiles(&mut bins.iter().map(|bin| bin.predicted).collect::<Vec<_>>());
                let observed =
                    quartiles(&mut bins.iter().map(|bin| bin.observed).collect::<Vec<_>>());
                (x.at(predicted[1]), observed.map(|fraction| y.at(fraction)))
            })
        })
        .collect();
    let pooled = enough(&pooled(all));
    let together: Vec<String> = pooled
        .iter()
        .map(|bin| format!("{} {}", x.at(bin.predicted), y.at(bin.observed)))
        .collect();
    let title = if many {
        "Calibration: median of the silos"
    } else {
        "Calibration of all silos"
    };
    html! {
        figure {
            figcaption { (title) }
            (drawing(title, SIZE, SIZE, html! {
                (axes("predicted probability", "observed fraction"))
                @if many {
                    (band::drawn(&middle))
                    @for (cx, [_, cy, _]) in &middle { circle.middle cx=(cx) cy=(cy) r="3" {} }
                    @if !together.is_empty() {
                        path.together d=(format!("M{}", together.join("L"))) { title { "rows of all silos together" } }
                    }
                    @for bin in &pooled {
                        circle.together cx=(x.at(bin.predicted)) cy=(y.at(bin.observed)) r="3" {
                            title { "all silos together, " (numbers::plural(bin.rows as usize, "row")) }
                        }
                    }
                } @else {
                    @for (silo, enough) in shown() {
                        (curve(silo, &places(&enough), ""))
                        // A single bin makes no line.
                        @if enough.len() == 1 { (bins(silo, &enough)) }
                    }
                }
            }))
            p.note {
                @if many {
                    "A silo counts in the bins that hold " (ENOUGH) " of its rows or more: " (of(shown().count(), all.len()))
                    " have such a bin. The median is drawn where " (BAND) " silos count."
                } @else {
                    "From " (of(shown().count(), all.len())) ": those with " (ENOUGH) " rows in a bin or more."
                }
            }
            (saved(story, "calibration", || calibration_csv(all)))
        }
    }
}

fn of(some: usize, all: usize) -> String {
    if some == all {
        format!("all {}", numbers::plural(all, "silo"))
    } else {
        format!("{some} of {}", numbers::plural(all, "silo"))
    }
}

fn tenth_of(bin: &Bin) -> usize {
    ((bin.predicted * BINS as f64) as usize).min(BINS - 1)
}

/// The bins of the rows of all silos together.
fn pooled(all: &[(&SiloStory, &ClassResults)]) -> Vec<Bin> {
    let mut sums = [(0.0, 0.0, 0u64); BINS];
    for bin in all.iter().flat_map(|(_, classes)| &classes.calibration) {
        let sum = &mut sums[tenth_of(bin)];
        let rows = bin.rows as f64;
        sum.0 += bin.predicted * rows;
        sum.1 += bin.observed * rows;
        sum.2 += bin.rows;
    }
    let filled = sums.into_iter().filter(|(.., rows)| *rows > 0);
    let bin = |(predicted, observed, rows): (f64, f64, u64)| Bin {
        predicted: predicted / rows as f64,
        observed: observed / rows as f64,
        rows,
    };
    filled.map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Silos whose bin from 0.2 to 0.3 observed these fractions in so many rows, with ROC curves
    /// through (0.5, the fraction).
    fn story(observed: &[(f64, u64)]) -> Story {
        let mut story = fixture::story(observed.len(), 1, 2);
        story.settings.classes = vec!["well".into(), "ill".into()];
        for (silo, &(fraction, rows)) in story.silos.iter_mut().zip(observed) {
            silo.classes = Some(ClassResults {
                confusion: vec![vec![rows, 0], vec![0, rows]],
                calibration: vec![Bin {
                    predicted: 0.25,
                    observed: fraction,
                    rows,
                }],
                roc: vec![(0.0, 0.0), (0.5, fraction), (1.0, 1.0)],
                roc_local: Vec::new(),
            });
        }
        story
    }

    fn page(story: &Story) -> String {
        let all: Vec<_> = story
            .silos
            .iter()
            .filter_map(|silo| Some((silo, silo.classes.as_ref()?)))
            .collect();
        charts(story, &all).into_string()
    }

    #[test]
    fn many_silos_have_a_median_and_a_band_and_no_line_each() {
        let page = page(&story(&[
            (0.1, 40),
            (0.2, 40),
            (0.3, 40),
            (0.4, 40),
            (0.5, 40),
        ]));
        assert!(!page.contains("class=\"curve"), "{page}");
        let (x, y) = scales();
        let at = |fraction: f64| y.at(fraction);
        // Quartiles 0.2, 0.3 and 0.4 at the predicted 0.25 ...
        let place = x.at(0.25);
        let band = format!("d=\"M{place} {}L{place} {}Z\"", at(0.2), at(0.4));
        assert!(page.contains(&band), "{band} in {page}");
        assert!(
            page.contains(&format!("path class=\"median\" d=\"M{place} {}\"", at(0.3))),
            "{page}"
        );
        // ... and at the false positive rate 0.5.
        assert!(
            page.contains(&format!("L{} {}L", x.at(0.5), at(0.3))),
            "{page}"
        );
        assert_eq!(page.matches("From all 5 silos").count(), 1, "{page}");
    }

    #[test]
    fn silos_with_few_rows_do_not_count() {
        let few = [(0.1, 40), (0.2, 40), (0.3, 40), (0.9, 9), (0.9, 4)];
        let page = page(&story(&few));
        let (x, y) = scales();
        let middle = format!("path class=\"median\" d=\"M{} {}\"", x.at(0.25), y.at(0.2));
        assert!(page.contains(&middle), "{middle} in {page}");
        for said in [
            "From 4 of 5 silos: those that held out 5 rows of either class or more.",
            "hold 10 of its rows or more: 3 of 5 silos have such a bin",
        ] {
            assert!(page.contains(said), "{said} in {page}");
        }
        // Only rows of all silos together show where a single one has too few.
        let page = self::page(&story(&[(0.2, 3); 6]));
        assert!(!page.contains("<path class=\"median\" d=\"M1"), "{page}");
        assert!(
            page.contains("Too few for a median: 0 of 6 silos"),
            "{page}"
        );
        let together = format!(
            "path class=\"together\" d=\"M{} {}\"",
            x.at(0.25),
            y.at(0.2)
        );
        assert!(page.contains(&together), "{together} in {page}");
    }

    #[test]
    fn a_few_silos_have_a_line_each() {
        let page = page(&story(&[(0.1, 40), (0.2, 40), (0.3, 9)]));
        // ROC of all three; calibration, a line and a dot each, of the two with enough rows.
        assert_eq!(page.matches("<g class=\"curve").count(), 3 + 2 * 2);
        assert!(!page.contains("class=\"median\""), "{page}");
    }

    #[test]
    fn a_curve_is_read_between_its_points_and_at_the_top_of_a_step() {
        let curve = [(0.0, 0.0), (0.0, 0.4), (0.5, 0.6), (0.5, 0.8), (1.0, 1.0)];
        let read = [0.0, 0.25, 0.5, 0.75, 1.0].map(|at| rate(&curve, at));
        assert_eq!(read, [0.4, 0.5, 0.8, 0.9, 1.0]);
    }
}
