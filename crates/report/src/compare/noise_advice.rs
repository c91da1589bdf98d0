//! Advice on joining a federation with noise, in one paragraph.

use std::io::{self, Write};

use lab::compare::{NeededTimes, NoiseAdvice, ReleaseAdvice, WhatChanges};
use lab::summary::Interval;
use methods::serving::Adaptation;

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
            "No advice yet: the time ran out before two seeds had been measured with and without noise. Allow more \
             minutes (--minutes)."
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
            "The advice is based on {}, and holds only for rows like these.",
            numbers::plural(advice.seeds, "seed")
        ));
    }
    sentences.join(" ")
}

/// Returns whether to join with one kind of release, and why.
fn release(one: &ReleaseAdvice, metric: &str) -> String {
    let noise = one.noise.as_ref().map_or("noise", |noise| &noise.words);
    let Some(gain) = one.gain else {
        return format!(
            "Do not join with {}: it could not be compared with the best models that silos make alone.",
            one.label
        );
    };
    if let Some(how) = one.adapted {
        // The sentence before it has the noise.
        let join = if one.joins() { "Join" } else { "Do not join" };
        let is = compared(&gain);
        let does = match how {
            Adaptation::OwnIntercept => "fits the intercept on its own rows",
            Adaptation::Shrunken => "fits its own rows, shrunken towards the federation's model",
        };
        return format!(
            "{join} if every silo then {does} ({}): this model is {is} the best one that it makes alone: {} \
             per silo.",
            one.label,
            interval(&gain)
        );
    }
    let price = one.price.map_or_else(String::new, |price| {
        format!(
            " Compared with the federation without noise the difference is {}.",
            interval(&price)
        )
    });
    let sentence = if one.joins() {
        format!(
            "Join: with {noise}, the federation's {metric} ({}) is significantly better than that of the best \
             model that each silo makes alone: {} per silo (95 %).",
            one.label,
            interval(&gain)
        )
    } else {
        let is = compared(&gain);
        format!(
            "Do not join: with {noise}, the federation's {metric} ({}) is {is} that of the best model that each silo \
             makes alone: {} per silo (95 %; to join, the whole interval would have to be above 0).",
            one.label,
            interval(&gain)
        )
    };
    sentence + &price
}

/// Returns how a model with this gain compares with another one.
fn compared(gain: &Interval) -> &'static str {
    match gain {
        gain if gain.low > 0.0 => "significantly better than",
        gain if gain.high < 0.0 => "significantly worse than",
        _ => "not significantly better than",
    }
}

fn interval(interval: &Interval) -> String {
    let values = [interval.by, interval.low, interval.high];
    interval_words(interval, decimals(values.into_iter()))
}

/// Returns what would change advice not to join.
fn what_changes(changes: &WhatChanges) -> String {
    let epsilon = match &changes.epsilon {
        NeededTimes::At { times, noise } => format!(
            "With {times} times the epsilon the advice on the same rows would be to join{}.",
            noise
                .as_ref()
                .map_or_else(String::new, |noise| format!(": {}", noise.words))
        ),
        NeededTimes::NotUpTo(times) => {
            format!(
                "On the same rows the advice would not change with up to {times} times the epsilon."
            )
        }
        NeededTimes::Unknown(why) => {
            format!("What a larger epsilon would change is not known: {why}.")
        }
    };
    let more = |changed: &NeededTimes, what: &str| match changed {
        NeededTimes::At { times, .. } => {
            format!(
                "With {times} times the {what}, simulated by synthetic rows like these, it would be to join."
            )
        }
        NeededTimes::NotUpTo(times) => format!(
            "With up to {times} times the {what}, simulated by synthetic rows like these, it would not change."
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
            adapted: None,
            label: "steps, epsilon 1".into(),
            noise: None,
            gain: Some(interval(0.05, low, 0.09)),
            price: Some(interval(-0.03, -0.05, -0.01)),
        }
    }

    #[test]
    fn an_own_intercept_is_advised_in_a_whole_sentence() {
        let fitted = |low| ReleaseAdvice {
            adapted: Some(Adaptation::OwnIntercept),
            ..advice(low)
        };
        let words = release(&fitted(0.01), "log-loss");
        let join = "Join if every silo then fits the intercept on its own rows (steps, epsilon 1): this model is \
                    significantly better than the best one that it makes alone: ";
        assert!(words.starts_with(join), "{words}");
        let words = release(&fitted(-0.001), "log-loss");
        assert!(words.starts_with("Do not join if every silo"), "{words}");
        let is = "this model is not significantly better than the best one that it makes alone: ";
        assert!(words.contains(is), "{words}");
    }

    #[test]
    fn the_whole_interval_decides() {
        let words = release(&advice(0.01), "log-loss");
        assert!(words.starts_with("Join: "), "{words}");
        assert!(words.contains("+0.050 [+0.010, +0.090]"), "{words}");
        assert!(
            words.contains("without noise the difference is −0.030"),
            "{words}"
        );
        let words = release(&advice(-0.001), "log-loss");
        assert!(words.starts_with("Do not join: "), "{words}");
        assert!(
            words.contains(" is not significantly better than that of"),
            "{words}"
        );
        let worse = Interval {
            by: -0.088,
            low: -0.117,
            high: -0.060,
        };
        let words = release(
            &ReleaseAdvice {
                gain: Some(worse),
                ..advice(0.0)
            },
            "log-loss",
        );
        assert!(
            words.contains(" is significantly worse than that of"),
            "{words}"
        );
        assert!(words.contains("−0.088 [−0.117, −0.060]"), "{words}");
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
    fn what_would_change_is_stated_for_epsilon_silos_and_rows() {
        let said = what_changes(&WhatChanges {
            epsilon: NeededTimes::NotUpTo(10),
            silos: NeededTimes::At {
                times: 5,
                noise: None,
            },
            rows: NeededTimes::Unknown("time was over".into()),
        });
        for part in [
            "the advice would not change with up to 10 times the epsilon.",
            "With 5 times the silos, simulated by synthetic rows like these, it would be to join.",
            "What more rows at every silo would change is not known: time was over.",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
