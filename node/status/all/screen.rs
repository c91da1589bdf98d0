//! The status of all nodes as a screen of the terminal, for `rota watch --federation`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};

use super::text::round;
use super::{Doing, NodeStatus, Nodes};
use crate::status::text::short as digits;
use crate::status::watch::{Followed, NARROW, bad, bold, dim, height};
use formatting::numbers::{bytes, plain, short};

/// Most columns of a name.
const NAME: usize = 20;

impl Followed for Nodes {
    fn time(&self) -> &str {
        &self.time
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        draw(frame, area, self);
    }
}

/// Draws all nodes: those that are in trouble first, where not all fit.
fn draw(frame: &mut Frame<'_>, area: Rect, nodes: &Nodes) {
    let federation = &nodes.federation;
    let mut head = vec![
        Line::from(vec![
            Span::styled(plain(&federation.name), bold()),
            Span::raw(format!(
                " ({}), as the node of {} sees it",
                digits(&federation.id),
                plain(&nodes.silo)
            )),
        ]),
        Line::from(format!(
            "{} members, a round needs {}, {} agreed rounds",
            federation.members, federation.quorum, federation.rounds
        )),
    ];
    head.extend(nodes.hint().map(|hint| Line::styled(hint, dim())));
    let lines: u16 = head
        .iter()
        .map(|line| height(&line.to_string(), area.width))
        .sum();
    let [top, rest] = Layout::vertical([Constraint::Length(lines), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(head).wrap(Wrap { trim: true }), top);
    let answer = nodes.nodes.iter().filter(|node| node.status.is_some());
    let title = format!(" {} of {} nodes answer ", answer.count(), nodes.nodes.len());
    let block = Block::bordered().title(title).border_style(dim());
    let inner = usize::from(rest.width.saturating_sub(2).max(1));
    let all = ordered(nodes, rest);
    let lines = if area.width < NARROW {
        all.into_iter()
            .flat_map(|node| narrow(node, inner))
            .collect()
    } else {
        wide(&all, inner)
    };
    frame.render_widget(Paragraph::new(lines).block(block), rest);
}

/// Nodes in trouble first, where a line for each does not fit.
fn ordered(nodes: &Nodes, area: Rect) -> Vec<&NodeStatus> {
    let mut all: Vec<_> = nodes.nodes.iter().collect();
    let lines: usize = all
        .iter()
        .map(|node| 1 + usize::from(node.trouble().is_some()))
        .sum();
    if lines + 3 > usize::from(area.height) {
        all.sort_by_key(|node| node.trouble().is_none());
    }
    all
}

/// The name and what the node does; below, what is the matter.
fn narrow(node: &NodeStatus, width: usize) -> Vec<Line<'static>> {
    let mut lines = match &node.status {
        Some(doing) => {
            let said = format!("{} · {} · {}", name(node), round(doing), doing.doing());
            folded(&said, width, style(node))
        }
        None => folded(&name(node), width, style(node)),
    };
    let trouble = node.trouble().unwrap_or_default();
    lines.extend(below(&trouble, width));
    lines
}

/// Columns of what each node says, and below a node what is the matter.
fn wide(nodes: &[&NodeStatus], width: usize) -> Vec<Line<'static>> {
    const TITLES: [&str; 5] = ["node", "round", "adopted", "disk free", "version"];
    let cells = |node: &NodeStatus| {
        let doing = node.status.as_ref();
        let cell = |of: fn(&Doing) -> String| doing.map(of).unwrap_or_default();
        [
            name(node),
            cell(round),
            cell(Doing::adopted),
            cell(|doing| doing.free.map(bytes).unwrap_or_default()),
            cell(|doing| plain(&doing.version)),
        ]
    };
    let rows: Vec<_> = nodes.iter().map(|node| cells(node)).collect();
    let columns: [usize; 5] = std::array::from_fn(|column| {
        let of = rows.iter().map(|row| row[column].chars().count());
        of.max().unwrap_or(0).max(TITLES[column].len())
    });
    let line = |cells: &[String]| {
        let each = cells
            .iter()
            .zip(columns)
            .map(|(cell, width)| format!("{cell:width$}"));
        each.collect::<Vec<_>>().join("  ") + "  "
    };
    let head = line(&TITLES.map(str::to_owned));
    let indent = head.chars().count();
    let mut lines = vec![Line::styled(format!("{head}now"), dim())];
    for (node, cells) in nodes.iter().zip(&rows) {
        let now = node.status.as_ref().map(Doing::doing).unwrap_or_default();
        let mut now = textwrap::wrap(&now, width.saturating_sub(indent).max(10)).into_iter();
        let first = now.next().unwrap_or_default();
        lines.push(Line::styled(line(cells) + &plain(&first), style(node)));
        lines.extend(now.map(|rest| Line::from(format!("{:indent$}{}", "", plain(&rest)))));
        lines.extend(below(&node.trouble().unwrap_or_default(), width));
    }
    lines
}

/// The name, cut where it is long.
fn name(node: &NodeStatus) -> String {
    short(&plain(&node.name), NAME)
}

/// The node that was asked stands out.
fn style(node: &NodeStatus) -> Style {
    if node.own { bold() } else { Style::new() }
}

/// Returns what is the matter, below a node; nothing if nothing is.
fn below(trouble: &str, width: usize) -> Vec<Line<'static>> {
    let lines = folded(trouble, width.saturating_sub(2).max(1), bad()).into_iter();
    let indented = lines.map(|mut line| {
        line.spans.insert(0, Span::raw("  "));
        line
    });
    indented.filter(|_| !trouble.is_empty()).collect()
}

fn folded(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let lines = textwrap::wrap(text, width.max(1));
    let styled = |line: std::borrow::Cow<'_, str>| Line::styled(plain(&line), style);
    lines.into_iter().map(styled).collect()
}
