//! Losses of local and global models by folds: those of scikit-learn, and what they say of learning together.

use super::data::{heart, heart_ranges};
use super::*;
use crate::kinds::baselines::{Baselines, BaselinesOutcome, TogetherOrAlone};
use crate::outcome::{LEVEL, sheets};
use crate::table::CellColumn;

fn baselines(outcome: &str, terms: &[&str]) -> Baselines {
    Baselines {
        outcome: outcome.to_owned(),
        terms: words(terms),
        folds: 5,
        ridge: 1.0,
    }
}

fn measured(kind: &Baselines, agreed: &AgreedColumns, sites: &[RowTable]) -> BaselinesOutcome {
    match answer(Kind::Baselines(kind.clone()), agreed, sites) {
        Outcome::Baselines(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Compares with the losses of local constant and model and of the global ones, and the gain with its interval.
#[track_caller]
fn are(found: &BaselinesOutcome, losses: [f64; 4], gain: [f64; 4], gaining: f64) {
    let local = [found.local_constant, found.local_model];
    let global = [found.global_constant, found.global_model];
    for (found, expected) in local.iter().chain(&global).zip(losses) {
        near(*found, expected, 1e-6);
    }
    let [low, high] = found.gain.interval(LEVEL);
    for (found, expected) in [found.gain.value, found.gain.error, low, high]
        .iter()
        .zip(gain)
    {
        near(*found, expected, 2e-6);
    }
    assert_eq!(found.gaining, gaining);
}

#[test]
fn losses_of_four_hospitals_are_those_of_scikit_learn() {
    let Some(sites) = heart() else { return };
    let terms = [
        "age10",
        "sex = 1",
        "trestbps20",
        "thalach25",
        "exang = 1",
        "oldpeak",
        "cp = 4",
    ];
    let found = measured(&baselines("num > 0", &terms), &heart_ranges(), &sites);
    assert_eq!((found.rows, found.sites), (854.0, 4.0));
    // LogisticRegression of scikit-learn 1.9.1 on the same folds, its penalty chosen in the same way.
    let losses = [
        0.534_860_254_365_791_8,
        0.394_243_372_714_860_54,
        0.673_134_943_015_305_4,
        0.445_663_382_744_797_83,
    ];
    let gain = [
        -0.051_420_010_029_937_32,
        0.050_954_897_920_851_06,
        -0.213_581_236_654_258_27,
        0.110_741_216_594_383_63,
    ];
    are(&found, losses, gain, 1.0);
    assert_eq!(found.says(LEVEL), TogetherOrAlone::CannotTell);
}

#[test]
fn squared_errors_of_four_hospitals_are_those_of_scikit_learn() {
    let Some(sites) = heart() else { return };
    let terms = [
        "age10",
        "sex = 1",
        "trestbps20",
        "exang = 1",
        "oldpeak",
        "cp = 4",
    ];
    let found = measured(&baselines("thalach", &terms), &heart_ranges(), &sites);
    // Ridge of scikit-learn 1.9.1.
    let losses = [
        556.480_568_972_166_7,
        462.106_374_824_178,
        705.571_474_490_795_3,
        521.730_284_476_786_2,
    ];
    let gain = [
        -59.623_909_652_608_18,
        27.740_151_693_266_576,
        -147.905_452_916_853_96,
        28.657_633_611_637_62,
    ];
    are(&found, losses, gain, 0.0);
}

/// Sites with rows of a generator by Knuth: two numbers, and an outcome that depends on them at each site with its sign.
pub(crate) fn synthetic(count: usize, rows: usize, sign: fn(usize) -> f64) -> Vec<RowTable> {
    let mut state = 11u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut site = |site: usize| {
        let (mut dose, mut size, mut ill) = (vec![], vec![], vec![]);
        for _ in 0..rows {
            let (a, b) = (2.0 * draw() - 1.0, 2.0 * draw() - 1.0);
            let risk = 0.5 + sign(site) * (0.3 * a - 0.2 * b);
            dose.push(a);
            size.push(b);
            ill.push(f64::from(u8::from(draw() < risk)));
        }
        RowTable::new(rows)
            .with("dose", &dose)
            .with("size", &size)
            .with("ill", &ill)
    };
    (0..count).map(&mut site).collect()
}

pub(crate) fn synthetic_ranges() -> AgreedColumns {
    agreed(&[("dose", [-1.0, 1.0]), ("size", [-1.0, 1.0])], &[])
}

fn together(_site: usize) -> f64 {
    1.0
}

fn apart(site: usize) -> f64 {
    if site.is_multiple_of(2) { 1.0 } else { -1.0 }
}

#[test]
fn sites_alike_with_few_rows_learn_together() {
    let kind = baselines("ill = 1", &["dose", "size"]);
    let found = measured(&kind, &synthetic_ranges(), &synthetic(9, 60, together));
    let losses = [
        0.722_998_789_369_456,
        0.676_739_250_036_409_1,
        0.694_096_141_699_613_1,
        0.609_944_235_008_438_8,
    ];
    let gain = [
        0.066_795_015_027_970_3,
        0.026_739_283_514_949_214,
        0.005_134_116_670_100_837,
        0.128_455_913_385_839_78,
    ];
    are(&found, losses, gain, 8.0);
    assert_eq!(found.says(LEVEL), TogetherOrAlone::Together);
}

#[test]
fn sites_that_contradict_each_other_learn_alone() {
    let kind = baselines("ill = 1", &["dose", "size"]);
    let found = measured(&kind, &synthetic_ranges(), &synthetic(9, 200, apart));
    let losses = [
        0.696_309_736_571_051_6,
        0.609_940_247_759_396_8,
        0.693_109_779_206_125,
        0.693_634_547_910_330_5,
    ];
    let gain = [
        -0.083_694_300_150_933_83,
        0.011_048_841_441_078_691,
        -0.109_172_974_203_276_46,
        -0.058_215_626_098_591_22,
    ];
    are(&found, losses, gain, 0.0);
    assert_eq!(found.says(LEVEL), TogetherOrAlone::Alone);
}

#[test]
fn few_sites_cannot_tell_and_the_sheet_says_so() {
    let sites = synthetic(4, 300, together);
    let kind = baselines("ill = 1", &["dose", "size"]);
    let found = measured(&kind, &synthetic_ranges(), &sites);
    let losses = [
        0.696_795_479_071_481_1,
        0.618_027_402_545_550_2,
        0.694_276_313_329_977_5,
        0.617_066_733_862_717,
    ];
    let gain = [
        0.000_960_668_682_833_121_2,
        0.003_469_205_716_162_591_4,
        -0.010_079_892_230_837_637,
        0.012_001_229_596_503_88,
    ];
    are(&found, losses, gain, 3.0);
    assert_eq!(found.says(LEVEL), TogetherOrAlone::CannotTell);
    let question = FederatedQuestion::new(Kind::Baselines(kind), synthetic_ranges());
    let asked = asked(&question, &sites);
    let printed = sheets(&question, &asked.counts.unwrap(), &asked.end.unwrap());
    let names: Vec<&str> = printed.iter().map(|sheet| sheet.name.as_str()).collect();
    assert_eq!(names, ["rows", "losses", "gain"]);
    let said = printed[2].notes.concat();
    assert!(
        said.starts_with("cannot tell") && said.contains("ask more sites"),
        "{said}"
    );
}

#[test]
fn rows_alike_but_for_the_outcome_are_in_one_fold() {
    let kind = baselines("ill = 1", &["dose", "size"]);
    for dose in 0..100 {
        let fold = |ill: f64| kind.fold(&[f64::from(dose), 1.0, ill]);
        assert_eq!(fold(0.0), fold(1.0), "{dose}");
    }
    // Where terms are conditions many rows are alike. Of rows that are in folds by their outcomes, too, the global model
    // lost 1.035.
    let terms = [
        "dose > -0.5",
        "dose > 0",
        "dose > 0.5",
        "size > -0.5",
        "size > 0",
        "size > 0.5",
    ];
    let kind = baselines("ill = 1", &terms);
    let found = measured(&kind, &synthetic_ranges(), &synthetic(4, 300, together));
    let losses = [
        0.707_486_393_063_126_9,
        0.627_003_392_697_068_3,
        0.705_763_923_806_592_2,
        0.626_146_676_270_095_2,
    ];
    let gain = [
        0.000_856_716_426_973_075_4,
        0.002_439_491_853_502_928,
        -0.006_906_835_408_977_022,
        0.008_620_268_262_923_173,
    ];
    are(&found, losses, gain, 2.0);
}

/// The bits of an answer.
fn bits(found: &BaselinesOutcome) -> Vec<u64> {
    let local = [
        found.local_constant,
        found.local_model,
        found.global_constant,
    ];
    let more = [found.global_model, found.gain.value, found.gain.error];
    local.iter().chain(&more).map(|one| one.to_bits()).collect()
}

#[test]
fn the_order_of_sites_and_rows_changes_no_bit_of_losses() {
    let kind = baselines("ill = 1", &["dose", "size"]);
    let sites = synthetic(6, 50, together);
    let turned = |site: &RowTable| {
        let mut other = RowTable::new(site.rows());
        for name in ["dose", "size", "ill"] {
            let Some(CellColumn::Numbers(cells)) = site.cells(name) else {
                panic!("numbers");
            };
            let cells = cells.iter().rev().copied().collect();
            other.insert(name, CellColumn::Numbers(cells));
        }
        other
    };
    let other: Vec<RowTable> = sites.iter().rev().map(turned).collect();
    let found = [&sites, &other].map(|sites| measured(&kind, &synthetic_ranges(), sites));
    assert_eq!(bits(&found[0]), bits(&found[1]));
}

#[test]
fn a_site_with_an_empty_fold_is_in_no_mean() {
    let kind = baselines("ill = 1", &["dose", "size"]);
    let mut sites = synthetic(5, 60, together);
    let whole = measured(&kind, &synthetic_ranges(), &sites);
    // Two rows cannot be in five folds. They are still rows that the global model is fitted to.
    sites.push(synthetic(1, 2, apart).remove(0));
    let more = measured(&kind, &synthetic_ranges(), &sites);
    assert_eq!((whole.sites, more.sites), (5.0, 5.0));
    assert_eq!(whole.local_model.to_bits(), more.local_model.to_bits());
    assert_eq!(more.rows, whole.rows + 2.0);
    assert_ne!(whole.global_model.to_bits(), more.global_model.to_bits());
    let alone = stopped(Kind::Baselines(kind), &synthetic_ranges(), &sites[..1]);
    assert!(
        alone
            .to_string()
            .contains("sites with rows in every fold: 1"),
        "{alone}"
    );
}

#[test]
fn a_site_of_one_outcome_has_its_constant_as_its_model() {
    let kind = baselines("ill = 1", &["dose", "size"]);
    let mut sites = synthetic(3, 60, together);
    for site in &mut sites[..2] {
        let healthy = vec![Some(0.0); 60];
        site.insert("ill", CellColumn::Numbers(healthy));
    }
    let found = measured(&kind, &synthetic_ranges(), &sites);
    let losses = [
        0.260_042_631_191_278_85,
        0.237_216_496_943_565_03,
        0.415_043_341_448_721_96,
        0.422_323_861_919_938_26,
    ];
    let gain = [
        -0.185_107_364_976_373_23,
        0.037_030_792_627_388_37,
        -0.344_438_005_959_392_06,
        -0.025_776_723_993_354_4,
    ];
    are(&found, losses, gain, 0.0);
    // Two sites have no ill rows, so the terms tell nothing that holds for all.
    assert!(found.global_model > found.global_constant);
}

#[test]
fn options_of_folds_and_ridge_have_their_limits() {
    let right = baselines("ill = 1", &["dose"]);
    for (wrong, says) in [
        (
            Baselines {
                folds: 2,
                ..right.clone()
            },
            "`folds` must be 3 to 10",
        ),
        (
            Baselines {
                folds: 11,
                ..right.clone()
            },
            "found 11",
        ),
        (
            Baselines {
                ridge: 0.0,
                ..right.clone()
            },
            "`ridge` must be above 0",
        ),
        (
            Baselines {
                terms: vec![],
                ..right.clone()
            },
            "needs `terms`",
        ),
        (
            Baselines {
                outcome: "weight".to_owned(),
                ..right.clone()
            },
            "weight",
        ),
    ] {
        let question = FederatedQuestion::new(Kind::Baselines(wrong), synthetic_ranges());
        let why = question.inputs().unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
    let right = FederatedQuestion::new(Kind::Baselines(right), synthetic_ranges());
    assert!(right.inputs().is_ok());
    let said = right.explain(&|_, numbers| 8 * numbers as u64).unwrap();
    assert!(said.contains("outside of each of 5 folds"), "{said}");
}
