//! Losses of local and global models by folds: those of scikit-learn, and what they say of learning together.

use super::data::heart;
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

fn heart_ranges() -> AgreedColumns {
    let ranges = [
        ("age10", [-6.0, 6.0]),
        ("trestbps20", [-8.0, 8.0]),
        ("thalach25", [-8.0, 8.0]),
        ("thalach", [0.0, 300.0]),
        ("oldpeak", [-10.0, 10.0]),
    ];
    agreed(&ranges, &[])
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
        0.537_132_138_703_166_1,
        0.396_329_375_494_036_13,
        0.675_760_419_885_322_2,
        0.448_575_214_028_162_6,
    ];
    let gain = [
        -0.052_245_838_534_126_475,
        0.050_966_128_032_126_2,
        -0.214_442_804_384_582_9,
        0.109_951_127_316_329_94,
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
        550.984_586_532_170_5,
        445.324_031_063_579_07,
        703.127_078_292_039_1,
        519.897_476_693_887_3,
    ];
    let gain = [
        -74.573_445_630_308_19,
        27.943_682_255_662_754,
        -163.502_713_980_864_03,
        14.355_822_720_247_644,
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
        0.700_211_613_074_900_4,
        0.642_422_137_639_201_4,
        0.694_745_120_178_739_6,
        0.609_528_540_855_713_8,
    ];
    let gain = [
        0.032_893_596_783_487_55,
        0.011_799_453_448_400_603,
        0.005_684_008_338_326_704,
        0.060_103_185_228_648_395,
    ];
    are(&found, losses, gain, 7.0);
    assert_eq!(found.says(LEVEL), TogetherOrAlone::Together);
}

#[test]
fn sites_that_contradict_each_other_learn_alone() {
    let kind = baselines("ill = 1", &["dose", "size"]);
    let found = measured(&kind, &synthetic_ranges(), &synthetic(9, 200, apart));
    let losses = [
        0.697_386_971_902_973_5,
        0.613_260_744_181_466,
        0.693_434_359_309_280_1,
        0.694_789_794_178_149_2,
    ];
    let gain = [
        -0.081_529_049_996_683_15,
        0.011_659_368_015_107_814,
        -0.108_415_600_853_388_94,
        -0.054_642_499_139_977_34,
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
        0.694_539_516_855_630_8,
        0.615_543_532_630_992,
        0.693_730_451_414_309_2,
        0.617_663_864_744_219,
    ];
    let gain = [
        -0.002_120_332_113_226_958,
        0.000_894_523_825_186_975_5,
        -0.004_967_106_155_681_498,
        0.000_726_441_929_227_581_6,
    ];
    are(&found, losses, gain, 0.0);
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
        0.241_605_720_574_691_35,
        0.244_368_954_512_231_3,
        0.413_050_772_106_878_8,
        0.424_139_886_902_100_9,
    ];
    let gain = [
        -0.179_770_932_389_869_6,
        0.028_664_310_732_185_647,
        -0.303_103_507_208_095,
        -0.056_438_357_571_644_227,
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
