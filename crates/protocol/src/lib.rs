//! The agreement protocol of Rota: how the members of a federation take turns at leading rounds of
//! learning, check each other, and agree on one outcome per round.
//!
//! The crate is a state machine without a clock, a runtime, a network or global randomness. Time is
//! an argument, randomness a seed. `docs/protocol.md` in the repository describes the protocol with
//! its rules (R1–R5) and properties (S1–S10, L1–L4). Agreement follows Simplex (Chan & Pass, TCC
//! 2023): a round of learning is a block of the agreed chain, an attempt at it is a *view* with one
//! lead, and a quorum of votes makes a *certificate*.
//!
//! # Overview
//!
//! - **Who agrees on what.** A [`Roster`] lists the members with their [public keys](PublicKey), a
//!   [`ProtocolParameters`] holds the numbers and the work that they agreed on. Together they are the
//!   [`Genesis`], from which the [`Epoch`] follows, with the federation's id and the
//!   [rotation] of leads; [`Turns`](rotation::Turns) says who leads after the final rounds. A
//!   [`change`] of roster or parameter set begins another epoch.
//! - **What members send.** A [`Message`] has one of the [kinds](message::Kind) in [`message`]. Each
//!   travels as a [`Frame`] in a signed [`envelope`]; [`envelope::open`] is the one way in for bytes from outside,
//!   and a [`budget`] limits what they may cost. [Certificates](certificate) and
//!   [evidence] prove themselves; [`verify`] checks them, and [`accusation`] says what evidence proves to
//!   those who stand outside.
//! - **What a member does.** A [`Member`] takes [inputs](Input) and gives [effects](Effect):
//!   messages to send, [records](Record) to make durable, [work] on models to do, and
//!   [reports](Report) for people. Messages that it does not accept have a [`Refusal`].
//! - **What surrounds it.** [`net`] holds the commands and events of a network. Everything that is
//!   signed, hashed or kept is encoded by [`codec`].
//!
//! # Use
//!
//! The environment own the clock, the disk and the network. For every event they call
//! [`Member::step`] and carry out the effects in order: all [`Effect::Persist`] of a step in one
//! transaction first, then the others. They call it again with [`Input::Time`] when
//! [`Member::deadline`] is reached. `examples/round_by_hand.rs` in the repository does this for one
//! round, without actors or a network.

pub mod accusation;
pub mod budget;
pub mod certificate;
pub mod change;
pub mod codec;
mod consent;
pub mod effects;
pub mod envelope;
pub mod epochs;
pub mod evidence;
pub mod forgotten;
pub mod format;
pub mod frame;
pub mod hash;
pub mod identity;
pub mod member;
pub mod message;
pub mod name;
pub mod net;
pub mod parameters;
pub mod recovery;
pub mod refusal;
pub mod roster;
pub mod rotation;
mod statement;
pub mod time;
pub mod verification;
pub mod verify;
pub mod work;

pub use effects::{Effect, Input, Record, Report};
pub use epochs::Epochs;
pub use forgotten::Forgotten;
pub use format::Formats;
pub use frame::Frame;
pub use hash::Hash;
pub use identity::{PublicKey, SecretKey};
pub use member::Member;
pub use message::Message;
pub use parameters::privacy;
pub use parameters::{Checkpoint, Epoch, Genesis, ProtocolParameters};
pub use refusal::Refusal;
pub use roster::{MemberIndex, Roster};
pub use time::Time;
