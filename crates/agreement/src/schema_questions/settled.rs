//! The schema that follows from answers, with a sentence for each value.

use std::collections::BTreeMap;

use task::propose::outward;
use task::schema::{
    ClassValues, ColumnNames, ColumnType, FeatureColumns, Levels, MissingRule, Quantity, Schema,
};

use super::answers::{AnsweredRowCounts, ColumnLevels, ColumnQuantiles, LevelRows, SchemaAnswers};
use super::asked::is_predicted_number;
use super::baselines;
use super::digits::short;

/// Missing values get a column of their own where more than one row in this many lacks a value.
const MANY_MISSING: u64 = 20;

/// A schema with values from answers.
#[derive(Debug, Clone, PartialEq)]
pub struct SettledSchema {
    /// The schema.
    pub schema: Schema,
    /// Where the values of each column come from, in sentences without a full stop.
    pub reasons: BTreeMap<String, Vec<String>>,
    /// Notes that concern no single column, in sentences without a full stop.
    pub notes: Vec<String>,
    /// Number of columns that differ from the schema before, the one to predict among them.
    pub changed: usize,
}

/// Rules by which a schema is settled.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SettleRules {
    /// Distance by which ranges reach beyond the outer quantiles, in the distance of these from the median.
    margin: f64,
    /// True if numbers are scaled by their ranges, so that nothing may look at rows.
    by_ranges: bool,
}

/// Returns a schema with the ranges, fillings and levels that follow from answers. `margin` says how far ranges reach
/// beyond the outer quantiles, in the distance of these from the median; `by_ranges` whether numbers are scaled by
/// their ranges (`standardise = "ranges"`), so that nothing may look at rows.
pub fn settled(
    schema: &Schema,
    answers: &SchemaAnswers,
    margin: f64,
    by_ranges: bool,
) -> SettledSchema {
    let rules = SettleRules { margin, by_ranges };
    let mut settled = SettledSchema {
        schema: Schema {
            features: Vec::new(),
            ..schema.clone()
        },
        reasons: BTreeMap::new(),
        notes: Vec::new(),
        changed: 0,
    };
    let mut features = Vec::new();
    for (name, feature) in schema.columns() {
        let mut one = FeatureColumns {
            name: name.into(),
            ..feature.clone()
        };
        let usual = settled.schema.usual.get(name).copied();
        let reasons = settled.feature(name, &mut one, answers, rules);
        let same = (&one.kind, one.missing) == (&feature.kind, feature.missing);
        settled.count(
            name,
            reasons,
            same && settled.schema.usual.get(name).copied() == usual,
        );
        features.push(one);
    }
    settled.schema.features = task::schema::merged(features);
    settled.target(answers, rules);
    settled.notes.extend(outside(answers));
    settled.notes.extend(answers.unused.iter().cloned());
    settled
}

impl SettledSchema {
    fn count(&mut self, name: &str, reasons: Vec<String>, same: bool) {
        self.changed += usize::from(!same);
        if !reasons.is_empty() {
            self.reasons.insert(name.to_owned(), reasons);
        }
    }

    /// Settles a column to learn from, and returns where its values come from.
    fn feature(
        &mut self,
        name: &str,
        feature: &mut FeatureColumns,
        answers: &SchemaAnswers,
        rules: SettleRules,
    ) -> Vec<String> {
        match &mut feature.kind {
            ColumnType::Number(agreed) | ColumnType::Integer(agreed) => {
                let Some(found) = answers.quantiles.get(name) else {
                    return vec!["no answer is about it: as it was".to_owned()];
                };
                let mut reasons = range(agreed, found, rules.margin);
                reasons.extend(self.usual(name, found));
                let known = (found.known, &found.of);
                reasons.extend(filling(&mut feature.missing, known, rules, agreed));
                reasons
            }
            ColumnType::Category(levels) => {
                let Some(found) = answers.levels.get(name) else {
                    return vec!["no answer is about it: as it was".to_owned()];
                };
                let mut reasons = kept_levels(levels, found);
                if let LevelRows::Total(missing) = found.missing {
                    let known = (found.of.rows.saturating_sub(missing), &found.of);
                    let rule = &mut feature.missing;
                    reasons.extend(category_filling(rule, known, rules));
                }
                reasons
            }
            ColumnType::Date(_) => Vec::new(),
        }
    }

    /// Keeps between which numbers most values lie, of all institutions in place of the drafter's table.
    fn usual(&mut self, name: &str, found: &ColumnQuantiles) -> Option<String> {
        let at = |probability: f64| {
            let mut all = found.quantiles.iter();
            all.find(|[of, _, _]| (of - probability).abs() < 1e-9)
                .map(|[_, value, _]| *value)
        };
        let (low, high) = (at(0.1)?, at(0.9)?);
        if low >= high {
            return None;
        }
        let usual = outward([low, high]);
        self.schema.usual.insert(name.to_owned(), usual);
        let [low, high] = usual;
        Some(format!(
            "usual: {low} to {high}, from the quantiles 0.1 and 0.9"
        ))
    }

    /// Settles the column to predict.
    fn target(&mut self, answers: &SchemaAnswers, rules: SettleRules) {
        let ColumnNames::One(name) = self.schema.target.name.clone() else {
            return;
        };
        let before = (
            self.schema.target.range,
            self.schema.usual.get(&name).copied(),
        );
        let mut reasons = Vec::new();
        if let Some(found) = answers.quantiles.get(&name)
            && self.schema.target.classes.is_none()
        {
            let mut agreed = Quantity {
                range: self.schema.target.range,
                ..Quantity::default()
            };
            reasons.extend(range(&mut agreed, found, rules.margin));
            self.schema.target.range = agreed.range;
            reasons.extend(self.usual(&name, found));
        }
        if let (Some(found), Some(classes)) =
            (answers.levels.get(&name), &self.schema.target.classes)
        {
            reasons.extend(rare_classes(classes, found));
            self.notes
                .extend(baselines::of_classes(&name, classes, found));
        }
        if let Some(found) = answers.means.get(&name)
            && is_predicted_number(&self.schema.target)
        {
            self.notes.push(baselines::of_number(&name, found));
        }
        let after = (
            self.schema.target.range,
            self.schema.usual.get(&name).copied(),
        );
        self.count(&name, reasons, before == after);
    }
}

/// Rows beyond what questions asked for: other units, stand-ins for missing values, levels that nobody lists.
fn outside(answers: &SchemaAnswers) -> Vec<String> {
    let quantiles = answers
        .quantiles
        .iter()
        .map(|(name, found)| (&found.of, name));
    let mut beyond: BTreeMap<&str, (&AnsweredRowCounts, Vec<&str>)> = BTreeMap::new();
    for (of, name) in quantiles.filter(|(of, _)| of.outside > 0) {
        let (_, names) = beyond.entry(&of.source).or_insert((of, Vec::new()));
        names.push(name);
    }
    let said = beyond.into_values().map(|(of, names)| {
        format!(
            "{} of {} rows have a number beyond the range in which {} asked for it, in one of {}: another unit, a \
             number that stands for a missing value, or a range that was too narrow; a file with such a row may be \
             refused",
            of.outside,
            of.rows,
            of.source,
            names.join(", ")
        )
    });
    said.collect()
}

/// Sites and rows of an answer, in brackets behind a number of values.
fn of_sites(of: &AnsweredRowCounts) -> String {
    format!("{} sites ({})", of.sites, of.source)
}

/// The range that follows from quantiles, within the one that was agreed before.
fn proposed_range(
    found: &ColumnQuantiles,
    margin: f64,
    before: Option<[f64; 2]>,
) -> Option<[f64; 2]> {
    let (first, last) = (found.quantiles.first()?, found.quantiles.last()?);
    let ([below, low, low_width], [above, high, high_width]) = (*first, *last);
    if below >= 0.5 || above <= 0.5 {
        return None;
    }
    let nearest = |a: &&[f64; 3], b: &&[f64; 3]| (a[0] - 0.5).abs().total_cmp(&(b[0] - 0.5).abs());
    let [_, median, _] = *found.quantiles.iter().min_by(nearest)?;
    // A quantile lies somewhere in its bin.
    let edges = [low - low_width, high + high_width];
    let reach = |edge: f64| edge + margin * (edge - median);
    let mut range = edges.map(reach);
    // Numbers that are not negative stay so.
    if low >= 0.0 {
        range[0] = range[0].max(0.0);
    }
    if high <= 0.0 {
        range[1] = range[1].min(0.0);
    }
    let rounded = outward(range);
    let within = match before {
        // Nothing was asked about what lies beyond it.
        Some([least, most]) => [rounded[0].max(least), rounded[1].min(most)],
        None => rounded,
    };
    (within[0] < within[1]).then_some(within)
}

/// Settles a range, and says where it comes from.
fn range(agreed: &mut Quantity, found: &ColumnQuantiles, margin: f64) -> Vec<String> {
    let Some(range) = proposed_range(found, margin, agreed.range) else {
        return vec![format!(
            "no range: the quantiles of {} lie on one side, or are equal",
            found.of.source
        )];
    };
    let before = agreed.range.replace(range);
    // A proposed range is there because both are.
    let [first, last] = [
        found.quantiles[0],
        found.quantiles[found.quantiles.len() - 1],
    ];
    let beyond = 100.0 * (first[0] + 1.0 - last[0]);
    let further = match margin {
        0.0 => String::new(),
        _ => format!(", {margin} times as far from the median again"),
    };
    let before = match before {
        Some(before) if before == range => "; as before".to_owned(),
        Some([low, high]) => format!("; {low} to {high} before"),
        None => String::new(),
    };
    vec![format!(
        "range: {} to {}, from the quantiles {} (about {}) and {} (about {}) of {} values at {}{further}, rounded \
         outwards; at most {} % of the values that were asked for lie beyond, and a file with one of them is \
         refused{before}",
        range[0],
        range[1],
        first[0],
        short(first[1]),
        last[0],
        short(last[1]),
        found.known,
        of_sites(&found.of),
        short(beyond),
    )]
}

/// The name of a rule as files write it.
fn written(rule: MissingRule) -> &'static str {
    match rule {
        MissingRule::Refuse => "refuse",
        MissingRule::Drop => "drop",
        MissingRule::Mean => "mean",
        MissingRule::Median => "median",
        MissingRule::Indicator => "indicator",
        MissingRule::Middle => "middle",
        MissingRule::MiddleIndicator => "middle-indicator",
    }
}

/// Replaces a rule for missing values that would refuse files of some institution, or that looks at rows where nothing
/// may. `known` of the rows have a value.
fn replaced(
    rule: &mut MissingRule,
    (known, of): (u64, &AnsweredRowCounts),
    (few, many): (MissingRule, MissingRule),
    by_ranges: bool,
) -> Option<String> {
    let missing = of.rows.saturating_sub(known);
    let refuses = *rule == MissingRule::Refuse && missing > 0;
    let looks = by_ranges && rule.looks_at_rows();
    if !(refuses || looks) {
        return None;
    }
    let marks = rule.marks() || missing * MANY_MISSING > of.rows;
    let before = std::mem::replace(rule, if marks { many } else { few });
    let why = match refuses {
        true => "because",
        false => "which looks at rows, and a scale by ranges is agreed so that nothing does;",
    };
    Some(format!(
        "missing: \"{}\" in place of \"{}\", {why} {missing} of {} rows ({} %) have no value that was asked for, at {}",
        written(*rule),
        written(before),
        of.rows,
        short(100.0 * missing as f64 / of.rows.max(1) as f64),
        of_sites(of),
    ))
}

/// Settles what becomes of missing numbers.
fn filling(
    rule: &mut MissingRule,
    known: (u64, &AnsweredRowCounts),
    rules: SettleRules,
    agreed: &Quantity,
) -> Option<String> {
    let by_ranges = rules.by_ranges && agreed.range.is_some();
    let fitting = match by_ranges {
        true => (MissingRule::Middle, MissingRule::MiddleIndicator),
        false => (MissingRule::Median, MissingRule::Indicator),
    };
    replaced(rule, known, fitting, by_ranges)
}

/// Settles what becomes of missing levels.
fn category_filling(
    rule: &mut MissingRule,
    known: (u64, &AnsweredRowCounts),
    rules: SettleRules,
) -> Option<String> {
    let fitting = match rules.by_ranges {
        true => (MissingRule::Middle, MissingRule::MiddleIndicator),
        false => (MissingRule::Indicator, MissingRule::Indicator),
    };
    replaced(rule, known, fitting, rules.by_ranges)
}

/// Leaves out levels that few rows have, and says which.
fn kept_levels(levels: &mut Levels, found: &ColumnLevels) -> Vec<String> {
    let rows = |level: &String| found.levels.get(level).copied();
    let is_rare = |level: &&String| rows(level) == Some(LevelRows::Hidden);
    let is_absent = |level: &&String| rows(level) == Some(LevelRows::Total(0));
    let named = |is: &dyn Fn(&&String) -> bool| -> Vec<String> {
        let listed = levels.listed.iter();
        listed
            .filter(is)
            .map(|level| format!("{level:?}"))
            .collect()
    };
    let (rare, absent) = (named(&is_rare), named(&is_absent));
    let kept: Vec<String> = levels
        .listed
        .iter()
        .filter(|level| !is_rare(level) && !is_absent(level))
        .cloned()
        .collect();
    let of = &found.of;
    let other = levels.other || !rare.is_empty() || of.outside > 0;
    let mut reasons = vec![format!(
        "levels: {} of {} {} in enough of {} rows at {}",
        kept.len(),
        levels.listed.len(),
        if kept.len() == 1 { "is" } else { "are" },
        of.rows,
        of_sites(of),
    )];
    if kept.len() + usize::from(other) < 2 {
        reasons.push(
            "these are too few to learn from, so they stay as they were: leave the column out"
                .to_owned(),
        );
        return reasons;
    }
    if !rare.is_empty() {
        reasons.push(format!(
            "left out: {}, of fewer rows than the smallest cell or hidden beside such a level; rows with them count \
             as another level",
            rare.join(", ")
        ));
    }
    if !absent.is_empty() {
        reasons.push(format!("left out: {}, which no row has", absent.join(", ")));
    }
    if of.outside > 0 {
        reasons.push(format!(
            "other: {} rows have a level that the question did not list, in {}; which, only their institutions see \
             (`rota check`)",
            of.outside, found.asked
        ));
    }
    levels.listed = kept;
    levels.other = other;
    reasons
}

/// Classes that few rows have. They stay, because a row of no class is refused.
fn rare_classes(classes: &[ClassValues], found: &ColumnLevels) -> Vec<String> {
    let rows = |value: &String| found.levels.get(value).copied();
    let few = |class: &&ClassValues| {
        let mut values = class.values().iter().map(rows);
        values.all(|rows| matches!(rows, Some(LevelRows::Hidden | LevelRows::Total(0))))
    };
    let few: Vec<String> = classes
        .iter()
        .filter(few)
        .map(|class| format!("{:?}", class.name()))
        .collect();
    if few.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "classes: {} of no row, or of fewer than the smallest cell, among {} rows at {}: join them with others \
         (`{{ name, values }}`), or leave such rows out (`only`)",
        few.join(", "),
        found.of.rows,
        of_sites(&found.of)
    )]
}
