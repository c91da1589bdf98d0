//! The section on coalitions: a graph of the last round, and a table of all rounds.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use super::story::Story;
use maud::{Markup, html};

use super::layout::{Pair, shelves};
use super::pictures::course::{self, CoalitionCourse};
use super::svg::{colour, drawing, px};
use super::table::chip;
use super::{download, letter, many, numbers};

const WIDTH: f64 = 1000.0;
/// The golden angle, which spreads points evenly on a disc.
const GOLDEN: f64 = 2.399_963_229_728_653;
/// The most silos whose names are drawn; of more, they show on pointing.
const NAMED: usize = 32;
/// The most members without names that stand on a ring; more fill the disc.
const RING: usize = 16;
/// Radius of the largest of many silos' coalitions.
const LARGEST: f64 = 90.0;
/// Room around the members on the disc of their coalition.
const HULL: f64 = 10.0;

/// The section.
pub(crate) fn section(story: &Story) -> Markup {
    let coalitions = story.last_coalitions();
    html! {
        section {
            h2 { "Who learns with whom" }
            @if coalitions.is_empty() {
                p { "No coalition was formed." }
            } @else {
                p { (said(story, &coalitions)) }
                p.note {
                    "Silos of a coalition share a model. "
                    @if many::are_many(story) { "A disc’s area grows with the coalition’s silos. " }
                    @else { "A dot’s area grows with the silo’s training rows. " }
                    "Only a simulation knows them all; in a federation with names removed, each silo knows its own coalition."
                }
                figure {
                    (graph(story, &coalitions))
                    (download::plot(&format!("{}-coalitions", story.scenario), &csv(story)))
                }
                ul.legend {
                    @for (index, members) in &coalitions {
                        li {
                            (chip(Some(*index))) " " b { (numbers::plural(members.len(), "silo")) } " "
                            span.muted { (numbers::names(members, 10)) }
                        }
                    }
                }
                (strip(story))
            }
        }
    }
}

/// The grouping of the last round in one sentence.
fn said(story: &Story, coalitions: &[(usize, &[String])]) -> String {
    let silos = numbers::plural(story.silos.len(), "silo");
    let alone = coalitions.iter().filter(|(_, members)| members.len() == 1);
    match (coalitions, alone.count()) {
        ([(_, members)], 0) if members.len() == story.silos.len() => {
            format!("All {silos} are one coalition: they share one model.")
        }
        (_, 0) => format!(
            "{silos} in {}.",
            numbers::plural(coalitions.len(), "coalition")
        ),
        (_, alone) => format!(
            "{silos} in {}; {alone} of them alone.",
            numbers::plural(coalitions.len(), "coalition")
        ),
    }
}

/// The coalitions of all rounds as CSV; of many silos those of the last.
fn csv(story: &Story) -> String {
    let first = match many::are_many(story) {
        true => story.rounds.len().saturating_sub(1),
        false => 0,
    };
    let rows = story.rounds.iter().skip(first).flat_map(|round| {
        let coalitions = round.coalitions.iter().enumerate();
        coalitions.flat_map(move |(index, members)| {
            let row =
                move |member: &String| vec![round.round.to_string(), letter(index), member.clone()];
            members.iter().map(row)
        })
    });
    download::csv(&["round", "coalition", "silo"], rows)
}

struct Cluster<'a> {
    index: usize,
    members: Vec<GraphNode<'a>>,
    radius: f64,
    disc: bool,
    x: f64,
    y: f64,
}

struct GraphNode<'a> {
    name: &'a str,
    samples: u64,
    radius: f64,
    /// From the middle of the cluster.
    angle: f64,
    out: f64,
}

fn graph(story: &Story, coalitions: &[(usize, &[String])]) -> Markup {
    if many::are_many(story) {
        return discs(coalitions);
    }
    let named = story.silos.len() <= NAMED;
    let mut clusters = clusters(story, coalitions);
    let height = place(&mut clusters, if named { 64.0 } else { 22.0 });
    drawing(
        "Coalition graph",
        WIDTH,
        height,
        html! {
            @for cluster in &clusters {
                g class=(colour(Some(cluster.index))) {
                    title { "Coalition " (letter(cluster.index)) ", " (numbers::plural(cluster.members.len(), "silo")) }
                    (group(cluster))
                    text.centre x=(px(cluster.x)) y=(px(cluster.y + letter_above(cluster))) { (letter(cluster.index)) }
                @for node in &cluster.members { (dot(cluster, node, named)) }
                }
            }
        },
    )
}

/// A disc for every coalition, whose area grows with its members: of many silos single dots tell nothing.
fn discs(coalitions: &[(usize, &[String])]) -> Markup {
    let most = coalitions.iter().map(|(_, members)| members.len()).max();
    let most = most.unwrap_or(1).max(1) as f64;
    let radius = |members: &[String]| LARGEST * (members.len() as f64 / most).sqrt().max(0.05);
    let boxes: Vec<Pair> = coalitions
        .iter()
        .map(|(_, members)| (2.0 * radius(members) + 60.0, 2.0 * radius(members) + 44.0))
        .collect();
    let (middles, height) = shelves(&boxes, WIDTH);
    drawing(
        "Coalitions by size",
        WIDTH,
        height,
        html! {
            @for ((index, members), (x, y)) in coalitions.iter().zip(middles) {
                @let said = numbers::plural(members.len(), "silo");
                g class=(colour(Some(*index))) {
                    circle.node cx=(px(x)) cy=(px(y - 8.0)) r=(px(radius(members))) {
                        title { "Coalition " (letter(*index)) ", " (said) }
                    }
                    text.name x=(px(x)) y=(px(y + radius(members) + 10.0)) text-anchor="middle" {
                        (letter(*index)) ": " (said)
                    }
                }
            }
        },
    )
}

/// Members on a ring that is wide enough for their dots; a single one in the middle. Many members
/// without names fill a disc, as the seeds of a sunflower do.
fn clusters<'a>(story: &Story, coalitions: &[(usize, &'a [String])]) -> Vec<Cluster<'a>> {
    let pairs = story
        .silos
        .iter()
        .map(|silo| (silo.name.as_str(), silo.rows()));
    let samples: BTreeMap<&str, u64> = pairs.collect();
    let largest = samples.values().copied().max().unwrap_or(1).max(1) as f64;
    let named = story.silos.len() <= NAMED;
    let most = if named { 22.0 } else { 11.0 };
    let cluster = |(index, members): &(usize, &'a [String])| {
        let count = members.len() as f64;
        let disc = !named && members.len() > RING;
        let radius = match members.len() {
            1 => 0.0,
            _ if disc => 1.2 * most * count.sqrt(),
            _ => (count * (2.0 * most + 6.0) / TAU).max(52.0),
        };
        let node = |(place, name): (usize, &'a String)| {
            let samples = samples.get(name.as_str()).copied().unwrap_or(0);
            let place = place as f64 + 0.5;
            GraphNode {
                name,
                samples,
                radius: (most * (samples as f64 / largest).sqrt()).max(5.0),
                // Half a step off the top, so that the names of two members are not on one line.
                angle: if disc {
                    place * GOLDEN
                } else {
                    TAU * place / count - TAU / 4.0
                },
                out: if disc {
                    radius * (place / count).sqrt()
                } else {
                    radius
                },
            }
        };
        let members = members.iter().enumerate().map(node).collect();
        Cluster {
            index: *index,
            members,
            radius,
            disc,
            x: 0.0,
            y: 0.0,
        }
    };
    coalitions.iter().map(cluster).collect()
}

/// Puts the clusters in rows from left to right; returns the height.
fn place(clusters: &mut [Cluster<'_>], margin: f64) -> f64 {
    let size = |cluster: &Cluster<'_>| {
        let (wide, high) = (cluster.radius + margin + 22.0, cluster.radius + 44.0);
        (2.0 * wide, 2.0 * high)
    };
    let boxes: Vec<Pair> = clusters.iter().map(size).collect();
    let (middles, height) = shelves(&boxes, WIDTH);
    for (cluster, middle) in clusters.iter_mut().zip(middles) {
        (cluster.x, cluster.y) = middle;
    }
    height
}

fn spot(cluster: &Cluster<'_>, node: &GraphNode<'_>) -> (f64, f64) {
    let (sin, cos) = node.angle.sin_cos();
    (cluster.x + node.out * cos, cluster.y + node.out * sin)
}

/// Returns where a coalition's letter stands: in the middle of a ring, above anything else.
fn letter_above(cluster: &Cluster<'_>) -> f64 {
    match cluster.members.as_slice() {
        [one] => -one.radius - 8.0,
        [_, _] => -10.0,
        _ if cluster.disc => -cluster.radius - HULL - 8.0,
        _ => 7.0,
    }
}

/// A coalition is one group: its members share a model, all with all, so they stand on one disc and
/// no lines join them.
fn group(cluster: &Cluster<'_>) -> Markup {
    html! {
        @if cluster.members.len() > 1 {
            circle.disc cx=(px(cluster.x)) cy=(px(cluster.y)) r=(px(cluster.radius + HULL)) {}
        }
    }
}

fn dot(cluster: &Cluster<'_>, node: &GraphNode<'_>, named: bool) -> Markup {
    let (x, y) = spot(cluster, node);
    let rows = numbers::count(node.samples);
    // Names stand outside the ring: left of it, right of it, or below.
    let (cos, sin) = (node.angle.cos(), node.angle.sin());
    let alone = cluster.members.len() == 1;
    let away = node.radius + 6.0;
    let (anchor, tx, ty) = match () {
        () if alone || cos.abs() < 0.3 && sin > 0.0 => ("middle", x, y + away + 10.0),
        () if cos.abs() < 0.3 => ("middle", x, y - away - 2.0),
        () if cos > 0.0 => ("start", x + away, y + 4.0),
        () => ("end", x - away, y + 4.0),
    };
    html! {
        circle.node cx=(px(x)) cy=(px(y)) r=(px(node.radius)) {
            title { (node.name) ", " (rows) " rows, coalition " (letter(cluster.index)) }
        }
        @if named {
            text.name x=(px(tx)) y=(px(ty)) text-anchor=(anchor) { (numbers::short(node.name, 16)) }
        }
    }
}

/// The coalitions by round, as a picture and as a table with a row per silo and a column per round;
/// empty if coalitions never changed.
fn strip(story: &Story) -> Markup {
    let course = CoalitionCourse::of(story);
    if !course.changed() {
        return html! {};
    }
    let lettered = course.rounds.len() <= 40;
    if many::are_many(story) {
        return html! { h3 { "Round by round" } p { (course::said(&course)) } };
    }
    html! {
        h3 { "Round by round" }
        (course::picture(story, &course))
        details.fold {
            summary { "As a table" }
            div.scroll.tall tabindex="0" role="region" aria-label="Coalitions by round, as a table" {
                table.strip {
                    thead { tr {
                        th scope="col" { "Silo" }
                        @for (round, _) in &course.rounds {
                            th scope="col" { @if lettered || round % 10 == 0 { (round) } }
                        }
                    } }
                    tbody { @for (at, silo) in story.silos.iter().enumerate() { tr {
                        th scope="row" { (silo.name) }
                        @for (_, coalitions) in &course.rounds {
                            @let index = coalitions[at];
                            td class=(colour(index)) { @if let (true, Some(index)) = (lettered, index) { (letter(index)) } }
                        }
                    } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_silo_is_one_dot() {
        for (silos, coalitions) in [(1, 1), (2, 1), (8, 3), (17, 1), (100, 1), (100, 30)] {
            let story = fixture::story(silos, coalitions, 2);
            let page = section(&story).into_string();
            assert_eq!(page.matches("<circle class=\"node\"").count(), silos);
            assert!(!page.contains("NaN"), "{silos} silos in {coalitions}");
            // In the graph; the picture of the rounds names coalitions.
            let graph = page.split("<h3>").next().unwrap_or_default();
            assert_eq!(graph.contains("class=\"name\""), silos <= NAMED);
        }
    }

    #[test]
    fn without_coalitions_the_section_states_so() {
        let page = section(&fixture::story(5, 0, 3)).into_string();
        assert!(page.contains("No coalition was formed.") && !page.contains("<svg"));
    }

    #[test]
    fn a_coalition_is_one_disc_and_no_lines() {
        // In round 1 all are together, later in two coalitions.
        for (rounds, discs, said) in [
            (
                1,
                1,
                "All 16 silos are one coalition: they share one model.",
            ),
            (2, 2, "16 silos in 2 coalitions."),
        ] {
            let page = section(&fixture::story(16, 2, rounds)).into_string();
            assert_eq!(page.matches("class=\"disc\"").count(), discs);
            assert!(
                !page.contains("class=\"edge") && page.contains(said),
                "{page}"
            );
        }
        let page = section(&fixture::story(3, 3, 2)).into_string();
        assert!(!page.contains("class=\"disc\""), "{page}");
        assert!(
            page.contains("3 silos in 3 coalitions; 3 of them alone."),
            "{page}"
        );
    }

    #[test]
    fn the_table_of_rounds_is_shown_only_if_coalitions_changed() {
        assert!(
            section(&fixture::story(4, 2, 3))
                .into_string()
                .contains("Round by round")
        );
        assert!(
            !section(&fixture::story(4, 2, 1))
                .into_string()
                .contains("Round by round")
        );
    }
}
