//! Topologies: the graph of members that a strategy learned.

use std::f64::consts::TAU;

use maud::{Markup, html};
use simulations::compare::{Row, VariantTable};

use super::super::numbers;
use super::super::svg::{drawing, px};

/// Radius of the circle of members.
const RADIUS: f64 = 100.0;
/// Side of the drawing.
const SIDE: f64 = 420.0;
/// Most members whose names are written.
const NAMED: usize = 32;

/// The graphs of a variant's first seed; nothing where no strategy learns one.
pub(super) fn section(variant: &VariantTable) -> Markup {
    let rows: Vec<(&Row, &Vec<[u32; 2]>)> = variant
        .strategies
        .iter()
        .filter_map(|row| Some((row, row.graph.as_ref()?)))
        .collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Learned topologies" }
            p.note { "Of the first seed, after the chosen round: members whose models are similar are joined." }
            div.pair {
                @for (row, edges) in rows {
                    figure {
                        figcaption { (row.label) ", " (numbers::plural(edges.len(), "edge")) }
                        (circle(&row.label, &variant.members, edges))
                    }
                }
            }
        }
    }
}

fn circle(label: &str, members: &[String], edges: &[[u32; 2]]) -> Markup {
    let place = |at: usize, radius: f64| {
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
    drawing(
        label,
        SIDE,
        SIDE,
        html! {
            @for [a, b] in edges {
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
