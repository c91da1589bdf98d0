//! Federations of more silos than anybody reads line by line: the page begins with how results are distributed,
//! and lists those silos alone that gain or lose most.

use lab::summary::ModelKind;
use maud::{Markup, html};

use super::comparison::{Column, ComparisonTable};
use super::numbers;
use super::story::{SiloStory, Story};
use super::terminal;
use super::verdict::statements;

/// The most silos of which each has its line, its curve and its dot.
const MOST: usize = 200;
/// Of more: how many are listed of those that gain most, and of those that lose most.
const LISTED: usize = 15;
/// Parts of the silos, with what their places are called.
const PARTS: [(&str, f64); 7] = [
    ("smallest", 0.0),
    ("5 %", 0.05),
    ("25 %", 0.25),
    ("median", 0.5),
    ("75 %", 0.75),
    ("95 %", 0.95),
    ("largest", 1.0),
];

/// Returns whether there are more silos than have their own lines.
pub(crate) fn are_many(story: &Story) -> bool {
    story.silos.len() > MOST
}

/// Returns how results are distributed over silos; nothing where every silo has its line.
pub(crate) fn section(story: &Story, comparison: &ComparisonTable) -> Markup {
    if !are_many(story) {
        return html! {};
    }
    let lines: Vec<(String, Vec<f64>, bool)> = comparison
        .columns
        .iter()
        .map(|column| {
            let values = story.silos.iter().filter_map(|silo| usable(silo, *column));
            (column.title().to_owned(), values.collect(), false)
        })
        .chain([("gain".to_owned(), gains(story).collect(), true)])
        .filter(|(_, values, _): &(_, Vec<f64>, _)| !values.is_empty())
        .collect();
    html! {
        section {
            h2 { "In short" }
            @for one in statements(story, comparison).iter().take(2) { p.lead { (one) } }
            @if !comparison.gains.is_empty() { p { (decided(story)) } }
            @if !lines.is_empty() {
                p.note {
                    "Over silos: " (terminal::metric(story)) ". Of 5 % of the silos the value is at most that below “5 %”. "
                    @if !comparison.gains.is_empty() { "gain: by the coalition’s model over the silo’s own." }
                }
                div.scroll tabindex="0" role="region" aria-label="Distribution over silos" {
                    table.stuck {
                        thead { tr {
                            th scope="col" {} th.number scope="col" { "silos" }
                            @for (name, _) in PARTS { th.number scope="col" { (name) } }
                        } }
                        tbody { @for (name, values, signed) in lines { (line(&name, values, signed)) } }
                    }
                }
            }
        }
    }
}

/// A value of every part of the silos.
fn line(name: &str, mut values: Vec<f64>, signed: bool) -> Markup {
    values.sort_by(f64::total_cmp);
    let decimals = numbers::decimals_of(values.iter().copied());
    let last = values.len() - 1;
    html! {
        tr {
            th scope="row" { (name) }
            td.number { (numbers::count(values.len() as u64)) }
            @for (_, part) in PARTS {
                @let value = values[(part * last as f64).round() as usize];
                td.number {
                    (if signed { numbers::signed(value, decimals) } else { numbers::value(value, decimals) })
                }
            }
        }
    }
}

fn usable(silo: &SiloStory, column: Column) -> Option<f64> {
    let value = column.of(silo)?;
    (value.is_finite() && silo.no_use(column.kind()).is_none()).then_some(value)
}

fn gains(story: &Story) -> impl Iterator<Item = f64> {
    let gains = story
        .silos
        .iter()
        .filter_map(|silo| silo.gain(ModelKind::Coalition, ModelKind::Local));
    gains.map(|gain| gain.by).filter(|by| by.is_finite())
}

/// At how many silos the difference is decided, and how.
fn decided(story: &Story) -> String {
    let gains = || {
        let silos = story.silos.iter();
        silos.map(|silo| silo.gain(ModelKind::Coalition, ModelKind::Local))
    };
    let clear = |up: bool| {
        let clear = gains().flatten();
        clear
            .filter(|gain| gain.is_clear() && (gain.by > 0.0) == up)
            .count()
    };
    let unknown = gains().filter(Option::is_none).count();
    let (up, down, all) = (clear(true), clear(false), story.silos.len());
    format!(
        "Of {} silos {} gain significantly, {} lose significantly, at {} the difference is not significant, and \
         {} hold out too few {} to tell, or have no tuned model of their own.",
        numbers::count(all as u64),
        numbers::count(up as u64),
        numbers::count(down as u64),
        numbers::count((all - up - down - unknown) as u64),
        numbers::count(unknown as u64),
        story.units(),
    )
}

/// The members with a line of their own, by position, the largest gain first: all, or of many those that gain
/// most and those that lose most.
pub(crate) fn listed(story: &Story) -> Vec<usize> {
    let all = 0..story.silos.len();
    if !are_many(story) {
        return all.collect();
    }
    let gain = |at: &usize| {
        let silo = &story.silos[*at];
        let known = silo.gain(ModelKind::Coalition, ModelKind::Local);
        // Where nobody can tell a gain, by the model that was adopted.
        let better = if story.metric.higher_is_better {
            1.0
        } else {
            -1.0
        };
        known
            .map(|gain| gain.by)
            .or(silo.coalition.map(|value| better * value))
    };
    let mut known: Vec<(usize, f64)> = all.filter_map(|at| Some((at, gain(&at)?))).collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = known.iter().take(LISTED);
    let least = known
        .iter()
        .skip(LISTED.max(known.len().saturating_sub(LISTED)));
    most.chain(least).map(|(at, _)| *at).collect()
}

/// That most silos have no line.
pub(crate) fn note(story: &Story, comparison: &ComparisonTable) -> Markup {
    let (most, least) = match comparison.gains.is_empty() {
        true => ("where the model is best", "where it is worst"),
        false => ("that gain most", "that lose most"),
    };
    html! {
        @if are_many(story) {
            p.note {
                "Listed are the " (LISTED) " silos " (most) " and the " (LISTED) " " (least) "; the file below has all "
                (numbers::count(story.silos.len() as u64)) "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_thousand_silos_are_a_summary_and_the_ends_of_a_list() {
        let story = fixture::story(1000, 3, 50);
        let page = crate::page(&story, "rota simulate", "");
        let (before, after) = page.split_once("<h2>").unwrap_or_default();
        // The section that it begins.
        assert!(
            before.matches("<section").count() <= 1,
            "nothing stands before it"
        );
        assert!(after.starts_with("In short</h2>"), "{}", &after[..200]);
        for part in [
            "Of 1,000 silos ",
            ">median</th>",
            "Listed are the 15 silos that gain most",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.len() < 1_200_000, "{} bytes", page.len());
        assert_eq!(
            page.matches("<circle class=\"node\"").count(),
            3,
            "a disc for each coalition"
        );
        // A few have everything.
        let few = fixture::story(20, 3, 5);
        assert_eq!(section(&few, &ComparisonTable::of(&few)).into_string(), "");
        assert_eq!(listed(&few), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn without_references_nobody_is_reported_to_gain_or_lose() {
        for silos in [3, 1000] {
            let mut summary = fixture::summary(silos, 1, 2);
            summary.gains.clear();
            summary.tuning = None;
            for silo in &mut summary.silos {
                silo.gains.clear();
                (silo.local, silo.global, silo.pooled) = (None, None, None);
                (silo.second.local, silo.second.global) = (None, None);
                (silo.local_tuned, silo.served) = (None, None);
            }
            let page = crate::page(&Story::of(&summary, ""), "rota simulate", "");
            let page = page.split("<script").next().unwrap_or_default();
            assert!(page.contains("No reference models were trained"));
            assert!(page.contains("How good the models are"));
            for word in [" gain", " lose ", "significant", "better than"] {
                let before = page.split(word).next().unwrap_or_default();
                assert_eq!(before.len(), page.len(), "{silos} silos: {word}");
            }
        }
    }

    #[test]
    fn the_ends_are_those_that_gain_and_lose_most_and_nobody_twice() {
        let mut story = fixture::story(201, 1, 1);
        let gain = |at: usize, story: &Story| {
            let gain = story.silos[at].gain(ModelKind::Coalition, ModelKind::Local);
            gain.map_or(f64::NAN, |gain| gain.by)
        };
        let shown = listed(&story);
        assert_eq!(shown.len(), 2 * LISTED);
        let gains: Vec<f64> = shown.iter().map(|at| gain(*at, &story)).collect();
        assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
        let mut once = shown.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), shown.len());
        // Few that can tell.
        for silo in story.silos.iter_mut().skip(20) {
            silo.gains.clear();
            silo.coalition = None;
        }
        assert_eq!(listed(&story).len(), 20);
    }
}
