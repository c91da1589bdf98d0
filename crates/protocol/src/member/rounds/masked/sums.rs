//! The sums of a masked round, as they are agreed.

use crate::member::Config;
use crate::member::rounds::round::Round;
use crate::parameters::privacy::{self, Masked, Sum, Voids};
use crate::roster::MemberIndex;
use crate::work::Planned;

impl Config {
    /// The agreement on masked rounds, if rounds are masked.
    pub(in crate::member) fn masked(&self) -> Option<&Masked> {
        self.epoch.protocol.privacy.masked()
    }

    /// Fewest members of a list of a masked round: a quorum, and with noise the fewest authors of a sum.
    pub(in crate::member) fn fewest_ready(&self) -> usize {
        let noised = self.masked().filter(|masked| masked.noise().is_some());
        let authors = noised.map_or(0, Masked::fewest_authors);
        self.epoch.roster.quorum().max(3).max(authors)
    }

    /// The sums that are opened if these members, ascending, are ready for a masked round after these void sums.
    pub(in crate::member) fn sums(&self, voids: &Voids, ready: &[MemberIndex]) -> Vec<Sum> {
        let sums = |masked: &Masked| masked.sums(voids, &self.epoch.roster, ready);
        self.masked().map(sums).unwrap_or_default()
    }

    /// How many of so many ready members can open the sums of a masked round.
    pub(in crate::member) fn threshold(&self, ready: usize) -> usize {
        privacy::threshold(&self.epoch.roster, ready)
    }
}

impl Round {
    /// The sums that are opened if these members, ascending, are ready; none while the plan is not known.
    pub(in crate::member) fn sums(&self, config: &Config, ready: &[MemberIndex]) -> Vec<Sum> {
        let sums = |plan: &Planned| config.sums(&plan.voids, ready);
        self.plan().map(sums).unwrap_or_default()
    }
}
