//! The secrets of secure-aggregation rounds in a node.

use privacy::masks::Secret;
use privacy::noise::Seed;
use silo::RoundSecrets;
use zeroize::Zeroizing;

/// Asks the operating system anew for every round, so that nothing in the memory of the process tells what
/// it gave before or will give.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemSecrets;

impl SystemSecrets {
    fn bytes() -> Result<Zeroizing<[u8; 32]>, String> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(|error| {
            format!(
                "the operating system gives no random bytes for the masks of this round: {error}"
            )
        })?;
        Ok(bytes)
    }
}

impl RoundSecrets for SystemSecrets {
    fn mask(&mut self) -> Result<Secret, String> {
        Self::bytes().map(|bytes| Secret::new(*bytes))
    }

    fn noise(&mut self) -> Result<Seed, String> {
        Self::bytes().map(|bytes| Seed::new(*bytes))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use privacy::noise::{Gaussian, Noise};
    use protocol::{Hash, MemberIndex, SecretKey};

    use super::*;
    use crate::store::Owner;

    #[test]
    fn a_node_draws_new_secrets_for_every_round() {
        let gaussian = Gaussian::new(1 << 30).unwrap();
        let (mut secrets, mut noises) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..200 {
            assert!(secrets.insert(*SystemSecrets.mask().unwrap().expose()));
            let mut noise = Noise::new(&SystemSecrets.noise().unwrap());
            let drawn: Vec<i64> = (0..4).map(|_| noise.draw(gaussian)).collect();
            assert!(noises.insert(drawn));
        }
    }

    #[test]
    fn no_secret_of_a_node_is_shown_by_debug() {
        let key = SecretKey::from_bytes(&[201; 32]);
        let owner = Owner {
            federation: Hash([1; 32]),
            me: MemberIndex(0),
            key: key.clone(),
        };
        let shown = format!("{key:?} {owner:#?} {SystemSecrets:?}").to_lowercase();
        for secret in ["c9c9c9c9", "201, 201", "201,\n"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
