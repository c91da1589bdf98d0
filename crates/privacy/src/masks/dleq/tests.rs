//! The vectors of the RFC, and a batch whose errors cancel on a group that is small enough to find one.

use std::collections::BTreeMap;

use super::*;
use crate::masks::group::{Point, Ristretto, decode_scalar, generator};
use crate::masks::testing::hex;

/// contextString of RFC 9497 for VOPRF with ristretto255-SHA512.
const RFC_CONTEXT: &[u8] = b"OPRFV1-\x01-ristretto255-SHA512";

fn array(digits: &str) -> [u8; 32] {
    hex(digits).try_into().unwrap()
}

fn points(list: &str) -> Vec<Point> {
    let points = list.split(',').map(|digits| Point::decode(array(digits)));
    points.collect::<Result<_, _>>().unwrap()
}

/// The fields of a vector, by name.
type VectorFields<'a> = BTreeMap<&'a str, &'a str>;

/// The server's keys, then each vector.
fn rfc() -> (VectorFields<'static>, Vec<VectorFields<'static>>) {
    let text = include_str!("../vectors/rfc9497.txt");
    let block = |block: &'static str| -> VectorFields<'static> {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(' ')).collect()
    };
    let mut blocks = text.split("\n\n").map(block);
    (blocks.next().unwrap(), blocks.collect())
}

#[test]
fn proofs_are_those_of_rfc_9497_for_batches_of_one_and_two() {
    let (keys, vectors) = rfc();
    let key = decode_scalar(array(keys["skSm"])).unwrap();
    let mut sizes = Vec::new();
    for vector in vectors {
        let (before, after) = (
            points(vector["BlindedElement"]),
            points(vector["EvaluationElement"]),
        );
        let statement = Statement::<Ristretto> {
            base: generator(),
            key: points(keys["pkSm"])[0],
            before: &before,
            after: &after,
            context: RFC_CONTEXT,
        };
        let random = decode_scalar(array(vector["ProofRandomScalar"])).unwrap();
        let proof = prove(&statement, &key, &random).unwrap();
        let bytes = [proof.challenge.to_bytes(), proof.response.to_bytes()].concat();
        assert_eq!(bytes, hex(vector["Proof"]));
        assert_eq!(verify(&statement, &proof), Ok(true));

        let other = Statement {
            context: b"OPRFV1-\x02-ristretto255-SHA512",
            ..statement
        };
        assert_eq!(verify(&other, &proof), Ok(false), "another context");
        sizes.push(before.len());
    }
    assert_eq!(sizes, [1, 1, 2]);
}

#[test]
fn batches_of_wrong_sizes_are_refused() {
    let one = [generator()];
    let statement = |before, after, context| Statement::<Ristretto> {
        base: generator(),
        key: generator(),
        before,
        after,
        context,
    };
    let refused = |statement| {
        let one = curve25519_dalek::Scalar::ONE;
        prove(&statement, &one, &one).unwrap_err()
    };
    let lengths = BatchError::Lengths {
        before: 1,
        after: 0,
    };
    assert_eq!(refused(statement(&one, &[], b"")), lengths);
    assert_eq!(refused(statement(&[], &[], b"")), BatchError::Pairs(0));
    let many = vec![generator(); MOST_PAIRS + 1];
    let pairs = BatchError::Pairs(MOST_PAIRS + 1);
    assert_eq!(refused(statement(&many, &many, b"")), pairs);
    let long = [0; MOST_CONTEXT + 1];
    let context = BatchError::Context(MOST_CONTEXT + 1);
    assert_eq!(refused(statement(&one, &one, &long)), context);
    let most = statement(&one, &one, &long[1..]);
    assert!(verify(&most, &prove(&most, &1_u64.into(), &2_u64.into()).unwrap()).unwrap());
}

/// The squares modulo 2q + 1: a group of order q. Both are prime.
#[derive(Debug)]
enum Toy {}

const ORDER: u64 = 1_048_889;
const MODULUS: u64 = 2 * ORDER + 1;
const FOUR: u64 = 4;

/// An integer modulo [`ORDER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Small(u64);

impl Add for Small {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self((self.0 + other.0) % ORDER)
    }
}

impl Sub for Small {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self((self.0 + ORDER - other.0) % ORDER)
    }
}

impl Mul for Small {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0 % ORDER)
    }
}

fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let (mut result, mut square) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % modulus;
        }
        square = square * square % modulus;
        exponent >>= 1;
    }
    result
}

impl PrimeGroup for Toy {
    type Scalar = Small;
    type Element = u64;

    fn scalar(wide: &[u8; 64]) -> Small {
        let digits = wide.iter().rev();
        Small(digits.fold(0, |rest, digit| (rest * 256 + u64::from(*digit)) % ORDER))
    }

    fn encode(element: &u64) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&element.to_le_bytes());
        bytes
    }

    fn multiply(scalar: &Small, element: &u64) -> u64 {
        power(*element, scalar.0, MODULUS)
    }

    fn combine(scalars: &[Small], elements: &[u64]) -> u64 {
        let pairs = scalars.iter().zip(elements);
        pairs.fold(1, |product, (scalar, element)| {
            product * Self::multiply(scalar, element) % MODULUS
        })
    }
}

fn is_prime(number: u64) -> bool {
    (2..)
        .take_while(|d| d * d <= number)
        .all(|d| !number.is_multiple_of(d))
}

/// The context of an opening of these shares: with the hash of all of them, or without it.
fn context(with_hash: bool, unlocked: &[u64], locked: &[u64]) -> Vec<u8> {
    let mut context = b"rota opening 1".to_vec();
    if with_hash {
        let all = unlocked.iter().chain(locked).flat_map(Toy::encode);
        context.extend(Sha512::digest(all.collect::<Vec<u8>>()));
    }
    context
}

fn toy<'a>(
    key: u64,
    unlocked: &'a [u64],
    locked: &'a [u64],
    context: &'a [u8],
) -> Statement<'a, Toy> {
    Statement {
        base: FOUR,
        key,
        before: unlocked,
        after: locked,
        context,
    }
}

/// The member that knows `key` looks for two false shares whose errors cancel under the RFC's weights:
/// those depend on the own pair only, so two lists of candidates can be tried against each other.
fn cancelling(key: Small, public: u64, locked: [u64; 2]) -> Vec<[u64; 2]> {
    let inverse = Small(power(key.0, ORDER - 2, ORDER));
    let right = locked.map(|share| Toy::multiply(&inverse, &share));
    let candidate = |error: u64| right.map(|share| share * power(FOUR, error, MODULUS) % MODULUS);
    let context = context(false, &[], &[]);
    let weighed: Vec<_> = (1..3000)
        .map(|error| {
            let candidates = candidate(error);
            let weights = weights(&toy(public, &candidates, &locked, &context)).unwrap();
            (
                error,
                [weights[0] * Small(error), weights[1] * Small(error)],
            )
        })
        .collect();
    let first = weighed
        .iter()
        .map(|(error, [weighed, _])| (*weighed, *error));
    let first: BTreeMap<Small, u64> = first.collect();
    let cancel = weighed.iter().filter_map(|(error, [_, weighed])| {
        let other = first.get(&(Small(0) - *weighed))?;
        Some([candidate(*other)[0], candidate(*error)[1]])
    });
    cancel.collect()
}

#[test]
fn a_batch_of_cancelling_errors_is_refused_only_with_the_hash() {
    assert!(is_prime(ORDER) && is_prime(MODULUS));
    let (key, random) = (Small(77_777), Small(31_415));
    let public = Toy::multiply(&key, &FOUR);
    let locked = [5, 9].map(|number| power(number, 2, MODULUS));
    let inverse = Small(power(key.0, ORDER - 2, ORDER));
    let right = locked.map(|share| Toy::multiply(&inverse, &share));
    let passes = |with_hash, unlocked: &[u64; 2]| {
        let context = context(with_hash, unlocked, &locked);
        let statement = toy(public, unlocked, &locked, &context);
        let proof = prove(&statement, &key, &random).unwrap();
        verify(&statement, &proof).unwrap()
    };
    assert!(passes(false, &right) && passes(true, &right));

    let found = cancelling(key, public, locked);
    assert!(found.len() > 3, "{found:?}");
    for unlocked in found {
        assert!(unlocked[0] != right[0] && unlocked[1] != right[1]);
        assert!(
            passes(false, &unlocked),
            "false shares pass without the hash"
        );
        assert!(!passes(true, &unlocked), "with it they are refused");
    }
}
