//! Every value of one round, pinned: n = 4, d = 8, all ready, one sum with different weights.
//!
//! The file is written by the slow implementation; the fast one has to give the same.

use std::collections::BTreeMap;

use curve25519_dalek::Scalar;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;

use super::reference::{Deal, RoundSetting, Rules, bytes};
use super::world::{BLOCK, EPOCH, ROUND, World, list_bytes, model, quorum, secret, shape};
use crate::masks::testing::{words32, words64};
use crate::masks::{CHECKS, Fixed, Word};

#[path = "../../../../../tests/golden/mod.rs"]
mod file;

const MEMBERS: u16 = 4;
const COORDINATES: usize = 8;
/// With these words have 32 bits; times [`WIDER`], 64.
const WEIGHTS: [u64; 4] = [1, 2, 3, 1];
const WIDER: u64 = 1 << 30;

/// The setting of [`World::full`].
pub(crate) fn setting(world: &World, rules: Rules) -> RoundSetting {
    RoundSetting {
        members: world.members,
        quorum: quorum(world.members),
        epoch: EPOCH,
        round: ROUND,
        ready: world
            .ready
            .positions()
            .map(|position| (position, secret(position)))
            .collect(),
        root: world.ready.root().0,
        block: BLOCK.0,
        authors: world.ready.positions().collect(),
        rules,
    }
}

/// Lines of the golden file.
#[derive(Default)]
struct GoldenLines(Vec<(String, Vec<u8>)>);

impl GoldenLines {
    fn add(&mut self, name: impl Into<String>, bytes: impl AsRef<[u8]>) {
        self.0.push((name.into(), bytes.as_ref().to_vec()));
    }

    fn numbered(&mut self, name: &str, all: impl Iterator<Item = [u8; 32]>) {
        for (at, bytes) in all.enumerate() {
            self.add(format!("{name} {at}"), bytes);
        }
    }

    fn words<W: Word>(&mut self, name: impl Into<String>, words: &[W]) {
        let mut bytes = Vec::new();
        W::write(words, &mut bytes);
        self.add(name, bytes);
    }

    fn text(&self) -> String {
        let lines = self.0.iter();
        file::lines(lines.map(|(name, bytes)| (name.as_str(), bytes.clone())))
    }
}

/// The weighted integers of an author and its checks.
fn input(author: u16, weight: u64) -> Vec<i64> {
    let numbers = model(author, COORDINATES).into_iter();
    let integers = numbers.map(|number| Fixed::MODEL.integer(f64::from(number)).0 * weight as i64);
    integers.chain([0; CHECKS]).collect()
}

fn keys_and_deals(setting: &RoundSetting, lines: &mut GoldenLines) -> BTreeMap<u16, Deal> {
    for author in 0..MEMBERS {
        lines.add(format!("secret of {author}"), secret(author));
        for (label, small, large) in [("dh", "a", "A"), ("share", "beta", "B")] {
            let key = setting.key(label, author);
            lines.add(format!("{small} of {author}"), key.to_bytes());
            lines.add(format!("{large} of {author}"), bytes(&(key * G)));
        }
    }
    lines.add("root", setting.root);
    lines.add("t", (setting.threshold() as u64).to_le_bytes());
    let mut deals = BTreeMap::new();
    for author in 0..MEMBERS {
        let deal = setting.deal(author);
        lines.numbered(
            &format!("p of {author}"),
            deal.polynomial.iter().map(Scalar::to_bytes),
        );
        lines.numbered(
            &format!("r of {author}"),
            deal.nonces.iter().map(Scalar::to_bytes),
        );
        lines.numbered(
            &format!("Y of {author}, for"),
            deal.locked.iter().map(bytes),
        );
        lines.numbered(
            &format!("W of {author}, for"),
            deal.commitments.iter().map(bytes),
        );
        lines.add(format!("e of {author}"), deal.challenge.to_bytes());
        lines.numbered(
            &format!("u of {author}"),
            deal.response.iter().map(Scalar::to_bytes),
        );
        lines.add(format!("transcript of {author}"), deal.bytes());
        deals.insert(author, deal);
    }
    deals
}

fn vectors(setting: &RoundSetting, lines: &mut GoldenLines) {
    for author in 0..MEMBERS {
        let weight = WEIGHTS[usize::from(author)];
        let narrow: Vec<_> = input(author, weight).into_iter().map(u32::wrap).collect();
        let wide: Vec<_> = input(author, weight * WIDER)
            .into_iter()
            .map(u64::wrap)
            .collect();
        lines.words(format!("w v of {author}, 32 bits"), &narrow);
        lines.words(
            format!("y of {author}, 32 bits"),
            &setting.mask32(author, &narrow),
        );
        lines.words(format!("w v of {author}, 64 bits"), &wide);
        lines.words(
            format!("y of {author}, 64 bits"),
            &setting.mask64(author, &wide),
        );
    }
}

fn openings(setting: &RoundSetting, deals: &BTreeMap<u16, Deal>, lines: &mut GoldenLines) {
    lines.add("block", setting.block);
    let mut shares: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for from in 0..MEMBERS {
        let unlocked = setting.unlock(from, deals);
        lines.numbered(
            &format!("D by {from}, of"),
            unlocked.shares.iter().map(bytes),
        );
        lines.add(format!("hash by {from}"), unlocked.hash);
        lines.add(
            format!("random scalar by {from}"),
            unlocked.random.to_bytes(),
        );
        lines.add(format!("opening by {from}"), unlocked.bytes());
        for (author, share) in (0..).zip(&unlocked.shares) {
            shares.entry(author).or_default().push((from, *share));
        }
    }
    for (author, shares) in shares {
        let opened = setting.interpolate(&shares[..setting.threshold()]);
        assert_eq!(opened, deals[&author].polynomial[0] * G);
        let seed = setting.own_seed(author, &opened);
        lines.add(format!("S of {author}"), bytes(&opened));
        lines.add(format!("b of {author}"), seed);
        lines.words(
            format!("PRG of b of {author}, 32 bits"),
            &words32(&seed, 0, 12),
        );
        lines.words(
            format!("PRG of b of {author}, 64 bits"),
            &words64(&seed, 0, 12),
        );
        for other in author + 1..MEMBERS {
            let seed = setting.pair_seed(author, other);
            lines.add(format!("s of {author} and {other}"), seed);
        }
    }
}

/// All lines of a round with these rules.
pub(crate) fn round(rules: Rules) -> String {
    let world = World::full(MEMBERS);
    let setting = setting(&world, rules);
    let mut lines = GoldenLines::default();
    lines.add("list", list_bytes(&world.list));
    lines.add("decision", b"one sum");
    let deals = keys_and_deals(&setting, &mut lines);
    vectors(&setting, &mut lines);
    openings(&setting, &deals, &mut lines);
    let sum = |wider: u64| -> Vec<i64> {
        let inputs = (0..MEMBERS).map(|i| input(i, WEIGHTS[usize::from(i)] * wider));
        inputs
            .reduce(|sum, one| sum.iter().zip(one).map(|(a, b)| a + b).collect())
            .unwrap()
    };
    let narrow: Vec<_> = sum(1).into_iter().map(u32::wrap).collect();
    lines.words("sum, 32 bits", &narrow);
    let wide: Vec<_> = sum(WIDER).into_iter().map(u64::wrap).collect();
    lines.words("sum, 64 bits", &wide);
    lines.text()
}

#[test]
fn every_value_of_a_round_stays_the_same() {
    file::check("golden/round.txt", &round(Rules::RIGHT));
}

/// Values of the fast implementation that it shows.
#[test]
fn both_implementations_give_the_same_round() {
    let world = World::full(MEMBERS);
    let all = [0, 1, 2, 3];
    let mut lines = GoldenLines::default();
    for keys in world.keys.values() {
        let author = keys.position();
        lines.add(format!("a of {author}"), keys.exchange_secret().to_bytes());
        lines.add(format!("A of {author}"), keys.public().exchange.bytes());
        lines.add(format!("beta of {author}"), keys.share().to_bytes());
        lines.add(format!("B of {author}"), keys.public().share.bytes());
        lines.add(format!("transcript of {author}"), world.deal(author));
    }
    let (transcripts, sum) = (world.transcripts(&all), world.sum(&all));
    let seeds = world.seeds(&transcripts, &[0, 1, 3]);
    for (author, key) in seeds.keys() {
        lines.add(
            format!("opening by {author}"),
            world.unlock(&transcripts, *author),
        );
        lines.add(format!("b of {author}"), *key.0);
        let mask = world.mask(*author, &sum);
        let others = all.iter().filter(|other| *other != author);
        for (other, (key, _)) in others.zip(&mask.streams()[1..]) {
            let (low, high) = (author.min(other), author.max(other));
            lines.add(format!("s of {low} and {high}"), *key.0);
        }
    }
    let narrow = shape(COORDINATES, &WEIGHTS);
    let wide = shape(COORDINATES, &WEIGHTS.map(|weight| weight * WIDER));
    let (mut narrows, mut wides) = (Vec::new(), Vec::new());
    for author in all {
        let (model, weight) = (model(author, COORDINATES), WEIGHTS[usize::from(author)]);
        narrows.push(world.vector::<u32>(author, &sum, narrow, weight, &model));
        wides.push(world.vector::<u64>(author, &sum, wide, weight * WIDER, &model));
        lines.add(format!("y of {author}, 32 bits"), narrows.last().unwrap());
        lines.add(format!("y of {author}, 64 bits"), wides.last().unwrap());
    }
    let opened = world.combine::<u32>(&seeds, &sum, narrow, &narrows);
    assert_eq!(opened.void, None);
    lines.words("sum, 32 bits", &opened.words);
    let opened = world.combine::<u64>(&seeds, &sum, wide, &wides);
    assert_eq!(opened.void, None);
    lines.words("sum, 64 bits", &opened.words);

    let golden = round(Rules::RIGHT);
    let golden: std::collections::BTreeSet<_> = golden.lines().collect();
    let mine = lines.text();
    for line in mine.lines() {
        assert!(golden.contains(line), "{line}");
    }
    assert_eq!(mine.lines().count(), 4 * 5 + 4 * (2 + 3) + 4 * 2 + 2);
}
