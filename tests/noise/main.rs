//! One row or person more or less changes what an institution adds to a sum with noise by its own clipped
//! numbers, and by nothing else: from the text of the institution's file, through its node's reading and its
//! learner, to the integers before noise.

#![allow(clippy::unwrap_used)]

mod institution;
mod one_unit;
mod rows;
