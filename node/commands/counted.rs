//! Which ledger counts what rounds with noise tell about an institution's rows: `rota federation join` and `sign`
//! take the one that there is, or make one.
//!
//! Two ledgers of the same rows do not know of each other, so nobody makes one unasked: the institution says
//! whether there is one, and where its node has contributed with noise before, none is made at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agreement::{Agreement, current, read_configuration};
use ledger::{LedgerError, SourceUnit};
use protocol::parameters::RoundMode;
use silo::OwnContributions;

use super::NodeCommandError;
use crate::cli::{CountedIn, config_in};
use crate::institution::{
    Configured, Membership, Present, SetupError, policy_of, standing, state_folder,
};
use crate::paths::{folder_of, owned_as, relative};
use crate::policy::{SitePolicy, SourceLimits, ledger_beside, make_ledger, with_ledger};
use crate::prompt::Prompt;
use crate::store;

/// What becomes of the ledger of an institution that signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LedgerPlan {
    /// Nothing: there is no noise, or all is there.
    Keep,
    /// A person decided that there is none, in a `node.toml` that is written anew.
    Without,
    /// One that exists is named in `node.toml`.
    Name(PathBuf),
    /// One is made.
    Make {
        /// The file.
        file: PathBuf,
        /// The name of the source.
        name: String,
        /// What it counts.
        unit: SourceUnit,
        /// True if `node.toml` does not name it yet.
        unnamed: bool,
    },
}

/// What is known of an institution before it signs.
struct BeforeSigning<'a> {
    /// The folder of its `node.toml`.
    beside: &'a Path,
    /// Its state folder.
    state: &'a Path,
    /// The policy in a `node.toml` that is there.
    policy: Option<&'a SitePolicy>,
    /// Why a new ledger would know too little, in a sentence without a full stop.
    contributed: Option<String>,
}

impl LedgerPlan {
    /// That of a node that has a `node.toml`, under the agreement in force.
    ///
    /// # Errors
    /// [`NodeCommandError`]: nothing says which ledger counts, or it cannot be used.
    pub(super) fn of_node(
        config: &Path,
        present: &Present,
        wish: &CountedIn,
    ) -> Result<Self, NodeCommandError> {
        let institution = &present.institution;
        let known = BeforeSigning {
            beside: config.parent().unwrap_or(Path::new("")),
            state: &institution.state,
            policy: Some(&institution.site),
            contributed: contributed(present)?,
        };
        Self::of(&known, &institution.agreement, wish)
    }

    /// That of an institution whose `node.toml` is about to be written into a folder, where an earlier one may
    /// be, and which may have been a member before (`again`).
    ///
    /// # Errors
    /// As [`of_node`](Self::of_node).
    pub(super) fn of_new(
        folder: &Path,
        agreement: &Agreement,
        wish: &CountedIn,
        again: bool,
    ) -> Result<Self, NodeCommandError> {
        let config = config_in(folder);
        let policy = config.is_file().then(|| policy_of(&config)).transpose();
        let policy = policy.map_err(SetupError::from)?;
        let known = BeforeSigning {
            beside: folder,
            state: Path::new("state"),
            policy: policy.as_ref(),
            contributed: contributed_before(&config, again)?,
        };
        let named = policy.as_ref().and_then(|policy| policy.source.as_ref());
        let declined = policy.as_ref().is_some_and(SitePolicy::declines_ledger);
        Ok(match (Self::of(&known, agreement, wish)?, named) {
            // What the earlier file says goes into the new one.
            (Self::Keep, Some(source)) => Self::Name(source.path.clone()),
            (Self::Keep, None) if declined => Self::Without,
            (plan, _) => plan,
        })
    }

    fn of(
        known: &BeforeSigning<'_>,
        agreement: &Agreement,
        wish: &CountedIn,
    ) -> Result<Self, NodeCommandError> {
        let noise = match agreement.epoch.protocol.privacy.mode() {
            RoundMode::Noised(_, noise) => noise,
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => {
                return match (&wish.ledger, &wish.new_ledger) {
                    (None, None) => Ok(Self::Keep),
                    _ => Err(NodeCommandError::Usage(
                        "the rounds of this agreement have no noise, so that no ledger can bound what they tell: \
                         leave --ledger and --new-ledger out, or make one with `rota ledger new`"
                            .into(),
                    )),
                };
            }
        };
        let unit = SourceUnit::from(&noise.unit);
        let source = known.policy.and_then(|policy| policy.source.as_ref());
        if let Some(source) = source {
            return Self::named(known, source, unit, wish);
        }
        if known.policy.is_some_and(SitePolicy::declines_ledger)
            && (&wish.ledger, &wish.new_ledger) == (&None, &None)
        {
            return Ok(Self::Keep);
        }
        let answered = match (&wish.ledger, &wish.new_ledger) {
            (None, None) if known.contributed.is_none() => asked()?,
            _ => wish.clone(),
        };
        match (answered.ledger, answered.new_ledger) {
            (Some(file), _) => {
                fits(&file, &unit)?;
                Ok(Self::Name(file))
            }
            (None, name) => {
                let name = known.may_make(name)?;
                let file = ledger_beside(known.beside, known.state, &name);
                if file.exists() {
                    return Err(NodeCommandError::Usage(format!(
                        "nothing was signed: there is a ledger {0} already. If it is that of these rows, name it with \
                         --ledger {0}",
                        file.display()
                    )));
                }
                Ok(Self::Make {
                    file,
                    name,
                    unit,
                    unnamed: true,
                })
            }
        }
    }

    /// That of an institution whose `node.toml` names its ledger.
    fn named(
        known: &BeforeSigning<'_>,
        source: &SourceLimits,
        unit: SourceUnit,
        wish: &CountedIn,
    ) -> Result<Self, NodeCommandError> {
        let file = &source.path;
        if let Some(other) = wish.ledger.as_ref().filter(|other| !same(other, file)) {
            return Err(NodeCommandError::Usage(format!(
                "nothing was signed: node.toml names the ledger {}, and --ledger another one, {}: leave the option \
                 out, or change `ledger` in [policy]",
                file.display(),
                other.display()
            )));
        }
        if file.exists() {
            fits(file, &unit)?;
            return Ok(Self::Keep);
        }
        let name = match (&wish.new_ledger, &known.contributed) {
            (None, None) => asked_for_new(file)?,
            (name, _) => name.clone(),
        };
        let name = known.may_make(name)?;
        Ok(Self::Make {
            file: file.clone(),
            name,
            unit,
            unnamed: false,
        })
    }

    /// The table `[policy]` of a `node.toml` that is written into a folder: that of the earlier file, if there is
    /// one, with this ledger.
    pub(super) fn policy_in(&self, folder: &Path) -> toml::Table {
        let mut policy = policy_before(folder).unwrap_or_default();
        let ledger = match self {
            Self::Keep => None,
            Self::Without => Some(false.into()),
            Self::Name(file) | Self::Make { file, .. } => {
                let path = relative(file, folder).to_string_lossy().into_owned();
                Some(toml::Value::String(path))
            }
        };
        policy.extend(ledger.map(|ledger| ("ledger".to_owned(), ledger)));
        policy
    }

    /// The text of a `node.toml` that does not name the ledger, with its name; `None` where nothing changes.
    ///
    /// # Errors
    /// [`NodeCommandError`]: a person has to write it.
    pub(super) fn named_in(&self, config: &Path) -> Result<Option<String>, NodeCommandError> {
        let (Self::Name(file)
        | Self::Make {
            file,
            unnamed: true,
            ..
        }) = self
        else {
            return Ok(None);
        };
        let text = read_configuration(config)?;
        let beside = config.parent().unwrap_or(Path::new(""));
        let named = with_ledger(&text, beside, file);
        named.map(Some).ok_or_else(|| {
            NodeCommandError::Failed(format!(
                "nothing was signed: write `ledger = \"{}\"` into the table [policy] of {}, and sign again",
                file.display(),
                config.display()
            ))
        })
    }

    /// Makes the ledger, and says so.
    ///
    /// # Errors
    /// [`NodeCommandError`]: it is there already, or cannot be written.
    pub(super) fn carry_out(&self) -> Result<(), NodeCommandError> {
        let line = match self {
            Self::Keep | Self::Without => return Ok(()),
            Self::Name(file) => format!("counted in the ledger {}", file.display()),
            Self::Make {
                file, name, unit, ..
            } => {
                make_ledger(file, name, unit.clone())?;
                owned_as(file, folder_of(file)).map_err(|why| LedgerError::Io {
                    file: file.clone(),
                    why,
                })?;
                format!(
                    "made the ledger {}: name it in every federation that learns from these rows, and keep it as \
                     long as they are kept",
                    file.display()
                )
            }
        };
        Ok(writeln!(io::stdout().lock(), "{line}")?)
    }
}

/// The table `[policy]` of a `node.toml` in a folder, if there is one.
fn policy_before(folder: &Path) -> Option<toml::Table> {
    let text = read_configuration(&config_in(folder)).ok()?;
    let file: toml::Table = current(&text).parse().ok()?;
    file.get("policy")?.as_table().cloned()
}

impl BeforeSigning<'_> {
    /// The name of a ledger that may be made.
    fn may_make(&self, name: Option<String>) -> Result<String, NodeCommandError> {
        if let Some(why) = &self.contributed {
            return Err(NodeCommandError::Failed(format!(
                "nothing was signed: {why}, and a new ledger would know nothing of it. Name the ledger that counted it \
                 with --ledger FILE, and put it back first if it is lost. If there never was one, make it with `rota \
                 ledger new`, name it with --ledger FILE, and add what is known with `rota ledger reconcile` before \
                 the node runs; or write `ledger = false` into [policy] of node.toml if nothing is to count"
            )));
        }
        name.filter(|name| !name.trim().is_empty())
            .ok_or_else(|| NodeCommandError::Failed("nothing was signed".into()))
    }
}

/// That the institution contributed with noise, as its journal and the final blocks in it say.
fn contributed(present: &Present) -> Result<Option<String>, NodeCommandError> {
    let institution = &present.institution;
    if !store::has_journal(&institution.state) {
        return Ok(None);
    }
    let now = &institution.agreement.epoch;
    let own = OwnContributions::new(now.clone(), &present.past, institution.key.public());
    let snapshot = store::snapshot(&institution.state);
    let records = snapshot.map_err(|why| NodeCommandError::Failed(why.to_string()))?;
    let all = own.all(&records.records).into_iter();
    let mut noised = all.filter(|at| at.epoch != now.number || now.protocol.privacy.is_noised());
    Ok(noised.next().map(|place| {
        let round = place.round;
        format!("this institution contributed to round {round} with noise")
    }))
}

/// As [`contributed`], of a folder for the files of a node, where an earlier `node.toml` may be, for an institution
/// that may have been a member before.
fn contributed_before(config: &Path, again: bool) -> Result<Option<String>, NodeCommandError> {
    if config.is_file() && store::has_journal(&state_folder(config)?) {
        // A journal that is not that of a member, by the files that are there, tells nothing.
        let standing = Configured::load(config).map(standing);
        if let Ok(Ok((_, Membership::Member(present)))) = standing {
            let why = contributed(&present)?;
            return Ok(why.or_else(|| again.then(member_before)));
        }
        return Ok(Some(
            "a node has run in this folder, and its journal does not tell what it contributed"
                .into(),
        ));
    }
    Ok(again.then(member_before))
}

fn member_before() -> String {
    "this institution was a member with another key before, and may have contributed with noise"
        .into()
}

/// Returns whether a ledger can be read, and counts what the agreement protects.
fn fits(file: &Path, agreed: &SourceUnit) -> Result<(), NodeCommandError> {
    let contents = SourceLimits::unlimited(file).read()?;
    if contents.source.unit == *agreed {
        return Ok(());
    }
    Err(NodeCommandError::Ledger(LedgerError::OtherUnit {
        file: file.into(),
        ledger: contents.source.unit,
        agreed: agreed.clone(),
    }))
}

fn same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.into());
    whole(one) == whole(other)
}

/// Asks for the ledger of these rows, or the name of a new one.
fn asked() -> Result<CountedIn, NodeCommandError> {
    let mut ask = Prompt::at_terminal().ok_or_else(|| {
        let why = "nothing was signed: the rounds of this agreement have noise, and nothing counts yet what they tell \
                   about these rows. Name the ledger that the rows have with --ledger FILE, or, where no federation \
                   has learned from them with noise before, make one with --new-ledger NAME";
        NodeCommandError::Usage(why.into())
    })?;
    let question = "The rounds of this agreement have noise, and a ledger counts what they tell about these rows: one \
                    file for all federations that learn from them, because two ledgers do not know of each other.\n\
                    Its file, if there is one already (empty: there is none)";
    let file = ask.answer(question)?;
    if !file.is_empty() {
        return Ok(CountedIn {
            ledger: Some(file.into()),
            new_ledger: None,
        });
    }
    let name = ask.answer("A name for these rows, such as patients (empty: sign nothing)")?;
    Ok(CountedIn {
        ledger: None,
        new_ledger: (!name.is_empty()).then_some(name),
    })
}

/// Asks for the name of a new ledger in place of one that `node.toml` names and that is not there.
fn asked_for_new(file: &Path) -> Result<Option<String>, NodeCommandError> {
    let shown = file.display();
    let mut ask = Prompt::at_terminal().ok_or_else(|| {
        NodeCommandError::Usage(format!(
            "nothing was signed: the ledger {shown} is missing. Put it back, or, where no federation has learned from \
             these rows with noise before, make it with --new-ledger NAME"
        ))
    })?;
    let question = format!(
        "The ledger {shown} is missing. Put it back if these rows ever had one.\nA name for these rows, such as \
         patients, to make a new one (empty: sign nothing)"
    );
    let name = ask.answer(&question)?;
    Ok((!name.is_empty()).then_some(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::North;

    #[test]
    fn a_silo_toml_that_is_written_anew_keeps_the_policy() {
        let north = North::new();
        let folder = north.folder.path();
        let silo =
            "[policy]\nledger = \"old.ledger\"\nmin-rows = 50\nallowed-modes = [\"clear\"]\n";
        fs::write(folder.join("node.toml"), silo).unwrap();
        let plan = LedgerPlan::Name(folder.join("rows.ledger"));
        let kept = silo.replace("old", "rows").replace("[policy]\n", "");
        assert_eq!(plan.policy_in(folder), kept.parse::<toml::Table>().unwrap());
        let none = LedgerPlan::Keep.policy_in(&folder.join("new"));
        assert!(none.is_empty(), "{none}");
    }

    #[test]
    fn whoever_was_a_member_before_makes_no_new_ledger_unasked() {
        let north = North::new();
        let out = north.folder.path().join("new");
        let agreement = North::read(&North::noised("noise-multiplier = 20.0\nmin-authors = 3\n"));
        let wish = |ledger: Option<&Path>, new: Option<&str>| CountedIn {
            ledger: ledger.map(PathBuf::from),
            new_ledger: new.map(str::to_owned),
        };
        let plan =
            |wish: &CountedIn, again: bool| LedgerPlan::of_new(&out, &agreement, wish, again);
        let new = wish(None, Some("patients"));
        assert!(matches!(plan(&new, false), Ok(LedgerPlan::Make { .. })));
        for wish in [&new, &wish(None, None)] {
            let said = plan(wish, true).unwrap_err().to_string();
            for part in [
                "was a member with another key before",
                "`rota ledger reconcile`",
            ] {
                assert!(said.contains(part), "{said}");
            }
        }
        let file = north.folder.path().join("rows.ledger");
        make_ledger(&file, "rows", SourceUnit::Row).unwrap();
        let named = plan(&wish(Some(&file), None), true).unwrap();
        assert_eq!(named, LedgerPlan::Name(file));
        // Without noise there is nothing to count.
        let clear = North::read(&North::text(&[]));
        let plan = LedgerPlan::of_new(&out, &clear, &wish(None, None), true);
        assert!(matches!(plan, Ok(LedgerPlan::Keep)));
    }
}
