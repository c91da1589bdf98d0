//! Data that leave an institution under an agreement, who sees them, and what they could disclose about it: one page
//! for its owner.

mod clear;
mod masked;
mod noised;
mod officer;
mod serving;
mod together;

#[cfg(test)]
mod tests;

pub use officer::officer;

use agreement::{Agreement, StatusFor};
use protocol::privacy::{Privacy, RoundMode};

use super::start::{FederationStart, first_under};
use crate::policy::LedgerRoom;
use crate::spending::{ContributionHistory, Spending};
use clear::ModelsInClear;
use masked::GroupSums;
use noised::NoisedSum;

/// Texts about a mode of rounds, one beside the other: whoever adds a mode writes all of them.
pub(crate) trait ToldOfMode {
    /// Returns what leaves an institution, and who sees it, for its page.
    fn leaves(&self, agreement: &Agreement, first: Option<&FederationStart>) -> Vec<String>;

    /// Returns what others could learn, for its page; `rows` are those that it trains on.
    fn learned(
        &self,
        agreement: &Agreement,
        first: Option<&FederationStart>,
        rows: Option<usize>,
        spending: &Spending,
    ) -> Vec<String>;

    /// Returns what the page says behind that, with headings: when it stops, and whether it is worth it.
    fn further(&self, agreement: &Agreement, room: Option<LedgerRoom>) -> Vec<String>;

    /// Returns what others learn, in a few sentences without full stops.
    fn brief(&self, agreement: &Agreement, spending: &Spending) -> Vec<String>;

    /// Returns what a data protection officer reads, in sentences.
    fn officer(&self, agreement: &Agreement, spending: &Spending) -> Vec<String>;

    /// Returns the reason for which a round waits for institutions, which are `missing`: the news of a node.
    fn waits(&self, missing: &str) -> String;

    /// Returns what is made anew when a round is given up and repeated, besides the masks: the warning of a recovery.
    fn made_anew(&self) -> &'static str;
}

/// Returns what is told about the rounds under an agreement on privacy.
pub(crate) fn told(privacy: &Privacy) -> Box<dyn ToldOfMode + '_> {
    match privacy.mode() {
        RoundMode::Clear => Box::new(ModelsInClear { names: false }),
        RoundMode::Named => Box::new(ModelsInClear { names: true }),
        RoundMode::Masked(masked) => Box::new(GroupSums(masked)),
        RoundMode::Noised(masked, noise) => Box::new(NoisedSum(masked, noise)),
    }
}

/// Returns what others learn of an institution's contributions, in a few sentences without full stops: for the status
/// of its node, and for the history of a federation. None for rounds in clear.
pub fn brief(agreement: &Agreement, spending: &Spending) -> Vec<String> {
    told(&agreement.epoch.protocol.privacy).brief(agreement, spending)
}

/// Facts about an institution's own side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnSide {
    /// Rows that models are trained on.
    pub training_rows: Option<usize>,
    /// Contributions so far, and those to come; `None`: nothing is known but the agreement.
    pub spending: Option<Spending>,
    /// The room that its ledger has for differentially private rounds.
    pub room: Option<LedgerRoom>,
}

impl OwnSide {
    /// Of an institution of a first agreement, which has contributed nothing yet.
    pub fn of_founder(agreement: &Agreement) -> Self {
        let history = ContributionHistory::none(&agreement.epoch);
        Self {
            spending: Some(Spending::of(agreement, &history, None)),
            ..Self::default()
        }
    }
}

/// The page: headings end in a colon, other lines are indented.
pub fn disclosure(agreement: &Agreement, own: &OwnSide) -> Vec<String> {
    let spending = own.spending.clone();
    let spending = spending.unwrap_or_else(|| Spending::under(agreement));
    let told = told(&agreement.epoch.protocol.privacy);
    let strategy = &agreement.strategy_config;
    let first = first_under(agreement).ok();
    let mut lines = vec!["What stays in this institution:".to_owned()];
    lines
        .push("  every row and every file of data, the names and codes that they have here".into());
    lines.push("  the secret key, and the results on rows held out here".into());
    if !strategy.personal.is_empty() {
        lines.push(format!(
            "  the personal parts of the model: {}",
            strategy.personal.join(", ")
        ));
    }
    if !strategy.trained.is_empty() {
        lines.push(format!(
            "  all of the model except what is trained: {}",
            strategy.trained.join(", ")
        ));
    }
    lines.push(String::new());
    lines.push("What leaves it, and who sees it:".into());
    lines.push(
        "  the agreement itself: names of columns, levels and classes, as listed above. They come from \
         whoever drafted it, and everybody who sees it or an invitation reads them"
            .into(),
    );
    lines.extend(told.leaves(agreement, first.as_ref()));
    lines.extend(always(agreement));
    lines.push(String::new());
    lines.push("What others could learn from it:".into());
    lines.extend(told.learned(agreement, first.as_ref(), own.training_rows, &spending));
    lines.extend(told.further(agreement, own.room));
    lines.extend([String::new(), "For the data protection officer:".into()]);
    let paragraph = officer(agreement, &spending).into_iter();
    lines.extend(paragraph.map(|said| format!("  {said}")));
    lines
}

/// Returns what leaves an institution whatever it learns.
fn always(agreement: &Agreement) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(
        "  signed votes and the times at which its node runs, its name, key and address: every member"
            .into(),
    );
    if agreement.status == StatusFor::Members {
        lines.push(
            "  the state of its node (round and activity, connections, version, start, free disk space): every \
             member that asks"
                .into(),
        );
    }
    lines.push(
        "  to machines that are no members: that encrypted connections exist, and between which \
         addresses"
            .into(),
    );
    lines
}
