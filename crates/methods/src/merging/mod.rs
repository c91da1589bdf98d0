//! HCCT (Sun, Kountouris & Zhang 2024): merges clients into groups as long as their utility rises.
//!
//! All clients of a group learn the group's model, which moves along the mean of its members'
//! gradients, weighted by samples. A larger group has more data, but its direction fits each member
//! less. The utility of client `k` in group `c` weighs the two against each other (eq. (9)):
//!
//! `u_k = −α_k/N_c + cos(g_k, g_c)`, `N_c = Σ_{j∈c} n_j`, `g_c = Σ_{j∈c} n_j·g_j / N_c`.
//!
//! HCCT looks for the grouping with the largest total utility (eqs. (10), (11)). The paper's constant
//! `C` is left out: every grouping has every client once, so no comparison depends on it.
//!
//! Everything is computed from the inner products of the gradients, `G_ij = ⟨g_i, g_j⟩`, so the
//! cost does not depend on the size of the model. A positive factor common to all gradients cancels:
//! differences `start − model` serve as well as the gradients `(start − model)/rate` of eq. (5).
//! Factors that differ between clients (such as different learning rates) do matter, since they
//! weight the mean.
//!
//! [`Utility::merge`] is the paper's greedy Algorithm 2, which need not find the optimum;
//! [`MergeTree::cut`] has the groups of any number; [`Utility::admit`] finds a group for a newcomer; [`choose_layer`] chooses the layer that HCCT-E
//! compares.

mod admission;
mod differences;
mod greedy;
mod layers;
mod utility;

pub use admission::Admission;
pub use differences::differences;
pub use greedy::{GroupsError, Merge, MergeTree, Merged, Until};
pub use layers::{LayerSpread, LayerStatistic, OneLayer, SpreadError, choose_layer, spreads};
pub use utility::{Alpha, Grouping, Utility, UtilityError};

#[cfg(test)]
mod tests;
