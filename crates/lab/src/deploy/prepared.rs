//! Chooses where the nodes of a deployment run.

use std::path::PathBuf;

use simulations::Scenario;

use super::hosting::{Hosting, NetworkKind};
use super::hosts::Remote;
use super::local::LoopbackNodes;
use super::namespaces::{Namespaces, Shaping};
use super::{DeployError, DeploymentPlan};

/// A ground that was chosen and found possible.
pub(super) enum PreparedHosting {
    Loopback {
        program: PathBuf,
        why: Option<String>,
    },
    Namespaces {
        program: PathBuf,
        shaping: Shaping,
    },
    Hosts(Box<Remote>),
}

impl PreparedHosting {
    /// Chooses as `plan` says, or what is possible here.
    pub(super) fn new(
        plan: &DeploymentPlan<'_>,
        scenario: &Scenario,
        n: usize,
    ) -> Result<Self, DeployError> {
        let program = plan.program.clone();
        if !plan.hosts.is_empty() {
            let remote = Remote::new(plan, n)?;
            return Ok(Self::Hosts(Box::new(remote)));
        }
        match plan.network {
            Some(NetworkKind::Loopback) => Ok(Self::Loopback { program, why: None }),
            Some(NetworkKind::Namespaces) => {
                let shaping = Shaping::probe().map_err(|why| {
                    DeployError::Refused(format!(
                        "--network namespaces: {why}; run as root on Linux with iproute2, or use \
                         --network loopback"
                    ))
                })?;
                Ok(Self::Namespaces { program, shaping })
            }
            None => Ok(match Shaping::probe() {
                Ok(shaping) if shaping.lacks(&scenario.network).is_empty() => {
                    Self::Namespaces { program, shaping }
                }
                Ok(shaping) => {
                    let lacks = shaping.lacks(&scenario.network).join(", ");
                    let why = format!("tc cannot do {lacks} on this machine");
                    Self::Loopback {
                        program,
                        why: Some(why),
                    }
                }
                Err(why) => Self::Loopback {
                    program,
                    why: Some(why),
                },
            }),
        }
    }

    /// The environment of one run.
    pub(super) fn ground(
        &self,
        scenario: &Scenario,
        n: usize,
    ) -> Result<Box<dyn Hosting>, DeployError> {
        Ok(match self {
            Self::Loopback { program, .. } => Box::new(LoopbackNodes::new(program, scenario, n)?),
            Self::Namespaces { program, shaping } => {
                Box::new(Namespaces::new(program, *shaping, scenario, n)?)
            }
            Self::Hosts(remote) => Box::new(remote.ground()?),
        })
    }

    /// Returns where the nodes run, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Loopback { .. } => "processes on this machine, over loopback".into(),
            Self::Namespaces { .. } => {
                "processes on this machine, each in a network namespace".into()
            }
            Self::Hosts(remote) => remote.words(),
        }
    }

    /// Why it was chosen, and what it cannot do.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Self::Loopback { why: Some(why), .. } => {
                vec![format!(
                    "Loopback and not network namespaces, because {why}."
                )]
            }
            _ => Vec::new(),
        }
    }
}
