//! Policies and faults of an experiment: what is used where nothing else is asked for.

use std::time::Duration;

use protocol::message::Phase;
use protocol::parameters::Rotation;

use simulations::Moment;
use simulations::scenario::{Fault, FaultTime, KillTarget};

/// K of `every-k`, where no number is given.
const K: u32 = 5;
/// The pause before a silo that was killed is back.
const BACK: Duration = Duration::from_secs(60);

/// The policies that a list names, in its order. `every-k` stands for `every-5-rounds`.
///
/// # Errors
/// A name that is no policy, a policy twice, or an empty list.
pub fn policies(names: &[String]) -> Result<Vec<Rotation>, String> {
    let mut found = Vec::new();
    for name in names {
        let policy = match name.trim() {
            "every-k" => Rotation::EveryRounds(K),
            name => name
                .parse()
                .map_err(|error: protocol::rotation::RotationError| error.to_string())?,
        };
        if found.contains(&policy) {
            return Err(format!("{policy} is named twice"));
        }
        found.push(policy);
    }
    if found.is_empty() {
        Err("expected at least one rotation, such as every-round,fixed".into())
    } else {
        Ok(found)
    }
}

/// Faults for a federation of `n` silos and this number of rounds: five times the lead of the moment
/// stops in the middle of a round, each time in another phase. The third and the fifth time it never
/// comes back, as far as the federation tolerates so many faulty members; the other times it is back
/// after a minute.
pub fn usual_faults(n: usize, rounds: u64) -> Vec<Fault> {
    let phases = [
        Moment::Phase(Phase::Voting),
        Moment::Phase(Phase::Collecting),
        Moment::Phase(Phase::Deciding),
        Moment::Phase(Phase::Including),
        Moment::Notarised,
    ];
    // Three members go on without one of them, too.
    let mut tolerated = if n == 3 { 1 } else { n.saturating_sub(1) / 3 };
    let mut faults = Vec::new();
    for (nth, moment) in (1u64..).zip(phases) {
        // Not in the first round, which may only agree on a scale, and not in the last.
        let round = (nth * rounds).div_ceil(6).max(2);
        let for_good = matches!(nth, 3 | 5) && tolerated > 0;
        tolerated -= usize::from(for_good);
        if round < rounds {
            faults.push(Fault::Kill {
                who: KillTarget::Lead,
                when: FaultTime::Round { round, moment },
                restart_after: (!for_good).then_some(BACK),
                journal_lost: false,
            });
        }
    }
    faults
}

/// A fault in words.
pub fn words(fault: &Fault) -> String {
    match fault {
        Fault::Kill {
            who,
            when,
            restart_after,
            journal_lost,
        } => {
            let who = match who {
                KillTarget::Lead => "the lead".to_owned(),
                KillTarget::Silo(name) => format!("silo {name}"),
            };
            let when = match when {
                FaultTime::At(at) => format!(", {} s after the start", at.as_secs_f64()),
                FaultTime::Round { round, moment } => {
                    format!(" in round {round}, {}", phase(*moment))
                }
                FaultTime::Commit { nth, .. } => format!(" at commit {nth} of its journal"),
            };
            let back = match restart_after {
                None => "for good".to_owned(),
                Some(after) => format!("for {} s", after.as_secs_f64()),
            };
            let journal = if *journal_lost {
                ", and loses its journal"
            } else {
                ""
            };
            format!("{who} stops {back}{when}{journal}")
        }
        Fault::Split {
            members, at, lasts, ..
        } => format!(
            "silos {} are cut off {} s after the start, for {} s",
            members.join(", "),
            at.as_secs_f64(),
            lasts.as_secs_f64()
        ),
        Fault::Byzantine { member, behaviour } => {
            format!("silo {member} is Byzantine: {behaviour:?}")
        }
    }
}

fn phase(moment: Moment) -> &'static str {
    match moment {
        Moment::Phase(Phase::Waiting) => "while it waits for finality",
        Moment::Phase(Phase::Collecting) => "while it collects contributions",
        Moment::Phase(Phase::Scoring) => "while members evaluate models",
        Moment::Phase(Phase::Including) => "while members sign for the sheet",
        Moment::Phase(Phase::Deciding) => "while it decides",
        Moment::Phase(Phase::Voting) => "while members vote",
        Moment::Notarised => "when its block is notarised",
        _ => "at a moment of its step",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn policies_are_named_as_in_the_charter_or_every_k() {
        let of = |names: &str| {
            let names: Vec<_> = names.split(',').map(str::to_owned).collect();
            policies(&names)
        };
        let all = of("every-round,every-k,on-failure,reliability,fixed").unwrap();
        assert_eq!(all, Rotation::ALL);
        assert_eq!(of("every-3-rounds").unwrap(), [Rotation::EveryRounds(3)]);
        assert!(of("fixed,fixed").unwrap_err().contains("twice"));
        assert!(of("often").unwrap_err().contains("every-K-rounds"));
    }

    #[test]
    fn no_more_members_die_for_good_than_the_federation_tolerates() {
        for (n, most) in [(1, 0), (2, 0), (3, 1), (4, 1), (7, 2), (50, 2)] {
            let faults = usual_faults(n, 20);
            let dead = |fault: &&Fault| {
                matches!(
                    fault,
                    Fault::Kill {
                        restart_after: None,
                        ..
                    }
                )
            };
            assert_eq!(faults.iter().filter(dead).count(), most, "{n}");
            assert_eq!(faults.len(), 5);
        }
        assert!(usual_faults(8, 2).is_empty());
        let said = words(&usual_faults(8, 20)[2]);
        assert_eq!(
            said,
            "the lead stops for good in round 10, while it decides"
        );
        let at = Fault::Kill {
            who: KillTarget::Silo("north".into()),
            when: FaultTime::At(Duration::from_secs(2)),
            restart_after: Some(Duration::from_secs(1)),
            journal_lost: true,
        };
        assert_eq!(
            words(&at),
            "silo north stops for 1 s, 2 s after the start, and loses its journal"
        );
    }
}
