//! The section with curves by round: training loss, and held-out metric of the adopted model.

use maud::{Markup, html};

use super::story::{Point, Silo, Story};
use super::svg::{Scale, colour, drawing, px, range, tick_text};
use super::{numbers, terminal};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 50.0;
const BOTTOM: f64 = 36.0;
/// The most silos whose names are drawn; of more, they show on pointing.
const NAMED: usize = 16;
/// The most points that are drawn as dots.
const POINTS: usize = 1200;

/// The section.
pub(crate) fn section(story: &Story) -> Markup {
    let metric = format!("Held-out {}", terminal::metric(story));
    html! {
        section {
            h2 { "Learning curves" }
            p.note { "One line per silo, in the colour of its coalition; point at a line for its name." }
            div.pair {
                (chart(story, "Training loss in the last local epoch", |point| point.loss))
                (chart(story, &metric, |point| point.metric))
            }
        }
    }
}

fn chart(story: &Story, title: &str, of: impl Fn(&Point) -> Option<f64>) -> Markup {
    let of = |point: &Point| of(point).filter(|value| value.is_finite());
    let points = || story.silos.iter().flat_map(|silo| &silo.curve);
    let Some(values) = range(points().filter_map(of)) else {
        return html! { figure { figcaption { (title) } p { "Nothing was measured." } } };
    };
    let named = story.silos.len() <= NAMED;
    let right = WIDTH - if named { 124.0 } else { 14.0 };
    let rounds = points().map(|point| point.round as f64);
    let (first, last) = rounds.fold((f64::INFINITY, 0.0f64), |(a, b), r| (a.min(r), b.max(r)));
    let x = Scale::new((first, last), (LEFT, right));
    let y = Scale::new(values, (HEIGHT - BOTTOM, 14.0));
    let dotted = points().count() <= POINTS;
    html! {
        figure {
            figcaption { (title) }
            (drawing(title, WIDTH, HEIGHT, html! {
                (axes(x, y, right))
                @for silo in &story.silos { (line(silo, x, y, dotted, of)) }
                @if named { (labels(story, x, y, of)) }
            }))
        }
    }
}

fn axes(x: Scale, y: Scale, right: f64) -> Markup {
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

fn line(
    silo: &Silo,
    x: Scale,
    y: Scale,
    dotted: bool,
    of: impl Fn(&Point) -> Option<f64>,
) -> Markup {
    let coalition = silo.coalition_index;
    let mut path = String::new();
    let mut dots = Vec::new();
    // A round without a value breaks the line.
    let mut pen = 'M';
    for point in &silo.curve {
        let Some(value) = of(point) else {
            pen = 'M';
            continue;
        };
        let (cx, cy) = (x.at(point.round as f64), y.at(value));
        path.push_str(&format!("{pen}{cx} {cy}"));
        pen = 'L';
        dots.push((point.round, value, cx, cy));
    }
    html! {
        g class={ "curve " (colour(coalition)) } {
            title { (silo.name) }
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
fn labels(story: &Story, x: Scale, y: Scale, of: impl Fn(&Point) -> Option<f64>) -> Markup {
    const APART: f64 = 14.0;
    let mut ends: Vec<(f64, f64, f64, &Silo)> = story
        .silos
        .iter()
        .filter_map(|silo| {
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
            @let coalition = silo.coalition_index;
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
    use crate::report::fixture;

    #[test]
    fn a_missing_round_breaks_the_line() {
        let story = fixture::story(2, 1, 4);
        let page = section(&story).into_string();
        // The fixture's second silo was away in round 3: `M` of rounds 1 and 4, `L` of round 2.
        let x = Scale::new((1.0, 4.0), (0.0, 1.0));
        let y = Scale::new((0.0, 1.0), (0.0, 1.0));
        let path = line(&story.silos[1], x, y, false, |point| point.metric).into_string();
        assert_eq!(
            (path.matches('M').count(), path.matches('L').count()),
            (2, 1)
        );
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
    fn a_chart_without_values_says_so() {
        let mut story = fixture::story(3, 1, 2);
        story.silos.iter_mut().for_each(|silo| silo.curve.clear());
        let page = section(&story).into_string();
        assert_eq!(page.matches("Nothing was measured.").count(), 2);
    }
}
