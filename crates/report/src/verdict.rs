//! The result in sentences: who gains by the federation, who loses, by how much, and how sure that
//! is.

use lab::compare::BY_CHANCE;
use lab::summary::{Interval, ModelKind};
use methods::serving::Candidate;

use super::comparison::{Column, ComparisonTable};
use super::numbers::{self, plural, signed};
use super::story::{SiloStory, Story};

/// Most silos that a sentence names.
const NAMED: usize = 3;
/// Silos from which on some seem to gain or lose by chance.
const MANY: f64 = 20.0;

/// All sentences.
pub fn verdict(story: &Story, table: &ComparisonTable) -> String {
    statements(story, table).join(" ")
}

/// One or two sentences for each question, the most important first.
pub fn statements(story: &Story, table: &ComparisonTable) -> Vec<String> {
    if table.columns.is_empty() {
        return vec!["Nothing was measured on held-out rows.".to_owned()];
    }
    let first = no_use(story).or_else(|| worse_than_constant(story));
    let mut sentences: Vec<String> = first.into_iter().collect();
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
    sentences.extend(against_one_model(story, table));
    sentences.extend(what_is_served(story, table));
    sentences.extend(outsiders(table));
    sentences
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
        other => other,
    }
}

/// Where the federation's model is of no use.
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

/// Where the federation's model is worse than a constant prediction, on average over the held-out rows
/// of all members.
fn worse_than_constant(story: &Story) -> Option<String> {
    let (mut own, mut constant, mut rows) = (0.0, 0.0, 0.0);
    for silo in &story.silos {
        let (Some(model), Some(without)) = (silo.coalition, silo.constant) else {
            continue;
        };
        let weight = silo.held_out() as f64;
        own += weight * model;
        constant += weight * without;
        rows += weight;
    }
    let worse = if story.metric.higher_is_better {
        own < constant
    } else {
        own > constant
    };
    // A few thousandths are the noise of a model that has learned nothing.
    if rows == 0.0 || !worse || (own - constant).abs() <= 0.02 * constant.abs() {
        return None;
    }
    let remedy = story.rate().map_or_else(String::new, |rate| {
        format!(" Try a smaller learning rate (now {rate}), or look at what the columns say of the target.")
    });
    let name = long_name(&story.metric.name);
    let decimals = numbers::decimals(constant / rows);
    Some(format!(
        "The federation's model is worse than a constant prediction, the mean or the class frequencies of \
         all training rows: its {name} is {}, that of the constant {}, over all held-out rows.{remedy}",
        numbers::value(own / rows, decimals),
        numbers::value(constant / rows, decimals),
    ))
}

/// How many silos gain and lose by the federation's model over training alone, and who most.
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
        return Some(
            "At no silo are there enough held-out rows to tell whether it gains by the federation."
                .to_owned(),
        );
    }
    let (gain, lose) = (clear(&all, 1.0), clear(&all, -1.0));
    let verb = |count: usize, one: &'static str, many: &'static str| match count {
        1 => one,
        _ => many,
    };
    let noise = all.len() - gain.len() - lose.len();
    if noise == story.silos.len() {
        return Some(format!(
            "With the federation's model instead of one trained alone, none of {} gains or loses by \
             more than the noise of its held-out rows.",
            plural(noise, "silo")
        ));
    }
    let mut text = format!(
        "With the federation's model instead of one trained alone, {} of {} {}",
        gain.len(),
        plural(story.silos.len(), "silo"),
        verb(gain.len(), "gains", "gain"),
    );
    if !gain.is_empty() {
        text.push_str(&format!(": {}", names(&gain, table)));
    }
    text.push_str(&format!(
        "; {} {}",
        lose.len(),
        verb(lose.len(), "loses", "lose")
    ));
    if !lose.is_empty() {
        text.push_str(&format!(": {}", names(&lose, table)));
    }
    if noise > 0 {
        text.push_str(&format!(
            "; for {noise} the difference is within the noise of the held-out rows"
        ));
    }
    if not_compared > 0 {
        text.push_str(&format!("; {not_compared} hold out too few rows to tell"));
    }
    text.push('.');
    if all.len() as f64 >= MANY {
        let chance = (BY_CHANCE * all.len() as f64).round().max(1.0);
        text.push_str(&format!(
            " Of so many silos about {chance:.0} would seem to gain, and as many to lose, by chance."
        ));
    }
    Some(text)
}

/// The silos that clearly gain (`sign` 1) or lose (−1), with the largest difference first.
fn clear<'a>(all: &[(&'a SiloStory, Interval)], sign: f64) -> Vec<(&'a SiloStory, Interval)> {
    let clear = |(_, gain): &&(&SiloStory, Interval)| gain.is_clear() && sign * gain.by > 0.0;
    let mut found: Vec<_> = all.iter().filter(clear).copied().collect();
    found.sort_by(|a, b| (sign * b.1.by).total_cmp(&(sign * a.1.by)));
    found
}

/// The first of these silos with their gains or losses, and how many more there are.
fn names(found: &[(&SiloStory, Interval)], table: &ComparisonTable) -> String {
    let each = found
        .iter()
        .take(NAMED)
        .enumerate()
        .map(|(at, (silo, gain))| {
            let name = numbers::plain(&silo.name);
            let (by, range) = (span(gain.by.abs(), table), between(*gain, table));
            let what = if at == 0 { "95 % interval " } else { "" };
            format!("{name} by {by} ({what}{range})")
        });
    let mut text = each.collect::<Vec<_>>().join(", ");
    if found.len() > NAMED {
        text.push_str(&format!(" and {} more", found.len() - NAMED));
    }
    text
}

/// The means of the federation's models and of own models, by silo and by row.
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
        "The mean over {over} of the {metric} is {} with the federation's models and {} with models \
         trained alone: {}.",
        coalition.text,
        own.text,
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
            " Counted by rows instead of silos it is {} and {}: {}.",
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

/// `1.87 better (95 % interval −0.35 to 4.10), within the noise`.
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
            "{} {word}, with an unknown uncertainty, because the learner gives no results row by row",
            span(better.abs(), table)
        );
    };
    if interval.by == 0.0 && interval.low == 0.0 && interval.high == 0.0 {
        return "no difference".to_owned();
    }
    let word = if interval.by < 0.0 { "worse" } else { "better" };
    let clear = if interval.is_clear() {
        ", more than noise"
    } else {
        ", within the noise"
    };
    format!(
        "{} {word} (95 % interval {}){clear}",
        span(interval.by.abs(), table),
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

/// How many members serve which model.
fn what_is_served(story: &Story, table: &ComparisonTable) -> Option<String> {
    let mean = table.served_mean.as_ref()?;
    let members = table.served.iter().take(table.rows.len()).flatten();
    let chosen: Vec<Candidate> = members.map(|(candidate, _)| *candidate).collect();
    let kinds = [
        (Candidate::Coalition, "the coalition's model"),
        (Candidate::FineTuned, "the fine-tuned coalition's model"),
        (
            Candidate::OwnIntercept,
            "the coalition's model with an intercept of their own",
        ),
        (Candidate::Global, "the mean of all coalitions' models"),
        (Candidate::Robust, "a robust model of their own"),
        (Candidate::Local, "their own model"),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .map(|(kind, name)| (chosen.iter().filter(|one| *one == kind).count(), name))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let gain = story.gain(ModelKind::Served, ModelKind::Local);
    let against = gain.map_or_else(String::new, |gain| {
        format!(
            ", against models trained alone {}",
            difference(Some(gain.per_silo), 0.0, story, table)
        )
    });
    Some(format!(
        "If each silo serves the model that it chooses on rows of its own, never on held-out ones, the \
         mean is {mean}{against}: {}.{}",
        parts.join(", "),
        harmed(story).unwrap_or_default()
    ))
}

/// How many silos the served model harms, and how many it would by chance.
fn harmed(story: &Story) -> Option<String> {
    let found = story.harmed.as_ref().filter(|found| found.not_own > 0)?;
    let all = plural(found.compared, "silo");
    let chance = format!("by chance it would be so at {:.1}", found.by_chance);
    Some(match found.harmed.len() {
        0 => format!(
            " None of {all} is harmed, that is, the 95 % interval against its own model is nowhere \
             wholly worse; {chance}."
        ),
        count => format!(
            " It harms {count} of {all} ({}), that is, the 95 % interval against its own model is \
             wholly worse; {chance}.",
            numbers::names(&found.harmed, NAMED)
        ),
    })
}

/// The means of silos outside the federation.
fn outsiders(table: &ComparisonTable) -> Option<String> {
    let means = table.outside_means.as_ref()?;
    let each = table.columns.iter().zip(means);
    let parts: Vec<String> = each
        .filter_map(|(column, cell)| {
            Some(format!(
                "{} with {}",
                cell.as_ref()?.text,
                match column {
                    Column::Own => "their own models",
                    Column::Global => "one global model",
                    Column::Coalition => "the model that the federation gives them",
                }
            ))
        })
        .collect();
    Some(format!(
        "{} outside the federation, on average: {}.",
        plural(table.outside.len(), "silo"),
        parts.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::comparison::tests::story as made;
    use lab::summary::MeanGain;

    fn said(story: &Story) -> String {
        verdict(story, &ComparisonTable::of(story))
    }

    fn mean_gain(by: f64, noise: f64) -> MeanGain {
        let (low, high) = (by - noise, by + noise);
        let interval = Interval { by, low, high };
        MeanGain {
            model: ModelKind::Coalition,
            over: ModelKind::Local,
            silos: 2,
            per_silo: interval,
            per_row: interval,
        }
    }

    #[test]
    fn a_model_that_is_worse_than_a_constant_is_called_so_in_the_first_sentence() {
        let mut story = crate::fixture::story(3, 1, 2);
        let all = story.silos.len();
        for silo in &mut story.silos {
            (silo.coalition, silo.constant) = (Some(18.0), Some(8.6));
        }
        let said = worse_than_constant(&story).unwrap();
        assert!(
            said.starts_with(
                "The federation's model is worse than a constant prediction, the mean or"
            ),
            "{said}"
        );
        assert!(
            said.contains("is 18.000, that of the constant 8.600, over all held-out rows."),
            "{said}"
        );
        assert!(said.contains("Try a smaller learning rate"), "{said}");
        // One that has learned nothing is not, and neither is a better one.
        for good in [8.65, 3.0] {
            story
                .silos
                .iter_mut()
                .for_each(|silo| silo.coalition = Some(good));
            assert_eq!(worse_than_constant(&story), None, "{all} silos, {good}");
        }
        story.metric.higher_is_better = true;
        assert!(worse_than_constant(&story).is_some());
    }

    #[test]
    fn gainers_and_losers_are_named_with_their_intervals() {
        let rows = [
            [Some(50.0), None, Some(45.0)],
            [Some(50.0), None, Some(53.0)],
            [Some(50.0), None, Some(49.5)],
        ];
        let mut story = made(false, 2.0, &rows);
        story.gains = vec![mean_gain(0.83, 2.0)];
        let text = said(&story);
        let who = "With the federation's model instead of one trained alone, 1 of 3 silos gains: \
                   Hospital 01 by 5.00 (95 % interval +3.00 to +7.00); 1 loses: Hospital 02 by 3.00 \
                   (95 % interval −5.00 to −1.00); for 1 the difference is within the noise of the \
                   held-out rows.";
        assert!(text.starts_with(who), "{text}");
        let mean = "The mean over all silos of the mean absolute error is 49.17 with the federation's \
                    models and 50.00 with models trained alone: 0.83 better (95 % interval −1.17 to \
                    +2.83), within the noise.";
        assert!(text.contains(mean), "{text}");
        assert!(
            text.contains("Counted by rows instead of silos it is"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_called_better_than_noise_within_noise() {
        let rows = [
            [Some(50.0), Some(48.0), Some(45.0)],
            [Some(50.0), Some(51.0), Some(49.0)],
        ];
        let mut story = made(false, 9.0, &rows);
        story.gains = vec![mean_gain(3.0, 4.0)];
        let text = said(&story);
        assert!(
            text.contains("none of 2 silos gains or loses by more than the noise"),
            "{text}"
        );
        assert!(
            !text.contains("best (") && !text.contains("more than noise"),
            "{text}"
        );
        story.gains = vec![mean_gain(3.0, 1.0)];
        assert!(said(&story).contains("more than noise"));
    }

    #[test]
    fn a_model_of_no_use_comes_first_with_a_remedy() {
        let mut story = made(false, 1.0, &[[Some(50.0), None, Some(1e28)]]);
        let reason = "its mae is 1.0e28, that of a constant prediction 65.0".to_owned();
        story.silos[0].unusable = vec![(ModelKind::Coalition, reason)];
        story.silos[0].gains.clear();
        story.usable = false;
        let text = said(&story);
        let first = "The federation's model is of no use at 1 of 1 silo: at Hospital 01 its mae is \
                     1.0e28, that of a constant prediction 65.0. If training diverged, try a smaller \
                     learning rate (now 0.01).";
        assert!(text.starts_with(first), "{text}");
        assert!(!text.contains("The mean over"), "{text}");
    }

    #[test]
    fn the_mean_comes_first_where_most_silos_hold_out_too_few_rows() {
        let mut story = made(false, 2.0, &[[Some(50.0), None, Some(45.0)]; 3]);
        story.gains = vec![mean_gain(5.0, 2.0)];
        assert!(said(&story).starts_with("With the federation's model"));
        for silo in &mut story.silos[1..] {
            silo.gains.clear();
        }
        let text = said(&story);
        assert!(text.starts_with("The mean over all silos"), "{text}");
        assert!(
            text.contains("; 2 hold out too few rows to tell."),
            "{text}"
        );
    }

    #[test]
    fn chance_is_named_where_there_are_many_silos() {
        let rows = vec![[Some(50.0), None, Some(45.0)]; 40];
        let text = said(&made(false, 2.0, &rows));
        assert!(
            text.contains("and 37 more; 0 lose. Of so many silos about 1 would"),
            "{text}"
        );
    }

    #[test]
    fn served_pooled_and_outside_models_are_in_it() {
        let rows = [
            [Some(5.0), Some(7.0), Some(4.0)],
            [Some(6.0), Some(7.0), Some(6.0)],
            [Some(9.0), Some(7.0), Some(8.0)],
        ];
        let mut story = made(false, 0.5, &rows);
        let serves = |candidate, metric| lab::summary::ServedInfo {
            candidate,
            on: methods::serving::ComparedOn::Folds,
            metric: Some(metric),
            measured: Vec::new(),
        };
        for silo in &mut story.silos {
            let coalition = silo.coalition.unwrap();
            silo.pooled = Some(coalition - 1.0);
            silo.served = Some(serves(Candidate::Coalition, coalition));
        }
        story.silos[1].served = Some(serves(Candidate::Local, 6.0));
        let outsider = story.silos.pop().unwrap();
        story.outside.push(outsider);
        let text = said(&story);
        assert!(
            text.ends_with(
                "the mean is 5.000: 1 the coalition's model, 1 their own model. 1 silo outside the federation, on \
                 average: 9.000 with their own models, 7.000 with one global model, 8.000 with the \
                 model that the federation gives them."
            ),
            "{text}"
        );
    }

    #[test]
    fn without_reference_models_nothing_is_compared() {
        let text = said(&made(true, 0.0, &[[None, None, Some(0.5)]]));
        assert!(text.starts_with("No reference"), "{text}");
        let text = said(&made(true, 0.0, &[[None; 3]]));
        assert!(text.starts_with("Nothing was measured"), "{text}");
    }
}
