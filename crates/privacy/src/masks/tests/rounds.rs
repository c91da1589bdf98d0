//! Whole rounds: the sum is exact to the integer, whoever falls silent after the block.

use curve25519_dalek::Scalar;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

use super::world::{World, model, quorum, shape};
use crate::masks::group::generator;
use crate::masks::ready::ReadyMember;
use crate::masks::transcript::commitments;
use crate::masks::{EncodeError, Fixed, Point, SumAuthors, Word};

/// Σ w·v, without masks.
fn plain(authors: &[u16], weights: &[u64], coordinates: usize) -> Vec<i64> {
    let mut sums = vec![0; coordinates];
    for (author, weight) in authors.iter().zip(weights) {
        for (sum, number) in sums.iter_mut().zip(model(*author, coordinates)) {
            *sum += Fixed::MODEL.integer(f64::from(number)).0 * *weight as i64;
        }
    }
    sums
}

/// The sum of these authors that these members open.
fn opened<W: Word>(
    world: &World,
    sum: &SumAuthors,
    weights: &[u64],
    awake: &[u16],
    all: &[u16],
) -> Vec<i64> {
    let coordinates = 300;
    let shape = shape(coordinates, weights);
    let authors = sum.authors().iter().zip(weights);
    let vectors: Vec<_> = authors
        .map(|(author, weight)| {
            world.vector::<W>(*author, sum, shape, *weight, &model(*author, coordinates))
        })
        .collect();
    let seeds = world.seeds(&world.transcripts(all), awake);
    let opened = world.combine::<W>(&seeds, sum, shape, &vectors);
    assert_eq!(opened.void, None);
    let sums = opened.words.into_iter().map(Word::signed);
    sums.take(coordinates).collect()
}

#[test]
fn sums_of_4_to_10_members_are_exact_with_n_minus_q_silent() {
    for members in 4..=10 {
        let all: Vec<_> = (0..members).collect();
        let world = World::full(members);
        let (sum, weights) = (world.sum(&all), vec![1; usize::from(members)]);
        for silent in 0..=members - quorum(members) {
            // First the last ones, then the first ones fall silent.
            for awake in [
                &all[..usize::from(members - silent)],
                &all[usize::from(silent)..],
            ] {
                let opened = opened::<u32>(&world, &sum, &weights, awake, &all);
                assert_eq!(opened, plain(&all, &weights, 300), "{members}, {awake:?}");
            }
        }
    }
}

#[test]
fn a_list_of_a_quorum_is_opened_by_what_is_left_of_any_quorum() {
    for members in 4..=10_u16 {
        let q = quorum(members);
        // Those that are not ready leave holes between the positions.
        let ready: Vec<_> = (members - q..members).collect();
        let world = World::new(members, &ready, b"one sum");
        let left = usize::from(2 * q - members);
        assert_eq!(world.ready.threshold(), left);
        let (sum, weights) = (world.sum(&ready), vec![2; ready.len()]);
        let opened = opened::<u64>(
            &world,
            &sum,
            &vec![2 << 32; ready.len()],
            &ready[..left],
            &ready,
        );
        let plain = plain(&ready, &weights, 300);
        assert_eq!(
            opened,
            plain.iter().map(|sum| sum << 32).collect::<Vec<_>>()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any ready members, any two sums without common authors, any weights, any t that open.
    #[test]
    fn every_sum_of_a_round_is_exact(
        members in 4_u16..11, late: u16, cut: Index, order in Just((0..10_u16).collect::<Vec<_>>()).prop_shuffle(),
        weights in proptest::collection::vec(1_u64..100, 10), awake in Just((0..10_u16).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let late = late % (members - quorum(members) + 1);
        let mut ready: Vec<_> = order.iter().copied().filter(|p| *p < members).collect();
        ready.truncate(usize::from(members - late));
        let (groups, held) = ready.split_at(ready.len().min(4 + cut.index(3)));
        let (mut one, mut two) = (groups[..2].to_vec(), groups[2..].to_vec());
        if two.len() < 2 {
            one.append(&mut two);
        }
        let mut authors = [&one[..], &two].concat();
        // The others of `held` only hold shares.
        prop_assert!(held.len() + authors.len() == ready.len());
        ready.sort_unstable();
        authors.sort_unstable();
        let world = World::new(members, &ready, b"two sums");
        let awake: Vec<_> = awake.into_iter().filter(|p| ready.contains(p)).take(world.ready.threshold()).collect();
        for group in [&mut one, &mut two] {
            group.sort_unstable();
            if group.len() < 2 {
                continue;
            }
            let (sum, weights) = (world.sum(group), &weights[..group.len()]);
            let opened = opened::<u32>(&world, &sum, weights, &awake, &authors);
            prop_assert_eq!(opened, plain(group, weights, 300));
        }
    }

    /// Interpolation from any t of the openings gives the same keys.
    #[test]
    fn any_t_openings_give_the_same_keys(some in subsequence((0..7_u16).collect::<Vec<_>>(), 5)) {
        let world = World::full(7);
        let transcripts = world.transcripts(&[1, 4]);
        let first = world.seeds(&transcripts, &[0, 1, 2, 3, 4]);
        prop_assert_eq!(first, world.seeds(&transcripts, &some));
    }
}

/// The key that the author masks with is the one that the others interpolate.
#[test]
fn interpolated_keys_are_those_of_the_authors() {
    let world = World::full(5);
    let all = [0, 1, 2, 3, 4];
    let seeds = world.seeds(&world.transcripts(&all), &[4, 1, 2, 0]);
    for (author, key) in seeds.keys() {
        let mask = world.mask(*author, &world.sum(&all));
        assert_eq!(&mask.streams()[0].0, key);
    }
}

/// The mean of a round differs from the mean in real numbers by half a step at most.
#[test]
fn the_mean_of_a_round_is_within_half_a_step() {
    let all = [0, 1, 2, 3];
    let weights = [1, 2, 3, 1];
    let world = World::full(4);
    let opened = opened::<u32>(&world, &world.sum(&all), &weights, &[0, 1, 2], &all);
    for (at, sum) in opened.into_iter().enumerate() {
        let pairs = all.iter().zip(weights);
        let exact = pairs.map(|(author, weight)| {
            let number = f64::from(model(*author, 300)[at]);
            number.clamp(-8.0, 8.0) * weight as f64
        });
        let exact = exact.sum::<f64>() / 7.0;
        let mean = Fixed::MODEL.mean(sum, 7);
        assert!((mean - exact).abs() <= 0.5 / f64::from(1 << 18) + 1e-12);
    }
}

/// A silo with little memory: numbers, masks and sums a few words at a time, in any order.
#[test]
fn vectors_can_be_masked_and_added_chunk_by_chunk() {
    let (world, all, coordinates) = (World::full(4), [0, 1, 2, 3], 300);
    let (sum, shape) = (world.sum(&all), shape(coordinates, &[3; 4]));
    let seeds = world.seeds(&world.transcripts(&all), &[0, 1, 2]);
    let vectors = all.map(|author| {
        let (model, mask) = (model(author, coordinates), world.mask(author, &sum));
        let mut words = vec![0_u32; shape.words()];
        for at in [200, 0, 100] {
            let (range, start) = (at..at + 100, [0.0; 100]);
            Fixed::MODEL
                .encode(3, &start, &model[range.clone()], &mut words[range])
                .unwrap();
        }
        for at in [297, 0] {
            let end = (at + 297).min(shape.words());
            mask.apply(at as u64, &mut words[at..end]).unwrap();
        }
        let mut bytes = Vec::new();
        u32::write(&words, &mut bytes);
        assert_eq!(bytes, world.vector::<u32>(author, &sum, shape, 3, &model));
        bytes
    });
    let mut words = vec![0_u32; shape.words()];
    for at in [77, 0, 154, 231] {
        let end = (at + 77).min(shape.words());
        let parts = vectors.each_ref().map(|vector| &vector[at * 4..end * 4]);
        let void = seeds.combine_chunk(shape, &sum, at, &parts, &mut words[at..end]);
        assert_eq!(void, Ok(None));
    }
    let whole = world.combine::<u32>(&seeds, &sum, shape, &vectors);
    assert_eq!((whole.words, whole.void), (words, None));
}

#[test]
fn vectors_around_the_blocks_are_masked_like_the_whole() {
    let world = World::full(4);
    let sum = world.sum(&[0, 1, 2, 3]);
    let mask = world.mask(2, &sum);
    for coordinates in [
        crate::masks::BLOCK - 4,
        crate::masks::BLOCK - 2,
        crate::masks::BLOCK,
        40_000,
    ] {
        let shape = shape(coordinates, &[3; 4]);
        let model = model(2, coordinates);
        let start = vec![0.0; coordinates];
        let mut words = vec![0_u32; shape.words()];
        let clipped = Fixed::MODEL.encode(3, &start, &model, &mut words[..coordinates]);
        let integers: Vec<i64> = words[..coordinates]
            .iter()
            .map(|word| word.signed())
            .collect();
        mask.apply(0, &mut words).unwrap();
        let mut bytes = Vec::new();
        u32::write(&words, &mut bytes);
        let masked = mask
            .vector::<u32>(shape, Fixed::MODEL, 3, &start, &model)
            .unwrap();
        assert_eq!((&masked.bytes, Ok(masked.clipped)), (&bytes, clipped));
        assert_eq!(mask.integers::<u32>(shape, &integers).unwrap(), bytes);
        let mut bad = model;
        bad[coordinates - 1] = f32::NAN;
        let error = mask
            .vector::<u32>(shape, Fixed::MODEL, 3, &start, &bad)
            .unwrap_err();
        assert_eq!(error, EncodeError::NotFinite(coordinates - 1).into());
    }
}

#[test]
fn a_commitment_of_a_transcript_may_be_the_identity() {
    let ready = World::new(4, &[0, 1, 2], b"one sum").ready;
    let k = Scalar::from(7_u64);
    let share = |member: &ReadyMember| Point::new(k * member.keys.share.point());
    let mut shares: Vec<_> = ready.members().iter().map(share).collect();
    let mut response = vec![Scalar::ZERO; ready.threshold()];
    response[0] = k;
    let nothing = commitments(&ready, &shares, &Scalar::ONE, &response);
    assert_eq!(nothing, vec![[0; 32]; shares.len()]);
    // The others are encoded with the same inversion.
    shares[1] = generator();
    let key = *ready.members()[1].keys.share.point();
    let other = k * key - RISTRETTO_BASEPOINT_POINT;
    let mut expected = nothing;
    expected[1] = other.compress().to_bytes();
    let found = commitments(&ready, &shares, &Scalar::ONE, &response);
    assert_eq!(found, expected);
}
