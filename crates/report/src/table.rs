//! The section with the comparison of models per silo, and a small drawing of each row.

use super::story::{SiloStory, Story};
use lab::summary::{Interval, ModelKind};
use maud::{Markup, html};

use super::comparison::{Cell, Column, ComparisonTable, choice};
use super::svg::{AxisFrame, AxisScale, colour};
use super::verdict::{between, long_name, statements};
use super::{download, letter, many, numbers, references, terminal};

/// The width of the drawing of a row.
const DOTS: f64 = 130.0;

/// The section.
pub(crate) fn section(story: &Story, comparison: &ComparisonTable) -> Markup {
    let columns = &comparison.columns;
    html! {
        section {
            h2 { @if columns.len() > 1 { "Who gains, and by how much" } @else { "How good the models are" } }
            @let said = statements(story, comparison);
            @if let Some((first, others)) = said.split_first() {
                p.lead.bad[!story.usable] { (first) }
                @if !others.is_empty() { ul.result { @for one in others { li { (one) } } } }
            }
            @for note in &story.notes { p.note { "Note: " (numbers::plain(note)) "." } }
            @if !columns.is_empty() {
                p.note {
                    "Measured on each silo’s held-out rows: " (terminal::metric(story)) ". "
                    @if columns.len() > 1 { b.best { "Marked" } ": significantly better than all others in its line. " }
                    @if !story.gains.is_empty() {
                        "The gain is that of the coalition’s model over the best one that the silo makes alone, with a \
                         95 % interval "
                        "from paired bootstrap samples of the held-out " (story.units()) "; it does not include the \
                         randomness of training, "
                        "which runs with other seeds show."
                    }
                }
                p.find hidden {
                    label { "Find a silo " input.search type="search" autocomplete="off"; output {} }
                }
                (many::note(story, comparison))
                (main_table(story, comparison))
                @if !many::are_many(story) { (more_table(story, comparison)) }
                div.saves {
                    (download::data(&format!("{}-silos", story.scenario), &csv(story, comparison)))
                }
                (references::table(story))
            }
        }
    }
}

/// Returns what decides: which model a silo serves, what it gains, and how the models do. It fits a window of
/// 1,280 pixels.
fn main_table(story: &Story, comparison: &ComparisonTable) -> Markup {
    let columns = &comparison.columns;
    let cells = comparison.rows.iter().chain(&comparison.outside);
    let usable = cells
        .flatten()
        .flatten()
        .filter(|cell| cell.no_use.is_none());
    let scale = AxisFrame::of(usable.map(|cell| cell.value))
        .map(|frame| AxisScale::framed(&frame, (8.0, DOTS - 8.0)));
    let gains = !comparison.gains.is_empty();
    let serves = !comparison.served.is_empty();
    let means = |what: &str, means: &[Option<Cell>], by_silo: bool| {
        html! {
            tr {
                th scope="row" { (what) }
                td {}
                @if serves {
                    td.decision { @if by_silo { (comparison.served_mean.as_deref().unwrap_or("–")) } }
                }
                @if gains { td.number { (mean_gain(story, comparison, by_silo)) } }
                (row(means))
                td { (dots(columns, means, scale)) }
            }
        }
    };
    let over = if comparison.common == story.silos.len() || comparison.common == 0 {
        "Mean of silos".to_owned()
    } else {
        format!("Mean of {}", numbers::plural(comparison.common, "silo"))
    };
    html! {
        div.scroll.tall tabindex="0" role="region" aria-label="Table per silo" {
            table.sortable.stuck {
                thead { tr {
                    th scope="col" { "Silo" }
                    th scope="col" { "Coalition" }
                    @if serves { th.decision scope="col" { "Serves" } }
                    @if gains { th.number scope="col" { "Gain" } }
                    @for column in columns { th.number scope="col" { (dot_key(*column)) (column.title()) } }
                    th.fixed scope="col" { "Side by side" }
                } }
                tbody {
                    @for (at, (silo, cells, coalition)) in listed(story, comparison) {
                        tr {
                            th scope="row" { (silo.name) }
                            td { @match coalition { Some(coalition) => (chip(coalition)), None => "outside" } }
                            @if let Some(served) = comparison.served.get(at) {
                                td.decision {
                                    @match served {
                                        Some((candidate, value)) => { (choice(*candidate)) " " span.muted { (value) } },
                                        None => "–",
                                    }
                                }
                            }
                            @if gains { (gain(silo, story, comparison)) }
                            (row(cells))
                            td { (dots(columns, cells, scale)) }
                        }
                    }
                }
                tfoot {
                    (means(&over, &comparison.means, true))
                    (means("Mean of rows", &comparison.row_means, false))
                }
            }
        }
    }
}

/// Returns what is folded below the table: rows, the second metric, and the model of all rows.
fn more_table(story: &Story, comparison: &ComparisonTable) -> Markup {
    let columns = &comparison.columns;
    let second = story.second_metric.as_ref();
    let pooled = !comparison.pooled.is_empty();
    let sum = |of: fn(&SiloStory) -> u64| numbers::count(story.silos.iter().map(of).sum());
    let mut named = vec!["rows".to_owned()];
    named.extend(second.map(|second| numbers::plain(&second.name)));
    named.extend(pooled.then(|| "a model of all rows pooled".to_owned()));
    html! {
        details.fold {
            summary { "More of every silo: " (named.join(", ")) }
            div.scroll.tall tabindex="0" role="region" aria-label="More of every silo" {
                table.sortable.stuck {
                    thead { tr {
                        th scope="col" { "Silo" }
                        th.number scope="col" { "Training rows" }
                        th.number scope="col" { "Held-out rows" }
                        @if let Some(second) = second {
                            @for column in columns { th.number scope="col" title=(long_name(&second.name)) { (second.name) ", " (column.title()) } }
                        }
                        @if pooled { th.number scope="col" { "All rows pooled" } }
                    } }
                    tbody {
                        @for (at, (silo, ..)) in rows(story, comparison).enumerate() {
                            tr {
                                th scope="row" { (silo.name) }
                                td.number data-sort=(silo.rows()) { (numbers::count(silo.rows())) }
                                td.number data-sort=(silo.held_out()) { (numbers::count(silo.held_out())) }
                                @if second.is_some() { (seconds(story, columns, silo)) }
                                @if let Some(pooled) = comparison.pooled.get(at) {
                                    td.number { (pooled.as_deref().unwrap_or("–")) }
                                }
                            }
                        }
                    }
                    tfoot { tr {
                        th scope="row" { "Members" }
                        td.number { "Σ " (sum(|silo| silo.rows())) }
                        td.number { "Σ " (sum(|silo| silo.held_out())) }
                        @if second.is_some() { @for _ in columns { td {} } }
                        @if pooled { td.number { (comparison.pooled_mean.as_deref().unwrap_or("–")) } }
                    } }
                }
            }
        }
    }
}

/// A line of the table: a silo, its cells, and its coalition; `None` outside.
type Row<'a> = (&'a SiloStory, &'a [Option<Cell>], Option<Option<usize>>);

/// The lines that the table has, each with its place among all.
fn listed<'a>(story: &'a Story, comparison: &'a ComparisonTable) -> Vec<(usize, Row<'a>)> {
    let mut all: Vec<_> = rows(story, comparison).enumerate().map(Some).collect();
    let members = many::listed(story);
    let outside = story.silos.len()..all.len();
    let most = if many::are_many(story) {
        members.len()
    } else {
        all.len()
    };
    let places = members.into_iter().chain(outside.take(most));
    places.filter_map(|at| all[at].take()).collect()
}

/// Members with their coalition, then unseen silos.
fn rows<'a>(story: &'a Story, comparison: &'a ComparisonTable) -> impl Iterator<Item = Row<'a>> {
    let members = story.silos.iter().zip(&comparison.rows);
    let outside = story.outside.iter().zip(&comparison.outside);
    members
        .map(|(silo, cells)| (silo, cells.as_slice(), Some(silo.in_coalition())))
        .chain(outside.map(|(silo, cells)| (silo, cells.as_slice(), None)))
}

/// The table as CSV, with all digits.
fn csv(story: &Story, comparison: &ComparisonTable) -> String {
    let of_gain =
        |gain: Option<Interval>, end: fn(Interval) -> f64| download::number(gain.map(end));
    let all = rows(story, comparison).map(|(silo, _, coalition)| {
        let coalition = match coalition {
            Some(Some(index)) => letter(index),
            Some(None) => String::new(),
            None => "outside".to_owned(),
        };
        let gain = silo.gain(ModelKind::Coalition, ModelKind::Local);
        let second = silo.second;
        vec![
            silo.name.clone(),
            coalition,
            silo.rows().to_string(),
            silo.held_out().to_string(),
            download::number(silo.local),
            download::number(silo.global),
            download::number(silo.coalition),
            of_gain(gain, |gain| gain.by),
            of_gain(gain, |gain| gain.low),
            of_gain(gain, |gain| gain.high),
            download::number(second.local),
            download::number(second.global),
            download::number(second.coalition),
            download::number(silo.pooled),
            download::number(silo.global_equal),
            download::number(silo.own_intercept),
            download::number(silo.constant),
            download::number(silo.serves().and_then(|(_, value)| value)),
        ]
    });
    let metric = &story.metric.name;
    let second = story
        .second_metric
        .as_ref()
        .map_or("second", |one| &one.name);
    let head = [
        "silo".to_owned(),
        "coalition".to_owned(),
        "training rows".to_owned(),
        "held-out rows".to_owned(),
        format!("{metric} own"),
        format!("{metric} global"),
        format!("{metric} coalition"),
        "gain".to_owned(),
        "gain low".to_owned(),
        "gain high".to_owned(),
        format!("{second} own"),
        format!("{second} global"),
        format!("{second} coalition"),
        format!("{metric} pooled"),
        format!("{metric} global of equal weights"),
        format!("{metric} global with own intercepts"),
        format!("{metric} constant"),
        format!("{metric} served"),
    ];
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    download::csv(&head, all)
}

/// A silo's gain by its coalition's model over its own.
fn gain(silo: &SiloStory, story: &Story, comparison: &ComparisonTable) -> Markup {
    html! {
        @match silo.gain(ModelKind::Coalition, ModelKind::Local) {
            Some(gain) => td.number data-sort=(gain.by) { (interval(gain, comparison)) },
            None => td.number data-sort="" title=(format!("too few held-out {} to tell", story.units())) { "–" },
        }
    }
}

fn interval(gain: Interval, comparison: &ComparisonTable) -> Markup {
    let class = match (gain.is_clear(), gain.by > 0.0) {
        (true, true) => "up",
        (true, false) => "down",
        (false, _) => "noise",
    };
    html! {
        span class=(class) { (numbers::signed(gain.by, comparison.fine())) }
        " " span.muted { "(" (between(gain, comparison)) ")" }
    }
}

fn mean_gain(story: &Story, comparison: &ComparisonTable, by_silo: bool) -> Markup {
    let gain = story.gain(ModelKind::Coalition, ModelKind::Local);
    let gain = gain.map(|gain| if by_silo { gain.per_silo } else { gain.per_row });
    html! { @match gain { Some(gain) => (interval(gain, comparison)), None => "–" } }
}

/// The second metric of every model.
fn seconds(story: &Story, columns: &[Column], silo: &SiloStory) -> Markup {
    let all = || story.silos.iter().chain(&story.outside);
    html! {
        @for column in columns {
            @let decimals = numbers::decimals_of(all().filter_map(|silo| column.second(silo)));
            @match column.second(silo) {
                Some(value) => td.number data-sort=(value) { (numbers::value(value, decimals)) },
                None => td.number data-sort="" { "–" },
            }
        }
    }
}

/// A coalition's letter in its colour.
pub(crate) fn chip(coalition: Option<usize>) -> Markup {
    html! {
        @match coalition {
            Some(index) => span class={ "chip " (colour(coalition)) } { (letter(index)) },
            None => "–",
        }
    }
}

fn row(cells: &[Option<Cell>]) -> Markup {
    html! {
        @for cell in cells {
            @match cell {
                Some(Cell { no_use: Some(reason), text, .. }) => {
                    td.number data-sort="" title=(reason) { span.down { (text) } }
                },
                Some(cell) if cell.best => td.number data-sort=(cell.value) { b.best { (cell.text) } },
                Some(cell) => td.number data-sort=(cell.value) { (cell.text) },
                None => td.number data-sort="" { "–" },
            }
        }
    }
}

/// The sign of a column, as in the drawing of a row.
fn dot_key(column: Column) -> Markup {
    html! { svg.key viewBox="0 0 14 14" aria-hidden="true" { (mark(column, 7.0, 7.0)) } }
}

fn dots(columns: &[Column], cells: &[Option<Cell>], scale: Option<AxisScale>) -> Markup {
    let places: Vec<(Column, &Cell, f64)> = columns
        .iter()
        .zip(cells)
        .filter_map(|(column, cell)| Some((*column, cell.as_ref()?, scale?)))
        .filter(|(_, cell, _)| cell.value.is_finite() && cell.no_use.is_none())
        .map(|(column, cell, scale)| (column, cell, scale.at(cell.value)))
        .collect();
    html! {
        svg.dots viewBox=(format!("0 0 {DOTS} 18")) role="img" {
            title { @for (column, cell, _) in &places { (column.title()) " " (cell.text) "; " } }
            line.grid x1="0" y1="9" x2=(DOTS) y2="9" {}
            @for (column, _, x) in &places { (mark(*column, *x, 9.0)) }
        }
    }
}

/// The sign of a column: a shape of its own, so that it can be distinguished without colours.
fn mark(column: Column, x: f64, y: f64) -> Markup {
    html! {
        @match column {
            Column::Own => circle.own cx=(x) cy=(y) r="4" {},
            Column::Global => rect.global x=(x - 3.5) y=(y - 3.5) width="7" height="7" {},
            Column::Coalition => path.coalition
                d=(format!("M{x} {}L{} {y}L{x} {}L{} {y}Z", y - 5.5, x + 5.5, y + 5.5, x - 5.5)) {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn page(story: &Story) -> String {
        section(story, &ComparisonTable::of(story)).into_string()
    }

    #[test]
    fn numbers_can_be_sorted_and_the_table_searched() {
        let mut story = fixture::story(3, 1, 2);
        (story.silos[0].samples, story.silos[0].test_samples) = (1234, 5678);
        let page = page(&story);
        for part in [
            "<table class=\"sortable stuck\">",
            "<input class=\"search\" type=\"search\"",
            "data-sort=\"1234\">1,234<",
            "data-sort=\"5678\">5,678<",
            "<th class=\"fixed\" scope=\"col\">Side by side",
            "Held-out rows</th>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn what_decides_stands_first_and_the_rest_is_folded() {
        let page = page(&fixture::story(3, 1, 2));
        let (main, folded) = page
            .split_once("<details class=\"fold\">")
            .unwrap_or_default();
        let places = |text: &str, heads: &[&str]| {
            let at = |head: &&str| text.find(&format!("{head}</th>"));
            heads.iter().map(at).collect::<Vec<_>>()
        };
        let found = places(
            main,
            &[
                "Silo",
                "Coalition",
                "Serves",
                "Gain",
                "local model",
                "Side by side",
            ],
        );
        assert!(
            found.is_sorted() && found[0].is_some(),
            "{found:?} in {main}"
        );
        assert!(
            main.contains("<td class=\"decision\">coalition&#39;s <span class=\"muted\">")
                || main.contains("<td class=\"decision\">coalition's <span class=\"muted\">"),
            "{main}"
        );
        for head in [
            "Training rows",
            "Held-out rows",
            "rmse, local model",
            "All rows pooled",
        ] {
            assert_eq!(places(main, &[head]), [None], "{head}");
            assert!(places(folded, &[head])[0].is_some(), "{head} in {folded}");
        }
        assert!(folded.starts_with(
            "<summary>More of every silo: rows, rmse, a model of all rows pooled</summary>"
        ));
        // The names of silos stay in view in both.
        for text in [main, folded] {
            assert!(text.contains("<table class=\"sortable stuck\">"), "{text}");
        }
    }

    #[test]
    fn the_second_metric_has_columns_and_the_table_is_a_csv_too() {
        let page = page(&fixture::story(3, 1, 2));
        assert!(
            page.contains(">rmse, local model<") && page.contains(">rmse, coalition's<"),
            "{page}"
        );
        assert!(page.contains("download=\"diabetes-silos.csv\""));
        assert!(page.contains("Hospital%2001,A,20,10,"), "{page}");
    }

    #[test]
    fn a_model_of_no_use_has_its_reason_and_no_dot() {
        let mut story = fixture::story(2, 1, 2);
        story.silos[0].coalition = Some(1e28);
        story.silos[0].unusable = vec![(ModelKind::Coalition, "its mae is 1.0e28".into())];
        let page = page(&story);
        assert!(
            page.contains("title=\"its mae is 1.0e28\"><span class=\"down\">diverged<"),
            "{page}"
        );
        // In the head, at one silo and in two means: not at the first silo.
        assert_eq!(page.matches("path class=\"coalition\"").count(), 4);
    }
}
