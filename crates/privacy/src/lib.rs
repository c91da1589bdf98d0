//! What hides one silo's update.

pub mod masks;
