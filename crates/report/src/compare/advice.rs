//! Advice in one paragraph.

use std::io::{self, Write};

use lab::compare::{
    Advice, AdviceCaution, AdviceVerdict, CONFIRMING, NoInterval, TELLING, WhyNotKnown,
};

use super::super::numbers;
use super::super::pitfalls::{PITFALLS, SEE};
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
    if advice.unlearned {
        sentences.push(format!(
            "A constant prediction is as good as the silos' local models, within chance: nothing was learned from these \
             columns alone. {SEE}"
        ));
    }
    sentences.extend(not_finished(advice));
    sentences.extend(
        advice
            .cautions
            .iter()
            .filter_map(|one| caution(advice, *one)),
    );
    // What to allow is said once.
    let allowed = sentences.iter().any(|one| one.contains("--minutes"));
    sentences.push(format!(
        "The advice is based on {}, with {} tried for each strategy{}.",
        match advice.seeds {
            0 => "no complete seed".into(),
            seeds => numbers::plural(seeds, "seed"),
        },
        numbers::plural(advice.points, "setting"),
        match (advice.cut_short, allowed) {
            (true, true) => "; the time ran out before the comparison was complete",
            (true, false) => {
                "; the time ran out before the comparison was complete: allow more minutes (--minutes)"
            }
            (false, true) => "",
            (false, false) => "; more minutes (--minutes) make the intervals narrower",
        }
    ));
    sentences.join(" ")
}

/// One thing that the numbers do not show, in a sentence; `None` where it does not matter to this answer.
fn caution(advice: &Advice, one: AdviceCaution) -> Option<String> {
    let judged_by = advice.comparison.metrics[0].key();
    let together = advice.verdict == AdviceVerdict::Together;
    let words = match one {
        AdviceCaution::AnotherMetric(metric) => format!(
            "Judged by {judged_by} and not by {}, as the scenario is: with few rows that tells too little.",
            metric.key()
        ),
        AdviceCaution::SquaredErrors => {
            "hierarchical was fitted by squared errors, and the others by absolute ones: it has \
             no others, so that it needs `model = { linear = { loss = \"squared\" } }`."
                .into()
        }
        AdviceCaution::RowsOfPersons => {
            "hierarchical takes rows of one person as independent, so that with few persons it \
             believes too much in differences between silos."
                .into()
        }
        AdviceCaution::SameRows => {
            "Every seed holds out the same rows here: other seeds confirm a gain on no other rows."
                .into()
        }
        AdviceCaution::OwnScales if !together => {
            "Every silo scales its columns by its own rows here, so that one model for \
             all cannot use how silos' means differ: try `standardise = \"federation\"`, too."
                .into()
        }
        AdviceCaution::OwnScales => return None,
    };
    Some(words)
}

/// Returns whether to learn together, and why, in sentences.
fn advised(advice: &Advice) -> Vec<String> {
    let mut sentences = match (&advice.verdict, &advice.best) {
        (AdviceVerdict::Together, Some(label)) => together(advice, label),
        (AdviceVerdict::NotKnown { why, minutes }, _) => vec![not_known(advice, *why, *minutes)],
        (_, Some(label)) => vec![not_better(advice, label)],
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

/// That no strategy is better, or that nobody can tell, and what to do.
fn not_better(advice: &Advice, label: &str) -> String {
    let (units, metric) = (units(advice), advice.comparison.metrics[0].key());
    let advised = match advice.gain {
        // A harm as well as a gain is within chance: that is no answer, so that nobody should change anything.
        Some(gain) if gain.low < 0.0 && gain.high > 0.0 => {
            format!("Not beyond chance: cannot tell; until then stay alone, or get more {units}:")
        }
        _ => format!("Stay alone, or get more {units}:"),
    };
    format!(
        "{advised} no strategy is significantly better than {}. The best was {label}, with a gain in {metric} of {} per \
         silo (95 %), measured on other seeds than those that chose it.",
        alone(advice),
        gain(advice).unwrap_or_default(),
    )
}

/// Returns what silos make alone, in words.
fn alone(advice: &Advice) -> &'static str {
    match advice.alone.as_str() {
        "constant" => {
            "a constant, which here is no worse than the models that silos fit alone (own-fit)"
        }
        "local" => {
            "the model that each silo trains alone with these settings (local), which here is better than the one that \
             it tunes (own-fit)"
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
        Some(minutes) => {
            let whole = minutes.ceil().max(1.0) as usize;
            format!(
                "allow about {} (--minutes)",
                numbers::plural(whole, "minute")
            )
        }
        None => "allow more minutes (--minutes)".into(),
    };
    let (metric, units) = (advice.comparison.metrics[0].key(), units(advice));
    let because = match why {
        WhyNotKnown::FewSeeds(seeds) => format!(
            "Not known yet: {seeds} of {CONFIRMING} seeds that would confirm a gain {} complete: {takes}. {SEE}",
            numbers::verb(seeds, "is", "are"),
        ),
        WhyNotKnown::NoInterval(NoInterval::RareClass) => format!(
            "Not known: of a class there are fewer than {TELLING} test {units}, so that the gain in {metric} over {} \
             has no interval. Get more {units} of that class. {SEE}",
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
            "Not known: at {} the local model could not be tuned, because {units} are too few to divide, or not here, \
             and no silo is left to compare with. A gain over such a model is none over what a silo could make alone. \
             Get more {units}. {SEE}",
            numbers::plural(silos, "silo"),
        ),
    };
    // What was chosen, and confirmed by no seed at all, does not even look best.
    let confirmed = advice.seeds / 2 > 0 && advice.gain.is_some();
    let best = advice.best.as_ref().filter(|_| confirmed);
    let best = best.map_or_else(String::new, |label| {
        format!(" So far {label} looks best, which may be luck.")
    });
    because + &best
}

/// True if what learning together has to beat is not finished.
fn is_open(advice: &Advice) -> bool {
    let mut rows = advice.comparison.variants[0].strategies.iter();
    rows.any(|row| row.label == advice.alone && !row.unfinished.is_empty())
}

/// Returns what was not trained or tuned to the end, of what is compared, in a sentence.
fn not_finished(advice: &Advice) -> Option<String> {
    let compared = |label: &str| label == advice.alone || Some(label) == advice.best.as_deref();
    let rows = advice.comparison.variants[0].strategies.iter();
    let rows = rows.filter(|row| compared(&row.label) && !row.unfinished.is_empty());
    let each: Vec<String> = rows
        .map(|row| format!("{}: {}", row.label, row.unfinished.join("; ")))
        .collect();
    if !each.is_empty() {
        return Some(format!(
            "Not finished, so the gain may be another one ({PITFALLS}): {}.",
            each.join(". ")
        ));
    }
    // Where nothing is better, one that goes on may be.
    let rows = advice.comparison.variants[0].strategies.iter();
    let open: Vec<String> = rows
        .filter(|row| !row.unfinished.is_empty())
        .map(|row| row.label.clone())
        .collect();
    (!open.is_empty() && advice.verdict != AdviceVerdict::Together).then(|| {
        format!(
            "Not finished, so that with more rounds or other settings they may be better (`rota compare` allows them; \
             {PITFALLS}): {}.",
            numbers::names(&open, 8)
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
            "{} with {label}: its {metric} is better than that of {} by {} per silo (95 %), measured on \
             other seeds than those that chose it.",
            match is_open(advice) {
                true => "So far, learn together",
                false => "Learn together",
            },
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

#[cfg(test)]
mod tests {
    use AdviceVerdict::{Alone, NotKnown, Together};

    use super::super::fixture::{advice, between};
    use super::*;

    fn few(seeds: usize, minutes: Option<f64>) -> AdviceVerdict {
        let why = WhyNotKnown::FewSeeds(seeds);
        NotKnown { why, minutes }
    }

    #[test]
    fn minutes_are_named_once_and_in_their_number() {
        let mut found = advice(few(0, Some(0.4)), None);
        (found.seeds, found.cut_short) = (1, true);
        for (minutes, said) in [
            (Some(0.4), "allow about 1 minute (--minutes)."),
            (Some(1.01), "allow about 2 minutes (--minutes)."),
            (None, "allow more minutes (--minutes)."),
        ] {
            found.verdict = few(0, minutes);
            let words = words(&found);
            assert!(words.contains(said), "{words}");
            assert_eq!(words.matches("--minutes").count(), 1, "{words}");
            let end =
                "tried for each strategy; the time ran out before the comparison was complete.";
            assert!(words.ends_with(end), "{words}");
        }
        let known = words(&advice(Together, Some(between(0.1, 0.3))));
        assert!(
            known.ends_with("; more minutes (--minutes) make the intervals narrower."),
            "{known}"
        );
    }

    #[test]
    fn what_no_seed_confirms_does_not_look_best() {
        let best = "So far fedavg looks best";
        let mut found = advice(few(2, Some(3.0)), Some(between(0.1, 0.3)));
        found.seeds = 4;
        assert!(words(&found).contains(best));
        // One complete seed chooses, and confirms nothing.
        found.seeds = 1;
        assert!(!words(&found).contains(best));
        (found.seeds, found.gain) = (4, None);
        assert!(!words(&found).contains(best));
    }

    #[test]
    fn a_gain_and_a_harm_in_one_interval_are_no_answer() {
        let of = |low, high| words(&advice(Alone, Some(between(low, high))));
        let said = of(-0.1, 0.3);
        let start = "Not beyond chance: cannot tell; until then stay alone, or get more rows: no strategy is significantly \
                     better than ";
        assert!(said.starts_with(start), "{said}");
        assert!(
            said.contains("+0.1000 [−0.1000, +0.3000] per silo"),
            "{said}"
        );
        let said = of(-0.3, -0.1);
        let start = "Stay alone, or get more rows: no strategy is significantly better than ";
        assert!(said.starts_with(start), "{said}");
    }

    #[test]
    fn over_what_is_not_finished_the_advice_is_so_far() {
        let mut found = advice(Together, Some(between(0.1, 0.3)));
        assert!(words(&found).starts_with("Learn together with fedavg: "));
        found.comparison.variants[0].strategies[0].unfinished = vec!["untuned".into()];
        let said = words(&found);
        assert!(
            said.starts_with("So far, learn together with fedavg: "),
            "{said}"
        );
        assert!(said.contains("own-fit: untuned."), "{said}");
    }

    #[test]
    fn what_the_numbers_do_not_show_is_stated() {
        let of = |verdict, one| {
            let mut found = advice(verdict, Some(between(0.1, 0.3)));
            found.cautions = vec![one];
            words(&found)
        };
        let metric = task::metrics::MetricName::RocAuc;
        let said = of(Together, AdviceCaution::AnotherMetric(metric));
        assert!(
            said.contains("Judged by log-loss and not by roc-auc"),
            "{said}"
        );
        let said = of(Together, AdviceCaution::SquaredErrors);
        assert!(
            said.contains("hierarchical was fitted by squared errors"),
            "{said}"
        );
        let said = of(Together, AdviceCaution::RowsOfPersons);
        assert!(said.contains("rows of one person as independent"), "{said}");
        let said = of(Together, AdviceCaution::SameRows);
        assert!(said.contains("confirm a gain on no other rows"), "{said}");
        // Where the answer is to learn together, another scale is no reason to ask again.
        let scales = "one model for all cannot use how silos' means differ";
        assert!(of(Alone, AdviceCaution::OwnScales).contains(scales));
        assert!(!of(Together, AdviceCaution::OwnScales).contains(scales));
    }

    #[test]
    fn that_silos_learn_nothing_alone_is_stated() {
        let mut found = advice(Together, Some(between(0.1, 0.3)));
        let nothing = "A constant prediction is as good as the silos' local models, within chance: nothing was learned from \
                       these columns alone.";
        assert!(!words(&found).contains(nothing));
        found.unlearned = true;
        assert!(words(&found).contains(nothing));
    }
}
