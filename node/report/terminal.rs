//! The report on the terminal: aligned text, at most a hundred columns wide.

use std::io::{self, Write};

use simulations::summary::{FaultInfo, LeftOut, Refused};

use super::story::{Silo, Story, View};

use super::comparison::{Cell, Comparison};
use super::{letter, numbers};

/// The most views that are listed one by one. Of more, only those that failed are listed.
const MANY_VIEWS: usize = 32;

/// Writes the report. With `colour`, the best values are bold and green.
///
/// # Errors
///
/// Returns the error of the writer, for instance a closed pipe.
pub fn write(out: &mut impl Write, story: &Story, colour: bool) -> io::Result<()> {
    head(out, story)?;
    table(out, story, colour)?;
    coalitions(out, story)?;
    leads(out, story)?;
    trouble(out, story)?;
    facts(out, story)
}

fn head(out: &mut impl Write, story: &Story) -> io::Result<()> {
    writeln!(
        out,
        "{}: a federation of {}, strategy {}, {}, seed {}",
        numbers::plain(&story.scenario),
        numbers::plural(story.silos.len(), "silo"),
        story.strategy,
        numbers::plural(story.rounds.len(), "round"),
        story.seed
    )?;
    wrapped(out, 0, &numbers::plain(&story.description))
}

fn table(out: &mut impl Write, story: &Story, colour: bool) -> io::Result<()> {
    let comparison = Comparison::of(story);
    if !comparison.columns.is_empty() {
        writeln!(out, "\nHeld-out rows, {}; * marks the best:", metric(story))?;
        let name = |text: &str| numbers::short(text, 32);
        let width = story
            .silos
            .iter()
            .chain(&story.outside)
            .map(|silo| name(&silo.name).chars().count());
        let width = width.max().unwrap_or(0).max(6);
        write!(out, "  {:width$}  {:>8}", "silo", "rows")?;
        for column in &comparison.columns {
            write!(out, "  {:>12} ", column.title())?;
        }
        writeln!(out, "  coalition")?;
        for (silo, row) in story.silos.iter().zip(&comparison.rows) {
            let (name, rows) = (name(&silo.name), numbers::count(silo.samples));
            let coalition = silo.coalition_index.map_or("–".to_owned(), letter);
            let row = cells(row, colour);
            writeln!(out, "  {name:width$}  {rows:>8}{row}  {coalition}")?;
        }
        let mean = |silos: &[Silo], means: &[_]| {
            let rows = silos.iter().map(|silo| silo.samples).sum();
            let rows = format!("Σ {}", numbers::count(rows));
            let row = cells(means, colour);
            format!("  {:width$}  {rows:>8}{}", "mean", row.trim_end())
        };
        writeln!(out, "{}", mean(&story.silos, &comparison.means))?;
        for (silo, row) in story.outside.iter().zip(&comparison.outside) {
            let (name, rows) = (name(&silo.name), numbers::count(silo.samples));
            let row = cells(row, colour);
            writeln!(out, "  {name:width$}  {rows:>8}{row}  outside")?;
        }
        if let Some(means) = &comparison.outside_means {
            writeln!(out, "{}", mean(&story.outside, means))?;
        }
    }
    writeln!(out)?;
    wrapped(out, 0, &comparison.verdict())?;
    for note in &story.notes {
        wrapped(out, 2, &format!("note: {}", numbers::plain(note)))?;
    }
    Ok(())
}

fn cells(cells: &[Option<Cell>], colour: bool) -> String {
    let text = |cell: &Option<Cell>| match cell {
        Some(cell) if cell.best && colour => format!("  \u{1b}[1;32m{:>12}*\u{1b}[0m", cell.text),
        Some(cell) if cell.best => format!("  {:>12}*", cell.text),
        Some(cell) => format!("  {:>12} ", cell.text),
        None => format!("  {:>12} ", "–"),
    };
    cells.iter().map(text).collect()
}

/// `mae in points, lower is better`.
pub(crate) fn metric(story: &Story) -> String {
    let metric = &story.metric;
    let unit = match metric.unit.is_empty() {
        true => String::new(),
        false => format!(" in {}", metric.unit),
    };
    let better = if metric.higher_is_better {
        "higher"
    } else {
        "lower"
    };
    format!("{}{unit}, {better} is better", metric.name)
}

fn coalitions(out: &mut impl Write, story: &Story) -> io::Result<()> {
    let coalitions = story.last_coalitions();
    if coalitions.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCoalitions after the last round:")?;
    for (index, members) in coalitions {
        let size = numbers::plural(members.len(), "silo");
        let line = format!(
            "  {:<2} {size:>9}  {}",
            letter(index),
            numbers::names(members, 12)
        );
        wrapped(out, 6, &line)?;
    }
    Ok(())
}

fn leads(out: &mut impl Write, story: &Story) -> io::Result<()> {
    let views = &story.views;
    let listed: Vec<&View> = match views.len() > MANY_VIEWS {
        true => views.iter().filter(|view| view.result != "final").collect(),
        false => views.iter().collect(),
    };
    writeln!(out, "\nLeads:")?;
    for view in listed.iter().take(MANY_VIEWS) {
        let lead = numbers::short(&view.lead, 24);
        let line = format!(
            "  view {:<3} round {:<3} {lead:<24}  {}",
            view.view,
            view.round,
            ending(story, view)
        );
        wrapped(out, 6, &line)?;
    }
    if listed.len() > MANY_VIEWS {
        writeln!(
            out,
            "  … and {} more that did not become final",
            listed.len() - MANY_VIEWS
        )?;
    }
    if listed.len() < views.len() {
        let rest = views.len() - listed.len();
        writeln!(
            out,
            "  {} became final",
            numbers::plural(rest, "other view")
        )?;
    }
    for (view, next) in story.hand_overs().take(MANY_VIEWS) {
        if let Some(next) = next {
            let (round, lead) = (view.round, numbers::plain(&next.lead));
            let line = match next.round == round {
                true => format!(
                    "  {lead} took over round {round} from {}",
                    numbers::plain(&view.lead)
                ),
                false => format!("  {lead} led after view {}", view.view),
            };
            wrapped(out, 6, &line)?;
        }
    }
    Ok(())
}

/// How a view ended, in words.
pub(crate) fn ending(story: &Story, view: &View) -> String {
    let took = numbers::seconds((view.to - view.from).max(0.0));
    let reason = view.reason.as_deref().map(numbers::plain);
    match view.result {
        "final" => {
            let round = story.rounds.iter().find(|round| round.view == view.view);
            let task = match round {
                Some(round) => {
                    let what = if round.scale { "scales" } else { "models" };
                    format!(
                        "{what} from {}, ",
                        numbers::plural(round.contributions, "silo")
                    )
                }
                None => String::new(),
            };
            format!("{task}final after {took}")
        }
        "nullified" => {
            format!(
                "nullified after {took}: {}",
                reason.as_deref().unwrap_or("no reason is known")
            )
        }
        "empty" => format!("empty block, made the block before it final after {took}"),
        _ => format!("under way for {took} when the run ended"),
    }
}

fn trouble(out: &mut impl Write, story: &Story) -> io::Result<()> {
    let sections = [
        (
            "Left out:",
            story.left_out.iter().map(left_out).collect::<Vec<_>>(),
        ),
        ("Refused:", story.refused.iter().map(refused).collect()),
        (
            "Proven by signed evidence:",
            story.faults.iter().map(fault).collect(),
        ),
    ];
    for (title, lines) in sections {
        if lines.is_empty() {
            continue;
        }
        writeln!(out, "\n{title}")?;
        for (subject, reason) in &lines {
            wrapped(out, 6, &numbers::plain(&format!("  {subject}: {reason}")))?;
        }
    }
    Ok(())
}

/// The members that a round was finished without, and why.
pub(crate) fn left_out(left: &LeftOut) -> (String, String) {
    let LeftOut {
        round,
        view,
        lead,
        members,
        reason,
    } = left;
    let subject = format!("{}, round {round}", numbers::names(members, 12));
    (subject, format!("{reason}; view {view}, led by {lead}"))
}

/// The member and round of a refused message, and why it was refused.
pub(crate) fn refused(refused: &Refused) -> (String, String) {
    let round = match refused.round {
        0 => String::new(),
        round => format!(", round {round}"),
    };
    let times = if refused.times == 1 {
        String::new()
    } else {
        format!(" ({} times)", refused.times)
    };
    (
        format!("{}{round}", refused.member),
        format!("{}{times}", refused.reason),
    )
}

/// The member that broke a rule, and how.
pub(crate) fn fault(fault: &FaultInfo) -> (String, String) {
    let seen = numbers::plural(fault.seen_by.len(), "member");
    (
        fault.member.clone(),
        format!("{}; {seen} hold the evidence", fault.charge),
    )
}

fn facts(out: &mut impl Write, story: &Story) -> io::Result<()> {
    writeln!(out)?;
    for (name, text) in &story.facts {
        wrapped(out, 10, &format!("{name:<9} {text}"))?;
    }
    Ok(())
}

/// Writes a text in lines of at most a hundred columns. All lines but the first are indented by
/// `indent` columns.
///
/// # Errors
///
/// Returns the error of the writer.
pub fn wrapped(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    let indent = " ".repeat(indent);
    let options = textwrap::Options::new(100)
        .subsequent_indent(&indent)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    for line in textwrap::wrap(text, options) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::fixture;

    fn text(story: &Story, colour: bool) -> String {
        let mut out = Vec::new();
        write(&mut out, story, colour).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_report_has_leads_failed_views_reasons_and_hand_overs() {
        let text = text(&fixture::story(8, 2, 4), false);
        for part in [
            "a federation of 8 silos, strategy cs-rcfl, 4 rounds, seed 7",
            "nullified after 2.0 s: the lead was silent",
            "left-out-reason",
            "took over round 2 from",
            "A    4 silos",
            "refused-reason",
            "charge-text",
            "memo      off",
            "safety    S1–S9 held after each of 54,321 events",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn lines_are_at_most_a_hundred_columns_and_without_colour_by_default() {
        for silos in [1, 8, 100] {
            let mut story = fixture::story(silos, 3.min(silos), 40);
            story.silos[0].name = "a hospital with a name that goes on and on for no reason".into();
            story.silos[0].samples = 1_234_567;
            let text = text(&story, false);
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{line}");
                assert!(!line.contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn only_the_best_values_are_coloured() {
        let story = fixture::story(4, 2, 2);
        let comparison = Comparison::of(&story);
        let rows = comparison.rows.iter().chain([&comparison.means]);
        let best = rows.flatten().flatten().filter(|cell| cell.best).count();
        assert!(best >= 4);
        assert_eq!(text(&story, true).matches("\u{1b}[1;32m").count(), best);
    }

    #[test]
    fn an_empty_federation_has_a_report_without_a_table() {
        let mut story = fixture::story(1, 1, 1);
        story.silos.clear();
        story.rounds.clear();
        story.views.clear();
        assert!(text(&story, false).contains("Nothing was measured"));
    }
}
