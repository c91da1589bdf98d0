//! The losses that coalitions are formed by (CS-RCFL, Konti et al. 2024): whose data, whose model, in
//! the order of the coalitions.

use std::collections::BTreeMap;

use lab::summary::SiloLosses;
use maud::{Markup, html};

use super::NAMED;
use crate::facts::proven;
use crate::heat::{STEPS, field, opacity};
use crate::story::Story;
use crate::svg::{colour, described, px};
use crate::{download, letter, numbers};

/// The most silos for which the losses are written into the cells.
const WRITTEN: usize = 12;
/// The height of the scale below the matrix.
const SCALE: f64 = 58.0;

/// The section; empty where silos did not measure each other's models.
pub(super) fn section(story: &Story) -> Markup {
    let Some(losses) = story
        .losses
        .as_ref()
        .filter(|losses| !losses.silos.is_empty())
    else {
        return html! {};
    };
    let matrix = LossPicture::of(story, losses);
    html! {
        section {
            h2 { "Losses of each model at each silo" }
            p { (matrix.said()) }
            @if let Some(proven) = proven(story) { p { "Proven: " (proven) "." } }
            p.note {
                "Measured in round " (losses.round) ". Each row is the data of a silo, each column a model. The \
                 darker a cell, the more "
                "its loss exceeds that of the best model on these data: a loss that all models share there "
                "does not affect which grouping is best. Frames are the coalitions."
            }
            figure.(if matrix.wide() { "trail" } else { "half" }) {
                (matrix.drawing())
                (download::plot(&format!("{}-losses", story.scenario), &matrix.csv()))
            }
        }
    }
}

/// The matrix in the order of the coalitions.
struct LossPicture<'a> {
    losses: &'a SiloLosses,
    /// Positions in the matrix, in the order of rows and columns of the picture.
    order: Vec<usize>,
    /// The coalitions along it: number, first place, silos.
    blocks: Vec<(Option<usize>, usize, usize)>,
    /// Least excess of a cell of the last step over the best of its row.
    top: f64,
    decimals: usize,
}

impl<'a> LossPicture<'a> {
    fn of(story: &Story, losses: &'a SiloLosses) -> Self {
        let round = story
            .rounds
            .iter()
            .find(|round| round.round == losses.round);
        let coalitions = round.map_or(&[][..], |round| &round.coalitions);
        let pairs = coalitions.iter().enumerate();
        let pairs =
            pairs.flat_map(|(at, members)| members.iter().map(move |name| (name.as_str(), at)));
        let of: BTreeMap<&str, usize> = pairs.collect();
        let own = |at: usize| of.get(losses.silos[at].as_str()).copied();
        let mut order: Vec<usize> = (0..losses.silos.len()).collect();
        // Silos without a coalition come last.
        order.sort_by_key(|&at| (own(at).unwrap_or(usize::MAX), at));
        let mut blocks: Vec<(Option<usize>, usize, usize)> = Vec::new();
        for (place, &at) in order.iter().enumerate() {
            match blocks.last_mut() {
                Some((coalition, _, silos)) if *coalition == own(at) => *silos += 1,
                _ => blocks.push((own(at), place, 1)),
            }
        }
        let all = losses.losses.iter().flatten().copied();
        let mut picture = Self {
            losses,
            order,
            blocks,
            top: 0.0,
            decimals: numbers::decimals_of(all),
        };
        picture.top = picture.most();
        picture
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn wide(&self) -> bool {
        self.len() > NAMED / 2
    }

    /// The loss at a place of the picture.
    fn loss(&self, row: usize, column: usize) -> f64 {
        self.losses.losses[self.order[row]][self.order[column]]
    }

    /// Returns what a model loses beyond the best of its row; infinite where it is not finite.
    fn excess(&self, row: usize, column: usize) -> f64 {
        let finite = (0..self.len())
            .map(|at| self.loss(row, at))
            .filter(|loss| loss.is_finite());
        let best = finite.fold(f64::INFINITY, f64::min);
        let own = self.loss(row, column);
        if own.is_finite() {
            own - best
        } else {
            f64::INFINITY
        }
    }

    /// The 95 % quantile of what models lose beyond the best: the few that lose far more would make all
    /// others look alike.
    fn most(&self) -> f64 {
        let n = self.len();
        let cells = (0..n).flat_map(|row| (0..n).map(move |column| (row, column)));
        let finite = cells.map(|(row, column)| self.excess(row, column));
        let mut finite: Vec<f64> = finite.filter(|excess| excess.is_finite()).collect();
        finite.sort_by(f64::total_cmp);
        let at = (finite.len() as f64 * 0.95) as usize;
        finite
            .get(at.min(finite.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    }

    /// The step of the scale for what a model loses beyond the best.
    fn step(&self, excess: f64) -> usize {
        if excess <= 0.0 {
            return 0;
        }
        let part = excess / self.top;
        // All are alike, or this one is beyond all.
        if !part.is_finite() {
            return STEPS - 1;
        }
        // Rounding does not take what is at a bound below it.
        (1 + (part * (STEPS - 2) as f64 + 1e-9) as usize).min(STEPS - 1)
    }

    fn coalition(&self, place: usize) -> Option<usize> {
        let mut blocks = self.blocks.iter();
        let block = blocks.find(|(_, first, silos)| (*first..first + silos).contains(&place));
        block.and_then(|(coalition, ..)| *coalition)
    }

    /// Returns what models of the own and of other coalitions lose beyond the best, on average.
    fn said(&self) -> String {
        let (mut within, mut beyond) = ((0.0, 0), (0.0, 0));
        for row in 0..self.len() {
            for column in (0..self.len()).filter(|&column| column != row) {
                let excess = self.excess(row, column);
                let own =
                    self.coalition(row).is_some() && self.coalition(row) == self.coalition(column);
                let sum: &mut (f64, usize) = if own { &mut within } else { &mut beyond };
                if excess.is_finite() {
                    *sum = (sum.0 + excess, sum.1 + 1);
                }
            }
        }
        let mean = |(sum, count): (f64, usize)| {
            (count > 0).then(|| numbers::value(sum / count as f64, self.decimals))
        };
        let best = "more than the best model on these data";
        match (mean(within), mean(beyond)) {
            (Some(within), Some(beyond)) => format!(
                "On the data of a silo, models of others of its coalition lose on average {within} {best}, models of other \
                 coalitions {beyond}."
            ),
            (Some(within), None) => format!(
                "All are one coalition. On the data of a silo, models of others lose on average {within} {best}."
            ),
            (None, Some(beyond)) => format!(
                "Every silo is alone. On the data of a silo, models of others lose on average {beyond} {best}."
            ),
            (None, None) => "There is one model.".to_owned(),
        }
    }

    fn drawing(&self) -> Markup {
        let n = self.len();
        let named = n <= NAMED;
        let cell = match n {
            0..=WRITTEN => 46.0,
            13..=NAMED => 22.0,
            _ => px((900.0 / n as f64).clamp(2.0, 12.0)),
        };
        let (left, top) = if named { (130.0, 118.0) } else { (34.0, 28.0) };
        let side = cell * n as f64;
        let (width, height) = ((left + side + 26.0).max(left + 340.0), top + side + SCALE);
        let place = |at: usize| cell * at as f64;
        described(
            "Losses of each model at each silo",
            &self.said(),
            (width, height),
            html! {
                g transform=(format!("translate({left} {top})")) {
                    @if named { (self.cells(cell)) } @else { (field(n, cell, |row, column| self.step(self.excess(row, column)))) }
                    @for &(coalition, first, silos) in &self.blocks {
                        @let size = px(place(silos));
                        g class=(colour(coalition)) {
                            rect.frame x=(px(place(first))) y=(px(place(first))) width=(size) height=(size) {}
                            @if let Some(coalition) = coalition {
                                text.centre x=(px(side + 13.0)) y=(px(place(first) + place(silos) / 2.0 + 6.0)) {
                                    @if place(silos) >= 16.0 { (letter(coalition)) }
                                }
                            }
                        }
                    }
                    (self.scale(side))
                }
                @if named { (self.names(cell, (left, top))) }
                text.tick x=(px(left)) y="14" { "model of" }
                @if named {
                    text.tick x="4" y=(px(top - 6.0)) { "data of" }
                } @else {
                    text.tick transform=(format!("translate({} {}) rotate(-90)", px(left - 10.0), px(top + 50.0))) { "data of" }
                }
            },
        )
    }

    /// A cell for each loss, with the loss written into it if there are few.
    fn cells(&self, cell: f64) -> Markup {
        let n = self.len();
        let name = |place: usize| &self.losses.silos[self.order[place]];
        html! {
            @for row in 0..n { @for column in 0..n {
                @let (loss, step) = (self.loss(row, column), self.step(self.excess(row, column)));
                @let (x, y) = (cell * column as f64, cell * row as f64);
                @let text = numbers::value(loss, self.decimals);
                g {
                    title { "Model of " (name(column)) " on data of " (name(row)) ": " (text) }
                    rect.under x=(px(x)) y=(px(y)) width=(px(cell)) height=(px(cell)) {}
                    rect.heat x=(px(x)) y=(px(y)) width=(px(cell)) height=(px(cell)) opacity=(opacity(step)) {}
                    @if n <= WRITTEN {
                        text.count.(if step > STEPS * 5 / 8 { "light" } else { "dark" })
                            x=(px(x + cell / 2.0)) y=(px(y + cell / 2.0 + 4.0)) text-anchor="middle" {
                            @if loss.is_finite() { (short(loss, self.decimals)) } @else { "–" }
                        }
                    }
                }
            } }
        }
    }

    /// The names of rows and columns, in the colours of their coalitions.
    fn names(&self, cell: f64, (left, top): (f64, f64)) -> Markup {
        html! {
            @for (place, &at) in self.order.iter().enumerate() {
                @let name = numbers::short(&self.losses.silos[at], 16);
                @let middle = cell * (place as f64 + 0.5);
                g class=(colour(self.coalition(place))) {
                    text.name x=(px(left - 8.0)) y=(px(top + middle + 4.0)) text-anchor="end" { (name) }
                    text.name transform=(format!("translate({} {}) rotate(-60)", px(left + middle + 2.0), px(top - 7.0))) { (name) }
                }
            }
        }
    }

    /// Returns what the steps mean.
    fn scale(&self, side: f64) -> Markup {
        const STEP: f64 = 34.0;
        let y = side + 16.0;
        let from = |step: usize| self.top * step.saturating_sub(1) as f64 / (STEPS - 2) as f64;
        html! {
            @for step in 0..STEPS {
                @let x = STEP * step as f64;
                rect.under x=(px(x)) y=(px(y)) width=(STEP) height="12" {}
                rect.heat x=(px(x)) y=(px(y)) width=(STEP) height="12" opacity=(opacity(step)) {}
                @if step == 0 {
                    text.tick x="0" y=(px(y + 26.0)) { "best" }
                } @else if step % 2 == 1 && step > 1 && self.top > 0.0 {
                    text.tick x=(px(x)) y=(px(y + 26.0)) text-anchor="middle" {
                        "+" (short(from(step), numbers::decimals(self.top).min(4)))
                    }
                }
            }
        }
    }

    fn csv(&self) -> String {
        let names = self.order.iter().map(|&at| self.losses.silos[at].clone());
        let names: Vec<String> = names.collect();
        let head: Vec<&str> = ["data of", "coalition"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .collect();
        let rows = (0..self.len()).map(|row| {
            let coalition = self.coalition(row).map(letter).unwrap_or_default();
            let cells = (0..self.len()).map(|column| {
                download::number(Some(self.loss(row, column)).filter(|loss| loss.is_finite()))
            });
            [names[row].clone(), coalition]
                .into_iter()
                .chain(cells.collect::<Vec<_>>())
        });
        download::csv(&head, rows)
    }
}

/// A number that fits into a cell.
fn short(value: f64, decimals: usize) -> String {
    numbers::value(value, decimals.min(3))
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_inside;
    use super::*;
    use crate::fixture;

    /// Silos in groups by turns; a model of another group loses one more, and every silo has a level
    /// of its own.
    fn story(silos: usize, groups: usize) -> Story {
        let mut summary = fixture::summary(silos, groups, 2);
        let loss = |row: usize, column: usize| {
            let other = if row % groups == column % groups {
                0.0
            } else {
                1.0
            };
            10.0 * row as f64 + other + if row == column { 0.0 } else { 0.1 }
        };
        summary.losses = Some(SiloLosses {
            round: 2,
            silos: summary.silos.iter().map(|silo| silo.name.clone()).collect(),
            losses: (0..silos)
                .map(|row| (0..silos).map(|column| loss(row, column)).collect())
                .collect(),
        });
        let last = summary.rounds.last_mut();
        let gap = last.map(|round| round.memory.insert("coalitions.gap".into(), 0.031.into()));
        assert_eq!(gap, Some(None));
        Story::of(&summary, "")
    }

    #[test]
    fn rows_and_columns_stand_in_the_order_of_the_coalitions() {
        let story = story(6, 2);
        let picture = story
            .losses
            .as_ref()
            .map(|losses| LossPicture::of(&story, losses));
        let picture = picture.unwrap_or_else(|| panic!());
        assert_eq!(picture.order, [0, 2, 4, 1, 3, 5]);
        assert_eq!(picture.blocks, [(Some(0), 0, 3), (Some(1), 3, 3)]);
        // The level of a row does not count.
        let steps = |row: usize| {
            (0..6)
                .map(|column| picture.step(picture.excess(row, column)))
                .collect::<Vec<_>>()
        };
        assert_eq!(steps(0), [0, 1, 1, 8, 8, 8]);
        assert_eq!(steps(4), [8, 8, 8, 1, 0, 1]);
        let page = section(&story).into_string();
        assert!(
            page.contains(
                "lose on average 0.100 more than the best model on these data, models of other \
                               coalitions 1.100"
            ) || page.contains(
                "lose on average 0.10 more than the best model \
                               on these data, models of other coalitions 1.10"
            ),
            "{page}"
        );
        assert!(page.contains("Proven: of the loss by which members exceed the best model on their rows, another grouping into as many coalitions could save at most 3.1 %."), "{page}");
        assert!(page.contains("Model of Hospital 03 on data of Hospital 02: "));
    }

    #[test]
    fn everything_is_inside_and_many_cells_are_few_paths() {
        for (silos, groups) in [(1, 1), (6, 2), (20, 3), (32, 4), (139, 5)] {
            let page = section(&story(silos, groups)).into_string();
            assert_inside(&page);
            assert_eq!(
                page.matches("<rect class=\"frame\"").count(),
                groups.min(silos)
            );
            let cells = page.matches("<title>Model of").count();
            assert_eq!(cells, if silos <= NAMED { silos * silos } else { 0 });
            let svg = page.split("<figure").nth(1).unwrap_or_default();
            let svg = svg.split("</svg>").next().unwrap_or_default();
            assert!(svg.len() < 400_000, "{silos}: {} bytes", svg.len());
        }
    }

    #[test]
    fn losses_that_are_not_finite_have_the_last_step() {
        let mut story = story(4, 2);
        if let Some(losses) = &mut story.summary.losses {
            losses.losses[0][1] = f64::INFINITY;
            losses.losses[3][2] = f64::NAN;
        }
        let page = section(&story).into_string();
        assert!(
            page.contains("Model of Hospital 02 on data of Hospital 01: not finite"),
            "{page}"
        );
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
    }
}
