//! The column to predict: a number, classes with all their values, several numbers, a mask, or a time to an event.

use serde::{Deserialize, Serialize};

use super::remedy::TRANSLATE;
use super::survival::{LATEST, survival_value};
use super::{Censored, ColumnNames};
use crate::data::{Rule, Target, same_class};

mod written;

pub use written::WrittenTarget;

/// Target of predictions. As files write it: [`WrittenTarget`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenTarget", into = "WrittenTarget")]
pub struct TargetColumn {
    /// The column's name; or a list of columns, for several numbers or a mask; or those of a time to an event:
    /// the event, its time, and the entry where there is one.
    pub name: ColumnNames,
    /// The unit of a number or of times.
    pub unit: Option<String>,
    /// Smallest and largest number that it may hold; `None`: any.
    pub range: Option<[f64; 2]>,
    /// Reading of a bound such as `<0.5`; `None`: it is refused.
    pub censored: Option<Censored>,
    /// The classes.
    pub classes: Option<Vec<ClassValues>>,
    /// The positive one of two classes; by default the second.
    pub positive: Option<String>,
    /// The numbers of the positive class.
    pub rule: Option<Rule>,
    /// True if the columns are the pixels of a mask, row by row.
    pub mask: bool,
    /// True if the columns are an event, its time and, where there are three, the entry.
    pub survival: bool,
    /// Times at which survival is predicted, in ascending order; only of a time to an event.
    pub at: Vec<f64>,
}

/// A class, and the values that mean it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "the value of a class, or { name = \"class\", values = [\"0\", \"1\"] }, is needed"
)]
pub enum ClassValues {
    /// One value, which is its name, too.
    One(String),
    /// Several values.
    Several {
        /// The name of the class.
        name: String,
        /// The values.
        values: Vec<String>,
    },
}

impl ClassValues {
    /// The name of the class.
    pub fn name(&self) -> &str {
        match self {
            Self::One(name) | Self::Several { name, .. } => name,
        }
    }

    /// The values that mean it.
    pub fn values(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several { values, .. } => values,
        }
    }
}

impl TargetColumn {
    /// A number, in a unit.
    pub fn number(name: &str, unit: Option<String>) -> Self {
        Self {
            name: name.into(),
            unit,
            range: None,
            censored: None,
            classes: None,
            positive: None,
            rule: None,
            mask: false,
            survival: false,
            at: Vec::new(),
        }
    }

    /// A time to an event: the columns of the event, of its time, and of the entry where there is one.
    pub fn survival(event: &str, time: &str, entry: Option<&str>) -> Self {
        let names = [event, time].into_iter().chain(entry);
        Self {
            name: ColumnNames::Several(names.map(str::to_owned).collect()),
            survival: true,
            ..Self::number("", None)
        }
    }

    /// Columns for such a target: `target`, or `target 1`, `target 2`, … for several; `target event`, `target time` and
    /// `target entry`.
    pub fn of(target: &Target) -> Self {
        let several = |count: usize| {
            ColumnNames::Several((1..=count).map(|at| format!("target {at}")).collect())
        };
        let one = Self::number("target", None);
        match target {
            Target::Number { unit } => Self {
                unit: Some(unit.clone()),
                ..one
            },
            Target::Classes(classes) => Self {
                classes: Some(classes.iter().cloned().map(ClassValues::One).collect()),
                ..one
            },
            Target::Numbers { unit, count } => Self {
                name: several(*count),
                unit: Some(unit.clone()),
                ..one
            },
            Target::Mask { pixels } => Self {
                name: several(*pixels),
                mask: true,
                ..one
            },
            Target::Survival { unit, at } => Self {
                unit: Some(unit.clone()),
                at: at.clone(),
                ..Self::survival("target event", "target time", Some("target entry"))
            },
        }
    }

    /// Returns what the column is for a model.
    pub(super) fn kind(&self) -> Target {
        let first = self.name.iter().next().unwrap_or_default();
        let unit = || {
            let unit = self.unit.clone();
            unit.unwrap_or_else(|| format!("units of {first}"))
        };
        match (&self.name, &self.classes, &self.rule) {
            (_, Some(_), _) => Target::Classes(
                self.ordered()
                    .map(|class| class.name().to_owned())
                    .collect(),
            ),
            (_, None, Some(rule)) => {
                let rule = String::from(rule.clone());
                Target::Classes(vec![
                    format!("not {first} {rule}"),
                    format!("{first} {rule}"),
                ])
            }
            _ if self.survival => Target::Survival {
                unit: self.unit.clone().unwrap_or_else(|| {
                    let time = self.name.iter().nth(1);
                    time.unwrap_or_default().to_owned()
                }),
                at: self.at.clone(),
            },
            _ if self.mask => Target::Mask {
                pixels: self.name.count(),
            },
            (ColumnNames::Several(names), ..) => Target::Numbers {
                unit: unit(),
                count: names.len(),
            },
            (ColumnNames::One(_), ..) => Target::Number { unit: unit() },
        }
    }

    /// The classes, of two the positive one last.
    fn ordered(&self) -> impl Iterator<Item = &ClassValues> {
        let classes = self.classes.as_deref().unwrap_or_default();
        let first = classes.first().map(ClassValues::name);
        let swapped = classes.len() == 2 && first.is_some() && self.positive.as_deref() == first;
        let (a, b) = classes.split_at(if swapped { 1 } else { 0 });
        b.iter().chain(a)
    }

    /// The number to predict or the index of the class, from the value of a cell of the column at position `at`;
    /// `read` reads a number as the file writes it, `expected` says what is expected of one.
    ///
    /// # Errors
    /// Description of an acceptable value.
    pub(super) fn value(
        &self,
        at: usize,
        text: &str,
        read: &dyn Fn(&str) -> Option<f64>,
        expected: &dyn Fn(&str) -> String,
    ) -> Result<f64, String> {
        let numeric = || read(text).ok_or_else(|| expected(text));
        if self.classes.is_some() {
            let is = |same: &dyn Fn(&str) -> bool| {
                self.ordered()
                    .position(|class| class.values().iter().any(|value| same(value)))
            };
            let index = is(&|value| value == text).or_else(|| is(&|value| same_class(value, text)));
            return index.map(|index| index as f64).ok_or_else(|| {
                let values: Vec<&str> = self
                    .ordered()
                    .flat_map(|class| class.values().iter().map(String::as_str))
                    .collect();
                format!("the agreed values are {}{TRANSLATE}", values.join(", "))
            });
        }
        if let Some(rule) = &self.rule {
            return Ok(f64::from(rule.holds_for(numeric()?)));
        }
        match numeric()? {
            value if self.survival => survival_value(at, value),
            pixel @ (0.0 | 1.0) if self.mask => Ok(pixel),
            _ if self.mask => Err("the pixels of a mask are 0 or 1".into()),
            value => match self.range {
                Some([low, high]) if !(low..=high).contains(&value) => {
                    Err(format!("the agreed range is {low} to {high}"))
                }
                _ => Ok(value),
            },
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let fail = |text: &str| Err(format!("`target`: {text}"));
        if self.name.count() == 0 {
            return fail("it names no column");
        }
        if self.survival {
            return check_survival(self).or_else(|text| fail(&text));
        }
        let several = matches!(self.name, ColumnNames::Several(_));
        if several && (self.classes.is_some() || self.rule.is_some()) {
            return fail("`classes` and `rule` go with one column");
        }
        if self.mask && !several {
            return fail("`mask` goes with a list of columns");
        }
        if self.classes.is_some() && self.rule.is_some() {
            return fail("`classes` and `rule` exclude each other");
        }
        if self.rule.as_ref().is_some_and(|rule| !rule.is_order()) {
            return fail(
                "`rule` compares numbers: use >, >=, < or <=; for values, list them in `classes`",
            );
        }
        if self.classes.is_some() && self.censored.is_some() {
            return fail("`censored` goes with numbers");
        }
        let Some(classes) = &self.classes else {
            return match (&self.positive, self.range) {
                (Some(_), _) => fail("`positive` goes with `classes`"),
                (_, Some([low, high])) if low.is_nan() || high.is_nan() || low >= high => {
                    fail("`range` needs two numbers, the smaller one first")
                }
                _ => Ok(()),
            };
        };
        if classes.len() < 2 {
            return fail("`classes` needs at least two");
        }
        if let Some(positive) = &self.positive
            && (classes.len() > 2 || !classes.iter().any(|class| class.name() == positive))
        {
            return fail("`positive` must be one of two classes");
        }
        if classes.iter().any(|class| class.values().is_empty()) {
            return fail("a class has no values");
        }
        let mut values: Vec<String> = classes
            .iter()
            .flat_map(|class| class.values().iter().cloned())
            .collect();
        values.sort_unstable();
        match values.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => fail(&format!("the value {:?} is of two classes", twice[0])),
            None => Ok(()),
        }
    }
}

/// Returns whether what is agreed of a time to an event is no contradiction.
///
/// # Errors
/// The first contradiction.
fn check_survival(target: &TargetColumn) -> Result<(), String> {
    let TargetColumn {
        name,
        unit: _,
        range,
        censored,
        classes,
        positive,
        rule,
        mask,
        survival: _,
        at,
    } = target;
    if !(2..=3).contains(&name.count()) {
        return Err(
            "a time to an event has the columns `event` and `time`, and may have `entry`".into(),
        );
    }
    for (there, key) in [
        (range.is_some(), "range"),
        (censored.is_some(), "censored"),
        (classes.is_some(), "classes"),
        (positive.is_some(), "positive"),
        (rule.is_some(), "rule"),
        (*mask, "mask"),
    ] {
        if there {
            return Err(format!("`{key}` does not go with a time to an event"));
        }
    }
    let ascending = at.windows(2).all(|pair| pair[0] < pair[1]);
    match at.first() {
        Some(&first) if !(first > 0.0 && ascending && at.iter().all(|time| *time < LATEST)) => {
            Err("`at` needs times above 0 in ascending order".into())
        }
        _ => Ok(()),
    }
}
