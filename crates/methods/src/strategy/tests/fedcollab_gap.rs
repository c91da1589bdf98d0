//! FedCollab with C from the gaps of the silos (`c = "gap"`, the default).

use serde_json::json;

use super::equipped::strategy_for;
use super::hospital::hospitals;
use super::quadratic::QuadraticFederation;
use super::*;

fn found(kinds: usize, rows: usize) -> QuadraticFederation {
    let strategy = strategy_for(6, "fedcollab", json!({}));
    QuadraticFederation::new(strategy, hospitals(6, kinds, rows)).rounds(2)
}

#[test]
fn silos_of_one_kind_join_and_silos_of_different_kinds_never_do() {
    for rows in [10, 20] {
        assert_eq!(found(1, rows).coalitions, [0; 6], "{rows} rows");
        // A silo may stay alone although there are others of its kind.
        let two = found(2, rows).coalitions;
        let pairs = (0..6).flat_map(|i| (0..i).map(move |j| (i, j)));
        for (i, j) in pairs {
            assert!(two[i] != two[j] || i % 2 == j % 2, "{rows} rows: {two:?}");
        }
        assert!(*two.iter().max().unwrap() < 3, "{rows} rows: {two:?}");
        assert_eq!(found(6, rows).coalitions, [0, 1, 2, 3, 4, 5], "{rows} rows");
    }
}

#[test]
fn nothing_of_the_gap_stays_in_the_models() {
    let federation = found(2, 20);
    let layout = federation.learners[0].layout();
    assert!(
        federation
            .state
            .models
            .iter()
            .all(|model| *model.layout() == layout)
    );
}

#[test]
fn impossible_gaps_are_refused() {
    let strategy = strategy_for(2, "fedcollab", json!({}));
    let contribution = strategy.expects(&genesis(), &layout(), None, 1);
    assert_ne!(contribution, layout());
    assert_eq!(strategy.expects(&genesis(), &layout(), None, 2), layout());
    let at = contribution.position("report.gap").unwrap();
    for (gap, fine) in [(0.0, true), (0.5, true), (-1.0, false), (f32::NAN, false)] {
        let entry = ModelEntry {
            model: Params::build(&contribution, |into| into[contribution.range(at)][0] = gap),
            coalition: Some(0),
            weight: Some(10),
            member: None,
        };
        assert_eq!(strategy.admit(&entry, 1).is_ok(), fine, "{gap}");
    }
}
