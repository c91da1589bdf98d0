//! The four actors of a silo, and the messages between them.

pub(crate) mod mesh;
pub(crate) mod messages;
pub(crate) mod observer;
pub(crate) mod silo;
pub(crate) mod worker;
