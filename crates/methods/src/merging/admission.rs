//! Admission of a newcomer to an existing group (HCCT, eqs. (15), (16)).

use std::collections::BTreeMap;

use super::Utility;

/// The group of a newcomer and the benefits of all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// The group it joins; `None` if no group has a positive benefit.
    pub group: Option<u32>,
    /// The benefit Δ of eq. (15) of joining each group, by group.
    pub benefits: BTreeMap<u32, f64>,
}

impl Utility {
    /// Finds a group for a newcomer: the one with the largest benefit (eqs. (15), (16)) if that is
    /// above 0; ties go to the first. The groups themselves do not change.
    ///
    /// The newcomer is the client after those of `assignment`; clients after it are ignored, so
    /// several newcomers are admitted one by one. Groups may have any numbers.
    ///
    /// # Panics
    /// If `assignment` names all clients or more, so that there is no newcomer.
    pub fn admit(&self, assignment: &[u32]) -> Admission {
        let newcomer = assignment.len();
        assert!(
            newcomer < self.len(),
            "the newcomer must be a client without a group"
        );
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
