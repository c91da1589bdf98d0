#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const LAMBDA: [f64; 5] = [0.4, 0.05, 0.0, 0.3, 0.25];

/// Mean share of every client over many seeds.
fn mean_shares(sampling: Sampling, draws: usize, rounds: u64) -> Vec<f64> {
    let mut total = vec![0.0; LAMBDA.len()];
    for seed in 0..rounds {
        let sample = sampling.draw(&LAMBDA, draws, seed).unwrap();
        for (client, share) in sample.clients.iter().zip(sample.shares) {
            total[*client] += share / rounds as f64;
        }
    }
    total
}

#[test]
fn sampling_with_replacement_is_unbiased() {
    let theta = [1.0, -2.0, 5.0, 0.5, 3.0];
    let expected: f64 = LAMBDA.iter().zip(theta).map(|(l, t)| l * t).sum();
    let (rounds, draws) = (20_000, 3);
    let shares = mean_shares(Sampling::WithReplacement, draws, rounds);
    for (share, lambda) in shares.iter().zip(LAMBDA) {
        // Five standard errors of a mean of independent draws.
        let error = 5.0 * (lambda * (1.0 - lambda) / (rounds * draws as u64) as f64).sqrt();
        assert!(
            (share - lambda).abs() <= error,
            "{share} instead of {lambda}"
        );
    }
    let mean: f64 = shares.iter().zip(theta).map(|(s, t)| s * t).sum();
    assert!(
        (mean - expected).abs() < 0.03,
        "{mean} instead of {expected}"
    );
}

#[test]
fn sampling_without_replacement_reduces_large_weights() {
    // Two of four with weight; probabilities of being drawn first or second.
    let chosen = |k: usize| -> f64 {
        let second = |first: usize| LAMBDA[first] * LAMBDA[k] / (1.0 - LAMBDA[first]);
        LAMBDA[k] + (0..5).filter(|&first| first != k).map(second).sum::<f64>()
    };
    let rounds = 20_000;
    let shares = mean_shares(Sampling::WithoutReplacement, 2, rounds);
    for (k, share) in shares.iter().enumerate() {
        let likely = chosen(k);
        let error = 5.0 * (likely * (1.0 - likely) / rounds as f64).sqrt() / 2.0;
        assert!(
            (share - likely / 2.0).abs() <= error,
            "{share} instead of {}",
            likely / 2.0
        );
    }
    assert!(shares[0] < LAMBDA[0]);
}

#[test]
fn full_sampling_has_all_clients_with_lambda_as_shares() {
    let sample = Sampling::Full.draw(&LAMBDA, 0, 7).unwrap();
    assert_eq!(sample.clients, [0, 1, 2, 3, 4]);
    assert_eq!(sample.shares, LAMBDA);
}

#[test]
fn only_clients_with_positive_weight_are_sampled() {
    let lambda = [0.0, 0.0, 1.0, 0.0];
    for sampling in [Sampling::WithReplacement, Sampling::WithoutReplacement] {
        let sample = sampling.draw(&lambda, 3, 1).unwrap();
        assert_eq!((sample.clients, sample.shares), (vec![2], vec![1.0]));
    }
}

#[test]
fn invalid_weights_and_draws_are_refused() {
    for sampling in [
        Sampling::WithReplacement,
        Sampling::WithoutReplacement,
        Sampling::Full,
    ] {
        for odd in [&[][..], &[0.5, 0.4], &[1.5, -0.5], &[f64::NAN, 1.0]] {
            assert_eq!(sampling.draw(odd, 1, 0), Err(SamplingError::Lambda));
        }
    }
    assert_eq!(
        Sampling::WithReplacement.draw(&LAMBDA, 0, 0),
        Err(SamplingError::NoDraws)
    );
}

#[test]
fn half_is_rounded_up() {
    assert_eq!([1, 2, 5, 20].map(half), [1, 1, 3, 10]);
}

#[test]
fn sampled_losses_are_scaled_and_others_are_zero() {
    let losses = sampled_losses(5, &[(3, 0.5), (0, 0.25)]);
    assert_eq!(losses, Ok(vec![0.625, 0.0, 0.0, 1.25, 0.0]));
    let all: Vec<(usize, f64)> = (0..5).zip([0.1, 0.2, 0.3, 0.4, 0.5]).collect();
    assert_eq!(sampled_losses(5, &all), Ok(vec![0.1, 0.2, 0.3, 0.4, 0.5]));
    assert_eq!(sampled_losses(5, &[]), Err(SampledLossError::Empty));
    let unknown = SampledLossError::Unknown {
        client: 5,
        clients: 5,
    };
    assert_eq!(sampled_losses(5, &[(5, 0.1)]), Err(unknown));
    let twice = SampledLossError::Twice { client: 1 };
    assert_eq!(sampled_losses(5, &[(1, 0.1), (1, 0.1)]), Err(twice));
}

proptest! {
    #[test]
    fn clients_of_weight_zero_are_never_sampled(
        parts in prop::collection::vec(prop_oneof![Just(0u32), 1..1000u32], 1..40),
        draws in 1usize..60, seed: u64,
    ) {
        let total: u32 = parts.iter().sum();
        prop_assume!(total > 0);
        let lambda: Vec<f64> = parts.iter().map(|part| f64::from(*part) / f64::from(total)).collect();
        let with_weight = parts.iter().filter(|part| **part > 0).count();
        for sampling in [Sampling::WithReplacement, Sampling::WithoutReplacement] {
            let sample = sampling.draw(&lambda, draws, seed).unwrap();
            prop_assert!(sample.clients.iter().all(|client| parts[*client] > 0));
            prop_assert!(sample.clients.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(sample.clients.len(), sample.shares.len());
            prop_assert!((sample.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert_eq!(&sample, &sampling.draw(&lambda, draws, seed).unwrap());
            if sampling == Sampling::WithoutReplacement {
                prop_assert_eq!(sample.clients.len(), draws.min(with_weight));
            }
        }
    }
}
