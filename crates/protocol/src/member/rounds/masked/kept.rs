//! The lists and sheets of a masked round that a member keeps, and what it found of them. They belong to
//! one view: another lead makes another list, for which everything is masked anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::consensus::outbox::Outbox;
use crate::message::{MaskedSheet, MaskedVector};
use crate::roster::MemberIndex;
use crate::work::{MaskedList, Request, WorkError};

/// Most lists that an honest lead issues in a view, each without members that the one before had.
pub(in crate::member) const LISTS: usize = 4;

/// The lists and sheets of a view.
#[derive(Default)]
pub(in crate::member) struct Masks {
    view: u64,
    /// The lists that were answered, in their order.
    lists: Vec<Arc<MaskedList>>,
    /// This member's vectors, by the root of their list; `None` while one is being masked.
    pub(in crate::member) vectors: BTreeMap<Hash, Option<MaskedVector>>,
    sheets: BTreeMap<Hash, Arc<MaskedSheet>>,
    /// Results of checking sheets, and single vectors as sheets of one entry.
    pub(in crate::member) checks: BTreeMap<Hash, SheetCheck>,
    /// The root of the sheet that this member signs for once all of it is here.
    pub(in crate::member) signing: Option<Hash>,
}

/// Result of checking a sheet.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::member) enum SheetCheck {
    /// The sheet is being fetched and checked.
    Running,
    /// The sheet could not be fetched; tried again after a beat.
    Stalled,
    /// All of the sheet is kept here, and right.
    Held,
    /// The sheet is wrong.
    Refused(String),
}

impl Masks {
    /// Begins anew if this is another view.
    pub(in crate::member) fn of_view(&mut self, view: u64) -> &mut Self {
        if self.view != view {
            *self = Self {
                view,
                ..Self::default()
            };
        }
        self
    }

    /// The last list that was answered.
    pub(in crate::member) fn last(&self) -> Option<&Arc<MaskedList>> {
        self.lists.last()
    }

    /// The list with this root.
    pub(in crate::member) fn list(&self, root: &Hash) -> Option<&Arc<MaskedList>> {
        self.lists.iter().find(|list| list.root == *root)
    }

    /// Returns true if a list with these members may follow those of this view: there are few, and it lacks some of the
    /// members of the last one and has no others.
    pub(in crate::member) fn may_follow(&self, ready: &[MemberIndex]) -> bool {
        let Some(last) = self.lists.last() else {
            return true;
        };
        let before = last.keys.members();
        let within = ready
            .iter()
            .all(|member| before.binary_search(member).is_ok());
        self.lists.len() < LISTS && within && ready.len() < before.len()
    }

    /// Keeps a list.
    pub(in crate::member) fn add(&mut self, list: Arc<MaskedList>) {
        self.lists.push(list);
    }

    /// The sheet with this root.
    pub(in crate::member) fn sheet(&self, root: &Hash) -> Option<&Arc<MaskedSheet>> {
        self.sheets.get(root)
    }

    /// Keeps a sheet. A lead issues at most one for each list.
    pub(in crate::member) fn keep(&mut self, root: Hash, sheet: Arc<MaskedSheet>) -> bool {
        let of_list = |other: &Arc<MaskedSheet>| other.list == sheet.list;
        let known = self.sheets.contains_key(&root);
        if !known && self.sheets.values().any(of_list) {
            return false;
        }
        self.sheets.insert(root, sheet);
        true
    }

    /// Has a sheet fetched and checked, unless that is known or under way.
    pub(in crate::member) fn verify(
        &mut self,
        sheet: Arc<MaskedSheet>,
        root: Hash,
        holders: Vec<MemberIndex>,
        out: &mut Outbox,
    ) {
        let list = self.list(&sheet.list).cloned();
        if let Some(list) = list.filter(|_| !self.checks.contains_key(&root)) {
            self.checks.insert(root, SheetCheck::Running);
            let verify = Request::Verify {
                list,
                sheet,
                holders,
            };
            out.push(Effect::Work(verify));
        }
    }

    /// A sheet was checked, or could not be.
    pub(in crate::member) fn checked(&mut self, root: Hash, result: Result<(), WorkError>) {
        if let Some(check) = self.checks.get_mut(&root) {
            *check = match result {
                Ok(()) => SheetCheck::Held,
                Err(WorkError::Unavailable) => SheetCheck::Stalled,
                Err(WorkError::Refused(reason)) => SheetCheck::Refused(reason),
            };
        }
    }

    /// A beat has passed: what could not be fetched may be requested again.
    pub(in crate::member) fn retry(&mut self) {
        self.checks.retain(|_, check| *check != SheetCheck::Stalled);
    }
}
