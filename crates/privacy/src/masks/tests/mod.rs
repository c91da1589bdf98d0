//! Whole rounds: with known answers, with every kind of forged message, and with broken formulas.

mod blame;
mod broken;
mod golden;
mod oracles;
mod reference;
mod refusals;
mod rounds;
mod world;
