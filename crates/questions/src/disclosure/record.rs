//! Record of the answers of a source of rows, and the checks of a new question against it.

use serde::{Deserialize, Serialize};

use super::pieces::{RowSet, columns_of, sets, single_out};
use super::{AnswerRules, Broken, gates};
use crate::question::FederatedQuestion;
use crate::table::{CellColumn, ConditionSign, RowTable};
use crate::{
    AskedQuestion, FirstCounts, Kind, Outcome, QuestionMode, QuestionProgress, SiteRefusal,
};

/// One answered question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The question.
    pub question: FederatedQuestion,
    /// Numbers that its rounds opened.
    pub opened: u64,
    /// The counts of its first round and the answer, if it had one.
    pub answer: Option<(FirstCounts, Outcome)>,
    /// A fingerprint of every row then, sorted.
    rows: Vec<u64>,
}

/// Numbers and counts that a question has opened before a round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenedBefore {
    /// Numbers that its rounds have opened.
    pub numbers: u64,
    /// Where the sums of several groups of sites are opened, the counts of this site's own; none where the counts of all
    /// sites are those of the only sum.
    pub group: Option<FirstCounts>,
}

impl From<u64> for OpenedBefore {
    fn from(numbers: u64) -> Self {
        Self {
            numbers,
            group: None,
        }
    }
}

/// Record of the answers of a source over its life, for all federations that it is in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The answered questions, in order.
    pub answered: Vec<Answered>,
}

impl AnswerRecord {
    /// The answer that an identical question got before. Asking again opens nothing.
    pub fn stored(&self, question: &FederatedQuestion) -> Option<&Answered> {
        let mut answered = self.answered.iter();
        answered.find(|answered| answered.question == *question && answered.answer.is_some())
    }

    /// Returns whether a site may answer the first round of a question.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(
        &self,
        question: &FederatedQuestion,
        table: &RowTable,
        rules: &AnswerRules,
    ) -> Result<(), SiteRefusal> {
        allowed(question, rules)?;
        if question.mode == QuestionMode::Noised {
            // What a row changes is bounded by the noise; a refusal that depends on rows would have none.
            return Ok(());
        }
        let smallest = rules.smallest_cell.max(question.rules.smallest_cell);
        let now = fingerprints(table);
        for answered in self.exact() {
            let changed = |rows: usize| rows > 0 && (rows as u64) < smallest;
            if changed(missing_from(&now, &answered.rows))
                || changed(missing_from(&answered.rows, &now))
            {
                return Err(Broken::Changed(smallest).into());
            }
        }
        let mut all: Vec<RowSet> = Vec::new();
        for asked in self
            .exact()
            .map(|answered| &answered.question)
            .chain([question])
        {
            all.extend(sets(asked, table)?);
        }
        if single_out(&all, smallest) {
            return Err(Broken::Pieces(smallest).into());
        }
        if question.mode == QuestionMode::Clear {
            let (limits, known) = question.gates_of(table)?;
            // A site without rows tells nothing.
            if known.counts.rows > 0.0 && gates(&limits, &known).is_err() {
                return Err(Broken::Clear("rows, events or rows of a group".to_owned()).into());
            }
        }
        Ok(())
    }

    /// Checks that a site may send its vector of a round: after the counts its own part of them, and before every round
    /// the numbers that are open then. `before` is what this question has opened so far; its numbers are those of the sum
    /// that this site is in.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check_round(
        &self,
        question: &FederatedQuestion,
        table: &RowTable,
        rules: &AnswerRules,
        progress: &QuestionProgress,
        before: impl Into<OpenedBefore>,
    ) -> Result<(), SiteRefusal> {
        let Some(all) = progress.counts() else {
            return Ok(());
        };
        let OpenedBefore {
            numbers: opened,
            group,
        } = before.into();
        // Whose numbers are in the sum.
        let summed = group.as_ref().unwrap_or(all);
        if question.mode == QuestionMode::Noised {
            return Ok(());
        }
        let (_, known) = question.gates_of(table)?;
        let smallest = rules.smallest_cell.max(question.rules.smallest_cell);
        dominance(&known.counts, summed, rules, smallest)?;
        if question.mode == QuestionMode::Clear
            && question.has_small_part(table, progress, smallest)?
        {
            return Err(Broken::Clear("rows in a node of a tree".to_owned()).into());
        }
        let layout = question
            .layout(progress)
            .map_err(|error| SiteRefusal::Rows(error.to_string()))?;
        if question.is_of_sites() {
            return match question.mode {
                QuestionMode::Clear | QuestionMode::Noised => Ok(()),
                QuestionMode::Masked => self.check_functions_of_sites(
                    question,
                    summed,
                    opened + layout.len() as u64,
                    rules,
                ),
            };
        }
        if question.mode == QuestionMode::Masked {
            let sites = question.measured_sites(progress).unwrap_or(summed.sites);
            question.hides_sites(sites)?;
            self.check_same_functions(question, sites, rules)?;
        }
        // What others would have to be found out: their rows, in every column that was asked for.
        let mut columns: Vec<String> = Vec::new();
        for asked in self
            .exact()
            .map(|answered| &answered.question)
            .chain([question])
        {
            let inputs = asked.inputs().unwrap_or_default();
            columns.extend(inputs.iter().map(|input| input.column().to_owned()));
        }
        columns.sort();
        columns.dedup();
        let unknowns = (summed.rows - known.counts.rows) * columns.len() as f64;
        let before: u64 = self.others(question).map(|answered| answered.opened).sum();
        let now = opened + layout.len() as u64;
        // Refused before anything but counts is open, and not in the middle.
        let numbers = before
            + question
                .most_numbers(all.rows)
                .map_or(now, |most| most.max(now));
        if numbers as f64 * rules.unknowns_per_number > unknowns {
            return Err(Broken::Numbers.into());
        }
        Ok(())
    }

    /// Checks that sums of functions of whole sites hide those of single ones: `numbers` are opened by this question.
    fn check_functions_of_sites(
        &self,
        question: &FederatedQuestion,
        all: &FirstCounts,
        numbers: u64,
        rules: &AnswerRules,
    ) -> Result<(), SiteRefusal> {
        // Filters and missing values may leave some with nothing to tell.
        let sites = all.told.unwrap_or(all.sites);
        if let Kind::Meta(_) = &question.kind {
            question.hides_sites(sites)?;
            return self.check_same_functions(question, sites, rules);
        }
        let colluders = question.rules.colluders;
        // Of each other site the products of its columns with each other and with the outcome are unknown.
        let p = question.coefficients() as f64;
        let unknowns = (sites - 1.0 - colluders as f64) * p * (p + 3.0) / 2.0;
        let same = self
            .others(question)
            .filter(|answered| answered.question.is_of_sites());
        let before: u64 = same.map(|answered| answered.opened).sum();
        if (before + numbers) as f64 * rules.unknowns_per_number > unknowns {
            return Err(Broken::Numbers.into());
        }
        Ok(())
    }

    /// Checks that sums of functions of so many sites, with those of earlier questions about the same ones, hide those of
    /// single sites: two questions of which one leaves out a site would tell them.
    fn check_same_functions(
        &self,
        question: &FederatedQuestion,
        sites: f64,
        rules: &AnswerRules,
    ) -> Result<(), SiteRefusal> {
        let Some((of_a_site, columns)) = functions_of(question) else {
            return Ok(());
        };
        let same = |answered: &&Answered| {
            answered.question.kind.name() == question.kind.name()
                && functions_of(&answered.question).is_some_and(|(_, others)| others == columns)
        };
        let questions = 1 + self.others(question).filter(same).count();
        let unknowns = of_a_site.unknowns * (sites - 1.0 - question.rules.colluders as f64);
        let opened = questions as f64 * of_a_site.sums;
        match opened * rules.unknowns_per_number > unknowns {
            true => Err(Broken::Numbers.into()),
            false => Ok(()),
        }
    }

    /// Returns what was answered without noise.
    fn exact(&self) -> impl Iterator<Item = &Answered> {
        let exact = |answered: &&Answered| answered.question.mode != QuestionMode::Noised;
        self.answered.iter().filter(exact)
    }

    /// Returns what was answered without noise beside the rounds of a question that is not over.
    fn others<'a>(&'a self, question: &'a FederatedQuestion) -> impl Iterator<Item = &'a Answered> {
        let under_way =
            |answered: &&Answered| answered.answer.is_none() && answered.question == *question;
        self.exact().filter(move |answered| !under_way(answered))
    }

    /// Keeps that a round of a question is answered, before it is: with it `opened` numbers of the question are
    /// open.
    pub fn begin(&mut self, question: &FederatedQuestion, table: &RowTable, opened: u64) {
        let under_way =
            |answered: &&mut Answered| answered.answer.is_none() && answered.question == *question;
        match self.answered.iter_mut().find(under_way) {
            Some(answered) => answered.opened = answered.opened.max(opened),
            None => self.answered.push(Answered {
                question: question.clone(),
                opened,
                answer: None,
                rows: fingerprints(table),
            }),
        }
    }

    /// Keeps a question of which rounds were opened, whether or not there was an answer. One that opened nothing is not
    /// kept: it tells nothing, and if it is about a column that a site lacks, it would end all later ones.
    pub fn keep(&mut self, question: &FederatedQuestion, table: &RowTable, asked: &AskedQuestion) {
        if asked.rounds.is_empty() {
            return;
        }
        let numbers = asked.rounds.iter().map(|round| round.layout.len() as u64);
        let answer = asked.counts.clone().zip(asked.end.clone().ok());
        self.answered.push(Answered {
            question: question.clone(),
            opened: numbers.sum(),
            answer,
            rows: fingerprints(table),
        });
    }
}

/// Sites that a masked meta-analysis needs beside the colluders: it opens nine sums of two unknowns of each of the
/// others, of which a third may be opened.
const SITES_OF_META: u64 = 13;
/// Sites that masked losses need beside the colluders: their mean difference and its square are two sums of one unknown of
/// each of the others, of which a third may be opened.
const SITES_OF_LOSSES: u64 = 7;

/// Functions of one site that are unknown, and sums of them that a question opens.
struct SiteFunctions {
    unknowns: f64,
    sums: f64,
}

/// Four mean losses; and their sums, that of the squared gain, and the number of sites that gain.
const LOSSES: SiteFunctions = SiteFunctions {
    unknowns: 4.0,
    sums: 6.0,
};
/// An estimate and its variance; and eight sums beside the number of sites.
const ESTIMATES: SiteFunctions = SiteFunctions {
    unknowns: 2.0,
    sums: 8.0,
};

/// The functions of a site that a question opens sums of, and the columns that they are of: the same effect or outcome can be
/// written in several ways, as `ill = 1` and `ill > 0`.
fn functions_of(question: &FederatedQuestion) -> Option<(SiteFunctions, Vec<String>)> {
    let inputs = question.inputs().unwrap_or_default();
    match &question.kind {
        // The outcome is behind the terms.
        Kind::Baselines(_) => Some((
            LOSSES,
            columns_of(&inputs[inputs.len().saturating_sub(1)..]),
        )),
        Kind::Meta(_) => Some((ESTIMATES, columns_of(&inputs))),
        _ => None,
    }
}

impl FederatedQuestion {
    /// Checks that sums over so many sites hide the functions of single ones under masks.
    fn hides_sites(&self, sites: f64) -> Result<(), Broken> {
        let least = match &self.kind {
            Kind::Meta(meta) if meta.reml => return Err(Broken::Reml),
            Kind::Meta(_) => SITES_OF_META,
            Kind::Baselines(_) => SITES_OF_LOSSES,
            _ => return Ok(()),
        };
        let needed = least + self.rules.colluders;
        match sites < needed as f64 {
            true => Err(Broken::Sites(needed)),
            false => Ok(()),
        }
    }

    /// Why so many sites cannot answer it under masks, whatever their rows are; `None` if they can.
    pub fn too_few_sites(&self, sites: u64) -> Option<String> {
        let broken = self.hides_sites(sites as f64).err()?;
        Some(format!("every site {broken}"))
    }
}

/// Returns whether an institution allows a question at all.
fn allowed(question: &FederatedQuestion, rules: &AnswerRules) -> Result<(), Broken> {
    let name = question.kind.name();
    if rules
        .kinds
        .as_ref()
        .is_some_and(|kinds| !kinds.iter().any(|kind| kind == name))
    {
        return Err(Broken::Kind(name.to_owned()));
    }
    let inputs = question.inputs().unwrap_or_default();
    let columns = inputs.iter().map(|input| input.column().to_owned());
    let mut columns = columns.chain(
        question
            .filter
            .iter()
            .map(|condition| condition.column.clone()),
    );
    if let Some(forbidden) = columns.find(|column| rules.forbidden_columns.contains(column)) {
        return Err(Broken::Column(forbidden));
    }
    for condition in &question.filter {
        let ordered = !matches!(
            condition.comparison,
            ConditionSign::Is | ConditionSign::IsNot
        );
        if let (true, Some(cuts)) = (ordered, rules.cuts.get(&condition.column))
            && !condition.number().is_some_and(|cut| cuts.contains(&cut))
        {
            return Err(Broken::Cut(condition.column.clone()));
        }
    }
    Ok(())
}

fn dominance(
    own: &FirstCounts,
    all: &FirstCounts,
    rules: &AnswerRules,
    smallest: u64,
) -> Result<(), Broken> {
    let dominates = |own: f64, all: f64| {
        own > 0.0 && (own > rules.largest_share * all || all - own < smallest as f64)
    };
    if dominates(own.rows, all.rows) || dominates(own.complete, all.complete) {
        return Err(Broken::Dominance("rows"));
    }
    if let (Some(own), Some(all)) = (own.events, all.events)
        && dominates(own, all)
    {
        return Err(Broken::Dominance("events"));
    }
    Ok(())
}

/// Returns how many of these are not among the others. Both are sorted, and may hold equal numbers.
fn missing_from(of: &[u64], others: &[u64]) -> usize {
    let mut at = 0;
    let missing = of.iter().filter(|number| {
        while others.get(at).is_some_and(|other| other < number) {
            at += 1;
        }
        let found = others.get(at) == Some(number);
        at += usize::from(found);
        !found
    });
    missing.count()
}

/// A number for every row that changes with any of its cells (Fowler–Noll–Vo). It stays at the site.
fn fingerprints(table: &RowTable) -> Vec<u64> {
    let mut prints = vec![0xcbf2_9ce4_8422_2325_u64; table.rows()];
    let mix = |print: &mut u64, bytes: &[u8]| {
        for byte in bytes {
            *print = (*print ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for name in table.names() {
        match table.cells(name) {
            Some(CellColumn::Numbers(cells)) => {
                for (print, cell) in prints.iter_mut().zip(cells) {
                    mix(
                        print,
                        &cell.map_or([0xff; 9].to_vec(), |x| x.to_bits().to_le_bytes().to_vec()),
                    );
                }
            }
            Some(CellColumn::Words(cells)) => {
                for (print, cell) in prints.iter_mut().zip(cells) {
                    mix(print, cell.as_deref().unwrap_or("\u{0}").as_bytes());
                    mix(print, &[0xff]);
                }
            }
            None => {}
        }
    }
    prints.sort_unstable();
    prints
}
