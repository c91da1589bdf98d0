//! Answers to a question: the sum says what the rows of all authors have in common, and no step of learning follows
//! from it. Every author counts once, whatever weight its models have. The sum of each group stays by itself, because the
//! limits of disclosure hold for each.

use bytes::Bytes;
use methods::Params;
use methods::learner::UnitRows;
use methods::strategy::{AnswerWords, QuestionState, REFUSAL_RULES};
use privacy::masks::{Fixed, Reach, Secret, Shape};
use privacy::sensitivity::Sensitivity;
use protocol::privacy::Sum;
use protocol::{Hash, MemberIndex};

use super::units::{NoisySum, UnitNumbers};
use super::{
    DrawnSecrets, OpenedTotal, PreparedInput, PreparedRound, PreparedSummand, SecretIntegers,
    SumBasis, Summand, ToldModel, Train,
};
use crate::config::SiloConfig;
use crate::environment::WorkSize;
use crate::rounds::Contributed;
use crate::secrets::RoundSecrets;

/// The sums of the answers of the authors of each group, of numbers up to ± 2²² in steps of 2⁻³⁰ ([`Fixed::QUESTION`]).
pub(super) struct SumOfAnswers;

impl Summand for SumOfAnswers {
    fn check(&self, _: SumBasis<'_>) -> Result<(), String> {
        Ok(())
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

    fn prepare(
        &self,
        of: SumBasis<'_>,
        drawn: DrawnSecrets,
        train: Train<'_>,
        lay: &dyn Fn(Bytes) -> Bytes,
    ) -> Result<PreparedSummand, String> {
        let answered = train()?;
        let answer = AnswerWords::read(&answered.admitted)?;
        Ok(prepared(of, drawn.secret, (answer, &answered), lay))
    }

    fn model(&self, of: SumBasis<'_>, opened: &mut dyn OpenedTotal) -> Result<ToldModel, String> {
        opened_answers(of, opened)
    }

    fn sigma(&self) -> Option<f64> {
        None
    }
}

/// The shape of sums of answers: words of any value, because one that refuses sends random ones, so that the sum of the
/// others stays unknown.
///
/// # Errors
/// A sum of so many answers could pass the largest word.
pub(super) fn shape_of_answers(of: SumBasis<'_>, sum: &Sum) -> Result<Shape, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let once = vec![1; sum.authors.len()];
    Reach::of(&once, Fixed::QUESTION).map_err(|error| said(&error))?;
    let reach = Reach::new(i64::MAX as u64).map_err(|error| said(&error))?;
    let integers = AnswerWords::integers_of(&of.base.gate.layout);
    Shape::new(integers, reach).map_err(|error| said(&error))
}

/// The part of a silo in a sum of answers, with its personal state as it was.
pub(super) fn prepared(
    of: SumBasis<'_>,
    secret: Secret,
    (mut answer, contributed): (AnswerWords, &Contributed),
    lay: &dyn Fn(Bytes) -> Bytes,
) -> PreparedSummand {
    if answer.refuses() {
        hide(&mut answer.words, &secret);
    }
    let integers = SecretIntegers::of(&answer.integers());
    let epoch = &of.config.member.epoch.id;
    let blob = lay(PreparedRound::integers_blob(&secret, epoch, integers.all()));
    PreparedSummand {
        secret,
        input: PreparedInput::Integers(integers),
        hash: Hash::of(&blob),
        blob,
        personal: None,
        loss: contributed.loss(),
        metrics: contributed.further(),
        samples: contributed.samples,
    }
}

/// The sum of each group's answers.
///
/// # Errors
/// The sums cannot be opened.
pub(super) fn opened_answers(
    of: SumBasis<'_>,
    opened: &mut dyn OpenedTotal,
) -> Result<ToldModel, String> {
    let mut sums = Vec::new();
    let whole = opened.each_sum(&mut |authors, integers| {
        let of_group = (pseudonym(of, authors), authors.len() as u64);
        sums.push(AnswerWords::of_integers(of_group, integers).write());
    })?;
    Ok((Ok(sums), whole))
}

/// Numbers of every row for a question, for sums with noise.
pub(super) struct AnswersOfRows {
    question: usize,
    numbers: usize,
    /// The clipped norm of a unit in steps, by the norm of a row: whole, so that counts stay exact.
    steps: f64,
    /// One of these steps.
    step: f64,
}

/// Many rows have the same numbers, and are rounded alike.
fn fine(numbers: usize) -> Result<Sensitivity, String> {
    Sensitivity::fine(numbers as u64).map_err(|error| error.to_string())
}

/// A silo declares the rows that it trains on, and answers from all.
const ALL_PER_TRAINED: u64 = 8;

impl AnswersOfRows {
    /// Those of the next round, where units are clipped to this norm.
    ///
    /// # Errors
    /// The question has no bound for one row, or opens nothing.
    pub(super) fn new(of: SumBasis<'_>, clip: f64, question: usize) -> Result<Self, String> {
        let norm = of.config.strategy.row_norm(&of.base.state);
        let norm = norm.ok_or("one row has no bound in this question, so no noise can hide it")?;
        let integers = AnswerWords::integers_of(&of.base.gate.layout);
        let numbers = integers.saturating_sub(REFUSAL_RULES);
        let sensitivity = fine(numbers)?;
        Ok(Self {
            question,
            numbers,
            steps: sensitivity.whole_steps(norm),
            step: clip / sensitivity.steps(),
        })
    }
}

impl UnitNumbers for AnswersOfRows {
    fn count(&self) -> usize {
        self.numbers
    }

    fn sensitivity(&self) -> Result<Sensitivity, String> {
        fine(self.numbers)
    }

    fn check(&self, _: SumBasis<'_>) -> Result<(), String> {
        Ok(())
    }

    fn each(
        &self,
        of: SumBasis<'_>,
        unit: UnitRows,
        add: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, String> {
        match unit {
            UnitRows::One => {}
            UnitRows::Group => return Err("the rows of a person have no bound in questions".into()),
        }
        let answers = of.config.learner.answers();
        let answers = answers.map_err(|error| error.to_string())?;
        let opened = QuestionState::of(&of.base.state.memory, self.question).opened;
        let mut scaled = Vec::with_capacity(self.numbers);
        let given = answers.row_answers(self.question, &opened, &mut |numbers| {
            scaled.clear();
            scaled.extend(numbers.iter().map(|number| number * self.steps * self.step));
            add(&scaled);
        });
        given.map_err(|error| error.to_string())?;
        Ok(f64::NAN)
    }

    /// Words of 64 bits, however few rows there are, so that everybody knows what a round takes.
    fn least_reach(&self) -> u64 {
        1 << 31
    }

    fn units_per_row(&self) -> u64 {
        ALL_PER_TRAINED
    }

    /// The sum, with the bits of its numbers as words: the strategy knows what they are.
    fn model(&self, of: SumBasis<'_>, sum: &NoisySum<'_>) -> Result<Params, String> {
        let numbers = sum.total.iter().map(|steps| *steps as f64 / self.steps);
        let answer = AnswerWords {
            site: pseudonym(of, sum.authors),
            authors: sum.authors.len() as u64,
            words: numbers.map(f64::to_bits).collect(),
            refused: vec![0; REFUSAL_RULES],
        };
        Ok(answer.write())
    }
}

/// Puts words that nobody can guess in the place of these. The sum with them says nothing of those of the others: it
/// would be one of fewer authors than a sum may have.
fn hide(words: &mut [u64], secret: &Secret) {
    for (at, word) in words.iter_mut().enumerate() {
        let drawn = Hash::labelled(
            "words of a refusal",
            &[&secret.expose()[..], &(at as u64).to_le_bytes()],
        );
        let mut first = [0; 8];
        first.copy_from_slice(&drawn.0[..8]);
        *word = u64::from_le_bytes(first);
    }
}

/// The pseudonym of these authors of a sum.
fn pseudonym(of: SumBasis<'_>, authors: &[MemberIndex]) -> u64 {
    let roster = &of.config.member.epoch.roster;
    authors_pseudonym(authors.iter().map(|by| roster.name(*by)))
}

/// A number that is the same for the same authors of a sum, by their names in the roster: what the sum of an answer has in
/// place of the pseudonym of a silo.
pub fn authors_pseudonym<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    let names: Vec<_> = names.into_iter().map(str::as_bytes).collect();
    let mut first = [0; 8];
    first.copy_from_slice(&Hash::labelled("authors of an answer", &names).0[..8]);
    u64::from_le_bytes(first)
}
