//! Rows that are not used.

/// Rows that are not used, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Rows without the silo that they belong to.
    pub no_silo: usize,
    /// Rows without a target.
    pub no_target: usize,
    /// Rows with a missing value, where these are left out.
    pub incomplete: usize,
    /// Rows that a rule of the configuration leaves out.
    pub excluded: usize,
}

impl LeftOut {
    /// Returns what to try where every row is left out.
    pub fn remedy(self) -> &'static str {
        if self.no_silo > self.no_target + self.incomplete + self.excluded {
            return "check the column that names the silo";
        }
        let most = self.no_target.max(self.incomplete).max(self.excluded);
        if most == self.excluded {
            "check the conditions in `only`"
        } else if most == self.no_target {
            "check the column to predict, and the marks of `missing` in `format`"
        } else {
            "give the features that are often empty another rule than \"drop\", or leave them out"
        }
    }

    /// Returns whether no row was left out.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reasons = [
            (self.no_silo, "without the name of a silo"),
            (self.no_target, "without a value to predict"),
            (self.incomplete, "with a missing feature"),
            (self.excluded, "excluded by `only`"),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let text: Vec<String> = reasons
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        formatter.write_str(&text.join(", "))
    }
}
