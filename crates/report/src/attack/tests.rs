//! The pages of attacks.

use lab::attack::{AttackEstimate, CanaryRun, MembershipBound, MembershipTest};

use super::*;

fn estimate(value: f64) -> AttackEstimate {
    AttackEstimate {
        value,
        low: value - 0.02,
        high: value + 0.02,
    }
}

fn attacked(bound: Option<MembershipBound>) -> MembershipAttack {
    let test = |name: &str, auc| MembershipTest {
        name: name.into(),
        auc: estimate(auc),
    };
    MembershipAttack {
        scenario: "h<b>".into(),
        silos: 4,
        unit: "row".into(),
        rows: 486,
        rounds: 40,
        shadows: 64,
        targets: 16,
        bound,
        tests: vec![test("likelihood ratio", 0.53), test("baseline", 0.51)],
        not_tried: vec!["more shadows".into()],
    }
}

#[test]
fn a_page_has_intervals_baselines_the_bound_and_untried_attacks() {
    let bound = MembershipBound {
        words: "epsilon 1.0000".into(),
        auc: 0.5753,
    };
    let page = membership(&attacked(Some(bound)), "rota attack membership heart");
    for said in [
        "likelihood ratio",
        "0.530",
        "0.510 to 0.550",
        "guessing 0.500",
        "bound by differential privacy 0.575",
        "more shadows",
        "rota attack membership heart",
        "epsilon 1.0000",
        "h&lt;b&gt;",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("h<b>"));
    let without = membership(&attacked(None), "");
    assert!(without.contains("nothing bounds what a stronger attack finds"));
}

#[test]
fn a_page_of_canaries_has_every_run_beside_the_claim() {
    let run = |seed, right, epsilon| CanaryRun {
        seed,
        right,
        epsilon,
    };
    let found = CanaryAudit {
        scenario: "canaries".into(),
        rounds: 4,
        bound: "epsilon 1.0000".into(),
        epsilon: Some(1.0),
        delta: 1e-5,
        canaries: 370,
        guesses: 92,
        most: 3.2,
        runs: vec![run(3, 60, 0.31), run(4, 55, 0.12)],
        above: 0,
        not_tried: vec!["rows as canaries".into()],
    };
    let page = canary(&found, "rota attack canary x");
    for said in [
        "60 of 92",
        "0.31",
        "0 of 2 lower bounds are above the claimed epsilon",
        "claimed 1.000",
        "most it can show 3.200",
        "rows as canaries",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_page_of_own_rows_states_that_it_is_the_weakest_attack() {
    let losses: Vec<_> = (0..40).map(f64::from).collect();
    let found = OwnMembership::of("trial: the model", &losses, &losses);
    let page = found.map(|found| own(&found, "rota attack membership --config node.toml"));
    let page = page.unwrap_or_default();
    assert!(
        page.contains("weakest attack") && page.contains("0.500"),
        "{page}"
    );
}
