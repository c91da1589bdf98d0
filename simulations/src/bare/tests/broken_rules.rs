//! Rules that are broken on purpose are noticed: the checkers can fail.

use protocol::member::{Config, Mutation};

use super::*;

/// Whether one of 400 seeds fails with something else than a lack of progress.
fn noticed(options: &BareOptions) -> bool {
    let wrong = |failure: &RunFailure| !matches!(failure.kind, FailureKind::NotLive { .. });
    (0..400).any(|seed| run(seed, options).is_err_and(|failure| wrong(&failure)))
}

/// The behaviours against which the rules of voting and proposing protect.
const BYZANTINE: Byzantine = Byzantine::Only(&[
    Behaviour::DoubleVote,
    Behaviour::DoubleProposal,
    Behaviour::DoubleContribution,
    Behaviour::ForgedRow,
    Behaviour::IgnoredReceipt,
    Behaviour::BadDecision,
    Behaviour::BadOutcome,
    Behaviour::ForgedEntry,
    Behaviour::StaleParent,
    Behaviour::EarlyEmptyBlock,
    Behaviour::WrongParent,
]);

fn broken(rule: Mutation) -> bool {
    let mut options = BareOptions::new(
        4,
        Faults {
            crashes: 6,
            deaths: Deaths::None,
            byzantine: BYZANTINE,
            ..Faults::all()
        },
    );
    options.configure = Some(Arc::new(move |config: Config| config.breaking(rule)));
    noticed(&options)
}

#[test]
fn a_broken_rule_of_voting_is_detected() {
    assert!(broken(Mutation::QuorumMinusOne));
    assert!(broken(Mutation::VotesForgotten));
    assert!(broken(Mutation::FinalizeAfterNullify));
    assert!(broken(Mutation::NotarizeTwice));
}

#[test]
fn a_broken_rule_of_proposing_is_detected() {
    assert!(broken(Mutation::SkippedWithoutProof));
    assert!(broken(Mutation::InclusionMissing));
    assert!(broken(Mutation::ForgedScore));
    assert!(broken(Mutation::ReceiptIgnored));
    assert!(broken(Mutation::RoundFromNotarised));
}

#[test]
fn an_author_that_tells_others_than_the_lead_which_entry_is_its_own_is_detected() {
    for rule in [Mutation::ContributionPublished, Mutation::ScoresPublished] {
        let mut options = BareOptions::new(4, Faults::none());
        options.cross_evaluate = Some(true);
        run_all(&options, 0..5);
        options.configure = Some(Arc::new(move |config: Config| config.breaking(rule)));
        for seed in 0..5 {
            let failure = run(seed, &options).unwrap_err();
            assert!(failure.to_string().contains("S10 "), "{rule:?}: {failure}");
        }
    }
}

#[test]
fn records_that_are_durable_too_late_or_lost_are_detected() {
    let mut late = BareOptions::new(
        4,
        Faults {
            inside: 0.03,
            crashes: 6,
            ..Faults::all()
        },
    );
    late.persist_last = true;
    let mut forget = late.clone();
    (forget.persist_last, forget.journals_vanish) = (false, true);
    assert!(noticed(&late) && noticed(&forget));
}

#[test]
fn two_recoveries_of_one_epoch_are_detected() {
    for rule in [Mutation::ConfirmsAgain, Mutation::ConfirmationsMissing] {
        let faults = Faults {
            deaths: Deaths::None,
            byzantine: Byzantine::None,
            ..Faults::all()
        };
        let mut options = BareOptions {
            rounds: 6,
            recoveries: true,
            errors: true,
            ..BareOptions::new(5, faults)
        };
        options.configure = Some(Arc::new(move |config: Config| config.breaking(rule)));
        assert!(noticed(&options), "{rule:?}");
    }
}

#[test]
fn words_about_changes_that_no_institution_said_and_votes_against_its_word_are_detected() {
    for (rule, faults) in [
        (Mutation::AlikeApproved, Faults::none()),
        (Mutation::WithdrawalIgnored, without_byzantine()),
    ] {
        let mut options = BareOptions {
            changes: 2,
            errors: true,
            ..BareOptions::new(4, faults)
        };
        options.configure = Some(Arc::new(move |config: Config| config.breaking(rule)));
        let failure = (0..400).find_map(|seed| run(seed, &options).err());
        let kind = failure.map(|failure| failure.kind);
        assert!(
            matches!(kind, Some(FailureKind::Approvals(_))),
            "{rule:?}: {kind:?}"
        );
    }
}
