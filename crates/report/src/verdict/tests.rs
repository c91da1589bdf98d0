#![allow(clippy::unwrap_used)]
use super::*;
use crate::comparison::tests::story as made;
use lab::summary::MeanGain;

fn said(story: &Story) -> String {
    statements(story, &ComparisonTable::of(story)).join(" ")
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
fn a_model_worse_than_a_constant_is_called_so_in_sentence_one() {
    let mut story = crate::fixture::story(3, 1, 2);
    let all = story.silos.len();
    for silo in &mut story.silos {
        (silo.coalition, silo.constant) = (Some(18.0), Some(8.6));
    }
    let said = worse_than_constant(&story).unwrap();
    assert!(
        said.starts_with(
            "The federation's model is worse than a constant prediction (the mean, or"
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "over all held-out rows its mean absolute error is 18.000, that of the constant 8.600."
        ),
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
fn that_silos_learn_nothing_alone_is_the_first_sentence() {
    let mut story = made(false, 2.0, &[[Some(50.0), None, Some(45.0)]; 3]);
    let mut with = |higher, constant| {
        story.metric.higher_is_better = higher;
        for silo in &mut story.silos {
            silo.constant = Some(constant);
            (silo.local, silo.coalition) = match higher {
                true => (Some(0.96), Some(0.97)),
                false => (Some(50.0), Some(45.0)),
            };
        }
        said(&story)
    };
    let start = "A constant prediction is as good as the silos' local models (over all held-out rows 50.50 and 50.00): \
                 nothing was learned from these columns alone. ";
    let text = with(false, 50.5);
    assert!(text.starts_with(start), "{text}");
    assert!(with(false, 49.0).contains("nothing was learned"));
    assert!(!with(false, 60.0).contains("nothing was learned"));
    // Of classes of which one is frequent, a small difference is much of what there is to gain.
    assert!(with(true, 0.9595).contains("nothing was learned"));
    assert!(!with(true, 0.95).contains("nothing was learned"));
}

#[test]
fn a_gain_over_a_model_that_is_not_tuned_is_not_counted() {
    let mut summary = crate::fixture::summary(3, 1, 2);
    let counted = |summary: &lab::summary::Summary| {
        let table = ComparisonTable::of(&Story::of(summary, ""));
        table.gains.iter().flatten().count()
    };
    assert_eq!(counted(&summary), 3);
    summary.silos[1].local_tuned = None;
    assert_eq!(counted(&summary), 2);
    let text = said(&Story::of(&summary, ""));
    assert!(text.contains("; 1 could not be compared."), "{text}");
    // Where nothing is tuned, the models are called what they are, and compared.
    summary.tuning = None;
    assert_eq!(counted(&summary), 3);
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
    let who = "The federation's model is significantly better than the best model that each silo makes alone at 1 of \
               3 silos: Hospital 01 by 5.00 (95 % interval over rows +3.00 to +7.00); significantly worse at 1: \
               Hospital 02 by 3.00 (95 % interval over rows +1.00 to +5.00); at 1 the difference is not significant.";
    assert!(text.starts_with(who), "{text}");
    let mean = "The mean over all silos of the mean absolute error is 49.17 with the federation's \
                models and 50.00 with the best models that silos make alone: 0.83 better (95 % interval over rows \
                −1.17 to +2.83, not significant).";
    assert!(text.contains(mean), "{text}");
    assert!(text.contains(" Weighted by held-out rows it is "), "{text}");
}

#[test]
fn what_chance_explains_is_called_not_significant() {
    let rows = [
        [Some(50.0), Some(48.0), Some(45.0)],
        [Some(50.0), Some(51.0), Some(49.0)],
    ];
    let mut story = made(false, 9.0, &rows);
    story.gains = vec![mean_gain(3.0, 4.0)];
    let text = said(&story);
    assert!(
        text.starts_with(
            "The federation's model is not significantly better or worse than the best model that each silo makes \
             alone at any of the 2 silos. The mean"
        ),
        "{text}"
    );
    assert!(!text.contains(", significant)"), "{text}");
    story.gains = vec![mean_gain(3.0, 1.0)];
    assert!(said(&story).contains(" (95 % interval over rows +2.00 to +4.00, significant)"));
    let one = made(false, 9.0, &[[Some(50.0), None, Some(45.0)]]);
    assert!(said(&one).starts_with(
        "The federation's model is not significantly better or worse than the best model that each silo makes alone at \
         the only silo."
    ));
}

#[test]
fn no_difference_is_distinct_from_too_few_rows_at_some_silos() {
    let mut story = made(false, 2.0, &[[Some(50.0), None, Some(45.0)]; 3]);
    let mut with = |units: [usize; 3]| {
        for (silo, units) in story.silos.iter_mut().zip(units) {
            silo.gains.clear();
            (silo.test_units, silo.test_samples) = (Some(units), units);
        }
        too_few(&story)
    };
    assert_eq!(
        with([40, 12, 10]),
        "No silo can tell whether it gains: there is no finite difference."
    );
    assert_eq!(
        with([40, 2, 3]),
        "No silo can tell whether it gains: 2 have too few held-out rows (10 are needed), and at the other one \
         there is no finite difference."
    );
    assert_eq!(
        with([40, 20, 3]),
        "No silo can tell whether it gains: 1 has too few held-out rows (10 are needed), and at the others there \
         is no finite difference."
    );
}

#[test]
fn who_is_harmed_is_stated_in_sentences_also_for_one_silo() {
    let mut story = made(false, 2.0, &[[Some(50.0), None, Some(45.0)]; 3]);
    let mut with = |compared, names: &[&str]| {
        story.harmed = Some(lab::summary::Harmed {
            compared,
            not_own: 1,
            harmed: names.iter().map(|name| (*name).to_owned()).collect(),
            by_chance: 0.1,
        });
        harmed(&story).unwrap()
    };
    let chance = "(by chance about 0.1 of";
    for (said, begins) in [
        (
            with(3, &[]),
            " No silo is significantly worse off than alone ",
        ),
        (
            with(2, &[]),
            " None of the 2 silos that could be compared is significantly worse off than alone ",
        ),
        (
            with(1, &[]),
            " The only silo that could be compared is not significantly worse off than alone ",
        ),
        (
            with(1, &["north"]),
            " At the only silo that could be compared the picked model is significantly worse than the best model that \
             each silo makes alone: north ",
        ),
        (
            with(3, &["north"]),
            " At 1 of 3 silos the picked model is significantly worse than the best model that each silo makes alone: \
             north ",
        ),
    ] {
        assert!(said.starts_with(&format!("{begins}{chance}")), "{said}");
    }
}

#[test]
fn silos_that_hold_out_too_few_rows_or_persons_get_the_number() {
    let mut story = made(false, 2.0, &[[Some(50.0), None, Some(45.0)]; 3]);
    let mut few = |units: [Option<usize>; 3]| {
        for (silo, units) in story.silos.iter_mut().zip(units) {
            silo.gains.clear();
            (silo.test_units, silo.test_samples) = (units, 9);
        }
        too_few(&story)
    };
    let said = few([Some(2), Some(3), Some(2)]);
    assert_eq!(
        said,
        "Each silo holds out only 2 to 3 persons (`split.group`), too few to tell whether it gains \
         (10 are needed)."
    );
    let said = few([Some(9); 3]);
    assert_eq!(
        said,
        "Each silo holds out only 9 rows, too few to tell whether it gains (10 are needed)."
    );
    let said = few([None, Some(9), Some(9)]);
    assert!(
        said.ends_with("its models were not measured row by row."),
        "{said}"
    );
}

#[test]
fn that_local_models_were_not_tuned_is_stated() {
    let mut story = made(false, 2.0, &[[Some(50.0), None, Some(45.0)]; 3]);
    assert!(!said(&story).contains("could not be tuned"));
    story.silos[1].local_tuned = None;
    let text = said(&story);
    let some = "At 1 silo the local model could not be tuned, because rows are too few to divide, or not here: \
                Hospital 02. A gain there may be none over a tuned one: it is not counted, but the means hold it. See docs/";
    assert!(text.contains(some), "{text}");
    assert!(text.contains("better than the best model that each silo makes alone"));
    story.tuning = None;
    story
        .silos
        .iter_mut()
        .for_each(|silo| silo.local_tuned = None);
    let text = said(&story);
    let first = "The federation's model is significantly better than a model trained alone with the federation's settings \
                 at 3 of 3 silos";
    assert!(text.starts_with(first), "{text}");
    assert!(
        text.contains("this is not compared with the best that a silo makes alone"),
        "{text}"
    );
}

#[test]
fn coalitions_of_nearly_one_each_are_learning_alone() {
    let last = |sizes: &[usize]| {
        let silos = sizes.iter().sum();
        let rows = vec![[Some(50.0), None, Some(45.0)]; silos];
        let mut story = made(false, 2.0, &rows);
        let mut names = story.silos.iter().map(|silo| silo.name.clone());
        let coalitions = sizes
            .iter()
            .map(|&size| names.by_ref().take(size).collect());
        let coalitions: Vec<Vec<String>> = coalitions.collect();
        story.summary.rounds.last_mut().unwrap().coalitions = coalitions;
        said(&story)
    };
    let alone = "This is learning alone: 4 members are in 3 coalitions, nearly each in one of its own. The federation's";
    assert!(last(&[2, 1, 1]).starts_with(alone), "{}", last(&[2, 1, 1]));
    assert!(!last(&[2, 2]).contains("learning alone"));
}

#[test]
fn intervals_are_over_persons_where_rows_are_of_persons() {
    let mut story = made(false, 2.0, &[[Some(50.0), None, Some(45.0)]; 3]);
    for silo in &mut story.silos {
        (silo.test_units, silo.test_samples) = (Some(12), 40);
    }
    assert!(said(&story).contains("(95 % interval over persons +3.00 to +7.00)"));
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
    assert!(said(&story).starts_with("The federation's model is significantly better"));
    for silo in &mut story.silos[1..] {
        silo.gains.clear();
    }
    let text = said(&story);
    assert!(text.starts_with("The mean over all silos"), "{text}");
    assert!(text.contains("; 2 could not be compared."), "{text}");
}

#[test]
fn chance_is_named_where_there_are_many_silos() {
    let rows = vec![[Some(50.0), None, Some(45.0)]; 40];
    let text = said(&made(false, 2.0, &rows));
    assert!(
        text.contains(
            "and 37 more; significantly worse at 0. By chance alone about 1 of 40 would seem better, and \
             as many worse."
        ),
        "{text}"
    );
}

#[test]
fn served_pooled_and_unseen_models_are_in_it() {
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
        alone: lab::summary::ChosenAlone {
            candidate,
            metric: Some(metric),
        },
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
            " Each silo then picks the model that it will use, judged on its own rows without the held-out \
             ones, beside what all silos find (a node does so where its agreement has `[serving]`). On average over silos the mean absolute error of these models is 5.000. Picked: coalition's 1, own 1. Mean \
             over 1 silo outside the federation: 9.000 with their local models, 7.000 with one global model, \
             8.000 with the model that the federation gives them."
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

#[test]
fn that_nothing_was_measured_has_its_reason() {
    let mut story = made(true, 0.0, &[[None; 3], [None; 3]]);
    for silo in &mut story.silos {
        silo.test_samples = 50;
    }
    story.metric.name = "roc-auc".into();
    let text = said(&story);
    assert!(
        text.contains("needs some of both classes") && text.contains("(100 in all)"),
        "{text}"
    );
    story.metric.name = "log-loss".into();
    assert!(said(&story).contains("log-loss has no value on the 100 held-out rows"));
    for silo in &mut story.silos {
        silo.test_samples = 0;
    }
    assert!(said(&story).contains("no silo holds any out"));
}
