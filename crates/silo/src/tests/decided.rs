//! Members decide together behind the rounds of learning: what they open in clear and under masks, with silos that are slow
//! and silos that die.

use std::sync::Arc;
use std::time::Duration;

use methods::LearnError;
use methods::learner::{Answers, OpenedSums, OwnAnswer};
use methods::serving::{NotTogether, TogetherRounds, TogetherStage};
use methods::strategy::{LAST_QUESTION, QuestionState, QuestionsFirst};
use protocol::ProtocolParameters;
use tokio::time::sleep;

use super::masked::{ROUNDS, expected, groups, secrets};
use super::{TestSilos, kill};
use crate::outcome::Document;
use crate::testing::*;
use crate::{Blobs, SiloConfig};

const SILOS: u16 = 8;
/// One group of all eight, the fewest that may decide together under masks with one colluder.
const ALL: &[&[(u16, u64)]] = &[&[
    (0, 1),
    (1, 1),
    (2, 1),
    (3, 1),
    (4, 1),
    (5, 1),
    (6, 1),
    (7, 1),
]];
const TOGETHER: TogetherRounds = TogetherRounds { waiting: 4 };
/// Rounds that are agreed on: more than are needed.
const AGREED: u64 = ROUNDS + 10;
/// A silo whose comparison is never done.
const NEVER: usize = usize::MAX;

/// A silo that compares for so many rounds of waiting.
struct ComparingSilo {
    own: u64,
    compares: usize,
}

/// Returns what a silo adds that has compared.
fn numbers(own: u64) -> Vec<u64> {
    let number = |at: u64| match at % 4 {
        0 => 1,
        1 => (-((own * at) as i64)).cast_unsigned(),
        _ => own * at,
    };
    (0..TogetherRounds::NUMBERS as u64).map(number).collect()
}

/// The sum of what these silos add.
fn sum(own: impl Iterator<Item = u64>) -> Vec<u64> {
    own.fold(vec![0; TogetherRounds::NUMBERS], |sum, own| {
        let pairs = sum.iter().zip(numbers(own));
        pairs.map(|(sum, own)| sum.wrapping_add(own)).collect()
    })
}

impl Answers for ComparingSilo {
    fn pseudonym(&self, _: usize) -> u64 {
        self.own * 1_000_003
    }

    fn answer(&self, question: usize, opened: OpenedSums<'_>) -> Result<OwnAnswer, LearnError> {
        assert_eq!(question, LAST_QUESTION);
        let done = opened.sums.len() >= self.compares;
        Ok(OwnAnswer::Numbers(match TOGETHER.stage(opened.sums) {
            TogetherStage::Waiting => vec![u64::from(!done)],
            TogetherStage::Adding if done => numbers(self.own),
            TogetherStage::Adding | TogetherStage::Opened(_) => TogetherRounds::own(None),
        }))
    }
}

fn comparing(config: &mut SiloConfig, compares: usize) {
    let me = config.member.me.0;
    let learning = QuestionsFirst::new(strategy(), Vec::new(), ROUNDS);
    config.strategy = Arc::new(learning.and_at_last(Arc::new(TOGETHER)));
    let silo = ComparingSilo {
        own: u64::from(me) + 1,
        compares,
    };
    config.learner = with_answers(f64::from(me), silo);
}

/// The death of a silo once it has adopted a round, and for how long it is away; `None` for good.
type Death = (u16, u64, Option<Duration>);

/// Returns what silos know in the end that compare for so many rounds, and how many rounds there were; `least` are waited
/// for. Their model is the one that they learned.
fn decided(
    change: impl Fn(&mut ProtocolParameters),
    compares: [usize; SILOS as usize],
    death: Option<Death>,
    least: u64,
) -> (QuestionState, u64) {
    let epoch = epoch_with(SILOS, AGREED, change);
    virtually(async {
        let silos = TestSilos::of(epoch);
        let live =
            |i: u16| silos.live_with(i, |config| comparing(config, compares[usize::from(i)]));
        let mut all: Vec<_> = (0..SILOS).map(live).collect();
        let mut gone = None;
        if let Some((who, round, back)) = death {
            silos.until(who, round).await;
            kill(&mut all[usize::from(who)]).await;
            match back {
                None => gone = Some(who),
                Some(back) => {
                    sleep(back).await;
                    all[usize::from(who)] = live(who);
                }
            }
        }
        let there: Vec<u16> = (0..SILOS).filter(|i| gone != Some(*i)).collect();
        for &i in &there {
            silos.until(i, least).await;
        }
        sleep(Duration::from_secs(60)).await;
        for silo in &mut all {
            kill(silo).await;
        }
        let last = |i: &u16| *silos.rigs[usize::from(*i)].adopted().last().unwrap();
        let (round, outcome, model) = last(&there[0]);
        for i in &there {
            assert_eq!(last(i).1, outcome);
            assert_eq!(secrets(&silos.rigs[usize::from(*i)]), 0);
        }
        let learned = *expected(ALL[0]).last().unwrap();
        assert!((model - learned).abs() < 1e-4, "{model}, {learned}");
        let document = silos.rigs[usize::from(there[0])].blobs.get(&outcome);
        let document = Document::read(&document.unwrap()).unwrap();
        let question = QuestionState::of(&document.memory, LAST_QUESTION);
        (question, round)
    })
}

/// All are done at once but the third.
fn with_third(compares: usize) -> [usize; SILOS as usize] {
    let mut all = [0; SILOS as usize];
    all[2] = compares;
    all
}

#[test]
fn members_wait_for_each_other_and_open_the_same_sums() {
    let rounds = ROUNDS + 3;
    let expected = [vec![1], vec![0], sum(1..=8)];
    let (clear, took) = decided(|_| {}, with_third(1), None, rounds);
    assert_eq!((&clear.opened[..], took), (&expected[..], rounds));
    let (masked, took) = decided(groups(ALL), with_third(1), None, rounds);
    assert_eq!((&masked.opened[..], took), (&expected[..], rounds));
    assert_eq!((clear.sites.len(), masked.sites.len()), (8, 1));
    let together = TOGETHER.decided(&masked).unwrap();
    assert_eq!(together.silos(), 8);
    assert_eq!(TOGETHER.decided(&clear), Ok(together));
}

#[test]
fn a_silo_that_is_never_done_is_in_no_sum() {
    let rounds = ROUNDS + TOGETHER.most();
    let expected = [
        vec![1],
        vec![1],
        vec![1],
        vec![1],
        sum((1..=8).filter(|own| *own != 3)),
    ];
    let (clear, took) = decided(|_| {}, with_third(NEVER), None, rounds);
    assert_eq!((&clear.opened[..], took), (&expected[..], rounds));
    let (masked, took) = decided(groups(ALL), with_third(NEVER), None, rounds);
    assert_eq!((&masked.opened[..], took), (&expected[..], rounds));
    assert_eq!(TOGETHER.decided(&masked).unwrap().silos(), 7);
}

#[test]
fn a_silo_killed_while_others_wait_changes_no_sum_under_masks() {
    let death = (5, ROUNDS + 1, Some(Duration::from_secs(20)));
    let (masked, took) = decided(groups(ALL), with_third(2), Some(death), ROUNDS + 4);
    assert_eq!(took, ROUNDS + 4);
    let expected = [vec![1], vec![1], vec![0], sum(1..=8)];
    assert_eq!(masked.opened, expected);
}

#[test]
fn without_a_silo_that_died_for_good_each_decides_alone() {
    let death = (5, ROUNDS + 1, None);
    let (clear, _) = decided(|_| {}, with_third(NEVER), Some(death), ROUNDS + 4);
    assert!(clear.is_abandoned() && clear.opened.iter().all(|sum| sum.len() == 1));
    assert_eq!(TOGETHER.decided(&clear), Err(NotTogether::StayedAway));
}
