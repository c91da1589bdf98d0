//! The faults of a scenario, as far as they can be carried out on processes.

use std::time::Duration;

use simulations::Moment;
use simulations::scenario::{Fault, When, Who};

use super::ground::NetworkKind;
use super::{DeployError, Plan};

/// A fault that can be carried out, with nodes by their position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Planned {
    /// A node is killed.
    Kill {
        /// Which; `None`: the lead of that moment.
        who: Option<usize>,
        when: Moments,
        back: Option<Duration>,
        journal_lost: bool,
    },
    /// Nodes are cut off.
    Split {
        apart: Vec<usize>,
        at: Duration,
        lasts: Duration,
        one_way: bool,
    },
}

/// When a node is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moments {
    /// This long after the start.
    At(Duration),
    /// When a lead reaches this moment of a round for the first time.
    Round(u64, Moment),
}

/// The faults, unless one of them cannot be carried out.
pub(super) fn check(
    faults: &[Fault],
    names: &[String],
    plan: &Plan<'_>,
) -> Result<Vec<Planned>, DeployError> {
    let numbered = faults.iter().zip(1..);
    let checked = numbered.map(|(fault, nth)| {
        let planned = planned(fault, names, plan);
        planned.map_err(|what| DeployError::Refused(format!("[[fault]] number {nth}: {what}")))
    });
    checked.collect()
}

fn planned(fault: &Fault, names: &[String], plan: &Plan<'_>) -> Result<Planned, String> {
    let position = |name: &String| {
        let named = names.iter().position(|known| known == name);
        let counted = name.parse().ok().filter(|&at: &usize| at < names.len());
        named
            .or(counted)
            .ok_or_else(|| format!("{name:?} is no silo; there are {}", names.join(", ")))
    };
    match fault {
        Fault::Kill {
            who,
            when,
            restart_after,
            journal_lost,
        } => {
            let who = match who {
                Who::Lead => None,
                Who::Silo(name) => Some(position(name)?),
            };
            let when = match *when {
                When::At(at) => Moments::At(at),
                When::Round { round, moment } => Moments::Round(round, moment),
                When::Commit { .. } => {
                    return Err(
                        "a kill at a commit of the journal (`commit`, `cut`) is possible in \
                         simulations only: a process cannot be stopped there from outside; use `at`, \
                         or `round` and `phase`"
                            .into(),
                    );
                }
            };
            Ok(Planned::Kill {
                who,
                when,
                back: *restart_after,
                journal_lost: *journal_lost,
            })
        }
        Fault::Split {
            members,
            at,
            lasts,
            one_way,
        } => {
            if !plan.hosts.is_empty() {
                let what = "`split` is possible on one machine only: links between hosts are not \
                            this program's to cut";
                return Err(what.into());
            }
            if *one_way && plan.network == Some(NetworkKind::Namespaces) {
                let what = "`one-way` is possible with --network loopback only";
                return Err(what.into());
            }
            let apart = members.iter().map(position).collect::<Result<_, _>>()?;
            Ok(Planned::Split {
                apart,
                at: *at,
                lasts: *lasts,
                one_way: *one_way,
            })
        }
        Fault::Byzantine { .. } => Err(
            "a Byzantine member (`behaviour`) is possible in simulations only: real nodes keep the \
             rules"
                .into(),
        ),
    }
}
