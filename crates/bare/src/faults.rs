//! The faults of a bare run, drawn from its seed.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::MemberIndex;

use crate::byzantine::Behaviour;
use crate::cuts::split;
use crate::moments::Moment;
use crate::random::Random;

use super::deaths::{Death, Deaths};

/// The faults that may happen, and how many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Longest time from the start until faults end; a run draws all of it, a third or a tenth.
    pub until: Duration,
    /// Probability that a message is lost.
    pub loss: f64,
    /// Probability that a message arrives twice.
    pub repeat: f64,
    /// Largest additional delay of a message.
    pub late: Duration,
    /// Number of network splits, one-way ones among them.
    pub splits: u32,
    /// Number of crashes with a restart after a while.
    pub crashes: u32,
    /// Probability that a member crashes inside a step that makes something durable.
    pub inside: f64,
    /// Whether one restart may find the journal lost, or an older copy of it.
    pub journal_loss: JournalLoss,
    /// Members that die for good, at a drawn time or at a moment of a round.
    pub deaths: Deaths,
    /// Behaviours of Byzantine members.
    pub byzantine: Byzantine,
    /// Number of members that die or lose their journals in addition to the f faulty ones that are
    /// tolerated. Then only safety is promised.
    pub beyond: usize,
}

/// How a journal may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalLoss {
    /// No journal is lost.
    Never,
    /// The member restarts and knows that its journal is lost.
    Declared,
    /// The member restarts as if it were new.
    Hidden,
    /// The member restarts with its journal as it was some records ago, as from a backup.
    PutBack,
}

/// The behaviours that the Byzantine members of a run may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Byzantine {
    /// There are no Byzantine members.
    None,
    /// One to three of [`Behaviour::DRAWN`].
    Any,
    /// One to three of [`Behaviour::DRAWN`] and [`Behaviour::OF_MASKS`].
    AnyMasked,
    /// One to three of these.
    Only(&'static [Behaviour]),
    /// Each has a twin: a second process with its key, new or with a copy of its journal. Both keep
    /// the rules, and neither knows what the other signs.
    Twins,
}

impl Byzantine {
    /// Draws one to three of the allowed behaviours.
    fn some(self, random: &mut Random) -> Vec<Behaviour> {
        let all = match self {
            Self::None | Self::Twins => Vec::new(),
            Self::Any => Behaviour::DRAWN.to_vec(),
            Self::AnyMasked => [&Behaviour::DRAWN[..], &Behaviour::OF_MASKS].concat(),
            Self::Only(some) => some.to_vec(),
        };
        let mut drawn: Vec<_> = (0..1 + random.below(3))
            .filter(|_| !all.is_empty())
            .map(|_| all[random.below(all.len())])
            .collect();
        drawn.sort();
        drawn.dedup();
        drawn
    }
}

impl Faults {
    /// No faults.
    pub fn none() -> Self {
        Self {
            until: Duration::ZERO,
            loss: 0.0,
            repeat: 0.0,
            late: Duration::ZERO,
            splits: 0,
            crashes: 0,
            inside: 0.0,
            journal_loss: JournalLoss::Never,
            deaths: Deaths::None,
            byzantine: Byzantine::None,
            beyond: 0,
        }
    }

    /// All kinds of faults for up to a hundred heartbeats of a second. At most f members are Byzantine,
    /// die for good or lose their journals.
    pub fn all() -> Self {
        Self {
            until: Duration::from_secs(100),
            loss: 0.1,
            repeat: 0.05,
            late: Duration::from_millis(700),
            splits: 3,
            crashes: 3,
            inside: 0.01,
            journal_loss: JournalLoss::Declared,
            deaths: Deaths::Any,
            byzantine: Byzantine::Any,
            beyond: 0,
        }
    }

    /// All faults of members that keep to the rules and their journals: losses, splits, crashes and deaths.
    pub(crate) fn without_byzantine() -> Self {
        Self {
            journal_loss: JournalLoss::Never,
            byzantine: Byzantine::None,
            ..Self::all()
        }
    }
}

/// A fault at a given time.
#[derive(Debug, Clone)]
pub(super) enum ScriptedFault {
    /// Cuts links, by (from, to).
    Cut(Vec<(usize, usize)>),
    /// Restores links.
    Mend(Vec<(usize, usize)>),
    /// A member crashes, and restarts after a while.
    Crash(usize),
    /// A member dies for good.
    Die(usize),
    /// A member stops as scripted; `None`: whoever leads.
    Kill {
        /// Node of the member.
        who: Option<usize>,
        /// Time until the member restarts; `None`: never.
        back: Option<Duration>,
        /// True if the member restarts without its journal.
        journal_lost: bool,
    },
    /// A second process starts with a member's key, and with a copy of its journal or none.
    Twin {
        /// The member.
        of: usize,
        /// True if the second process has the journal.
        copied: bool,
    },
    /// All other faults end. Byzantine members stay Byzantine, dead ones stay dead.
    Heal,
}

impl ScriptedFault {
    /// Returns what the fault does, without the lists of links.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Cut(links) => format!("{} links are cut, by direction", links.len()),
            Self::Mend(links) => format!("{} links work again, by direction", links.len()),
            other => format!("{other:?}"),
        }
    }
}

/// The faults of one run.
#[derive(Debug)]
pub(super) struct Script {
    /// Faults with their times, ascending.
    pub(super) timed: Vec<(Duration, ScriptedFault)>,
    /// Byzantine members with their behaviours.
    pub(super) byzantine: BTreeMap<MemberIndex, Vec<Behaviour>>,
    /// Members whose first restart finds their journal lost, or an older copy of it.
    pub(super) losing_journals: Vec<MemberIndex>,
    /// Deaths at moments of a round; which member dies depends on the run.
    pub(super) deaths: Vec<Death>,
}

/// The fault of one member.
enum Flaw {
    Byzantine,
    LosesJournal,
    Dies,
    DiesAt(Moment),
}

/// Draws the faults of a run.
pub(super) fn script(random: &mut Random, n: usize, faulty: usize, faults: &Faults) -> Script {
    let until = faults.until / [1, 3, 10][random.below(3)];
    let mut timed = Vec::new();
    let when = |random: &mut Random| until.mul_f64(random.uniform());
    for _ in 0..faults.splits {
        let links = draw_split(random, n);
        let from = when(random);
        let to = from + random.span(Duration::from_secs(1), Duration::from_secs(20));
        timed.push((from, ScriptedFault::Cut(links.clone())));
        timed.push((to.min(until), ScriptedFault::Mend(links)));
    }
    for _ in 0..faults.crashes {
        timed.push((when(random), ScriptedFault::Crash(random.below(n))));
    }
    let mut members: Vec<_> = (0..n as u16).map(MemberIndex).collect();
    random.shuffle(&mut members);
    let mut members = members.into_iter();
    let mut script = Script {
        timed: Vec::new(),
        byzantine: BTreeMap::new(),
        losing_journals: Vec::new(),
        deaths: Vec::new(),
    };
    let bearable = bearable(n);
    for slot in 0..bearable + faults.beyond {
        let Some(flaw) = flaw(random, faults, slot < faulty, slot >= bearable) else {
            continue;
        };
        match flaw {
            Flaw::Byzantine => {
                let member = members.next();
                let behaviours = faults.byzantine.some(random);
                script
                    .byzantine
                    .extend(member.map(|member| (member, behaviours)));
                if let (Byzantine::Twins, Some(member)) = (faults.byzantine, member) {
                    let copied = random.chance(0.7);
                    let time = if copied { when(random) } else { Duration::ZERO };
                    let of = member.at();
                    timed.push((time, ScriptedFault::Twin { of, copied }));
                }
                // Byzantine members may die too.
                if let Some(member) = member.filter(|_| random.chance(0.1)) {
                    timed.push((when(random), ScriptedFault::Die(member.at())));
                }
            }
            Flaw::LosesJournal => {
                let member = members.next();
                script.losing_journals.extend(member);
                // The loss has an effect only if the member restarts.
                timed
                    .extend(member.map(|member| (when(random), ScriptedFault::Crash(member.at()))));
            }
            Flaw::Dies => {
                let member = members.next();
                timed.extend(member.map(|member| (when(random), ScriptedFault::Die(member.at()))));
            }
            Flaw::DiesAt(moment) => script.deaths.push(Death::at(random, moment, n)),
        }
    }
    timed.sort_by_key(|&(time, _)| time);
    timed.push((until, ScriptedFault::Heal));
    script.timed = timed;
    script
}

/// Returns the number of members that may die. Fewer than four members tolerate no Byzantine one, but some may die as
/// long as a quorum is left.
pub(super) fn bearable(n: usize) -> usize {
    if n < 4 { (n - 1) / 2 } else { (n - 1) / 3 }
}

/// Draws the fault of one more member, if it has one.
fn flaw(
    random: &mut Random,
    faults: &Faults,
    may_be_byzantine: bool,
    beyond: bool,
) -> Option<Flaw> {
    let mut flaws = Vec::new();
    if faults.journal_loss != JournalLoss::Never && (may_be_byzantine || beyond) {
        flaws.push(Flaw::LosesJournal);
    }
    let moment = Moment::DRAWN[random.below(Moment::DRAWN.len())];
    match faults.deaths {
        Deaths::None => {}
        Deaths::Any if random.chance(0.3) => flaws.push(Flaw::Dies),
        Deaths::Any => flaws.push(Flaw::DiesAt(moment)),
        Deaths::At(moment) => flaws.push(Flaw::DiesAt(moment)),
    }
    if faults.byzantine != Byzantine::None && may_be_byzantine {
        // As likely as all other faults together.
        let others = flaws.len().max(1);
        flaws.extend((0..others).map(|_| Flaw::Byzantine));
    }
    (!flaws.is_empty()).then(|| flaws.swap_remove(random.below(flaws.len())))
}

/// Draws the links of a network split: one member cut off, two members together, two halves, or
/// single directions at random.
fn draw_split(random: &mut Random, n: usize) -> Vec<(usize, usize)> {
    match random.below(4) {
        0 => {
            let alone = random.below(n);
            split(n, false, |member| member == alone)
        }
        1 => {
            let two = [random.below(n), random.below(n)];
            split(n, false, |member| two.contains(&member))
        }
        2 => {
            let side: Vec<bool> = (0..n).map(|_| random.chance(0.5)).collect();
            split(n, false, |member| side[member])
        }
        _ => {
            let links = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
            let links = links.filter(|(a, b)| a != b);
            links.filter(|_| random.chance(0.3)).collect()
        }
    }
}
