//! Refusals of an agreement by a policy before its first round.

use agreement::{Agreement, Mode};
use ledger::{LedgerContents, LedgerError, SourceUnit};
use methods::serving::TogetherRounds;
use methods::strategy::Method;
use protocol::MemberIndex;
use protocol::parameters::RoundMode;
use task::TaskConfig;
use task::schema::LocalNames;

use super::SitePolicy;
use super::room::{LedgerRoom, RoundsToCome};
use super::rounds::too_large;
use super::source::SourceLimits;

/// Rounds that an agreement would have the node take part in.
pub(crate) struct ProposedRounds<'a> {
    /// The agreement in force.
    pub(crate) agreement: &'a Agreement,
    /// The institution's place in it, where it has one.
    pub(crate) me: Option<MemberIndex>,
    /// Its training rows, where they are known.
    pub(crate) rows: Option<u64>,
    /// Bytes of its largest contribution.
    pub(crate) bytes: u64,
    /// Names of its files for what is agreed.
    pub(crate) names: Option<&'a LocalNames>,
}

/// A key of the policy that refuses an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyRefusal {
    /// The key.
    pub(crate) key: &'static str,
    /// Reason, in a sentence without a full stop.
    pub(crate) why: String,
    /// True if it is over when another process gives the ledger back: each round asks again.
    pub(crate) passes: bool,
}

impl PolicyRefusal {
    /// A refusal that holds until somebody changes something.
    fn new(key: &'static str, why: String) -> Self {
        Self {
            key,
            why,
            passes: false,
        }
    }
}

impl SitePolicy {
    /// Everything that the policy refuses. None: the node may take part.
    pub(crate) fn refusals(&self, of: &ProposedRounds<'_>) -> Vec<PolicyRefusal> {
        let found = [
            ("allowed-modes", self.mode(of)),
            ("allowed-strategies", self.strategy(of)),
            ("allowed-peers", self.peers(of)),
            ("min-rows", self.rows(of)),
            ("min-sum-size", self.sum(of)),
            ("colluders", self.colluders(of)),
            ("questions", self.statistics(of)),
            ("questions", self.serving(of)),
            ("forbidden-columns", self.columns(of)),
            (
                "max-bytes-per-round",
                too_large(self.table.bytes_a_round, of.bytes).err(),
            ),
        ];
        let found = found.into_iter();
        let refusals = found.filter_map(|(key, why)| Some(PolicyRefusal::new(key, why?)));
        let refusals = refusals.chain(self.no_ledger(of.agreement));
        let source = self.source.as_ref();
        let of_ledger = source.into_iter().flat_map(|source| ledger(source, of));
        refusals.chain(of_ledger).collect()
    }

    /// That rounds have noise, and nothing counts what they tell.
    fn no_ledger(&self, agreement: &Agreement) -> Option<PolicyRefusal> {
        let counted = self.source.is_some() || self.declines_ledger();
        let why = "rounds of this agreement have noise, and no ledger counts what they tell about this \
                   institution's rows: `rota federation sign` makes one or takes the one that there is, or a person \
                   writes `ledger = false` into [policy] of node.toml";
        let refusal = || PolicyRefusal::new("ledger", why.into());
        (agreement.epoch.protocol.privacy.is_noised() && !counted).then(refusal)
    }

    fn mode(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let allowed = self.table.modes.as_ref()?;
        let mode = Mode::of(&of.agreement.epoch.protocol.privacy);
        if allowed.contains(&mode) {
            return None;
        }
        Some(format!(
            "the rounds of this agreement are {}, and [policy] allows {} only (`allowed-modes`)",
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
            "the agreed strategy is {name}, and [policy] allows {} only (`allowed-strategies`)",
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
            "{} with the key {} is a member, and [policy] does not name it (`allowed-peers`)",
            formatting::numbers::plain(&other.name),
            other.key
        ))
    }

    fn rows(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let noised = of.agreement.epoch.protocol.privacy.is_noised();
        // With noise one row must not decide whether the institution takes part: the number is the agreed one.
        let (rows, what) = match noised {
            true => (declared(of.agreement, of.me?)?, "has declared"),
            false => (of.rows?, "trains on"),
        };
        let fewest = self.table.fewest_rows;
        (rows < fewest).then(|| {
            format!(
                "this institution {what} {rows} rows, and [policy] requires at least {fewest} (`min-rows`)"
            )
        })
    }

    /// Returns a warning, before an agreement with noise is signed, about fewer own training rows than the policy
    /// requires: its node would take part all the same, because that it does not would disclose something about the
    /// rows.
    pub(crate) fn few_rows(&self, agreement: &Agreement, own: u64) -> Option<String> {
        let fewest = self.table.fewest_rows;
        let noised = agreement.epoch.protocol.privacy.is_noised();
        (noised && own < fewest).then(|| {
            format!(
                "this institution trains on {own} rows, and [policy] requires at least {fewest} (`min-rows`). \
                 With noise its node takes part all the same, because staying away would tell of its rows: what \
                 counts is the number that is declared"
            )
        })
    }

    fn sum(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let fewest = self.table.smallest_sum;
        let masked = match of.agreement.epoch.protocol.privacy.mode() {
            RoundMode::Clear | RoundMode::Named => return None,
            RoundMode::Masked(masked) => masked,
            RoundMode::Noised(masked, _) => {
                let authors = masked.smallest_sum;
                return (authors < fewest).then(|| {
                    format!(
                        "the sums of this agreement have {authors} authors or more, and [policy] requires at least \
                         {fewest} (`min-sum-size`)"
                    )
                });
            }
        };
        let name = of.me.map(|me| of.agreement.epoch.roster.name(me));
        let own = |group: &&protocol::parameters::Group| {
            let mut authors = group.authors.iter();
            authors.any(|(author, _)| Some(author.as_str()) == name)
        };
        let authors = masked.groups().iter().find(own)?.authors.len();
        (authors < usize::from(fewest)).then(|| {
            format!(
                "the sums of this institution's group have {authors} authors, and [policy] requires at least \
                 {fewest} (`min-sum-size`)"
            )
        })
    }

    /// That sums of statistics may open more numbers than the policy lets questions open.
    fn statistics(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let Method::Hierarchical(options) = &of.agreement.strategy_config.method else {
            return None;
        };
        let masked = match of.agreement.epoch.protocol.privacy.mode() {
            RoundMode::Clear | RoundMode::Named => false,
            RoundMode::Masked(_) | RoundMode::Noised(..) => true,
        };
        let (agreed, wanted) = (
            options.unknowns_per_number,
            self.table.questions.unknowns_per_number,
        );
        (masked && agreed < wanted).then(|| {
            format!(
                "the strategy of this agreement opens one number for every {agreed} unknowns of the others, and this \
                 institution requires {wanted} for each (`unknowns-per-number` in [policy.questions], by default 3)"
            )
        })
    }

    /// That the sums by which members decide together open more numbers than the policy lets questions open.
    fn serving(&self, of: &ProposedRounds<'_>) -> Option<String> {
        of.agreement.serving.as_ref()?;
        let masked = of.agreement.epoch.protocol.privacy.masked()?;
        let [group] = masked.groups() else {
            return None;
        };
        let wanted = self.table.questions.unknowns_per_number;
        let authors = group.authors.len() as u64;
        let found = TogetherRounds::unknowns_per_number(authors, masked.colluders.into());
        (found < wanted).then(|| {
            format!(
                "the members decide together by sums, for each number of which the others have {found:.1} unknowns, and this \
                 institution requires {wanted} (`unknowns-per-number` in [policy.questions], by default 3)"
            )
        })
    }

    fn colluders(&self, of: &ProposedRounds<'_>) -> Option<String> {
        let withstood = self.table.colluders?;
        let Some(masked) = of.agreement.epoch.protocol.privacy.masked() else {
            return Some(
                "rounds are in clear, so that any member sees this institution's models, and [policy] has \
                 `colluders`"
                    .into(),
            );
        };
        (masked.colluders < withstood).then(|| {
            format!(
                "the agreement tolerates {} colluders, and [policy] requires {withstood} (`colluders`)",
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
                "the agreed task names no columns, so it may read one of `forbidden-columns` in [policy]"
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
            "the agreed task reads the column {}, which [policy] forbids (`forbidden-columns`)",
            formatting::numbers::plain(column)
        ))
    }
}

/// The training rows that a member has declared.
fn declared(agreement: &Agreement, me: MemberIndex) -> Option<u64> {
    agreement.epoch.roster.silos().get(me.at())?.rows
}

/// Returns what the ledger of the institution's source refuses.
fn ledger(source: &SourceLimits, of: &ProposedRounds<'_>) -> Vec<PolicyRefusal> {
    let refusal = |why| PolicyRefusal::new("ledger", why);
    let contents = match source.read() {
        Ok(contents) => contents,
        Err(why) => {
            return vec![PolicyRefusal {
                passes: matches!(why, LedgerError::InUse { .. }),
                ..refusal(why.to_string())
            }];
        }
    };
    let unfit = spent(source, &contents).or_else(|| other_unit(source, &contents, of));
    let unfit = unfit.map(refusal);
    let noise = without_noise(source, of);
    let noise = noise.or_else(|| match unfit {
        None => too_many(source, &contents, of),
        Some(_) => None,
    });
    unfit.into_iter().chain(noise).collect()
}

/// That the ledger is beyond a limit already.
fn spent(source: &SourceLimits, contents: &LedgerContents) -> Option<String> {
    let bound = contents.bound(source.limits.delta);
    let limit = source.limits.exceeded(&bound)?;
    Some(format!(
        "the privacy budget of the ledger {} is spent: it is at {bound}, and [policy] has `{limit}`",
        source.path.display()
    ))
}

/// That the agreement protects another unit than the ledger counts.
fn other_unit(
    source: &SourceLimits,
    contents: &LedgerContents,
    of: &ProposedRounds<'_>,
) -> Option<String> {
    let noise = match of.agreement.epoch.protocol.privacy.mode() {
        RoundMode::Noised(_, noise) => noise,
        RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => return None,
    };
    let (ledger, agreed) = (&contents.source.unit, SourceUnit::from(&noise.unit));
    (*ledger != agreed).then(|| {
        let other = LedgerError::OtherUnit {
            file: source.path.clone(),
            ledger: ledger.clone(),
            agreed,
        };
        other.to_string()
    })
}

/// That there is a limit, and no noise.
fn without_noise(source: &SourceLimits, of: &ProposedRounds<'_>) -> Option<PolicyRefusal> {
    let limit = source.needs_noise()?;
    let mode = match Mode::of(&of.agreement.epoch.protocol.privacy) {
        Mode::MaskedNoised => return None,
        mode @ (Mode::Clear | Mode::Masked) => mode.name(),
    };
    let why = format!(
        "rounds of the mode {mode} have no noise and therefore no bound for one unit, and [policy] has `{limit}`"
    );
    Some(PolicyRefusal::new(limit.key(), why))
}

/// That all rounds to come together would exceed a limit.
fn too_many(
    source: &SourceLimits,
    contents: &LedgerContents,
    of: &ProposedRounds<'_>,
) -> Option<PolicyRefusal> {
    let rounds = RoundsToCome::of(source, contents, of.agreement)?;
    let bound = rounds.after_all();
    let limit = source.limits.exceeded(&bound)?;
    let LedgerRoom { left, fits } = rounds.room();
    let (after, fit) = match left {
        1 => ("the round to come".to_owned(), "it does not fit".into()),
        more => (
            format!(
                "{} more",
                formatting::numbers::plural(more as usize, "round")
            ),
            format!("{fits} of them would fit"),
        ),
    };
    let why = format!(
        "after {after} of this agreement the ledger {} would be at {bound}, and [policy] has `{limit}`: {fit}",
        source.path.display()
    );
    Some(PolicyRefusal::new(limit.key(), why))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        return "none".into();
    }
    names.join(", ")
}
