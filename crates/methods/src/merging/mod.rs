//! HCCT (Sun, Kountouris & Zhang 2024): groups of clients by merging while the utility rises.
//!
//! Every client of a group learns the group's model, whose step is the mean of its members'
//! gradients by samples. A larger group means more data and a direction that suits everybody less.
//! The utility of client `k` in group `c` weighs the two (eq. (9)):
//!
//! `u_k = −α_k/N_c + cos(g_k, g_c)`, `N_c = Σ_{j∈c} n_j`, `g_c = Σ_{j∈c} n_j·g_j / N_c`.
//!
//! The paper's constant `C` is left out: every division has every client once, so no comparison of
//! divisions depends on it. Wanted is the division with the largest total utility (eqs. (10), (11)).
//!
//! Everything is computed from the inner products of the gradients, `G_ij = ⟨g_i, g_j⟩`, so it
//! costs the same for every size of model. The cosine does not see a client's scale as a whole: any
//! common positive factor of all gradients cancels, and the differences `start − model` do as well
//! as the gradients `(start − model)/rate` of eq. (5). Factors that differ between the clients (a
//! learning rate of one's own) do matter, since they weigh the mean.
//!
//! Roads to a division, one file each: `greedy` is the paper's Algorithm 2, for any number of
//! clients, not always optimal; `exhaustive` is the optimum for up to [`EXHAUSTIVE_UP_TO`]
//! clients. `admission` finds a newcomer its group; `layers` chooses what HCCT-E compares and what
//! HCCT-P shares.

mod admission;
mod greedy;
mod layers;
mod utility;

pub use admission::Admission;
pub use greedy::{GroupsError, Merge, Merged, Until};
pub use layers::{OneLayer, Spread, SpreadError, Statistic, choose_layer, spreads};
pub use utility::{Alpha, Grouping, Utility, UtilityError};

#[cfg(test)]
mod tests;
