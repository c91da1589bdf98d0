//! A newcomer's place among the groups.

use std::collections::BTreeMap;

use super::Utility;

/// Where a newcomer belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// The group it joins; `None`: it stays alone.
    pub group: Option<u32>,
    /// What it would gain each group and itself together: Δ of eq. (15), by group.
    pub benefits: BTreeMap<u32, f64>,
}

impl Utility {
    /// Finds a group for a newcomer: the one with the largest benefit (eqs. (15), (16)) if that is
    /// above 0, the first of equals. The groups stay as they are until the next division.
    ///
    /// The newcomer is the client after those of `assignment`; clients after it do not count, so
    /// several newcomers come in one by one. Groups may have any numbers.
    ///
    /// # Panics
    /// If `assignment` names all clients or more, so that there is no newcomer.
    pub fn admit(&self, assignment: &[u32]) -> Admission {
        let newcomer = assignment.len();
        assert!(newcomer < self.len(), "a client that has no group yet");
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (client, &group) in assignment.iter().enumerate() {
            groups.entry(group).or_default().push(client);
        }
        let benefits: BTreeMap<u32, f64> = groups
            .iter()
            .map(|(&group, members)| (group, self.benefit(members, &[newcomer])))
            .collect();
        let mut best = (0.0, None);
        for (&group, &benefit) in &benefits {
            if benefit > best.0 {
                best = (benefit, Some(group));
            }
        }
        Admission {
            group: best.1,
            benefits,
        }
    }
}
