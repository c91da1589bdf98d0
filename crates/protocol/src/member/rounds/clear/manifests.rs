//! The manifests of a round that a member keeps. Their number is bounded, even if leads send many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::hash::Hash;
use crate::message::RoundManifest;

/// Most manifests kept in a round, beside those that this member needs. Of one view at most
/// [`per_view`] are kept, so a lead pushes out its own manifests first.
const MANIFESTS: usize = 64;

/// Most manifests that an honest lead issues in a view: one, and f + 1 more that leave authors out.
pub(in crate::member) fn per_view(faulty: usize) -> usize {
    faulty + 2
}

/// Manifests by root.
#[derive(Default)]
pub(in crate::member) struct Manifests {
    kept: BTreeMap<Hash, KeptManifest>,
    next: u64,
    /// A view, and the manifests that this member signed for in it.
    signed: (u64, BTreeSet<Hash>),
}

struct KeptManifest {
    manifest: Arc<RoundManifest>,
    /// The view in which the manifest was last received, and a number that ascends with every arrival.
    since: (u64, u64),
    /// Whether the manifest stays in this round: this member judged a block with it, or leads with it.
    needed: bool,
}

impl Manifests {
    /// The manifest with this root.
    pub(in crate::member) fn get(&self, root: &Hash) -> Option<&Arc<RoundManifest>> {
        self.kept.get(root).map(|kept| &kept.manifest)
    }

    /// Keeps a manifest that the lead of `view` sent. Older ones make room for it.
    pub(in crate::member) fn keep(
        &mut self,
        root: Hash,
        manifest: Arc<RoundManifest>,
        view: u64,
        per_view: usize,
    ) {
        self.next += 1;
        let since = (view, self.next);
        let new = KeptManifest {
            manifest,
            since,
            needed: false,
        };
        self.kept.entry(root).or_insert(new).since = since;
        let of_view = |kept: &KeptManifest| kept.since.0 == view;
        self.make_room(per_view, of_view);
        self.make_room(MANIFESTS, |_| true);
    }

    /// Marks a manifest that must not be dropped in this round.
    pub(in crate::member) fn need(&mut self, root: &Hash) {
        if let Some(kept) = self.kept.get_mut(root) {
            kept.needed = true;
        }
    }

    /// Whether this member may sign for a manifest in `view`: it already did, or it has signed for
    /// fewer manifests than an honest lead issues. Counts the manifest as signed.
    pub(in crate::member) fn may_sign(&mut self, root: &Hash, view: u64, per_view: usize) -> bool {
        if self.signed.0 != view {
            self.signed = (view, BTreeSet::new());
        }
        let signed = &mut self.signed.1;
        signed.contains(root) || signed.len() < per_view && signed.insert(*root)
    }

    /// Drops the oldest manifests of a group that are not needed, down to `most`.
    fn make_room(&mut self, most: usize, group: impl Fn(&KeptManifest) -> bool) {
        let mut old: Vec<_> = self
            .kept
            .iter()
            .filter(|(_, kept)| !kept.needed && group(kept))
            .map(|(root, kept)| (kept.since, *root))
            .collect();
        old.sort_unstable();
        for (_, root) in old.iter().take(old.len().saturating_sub(most)) {
            self.kept.remove(root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Entry, EntryFields};

    fn manifest(name: u64) -> (Hash, Arc<RoundManifest>) {
        let id = Hash::of(&name.to_le_bytes());
        let fields = EntryFields {
            blob: id,
            size: 1,
            coalition: None,
            weight: None,
            member: None,
        };
        let manifest = RoundManifest {
            entries: vec![Entry { id, fields }],
            scores: None,
        };
        (manifest.root(), Arc::new(manifest))
    }

    #[test]
    fn sheets_that_a_lead_invents_push_out_only_its_own() {
        let mut manifests = Manifests::default();
        let (voted, other) = (manifest(1000), manifest(1001));
        manifests.keep(voted.0, voted.1.clone(), 1, 3);
        manifests.need(&voted.0);
        manifests.keep(other.0, other.1.clone(), 1, 3);
        let invented: Vec<_> = (0..200).map(manifest).collect();
        for (root, manifest) in &invented {
            manifests.keep(*root, manifest.clone(), 2, 3);
        }
        assert_eq!(manifests.kept.len(), 2 + 3);
        assert!(manifests.get(&voted.0).is_some() && manifests.get(&other.0).is_some());
        // The lead's last manifests are kept: a manifest that it sends again is not dropped before others.
        assert!(manifests.get(&invented[199].0).is_some());
        manifests.keep(invented[197].0, invented[197].1.clone(), 2, 3);
        manifests.keep(voted.0, voted.1, 2, 3);
        let last = manifest(2000);
        manifests.keep(last.0, last.1, 2, 3);
        assert!(manifests.get(&invented[197].0).is_some());
        assert!(manifests.get(&invented[198].0).is_none());
    }

    #[test]
    fn at_most_64_sheets_are_kept_however_many_views_fail() {
        let mut manifests = Manifests::default();
        for view in 0..1000 {
            let (root, manifest) = manifest(view);
            manifests.keep(root, manifest, view, 3);
        }
        assert_eq!(manifests.kept.len(), MANIFESTS);
        assert!(manifests.get(&manifest(999).0).is_some());
    }

    #[test]
    fn as_many_sheets_are_signed_in_a_view_as_an_honest_lead_issues() {
        let mut manifests = Manifests::default();
        let mut signed = 0;
        for name in 0..10 {
            let (root, manifest) = manifest(name);
            manifests.keep(root, manifest, 1, 10);
            signed += usize::from(manifests.may_sign(&root, 1, 3));
            // What is signed once is signed again when it is sent again.
            assert!(signed == 3 || manifests.may_sign(&root, 1, 3));
        }
        assert_eq!(signed, 3);
        let (root, manifest) = manifest(99);
        manifests.keep(root, manifest, 2, 10);
        assert!(manifests.may_sign(&root, 2, 3));
    }
}
