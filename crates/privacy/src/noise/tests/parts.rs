//! The parts of the sampler.

use super::statistics::fits;
use super::*;
use crate::masks::testing::chacha20;
use crate::noise::gaussian::parts;

const DRAWS: u64 = 300_000;

/// Given words, for tests of single steps.
struct GivenWords<'a>(std::slice::Iter<'a, u64>);

impl Words for GivenWords<'_> {
    fn word(&mut self) -> u64 {
        *self.0.next().unwrap()
    }
}

#[test]
fn words_are_those_of_chacha20() {
    let mut stream = Stream::new(&Seed::new([3; 32]));
    for counter in 0..9 {
        for pair in chacha20(&[3; 32], counter).chunks(2) {
            let expected = u64::from(pair[1]) << 32 | u64::from(pair[0]);
            assert_eq!(stream.word(), expected);
        }
    }
}

#[test]
fn heads_come_with_probability_e_to_the_minus_gamma() {
    let mut stream = Stream::new(&seed(1));
    for (number, of) in [
        (0, 7),
        (1, 7),
        (1, 2),
        (6, 7),
        (1, 1),
        (1, 1 << 62),
        (3 << 61, 1 << 63),
    ] {
        let heads = (0..DRAWS)
            .filter(|_| parts::exp(number, of, &mut stream))
            .count() as u64;
        let expected = (-(number as f64) / of as f64).exp() * DRAWS as f64;
        if number == 0 {
            assert_eq!(heads, DRAWS);
        } else {
            let spread = (expected * (1.0 - expected / DRAWS as f64)).sqrt();
            let off = (heads as f64 - expected).abs();
            assert!(
                off <= 3.29 * spread + 1e-3,
                "{number}/{of}: {heads}, {expected}"
            );
        }
    }
}

#[test]
fn laplace_numbers_have_their_exact_probabilities() {
    let mut stream = Stream::new(&seed(2));
    for scale in [1, 4, 30] {
        let reach = 40 * scale as i64;
        let mut counts = vec![0; 2 * reach as usize + 1];
        for _ in 0..DRAWS {
            counts[(parts::laplace(scale, &mut stream) + reach) as usize] += 1;
        }
        let part = (-1.0 / scale as f64).exp();
        let first = (1.0 - part) / (1.0 + part) * DRAWS as f64;
        let expected: Vec<_> = (-reach..=reach)
            .map(|k| first * part.powi(k.unsigned_abs() as i32))
            .collect();
        assert!(fits(&counts, &expected), "scale {scale}");
    }
}

#[test]
fn uniform_numbers_are_equally_likely() {
    let mut stream = Stream::new(&seed(3));
    for below in [1, 2, 3, 10, 64, 97] {
        let mut counts = vec![0; below as usize];
        for _ in 0..DRAWS {
            counts[parts::uniform(below, &mut stream) as usize] += 1;
        }
        let expected = vec![DRAWS as f64 / below as f64; below as usize];
        assert!(below == 1 || fits(&counts, &expected), "{below}");
    }
}

#[test]
fn surplus_words_are_drawn_again() {
    // 2^64 mod 3 = 1: of the words whose product with 3 ends in 0, one is too many: 0.
    let drawn = |words: &[u64]| {
        let mut given = GivenWords(words.iter());
        (parts::uniform(3, &mut given), given.0.len())
    };
    assert_eq!(drawn(&[0, u64::MAX]), (2, 0));
    assert_eq!(drawn(&[1, 5]), (0, 1));
    // For 2^63 + 1, nearly half of all words are.
    let below = (1 << 63) + 1;
    let mut given = GivenWords([0, 1, 2, 3].iter());
    assert_eq!(parts::uniform(below, &mut given), 0);
    assert_eq!(given.0.len(), 2);
}

#[test]
fn noise_can_be_drawn_from_any_source() {
    struct Own(u64);
    impl Words for Own {
        fn word(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
            word ^ word >> 32
        }
    }
    let mut own = Own(1);
    let sum: f64 = (0..10_000)
        .map(|_| (gaussian(50).draw(&mut &mut own) as f64).powi(2))
        .sum();
    assert!((sum / 10_000.0 / 2500.0 - 1.0).abs() < 0.05);
}
