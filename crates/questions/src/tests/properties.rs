//! Permutations of rows, and of their sites, change no pooled answer.

use proptest::prelude::*;

use super::small::{cox, model, ranges, tables};
use super::*;
use crate::QuestionRound;
use crate::kinds::TimeGrid;
use crate::kinds::correlate::Correlate;
use crate::kinds::cox::Ties;
use crate::kinds::crosstab::Crosstab;
use crate::kinds::describe::Describe;
use crate::kinds::glm::GlmFamily;
use crate::kinds::km::Km;
use crate::kinds::logrank::Logrank;
use crate::kinds::quantiles::Quantiles;
use crate::kinds::trees::Trees;
use crate::table::CellColumn;

/// All rows of the small tables, as sites by this number for each row, in this order.
fn dealt(order: &[usize], to: &[usize], sites: usize) -> Vec<RowTable> {
    let all = tables();
    let names: Vec<String> = all[0].names().map(str::to_owned).collect();
    let column = |name: &String| -> Vec<f64> {
        let each = all.iter().flat_map(|table| match table.cells(name) {
            Some(CellColumn::Numbers(cells)) => {
                cells.iter().flatten().copied().collect::<Vec<f64>>()
            }
            other => panic!("{other:?}"),
        });
        each.collect()
    };
    let columns: Vec<Vec<f64>> = names.iter().map(column).collect();
    let site = |site: usize| {
        let rows: Vec<usize> = order
            .iter()
            .copied()
            .filter(|row| to[*row] == site)
            .collect();
        names
            .iter()
            .zip(&columns)
            .fold(RowTable::new(rows.len()), |table, (name, column)| {
                let cells: Vec<f64> = rows.iter().map(|row| column[*row]).collect();
                table.with(name, &cells)
            })
    };
    (0..sites).map(site).collect()
}

fn pooled_kinds() -> Vec<Kind> {
    let grid = TimeGrid {
        step: 1.0,
        cells: 8,
    };
    let (time, event) = ("time".to_owned(), "cause > 0".to_owned());
    vec![
        Kind::Describe(Describe {
            columns: words(&["a", "number", "b = 1"]),
            group: Some("b".to_owned()),
        }),
        Kind::Quantiles(Quantiles {
            columns: words(&["a", "number"]),
            probabilities: vec![0.25, 0.5],
            width: None,
        }),
        Kind::Crosstab(Crosstab {
            rows: "b".to_owned(),
            columns: "cause".to_owned(),
        }),
        Kind::Correlate(Correlate {
            columns: words(&["a", "number"]),
        }),
        Kind::Km(Km {
            time: time.clone(),
            event: "cause".to_owned(),
            causes: 2,
            grid,
            group: Some("b".to_owned()),
        }),
        Kind::Logrank(Logrank {
            time,
            event,
            group: "b".to_owned(),
            grid: Some(grid),
        }),
        Kind::Trees(Trees {
            outcome: "number".to_owned(),
            columns: words(&["a", "b", "y = 1"]),
            trees: 3,
            depth: 2,
            rate: 0.3,
            lambda: 1.0,
            min_rows: 20,
            min_hessian: 1e-3,
            bins: 8,
            edges: Default::default(),
            held_out: 0.0,
        }),
    ]
}

/// Numbers of an answer, for comparison.
fn numbers(outcome: &Outcome) -> Vec<f64> {
    fn collect(value: &serde_json::Value, found: &mut Vec<f64>) {
        match value {
            serde_json::Value::Number(number) => found.extend(number.as_f64()),
            serde_json::Value::Array(values) => {
                values.iter().for_each(|value| collect(value, found))
            }
            serde_json::Value::Object(fields) => {
                fields.values().for_each(|value| collect(value, found))
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&serde_json::to_value(outcome).unwrap(), &mut found);
    found
}

fn question(kind: Kind) -> FederatedQuestion {
    FederatedQuestion {
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(kind, ranges())
    }
}

fn sums(rounds: &[QuestionRound]) -> Vec<Vec<u64>> {
    let bits = |round: &QuestionRound| {
        round
            .sum
            .numbers
            .iter()
            .map(|number| number.to_bits())
            .collect()
    };
    rounds.iter().map(bits).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dealing_rows_to_other_sites_changes_no_pooled_answer(to in proptest::collection::vec(0_usize..5, 42)) {
        let order: Vec<usize> = (0..42).collect();
        let (one, many) = (dealt(&order, &[0; 42], 1), dealt(&order, &to, 5));
        for kind in pooled_kinds() {
            let of = |sites: &[RowTable]| numbers(&asked(&question(kind.clone()), sites).end.unwrap());
            for (left, right) in of(&one).into_iter().zip(of(&many)) {
                prop_assert!((left - right).abs() <= 1e-6 * (1.0 + left.abs()), "{left} {right} {kind:?}");
            }
        }
    }

    #[test]
    fn the_order_of_rows_and_sites_changes_no_bit(order in Just((0_usize..42).collect::<Vec<_>>()).prop_shuffle(), sites in Just(vec![0_usize, 1, 2]).prop_shuffle()) {
        let to: Vec<usize> = (0..42).map(|row| row / 14).collect();
        let straight = dealt(&(0..42).collect::<Vec<_>>(), &to, 3);
        let mixed = dealt(&order, &to, 3);
        let mixed: Vec<RowTable> = sites.iter().map(|site| mixed[*site].clone()).collect();
        let mut kinds = pooled_kinds();
        kinds.extend([
            Kind::Glm(model(GlmFamily::Binomial, "y")),
            Kind::Glm(model(GlmFamily::NegativeBinomial, "over")),
            Kind::Cox(cox(Ties::Efron, true)),
        ]);
        for kind in kinds {
            let (left, right) = (asked(&question(kind.clone()), &straight), asked(&question(kind), &mixed));
            prop_assert_eq!(sums(&left.rounds), sums(&right.rounds));
            prop_assert_eq!(left.end, right.end);
        }
    }
}

#[test]
fn every_question_and_its_progress_survive_serialisation() {
    let mut kinds = pooled_kinds();
    kinds.push(Kind::Glm(model(GlmFamily::Poisson, "c")));
    kinds.push(Kind::Cox(cox(Ties::Breslow, true)));
    for kind in kinds {
        let question = question(kind);
        let text = serde_json::to_string(&question).unwrap();
        assert_eq!(
            serde_json::from_str::<FederatedQuestion>(&text).unwrap(),
            question
        );
        let found = asked(&question, &tables());
        for round in &found.rounds {
            let text = serde_json::to_string(&round.progress).unwrap();
            assert_eq!(
                serde_json::from_str::<crate::QuestionProgress>(&text).unwrap(),
                round.progress
            );
        }
        // Whoever has the sums takes the same steps.
        for pair in found.rounds.windows(2) {
            let next = question.step(&pair[0].progress, &pair[0].sum);
            assert_eq!(next, crate::Step::Next(pair[1].progress.clone()));
        }
    }
}

#[test]
fn merged_sites_with_strata_have_the_same_hazard_ratios() {
    let order: Vec<usize> = (0..42).collect();
    let merged = dealt(&order, &[0; 42], 1).remove(0);
    let place: Vec<f64> = order.iter().map(|row| (row / 14) as f64).collect();
    let mut agreed = ranges();
    agreed
        .levels
        .insert("place".to_owned(), words(&["0", "1", "2"]));
    let all = crate::kinds::cox::Cox {
        robust: true,
        concordance: true,
        ..cox(Ties::Efron, true)
    };
    let by_place = crate::kinds::cox::Cox {
        strata: Some("place".to_owned()),
        ..all.clone()
    };
    let apart = numbers(&answer(Kind::Cox(all), &agreed, &tables()));
    let together = numbers(&answer(
        Kind::Cox(by_place),
        &agreed,
        &[merged.with("place", &place)],
    ));
    assert_eq!(apart.len(), together.len());
    for (left, right) in apart.into_iter().zip(together) {
        assert!(
            (left - right).abs() <= 1e-7 * (1.0 + left.abs()),
            "{left} {right}"
        );
    }
}
