//! Generalised linear models in which every site has an intercept of its own, which it profiles out.
//!
//! The linear predictor of a row of site k is `αₖ + offset + xβ`. A site maximises over its αₖ for the common β and
//! sends log likelihood, score and information of β; the information is the Schur complement, so its inverse is
//! the block of β of the whole inverse (McCullagh & Nelder 1989; Cameron & Trivedi 2013 for counts). With noise all sites
//! have one intercept (`noised`).

mod family;
mod noised;
mod result;
mod site;

use serde::{Deserialize, Serialize};

pub use family::GlmFamily;
pub use noised::NoisedFit;
pub use result::{Coefficient, CommonIntercept, GlmOutcome, LikelihoodRatio};

use crate::algebra::Symmetric;
use crate::newton::{Moved, Newton, NewtonFit, NewtonModel, NewtonSum};
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, Condition, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};
use site::{GlmSite, GlmSums};

/// Beyond this log θ the negative binomial distribution is Poisson's.
const NO_OVERDISPERSION: f64 = 12.0;

/// A generalised linear model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Glm {
    /// The distribution of the outcome.
    pub family: GlmFamily,
    /// The outcome: a column, or for the binomial family also a condition such as `num > 0`.
    pub outcome: String,
    /// The terms: columns with agreed ranges, and conditions, which are 0 or 1.
    pub terms: Vec<String>,
    /// A column that is added to the linear predictor.
    #[serde(default)]
    pub offset: Option<String>,
    /// A column of weights of the rows' log likelihoods, ≥ 0.
    #[serde(default)]
    pub weights: Option<String>,
    /// The penalty ½·ridge·β² of every coefficient per unit of its column. With it there are no intervals.
    #[serde(default)]
    pub ridge: f64,
    /// True if standard errors that hold under heteroscedasticity (HC0) are computed, too.
    #[serde(default)]
    pub robust: bool,
    /// True if standard errors that hold if rows of a site depend on each other are computed, too.
    #[serde(default)]
    pub clustered: bool,
    /// Terms that a smaller model leaves out, which is compared by the likelihood ratio.
    #[serde(default)]
    pub without: Vec<String>,
}

/// One model between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelProgress {
    /// Its terms, by number.
    terms: Vec<usize>,
    newton: Newton,
    /// True if the dispersion is the last coordinate, as log θ.
    dispersed: bool,
    fit: Option<NewtonFit>,
    /// Rows and sites that tell of it.
    told: [f64; 2],
}

/// The models between two rounds: the whole one, and the smaller one if there is one. With noise there are none but the
/// one with noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlmProgress {
    models: Vec<ModelProgress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noised: Option<NoisedFit>,
}

impl GlmProgress {
    fn with_noise(fit: NoisedFit) -> Self {
        Self {
            models: Vec::new(),
            noised: Some(fit),
        }
    }
}

/// The names of the models in layouts.
const PREFIX: [&str; 2] = ["", "smaller model: "];

impl Glm {
    fn kept(&self) -> Vec<usize> {
        let kept = (0..self.terms.len()).filter(|at| !self.without.contains(&self.terms[*at]));
        kept.collect()
    }

    fn names(&self, model: &ModelProgress) -> Vec<String> {
        let mut names: Vec<String> = model
            .terms
            .iter()
            .map(|at| self.terms[*at].clone())
            .collect();
        if model.dispersed {
            names.push("log θ".to_owned());
        }
        names
    }

    /// The penalties of a model in scaled columns.
    fn penalties(&self, known: &CommonKnowledge, model: &ModelProgress) -> Vec<f64> {
        let each = model.terms.iter().map(|at| {
            let half = known.inputs[*at].half();
            self.ridge / (half * half)
        });
        each.chain(model.dispersed.then_some(0.0)).collect()
    }

    /// Returns whether a last round is needed after the fit.
    fn has_more(&self) -> bool {
        self.robust || self.clustered || self.family == GlmFamily::Gamma
    }

    fn site(&self, rows: &[Vec<CellValue>]) -> Result<GlmSite, SiteRefusal> {
        let p = self.terms.len();
        let rows = complete(rows);
        let (mut features, mut outcome, mut offset, mut weights) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for row in &rows {
            features.push(row[..p].to_vec());
            outcome.push(row[p]);
            offset.push(if self.offset.is_some() {
                row[p + 1]
            } else {
                0.0
            });
            let weight = p + 1 + usize::from(self.offset.is_some());
            weights.push(if self.weights.is_some() {
                row[weight]
            } else {
                1.0
            });
        }
        if self.family == GlmFamily::Binomial && outcome.iter().any(|y| *y != 0.0 && *y != 1.0) {
            let wrong = format!(
                "the outcome \"{}\" is neither 0 nor 1; name a condition, such as \"{} > 0\"",
                self.outcome, self.outcome
            );
            return Err(SiteRefusal::Rows(wrong));
        }
        Ok(GlmSite {
            features,
            outcome,
            offset,
            weights,
        })
    }
}

impl SumKind for Glm {
    type Progress = GlmProgress;
    type Outcome = GlmOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        let other = |text: String| Err(QuestionError::Other(text));
        if self.terms.is_empty() {
            return other("a model needs `terms`".to_owned());
        }
        if let Some(unknown) = self.without.iter().find(|term| !self.terms.contains(term)) {
            return other(format!(
                "`without` names \"{unknown}\", which is none of the terms"
            ));
        }
        if self.ridge < 0.0 || !self.ridge.is_finite() {
            return other("`ridge` must be 0 or more".to_owned());
        }
        if self.ridge > 0.0 && (self.robust || self.clustered || !self.without.is_empty()) {
            return other("with a `ridge` there are no intervals and no tests: leave out `robust`, `clustered` and `without`".to_owned());
        }
        if self.family == GlmFamily::Gamma && !self.without.is_empty() {
            return other("the gamma family has no likelihood ratio without its shape: compare by Wald's tests".to_owned());
        }
        let mut inputs = agreed.terms(&self.terms)?;
        inputs.push(match self.family {
            GlmFamily::Gaussian => agreed.scaled(&self.outcome)?,
            GlmFamily::Binomial => match self.outcome.parse::<Condition>() {
                Ok(condition) => QuestionInput::Indicator(condition),
                Err(_) => agreed.number(&self.outcome),
            },
            GlmFamily::Poisson | GlmFamily::NegativeBinomial => {
                at_least(agreed.number(&self.outcome), 0.0)
            }
            GlmFamily::Gamma => at_least(agreed.number(&self.outcome), f64::MIN_POSITIVE),
        });
        inputs.extend(self.offset.iter().map(|column| agreed.number(column)));
        inputs.extend(
            self.weights
                .iter()
                .map(|column| at_least(agreed.number(column), 0.0)),
        );
        Ok(inputs)
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        let dispersion = usize::from(self.family == GlmFamily::NegativeBinomial);
        Gates {
            coefficients: self.terms.len() + dispersion,
            has_events: self.family == GlmFamily::Binomial,
            ..Gates::default()
        }
    }

    fn is_event(&self, _known: &CommonKnowledge, row: &[f64]) -> bool {
        row[self.terms.len()] == 1.0
    }

    fn start(&self, known: &CommonKnowledge) -> Result<GlmProgress, QuestionStopped> {
        if known.noise.is_some() {
            return Ok(GlmProgress::with_noise(self.noised_start()));
        }
        let needed = (self.terms.len() as u64 + 2 + known.rules.colluders) as f64;
        if self.clustered && known.counts.sites < needed {
            return Err(QuestionStopped::TooFew {
                what: "sites for errors clustered by site".to_owned(),
                found: known.counts.sites.to_string(),
                needed: needed as u64,
                remedy: "with fewer, the sum shows the score of each site; ask without `clustered`"
                    .to_owned(),
            });
        }
        let model = |terms: Vec<usize>| ModelProgress {
            newton: Newton::start(vec![0.0; terms.len()]),
            terms,
            dispersed: false,
            fit: None,
            told: [0.0; 2],
        };
        let mut models = vec![model((0..self.terms.len()).collect())];
        if !self.without.is_empty() {
            models.push(model(self.kept()));
        }
        Ok(GlmProgress {
            models,
            noised: None,
        })
    }

    fn layout(&self, _known: &CommonKnowledge, progress: &GlmProgress) -> SumLayout {
        if progress.noised.is_some() {
            return self.noised_layout();
        }
        let mut layout = SumLayout::default();
        let open = progress
            .models
            .iter()
            .zip(PREFIX)
            .filter(|(model, _)| model.fit.is_none());
        for (model, prefix) in open {
            let p = model.newton.at.len();
            let name = |block: &str| format!("{prefix}{block}");
            layout = layout
                .counts(
                    &name("told"),
                    2,
                    "rows and sites that tell of the coefficients",
                )
                .reals(&name("log likelihood"), 1, "")
                .reals(
                    &name("score"),
                    p,
                    "derivatives of the log likelihood, of columns scaled to ±1",
                )
                .reals(
                    &name("information"),
                    Symmetric::triangle_len(p),
                    "negative second derivatives",
                );
        }
        if layout.is_empty() {
            let p = progress.models[0].newton.at.len();
            let triangle = Symmetric::triangle_len(p);
            layout = layout
                .reals(
                    "squared residuals",
                    usize::from(self.family == GlmFamily::Gamma),
                    "Σ(y−μ)²/μ²",
                )
                .reals(
                    "meat of rows",
                    if self.robust { triangle } else { 0 },
                    "products of the rows' scores",
                )
                .reals(
                    "meat of sites",
                    if self.clustered { triangle } else { 0 },
                    "products of the sites' scores",
                );
        }
        layout
    }

    fn row_norm(&self, _known: &CommonKnowledge, progress: &GlmProgress) -> Option<f64> {
        progress.noised.is_some().then(|| self.noised_norm())
    }

    fn answer(
        &self,
        _known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &GlmProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        if let Some(fit) = &progress.noised {
            return Ok(self.noised_sums(rows, fit));
        }
        let site = self.site(rows)?;
        let mut numbers = Vec::new();
        let open = progress.models.iter().filter(|model| model.fit.is_none());
        for model in open {
            let sums = site.sums(self.family, &model.terms, &model.newton.at, model.dispersed)?;
            numbers.extend(sums.numbers());
        }
        if progress.models.iter().all(|model| model.fit.is_some()) {
            let model = &progress.models[0];
            let sums: GlmSums =
                site.sums(self.family, &model.terms, &model.newton.at, model.dispersed)?;
            if self.family == GlmFamily::Gamma {
                numbers.push(sums.squared_residuals);
            }
            if self.robust {
                numbers.extend(sums.meat_of_rows.triangle());
            }
            if self.clustered {
                numbers.extend(sums.meat_of_site().triangle());
            }
        }
        Ok(numbers)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &GlmProgress,
        sum: &DecodedSum,
    ) -> Step<GlmProgress, GlmOutcome> {
        if let Some(fit) = &progress.noised {
            let step = self.noised_step(known, fit, sum);
            return step.map(GlmProgress::with_noise, |outcome| outcome);
        }
        if progress.models.iter().all(|model| model.fit.is_some()) {
            return Step::Done(GlmOutcome::of(self, known, progress, Some(sum)));
        }
        let mut next = progress.clone();
        let open = next
            .models
            .iter_mut()
            .zip(PREFIX)
            .filter(|(model, _)| model.fit.is_none());
        for (model, prefix) in open {
            if let Err(why) = self.advance(known, model, prefix, sum) {
                return Step::Stopped(why);
            }
        }
        let is_done = next.models.iter().all(|model| model.fit.is_some());
        if is_done && !self.has_more() {
            return Step::Done(GlmOutcome::of(self, known, &next, None));
        }
        Step::Next(next)
    }
}

impl Glm {
    fn advance(
        &self,
        known: &CommonKnowledge,
        model: &mut ModelProgress,
        prefix: &str,
        sum: &DecodedSum,
    ) -> Result<(), QuestionStopped> {
        let block = |name: &str| sum.block(&format!("{prefix}{name}"));
        if let &[rows, sites] = block("told") {
            model.told = [rows, sites];
        }
        if model.told[0] == 0.0 {
            let why = "no site has outcomes of both kinds, or any events: nothing tells of the coefficients";
            return Err(QuestionStopped::Other(why.to_owned()));
        }
        let names = self.names(model);
        let ridge = self.penalties(known, model);
        let of = NewtonModel {
            names: &names,
            ridge: &ridge,
            sites: known.counts.sites,
            curved: model.dispersed,
        };
        let sums = NewtonSum {
            log_likelihood: block("log likelihood")[0],
            score: block("score"),
            information: block("information"),
        };
        match model.newton.advance(&of, &sums)? {
            Moved::On(newton) => {
                if model.dispersed && newton.at.last().is_some_and(|log| *log > NO_OVERDISPERSION) {
                    let why = "no overdispersion: the counts do not vary more than Poisson's; ask with family \"poisson\"";
                    return Err(QuestionStopped::Other(why.to_owned()));
                }
                model.newton = newton;
            }
            Moved::Converged(fit)
                if self.family == GlmFamily::NegativeBinomial && !model.dispersed =>
            {
                let mut at = fit.at;
                at.push(0.0);
                model.newton = Newton::start(at);
                model.dispersed = true;
            }
            Moved::Converged(fit) => {
                model.newton.at.clone_from(&fit.at);
                model.fit = Some(fit);
            }
        }
        Ok(())
    }
}

/// An input whose range begins at this number or above.
fn at_least(input: QuestionInput, least: f64) -> QuestionInput {
    match input {
        QuestionInput::Number { column, range } => QuestionInput::Number {
            column,
            range: [range[0].max(least), range[1]],
        },
        other => other,
    }
}
