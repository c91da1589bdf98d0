//! An agreement in the making: everything but all of its members.
//!
//! A draft is a `federation.toml` that may have few members or none. [`Draft::text`] writes the first
//! one with comments; [`Draft::add`] adds a member to the text of one, and leaves the rest, comments
//! included, as it is.

use methods::strategy::StrategyConfig;
use protocol::parameters::{self, ParametersError, Rotation, Verification};
use protocol::roster::{Roster, RosterError, Silo};
use protocol::{Formats, Hash, PublicKey};
use task::TaskConfig;

use crate::agreement::{
    Agreement, ID, default_min_contributions, default_view_timeout, refused, silos_of,
};
use crate::alike::{LookError, check_new};
use crate::config_error::ConfigError;
use crate::file::{EntryNames, FederationFile, PrivacyTable, ProtocolTable, SiloTable, StatusFor};
use crate::rotation::RotationName;
use crate::source::TomlText;
use crate::span::Span;
use crate::strategy::strategy_error;
use crate::verification::VerificationName;

/// Members of the largest federation.
const MOST: usize = 1000;

/// A member that joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joining {
    /// Name of the member.
    pub name: String,
    /// Public key of the member.
    pub key: PublicKey,
    /// Most training rows that it may claim; `None`: it declares none.
    pub rows: Option<u64>,
    /// Addresses at which its node is reached.
    pub addresses: Vec<String>,
}

/// Contents of a new draft.
#[derive(Debug, Clone)]
pub struct NewDraft {
    /// Name of the federation.
    pub name: String,
    /// Rounds to learn.
    pub rounds: u64,
    /// Seed of the initial model.
    pub seed: u64,
    /// Hash of the state that the first round starts from.
    pub start: Hash,
    /// The unit of all timers.
    pub heartbeat: Span,
    /// Beats that a round waits for a slow member.
    pub patience: u32,
    /// Beats until a lead is replaced; `None`: as follows from the number of members.
    pub view_timeout: Option<u32>,
    /// Fewest contributions of a round; `None`: as follows from the number of members.
    pub min_contributions: Option<u16>,
    /// Final rounds whose models are kept.
    pub keep_rounds: u32,
    /// Largest contribution, in bytes.
    pub blob_limit: u64,
    /// Largest ℓ2 norm of a contributed model.
    pub max_model_norm: Option<f64>,
    /// Largest share of a contribution in the sum of weights.
    pub max_weight: Option<f64>,
    /// Rule for the lead of each round.
    pub rotation: Rotation,
    /// Checks that a round passes before it counts.
    pub verification: Verification,
    /// True if contributions carry the names of their authors.
    pub names_shown: bool,
    /// The table that says what members see of each other's contributions; `None`: every model.
    pub privacy: Option<PrivacyTable>,
    /// Learning task.
    pub task: TaskConfig,
    /// Strategy by which the members learn.
    pub strategy: StrategyConfig,
    /// The members known so far.
    pub members: Vec<Joining>,
}

/// A draft that was read.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Name of the federation.
    pub name: String,
    /// Seed of the initial model.
    pub seed: u64,
    /// Learning task.
    pub task: TaskConfig,
    /// Strategy by which the members learn.
    pub strategy: StrategyConfig,
    /// The members known so far.
    pub members: Vec<Joining>,
}

/// Reason for which a member cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The draft is wrong.
    #[error(transparent)]
    Draft(#[from] ConfigError),
    /// The member does not go with the others.
    #[error("cannot add {name:?}: {why}")]
    Member {
        /// Name of the member.
        name: String,
        /// Fault of the roster.
        why: RosterError,
    },
    /// The member's name looks like another one.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The members are not written as tables of their own.
    #[error(
        "the members of this file are not tables `[[member]]`: write them so, and add the member again"
    )]
    Form,
    /// The task gives every member a domain.
    #[error(
        "the task lists `domains`, one for every member: add the number of this member's domain to the list by hand, together with its `[[member]]`"
    )]
    Domains,
}

impl Draft {
    /// Reads the text of a file; errors name `file`. What depends on the number of members is not
    /// checked.
    ///
    /// # Errors
    /// [`ConfigError::At`]: the first error in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let source = TomlText { file, text };
        source.check_format(protocol::Formats::SPOKEN.newest.into())?;
        let mut raw: FederationFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        let silos = silos_of(source, &raw.silo)?;
        if !silos.is_empty() {
            Roster::new(silos.clone())
                .map_err(|error| refused(source, &ParametersError::Roster(error)))?;
        }
        let (scale, continues) = (raw.task.common_scale(), raw.continues.is_some());
        raw.strategy.standardise = scale && !continues;
        raw.strategy.scale_agreed = scale && continues;
        raw.strategy.set_rounds(raw.rounds);
        let strategy = raw.strategy.validate(MOST);
        strategy.map_err(|error| strategy_error(source, &error))?;
        let members = silos
            .into_iter()
            .zip(raw.silo)
            .map(|(silo, table)| Joining {
                name: silo.name,
                key: silo.key,
                rows: silo.rows,
                addresses: table.addresses,
            });
        Ok(Self {
            name: raw.name,
            seed: raw.seed,
            members: members.collect(),
            task: raw.task,
            strategy: raw.strategy,
        })
    }

    /// The text of a new draft, with comments.
    ///
    /// # Errors
    /// A value that cannot be written in TOML, such as a seed of 2⁶³ or more.
    pub fn text(new: &NewDraft) -> Result<String, String> {
        let raw = FederationFile {
            format: match &new.privacy {
                Some(table) if table.is_masked() => Formats::MASKED.into(),
                _ => parameters::FORMAT,
            },
            name: new.name.clone(),
            rounds: new.rounds,
            seed: new.seed,
            start: format!("{:#}", new.start),
            continues: None,
            protocol: ProtocolTable {
                heartbeat: new.heartbeat,
                patience: new.patience,
                view_timeout: new.view_timeout,
                min_contributions: new.min_contributions,
                keep_rounds: new.keep_rounds,
                blob_limit: new.blob_limit,
                discovery: false,
                max_model_norm: new.max_model_norm,
                max_weight: new.max_weight,
                rotation: RotationName(new.rotation),
                verification: VerificationName(new.verification),
                names: if new.names_shown {
                    EntryNames::Shown
                } else {
                    EntryNames::Removed
                },
                status: StatusFor::Own,
            },
            privacy: new.privacy.clone(),
            task: new.task.clone(),
            strategy: new.strategy.clone(),
            question: Vec::new(),
            serving: None,
            silo: Vec::new(),
        };
        let text = toml::to_string(&raw).map_err(|error| error.to_string())?;
        let mut text = commented(&text, new);
        for member in &new.members {
            text.push_str(&table(member)?);
        }
        Ok(with_id(&text))
    }

    /// The text of a draft with one more member.
    ///
    /// # Errors
    /// [`AddError`]: a wrong draft, or a member whose name or key is taken or unusable.
    pub fn add(file: &str, text: &str, member: &Joining) -> Result<String, AddError> {
        let draft = Self::parse(file, text)?;
        if let TaskConfig::Table(task) = &draft.task
            && task.domains.is_some()
        {
            return Err(AddError::Domains);
        }
        let members = draft.members.iter().chain([member]);
        let silos: Vec<Silo> = members
            .map(|one| Silo {
                name: one.name.clone(),
                key: one.key,
                rows: one.rows,
            })
            .collect();
        let count = silos.len();
        let before = &silos[..count - 1];
        Roster::new(silos.clone()).map_err(|why| AddError::Member {
            name: member.name.clone(),
            why,
        })?;
        check_new(before, &silos)?;
        let added = table(member).map_err(|_| AddError::Form)?;
        let longer = format!("{}\n{added}", text.trim_end());
        let longer = with_id(&longer);
        match Self::parse(file, &longer) {
            Ok(draft) if draft.members.len() == count => Ok(longer),
            _ => Err(AddError::Form),
        }
    }
}

/// A member as a table.
fn table(member: &Joining) -> Result<String, String> {
    let raw = SiloTable {
        name: member.name.clone(),
        key: member.key.to_string(),
        rows: member.rows,
        addresses: member.addresses.clone(),
    };
    let text = toml::to_string(&raw).map_err(|error| error.to_string())?;
    Ok(format!("\n[[member]]\n{text}"))
}

/// The text with the id in its comment, if its members are complete.
fn with_id(text: &str) -> String {
    let id = match Agreement::parse("federation.toml", text) {
        Ok(agreement) => format!("{:#}", agreement.epoch.federation),
        Err(_) => "none yet, members are missing".to_owned(),
    };
    let lines = text.lines().map(|line| {
        if line.starts_with(ID) {
            format!("{ID}{id}\n")
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}

/// Comments at the ends of lines: table, key, comment.
const COMMENTS: [(&str, &str, &str); 17] = [
    ("", "name", "human-readable name of the federation"),
    ("", "rounds", "rounds to learn"),
    ("", "seed", "seed of the initial model"),
    (
        "protocol",
        "heartbeat",
        "unit of all timers: how long a message may take on a bad day",
    ),
    (
        "protocol",
        "straggler-timeout",
        "heartbeats that a round waits for a slow member",
    ),
    (
        "protocol",
        "view-timeout",
        "heartbeats until a lead is replaced",
    ),
    (
        "protocol",
        "min-contributions",
        "fewest contributions of a round",
    ),
    (
        "protocol",
        "keep-rounds",
        "final rounds whose models are kept for members that were away",
    ),
    (
        "protocol",
        "blob-limit",
        "largest contribution in bytes: what this model needs",
    ),
    (
        "protocol",
        "max-model-norm",
        "largest l2 norm of a contributed model",
    ),
    (
        "protocol",
        "max-weight",
        "largest share of the sum of weights that one model may have",
    ),
    (
        "protocol",
        "rotation",
        "who leads when: every-round, every-K-rounds, on-failure, reliability or fixed",
    ),
    (
        "protocol",
        "verification",
        "who computes every model again before it counts: full, committee-C or inclusion",
    ),
    (
        "protocol",
        "names",
        "whether members see who contributed what; the lead of a round does",
    ),
    (
        "task.table",
        "standardise",
        "a common scale, or \"silo\": everybody's own",
    ),
    ("task.table", "metric", "what reports compare"),
    (
        "task.table.schema",
        "min-rows",
        "a member with fewer may not take part",
    ),
];

/// The text with comments.
fn commented(text: &str, new: &NewDraft) -> String {
    let mut lines = vec![
        "# The agreement of this federation, the same at every member.".to_owned(),
        format!("{ID}none yet"),
        "#".into(),
        "#   rota federation add NAME KEY ADDRESS --file federation.toml   adds a member".into(),
        "#   rota federation show federation.toml                          shows it as text".into(),
        "#   rota federation check federation.toml                         checks it".into(),
        "#   rota federation invite --file federation.toml                 prints it as one line"
            .into(),
        "#".into(),
        "# The id is a hash of what the file means. Comments, order, spacing and the members'"
            .into(),
        "# addresses do not change it; everything else does, and members sign the id.".into(),
        String::new(),
    ];
    let (mut table, mut parts) = (String::new(), 0);
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_matches(['[', ']']).to_owned();
            let part = match table.split('.').next() {
                Some("protocol") => 1,
                Some("task") => 2,
                Some("strategy") => 3,
                _ => parts,
            };
            if part > parts {
                parts = part;
                lines.push(title(part).into());
            }
        }
        let key = line.split('=').next().unwrap_or_default().trim();
        if table.is_empty() && key == "start" {
            lines.push(
                "# Hash of the state before the first round. It follows from task, strategy and seed; \
                 every node".into(),
            );
            lines.push("# computes it again, and `rota federation check` does.".into());
        }
        let comment = COMMENTS
            .iter()
            .find(|(of, name, _)| *of == table && *name == key);
        lines.push(match comment {
            Some((_, _, comment)) => format!("{line:31} # {comment}"),
            None => line.to_owned(),
        });
        if table == "protocol" && key == "straggler-timeout" {
            lines.extend(of_number(new));
        }
        if table == "protocol" && key == "names" {
            lines.push(format!(
                "{:31} # every member sees how all nodes are doing; without it, its own",
                "# status = \"members\""
            ));
        }
    }
    lines.push(String::new());
    lines.push(
        "# ---- The members, in the order in which they were added. The order is part of the agreement."
            .into(),
    );
    lines.join("\n") + "\n"
}

/// Returns what follows from the number of members, where the draft leaves it open.
fn of_number(new: &NewDraft) -> Vec<String> {
    let mut lines = Vec::new();
    let examples = |value: &dyn Fn(usize) -> u64| {
        let each = [3, 4, 7].map(|n| format!("{} with {n} members", value(n)));
        each.join(", ")
    };
    if new.view_timeout.is_none() {
        let value = |n| u64::from(default_view_timeout(new.patience, n));
        lines.push(
            "# view-timeout: heartbeats until a lead is replaced. Without it 2 patience + f + 4:"
                .into(),
        );
        lines.push(format!("# {}", examples(&value)));
    }
    if new.min_contributions.is_none() {
        let value = |n| u64::from(default_min_contributions(n));
        lines.push("# min-contributions: fewest contributions of a round. Without it 2f + 1, or more than half:".into());
        lines.push(format!("# {}", examples(&value)));
    }
    lines
}

/// The heading of a part.
fn title(part: usize) -> &'static str {
    match part {
        1 => {
            "# ---- Rules of the rounds: usual values. f, the number of members that may fail in any \
             way, is\n# (n - 1) / 3 of n members, rounded down: 0 of three, 1 of four, 2 of seven."
        }
        2 => {
            "# ---- What is learned, and what the rows of every member have in common. Every node \
             reads its\n# own files by it, and refuses what does not fit."
        }
        _ => "# ---- How it is learned: `rota strategies` lists methods and options.",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::SecretKey;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    fn new(members: Vec<Joining>) -> NewDraft {
        let example = Agreement::parse("f.toml", EXAMPLE).unwrap();
        let TaskConfig::Table(mut task) = example.task else {
            panic!("the example has a table");
        };
        task.domains = None;
        NewDraft {
            name: "stays".into(),
            rounds: 6,
            seed: 1,
            start: Hash::of(b"start"),
            heartbeat: Span::millis(5000),
            patience: 12,
            view_timeout: None,
            min_contributions: None,
            keep_rounds: 3,
            blob_limit: 392,
            max_model_norm: None,
            max_weight: None,
            rotation: Rotation::EveryRound,
            verification: Verification::Full,
            names_shown: false,
            privacy: None,
            task: TaskConfig::Table(task),
            strategy: example.strategy_config,
            members,
        }
    }

    fn joining(digit: u8) -> Joining {
        Joining {
            name: format!("hospital {digit}"),
            key: SecretKey::from_bytes(&[digit; 32]).public(),
            rows: None,
            addresses: vec![format!("/dns/h{digit}.example/udp/4001/quic-v1")],
        }
    }

    #[test]
    fn a_draft_grows_by_members_and_its_id_follows() {
        let mut text = Draft::text(&new(Vec::new())).unwrap();
        assert!(text.contains("# Its id: none yet"), "{text}");
        assert!(Draft::parse("f.toml", &text).unwrap().members.is_empty());
        let none = Agreement::parse("f.toml", &text).err().unwrap().to_string();
        assert!(
            none.contains("has no members yet: `rota federation add"),
            "{none}"
        );
        for digit in 1..=4 {
            text = Draft::add("f.toml", &text, &joining(digit)).unwrap();
            let agreement = Agreement::parse("f.toml", &text);
            // The strategy makes two coalitions, for which one member is too few.
            match (agreement, digit) {
                (Err(_), 1) => assert!(text.contains("# Its id: none yet")),
                (agreement, _) => {
                    let agreement = agreement.unwrap();
                    let id = format!("# Its id: {:#}\n", agreement.epoch.federation);
                    assert!(text.contains(&id), "{text}");
                    let n = usize::from(digit);
                    let protocol = &agreement.epoch.protocol;
                    assert_eq!(protocol.min_contributions, default_min_contributions(n));
                    assert_eq!(agreement.addresses[n - 1], joining(digit).addresses);
                }
            }
        }
        let at_once = Draft::text(&new((1..=4).map(joining).collect())).unwrap();
        let id = |text: &str| Agreement::parse("f.toml", text).unwrap().epoch.federation;
        assert_eq!(id(&at_once), id(&text));
        // Addresses are not part of the id.
        assert_eq!(
            id(&text.replace("h3.example", "elsewhere.example")),
            id(&text)
        );
        assert_ne!(id(&text.replace("hospital 3", "hospital 5")), id(&text));
    }

    #[test]
    fn comments_stay_when_a_member_is_added() {
        let text = Draft::text(&new(vec![joining(1)])).unwrap();
        let text = text.replace(
            "straggler-timeout = 12",
            "straggler-timeout = 12 # as in the contract of May",
        );
        let longer = Draft::add("f.toml", &text, &joining(2)).unwrap();
        assert!(longer.contains("# as in the contract of May"), "{longer}");
        assert!(longer.contains("# ---- Rules of the rounds"), "{longer}");
    }

    #[test]
    fn members_that_do_not_go_together_are_refused() {
        let text = Draft::text(&new(vec![joining(1)])).unwrap();
        let why = |member: Joining| {
            let error = Draft::add("f.toml", &text, &member).unwrap_err();
            error.to_string()
        };
        assert!(
            why(joining(1)).contains("two members are named"),
            "{}",
            why(joining(1))
        );
        let same_key = Joining {
            name: "other".into(),
            ..joining(1)
        };
        assert!(why(same_key).contains("has the same key as another member"));
        let odd = Joining {
            name: "a\u{202e}b".into(),
            ..joining(2)
        };
        assert!(why(odd).contains("U+202E"));
        let weak = Joining {
            key: PublicKey([0; 32]),
            ..joining(2)
        };
        assert!(why(weak).contains("is not a usable Ed25519 key"));
    }
}
