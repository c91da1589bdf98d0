//! Coalitions over time, round by round: a line for every silo, which runs through the coalitions that it was
//! in.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::NAMED;
use crate::story::Story;
use crate::svg::{AxisScale, colour, described, px};
use crate::{download, letter, numbers};

const WIDTH: f64 = 1000.0;
/// Room for names of silos, and of coalitions, at the right.
const NAMES: f64 = 140.0;
const LEFT: f64 = 26.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 36.0;
/// The most rounds that are all drawn; of more, those in which something changed, and the ends.
const ROUNDS: usize = 60;

/// The coalitions of all rounds, numbered so that a coalition keeps its number while most of its
/// silos stay together. The last round has the numbers that it has in other pictures.
pub(crate) struct CoalitionCourse {
    /// By round: the number, and the coalition of every silo in roster order.
    pub(crate) rounds: Vec<(u64, Vec<Option<usize>>)>,
}

impl CoalitionCourse {
    pub(crate) fn of(story: &Story) -> Self {
        let mut rounds: Vec<(u64, Vec<Option<usize>>)> = Vec::new();
        let raw = |coalitions: &[Vec<String>]| {
            let pairs = coalitions.iter().enumerate();
            let pairs =
                pairs.flat_map(|(at, members)| members.iter().map(move |name| (name.as_str(), at)));
            let of: BTreeMap<&str, usize> = pairs.collect();
            let silos = story.silos.iter();
            silos
                .map(|silo| of.get(silo.name.as_str()).copied())
                .collect::<Vec<_>>()
        };
        for round in story.rounds.iter().rev() {
            let own = raw(&round.coalitions);
            let own = match rounds.last() {
                None => own,
                Some((_, next)) => renumbered(&own, next),
            };
            rounds.push((round.round, own));
        }
        rounds.reverse();
        Self { rounds }
    }

    /// Returns whether the grouping ever changed.
    pub(crate) fn changed(&self) -> bool {
        self.rounds.windows(2).any(|pair| pair[0].1 != pair[1].1)
    }

    /// The rounds that are drawn.
    fn shown(&self) -> Vec<usize> {
        let all = 0..self.rounds.len();
        if all.len() <= ROUNDS {
            return all.collect();
        }
        let differs = |a: usize, b: usize| self.rounds[a].1 != self.rounds[b].1;
        let last = all.len() - 1;
        let shown =
            |&at: &usize| at == 0 || at == last || differs(at, at - 1) || differs(at, at + 1);
        all.filter(shown).collect()
    }
}

/// The coalitions of a round with the numbers of the next round: each takes the number of the one that
/// most of its silos go to, the largest move first; one that is left without gets a number of its own.
fn renumbered(own: &[Option<usize>], next: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut moves = BTreeMap::<(usize, usize), usize>::new();
    for pair in own.iter().zip(next) {
        if let (Some(from), Some(to)) = pair {
            *moves.entry((*from, *to)).or_default() += 1;
        }
    }
    let mut moves: Vec<_> = moves.into_iter().collect();
    moves.sort_by_key(|&(pair, silos)| (std::cmp::Reverse(silos), pair));
    let (mut numbers, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for ((from, to), _) in moves {
        if !numbers.contains_key(&from) && taken.insert(to) {
            numbers.insert(from, to);
        }
    }
    let others: BTreeSet<usize> = own.iter().flatten().copied().collect();
    // Numbers of coalitions that go on stay theirs, so that no other seems to have been them before.
    taken.extend(next.iter().flatten());
    for from in others {
        if let std::collections::btree_map::Entry::Vacant(vacant) = numbers.entry(from) {
            let free = (0..).find(|number| !taken.contains(number)).unwrap_or(0);
            taken.insert(free);
            vacant.insert(free);
        }
    }
    own.iter()
        .map(|own| own.and_then(|own| numbers.get(&own).copied()))
        .collect()
}

/// A coalition in a round.
#[derive(Debug)]
struct CourseBlock {
    coalition: usize,
    /// Positions of its silos, from top to bottom.
    silos: Vec<usize>,
    top: f64,
}

/// Heights of a drawing.
struct CourseLayout {
    row: f64,
    /// By drawn round.
    columns: Vec<Vec<CourseBlock>>,
    height: f64,
}

impl CourseLayout {
    fn of(course: &CoalitionCourse, shown: &[usize]) -> Self {
        let silos = course.rounds.first().map_or(0, |(_, all)| all.len());
        let row = match silos {
            0..=12 => 20.0,
            13..=NAMED => 16.0,
            33..=80 => 9.0,
            _ => 6.5,
        };
        let gap = 14.0;
        // From the last round back: a silo stands as near as it can to where it goes.
        let mut next: Vec<f64> = (0..silos).map(|at| at as f64).collect();
        let mut columns = Vec::with_capacity(shown.len());
        for (nth, &at) in shown.iter().rev().enumerate() {
            let mut members = BTreeMap::<usize, Vec<usize>>::new();
            for (silo, coalition) in course.rounds[at].1.iter().enumerate() {
                if let Some(coalition) = coalition {
                    members.entry(*coalition).or_default().push(silo);
                }
            }
            let mean = |silos: &[usize]| {
                silos.iter().map(|&silo| next[silo]).sum::<f64>() / silos.len() as f64
            };
            let mut order: Vec<(usize, Vec<usize>)> = members.into_iter().collect();
            // The last round is in the order of the letters.
            if nth > 0 {
                order.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
            }
            let mut top = 0.0;
            let mut column = Vec::new();
            for (coalition, mut silos) in order {
                silos.sort_by(|&a, &b| next[a].total_cmp(&next[b]));
                let high = row * silos.len() as f64;
                column.push(CourseBlock {
                    coalition,
                    silos,
                    top,
                });
                top += high + gap;
            }
            let mut place = 0.0;
            for block in &column {
                for &silo in &block.silos {
                    next[silo] = place;
                    place += 1.0;
                }
            }
            columns.push((column, top - gap));
        }
        columns.reverse();
        let tallest = columns.iter().map(|(_, high)| *high).fold(0.0, f64::max);
        // Each column stands in the middle of the height.
        for (column, high) in &mut columns {
            let down = TOP + (tallest - *high) / 2.0;
            column.iter_mut().for_each(|block| block.top += down);
        }
        Self {
            row,
            columns: columns.into_iter().map(|(column, _)| column).collect(),
            height: TOP + tallest + BOTTOM,
        }
    }

    /// The height of a silo's line in a drawn round.
    fn at(&self, column: usize, silo: usize) -> Option<f64> {
        self.columns[column].iter().find_map(|block| {
            let place = block.silos.iter().position(|one| *one == silo)?;
            Some(px(block.top + self.row * (place as f64 + 0.5)))
        })
    }
}

/// The picture, with what it shows; empty if coalitions never changed.
pub(crate) fn picture(story: &Story, course: &CoalitionCourse) -> Markup {
    if !course.changed() {
        return html! {};
    }
    let shown = course.shown();
    let layout = CourseLayout::of(course, &shown);
    let number = |nth: usize| course.rounds[shown[nth]].0;
    let last = shown.len() - 1;
    let right = WIDTH - NAMES;
    let x = AxisScale::new((number(0) as f64, number(last) as f64), (LEFT, right));
    let ticks: Vec<f64> = x
        .ticks(16)
        .into_iter()
        .filter(|tick| tick.fract() == 0.0)
        .collect();
    let floor = layout.height - BOTTOM + 4.0;
    let places: Vec<f64> = (0..shown.len())
        .map(|nth| x.at(number(nth) as f64))
        .collect();
    let closest = places
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(f64::INFINITY, f64::min);
    let bar = (0.3 * closest).clamp(3.0, 14.0);
    let said = said(course);
    html! {
        p { (said) }
        figure {
            (described("Coalitions by round", &said, (WIDTH, layout.height), html! {
                @for tick in ticks {
                    line.grid x1=(x.at(tick)) x2=(x.at(tick)) y1=(px(TOP)) y2=(px(floor + 4.0)) {}
                    text.tick x=(x.at(tick)) y=(px(floor + 17.0)) text-anchor="middle" { (tick) }
                }
                text.tick x=(px((LEFT + right) / 2.0)) y=(px(layout.height - 3.0)) text-anchor="middle" { "round" }
                @for (silo, info) in story.silos.iter().enumerate() {
                    @let end = course.rounds[shown[last]].1[silo];
                    g class={ "curve " (colour(end)) } {
                        title { (info.name) }
                        @let path = line(&layout, &places, silo);
                        path.hit d=(path) {}
                        path d=(path) {}
                    }
                }
                @for (nth, column) in layout.columns.iter().enumerate() {
                    @for block in column {
                        (drawn_block(block, &layout, (places[nth], bar, closest), number(nth)))
                    }
                }
                (ends(story, &layout, right + bar / 2.0))
            }))
            (download::plot(&format!("{}-course", story.scenario), &csv(story, course)))
        }
    }
}

fn csv(story: &Story, course: &CoalitionCourse) -> String {
    let rows = course.rounds.iter().flat_map(|(round, of)| {
        let own = story.silos.iter().zip(of);
        own.map(move |(silo, coalition)| {
            let coalition = coalition.map(letter).unwrap_or_default();
            [silo.name.clone(), round.to_string(), coalition]
        })
    });
    download::csv(&["silo", "round", "coalition"], rows)
}

/// Returns how often and when groupings changed, in one sentence.
pub(crate) fn said(course: &CoalitionCourse) -> String {
    let changes: Vec<u64> = course
        .rounds
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| pair[1].0)
        .collect();
    let last = changes.last().copied().unwrap_or_default();
    let moved = |silo: &usize| {
        let all = course.rounds.iter().map(|(_, of)| of[*silo]);
        all.collect::<BTreeSet<_>>().len() > 1
    };
    let silos = course.rounds.first().map_or(0, |(_, all)| all.len());
    let moved = (0..silos).filter(moved).count();
    format!(
        "The coalitions changed in {}, the last time in round {last}; {moved} of {} were not always in the same one.",
        numbers::plural(changes.len(), "round"),
        numbers::plural(silos, "silo"),
    )
}

/// A silo's line: level at every coalition, curved between them.
fn line(layout: &CourseLayout, places: &[f64], silo: usize) -> String {
    let mut path = String::new();
    let mut before: Option<(f64, f64)> = None;
    for (nth, &x) in places.iter().enumerate() {
        let Some(y) = layout.at(nth, silo) else {
            before = None;
            continue;
        };
        match before {
            None => path.push_str(&format!("M{x} {y}")),
            Some((_, level)) if level == y => path.push_str(&format!("H{x}")),
            Some((from, level)) => {
                let middle = px((from + x) / 2.0);
                path.push_str(&format!("C{middle} {level} {middle} {y} {x} {y}"));
            }
        }
        before = Some((x, y));
    }
    path
}

fn drawn_block(
    block: &CourseBlock,
    layout: &CourseLayout,
    (x, bar, closest): (f64, f64, f64),
    round: u64,
) -> Markup {
    let high = layout.row * block.silos.len() as f64;
    let name = letter(block.coalition);
    // A letter that has no room would be on its neighbours.
    let lettered = closest >= 16.0 && bar >= 8.0 && high >= 13.0 && name.len() == 1;
    html! {
        g class=(colour(Some(block.coalition))) {
            title { "Round " (round) ", coalition " (name) ": " (numbers::plural(block.silos.len(), "silo")) }
            rect.block x=(px(x - bar / 2.0)) y=(px(block.top + 1.0)) width=(px(bar)) height=(px(high - 2.0)) rx="3" {}
            @if lettered {
                text.count x=(px(x)) y=(px(block.top + high / 2.0 + 4.0)) text-anchor="middle" { (name) }
            }
        }
    }
}

/// The names at the right: of the silos, or of the coalitions with how many they are.
fn ends(story: &Story, layout: &CourseLayout, right: f64) -> Markup {
    let named = story.silos.len() <= NAMED;
    let Some(column) = layout.columns.last() else {
        return html! {};
    };
    let mut middles: Vec<f64> = column
        .iter()
        .map(|block| block.top + layout.row * block.silos.len() as f64 / 2.0)
        .collect();
    crate::svg::spaced(&mut middles, 14.0, layout.height - BOTTOM);
    html! {
        @for (block, middle) in column.iter().zip(middles) {
            g class=(colour(Some(block.coalition))) {
                @if named {
                    @for (nth, &silo) in block.silos.iter().enumerate() {
                        @let y = block.top + layout.row * (nth as f64 + 0.5);
                        text.name x=(px(right + 6.0)) y=(px(y + 4.0)) { (numbers::short(&story.silos[silo].name, 18)) }
                    }
                } @else {
                    text.name x=(px(right + 6.0)) y=(px(middle + 4.0)) {
                        (letter(block.coalition)) ": " (numbers::plural(block.silos.len(), "silo"))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_inside, numbers_of};
    use super::*;
    use crate::fixture;

    fn some(all: &[usize]) -> Vec<Option<usize>> {
        all.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_coalition_keeps_its_number_while_most_of_its_silos_stay() {
        // The numbers are swapped, and one silo moves.
        let next = some(&[0, 0, 0, 1, 1]);
        assert_eq!(
            renumbered(&some(&[1, 1, 0, 0, 0]), &next),
            some(&[0, 0, 1, 1, 1])
        );
        // One that splits keeps its number where most of it goes; the other is new.
        assert_eq!(
            renumbered(&some(&[0, 0, 0, 0, 0]), &next),
            some(&[0, 0, 0, 0, 0])
        );
        assert_eq!(
            renumbered(&some(&[2, 2, 5, 1, 1]), &next),
            some(&[0, 0, 2, 1, 1])
        );
        assert_eq!(
            renumbered(&[None, Some(3)], &[Some(0), None]),
            [None, Some(1)]
        );
    }

    #[test]
    fn every_silo_is_a_line_and_every_coalition_of_a_round_a_block() {
        for (silos, coalitions, rounds) in [(6, 2, 4), (20, 3, 12), (139, 5, 100), (32, 32, 3)] {
            let story = fixture::story(silos, coalitions, rounds);
            let course = CoalitionCourse::of(&story);
            let page = picture(&story, &course).into_string();
            assert_inside(&page);
            assert_eq!(page.matches("<g class=\"curve").count(), silos);
            // One coalition in the first round; of many rounds only those around the change are drawn.
            let drawn = if rounds > ROUNDS as u64 { 3 } else { rounds };
            let blocks = 1 + (drawn as usize - 1) * coalitions;
            assert_eq!(page.matches("<rect class=\"block\"").count(), blocks);
            assert!(
                page.contains("The coalitions changed in 1 round, the last time in round 2;"),
                "{page}"
            );
        }
    }

    #[test]
    fn names_are_apart_at_the_right() {
        for (silos, coalitions) in [(6, 2), (20, 20), (32, 4), (139, 40)] {
            let story = fixture::story(silos, coalitions, 5);
            let page = picture(&story, &CoalitionCourse::of(&story)).into_string();
            let names = page.split("<text class=\"name\"").skip(1);
            let mut heights: Vec<f64> = names.map(|text| numbers_of(text, "y")[0]).collect();
            heights.sort_by(f64::total_cmp);
            assert_eq!(
                heights.len(),
                if silos <= NAMED { silos } else { coalitions }
            );
            let least = heights
                .windows(2)
                .map(|pair| pair[1] - pair[0])
                .fold(99.0, f64::min);
            assert!(least >= 13.9, "{silos}: {least}");
        }
    }

    #[test]
    fn coalitions_that_never_change_have_no_picture() {
        let story = fixture::story(6, 2, 1);
        let course = CoalitionCourse::of(&story);
        assert!(!course.changed());
        assert_eq!(picture(&story, &course).into_string(), "");
    }

    #[test]
    fn a_round_without_a_silo_breaks_its_line() {
        let mut story = fixture::story(6, 2, 4);
        story.summary.rounds[2].coalitions[0].remove(0);
        let page = picture(&story, &CoalitionCourse::of(&story)).into_string();
        let first = page.split("<g class=\"curve").nth(1).unwrap_or_default();
        let path = first.split(" d=\"").nth(1).unwrap_or_default();
        let path = path.split('"').next().unwrap_or_default();
        assert_eq!(path.matches('M').count(), 2, "{path}");
    }
}
