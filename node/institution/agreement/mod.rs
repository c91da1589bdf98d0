//! The agreement as it stands at one institution: the one in force and those before, amendments to it,
//! recoveries, and what the institution has signed.

pub(super) mod amendments;
pub(super) mod history;
pub(super) mod in_force;
pub(super) mod recovery_wish;
pub mod short_id;
pub(super) mod signed;
pub(super) mod weaknesses;
