//! Whole federations in virtual time, as scenarios describe them.

mod attacks;
mod canaries;
mod common;
mod deaths;
mod direct;
mod faults;
mod leaf;
mod masked;
mod noised;
mod nothing;
mod once;
mod outside;
mod planted;
mod scenarios;
mod serving;
mod serving_measured;
#[path = "../../../../tests/skipped/mod.rs"]
mod skipped;
mod slow_links;
mod strategies;
mod survival;
mod vocabulary;
mod worth;
