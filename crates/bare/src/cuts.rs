//! Cut links of a simulated network, and the links that a network split cuts.

use std::collections::BTreeMap;

/// Links that are cut, each in one direction, from sender to receiver. A link may be cut several
/// times at once; it is open when every cut was restored.
#[derive(Debug, Default)]
pub struct CutLinks(BTreeMap<(usize, usize), u32>);

impl CutLinks {
    /// Cuts links.
    pub fn cut(&mut self, links: &[(usize, usize)]) {
        for &link in links {
            *self.0.entry(link).or_default() += 1;
        }
    }

    /// Restores links, each by one cut.
    pub fn mend(&mut self, links: &[(usize, usize)]) {
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
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns whether a link is open.
    pub fn open(&self, from: usize, to: usize) -> bool {
        !self.0.contains_key(&(from, to))
    }
}

/// The links of `n` members that a network split cuts: those between the members for which `apart`
/// holds and the others, or only those from the first to the others if it is `one_way`.
pub fn split(n: usize, one_way: bool, apart: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
    let links = (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
    let cut = |&(from, to): &(usize, usize)| apart(from) != apart(to) && (apart(from) || !one_way);
    links.filter(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_cuts_the_links_between_both_sides_or_one_way() {
        let both = split(3, false, |member| member == 1);
        assert_eq!(both, [(0, 1), (1, 0), (1, 2), (2, 1)]);
        assert_eq!(split(3, true, |member| member == 1), [(1, 0), (1, 2)]);
    }

    #[test]
    fn a_link_that_is_cut_twice_opens_after_two_mends() {
        let mut cuts = CutLinks::default();
        cuts.cut(&[(0, 1), (0, 1), (1, 2)]);
        cuts.mend(&[(0, 1), (1, 2), (5, 6)]);
        assert!(!cuts.open(0, 1) && cuts.open(1, 0) && cuts.open(1, 2));
        cuts.mend(&[(0, 1)]);
        assert!(cuts.open(0, 1));
    }
}
