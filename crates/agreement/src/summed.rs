//! Whom a federation adds up, after those that it continues.
//!
//! The difference of two sums may be the model of a single institution, in whichever federations they were opened.
//! So an agreement that continues another one names the groups whose models were added up there, and who is in one
//! of them is added up with the same others, or with nobody. Every member checks that by the agreement alone.

use protocol::parameters::Group;

use crate::agreement::Agreement;
use crate::amend::AmendError;
use crate::continues::Seen;
use crate::examine::{alike, names, plainly};

impl Agreement {
    /// The groups whose models were added up without noise under these agreements of one federation, oldest
    /// first, and in those that it continued. A group that took the place of another by everybody's approval
    /// counts in its place.
    pub fn summed<'a>(history: impl IntoIterator<Item = &'a Self>) -> Vec<Group> {
        let mut all: Vec<Group> = Vec::new();
        for (at, agreement) in history.into_iter().enumerate() {
            let before = agreement.continues.iter().filter(|_| at == 0);
            all.extend(before.flat_map(|continues| continues.summed.clone()));
            let masked = agreement.epoch.protocol.privacy.masked();
            for group in masked.map_or(&[][..], |masked| masked.groups()) {
                all.retain(|other| !meets(other, group));
                all.push(group.clone());
            }
        }
        all
    }

    /// Returns whether a federation may begin with this agreement, after the one that it continues: nobody is added up
    /// with others than there.
    ///
    /// # Errors
    /// [`AmendError::Group`]: the first group that is not allowed.
    pub fn may_begin(&self) -> Result<(), AmendError> {
        self.sums_stay(&[])
    }

    /// Returns whether nobody is added up with others than in the federations that this one continues. `now` are the
    /// groups in force, of which it is asked apart whether they may change.
    pub(crate) fn sums_stay(&self, now: &[Group]) -> Result<(), AmendError> {
        let masked = self.epoch.protocol.privacy.masked();
        let groups = masked.map_or(&[][..], |masked| masked.groups());
        let before = self.continues.iter().flat_map(|one| &one.summed);
        let new = |group: &&Group| !now.iter().any(|other| meets(other, group));
        for group in groups.iter().filter(new) {
            let other = |old: &&Group| meets(old, group) && !alike(old, group);
            if let Some(old) = before.clone().find(other) {
                return Err(AmendError::SummedBefore {
                    group: names(group),
                    before: names(old),
                });
            }
        }
        Ok(())
    }

    /// Whether this agreement says of the federation that it continues what one knows who has its agreements, oldest
    /// first: as they were at the end, or at some time before, because that federation may have gone on since.
    pub fn continues_rightly(&self, history: &[Self]) -> bool {
        let Some(continues) = &self.continues else {
            return true;
        };
        let says = |until: &[Self]| {
            let seen = until.last().map(|last| Seen::under(&last.epoch.protocol));
            let summed = Self::summed(until);
            let named = |group: &Group| continues.summed.iter().any(|other| alike(group, other));
            seen == Some(continues.seen) && summed.iter().all(named)
        };
        (1..=history.len()).any(|until| says(&history[..until]))
    }

    /// That members see more of contributions here than in the federation that it continues, in a sentence
    /// without a full stop; `None` where they do not.
    pub fn protects_less(&self) -> Option<String> {
        let continues = self.continues.as_ref()?;
        let now = Seen::under(&self.epoch.protocol);
        (now < continues.seen).then(|| {
            format!(
                "this protects less than the federation {} that it continues: members saw {} there, and see {} here",
                plainly(&continues.name),
                continues.seen.words(),
                now.words()
            )
        })
    }
}

/// Returns whether an institution is in both groups.
fn meets(one: &Group, other: &Group) -> bool {
    let in_other = |(name, _): &(String, u64)| other.authors.iter().any(|(of, _)| of == name);
    one.authors.iter().any(in_other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::privacy::tests::text;

    const EARLIER: &str = "{ name = \"stays\", federation = \"00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff\", \
                           round = 6, block = \"00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff\", \
                           model = \"00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff\"";
    const SUMS: [(&str, &str); 3] = [
        (
            "strategy",
            "{ name = \"fedavg\", weight = \"equal\", training = { epochs = 1, batch = 8, optimiser = { name = \
             \"sgd\", rate = 0.02 } } }",
        ),
        ("task.table.standardise", "\"silo\""),
        ("protocol.max-model-norm", ""),
    ];

    /// An agreement that continues one with these further keys, in these groups; none: in clear.
    fn continuing(earlier: &str, groups: &str) -> Agreement {
        let continues = format!("{EARLIER}{earlier} }}");
        let privacy = format!("{{ mode = \"secure-aggregation\", group = [{groups}] }}");
        let mut edits = vec![("continues", &continues[..])];
        edits.extend(SUMS);
        if !groups.is_empty() {
            edits.push(("privacy", &privacy));
        }
        let text = text(&edits);
        let read = Agreement::parse("f.toml", &text);
        read.unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    const FOUR: &str = "{ north = 1, south = 1, east = 1, \"west coast\" = 1 }";
    const THREE: &str = "{ north = 1, south = 1, east = 1 }";

    fn summed(groups: &str) -> String {
        format!(", mode = \"secure-aggregation\", group = [{groups}]")
    }

    #[test]
    fn what_an_earlier_federation_summed_is_written_and_changes_the_id() {
        let clear = continuing("", "");
        let masked = continuing(&summed(FOUR), FOUR);
        assert_ne!(clear.contents(), continuing(&summed(FOUR), "").contents());
        let written = masked.to_toml().unwrap();
        let read = Agreement::parse("f.toml", &written).unwrap();
        assert_eq!(read.continues, masked.continues);
        assert_eq!(read.epoch.federation, masked.epoch.federation);
        assert!(!clear.to_toml().unwrap().contains("mode = "));
        let continues = masked.continues.unwrap();
        assert_eq!((continues.seen, continues.summed.len()), (Seen::Sums, 1));
    }

    #[test]
    fn nobody_is_summed_with_others_than_in_the_federation_before() {
        let begins = |earlier: &str, groups: &str| continuing(&summed(earlier), groups).may_begin();
        assert!(begins(FOUR, FOUR).is_ok());
        let twice = "{ north = 2, south = 2, east = 2, \"west coast\" = 2 }";
        assert!(begins(FOUR, twice).is_ok());
        assert!(begins("{ others = 1, more = 1, third = 1 }", FOUR).is_ok());
        assert!(begins(FOUR, "").is_ok());
        let why = begins(FOUR, THREE).unwrap_err().to_string();
        assert!(
            why.contains("north, south, west coast") && why.contains("east"),
            "{why}"
        );
        assert!(begins(THREE, FOUR).is_err());
        let other = "{ north = 2, south = 1, east = 1, \"west coast\" = 1 }";
        assert!(begins(FOUR, other).is_err());
    }

    #[test]
    fn an_amendment_brings_no_other_sums_either() {
        // In clear, after a federation that added four up: they are not added up as three.
        let clear = continuing(&summed(FOUR), "");
        let amended = |to: &Agreement| {
            let text = to.to_toml().unwrap();
            clear.amended("f.toml", &text, learn::stand_in)
        };
        let three = continuing(&summed(FOUR), THREE);
        let why = amended(&three).unwrap_err().to_string();
        assert!(why.contains("were added up"), "{why}");
        assert!(amended(&continuing(&summed(FOUR), FOUR)).is_ok());
    }

    #[test]
    fn groups_of_a_history_are_those_that_were_summed_last() {
        let (four, three) = (continuing("", FOUR), continuing("", THREE));
        let authors = |groups: Vec<Group>| {
            let authors = groups.iter().map(|group| group.authors.len());
            authors.collect::<Vec<_>>()
        };
        assert_eq!(authors(Agreement::summed([&four])), [4]);
        assert_eq!(
            authors(Agreement::summed([&four, &continuing("", "")])),
            [4]
        );
        assert_eq!(authors(Agreement::summed([&four, &three])), [3]);
        let before = continuing(&summed(FOUR), "");
        assert_eq!(authors(Agreement::summed([&before])), [4]);
    }

    #[test]
    fn whoever_has_the_agreements_before_knows_what_was_summed() {
        let (four, clear) = (continuing("", FOUR), continuing("", ""));
        let says = |earlier: &str, history: &[Agreement]| {
            continuing(earlier, "").continues_rightly(history)
        };
        assert!(says(&summed(FOUR), std::slice::from_ref(&four)));
        assert!(says("", std::slice::from_ref(&clear)));
        assert!(!says("", std::slice::from_ref(&four)));
        assert!(!says(
            ", mode = \"secure-aggregation\"",
            std::slice::from_ref(&four)
        ));
        assert!(!says(&summed(THREE), std::slice::from_ref(&four)));
        // It went on in clear: what was summed before is named all the same.
        let history = [four, clear];
        assert!(!says("", &history));
        assert!(says(&format!(", group = [{FOUR}]"), &history));
        assert!(says(&summed(FOUR), &history));
    }

    #[test]
    fn protecting_less_than_before_is_said() {
        let less = |earlier: &str, groups| continuing(earlier, groups).protects_less();
        assert_eq!(less("", ""), None);
        assert_eq!(less(&summed(FOUR), FOUR), None);
        assert_eq!(
            less(&summed(FOUR), "").unwrap(),
            "this protects less than the federation stays that it continues: members saw only sums of groups there, \
             and see every model here"
        );
        let noised = less(", mode = \"differential-privacy\"", FOUR).unwrap();
        assert!(
            noised.ends_with(
                "members saw only sums with noise there, and see only sums of groups here"
            )
        );
    }
}
