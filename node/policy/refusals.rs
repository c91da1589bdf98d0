//! What a policy says of an agreement before its first round.

use agreement::Agreement;
use ledger::Limits;
use protocol::MemberIndex;
use task::TaskConfig;
use task::schema::LocalNames;

use super::SitePolicy;
use super::rounds::too_large;
use super::source::SourceLimits;
use super::table::PrivacyMode;

/// What an agreement would have the node do.
pub(crate) struct ProposedRounds<'a> {
    /// The agreement in force.
    pub(crate) agreement: &'a Agreement,
    /// The institution's place in it, where it has one.
    pub(crate) me: Option<MemberIndex>,
    /// Its training rows, where they are known.
    pub(crate) rows: Option<u64>,
    /// Bytes of its largest contribution.
    pub(crate) bytes: u64,
    /// How its files name what is agreed.
    pub(crate) names: Option<&'a LocalNames>,
}

/// A key of the policy that refuses an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The key.
    pub(crate) key: &'static str,
    /// Why, in a sentence without a full stop.
    pub(crate) why: String,
}

impl SitePolicy {
    /// Everything that the policy refuses. None: the node may take part.
    pub(crate) fn refusals(&self, of: &ProposedRounds<'_>) -> Vec<Refusal> {
        let found = [
            ("modes", self.mode(of)),
            ("strategies", self.strategy(of)),
            ("peers", self.peers(of)),
            ("fewest-rows", self.rows(of)),
            ("smallest-sum", self.sum(of)),
            ("colluders", self.colluders(of)),
            ("never-leave", self.columns(of)),
            (
                "bytes-a-round",
                too_large(self.table.bytes_a_round, of.bytes).err(),
            ),
            ("ledger", self.source.as_ref().and_then(ledger)),
            ("epsilon", self.epsilon(of)),
        ];
        let found = found.into_iter();
        let refusals = found.filter_map(|(key, why)| why.map(|why| Refusal { key, why }));
        refusals.collect()
    }

    fn mode(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let allowed = self.table.modes.as_ref()?;
        let mode = mode(of.agreement);
        if allowed.contains(&mode) {
            return None;
        }
        Some(format!(
            "the rounds of this agreement are {}, and [policy] allows {} only (`modes`)",
            mode.name(),
            listed(allowed.iter().map(|mode| mode.name()))
        ))
    }

    fn strategy(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let allowed = self.table.strategies.as_ref()?;
        let name = of.agreement.strategy_config.name();
        if allowed.iter().any(|allowed| allowed == name) {
            return None;
        }
        Some(format!(
            "the agreed strategy is {name}, and [policy] allows {} only (`strategies`)",
            listed(allowed.iter().map(String::as_str))
        ))
    }

    fn peers(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let allowed = self.table.peers.as_ref()?;
        let roster = &of.agreement.epoch.roster;
        let members = roster.members().zip(roster.silos());
        let mut others = members.filter(|(member, _)| Some(*member) != of.me);
        let (_, other) = others.find(|(_, silo)| !allowed.contains(&silo.key.to_string()))?;
        Some(format!(
            "{} with the key {} is a member, and [policy] does not name it (`peers`)",
            formatting::numbers::plain(&other.name),
            other.key
        ))
    }

    fn rows(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let (fewest, rows) = (self.table.fewest_rows, of.rows?);
        (rows < fewest).then(|| {
            format!(
                "this institution trains on {rows} rows, and [policy] asks for {fewest} at least (`fewest-rows`)"
            )
        })
    }

    fn sum(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let (fewest, masked) = (
            self.table.smallest_sum,
            of.agreement.epoch.charter.privacy.masked()?,
        );
        let name = of.me.map(|me| of.agreement.epoch.roster.name(me));
        let own = |group: &&protocol::charter::Group| {
            let mut authors = group.authors.iter();
            authors.any(|(author, _)| Some(author.as_str()) == name)
        };
        let authors = masked.groups().iter().find(own)?.authors.len();
        (authors < usize::from(fewest)).then(|| {
            format!(
                "the sums of this institution's group have {authors} authors, and [policy] asks for {fewest} at \
                 least (`smallest-sum`)"
            )
        })
    }

    fn colluders(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let withstood = self.table.colluders?;
        let Some(masked) = of.agreement.epoch.charter.privacy.masked() else {
            return Some(
                "rounds are in clear, so that any member sees this institution's models, and [policy] has \
                 `colluders`"
                    .into(),
            );
        };
        (masked.colluders < withstood).then(|| {
            format!(
                "the agreement withstands {} that pool what they know, and [policy] asks for {withstood} (`colluders`)",
                formatting::numbers::plural(usize::from(masked.colluders), "member")
            )
        })
    }

    fn columns(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let never = &self.table.never_leave;
        if never.is_empty() {
            return None;
        }
        let schema = match &of.agreement.task {
            TaskConfig::Table(table) => table.schema.as_ref(),
            _ => None,
        };
        let Some(schema) = schema else {
            return Some(
                "the agreed task names no columns, so that nobody can tell whether it reads one of `never-leave` in \
                 [policy]"
                    .into(),
            );
        };
        let read = schema.columns().map(|(name, _)| name);
        let read = read
            .chain(schema.target.name.iter())
            .chain(schema.subgroup.as_deref());
        let local = |agreed| of.names.map_or(agreed, |names| names.column(agreed));
        let mut read = read.filter(|agreed| {
            never
                .iter()
                .any(|name| name == agreed || name == local(agreed))
        });
        let column = read.next()?;
        Some(format!(
            "the agreed task reads the column {}, of which [policy] lets nothing leave (`never-leave`)",
            formatting::numbers::plain(column)
        ))
    }

    fn epsilon(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let limit = self.source.as_ref()?.needs_noise()?;
        match mode(of.agreement) {
            PrivacyMode::MaskedNoised => None,
            mode => Some(format!(
                "rounds of the mode {} have no noise, so that there is no bound for one unit, and [policy] has `{limit}`",
                mode.name()
            )),
        }
    }
}

/// What is wrong with the ledger, or that it is spent already.
fn ledger(source: &SourceLimits) -> Option<String> {
    let contents = match source.read() {
        Ok(contents) => contents,
        Err(why) => return Some(why.to_string()),
    };
    let limits: &Limits = &source.limits;
    let bound = contents.bound(limits.delta);
    let limit = limits.exceeded(&bound)?;
    Some(format!(
        "the ledger {} is spent: it stands at {bound}, and [policy] has `{limit}`",
        source.path.display()
    ))
}

/// The mode of privacy of an agreement.
pub(super) fn mode(agreement: &Agreement) -> PrivacyMode {
    match agreement.epoch.charter.privacy.masked() {
        Some(_) => PrivacyMode::Masked,
        None => PrivacyMode::Clear,
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        return "none".into();
    }
    names.join(", ")
}
