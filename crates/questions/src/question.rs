//! A question as a value, and its two functions: what a site computes, and what follows from a sum.

use serde::{Deserialize, Serialize};

use crate::kinds::{
    baselines::{Baselines, BaselinesOutcome, BaselinesProgress},
    correlate::{Correlate, CorrelateOutcome, CorrelateProgress},
    cox::{Cox, CoxOutcome, CoxProgress},
    crosstab::{Crosstab, CrosstabOutcome},
    describe::{Describe, DescribeOutcome},
    glm::{Glm, GlmOutcome, GlmProgress},
    km::{Km, KmOutcome},
    logrank::{Logrank, LogrankOutcome},
    meta::{Meta, MetaOutcome, MetaProgress},
    mixed::{Mixed, MixedFitProgress, MixedOutcome},
    quantiles::{Quantiles, QuantilesOutcome, QuantilesProgress},
    trees::{Trees, TreesOutcome, TreesProgress},
};
use crate::layout::{DecodedSum, SumLayout};
use crate::noise::SumNoise;
use crate::refusal::{QuestionError, QuestionStopped, SiteRefusal};
use crate::sums::{
    AgreedColumns, CommonKnowledge, FirstCounts, Gates, QuestionMode, QuestionRules, Step, SumKind,
};
use crate::table::{CellValue, Condition, QuestionInput, RowTable, complete};

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FederatedQuestion {
    /// Kind of the question, with its columns and options.
    pub kind: Kind,
    /// The rows that are asked for: all these conditions hold.
    #[serde(default)]
    pub filter: Vec<Condition>,
    /// Ranges and levels that all agreed on before anybody looked at rows.
    #[serde(default)]
    pub agreed: AgreedColumns,
    /// The limits of disclosure that members apply to opened counts.
    #[serde(default)]
    pub rules: QuestionRules,
    /// Visibility of a site's vectors.
    #[serde(default)]
    pub mode: QuestionMode,
    /// The noise that every site adds, in mode `differential-privacy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<SumNoise>,
    /// Groups of sites whose sums are opened one by one, and added up; 1 where one sum is opened.
    #[serde(default = "one_group", skip_serializing_if = "is_one_group")]
    pub groups: usize,
    /// Real numbers are encoded in steps of 2^(`exponent`−30), up to ± 2^(22+`exponent`).
    #[serde(default)]
    pub exponent: i32,
}

fn one_group() -> usize {
    1
}

fn is_one_group(groups: &usize) -> bool {
    *groups == 1
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $progress:ty => $outcome:ty),* $(,)?) => {
        /// The kinds of questions.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Kind {
            $($(#[$doc])* $kind($kind)),*
        }

        /// Common knowledge of a question of a kind, between its rounds.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum KindProgress {
            $($(#[$doc])* $kind($progress)),*
        }

        /// The answer to a question.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Outcome {
            $($(#[$doc])* $kind($outcome)),*
        }

        impl Kind {
            fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
                match self { $(Self::$kind(kind) => kind.inputs(agreed)),* }
            }
            pub(crate) fn gates(&self, known: &CommonKnowledge) -> Gates {
                match self { $(Self::$kind(kind) => kind.gates(known)),* }
            }
            fn is_event(&self, known: &CommonKnowledge, row: &[f64]) -> bool {
                match self { $(Self::$kind(kind) => kind.is_event(known, row)),* }
            }
            fn tells(&self, rows: &[Vec<f64>]) -> bool {
                match self { $(Self::$kind(kind) => kind.tells(rows)),* }
            }
            fn group(&self, known: &CommonKnowledge, row: &[CellValue]) -> Option<usize> {
                match self { $(Self::$kind(kind) => kind.group(known, row)),* }
            }
            /// Its name in questions.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$kind(_) => $name),* }
            }
            /// The column whose levels are groups.
            pub fn group_column(&self) -> Option<&str> {
                match self { $(Self::$kind(kind) => kind.group_column()),* }
            }
            fn start(&self, known: &CommonKnowledge) -> Result<KindProgress, QuestionStopped> {
                match self { $(Self::$kind(kind) => kind.start(known).map(KindProgress::$kind)),* }
            }
            fn layout(&self, known: &CommonKnowledge, progress: &KindProgress) -> SumLayout {
                match (self, progress) {
                    $((Self::$kind(kind), KindProgress::$kind(progress)) => kind.layout(known, progress),)*
                    _ => SumLayout::default(),
                }
            }
            pub(crate) fn row_norm(&self, known: &CommonKnowledge, progress: &KindProgress) -> Option<f64> {
                match (self, progress) {
                    $((Self::$kind(kind), KindProgress::$kind(progress)) => kind.row_norm(known, progress),)*
                    _ => None,
                }
            }
            fn answer(&self, known: &CommonKnowledge, rows: &[Vec<CellValue>], progress: &KindProgress) -> Result<Vec<f64>, SiteRefusal> {
                match (self, progress) {
                    $((Self::$kind(kind), KindProgress::$kind(progress)) => kind.answer(known, rows, progress),)*
                    _ => Err(SiteRefusal::Rows("progress of another kind of question".to_owned())),
                }
            }
            fn step(&self, known: &CommonKnowledge, progress: &KindProgress, sum: &DecodedSum) -> Step<KindProgress, Outcome> {
                match (self, progress) {
                    $((Self::$kind(kind), KindProgress::$kind(progress)) => {
                        kind.step(known, progress, sum).map(KindProgress::$kind, Outcome::$kind)
                    })*
                    _ => Step::Stopped(QuestionStopped::Other("progress of another kind of question".to_owned())),
                }
            }
        }
    };
}

kinds! {
    /// Counts, means and standard deviations.
    Describe "describe" () => DescribeOutcome,
    /// Quantiles by counting.
    Quantiles "quantiles" QuantilesProgress => QuantilesOutcome,
    /// A table of counts.
    Crosstab "crosstab" () => CrosstabOutcome,
    /// Covariances, correlations and principal components.
    Correlate "correlate" CorrelateProgress => CorrelateOutcome,
    /// Survival and incidence on a grid of times.
    Km "km" () => KmOutcome,
    /// Comparison of survival between groups.
    Logrank "logrank" () => LogrankOutcome,
    /// Proportional hazards, stratified by site.
    Cox "cox" CoxProgress => CoxOutcome,
    /// Generalised linear models with an intercept for each site.
    Glm "glm" GlmProgress => GlmOutcome,
    /// Meta-analysis of the sites' own estimates.
    Meta "meta" MetaProgress => MetaOutcome,
    /// Linear mixed models.
    Mixed "mixed" MixedFitProgress => MixedOutcome,
    /// Gradient-boosted trees.
    Trees "trees" TreesProgress => TreesOutcome,
    /// Losses of local models and of global ones.
    Baselines "baselines" BaselinesProgress => BaselinesOutcome,
}

/// Common knowledge of a question between its rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionProgress {
    /// Before the first round, which opens counts.
    Counts,
    /// After it.
    Rounds {
        /// The counts.
        counts: FirstCounts,
        /// State that the kind keeps.
        kind: Box<KindProgress>,
    },
}

impl QuestionProgress {
    /// The counts, once they are known.
    pub fn counts(&self) -> Option<&FirstCounts> {
        match self {
            Self::Counts => None,
            Self::Rounds { counts, .. } => Some(counts),
        }
    }
}

impl FederatedQuestion {
    /// A question of this kind about all rows, with the default rules.
    pub fn new(kind: Kind, agreed: AgreedColumns) -> Self {
        Self {
            kind,
            filter: Vec::new(),
            agreed,
            rules: QuestionRules::default(),
            mode: QuestionMode::default(),
            noise: None,
            groups: one_group(),
            exponent: 0,
        }
    }

    pub(crate) fn known(&self, counts: FirstCounts) -> Result<CommonKnowledge, QuestionError> {
        let inputs = self.kind.inputs(&self.agreed)?;
        Ok(CommonKnowledge {
            inputs,
            rules: self.rules,
            counts,
            agreed: self.agreed.clone(),
            noise: self.agreed_noise()?,
        })
    }

    /// The inputs that are taken from a row.
    ///
    /// # Errors
    /// If a range or levels are not agreed, or an option is wrong.
    pub fn inputs(&self) -> Result<Vec<QuestionInput>, QuestionError> {
        if !(0..=20).contains(&self.exponent) {
            return Err(QuestionError::Other(
                "`exponent` must be 0 to 20".to_owned(),
            ));
        }
        if self.exponent != 0 && matches!(self.kind, Kind::Trees(_)) {
            return Err(QuestionError::Other(
                "the steps of kind \"trees\" follow from the number of rows: leave out `exponent`"
                    .to_owned(),
            ));
        }
        self.kind.inputs(&self.agreed)
    }

    /// The counts of a first round, of all sites or of a group of them.
    ///
    /// # Errors
    /// If the question cannot be asked, or the first round opens more or fewer numbers.
    pub fn counts_of(&self, sum: &[u64]) -> Result<FirstCounts, QuestionError> {
        let layout = self.layout(&QuestionProgress::Counts)?;
        if sum.len() != layout.len() {
            return Err(QuestionError::Other(format!(
                "the first round opens {} numbers, and its sum has {}",
                layout.len(),
                sum.len()
            )));
        }
        Ok(FirstCounts::of(&layout.decode(sum)))
    }

    /// Returns whether the counts of a group, whose sums are opened beside those of others, allow another round.
    ///
    /// # Errors
    /// The limit that they break, as [`Self::step`] finds it for the counts of all.
    pub fn check_group(&self, sum: &[u64]) -> Result<(), QuestionStopped> {
        let stopped = |error: QuestionError| QuestionStopped::Other(error.to_string());
        let known = self.known(self.counts_of(sum).map_err(stopped)?);
        let known = known.map_err(stopped)?;
        crate::disclosure::gates(&self.kind.gates(&known), &known)?;
        match &self.kind {
            // Scores of single sites, too, hide among many.
            Kind::Glm(glm) => glm.start(&known).map(drop),
            _ => Ok(()),
        }
    }

    /// The numbers of coefficients of the question's model; 0 where there is none.
    pub fn coefficients(&self) -> usize {
        let known = self.known(FirstCounts::default());
        known.map_or(0, |known| self.kind.gates(&known).coefficients)
    }

    /// The limits of the counts, and the counts of one site alone.
    pub(crate) fn gates_of(
        &self,
        table: &RowTable,
    ) -> Result<(Gates, CommonKnowledge), SiteRefusal> {
        let counts = self.answer(table, &QuestionProgress::Counts)?;
        let layout = self
            .layout(&QuestionProgress::Counts)
            .map_err(|error| SiteRefusal::Rows(error.to_string()))?;
        let counts = FirstCounts::of(&layout.opened(counts));
        let known = self
            .known(counts)
            .map_err(|error| SiteRefusal::Rows(error.to_string()))?;
        Ok((self.kind.gates(&known), known))
    }

    /// The most numbers that its rounds open where there are so many rows, for a kind that decides so before it has
    /// opened more than counts; `None` of the others.
    pub(crate) fn most_numbers(&self, rows: f64) -> Option<u64> {
        match &self.kind {
            Kind::Trees(trees) => {
                let counts = self.layout(&QuestionProgress::Counts);
                let counts = counts.map_or(0, |layout| layout.len() as u64);
                Some(counts + trees.most_in_all(&self.agreed, rows))
            }
            _ => None,
        }
    }

    /// Returns whether a site has 1 to `smallest` − 1 rows in a part of them whose sums the next round opens.
    pub(crate) fn has_small_part(
        &self,
        table: &RowTable,
        progress: &QuestionProgress,
        smallest: u64,
    ) -> Result<bool, SiteRefusal> {
        let QuestionProgress::Rounds { counts, kind } = progress else {
            return Ok(false);
        };
        let (Kind::Trees(trees), KindProgress::Trees(progress)) = (&self.kind, &**kind) else {
            return Ok(false);
        };
        let known = self.known(counts.clone());
        let known = known.map_err(|error| SiteRefusal::Rows(error.to_string()))?;
        let rows = table.read(&self.filter, &known.inputs)?;
        Ok(trees.has_small_node(&known, &rows, progress, smallest))
    }

    /// The sites of which functions are summed in the next round, if those of some are left out; else `None`.
    pub(crate) fn measured_sites(&self, progress: &QuestionProgress) -> Option<f64> {
        let QuestionProgress::Rounds { kind, .. } = progress else {
            return None;
        };
        match &**kind {
            KindProgress::Baselines(progress) => Baselines::measured(progress),
            _ => None,
        }
    }

    /// Returns whether the vectors of all rounds are functions of a whole site, and not sums over its rows.
    pub fn is_of_sites(&self) -> bool {
        matches!(self.kind, Kind::Meta(_) | Kind::Mixed(_))
    }

    /// Returns what the vector of the next round consists of.
    ///
    /// # Errors
    /// If the question cannot be asked.
    pub fn layout(&self, progress: &QuestionProgress) -> Result<SumLayout, QuestionError> {
        match progress {
            QuestionProgress::Counts => {
                let gates = self.kind.gates(&self.known(FirstCounts::default())?);
                Ok(SumLayout::default()
                    .counts("sites", 1, "sites")
                    .counts("rows", 1, "rows that the filter keeps")
                    .counts(
                        "complete",
                        1,
                        "rows without missing values, within the agreed ranges",
                    )
                    .counts("outside", 1, "rows beyond an agreed range or level")
                    .counts(
                        "events",
                        usize::from(gates.has_events),
                        "events among complete rows",
                    )
                    .counts("groups", gates.groups, "rows of each group")
                    .counts(
                        "told",
                        usize::from(self.is_of_sites()),
                        "sites that have something to tell",
                    ))
            }
            QuestionProgress::Rounds { counts, kind } => {
                let known = self.known(counts.clone())?;
                Ok(self.kind.layout(&known, kind).coarser(self.exponent))
            }
        }
    }

    /// Returns what a site with these rows computes in the next round, in the order of the layout.
    ///
    /// # Errors
    /// If the site lacks a column, or its rows do not allow the method.
    pub fn answer(
        &self,
        table: &RowTable,
        progress: &QuestionProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let counts = progress.counts().cloned().unwrap_or_default();
        let known = self.known(counts);
        let known = known.map_err(|error| SiteRefusal::Rows(error.to_string()))?;
        let rows = table.read(&self.filter, &known.inputs)?;
        self.answer_of(&known, &rows, progress)
    }

    /// The numbers of these rows.
    pub(crate) fn answer_of(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &QuestionProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        match progress {
            QuestionProgress::Counts => Ok(self.count(known, rows)),
            QuestionProgress::Rounds { kind, .. } => self.kind.answer(known, rows, kind),
        }
    }

    fn count(&self, known: &CommonKnowledge, rows: &[Vec<CellValue>]) -> Vec<f64> {
        let gates = self.kind.gates(known);
        let whole = complete(rows);
        let outside = rows
            .iter()
            .filter(|row| row.contains(&CellValue::Outside))
            .count();
        let mut numbers = vec![1.0, rows.len() as f64, whole.len() as f64, outside as f64];
        if gates.has_events {
            let events = whole.iter().filter(|row| self.kind.is_event(known, row));
            numbers.push(events.count() as f64);
        }
        let mut groups = vec![0.0; gates.groups];
        for group in rows.iter().filter_map(|row| self.kind.group(known, row)) {
            groups[group] += 1.0;
        }
        numbers.extend(groups);
        if self.is_of_sites() {
            numbers.push(f64::from(u8::from(self.kind.tells(&whole))));
        }
        numbers
    }

    /// The step that follows from the sum of a round.
    pub fn step(
        &self,
        progress: &QuestionProgress,
        sum: &DecodedSum,
    ) -> Step<QuestionProgress, Outcome> {
        let counts = match progress {
            QuestionProgress::Counts => FirstCounts::of(sum),
            QuestionProgress::Rounds { counts, .. } => counts.clone(),
        };
        let known = match self.known(counts.clone()) {
            Ok(known) => known,
            Err(error) => return Step::Stopped(QuestionStopped::Other(error.to_string())),
        };
        let next = |kind| QuestionProgress::Rounds {
            counts,
            kind: Box::new(kind),
        };
        match progress {
            QuestionProgress::Counts => {
                let gates = self.kind.gates(&known);
                // Noise hides small counts.
                let passed = match self.mode {
                    QuestionMode::Masked | QuestionMode::Clear => {
                        crate::disclosure::gates(&gates, &known)
                    }
                    QuestionMode::Noised => Ok(()),
                };
                let started = passed.and_then(|()| self.kind.start(&known));
                started.map_or_else(Step::Stopped, |kind| Step::Next(next(kind)))
            }
            QuestionProgress::Rounds { kind, .. } => self
                .kind
                .step(&known, kind, sum)
                .map(next, |outcome| outcome),
        }
    }
}
