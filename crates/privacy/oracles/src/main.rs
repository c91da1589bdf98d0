//! Known answers by curv-kzen and sigma-proofs, and the golden round checked by sigma-proofs.
//!
//! Run it in this folder: `cargo run`. The provers draw random numbers, so every run writes other
//! vectors; those of the repository were written once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use curv::arithmetic::traits::Converter;
use curv::cryptographic_primitives::proofs::low_degree_exponent_interpolation::{
    LdeiProof, LdeiStatement, LdeiWitness,
};
use curv::cryptographic_primitives::secret_sharing::Polynomial;
use curv::elliptic::curves::{Point, Ristretto, Scalar as CurvScalar};
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::{RistrettoPoint, Scalar};
use group::Group;
use sigma_proofs::linear_relation::LinearCombination;
use sigma_proofs::traits::SigmaProtocol;
use sigma_proofs::{Instance, LinearRelation, ProverRng};

/// Positions of the ready, and t: 5 of 7 members with a quorum of 5.
const POSITIONS: [u16; 5] = [0, 1, 3, 4, 6];
const THRESHOLD: usize = 3;

fn main() {
    fs::write("../src/masks/vectors/curv.txt", curv()).expect("the vectors can be written");
    fs::write("../src/masks/vectors/sigma.txt", sigma()).expect("the vectors can be written");
    golden();
}

fn line(text: &mut String, name: &str, bytes: impl AsRef<[u8]>) {
    writeln!(text, "{name} {}", hex::encode(bytes)).expect("a string grows");
}

/// A scalar of curv, little-endian.
fn scalar(scalar: &CurvScalar<Ristretto>) -> Vec<u8> {
    let mut bytes = scalar.to_bigint().to_bytes();
    bytes.reverse();
    bytes.resize(32, 0);
    bytes
}

/// The low-degree proof of curv: z = u − e·w, so its e is minus ours.
fn curv() -> String {
    let mut text = "# curv-kzen 0.10.0: LdeiProof over Ristretto. See README.md.\n".to_owned();
    let witness = LdeiWitness {
        w: Polynomial::<Ristretto>::sample_exact(THRESHOLD as u16 - 1),
    };
    let places = POSITIONS.map(|position| CurvScalar::<Ristretto>::from(position + 1));
    let keys: Vec<_> = places
        .iter()
        .map(|_| Point::<Ristretto>::generator() * CurvScalar::<Ristretto>::random())
        .collect();
    let statement = LdeiStatement::new(&witness, places.to_vec(), keys, THRESHOLD as u16 - 1)
        .expect("the witness fits");
    let proof = LdeiProof::<Ristretto, sha2_old::Sha256>::prove(&witness, &statement)
        .expect("it is proven");
    proof
        .verify(&statement)
        .expect("curv accepts its own proof");
    for coefficient in witness.w.coefficients() {
        line(&mut text, "w", scalar(coefficient));
    }
    let point = |point: &Point<Ristretto>| point.to_bytes(true).to_vec();
    let rows = statement.g.iter().zip(&statement.x).zip(&proof.a);
    for (position, ((key, share), commitment)) in POSITIONS.iter().zip(rows) {
        line(&mut text, "position", position.to_le_bytes());
        line(&mut text, "g", point(key));
        line(&mut text, "x", point(share));
        line(&mut text, "a", point(commitment));
    }
    line(&mut text, "e", scalar(&proof.e));
    for coefficient in proof.z.coefficients() {
        line(&mut text, "z", scalar(coefficient));
    }
    // The weights of Lagrange's interpolation at 0 from the first t places.
    let zero = CurvScalar::<Ristretto>::zero();
    for at in 0..THRESHOLD {
        let weight =
            Polynomial::<Ristretto>::lagrange_basis(&zero, at as u16, &places[..THRESHOLD]);
        line(&mut text, "lambda", scalar(&weight));
    }
    text
}

fn number(seed: u64) -> Scalar {
    let mut state = Scalar::from(seed);
    for _ in 0..5 {
        state = state * state + Scalar::from(0x9e37_79b9_7f4a_7c15_u64);
    }
    state
}

/// Y_j = Σ_k p_k·x_j^k·B_j for all j, as a linear relation in p.
fn low_degree(
    positions: &[u16],
    keys: &[RistrettoPoint],
    shares: &[RistrettoPoint],
    threshold: usize,
) -> Instance<RistrettoPoint> {
    let mut relation = LinearRelation::<RistrettoPoint>::new();
    let coefficients = relation.allocate_scalars_vec(threshold);
    for ((position, key), share) in positions.iter().zip(keys).zip(shares) {
        let place = Scalar::from(u64::from(*position) + 1);
        let mut power = Scalar::ONE;
        let mut sum = Vec::new();
        for coefficient in &coefficients {
            let base = relation.allocate_element_with(key * power);
            sum.push(*coefficient * base);
            power *= place;
        }
        let image = sum
            .into_iter()
            .map(LinearCombination::from)
            .reduce(|sum, term| sum + term)
            .expect("t > 0");
        relation.allocate_eq_with(*share, image);
    }
    relation.compile().expect("the relation is well formed")
}

/// A = k·G and Z = k·M, as a linear relation in k.
fn equal(keys: [RistrettoPoint; 2], composites: [RistrettoPoint; 2]) -> Instance<RistrettoPoint> {
    let mut relation = LinearRelation::<RistrettoPoint>::new();
    let k = relation.allocate_scalar();
    for [before, after] in [keys, composites] {
        let base = relation.allocate_element_with(before);
        relation.allocate_eq_with(after, k * base);
    }
    relation.compile().expect("the relation is well formed")
}

/// Interactive transcripts of sigma-proofs, with challenges chosen here: response = nonce +
/// challenge·witness, so its challenge is ours for transcripts and minus ours for openings.
fn sigma() -> String {
    let mut text = "# sigma-proofs 0.4.1: interactive transcripts. See README.md.\n".to_owned();
    let bytes = |point: &RistrettoPoint| point.compress().to_bytes();
    let mut rng = ProverRng::from_os_entropy();

    let generator = RistrettoPoint::generator();
    let polynomial: Vec<_> = (0..THRESHOLD as u64).map(|k| number(100 + k)).collect();
    let keys = POSITIONS.map(|position| generator * number(200 + u64::from(position)));
    let shares: Vec<_> = POSITIONS
        .iter()
        .zip(&keys)
        .map(|(position, key)| {
            let x = Scalar::from(u64::from(*position) + 1);
            key * (polynomial[0] + polynomial[1] * x + polynomial[2] * x * x)
        })
        .collect();
    let instance = low_degree(&POSITIONS, &keys, &shares, THRESHOLD);
    let (commitment, state) = instance
        .prover_commit(&polynomial, &mut rng)
        .expect("a witness");
    let challenge = number(300);
    let response = instance
        .prover_response(state, &challenge)
        .expect("a witness");
    instance
        .verifier(&commitment, &challenge, &response)
        .expect("its own proof holds");
    for at in 0..POSITIONS.len() {
        line(&mut text, "position", POSITIONS[at].to_le_bytes());
        line(&mut text, "B", bytes(&keys[at]));
        line(&mut text, "Y", bytes(&shares[at]));
        line(&mut text, "W", bytes(&commitment[at]));
    }
    line(&mut text, "e", challenge.to_bytes());
    for scalar in &response {
        line(&mut text, "u", scalar.to_bytes());
    }

    let k = number(400);
    let before = generator * number(401);
    let keys = [generator, generator * k];
    let composites = [before, before * k];
    let instance = equal(keys, composites);
    let (commitment, state) = instance.prover_commit(&[k], &mut rng).expect("a witness");
    let challenge = number(402);
    let response = instance
        .prover_response(state, &challenge)
        .expect("a witness");
    instance
        .verifier(&commitment, &challenge, &response)
        .expect("its own proof holds");
    line(&mut text, "dleq-B", bytes(&keys[1]));
    line(&mut text, "dleq-M", bytes(&composites[0]));
    line(&mut text, "dleq-Z", bytes(&composites[1]));
    line(&mut text, "dleq-t2", bytes(&commitment[0]));
    line(&mut text, "dleq-t3", bytes(&commitment[1]));
    line(&mut text, "dleq-c", challenge.to_bytes());
    line(&mut text, "dleq-s", response[0].to_bytes());
    text
}

/// The transcripts of the golden round, checked by sigma-proofs: same shares, same commitments.
fn golden() {
    let text = fs::read_to_string("../golden/round.txt").expect("the golden round");
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let values: BTreeMap<_, _> = lines
        .map(|(name, digits)| (name, hex::decode(digits).expect("hexadecimal digits")))
        .collect();
    let point = |name: String| {
        let bytes = values[name.as_str()].as_slice();
        let compressed = CompressedRistretto::from_slice(bytes).expect("32 bytes");
        compressed.decompress().expect("a point")
    };
    let scalar = |name: String| {
        let bytes: [u8; 32] = values[name.as_str()].clone().try_into().expect("32 bytes");
        Scalar::from_canonical_bytes(bytes).expect("a scalar")
    };
    let keys: Vec<_> = (0..4).map(|j| point(format!("B of {j}"))).collect();
    for author in 0..4 {
        let of = |what: &str| -> Vec<_> {
            (0..4)
                .map(|j| point(format!("{what} of {author}, for {j}")))
                .collect()
        };
        let instance = low_degree(&[0, 1, 2, 3], &keys, &of("Y"), 3);
        let response: Vec<_> = (0..3)
            .map(|k| scalar(format!("u of {author} {k}")))
            .collect();
        let challenge = scalar(format!("e of {author}"));
        instance
            .verifier(&of("W"), &challenge, &response)
            .expect("sigma-proofs accepts the golden transcript");
        let wrong = challenge + Scalar::ONE;
        assert!(instance.verifier(&of("W"), &wrong, &response).is_err());
    }
    println!("sigma-proofs accepts the four transcripts of the golden round");
}
