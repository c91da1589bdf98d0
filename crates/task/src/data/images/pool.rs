//! All rows of a source before they are partitioned: for each its class, domain, user and part, and
//! where its values are.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::pictures::Pictures;

/// Output of a reader: rows, and the traits of each.
pub(crate) struct Labelled {
    /// The rows.
    pub pictures: Pictures,
    /// The mask of every row, where masks are predicted and no classes.
    pub masks: Option<Pictures>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// The class of every row.
    pub labels: Vec<u32>,
    /// Names of the domains; empty where the file knows none.
    pub domains: Vec<String>,
    /// The domain of every row; empty where the file knows none.
    pub domain: Vec<u32>,
    /// Names of the users that the rows are from; empty where the file knows none.
    pub users: Vec<String>,
    /// The user of every row; empty where the file knows none.
    pub user: Vec<u32>,
}

impl Labelled {
    /// Rows of one domain, without users.
    pub(crate) fn new(pictures: Pictures, classes: Vec<String>, labels: Vec<u32>) -> Self {
        Self {
            pictures,
            masks: None,
            classes,
            labels,
            domains: Vec::new(),
            domain: Vec::new(),
            users: Vec::new(),
            user: Vec::new(),
        }
    }
}

/// A row of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolRow {
    /// Position of the set that holds the row.
    pub set: u32,
    /// Position of the row in the set.
    pub row: u32,
    /// Class of the row.
    pub class: u32,
    /// Domain of the row; 0 where none are known.
    pub domain: u32,
    /// User of the row; 0 where none are known.
    pub user: u32,
    /// True if the source gives the row for testing.
    pub test: bool,
}

/// All rows of a source.
#[derive(Default)]
pub(crate) struct PicturePool {
    /// Sets that hold the values.
    pub sets: Vec<Pictures>,
    /// The masks of every set, where it has any.
    pub masks: Vec<Option<Pictures>>,
    /// The rows.
    pub rows: Vec<PoolRow>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Names of the domains; empty where none are known.
    pub domains: Vec<String>,
    /// Names of the users; empty where none are known.
    pub users: Vec<String>,
    /// Remarks about the data.
    pub notes: Vec<String>,
}

impl PicturePool {
    /// Adds the rows of a set: of the domain, if one is named, in place of those that the set knows
    /// itself, and for testing or for training.
    pub(crate) fn add(&mut self, set: Labelled, domain: Option<&str>, test: bool) {
        let numbers: Vec<u32> = (0..set.labels.len() as u32).collect();
        let (train, held_out) = if test {
            (&[][..], &numbers[..])
        } else {
            (&numbers[..], &[][..])
        };
        self.add_parts(set, domain, train, held_out);
    }

    /// Adds these rows of a set for training and those for testing.
    pub(crate) fn add_parts(
        &mut self,
        set: Labelled,
        domain: Option<&str>,
        train: &[u32],
        test: &[u32],
    ) {
        let classes = self.merge_classes(&set.classes);
        let own: Vec<String> = match domain {
            Some(name) => vec![name.to_owned()],
            None => set.domains,
        };
        let domains = positions(&mut self.domains, &own);
        let users = positions(&mut self.users, &set.users);
        let at = self.sets.len() as u32;
        let of = |known: &[u32], places: &[u32], row: u32| match known.get(row as usize) {
            Some(&own) => places[own as usize],
            None => places.first().copied().unwrap_or(0),
        };
        let parts = [(train, false), (test, true)];
        for (rows, test) in parts {
            self.rows.extend(rows.iter().map(|&row| PoolRow {
                set: at,
                row,
                class: classes[set.labels[row as usize] as usize],
                domain: match domain {
                    Some(_) => domains[0],
                    None => of(&set.domain, &domains, row),
                },
                user: of(&set.user, &users, row),
                test,
            }));
        }
        self.sets.push(set.pictures);
        self.masks.push(set.masks);
    }

    /// Makes the classes those of all sets, and returns where those of a new one are now.
    fn merge_classes(&mut self, new: &[String]) -> Vec<u32> {
        if self.classes.is_empty() {
            self.classes = new.to_vec();
        }
        if self.classes != new {
            let all = self.classes.iter().chain(new);
            let merged = ordered(all.map(String::as_str));
            let place = places(&merged);
            for row in &mut self.rows {
                row.class = place[self.classes[row.class as usize].as_str()];
            }
            self.classes = merged;
        }
        let place = places(&self.classes);
        new.iter().map(|name| place[name.as_str()]).collect()
    }

    /// Returns whether the source gives rows for testing.
    pub(crate) fn has_test_rows(&self) -> bool {
        self.rows.iter().any(|row| row.test)
    }
}

fn places(names: &[String]) -> BTreeMap<&str, u32> {
    names.iter().map(String::as_str).zip(0..).collect()
}

/// Returns where these names are in `all`, to which missing ones are added.
fn positions(all: &mut Vec<String>, names: &[String]) -> Vec<u32> {
    let mut known: BTreeMap<String, u32> = all.iter().cloned().zip(0..).collect();
    names
        .iter()
        .map(|name| {
            *known.entry(name.clone()).or_insert_with(|| {
                all.push(name.clone());
                all.len() as u32 - 1
            })
        })
        .collect()
}

/// Each name once: in the order of the numbers if all are numbers, and of the alphabet otherwise.
pub(crate) fn ordered<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: BTreeSet<&str> = names.collect();
    let number = |name: &str| name.parse::<u64>().ok();
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if names.iter().all(|name| number(name).is_some()) {
        let key = |name: &String| (number(name), name.clone());
        names.sort_by(|a, b| Ordering::then(key(a).0.cmp(&key(b).0), a.cmp(b)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::formats::npy::NpyValues;
    use super::*;

    fn set(classes: &[&str], labels: &[u32]) -> Labelled {
        let values = NpyValues::Bytes(vec![0; labels.len()]);
        let pictures = Pictures::of_array("a".into(), &[labels.len(), 1], values);
        let classes = classes.iter().map(|&name| name.to_owned()).collect();
        match pictures {
            Ok(pictures) => Labelled::new(pictures, classes, labels.to_vec()),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn classes_of_several_sets_are_joined_by_name() {
        let mut pool = PicturePool::default();
        pool.add(set(&["2", "10"], &[0, 1]), Some("a"), false);
        pool.add(set(&["10", "3"], &[0, 1]), Some("b"), true);
        assert_eq!(pool.classes, ["2", "3", "10"]);
        let found: Vec<_> = pool
            .rows
            .iter()
            .map(|row| (row.class, row.domain, row.test))
            .collect();
        assert_eq!(
            found,
            [(0, 0, false), (2, 0, false), (2, 1, true), (1, 1, true)]
        );
        assert!(pool.has_test_rows());
        assert_eq!(pool.domains, ["a", "b"]);
    }

    #[test]
    fn equal_classes_keep_their_order() {
        let mut pool = PicturePool::default();
        pool.add(set(&["truck", "ship"], &[0]), None, false);
        pool.add(set(&["truck", "ship"], &[1]), None, false);
        assert_eq!(pool.classes, ["truck", "ship"]);
        assert!(!pool.has_test_rows() && pool.domains.is_empty());
    }

    #[test]
    fn parts_domains_and_users_follow_their_rows() {
        let mut pool = PicturePool::default();
        let mut rows = set(&["0"], &[0, 0, 0]);
        rows.domains = vec!["x".into(), "y".into()];
        rows.domain = vec![1, 0, 1];
        rows.users = vec!["u".into(), "v".into()];
        rows.user = vec![0, 1, 1];
        pool.add_parts(rows, None, &[2, 0], &[1]);
        let found: Vec<_> = pool
            .rows
            .iter()
            .map(|row| (row.row, row.domain, row.user, row.test))
            .collect();
        assert_eq!(found, [(2, 1, 1, false), (0, 1, 0, false), (1, 0, 1, true)]);
    }

    #[test]
    fn names_are_in_the_order_of_numbers_where_they_are_numbers() {
        assert_eq!(ordered(["10", "9", "10"].into_iter()), ["9", "10"]);
        assert_eq!(ordered(["b", "10", "9"].into_iter()), ["10", "9", "b"]);
    }
}
