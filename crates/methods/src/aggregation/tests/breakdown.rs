//! Every rule resists as many Byzantine models as documented, and the mean resists none.

use proptest::prelude::*;

use super::*;

/// Arbitrary model beside honest ones around `centre`.
#[derive(Debug, Clone)]
enum BrokenModel {
    Huge(f32),
    Flipped(f32),
    Largest,
    Near(f32),
}

impl BrokenModel {
    fn row(&self, honest: &[f32]) -> Vec<f32> {
        let value = |(place, value): (usize, &f32)| match self {
            Self::Huge(size) => *size,
            Self::Flipped(factor) => -value * factor,
            Self::Largest if place % 2 == 0 => f32::MAX,
            Self::Largest => f32::MIN,
            Self::Near(shift) => value + shift,
        };
        honest.iter().enumerate().map(value).collect()
    }
}

fn attack() -> impl Strategy<Value = BrokenModel> {
    prop_oneof![
        prop_oneof![Just(1e30f32), Just(-1e30)].prop_map(BrokenModel::Huge),
        (1.0..1e6f32).prop_map(BrokenModel::Flipped),
        Just(BrokenModel::Largest),
        (-5.0..5.0f32).prop_map(BrokenModel::Near),
    ]
}

#[derive(Debug)]
struct BreakdownCase {
    /// All models, the first `honest` of them honest.
    rows: Vec<Vec<f32>>,
    honest: usize,
    /// The order in which they come.
    order: Vec<usize>,
}

impl BreakdownCase {
    fn byzantine(&self) -> usize {
        self.rows.len() - self.honest
    }

    fn models(&self) -> Vec<Params> {
        self.order
            .iter()
            .map(|&row| model(&self.rows[row]))
            .collect()
    }

    fn honest(&self) -> &[Vec<f32>] {
        &self.rows[..self.honest]
    }

    /// The largest distance between two honest models.
    fn spread(&self) -> f64 {
        let all = self
            .honest()
            .iter()
            .flat_map(|a| self.honest().iter().map(|b| distance(a, b)));
        all.fold(0.0, f64::max)
    }

    /// Distance of the nearest honest model.
    fn distance(&self, combined: &Params) -> f64 {
        let all = self
            .honest()
            .iter()
            .map(|row| distance(row, combined.values()));
        all.fold(f64::INFINITY, f64::min)
    }

    /// Returns whether every value is within the range of the honest ones.
    fn within(&self, combined: &Params) -> bool {
        (0..self.rows[0].len()).all(|place| {
            let values = || self.honest().iter().map(|row| row[place]);
            let (low, high) = (
                values().fold(f32::MAX, f32::min),
                values().fold(f32::MIN, f32::max),
            );
            (low..=high).contains(&combined.values()[place])
        })
    }
}

/// `2f + 3` or more models, `f` of them attacks.
fn case() -> impl Strategy<Value = BreakdownCase> {
    (1..4usize, 0..4usize, 1..40usize).prop_flat_map(|(byzantine, beside, len)| {
        let honest = byzantine + 3 + beside;
        let rows = prop::collection::vec(prop::collection::vec(-2.0f32..3.0, len), honest);
        let attacks = prop::collection::vec(attack(), byzantine);
        let order: Vec<usize> = (0..honest + byzantine).collect();
        (rows, attacks, Just(order).prop_shuffle()).prop_map(move |(mut rows, attacks, order)| {
            for attack in attacks {
                let row = attack.row(&rows[0]);
                rows.push(row);
            }
            BreakdownCase {
                rows,
                honest,
                order,
            }
        })
    })
}

proptest! {
    #[test]
    fn coordinate_wise_rules_stay_within_the_honest_range(case in case()) {
        let share = case.byzantine() as f64 / case.rows.len() as f64;
        for rule in [Aggregation::CoordinateMedian, Aggregation::TrimmedMean { share }] {
            prop_assert!(case.within(&combine(&rule, &case.models())), "{}", rule.name());
        }
        // Mixed Byzantine models are bounded by their honest neighbours; mixed honest models by
        // Byzantine models as near as honest ones.
        let rule = mixed(case.byzantine(), Aggregation::CoordinateMedian);
        let far = case.distance(&combine(&rule, &case.models()));
        prop_assert!(far <= 2.0 * case.spread() * (case.rows[0].len() as f64).sqrt());
    }

    #[test]
    fn a_geometric_median_stays_in_the_ball_of_the_honest(case in case()) {
        let share = case.byzantine() as f64 / case.rows.len() as f64;
        let factor = (1.0 - share) / (1.0 - 2.0 * share).sqrt();
        let median = combine(&named("geometric-median"), &case.models());
        for point in case.honest() {
            let farthest = case.honest().iter().map(|row| distance(row, point)).fold(0.0, f64::max);
            let own = distance(median.values(), point);
            prop_assert!(own <= factor * farthest * 1.01 + 1e-6, "{} {}", own, farthest);
        }
    }

    #[test]
    fn krum_chooses_a_model_near_an_honest_one(case in case()) {
        let byzantine = case.byzantine();
        let chosen = combine(&Aggregation::Krum { byzantine }, &case.models());
        let near = case.rows.len() - byzantine - 2;
        prop_assert!(case.distance(&chosen) <= (near as f64).sqrt() * case.spread() + 1e-6);
    }

    /// Whoever is far away is not among the `n − f` with the best scores.
    #[test]
    fn multi_krum_leaves_out_what_is_far_away(case in case()) {
        let rule = Aggregation::MultiKrum { byzantine: case.byzantine(), select: None };
        let mean = combine(&rule, &case.models());
        let near = (case.rows.len() - case.byzantine() - 2) as f64;
        prop_assert!(case.distance(&mean) <= (1.0 + near.sqrt()) * case.spread() + 1e-6);
    }

    #[test]
    fn clipping_stays_near_where_it_starts(case in case()) {
        let median = combine(&Aggregation::CoordinateMedian, &case.models());
        let mut reach = 0.0;
        let mut centre = median.clone();
        for iterations in 1..=3 {
            // The largest radius that the honest give it.
            let honest = case.honest().iter().map(|row| distance(row, centre.values()));
            reach += honest.fold(0.0, f64::max);
            let rule = Aggregation::CentredClipping {
                radius: None,
                iterations,
                start: ClippingStart::CoordinateMedian,
            };
            centre = combine(&rule, &case.models());
            let far = distance(centre.values(), median.values());
            prop_assert!(far <= reach * (1.0 + 1e-5) + 1e-6, "{} {}", far, reach);
        }
    }

    /// Any number of Byzantine models, as long as the trusted model is honest.
    #[test]
    fn trust_moves_no_farther_than_the_trusted_model(
        case in case(),
        trusted in prop::collection::vec(-2.0f32..3.0, 40),
    ) {
        let len = case.rows[0].len();
        let (start, trusted) = (model(&vec![0.5; len]), model(&trusted[..len]));
        let references = ReferenceModels { start: Some(&start), trusted: Some(&trusted) };
        let byzantine: Vec<Params> = case.models();
        let combined = Aggregation::TrustWeighted.combine(&equally(&byzantine), references).unwrap();
        let reach = distance(trusted.values(), start.values());
        prop_assert!(distance(combined.values(), start.values()) <= reach * (1.0 + 1e-5));
    }

    /// One model moves the mean anywhere.
    #[test]
    fn the_mean_withstands_nothing(case in case()) {
        let mut models = models(case.honest());
        models.push(model(&vec![1e30; case.rows[0].len()]));
        let mean = combine(&Aggregation::Mean, &models);
        prop_assert!(!case.within(&mean));
        prop_assert!(case.distance(&mean) > 1e6 * (case.spread() + 1.0));
    }
}

/// With more Byzantine models than a rule assumes it breaks: the tests above can fail.
#[test]
fn rules_break_beyond_their_breakdown_point() {
    let mut rows: Vec<Vec<f32>> = (0..5).map(|row| vec![row as f32 / 10.0; 4]).collect();
    rows.extend(vec![vec![1e30; 4]; 6]);
    let all = models(&rows);
    for rule in robust(2, 11) {
        let far = f64::from(combine(&rule, &all).values()[0]);
        assert!(far > 1e20, "{} {far}", rule.name());
    }
}

/// Distances ignore buffers: their medians resist one Byzantine model.
#[test]
fn every_rule_but_the_mean_resists_bad_buffers() {
    let specs = [("statistics", Role::Buffer), ("weights", Role::Weight)];
    let specs = specs.map(|(name, role)| TensorSpec::new(name, [2], role));
    let layout = Layout::new(specs.to_vec()).unwrap();
    let mut all: Vec<Params> = (0..6u8)
        .map(|row| Params::from_values(&layout, &[1.0, 2.0, f32::from(row), 1.0]))
        .collect();
    // The best of all by its weights, and by nothing else.
    all.insert(2, Params::from_values(&layout, &[1e30, -1e30, 2.5, 1.0]));
    let references = ReferenceModels {
        start: Some(&all[0]),
        trusted: Some(&all[1]),
    };
    let rules = [robust(1, 7), vec![Aggregation::TrustWeighted]].concat();
    for rule in rules {
        let combined = rule.combine(&equally(&all), references).unwrap();
        assert_eq!(
            combined.tensor("statistics").unwrap(),
            [1.0, 2.0],
            "{}",
            rule.name()
        );
    }
    let mean = combine(&Aggregation::Mean, &all);
    assert!(mean.tensor("statistics").unwrap()[0] > 1e29);
}

/// With self-reported weights one Byzantine member dominates; equal weights prevent that.
#[test]
fn byzantine_weights_break_every_weighted_rule() {
    let mut rows: Vec<Vec<f32>> = (0..6).map(|row| vec![row as f32; 3]).collect();
    rows.push(vec![1e30; 3]);
    let all = models(&rows);
    let mut weights = [1.0; 7];
    weights[6] = 1e9;
    for rule in [
        Aggregation::CoordinateMedian,
        named("geometric-median"),
        named("centred-clipping"),
    ] {
        let combined = rule
            .combine(&weighted(&all, &weights), ReferenceModels::default())
            .unwrap();
        assert!(combined.values()[0] > 1e20, "{}", rule.name());
        assert!(combine(&rule, &all).values()[0] <= 5.0, "{}", rule.name());
    }
}
