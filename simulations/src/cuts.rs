//! Cut links of a simulated network.

use std::collections::BTreeMap;

/// Links that are cut, each in one direction, from sender to receiver. A link may be cut several
/// times at once; it is open when every cut was restored.
#[derive(Debug, Default)]
pub(crate) struct Cuts(BTreeMap<(usize, usize), u32>);

impl Cuts {
    /// Cuts links.
    pub(crate) fn cut(&mut self, links: &[(usize, usize)]) {
        for &link in links {
            *self.0.entry(link).or_default() += 1;
        }
    }

    /// Restores links, each by one cut.
    pub(crate) fn mend(&mut self, links: &[(usize, usize)]) {
        for link in links {
            if let Some(cuts) = self.0.get_mut(link) {
                *cuts -= 1;
                if *cuts == 0 {
                    self.0.remove(link);
                }
            }
        }
    }

    /// Restores all links.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether a link is open.
    pub(crate) fn open(&self, from: usize, to: usize) -> bool {
        !self.0.contains_key(&(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_cut_twice_opens_after_two_mends() {
        let mut cuts = Cuts::default();
        cuts.cut(&[(0, 1), (0, 1), (1, 2)]);
        cuts.mend(&[(0, 1), (1, 2), (5, 6)]);
        assert!(!cuts.open(0, 1) && cuts.open(1, 0) && cuts.open(1, 2));
        cuts.mend(&[(0, 1)]);
        assert!(cuts.open(0, 1));
    }
}
