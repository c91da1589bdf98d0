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
        "This rests on {} with {} tried for each way of learning; {}.",
        match advice.seeds {
            0 => "no complete seed".into(),
            seeds => numbers::plural(seeds, "seed"),
        },
        numbers::plural(advice.points, "setting"),
        if advice.cut_short {
            "time was over before the comparison was complete: give it more minutes (--minutes)"
        } else {
            "more minutes (--minutes) make intervals narrower"
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
            "No advice yet: time was over before a second seed could confirm a gain over training alone. \
             On the first seed {label} looked best."
        )],
        (None, Some(label)) => vec![format!(
            "Stay alone, or get more rows: no way of learning together is clearly better than training \
             alone. {label} looked best, with {} in {metric} per silo (95 %) on seeds that did not choose it.",
            gain(advice).unwrap_or_else(|| "no measurable gain".into())
        )],
        (None, None) if advice.cut_short => vec![
            "No advice yet: time was over before any way of learning together, and training alone, had \
             been measured."
                .into(),
        ],
        (None, None) => {
            vec!["Nothing could be compared with training alone: see what went wrong above.".into()]
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
            "Learn together with {label}: its {metric} is better than that of training alone by {} per \
             silo (95 %), measured on seeds that did not choose it.",
            gain(advice).unwrap_or_default()
        ),
        format!(
            "The gain is clear at {winners} of {members} silos and a clear loss at {losers}; chance alone \
             would give about {:.1} clear losses.",
            advice.by_chance
        ),
    ];
    if losers as f64 > advice.by_chance.ceil() && !advice.stay_alone.is_empty() {
        sentences.push(format!(
            "Better off alone: {}.",
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
