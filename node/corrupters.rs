//! What the void sums of an agreement show of who corrupts them, in words.

use formatting::numbers::{plain, plural};
use protocol::privacy::{CorrupterSearch, Sum, Voids};
use protocol::{Epoch, MemberIndex};

/// Returns what is known, in sentences without the last full stop, as member `me` reads them; `None` where nobody is
/// searched.
pub(crate) fn said(voids: &Voids, epoch: &Epoch, me: Option<MemberIndex>) -> Option<String> {
    let void = voids.rounds.iter().map(|count| usize::from(*count)).sum();
    let void = format!("Sums were void in {}", plural(void, "round"));
    Some(match &voids.search {
        CorrupterSearch::Idle => return None,
        CorrupterSearch::Among(suspects) => {
            let suspects = names(suspects, epoch);
            let halves = halves(voids, epoch).unwrap_or_else(|| {
                "sums end, because too many were void: the agreement has to change".into()
            });
            format!(
                "{void}. If one institution corrupts them, it is one of {suspects}: only they took part in every void \
                 sum. To find it, {halves}"
            )
        }
        CorrupterSearch::Alone(member) if Some(*member) == me => format!(
            "{void}, and only this institution took part in every void sum. It is left out of all sums until the \
             agreement changes: it votes, contributes nothing, and spends nothing of its ledger. Look for what is \
             wrong here (`rota check --dry-run`, another version of the program). Two institutions that collude can \
             make it look like this, too: then sums continue being void, and all see that"
        ),
        CorrupterSearch::Alone(member) => {
            let name = plain(epoch.roster.name(*member));
            format!(
                "{void}, and only {name} took part in every void sum: it is left out of all sums until the agreement \
                 changes. That proves nothing: two other institutions that collude can make it look like this. Ask \
                 {name}, and then change the agreement, with it or without it"
            )
        }
        CorrupterSearch::Several => format!(
            "{void}, and no institution took part in every void sum: more than one corrupts them, and nobody is \
             searched any more. After three such rounds sums end until the agreement changes"
        ),
    })
}

/// The next round, if all members are ready; `None` where it has no sum.
fn halves(voids: &Voids, epoch: &Epoch) -> Option<String> {
    let all: Vec<_> = epoch.roster.members().collect();
    let masked = epoch.protocol.privacy.masked()?;
    let sums = masked.sums(voids, &epoch.roster, &all);
    let [first, second] = &sums[..] else {
        return None;
    };
    let of = |sum: &Sum| names(&sum.members().collect::<Vec<_>>(), epoch);
    Some(format!(
        "rounds open two sums with half of them each: if all are ready, one of {}, and one of {}",
        of(first),
        of(second)
    ))
}

/// The names of these members.
pub(crate) fn names(members: &[MemberIndex], epoch: &Epoch) -> String {
    let names = members.iter().map(|by| plain(epoch.roster.name(*by)));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::ops::Range;

    use protocol::parameters::{Noise, ProtocolParameters, Real, Release, Unit};
    use protocol::privacy::{Masked, Privacy, Sums};

    use super::*;
    use crate::fixture;

    /// Eight members with noise, and sums of three at least.
    fn epoch() -> Epoch {
        let mut silos = fixture::silos(8, 1);
        silos.iter_mut().for_each(|silo| silo.rows = Some(10));
        let protocol = ProtocolParameters {
            min_contributions: 6,
            view_timeout: 60,
            privacy: Privacy::Masked(Masked {
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
            }),
            ..fixture::protocol()
        };
        fixture::epoch(silos, protocol)
    }

    fn after(rounds: u8, search: CorrupterSearch, me: u16) -> Option<String> {
        let rounds = vec![rounds];
        said(&Voids { rounds, search }, &epoch(), Some(MemberIndex(me)))
    }

    fn among(suspects: Range<u16>) -> CorrupterSearch {
        CorrupterSearch::Among(suspects.map(MemberIndex).collect())
    }

    #[test]
    fn suspects_and_the_sums_of_the_next_round_are_named_and_that_sums_end() {
        assert_eq!(after(0, CorrupterSearch::Idle, 0), None);
        let said = after(2, among(4..8), 0).unwrap();
        assert_eq!(
            said,
            "Sums were void in 2 rounds. If one institution corrupts them, it is one of silo 4, silo 5, silo 6, silo 7: \
             only they took part in every void sum. To find it, rounds open two sums with half of them each: if all \
             are ready, one of silo 0, silo 1, silo 4, silo 5, and one of silo 2, silo 3, silo 6, silo 7"
        );
        let spent = after(4, among(4..8), 0).unwrap();
        assert!(spent.ends_with("the agreement has to change"), "{spent}");
    }

    #[test]
    fn whoever_is_left_alone_is_not_called_guilty_and_reads_what_it_can_do() {
        let alone = CorrupterSearch::Alone(MemberIndex(5));
        let others = after(4, alone.clone(), 0).unwrap();
        assert!(others.starts_with("Sums were void in 4 rounds, and only silo 5 took part"));
        assert!(others.contains("That proves nothing: two other institutions"));
        let own = after(4, alone, 5).unwrap();
        for part in ["only this institution", "contributes nothing", "rota check"] {
            assert!(own.contains(part), "{own}");
        }
        let several = after(2, CorrupterSearch::Several, 0).unwrap();
        assert!(several.contains("more than one corrupts them"), "{several}");
    }
}
