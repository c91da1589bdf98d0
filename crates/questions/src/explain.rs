//! Numbers that a question opens, before anybody answers it.

use std::fmt::Write;

use crate::{
    FederatedQuestion, Kind, QuestionError, QuestionMode, QuestionProgress, Step, SumLayout,
};

impl FederatedQuestion {
    /// The layouts of the first two rounds, which do not depend on rows. The first one opens counts.
    ///
    /// # Errors
    /// If the question cannot be asked as it is written.
    pub fn first_layouts(&self) -> Result<[SumLayout; 2], QuestionError> {
        self.inputs()?;
        let counts = self.layout(&QuestionProgress::Counts)?;
        let many = vec![MANY; counts.len()];
        let sum = counts.opened(many);
        let Step::Next(next) = self.step(&QuestionProgress::Counts, &sum) else {
            return Ok([counts, SumLayout::default()]);
        };
        Ok([counts, self.layout(&next)?])
    }

    /// Returns what each site computes and what is opened, in lines of text. `bytes` says how many a site sends in this mode
    /// in a round with so many numbers.
    ///
    /// # Errors
    /// If the question cannot be asked as it is written.
    pub fn explain(
        &self,
        bytes: &dyn Fn(QuestionMode, usize) -> u64,
    ) -> Result<String, QuestionError> {
        let bytes = |numbers| bytes(self.mode, numbers);
        let [counts, first] = self.first_layouts()?;
        let mut text = String::new();
        let filter: Vec<String> = self.filter.iter().map(ToString::to_string).collect();
        let rows = if filter.is_empty() {
            "all rows".to_owned()
        } else {
            format!("rows with {}", filter.join(" and "))
        };
        let _ = writeln!(text, "Each site computes, from {rows} of its own:");
        let _ = writeln!(text, "  round 1: {}", numbers(&counts, &bytes));
        write_blocks(&mut text, &counts);
        let _ = writeln!(text, "  round 2: {}", numbers(&first, &bytes));
        write_blocks(&mut text, &first);
        let _ = writeln!(text, "  {}", self.later_rounds());
        let opened = match self.mode {
            QuestionMode::Masked if self.groups > 1 => format!(
                "Opened is the sum of each of {} groups of sites, and no site's own numbers (mode secure-aggregation); the \
                 answer follows from their total.",
                self.groups
            ),
            QuestionMode::Masked => {
                "Opened is the sum over sites, and no site's own numbers (mode secure-aggregation).".to_owned()
            }
            QuestionMode::Clear => "Every member sees the numbers of every site (mode clear).".to_owned(),
            QuestionMode::Noised => {
                "Opened is the sum over sites with the noise of each, and no site's own numbers (mode \
                 differential-privacy)."
                    .to_owned()
            }
        };
        let _ = writeln!(text, "{opened}");
        Ok(text)
    }

    fn later_rounds(&self) -> String {
        match &self.kind {
            Kind::Describe(_) | Kind::Crosstab(_) | Kind::Km(_) | Kind::Logrank(_) => "then the answer".to_owned(),
            Kind::Correlate(_) => match self.mode {
                QuestionMode::Masked | QuestionMode::Clear => "round 3: the same sums around the opened means, and their products; then the answer".to_owned(),
                QuestionMode::Noised => "round 3: sums of products of the values less the opened means; then the answer".to_owned(),
            },
            Kind::Quantiles(_) => "then rounds of the same kind for the bins that hold a quantile".to_owned(),
            Kind::Glm(glm) if self.mode == QuestionMode::Noised => match glm.noised_rounds() {
                2 => "then the answer, with one intercept for all sites".to_owned(),
                rounds => format!(
                    "then rounds of the same kind, with new coefficients, {rounds} rounds in all; then the answer, with one \
                     intercept for all sites"
                ),
            },
            Kind::Cox(_) | Kind::Glm(_) => {
                "then rounds of the same kind, with new coefficients, until they are exact (25 at most), and one more for what \
                 else is asked of the fit"
                    .to_owned()
            }
            Kind::Mixed(_) => "then rounds of the same kind, until the estimates are exact (300 at most)".to_owned(),
            Kind::Meta(meta) if meta.reml => "then rounds of ten such sums at new τ², until it is exact (100 at most)".to_owned(),
            Kind::Baselines(baselines) => format!(
                "then rounds of the same kind until the global models are fitted, one to the rows outside of each of {} folds \
                 (50 at most), and one of each site's mean losses; then the answer",
                baselines.folds
            ),
            Kind::Meta(_) => "round 3: the same at the estimated τ²; then the answer".to_owned(),
            Kind::Trees(trees) => format!(
                "then for every tree{} one round for each of its {} levels, of sums of gradients, hessians and rows by node, \
                 column and bin, and of the loss so far: {} numbers a round at most, {} in all",
                match trees.scores(&self.agreed) {
                    1 => String::new(),
                    count => format!(", or {count} at a time, one of each level of the outcome,"),
                },
                trees.depth,
                trees.most_in_a_round(&self.agreed),
                trees.most_in_all(&self.agreed, f64::INFINITY)
            ),
        }
    }
}

/// Counts that pass every limit.
const MANY: f64 = 1e9;

fn numbers(layout: &SumLayout, bytes: &dyn Fn(usize) -> u64) -> String {
    let count = layout.len();
    let plural = if count == 1 { "number" } else { "numbers" };
    format!("{count} {plural} ({} bytes)", bytes(count))
}

fn write_blocks(text: &mut String, layout: &SumLayout) {
    for block in &layout.blocks {
        let unit = if block.unit.is_empty() || block.unit == block.name {
            String::new()
        } else {
            format!(": {}", block.unit)
        };
        let _ = writeln!(text, "    {:>4}  {}{unit}", block.len, block.name);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::kinds::cox::Ties;
    use crate::tests::{agreed, words};

    #[test]
    fn a_question_states_what_it_opens_without_any_rows() {
        let cox = crate::kinds::cox::Cox {
            time: "t".to_owned(),
            event: "e".to_owned(),
            entry: None,
            terms: words(&["a", "b = 1"]),
            strata: None,
            ties: Ties::Efron,
            ridge: 0.0,
            robust: false,
            hazards: None,
            concordance: false,
            baseline: None,
        };
        let mut question =
            FederatedQuestion::new(Kind::Cox(cox), agreed(&[("a", [0.0, 1.0])], &[]));
        question.filter.push("a >= 0.5".parse().unwrap());
        let bytes = |_: QuestionMode, numbers: usize| 10 * numbers as u64;
        let text = question.explain(&bytes).unwrap();
        assert!(
            text.contains("rows with a >= 0.5") && text.contains("round 2: 6 numbers (60 bytes)"),
            "{text}"
        );
        question.groups = 3;
        let text = question.explain(&bytes).unwrap();
        assert!(text.contains("the sum of each of 3 groups"), "{text}");
        question.agreed = Default::default();
        assert!(question.explain(&bytes).is_err());
    }
}
