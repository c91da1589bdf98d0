//! Known answers by libraries that others wrote: curv-kzen (the low-degree proof and Lagrange's weights)
//! and sigma-proofs (both proofs as linear relations). `vectors/README.md` says how they were made.

use curve25519_dalek::{RistrettoPoint, Scalar};

use crate::masks::dleq::{self, DleqProof};
use crate::masks::group::{Point, Ristretto, decode_scalar, generator};
use crate::masks::polynomial::{lagrange_at_zero, place, value};
use crate::masks::testing::hex;
use crate::masks::transcript::commitments;
use crate::masks::{Listed, ReadyList, Root};

/// The values of a file, by name in their order.
struct OracleVectors(&'static str);

impl OracleVectors {
    fn all(&self, name: &str) -> Vec<[u8; 32]> {
        let lines = self.0.lines().filter_map(|line| line.split_once(' '));
        let values = lines.filter(|(found, _)| *found == name);
        let values = values.map(|(_, digits)| {
            let mut bytes = hex(digits);
            bytes.resize(32, 0);
            bytes.try_into().unwrap()
        });
        values.collect()
    }

    fn points(&self, name: &str) -> Vec<Point> {
        let points = self.all(name).into_iter().map(Point::decode);
        points.collect::<Result<_, _>>().unwrap()
    }

    fn scalars(&self, name: &str) -> Vec<Scalar> {
        let scalars = self.all(name).into_iter().map(decode_scalar);
        scalars.collect::<Result<_, _>>().unwrap()
    }

    fn positions(&self) -> Vec<u16> {
        let positions = self.all("position").into_iter();
        positions
            .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
            .collect()
    }

    /// A list whose members have these keys: 5 of 7, so t = 3.
    fn ready(&self, keys: &[Point]) -> ReadyList {
        let members = self.positions().into_iter().zip(keys);
        let list = members.map(|(position, key)| Listed {
            position,
            exchange: generator().bytes(),
            share: key.bytes(),
        });
        let ready = ReadyList::new(Root([1; 32]), 7, 5, &list.collect::<Vec<_>>()).unwrap();
        assert_eq!(ready.threshold(), 3);
        ready
    }
}

const CURV: OracleVectors = OracleVectors(include_str!("../vectors/curv.txt"));
const SIGMA: OracleVectors = OracleVectors(include_str!("../vectors/sigma.txt"));

#[test]
fn locked_shares_are_those_of_curv() {
    let polynomial = CURV.scalars("w");
    let rows = CURV.positions().into_iter().zip(CURV.points("g"));
    let shares =
        rows.map(|(position, key)| Point::new(*value(&polynomial, &place(position)) * key.point()));
    assert_eq!(shares.collect::<Vec<_>>(), CURV.points("x"));
}

/// The challenge of curv has the other sign.
#[test]
fn the_commitments_of_a_transcript_are_those_of_curv() {
    let ready = CURV.ready(&CURV.points("g"));
    let (challenge, response) = (-CURV.scalars("e")[0], CURV.scalars("z"));
    assert_eq!(response.len(), ready.threshold());
    let computed = commitments(&ready, &CURV.points("x"), &challenge, &response);
    assert_eq!(computed, CURV.all("a"));
}

#[test]
fn the_weights_of_an_interpolation_are_those_of_curv() {
    let positions = CURV.positions();
    let places: Vec<_> = positions[..3]
        .iter()
        .map(|position| place(*position))
        .collect();
    let weights = lagrange_at_zero(&places);
    assert_eq!(weights, CURV.scalars("lambda"));
    let polynomial = CURV.scalars("w");
    let shares = places
        .iter()
        .map(|place| RistrettoPoint::mul_base(&value(&polynomial, place)));
    let sum: RistrettoPoint = weights
        .iter()
        .zip(shares)
        .map(|(weight, share)| weight * share)
        .sum();
    assert_eq!(sum, RistrettoPoint::mul_base(&polynomial[0]));
}

#[test]
fn the_commitments_of_a_transcript_are_those_of_sigma_proofs() {
    let ready = SIGMA.ready(&SIGMA.points("B"));
    let (challenge, response) = (SIGMA.scalars("e")[0], SIGMA.scalars("u"));
    let computed = commitments(&ready, &SIGMA.points("Y"), &challenge, &response);
    assert_eq!(computed, SIGMA.all("W"));
}

/// The challenge of sigma-proofs has the other sign.
#[test]
fn the_commitments_of_an_opening_are_those_of_sigma_proofs() {
    let point = |name| SIGMA.points(name)[0];
    let proof = DleqProof {
        challenge: -SIGMA.scalars("dleq-c")[0],
        response: SIGMA.scalars("dleq-s")[0],
    };
    let keys = [generator(), point("dleq-B")];
    let composites = [point("dleq-M"), point("dleq-Z")];
    let computed = dleq::commitments::<Ristretto>(keys, composites, &proof);
    assert_eq!(computed, [point("dleq-t2"), point("dleq-t3")]);
}
