//! What goes wrong in a bare run, drawn from the seed.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::MemberIndex;

use crate::random::Random;

use super::byzantine::{Behaviour, Lies};
use super::deaths::{Death, Deaths, Moment};

/// How much goes wrong until the world heals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Longest span from the start after which nothing more goes wrong; a run draws all of it, a
    /// third or a tenth.
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
    /// Whether one restart may find the journal gone.
    pub amnesia: Amnesia,
    /// Members that die for good, at a drawn time or at a moment of a round.
    pub deaths: Deaths,
    /// What members may do that keep no rules.
    pub lies: Lies,
    /// How many members are dead or without their journals beside the f that a federation can
    /// bear. Then only safety is promised.
    pub beyond: usize,
}

/// A journal that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amnesia {
    /// No journal is lost.
    Never,
    /// The member comes back knowing that its journal is lost.
    Declared,
    /// The member comes back as if it were new.
    Hidden,
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
            amnesia: Amnesia::Never,
            deaths: Deaths::None,
            lies: Lies::None,
            beyond: 0,
        }
    }

    /// Everything goes wrong for up to a hundred beats of a second. Members that lie, die for good
    /// or lose their journals are f at most.
    pub fn all() -> Self {
        Self {
            until: Duration::from_secs(100),
            loss: 0.1,
            repeat: 0.05,
            late: Duration::from_millis(700),
            partitions: 3,
            crashes: 3,
            inside: 0.01,
            amnesia: Amnesia::Declared,
            deaths: Deaths::Any,
            lies: Lies::Any,
            beyond: 0,
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
    /// A member stops, for a while.
    Crash(usize),
    /// A member stops for good.
    Die(usize),
    /// Everything that still goes wrong stops. Faulty members stay faulty, the dead stay dead.
    Heal,
}

/// The script of one run.
#[derive(Debug)]
pub(super) struct Script {
    /// What happens when, in order.
    pub(super) acts: Vec<(Duration, Act)>,
    /// Members that misbehave, and how.
    pub(super) byzantine: BTreeMap<MemberIndex, Vec<Behaviour>>,
    /// Members whose first restart finds no journal.
    pub(super) amnesiac: Vec<MemberIndex>,
    /// Deaths of members that are not known yet.
    pub(super) deaths: Vec<Death>,
}

/// What is wrong with one member.
enum Flaw {
    Liar,
    Amnesiac,
    Dies,
    DiesAt(Moment),
}

/// Draws a script.
pub(super) fn script(random: &mut Random, n: usize, faulty: usize, faults: &Faults) -> Script {
    let until = faults.until / [1, 3, 10][random.below(3)];
    let mut acts = Vec::new();
    let when = |random: &mut Random| until.mul_f64(random.uniform());
    for _ in 0..faults.partitions {
        let links = division(random, n);
        let from = when(random);
        let to = from + random.span(Duration::from_secs(1), Duration::from_secs(20));
        acts.push((from, Act::Cut(links.clone())));
        acts.push((to.min(until), Act::Mend(links)));
    }
    for _ in 0..faults.crashes {
        acts.push((when(random), Act::Crash(random.below(n))));
    }
    let mut members: Vec<_> = (0..n as u16).map(MemberIndex).collect();
    for last in (1..n).rev() {
        members.swap(last, random.below(last + 1));
    }
    let mut members = members.into_iter();
    let mut script = Script {
        acts: Vec::new(),
        byzantine: BTreeMap::new(),
        amnesiac: Vec::new(),
        deaths: Vec::new(),
    };
    // Too few for liars: members may still die as long as a quorum is left.
    let bearable = if n < 4 { (n - 1) / 2 } else { faulty };
    for slot in 0..bearable + faults.beyond {
        let Some(flaw) = flaw(random, faults, slot < faulty, slot >= bearable) else {
            continue;
        };
        match flaw {
            Flaw::Liar => {
                let member = members.next();
                let lies = faults.lies.some(random);
                script.byzantine.extend(member.map(|member| (member, lies)));
                // Liars die too.
                if let Some(member) = member.filter(|_| random.chance(0.1)) {
                    acts.push((when(random), Act::Die(member.at())));
                }
            }
            Flaw::Amnesiac => {
                let member = members.next();
                script.amnesiac.extend(member);
                // Its journal is only missed if it stops.
                acts.extend(member.map(|member| (when(random), Act::Crash(member.at()))));
            }
            Flaw::Dies => {
                let member = members.next();
                acts.extend(member.map(|member| (when(random), Act::Die(member.at()))));
            }
            Flaw::DiesAt(moment) => script.deaths.push(Death::at(random, moment, n)),
        }
    }
    acts.sort_by_key(|&(time, _)| time);
    acts.push((until, Act::Heal));
    script.acts = acts;
    script
}

/// What is wrong with one more member, if anything is.
fn flaw(random: &mut Random, faults: &Faults, may_lie: bool, beyond: bool) -> Option<Flaw> {
    let mut flaws = Vec::new();
    if faults.amnesia != Amnesia::Never && (may_lie || beyond) {
        flaws.push(Flaw::Amnesiac);
    }
    let moment = Moment::ALL[random.below(Moment::ALL.len())];
    match faults.deaths {
        Deaths::None => {}
        Deaths::Any if random.chance(0.3) => flaws.push(Flaw::Dies),
        Deaths::Any => flaws.push(Flaw::DiesAt(moment)),
        Deaths::At(moment) => flaws.push(Flaw::DiesAt(moment)),
    }
    if faults.lies != Lies::None && may_lie {
        // As often as all others together.
        let others = flaws.len().max(1);
        flaws.extend((0..others).map(|_| Flaw::Liar));
    }
    (!flaws.is_empty()).then(|| flaws.swap_remove(random.below(flaws.len())))
}

/// Some links to cut: one member off, two members off together, two halves, or anything one way.
fn division(random: &mut Random, n: usize) -> Vec<(usize, usize)> {
    let pairs = (0..n)
        .flat_map(|a| (0..n).map(move |b| (a, b)))
        .filter(|(a, b)| a != b);
    match random.below(4) {
        0 => {
            let alone = random.below(n);
            pairs.filter(|&(a, b)| a == alone || b == alone).collect()
        }
        1 => {
            let two = [random.below(n), random.below(n)];
            let off = |member| two.contains(&member);
            pairs.filter(|&(a, b)| off(a) != off(b)).collect()
        }
        2 => {
            let side: Vec<bool> = (0..n).map(|_| random.chance(0.5)).collect();
            pairs.filter(|&(a, b)| side[a] != side[b]).collect()
        }
        _ => pairs.filter(|_| random.chance(0.3)).collect(),
    }
}
