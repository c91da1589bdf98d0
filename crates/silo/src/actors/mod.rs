//! The four actors of a silo. Each is a folder: messages, actor, logic.

pub(crate) mod mesh;
pub(crate) mod observer;
pub(crate) mod silo;
pub(crate) mod worker;
