//! The mathematics that hides one silo's update from everybody else in the federation.
//!
//! The crate is pure: no network, no disk, no clock, no randomness of its own. Random bytes are
//! arguments, everything else follows from them. It knows nothing of views, votes and messages; the
//! environment carry its bytes and decide when each step may be taken.
//!
//! [`masks`] has masked sums: of the vectors that several silos send, only the sum can be opened, and
//! only after consensus has made the set of its authors final.
//!
//! Three modules bound what a sum tells about one patient:
//!
//! 1. [`sensitivity`] makes integers of the vector of one unit (a row, or a person), such that no unit
//!    changes a sum by more than a known length Δ.
//! 2. [`noise`] adds random integers to it, so that nobody can tell from a sum whether a unit was there.
//! 3. [`accountant`] says how well: ε and δ of all sums so far.
//!
//! [`least_squares`] has sums from which a linear model is solved at once.
//!
//! *Experimental: no cryptographer has reviewed it.*

pub mod accountant;
pub mod least_squares;
pub mod masks;
pub mod noise;
pub mod sensitivity;

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use zeroize::ZeroizeOnDrop;

    use crate::masks::{Mask, MemberKeys, Secret, Seeds};
    use crate::noise::{Noise, Seed};

    /// The parts of the secret types are those of the crates for keys and streams, or `Zeroizing`.
    #[test]
    fn every_secret_is_overwritten_when_it_is_dropped() {
        const fn overwritten<T: ZeroizeOnDrop + Debug>() {}
        overwritten::<Secret>();
        overwritten::<MemberKeys>();
        overwritten::<Mask>();
        overwritten::<Seeds>();
        overwritten::<Seed>();
        overwritten::<Noise>();
    }

    #[test]
    fn no_secret_is_shown_by_debug() {
        let shown = [
            format!("{:?}", Secret::new([201; 32])),
            format!("{:?}", Seed::new([201; 32])),
            format!("{:?}", Noise::new(&Seed::new([201; 32]))),
        ];
        assert_eq!(shown, ["Secret(..)", "Seed(secret)", "Noise(0 drawn)"]);
    }
}
