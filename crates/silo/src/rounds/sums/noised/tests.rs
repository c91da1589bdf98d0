//! What a silo sends with noise, and the step that the sum of all gives.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use privacy::noise::Seed;
use protocol::parameters::{Noise as AgreedNoise, Real, Release, Unit};
use protocol::privacy::{Masked, Privacy, RoundMode, Sum, Sums};
use protocol::{Epoch, MemberIndex};

use super::*;
use crate::rounds::RoundBase;
use crate::rounds::sums::check_summand;
use crate::testing::{config, epoch_declaring, learner};

const CLIP: f64 = 8.0;

/// An agreement on noise, with z as given.
pub(crate) fn noise(z: f64) -> Masked {
    Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: 3,
        sums: Sums::Noised(AgreedNoise {
            release: Release::Steps,
            unit: Unit::Row,
            clip: Real::new(CLIP),
            z: Real::new(z),
            delta: Real::new(1e-5),
        }),
    }
}

fn epoch(rows: u64, z: f64) -> Arc<Epoch> {
    epoch_declaring(4, 9, Some(rows), |protocol| {
        protocol.privacy = Privacy::Masked(noise(z));
    })
}

/// The silo with this optimum and so many rows, all equal.
fn silo(epoch: &Arc<Epoch>, me: u16, rows: u64) -> SiloConfig {
    let mut config = config(epoch, me);
    config.learner = Arc::new(learner(f64::from(me)).with_samples(rows));
    config
}

/// The agreed noise, of models of so many numbers.
fn noised_of(privacy: &Privacy, numbers: usize) -> Result<Noised, String> {
    match privacy.mode() {
        RoundMode::Noised(masked, noise) => Noised::new(masked, noise, numbers),
        other => panic!("{other:?}"),
    }
}

fn noised(config: &SiloConfig) -> Noised {
    noised_of(&config.member.epoch.protocol.privacy, 1).unwrap()
}

fn base(config: &SiloConfig) -> RoundBase {
    let (strategy, learner) = (&*config.strategy, &*config.learner);
    let genesis = crate::outcome::genesis(strategy, learner, config.initial_seed);
    RoundBase::new(config, &genesis)
}

fn vector(config: &SiloConfig, seed: u8) -> Result<NoisedVector, String> {
    let seed = Seed::new([seed; 32]);
    let base = base(config);
    let of = SumBasis {
        config,
        base: &base,
    };
    noised(config).vector(of, &seed)
}

#[test]
fn a_vector_is_the_sum_of_the_units_and_noise_of_the_agreed_size() {
    let epoch = epoch(50, 20.0);
    let config = silo(&epoch, 2, 50);
    // The gradient of a row at 0 is −2; there are 1,024 steps in a norm of 8.
    let sum = -2 * 128 * 50;
    let sigma = noised(&config).gaussian.sigma();
    // 20 · 1024.5 / √2
    assert_eq!(sigma, 14_489);
    let drawn = (0..200).map(|seed| vector(&config, seed).unwrap().integers.all()[0] - sum);
    let square: f64 = drawn
        .map(|noise| (noise as f64 / sigma as f64).powi(2))
        .sum();
    // Chi-square of 200 draws: 99.99 % lie within.
    assert!((128.0..292.0).contains(&square), "{square}");
    let same = |seed| vector(&config, seed).unwrap().integers.all().to_vec();
    assert_eq!(same(1), same(1));
    assert_ne!(same(1), same(2));
}

#[test]
fn the_sum_of_more_rows_than_declared_is_saturated_and_none_are_noise_alone() {
    let epoch = epoch(50, 20.0);
    let sum = |rows| {
        let config = silo(&epoch, 1, rows);
        let mut noise = [0];
        noised(&config).add_noise(&Seed::new([7; 32]), &mut noise);
        vector(&config, 7).unwrap().integers.all()[0] - noise[0]
    };
    // The gradient of a row at 0 is −1, in 128 steps; Δ is 1024.5.
    assert_eq!(
        [sum(0), sum(1), sum(50), sum(51)],
        [0, -128, -128 * 50, -128 * 51]
    );
    let most = -1024 * 50;
    assert_eq!(
        [sum(399), sum(400), sum(401), sum(4_000)],
        [-128 * 399, most, most, most]
    );
}

#[test]
fn the_rows_of_a_person_are_clipped_together_where_persons_are_protected() {
    let clipped = |unit| {
        let mut masked = noise(20.0);
        if let Sums::Noised(noise) = &mut masked.sums {
            noise.unit = unit;
        }
        noised_of(&Privacy::Masked(masked), 1).unwrap().rows
    };
    assert!(matches!(clipped(Unit::Row), UnitRows::One));
    let person = Unit::Person("patient".into());
    assert!(matches!(clipped(person), UnitRows::Group));
}

#[test]
fn noise_that_cannot_be_drawn_and_rows_without_gradients_are_refused_at_the_start() {
    let mut config = silo(&epoch(50, 1_000_000.0), 0, 50);
    let checked = |config: &SiloConfig| {
        let base = base(config);
        check_summand(SumBasis {
            config,
            base: &base,
        })
    };
    assert_eq!(checked(&config), Ok(()));
    // 1,000,000 · 1024.5 / √2 is within 2³¹; as much noise for a hundred million numbers is not.
    let privacy = &config.member.epoch.protocol.privacy;
    let why = noised_of(privacy, 100_000_000).err().unwrap();
    assert!(why.contains("lower z, or agree on more authors"), "{why}");
    let without = learner(0.0).without(&[methods::learner::Capability::UnitGradients]);
    config.learner = Arc::new(without);
    let why = checked(&config).unwrap_err();
    assert!(why.contains("no gradients of single rows"), "{why}");
}

#[test]
fn an_opened_sum_is_divided_by_the_declared_rows_and_gives_one_step() {
    let epoch = epoch(50, 20.0);
    let config = silo(&epoch, 0, 50);
    let authors = (0..4).map(|by| (MemberIndex(by), 1)).collect();
    let rows = declared(&config, &Sum { authors });
    assert_eq!(rows, 200);
    // All rows of a mean gradient of −1.5, in steps of 1/128; half of it is taken.
    let sum = [-3 * 64 * 200];
    let base = base(&config);
    let of = SumBasis {
        config: &config,
        base: &base,
    };
    let model = noised(&config).model_of(of, &sum, (rows, 4));
    assert_eq!(model.unwrap().values(), [0.75]);
}

#[test]
fn noise_of_another_epoch_is_not_used_again() {
    let config = silo(&epoch(50, 20.0), 1, 50);
    let epoch = config.member.epoch.id;
    let secret = privacy::masks::Secret::new([7; 32]);
    let blob = PreparedRound::noised_blob(&secret, &epoch, &[3, -4]);
    assert!(PreparedRound::is(&blob));
    let read = |epoch| PreparedRound::read(5, &blob, epoch, |_| Err("no model".into()));
    let same = read(&epoch).unwrap();
    assert_eq!(same.secret.expose(), secret.expose());
    assert!(matches!(same.input, PreparedInput::Noised(integers) if integers.all() == [3, -4]));
    let why = read(&protocol::Hash([9; 32])).unwrap_err();
    assert!(why.contains("another epoch"), "{why}");
}
