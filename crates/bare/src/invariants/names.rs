//! S10: where names are removed, nobody but the leads of a round is told whose entry is whose.
//!
//! With `names = "removed"` no message to any other member holds an author together with the id of its
//! entry or the hash of its model. The author is told its own, and so is the lead of every view that was
//! tried in the round.
//!
//! What a message holds is looked for in its bytes: every id, hash and key that exists, at every place.
//! The author stands in a message that it signed, in one that has its key in it, and in one whose content
//! has its position in the roster. Only the signature of a lead under the list of all entries says
//! nothing about its own. A faulty member may tell what it knows, and a member that proved itself faulty
//! by two contributions is named with both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use protocol::message::{Body, Kind};
use protocol::parameters::Epoch;
use protocol::{MemberIndex, Report, Time};

use super::Property;
use super::frame::{DecodedFrame, kind, read_frame};
use super::ledger::{Fact, Ledger};
use super::mentions::mentions;

/// Bytes of a hash, and of a key.
const LENGTH: usize = 32;

/// Checks every message that an honest member sends.
pub(super) struct NamesRemoved {
    /// A lead is known as such at most this long after it was sent something.
    grace: Duration,
    known: SecretsToFind,
    /// The leads that were tried in every round.
    leads: BTreeMap<u64, BTreeSet<MemberIndex>>,
    /// The lead of the view that every member is in.
    now: BTreeMap<MemberIndex, MemberIndex>,
    /// Messages that named the author of an entry to members that did not lead then, oldest first.
    told: VecDeque<NamedAuthor>,
    /// The last message, and what it tells: most are sent to several members.
    last: (Vec<u8>, Vec<AuthorRounds>),
}

/// A message that tells a member whose entry this is.
struct NamedAuthor {
    at: Time,
    by: MemberIndex,
    to: MemberIndex,
    kind: Option<Kind>,
    link: AuthorRounds,
}

/// An author, with the rounds of its entries that a message holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AuthorRounds {
    author: MemberIndex,
    rounds: BTreeSet<u64>,
}

/// Something that a message may hold.
#[derive(Debug, Clone)]
enum SoughtSecret {
    Key(MemberIndex),
    /// The authors and rounds of entries with this id or model.
    Entries(BTreeSet<(MemberIndex, u64)>),
}

/// All that is looked for in messages.
struct SecretsToFind {
    secrets: BTreeMap<[u8; LENGTH], SoughtSecret>,
    /// The first two bytes of the secrets, and the two after them, so that hardly a place needs a search.
    begins: [Vec<bool>; 2],
}

/// Two bytes, as a place in a table of all of them.
fn pair(bytes: &[u8; LENGTH], from: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[from], bytes[from + 1]]))
}

impl SecretsToFind {
    fn new() -> Self {
        Self {
            secrets: BTreeMap::new(),
            begins: [vec![false; 1 << 16], vec![false; 1 << 16]],
        }
    }

    fn mark(&mut self, bytes: &[u8; LENGTH]) {
        let [first, second] = &mut self.begins;
        first[pair(bytes, 0)] = true;
        second[pair(bytes, 2)] = true;
    }

    fn add(&mut self, bytes: [u8; LENGTH], author: MemberIndex, round: u64) {
        self.mark(&bytes);
        let new = || SoughtSecret::Entries(BTreeSet::new());
        if let SoughtSecret::Entries(of) = self.secrets.entry(bytes).or_insert_with(new) {
            of.insert((author, round));
        }
    }

    fn add_key(&mut self, key: [u8; LENGTH], member: MemberIndex) {
        self.mark(&key);
        self.secrets.insert(key, SoughtSecret::Key(member));
    }

    /// The authors whose entries are in these bytes, with their rounds; and the members whose keys are.
    fn search(
        &self,
        bytes: &[u8],
    ) -> (BTreeMap<MemberIndex, BTreeSet<u64>>, BTreeSet<MemberIndex>) {
        let (mut entries, mut keys) = (BTreeMap::<_, BTreeSet<u64>>::new(), BTreeSet::new());
        let [first, second] = &self.begins;
        for place in bytes.array_windows::<LENGTH>() {
            if !first[pair(place, 0)] || !second[pair(place, 2)] {
                continue;
            }
            match self.secrets.get(place) {
                Some(SoughtSecret::Key(member)) => {
                    keys.insert(*member);
                }
                Some(SoughtSecret::Entries(of)) => {
                    for (author, round) in of {
                        entries.entry(*author).or_default().insert(*round);
                    }
                }
                None => {}
            }
        }
        (entries, keys)
    }
}

impl NamesRemoved {
    /// Silos report a new lead at most `grace` after they send it something.
    pub(super) fn new(epoch: &Epoch, grace: Duration) -> Self {
        let mut known = SecretsToFind::new();
        for (member, silo) in epoch.roster.members().zip(epoch.roster.silos()) {
            known.add_key(silo.key.0, member);
        }
        Self {
            grace,
            known,
            leads: BTreeMap::new(),
            now: BTreeMap::new(),
            told: VecDeque::new(),
            last: (Vec::new(), Vec::new()),
        }
    }

    /// Returns whether this member may be told: it is the author, or it led in one of the rounds.
    fn may_know(&self, member: MemberIndex, link: &AuthorRounds) -> bool {
        let led = |round: &u64| {
            let leads = self.leads.get(round);
            leads.is_some_and(|leads| leads.contains(&member))
        };
        member == link.author || link.rounds.iter().any(led)
    }

    fn sent(&mut self, by: MemberIndex, to: Option<MemberIndex>, frame: &[u8], ledger: &Ledger) {
        if self.last.0 != frame {
            self.last = (frame.to_vec(), self.links(frame, ledger));
        }
        let (at, kind) = (ledger.now, kind(frame));
        let told = self.last.1.iter().flat_map(|link| {
            let all = ledger.epoch.roster.members();
            let readers = all.filter(|&member| member != by && to.is_none_or(|to| to == member));
            let told = |to| NamedAuthor {
                at,
                by,
                to,
                kind,
                link: link.clone(),
            };
            let readers = readers.filter(|&reader| !self.may_know(reader, link));
            readers.map(told).collect::<Vec<_>>()
        });
        let told: Vec<_> = told.collect();
        self.told.extend(told);
    }

    /// The honest authors that a message names together with an entry of theirs.
    fn links(&self, frame: &[u8], ledger: &Ledger) -> Vec<AuthorRounds> {
        let (entries, mut named) = self.known.search(frame);
        if entries.is_empty() {
            return Vec::new();
        }
        match read_frame(frame) {
            DecodedFrame::Message(message) => {
                named.extend(mentions(&message.body));
                // The lead signs the list of all entries, its own among them.
                if !matches!(message.body, Body::ContributionList(_) | Body::Manifest(_)) {
                    named.insert(message.sender);
                }
            }
            DecodedFrame::Evidence(evidence) => named.extend(mentions(&*evidence)),
            // A certificate names its voters, and has no place for an entry.
            DecodedFrame::Other => named.extend(ledger.epoch.roster.members()),
        }
        let named = entries
            .into_iter()
            .filter(|(author, _)| named.contains(author) && ledger.honest(*author));
        named
            .map(|(author, rounds)| AuthorRounds { author, rounds })
            .collect()
    }

    /// The first member that was told something and had not become a lead by the time at which that
    /// would be known.
    fn leak(&mut self, now: Option<Time>, ledger: &Ledger) -> Result<(), String> {
        let due = |told: &mut NamedAuthor| now.is_none_or(|now| now > told.at + self.grace);
        let due = std::iter::from_fn(|| self.told.pop_front_if(due)).collect::<Vec<_>>();
        let leak = due
            .into_iter()
            .find(|told| !self.may_know(told.to, &told.link));
        let Some(NamedAuthor {
            by, to, kind, link, ..
        }) = leak
        else {
            return Ok(());
        };
        let kind = kind.map_or("a message".into(), |kind| format!("a {kind:?}"));
        let rounds: Vec<_> = link.rounds.iter().map(u64::to_string).collect();
        Err(format!(
            "{} told {} with {kind} which entry of round {} is that of {}, which only leads of that round \
             may know",
            ledger.name(by),
            ledger.name(to),
            rounds.join(", "),
            ledger.name(link.author),
        ))
    }

    fn reported(&mut self, member: MemberIndex, report: &Report) {
        match report {
            Report::Entered { lead, round, .. } => {
                self.now.insert(member, *lead);
                self.leads.entry(*round).or_default().insert(*lead);
            }
            // The next round begins in the view that the member is in.
            Report::Final { round, .. } => {
                if let Some(lead) = self.now.get(&member) {
                    self.leads.entry(round + 1).or_default().insert(*lead);
                }
            }
            _ => {}
        }
    }
}

impl Property for NamesRemoved {
    fn name(&self) -> &'static str {
        "S10 (only leads are told whose entry is whose)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Signed(message) => {
                if let Body::Contribution(contribution) = &message.body {
                    let entry = contribution.entry(&ledger.epoch.federation, message.round);
                    let (author, round) = (message.sender, message.round);
                    self.known.add(entry.id.0, author, round);
                    self.known.add(entry.fields.blob.0, author, round);
                }
                Ok(())
            }
            Fact::Reported { member, report } if ledger.honest(*member) => {
                self.reported(*member, report);
                Ok(())
            }
            Fact::Sent { by, to, frame } => {
                if ledger.honest(*by) {
                    self.sent(*by, *to, frame, ledger);
                }
                if self.told.is_empty() {
                    Ok(())
                } else {
                    self.leak(Some(ledger.now), ledger)
                }
            }
            Fact::Ended => self.leak(None, ledger),
            _ => Ok(()),
        }
    }
}
