//! Questions in rounds that open sums alone: the sums are those of clear rounds, to the last bit, and learning goes on
//! behind them.

use std::sync::Arc;
use std::time::Duration;

use methods::LearnError;
use methods::learner::{Answers, OpenedSums, OwnAnswer};
use methods::strategy::{
    AnswerWords, QuestionRounds, QuestionState, QuestionsFirst, REFUSAL_RULES, answer_size,
};
use privacy::masks::CHECKS;
use protocol::privacy::threshold;
use protocol::{Epoch, MemberIndex, ProtocolParameters};
use tokio::time::sleep;

use super::masked::{ALL, ROUNDS, SiloFault, expected, groups, secrets};
use super::noised::noised_of;
use super::{TestSilos, kill};
use crate::outcome::{Document, genesis};
use crate::rounds::{RoundBase, vector_bytes};
use crate::testing::*;
use crate::{Blobs, SiloConfig};

/// Rounds of the question.
const ASKED: u64 = 3;

/// Answers with a silo's own numbers, which depend on the sum before.
struct DependentNumbers {
    own: u64,
    /// The round of the question, from 0, from which on it refuses.
    refuses: usize,
}

impl DependentNumbers {
    fn numbers(&self, opened: &[Vec<u64>]) -> Vec<u64> {
        let before = opened.last().map_or(1, |sum| sum[0]);
        // A count, a number as far as the grid reaches, and one below zero.
        let far = (1u64 << 52) - self.own;
        vec![self.own + before % 7, far, (-3i64 * self.own as i64) as u64]
    }
}

impl Answers for DependentNumbers {
    fn pseudonym(&self, _: usize) -> u64 {
        self.own * 1_000_003
    }

    fn answer(&self, _: usize, opened: OpenedSums<'_>) -> Result<OwnAnswer, LearnError> {
        let opened = opened.sums;
        Ok(if opened.len() >= self.refuses {
            OwnAnswer::Refused(4)
        } else {
            OwnAnswer::Numbers(self.numbers(opened))
        })
    }

    fn row_answers(
        &self,
        _: usize,
        _: &[Vec<u64>],
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), LearnError> {
        (0..self.own * 100).for_each(|row| each(&[1.0, f64::from(row % 2 == 0), -0.5]));
        Ok(())
    }
}

/// A question of three numbers a round.
struct ThreeNumbers {
    noised: bool,
}

impl QuestionRounds for ThreeNumbers {
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize> {
        (opened.len() < ASKED as usize).then_some(3)
    }

    fn largest(&self) -> usize {
        3
    }

    fn row_norm(&self, _: &[Vec<u64>]) -> Option<f64> {
        self.noised.then_some(1.5)
    }

    fn noised(&self, _: &[Vec<u64>], sum: &AnswerWords) -> Option<Vec<u64>> {
        let numbers = sum.words.iter().map(|word| f64::from_bits(*word));
        Some(numbers.map(|number| number.round() as i64 as u64).collect())
    }
}

/// Makes a silo one that answers, and refuses from this round of the question on.
fn answering(config: &mut SiloConfig, refuses: usize, noised: bool) {
    let me = config.member.me.0;
    let question: Arc<dyn QuestionRounds> = Arc::new(ThreeNumbers { noised });
    config.strategy = Arc::new(QuestionsFirst::new(strategy(), vec![question], ROUNDS));
    let numbers = DependentNumbers {
        own: u64::from(me) + 1,
        refuses,
    };
    config.learner = with_answers(f64::from(me), numbers);
}

/// Knowledge of silos about the question in the end, their models after learning, and what they keep. The fourth one refuses
/// from this round of the question on.
fn asked(
    epoch: Arc<Epoch>,
    refuses: usize,
    noised: bool,
    fault: SiloFault,
) -> (QuestionState, f32, Vec<Rig>) {
    virtually(async {
        let rounds = epoch.protocol.rounds;
        let members = epoch.roster.len() as u16;
        let silos = TestSilos::of(epoch);
        let live = |i: u16| {
            let refuses = if i == 3 { refuses } else { usize::MAX };
            silos.live_with(i, |config| answering(config, refuses, noised))
        };
        let mut all: Vec<_> = (0..members).map(live).collect();
        if let SiloFault::Killed { who, after, back } = fault {
            sleep(after).await;
            kill(&mut all[usize::from(who)]).await;
            sleep(back).await;
            all[usize::from(who)] = live(who);
        }
        for i in 0..members {
            silos.until(i, rounds).await;
        }
        sleep(Duration::from_secs(60)).await;
        for silo in &mut all {
            kill(silo).await;
        }
        let ended: Vec<_> = silos
            .rigs
            .iter()
            .map(|rig| *rig.adopted().last().unwrap())
            .collect();
        let (_, outcome, model) = ended[0];
        assert!(ended.iter().all(|(_, other, _)| *other == outcome));
        let document = silos.rigs[0].blobs.get(&outcome).unwrap();
        let document = Document::read(&document).unwrap();
        (
            QuestionState::of(&document.memory, 0),
            model,
            silos.rigs.clone(),
        )
    })
}

fn epoch_of(rounds: u64, change: impl Fn(&mut ProtocolParameters)) -> Arc<Epoch> {
    epoch_with(4, rounds, change)
}

/// The last model of the rounds that learn.
fn last() -> f32 {
    *expected(ALL[0]).last().unwrap()
}

#[test]
fn masked_answers_are_those_of_clear_rounds_bit_by_bit() {
    let rounds = ASKED + ROUNDS;
    let never = usize::MAX;
    let (clear, ..) = asked(epoch_of(rounds, |_| {}), never, false, SiloFault::None);
    let (masked, model, rigs) = asked(epoch_of(rounds, groups(ALL)), never, false, SiloFault::None);
    assert_eq!(masked.opened, clear.opened);
    assert_eq!(clear.opened[0], [14, 4 * (1 << 52) - 10, (-30i64) as u64]);
    assert_eq!((clear.sites.len(), masked.sites.len()), (4, 1));
    assert!((model - last()).abs() < 1e-4, "{model}");
    assert!(rigs.iter().all(|rig| secrets(rig) == 0));
}

#[test]
fn weights_of_models_are_no_weights_of_answers() {
    let weighted: &[&[(u16, u64)]] = &[&[(0, 3), (1, 2), (2, 1), (3, 1)]];
    let rounds = ASKED + ROUNDS;
    let found = [ALL, weighted].map(|of| {
        let epoch = epoch_of(rounds, groups(of));
        asked(epoch, usize::MAX, false, SiloFault::None).0.opened
    });
    assert_eq!(found[0], found[1]);
}

#[test]
fn a_silo_killed_in_mid_question_changes_no_sum() {
    let rounds = ASKED + ROUNDS;
    let whole = asked(
        epoch_of(rounds, groups(ALL)),
        usize::MAX,
        false,
        SiloFault::None,
    )
    .0;
    for (who, millis) in (0..12).map(|at| (at % 4, 40 + 177 * u64::from(at))) {
        let (after, back) = (Duration::from_millis(millis), Duration::from_secs(20));
        let fault = SiloFault::Killed { who, after, back };
        let (found, model, rigs) = asked(epoch_of(rounds, groups(ALL)), usize::MAX, false, fault);
        assert_eq!(found.opened, whole.opened, "{who} at {millis} ms");
        assert!((model - last()).abs() < 1e-4, "{model}");
        assert!(rigs.iter().all(|rig| secrets(rig) == 0));
    }
}

#[test]
fn a_silo_that_refuses_ends_a_masked_question_without_its_name() {
    for refuses in [0, 1] {
        let rounds = refuses as u64 + 1 + ROUNDS;
        let epoch = epoch_of(rounds, groups(ALL));
        let (found, model, _) = asked(epoch, refuses, false, SiloFault::None);
        assert_eq!((found.opened.len(), found.ended), (refuses, true));
        let by_rule: Vec<_> = found.refused.iter().enumerate().collect();
        let said = by_rule.into_iter().filter(|(_, silos)| **silos > 0);
        assert_eq!(said.collect::<Vec<_>>(), [(4, &1)]);
        assert!((model - last()).abs() < 1e-4, "{model}");
    }
}

#[test]
fn noised_answers_are_near_the_sums_and_not_the_same() {
    let epoch = noised_of(4, ASKED + ROUNDS, Some(400), 4);
    let (found, ..) = asked(epoch, usize::MAX, true, SiloFault::None);
    assert_eq!(found.opened.len(), ASKED as usize);
    // A thousand rows of four silos; σ of the sum is below 1 row.
    for sum in &found.opened {
        let exact = [1000.0, 500.0, -500.0];
        for (found, exact) in sum.iter().zip(exact) {
            let found = found.cast_signed() as f64;
            assert!((found - exact).abs() < 8.0, "{found}, {exact}");
        }
    }
}

/// Two groups of four.
const TWO: &[&[(u16, u64)]] = &[
    &[(0, 1), (1, 1), (2, 1), (3, 1)],
    &[(4, 1), (5, 1), (6, 1), (7, 1)],
];

#[test]
fn sums_of_two_groups_add_up_to_those_of_clear_rounds() {
    let rounds = ASKED + ROUNDS;
    let of = |change: &dyn Fn(&mut ProtocolParameters)| {
        asked(
            epoch_with(8, rounds, change),
            usize::MAX,
            false,
            SiloFault::None,
        )
    };
    let (clear, ..) = of(&|_| {});
    let (masked, model, rigs) = of(&groups(TWO));
    assert_eq!(masked.opened, clear.opened);
    assert_eq!(masked.opened[0], [44, 8 * (1 << 52) - 36, (-108i64) as u64]);
    assert_eq!((clear.sites.len(), clear.groups.len()), (8, 0));
    // Each group is known by its own sum, whose limits are checked.
    let mut firsts: Vec<_> = masked.groups.iter().map(|(_, sum)| sum[0]).collect();
    firsts.sort_unstable();
    assert_eq!((firsts, masked.sites.len()), (vec![14, 30], 2));
    let last = *expected(&TWO.concat()).last().unwrap();
    assert!((model - last).abs() < 1e-4, "{model}");
    assert!(rigs.iter().all(|rig| secrets(rig) == 0));
}

#[test]
fn a_refusal_at_once_leaves_out_its_group_alone() {
    let rounds = ASKED + ROUNDS;
    let epoch = || epoch_with(8, rounds, groups(TWO));
    let (found, ..) = asked(epoch(), 0, false, SiloFault::None);
    assert_eq!((found.opened.len(), found.ended), (ASKED as usize, false));
    assert_eq!((found.sites.len(), found.refused[4]), (1, 1));
    // Five to eight, and one more of each.
    assert_eq!(found.opened[0][0], 30);
    assert_eq!(found.groups[0].1, found.opened[0]);
}

#[test]
fn a_later_refusal_ends_the_question_of_all_groups() {
    let epoch = epoch_with(8, 2 + ROUNDS, groups(TWO));
    let (found, ..) = asked(epoch, 1, false, SiloFault::None);
    assert_eq!(
        (found.opened.len(), found.ended, found.refused[4]),
        (1, true, 1)
    );
    assert_eq!(found.groups.len(), 2);
}

#[test]
fn answers_have_the_bytes_that_are_stated() {
    let numbers = 3;
    let answer = AnswerWords::refusal(7, numbers, 2).write();
    assert_eq!(answer.document().len() as u64, answer_size(numbers));
    // However few rows were declared.
    let masked = epoch_of(9, groups(ALL));
    let noised = noised_of(4, 9, Some(5), 4);
    for (epoch, noise, words) in [
        (masked, false, numbers + REFUSAL_RULES + CHECKS),
        (noised, true, numbers + CHECKS),
    ] {
        let mut config = config(&epoch, 0);
        answering(&mut config, usize::MAX, noise);
        let genesis = genesis(&*config.strategy, &*config.learner, config.initial_seed);
        let base = RoundBase::new(&config, &genesis);
        let found = vector_bytes(&config, &base, (0..4).map(MemberIndex));
        let transcript = 32 * (4 + threshold(&epoch.roster, 4) + 1);
        assert_eq!(found, Ok((8 * words + transcript) as u64), "noise: {noise}");
    }
}
