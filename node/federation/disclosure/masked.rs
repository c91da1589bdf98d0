//! Data that leave an institution in secure-aggregation rounds, and what others could learn from them.

use agreement::Agreement;
use formatting::numbers::{self, plural};
use methods::strategy::{Method, StrategyView};
use protocol::privacy::{Group, Masked};

use super::ToldOfMode;
use super::officer::{NO_BOUND, of_sums};
use super::serving;
use crate::federation::FederationStart;
use crate::policy::LedgerRoom;
use crate::spending::Spending;

/// That the masks have not been reviewed.
pub(super) const EXPERIMENTAL: &str = "experimental: not reviewed by a cryptographer";

/// Rounds that open the sums of groups.
pub(super) struct GroupSums<'a>(pub(super) &'a Masked);

impl ToldOfMode for GroupSums<'_> {
    fn leaves(&self, agreement: &Agreement, first: Option<&FederationStart>) -> Vec<String> {
        leaves(agreement, self.0, first)
    }

    fn learned(
        &self,
        agreement: &Agreement,
        _: Option<&FederationStart>,
        _: Option<usize>,
        _: &Spending,
    ) -> Vec<String> {
        learned(agreement, self.0)
    }

    fn further(&self, _: &Agreement, _: Option<LedgerRoom>) -> Vec<String> {
        Vec::new()
    }

    fn brief(&self, _: &Agreement, _: &Spending) -> Vec<String> {
        brief(self.0)
    }

    fn officer(&self, agreement: &Agreement, _: &Spending) -> Vec<String> {
        let bound = format!(
            "{NO_BOUND}. If all other institutions of our group collude, they know our update."
        );
        let serving = serving::officer(agreement, "in sums over all institutions");
        of_sums(self.0, serving.into_iter().chain([bound]).collect())
    }

    fn waits(&self, missing: &str) -> String {
        no_group(missing)
    }

    fn made_anew(&self) -> &'static str {
        ""
    }
}

/// That no group is complete without these institutions.
pub(super) fn no_group(missing: &str) -> String {
    format!("no group is complete, because {missing} is not ready")
}

/// Returns what leaves in a round.
fn leaves(agreement: &Agreement, masked: &Masked, first: Option<&FederationStart>) -> Vec<String> {
    let rounds = plural(agreement.learning_rounds() as usize, "round");
    let numbers = match first {
        Some(first) => format!(" of {} numbers", numbers::count(first.parameters as u64)),
        None => String::new(),
    };
    let statistics = opens_statistics(agreement);
    let what = match statistics {
        true => "the number of its training rows and numbers of fits of them".to_owned(),
        false => format!("its model{numbers}"),
    };
    let mut lines = vec![format!(
        "  in each of {rounds}, {what}, masked: to every member it looks like random numbers, with \
         this institution's name"
    )];
    let over = match masked.groups().len() {
        0 | 1 => "all institutions".to_owned(),
        groups => format!("each of {groups} groups of institutions"),
    };
    let seen = format!(
        "masked: every member learns their sum over {over}, and if some refuse, by which rule, and not who does"
    );
    lines.extend(asked(agreement, &seen));
    lines.extend(serving::masked(agreement));
    for group in masked.groups() {
        lines.push(format!(
            "  one sum a round of {}, once a quorum has agreed on exactly these authors: every member",
            names(group)
        ));
    }
    let nothing_more = match statistics {
        true => "Of all silos together the number of rows and losses by folds are known",
        false => "In secure-aggregation rounds it sends no number of rows, no loss and no metric",
    };
    lines.push(format!(
        "  that it is ready for a round, and when: every member. {nothing_more}"
    ));
    lines
}

/// Returns whether silos send statistics that add up, and no models.
fn opens_statistics(agreement: &Agreement) -> bool {
    agreement.strategy_config.method.sees() == StrategyView::Statistics
}

/// Returns what leaves for the questions of an agreement, and who sees it.
pub(super) fn asked(agreement: &Agreement, seen: &str) -> Vec<String> {
    let mode = agreement.question_mode();
    let questions = agreement.questions.iter().enumerate();
    let said = questions.map(|(at, question)| {
        format!(
            "  for question {}, in at most {}, sums and counts over all rows of its files, {seen}",
            at + 1,
            plural(question.most_rounds(mode) as usize, "round")
        )
    });
    said.collect()
}

/// Returns what others could learn.
fn learned(agreement: &Agreement, masked: &Masked) -> Vec<String> {
    let roster = &agreement.epoch.roster;
    let mut lines = vec![
        "  sums hide the updates of institutions that are always there; they give no bound on what is learned about a patient, a \
         customer or another single row"
            .to_owned(),
        "  masks do not protect the result: the global model, and each sum, may memorise rows like any other model"
            .into(),
        format!(
            "  up to {} (leads may be among them) can learn only the sum of the other members of each group, which \
             are at least two",
            plural(usize::from(masked.colluders), "colluder")
        ),
    ];
    if let Method::Hierarchical(options) = &agreement.strategy_config.method {
        lines.push(format!(
            "  sums of all rounds together could be solved for numbers of single institutions: a node stops before more \
             than one is opened for every {} unknowns of the others, which is a count and no proof",
            options.unknowns_per_number
        ));
    }
    for group in masked.groups() {
        let together = match group.authors.len() {
            2 => "the other one of them".to_owned(),
            all => format!("all other {} of them", all - 1),
        };
        lines.push(format!(
            "  of {}: if {together} collude, they see our update exactly, by subtracting",
            names(group)
        ));
        lines.push(format!(
            "  of {}: if one institution is down, the sum is not opened and this group waits. No agreed round is \
             lost",
            names(group)
        ));
    }
    if !agreement.questions.is_empty() {
        lines.push(
            "  from the sums of a question: what the rows of all have in common; that an institution refuses may tell \
             that some institution has few of the rows in question"
                .into(),
        );
    }
    lines.extend(serving::learned_masked(agreement));
    let outside = roster.silos().iter().map(|silo| &silo.name);
    let outside: Vec<_> = outside
        .filter(|name| !masked.groups().iter().any(|group| has(group, name)))
        .collect();
    if !outside.is_empty() {
        let outside: Vec<_> = outside
            .into_iter()
            .map(|name| numbers::plain(name))
            .collect();
        lines.push(format!(
            "  in no group are {}: they help to open sums, and their models are not used",
            outside.join(", ")
        ));
    }
    for group in masked.groups() {
        let absent = group.authors.iter().map(|(name, _)| name);
        let absent: Vec<_> = absent
            .filter(|name| !roster.silos().iter().any(|silo| silo.name == **name))
            .collect();
        if let [first, ..] = absent[..] {
            lines.push(format!(
                "  the group of {} is never complete: {} is no member of this federation",
                names(group),
                numbers::plain(first)
            ));
        }
    }
    lines.push(format!(
        "  on this machine's disk: the trained model and the secret of the round under way, until it is adopted, \
         and of the last rounds whose sum was void, until the agreement changes; masked vectors and sums of {}. \
         Old pages of a disk, backups and snapshots keep what was deleted",
        plural(agreement.epoch.protocol.keep_rounds as usize, "round")
    ));
    lines.push(format!("  {EXPERIMENTAL}"));
    lines
}

/// Returns what others learn, in a few sentences.
fn brief(masked: &Masked) -> Vec<String> {
    let groups = masked.groups();
    let sums = groups.iter().map(|group| {
        format!(
            "every member learns one sum per round: that of {}",
            names(group)
        )
    });
    let mut said = vec![
        "every member learns who takes part, and when, but no single institution's model"
            .to_owned(),
    ];
    said.extend(sums);
    said.push(
        "sums hide the updates of institutions that are always there, and give no bound on what is learned about \
         a patient"
            .into(),
    );
    said.extend(groups.iter().map(|group| {
        format!(
            "if one institution of {} is down, their sum is not opened, and this group waits",
            names(group)
        )
    }));
    said.push(EXPERIMENTAL.into());
    said
}

fn has(group: &Group, name: &str) -> bool {
    group.authors.iter().any(|(author, _)| author == name)
}

/// The institutions of a group, with weights where they differ.
fn names(group: &Group) -> String {
    let equal = group.authors.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let names = group.authors.iter().map(|(name, weight)| {
        let name = numbers::plain(name);
        if equal {
            name
        } else {
            format!("{name} (weight {weight})")
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::federation::{OwnSide, disclosure};

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    /// The example with these further members and this table of privacy.
    fn page(members: usize, privacy: &str) -> String {
        page_of("name = \"fedavg\"\nweight = \"equal\"", members, privacy)
    }

    fn page_of(strategy: &str, members: usize, privacy: &str) -> String {
        let mut text = EXAMPLE
            .replace("format = 1 ", "format = 3 ")
            .replace("name = \"cs-rcfl\"", strategy)
            .replace("standardise = \"federation\"", "standardise = \"silo\"");
        for line in [
            "coalitions = 2",
            "freeze = 1",
            "folds = 5",
            "max-model-norm = 1000.0",
            "min-contributions = 3",
        ] {
            text = text.replace(line, "");
        }
        let (head, _) = text.split_once("[[member]]").unwrap();
        let silo = |i: usize| {
            let key = protocol::SecretKey::from_bytes(&[i as u8 + 1; 32]).public();
            format!("[[member]]\nname = \"clinic {i}\"\nkey = \"{key}\"\n\n")
        };
        let silos: String = (0..members).map(silo).collect();
        let text = format!("{head}[privacy]\nmode = \"secure-aggregation\"\n{privacy}\n{silos}");
        let agreement = Agreement::parse("federation.toml", &text);
        disclosure(
            &agreement.unwrap_or_else(|error| panic!("{error}")),
            &OwnSide::default(),
        )
        .join("\n")
    }

    #[test]
    fn every_sentence_is_stated_for_one_group() {
        let page = page(4, "");
        for said in [
            "masked: to every member it looks like random numbers",
            "one sum a round of clinic 0, clinic 1, clinic 2, clinic 3, once a quorum has agreed",
            "sums hide the updates of institutions that are always there; they give no bound on what is learned about a patient",
            "masks do not protect the result",
            "up to 1 colluder (leads may be among them)",
            "if all other 3 of them collude, they see our update exactly",
            "if one institution is down, the sum is not opened",
            "on this machine's disk: the trained model and the secret of the round under way",
            "and of the last rounds whose sum was void, until the agreement changes",
            EXPERIMENTAL,
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
        for clear in [
            "whoever receives a model sees all of it",
            "the number of rows",
            "its training loss",
        ] {
            assert!(!page.contains(&format!("  {clear}")), "{clear}: {page}");
        }
    }

    #[test]
    fn sums_of_statistics_are_said_to_be_no_models() {
        let page = page_of("name = \"hierarchical\"\nexponent = 0", 4, "");
        for said in [
            "the number of its training rows and numbers of fits of them, masked: to every member",
            "Of all silos together the number of rows",
            "before more than one is opened for every 3 unknowns of the others",
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
        assert!(!page.contains("it sends no number of rows"), "{page}");
        let models = self::page(4, "");
        assert!(!models.contains("unknowns"));
    }

    #[test]
    fn two_groups_are_named_with_their_weights_and_who_is_in_none() {
        let groups = "[[privacy.group]]\n\"clinic 0\" = 1\n\"clinic 1\" = 2\n\"clinic 2\" = 2\n\"clinic 3\" = 1\n
            [[privacy.group]]\n\"clinic 4\" = 1\n\"clinic 5\" = 1\n\"clinic 6\" = 1\n\"gone\" = 1\n";
        let page = page(8, groups);
        for said in [
            "one sum a round of clinic 0 (weight 1), clinic 1 (weight 2), clinic 2 (weight 2), clinic 3 (weight 1)",
            "of clinic 4, clinic 5, clinic 6, gone: if all other 3 of them collude",
            "the group of clinic 4, clinic 5, clinic 6, gone is never complete: gone is no member",
            "in no group are clinic 7",
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
    }
}
