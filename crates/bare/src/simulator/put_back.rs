//! Journals that are put back as they were some records ago, and members that notice it.

use protocol::MemberIndex;
use protocol::forgotten::Forgotten;

use super::super::faults::JournalLoss;
use super::{FailureKind, Simulator, violated};

/// Most records that are missing in a journal that is put back: those of about three rounds.
const RECORDS: usize = 30;

impl Simulator<'_> {
    /// A stopped node's journal is put back as it was some records ago. From now on its member counts as
    /// faulty in the epochs so far, because it may contradict what it has forgotten until it notices.
    pub(super) fn put_back(&mut self, at: usize) -> Result<(), FailureKind> {
        let records = self.nodes[at].journal.len();
        let missing = 1 + self.random.below(RECORDS);
        if records < 2 {
            return Ok(());
        }
        self.tell(Some(at), || {
            format!("gets its journal of {missing} records ago back")
        });
        let now = self.now;
        for epoch in 0..=self.nodes[at].epoch {
            let run = &mut self.epochs[epoch];
            if let Some(seat) = run.nodes.iter().position(|&node| node == at) {
                let me = MemberIndex(seat as u16);
                run.monitor.count_as_faulty(me);
                run.monitor.crashed(now, me, true).map_err(violated)?;
            }
        }
        let kept = records.saturating_sub(missing).max(1);
        self.nodes[at].journal.truncate(kept);
        // A round whose end the journal lacks is not final for the node before it learns that again.
        self.forget_final(at);
        self.put_back.insert(at);
        Ok(())
    }

    /// A node noticed that its journal is outdated. One whose journal is whole never does.
    pub(super) fn noticed(&mut self, at: usize, what: Forgotten) -> Result<(), FailureKind> {
        self.lost_journals.unaware.remove(&at);
        self.outdated.insert((at, self.nodes[at].epoch));
        let options = self.options;
        let rules_broken =
            options.configure.is_some() || options.persist_last || options.journals_vanish;
        let hidden = options.faults.journal_loss == JournalLoss::Hidden;
        let twin = self.twins.contains_key(&at);
        let justified = self.put_back.contains(&at) || self.nodes[at].byzantine.is_some();
        if justified || twin || hidden || rules_broken {
            return Ok(());
        }
        Err(FailureKind::Outdated(format!(
            "the journal of node {at} is whole, and it misses {what}"
        )))
    }

    /// A node signs something that binds it: its journal must not be known to be outdated.
    pub(super) fn signs(&self, at: usize) -> Result<(), FailureKind> {
        let epoch = self.nodes[at].epoch;
        if self.outdated.contains(&(at, epoch)) {
            Err(FailureKind::Outdated(format!(
                "node {at} signed in epoch {epoch} although it knew that its journal is outdated"
            )))
        } else {
            Ok(())
        }
    }
}
