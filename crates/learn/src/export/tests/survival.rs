//! Models of times to an event: risk scores, and probabilities with the baseline of an institution.

use super::*;
use crate::data::Format;
use crate::schema::LocalNames;
use task::survival::{Baseline, observed};

const TIMES: &str = r#"
target = { event = "died", time = "days", unit = "days", at = [10.0, 30.5] }
[[feature]]
name = "age"
[[feature]]
name = "lab"
missing = "mean"
"#;

/// Returns what is predicted of two rows, with a baseline or without.
fn predicted(baseline: Option<Baseline>) -> (Predicted, Vec<Vec<f64>>) {
    let task = task(TIMES, "\"cox\"", "silo");
    let (card, model) = card(&task, 2);
    let predictor = Predictor::new(card, &model).unwrap();
    let predictor = predictor.with_baseline(baseline);
    let path = folder("survival").join("rows.csv");
    std::fs::write(&path, "age,lab\n60,1.5\n40,NA\n").unwrap();
    let rows = predictor
        .read(
            &path,
            &Format::default(),
            &LocalNames::default(),
            &[],
            BadRows::Refuse,
        )
        .unwrap();
    let risks = predictor.predict(&[vec![60.0, 1.5], vec![40.0, f64::NAN]]);
    (predictor.answer(&rows, None), risks)
}

#[test]
fn risk_scores_need_no_baseline_and_probabilities_do() {
    let (found, risks) = predicted(None);
    assert_eq!(found.header, ["risk_died", "note"]);
    assert_eq!((found.without, risks[0].len()), (0, 1));
    let baseline = Baseline::of(
        &[0.0; 3],
        &observed(&[1.0, 5.0, 0.0, 1.0, 20.0, 0.0, 0.0, 40.0, 0.0]),
    );
    let (with, _) = predicted(baseline.clone());
    assert_eq!(
        with.header,
        ["risk_died", "survival_10", "survival_30.5", "note"]
    );
    for ((row, plain), risk) in with.rows.iter().zip(&found.rows).zip(&risks) {
        assert_eq!(row[0], plain[0]);
        for (cell, at) in row[1..3].iter().zip([10.0, 30.5]) {
            let survival = baseline.as_ref().unwrap().survival(risk[0], at);
            let own: f64 = cell.parse().unwrap();
            assert!((own - survival).abs() < 1e-6, "{own} {survival}");
        }
    }
    // A larger score is an earlier event.
    let order = risks[0][0].total_cmp(&risks[1][0]);
    let number = |row: usize| with.rows[row][1].parse::<f64>().unwrap();
    assert_eq!(number(1).total_cmp(&number(0)), order);
}

#[test]
fn the_card_says_what_a_score_is_and_that_the_baseline_stays() {
    let task = task(TIMES, "{ mlp = { hidden = [4] } }", "silo");
    let (card, model) = card(&task, 3);
    let text = serde_json::to_value(&card).unwrap();
    assert_eq!(text["output"]["kind"], "survival");
    assert_eq!(text["output"]["event"], "died");
    assert_eq!(serde_json::from_value::<Card>(text.clone()).unwrap(), card);
    let page = markdown(&card, &[]);
    assert!(
        page.contains("A risk score for died by the time in days"),
        "{page}"
    );
    assert!(page.contains("at 10, 30.5 (days)") && page.contains("stays there"));
    let file = folder("survival-file").join("m.safetensors");
    std::fs::write(&file, safetensors(&card, &model)).unwrap();
    assert_eq!(read(&file).unwrap().0, card);
}
