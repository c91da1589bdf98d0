//! The section with curves by round: training loss, and held-out metric of the adopted model.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::band::{self, quartiles};
use super::story::{SiloPoint, SiloStory, Story};
use super::svg::{AxisFrame, AxisScale, colour, drawing, px, tick_text};
use super::{download, many, numbers, terminal};

pub(crate) const WIDTH: f64 = 560.0;
pub(crate) const HEIGHT: f64 = 320.0;
pub(crate) const LEFT: f64 = 50.0;
pub(crate) const BOTTOM: f64 = 36.0;
/// The most points that are drawn as dots.
const POINTS: usize = 1200;

/// The most silos whose lines are drawn alike; of more, the median and its band stand out.
const ALIKE: usize = 12;
/// The most silos that are coloured for being far from the band.
const OUTLIERS: usize = 8;

/// The section.
pub(crate) fn section(story: &Story) -> Markup {
    let metric = format!("Held-out {}", terminal::metric(story));
    html! {
        section {
            h2 { "Learning curves" }
            @if story.silos.len() > ALIKE {
                p.note {
                    "The thick line is the median of all silos, the band holds the middle half of them. "
                    "Coloured by coalition: silos whose last value is further from the band than one and "
                    "a half times its height. Point at a line for its name."
                }
            } @else {
                p.note { "One line per silo, in the colour of its coalition; point at a line for its name." }
            }
            div.pair {
                (chart(story, "Training loss in the last local epoch", "loss", |point| point.loss))
                (chart(story, &metric, &story.metric.name, |point| point.metric))
            }
        }
    }
}

fn chart(story: &Story, title: &str, name: &str, of: impl Fn(&SiloPoint) -> Option<f64>) -> Markup {
    let finite = |point: &SiloPoint| of(point).filter(|value| value.is_finite());
    let points = || story.silos.iter().flat_map(|silo| &silo.curve);
    let Some(frame) = AxisFrame::of(points().filter_map(finite)) else {
        return html! { figure { figcaption { (title) } p { "Nothing was measured." } } };
    };
    let shown = |point: &SiloPoint| finite(point).map(|value| frame.inside(value));
    let many = story.silos.len() > ALIKE;
    let outliers = if many {
        outliers(story, finite)
    } else {
        Vec::new()
    };
    let labelled: Vec<&SiloStory> = if many {
        outliers.iter().map(|&at| &story.silos[at]).collect()
    } else {
        story.silos.iter().collect()
    };
    let right = WIDTH - if labelled.is_empty() { 14.0 } else { 124.0 };
    let rounds = points().map(|point| point.round as f64);
    let (first, last) = rounds.fold((f64::INFINITY, 0.0f64), |(a, b), r| (a.min(r), b.max(r)));
    let x = AxisScale::new((first, last), (LEFT, right));
    let y = AxisScale::framed(&frame, (HEIGHT - BOTTOM, 14.0));
    let dotted = !many && points().count() <= POINTS;
    let faint = |at: &usize| many && !outliers.contains(at);
    let lines = !many::are_many(story);
    let each = || story.silos.iter().enumerate();
    let measured = points().filter(|point| finite(point).is_some());
    let measured: BTreeSet<u64> = measured.map(|point| point.round).collect();
    html! {
        figure {
            figcaption {
                (title)
                @if let Some((count, largest)) = frame.above {
                    span.muted {
                        " (" (numbers::plural(count, "value")) " beyond the frame, up to "
                        (numbers::value(largest, numbers::decimals(largest))) ")"
                    }
                }
            }
            (drawing(title, WIDTH, HEIGHT, html! {
                (axes(x, y, right))
                @for (_, silo) in each().filter(|(at, _)| lines && faint(at)) {
                    (line(silo, x, y, Look::Faint, &measured, shown))
                }
                @if many { (band(story, x, y, shown)) }
                @for (_, silo) in each().filter(|(at, _)| !faint(at)) {
                    (line(silo, x, y, if dotted { Look::Dotted } else { Look::Plain }, &measured, shown))
                }
                (labels(&labelled, x, y, shown))
            }))
            (download::plot(
                &format!("{}-{name}-by-round", story.scenario),
                &table(story, name, finite),
            ))
        }
    }
}

/// The values of a chart as CSV: of every silo, or of many what the chart shows of all.
fn table(story: &Story, name: &str, of: impl Fn(&SiloPoint) -> Option<f64>) -> String {
    if many::are_many(story) {
        let rows = by_round(story, of).into_iter().map(|(round, quartiles)| {
            let quartiles = quartiles.map(|value| value.to_string());
            std::iter::once(round.to_string()).chain(quartiles)
        });
        return download::csv(
            &["round", "lower quartile", "median", "upper quartile"],
            rows,
        );
    }
    let rows = story.silos.iter().flat_map(|silo| {
        let cells = |point: &SiloPoint| {
            let value = of(point);
            [
                silo.name.clone(),
                point.round.to_string(),
                download::number(value),
            ]
        };
        silo.curve.iter().map(cells).collect::<Vec<_>>()
    });
    download::csv(&["silo", "round", name], rows)
}

/// The silos whose last value is outside of Tukey's fences, the furthest first.
fn outliers(story: &Story, of: impl Fn(&SiloPoint) -> Option<f64>) -> Vec<usize> {
    // Only what was measured after the last round: a silo that was away earlier is no outlier.
    let points = story.silos.iter().flat_map(|silo| &silo.curve);
    let end = points
        .filter(|point| of(point).is_some())
        .map(|point| point.round)
        .max();
    let last = |(at, silo): (usize, &SiloStory)| {
        let point = silo
            .curve
            .iter()
            .rev()
            .find(|point| Some(point.round) == end)?;
        Some((at, of(point)?))
    };
    let lasts: Vec<(usize, f64)> = story.silos.iter().enumerate().filter_map(last).collect();
    if lasts.is_empty() {
        return Vec::new();
    }
    let [low, _, high] = quartiles(&mut lasts.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    let fence = 1.5 * (high - low);
    let beyond = |value: f64| (low - fence - value).max(value - high - fence);
    let mut far: Vec<(usize, f64)> = lasts
        .into_iter()
        .map(|(at, value)| (at, beyond(value)))
        .filter(|(_, beyond)| *beyond > 0.0)
        .collect();
    far.sort_by(|a, b| b.1.total_cmp(&a.1));
    far.into_iter().take(OUTLIERS).map(|(at, _)| at).collect()
}

/// The median by round, and the band between the quartiles.
fn band(
    story: &Story,
    x: AxisScale,
    y: AxisScale,
    of: impl Fn(&SiloPoint) -> Option<f64>,
) -> Markup {
    let places: Vec<(f64, [f64; 3])> = by_round(story, of)
        .into_iter()
        .map(|(round, quartiles)| (x.at(round as f64), quartiles.map(|value| y.at(value))))
        .collect();
    band::drawn(&places)
}

/// The quartiles over silos by round.
fn by_round(story: &Story, of: impl Fn(&SiloPoint) -> Option<f64>) -> Vec<(u64, [f64; 3])> {
    let mut rounds = BTreeMap::<u64, Vec<f64>>::new();
    for point in story.silos.iter().flat_map(|silo| &silo.curve) {
        if let Some(value) = of(point) {
            rounds.entry(point.round).or_default().push(value);
        }
    }
    let rounds = rounds.into_iter();
    rounds
        .map(|(round, mut values)| (round, quartiles(&mut values)))
        .collect()
}

/// The axes of a chart by round.
pub(crate) fn axes(x: AxisScale, y: AxisScale, right: f64) -> Markup {
    let ticks = y.ticks(5);
    let floor = HEIGHT - BOTTOM;
    html! {
        @for tick in &ticks {
            line.grid x1=(LEFT) x2=(px(right)) y1=(y.at(*tick)) y2=(y.at(*tick)) {}
            text.tick x=(LEFT - 8.0) y=(px(y.at(*tick) + 4.0)) text-anchor="end" { (tick_text(&ticks, *tick)) }
        }
        @for round in x.ticks(10).into_iter().filter(|round| round.fract() == 0.0) {
            line.grid x1=(x.at(round)) x2=(x.at(round)) y1=(floor) y2=(floor + 5.0) {}
            text.tick x=(x.at(round)) y=(floor + 18.0) text-anchor="middle" { (round) }
        }
        line.axis x1=(LEFT) x2=(px(right)) y1=(floor) y2=(floor) {}
        text.tick x=(px((LEFT + right) / 2.0)) y=(HEIGHT - 3.0) text-anchor="middle" { "round" }
    }
}

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// With a dot for every point.
    Dotted,
    /// In the colour of the coalition.
    Plain,
    /// Grey, behind the others.
    Faint,
}

fn line(
    silo: &SiloStory,
    x: AxisScale,
    y: AxisScale,
    look: Look,
    measured: &BTreeSet<u64>,
    of: impl Fn(&SiloPoint) -> Option<f64>,
) -> Markup {
    let coalition = silo.in_coalition();
    let dotted = look == Look::Dotted;
    let mut path = String::new();
    let mut dots = Vec::new();
    // A round without a value breaks the line, unless nobody was measured in it.
    let mut pen = 'M';
    for point in &silo.curve {
        let Some(value) = of(point) else {
            if measured.contains(&point.round) {
                pen = 'M';
            }
            continue;
        };
        let (cx, cy) = (x.at(point.round as f64), y.at(value));
        path.push_str(&format!("{pen}{cx} {cy}"));
        pen = 'L';
        dots.push((point.round, value, cx, cy));
    }
    html! {
        g class={ "curve " (colour(coalition)) @if look == Look::Faint { " faint" } } {
            title { (silo.name) }
            path.hit d=(path) {}
            path d=(path) {}
            @if dotted {
                @for (round, value, cx, cy) in dots {
                    circle cx=(cx) cy=(cy) r="3" {
                        title { (silo.name) ", round " (round) ": " (numbers::value(value, numbers::decimals(value))) }
                    }
                }
            }
        }
    }
}

/// Names at the ends of the lines, moved apart where they would overlap.
fn labels(
    silos: &[&SiloStory],
    x: AxisScale,
    y: AxisScale,
    of: impl Fn(&SiloPoint) -> Option<f64>,
) -> Markup {
    const APART: f64 = 14.0;
    let mut ends: Vec<(f64, f64, f64, &SiloStory)> = silos
        .iter()
        .filter_map(|&silo| {
            let (round, value) = silo
                .curve
                .iter()
                .rev()
                .find_map(|p| Some((p.round, of(p)?)))?;
            let at = y.at(value);
            Some((at, at, x.at(round as f64), silo))
        })
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    for index in 1..ends.len() {
        ends[index].0 = ends[index].0.max(ends[index - 1].0 + APART);
    }
    // Labels that were pushed below the frame move back up, and push the others.
    let mut floor = HEIGHT - BOTTOM;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(floor);
        floor = end.0 - APART;
    }
    html! {
        @for (label, from, x, silo) in ends {
            @let coalition = silo.in_coalition();
            g class=(colour(coalition)) {
                path.leader d=(format!("M{} {from}L{} {}", px(x + 4.0), px(x + 14.0), px(label))) {}
                text.name x=(px(x + 17.0)) y=(px(label + 4.0)) { (numbers::short(&silo.name, 15)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_missing_round_breaks_the_line() {
        let story = fixture::story(2, 1, 4);
        let page = section(&story).into_string();
        // The fixture's second silo was away in round 3: `M` of rounds 1 and 4, `L` of round 2.
        let x = AxisScale::new((1.0, 4.0), (0.0, 1.0));
        let y = AxisScale::new((0.0, 1.0), (0.0, 1.0));
        let drawn = |measured: &[u64]| {
            let measured = measured.iter().copied().collect();
            let metric = |point: &SiloPoint| point.metric;
            let path = line(&story.silos[1], x, y, Look::Plain, &measured, metric).into_string();
            (path.matches('M').count(), path.matches('L').count())
        };
        // The path, and the wider one under the pointer.
        assert_eq!(drawn(&[1, 2, 3, 4]), (4, 2));
        // Nobody was measured in round 3: the line goes on.
        assert_eq!(drawn(&[1, 2, 4]), (2, 4));
        assert!(page.contains("Hospital 02, round 4") && !page.contains("Hospital 02, round 3: 1"));
    }

    #[test]
    fn one_silo_one_round_and_a_hundred_are_drawn() {
        for (silos, rounds) in [(1, 1), (1, 2), (100, 50)] {
            let page = section(&fixture::story(silos, 1, rounds)).into_string();
            assert!(
                !page.contains("NaN") && !page.contains("inf"),
                "{silos} silos, {rounds} rounds"
            );
        }
    }

    #[test]
    fn beyond_twelve_silos_the_median_has_a_band_and_outliers_names() {
        let mut story = fixture::story(40, 2, 3);
        let page = section(&story).into_string();
        assert_eq!(page.matches("class=\"median\"").count(), 2);
        assert!(
            !page.contains("class=\"name\""),
            "nobody is far from the band"
        );
        for point in &mut story.silos[7].curve {
            point.metric = point.metric.map(|value| 3.0 * value);
        }
        let page = section(&story).into_string();
        assert_eq!(page.matches("class=\"name\"").count(), 1);
        assert_eq!(page.matches(" faint\"").count(), 40 + 39);
        assert!(
            !section(&fixture::story(12, 2, 3))
                .into_string()
                .contains("class=\"median\"")
        );
    }

    #[test]
    fn an_absurd_value_is_stated_and_not_drawn_to_scale() {
        let mut story = fixture::story(3, 1, 4);
        story.silos[0].curve[3].metric = Some(1e28);
        let page = section(&story).into_string();
        assert!(
            page.contains("1 value beyond the frame, up to 1.00e28"),
            "{page}"
        );
    }

    #[test]
    fn the_data_of_both_charts_can_be_saved() {
        let page = section(&fixture::story(3, 1, 4)).into_string();
        assert_eq!(page.matches("data-svg=").count(), 2);
        assert!(
            page.contains("download=\"diabetes-mae-by-round.csv\""),
            "{page}"
        );
        assert!(page.contains("Hospital%2001,1,"), "{page}");
    }

    #[test]
    fn a_chart_without_values_states_so() {
        let mut story = fixture::story(3, 1, 2);
        story.silos.iter_mut().for_each(|silo| silo.curve.clear());
        let page = section(&story).into_string();
        assert_eq!(page.matches("Nothing was measured.").count(), 2);
    }
}
