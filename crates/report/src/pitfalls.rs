//! The page of the book on what makes a comparison say more than it knows: warnings name it.

/// Its path in the repository. Reports are read elsewhere, so that it is no link.
pub(crate) const PITFALLS: &str = "docs/not-to-fool-yourself.md";
/// The sentence that ends a warning.
pub(crate) const SEE: &str = "See docs/not-to-fool-yourself.md.";

#[cfg(test)]
mod tests {
    use lab::compare::{Advice, AdviceVerdict, BestOf, Comparison, NoInterval, WhyNotKnown};

    use super::*;
    use crate::Story;
    use crate::compare::fixture::{advice, between, comparison, gains, row};
    use crate::comparison::ComparisonTable;

    /// True if a text names the page, on one line or two.
    fn named(text: &str) -> bool {
        text.split_whitespace()
            .collect::<String>()
            .contains(PITFALLS)
    }

    /// Changes a comparison with `own-fit` over six seeds, and returns which of its reports name the page.
    fn compared(change: impl Fn(&mut Comparison)) -> [bool; 3] {
        let gain = gains("fedavg", "own-fit", between(0.1, 0.3));
        let mut made = comparison(vec![row("own-fit"), gain]);
        change(&mut made);
        let mut text = Vec::new();
        crate::compare::write(&mut text, &made).expect("a vector takes everything");
        let text = String::from_utf8_lossy(&text).into_owned();
        let others = [
            crate::compare::markdown(&made),
            crate::compare::page(&made, "", ""),
        ];
        let [markdown, page] = others.map(|text| named(&text));
        [named(&text), markdown, page]
    }

    fn advised(change: impl Fn(&mut Advice)) -> bool {
        let mut made = advice(AdviceVerdict::Together, Some(between(0.1, 0.3)));
        change(&mut made);
        let mut text = Vec::new();
        crate::compare::write_advice(&mut text, &made).expect("a vector takes everything");
        named(&String::from_utf8_lossy(&text))
    }

    fn simulated(change: impl Fn(&mut Story)) -> bool {
        let rows = [[Some(50.0), None, Some(45.0)]; 3];
        let mut story = crate::comparison::tests::story(false, 2.0, &rows);
        change(&mut story);
        let said = crate::verdict::statements(&story, &ComparisonTable::of(&story));
        named(&said.join(" "))
    }

    #[test]
    fn every_warning_names_the_page() {
        assert!(SEE.contains(PITFALLS));
        // Without a warning nothing does.
        assert_eq!(compared(|_| ()), [false; 3]);
        assert!(!advised(|_| ()) && !simulated(|_| ()));
        let changes: [fn(&mut Comparison); 6] = [
            |made| {
                let gain = gains("fedavg", "local", between(0.1, 0.3));
                made.variants[0].strategies = vec![row("local"), gain];
                made.variants[0].alone = Some("local".into());
            },
            |made| {
                let rows = &mut made.variants[0].strategies;
                rows.iter_mut().for_each(|row| row.seeds = 2);
            },
            |made| {
                let against = &mut made.variants[0].strategies[1].against[0];
                let gain = against.inside.as_mut().expect("there is a gain");
                (gain.per_silo, gain.no_interval) = (None, Some(NoInterval::RareClass));
            },
            // Several intervals, which are looked at together.
            |made| {
                let other = gains("ditto", "own-fit", between(-0.1, 0.3));
                made.variants[0].strategies.push(other);
            },
            |made| {
                made.variants[0].best = Some(BestOf {
                    label: "fedavg".into(),
                    of: 3,
                    over: "own-fit".into(),
                    outside: false,
                    chosen: between(0.1, 0.3),
                    seeds: 3,
                    confirmed: None,
                });
            },
            |made| made.variants[0].strategies[0].unfinished = vec!["untuned".into()],
        ];
        for (nth, change) in changes.into_iter().enumerate() {
            assert_eq!(compared(change), [true; 3], "{nth}");
        }
        for why in [
            WhyNotKnown::FewSeeds(2),
            WhyNotKnown::NoInterval(NoInterval::RareClass),
            WhyNotKnown::Untuned(4),
        ] {
            let minutes = None;
            let not_known = |made: &mut Advice| {
                made.verdict = AdviceVerdict::NotKnown { why, minutes };
            };
            assert!(advised(not_known), "{why:?}");
        }
        assert!(advised(|made| made.unlearned = true));
        let untuned = |story: &mut Story| story.silos[1].local_tuned = None;
        assert!(simulated(untuned));
        assert!(simulated(|story| {
            untuned(story);
            story.tuning = None;
        }));
        assert!(simulated(|story| story.silos[0].constant = Some(50.0)));
        assert!(simulated(|story| {
            for silo in &mut story.silos {
                silo.gains.clear();
                (silo.test_units, silo.test_samples) = (Some(3), 3);
            }
        }));
    }
}
