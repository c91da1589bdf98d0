//! Attacks on answers: each succeeds where its rule is not checked, and is refused by the rule.

#![allow(clippy::unwrap_used)]

use super::{AnswerRecord, AnswerRules, Broken};
use crate::kinds::describe::Describe;
use crate::kinds::glm::{Glm, GlmFamily};
use crate::kinds::meta::{Meta, SiteEffect};
use crate::table::{CellColumn, RowTable};
use crate::tests::{WITHOUT_LIMITS, agreed, near, words};
use crate::{
    AgreedColumns, AskedNothing, AskedQuestion, FederatedQuestion, Kind, Outcome, QuestionMode,
    QuestionProgress, QuestionRules, SiteRefusal, ask,
};

/// Rows of each of four sites.
const ROWS: usize = 60;

fn site(number: usize) -> RowTable {
    let column = |of: &dyn Fn(usize) -> f64| (0..ROWS).map(of).collect::<Vec<f64>>();
    let mixed = |row: usize, times: usize, below: usize| {
        ((row * times + number * 13 + row * row) % below) as f64
    };
    RowTable::new(ROWS)
        .with("age", &column(&|row| 40.0 + mixed(row, 7, 50)))
        .with("dose", &column(&|row| mixed(row, 11, 97) / 10.0))
        .with(
            "ill",
            &column(&|row| f64::from(u8::from(mixed(row, 5, 9) > 4.0))),
        )
        .with("ward", &column(&|row| (row % 3) as f64))
}

/// Four sites; at the first one a single patient is 97 years old.
pub(super) fn sites() -> Vec<RowTable> {
    let mut sites: Vec<RowTable> = (0..4).map(site).collect();
    let ages: Vec<f64> = match sites[0].cells("age") {
        Some(CellColumn::Numbers(cells)) => cells.iter().flatten().copied().collect(),
        other => panic!("{other:?}"),
    };
    let mut oldest = ages;
    oldest[17] = 97.0;
    let cells = oldest.into_iter().map(Some).collect();
    sites[0].insert("age", CellColumn::Numbers(cells));
    sites
}

fn dose_of_the_oldest() -> f64 {
    match sites()[0].cells("dose") {
        Some(CellColumn::Numbers(cells)) => cells[17].unwrap(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn known() -> AgreedColumns {
    agreed(
        &[("age", [0.0, 120.0]), ("dose", [0.0, 10.0])],
        &[("ward", &["0", "1", "2"])],
    )
}

/// The mean dose of the rows of a filter.
fn doses(filter: &[&str], group: Option<&str>) -> FederatedQuestion {
    let kind = Describe {
        columns: words(&["dose"]),
        group: group.map(str::to_owned),
    };
    let filter = filter.iter().map(|text| text.parse().unwrap()).collect();
    FederatedQuestion {
        filter,
        ..FederatedQuestion::new(Kind::Describe(kind), known())
    }
}

/// A question without what sites check.
pub(super) fn unguarded(question: &FederatedQuestion, sites: &[RowTable]) -> AskedQuestion {
    ask(question, sites, |_, _, _| Ok(())).unwrap()
}

/// A question of which every site checks every round by its record and these rules.
pub(super) fn guarded(
    question: &FederatedQuestion,
    sites: &[RowTable],
    records: &mut [AnswerRecord],
    rules: &AnswerRules,
) -> Result<Outcome, AskedNothing> {
    if let Some((_, outcome)) = records[0]
        .stored(question)
        .and_then(|stored| stored.answer.clone())
    {
        return Ok(outcome);
    }
    let mut opened = 0;
    let found = ask(question, sites, |site, progress, vector| {
        if *progress == QuestionProgress::Counts {
            records[site].check(question, &sites[site], rules)?;
        }
        records[site].check_round(question, &sites[site], rules, progress, opened)?;
        if site + 1 == sites.len() {
            opened += vector.len() as u64;
        }
        Ok(())
    });
    let found = found.unwrap();
    for (record, table) in records.iter_mut().zip(sites) {
        record.keep(question, table, &found);
    }
    found.end
}

pub(super) fn records() -> Vec<AnswerRecord> {
    vec![AnswerRecord::default(); 4]
}

#[track_caller]
pub(super) fn breaks(found: Result<Outcome, AskedNothing>, rule: &str) {
    let Err(AskedNothing::Refused {
        why: SiteRefusal::Rule(broken),
        ..
    }) = found
    else {
        panic!("{found:?}")
    };
    let text = broken.to_string();
    assert!(
        text.contains(&format!("(rule {rule})")) && text.contains(": "),
        "{text}"
    );
    assert!(
        !text.chars().any(|letter| letter.is_ascii_digit()) || !text.contains("97"),
        "{text}"
    );
}

/// Rows and sum of doses of an answer, of one group.
fn rows_and_sum(outcome: &Outcome, group: usize) -> [f64; 2] {
    match outcome {
        Outcome::Describe(found) => {
            let column = &found.columns[group];
            [column.known, column.known * column.mean.unwrap()]
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_filters_that_differ_in_one_patient_tell_its_dose() {
    let (all, younger) = (doses(&[], None), doses(&["age < 97"], None));
    let of = |question| rows_and_sum(&unguarded(question, &sites()).end.unwrap(), 0);
    let ([rows, sum], [fewer, less]) = (of(&all), of(&younger));
    assert_eq!(rows - fewer, 1.0);
    near(sum - less, dose_of_the_oldest(), 1e-6);
    let mut records = records();
    let rules = AnswerRules::default();
    assert!(guarded(&all, &sites(), &mut records, &rules).is_ok());
    breaks(guarded(&younger, &sites(), &mut records, &rules), "pieces");
}

#[test]
fn groups_inside_groups_tell_one_patients_dose() {
    // The ward's mean, and the mean of the ward without its oldest patient.
    let (wards, younger) = (doses(&[], Some("ward")), doses(&["age < 97"], Some("ward")));
    let ward = 17 % 3;
    let of = |question| rows_and_sum(&unguarded(question, &sites()).end.unwrap(), ward);
    let ([rows, sum], [fewer, less]) = (of(&wards), of(&younger));
    assert_eq!(rows - fewer, 1.0);
    near(sum - less, dose_of_the_oldest(), 1e-6);
    let mut records = records();
    let rules = AnswerRules::default();
    assert!(guarded(&wards, &sites(), &mut records, &rules).is_ok());
    breaks(guarded(&younger, &sites(), &mut records, &rules), "pieces");
    // Two cuts that each leave many rows, and together few: ward 2 above and below.
    let mut fresh = vec![AnswerRecord::default(); 4];
    assert!(guarded(&doses(&["ward = 2"], None), &sites(), &mut fresh, &rules).is_ok());
    breaks(
        guarded(&doses(&["age >= 86"], None), &sites(), &mut fresh, &rules),
        "pieces",
    );
}

#[test]
fn a_missing_cell_tells_a_patient_apart_without_any_filter() {
    let mut sites = sites();
    let weights = (0..ROWS)
        .map(|row| (row != 17).then_some(70.0 + (row % 9) as f64))
        .collect();
    sites[0].insert("weight", CellColumn::Numbers(weights));
    for site in &mut sites[1..] {
        let weights = (0..ROWS).map(|row| Some(70.0 + (row % 7) as f64)).collect();
        site.insert("weight", CellColumn::Numbers(weights));
    }
    let mut agreed = known();
    agreed.ranges.insert("weight".to_owned(), [0.0, 200.0]);
    let both = crate::kinds::correlate::Correlate {
        columns: words(&["dose", "weight"]),
    };
    let both = FederatedQuestion::new(Kind::Correlate(both), agreed);
    let Ok(Outcome::Correlate(found)) = unguarded(&both, &sites).end else {
        panic!()
    };
    let [rows, sum] = rows_and_sum(&unguarded(&doses(&[], None), &sites).end.unwrap(), 0);
    assert_eq!(rows - found.rows, 1.0);
    near(
        sum - found.rows * found.means[0],
        dose_of_the_oldest(),
        1e-5,
    );
    let (mut records, rules) = (records(), AnswerRules::default());
    assert!(guarded(&both, &sites, &mut records, &rules).is_ok());
    breaks(
        guarded(&doses(&[], None), &sites, &mut records, &rules),
        "pieces",
    );
}

#[test]
fn a_row_that_came_since_an_answer_is_not_its_difference() {
    let before = sites();
    let mut after = sites();
    let grown = RowTable::new(ROWS + 1);
    let with = |table: RowTable, name: &str| {
        let mut cells = match before[0].cells(name) {
            Some(CellColumn::Numbers(cells)) => cells.clone(),
            other => panic!("{other:?}"),
        };
        cells.push(Some(7.5));
        let mut table = table;
        table.insert(name, CellColumn::Numbers(cells));
        table
    };
    after[0] = before[0].names().fold(grown, with);
    let question = doses(&["age >= 0"], None);
    let [_, sum] = rows_and_sum(&unguarded(&doses(&[], None), &before).end.unwrap(), 0);
    let [_, more] = rows_and_sum(&unguarded(&question, &after).end.unwrap(), 0);
    near(more - sum, 7.5, 1e-6);
    let (mut records, rules) = (records(), AnswerRules::default());
    assert!(guarded(&doses(&[], None), &before, &mut records, &rules).is_ok());
    breaks(guarded(&question, &after, &mut records, &rules), "pieces");
    // The identical question has its stored answer, of the rows then.
    let stored = guarded(&doses(&[], None), &after, &mut records, &rules).unwrap();
    near(rows_and_sum(&stored, 0)[1], sum, 1e-9);
}

#[test]
fn a_member_subtracts_its_own_rows_from_the_sum() {
    // One site has five rows, the other one sixty of its own.
    let few = |table: &RowTable| {
        table
            .names()
            .fold(RowTable::new(5), |few, name| match table.cells(name) {
                Some(CellColumn::Numbers(cells)) => {
                    let cells: Vec<f64> = cells.iter().take(5).flatten().copied().collect();
                    few.with(name, &cells)
                }
                other => panic!("{other:?}"),
            })
    };
    let own = site(1);
    let others = few(&site(0));
    let both = [others.clone(), own.clone()];
    let question = doses(&[], None);
    let [rows, sum] = rows_and_sum(&unguarded(&question, &both).end.unwrap(), 0);
    let [mine, my_sum] = rows_and_sum(&unguarded(&question, &[own]).end.unwrap(), 0);
    assert_eq!(rows - mine, 5.0);
    let theirs = FederatedQuestion {
        rules: WITHOUT_LIMITS,
        ..question.clone()
    };
    near(
        sum - my_sum,
        rows_and_sum(&unguarded(&theirs, &[others]).end.unwrap(), 0)[1],
        1e-6,
    );
    let mut records = vec![AnswerRecord::default(); 2];
    let rules = AnswerRules {
        unknowns_per_number: 0.1,
        ..AnswerRules::default()
    };
    breaks(guarded(&question, &both, &mut records, &rules), "dominance");
}

#[test]
fn many_different_questions_tell_all_rows_in_the_end() {
    // Every cut of age tells how many are younger: together all ages of all rows.
    let cuts: Vec<String> = (41..=90).map(|age| format!("age < {age}")).collect();
    let proportions = |terms: &[String]| {
        let kind = Describe {
            columns: terms.to_vec(),
            group: None,
        };
        FederatedQuestion::new(Kind::Describe(kind), known())
    };
    let Ok(Outcome::Describe(found)) = unguarded(&proportions(&cuts), &sites()).end else {
        panic!()
    };
    let younger: Vec<f64> = found
        .columns
        .iter()
        .map(|column| column.known * column.mean.unwrap())
        .collect();
    let at_40: f64 = sites()
        .iter()
        .map(|site| site.filtered(&["age = 40".parse().unwrap()]).unwrap().len() as f64)
        .sum();
    near(younger[0], at_40, 1e-6);
    let (mut records, rules) = (records(), AnswerRules::default());
    let mut answered = 0;
    let refused = cuts.chunks(10).find_map(|cuts| {
        let found = guarded(&proportions(cuts), &sites(), &mut records, &rules);
        answered += usize::from(found.is_ok());
        found.is_err().then_some(found)
    });
    breaks(refused.unwrap(), "numbers");
    assert!((1..5).contains(&answered), "{answered}");
}

#[test]
fn asking_again_opens_nothing_and_counts_nothing() {
    let (mut records, rules) = (records(), AnswerRules::default());
    let question = doses(&[], None);
    let first = guarded(&question, &sites(), &mut records, &rules).unwrap();
    for _ in 0..100 {
        assert_eq!(
            guarded(&question, &sites(), &mut records, &rules).unwrap(),
            first
        );
    }
    assert_eq!(records[0].answered.len(), 1);
    // The record is kept between runs.
    let text = serde_json::to_string(&records[0]).unwrap();
    assert_eq!(
        serde_json::from_str::<AnswerRecord>(&text).unwrap(),
        records[0]
    );
}

#[test]
fn two_sites_solve_their_sums_for_each_others_estimates() {
    let effect = SiteEffect::Mean {
        column: "dose".to_owned(),
    };
    let question = |reml, mode| FederatedQuestion {
        mode,
        ..FederatedQuestion::new(
            Kind::Meta(Meta {
                effect: effect.clone(),
                reml,
            }),
            known(),
        )
    };
    let two: Vec<RowTable> = sites().into_iter().take(2).collect();
    let masked = question(false, QuestionMode::Masked);
    let found = unguarded(&masked, &two);
    // Of two sites one knows its own w, and so the other's mean.
    let round = &found.rounds[1].sum;
    let own = unguarded(&masked, &two[..1]);
    assert!(own.end.is_err());
    let own = &own.rounds[1].sum;
    let mean =
        (round.one("weighted") - own.one("weighted")) / (round.one("weights") - own.one("weights"));
    let [rows, sum] = rows_and_sum(&unguarded(&doses(&[], None), &two[1..]).end.unwrap(), 0);
    near(5.0 + 5.0 * mean, sum / rows, 1e-6);
    let rules = AnswerRules::default();
    breaks(
        guarded(
            &masked,
            &two,
            &mut [AnswerRecord::default(), AnswerRecord::default()],
            &rules,
        ),
        "numbers",
    );
    let reml = question(true, QuestionMode::Masked);
    breaks(
        guarded(
            &reml,
            &two,
            &mut [AnswerRecord::default(), AnswerRecord::default()],
            &rules,
        ),
        "numbers",
    );
    let clear = question(true, QuestionMode::Clear);
    assert!(
        guarded(
            &clear,
            &two,
            &mut [AnswerRecord::default(), AnswerRecord::default()],
            &rules
        )
        .is_ok()
    );
}

/// The attack that rule N stops under masks: the sums of REML at one value of τ² have as many numbers as three sites have
/// estimates and weights, and those at another value check the solution.
#[test]
fn one_of_four_solves_the_sums_of_reml_for_the_estimates_of_three() {
    let effect = SiteEffect::Given {
        estimate: "y".to_owned(),
        variance: "v".to_owned(),
    };
    let reml = FederatedQuestion {
        rules: QuestionRules {
            smallest_cell: 1,
            ..QuestionRules::default()
        },
        exponent: 8,
        ..FederatedQuestion::new(Kind::Meta(Meta { effect, reml: true }), known())
    };
    let truth = [(0.1, 0.05), (0.5, 0.02), (-0.2, 0.08), (0.8, 0.04)];
    let sites: Vec<_> = truth
        .iter()
        .map(|(y, v)| {
            let mut table = RowTable::new(1);
            table.insert("y", CellColumn::Numbers(vec![Some(*y)]));
            table.insert("v", CellColumn::Numbers(vec![Some(*v)]));
            table
        })
        .collect();
    let found = unguarded(&reml, &sites);
    let mut checked = 0;
    for round in found
        .rounds
        .iter()
        .filter(|round| !round.sum.block("of reml").is_empty())
    {
        // The last one knows its own numbers, and subtracts them from the sum.
        let own = reml.answer(&sites[3], &round.progress).unwrap();
        let left = round.layout.opened(
            round
                .sum
                .numbers
                .iter()
                .zip(&own)
                .map(|(sum, own)| sum - own)
                .collect(),
        );
        let powers = [
            left.one("weights"),
            left.one("squared weights"),
            left.block("of reml")[2],
        ];
        let weights = roots(powers);
        let sums = [
            left.one("weighted"),
            left.block("of reml")[0],
            left.block("of reml")[3],
        ];
        let estimates = estimates(weights, sums);
        // Both values of τ² tell the same estimates, which are the true ones.
        let mut expected: Vec<f64> = truth[..3].iter().map(|(y, _)| *y).collect();
        let mut told = estimates.to_vec();
        expected.sort_by(f64::total_cmp);
        told.sort_by(f64::total_cmp);
        for (told, expected) in told.iter().zip(&expected) {
            assert!((told - expected).abs() < 1e-4, "{told} and {expected}");
        }
        checked += 1;
    }
    assert!(checked >= 2, "{checked} values of τ²");
    let refused = guarded(
        &reml,
        &sites,
        &mut vec![AnswerRecord::default(); 4],
        &AnswerRules {
            smallest_cell: 1,
            ..AnswerRules::default()
        },
    );
    breaks(refused, "numbers");
}

/// The three numbers with these sums of first, second and third powers: roots of the cubic whose coefficients follow from
/// Newton's identities.
fn roots([p1, p2, p3]: [f64; 3]) -> [f64; 3] {
    let (e1, e2) = (p1, (p1 * p1 - p2) / 2.0);
    let e3 = (e2 * p1 - e1 * p2 + p3) / 3.0;
    // x = t + e1/3 has no square; three real roots by the cosine.
    let (p, q) = (
        e2 - e1 * e1 / 3.0,
        -2.0 * e1 * e1 * e1 / 27.0 + e1 * e2 / 3.0 - e3,
    );
    let radius = 2.0 * (-p / 3.0).sqrt();
    let angle = (3.0 * q / (p * radius)).clamp(-1.0, 1.0).acos();
    std::array::from_fn(|k| {
        let turn = 2.0 * std::f64::consts::PI * k as f64;
        radius * libm::cos((angle - turn) / 3.0) + e1 / 3.0
    })
}

/// The estimates y with Σwy, Σw²y and Σw³y, by Lagrange's polynomials.
fn estimates(weights: [f64; 3], [first, second, third]: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| {
        let (w, a, b) = (weights[k], weights[(k + 1) % 3], weights[(k + 2) % 3]);
        (third - (a + b) * second + a * b * first) / (w * (w - a) * (w - b))
    })
}

#[test]
fn a_small_site_does_not_answer_where_all_see_its_vector() {
    let glm = Glm {
        family: GlmFamily::Binomial,
        outcome: "ill".to_owned(),
        terms: words(&["age", "dose"]),
        offset: None,
        weights: None,
        ridge: 0.0,
        robust: false,
        clustered: false,
        without: Vec::new(),
    };
    let rules = QuestionRules {
        rows_per_coefficient: 31,
        ..QuestionRules::default()
    };
    let question = FederatedQuestion {
        rules,
        mode: QuestionMode::Clear,
        ..FederatedQuestion::new(Kind::Glm(glm), known())
    };
    let own = AnswerRules {
        unknowns_per_number: 0.1,
        ..AnswerRules::default()
    };
    breaks(guarded(&question, &sites(), &mut records(), &own), "clear");
    let masked = FederatedQuestion {
        mode: QuestionMode::Masked,
        ..question
    };
    assert!(guarded(&masked, &sites(), &mut records(), &own).is_ok());
}

#[test]
fn an_institution_forbids_kinds_columns_and_cuts() {
    let check = |rules: &AnswerRules, question: &FederatedQuestion| {
        guarded(question, &sites(), &mut records(), rules)
    };
    let kinds = AnswerRules {
        kinds: Some(words(&["km"])),
        ..AnswerRules::default()
    };
    breaks(check(&kinds, &doses(&[], None)), "kinds");
    let forbidden = AnswerRules {
        forbidden_columns: words(&["dose"]),
        ..AnswerRules::default()
    };
    breaks(check(&forbidden, &doses(&[], None)), "forbidden-columns");
    let forbidden = AnswerRules {
        forbidden_columns: words(&["age"]),
        ..AnswerRules::default()
    };
    breaks(
        check(&forbidden, &doses(&["age >= 60"], None)),
        "forbidden-columns",
    );
    let cuts = AnswerRules {
        cuts: [("age".to_owned(), vec![60.0])].into(),
        ..AnswerRules::default()
    };
    breaks(check(&cuts, &doses(&["age >= 61"], None)), "cuts");
    assert!(check(&cuts, &doses(&["age >= 60"], None)).is_ok());
}

#[test]
fn small_groups_stop_the_question_for_all() {
    let question = FederatedQuestion {
        filter: vec!["age >= 88".parse().unwrap()],
        ..doses(&[], Some("ward"))
    };
    let Err(AskedNothing::Stopped(why)) = unguarded(&question, &sites()).end else {
        panic!()
    };
    let text = why.to_string();
    assert!(
        text.contains("fewer than 5") && text.contains("coarser"),
        "{text}"
    );
}

#[test]
fn the_sentences_name_a_rule_and_what_to_do() {
    let broken = [
        Broken::Kind("km".to_owned()),
        Broken::Column("x".to_owned()),
        Broken::Cut("x".to_owned()),
        Broken::Pieces(5),
        Broken::Changed(5),
        Broken::Dominance("rows"),
        Broken::Clear("rows".to_owned()),
        Broken::Numbers,
        Broken::Sites(14),
        Broken::Reml,
    ];
    for broken in broken {
        let text = broken.to_string();
        assert!(text.contains("(rule ") && !text.ends_with('.'), "{text}");
    }
}
