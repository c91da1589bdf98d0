//! The random bytes that a silo draws for masked rounds.

use privacy::masks::Secret;
use privacy::noise::Seed;
use protocol::Hash;

/// Fresh random bytes for the secrets of masked rounds. Whoever sees the state later cannot compute
/// earlier ones.
pub(crate) struct MaskSecrets([u8; 32]);

impl MaskSecrets {
    /// Begins with bytes that were drawn at this start.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self(Hash::labelled("mask secrets", &[seed]).0)
    }

    pub(crate) fn draw(&mut self) -> Secret {
        let drawn = Hash::labelled("mask secret", &[&self.0]);
        self.0 = Hash::labelled("mask secrets", &[&self.0]).0;
        Secret::new(drawn.0)
    }

    /// Fresh random bytes that the noise of one vector follows from.
    pub(crate) fn draw_noise(&mut self) -> Seed {
        let drawn = Hash::labelled("noise seed", &[&self.0]);
        self.0 = Hash::labelled("mask secrets", &[&self.0]).0;
        Seed::new(drawn.0)
    }
}
