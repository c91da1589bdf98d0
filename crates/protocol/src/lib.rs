//! What is agreed: identities, roster, signed messages, views, rounds and certificates.
//!
//! Pure: no clock, no runtime, no network, no global randomness. A silo's whole behaviour towards
//! the others is [`Member::step`]: inputs in, effects out. Agreement follows Simplex (Chan & Pass,
//! TCC 2023): one round of learning is one block, one attempt at it is one view with one lead.

pub mod budget;
pub mod certificate;
pub mod charter;
pub mod codec;
pub mod effects;
pub mod envelope;
pub mod evidence;
pub mod hash;
pub mod identity;
pub mod member;
pub mod message;
pub mod name;
pub mod net;
pub mod refusal;
pub mod roster;
pub mod rotation;
mod statement;
pub mod time;
pub mod verify;
pub mod work;

pub use charter::{Charter, Epoch, Genesis};
pub use effects::{Effect, Input, Record, Report};
pub use hash::Hash;
pub use identity::{PublicKey, SecretKey};
pub use member::Member;
pub use message::Message;
pub use refusal::Refusal;
pub use roster::{MemberIndex, Roster};
pub use time::Time;
