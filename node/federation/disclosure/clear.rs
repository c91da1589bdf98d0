//! Data that leave an institution where models are sent in clear, and what others could learn from them.

use agreement::Agreement;
use formatting::numbers;
use questions::QuestionMode;
use task::TaskConfig;

use super::ToldOfMode;
use super::masked::no_group;
use super::officer::NO_BOUND;
use super::serving;
use crate::federation::FederationStart;
use crate::policy::LedgerRoom;
use crate::spending::Spending;

/// Rounds of which every member sees all models.
pub(super) struct ModelsInClear {
    /// True if they have the names of their authors.
    pub(super) names: bool,
}

impl ModelsInClear {
    /// Returns who sees an entry of a round.
    fn seen(&self) -> &'static str {
        if self.names {
            "every member, with this institution's name"
        } else {
            "every member, without a name; the lead of the round knows whose it is"
        }
    }
}

impl ToldOfMode for ModelsInClear {
    fn leaves(&self, agreement: &Agreement, first: Option<&FederationStart>) -> Vec<String> {
        let (protocol, seen) = (&agreement.epoch.protocol, self.seen());
        let mut lines = Vec::new();
        let scale = agreement.strategy_config.standardise;
        if scale {
            lines.push(format!(
                "  in the first round, the number of training rows, and sum and squared deviations of every \
                 column{}: {seen}",
                match &agreement.task {
                    TaskConfig::Table(_) => " and of the number to predict",
                    _ => "",
                },
            ));
        }
        for (at, question) in agreement.questions.iter().enumerate() {
            lines.push(format!(
                "  for question {}, in at most {}, sums and counts over all rows of its files, up to {}: {seen}",
                at + 1,
                numbers::plural(question.most_rounds(QuestionMode::Clear) as usize, "round"),
                numbers::bytes(question.largest_answer(&protocol.privacy))
            ));
        }
        let rounds = agreement.learning_rounds() - u64::from(scale);
        let size = first.map_or(protocol.blob_limit, |first| first.largest);
        lines.push(format!(
            "  in each of {}, a model trained on its rows, {}{}: {seen}",
            numbers::plural(rounds as usize, "round"),
            match first {
                Some(first) => format!("{} numbers, ", numbers::count(first.parameters as u64)),
                None => String::new(),
            },
            numbers::bytes(size),
        ));
        if let Some(first) = first.filter(|first| first.largest > first.model) {
            lines.push(format!(
                "  with it, in some rounds, what the strategy {} adds, up to {}: seen by the same",
                agreement.strategy_config.name(),
                numbers::bytes(first.largest - first.model)
            ));
        }
        if first.is_some_and(|first| first.plan.weights) {
            lines.push(format!(
                "  with the model, the number of rows that it was trained on: {seen}"
            ));
        }
        if let Some(stop) = agreement.strategy_config.stop {
            lines.push(format!(
                "  with the model, the number of rows kept for validation, and the {} of the model before over \
                 them: {seen}",
                stop.measure.name(),
            ));
        }
        lines.push("  with the model, its training loss: the lead of the round".into());
        if first.is_some_and(|first| first.plan.cross_evaluate) {
            lines.push(
                "  in rounds that compare models, the loss of every member's model on its rows, one number \
                 for each: every member, beside this institution's local model, and the lead by name"
                    .into(),
            );
        }
        lines.extend(serving::in_clear(agreement, seen));
        lines
    }

    fn learned(
        &self,
        agreement: &Agreement,
        first: Option<&FederationStart>,
        rows: Option<usize>,
        _: &Spending,
    ) -> Vec<String> {
        let protocol = &agreement.epoch.protocol;
        let n = agreement.epoch.roster.len() as u64;
        let mut lines = vec![
            "  from a model: properties of the rows as a whole, and with some probability whether a person \
             whose data they know is among them"
                .to_owned(),
        ];
        if let (Some(first), Some(rows)) = (first, rows) {
            lines.push(memory(first.parameters, rows));
        }
        if agreement.strategy_config.standardise {
            lines.push(
                "  from sums and squared deviations: mean and spread of every column of these rows, exactly"
                    .into(),
            );
        }
        if !agreement.questions.is_empty() {
            lines.push(
                "  from the numbers of a question: the sums and counts of this institution alone, exactly; what is \
                 printed is of all, with small cells suppressed"
                    .into(),
            );
        }
        if first.is_some_and(|first| first.plan.cross_evaluate) {
            lines.push(
                "  from losses: which institutions have similar patients, customers or stations"
                    .into(),
            );
        }
        lines.extend(serving::learned_in_clear(agreement));
        if self.names {
            lines.push(
                "  every member knows which model is whose, in every round: this strategy keeps state for \
                 each"
                    .into(),
            )
        } else {
            lines.push(format!(
                "  models are sent without names, but may still be recognised: each of the {n} members leads about one \
                 round in {n} and knows the authors then, and models of one institution resemble each other from round \
                 to round"
            ))
        }
        lines.push(
            "  nothing is added to hide single rows (no noise, no encrypted sums): whoever receives a model \
             sees all of it"
                .into(),
        );
        lines.push(format!(
            "  what was sent cannot be called back: members keep models of {} for others, and may keep all \
             for good",
            numbers::plural(protocol.keep_rounds as usize, "round")
        ));
        lines
    }

    fn further(&self, _: &Agreement, _: Option<LedgerRoom>) -> Vec<String> {
        Vec::new()
    }

    fn brief(&self, _: &Agreement, _: &Spending) -> Vec<String> {
        Vec::new()
    }

    fn officer(&self, agreement: &Agreement, _: &Spending) -> Vec<String> {
        let mut lines = vec![
            "What leaves us in a round is a model that was trained on our rows, and every member sees it.".to_owned(),
        ];
        if !agreement.questions.is_empty() {
            lines.push(format!(
                "The answers to {} leave us, too: sums and counts over all of our rows, which every member sees.",
                numbers::plural(agreement.questions.len(), "question")
            ));
        }
        lines.extend(serving::officer(agreement, "of us"));
        lines.push(format!("{NO_BOUND}."));
        lines.push("Who takes part, and when, is known to all members.".into());
        lines
    }

    fn waits(&self, missing: &str) -> String {
        no_group(missing)
    }

    fn made_anew(&self) -> &'static str {
        ""
    }
}

/// Returns what a model of so many numbers can hold of so many rows.
fn memory(numbers: usize, rows: usize) -> String {
    if numbers >= rows {
        format!(
            "  more than that is possible here: the model has {numbers} numbers and is trained on {rows} rows, \
             so it can hold single rows"
        )
    } else {
        format!(
            "  the model has {numbers} numbers and is trained on {rows} rows: it cannot hold all of them, but \
             rare values and outliers leave traces"
        )
    }
}
