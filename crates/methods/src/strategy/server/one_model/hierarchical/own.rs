//! The learner of a silo under the strategy: it predicts with a fit of its own rows around the global model.

use std::sync::Arc;

use crate::learner::{Capability, Job, LearnError, Learner, Update, Watch, Work};
use crate::mixed::folds::fit_alone;
use crate::mixed::{Family, MixedError, Prior, mode};
use crate::params::{Attached, Layout, Params, Role, TensorSpec};
use crate::robust::{LinearModel, Samples};
use crate::strategy::EquipError;
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner,
};
use crate::strategy::wrappers::standardise::{SCALE, without_scale};

/// Name of what is attached to the global model.
const ATTACHED: &str = "hierarchical";
/// The variance of every coefficient, the intercept first.
const STRENGTHS: &str = "strengths";
/// The variance of the noise; 0 for classes, which have none.
const NOISE: &str = "noise";
/// 1 if the silos are better off with fits of their own rows alone, otherwise 0.
const ALONE: &str = "alone";

/// Names in the personal state: which fits there are, the one around the global model, the one alone.
const PERSONAL: [&str; 3] = ["hierarchical", "hierarchical-own", "hierarchical-alone"];
/// Number of the fits: 0, 1 or 2, in the order of [`PERSONAL`].
const FITS: &str = "fits";

/// Most coefficients: the numbers of a round grow with their square.
const MOST: usize = 256;

/// The global model with what a silo needs beside it: the estimates as numbers of single precision.
pub(super) struct Common {
    models: Attached,
}

/// Estimates in a global model.
#[derive(Debug, Clone)]
pub(super) struct Estimates {
    pub(super) mean: Vec<f64>,
    pub(super) strengths: Vec<f64>,
    pub(super) noise: f64,
    pub(super) family: Family,
    pub(super) alone: bool,
}

impl Estimates {
    pub(super) fn prior(&self) -> Prior<'_> {
        Prior {
            mean: &self.mean,
            strengths: &self.strengths,
            noise: self.noise,
        }
    }
}

impl Common {
    /// The global models of a family of linear models.
    fn new(base: &Arc<Layout>) -> Result<Self, EquipError> {
        let width = width(base).ok_or_else(|| {
            EquipError::Unsupported(format!(
                "hierarchical needs a linear model with weight, bias and at most {} columns, and this one has {}: \
                 use a linear or logistic model, and leave out `personal`, `trained` and `stop`",
                MOST - 1,
                base.describe()
            ))
        })?;
        let tensor = |name: &str, length| TensorSpec::new(name, [length], Role::Buffer);
        let kept = vec![tensor(STRENGTHS, width), tensor(NOISE, 1), tensor(ALONE, 1)];
        let kept = Layout::new(kept)?;
        Ok(Self {
            models: Attached::new(base, &[(ATTACHED, &kept)])?,
        })
    }

    /// Those of this layout; `None` where it is another.
    pub(super) fn find(whole: &Arc<Layout>) -> Option<Self> {
        let models = Attached::find(whole, &[ATTACHED]);
        let found = Self::new(models.base()).ok()?;
        (found.models.whole() == whole).then_some(found)
    }

    /// Coefficients p, with the intercept.
    pub(super) fn width(&self) -> usize {
        width(self.models.base()).expect("checked when it was made")
    }

    /// Returns what a model says, read so that every bit pattern is usable: negative and infinite variances count as 0.
    pub(super) fn read(&self, model: &Params) -> Estimates {
        let (base, parts) = self.models.split(model);
        let part = |name: &str| parts[0].tensor(name).expect("a tensor of this layout");
        let positive = |value: &f32| {
            if value.is_finite() {
                f64::from(value.max(0.0))
            } else {
                0.0
            }
        };
        let noise = positive(&part(NOISE)[0]);
        Estimates {
            mean: coefficients(&base),
            strengths: part(STRENGTHS).iter().map(positive).collect(),
            noise: if noise > 0.0 { noise } else { 1.0 },
            family: if noise > 0.0 {
                Family::Gaussian
            } else {
                Family::Binomial
            },
            alone: part(ALONE)[0] == 1.0,
        }
    }

    /// `model` with what is known now; all else stays.
    pub(super) fn write(&self, model: &Params, known: &Estimates) -> Params {
        let (base, parts) = self.models.split(model);
        let noise = match known.family {
            // The smallest number of single precision stands for all below.
            Family::Gaussian => (known.noise as f32).max(f32::MIN_POSITIVE),
            Family::Binomial => 0.0,
        };
        let strengths: Vec<f32> = known.strengths.iter().map(|&t| t as f32).collect();
        let alone = [f32::from(u8::from(known.alone))];
        let kept = replaced(
            &parts[0],
            &[(STRENGTHS, &strengths), (NOISE, &[noise]), (ALONE, &alone)],
        );
        self.models
            .join(&with_coefficients(&base, &known.mean), &[&kept])
    }
}

/// Coefficients of a linear model, with the intercept; `None` for another one.
fn width(layout: &Layout) -> Option<usize> {
    let (mut weights, mut others) = (None, 0);
    for tensor in layout.tensors() {
        match tensor.name.as_str() {
            "weight" => weights = Some(tensor.len()),
            "bias" if tensor.len() == 1 => {}
            name if SCALE.contains(&name) => {}
            _ => others += 1,
        }
    }
    let has_bias = layout.position("bias").is_some();
    let width = weights.filter(|&weights| has_bias && others == 0 && weights > 0)? + 1;
    (width <= MOST).then_some(width)
}

/// The intercept, then the weights.
fn coefficients(model: &Params) -> Vec<f64> {
    let part = |name| model.tensor(name).expect("a linear model").iter();
    part("bias")
        .chain(part("weight"))
        .map(|&value| value.into())
        .collect()
}

/// `model` with other coefficients, the intercept first.
fn with_coefficients(model: &Params, coefficients: &[f64]) -> Params {
    let values: Vec<f32> = coefficients.iter().map(|&value| value as f32).collect();
    replaced(model, &[("bias", &values[..1]), ("weight", &values[1..])])
}

/// `params` with other values of some tensors.
fn replaced(params: &Params, tensors: &[(&str, &[f32])]) -> Params {
    let layout = params.layout();
    Params::build(layout, |into| {
        into.copy_from_slice(params.values());
        for (name, values) in tensors {
            let at = layout.position(name).expect("a tensor of this layout");
            into[layout.range(at)].copy_from_slice(values);
        }
    })
}

/// A learner with a fit of its own around the global model.
struct WithOwnFit {
    common: Common,
    family: Family,
    personal: Attached,
}

/// Puts it around a silo's learner.
///
/// # Errors
/// [`EquipError`] for other models than linear ones of squared or logistic loss.
pub(super) fn equip(inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
    let family = Family::of(inner.linear_rows()?.linear_loss()).ok_or_else(|| {
        EquipError::Unsupported(
            "hierarchical needs squared loss for numbers, whose sums say what a site knows; this task has \
             absolute loss: set `loss = \"squared\"` in the model, or choose another strategy"
                .into(),
        )
    })?;
    let common = Common::new(&inner.layout())?;
    let fits = Layout::new(vec![TensorSpec::new(FITS, [1], Role::Buffer)])?;
    let model = without_scale(&inner.layout());
    let rest = inner.initial_personal(0).layout().clone();
    let [count, own, alone] = PERSONAL;
    let personal = Attached::new(&rest, &[(count, &fits), (own, &model), (alone, &model)])?;
    let by = WithOwnFit {
        common,
        family,
        personal,
    };
    Ok(WrappedLearner::equip(inner, by)?)
}

impl WithOwnFit {
    /// The fits of a silo's rows under a global model: around it, and alone where that is asked for.
    fn fits(
        &self,
        rows: &Samples,
        known: &Estimates,
    ) -> Result<(LinearModel, Option<LinearModel>), MixedError> {
        let own = mode(rows, self.family, known.prior())?.model();
        let alone = known
            .alone
            .then(|| fit_alone(rows, self.family))
            .transpose()?;
        Ok((own, alone))
    }

    fn trained(&self, inner: &dyn Learner, job: &Job<'_>) -> Result<Params, LearnError> {
        let (base, rest) = self.inside(job.start, job.personal);
        let rows = inner.linear_rows()?.linear_rows(&base, &rest)?;
        let fits = self.fits(&rows, &self.common.read(job.start));
        let (own, alone) = fits.map_err(|error| LearnError::Failed(error.to_string()))?;
        let count = 1.0 + f32::from(u8::from(alone.is_some()));
        let count = Params::from_values(self.personal.part(0), &[count]);
        let zero = Params::zeros(self.personal.part(1));
        let kept = |model: &LinearModel| {
            let line = [&[model.intercept], &model.weights[..]].concat();
            with_coefficients(&zero, &line)
        };
        let alone = alone.as_ref().map_or_else(|| zero.clone(), kept);
        Ok(self.personal.join(&rest, &[&count, &kept(&own), &alone]))
    }
}

impl LearnerWrapper for WithOwnFit {
    fn needs(&self) -> &'static [Capability] {
        &[Capability::LinearRows]
    }

    fn uses_up(&self) -> &'static [Capability] {
        MODIFIES_GRADIENTS
    }

    fn layout(&self, _: &dyn Learner) -> Arc<Layout> {
        self.common.models.whole().clone()
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        let base = inner.initial(seed);
        let kept = Params::zeros(self.common.models.part(0));
        let known = Estimates {
            mean: coefficients(&base),
            strengths: vec![0.0; self.common.width()],
            noise: 1.0,
            family: self.family,
            alone: false,
        };
        self.common
            .write(&self.common.models.join(&base, &[&kept]), &known)
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let zeros: Vec<Params> = (0..3)
            .map(|at| Params::zeros(self.personal.part(at)))
            .collect();
        let zeros: Vec<&Params> = zeros.iter().collect();
        self.personal.join(&inner.initial_personal(seed), &zeros)
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (
            self.common.models.split(model).0,
            self.personal.split(personal).0,
        )
    }

    /// The silo's own fit, where it has one; the global model otherwise.
    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let (base, _) = self.common.models.split(model);
        let (rest, kept) = self.personal.split(personal);
        let fits = kept[0].values()[0];
        let own = match self.common.read(model).alone {
            true if fits >= 2.0 => Some(&kept[2]),
            _ if fits >= 1.0 => Some(&kept[1]),
            _ => None,
        };
        let used = own.map_or(base.clone(), |own| {
            let whole = Params::gather(base.layout(), &[own, &base]);
            whole.expect("tensors of this model")
        });
        (used, rest)
    }

    /// Training is the fit of the own rows around the start model, which stays as it is.
    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let personal = match job.work {
            Work::Train { .. } => self.trained(inner, &job)?,
            Work::RobustFit { .. } | Work::ExactFit(_) | Work::Keep => job.personal.clone(),
        };
        let kept = Update::kept(job.start, &personal, inner.samples());
        let (model, own) = self.used(job.start, &personal);
        Ok(Update {
            metrics: inner.evaluate(&model, &own, crate::learner::Split::Train)?,
            ..kept
        })
    }
}
