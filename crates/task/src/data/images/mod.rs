//! Pictures as data: public sets by name and files of one's own, partitioned into silos.
//!
//! Files are read into a [`pool`] of rows that stay as small as they are in their files (a byte per
//! value, or compressed); the rows are partitioned and chosen by number; and only those that are used
//! are decoded, brought to one size, and become rows of a [`Table`](super::Table).

mod build;
mod config;
mod formats;
mod known;
mod pictures;
mod pool;
mod read;
mod transform;

pub use config::{ImageFile, ImagesConfig, ImagesFrom, TestPart};

#[cfg(test)]
mod tests;
