//! The merges of HCCT (Sun, Kountouris & Zhang 2024): the total utility for every number of groups, as in
//! the paper's Figure 5, above the tree of the merges that lead there.

use std::collections::BTreeMap;

use lab::summary::LastMerges;
use maud::{Markup, html};

use super::NAMED;
use super::course::CoalitionCourse;
use crate::story::Story;
use crate::svg::{AxisScale, colour, described, px, range, tick_text};
use crate::{download, letter, numbers};

const WIDTH: f64 = 1000.0;
/// The end of the step at which one group is left.
const RIGHT: f64 = 970.0;
/// The height of the utility above the tree.
const UTILITY: f64 = 220.0;
const TOP: f64 = 34.0;
/// Between utility and tree: the numbers of groups.
const BETWEEN: f64 = 50.0;

/// The section; empty where groups were not formed by merges.
pub(super) fn section(story: &Story) -> Markup {
    let Some(tree) = story
        .merges
        .as_ref()
        .and_then(|merges| GroupTree::of(story, merges))
    else {
        return html! {};
    };
    html! {
        section {
            h2 { "Merges into groups" }
            p { (tree.said()) }
            p.note {
                "Of round " (tree.merges.round) ", the last " (if tree.merges.taken.is_some() { "whose groups the silos took" } else { "that merged" })
                ". From left to right, the two groups whose merge adds most to the total utility are merged, from every "
                "silo alone to one group. Above: the utility that all groups have together. Below: which groups are "
                "merged. Dashed are the merges beyond the vertical line. Colours are the coalitions of the silos after "
                "round " (tree.merges.taken.map_or(tree.merges.round, |taken| taken.round)) "; what joins several of them is grey."
            }
            figure {
                (tree.drawing(story))
                (download::plot(&format!("{}-merges", story.scenario), &tree.csv()))
            }
        }
    }
}

/// A group on its way to the next merge.
#[derive(Debug, Clone, Copy)]
struct Branch {
    /// The step at which it came to be; 0 for a silo alone.
    step: usize,
    /// Its row, between those of its silos.
    row: f64,
    /// The coalition that all its silos are in, if it is one.
    group: Option<usize>,
}

/// A merge with the branches that it joins.
#[derive(Debug)]
struct TreeMerge {
    branches: [Branch; 2],
    group: Option<usize>,
}

/// The merges as a tree.
struct GroupTree<'a> {
    merges: &'a LastMerges,
    /// Total utility after every number of merges.
    utility: Vec<f64>,
    /// Merges up to the groups that were taken; where none were, up to the most utility.
    made: usize,
    /// Positions of silos in the order of the rows.
    rows: Vec<usize>,
    /// The coalition of every silo, by position.
    groups: Vec<Option<usize>>,
    tree: Vec<TreeMerge>,
}

/// The number of merges after which the utility is largest, the least of several.
fn best(utility: &[f64]) -> usize {
    let larger = |best, step| {
        if utility[step] > utility[best] {
            step
        } else {
            best
        }
    };
    (0..utility.len()).fold(0, larger)
}

impl<'a> GroupTree<'a> {
    /// `None` where the merges do not lead from every silo alone to one group.
    fn of(story: &Story, merges: &'a LastMerges) -> Option<Self> {
        let n = merges.silos.len();
        let at: BTreeMap<&str, usize> = merges
            .silos
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), at))
            .collect();
        let pair = |groups: &[String; 2]| -> Option<[usize; 2]> {
            Some([*at.get(groups[0].as_str())?, *at.get(groups[1].as_str())?])
        };
        let pairs: Option<Vec<[usize; 2]>> = merges
            .tree
            .merges
            .iter()
            .map(|merge| pair(&merge.groups))
            .collect();
        let pairs = pairs.filter(|pairs| n > 1 && pairs.len() == n - 1)?;
        let mut utility = vec![merges.tree.alone];
        for merge in &merges.tree.merges {
            utility.push(utility[utility.len() - 1] + merge.benefit);
        }
        if !utility.iter().all(|total| total.is_finite()) {
            return None;
        }
        // The coalitions that the silos took, or were in, with the letters of the other pictures.
        let round = merges.taken.map_or(merges.round, |taken| taken.round);
        let course = CoalitionCourse::of(story);
        let of_round = course.rounds.iter().find(|(of, _)| *of == round);
        let all = of_round.map_or(&[][..], |(_, all)| all);
        let mut groups = vec![None; n];
        for (silo, group) in story.silos.iter().zip(all) {
            if let Some(&at) = at.get(silo.name.as_str()) {
                groups[at] = *group;
            }
        }
        let most = n - best(&utility);
        let left = merges.taken.map_or(most, |taken| taken.groups);
        let rows = rows(n, &pairs);
        let mut tree = Self {
            merges,
            utility,
            made: n.checked_sub(left)?,
            rows,
            groups,
            tree: Vec::new(),
        };
        tree.tree = tree.branches(&pairs);
        Some(tree)
    }

    /// The branches of every merge.
    fn branches(&self, pairs: &[[usize; 2]]) -> Vec<TreeMerge> {
        let alone = |(silo, &group): (usize, &Option<usize>)| {
            let row = self.rows.iter().position(|own| *own == silo);
            Branch {
                step: 0,
                row: row.unwrap_or_default() as f64,
                group,
            }
        };
        let mut branches: Vec<Branch> = self.groups.iter().enumerate().map(alone).collect();
        let mut heads: Vec<usize> = (0..self.groups.len()).collect();
        let mut merges = Vec::new();
        for (nth, [into, from]) in pairs.iter().enumerate() {
            let (into, from) = (heads[*into], heads[*from]);
            let pair = [branches[into], branches[from]];
            let group = pair[0].group.filter(|own| pair[1].group == Some(*own));
            merges.push(TreeMerge {
                branches: pair,
                group,
            });
            branches[into] = Branch {
                step: nth + 1,
                row: (pair[0].row + pair[1].row) / 2.0,
                group,
            };
            for head in heads.iter_mut().filter(|head| **head == from) {
                *head = into;
            }
        }
        merges
    }

    fn len(&self) -> usize {
        self.groups.len()
    }

    /// The number of groups with the most utility.
    fn best(&self) -> usize {
        self.len() - best(&self.utility)
    }

    fn said(&self) -> String {
        let value =
            |utility: f64| numbers::value(utility, numbers::decimals(self.utility[0]).min(3));
        let (n, best) = (self.len(), self.best());
        let mut text = format!(
            "The total utility is largest with {}: {}, against {} with every silo alone and {} with all together.",
            numbers::plural(best, "group"),
            value(self.utility[n - best]),
            value(self.utility[0]),
            value(self.utility[n - 1]),
        );
        match self.merges.taken {
            None => text.push_str(
                " The silos adopted none of these groupings and kept the one that they had.",
            ),
            Some(taken) if taken.groups != best => {
                let groups = numbers::plural(taken.groups, "group");
                text.push_str(&format!(" The silos took {groups}."));
            }
            Some(_) => {}
        }
        text
    }

    fn named(&self) -> bool {
        self.len() <= NAMED
    }

    fn left(&self) -> f64 {
        if self.named() { 150.0 } else { 60.0 }
    }

    /// Between the last merge that was made and the next.
    fn cut(&self, x: AxisScale) -> f64 {
        px(match self.made {
            last if last == self.len() - 1 => RIGHT + 8.0,
            step => (x.at(step as f64) + x.at(step as f64 + 1.0)) / 2.0,
        })
    }

    fn drawing(&self, story: &Story) -> Markup {
        let n = self.len();
        let row = match n {
            0..=12 => 24.0,
            13..=NAMED => 18.0,
            33..=80 => 10.0,
            _ => 7.0,
        };
        let top = TOP + UTILITY + BETWEEN;
        let height = top + row * n as f64 + 14.0;
        let x = AxisScale::new((0.0, (n - 1) as f64), (self.left(), RIGHT));
        let cut = self.cut(x);
        let left = numbers::plural(n - self.made, "group");
        let anchor = if cut > WIDTH - 120.0 { "end" } else { "start" };
        let beside = if anchor == "end" {
            cut - 6.0
        } else {
            cut + 6.0
        };
        described(
            "Utility and merges by number of groups",
            &self.said(),
            (WIDTH, height),
            html! {
                (self.curve(x))
                (self.ticks(x))
                line.together x1=(cut) x2=(cut) y1="16" y2=(px(height - 4.0)) {}
                text.name x=(px(beside)) y="24" text-anchor=(anchor) { (left) @if self.merges.taken.is_some() { " taken" } @else { ": most utility" } }
                @for (nth, merge) in self.tree.iter().enumerate() { (self.merge(nth, merge, x, (top, row))) }
                @for (place, &silo) in self.rows.iter().enumerate() { (self.leaf(story, silo, top + row * (place as f64 + 0.5))) }
                (self.letters((top, row)))
            },
        )
    }

    /// The total utility by number of merges.
    fn curve(&self, x: AxisScale) -> Markup {
        let finite = self
            .utility
            .iter()
            .copied()
            .filter(|utility| utility.is_finite());
        let Some(frame) = range(finite) else {
            return html! {};
        };
        let y = AxisScale::new(frame, (TOP + UTILITY, TOP));
        let ticks = y.ticks(4);
        let mut path = String::new();
        for (step, utility) in self.utility.iter().enumerate() {
            let pen = if path.is_empty() { 'M' } else { 'L' };
            path.push_str(&format!("{pen}{} {}", x.at(step as f64), y.at(*utility)));
        }
        let best = self.len() - self.best();
        html! {
            @for tick in &ticks {
                line.grid x1=(self.left()) x2=(RIGHT) y1=(y.at(*tick)) y2=(y.at(*tick)) {}
                text.tick x=(px(self.left() - 8.0)) y=(px(y.at(*tick) + 4.0)) text-anchor="end" { (tick_text(&ticks, *tick)) }
            }
            text.tick x=(px(self.left() - 46.0)) y=(px(TOP - 12.0)) { "total utility" }
            path.median d=(path) {}
            @if self.named() {
                @for (step, utility) in self.utility.iter().enumerate() {
                    circle.middle cx=(x.at(step as f64)) cy=(y.at(*utility)) r="4" {
                        title {
                            (numbers::plural(self.len() - step, "group")) ": total utility "
                            (numbers::value(*utility, 4))
                        }
                    }
                }
            }
            circle.together cx=(x.at(best as f64)) cy=(y.at(self.utility[best])) r="7" {
                title { "Most utility: " (numbers::plural(self.best(), "group")) }
            }
        }
    }

    /// The numbers of groups, between utility and tree.
    fn ticks(&self, x: AxisScale) -> Markup {
        let n = self.len();
        let groups = AxisScale::new((1.0, n as f64), (0.0, 1.0)).ticks(14);
        let whole = groups.into_iter().filter(|groups| groups.fract() == 0.0);
        let mut whole: Vec<usize> = whole.map(|groups| groups as usize).collect();
        if whole.first() != Some(&1) {
            whole.insert(0, 1);
        }
        let floor = TOP + UTILITY;
        html! {
            line.axis x1=(self.left()) x2=(RIGHT) y1=(floor) y2=(floor) {}
            @for groups in whole {
                @let at = x.at((n - groups) as f64);
                line.grid x1=(at) x2=(at) y1=(floor) y2=(floor + 5.0) {}
                text.tick x=(at) y=(floor + 18.0) text-anchor="middle" { (groups) }
            }
            text.tick x=(px((self.left() + RIGHT) / 2.0)) y=(floor + 36.0) text-anchor="middle" { "number of groups" }
        }
    }

    fn merge(&self, nth: usize, merge: &TreeMerge, x: AxisScale, (top, row): (f64, f64)) -> Markup {
        let y = |branch: &Branch| px(top + row * (branch.row + 0.5));
        let at = x.at((nth + 1) as f64);
        let [a, b] = &merge.branches;
        let benefit = self.merges.tree.merges[nth].benefit;
        let names = &self.merges.tree.merges[nth].groups;
        let cut = self.cut(x);
        let until = |branch: &Branch| format!("M{} {}H{cut}", x.at(branch.step as f64), y(branch));
        let branch = |branch: &Branch, taken: bool| {
            let from = if taken { cut } else { x.at(branch.step as f64) };
            format!("M{from} {}H{at}", y(branch))
        };
        let made = nth < self.made;
        html! {
            g class={ "branch " (colour(merge.group)) } {
                title {
                    "Merge of the groups of " (names[0]) " and " (names[1]) " into "
                    (numbers::plural(self.len() - nth - 1, "group")) ": " (numbers::signed(benefit, 4))
                    @if !made { " (not made)" }
                }
                @for one in [a, b] {
                    // A group on this side of the line goes on as it is up to there.
                    @let crosses = !made && one.step <= self.made;
                    @if crosses { path.(colour(one.group)) d=(until(one)) {} }
                    path.(colour(one.group)).further[!made] d=(branch(one, crosses)) {}
                }
                path.further[!made] d=(format!("M{at} {}V{}", y(a), y(b))) {}
            }
        }
    }

    fn leaf(&self, story: &Story, silo: usize, y: f64) -> Markup {
        let name = &self.merges.silos[silo];
        let rows = story
            .silos
            .iter()
            .find(|one| one.name == *name)
            .map(|one| one.rows());
        html! {
            g class=(colour(self.groups[silo])) {
                title { (name) @if let Some(rows) = rows { ", " (numbers::count(rows)) " rows" } }
                circle.node.plain cx=(px(self.left())) cy=(px(y)) r=(if self.named() { 4.0 } else { 2.5 }) {}
                @if self.named() {
                    text.name x=(px(self.left() - 9.0)) y=(px(y + 4.0)) text-anchor="end" { (numbers::short(name, 18)) }
                }
            }
        }
    }

    /// Returns where names have no room: the letters of the groups, beside their silos.
    fn letters(&self, (top, row): (f64, f64)) -> Markup {
        if self.named() {
            return html! {};
        }
        let mut runs: Vec<(Option<usize>, usize, usize)> = Vec::new();
        for (place, &silo) in self.rows.iter().enumerate() {
            match runs.last_mut() {
                Some((group, _, silos)) if *group == self.groups[silo] => *silos += 1,
                _ => runs.push((self.groups[silo], place, 1)),
            }
        }
        // A letter that has no room below the one before is left out.
        let mut letters: Vec<(usize, f64)> = Vec::new();
        for (group, first, silos) in runs {
            let Some(group) = group else { continue };
            let middle = top + row * (first as f64 + silos as f64 / 2.0);
            if letters
                .last()
                .is_none_or(|(_, before)| middle - before >= 14.0)
            {
                letters.push((group, middle));
            }
        }
        html! {
            @for (group, middle) in letters {
                g class=(colour(Some(group))) {
                    text.name x=(px(self.left() - 9.0)) y=(px(middle + 4.0)) text-anchor="end" { (letter(group)) }
                }
            }
        }
    }

    fn csv(&self) -> String {
        let n = self.len();
        let alone = [
            n.to_string(),
            String::new(),
            String::new(),
            String::new(),
            self.utility[0].to_string(),
        ];
        let merges = self.merges.tree.merges.iter().enumerate();
        let merges = merges.map(|(nth, merge)| {
            let [into, from] = merge.groups.clone();
            let (benefit, total) = (merge.benefit, self.utility[nth + 1]);
            [
                (n - nth - 1).to_string(),
                into,
                from,
                benefit.to_string(),
                total.to_string(),
            ]
        });
        let head = [
            "groups",
            "group of",
            "merged with the group of",
            "benefit",
            "total utility",
        ];
        download::csv(&head, std::iter::once(alone).chain(merges))
    }
}

/// The order of silos in which no two branches cross: the silos of a group are side by side.
fn rows(n: usize, pairs: &[[usize; 2]]) -> Vec<usize> {
    let mut members: Vec<Vec<usize>> = (0..n).map(|silo| vec![silo]).collect();
    let mut heads: Vec<usize> = (0..n).collect();
    for [into, from] in pairs {
        let (into, from) = (heads[*into], heads[*from]);
        if into == from {
            continue;
        }
        let moved = std::mem::take(&mut members[from]);
        moved.iter().for_each(|&silo| heads[silo] = into);
        members[into].extend(moved);
    }
    members.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::{assert_inside, numbers_of};
    use super::*;
    use crate::fixture;
    use lab::summary::{SiloMerge, SiloMerges, TakenGroups};

    /// Silos in groups by turns, merged within their groups first.
    fn story(silos: usize, groups: usize) -> Story {
        let mut summary = fixture::summary(silos, groups, 2);
        let names: Vec<String> = summary.silos.iter().map(|silo| silo.name.clone()).collect();
        let merge = |into: usize, from: usize, benefit| SiloMerge {
            groups: [names[into].clone(), names[from].clone()],
            benefit,
        };
        let within = (groups..silos).map(|at| merge(at % groups, at, 1.0));
        let further = (1..groups).map(|group| merge(0, group, -0.5));
        summary.merges = Some(LastMerges {
            round: 2,
            silos: names.clone(),
            taken: Some(TakenGroups { round: 2, groups }),
            tree: SiloMerges {
                alone: 2.0,
                merges: within.chain(further).collect(),
            },
        });
        Story::of(&summary, "")
    }

    #[test]
    fn utility_is_largest_at_the_groups_that_were_taken() {
        let page = section(&story(6, 2)).into_string();
        assert!(page.contains(
            "The total utility is largest with 2 groups: 6.000, against 2.000 with every silo alone and 5.500 with all \
             together."
        ), "{page}");
        assert!(
            page.contains("2 groups taken") && page.contains("(not made)"),
            "{page}"
        );
        assert_eq!(page.matches("<g class=\"branch").count(), 5);
        // The merges within the groups have their colours, the last one none.
        assert_eq!(page.matches("<g class=\"branch k0\"").count(), 2);
        assert_eq!(page.matches("<g class=\"branch k1\"").count(), 2);
        assert_eq!(page.matches("<g class=\"branch k-none\"").count(), 1);
    }

    #[test]
    fn groups_are_side_by_side_and_everything_is_inside() {
        for (silos, groups) in [(2, 1), (2, 2), (6, 2), (20, 5), (32, 32), (139, 6)] {
            let story = story(silos, groups);
            let page = section(&story).into_string();
            assert_inside(&page);
            let tree = GroupTree::of(&story, story.merges.as_ref().unwrap()).unwrap();
            let mut sorted = tree.rows.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..silos).collect::<Vec<_>>());
            let mut changes = 1;
            for pair in tree.rows.windows(2) {
                changes += usize::from(tree.groups[pair[0]] != tree.groups[pair[1]]);
            }
            assert_eq!(changes, groups);
            let names = page.split("text-anchor=\"end\"").count();
            assert!(names > groups.min(2), "{page}");
            let ends: Vec<f64> = numbers_of(&page, "cx");
            assert!(ends.iter().all(|x| *x <= RIGHT));
        }
    }

    #[test]
    fn groups_that_the_silos_did_not_take_are_not_called_so() {
        let mut story = story(6, 2);
        let taken = TakenGroups {
            round: 1,
            groups: 1,
        };
        story.summary.merges.as_mut().unwrap().taken = Some(taken);
        // All were together in round 1, though the utility is less.
        let page = section(&story).into_string();
        assert!(
            page.contains("The silos took 1 group.") && page.contains("1 group taken"),
            "{page}"
        );
        assert!(
            !page.contains("(not made)") && page.contains("after round 1;"),
            "{page}"
        );
        story.summary.merges.as_mut().unwrap().taken = None;
        let page = section(&story).into_string();
        assert!(
            page.contains("The silos adopted none of these groupings")
                && page.contains("2 groups: most utility"),
            "{page}"
        );
        // Colours are those of the coalitions all the same.
        assert_eq!(page.matches("<g class=\"branch k0\"").count(), 2);
    }

    #[test]
    fn merges_that_do_not_lead_to_one_group_have_no_picture() {
        let mut story = story(6, 2);
        story.summary.merges.as_mut().unwrap().tree.merges.pop();
        assert_eq!(section(&story).into_string(), "");
        assert_eq!(section(&fixture::story(6, 2, 2)).into_string(), "");
    }
}
