//! Advice in one paragraph.

use std::io::{self, Write};

use lab::compare::{Advice, AdviceVerdict, CONFIRMING, NoInterval, TELLING, WhyNotKnown};

use super::super::numbers;
use super::cells::{decimals, interval_words};
use super::table::PITFALLS;
use super::text::paragraph;

/// Writes the advice.
///
/// # Errors
/// The error of the writer, for instance a closed pipe.
pub fn write_advice(out: &mut impl Write, advice: &Advice) -> io::Result<()> {
    writeln!(out, "Advice")?;
    paragraph(out, 2, &words(advice))
}

/// The advice in words.
fn words(advice: &Advice) -> String {
    let mut sentences = advised(advice);
    sentences.extend(not_finished(advice));
    sentences.push(format!(
        "The advice is based on {}, with {} tried for each strategy; {}.",
        match advice.seeds {
            0 => "no complete seed".into(),
            seeds => numbers::plural(seeds, "seed"),
        },
        numbers::plural(advice.points, "setting"),
        if advice.cut_short {
            "the time ran out before the comparison was complete: allow more minutes (--minutes)"
        } else {
            "more minutes (--minutes) make the intervals narrower"
        }
    ));
    sentences.join(" ")
}

/// Returns whether to learn together, and why, in sentences.
fn advised(advice: &Advice) -> Vec<String> {
    let metric = advice.comparison.metrics[0].key();
    let mut sentences = match (&advice.verdict, &advice.best) {
        (AdviceVerdict::Together, Some(label)) => together(advice, label),
        (AdviceVerdict::NotKnown { why, minutes }, _) => vec![not_known(advice, *why, *minutes)],
        (_, Some(label)) => vec![format!(
            "Stay alone, or get more {}: no strategy is significantly better than {}. The best was {label}, with a \
             gain in {metric} of {} per silo (95 %), measured on other seeds than those that chose it.",
            units(advice),
            alone(advice),
            gain(advice).unwrap_or_default(),
        )],
        (_, None) => vec!["Stay alone.".into()],
    };
    if !advice.apart.is_empty() {
        sentences.push(format!(
            "With {} nearly every silo is a coalition of its own: that is learning alone, and not advised.",
            numbers::names(&advice.apart, 8)
        ));
    }
    sentences
}

/// Returns what silos make alone, in words.
fn alone(advice: &Advice) -> &'static str {
    match advice.alone.as_str() {
        "constant" => {
            "a constant, which here is no worse than the models that silos fit alone (own-fit)"
        }
        _ => "the best model that each silo makes alone (own-fit)",
    }
}

/// Returns what is counted where rows are too few: persons, where rows are of persons.
fn units(advice: &Advice) -> &'static str {
    match advice.comparison.variants[0].grouped {
        true => "persons",
        false => "rows",
    }
}

/// That nobody knows whether there is a gain, why, and what to do.
fn not_known(advice: &Advice, why: WhyNotKnown, minutes: Option<f64>) -> String {
    let takes = match minutes {
        Some(minutes) => format!(
            "allow about {:.0} minutes (--minutes)",
            minutes.ceil().max(1.0)
        ),
        None => "allow more minutes (--minutes)".into(),
    };
    let (metric, units) = (advice.comparison.metrics[0].key(), units(advice));
    let because = match why {
        WhyNotKnown::FewSeeds(seeds) => format!(
            "Not known yet: {seeds} of {CONFIRMING} seeds that would confirm a gain {} complete: {takes}.",
            numbers::verb(seeds, "is", "are"),
        ),
        WhyNotKnown::NoInterval(NoInterval::RareClass) => format!(
            "Not known: of a class there are fewer than {TELLING} test {units}, so that the gain in {metric} over {} \
             has no interval. Get more {units} of that class.",
            alone(advice)
        ),
        WhyNotKnown::NoInterval(NoInterval::NotMeasured) => format!(
            "Not known: the gain in {metric} over {} has no interval, because it is not a finite number, or the models \
             do not give what {metric} needs.",
            alone(advice)
        ),
        WhyNotKnown::NotCompared => format!(
            "Not known: no strategy could be compared with {}: see above what went wrong.",
            alone(advice)
        ),
        WhyNotKnown::Untuned(silos) => format!(
            "Not known: at {} the local model could not be tuned, because {units} are too few to divide, or not here. A \
             gain over such a model is none over what a silo could make alone. Get more {units}.",
            numbers::plural(silos, "silo"),
        ),
    };
    let best = advice.best.as_ref().map_or_else(String::new, |label| {
        format!(" So far {label} looks best, which may be luck.")
    });
    because + &best
}

/// Returns what was not trained or tuned to the end, of what is compared, in a sentence.
fn not_finished(advice: &Advice) -> Option<String> {
    let compared = |label: &str| label == advice.alone || Some(label) == advice.best.as_deref();
    let rows = advice.comparison.variants[0].strategies.iter();
    let rows = rows.filter(|row| compared(&row.label) && !row.unfinished.is_empty());
    let each: Vec<String> = rows
        .map(|row| format!("{}: {}", row.label, row.unfinished.join("; ")))
        .collect();
    (!each.is_empty()).then(|| {
        format!(
            "Not finished, so the gain may be another one ({PITFALLS}): {}.",
            each.join(". ")
        )
    })
}

/// The gain over what silos make alone, with its interval.
fn gain(advice: &Advice) -> Option<String> {
    advice.gain.map(|gain| {
        interval_words(
            &gain,
            decimals([gain.by, gain.low, gain.high].into_iter()) + 1,
        )
    })
}

/// Returns what speaks for the recommended strategy, and what it costs, in sentences.
fn together(advice: &Advice, label: &str) -> Vec<String> {
    let metric = advice.comparison.metrics[0].key();
    let (winners, members, losers) = advice.members;
    let mut sentences = vec![
        format!(
            "Learn together with {label}: its {metric} is better than that of {} by {} per silo (95 %), measured on \
             other seeds than those that chose it.",
            alone(advice),
            gain(advice).unwrap_or_default()
        ),
        format!(
            "It is significantly better at {winners} of {members} silos and significantly worse at {losers}; by \
             chance alone about {:.1} would seem worse.",
            advice.by_chance
        ),
    ];
    if losers as f64 > advice.by_chance.ceil() && !advice.stay_alone.is_empty() {
        sentences.push(format!(
            "Significantly worse than alone: {}.",
            numbers::names(&advice.stay_alone, 8)
        ));
    }
    sentences.push(format!(
        "A silo sends about {} in all.",
        numbers::bytes(advice.bytes as u64)
    ));
    if !advice.exposure.is_empty() {
        sentences.push(format!(
            "What leaves a silo: {}.",
            advice.exposure.join("; ")
        ));
    }
    sentences
}
