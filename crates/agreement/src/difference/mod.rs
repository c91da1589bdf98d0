//! Differences between two agreements, key by key.
//!
//! Both agreements are compared as they would be written, so that no key can be forgotten. Members are
//! matched by their names, or by their keys where one was renamed.

use std::collections::BTreeSet;

use protocol::name::printable;
use protocol::parameters::RoundMode;

use crate::agreement::Agreement;
use crate::canonical::Canonical;
use crate::keys::{self, Key};
use crate::question::AgreedQuestion;

/// Begins the paths of members.
const SILO: &str = "member";
/// The key of questions.
const QUESTION: &str = "question";

/// One key that another agreement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Path of the key as in `federation.toml`, with the name of a member in place of its position.
    /// `member.NAME` alone is a member that comes or goes, `silo` alone the order of those that stay.
    pub key: String,
    /// The value before, as it would be written; `None` where there was none.
    pub before: Option<String>,
    /// The value after; `None` where there is none.
    pub after: Option<String>,
    /// Meaning of the key, as a noun phrase; `None` for one that has no words yet.
    pub words: Option<&'static str>,
    /// Reason for which the new value protects less than the one before; `None` where it does not.
    pub weaker: Option<&'static str>,
    /// True if the value has to stay as long as the federation runs.
    pub fixed: bool,
    /// `true` if the new value has characters that are invisible or change how others are shown.
    pub(crate) hidden: bool,
    /// Path of the key as the list of keys has it, with `*` in place of the name of a member.
    pub(crate) listed: String,
}

/// The numbers that follow from the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberCounts {
    /// n, the members.
    pub members: usize,
    /// f, how many of them may break the rules.
    pub faulty: usize,
    /// q, the votes that make a round or a change final.
    pub quorum: usize,
}

/// Difference between two agreements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Every key that changes: those that protect less first, and among these what members see of
    /// contributions.
    pub changes: Vec<Changed>,
    /// The numbers of the first agreement.
    pub before: MemberCounts,
    /// The numbers of the other.
    pub after: MemberCounts,
}

impl MemberCounts {
    fn of(agreement: &Agreement) -> Self {
        let roster = &agreement.epoch.roster;
        Self {
            members: roster.len(),
            faulty: roster.faulty(),
            quorum: roster.quorum(),
        }
    }
}

impl Difference {
    /// Returns whether the agreements say the same.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns whether fewer members may break the rules than before.
    pub fn lowers_protection(&self) -> bool {
        self.after.faulty < self.before.faulty
    }

    /// Returns whether anything protects less than before.
    pub fn weakens(&self) -> bool {
        self.lowers_protection() || self.changes.iter().any(|change| change.weaker.is_some())
    }

    /// The first change of what has to stay.
    pub(crate) fn first_fixed(&self) -> Option<&Changed> {
        self.changes.iter().find(|change| change.fixed)
    }
}

impl Agreement {
    /// Every key in which another agreement differs from this one.
    pub fn difference(&self, other: &Self) -> Difference {
        let (mut old, mut new) = (self.as_written(), other.as_written());
        let members = (taken(&mut old, SILO), taken(&mut new, SILO));
        let asked = (taken(&mut old, QUESTION), taken(&mut new, QUESTION));
        let mut found = FoundChanges::default();
        found.compare(&KeyPath::default(), Some(&old), Some(&new));
        found.members(&listed(members.0), &listed(members.1));
        found.questions(&listed(asked.0), &listed(asked.1));
        let mut changes = found.0;
        let seen = |change: &Changed| change.key.starts_with("privacy.");
        let seen_by_all = match self.epoch.protocol.privacy.mode() {
            RoundMode::Clear | RoundMode::Named => true,
            RoundMode::Masked(_) | RoundMode::Noised(..) => false,
        };
        for change in &mut changes {
            self.follows_from_members(other, change);
            self.follows_from_questions(other, change);
            // Where every model was seen, nothing that is said of sums shows more.
            if seen(change) && seen_by_all {
                change.weaker = None;
            }
            if change.key == "rounds" && self.spends_more(other) {
                change.weaker = Some(
                    "every further round discloses more about each patient: ε and ε_alone of all rounds rise",
                );
            }
        }
        // The mode says what the other keys of privacy come to.
        let asked = |change: &Changed| change.listed == QUESTION;
        let rank = |change: &Changed| {
            (
                !seen(change) && !asked(change),
                change.key != "privacy.mode",
            )
        };
        changes.sort_by_key(|change| (change.weaker.is_none(), rank(change)));
        Difference {
            changes,
            before: MemberCounts::of(self),
            after: MemberCounts::of(other),
        }
    }

    /// Returns whether the other agreement has more rounds with noise.
    fn spends_more(&self, other: &Self) -> bool {
        let noised = |of: &Self| of.epoch.protocol.privacy.is_noised();
        let rounds = |of: &Self| of.epoch.protocol.rounds;
        noised(self) && noised(other) && rounds(other) > rounds(self)
    }

    /// Marks a change that follows from another number of members: it is no weaker rule.
    fn follows_from_members(&self, other: &Self, change: &mut Changed) {
        let (before, after) = (self.epoch.roster.len(), other.epoch.roster.len());
        if before == after {
            return;
        }
        let (follows, protocol) = (
            self.epoch.protocol.for_members(before, after),
            &other.epoch.protocol,
        );
        let same = match &*change.key {
            "protocol.min-contributions" => follows.min_contributions == protocol.min_contributions,
            "protocol.view-timeout" => follows.view_timeout == protocol.view_timeout,
            _ => false,
        };
        if same {
            change.weaker = None;
        }
    }

    /// Room for the answers to a new question is no weaker rule.
    fn follows_from_questions(&self, other: &Self, change: &mut Changed) {
        let follows = self.blob_limit_with(&other.questions);
        if change.key == "protocol.blob-limit" && other.epoch.protocol.blob_limit == follows {
            change.weaker = None;
        }
    }

    /// The largest size of a contribution that leaves room for answers to these questions.
    pub(crate) fn blob_limit_with(&self, questions: &[AgreedQuestion]) -> u64 {
        let protocol = &self.epoch.protocol;
        let answers = questions
            .iter()
            .map(|question| question.largest_answer(&protocol.privacy));
        answers.fold(protocol.blob_limit, u64::max)
    }

    /// The whole file as a tree.
    fn as_written(&self) -> Canonical {
        Canonical::of(&self.file())
            .expect("task and strategy were encoded when the agreement was made, the rest is plain")
    }
}

/// A path as people read it, and as the list of keys has it.
#[derive(Debug, Clone, Default)]
struct KeyPath {
    shown: String,
    listed: String,
}

impl KeyPath {
    fn key(&self, key: &str) -> Self {
        self.and(&format!(".{}", bare(key)), &format!(".{key}"))
    }

    /// The entry of a list, from 1.
    fn entry(&self, place: usize) -> Self {
        self.and(&format!("[{place}]"), ".*")
    }

    fn member(name: &str) -> Self {
        Self {
            shown: format!("{SILO}.{}", bare(name)),
            listed: format!("{SILO}.*"),
        }
    }

    fn and(&self, shown: &str, listed: &str) -> Self {
        let behind = |path: &str, next: &str| match path {
            "" => next.trim_start_matches('.').to_owned(),
            path => format!("{path}{next}"),
        };
        Self {
            shown: behind(&self.shown, shown),
            listed: behind(&self.listed, listed),
        }
    }
}

/// The changes found so far.
#[derive(Default)]
struct FoundChanges(Vec<Changed>);

impl FoundChanges {
    fn compare(&mut self, path: &KeyPath, before: Option<&Canonical>, after: Option<&Canonical>) {
        use Canonical::{List, Table};
        if before == after {
            return;
        }
        let none = Default::default();
        let (old, new) = match (before, after) {
            (Some(Table(old)), Some(Table(new))) => (old, new),
            (Some(Table(old)), None) => (old, &none),
            (None, Some(Table(new))) => (&none, new),
            (Some(List(old)), Some(List(new))) if has_tables(old) || has_tables(new) => {
                for at in 0..old.len().max(new.len()) {
                    self.compare(&path.entry(at + 1), old.get(at), new.get(at));
                }
                return;
            }
            _ => return self.add(path, before, after),
        };
        if old.is_empty() && new.is_empty() {
            return self.add(path, before, after);
        }
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            self.compare(&path.key(key), old.get(key), new.get(key));
        }
    }

    /// A question is one change, with all of its keys.
    fn questions(&mut self, old: &[Canonical], new: &[Canonical]) {
        for at in 0..old.len().max(new.len()) {
            let (before, after) = (old.get(at), new.get(at));
            if before != after {
                let path = KeyPath {
                    shown: format!("{QUESTION}[{}]", at + 1),
                    listed: QUESTION.into(),
                };
                self.add(&path, before, after);
            }
        }
    }

    fn members(&mut self, old: &[Canonical], new: &[Canonical]) {
        let pairs = paired(old, new);
        for member in new.iter().filter(|member| is_new(member, &pairs)) {
            self.add(&KeyPath::member(named(member)), None, Some(member));
        }
        for (before, after) in &pairs {
            let path = KeyPath::member(named(before));
            match after {
                Some(after) => self.compare(&path, Some(before), Some(after)),
                None => self.add(&path, Some(before), None),
            }
        }
        // Those that stay are expected in their order, before those that come.
        let stay: Vec<_> = pairs
            .iter()
            .filter_map(|(_, after)| *after)
            .map(named)
            .collect();
        let come = new
            .iter()
            .filter(|member| is_new(member, &pairs))
            .map(named);
        let found: Vec<_> = new.iter().map(named).collect();
        if !stay.iter().copied().chain(come).eq(found.iter().copied()) {
            let names = |names: &[&str]| {
                let names = names.iter().map(|name| Canonical::Text((*name).into()));
                Canonical::List(names.collect())
            };
            let path = KeyPath {
                shown: SILO.into(),
                listed: SILO.into(),
            };
            self.add(&path, Some(&names(&stay)), Some(&names(&found)));
        }
    }

    fn add(&mut self, path: &KeyPath, before: Option<&Canonical>, after: Option<&Canonical>) {
        let known: Option<&Key> = keys::known(&path.listed);
        let weaker = match known {
            Some(key) => key.weakens.holds(before, after).then_some(key.why),
            None => Some("nothing is known of this key"),
        };
        self.0.push(Changed {
            key: path.shown.clone(),
            before: before.map(written),
            after: after.map(written),
            words: known.map(|key| key.words),
            weaker,
            fixed: known.is_none_or(|key| key.fixed),
            hidden: after.is_some_and(hidden),
            listed: path.listed.clone(),
        });
    }
}

/// Every member before, with the same member after.
fn paired<'a>(
    old: &'a [Canonical],
    new: &'a [Canonical],
) -> Vec<(&'a Canonical, Option<&'a Canonical>)> {
    let by_name = |one: &Canonical| new.iter().find(|other| named(other) == named(one));
    let taken: Vec<_> = old.iter().filter_map(by_name).map(named).collect();
    let by_key = |one: &Canonical| {
        let same = |other: &&Canonical| field(other, "key") == field(one, "key");
        let free = |other: &&Canonical| !taken.contains(&named(other));
        new.iter().filter(free).find(same)
    };
    let pair = |one| (one, by_name(one).or_else(|| by_key(one)));
    old.iter().map(pair).collect()
}

fn is_new(member: &Canonical, pairs: &[(&Canonical, Option<&Canonical>)]) -> bool {
    let mut after = pairs.iter().filter_map(|(_, after)| *after);
    after.all(|other| named(other) != named(member))
}

fn named(member: &Canonical) -> &str {
    field(member, "name")
}

fn field<'a>(table: &'a Canonical, key: &str) -> &'a str {
    match table {
        Canonical::Table(table) => match table.get(key) {
            Some(Canonical::Text(text)) => text,
            _ => "",
        },
        _ => "",
    }
}

fn taken(table: &mut Canonical, key: &str) -> Option<Canonical> {
    match table {
        Canonical::Table(table) => table.remove(key),
        _ => None,
    }
}

fn listed(value: Option<Canonical>) -> Vec<Canonical> {
    match value {
        Some(Canonical::List(list)) => list,
        _ => Vec::new(),
    }
}

fn has_tables(list: &[Canonical]) -> bool {
    list.iter()
        .any(|entry| matches!(entry, Canonical::Table(_)))
}

fn hidden(value: &Canonical) -> bool {
    let odd = |text: &str| !text.chars().all(printable);
    match value {
        Canonical::Text(text) => odd(text),
        Canonical::List(list) => list.iter().any(hidden),
        Canonical::Table(table) => table.iter().any(|(key, value)| odd(key) || hidden(value)),
        Canonical::Absent | Canonical::Bool(_) | Canonical::Whole(_) | Canonical::Float(_) => false,
    }
}

/// A key of TOML: in quotation marks where it needs them.
fn bare(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(plain) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// A text of TOML, in which nothing is invisible.
fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => all.extend(['\\', c]),
            c if printable(c) => all.push(c),
            c => all += &format!("\\U{:08X}", u32::from(c)),
        }
    }
    all + "\""
}

/// A value as it would be written in one line.
fn written(value: &Canonical) -> String {
    match value {
        Canonical::Absent => "{}".into(),
        Canonical::Bool(truth) => truth.to_string(),
        Canonical::Whole(number) => number.to_string(),
        Canonical::Float(bits) => match f64::from_bits(*bits) {
            number if number.is_finite() => format!("{number:?}"),
            number => number.to_string().to_lowercase(),
        },
        Canonical::Text(text) => quoted(text),
        Canonical::List(list) => {
            let list: Vec<_> = list.iter().map(written).collect();
            format!("[{}]", list.join(", "))
        }
        Canonical::Table(table) => {
            let entries = table.iter();
            let entries: Vec<_> = entries
                .map(|(key, value)| format!("{} = {}", bare(key), written(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
