//! Nodes, and what each has said so far.
// Every test program uses some of it.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::nodes::TestNodes;

/// Nodes, and everything that they have said and that was not waited for yet.
pub(crate) struct Heard {
    pub(crate) nodes: TestNodes,
    said: Vec<VecDeque<Value>>,
}

impl Heard {
    pub(crate) fn of(configs: &[PathBuf], options: &[&str]) -> Self {
        Self {
            nodes: TestNodes::new(configs, options),
            said: configs.iter().map(|_| VecDeque::new()).collect(),
        }
    }

    /// The next event of this kind of a node, which may have come before; fails after a minute without
    /// any event, and after three in which others came.
    pub(crate) fn until(&mut self, node: usize, event: &str) -> Value {
        let end = Instant::now() + Duration::from_secs(180);
        loop {
            let line = self.next(node, event);
            if line["event"] == event {
                return line;
            }
            let late = Instant::now() > end;
            assert!(!late, "no {event:?} of node {node}\n{}", self.nodes.tails());
        }
    }

    /// The round of the last event of this kind that a node has printed so far.
    pub(crate) fn latest(&mut self, node: usize, event: &str) -> u64 {
        while let Ok(said) = self.nodes.lines.try_recv() {
            self.said[said.node].push_back(said.line);
        }
        let of_kind = self.said[node].iter().filter(|line| line["event"] == event);
        let rounds = of_kind.filter_map(|line| line["round"].as_u64());
        rounds.max().unwrap_or_default()
    }

    /// The next event of a node, on the way to the one that is waited for; fails after a minute.
    pub(crate) fn next(&mut self, node: usize, event: &str) -> Value {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(line) = self.said[node].pop_front() {
                return line;
            }
            let Some(said) = self.nodes.next(end) else {
                panic!("no {event:?} of node {node}\n{}", self.nodes.tails());
            };
            self.said[said.node].push_back(said.line);
        }
    }
}
