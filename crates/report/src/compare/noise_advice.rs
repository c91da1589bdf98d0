//! Whether a federation with noise is worth joining, in one paragraph.

use std::io::{self, Write};

use lab::compare::{NeededTimes, NoiseAdvice, ReleaseAdvice, WhatChanges};
use lab::summary::Interval;

use super::super::numbers;
use super::cells::{decimals, interval_words};
use super::text::paragraph;

/// Writes the advice.
///
/// # Errors
/// The error of the writer, for instance a closed pipe.
pub fn write_noise_advice(out: &mut impl Write, advice: &NoiseAdvice) -> io::Result<()> {
    writeln!(out, "Advice")?;
    paragraph(out, 2, &words(advice))
}

/// The advice in words.
fn words(advice: &NoiseAdvice) -> String {
    let mut sentences: Vec<String> = match advice.seeds {
        0 | 1 => vec![
            "No advice yet: time was over before two seeds had been measured with all ways of learning. Give \
             it more minutes (--minutes)."
                .into(),
        ],
        _ => {
            let metric = advice.comparison.metrics[0].key();
            let releases = advice.releases.iter();
            releases.map(|one| release(one, metric)).collect()
        }
    };
    if let Some(changes) = &advice.changes {
        sentences.push(what_changes(changes));
    }
    if advice.seeds > 1 {
        sentences.push(format!(
            "This rests on {}. It holds for rows like these, and for no others.",
            numbers::plural(advice.seeds, "seed")
        ));
    }
    sentences.join(" ")
}

/// Whether to join with one kind of release, and why.
fn release(one: &ReleaseAdvice, metric: &str) -> String {
    let noise = one.noise.as_ref().map_or("noise", |noise| &noise.words);
    let Some(gain) = one.gain else {
        return format!(
            "Do not join with {}: it could not be compared with the model that each silo makes alone.",
            one.label
        );
    };
    if one.own_intercept {
        // The sentence before it has the noise.
        let (join, is) = match one.joins() {
            true => ("Join", "is better"),
            false => ("Do not join", "is not clearly better"),
        };
        return format!(
            "{join} with an intercept that every silo then fits on its own rows ({}): that {is}, by {} per silo.",
            one.label,
            interval(&gain)
        );
    }
    let price = one.price.map_or_else(String::new, |price| {
        format!(
            " Against the federation without noise it is {}.",
            interval(&price)
        )
    });
    let sentence = if one.joins() {
        format!(
            "Join: with {noise}, the federation's {metric} ({}) is better than that of the model that each silo \
             makes alone, by {} per silo (95 %).",
            one.label,
            interval(&gain)
        )
    } else {
        format!(
            "Do not join: with {noise}, the federation's {metric} ({}) is not clearly better than that of the \
             model that each silo makes alone: {} per silo (95 %), and the whole interval would have to be above 0.",
            one.label,
            interval(&gain)
        )
    };
    sentence + &price
}

fn interval(interval: &Interval) -> String {
    let values = [interval.by, interval.low, interval.high];
    interval_words(interval, decimals(values.into_iter()))
}

/// What would change advice not to join.
fn what_changes(changes: &WhatChanges) -> String {
    let epsilon = match &changes.epsilon {
        NeededTimes::At { times, noise } => format!(
            "On the same rows the advice would be to join with {times} times the epsilon{}.",
            noise
                .as_ref()
                .map_or_else(String::new, |noise| format!(": {}", noise.words))
        ),
        NeededTimes::NotUpTo(times) => {
            format!("On the same rows it would stay the same up to {times} times the epsilon.")
        }
        NeededTimes::Unknown(why) => {
            format!("What a larger epsilon would change is not known: {why}.")
        }
    };
    let more = |changed: &NeededTimes, what: &str| match changed {
        NeededTimes::At { times, .. } => {
            format!(
                "On rows drawn to resemble these it would be to join with {times} times the {what}."
            )
        }
        NeededTimes::NotUpTo(times) => format!(
            "On rows drawn to resemble these it would stay the same up to {times} times the {what}."
        ),
        NeededTimes::Unknown(why) => format!("What more {what} would change is not known: {why}."),
    };
    [
        epsilon,
        more(&changes.silos, "silos"),
        more(&changes.rows, "rows at every silo"),
    ]
    .join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn advice(low: f64) -> ReleaseAdvice {
        let interval = |by, low, high| Interval { by, low, high };
        ReleaseAdvice {
            own_intercept: false,
            label: "steps, epsilon 1".into(),
            noise: None,
            gain: Some(interval(0.05, low, 0.09)),
            price: Some(interval(-0.03, -0.05, -0.01)),
        }
    }

    #[test]
    fn the_whole_interval_decides() {
        let words = release(&advice(0.01), "log-loss");
        assert!(words.starts_with("Join: "), "{words}");
        assert!(words.contains("+0.050 [+0.010, +0.090]"), "{words}");
        assert!(words.contains("without noise it is −0.030"), "{words}");
        let words = release(&advice(-0.001), "log-loss");
        assert!(words.starts_with("Do not join: "), "{words}");
    }

    #[test]
    fn each_of_two_releases_is_advised_on_by_the_name_of_its_row() {
        let labels = ["steps, epsilon 1", "once, epsilon 1"];
        // Worth it, not worth it, and never measured.
        let cases = [
            advice(0.01),
            advice(-0.001),
            ReleaseAdvice {
                gain: None,
                ..advice(0.0)
            },
        ];
        for case in cases {
            let said = labels.map(|label| {
                let label = label.into();
                release(
                    &ReleaseAdvice {
                        label,
                        ..case.clone()
                    },
                    "log-loss",
                )
            });
            for (said, label) in said.iter().zip(labels) {
                let named = |label| said.matches(label).count();
                assert_eq!(named(label), 1, "{said}");
                assert_eq!(labels.map(named).iter().sum::<usize>(), 1, "{said}");
            }
        }
    }

    #[test]
    fn what_would_change_is_said_for_epsilon_silos_and_rows() {
        let said = what_changes(&WhatChanges {
            epsilon: NeededTimes::NotUpTo(10),
            silos: NeededTimes::At {
                times: 5,
                noise: None,
            },
            rows: NeededTimes::Unknown("time was over".into()),
        });
        for part in [
            "the same up to 10 times the epsilon",
            "to join with 5 times the silos",
            "What more rows at every silo would change is not known: time was over.",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
