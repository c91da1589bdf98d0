//! What part a node takes in an epoch: it learns, or it only listens and votes on changes.

use std::io;

use bytes::Bytes;
use methods::strategy::largest_contribution;
use protocol::{Hash, member};

use crate::institution::agreement::in_force::Present;
use crate::institution::agreement::signed::{Owed, SignatureState};
use crate::institution::config::{Data, Institution};
use crate::institution::error::NodeError;
use crate::institution::report::far_columns::ScaleWatch;
use crate::institution::serve::Serving;
use crate::institution::start::ability::{Living, examine, living};
use crate::institution::start::role::{NodeRole, serving, silo_config};
use crate::institution::start::signed_rows::ChangedRows;
use crate::model::{self, HeldRounds};
use crate::policy::ProposedRounds;

/// Returns what the institution's policy refuses of the agreement in force, in a sentence without a full stop.
fn refused(institution: &Institution, living: &Living) -> Option<String> {
    let agreement = &institution.agreement;
    let learner = &*living.equipment.equipped;
    let names = match &institution.data {
        Data::Rows(rows) => Some(&rows.names),
        Data::Share { .. } | Data::Program => None,
    };
    let refusals = institution.site.refusals(&ProposedRounds {
        agreement,
        me: Some(institution.me),
        rows: living.equipment.own_rows.then(|| learner.samples()),
        bytes: largest_contribution(&*agreement.strategy, learner),
        names,
    });
    let refusals = refusals.into_iter().filter(|refusal| !refusal.passes);
    let why: Vec<_> = refusals.map(|refusal| refusal.why).collect();
    (!why.is_empty()).then(|| {
        format!(
            "the institution's policy lets this node vote but not contribute: {}",
            why.join("; ")
        )
    })
}

/// The part of a node in an epoch.
pub(super) struct EpochPart {
    /// What the node learns with; `None` where it can learn nothing under the agreement in force.
    pub(super) living: Option<Living>,
    /// Why it only listens and votes on changes.
    pub(super) bystander: Option<String>,
    /// The institution's signature under the agreement in force, where it is missing.
    pub(super) owed: Option<Owed>,
    /// Why the institution's own policy lets it contribute nothing under the agreement in force.
    pub(super) refused: Option<String>,
    /// Rows of another kind than those that it signed for.
    pub(super) other: Option<ChangedRows>,
}

impl EpochPart {
    /// The part of a member in the epoch in force.
    ///
    /// # Errors
    /// [`NodeError`]: what is wrong with the institution's own files.
    pub(super) fn of(present: &Present) -> Result<Self, NodeError> {
        let (living, bystander) = match living(present)? {
            Ok(living) => (Some(living), None),
            Err(why) => (None, Some(why)),
        };
        let refused = living
            .as_ref()
            .and_then(|living| refused(&present.institution, living));
        let owed = match &present.signature {
            // A signature would not help where the policy refuses.
            SignatureState::Owed(owed) if bystander.is_none() && refused.is_none() => {
                Some((**owed).clone())
            }
            _ => None,
        };
        let institution = &present.institution;
        let rows = living.as_ref().map(|living| &living.equipment);
        let rows = rows.and_then(|own| Some((own.profile.as_ref()?, &*own.questions)));
        let other = rows.map(|(profile, asked)| ChangedRows::of(institution, profile, asked));
        Ok(Self {
            living,
            bystander,
            owed,
            refused,
            other: other.transpose()?.flatten(),
        })
    }

    /// Rows of another kind that the institution has to sign for first. With noise it takes part with any.
    pub(super) fn awaited(&self, institution: &Institution) -> Option<&ChangedRows> {
        let noised = institution.agreement.epoch.protocol.privacy.is_noised();
        self.other.as_ref().filter(|_| !noised)
    }

    /// Rows that the node learns from; 0 where it only listens.
    pub(super) fn rows(&self) -> u64 {
        let own = self.living.as_ref();
        own.map_or(0, |living| living.equipment.equipped.samples())
    }

    /// What is said of own rows that cannot be read and count as nothing, and of those that are of another kind than
    /// what was signed for. It is for the institution alone.
    pub(super) fn said_of_rows(&self, institution: &Institution) -> Vec<String> {
        let own = self.living.as_ref();
        let unreadable = own.map_or(&[][..], |living| &living.equipment.unreadable);
        let other = self.other.iter();
        let other = other.filter(|_| self.awaited(institution).is_none());
        let other = other.flat_map(ChangedRows::at_home);
        unreadable.iter().cloned().chain(other).collect()
    }

    /// Keeps the preparation of the rows and the model that the federation starts from beside the
    /// journal.
    ///
    /// # Errors
    /// [`NodeError`]: a file that cannot be written.
    pub(super) fn keep(&self, institution: &Institution) -> Result<(), NodeError> {
        if let Some(Living {
            start, equipment, ..
        }) = &self.living
        {
            if let Some(preparation) = &equipment.plain.preparation {
                model::keep_preparation(&institution.state, preparation)?;
            }
            if let Some(start) = start {
                model::keep_start(&institution.state, start)?;
            }
        }
        Ok(())
    }

    /// The protocol's configuration, with a seed of its own. `follow` is the recovery to follow that the
    /// institution did not sign.
    ///
    /// # Errors
    /// [`NodeError`]: the operating system gives no random numbers.
    pub(super) fn member(
        &self,
        institution: &Institution,
        follow: Option<Hash>,
    ) -> Result<member::Config, NodeError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let (key, me) = (institution.key.clone(), institution.me);
        let epoch = institution.agreement.epoch.clone();
        let mut member = member::Config::new(epoch, me, key, seed);
        member.follow = follow;
        member.examine = examine(&institution.agreement);
        member.bystander = self.bystander.clone();
        let awaited = self.awaited(institution).is_some();
        member.paused = self.owed.is_some() || self.refused.is_some() || awaited;
        Ok(member)
    }

    /// Returns what chooses the model that is served; `held` is what the state held when the node started.
    pub(super) fn serving(
        &self,
        institution: &Institution,
        held: Option<&HeldRounds>,
    ) -> Option<Serving> {
        self.living
            .as_ref()
            .map(|living| serving(institution, living.equipment.clone(), held))
    }

    /// Returns what warns of columns that are far from the other members'.
    pub(super) fn columns(&self, institution: &Institution) -> Option<ScaleWatch> {
        self.living
            .as_ref()
            .map(|living| ScaleWatch::new(institution, living.equipment.equipped.clone()))
    }

    /// The model that the federation starts from, as a blob for other members, where it is a given one.
    pub(super) fn start(&self) -> Option<(Hash, Bytes)> {
        let start = self
            .living
            .as_ref()
            .and_then(|living| living.start.as_ref());
        start.map(|start| (Hash(start.hash()), start.document()))
    }

    /// Returns how the silo takes part, where its journal was `lost` or not.
    ///
    /// # Errors
    /// [`NodeError`]: the personal state of a backup is not as it was put back.
    pub(super) fn role(
        &self,
        present: &Present,
        member: member::Config,
        lost: bool,
    ) -> Result<NodeRole, NodeError> {
        Ok(match &self.living {
            Some(living) => {
                NodeRole::Learner(Box::new(silo_config(present, living, member, lost)?))
            }
            None => NodeRole::Bystander(Box::new(member), lost, present.former.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::time::SystemTime;

    use agreement::{Agreement, Consent};
    use protocol::message::Amendment;
    use toml::{Table, Value};

    use super::*;
    use crate::federation::first;
    use crate::fixture::{self, North, key};
    use crate::institution::agreement::amendments::{AmendmentFolder, AmendmentWord};
    use crate::institution::agreement::in_force::{Membership, place};
    use crate::institution::report::health::learned;
    use crate::policy::make_ledger;

    const LEDGER: &str = "[policy]\nmin-sum-size = 2\nledger = \"rows.ledger\"\n";

    /// North under an agreement that it has signed, with a ledger of its rows.
    fn signed(text: &str) -> North {
        let mut north = North::new();
        let at = |name: &str| north.folder.path().join(name);
        let read = North::read(text);
        let silos = read.epoch.roster.silos().iter();
        let silos: Vec<_> = silos.map(|silo| silo.name.clone()).collect();
        let begins = first(&read.task, &read.strategy_config, read.seed, &silos).unwrap();
        let start = format!("{:#}", begins.start);
        let old = format!("{:#}", read.epoch.protocol.start);
        fs::write(at("federation.toml"), text.replace(&old, &start)).unwrap();
        let silo = fs::read_to_string(at("node.toml")).unwrap();
        fs::write(at("node.toml"), silo + LEDGER).unwrap();
        make_ledger(&at("rows.ledger"), "rows", "row".parse().unwrap()).unwrap();
        let institution = Institution::load(&at("node.toml")).unwrap();
        let consent = Consent::sign(&institution.agreement, &key(9), SystemTime::now());
        fs::write(&institution.consent, consent.unwrap().to_toml().unwrap()).unwrap();
        north.institution = institution;
        north
    }

    /// The agreement of north with some keys of its text edited: nothing removes one.
    fn edited(north: &North, edits: &[(&str, &str)]) -> String {
        let text = north.institution.agreement.to_toml().unwrap();
        let mut file: Table = toml::from_str(&text).unwrap();
        for (path, value) in edits {
            let (tables, key) = path.rsplit_once('.').unwrap_or(("", path));
            let mut table = &mut file;
            for part in tables.split('.').filter(|part| !part.is_empty()) {
                table = match &mut table[part] {
                    Value::Array(list) => list[1].as_table_mut().unwrap(),
                    other => other.as_table_mut().unwrap(),
                };
            }
            match *value {
                "" => drop(table.remove(key)),
                value => {
                    let mut one: Table = toml::from_str(&format!("x = {value}")).unwrap();
                    table.insert(key.into(), one.remove("x").unwrap());
                }
            }
        }
        toml::to_string(&file).unwrap()
    }

    /// Returns what part north takes after the others agreed on this text, and it said nothing.
    fn after(north: &North, text: &str) -> (Present, EpochPart) {
        part_after(north, [amendment(text)])
    }

    fn amendment(text: &str) -> Amendment {
        let new = Agreement::parse("new.toml", text).unwrap();
        Amendment {
            format: new.epoch.format,
            silos: new.epoch.roster.silos().to_vec(),
            protocol: new.epoch.protocol.clone(),
            text: text.as_bytes().to_vec(),
            stolen: Vec::new(),
        }
    }

    /// Returns what part north takes after these changes.
    fn part_after(
        north: &North,
        amendments: impl IntoIterator<Item = Amendment>,
    ) -> (Present, EpochPart) {
        let epochs = fixture::amended(&north.institution.agreement.epoch, amendments);
        match place(&north.institution, &epochs, &[]) {
            Membership::Member(present) => {
                let part = EpochPart::of(&present).unwrap();
                (*present, part)
            }
            Membership::Left | Membership::Outside => panic!("north is no member"),
        }
    }

    #[test]
    fn a_ledger_that_another_process_has_at_the_start_does_not_end_the_part_of_a_node() {
        let north = signed(&North::noised("noise-multiplier = 20.0\nmin-authors = 3"));
        let file = fs::File::open(north.folder.path().join("rows.ledger")).unwrap();
        file.lock().unwrap();
        let (_, part) = part_after(&north, []);
        assert_eq!(part.refused, None);
        fs::remove_file(north.folder.path().join("rows.ledger")).unwrap();
        let (_, part) = part_after(&north, []);
        assert!(part.refused.is_some());
    }

    #[test]
    fn a_member_that_says_nothing_goes_on_voting_and_contributes_only_where_it_costs_nothing() {
        let noised = signed(&North::noised("noise-multiplier = 20.0\nmin-authors = 3"));
        let masked = signed(&North::masked(""));
        let clear = signed(&North::text(&[]));
        let elsewhere = "[\"/ip4/192.0.2.7/tcp/4001\"]";
        type Edits<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(&North, Edits<'_>, Option<&str>)] = &[
            (
                &noised,
                &[("rounds", "2000")],
                Some("`rounds` changes from 6 to 2000"),
            ),
            (&noised, &[("rounds", "5")], None),
            (
                &noised,
                &[("privacy.noise-multiplier", "10.0")],
                Some("`privacy.noise-multiplier`"),
            ),
            (
                &noised,
                &[
                    ("privacy.noise-multiplier", ""),
                    ("privacy.epsilon", "50.0"),
                ],
                Some("`privacy.noise-multiplier`"),
            ),
            (
                &noised,
                &[("privacy.delta", "1e-4")],
                Some("`privacy.delta`"),
            ),
            (
                &noised,
                &[("privacy.min-authors", "2")],
                Some("`privacy.min-authors`"),
            ),
            (
                &noised,
                &[("privacy.clipping-norm", "2.0")],
                Some("`privacy.clipping-norm`"),
            ),
            (&noised, &[("privacy", "")], Some("`privacy.mode`")),
            (
                &noised,
                &[("privacy", "{ mode = \"secure-aggregation\" }")],
                Some("`privacy.mode`"),
            ),
            (
                &noised,
                &[("member.rows", "130")],
                Some("`member.south.rows`"),
            ),
            (&noised, &[("member.addresses", elsewhere)], None),
            (&masked, &[("rounds", "2000")], None),
            (&masked, &[("privacy", "")], Some("`privacy.mode`")),
            (&clear, &[("rounds", "2000")], None),
            (
                &clear,
                &[("protocol.names", "\"shown\"")],
                Some("`protocol.names`"),
            ),
            (
                &clear,
                &[(
                    "member.key",
                    "\"8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c\"",
                )],
                Some("`member.south.key`"),
            ),
        ];
        for (north, edits, expected) in cases {
            let (present, part) = after(north, &edited(north, edits));
            assert_eq!(part.bystander, None, "{edits:?}");
            let member = part.member(&present.institution, None).unwrap();
            assert_eq!(member.bystander, None, "{edits:?}");
            assert_eq!(member.paused, expected.is_some(), "{edits:?}");
            let said = part.owed.as_ref().map(Owed::line);
            assert_eq!(
                said.is_some(),
                expected.is_some(),
                "{edits:?}: {:?}",
                part.refused
            );
            if let (Some(said), Some(expected)) = (said, expected) {
                assert!(said.starts_with("contributions are paused"), "{said}");
                assert!(said.contains(expected), "{edits:?}: {said}");
            }
        }
    }

    #[test]
    fn a_signature_that_is_missing_is_not_given_by_a_later_change_nor_by_the_approval_of_one() {
        let north = signed(&North::noised("noise-multiplier = 20.0\nmin-authors = 3"));
        let elsewhere = ("member.addresses", "[\"/ip4/192.0.2.7/tcp/4001\"]");
        let rounds = ("rounds", "2000");
        let changes = [
            amendment(&edited(&north, &[rounds])),
            amendment(&edited(&north, &[rounds, elsewhere])),
        ];
        let (present, part) = part_after(&north, changes.clone());
        assert!(matches!(present.signature, SignatureState::Owed(_)) && part.owed.is_some());
        // It approves the second one.
        let epochs = fixture::amended(&north.institution.agreement.epoch, changes.clone());
        let folder = AmendmentFolder::of(&north.institution.state);
        let approves = |at: usize| {
            let about = (epochs.former[at].0.id, &changes[at]);
            let word = AmendmentWord::after(&[], about, true, SystemTime::now());
            folder.say(&word).unwrap();
        };
        approves(1);
        let (present, part) = part_after(&north, changes.clone());
        let said = part.owed.as_ref().map(Owed::line).unwrap_or_default();
        assert!(said.contains("change 2 needs"), "{said}");
        assert!(said.contains("`rounds` changes from 6 to 2000"), "{said}");
        // Once it signs the agreement in force, nothing is missing.
        let consent = Consent::sign(&present.institution.agreement, &key(9), SystemTime::now());
        let file = north.institution.consent_file(2);
        fs::write(&file, consent.unwrap().to_toml().unwrap()).unwrap();
        let (present, part) = part_after(&north, changes.clone());
        assert!(matches!(present.signature, SignatureState::Signed(_)) && part.owed.is_none());
        // Whoever approved both has answered all that changed.
        fs::remove_file(&file).unwrap();
        approves(0);
        let (present, part) = part_after(&north, changes);
        assert!(matches!(present.signature, SignatureState::Approved) && part.owed.is_none());
    }

    #[test]
    fn a_correction_of_what_nobody_could_take_part_under_is_compared_with_what_was_before() {
        let clear = signed(&North::text(&[]));
        let wrong = || amendment(&edited(&clear, &[("protocol.blob-limit", "39")]));
        let (present, part) = part_after(&clear, [wrong()]);
        assert!(matches!(present.signature, SignatureState::Owed(_)) && part.bystander.is_some());
        // Of the first agreement nothing changes that costs north anything.
        let right = amendment(&edited(&clear, &[("rounds", "7")]));
        let (present, part) = part_after(&clear, [wrong(), right]);
        assert!(matches!(present.signature, SignatureState::Policy) && part.owed.is_none());
        let weaker = amendment(&edited(&clear, &[("protocol.names", "\"shown\"")]));
        let (_, part) = part_after(&clear, [wrong(), weaker]);
        let said = part.owed.as_ref().map(Owed::line).unwrap_or_default();
        assert!(said.contains("`protocol.names`"), "{said}");
    }

    #[test]
    fn whoever_is_admitted_anew_follows_nothing_before_it_signs() {
        let clear = signed(&North::text(&[]));
        let agreement = &clear.institution.agreement;
        let out = amendment(&agreement.without("north").unwrap());
        let again = amendment(&agreement.to_toml().unwrap());
        let more = amendment(&edited(&clear, &[("rounds", "7")]));
        let (present, part) = part_after(&clear, [out, again, more]);
        assert!(matches!(present.signature, SignatureState::Owed(_)));
        let said = part.owed.as_ref().map(Owed::line).unwrap_or_default();
        assert!(said.contains("as it was when it joined"), "{said}");
    }

    #[test]
    fn rows_of_another_kind_pause_contributions_and_with_noise_are_told_at_home_alone() {
        let noised = North::noised("noise-multiplier = 20.0\nmin-authors = 3");
        for (text, pauses) in [
            (North::text(&[]), true),
            (North::masked(""), true),
            (noised, false),
        ] {
            let north = signed(&text);
            let institution = &north.institution;
            let part = || {
                let epochs = fixture::amended(&institution.agreement.epoch, []);
                match place(institution, &epochs, &[]) {
                    Membership::Member(present) => EpochPart::of(&present).unwrap(),
                    Membership::Left | Membership::Outside => panic!("north is no member"),
                }
            };
            assert!(part().other.is_none());
            let file = north.folder.path().join("rows.csv");
            let rows = fs::read_to_string(&file).unwrap();
            // Months for years.
            let months = rows.lines().map(|line| match line.split_once(',') {
                Some((age, rest)) if age != "age" => {
                    format!("{},{rest}\n", 12 * age.parse::<u32>().unwrap())
                }
                _ => format!("{line}\n"),
            });
            fs::write(&file, months.collect::<String>()).unwrap();
            let after = part();
            assert_eq!(after.awaited(institution).is_some(), pauses);
            assert_eq!(after.member(institution, None).unwrap().paused, pauses);
            let said = after.said_of_rows(institution);
            assert_eq!(said.is_empty(), pauses, "{said:?}");
            assert!(
                pauses || said[0].contains("age: the middle value is"),
                "{said:?}"
            );
        }
    }

    #[test]
    fn a_node_without_a_ledger_votes_on_rounds_with_noise_and_contributes_nothing() {
        let mut north = signed(&North::noised("noise-multiplier = 20.0\nmin-authors = 3"));
        let at = |name: &str| north.folder.path().join(name);
        let silo = fs::read_to_string(at("node.toml")).unwrap();
        for (policy, refused) in [("", true), ("[policy]\nledger = false\n", false)] {
            let text = silo.replace(LEDGER, policy);
            fs::write(at("node.toml"), text).unwrap();
            let institution = Institution::load(&at("node.toml")).unwrap();
            let epoch = institution.agreement.epoch.clone();
            let epochs = fixture::amended(&epoch, []);
            let Membership::Member(present) = place(&institution, &epochs, &[]) else {
                panic!("north is no member");
            };
            let part = EpochPart::of(&present).unwrap();
            assert_eq!(part.refused.is_some(), refused, "{:?}", part.refused);
            let member = part.member(&present.institution, None).unwrap();
            assert_eq!((member.paused, member.bystander), (refused, None));
            let said = part.refused.unwrap_or_else(|| {
                let site = &present.institution.site;
                learned(site, &present.institution.agreement, &present.spending()).concat()
            });
            assert!(said.contains("no ledger counts what"), "{said}");
            north.institution = institution;
        }
    }
}
