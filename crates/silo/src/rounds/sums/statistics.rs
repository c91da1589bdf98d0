//! Statistics of silos that a strategy adds up: integers as those of [`answers`](super::answers), but every silo fits its
//! rows beside them, and keeps the fit. Before a silo sends any, it counts how many numbers sums may open.

use bytes::Bytes;
use methods::strategy::{AnswerWords, StatisticsAccount};
use privacy::masks::Shape;
use protocol::privacy::{Masked, Sum};

use super::answers::{opened_answers, prepared, shape_of_answers};
use super::{DrawnSecrets, OpenedTotal, PreparedSummand, SumBasis, Summand, ToldModel, Train};
use crate::config::SiloConfig;
use crate::environment::WorkSize;
use crate::rounds::Personal;
use crate::secrets::RoundSecrets;

/// The sum of the statistics of all authors. Each counts once.
pub(super) struct SumOfStatistics {
    account: StatisticsAccount,
    /// Authors of the only sum, and members that may collude.
    silos: (u64, u64),
}

impl SumOfStatistics {
    /// That of the next round; `None` where silos send models.
    ///
    /// # Errors
    /// The agreement opens sums of several groups, or weights its authors.
    pub(super) fn of(of: SumBasis<'_>, masked: &Masked) -> Result<Option<Self>, String> {
        let (next, last) = (of.base.next(), of.config.member.epoch.protocol.rounds);
        let until = |last| of.config.strategy.statistics(&of.base.state, next..=last);
        let account = until(last).and_then(|all| match all.begun {
            true => until(next),
            false => Some(all),
        });
        let Some(account) = account else {
            return Ok(None);
        };
        let [group] = masked.groups() else {
            return Err(format!(
                "this strategy opens one sum of all its silos, and the agreement has {} groups: agree on one \
                 `[[privacy.group]]`",
                masked.groups().len()
            ));
        };
        let mut weights = group.authors.iter().map(|(_, weight)| *weight);
        let first = weights.next().unwrap_or(1);
        if weights.any(|weight| weight != first) {
            return Err(
                "this strategy counts every silo once, and the agreement gives them different weights: write the same \
                 number for all in `[[privacy.group]]`"
                    .into(),
            );
        }
        let silos = (group.authors.len() as u64, masked.colluders.into());
        Ok(Some(Self { account, silos }))
    }

    /// Checks that the sums of all agreed rounds hide those of single silos, or once they have begun those of the next one.
    fn counted(&self, of: SumBasis<'_>) -> Result<(), String> {
        self.account.check(self.silos, of.config.learner.samples())
    }
}

impl Summand for SumOfStatistics {
    /// Before anything is opened; later a silo refuses in the round.
    fn check(&self, of: SumBasis<'_>) -> Result<(), String> {
        if self.account.before > 0 {
            return Ok(());
        }
        self.counted(of)
    }

    fn shape(&self, of: SumBasis<'_>, sum: &Sum) -> Result<Shape, String> {
        shape_of_answers(of, sum)
    }

    fn weight(&self, _: SumBasis<'_>, sum: &Sum) -> u64 {
        sum.authors.len() as u64
    }

    fn draw(&self, secrets: &mut dyn RoundSecrets) -> Result<DrawnSecrets, String> {
        DrawnSecrets::masks_alone(secrets)
    }

    fn effort(&self, _: &SiloConfig, training: WorkSize) -> WorkSize {
        training
    }

    /// A silo that refuses says by which rule, so that the round ends without it; the reason stays at home.
    fn prepare(
        &self,
        of: SumBasis<'_>,
        drawn: DrawnSecrets,
        train: Train<'_>,
        lay: &dyn Fn(Bytes) -> Bytes,
    ) -> Result<PreparedSummand, String> {
        let contributed = train()?;
        let mut answer = AnswerWords::read(&contributed.admitted)?;
        if answer.refuses() {
            tracing::warn!(
                "this silo has a number beyond the reach of the agreed steps, and contributes nothing: scale its columns, or \
                 agree on a larger `exponent`"
            );
        } else if let Err(why) = self.counted(of) {
            tracing::warn!("{why}: this silo contributes nothing");
            let words = answer.words.len();
            answer = AnswerWords::refusal(answer.site, words, AnswerWords::TOO_MANY_OPENED);
        }
        let personal = contributed.personal.clone();
        let summand = prepared(of, drawn.secret, (answer, &contributed), lay);
        Ok(PreparedSummand {
            personal: Some(Personal::new(personal)),
            ..summand
        })
    }

    fn model(&self, of: SumBasis<'_>, opened: &mut dyn OpenedTotal) -> Result<ToldModel, String> {
        opened_answers(of, opened)
    }

    fn sigma(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use methods::strategy::LARGEST_WORD;
    use privacy::masks::Fixed;

    #[test]
    fn the_reach_of_statistics_is_that_of_masks_for_questions() {
        let (largest, clipped) = Fixed::QUESTION.integer(f64::MAX);
        assert!(clipped);
        assert_eq!(largest.cast_unsigned(), LARGEST_WORD);
    }
}
