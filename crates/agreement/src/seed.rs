//! The seed of a silo, derived from the common seed.

use protocol::MemberIndex;

/// A silo's own seed, for the order of rows in training: `seed`, changed by the member's position
/// in the roster.
pub fn silo_seed(seed: u64, member: MemberIndex) -> u64 {
    seed ^ (u64::from(member.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
