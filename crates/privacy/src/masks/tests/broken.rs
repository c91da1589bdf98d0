//! Broken on purpose: each rule of the formulas is left out in turn, and the test shows what an attacker
//! gains then and does not gain with the rule. Every such change also changes the golden round.

use std::collections::BTreeMap;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::{RistrettoPoint, Scalar};

use super::golden::{round, setting};
use super::reference::{Deal, RoundSetting, Rules};
use super::world::{BLOCK, World, model, shape};
use crate::masks::mask::own_key;
use crate::masks::testing::words64;
use crate::masks::transcript::coefficient;
use crate::masks::{Opening, OpeningError, Transcript, TranscriptError, Word};

fn deals(setting: &RoundSetting) -> BTreeMap<u16, Deal> {
    let authors = setting.authors.iter();
    authors
        .map(|author| (*author, setting.deal(*author)))
        .collect()
}

/// Returns what these members know of the mask of `author` by their own shares.
fn pooled(setting: &RoundSetting, author: u16, members: &[u16]) -> RistrettoPoint {
    let deals = deals(setting);
    let at = deals.keys().position(|one| *one == author).unwrap();
    let share = |from: &u16| (*from, setting.unlock(*from, &deals).shares[at]);
    setting.interpolate(&members.iter().map(share).collect::<Vec<_>>())
}

fn secret_point(setting: &RoundSetting, author: u16) -> RistrettoPoint {
    setting.polynomial(author)[0] * G
}

fn with(change: impl Fn(&mut Rules)) -> Rules {
    let mut rules = Rules::RIGHT;
    change(&mut rules);
    rules
}

/// The list of a quorum: 5 of 7 are ready, t = 3, and the agreement allows 2 colluders.
fn quorum_of_seven(rules: Rules) -> RoundSetting {
    setting(&World::new(7, &[0, 1, 2, 3, 4], b"one sum"), rules)
}

#[test]
fn with_t_minus_1_shares_colluders_open_masks_before_finality() {
    let broken = quorum_of_seven(with(|rules| rules.more_shares = -1));
    assert_eq!(pooled(&broken, 0, &[3, 4]), secret_point(&broken, 0));
    let right = quorum_of_seven(Rules::RIGHT);
    assert_ne!(pooled(&right, 0, &[3, 4]), secret_point(&right, 0));
    assert_eq!(pooled(&right, 0, &[2, 3, 4]), secret_point(&right, 0));

    let world = World::new(7, &[0, 1, 2, 3, 4], b"one sum");
    assert_eq!(world.ready.threshold(), 3);
    let refused = Transcript::check(&world.ready, 0, &broken.deal(0).bytes());
    assert!(
        matches!(refused, Err(TranscriptError::Length { .. })),
        "{refused:?}"
    );
    assert_ne!(round(broken.rules), round(Rules::RIGHT));
}

#[test]
fn with_t_plus_1_shares_the_rest_of_a_quorum_cannot_open() {
    // n − q = 2 of the five fall silent after the block.
    let broken = quorum_of_seven(with(|rules| rules.more_shares = 1));
    assert_ne!(pooled(&broken, 0, &[0, 2, 4]), secret_point(&broken, 0));
    let right = quorum_of_seven(Rules::RIGHT);
    assert_eq!(pooled(&right, 0, &[0, 2, 4]), secret_point(&right, 0));

    let world = World::new(7, &[0, 1, 2, 3, 4], b"one sum");
    let refused = Transcript::check(&world.ready, 0, &broken.deal(0).bytes());
    assert!(
        matches!(refused, Err(TranscriptError::Length { .. })),
        "{refused:?}"
    );
    assert_ne!(round(broken.rules), round(Rules::RIGHT));
}

#[test]
fn with_x_equal_to_the_position_member_0_knows_every_mask() {
    let broken = quorum_of_seven(with(|rules| rules.first_place = 0));
    let right = quorum_of_seven(Rules::RIGHT);
    for author in 1..5 {
        assert_eq!(pooled(&broken, author, &[0]), secret_point(&broken, author));
        assert_ne!(pooled(&right, author, &[0]), secret_point(&right, author));
    }
    let world = World::new(7, &[0, 1, 2, 3, 4], b"one sum");
    let refused = Transcript::check(&world.ready, 1, &broken.deal(1).bytes());
    assert_eq!(refused, Err(TranscriptError::Proof(1)));
    assert_ne!(round(broken.rules), round(Rules::RIGHT));
}

/// Members 0, 1 and 2 answer a first list without 2, and in a later view a list with 2; only the second
/// becomes final and is opened. Member 3 colludes with the lead: it knows the streams that it is in.
/// Takes the own streams as they are after the opening off the sum of the first list, too.
fn first_sum_with_seeds_of_the_second(bound: bool) -> (Vec<i64>, Vec<i64>) {
    let rules = with(|rules| rules.bound = bound);
    let words = |author: u16| -> Vec<u64> {
        let integers = model(author, 6)
            .into_iter()
            .map(|number| (number * 4096.0) as i64);
        integers.map(u64::wrap).collect()
    };
    let setting_of = |authors: &[u16]| {
        let world = World::new(4, &[0, 1, 2, 3], format!("{authors:?}").as_bytes());
        let mut setting = setting(&world, rules);
        setting.authors = authors.to_vec();
        setting
    };
    let (first, second) = (setting_of(&[0, 1, 3]), setting_of(&[0, 1, 2, 3]));
    let mut sum = vec![0_u64; 6];
    for author in first.authors.iter().copied() {
        let masked = first.mask64(author, &words(author));
        sum.iter_mut()
            .zip(masked)
            .for_each(|(sum, word)| *sum = sum.plus(word));
        let opened = pooled(&second, author, &[0, 1, 2]);
        let seed = second.own_seed(author, &opened);
        let stream = words64(&seed, 0, 6).into_iter();
        sum.iter_mut()
            .zip(stream)
            .for_each(|(sum, key)| *sum = sum.wrapping_sub(key));
    }
    let plain = (0..6).map(|at| {
        [0, 1, 3]
            .map(|author| words(author)[at].signed())
            .iter()
            .sum()
    });
    (sum.into_iter().map(Word::signed).collect(), plain.collect())
}

#[test]
fn masks_not_bound_to_the_list_open_an_earlier_lists_sum_too() {
    // With both sums open, their difference is the update of member 2.
    let (opened, plain) = first_sum_with_seeds_of_the_second(false);
    assert_eq!(opened, plain);
    let (opened, plain) = first_sum_with_seeds_of_the_second(true);
    assert!(
        opened
            .iter()
            .zip(&plain)
            .all(|(opened, plain)| opened != plain)
    );
    assert_ne!(
        round(with(|rules| rules.bound = false)),
        round(Rules::RIGHT)
    );
}

#[test]
fn no_stream_of_one_list_is_one_of_another() {
    let all = [0, 1, 2, 3];
    let worlds = [b"one", b"two"].map(|decision| World::new(4, &all, decision));
    let mut keys = std::collections::BTreeSet::new();
    for world in &worlds {
        for author in all {
            let mask = world.mask(author, &world.sum(&all));
            keys.extend(mask.streams().iter().map(|(key, _)| *key.0));
        }
    }
    // 4 own streams and 6 pairs for each list.
    assert_eq!(keys.len(), 20);
}

/// A point S that is opened for one list gives the key of its author for no other list.
#[test]
fn what_is_opened_for_one_list_opens_no_vector_of_another() {
    let all = [0, 1, 2, 3];
    let [one, two] = [b"one", b"two"].map(|decision| World::new(4, &all, decision));
    for author in all {
        let keys = &one.keys[&author];
        let opened = |world: &World| {
            RistrettoPoint::mul_base(&coefficient(keys, world.ready.root(), 0).unwrap())
        };
        let mask = one.mask(author, &one.sum(&all));
        let own = &mask.streams()[0].0;
        assert_eq!(&own_key(one.ready.root(), author, &opened(&one)), own);
        assert_ne!(&own_key(one.ready.root(), author, &opened(&two)), own);
    }
}

/// An author whose locked shares lie on no polynomial of degree below t.
#[test]
fn an_unchecked_transcript_gives_every_member_another_sum() {
    let world = World::full(4);
    let setting = setting(&world, Rules::RIGHT);
    let mut polynomial = setting.polynomial(1);
    polynomial.push(Scalar::from(3_u64));
    let mut deals = deals(&setting);
    deals.insert(1, setting.deal_with(1, polynomial));
    // The openings are honest, and their proofs hold.
    let opened = |from: [u16; 3]| {
        let shares = from.map(|from| (from, setting.unlock(from, &deals).shares[1]));
        setting.interpolate(&shares)
    };
    assert_ne!(opened([0, 1, 2]), opened([1, 2, 3]));

    let bytes = deals[&1].bytes();
    for length in [bytes.len(), bytes.len() - 32] {
        assert!(Transcript::check(&world.ready, 1, &bytes[..length]).is_err());
    }
}

/// Member 2 opens a false share of author 0, with the best proof that it can make.
#[test]
fn a_false_share_that_is_accepted_corrupts_the_sum() {
    let (world, all) = (World::full(4), [0, 1, 2, 3]);
    let setting = setting(&world, Rules::RIGHT);
    let deals = deals(&setting);
    let mut shares = setting.unlock(2, &deals).shares;
    shares[0] += G;
    let others = [0, 1].map(|from| (from, setting.unlock(from, &deals).shares[0]));
    let accepted = [&others[..], &[(2, shares[0])]].concat();
    assert_ne!(setting.interpolate(&accepted), secret_point(&setting, 0));

    let transcripts = world.transcripts(&all);
    let forged = setting.prove(2, &deals, shares).bytes();
    let refused = Opening::check(&world.ready, &transcripts, BLOCK, 2, &forged);
    assert_eq!(refused, Err(OpeningError::Proof(2)));
    // The same proof with right shares is accepted, so it is the share that is refused.
    let right = setting.prove(2, &deals, setting.unlock(2, &deals).shares);
    assert!(Opening::check(&world.ready, &transcripts, BLOCK, 2, &right.bytes()).is_ok());
}

/// Without its own stream the sum of pairs alone is open before the block is final.
#[test]
fn before_the_block_is_final_the_sum_of_vectors_reveals_nothing() {
    let (world, all) = (World::full(4), [0, 1, 2, 3]);
    let (sum, shape) = (world.sum(&all), shape(8, &[1; 4]));
    let mut words = vec![0_u32; shape.words()];
    for author in all {
        let vector = world.vector::<u32>(author, &sum, shape, 1, &model(author, 8));
        u32::add_bytes(&mut words, &vector);
    }
    assert!(shape.judge(0, &words).is_some());
    let seeds = world.seeds(&world.transcripts(&all), &[1, 2, 3]);
    seeds.unmask(&sum, 0, &mut words).unwrap();
    assert_eq!(shape.judge(0, &words), None);
}
