//! Sources of the random bytes from which the masks and the noise of a silo follow.

use std::fmt;

use privacy::masks::Secret;
use privacy::noise::Seed;
use protocol::Hash;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Gives a silo what it keeps to itself in secure-aggregation rounds: new bytes each time, asked for once for an epoch
/// and round. Whoever learns those of one round must learn nothing of another one.
pub trait RoundSecrets {
    /// The secret that all keys of a round follow from.
    ///
    /// # Errors
    /// There are no random bytes; the silo sits the round out.
    fn mask(&mut self) -> Result<Secret, String>;

    /// The seed of the noise of one vector.
    ///
    /// # Errors
    /// As for [`mask`](Self::mask).
    fn noise(&mut self) -> Result<Seed, String>;
}

/// The secrets of simulations: they all follow from one seed, so that runs can be repeated. Nothing that is
/// worth a secret may be masked with them.
pub struct SeededSecrets([u8; 32]);

impl SeededSecrets {
    /// Those of one start of a silo.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(Hash::labelled("mask secrets", &[seed]).0)
    }

    fn draw(&mut self, label: &str) -> [u8; 32] {
        let drawn = Hash::labelled(label, &[&self.0]);
        self.0 = Hash::labelled("mask secrets", &[&self.0]).0;
        drawn.0
    }
}

impl RoundSecrets for SeededSecrets {
    fn mask(&mut self) -> Result<Secret, String> {
        Ok(Secret::new(self.draw("mask secret")))
    }

    fn noise(&mut self) -> Result<Seed, String> {
        Ok(Seed::new(self.draw("noise seed")))
    }
}

impl fmt::Debug for SeededSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeededSecrets(..)")
    }
}

impl Drop for SeededSecrets {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for SeededSecrets {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use methods::Params;
    use protocol::MemberIndex;

    use super::*;
    use crate::rounds::{PreparedInput, PreparedRound, SecretIntegers};
    use crate::testing::{config, epoch};

    /// Returns whether a text has four bytes of a secret, or a number of it.
    fn shows(text: &str, bytes: &[u8]) -> bool {
        let hexadecimal: String = bytes[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let decimal = format!("{:?}", &bytes[..4]);
        text.to_lowercase().contains(&hexadecimal)
            || text.contains(decimal.trim_matches(['[', ']']))
    }

    #[test]
    fn no_secret_of_a_silo_is_shown_by_debug() {
        let mut silo = config(&epoch(4, 1), 0);
        silo.member.seed = [201; 32];
        let key = silo.member.key.to_bytes();
        let mut integers = SecretIntegers::zeros(3);
        integers.all_mut().fill(-98_765);
        let model = Params::build(&silo.learner.layout(), |values| values.fill(98_765.0));
        let prepared = [
            PreparedInput::Integers(integers.clone()),
            PreparedInput::Model(model),
        ];
        let prepared = prepared.map(|input| PreparedRound {
            round: 3,
            secret: Secret::new([201; 32]),
            input,
        });
        for shown in [
            format!("{prepared:?} {prepared:#?} {integers:?}"),
            format!("{:?} {:?}", silo.member, silo.member.key),
            format!("{:?}", SeededSecrets::new(&[201; 32])),
        ] {
            assert!(
                !shows(&shown, &[201; 32]) && !shows(&shown, &key),
                "{shown}"
            );
            assert!(!shown.contains("98765"), "{shown}");
        }
        assert_eq!(silo.member.me, MemberIndex(0));
    }

    #[test]
    fn every_secret_of_a_silo_is_overwritten_when_it_is_dropped() {
        const fn overwritten<T: ZeroizeOnDrop>() {}
        overwritten::<SeededSecrets>();
        overwritten::<SecretIntegers>();
        overwritten::<Secret>();
    }

    #[test]
    fn a_simulation_repeats_its_secrets_and_no_secret_occurs_twice() {
        let (mut one, mut other) = (SeededSecrets::new(&[7; 32]), SeededSecrets::new(&[7; 32]));
        let mut drawn = BTreeSet::new();
        for _ in 0..100 {
            let secret = *one.mask().unwrap().expose();
            assert_eq!(&secret, other.mask().unwrap().expose());
            assert!(drawn.insert(secret));
        }
        let secret = *SeededSecrets::new(&[8; 32]).mask().unwrap().expose();
        assert!(drawn.insert(secret));
    }
}
