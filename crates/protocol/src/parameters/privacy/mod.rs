//! What members see of each other's contributions, as the parameter set says: models, or sums only.

mod mode;
mod noise;
mod voids;

use serde::{Deserialize, Serialize};

use crate::format::Formats;
use crate::parameters::{ParametersError, ProtocolParameters, Verification};
use crate::roster::{MemberIndex, Roster};

pub use mode::RoundMode;
pub use noise::{Noise, Real, Release, Unit};
pub use voids::{CorrupterSearch, Voids};

/// What members see of a contribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Privacy {
    /// The model, without its author's name: nothing ties entries to members from round to round.
    Clear,
    /// The model with its author's name, which some strategies need.
    ClearWithNames,
    /// Neither: each vector is masked, and only sums are opened. Who takes part is shown.
    Masked(Masked),
}

/// The agreement on masked rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Masked {
    /// Members that may pool what they know without learning more than the sums: 1 to 2q − n − 1.
    pub colluders: u16,
    /// Fewest authors of a sum: at least 3; with noise more than `colluders`, because fewer would not add
    /// enough of it. `federation.toml` says `min-sum-size`, and with noise `min-authors`.
    pub smallest_sum: u16,
    /// Names of the institutions, ascending, whose updates an amendment makes visible because it changes
    /// groups: all concerned have to approve it. Mostly none.
    pub shows: Vec<String>,
    /// Whose vectors are added up.
    pub sums: Sums,
}

/// Whose vectors are added up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sums {
    /// Those of groups. A silo is in one at most; those in none only help others to open sums.
    Groups(Vec<Group>),
    /// Those of all ready members, with weight 1, where every silo adds noise to its own. One sum, or two while it
    /// is searched who corrupts them.
    Noised(Noise),
}

/// Institutions whose vectors are added up, whenever all of them are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Names of the members as in the roster, ascending, each with its weight in the sum, at least 1. A
    /// group that names somebody who is no member is over: it is never complete.
    pub authors: Vec<(String, u64)>,
}

/// A sum that is opened once the block of its round is final.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// The authors with their weights, ascending.
    pub authors: Vec<(MemberIndex, u64)>,
}

/// The institutions of the only sum that a silo ever answers, with weights without a common divisor.
/// Institutions count by their names in the roster, so that this outlives changes of the agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circle(pub Vec<(String, u64)>);

impl Privacy {
    /// Models in clear, with the names of their authors or without.
    pub fn clear(names_shown: bool) -> Self {
        if names_shown {
            Self::ClearWithNames
        } else {
            Self::Clear
        }
    }

    /// The first message format that has all messages of such rounds.
    pub fn since(&self) -> u8 {
        match self {
            Self::Masked(_) => Formats::MASKED,
            Self::Clear | Self::ClearWithNames => Formats::SPOKEN.oldest,
        }
    }
}

impl Masked {
    /// Checks the agreement on masked rounds of these members.
    ///
    /// # Errors
    /// [`ParametersError`]: too few members, or a number or a group that does not protect its authors.
    pub(crate) fn validate(
        &self,
        protocol: &ProtocolParameters,
        roster: &Roster,
    ) -> Result<(), ParametersError> {
        let (n, quorum) = (roster.len() as u64, roster.quorum() as u64);
        let range = |key, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(ParametersError::Range {
                    key,
                    value,
                    allowed: format!(
                        "between {least} and {most} with {n} members in secure-aggregation rounds"
                    ),
                })
            }
        };
        if n < 4 {
            return Err(ParametersError::TooFewToMask {
                members: roster.len(),
            });
        }
        if protocol.verification != Verification::Full {
            return Err(ParametersError::MaskedUnverified(protocol.verification));
        }
        range("colluders", self.colluders.into(), 1, 2 * quorum - n - 1)?;
        let ascending = self.shows.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || self.noise().is_some() && !self.shows.is_empty() {
            return Err(ParametersError::Shows);
        }
        match &self.sums {
            Sums::Groups(groups) => {
                range("min-sum-size", self.smallest_sum.into(), 3, n)?;
                self.validate_groups(groups)
            }
            Sums::Noised(noise) => {
                let fewest = u64::from(self.smallest_sum);
                // Members may have become fewer since: then no sum is opened until this number is lowered.
                let most =
                    u64::from(protocol.min_contributions).max(if fewest > n { fewest } else { 0 });
                range("min-authors", fewest, u64::from(self.colluders) + 1, most)?;
                if let Some(silo) = roster.silos().iter().find(|silo| silo.rows.is_none()) {
                    return Err(ParametersError::UndeclaredRows(silo.name.clone()));
                }
                noise.validate()
            }
        }
    }

    /// Checks what holds for the first members only.
    ///
    /// # Errors
    /// [`ParametersError::Range`]: they are fewer than the fewest authors of a noised sum.
    pub(crate) fn validate_first(&self, members: usize) -> Result<(), ParametersError> {
        if self.noise().is_none() || usize::from(self.smallest_sum) <= members {
            return Ok(());
        }
        Err(ParametersError::Range {
            key: "min-authors",
            value: self.smallest_sum.into(),
            allowed: format!("at most the number of members, {members}"),
        })
    }

    /// The groups; none where all members are added up.
    pub fn groups(&self) -> &[Group] {
        match &self.sums {
            Sums::Groups(groups) => groups,
            Sums::Noised(_) => &[],
        }
    }

    /// The agreement on noise, if silos add some.
    pub(crate) fn noise(&self) -> Option<&Noise> {
        match &self.sums {
            Sums::Groups(_) => None,
            Sums::Noised(noise) => Some(noise),
        }
    }

    /// Whether so many members can search by halves who corrupts sums: with noise, where two sums of a round have enough
    /// authors. Sums without noise that have other authors than before would tell what single members sent.
    pub fn may_search(&self, members: usize) -> bool {
        self.noise().is_some() && 2 * self.fewest_authors() <= members
    }

    /// The most groups of which a round can have sums; with noise all members count as one.
    pub fn most_sums(&self) -> usize {
        match &self.sums {
            Sums::Groups(groups) => groups.len(),
            Sums::Noised(_) => 1,
        }
    }

    /// The fewest authors that a sum may have.
    pub fn fewest_authors(&self) -> usize {
        let fewest = usize::from(self.smallest_sum);
        match &self.sums {
            Sums::Noised(_) => fewest,
            Sums::Groups(_) => fewest.max(usize::from(self.colluders) + 2),
        }
    }

    fn validate_groups(&self, groups: &[Group]) -> Result<(), ParametersError> {
        let fewest = self.fewest_authors();
        for Group { authors } in groups {
            let total: u128 = authors.iter().map(|(_, weight)| u128::from(*weight)).sum();
            let weighed = |weight: u64| {
                let half = 2 * u128::from(weight) <= total;
                weight > 0 && half
            };
            let ascending = authors.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let fits = authors.len() >= fewest && ascending;
            if !fits || !authors.iter().all(|(_, weight)| weighed(*weight)) {
                let names: Vec<_> = authors.iter().map(|(name, _)| name.as_str()).collect();
                let group = names.join(", ");
                return Err(ParametersError::Group { group, fewest });
            }
        }
        let mut names: Vec<_> = groups.iter().flat_map(|of| &of.authors).collect();
        names.sort();
        match names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(ParametersError::TwoGroups(pair[0].0.clone())),
            None => Ok(()),
        }
    }

    /// The sums that are opened if these members, ascending, are ready: those of the groups whose
    /// members are all among them; with noise one of all, if they are enough, or two of half of them each while
    /// a search goes on. Groups that `voids` suspend have none.
    pub fn sums(&self, voids: &Voids, roster: &Roster, ready: &[MemberIndex]) -> Vec<Sum> {
        let groups = match &self.sums {
            Sums::Groups(groups) => groups,
            Sums::Noised(_) => return self.sums_of_all(voids, roster, ready),
        };
        let present = |name: &str| ready.iter().copied().find(|by| roster.name(*by) == name);
        let sum = |group: &Group| {
            let authors = group.authors.iter();
            let found = authors.map(|(name, weight)| Some((present(name)?, *weight)));
            let mut authors: Vec<_> = found.collect::<Option<_>>()?;
            authors.sort_unstable();
            (authors.len() > 1).then_some(Sum { authors })
        };
        let groups = groups.iter().enumerate();
        let open = groups.filter(|(at, _)| !voids.suspended(*at, roster.len()));
        open.filter_map(|(_, group)| sum(group)).collect()
    }

    fn sums_of_all(&self, voids: &Voids, roster: &Roster, ready: &[MemberIndex]) -> Vec<Sum> {
        let fewest = self.fewest_authors();
        if ready.len() < fewest || voids.suspended(0, roster.len()) {
            return Vec::new();
        }
        match &voids.search {
            CorrupterSearch::Among(suspects) if ready.len() >= 2 * fewest => {
                let halves = voids::halves(suspects, ready);
                halves.iter().map(|half| Sum::of(half)).collect()
            }
            _ => vec![Sum::of(ready)],
        }
    }

    /// The position of the group whose members these authors are, all of them; 0 with noise.
    pub fn group_of(&self, roster: &Roster, sum: &Sum) -> Option<usize> {
        let Sums::Groups(groups) = &self.sums else {
            return Some(0);
        };
        let first = sum.authors.first()?.0;
        let has = |group: &Group| {
            group
                .authors
                .iter()
                .any(|(name, _)| name == roster.name(first))
        };
        groups.iter().position(has)
    }

    /// The members of groups that are not complete with these, ascending, though they are in the roster; with
    /// noise all others.
    pub(crate) fn missing(&self, roster: &Roster, ready: &[MemberIndex]) -> Vec<MemberIndex> {
        let named = |by: &MemberIndex| {
            let Sums::Groups(groups) = &self.sums else {
                return true;
            };
            let name = roster.name(*by);
            let authors = groups.iter().flat_map(|group| &group.authors);
            authors.into_iter().any(|(other, _)| other == name)
        };
        let members = roster.members();
        let missing = members.filter(|by| ready.binary_search(by).is_err() && named(by));
        missing.collect()
    }
}

/// t = |ready| − (n − q): how many of the ready can open the sums. Every quorum has so many of them, and
/// it is more than `colluders`.
pub fn threshold(roster: &Roster, ready: usize) -> usize {
    (ready + roster.quorum()).saturating_sub(roster.len())
}

impl Group {
    /// Its authors, with weights without a common divisor.
    pub(crate) fn circle(&self) -> Circle {
        Circle::of(
            self.authors
                .iter()
                .map(|(name, weight)| (name.as_str(), *weight)),
        )
    }
}

impl Circle {
    /// Of these institutions with these weights.
    fn of<'a>(authors: impl Iterator<Item = (&'a str, u64)> + Clone) -> Self {
        let divisor = authors
            .clone()
            .fold(0, |divisor, (_, weight)| gcd(weight, divisor));
        let named = authors.map(|(name, weight)| (name.to_owned(), weight / divisor.max(1)));
        let mut named: Vec<_> = named.collect();
        named.sort();
        Self(named)
    }
}

impl Sum {
    /// Of these members, ascending, each with weight 1.
    fn of(members: &[MemberIndex]) -> Self {
        let authors = members.iter().map(|by| (*by, 1)).collect();
        Self { authors }
    }

    /// Its authors, ascending.
    pub fn members(&self) -> impl Iterator<Item = MemberIndex> + '_ {
        self.authors.iter().map(|(author, _)| *author)
    }

    /// Whether a member is one of its authors.
    pub fn has(&self, member: MemberIndex) -> bool {
        self.authors.iter().any(|(author, _)| *author == member)
    }

    /// Authors of the sum by name.
    pub(crate) fn circle(&self, roster: &Roster) -> Circle {
        let authors = self.authors.iter();
        Circle::of(authors.map(|(author, weight)| (roster.name(*author), *weight)))
    }
}

/// The greatest common divisor; that of 0 and a number is the number.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
