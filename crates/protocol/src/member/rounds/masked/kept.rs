//! The lists and manifests of a masked round that a member keeps, and what it found of them. They belong to
//! one view: another lead makes another list, for which everything is masked anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::consensus::outbox::Outbox;
use crate::message::{MaskedManifest, MaskedVector};
use crate::roster::MemberIndex;
use crate::work::{MaskedList, Request, WorkError};

/// Most lists that an honest lead issues in a view, each without members that the one before had.
pub(in crate::member) const LISTS: usize = 4;

/// The lists and manifests of a view.
#[derive(Default)]
pub(in crate::member) struct Masks {
    view: u64,
    /// The lists that were answered, in their order.
    lists: Vec<Arc<MaskedList>>,
    /// This member's vectors, by the root of their list; `None` while one is being masked.
    pub(in crate::member) vectors: BTreeMap<Hash, Option<MaskedVector>>,
    manifests: BTreeMap<Hash, Arc<MaskedManifest>>,
    /// What was found of manifests, and of single vectors as manifests of one entry.
    pub(in crate::member) checks: BTreeMap<Hash, ManifestCheck>,
    /// The root of the manifest that this member signs for once all of it is here.
    pub(in crate::member) signing: Option<Hash>,
}

/// What was found of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::member) enum ManifestCheck {
    /// The manifest is being fetched and checked.
    Running,
    /// The manifest could not be fetched; tried again after a heartbeat.
    Stalled,
    /// All of the manifest is kept here, and right.
    Held,
    /// The manifest is wrong.
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

    /// Whether a list with these members may follow those of this view: there are few, and it lacks
    /// some of the members of the last one and has no others.
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

    /// The manifest with this root.
    pub(in crate::member) fn manifest(&self, root: &Hash) -> Option<&Arc<MaskedManifest>> {
        self.manifests.get(root)
    }

    /// Keeps a manifest. A lead issues at most one for each list.
    pub(in crate::member) fn keep(&mut self, root: Hash, manifest: Arc<MaskedManifest>) -> bool {
        let of_list = |other: &Arc<MaskedManifest>| other.list == manifest.list;
        let known = self.manifests.contains_key(&root);
        if !known && self.manifests.values().any(of_list) {
            return false;
        }
        self.manifests.insert(root, manifest);
        true
    }

    /// Has a manifest fetched and checked, unless that is known or under way.
    pub(in crate::member) fn verify(
        &mut self,
        manifest: Arc<MaskedManifest>,
        root: Hash,
        holders: Vec<MemberIndex>,
        out: &mut Outbox,
    ) {
        let list = self.list(&manifest.list).cloned();
        if let Some(list) = list.filter(|_| !self.checks.contains_key(&root)) {
            self.checks.insert(root, ManifestCheck::Running);
            let verify = Request::Verify {
                list,
                manifest,
                holders,
            };
            out.push(Effect::Work(verify));
        }
    }

    /// A manifest was checked, or could not be.
    pub(in crate::member) fn checked(&mut self, root: Hash, result: Result<(), WorkError>) {
        if let Some(check) = self.checks.get_mut(&root) {
            *check = match result {
                Ok(()) => ManifestCheck::Held,
                Err(WorkError::Unavailable) => ManifestCheck::Stalled,
                Err(WorkError::Refused(reason)) => ManifestCheck::Refused(reason),
            };
        }
    }

    /// A heartbeat has passed: what could not be fetched may be requested again.
    pub(in crate::member) fn retry(&mut self) {
        self.checks
            .retain(|_, check| *check != ManifestCheck::Stalled);
    }
}
