//! Topologies: the graph of members that a strategy learned.

use std::f64::consts::TAU;

use lab::compare::{ComparisonRow, VariantTable};
use maud::{Markup, html};

use super::super::numbers;
use super::super::svg::{drawing, px};

/// Radius of the circle of members.
const RADIUS: f64 = 100.0;
/// Side of the drawing.
const SIDE: f64 = 420.0;
/// Most members whose names are written.
const NAMED: usize = 32;

/// Least members of a group that is drawn as one, if all of them are joined to all.
const GROUP: usize = 4;

/// The graphs of a variant's first seed; nothing where no strategy learns one.
pub(super) fn section(variant: &VariantTable) -> Markup {
    let rows: Vec<(&ComparisonRow, &Vec<[u32; 2]>)> = variant
        .strategies
        .iter()
        .filter_map(|row| Some((row, row.graph.as_ref()?)))
        .collect();
    let members = &variant.members;
    html! {
        @if !rows.is_empty() {
            h3 { "Learned topologies" }
            p.note {
                "Of the first seed, after the chosen round: members whose models are similar are joined. "
                "Members that are all joined to each other, and to no other, share a coloured ground in place of lines."
            }
            div.pair {
                @for (row, edges) in rows {
                    @let groups = groups(members.len(), edges);
                    figure {
                        figcaption { (row.label) ", " (numbers::plural(edges.len(), "edge")) }
                        @if groups.len() == 1 && groups[0].complete {
                            p { "All " (numbers::plural(members.len(), "member")) " are joined to each other: one group." }
                        } @else { (circle(&row.label, members, edges, &groups)) }
                    }
                }
            }
        }
    }
}

/// Members that are joined, directly or through others.
#[derive(Debug, PartialEq)]
struct JoinedMembers {
    members: Vec<usize>,
    /// True if they are many and each is joined to each.
    complete: bool,
}

/// The groups of a graph, the largest first.
fn groups(count: usize, edges: &[[u32; 2]]) -> Vec<JoinedMembers> {
    // The first member of every member's group.
    let mut first: Vec<usize> = (0..count).collect();
    for _ in 0..count {
        let mut changed = false;
        for [a, b] in edges.iter().map(|edge| edge.map(|end| end as usize)) {
            let least = first[a].min(first[b]);
            changed |= first[a] != least || first[b] != least;
            (first[a], first[b]) = (least, least);
        }
        if !changed {
            break;
        }
    }
    let group = |head: usize| {
        let members: Vec<usize> = (0..count).filter(|&at| first[at] == head).collect();
        let within = edges.iter().filter(|edge| first[edge[0] as usize] == head);
        let all = members.len() * members.len().saturating_sub(1) / 2;
        let complete = members.len() >= GROUP && within.count() == all;
        JoinedMembers { members, complete }
    };
    let heads = (0..count).filter(|&at| first[at] == at);
    let mut groups: Vec<JoinedMembers> = heads.map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.members.len()));
    groups
}

/// The members on a circle, group by group.
fn circle(label: &str, members: &[String], edges: &[[u32; 2]], groups: &[JoinedMembers]) -> Markup {
    let order: Vec<usize> = groups
        .iter()
        .flat_map(|group| group.members.clone())
        .collect();
    let mut turn = vec![0; members.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(nth, &at)| turn[at] = nth);
    let place = |at: usize, radius: f64| {
        let at = turn[at];
        let angle = TAU * at as f64 / members.len().max(1) as f64 - TAU / 4.0;
        (
            px(SIDE / 2.0 + radius * angle.cos()),
            px(SIDE / 2.0 + radius * angle.sin()),
        )
    };
    let degree = |at: usize| {
        edges
            .iter()
            .flatten()
            .filter(|&&end| end as usize == at)
            .count()
    };
    let together = |at: usize| {
        let mut complete = groups.iter().filter(|group| group.complete);
        complete.any(|group| group.members.contains(&at))
    };
    drawing(
        label,
        SIDE,
        SIDE,
        html! {
            @for group in groups.iter().filter(|group| group.complete) {
                @let corners: Vec<String> = group.members.iter().map(|&at| {
                    let (x, y) = place(at, RADIUS);
                    format!("{x},{y}")
                }).collect();
                polygon.disc.k0 points=(corners.join(" ")) {
                    title { (numbers::plural(group.members.len(), "member")) ", each joined to each" }
                }
            }
            @for [a, b] in edges.iter().filter(|edge| !together(edge[0] as usize)) {
                @let (from, to) = (place(*a as usize, RADIUS), place(*b as usize, RADIUS));
                line.edge.k0 x1=(from.0) y1=(from.1) x2=(to.0) y2=(to.1) {}
            }
            @for (at, name) in members.iter().enumerate() {
                @let (x, y) = place(at, RADIUS);
                circle.node.k0 cx=(x) cy=(y) r="6" {
                    title { (numbers::plain(name)) ": " (numbers::plural(degree(at), "neighbour")) }
                }
                @if members.len() <= NAMED {
                    @let (x, y) = place(at, RADIUS + 14.0);
                    @let anchor = if (x - SIDE / 2.0).abs() < 20.0 { "middle" } else if x < SIDE / 2.0 { "end" } else { "start" };
                    text.tick x=(x) y=(px(y + 4.0)) text-anchor=(anchor) { (numbers::short(name, 12)) }
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_to_all(members: std::ops::Range<u32>) -> Vec<[u32; 2]> {
        let first = members.start;
        members
            .flat_map(|b| (first..b).map(move |a| [a, b]))
            .collect()
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("m{at}")).collect()
    }

    #[test]
    fn members_joined_all_to_all_are_one_group() {
        let edges = all_to_all(0..16);
        assert_eq!(edges.len(), 120);
        let found = groups(16, &edges);
        let members = (0..16).collect();
        assert_eq!(
            found,
            [JoinedMembers {
                members,
                complete: true
            }]
        );
        // One edge less, and it is a graph.
        assert!(!groups(16, &edges[1..])[0].complete);
    }

    #[test]
    fn a_group_is_a_ground_and_only_other_edges_are_lines() {
        let mut edges = all_to_all(0..5);
        edges.extend([[5, 6], [6, 7]]);
        let found = groups(9, &edges);
        let sizes: Vec<usize> = found.iter().map(|group| group.members.len()).collect();
        assert_eq!(sizes, [5, 3, 1]);
        let drawn = circle("x", &names(9), &edges, &found).into_string();
        assert_eq!(drawn.matches("<line").count(), 2, "{drawn}");
        assert_eq!(drawn.matches("<polygon").count(), 1);
        assert!(drawn.contains("5 members, each joined to each"));
        assert_eq!(drawn.matches("<circle").count(), 9);
    }

    #[test]
    fn the_places_of_a_group_are_side_by_side() {
        // Two groups whose members alternate.
        let even = all_to_all(0..4)
            .into_iter()
            .map(|edge| edge.map(|end| 2 * end));
        let odd = all_to_all(0..4)
            .into_iter()
            .map(|edge| edge.map(|end| 2 * end + 1));
        let edges: Vec<_> = even.chain(odd).collect();
        let found = groups(8, &edges);
        let drawn = circle("x", &names(8), &edges, &found).into_string();
        // The first four of eight places are right of the middle.
        let points = drawn.split("points=\"").nth(1).unwrap_or_default();
        let points = points.split('"').next().unwrap_or_default();
        let right = |corner: &str| {
            let x = corner.split(',').next().and_then(|x| x.parse::<f64>().ok());
            x.is_some_and(|x| x >= SIDE / 2.0)
        };
        assert!(
            points.split(' ').all(right) && points.split(' ').count() == 4,
            "{points}"
        );
    }
}
