//! A whole question in one process, with the tables of all sites.

use crate::table::RowTable;
use crate::{
    DecodedSum, FederatedQuestion, FirstCounts, Outcome, QuestionError, QuestionProgress,
    QuestionStopped, SiteRefusal, Step, SumLayout, add_words,
};

/// One round of a question: what was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionRound {
    /// Common knowledge before the round.
    pub progress: QuestionProgress,
    /// Blocks of each site's vector.
    pub layout: SumLayout,
    /// The sum over sites.
    pub sum: DecodedSum,
}

/// A question with its rounds and its end.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedQuestion {
    /// The rounds, in order.
    pub rounds: Vec<QuestionRound>,
    /// The counts of the first round; none if a site refused it.
    pub counts: Option<FirstCounts>,
    /// The answer, or why there is none.
    pub end: Result<Outcome, AskedNothing>,
}

/// Reason for which a question ended without an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskedNothing {
    /// The sums do not allow an answer, or a gate of the counts.
    #[error(transparent)]
    Stopped(#[from] QuestionStopped),
    /// A site refused.
    #[error("site {site} {why}")]
    Refused {
        /// Its place among the sites.
        site: usize,
        /// Its reason.
        why: SiteRefusal,
    },
}

/// Asks a question of all sites. Every vector is encoded as integers, and only their sum is used. `check` is what a
/// site checks before it answers a round: it gets the number of the site, what all know, and the vector.
///
/// # Errors
/// If the question cannot be asked as it is written.
pub fn ask(
    question: &FederatedQuestion,
    sites: &[RowTable],
    mut check: impl FnMut(usize, &QuestionProgress, &[f64]) -> Result<(), SiteRefusal>,
) -> Result<AskedQuestion, QuestionError> {
    question.inputs()?;
    let mut progress = QuestionProgress::Counts;
    let mut rounds = Vec::new();
    let end = loop {
        let layout = question.layout(&progress)?;
        let mut words = vec![0; layout.len()];
        let mut refused = None;
        for (site, table) in sites.iter().enumerate() {
            let answered = question.answer(table, &progress).and_then(|vector| {
                check(site, &progress, &vector)?;
                layout.encode(&vector)
            });
            match answered {
                Ok(own) => add_words(&mut words, &own),
                Err(why) => {
                    refused = Some(AskedNothing::Refused { site, why });
                    break;
                }
            }
        }
        if let Some(refused) = refused {
            break Err(refused);
        }
        let sum = layout.decode(&words);
        let step = question.step(&progress, &sum);
        rounds.push(QuestionRound {
            progress: progress.clone(),
            layout,
            sum,
        });
        match step {
            Step::Next(next) => progress = next,
            Step::Done(outcome) => break Ok(outcome),
            Step::Stopped(why) => break Err(AskedNothing::Stopped(why)),
        }
    };
    let counts =
        rounds
            .first()
            .and_then(|round| match question.step(&round.progress, &round.sum) {
                Step::Next(next) => next.counts().cloned(),
                Step::Done(_) | Step::Stopped(_) => None,
            });
    Ok(AskedQuestion {
        rounds,
        counts,
        end,
    })
}
