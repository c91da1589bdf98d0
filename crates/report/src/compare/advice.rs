//! Advice in one paragraph.

use std::io::{self, Write};

use lab::compare::Advice;

use super::super::numbers;
use super::cells::{decimals, interval_words};
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

/// Whether to learn together, and why, in sentences.
fn advised(advice: &Advice) -> Vec<String> {
    let metric = advice.comparison.metrics[0].key();
    match (&advice.recommended, &advice.best) {
        (Some(label), _) => together(advice, label),
        (None, Some(label)) if advice.gain.is_none() && advice.cut_short => vec![format!(
            "No advice yet: the time ran out before a second seed could confirm a gain over training alone. On the \
             first seed {label} was best."
        )],
        (None, Some(label)) => vec![format!(
            "Stay alone, or get more rows: no strategy is significantly better than training alone. The best was \
             {label}, with a gain in {metric} of {} per silo (95 %), measured on other seeds than those that chose \
             it.",
            gain(advice).unwrap_or_else(|| "unknown size".into()),
        )],
        (None, None) if advice.cut_short => vec![
            "No advice yet: the time ran out before training alone and at least one strategy had been measured."
                .into(),
        ],
        (None, None) => {
            vec!["No strategy could be compared with training alone: see what went wrong above.".into()]
        }
    }
}

/// The gain over training alone, with its interval.
fn gain(advice: &Advice) -> Option<String> {
    advice.gain.map(|gain| {
        interval_words(
            &gain,
            decimals([gain.by, gain.low, gain.high].into_iter()) + 1,
        )
    })
}

/// What speaks for the recommended way of learning, and what it costs, in sentences.
fn together(advice: &Advice, label: &str) -> Vec<String> {
    let metric = advice.comparison.metrics[0].key();
    let (winners, members, losers) = advice.members;
    let mut sentences = vec![
        format!(
            "Learn together with {label}: its {metric} is better than that of training alone by {} per silo (95 \
             %), measured on other seeds than those that chose it.",
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
