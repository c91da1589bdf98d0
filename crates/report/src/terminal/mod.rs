//! The report on the terminal: aligned text, at most a hundred columns wide.

use std::io::{self, Write};

use lab::summary::{
    FaultInfo, LeftOutMembers, ModelKind, Refused, TrainingFailed, Unusable, ViewLead,
};

use super::comparison::{Cell, ComparisonTable};
use super::story::{SiloStory, Story};
use super::verdict::{between, statements};
use super::{letter, numbers, references};

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
    references::terminal(out, story)?;
    coalitions(out, story)?;
    if !story.is_direct() {
        leads(out, story)?;
    }
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

/// The columns of the table, with their widths.
struct Widths {
    name: usize,
    rows: usize,
    columns: Vec<usize>,
    coalition: usize,
    gain: usize,
}

impl Widths {
    fn of(story: &Story, comparison: &ComparisonTable, gains: &[String]) -> Self {
        let rows = comparison.rows.iter().chain(&comparison.outside);
        let rows: Vec<_> = rows
            .chain([&comparison.means, &comparison.row_means])
            .collect();
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let columns = comparison.columns.iter().enumerate().map(|(at, column)| {
            let cells = rows.iter().filter_map(|row| row.get(at)?.as_ref());
            let title = column.title().chars().count();
            widest(&mut cells.map(|cell| cell.text.chars().count())).max(title)
        });
        let columns: Vec<usize> = columns.collect();
        let silos = || story.silos.iter().chain(&story.outside);
        let letters = silos().map(|silo| coalition(silo, false).chars().count());
        let outside = if story.outside.is_empty() { 0 } else { 7 };
        let mut widths = Self {
            name: 0,
            rows: 10,
            coalition: widest(&mut letters.chain([outside])),
            gain: widest(&mut gains.iter().map(|gain| gain.chars().count())),
            columns,
        };
        let rest = widths.rest();
        let names = widest(&mut silos().map(|silo| silo.name.chars().count()));
        let room = 100usize.saturating_sub(rest).max(6);
        widths.name = names.clamp(13, 32).min(room);
        widths
    }

    /// All that is not the name.
    fn rest(&self) -> usize {
        let columns: usize = self.columns.iter().map(|width| 2 + width + 1).sum();
        let gain = if self.gain > 0 { 2 + self.gain } else { 0 };
        2 + 2 + self.rows + columns + 1 + self.coalition + gain
    }
}

/// The coalition's letter, or `outside`.
fn coalition(silo: &SiloStory, outside: bool) -> String {
    match (outside, silo.in_coalition()) {
        (true, _) => "outside".to_owned(),
        (false, Some(index)) => letter(index),
        (false, None) => "–".to_owned(),
    }
}

fn table(out: &mut impl Write, story: &Story, colour: bool) -> io::Result<()> {
    let comparison = ComparisonTable::of(story);
    let said = statements(story, &comparison);
    if let Some(first) = said.first() {
        writeln!(out)?;
        wrapped(out, 0, first)?;
    }
    if !comparison.columns.is_empty() {
        rows(out, story, &comparison, colour)?;
    }
    if said.len() > 1 {
        writeln!(out)?;
        wrapped(out, 0, &said[1..].join(" "))?;
    }
    for note in &story.notes {
        wrapped(out, 2, &format!("note: {}", numbers::plain(note)))?;
    }
    Ok(())
}

fn rows(
    out: &mut impl Write,
    story: &Story,
    comparison: &ComparisonTable,
    colour: bool,
) -> io::Result<()> {
    writeln!(out)?;
    wrapped(
        out,
        0,
        &format!("On held-out rows: {}{}.", metric(story), star(comparison)),
    )?;
    let gains = gains(story, comparison);
    let lines = TableLines {
        widths: Widths::of(story, comparison, &gains),
        colour,
    };
    lines.head(out, comparison)?;
    let members = story.silos.iter().zip(&comparison.rows);
    let outside = story.outside.iter().zip(&comparison.outside);
    let mut each = gains.iter().map(String::as_str);
    let mut next = || each.next().unwrap_or_default();
    let tested = story.silos.iter().any(|silo| silo.held_out() > 0);
    for (silo, row) in members {
        let gain = next();
        if tested {
            lines.silo(out, silo, row, &coalition(silo, false), gain)?;
        }
    }
    let over = if comparison.common == story.silos.len() || comparison.common == 0 {
        "mean of silos".to_owned()
    } else {
        format!("mean of {}", comparison.common)
    };
    if tested {
        lines.mean(out, &over, &story.silos, &comparison.means)?;
        lines.mean(out, "mean of rows", &story.silos, &comparison.row_means)?;
    }
    for (silo, row) in outside {
        lines.silo(out, silo, row, &coalition(silo, true), next())?;
    }
    if let Some(means) = &comparison.outside_means {
        lines.mean(out, "mean", &story.outside, means)?;
    }
    Ok(())
}

/// Returns what the stars of the table mean; nothing where one model stands alone.
fn star(comparison: &ComparisonTable) -> &'static str {
    if comparison.columns.len() <= 1 {
        return "";
    }
    let marked = comparison.rows.iter().chain(&comparison.outside);
    let mut marked = marked.chain([&comparison.means]).flatten().flatten();
    if marked.any(|cell| cell.best) {
        "; * marks a model that is significantly better than all others in its line"
    } else {
        "; no model is significantly better than all others in its line"
    }
}

/// The title of the last column.
const GAIN: &str = "gain (95 % interval)";

/// The gains of all silos, and the title of their column; nothing where none was compared.
fn gains(story: &Story, comparison: &ComparisonTable) -> Vec<String> {
    if comparison.gains.is_empty() {
        return Vec::new();
    }
    let gain = |silo: &SiloStory| {
        let gain = silo.gain(ModelKind::Coalition, ModelKind::Local);
        gain.map_or("–".to_owned(), |gain| {
            format!(
                "{} ({})",
                numbers::signed(gain.by, comparison.fine()),
                between(gain, comparison)
            )
        })
    };
    let each = story.silos.iter().chain(&story.outside).map(gain);
    each.chain([GAIN.to_owned()]).collect()
}

/// The lines of the table.
struct TableLines {
    widths: Widths,
    colour: bool,
}

impl TableLines {
    fn head(&self, out: &mut impl Write, comparison: &ComparisonTable) -> io::Result<()> {
        let widths = &self.widths;
        let (name, held_out) = (widths.name, widths.rows);
        write!(out, "  {:name$}  {:>held_out$}", "silo", "held out")?;
        for (column, width) in comparison.columns.iter().zip(&widths.columns) {
            write!(out, "  {:>width$} ", column.title())?;
        }
        let title = if comparison.gains.is_empty() {
            ""
        } else {
            GAIN
        };
        let (letters, gained) = (widths.coalition, widths.gain);
        let title = format!(" {:letters$}  {title:>gained$}", "");
        writeln!(out, "{}", title.trim_end())
    }

    fn silo(
        &self,
        out: &mut impl Write,
        silo: &SiloStory,
        row: &[Option<Cell>],
        coalition: &str,
        gain: &str,
    ) -> io::Result<()> {
        let (name, held_out) = (self.widths.name, self.widths.rows);
        let (letters, gained) = (self.widths.coalition, self.widths.gain);
        let short = numbers::short(&silo.name, name);
        let rows = numbers::count(silo.held_out());
        let row = cells(row, &self.widths.columns, self.colour);
        let line = format!(
            "  {short:name$}  {rows:>held_out$}{row} {coalition:letters$}  {gain:>gained$}"
        );
        writeln!(out, "{}", line.trim_end())
    }

    fn mean(
        &self,
        out: &mut impl Write,
        what: &str,
        silos: &[SiloStory],
        means: &[Option<Cell>],
    ) -> io::Result<()> {
        let (name, held_out) = (self.widths.name, self.widths.rows);
        let rows = silos.iter().map(|silo| silo.held_out()).sum();
        let rows = format!("Σ {}", numbers::count(rows));
        let row = cells(means, &self.widths.columns, self.colour);
        writeln!(out, "  {what:name$}  {rows:>held_out$}{}", row.trim_end())
    }
}

fn cells(cells: &[Option<Cell>], widths: &[usize], colour: bool) -> String {
    let text = |(cell, width): (&Option<Cell>, &usize)| match cell {
        Some(cell) if cell.best && colour => {
            format!("  \u{1b}[1;32m{:>width$}*\u{1b}[0m", cell.text)
        }
        Some(cell) if cell.no_use.is_some() && colour => {
            format!("  \u{1b}[1;31m{:>width$} \u{1b}[0m", cell.text)
        }
        Some(cell) if cell.best => format!("  {:>width$}*", cell.text),
        Some(cell) => format!("  {:>width$} ", cell.text),
        None => format!("  {:>width$} ", "–"),
    };
    cells.iter().zip(widths).map(text).collect()
}

/// `mae in points, lower is better`.
pub(crate) fn metric(story: &Story) -> String {
    let metric = &story.metric;
    let unit = if metric.unit.is_empty() {
        String::new()
    } else {
        format!(" in {}", metric.unit)
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
    let views = &story.timeline;
    let listed: Vec<&ViewLead> = if views.len() > MANY_VIEWS {
        views.iter().filter(|view| view.result != "final").collect()
    } else {
        views.iter().collect()
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
            let line = if next.round == round {
                format!(
                    "  {lead} took over round {round} from {}",
                    numbers::plain(&view.lead)
                )
            } else {
                format!("  {lead} led after view {}", view.view)
            };
            wrapped(out, 6, &line)?;
        }
    }
    Ok(())
}

/// Returns how a view ended, in words.
pub(crate) fn ending(story: &Story, view: &ViewLead) -> String {
    let took = numbers::seconds((view.to - view.from).max(0.0));
    let reason = story.reason(view.view).map(numbers::plain);
    match view.result {
        "final" => {
            let round = story
                .rounds
                .iter()
                .find(|round| round.view() == Some(view.view));
            let task = match round {
                Some(round) => {
                    let what = if round.kind == "summarise" {
                        "scales"
                    } else {
                        "models"
                    };
                    format!(
                        "{what} from {}, ",
                        numbers::plural(round.authors.len(), "silo")
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
        _ if story.is_final_before(view) => {
            format!("after the last round; the run ended {took} later")
        }
        _ => format!("under way for {took} when the run ended"),
    }
}

fn trouble(out: &mut impl Write, story: &Story) -> io::Result<()> {
    let sections = [
        ("Of no use:", unusable(story)),
        ("Training failed:", failed(&story.training_failed)),
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

/// The silos at which models are of no use, by model, and why at the first of them.
pub(crate) fn unusable(story: &Story) -> Vec<(String, String)> {
    let all: &[Unusable] = &story.unusable;
    let silos = story.silos.len() + story.outside.len();
    let kinds = [
        (ModelKind::Coalition, "the coalition's model"),
        (ModelKind::Served, "the served model"),
        (ModelKind::Global, "the global model"),
        (ModelKind::GlobalEqual, "the global model of equal weights"),
        (
            ModelKind::OwnIntercept,
            "the global model with own intercepts",
        ),
        (ModelKind::Local, "the local model"),
        (ModelKind::Pooled, "the model of all rows"),
        (ModelKind::Constant, "the constant prediction"),
    ];
    let line = |(kind, what): (ModelKind, &str)| {
        let found = || all.iter().filter(|one| one.model == kind);
        let names: Vec<String> = found().map(|one| one.silo.clone()).collect();
        let first = found().next()?;
        let subject = if names.len() == silos && silos > 1 {
            format!("{what} at all {}", numbers::plural(silos, "silo"))
        } else {
            format!("{what} at {}", numbers::names(&names, 12))
        };
        Some((
            subject,
            match names.len() {
                1 => first.reason.clone(),
                _ => format!("at {} {}", first.silo, first.reason),
            },
        ))
    };
    kinds.into_iter().filter_map(line).collect()
}

/// The silos whose training failed, by reason, and the rounds.
pub(crate) fn failed(all: &[TrainingFailed]) -> Vec<(String, String)> {
    let mut silos: Vec<(&str, Vec<u64>, &str)> = Vec::new();
    for one in all {
        match silos.iter_mut().find(|(silo, ..)| *silo == one.silo) {
            Some((_, rounds, _)) => rounds.push(one.round),
            None => silos.push((&one.silo, vec![one.round], &one.reason)),
        }
    }
    let line = |(silo, rounds, reason): (&str, Vec<u64>, &str)| {
        let numbers: Vec<String> = rounds.iter().take(8).map(u64::to_string).collect();
        let more = if rounds.len() > 8 { " and more" } else { "" };
        let s = if rounds.len() == 1 { "" } else { "s" };
        let subject = format!("{silo}, round{s} {}{more}", numbers.join(", "));
        (subject, reason.to_owned())
    };
    silos.into_iter().map(line).collect()
}

/// The members that a round was finished without, and why.
pub(crate) fn left_out(left: &LeftOutMembers) -> (String, String) {
    let LeftOutMembers {
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
mod tests;
