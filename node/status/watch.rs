//! The status as a screen of the terminal that follows the node, for `rota watch`.

use std::io;
use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, LineGauge, Paragraph, Row, Table, Wrap};

use super::Status;
use super::document::PeerStatus;
use super::socket::SocketError;
use super::text::{ago, position, round_trip, short, through};
use formatting::numbers::{count, decimals, plain, value};

/// Time after which the node is asked again.
const AGAIN: Duration = Duration::from_millis(500);
/// Screens below this width get lines instead of columns.
pub(super) const NARROW: u16 = 72;

/// A document that a screen follows.
pub trait Followed {
    /// Returns when the node made it.
    fn time(&self) -> &str;
    /// Draws it.
    fn draw(&self, frame: &mut Frame<'_>, area: Rect);
}

impl Followed for Status {
    fn time(&self) -> &str {
        &self.time
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        whole(frame, area, self);
    }
}

/// Content of the screen.
#[derive(Debug)]
pub struct Screen<T> {
    /// The last document.
    pub status: Option<T>,
    /// Reason for which there is no newer one; `None` while the node answers.
    pub problem: Option<String>,
}

/// Shows the screen until the user quits. `ask` asks the node.
///
/// # Errors
/// The terminal cannot be used.
pub fn run<T: Followed>(mut ask: impl FnMut() -> Result<T, SocketError>) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let mut screen = Screen {
        status: None,
        problem: None,
    };
    let ended = loop {
        match ask() {
            Ok(status) => (screen.status, screen.problem) = (Some(status), None),
            Err(error) => screen.problem = Some(error.to_string()),
        }
        if let Err(error) = terminal.draw(|frame| draw(frame, &screen)) {
            break Err(error);
        }
        match quits() {
            Ok(true) => break Ok(()),
            Ok(false) => {}
            Err(error) => break Err(error),
        }
    };
    ended.and(ratatui::try_restore())
}

/// Waits for the next look at the node, or for a key. True if the user quits.
fn quits() -> io::Result<bool> {
    if !event::poll(AGAIN)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else {
        return Ok(false);
    };
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let quit = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || control_c;
    Ok(quit && key.kind == KeyEventKind::Press)
}

/// Draws the screen.
pub fn draw<T: Followed>(frame: &mut Frame<'_>, screen: &Screen<T>) {
    let [body, foot] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let mut foots = vec![Span::styled(" q ", bold()), Span::raw("quits")];
    match (&screen.status, &screen.problem) {
        (None, Some(problem)) => {
            let text = Paragraph::new(plain(problem)).wrap(Wrap { trim: true });
            frame.render_widget(text, body);
        }
        (None, None) => {}
        (Some(status), problem) => {
            let body = match problem {
                None => body,
                Some(problem) => {
                    let said =
                        format!("{} (last seen at {})", plain(problem), clock(status.time()));
                    let lines = height(&said, body.width).min(body.height / 2);
                    let [top, rest] =
                        Layout::vertical([Constraint::Length(lines), Constraint::Min(0)])
                            .areas(body);
                    let said = Paragraph::new(said).style(bad()).wrap(Wrap { trim: true });
                    frame.render_widget(said, top);
                    rest
                }
            };
            status.draw(frame, body);
            foots.push(Span::raw(format!("   as of {} UTC", clock(status.time()))));
        }
    }
    frame.render_widget(Line::from(foots).style(dim()), foot);
}

fn whole(frame: &mut Frame<'_>, area: Rect, status: &Status) {
    let head = head(status);
    let lines: u16 = head
        .iter()
        .map(|line| height(&line.to_string(), area.width))
        .sum();
    let training = u16::from(status.training.is_some());
    let narrow = area.width < NARROW;
    let members: u16 = if narrow {
        member_lines(status)
            .iter()
            .map(|line| height(&line.to_string(), area.width.saturating_sub(2)))
            .sum()
    } else {
        let (_, state) = member_widths(status, area.width);
        let lines = |peer: &PeerStatus| state_lines(peer, state).len() as u16;
        status.peers.iter().map(lines).sum()
    };
    // The rounds get at least a third of what the head leaves.
    let left = area.height.saturating_sub(lines + training);
    let members = (members + 2).min(left - left / 3);
    let [top, gauge, middle, bottom] = Layout::vertical([
        Constraint::Length(lines),
        Constraint::Length(training),
        Constraint::Length(members),
        Constraint::Min(0),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head).wrap(Wrap { trim: true }), top);
    progress(frame, gauge, status);
    member_table(frame, middle, status, narrow);
    rounds(frame, bottom, status, narrow);
}

fn head(status: &Status) -> Vec<Line<'static>> {
    let federation = &status.federation;
    let mut lines = vec![Line::from(vec![
        Span::styled(plain(&status.silo), bold()),
        Span::raw(format!(
            " · {} ({})",
            plain(&federation.name),
            short(&federation.id)
        )),
    ])];
    let place = if status.complete {
        position(status)
    } else {
        format!("round {}", position(status))
    };
    lines.push(Line::from(plain(&place)));
    match &status.waiting {
        Some(waiting) => {
            let said = format!("takes no part: {}", plain(waiting));
            lines.push(Line::styled(said, bad()));
        }
        None if status.complete => {}
        None => lines.push(Line::from(vec![
            Span::styled("phase ", dim()),
            Span::styled(plain(&status.phase), accent()),
        ])),
    }
    if let Some(said) = &status.void_sums {
        lines.push(Line::styled(plain(said), bad()));
    }
    if let Some(round) = status.adopted() {
        let mut said = format!("coalition {} of {}", round.coalition + 1, round.coalitions);
        if let Some((measured, held_out)) = status.measured() {
            said += &format!(", {} (round {})", held_out.text(), measured.round);
        }
        lines.push(Line::from(vec![
            Span::styled("adopted model ", dim()),
            Span::raw(plain(&said)),
        ]));
    }
    if let Some(serves) = &status.serves {
        lines.push(Line::from(vec![
            Span::styled("serves ", dim()),
            Span::raw(plain(&serves.text())),
        ]));
    }
    lines
}

fn progress(frame: &mut Frame<'_>, area: Rect, status: &Status) {
    let Some(training) = &status.training else {
        return;
    };
    let ratio = match training.steps {
        0 => 0.0,
        steps => (training.step as f64 / steps as f64).min(1.0),
    };
    let loss = training.loss.map(|loss| format!(" loss {loss:.4}"));
    let label = format!(
        "training {:>3.0} %{}",
        ratio * 100.0,
        loss.unwrap_or_default()
    );
    let gauge = LineGauge::default()
        .ratio(ratio)
        .label(label)
        .filled_symbol("█")
        .unfilled_symbol("░")
        .filled_style(if training.running { accent() } else { dim() })
        .unfilled_style(dim());
    frame.render_widget(gauge, area);
}

/// Members that are not connected first, where not all fit.
fn ordered(status: &Status, room: usize) -> Vec<&PeerStatus> {
    let mut peers: Vec<_> = status.peers.iter().collect();
    if peers.len() > room {
        peers.sort_by_key(|peer| peer.connected);
    }
    peers
}

/// Columns of the table of members beside their names: round trip and time.
const COLUMNS: (u16, u16) = (9, 12);

/// Columns of the longest name, and of the state.
fn member_widths(status: &Status, width: u16) -> (u16, u16) {
    let names = status.peers.iter().map(|peer| peer.name.chars().count());
    let name = names.max().unwrap_or(0).min(24) as u16;
    // Two borders, and a space between columns.
    let state = width.saturating_sub(name + COLUMNS.0 + COLUMNS.1 + 5);
    (name, state)
}

/// The state of a member, on as many lines as it takes.
fn state_lines(peer: &PeerStatus, width: u16) -> Vec<String> {
    let text = match (&peer.problem, peer.connected) {
        (_, true) => connected(peer),
        (Some(problem), false) => plain(problem),
        (None, false) => "not connected yet".to_owned(),
    };
    let lines = textwrap::wrap(&text, usize::from(width.max(1)));
    lines.into_iter().map(|line| line.into_owned()).collect()
}

fn state_style(peer: &PeerStatus) -> Style {
    match (&peer.problem, peer.connected) {
        (_, true) => good(),
        (Some(_), false) => bad(),
        (None, false) => dim(),
    }
}

fn member_table(frame: &mut Frame<'_>, area: Rect, status: &Status, narrow: bool) {
    let (connected, others) = (status.connected(), status.peers.len());
    let needed = status.federation.quorum.saturating_sub(1);
    let title = if narrow {
        format!(" {connected} of {others} connected, {needed} needed ")
    } else {
        format!(" {connected} of {others} others connected, a round needs {needed} ")
    };
    let block = Block::bordered().title(title).border_style(dim());
    if narrow {
        let lines = Paragraph::new(member_lines(status)).wrap(Wrap { trim: true });
        return frame.render_widget(lines.block(block), area);
    }
    let room = usize::from(area.height.saturating_sub(2));
    let (name, state) = member_widths(status, area.width);
    let rows = ordered(status, room).into_iter().map(|peer| {
        let since = peer.since.as_deref().map(|since| ago(status, since));
        let trip = round_trip(peer).unwrap_or_default();
        let lines = state_lines(peer, state);
        let height = lines.len() as u16;
        let lines = lines
            .into_iter()
            .map(|line| Line::styled(line, state_style(peer)));
        Row::new(vec![
            Text::from(plain(&peer.name)),
            lines.collect::<Text<'_>>(),
            Text::from(trip).alignment(Alignment::Right),
            Text::from(since.unwrap_or_default()).alignment(Alignment::Right),
        ])
        .height(height)
    });
    let widths = [name, state, COLUMNS.0, COLUMNS.1].map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

fn member_lines(status: &Status) -> Vec<Line<'static>> {
    let line = |peer: &PeerStatus| {
        let name = Span::raw(format!("{} ", plain(&peer.name)));
        let state = state_lines(peer, u16::MAX).concat();
        // Through whom it goes takes the room of the round trip.
        let trip = round_trip(peer).filter(|_| peer.connected && peer.through.is_none());
        let trip = trip.map_or(String::new(), |trip| format!(" {trip}"));
        let state = Span::styled(format!("{state}{trip}"), state_style(peer));
        Line::from(vec![name, state])
    };
    status.peers.iter().map(line).collect()
}

fn connected(peer: &PeerStatus) -> String {
    let through = plain(&through(peer));
    if peer.complete {
        format!("connected{through}, holds the last round")
    } else {
        format!("connected{through}")
    }
}

fn rounds(frame: &mut Frame<'_>, area: Rect, status: &Status, narrow: bool) {
    let metric = status
        .measured()
        .map(|(_, held_out)| held_out.metric.clone());
    let metric = metric.unwrap_or_else(|| "held out".to_owned());
    let block = Block::bordered()
        .title(" adopted rounds ")
        .border_style(dim());
    let right = |text: String| Line::from(text).alignment(Alignment::Right);
    let rows = status.rounds.iter().rev().map(|round| {
        let measured = round.held_out.as_ref().map(|held_out| {
            let found = held_out.metrics.get(&held_out.metric);
            found.map_or("not finite".to_owned(), |&found| {
                value(found, decimals(found))
            })
        });
        let loss = round.loss.map(|loss| format!("{loss:.4}"));
        let coalition = format!("{} of {}", round.coalition + 1, round.coalitions);
        let mut cells = vec![
            right(round.round.to_string()),
            Line::from(coalition),
            right(loss.unwrap_or_default()),
            right(measured.unwrap_or_default()),
        ];
        if !narrow {
            let lead = round.lead.as_deref().unwrap_or_default();
            cells.push(Line::from(plain(lead)));
            let models = round.models.map(count).unwrap_or_default();
            cells.push(right(models));
            cells.push(right(ago(status, &round.time)));
        }
        Row::new(cells)
    });
    let mut titles = vec![
        right("round".into()),
        Line::from("coalition"),
        right("loss".into()),
        right(metric),
    ];
    let mut widths = vec![
        Constraint::Length(5),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(10),
    ];
    if !narrow {
        titles.push(Line::from("lead"));
        titles.push(right("models".into()));
        titles.push(right("ago".into()));
        widths.extend([
            Constraint::Fill(1),
            Constraint::Length(6),
            Constraint::Length(12),
        ]);
    }
    let table = Table::new(rows, widths)
        .header(Row::new(titles).style(dim()))
        .block(block);
    frame.render_widget(table, area);
}

/// Lines that a text takes at this width.
pub(super) fn height(text: &str, width: u16) -> u16 {
    let paragraph = textwrap::wrap(text, usize::from(width.max(1)));
    (paragraph.len() as u16).max(1)
}

/// The time of day of one of the document's times.
fn clock(time: &str) -> &str {
    time.split_once('T')
        .and_then(|(_, clock)| clock.get(..8))
        .unwrap_or(time)
}

pub(super) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(super) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn good() -> Style {
    Style::new().fg(Color::Green)
}

pub(super) fn bad() -> Style {
    Style::new().fg(Color::Red)
}

fn accent() -> Style {
    Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::status::{all, fixture};

    fn drawn<T: Followed>(screen: &Screen<T>, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, screen)).unwrap();
        let buffer = terminal.backend().buffer();
        let cell = |x, y| buffer[(x, y)].symbol();
        let line = |y| (0..width).map(|x| cell(x, y)).collect::<String>();
        let lines = (0..height).map(|y| line(y).trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn compare(name: &str, actual: &str) {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("status/golden")
            .join(name);
        if std::env::var("ROTA_GOLDEN").is_ok_and(|value| value == "write") {
            std::fs::write(&file, format!("{actual}\n")).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(format!("{actual}\n"), expected, "{}", file.display());
    }

    #[test]
    fn the_screen_shows_round_members_and_metrics_in_any_width() {
        let mut screen = Screen {
            status: Some(fixture::status()),
            problem: None,
        };
        compare("wide.txt", &drawn(&screen, 100, 24));
        compare("narrow.txt", &drawn(&screen, 40, 24));
        // The node ended: the last status stays, under the reason.
        screen.problem = Some("no node runs with the state folder state".into());
        compare("ended.txt", &drawn(&screen, 80, 20));
    }

    #[test]
    fn all_nodes_are_shown_in_any_width_with_trouble_first() {
        let mut screen = Screen {
            status: Some(all::fixture::nodes()),
            problem: None,
        };
        compare("nodes.txt", &drawn(&screen, 80, 24));
        compare("nodes-narrow.txt", &drawn(&screen, 40, 12));
        // A screen on which not all fit has those in trouble first.
        let nodes = screen.status.as_mut().unwrap();
        let well = nodes.nodes[0].clone();
        let well = |name: &str| all::NodeStatus {
            name: name.into(),
            status: well.status.clone().map(|doing| all::Doing {
                unconnected: Vec::new(),
                ..doing
            }),
            ..well.clone()
        };
        nodes.nodes = [well("a"), well("b"), well("c"), nodes.nodes[2].clone()].into();
        assert!(drawn(&screen, 80, 8).contains("does not answer over UDP"));
    }

    #[test]
    fn every_size_can_be_drawn() {
        let mut status = fixture::status();
        status.peers = (0..200).map(|_| status.peers[1].clone()).collect();
        let with = Screen {
            status: Some(status),
            problem: Some("no node runs".into()),
        };
        let without = Screen::<Status> {
            status: None,
            problem: Some("no node runs".into()),
        };
        let all = Screen {
            status: Some(all::fixture::nodes()),
            problem: Some("no node runs".into()),
        };
        for width in [1, 2, 10, 71, 72, 300] {
            for height in [1, 2, 3, 5, 12, 60] {
                drawn(&with, width, height);
                drawn(&without, width, height);
                drawn(&all, width, height);
            }
        }
        assert!(drawn(&without, 40, 4).starts_with("no node runs"));
    }

    #[test]
    fn a_member_that_is_not_connected_is_listed_where_not_all_fit() {
        let mut status = fixture::status();
        let up = status.peers[0].clone();
        status.peers = (0..40)
            .map(|_| up.clone())
            .chain([status.peers[1].clone()])
            .collect();
        let screen = Screen {
            status: Some(status),
            problem: None,
        };
        assert!(drawn(&screen, 100, 20).contains("does not answer over UDP"));
    }
}
