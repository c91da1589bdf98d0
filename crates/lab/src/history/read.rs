//! Reads the JSON lines of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::rotation::{MemberEvent, StoppedMember, TimelineView, take_overs};

use super::lines::{HistoryError, NodeLog, node};
use super::stops::{StoppedNode, given, stops};
use super::{History, HistoryRound, MetricValue, PrivacySaid};
use node::events::NodeEvent;
use node::status::document::HeldOutMetrics;

/// Knowledge of the nodes besides their logs.
#[derive(Debug, Clone, Default)]
pub struct StopsAndClocks {
    /// Stops of nodes; `None`: those in the logs.
    pub stops: Option<Vec<StoppedNode>>,
    /// For each log, the seconds by which the clock of its machine is ahead; 0 for those beyond the
    /// end.
    pub ahead: Vec<f64>,
}

/// The history in these files, at least one. Where rounds have noise, they are those of one institution.
///
/// # Errors
/// [`HistoryError`]: a file that cannot be read or holds no lines of a node, several federations, or several
/// institutions that add noise.
pub fn read(files: &[PathBuf]) -> Result<History, HistoryError> {
    let history = read_known(files, &StopsAndClocks::default())?;
    if history.privacy.as_ref().is_some_and(|said| said.noised)
        && let Some(first) = history.logs.first()
        && let Some(other) = history.logs.iter().find(|log| log.silo != first.silo)
    {
        return Err(HistoryError::Noised {
            file: (&other.file).into(),
            other: other.silo.clone(),
            first: first.silo.clone(),
        });
    }
    Ok(history)
}

/// Reads the history in these files, where more is known than the files say.
///
/// # Errors
/// [`HistoryError`], as for [`read`].
pub fn read_known(files: &[PathBuf], known: &StopsAndClocks) -> Result<History, HistoryError> {
    let ahead = known.ahead.iter().copied().chain(std::iter::repeat(0.0));
    let nodes: Vec<NodeLog> = files
        .iter()
        .zip(ahead)
        .map(|(file, ahead)| node(file, ahead))
        .collect::<Result<_, _>>()?;
    let expected = nodes.first().map_or("", |node| node.federation.as_str());
    for (node, file) in nodes.iter().zip(files) {
        if node.federation != expected {
            return Err(HistoryError::Federation {
                file: file.clone(),
                found: node.federation.clone(),
                expected: expected.to_owned(),
            });
        }
    }
    Ok(together(&nodes, known.stops.as_deref()))
}

fn together(nodes: &[NodeLog], stopped: Option<&[StoppedNode]>) -> History {
    let lines = || {
        nodes
            .iter()
            .flat_map(|node| node.lines.iter().map(move |line| (node, line)))
    };
    let times = || lines().map(|(_, line)| line.at);
    let (began, ended) = (
        times().fold(f64::INFINITY, f64::min),
        times().fold(0.0, f64::max),
    );
    let mut names: BTreeSet<String> = nodes.iter().map(|node| node.log.silo.clone()).collect();
    for (_, line) in lines() {
        names.extend(named(&line.event).map(str::to_owned));
    }
    let silos: Vec<String> = names.into_iter().collect();
    let place = |name: &str| silos.iter().position(|silo| silo == name);
    let stops = match stopped {
        Some(stopped) => stopped
            .iter()
            .filter_map(|stop| given(stop, &place))
            .collect(),
        None => stops(nodes, ended, &place),
    };
    let mut found = MergedLogs::default();
    for (node, line) in lines() {
        found.take(node, &line.event, line.at - began, &place);
    }
    let MergedLogs {
        mut events,
        rounds,
        nullified,
        metrics,
        privacy,
    } = found;
    for stop in &stops {
        events.push(MemberEvent::Stopped {
            at: stop.at - began,
            member: stop.member,
        });
    }
    let moved = |stop: StoppedMember| StoppedMember {
        at: stop.at - began,
        back: stop.back.map(|back| back - began),
        ..stop
    };
    let first = lines().min_by(|a, b| a.1.at.total_cmp(&b.1.at));
    let first = first.map(|(_, line)| line.time.as_str());
    History {
        federation: nodes
            .first()
            .map_or(String::new(), |node| node.federation.clone()),
        federation_name: nodes
            .iter()
            .map(|node| node.federation_name.clone())
            .find(|name| !name.is_empty())
            .unwrap_or_default(),
        began: first.unwrap_or_default().to_owned(),
        seconds: ended - began,
        logs: nodes.iter().map(|node| node.log.clone()).collect(),
        views: views(&events, &rounds, &nullified, ended - began),
        take_overs: take_overs(&events),
        stops: stops.into_iter().map(moved).collect(),
        rounds: rounds.into_values().collect(),
        metrics,
        privacy: privacy.map(|(_, said)| said),
        silos,
    }
}

/// Joint content of the lines of all nodes.
#[derive(Default)]
struct MergedLogs {
    events: Vec<MemberEvent>,
    /// The rounds that became final.
    rounds: BTreeMap<u64, HistoryRound>,
    /// The views that were nullified.
    nullified: BTreeSet<u64>,
    metrics: Vec<MetricValue>,
    /// The newest word on privacy, with its time.
    privacy: Option<(f64, PrivacySaid)>,
}

impl MergedLogs {
    /// Takes an event of a node, so many seconds after the first of all. `place` gives a silo's position.
    fn take(
        &mut self,
        node: &NodeLog,
        event: &NodeEvent,
        at: f64,
        place: &dyn Fn(&str) -> Option<usize>,
    ) {
        match event {
            NodeEvent::View { view, lead, round } => {
                self.events
                    .extend(place(lead).map(|lead| MemberEvent::Entered {
                        at,
                        view: *view,
                        lead,
                        round: *round,
                    }));
            }
            NodeEvent::Nullified { view, .. } => {
                self.nullified.insert(*view);
            }
            NodeEvent::Final {
                view,
                round,
                lead,
                authors,
                contributors,
                ..
            } => {
                let (view, round) = (*view, *round);
                let Some(lead) = place(lead) else { return };
                self.events.push(MemberEvent::Final {
                    at,
                    round,
                    view,
                    lead,
                });
                let contributors = contributors.iter().filter_map(|name| place(name));
                let known = self.rounds.entry(round).or_insert(HistoryRound {
                    round,
                    view,
                    lead,
                    at,
                    authors: *authors as u64,
                    contributors: contributors.collect(),
                });
                known.at = known.at.min(at);
            }
            NodeEvent::Adopted {
                round,
                held_out: Some(held_out),
                ..
            } => {
                self.metrics
                    .extend(metric(held_out, place(&node.log.silo), *round));
            }
            NodeEvent::Privacy {
                learned,
                officer,
                noised,
            } => {
                let said = PrivacySaid {
                    by: node.log.silo.clone(),
                    learned: learned.clone(),
                    officer: officer.clone(),
                    noised: *noised,
                };
                self.said(at, said);
            }
            _ => {}
        }
    }

    /// Takes the word of a node on privacy, unless a later one is known: the agreement may have changed.
    fn said(&mut self, at: f64, said: PrivacySaid) {
        let noised = said.noised || self.privacy.as_ref().is_some_and(|(_, known)| known.noised);
        let before = self.privacy.as_ref().map(|(before, _)| *before);
        if before.is_none_or(|before| at >= before) {
            self.privacy = Some((at, said));
        }
        if let Some((_, known)) = &mut self.privacy {
            known.noised = noised;
        }
    }
}

/// The silos that an event names as leads or contributors.
fn named(event: &NodeEvent) -> impl Iterator<Item = &str> {
    let (lead, contributors) = match event {
        NodeEvent::View { lead, .. } => (Some(lead), &[][..]),
        NodeEvent::Nullified { lead, .. } => (lead.as_ref(), &[][..]),
        NodeEvent::Final {
            lead, contributors, ..
        } => (Some(lead), &contributors[..]),
        _ => (None, &[][..]),
    };
    lead.into_iter().chain(contributors).map(String::as_str)
}

/// The metric that reports compare, of a model on a silo's own held-out rows.
fn metric(held_out: &HeldOutMetrics, silo: Option<usize>, round: u64) -> Option<MetricValue> {
    Some(MetricValue {
        silo: silo?,
        round,
        name: held_out.metric.clone(),
        value: *held_out.metrics.get(&held_out.metric)?,
    })
}

/// The views, by what nodes said when they entered them and how they ended.
fn views(
    events: &[MemberEvent],
    rounds: &BTreeMap<u64, HistoryRound>,
    nullified: &BTreeSet<u64>,
    end: f64,
) -> Vec<TimelineView> {
    let mut views = BTreeMap::<u64, TimelineView>::new();
    for event in events {
        let MemberEvent::Entered {
            at,
            view,
            lead,
            round,
        } = *event
        else {
            continue;
        };
        let known = views.entry(view).or_insert_with(|| TimelineView {
            view,
            lead,
            from: at,
            to: end,
            round,
            result: "open",
        });
        known.from = known.from.min(at);
        if round > known.round {
            (known.lead, known.round) = (lead, round);
        }
    }
    let newest = views.keys().next_back().copied().unwrap_or(0);
    let finals: BTreeMap<u64, usize> = rounds
        .values()
        .map(|round| (round.view, round.lead))
        .collect();
    let starts: Vec<f64> = views.values().map(|view| view.from).collect();
    let mut views: Vec<TimelineView> = views.into_values().collect();
    for (view, next) in views.iter_mut().zip(starts.into_iter().skip(1)) {
        view.to = next.max(view.from);
    }
    let worked: BTreeMap<u64, u64> = rounds
        .values()
        .map(|round| (round.view, round.round))
        .collect();
    for view in &mut views {
        // Nodes may have entered it before they knew that the round before was final.
        let next = worked.range(view.view..).next();
        view.round = next.map_or(view.round, |(_, round)| *round);
        view.result = match finals.get(&view.view) {
            Some(&lead) => {
                view.lead = lead;
                "final"
            }
            None if nullified.contains(&view.view) => "nullified",
            None if view.view < newest => "empty",
            None => "open",
        };
    }
    views
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use node::events;

    fn file(name: &str, text: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rota-history-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    fn said(second: u32, event: NodeEvent) -> String {
        let time = format!("2026-03-01T10:00:{second:02}.000Z");
        let at = Some(f64::from(second));
        serde_json::to_string(&events::Line { event, at, time }).unwrap()
    }

    fn start(silo: &str, second: u32) -> String {
        let event = NodeEvent::Start {
            member: silo.into(),
            member_index: 0,
            members: 2,
            rounds: 2,
            federation: "ab".into(),
            federation_name: "stays".into(),
            addresses: Vec::new(),
            byzantine_members_tolerated: 0,
            epoch: 0,
        };
        said(second, event)
    }

    fn entered(view: u64, lead: &str, round: u64, second: u32) -> String {
        let lead = lead.into();
        said(second, NodeEvent::View { view, lead, round })
    }

    fn last(round: u64, view: u64, lead: &str, second: u32) -> String {
        let event = NodeEvent::Final {
            round,
            view,
            lead: lead.into(),
            block: "cd".into(),
            authors: 2,
            contributors: vec!["north".into(), "south".into()],
            left_out: Vec::new(),
            cpu_seconds: None,
        };
        said(second, event)
    }

    #[test]
    fn the_newest_word_on_privacy_counts_whatever_log_it_is_in() {
        let word = |second, what: &str| {
            let event = NodeEvent::Privacy {
                learned: vec![format!("learned {what}")],
                officer: vec![format!("officer {what}")],
                noised: what == "noised",
            };
            said(second, event)
        };
        let logs = [
            (
                "newest-a",
                [start("north", 0), word(1, "old"), word(9, "new")],
            ),
            (
                "newest-b",
                [start("south", 0), word(1, "old"), word(5, "between")],
            ),
        ];
        let files = logs.map(|(name, lines)| file(name, &lines.join("\n")));
        let told = read(&files).unwrap().privacy.unwrap();
        assert_eq!(told.by, "north");
        assert_eq!(told.learned, ["learned new"]);
        assert_eq!(told.officer, ["officer new"]);
        assert!(!told.noised);
        // With noise the lines of an institution are its own alone, whatever it agreed on since.
        let own = [start("north", 0), word(1, "noised"), word(9, "new")].join("\n");
        let own = [
            file("newest-d", &own),
            file("newest-e", &start("north", 10)),
        ];
        let told = read(&own).unwrap().privacy.unwrap();
        assert_eq!(
            (told.learned, told.noised),
            (vec!["learned new".into()], true)
        );
        let pooled = [own[0].clone(), files[1].clone()];
        let why = read(&pooled).unwrap_err().to_string();
        assert!(
            why.contains("is the log of south, and the first one of north"),
            "{why}"
        );
        assert!(why.contains("pool no logs"), "{why}");
        assert!(read_known(&pooled, &StopsAndClocks::default()).is_ok());
        // Logs of earlier versions have none.
        let without = [file("newest-c", &start("north", 0))];
        assert_eq!(read(&without).unwrap().privacy, None);
    }

    #[test]
    fn logs_of_two_nodes_give_views_stops_and_take_overs() {
        let north = [
            start("north", 0),
            "warning: not a document".into(),
            entered(1, "north", 1, 1),
            last(1, 1, "north", 4),
            entered(2, "north", 2, 4),
            format!("{{\"event\":\"vie{}", start("north", 40)),
            entered(3, "south", 2, 41),
            // Text that was half written when it was killed for good.
            "{\"event\":\"nullif\u{fffd}".into(),
        ];
        let member = "north".to_owned();
        let lead = Some(member.clone());
        let south = [
            start("south", 0),
            entered(1, "north", 1, 2),
            last(1, 1, "north", 5),
            entered(2, "north", 2, 5),
            said(20, NodeEvent::PeerDown { member }),
            // An event of a newer program is one line more.
            r#"{"event":"temperature","at":21,"time":"2026-03-01T10:00:21.000Z"}"#.into(),
            said(22, NodeEvent::Nullified { view: 2, lead }),
            entered(3, "south", 2, 22),
            last(2, 3, "south", 45),
            said(46, NodeEvent::Leaving { why: "done".into() }),
        ];
        let logs = [
            file("north.jsonl", &north.join("\n")),
            file("south.jsonl", &south.join("\n")),
        ];
        let history = read(&logs).unwrap();
        assert_eq!(history.title(), "stays");
        assert_eq!(history.silos, ["north", "south"]);
        assert_eq!((history.logs[0].skipped, history.logs[0].starts), (3, 2));
        let results: Vec<_> = history
            .views
            .iter()
            .map(|view| (view.lead, view.result))
            .collect();
        assert_eq!(results, [(0, "final"), (0, "nullified"), (1, "final")]);
        // It stopped ten seconds before the other lost the connection, and was back after half a minute.
        // The second time it did not say that it leaves, and the other left later.
        let stop = |at, back| StoppedMember {
            at,
            member: 0,
            back,
        };
        assert_eq!(history.stops, [stop(10.0, Some(40.0)), stop(41.0, None)]);
        let [one] = &history.take_overs[..] else {
            panic!("one lead stopped: {:?}", history.take_overs)
        };
        assert_eq!((one.lead, one.next, one.seconds), (0, Some(1), Some(12.0)));
        assert_eq!(history.led(), [1, 1]);
    }

    #[test]
    fn files_without_node_lines_and_other_federations_are_refused() {
        let none = file("none.jsonl", "round 1 is final\n");
        let error = read(&[none]).unwrap_err().to_string();
        assert!(error.contains("rota run --json"), "{error}");
        let one = file("one.jsonl", &start("north", 0));
        let other = file(
            "other.jsonl",
            &start("south", 0).replace("\"ab\"", "\"cd\""),
        );
        let error = read(&[one, other]).unwrap_err().to_string();
        assert!(error.contains("federation cd"), "{error}");
    }
}
