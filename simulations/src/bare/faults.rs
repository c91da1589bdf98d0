//! What goes wrong in a bare run, drawn from the seed.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::MemberIndex;

use crate::random::Random;

use super::byzantine::Behaviour;

/// How much goes wrong until the world heals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Span from the start after which nothing more goes wrong.
    pub until: Duration,
    /// Probability that a message is lost.
    pub loss: f64,
    /// Probability that a message arrives twice.
    pub repeat: f64,
    /// Most that a message is late beyond the usual.
    pub late: Duration,
    /// Divisions of the network, one-way ones among them.
    pub partitions: u32,
    /// Crashes at any time, with a restart after a while.
    pub crashes: u32,
    /// Probability that a member crashes inside a step that makes something durable.
    pub inside: f64,
    /// Whether one restart may find the journal gone. Counts as one of the f.
    pub amnesia: bool,
    /// Whether the rest of the f members misbehave.
    pub byzantine: bool,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self {
            until: Duration::ZERO,
            loss: 0.0,
            repeat: 0.0,
            late: Duration::ZERO,
            partitions: 0,
            crashes: 0,
            inside: 0.0,
            amnesia: false,
            byzantine: false,
        }
    }

    /// Everything goes wrong for a hundred beats of a second.
    pub fn all() -> Self {
        Self {
            until: Duration::from_secs(100),
            loss: 0.1,
            repeat: 0.05,
            late: Duration::from_millis(700),
            partitions: 3,
            crashes: 3,
            inside: 0.01,
            amnesia: true,
            byzantine: true,
        }
    }
}

/// A scripted fault.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Cuts links, by (from, to).
    Cut(Vec<(usize, usize)>),
    /// Mends them.
    Mend(Vec<(usize, usize)>),
    /// A member stops.
    Crash(usize),
    /// Everything that still goes wrong stops.
    Heal,
}

/// The script of one run.
#[derive(Debug)]
pub(super) struct Script {
    /// What happens when, in order.
    pub(super) acts: Vec<(Duration, Act)>,
    /// Members that misbehave, and how.
    pub(super) byzantine: BTreeMap<MemberIndex, Vec<Behaviour>>,
    /// The member whose first restart finds no journal.
    pub(super) amnesiac: Option<MemberIndex>,
}

/// Draws a script.
pub(super) fn script(random: &mut Random, n: usize, faulty: usize, faults: &Faults) -> Script {
    let mut acts = Vec::new();
    let when = |random: &mut Random| faults.until.mul_f64(random.uniform());
    for _ in 0..faults.partitions {
        let links = division(random, n);
        let from = when(random);
        let to = from + random.span(Duration::from_secs(1), Duration::from_secs(20));
        acts.push((from, Act::Cut(links.clone())));
        acts.push((to.min(faults.until), Act::Mend(links)));
    }
    for _ in 0..faults.crashes {
        acts.push((when(random), Act::Crash(random.below(n))));
    }
    acts.sort_by_key(|&(time, _)| time);
    acts.push((faults.until, Act::Heal));
    let mut members: Vec<_> = (0..n as u16).map(MemberIndex).collect();
    for last in (1..n).rev() {
        members.swap(last, random.below(last + 1));
    }
    let mut bad = members.into_iter().take(faulty);
    let amnesiac = if faults.amnesia && random.chance(0.3) {
        bad.next()
    } else {
        None
    };
    let byzantine = bad
        .filter(|_| faults.byzantine)
        .map(|member| (member, Behaviour::some(random)))
        .collect();
    Script {
        acts,
        byzantine,
        amnesiac,
    }
}

/// Some links to cut: one member off, two halves, or anything one way.
fn division(random: &mut Random, n: usize) -> Vec<(usize, usize)> {
    let pairs = (0..n)
        .flat_map(|a| (0..n).map(move |b| (a, b)))
        .filter(|(a, b)| a != b);
    match random.below(3) {
        0 => {
            let alone = random.below(n);
            pairs.filter(|&(a, b)| a == alone || b == alone).collect()
        }
        1 => {
            let side: Vec<bool> = (0..n).map(|_| random.chance(0.5)).collect();
            pairs.filter(|&(a, b)| side[a] != side[b]).collect()
        }
        _ => pairs.filter(|_| random.chance(0.3)).collect(),
    }
}
