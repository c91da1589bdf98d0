//! The faults of a scenario, as far as they can be carried out on processes.

use std::time::Duration;

use simulations::Moment;
use simulations::scenario::{Fault, FaultTime, KillTarget};

use super::DeployError;
use super::hosting::NetworkKind;

/// A fault that can be carried out, with nodes by their position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlannedFault {
    /// A node is killed.
    Kill {
        /// Position of the node; `None`: the lead of that moment.
        who: Option<usize>,
        when: KillMoment,
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

/// Moment at which a node is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillMoment {
    /// This long after the start.
    At(Duration),
    /// The moment at which a lead reaches this moment of a round for the first time.
    Round(u64, Moment),
}

/// Place of the nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Where {
    /// True if on other machines.
    pub(super) on_hosts: bool,
    /// The network on this machine, if it was chosen.
    pub(super) network: Option<NetworkKind>,
}

/// The faults, unless one of them cannot be carried out.
pub(super) fn check(
    faults: &[Fault],
    names: &[String],
    nodes: Where,
) -> Result<Vec<PlannedFault>, DeployError> {
    let numbered = faults.iter().zip(1..);
    let checked = numbered.map(|(fault, nth)| {
        let planned = planned(fault, names, nodes);
        planned.map_err(|what| DeployError::Refused(format!("[[fault]] number {nth}: {what}")))
    });
    checked.collect()
}

fn planned(fault: &Fault, names: &[String], nodes: Where) -> Result<PlannedFault, String> {
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
                KillTarget::Lead => None,
                KillTarget::Silo(name) => Some(position(name)?),
            };
            let when = match *when {
                FaultTime::At(at) => KillMoment::At(at),
                FaultTime::Round { round, moment } => KillMoment::Round(round, moment),
                FaultTime::Commit { .. } => {
                    return Err(
                        "a kill at a commit of the journal (`commit`, `cut`) is possible in \
                         simulations only: a process cannot be stopped there from outside; use `at`, \
                         or `round` and `phase`"
                            .into(),
                    );
                }
            };
            Ok(PlannedFault::Kill {
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
            if nodes.on_hosts {
                let what = "`split` is possible on one machine only: links between hosts are not \
                            this program's to cut";
                return Err(what.into());
            }
            if *one_way && nodes.network == Some(NetworkKind::Namespaces) {
                let what = "`one-way` is possible with --network loopback only";
                return Err(what.into());
            }
            let apart = members.iter().map(position).collect::<Result<_, _>>()?;
            Ok(PlannedFault::Split {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The table of docs/reliability.md says which faults processes can have.
    #[test]
    fn processes_have_the_faults_of_the_table() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reliability.md");
        let text = std::fs::read_to_string(file).unwrap();
        let header = "| fault | `[[fault]]` |";
        let rows = text.lines().skip_while(|line| !line.starts_with(header));
        let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
        let mut seen = 0;
        for row in rows {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let text = format!("fault = [{{ {} }}]", cells[1].trim_matches('`'));
            let faults = simulations::scenario::faults("faults.toml", &text).unwrap();
            let names: Vec<_> = (0..4).map(|at| format!("silo {at}")).collect();
            let nodes = Where {
                on_hosts: false,
                network: Some(NetworkKind::Loopback),
            };
            let accepted = check(&faults, &names, nodes).is_ok();
            assert_eq!(accepted, cells[4] == "yes", "{row}");
            seen += 1;
        }
        assert!(seen >= 8);
    }
}
