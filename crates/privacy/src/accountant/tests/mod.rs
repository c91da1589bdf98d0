//! The accountant against other implementations.

mod known;
mod lattice;
mod rules;

use super::*;

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn z(value: f64) -> Multiplier {
    Multiplier::new(value).unwrap()
}

/// With the authors (a, c).
fn spent(rounds: &[(f64, u64)], (fewest, colluders): (u16, u16)) -> Accountant {
    let authors = Authors::new(fewest, colluders).unwrap();
    let mut accountant = Accountant::new();
    for (noise, rounds) in rounds {
        accountant.spend(z(*noise), authors, *rounds);
    }
    accountant
}

/// ε without the margin.
fn truth(mu: f64, most: f64) -> f64 {
    curve::epsilon(mu, most)
}
