//! P2: what a lead and members that collude can compute about the inputs of the others.
//!
//! Every masked vector is recorded as a formal sum: the weight times the symbol of its author's input,
//! which is *the same for the whole federation*, and one symbol for each stream. With noise every draw of it
//! gives another input, and no draw may stand in two sums that are opened. The own stream of an author
//! is in one vector only, so that vector tells nothing before its list is opened: before t shares are given
//! away or are the colluders' own. Then own streams drop out, and so do those of pairs with a colluder.
//! Elimination over a prime field leaves the forms of honest inputs alone that follow from everything that
//! was ever sent. They must be spanned by the honest parts of the sums of final rounds, and none may
//! concern a single honest institution. Besides, colluders can open no list before it is final (P1).

use std::collections::{BTreeMap, BTreeSet};

use protocol::Hash;

use super::masks::{PRIME, inverse, multiply};

/// A symbol that the colluders may not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Symbol {
    /// The stream of two authors for a list.
    Pair(Hash, usize, usize),
    /// The input of an institution, with a draw of noise. Behind the streams, so that elimination takes these
    /// first.
    Input(usize, Hash),
}

/// A linear form: a number for each symbol.
type Form = BTreeMap<Symbol, u64>;

/// A list for which vectors were masked.
#[derive(Debug, Clone)]
struct List {
    /// Nodes of the ready members.
    ready: BTreeSet<usize>,
    threshold: usize,
    /// The sums: authors with weights.
    sums: Vec<BTreeMap<usize, u64>>,
}

/// Stands for inputs without noise, which are the same in all rounds.
pub(super) const NO_NOISE: Hash = Hash([0; 32]);

/// Everything that was sent of secure-aggregation rounds.
#[derive(Debug, Default)]
pub(super) struct Symbolic {
    lists: BTreeMap<Hash, List>,
    /// The draw of noise in the vector of each author for each list; [`NO_NOISE`] without.
    vectors: BTreeMap<(Hash, usize), Hash>,
    /// Members that gave the shares of a list away.
    unmasked: BTreeMap<Hash, BTreeSet<usize>>,
    /// Lists whose block is final.
    settled: BTreeSet<Hash>,
    /// True if anybody may know more than when this was last checked.
    news: bool,
}

impl Symbolic {
    /// A list for which somebody masks a vector.
    pub(super) fn list(
        &mut self,
        root: Hash,
        ready: impl IntoIterator<Item = usize>,
        threshold: usize,
        sums: Vec<BTreeMap<usize, u64>>,
    ) {
        let ready = ready.into_iter().collect();
        self.lists.entry(root).or_insert(List {
            ready,
            threshold,
            sums,
        });
    }

    /// An author sent its vector for a list, with this draw of noise in it.
    pub(super) fn vector(&mut self, root: Hash, author: usize, draw: Hash) {
        self.news |= self.vectors.insert((root, author), draw).is_none();
    }

    /// The draw of noise in an author's vector for a list.
    fn draw(&self, root: &Hash, author: usize) -> Hash {
        let draw = self.vectors.get(&(*root, author));
        draw.copied().unwrap_or(NO_NOISE)
    }

    /// A ready member gave its shares for a list away.
    pub(super) fn unmasked(&mut self, root: Hash, by: usize) {
        let given = self.unmasked.entry(root).or_default();
        // A list that everybody can open tells nothing new.
        let open = |list: &List| given.len() >= list.threshold;
        self.news |= !self.lists.get(&root).is_some_and(open);
        given.insert(by);
    }

    /// The block of a list is final.
    pub(super) fn settled(&mut self, root: Hash) {
        self.settled.insert(root);
    }

    /// Returns whether colluders know the own streams of a list's authors.
    fn opens(&self, root: &Hash, list: &List, colluders: &BTreeSet<usize>) -> bool {
        let given = self.unmasked.get(root).into_iter().flatten();
        let shares: BTreeSet<_> = given.chain(list.ready.intersection(colluders)).collect();
        shares.len() >= list.threshold
    }

    /// An honest author's vector as the colluders see it, without what they know; none if its list is not
    /// opened for them.
    fn form(&self, root: &Hash, author: usize, colluders: &BTreeSet<usize>) -> Option<Form> {
        let list = self
            .lists
            .get(root)
            .filter(|list| self.opens(root, list, colluders))?;
        let sum = list.sums.iter().find(|sum| sum.contains_key(&author))?;
        let mut form = Form::from([(
            Symbol::Input(author, self.draw(root, author)),
            sum[&author] % PRIME,
        )]);
        for &other in sum.keys().filter(|other| !colluders.contains(other)) {
            if other != author {
                let (low, high) = (author.min(other), author.max(other));
                let sign = if author == low { 1 } else { PRIME - 1 };
                form.insert(Symbol::Pair(*root, low, high), sign);
            }
        }
        Some(form)
    }

    /// Checks what these colluders know.
    ///
    /// # Errors
    /// A description of what they know and must not.
    pub(super) fn check(&self, colluders: &BTreeSet<usize>) -> Result<(), String> {
        let early = |(root, _): &&(Hash, usize)| {
            let list = self
                .lists
                .get(root)
                .filter(|_| !self.settled.contains(root));
            list.is_some_and(|list| self.opens(root, list, colluders))
        };
        if let Some((root, _)) = self.vectors.keys().find(early) {
            return Err(format!(
                "{colluders:?} can open the list {root}, which is not final"
            ));
        }
        self.check_draws(colluders)?;
        let honest = self
            .vectors
            .keys()
            .filter(|(_, author)| !colluders.contains(author));
        let mut all = FormSpan::default();
        for form in honest.filter_map(|(root, author)| self.form(root, *author, colluders)) {
            all.add(form);
        }
        let known = all.inputs();
        let mut allowed = FormSpan::default();
        for root in &self.settled {
            let list = self.lists.get(root);
            for sum in list.into_iter().flat_map(|list| &list.sums) {
                let parts = sum.iter().filter(|(author, _)| !colluders.contains(author));
                allowed.add(
                    parts
                        .map(|(by, weight)| (Symbol::Input(*by, self.draw(root, *by)), *weight))
                        .collect(),
                );
            }
        }
        let mut span = FormSpan::default();
        for form in &known {
            span.add(form.clone());
            if !allowed.holds(form.clone()) {
                return Err(format!(
                    "{colluders:?} know {form:?}, which is in no final sum"
                ));
            }
        }
        let inputs = self.vectors.iter();
        let inputs: BTreeSet<_> = inputs.map(|((_, by), draw)| (*by, *draw)).collect();
        let single = |(author, draw): &&(usize, Hash)| {
            span.holds(Form::from([(Symbol::Input(*author, *draw), 1)]))
        };
        let mut others = inputs
            .iter()
            .filter(|(author, _)| !colluders.contains(author));
        match others.find(single) {
            Some((author, _)) => Err(format!("{colluders:?} know the input of {author} alone")),
            None => Ok(()),
        }
    }

    /// No draw of noise stands in two sums that are opened, or can be: their difference would be without it.
    fn check_draws(&self, colluders: &BTreeSet<usize>) -> Result<(), String> {
        let mut opened = BTreeMap::new();
        let noised = self.vectors.iter().filter(|(_, draw)| **draw != NO_NOISE);
        for ((root, author), draw) in noised {
            let Some(list) = self.lists.get(root) else {
                continue;
            };
            let open = self.settled.contains(root) || self.opens(root, list, colluders);
            if open && let Some(other) = opened.insert((author, *draw), root) {
                return Err(format!(
                    "the noise of {author} is the same in the sums of {other} and {root}"
                ));
            }
        }
        Ok(())
    }

    /// Checks every choice of up to `most` of these nodes as colluders, if there is anything new.
    ///
    /// # Errors
    /// A description of what some of them know and must not.
    pub(super) fn check_news(&mut self, nodes: usize, most: usize) -> Result<(), String> {
        if std::mem::take(&mut self.news) {
            self.check_all(nodes, most)
        } else {
            Ok(())
        }
    }

    /// Checks every choice of up to `most` of these nodes as colluders. A lead beside them adds nothing:
    /// what is sent to it is taken for known to all.
    fn check_all(&self, nodes: usize, most: usize) -> Result<(), String> {
        let mut choices = vec![BTreeSet::new()];
        for _ in 0..most {
            let larger = choices.iter().flat_map(|choice| {
                let others = (0..nodes).filter(|node| !choice.contains(node));
                others.map(|node| choice.iter().copied().chain([node]).collect())
            });
            let larger: BTreeSet<BTreeSet<usize>> = larger.collect();
            choices.extend(larger);
        }
        choices.sort();
        choices.dedup();
        choices
            .iter()
            .try_for_each(|colluders| self.check(colluders))
    }
}

/// The span of some forms, in echelon form: each row has the number 1 at its first symbol, at which no
/// row after it has one.
#[derive(Debug, Default)]
struct FormSpan(BTreeMap<Symbol, Form>);

impl FormSpan {
    /// Returns what is left of a form once all rows are taken off.
    fn reduce(&self, mut form: Form) -> Form {
        for (first, row) in &self.0 {
            if let Some(&factor) = form.get(first) {
                for (symbol, number) in row {
                    let taken = form.entry(*symbol).or_default();
                    *taken = (*taken + PRIME - multiply(factor, *number)) % PRIME;
                }
                form.retain(|_, number| *number != 0);
            }
        }
        form
    }

    fn add(&mut self, form: Form) {
        let mut form = self.reduce(form);
        form.retain(|_, number| *number != 0);
        if let Some((&first, &lead)) = form.first_key_value() {
            let scale = inverse(lead);
            form.values_mut()
                .for_each(|number| *number = multiply(*number, scale));
            self.0.insert(first, form);
        }
    }

    fn holds(&self, form: Form) -> bool {
        self.reduce(form).is_empty()
    }

    /// The rows without streams: streams come first, so these span all forms of inputs alone.
    fn inputs(&self) -> Vec<Form> {
        let of_inputs = self.0.range(Symbol::Input(0, NO_NOISE)..);
        of_inputs.map(|(_, row)| row.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of these authors, of whom so many can open it.
    fn list(of: &mut Symbolic, name: u8, authors: &[usize], threshold: usize) -> Hash {
        let root = Hash([name; 32]);
        let sum = authors.iter().map(|author| (*author, 1)).collect();
        of.list(root, 0..4, threshold, vec![sum]);
        let authors = authors.iter();
        authors.for_each(|author| of.vector(root, *author, NO_NOISE));
        root
    }

    #[test]
    fn nothing_is_known_before_shares_are_given_and_the_sum_after() {
        let mut all = Symbolic::default();
        let root = list(&mut all, 1, &[0, 1, 2, 3], 3);
        assert_eq!(all.check_all(4, 1), Ok(()));
        all.settled(root);
        [0, 1, 2].into_iter().for_each(|by| all.unmasked(root, by));
        assert_eq!(all.check_all(4, 1), Ok(()));
        // Two colluders of a group of three see the third.
        let mut few = Symbolic::default();
        let root = list(&mut few, 1, &[0, 1, 2], 3);
        few.settled(root);
        [0, 1, 2].into_iter().for_each(|by| few.unmasked(root, by));
        assert_eq!(few.check_all(4, 1), Ok(()));
        assert!(few.check_all(4, 2).is_err());
    }

    #[test]
    fn sums_that_are_not_final_and_differences_of_sums_are_found() {
        let mut shown = Symbolic::default();
        let root = list(&mut shown, 1, &[0, 1, 2, 3], 3);
        [0, 1, 2]
            .into_iter()
            .for_each(|by| shown.unmasked(root, by));
        let why = shown.check_all(4, 1);
        assert!(why.is_err_and(|why| why.contains("which is not final")));
        let mut two = Symbolic::default();
        for (name, authors) in [(1, &[0, 1, 2, 3][..]), (2, &[0, 1, 2])] {
            let root = list(&mut two, name, authors, 3);
            two.settled(root);
            [0, 1, 2].into_iter().for_each(|by| two.unmasked(root, by));
        }
        let why = two.check_all(4, 0);
        assert!(why.is_err_and(|why| why.contains("the input of 3 alone")));
    }

    #[test]
    fn noise_hides_absences_unless_one_draw_is_in_two_sums() {
        let two = |draws: [u8; 2]| {
            let mut two = Symbolic::default();
            for (name, (authors, draw)) in
                (1..).zip([&[0, 1, 2, 3][..], &[0, 1, 2]].iter().zip(draws))
            {
                let (root, draw) = (Hash([name; 32]), Hash([draw; 32]));
                let sum = authors.iter().map(|author| (*author, 1)).collect();
                two.list(root, 0..4, 3, vec![sum]);
                let authors = authors.iter();
                authors.for_each(|author| two.vector(root, *author, draw));
                two.settled(root);
                [0, 1, 2].into_iter().for_each(|by| two.unmasked(root, by));
            }
            two.check_all(4, 1)
        };
        assert_eq!(two([8, 9]), Ok(()));
        assert!(two([8, 8]).is_err_and(|why| why.contains("the noise of 0 is the same")));
    }

    #[test]
    fn one_share_too_few_lets_colluders_open_before_finality() {
        let mut few = Symbolic::default();
        list(&mut few, 1, &[0, 1, 2, 3], 1);
        assert!(few.check_all(4, 1).is_err());
    }
}
