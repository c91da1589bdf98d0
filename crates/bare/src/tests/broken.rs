//! Rules that are broken on purpose are noticed: the checkers can fail. Compiled only in the copy of the
//! sources in which every rule has a switch: `just mutants federations`.

use protocol::parameters::Verification;

use super::masked::{all, is_unsafe, masked, most_colluders, of_three, violated};
use super::put_back::{only_put_back, six_rounds};
use super::twins::only_twins;
use super::verification::wrong_outcomes;
use super::*;

/// These federations, of members that break a rule.
fn breaking(rule: &'static str, options: &BareOptions) -> BareOptions {
    BareOptions {
        configure: Some(Arc::new(move |config| config.breaking(rule))),
        ..options.clone()
    }
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

fn broken(rule: &'static str) -> bool {
    let faults = Faults {
        crashes: 6,
        deaths: Deaths::None,
        byzantine: BYZANTINE,
        ..Faults::all()
    };
    noticed(&breaking(rule, &BareOptions::new(4, faults)))
}

#[test]
fn a_broken_rule_of_voting_is_detected() {
    assert!(broken("QuorumMinusOne"));
    assert!(broken("VotesForgotten"));
    assert!(broken("FinalizeAfterNullify"));
    assert!(broken("NotarizeTwice"));
}

#[test]
fn a_broken_rule_of_proposing_is_detected() {
    assert!(broken("SkippedWithoutProof"));
    assert!(broken("InclusionMissing"));
    assert!(broken("ForgedScore"));
    assert!(broken("ReceiptIgnored"));
    assert!(broken("RoundFromNotarised"));
}

#[test]
fn an_author_that_tells_others_than_the_lead_which_entry_is_its_own_is_detected() {
    for rule in ["ContributionPublished", "ScoresPublished"] {
        let mut options = BareOptions::new(4, Faults::none());
        options.cross_evaluate = Some(true);
        run_all(&options, 0..5);
        let options = breaking(rule, &options);
        for seed in 0..5 {
            let failure = run(seed, &options).unwrap_err();
            assert!(failure.to_string().contains("S10 "), "{rule:?}: {failure}");
        }
    }
}

#[test]
fn two_recoveries_of_one_epoch_are_detected() {
    for rule in ["ConfirmsAgain", "ConfirmationsMissing"] {
        let faults = Faults {
            deaths: Deaths::None,
            byzantine: Byzantine::None,
            ..Faults::all()
        };
        let options = BareOptions {
            rounds: 6,
            recoveries: true,
            errors: true,
            ..BareOptions::new(5, faults)
        };
        let options = breaking(rule, &options);
        assert!(noticed(&options), "{rule:?}");
    }
}

#[test]
fn words_about_changes_that_no_institution_said_and_votes_against_its_word_are_detected() {
    for (rule, faults) in [
        ("AlikeApproved", Faults::none()),
        ("WithdrawalIgnored", Faults::without_byzantine()),
    ] {
        let options = BareOptions {
            changes: 2,
            errors: true,
            ..BareOptions::new(4, faults)
        };
        let options = breaking(rule, &options);
        let failure = (0..400).find_map(|seed| run(seed, &options).err());
        let kind = failure.map(|failure| failure.kind);
        assert!(
            matches!(kind, Some(FailureKind::Approvals(_))),
            "{rule:?}: {kind:?}"
        );
    }
}

/// The first of 400 seeds that fails with something else than a lack of progress, with this rule broken.
fn found(options: &BareOptions, rule: &'static str) -> String {
    let options = breaking(rule, options);
    let failures = (0..400).filter_map(|seed| run(seed, &options).err());
    let first = failures.map(|failure| *failure).find(is_unsafe);
    first.map_or_else(
        || format!("{rule:?} goes unnoticed"),
        |first| first.kind.to_string(),
    )
}

#[test]
fn broken_rules_of_masked_rounds_are_detected() {
    let crashes = Faults {
        crashes: 6,
        deaths: Deaths::None,
        byzantine: Byzantine::None,
        journal_loss: JournalLoss::Never,
        ..all()
    };
    for (rule, property) in [("UnmaskedEarly", "P"), ("AbsentDropped", "P2")] {
        let kind = found(&masked(7, crashes), rule);
        assert!(kind.starts_with(property), "{rule:?}: {kind}");
    }
    let kind = found(&of_three(crashes), "OneShareFewer");
    assert!(kind.starts_with("P2"), "{kind}");
    // Any two of seven can open what t - 1 shares are enough for, and see it before it is final.
    for members in [5, 7] {
        let most = most_colluders(members, crashes);
        let kind = found(&most, "OneShareFewer");
        assert!(kind.starts_with("P2"), "{members}: {kind}");
        let one_less = BareOptions {
            colluders: most.colluders - 1,
            ..most
        };
        let kind = found(&one_less, "UnmaskedEarly");
        assert!(kind.starts_with('P'), "{members}: {kind}");
    }
    let mut strange = masked(4, crashes);
    strange.strange_machines = 1;
    let kind = found(&strange, "OutcomeWithoutQuorum");
    assert!(!kind.contains("unnoticed"), "{kind}");
}

#[test]
fn sums_of_other_groups_or_weights_in_a_later_epoch_are_detected() {
    let soon = Faults {
        until: Duration::from_secs(12),
        ..Faults::none()
    };
    let of = |regroup, groups: &[&[usize]]| {
        let options = BareOptions {
            groups: groups.iter().map(|group| group.to_vec()).collect(),
            changes: 1,
            rounds: 6,
            regroup: Some(regroup),
            ..BareOptions::new(8, soon)
        };
        breaking("AnyCircle", &options)
    };
    let (four, two) = (&[0, 1, 2, 3][..], &[4, 5, 6, 7][..]);
    for (regroup, groups) in [
        (Regroup::Anew, &[four, two][..]),
        (Regroup::Added, &[four, two]),
        (Regroup::Taken, &[four]),
        (Regroup::Weights, &[four]),
    ] {
        let kind = violated(&of(regroup, groups));
        assert!(kind.starts_with("P2 "), "{regroup:?}: {kind}");
    }
}

/// A member that takes part without having asked to the end what its key has signed contradicts itself.
#[test]
fn members_that_forget_to_ask_contradict_themselves() {
    let world = breaking("AskingForgotten", &BareOptions::masked_world(98430));
    let failure = run(98430, &world).expect_err("it signs two contributions");
    assert!(is_unsafe(&failure), "{failure}");
}

#[test]
fn shares_that_are_given_away_early_open_a_noised_sum_that_is_not_final() {
    let crashes = Faults {
        crashes: 6,
        deaths: Deaths::None,
        byzantine: Byzantine::None,
        journal_loss: JournalLoss::Never,
        ..Faults::all()
    };
    let options = BareOptions::noised(7, crashes);
    let options = breaking("UnmaskedEarly", &options);
    let mut failures = (0..400).filter_map(|seed| run(seed, &options).err());
    let wrong = |failure: &RunFailure| !matches!(failure.kind, FailureKind::NotLive { .. });
    let found = failures
        .find(|failure| wrong(failure))
        .map(|failure| failure.kind.to_string());
    assert!(found.is_some_and(|found| found.starts_with('P')));
}

/// What protects against twins is the size of a quorum.
#[test]
fn with_a_quorum_of_one_vote_less_twins_are_noticed() {
    let options = BareOptions::new(4, only_twins());
    let options = breaking("QuorumMinusOne", &options);
    let wrong = |failure: &RunFailure| !matches!(failure.kind, FailureKind::NotLive { .. });
    let noticed = (0..400).any(|seed| run(seed, &options).is_err_and(|failure| wrong(&failure)));
    assert!(noticed);
}

/// A member that does not look for what it has forgotten contradicts itself more often.
#[test]
fn members_that_notice_contradict_themselves_less_often() {
    let options = six_rounds(4, only_put_back());
    let accused = |ended: Vec<Ended>| ended.iter().map(|ended| ended.accused).sum::<u64>();
    let noticing = accused(run_all(&options, seeds(150)));
    let options = breaking("OutdatedJournalTrusted", &options);
    let ended = run_all(&options, seeds(150));
    assert!(ended.iter().all(|ended| ended.outdated == 0));
    let trusting = accused(ended);
    println!("accused: {noticing} that notice, {trusting} that do not");
    assert!(trusting > noticing, "{noticing}, {trusting}");
}

#[test]
fn without_auditors_wrong_outcomes_pass() {
    let ignored = breaking(
        "AuditorsIgnored",
        &wrong_outcomes(Verification::Committee(1)),
    );
    assert!((0..60).any(|seed| run(seed, &ignored).is_err()));
}
