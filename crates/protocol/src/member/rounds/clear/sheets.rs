//! The sheets of a round that a member keeps. Their number is bounded, even if leads send many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::hash::Hash;
use crate::message::Sheet;

/// Most sheets kept in a round, beside those that this member needs. Of one view at most
/// [`per_view`] are kept, so a lead pushes out its own sheets first.
const SHEETS: usize = 64;

/// Most sheets that an honest lead issues in a view: one, and f + 1 more that leave authors out.
pub(in crate::member) fn per_view(faulty: usize) -> usize {
    faulty + 2
}

/// Sheets by root.
#[derive(Default)]
pub(in crate::member) struct Sheets {
    kept: BTreeMap<Hash, KeptSheet>,
    next: u64,
    /// A view, and the sheets that this member signed for in it.
    signed: (u64, BTreeSet<Hash>),
}

struct KeptSheet {
    sheet: Arc<Sheet>,
    /// The view in which the sheet was last received, and a number that ascends with every arrival.
    since: (u64, u64),
    /// Whether the sheet stays in this round: this member judged a block with it, or leads with it.
    needed: bool,
}

impl Sheets {
    /// The sheet with this root.
    pub(in crate::member) fn get(&self, root: &Hash) -> Option<&Arc<Sheet>> {
        self.kept.get(root).map(|kept| &kept.sheet)
    }

    /// Keeps a sheet that the lead of `view` sent. Older ones make room for it.
    pub(in crate::member) fn keep(
        &mut self,
        root: Hash,
        sheet: Arc<Sheet>,
        view: u64,
        per_view: usize,
    ) {
        self.next += 1;
        let since = (view, self.next);
        let new = KeptSheet {
            sheet,
            since,
            needed: false,
        };
        self.kept.entry(root).or_insert(new).since = since;
        let of_view = |kept: &KeptSheet| kept.since.0 == view;
        self.make_room(per_view, of_view);
        self.make_room(SHEETS, |_| true);
    }

    /// Marks a sheet that must not be dropped in this round.
    pub(in crate::member) fn need(&mut self, root: &Hash) {
        if let Some(kept) = self.kept.get_mut(root) {
            kept.needed = true;
        }
    }

    /// Whether this member may sign for a sheet in `view`: it already did, or it has signed for
    /// fewer sheets than an honest lead issues. Counts the sheet as signed.
    pub(in crate::member) fn may_sign(&mut self, root: &Hash, view: u64, per_view: usize) -> bool {
        if self.signed.0 != view {
            self.signed = (view, BTreeSet::new());
        }
        let signed = &mut self.signed.1;
        signed.contains(root) || signed.len() < per_view && signed.insert(*root)
    }

    /// Drops the oldest sheets of a group that are not needed, down to `most`.
    fn make_room(&mut self, most: usize, group: impl Fn(&KeptSheet) -> bool) {
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

    fn sheet(name: u64) -> (Hash, Arc<Sheet>) {
        let id = Hash::of(&name.to_le_bytes());
        let fields = EntryFields {
            blob: id,
            size: 1,
            coalition: None,
            weight: None,
            member: None,
        };
        let sheet = Sheet {
            entries: vec![Entry { id, fields }],
            scores: None,
        };
        (sheet.root(), Arc::new(sheet))
    }

    #[test]
    fn manifests_that_a_lead_forges_push_out_only_its_own() {
        let mut sheets = Sheets::default();
        let (voted, other) = (sheet(1000), sheet(1001));
        sheets.keep(voted.0, voted.1.clone(), 1, 3);
        sheets.need(&voted.0);
        sheets.keep(other.0, other.1.clone(), 1, 3);
        let invented: Vec<_> = (0..200).map(sheet).collect();
        for (root, sheet) in &invented {
            sheets.keep(*root, sheet.clone(), 2, 3);
        }
        assert_eq!(sheets.kept.len(), 2 + 3);
        assert!(sheets.get(&voted.0).is_some() && sheets.get(&other.0).is_some());
        // The lead's last sheets are kept: a sheet that it sends again is not dropped before others.
        assert!(sheets.get(&invented[199].0).is_some());
        sheets.keep(invented[197].0, invented[197].1.clone(), 2, 3);
        sheets.keep(voted.0, voted.1, 2, 3);
        let last = sheet(2000);
        sheets.keep(last.0, last.1, 2, 3);
        assert!(sheets.get(&invented[197].0).is_some());
        assert!(sheets.get(&invented[198].0).is_none());
    }

    #[test]
    fn at_most_64_manifests_are_kept_however_many_views_fail() {
        let mut sheets = Sheets::default();
        for view in 0..1000 {
            let (root, sheet) = sheet(view);
            sheets.keep(root, sheet, view, 3);
        }
        assert_eq!(sheets.kept.len(), SHEETS);
        assert!(sheets.get(&sheet(999).0).is_some());
    }

    #[test]
    fn as_many_manifests_are_signed_as_an_honest_lead_issues() {
        let mut sheets = Sheets::default();
        let mut signed = 0;
        for name in 0..10 {
            let (root, sheet) = sheet(name);
            sheets.keep(root, sheet, 1, 10);
            signed += usize::from(sheets.may_sign(&root, 1, 3));
            // What is signed once is signed again when it is sent again.
            assert!(signed == 3 || sheets.may_sign(&root, 1, 3));
        }
        assert_eq!(signed, 3);
        let (root, sheet) = sheet(99);
        sheets.keep(root, sheet, 2, 10);
        assert!(sheets.may_sign(&root, 2, 3));
    }
}
