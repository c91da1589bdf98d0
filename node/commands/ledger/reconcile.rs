//! `rota ledger reconcile`: adds the lines of contributions that the other members know of to a ledger that
//! was put back, or made anew.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use formatting::numbers;
use ledger::{Cost, Place};
use protocol::{Epoch, PublicKey};
use serde::Deserialize;
use silo::OwnContributions;
use task::file;

use super::super::{NodeCommandError, quietly, wrapped};
use crate::chain::{ChainError, FinalChain, MissingBlocks};
use crate::cli::ReconcileLedger;
use crate::institution::{Configured, Membership, Present, SetupError, standing};
use crate::policy::LedgerStatus;
use crate::prompt::Prompt;
use crate::store;

/// Lists what the ledger lacks, and adds it.
pub(super) fn run(options: &ReconcileLedger) -> Result<(), NodeCommandError> {
    let config = options.node.file()?;
    let source = super::source(&options.node)?;
    let (_, place) = standing(Configured::load(&config).map_err(SetupError::from)?)?;
    let Membership::Member(present) = place else {
        return Err(failed(
            "this institution is no member of the federation, so its node hears of no rounds: reconcile the \
             ledger in the folder of a node that is a member",
        ));
    };
    let known = KnownContributions::of(&present, options.chain.as_deref())?;
    let contents = source.file().read()?;
    let lacks = |(place, _): &&(Place, Cost)| contents.at(place).is_none();
    let missing: Vec<_> = known.contributions.iter().filter(lacks).cloned().collect();
    let mut out = io::stdout().lock();
    for (place, cost) in &missing {
        let noise = match cost {
            Cost::Noised { z, authors, .. } => {
                let (z, a, c) = (z.value(), authors.fewest(), authors.colluders());
                format!("z {z}, a {a}, c {c}")
            }
            Cost::NoBound => "no noise".into(),
        };
        writeln!(out, "  {place}: {noise}")?;
    }
    known.not_covered(&mut out)?;
    if missing.is_empty() {
        let line =
            "The ledger has a line for each contribution that is known of: nothing was added.";
        return Ok(writeln!(out, "{}", wrapped(line))?);
    }
    let lines = numbers::plural(missing.len(), "line");
    if !options.yes && !wanted(&lines, &source.path)? {
        return Err(failed("nothing was added"));
    }
    let file = source.file();
    let added = file.reconcile(&missing)?;
    let status = LedgerStatus::of(&source, &file.read()?);
    let added = numbers::plural(added.len(), "line");
    writeln!(out, "added {added}. {}", numbers::plain(&status.text()))?;
    let line = "A node that runs and refused this ledger before contributes again after `rota run` was started \
                anew.";
    Ok(writeln!(out, "{}", wrapped(line))?)
}

/// What is known of the institution's contributions.
struct KnownContributions {
    /// Each with its cost, oldest first.
    contributions: Vec<(Place, Cost)>,
    /// What nothing here tells.
    missing: Vec<MissingBlocks>,
}

impl KnownContributions {
    /// By the node's journal and, for the rounds that it lacks, by the chain of another member.
    fn of(present: &Present, other: Option<&Path>) -> Result<Self, NodeCommandError> {
        let institution = &present.institution;
        let now = institution.agreement.epoch.clone();
        let key = institution.key.public();
        let own = OwnContributions::new(now.clone(), &present.past, key);
        let records = store::snapshot(&institution.state).map_err(ChainError::from)?;
        let mut places = own.all(&records.records);
        let epochs = LedgerEpochs {
            all: present.past.iter().cloned().chain([now]).collect(),
            key,
        };
        let chain = quietly(|| FinalChain::read(&institution.state, None))?;
        let missing = match other {
            None => chain.missing,
            Some(file) => {
                let other = OtherChain::read(file)?;
                if other.federation != chain.federation {
                    return Err(failed(format!(
                        "{} is the chain of another federation: ask a member of this one for `rota chain --json`",
                        file.display()
                    )));
                }
                let ours = rounds(chain.blocks.iter().map(|link| {
                    let ends = link.recovery || link.change.is_some();
                    (link.round, ends)
                }));
                places.extend(
                    epochs
                        .places(&other)
                        .filter(|of| !ours.contains(&of.1))
                        .map(|of| of.0),
                );
                let theirs = rounds(other.blocks.iter().map(OtherLink::round_and_end));
                let covers = |gap: &MissingBlocks| {
                    let (from, to) = (gap.from.unwrap_or(1), gap.to.unwrap_or(0));
                    let known = |round| theirs.iter().any(|(_, of)| *of == round);
                    (from..=to).all(known)
                };
                chain
                    .missing
                    .into_iter()
                    .filter(|gap| !covers(gap))
                    .collect()
            }
        };
        let missing = missing
            .into_iter()
            .filter(|gap| gap.from.is_some())
            .collect();
        places.sort_by_key(|place| (place.epoch, place.round));
        places.dedup();
        let costs = places.into_iter().filter_map(|place| {
            let epoch = epochs.numbered(place.epoch)?;
            Some(Cost::of(&epoch.protocol.privacy).map(|cost| (place, cost)))
        });
        let contributions = costs.collect::<Result<_, _>>();
        Ok(Self {
            contributions: contributions.map_err(failed)?,
            missing,
        })
    }

    /// Says what cannot be known.
    fn not_covered(&self, out: &mut impl Write) -> io::Result<()> {
        for gap in &self.missing {
            let line = format!(
                "{}. What this institution contributed there is not known here: ask one of them for `rota chain \
                 --json > chain.json`, and add --chain chain.json",
                gap.sentence()
            );
            writeln!(out, "{}", wrapped(&line))?;
        }
        let line = "Known is what final rounds show. What this institution prepared for a round that never became \
                    final is not: nobody opened it, and nobody else can tell of it.";
        writeln!(out, "{}", wrapped(line))
    }
}

/// The epochs of the federation, and the institution's key.
struct LedgerEpochs {
    all: Vec<Arc<Epoch>>,
    key: PublicKey,
}

impl LedgerEpochs {
    fn numbered(&self, number: u64) -> Option<&Epoch> {
        let mut all = self.all.iter();
        all.find(|epoch| epoch.number == number)
            .map(|epoch| &**epoch)
    }

    /// The contributions of the institution in a chain, as far as they need a line, each also as epoch and
    /// round.
    fn places<'a>(&'a self, chain: &'a OtherChain) -> impl Iterator<Item = (Place, (u64, u64))> {
        let present = self.all.last();
        let now = present.map_or(0, |epoch| epoch.number);
        let mut number = self.all.first().map_or(0, |epoch| epoch.number);
        chain.blocks.iter().filter_map(move |link| {
            let (round, ends) = link.round_and_end();
            let of = number;
            number += u64::from(ends);
            let (epoch, round) = (self.numbered(of)?, round?);
            let own = epoch.roster.position_of(&self.key, &present?.roster)?;
            let own = epoch.roster.name(own);
            let needs = of == now || epoch.protocol.privacy.is_noised();
            let place = Place {
                federation: epoch.federation,
                epoch: of,
                round,
            };
            (needs && link.included.iter().any(|by| by == own)).then_some((place, (of, round)))
        })
    }
}

/// The rounds of a chain, each with the number of its epoch, from 0.
fn rounds(blocks: impl Iterator<Item = (Option<u64>, bool)>) -> BTreeSet<(u64, u64)> {
    let mut epoch = 0;
    let rounds = blocks.filter_map(|(round, ends)| {
        let of = epoch;
        epoch += u64::from(ends);
        Some((of, round?))
    });
    rounds.collect()
}

/// What `rota chain --json` prints, as far as it is needed.
#[derive(Deserialize)]
struct OtherChain {
    federation: String,
    blocks: Vec<OtherLink>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
struct OtherLink {
    round: Option<u64>,
    #[serde(default)]
    change: Option<serde_json::Value>,
    #[serde(default)]
    recovery: bool,
    included: Vec<String>,
}

impl OtherChain {
    fn read(file: &Path) -> Result<Self, NodeCommandError> {
        let said = |why: &dyn std::fmt::Display| {
            failed(format!(
                "{} is no chain that `rota chain --json` printed: {why}",
                file.display()
            ))
        };
        let text = file::read_text(file, file::DATA).map_err(|why| said(&why))?;
        serde_json::from_str(&text).map_err(|why| said(&why))
    }
}

impl OtherLink {
    /// Its round, and whether it ends an epoch.
    fn round_and_end(&self) -> (Option<u64>, bool) {
        (self.round, self.recovery || self.change.is_some())
    }
}

/// Asks whether the lines are to be added.
fn wanted(lines: &str, ledger: &Path) -> Result<bool, NodeCommandError> {
    let mut ask = Prompt::at_terminal().ok_or_else(|| {
        NodeCommandError::Usage(format!(
            "nothing was added: run this in a terminal to be asked, or add --yes to add {lines}"
        ))
    })?;
    Ok(ask.says_yes(&format!("Add {lines} to {}?", ledger.display()))?)
}

fn failed(why: impl std::fmt::Display) -> NodeCommandError {
    NodeCommandError::Failed(why.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::parameters::{Masked, Noise, Privacy, Real, Release, Sums, Unit};

    use super::*;
    use crate::fixture;

    /// The chain of another member as it prints it: the epoch changes after round 2.
    const CHAIN: &str = r#"{
        "federation": "ab", "members": null, "missing": [], "left_out": null,
        "blocks": [
            {"round": 1, "view": 1, "included": ["silo 0", "silo 1"]},
            {"round": null, "view": 2, "included": []},
            {"round": 2, "view": 3, "included": ["silo 1"]},
            {"round": null, "change": ["rounds: 6 to 9"], "view": 4, "included": []},
            {"round": 3, "view": 1, "included": ["silo 0"]},
            {"round": null, "change": ["lost silo 3"], "recovery": true, "view": 2, "included": []},
            {"round": 4, "view": 1, "included": ["silo 0", "silo 2"]}
        ]
    }"#;

    fn epoch(number: u64, privacy: Privacy) -> Arc<Epoch> {
        let mut epoch = fixture::epoch(fixture::silos(4, 1), fixture::protocol());
        epoch.protocol.privacy = privacy;
        epoch.number = number;
        Arc::new(epoch)
    }

    fn noised() -> Privacy {
        Privacy::Masked(Masked {
            colluders: 1,
            shows: Vec::new(),
            smallest_sum: 3,
            sums: Sums::Noised(Noise {
                release: Release::Steps,
                unit: Unit::Row,
                clip: Real::new(1.0),
                z: Real::new(20.0),
                delta: Real::new(1e-5),
            }),
        })
    }

    #[test]
    fn the_chain_of_another_member_shows_which_rounds_need_a_line_in_which_epoch() {
        let chain: OtherChain = serde_json::from_str(CHAIN).unwrap();
        let of = |privacy: [Privacy; 3]| {
            let all = (0..)
                .zip(privacy)
                .map(|(number, privacy)| epoch(number, privacy));
            let epochs = LedgerEpochs {
                all: all.collect(),
                key: fixture::key(1).public(),
            };
            let places = epochs.places(&chain);
            places.map(|(_, of)| of).collect::<Vec<_>>()
        };
        assert_eq!(of([noised(), noised(), noised()]), [(0, 1), (1, 3), (2, 4)]);
        // Rounds without noise before the agreement in force need none; those under it do.
        assert_eq!(
            of([Privacy::Clear, noised(), Privacy::Clear]),
            [(1, 3), (2, 4)]
        );
        // A key that was replaced is the same institution.
        let mut old = (*epoch(0, noised())).clone();
        let mut silos = old.roster.silos().to_vec();
        silos[0].key = fixture::key(77).public();
        old.roster = protocol::Roster::new(silos).unwrap();
        let epochs = LedgerEpochs {
            all: vec![Arc::new(old), epoch(1, noised())],
            key: fixture::key(1).public(),
        };
        let first = epochs.places(&chain).next().map(|(_, of)| of);
        assert_eq!(first, Some((0, 1)));
        let known = rounds(chain.blocks.iter().map(OtherLink::round_and_end));
        assert_eq!(known, [(0, 1), (0, 2), (1, 3), (2, 4)].into());
    }
}
