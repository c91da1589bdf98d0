//! Amendments: another text of an agreement that members approve while the federation runs, and the
//! agreement that a final one brings into force.

use std::sync::Arc;

use protocol::message::{Amendment, Block};
use protocol::parameters::{Genesis, ParametersError};
use protocol::roster::Silo;
use protocol::{Epoch, Epochs, MemberIndex, PublicKey};
use task::MakeStandIn;

use crate::agreement::{Agreement, Unfit};
use crate::alike::{LookError, check_new};
use crate::config_error::ConfigError;
use crate::question::AgreedQuestion;

/// Reason to refuse a text as an amendment.
#[derive(Debug, thiserror::Error)]
pub enum AmendError {
    /// An error in the text.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A question that the members cannot answer.
    #[error("the question was not proposed: {0}")]
    Question(String),
    /// The amendment changes a value that has to stay as long as the federation runs.
    #[error(
        "an amendment cannot change {what} (`{key}`: {before} before, {after} after): a new federation \
         can, which continues from a model of this one (`rota federation continue`)"
    )]
    Fixed {
        /// Meaning of the key, as text.
        what: &'static str,
        /// The key.
        key: String,
        /// Value of the key in the agreement in force.
        before: String,
        /// Value of the key in the amendment.
        after: String,
    },
    /// A character in the text that nobody sees, or that changes how the rest is shown.
    #[error(
        "line {line} of the text has the character U+{code:04X}, which is invisible or changes how the \
         rest is shown: write the text without it"
    )]
    Hidden {
        /// The line, from 1.
        line: usize,
        /// The character.
        code: u32,
    },
    /// A value with an invisible character, or one that changes how the rest is shown, written as an escape.
    #[error(
        "the value of `{key}` has a character that is invisible or changes how the rest is shown: write \
         it without"
    )]
    HiddenValue {
        /// The key.
        key: String,
    },
    /// A group of secure-aggregation rounds would become another one.
    #[error(
        "the institutions {group} would be added up with others than before, or with other weights ({before} \
         before): no silo of theirs would answer, because the difference of two such sums may be the model of \
         a single one. Leave `[[privacy.group]]` as it is (a group without one of its institutions sits out), \
         add a group of institutions that are in none, or continue with noise (`mode = \"differential-privacy\"`). If \
         every institution of these groups approves it, also one that leaves, the groups may change: name \
         whose updates become visible, `shows = [{shown}]` in `[privacy]`"
    )]
    Group {
        /// The institutions of the new group.
        group: String,
        /// Those of the old one.
        before: String,
        /// Whose updates would become visible, as a list of TOML.
        shown: String,
    },
    /// Noise with a split whose parts depend on how many rows there are.
    #[error(
        "{0}. An amendment cannot change the split: a new federation can (`rota federation continue`)"
    )]
    Split(String),
    /// A group of secure-aggregation rounds that is none of the federation before.
    #[error(
        "the institutions {group} would be added up, and in the federation that this one continues {before} were \
         added up: the difference of two such sums may be the model of a single one. Leave the group as it was \
         there; or change it there, with everybody's approval (`shows` in `[privacy]`), and continue then; or \
         continue with noise (`mode = \"differential-privacy\"`)"
    )]
    SummedBefore {
        /// The institutions of the group.
        group: String,
        /// Those of the group of the federation before.
        before: String,
    },
    /// The largest contribution is not allowed.
    #[error(
        "`protocol.blob-limit` is {limit}, and a contribution under this agreement has {size} bytes: no \
         member could take part; set it to {size} or more"
    )]
    Limit {
        /// Bytes of a contribution.
        size: u64,
        /// The parameter set's limit.
        limit: u64,
    },
    /// A strategy that cannot work with the agreed model.
    #[error("`strategy`: {0}")]
    Strategy(String),
    /// There is no member of that name.
    #[error("there is no member {name:?}; there are {members}")]
    NoMember {
        /// The name.
        name: String,
        /// The names that there are.
        members: String,
    },
    /// A new name that looks like another one.
    #[error(transparent)]
    Look(#[from] LookError),
    /// A change that breaks a rule.
    #[error(transparent)]
    Change(#[from] protocol::change::ChangeError),
    /// A roster or parameter set that cannot be used.
    #[error(transparent)]
    ProtocolParameters(#[from] ParametersError),
    /// A text that is not what it has to be.
    #[error("the amendment cannot be accepted: {0}")]
    Differs(&'static str),
    /// A value that cannot be written.
    #[error("the amended agreement cannot be written: {0}")]
    Text(String),
    /// The text of a final amendment does not say what its members approved.
    #[error(
        "the agreement in force cannot be read: {0}. The institutions approved it with another \
         version of Rota; use that version"
    )]
    Unreadable(String),
}

impl AmendError {
    pub(crate) fn fixed(
        what: &'static str,
        key: &str,
        (before, after): (Option<String>, Option<String>),
    ) -> Self {
        let set = |value: Option<String>| value.unwrap_or_else(|| "not set".into());
        Self::Fixed {
            what,
            key: key.into(),
            before: set(before),
            after: set(after),
        }
    }
}

impl Agreement {
    /// The amendment that replaces this agreement, which is in force, by the one in `text`; errors
    /// name `file`. Members, rules of the rounds, the number of rounds, and options of the strategy
    /// may change. It is [examined](Self::examine) as that of any other member.
    ///
    /// # Errors
    /// [`AmendError`]: an error in the text, or something changes that has to stay.
    pub fn amended(
        &self,
        file: &str,
        text: &str,
        stand_in: MakeStandIn,
    ) -> Result<Amendment, AmendError> {
        let new = Self::parse(file, text)?;
        let amendment = Amendment {
            format: new.epoch.format,
            silos: new.epoch.roster.silos().to_vec(),
            protocol: new.epoch.protocol.clone(),
            text: text.as_bytes().to_vec(),
            stolen: Vec::new(),
        };
        self.examine(&amendment, stand_in)?;
        check_new(self.epoch.roster.silos(), &amendment.silos)?;
        Ok(amendment)
    }

    /// The text of this agreement with other members.
    fn with_members(&self, members: Vec<(Silo, Vec<String>)>) -> Result<String, AmendError> {
        let (silos, addresses): (Vec<_>, _) = members.into_iter().unzip();
        let before = self.epoch.roster.len();
        let protocol = self.epoch.protocol.for_members(before, silos.len());
        let amended = Self {
            epoch: Arc::new(Epoch::first_in(
                self.epoch.format,
                &Genesis { silos, protocol },
            )?),
            addresses,
            ..self.clone()
        };
        amended.to_toml().map_err(AmendError::Text)
    }

    fn members(&self) -> Vec<(Silo, Vec<String>)> {
        let silos = self.epoch.roster.silos().iter().cloned();
        silos.zip(self.addresses.iter().cloned()).collect()
    }

    fn place(&self, name: &str) -> Result<usize, AmendError> {
        let silos = self.epoch.roster.silos();
        let found = silos.iter().position(|silo| silo.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = silos.iter().map(|silo| &*silo.name).collect();
            AmendError::NoMember {
                name: name.into(),
                members: names.join(", "),
            }
        })
    }

    /// The text of this agreement with another member behind the others, which may claim at most
    /// `rows` training rows.
    ///
    /// # Errors
    /// [`AmendError`]: its name or key cannot be used, or is another member's.
    pub fn admitting(
        &self,
        name: &str,
        key: PublicKey,
        rows: Option<u64>,
        addresses: Vec<String>,
    ) -> Result<String, AmendError> {
        let mut members = self.members();
        let name = name.into();
        members.push((Silo { name, key, rows }, addresses));
        self.with_members(members)
    }

    /// The text of this agreement without a member.
    ///
    /// # Errors
    /// [`AmendError`]: there is no such member, or it is the only one.
    pub fn without(&self, name: &str) -> Result<String, AmendError> {
        let mut members = self.members();
        members.remove(self.place(name)?);
        self.with_members(members)
    }

    /// The text of this agreement with another question behind the others, with the rounds that it takes at most
    /// and room for its answers.
    ///
    /// # Errors
    /// [`AmendError`]: a question that these members cannot answer, or a value that cannot be written.
    pub fn asking(&self, question: AgreedQuestion) -> Result<String, AmendError> {
        let impossible = question.impossible(&self.epoch.protocol.privacy);
        if let Some(why) = impossible {
            return Err(AmendError::Question(why));
        }
        let mut protocol = self.epoch.protocol.clone();
        protocol.rounds += question.most_rounds(self.question_mode());
        let silos = self.epoch.roster.silos().to_vec();
        let mut questions = self.questions.clone();
        questions.push(question);
        protocol.blob_limit = self.blob_limit_with(&questions);
        let amended = Self {
            epoch: Arc::new(Epoch::first_in(
                self.epoch.format,
                &Genesis { silos, protocol },
            )?),
            questions,
            ..self.clone()
        };
        amended.to_toml().map_err(AmendError::Text)
    }

    /// The text of this agreement with another key of a member.
    ///
    /// # Errors
    /// [`AmendError`]: there is no such member, or the key cannot be used.
    pub fn rekeyed(&self, name: &str, key: PublicKey) -> Result<String, AmendError> {
        let mut members = self.members();
        members[self.place(name)?].0.key = key;
        self.with_members(members)
    }

    /// The amendment with which a member leaves by itself.
    pub fn leaving(&self, member: MemberIndex) -> Amendment {
        Amendment::leaving(&self.epoch, member)
    }

    /// The text of the agreement that an amendment of this one brings into force, as members approve it.
    ///
    /// # Errors
    /// [`AmendError`]: it is no text.
    pub fn amendment_text(&self, amendment: &Amendment) -> Result<String, AmendError> {
        if !amendment.text.is_empty() {
            let text = String::from_utf8(amendment.text.clone());
            return text.map_err(|_| AmendError::Differs("its text is not UTF-8"));
        }
        // A member leaves by itself.
        let mut members = self.members();
        members.retain(|(silo, _)| amendment.silos.contains(silo));
        self.with_members(members)
    }

    /// The agreement that an amendment of this one brings into force, in `epoch`, whether an institution
    /// may accept it or not; [`examine`](Self::examine) says that.
    ///
    /// # Errors
    /// [`AmendError`]: the text cannot be read, or says something else than what was approved.
    pub fn after(&self, amendment: &Amendment, epoch: Arc<Epoch>) -> Result<Self, AmendError> {
        let read = self.read(amendment, epoch);
        read.map_err(|error| AmendError::Unreadable(error.to_string()))
    }

    pub(crate) fn read(
        &self,
        amendment: &Amendment,
        epoch: Arc<Epoch>,
    ) -> Result<Self, AmendError> {
        let text = self.amendment_text(amendment)?;
        let new = Self::parse_kept("the amendment", &text)?;
        let agreed =
            new.epoch.roster.silos() == amendment.silos && new.epoch.protocol == amendment.protocol;
        if agreed && new.epoch.format == amendment.format {
            Ok(Self { epoch, ..new })
        } else {
            Err(AmendError::Differs(
                "its text gives other members or rules than the values that are signed with it",
            ))
        }
    }

    /// The agreement of the members that remain after a recovery, in `epoch`.
    ///
    /// # Errors
    /// [`AmendError`]: the strategy cannot be used by so few members, or nobody could take part before.
    fn remaining(&self, epoch: Arc<Epoch>, stand_in: MakeStandIn) -> Result<Self, AmendError> {
        let mut members = self.members();
        members.retain(|(silo, _)| epoch.roster.position(&silo.key).is_some());
        let text = self.with_members(members)?;
        let new = Self::parse("the agreement of the members that remain", &text)?;
        if new.epoch.protocol.work != epoch.protocol.work {
            return Err(AmendError::Differs(
                "it follows an agreement that this program cannot read",
            ));
        }
        self.accepts(&new, stand_in)?;
        Ok(Self { epoch, ..new })
    }

    /// The agreement that the members which remain without these would have.
    ///
    /// # Errors
    /// [`AmendError`]: a name of no member, or the strategy cannot be used by so few members.
    pub fn without_all(&self, lost: &[String]) -> Result<Self, AmendError> {
        let mut members = self.members();
        for name in lost {
            self.place(name)?;
            members.retain(|(silo, _)| silo.name != *name);
        }
        let text = self.with_members(members)?;
        Ok(Self::parse(
            "the agreement of the members that remain",
            &text,
        )?)
    }

    /// The agreement that a block which ends this epoch brings into force, in `epoch`. What a quorum
    /// made final is in force, whatever this program thinks of it: where no institution should have
    /// accepted it, or it cannot be read here, the agreement says so
    /// ([`unfit`](Self::unfit)). What cannot be read is as it was before.
    ///
    /// # Errors
    /// [`AmendError`]: the block ends no epoch.
    pub fn following(
        &self,
        block: &Block,
        epoch: Arc<Epoch>,
        stand_in: MakeStandIn,
    ) -> Result<Self, AmendError> {
        let (accepted, amendment) = match (block.change(), block.recovery()) {
            (Some(change), _) => (
                self.examine(&change.amendment, stand_in),
                Some(&change.amendment),
            ),
            (None, Some(_)) => (self.remaining(epoch.clone(), stand_in), None),
            (None, None) => return Err(protocol::change::ChangeError::NoChange.into()),
        };
        let why = match accepted {
            Ok(new) => return Ok(Self { epoch, ..new }),
            Err(why) => why,
        };
        let read = amendment.and_then(|amendment| self.after(amendment, epoch.clone()).ok());
        let unfit = Some(Unfit {
            why: why.to_string(),
            last: self
                .unfit
                .as_ref()
                .map_or_else(|| Arc::new(self.clone()), |unfit| unfit.last.clone()),
        });
        let new = read.unwrap_or_else(|| self.with_roster_of(&epoch));
        Ok(Self {
            epoch,
            unfit,
            ..new
        })
    }

    /// This agreement with the addresses of the members of another epoch, as far as they are known.
    fn with_roster_of(&self, epoch: &Epoch) -> Self {
        let members = self.members();
        let of = |silo: &Silo| {
            let same = |(own, _): &&(Silo, Vec<String>)| own.key == silo.key;
            let found = members.iter().find(same);
            found.map(|(_, addresses)| addresses.clone())
        };
        let silos = epoch.roster.silos().iter();
        Self {
            addresses: silos.map(|silo| of(silo).unwrap_or_default()).collect(),
            ..self.clone()
        }
    }

    /// The agreement in force after all changes that a journal holds; this is the first one.
    ///
    /// # Errors
    /// [`AmendError`]: a passage of the journal ends no epoch.
    pub fn in_force(&self, epochs: &Epochs, stand_in: MakeStandIn) -> Result<Self, AmendError> {
        let mut agreement = self.clone();
        let over = epochs.former.iter().map(|(epoch, _)| epoch.clone());
        let next = over.skip(1).chain([epochs.now.clone()]);
        for ((_, passage), epoch) in epochs.former.iter().zip(next) {
            let block = passage.blocks.first();
            let block = block.ok_or(protocol::change::ChangeError::NoChange)?;
            agreement = agreement.following(block, epoch, stand_in)?;
        }
        Ok(agreement)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::SecretKey;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    fn agreement() -> Agreement {
        Agreement::parse("federation.toml", EXAMPLE).unwrap()
    }

    fn names(text: &str) -> Vec<String> {
        let agreement = Agreement::parse("new", text).unwrap();
        let silos = agreement.epoch.roster.silos().iter();
        silos.map(|silo| silo.name.clone()).collect()
    }

    #[test]
    fn members_come_go_and_get_other_keys() {
        let old = agreement();
        let before = names(EXAMPLE);
        let key = SecretKey::from_bytes(&[9; 32]).public();
        let address = "/dns/new.example.org/udp/4001/quic-v1".to_owned();
        let text = old.admitting("new", key, Some(120), vec![address.clone()]);
        let text = text.unwrap();
        let mut more = before.clone();
        more.push("new".into());
        assert_eq!(names(&text), more);
        let amendment = old.amended("new.toml", &text, learn::stand_in).unwrap();
        assert_eq!(amendment.silos.last().unwrap().key, key);
        assert_eq!(amendment.silos.last().unwrap().rows, Some(120));
        let new = Agreement::parse("new", &text).unwrap();
        assert_eq!(new.addresses.last().unwrap(), &[address]);
        let text = old.without(&before[0]).unwrap();
        assert_eq!(names(&text), before[1..]);
        let text = old.rekeyed(&before[1], key).unwrap();
        assert_eq!(names(&text), before);
        assert_eq!(
            old.amended("new.toml", &text, learn::stand_in)
                .unwrap()
                .silos[1]
                .key,
            key
        );
        let error = old.without("nobody").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no member \"nobody\"; there are"),
            "{error}"
        );
        // A key of another member.
        let key = old.epoch.roster.silos()[0].key;
        assert!(old.rekeyed(&before[1], key).is_err());
    }

    #[test]
    fn rounds_and_rules_may_change_and_task_strategy_and_seed_stay() {
        let old = agreement();
        let rounds = format!("rounds = {}", old.epoch.protocol.rounds);
        assert!(EXAMPLE.contains(&rounds));
        let more = EXAMPLE.replace(&rounds, "rounds = 77");
        let amendment = old.amended("new.toml", &more, learn::stand_in).unwrap();
        assert_eq!(amendment.protocol.rounds, 77);
        let written = old.to_toml().unwrap();
        let seed = format!("seed = {}\n", old.seed);
        assert!(written.contains(&seed));
        let other = written.replace(&seed, "seed = 991\n");
        let error = old
            .amended("new.toml", &other, learn::stand_in)
            .unwrap_err();
        assert!(
            matches!(
                error,
                AmendError::Fixed {
                    what: "the seed",
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains("`rota federation continue`"));
        let stops = EXAMPLE.replace("[strategy]", "[strategy]\nstop = { patience = 3 }");
        assert_ne!(stops, EXAMPLE);
        let why = old
            .amended("new.toml", &stops, learn::stand_in)
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("whether the federation may end early"),
            "{why}"
        );
    }

    #[test]
    fn a_member_that_leaves_by_itself_needs_no_text() {
        let old = agreement();
        let amendment = old.leaving(MemberIndex(0));
        let text = old.amendment_text(&amendment).unwrap();
        let new = old.after(&amendment, old.epoch.clone()).unwrap();
        assert_eq!(names(&text), names(EXAMPLE)[1..]);
        assert_eq!(new.addresses, old.addresses[1..]);
        // A text that says something else than what was approved is noticed.
        let mut amendment = old.amended("same", EXAMPLE, learn::stand_in).unwrap();
        amendment.protocol.rounds += 1;
        let error = old.after(&amendment, old.epoch.clone()).err().unwrap();
        assert!(matches!(error, AmendError::Unreadable(_)), "{error}");
    }
}
