//! An institution whose journal and ledger are written as its silo writes them, round by round, and the pages
//! that are made of them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agreement::Agreement;
use ledger::{
    Contribution, Cost, Ledger, LedgerContents, LedgerFile, Limits, Place, Source, SourceUnit,
};
use privacy::accountant::{Accountant, Delta};
use protocol::certificate::{Certificate, Verdict};
use protocol::identity::Signature;
use protocol::message::{
    Amendment, Approval, Block, Change, Confirmed, Content, Learning, MaskedRound, Recovery,
    Standing,
};
use protocol::parameters::Checkpoint;
use protocol::recovery::{ResumePoint, remaining};
use protocol::{Epoch, Hash, MemberIndex, Record};
use silo::JournalRecord;

use crate::check::{CheckOptions, check};
use crate::federation::print::{Printed, page};
use crate::federation::{OwnSide, brief, officer};
use crate::fixture::{North, key};
use crate::institution::{Configured, Membership, Present, standing};
use crate::status::{self, Status, fixture};
use crate::store;

/// The file of the ledger, beside the configuration.
const LEDGER: &str = "patients.ledger";

/// North, whose key has the number 9.
pub(super) struct PlayedInstitution {
    north: North,
    epoch: Arc<Epoch>,
    records: Vec<JournalRecord>,
    /// The final blocks of the present epoch.
    blocks: Vec<Block>,
    view: u64,
    /// The last final round.
    over: Checkpoint,
    /// The present round is prepared.
    prepared: bool,
    /// Folders of states that were written.
    states: u64,
    has_ledger: bool,
    /// Keeps the ledger of an earlier federation.
    _earlier: Option<Box<PlayedInstitution>>,
}

fn signature() -> Signature {
    Signature::from_bytes(&[0; 64])
}

impl PlayedInstitution {
    /// A node that has not run yet, with an empty ledger.
    pub(super) fn of(text: &str) -> Self {
        let played = Self::without(text);
        let source = Source {
            name: "patients".into(),
            unit: SourceUnit::Row,
        };
        LedgerFile::create(&played.at(LEDGER), &source, &[1; 16]).unwrap();
        played
    }

    fn without(text: &str) -> Self {
        let north = North::new();
        fs::write(north.folder.path().join("federation.toml"), text).unwrap();
        let epoch = Agreement::parse("federation.toml", text).unwrap().epoch;
        let mut played = Self {
            north,
            records: Vec::new(),
            blocks: Vec::new(),
            view: 0,
            over: epoch.began,
            epoch,
            prepared: false,
            states: 0,
            has_ledger: true,
            _earlier: None,
        };
        played.configure();
        played
    }

    /// The node of a new federation that counts with the same ledger.
    pub(super) fn continued_by(self, text: &str) -> Self {
        let played = Self::without(text);
        fs::copy(self.at(LEDGER), played.at(LEDGER)).unwrap();
        Self {
            _earlier: Some(Box::new(self)),
            ..played
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.north.folder.path().join(name)
    }

    /// Writes the configuration, with a state folder of its own for every state that is written.
    fn configure(&mut self) {
        let state = format!("state = \"state-{}\"", self.states);
        let policy = match self.has_ledger {
            true => format!("[policy]\nledger = \"{LEDGER}\"\nmin-rows = 2\n"),
            false => String::new(),
        };
        let silo = format!(
            "federation = \"federation.toml\"\nidentity = \"identity.key\"\n{state}\nlisten = \
             [\"/ip4/127.0.0.1/tcp/4001\"]\n[data.rows]\nfiles = [\"rows.csv\"]\n{policy}"
        );
        fs::write(self.at("node.toml"), silo).unwrap();
    }

    pub(super) fn without_ledger(&mut self) {
        self.has_ledger = false;
    }

    pub(super) fn with_ledger(&mut self) {
        self.has_ledger = true;
    }

    pub(super) fn federation(&self) -> Hash {
        self.epoch.federation
    }

    /// Prepares a contribution to the next round: its line is in the ledger before anything is sent.
    pub(super) fn prepare(&mut self) {
        if std::mem::replace(&mut self.prepared, true) {
            return;
        }
        let round = self.over.round + 1;
        let blob = Hash::of(&[self.epoch.number as u8, round as u8]);
        self.records.push(JournalRecord::Prepared {
            round,
            blob: blob.0,
            personal: [0; 32],
        });
        if self.has_ledger {
            let contribution = Contribution {
                place: Place {
                    federation: self.epoch.federation,
                    epoch: self.epoch.number,
                    round,
                },
                commitment: blob,
                cost: Cost::of(&self.epoch.protocol.privacy).unwrap(),
            };
            self.ledger_file().record(&contribution).unwrap();
        }
    }

    /// A round becomes final, with or without a contribution of the institution.
    pub(super) fn round(&mut self, own: bool) {
        if own {
            self.prepare();
        }
        let me = self.epoch.roster.position(&key(9).public());
        let named = self
            .epoch
            .roster
            .silos()
            .iter()
            .position(|silo| silo.name == "north");
        let me = me.or(named.map(|at| MemberIndex(at as u16)));
        let members = self.epoch.roster.members();
        let members = members.filter(|member| own || Some(*member) != me);
        let members: Vec<_> = members.collect();
        let signed = members.iter().map(|member| (*member, signature()));
        let (round, zero) = (self.over.round + 1, Hash([0; 32]));
        let inclusions = signed.collect::<Vec<_>>().into();
        let content = match self.epoch.protocol.privacy.masked() {
            Some(_) => Content::Masked(MaskedRound {
                round,
                plan: zero,
                state: zero,
                list: zero,
                ready: members,
                sheet: zero,
                inclusions,
            }),
            None => Content::Learning(Learning {
                round,
                plan: zero,
                sheet: zero,
                inclusions,
                decision: Vec::new(),
                outcome: zero,
            }),
        };
        let block = self.block(content);
        self.over = Checkpoint {
            round,
            block: block.hash(),
            outcome: zero,
        };
        self.prepared = false;
        self.records
            .retain(|record| !matches!(record, JournalRecord::Prepared { .. }));
        self.is_final(block);
    }

    /// The journal lacks the block of a round.
    pub(super) fn forgets(&mut self, round: u64) {
        let is_of = |block: &Block| block.round().is_some_and(|of| of.round == round);
        self.records.retain(|record| match record {
            JournalRecord::Protocol(Record::Final { blocks, .. }) => !blocks.iter().any(is_of),
            _ => true,
        });
    }

    /// The next block.
    fn block(&mut self, content: Content) -> Block {
        self.view += 1;
        let parent = self.blocks.last().map_or(self.epoch.id, Block::hash);
        Block {
            epoch: self.epoch.id,
            view: self.view,
            parent,
            content,
        }
    }

    fn is_final(&mut self, block: Block) {
        let proof = Certificate {
            view: block.view,
            verdict: Verdict::Final(block.hash()),
            votes: Vec::new().into(),
        };
        self.records.push(JournalRecord::Protocol(Record::Final {
            blocks: vec![block.clone()],
            proof,
        }));
        self.blocks.push(block);
    }

    /// A block ends the epoch. Of what the journal had beside final blocks nothing counts any more.
    fn ends(&mut self, block: Block) {
        let next = Arc::new(self.epoch.next(&block).unwrap());
        self.is_final(block);
        self.records
            .retain(|record| matches!(record, JournalRecord::Protocol(Record::Final { .. })));
        (self.over, self.view) = (next.began, 0);
        self.blocks.clear();
        self.prepared = false;
        self.epoch = next;
    }

    fn amendment(text: &str) -> Amendment {
        let new = Agreement::parse("amendment", text).unwrap();
        Amendment {
            format: new.epoch.format,
            silos: new.epoch.roster.silos().to_vec(),
            protocol: new.epoch.protocol.clone(),
            text: text.as_bytes().to_vec(),
            stolen: Vec::new(),
        }
    }

    /// A change of the agreement comes into force.
    pub(super) fn change(&mut self, text: &str) {
        let approval = |by| Approval {
            by,
            number: 1,
            signature: signature(),
        };
        let approvals = self.epoch.roster.members().map(approval);
        let change = Change {
            amendment: Self::amendment(text),
            after: self.over,
            approvals: approvals.collect::<Vec<_>>().into(),
        };
        let block = self.block(Content::Change(Box::new(change)));
        self.ends(block);
    }

    /// The members go on without `lost`, from the last round that one of them adopted.
    pub(super) fn recovers(&mut self, lost: &[MemberIndex], adopted: u64) {
        let at = |block: &Block| block.round().is_some_and(|of| of.round == adopted);
        let from = self.blocks.iter().position(at);
        let after = from.map_or(self.epoch.began, |from| Checkpoint {
            round: adopted,
            block: self.blocks[from].hash(),
            outcome: Hash([0; 32]),
        });
        let head = self.blocks[from.unwrap_or(0)..].to_vec();
        let point = ResumePoint {
            after,
            view: self.view,
            block: self.blocks.last().map_or(self.epoch.id, Block::hash),
        };
        let standing = Standing {
            number: 1,
            lost: lost.to_vec(),
            adopted: after,
            view: point.view,
            block: point.block,
            notarised: 0,
        };
        let signed = |by| Confirmed {
            by,
            standing: standing.clone(),
            signature: signature(),
            number: 1,
            confirmation: signature(),
        };
        let remaining = remaining(&self.epoch, lost).unwrap();
        let standings = remaining.into_iter().map(signed).collect();
        let block = Recovery::block(&self.epoch, lost, &point, standings, head);
        self.ends(block);
    }

    fn ledger_file(&self) -> LedgerFile {
        LedgerFile::at(self.at(LEDGER), Limits::none(delta()))
    }

    fn ledger(&self) -> LedgerContents {
        self.ledger_file().read().unwrap()
    }

    /// Both numbers of the last line of the ledger.
    pub(super) fn last_line(&self) -> (String, String) {
        let contents = self.ledger();
        let last = contents.lines.last().unwrap();
        (last.epsilon.clone(), last.epsilon_alone.clone())
    }

    /// Both numbers that the ledger will have after the rounds to come.
    fn by_ledger(&self) -> (String, String) {
        let contents = self.ledger();
        let mut all: Accountant = contents.accountant;
        let done = contents.contributions(&self.epoch.federation);
        let done = done.filter(|(epoch, ..)| *epoch == self.epoch.number);
        let done = done.map(|(_, round, _)| round).max().unwrap_or(0);
        let left = self.epoch.protocol.rounds - self.over.round.max(done);
        Cost::of(&self.epoch.protocol.privacy)
            .unwrap()
            .spend(&mut all, left);
        let bound = all.bound(delta());
        (bound.epsilon().to_string(), bound.alone().to_string())
    }

    /// Writes the journal, and reads it as every command does.
    fn present(&mut self) -> (Configured, Present) {
        self.states += 1;
        self.configure();
        let configured = Configured::load(&self.at("node.toml")).unwrap();
        let first = &configured.agreement.epoch;
        let owner = store::Owner {
            federation: first.federation,
            me: MemberIndex(0),
            key: key(9),
        };
        if !self.records.is_empty() {
            use silo::Journal;
            let mut opened = store::open(&configured.state, &owner, 1 << 20).unwrap();
            opened.journal.load().unwrap();
            opened.journal.commit(self.records.clone()).unwrap();
        }
        match standing(configured.clone()).unwrap() {
            (_, Membership::Member(present)) => (configured, *present),
            _ => panic!("north is no member"),
        }
    }

    /// Returns what is said of the federation, each without line breaks: `rota check`, the page to print, the status as
    /// text and as a page, and what the report has.
    pub(super) fn pages(&mut self) -> [String; 5] {
        let (configured, present) = self.present();
        let options = CheckOptions {
            network: false,
            rehearse: false,
            patience: Duration::from_secs(1),
        };
        let checked = check(&configured, &options).unwrap();
        let spending = present.spending();
        let agreement = &present.institution.agreement;
        let own = OwnSide {
            spending: Some(spending.clone()),
            ..OwnSide::default()
        };
        let printed = page(&Printed {
            agreement,
            me: present.institution.me,
            own: &own,
            consent: "",
            consents: &[],
            chain: None,
            date: "",
            config: &configured.folder,
            uncounted: None,
        });
        let said = Status {
            learned: brief(agreement, &spending),
            ..fixture::status()
        };
        let report = [brief(agreement, &spending), officer(agreement, &spending)];
        let report: Vec<_> = report.concat();
        let pages = [
            checked.owner.join(" "),
            printed,
            status::text::text(&said),
            status::page::page(&said),
            report.join(" "),
        ];
        pages.map(|page| page.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// That every page says what is for all rounds together with these words, and with the same numbers.
    pub(super) fn numbers(&mut self, said: &str) -> (String, String) {
        let pages = self.pages();
        let found = pages.each_ref().map(|page| {
            let at = page.find(said).unwrap_or_else(|| panic!("{said}\n{page}"));
            bound(&page[at..])
        });
        assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
        found[0].clone()
    }

    /// That every page says it with these words, and that it has the numbers of the ledger.
    pub(super) fn agree(&mut self, said: &str) -> (String, String) {
        let found = self.numbers(said);
        assert_eq!(found, self.by_ledger(), "{said}");
        let check = &self.pages()[0];
        if found.0 != "no bound" {
            let (epsilon, alone) = &found;
            let officer = format!("epsilon is {epsilon}, and epsilon_alone is {alone}.");
            assert!(check.contains(&officer), "{officer}: {check}");
        }
        found
    }

    /// That some page says this.
    pub(super) fn has(&mut self, said: &str) {
        let pages = self.pages();
        assert!(
            pages.iter().any(|page| page.contains(said)),
            "{said}: {}",
            pages[0]
        );
    }

    /// That no page says any of this.
    pub(super) fn never(&mut self, words: &[&str]) {
        for page in self.pages() {
            for word in words {
                let mut parts = page.split([' ', ';', ':']);
                let found = match word.contains(' ') {
                    true => page.contains(&format!("{word} ")),
                    false => parts.any(|part| part == *word),
                };
                assert!(!found, "{word}: {page}");
            }
        }
    }

    /// Returns what those who approve a change read of it.
    pub(super) fn proposed(&mut self, text: &str) -> (String, String) {
        let (_, present) = self.present();
        let agreement = &present.institution.agreement;
        let genesis = protocol::Genesis {
            silos: Self::amendment(text).silos,
            protocol: Self::amendment(text).protocol,
        };
        let epoch = Epoch::first_in(Self::amendment(text).format, &genesis).unwrap();
        let new = agreement
            .after(&Self::amendment(text), Arc::new(epoch))
            .unwrap();
        let history = present.contributed.after_change(&new.epoch);
        let own = OwnSide {
            spending: Some(present.institution.site.spending(&new, &history)),
            ..OwnSide::default()
        };
        let before = OwnSide {
            spending: Some(present.spending()),
            ..OwnSide::default()
        };
        let lines = crate::federation::changed_words_for((agreement, &before), (&new, &own));
        let comes = |line: &&String| line.starts_with("+ ") && line.contains("together: epsilon ");
        bound(lines.iter().find(comes).unwrap())
    }
}

fn delta() -> Delta {
    Delta::new(1e-5).unwrap()
}

/// Both numbers behind the next colon.
fn bound(said: &str) -> (String, String) {
    let none = said.find("no bound for");
    let Some(at) = said
        .find("epsilon ")
        .filter(|at| none.is_none_or(|none| *at < none))
    else {
        return ("no bound".into(), "no bound".into());
    };
    let (epsilon, rest) = said[at..]
        .strip_prefix("epsilon ")
        .unwrap()
        .split_once(" and epsilon_alone ")
        .unwrap();
    let (alone, _) = rest.split_once(", both at delta 1e-5").unwrap();
    (epsilon.into(), alone.into())
}
