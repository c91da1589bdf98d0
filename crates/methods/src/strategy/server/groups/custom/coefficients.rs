//! The coefficients of a round as whole numbers, and how a decision carries them.

/// Result of a rule for a round. A coefficient is a whole number divided by the sum of its row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupCoefficients {
    /// The group of every entry, in the order of the contribution list.
    pub assignment: Vec<u32>,
    /// For every group a row: how much of each start model, of each model that the rule kept, and of each entry its
    /// model has. The sum of a row is above 0.
    pub groups: Vec<Vec<i64>>,
    /// The models that the rule keeps for the next round, in rows of the same kind.
    pub kept: Vec<Vec<i64>>,
    /// The numbers that it keeps.
    pub numbers: Vec<f64>,
}

/// Largest whole number of a row, and largest sum: what a 64-bit float has exactly.
const LARGEST: i64 = 1 << 53;
/// Most models and numbers that a rule keeps.
const MOST_KEPT: usize = 4096;

impl GroupCoefficients {
    /// Refuses what does not fit a round with `before` models from before it, and so many entries.
    ///
    /// # Errors
    /// In words, what is wrong.
    pub(super) fn check(&self, before: usize, entries: usize) -> Result<(), String> {
        if self.assignment.len() != entries {
            return Err(format!(
                "the assignment has {} numbers, and the round has {entries} entries",
                self.assignment.len()
            ));
        }
        let groups = self.groups.len();
        if let Some(beyond) = self.assignment.iter().find(|&&own| own as usize >= groups) {
            return Err(format!(
                "an entry is assigned to group {beyond}, and there are {groups} groups, from 0"
            ));
        }
        if groups == 0 || groups.max(self.kept.len()).max(self.numbers.len()) > MOST_KEPT {
            return Err(format!(
                "there are {groups} groups; from 1 to {MOST_KEPT} are allowed, and as many kept models and numbers"
            ));
        }
        if self.numbers.iter().any(|number| !number.is_finite()) {
            return Err("a number that it keeps is not finite".into());
        }
        for (nth, row) in self.groups.iter().chain(&self.kept).enumerate() {
            let (what, nth) = if nth < groups {
                ("group", nth)
            } else {
                ("kept model", nth - groups)
            };
            if row.len() != before + entries {
                return Err(format!(
                    "{what} {nth} has {} coefficients, and there are {before} models from before the round and \
                     {entries} entries",
                    row.len()
                ));
            }
            let whole: i128 = row.iter().map(|&one| i128::from(one)).sum();
            let large = row
                .iter()
                .any(|one| one.unsigned_abs() > LARGEST.unsigned_abs());
            if large || whole <= 0 || whole > LARGEST.into() {
                return Err(format!(
                    "the coefficients of {what} {nth} add up to {whole}: the sum must be above 0, and no number above 2^53"
                ));
            }
        }
        Ok(())
    }

    /// The coefficients as numbers of a claim.
    pub(super) fn encoded(&self) -> Vec<Vec<u32>> {
        let halves = |bits: u64| [bits as u32, (bits >> 32) as u32];
        let counts = vec![self.groups.len() as u32, self.kept.len() as u32];
        let rows = self.groups.iter().chain(&self.kept);
        let rows = rows.map(|row| {
            row.iter()
                .flat_map(|&one| halves(one.cast_unsigned()))
                .collect()
        });
        let numbers = self
            .numbers
            .iter()
            .flat_map(|number| halves(number.to_bits()));
        let mut all = vec![counts];
        all.extend(rows);
        all.push(numbers.collect());
        all
    }

    /// The coefficients of a claim.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub(super) fn decoded(assignment: &[u32], numbers: &[Vec<u32>]) -> Result<Self, String> {
        let wrong = || "its coefficients cannot be read".to_owned();
        let [counts, rows @ .., last] = numbers else {
            return Err(wrong());
        };
        let &[groups, kept] = counts.as_slice() else {
            return Err(wrong());
        };
        let (groups, kept) = (groups as usize, kept as usize);
        if rows.len() != groups.saturating_add(kept) {
            return Err(wrong());
        }
        let whole = |row: &Vec<u32>| -> Result<Vec<u64>, String> {
            let (pairs, rest) = row.as_chunks();
            let join = |&[low, high]: &[u32; 2]| u64::from(low) | u64::from(high) << 32;
            rest.is_empty()
                .then(|| pairs.iter().map(join).collect())
                .ok_or_else(wrong)
        };
        let signed = |row: &Vec<u32>| -> Result<Vec<i64>, String> {
            Ok(whole(row)?.into_iter().map(u64::cast_signed).collect())
        };
        let (of_groups, of_kept) = rows.split_at(groups);
        Ok(Self {
            assignment: assignment.to_vec(),
            groups: of_groups.iter().map(signed).collect::<Result<_, _>>()?,
            kept: of_kept.iter().map(signed).collect::<Result<_, _>>()?,
            numbers: whole(last)?.into_iter().map(f64::from_bits).collect(),
        })
    }
}
