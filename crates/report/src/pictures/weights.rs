//! The weights λ of members by round, in strategies that learn them (AFL, DRFA, TFL).

use maud::{Markup, html};
use serde_json::Value;

use super::regions::Regions;
use super::{kept, of_members};
use crate::curves::{BOTTOM, HEIGHT, LEFT, WIDTH, axes};
use crate::story::Story;
use crate::svg::{AxisScale, described, px, spaced};
use crate::{download, numbers};

/// The most members whose lines are all named; of more, the heaviest.
const ALIKE: usize = 12;
/// The members that are named of more.
const HEAVIEST: usize = 8;
/// Room for names at the right.
const NAMES: f64 = 130.0;

/// The weights of all members after a round.
type WeightsAfter = (u64, Vec<f64>);

/// The section; empty where no weights are learned.
pub(super) fn section(story: &Story) -> Markup {
    let members = story.silos.len();
    let weights = |end: &str| -> Vec<WeightsAfter> {
        let rounds = story.rounds.iter();
        let each = rounds.filter_map(|round| {
            let value = kept(&round.memory, end)?;
            Some((round.round, of_members(value, members)?))
        });
        each.collect()
    };
    let lambda = weights(".lambda");
    if lambda.len() < 2 {
        return html! {};
    }
    let prior = weights(".prior");
    let regions = Regions::of(story);
    html! {
        section {
            h2 { "Weights of members" }
            p { (said(story, &lambda)) }
            p.note {
                "λ is the share that a member has in the loss that the federation lowers, or in the draw of those who "
                "train. The dashed line is an equal share for all. "
                @if !prior.is_empty() { "The prior is what the topology gives; λ is drawn towards it. " }
                @if members > ALIKE { "Named and coloured are the " (HEAVIEST) " that are heaviest at the end; point at a line for its name. " }
                @if !regions.is_empty() { "Colours are the regions of the silos." }
            }
            div.pair {
                (chart(story, &regions, "λ", "lambda", &lambda, &lambda))
                @if prior.len() > 1 { (chart(story, &regions, "Prior", "prior", &prior, &lambda)) }
            }
        }
    }
}

/// Returns how even the last weights are.
fn said(story: &Story, lambda: &[WeightsAfter]) -> String {
    let Some((round, last)) = lambda.last() else {
        return String::new();
    };
    let squares: f64 = last.iter().map(|share| share * share).sum();
    let mut text = format!(
        "After round {round} the weights are as uneven as if {:.1} of {} members shared all equally (1/Σλ²).",
        1.0 / squares,
        last.len()
    );
    let silent = last.iter().filter(|share| **share <= 0.0).count();
    if silent > 0 {
        text.push_str(&format!(
            " {} no weight.",
            match silent {
                1 => "One member has".to_owned(),
                more => format!("{more} members have"),
            }
        ));
    }
    let memory = story.rounds.last().map(|round| &round.memory);
    let apart = memory
        .and_then(|memory| kept(memory, ".tv"))
        .and_then(Value::as_f64);
    if let Some(apart) = apart {
        text.push_str(&format!(
            " The topology has moved {:.2} % of the weight: that is how far λ is from what it would be under a \
             uniform prior (total variation).",
            100.0 * apart
        ));
    }
    text
}

fn chart(
    story: &Story,
    regions: &Regions<'_>,
    title: &str,
    name: &str,
    values: &[WeightsAfter],
    heavy_by: &[WeightsAfter],
) -> Markup {
    let members = story.silos.len();
    let equal = 1.0 / members.max(1) as f64;
    let most = values.iter().flat_map(|(_, shares)| shares);
    let most = most.copied().fold(2.0 * equal, f64::max).min(1.0);
    let (first, last) = (values[0].0 as f64, values[values.len() - 1].0 as f64);
    let right = WIDTH - NAMES;
    let x = AxisScale::new((first, last), (LEFT, right));
    let y = AxisScale::new((0.0, 1.04 * most), (HEIGHT - BOTTOM, 14.0));
    let named = named(heavy_by);
    let path = |member: usize| {
        let mut path = String::new();
        for (round, shares) in values {
            let pen = if path.is_empty() { 'M' } else { 'L' };
            path.push_str(&format!(
                "{pen}{} {}",
                x.at(*round as f64),
                y.at(shares[member])
            ));
        }
        path
    };
    let line = |member: usize, faint: bool| {
        let silo = &story.silos[member];
        let end = values[values.len() - 1].1[member];
        html! {
            g class={ "curve " (regions.class(silo)) @if faint { " faint" } } {
                title { (regions.name(silo)) ": " (numbers::value(end, 4)) " at the end" }
                path.hit d=(path(member)) {}
                path d=(path(member)) {}
            }
        }
    };
    let said =
        format!("Shares of {members} members from round {first} to round {last}, up to {most:.3}.");
    html! {
        figure {
            figcaption { (title) " by round" }
            (described(title, &said, (WIDTH, HEIGHT), html! {
                (axes(x, y, right))
                @for member in (0..members).filter(|member| !named.contains(member)) { (line(member, true)) }
                line.together x1=(LEFT) x2=(px(right)) y1=(y.at(equal)) y2=(y.at(equal)) {}
                @for &member in &named { (line(member, false)) }
                (labels(story, regions, &named, &values[values.len() - 1].1, y, right))
            }))
            (download::plot(&format!("{}-{name}-by-round", story.scenario), &csv(story, name, values)))
        }
    }
}

/// The members that are named: all, or the heaviest at the end.
fn named(values: &[WeightsAfter]) -> Vec<usize> {
    let Some((_, last)) = values.last() else {
        return Vec::new();
    };
    let mut order: Vec<usize> = (0..last.len()).collect();
    if order.len() > ALIKE {
        order.sort_by(|&a, &b| last[b].total_cmp(&last[a]));
        order.truncate(HEAVIEST);
    }
    order
}

/// The names at the ends of their lines, in the order of their shares, apart.
fn labels(
    story: &Story,
    regions: &Regions<'_>,
    named: &[usize],
    last: &[f64],
    y: AxisScale,
    right: f64,
) -> Markup {
    let mut order = named.to_vec();
    order.sort_by(|&a, &b| last[b].total_cmp(&last[a]));
    let mut heights: Vec<f64> = order.iter().map(|&member| y.at(last[member])).collect();
    let ends = heights.clone();
    spaced(&mut heights, 14.0, HEIGHT - BOTTOM);
    html! {
        @for ((&member, from), to) in order.iter().zip(ends).zip(heights) {
            @let silo = &story.silos[member];
            g class=(regions.class(silo)) {
                path.leader d=(format!("M{} {}L{} {}", px(right + 4.0), px(from), px(right + 14.0), px(to))) {}
                text.name x=(px(right + 17.0)) y=(px(to + 4.0)) { (numbers::short(&silo.name, 15)) }
            }
        }
    }
}

fn csv(story: &Story, name: &str, values: &[WeightsAfter]) -> String {
    let rows = values.iter().flat_map(|(round, shares)| {
        let row = move |(silo, share): (&crate::story::SiloStory, &f64)| {
            [silo.name.clone(), round.to_string(), share.to_string()]
        };
        story.silos.iter().zip(shares).map(row)
    });
    download::csv(&["silo", "round", name], rows)
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_inside;
    use super::*;
    use crate::fixture;
    use serde_json::json;

    fn story(silos: usize, rounds: u64) -> Story {
        let mut story = fixture::story(silos, 1, rounds);
        for round in &mut story.summary.rounds {
            // The last member gains weight from round to round.
            let own = (1.0 + round.round as f64) / (silos as f64 + round.round as f64);
            let rest = (1.0 - own) / (silos - 1) as f64;
            let mut lambda = vec![rest; silos];
            lambda[silos - 1] = own;
            round.memory.insert("tfl.lambda".into(), json!(lambda));
            round.memory.insert("tfl.tv".into(), json!(0.0123));
            let prior = vec![1.0 / silos as f64; silos];
            round.memory.insert("tfl.prior".into(), json!(prior));
        }
        story
    }

    #[test]
    fn weights_are_lines_and_the_heaviest_are_named() {
        for (silos, named) in [(6, 6), (20, 8), (139, 8)] {
            let page = section(&story(silos, 10)).into_string();
            assert_inside(&page);
            assert_eq!(page.matches("<svg role").count(), 2);
            assert_eq!(page.matches("class=\"name\"").count(), 2 * named);
            assert_eq!(page.matches("<g class=\"curve").count(), 2 * silos);
            assert!(page.contains("The topology has moved 1.23 % of the weight"));
        }
    }

    #[test]
    fn the_sentence_counts_members_without_weight() {
        let mut story = story(4, 3);
        let lambda = json!([0.5, 0.5, 0.0, 0.0]);
        story.summary.rounds[2]
            .memory
            .insert("tfl.lambda".into(), lambda);
        let page = section(&story).into_string();
        assert!(
            page.contains(
                "as if 2.0 of 4 members shared all equally (1/Σλ²). 2 members have no weight."
            ),
            "{page}"
        );
    }

    #[test]
    fn weights_of_one_round_are_no_learning_curve() {
        assert_eq!(section(&story(4, 1)).into_string(), "");
        assert_eq!(section(&fixture::story(4, 1, 5)).into_string(), "");
    }
}
