//! The result in sentences: who gains by the federation, who loses, by how much, and how sure that
//! is.

use lab::compare::{BY_CHANCE, TELLING};
use lab::summary::{Interval, ModelKind};
use methods::serving::Candidate;

use super::comparison::{Column, ComparisonTable, choice};
use super::numbers::{self, plural, signed};
use super::pitfalls::SEE;
use super::story::{SiloStory, Story};

/// Most silos that a sentence names.
const NAMED: usize = 3;
/// Silos from which on some seem to gain or lose by chance.
const MANY: f64 = 20.0;

/// One or two sentences for each question, the most important first.
pub fn statements(story: &Story, table: &ComparisonTable) -> Vec<String> {
    if table.columns.is_empty() {
        return vec![nothing_measured(story)];
    }
    let first = no_use(story).or_else(|| worse_than_constant(story));
    let first = first.into_iter().chain(nothing_learned(story));
    let mut sentences: Vec<String> = first.chain(apart(story)).collect();
    if table.columns.len() == 1 {
        sentences.push(
            "No reference models were trained, so there is nothing to compare with.".to_owned(),
        );
        return sentences;
    }
    let compared = table.gains.iter().flatten().count();
    let (who, average) = (who_gains(story, table), on_average(story, table));
    // Where most silos hold out too few rows to tell, the mean says more.
    let first = if 2 * compared < story.silos.len() {
        [average, who]
    } else {
        [who, average]
    };
    sentences.extend(first.into_iter().flatten());
    sentences.extend(not_tuned(story));
    sentences.extend(against_one_model(story, table));
    sentences.extend(what_is_served(story, table));
    sentences.extend(outsiders(table));
    sentences
}

/// That nothing was measured, and why.
fn nothing_measured(story: &Story) -> String {
    let rows: usize = story.silos.iter().map(|silo| silo.test_samples).sum();
    let why = match (&*story.metric.name, rows) {
        _ if story.silos.is_empty() => String::new(),
        (_, 0) => ": no silo holds any out (`split` of the task)".into(),
        ("roc-auc", rows) => format!(
            ": roc-auc needs some of both classes at a silo, and no silo has them among its held-out rows ({} in all). Hold \
             more rows out (`test` in `split`), use fewer silos, or compare another metric, such as brier",
            numbers::count(rows as u64)
        ),
        ("concordance", rows) => format!(
            ": concordance needs two rows of a silo of which one has its event while the other is observed, and there are \
             none among the held-out rows of any silo ({} in all). Hold more rows out (`test` in `split`), or use fewer silos",
            numbers::count(rows as u64)
        ),
        (metric, rows) => format!(
            ": {metric} has no value on the {} held-out rows of any silo",
            numbers::count(rows as u64)
        ),
    };
    format!("Nothing was measured on held-out rows{why}.")
}

/// The metric as people call it.
pub fn long_name(metric: &str) -> &str {
    match metric {
        "mae" => "mean absolute error",
        "mse" => "mean squared error",
        "rmse" => "root mean squared error",
        "roc-auc" => "area under the ROC curve",
        "balanced-accuracy" => "balanced accuracy",
        "brier" => "Brier score",
        "calibration-error" => "calibration error",
        "dice" => "Dice coefficient",
        "concordance" => "concordance index",
        "integrated-brier" => "integrated Brier score",
        "calibration-at-time" => "calibration at the last agreed time",
        other => other,
    }
}

/// Returns where the federation's model is of no use.
fn no_use(story: &Story) -> Option<String> {
    let affected: Vec<(&SiloStory, &str)> = story
        .silos
        .iter()
        .filter_map(|silo| Some((silo, silo.no_use(ModelKind::Coalition)?)))
        .collect();
    let (first, reason) = affected.first()?;
    let all = story.silos.len();
    let rate = story.rate();
    let remedy = rate.map_or_else(String::new, |rate| {
        format!(" If training diverged, try a smaller learning rate (now {rate}).")
    });
    let name = numbers::plain(&first.name);
    Some(if story.usable {
        format!(
            "At {} of {} the federation's model is of no use: at {name} {reason}.{remedy}",
            affected.len(),
            plural(all, "silo"),
        )
    } else {
        format!(
            "The federation's model is of no use at {} of {}: at {name} {reason}.{remedy}",
            affected.len(),
            plural(all, "silo"),
        )
    })
}

/// The least relative difference from a constant that is any: a model that has learned nothing differs from it by
/// a few thousandths.
const LEARNED: f64 = 0.02;

/// Returns a model's metric over all held-out rows of the members, and that of a constant there.
fn beside_constant(story: &Story, model: fn(&SiloStory) -> Option<f64>) -> Option<(f64, f64)> {
    let (mut own, mut constant, mut rows) = (0.0, 0.0, 0.0);
    for silo in &story.silos {
        let (Some(model), Some(without)) = (model(silo), silo.constant) else {
            continue;
        };
        let weight = silo.held_out() as f64;
        own += weight * model;
        constant += weight * without;
        rows += weight;
    }
    (rows > 0.0).then(|| (own / rows, constant / rows))
}

/// Returns where the federation's model is worse than a constant prediction, on average over the held-out rows
/// of all members.
fn worse_than_constant(story: &Story) -> Option<String> {
    let (own, constant) = beside_constant(story, |silo| silo.coalition)?;
    let worse = if story.metric.higher_is_better {
        own < constant
    } else {
        own > constant
    };
    if !worse || (own - constant).abs() <= LEARNED * constant.abs() {
        return None;
    }
    let remedy = story.rate().map_or_else(String::new, |rate| {
        format!(
            " Try a smaller learning rate (now {rate}), or check that the columns predict the target at all."
        )
    });
    let name = long_name(&story.metric.name);
    let decimals = numbers::decimals(constant);
    Some(format!(
        "The federation's model is worse than a constant prediction (the mean, or the class frequencies, of \
         all training rows): over all held-out rows its {name} is {}, that of the constant {}.{remedy}",
        numbers::value(own, decimals),
        numbers::value(constant, decimals),
    ))
}

/// That a constant is as good as the models that silos make alone: beating these is no achievement.
fn nothing_learned(story: &Story) -> Option<String> {
    let (own, constant) = beside_constant(story, |silo| silo.local)?;
    // Of what is to be high, 1 is the most.
    let (ahead, room) = match story.metric.higher_is_better {
        true => (own - constant, (1.0 - constant).abs()),
        false => (constant - own, constant.abs()),
    };
    if !ahead.is_finite() || ahead > LEARNED * room {
        return None;
    }
    let decimals = numbers::decimals(constant);
    Some(format!(
        "A constant prediction is as good as the silos' local models (over all held-out rows {} and {}): nothing was \
         learned from these columns alone. {SEE}",
        numbers::value(constant, decimals),
        numbers::value(own, decimals),
    ))
}

/// That nearly nobody shares a model, which is learning alone.
fn apart(story: &Story) -> Option<String> {
    let (coalitions, members) = story.apart()?;
    Some(format!(
        "This is learning alone: {members} members are in {}, nearly each in one of its own.",
        plural(coalitions, "coalition"),
    ))
}

/// The models of silos' own that the federation's are compared with.
struct AloneModels {
    /// Of a silo.
    one: &'static str,
    /// Of several silos.
    many: &'static str,
}

impl AloneModels {
    fn of(story: &Story) -> Self {
        match story.tuning {
            Some(_) => Self {
                one: "the best model that each silo makes alone",
                many: "the best models that silos make alone",
            },
            None => Self {
                one: "a model trained alone with the federation's settings",
                many: "models trained alone with the federation's settings",
            },
        }
    }
}

/// At how many silos the local model was not tuned, so that a gain over it says little.
fn not_tuned(story: &Story) -> Option<String> {
    let untuned = story.untuned();
    if untuned.is_empty() {
        return None;
    }
    if story.tuning.is_none() {
        return Some(format!(
            "No local model could be tuned, so this is not compared with the best that a silo makes alone: a gain over a \
             model with the federation's settings may be none. {SEE}"
        ));
    }
    Some(format!(
        "At {} the local model could not be tuned, because {} are too few to divide, or not here: {}. A gain there may be \
         none over a tuned one: it is not counted, but the means hold it. {SEE}",
        plural(untuned.len(), "silo"),
        story.units(),
        numbers::names(&untuned, NAMED),
    ))
}

/// Returns how many silos gain and lose by the federation's model over the best that they make alone, and who most.
fn who_gains(story: &Story, table: &ComparisonTable) -> Option<String> {
    if table.gains.is_empty() || !story.usable {
        return None;
    }
    let all: Vec<(&SiloStory, Interval)> = story
        .silos
        .iter()
        .zip(&table.gains)
        .filter_map(|(silo, gain)| Some((silo, (*gain)?)))
        .collect();
    let not_compared = story.silos.len() - all.len();
    if all.is_empty() {
        return Some(format!("{} {SEE}", too_few(story)));
    }
    let own = AloneModels::of(story).one;
    let (gain, lose) = (clear(&all, 1.0), clear(&all, -1.0));
    let unclear = all.len() - gain.len() - lose.len();
    if unclear == story.silos.len() {
        return Some(format!(
            "The federation's model is not significantly better or worse than {own} {}.",
            match unclear {
                1 => "at the only silo".to_owned(),
                more => format!("at any of the {more} silos"),
            }
        ));
    }
    let mut text = format!(
        "The federation's model is significantly better than {own} at {} of {}",
        gain.len(),
        plural(story.silos.len(), "silo"),
    );
    if !gain.is_empty() {
        text.push_str(&format!(": {}", names(&gain, story, table)));
    }
    text.push_str(&format!("; significantly worse at {}", lose.len()));
    if !lose.is_empty() {
        text.push_str(&format!(": {}", names(&lose, story, table)));
    }
    if unclear > 0 {
        text.push_str(&format!("; at {unclear} the difference is not significant"));
    }
    if not_compared > 0 {
        text.push_str(&format!("; {not_compared} could not be compared"));
    }
    text.push('.');
    if all.len() as f64 >= MANY {
        let chance = (BY_CHANCE * all.len() as f64).round().max(1.0);
        text.push_str(&format!(
            " By chance alone about {chance:.0} of {} would seem better, and as many worse.",
            all.len()
        ));
    }
    Some(text)
}

/// Returns the reason for which no silo can tell if it gains.
fn too_few(story: &Story) -> String {
    let units = story.silos.iter().map(|silo| silo.test_units);
    let Some(units) = units.collect::<Option<Vec<usize>>>() else {
        return "No silo can tell whether it gains: its models were not measured row by row."
            .to_owned();
    };
    let (Some(least), Some(most)) = (units.iter().min(), units.iter().max()) else {
        return "No silo can tell whether it gains: there is none.".to_owned();
    };
    let enough = units.iter().filter(|units| **units >= TELLING).count();
    if enough > 0 {
        return if enough == units.len() {
            "No silo can tell whether it gains: there is no finite difference.".to_owned()
        } else {
            format!(
                "No silo can tell whether it gains: {} too few held-out {} ({TELLING} are needed), and at the {} there is \
                 no finite difference.",
                match units.len() - enough {
                    1 => "1 has".to_owned(),
                    few => format!("{few} have"),
                },
                story.units(),
                numbers::verb(enough, "other one", "others"),
            )
        };
    }
    let units = match story.units() {
        "persons" => plural(*most, "person") + " (`split.group`)",
        _ => plural(*most, "row"),
    };
    let range = if least == most {
        String::new()
    } else {
        format!("{least} to ")
    };
    format!(
        "Each silo holds out only {range}{units}, too few to tell whether it gains ({TELLING} are needed)."
    )
}

/// The silos that clearly gain (`sign` 1) or lose (−1), with the largest difference first.
fn clear<'a>(all: &[(&'a SiloStory, Interval)], sign: f64) -> Vec<(&'a SiloStory, Interval)> {
    let clear = |(_, gain): &&(&SiloStory, Interval)| gain.is_clear() && sign * gain.by > 0.0;
    let mut found: Vec<_> = all.iter().filter(clear).copied().collect();
    found.sort_by(|a, b| (sign * b.1.by).total_cmp(&(sign * a.1.by)));
    found
}

/// The first of these silos with their gains or losses, and how many more there are.
fn names(found: &[(&SiloStory, Interval)], story: &Story, table: &ComparisonTable) -> String {
    let each = found
        .iter()
        .take(NAMED)
        .enumerate()
        .map(|(at, (silo, gain))| {
            let name = numbers::plain(&silo.name);
            // How much worse is a number above 0, and so is its interval.
            let size = match gain.by < 0.0 {
                true => gain.turned(),
                false => *gain,
            };
            let (by, range) = (span(size.by, table), between(size, table));
            let what = if at == 0 {
                interval_of(story)
            } else {
                String::new()
            };
            format!("{name} by {by} ({what}{range})")
        });
    let mut text = each.collect::<Vec<_>>().join(", ");
    if found.len() > NAMED {
        text.push_str(&format!(" and {} more", found.len() - NAMED));
    }
    text
}

/// Returns what an interval is of: other held-out rows, and no other training.
fn interval_of(story: &Story) -> String {
    format!("95 % interval over {} ", story.units())
}

/// The means of the federation's models and of local models, by silo and by row.
fn on_average(story: &Story, table: &ComparisonTable) -> Option<String> {
    let (own, coalition) = (table.mean(Column::Own)?, table.mean(Column::Coalition)?);
    if own.no_use.is_some() || coalition.no_use.is_some() {
        return None;
    }
    let gain = story.gain(ModelKind::Coalition, ModelKind::Local);
    let metric = long_name(&story.metric.name);
    let over = if table.common == story.silos.len() {
        "all silos".to_owned()
    } else {
        plural(table.common, "silo")
    };
    let mut text = format!(
        "The mean over {over} of the {metric} is {} with the federation's models and {} with {}: {}.",
        coalition.text,
        own.text,
        AloneModels::of(story).many,
        difference(
            gain.map(|gain| gain.per_silo),
            coalition.value - own.value,
            story,
            table
        ),
    );
    if let (Some(own), Some(coalition)) = (
        table.row_mean(Column::Own),
        table.row_mean(Column::Coalition),
    ) {
        text.push_str(&format!(
            " Weighted by held-out rows it is {} and {}: {}.",
            coalition.text,
            own.text,
            difference(
                gain.map(|gain| gain.per_row),
                coalition.value - own.value,
                story,
                table
            ),
        ));
    }
    Some(text)
}

/// `1.87 better (95 % interval −0.35 to 4.10, not significant)`.
fn difference(
    interval: Option<Interval>,
    measured: f64,
    story: &Story,
    table: &ComparisonTable,
) -> String {
    let better = if story.metric.higher_is_better {
        measured
    } else {
        -measured
    };
    let Some(interval) = interval else {
        let word = if better < 0.0 { "worse" } else { "better" };
        return format!(
            "{} {word} (without an interval, because the models were not measured row by row)",
            span(better.abs(), table)
        );
    };
    if interval.by == 0.0 && interval.low == 0.0 && interval.high == 0.0 {
        return "no difference".to_owned();
    }
    let word = if interval.by < 0.0 { "worse" } else { "better" };
    let clear = if interval.is_clear() {
        "significant"
    } else {
        "not significant"
    };
    format!(
        "{} {word} ({}{}, {clear})",
        span(interval.by.abs(), table),
        interval_of(story),
        between(interval, table)
    )
}

fn span(value: f64, table: &ComparisonTable) -> String {
    numbers::value(value, table.fine())
}

/// `−0.35 to +4.10`.
pub(crate) fn between(interval: Interval, table: &ComparisonTable) -> String {
    let text = |value| signed(value, table.fine());
    format!("{} to {}", text(interval.low), text(interval.high))
}

/// One global model against the coalitions' models, where these are others.
fn against_one_model(story: &Story, table: &ComparisonTable) -> Option<String> {
    let (one, coalition) = (table.mean(Column::Global)?, table.mean(Column::Coalition)?);
    let differ = story.silos.iter().any(|silo| silo.global != silo.coalition);
    if !differ || one.no_use.is_some() || coalition.no_use.is_some() {
        return None;
    }
    let gain = story.gain(ModelKind::Coalition, ModelKind::Global)?;
    Some(format!(
        "One global model for all silos reaches {}: the coalitions' models are {}.",
        one.text,
        difference(
            Some(gain.per_silo),
            coalition.value - one.value,
            story,
            table
        ),
    ))
}

/// Returns how many members serve which model.
fn what_is_served(story: &Story, table: &ComparisonTable) -> Option<String> {
    let mean = table.served_mean.as_ref()?;
    let members = table.served.iter().take(table.rows.len()).flatten();
    let chosen: Vec<Candidate> = members.map(|(candidate, _)| *candidate).collect();
    let kinds = [
        Candidate::Coalition,
        Candidate::FineTuned,
        Candidate::OwnIntercept,
        Candidate::Shrunken,
        Candidate::Global,
        Candidate::Robust,
        Candidate::Local,
    ];
    let parts: Vec<String> = kinds
        .iter()
        .map(|kind| (chosen.iter().filter(|one| *one == kind).count(), *kind))
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {count}", choice(kind)))
        .collect();
    let gain = story.gain(ModelKind::Served, ModelKind::Local);
    let against = gain.map_or_else(String::new, |gain| {
        format!(
            "; compared with {}: {}",
            AloneModels::of(story).many,
            difference(Some(gain.per_silo), 0.0, story, table)
        )
    });
    Some(format!(
        "Each silo then picks the model that it will use, judged on its own rows without the held-out \
         ones, beside what all silos find (a node does so where its agreement has `[serving]`). On average over silos the {} of these models is {mean}{against}. Picked: {}.{}",
        long_name(&story.metric.name),
        parts.join(", "),
        harmed(story).unwrap_or_default()
    ))
}

/// Returns the number of silos that the served model harms, and how many it would by chance.
fn harmed(story: &Story) -> Option<String> {
    let found = story.harmed.as_ref().filter(|found| found.not_own > 0)?;
    let all = found.compared;
    let chance = format!(
        "by chance about {:.1} of {all} would seem so",
        found.by_chance
    );
    let none = match all {
        _ if story.silos.len() == all => "No silo is".to_owned(),
        1 => "The only silo that could be compared is not".to_owned(),
        _ => format!("None of the {all} silos that could be compared is"),
    };
    Some(match found.harmed.len() {
        0 => format!(" {none} significantly worse off than alone ({chance})."),
        count => format!(
            " At {} the picked model is significantly worse than {}: {} ({chance}).",
            match all {
                1 => "the only silo that could be compared".to_owned(),
                _ => format!("{count} of {all} silos"),
            },
            AloneModels::of(story).one,
            numbers::names(&found.harmed, NAMED)
        ),
    })
}

/// The means of unseen silos.
fn outsiders(table: &ComparisonTable) -> Option<String> {
    let means = table.outside_means.as_ref()?;
    let each = table.columns.iter().zip(means);
    let parts: Vec<String> = each
        .filter_map(|(column, cell)| {
            Some(format!(
                "{} with {}",
                cell.as_ref()?.text,
                match column {
                    Column::Own => "their local models",
                    Column::Global => "one global model",
                    Column::Coalition => "the model that the federation gives them",
                }
            ))
        })
        .collect();
    Some(format!(
        "Mean over {} outside the federation: {}.",
        plural(table.outside.len(), "silo"),
        parts.join(", ")
    ))
}

#[cfg(test)]
mod tests;
