//! Methods that make one model for all members.

pub(crate) mod afl;
pub(crate) mod client_sampling;
pub(crate) mod drfa;
pub(crate) mod fedavg;
pub(crate) mod fedfa;
pub(crate) mod fednova;
pub(crate) mod fedopt;
pub(crate) mod hierarchical;
pub(crate) mod maxfl;
pub(crate) mod maxfl_joins;
pub(crate) mod members;
pub(crate) mod minimax;
pub(crate) mod momentum;
pub(crate) mod self_weighted;
pub(crate) mod superquantile;
pub(crate) mod tfl;
pub(crate) mod topology_prior;

use crate::params::Params;
use crate::strategy::SettleError;

/// The models before and after a round, where there is one of the same tensors for all members.
///
/// # Errors
/// [`SettleError::Infeasible`]: there are more, or the tensors are others.
pub(crate) fn one_model<'a>(
    before: &'a [Params],
    after: &'a [Params],
) -> Result<(&'a Params, &'a Params), SettleError> {
    let infeasible = |why: &str| SettleError::Infeasible(why.into());
    let (Some(before), [after]) = (before.first(), after) else {
        return Err(infeasible("there is one model for all"));
    };
    if before.layout() != after.layout() {
        return Err(infeasible("the models have other tensors"));
    }
    Ok((before, after))
}
