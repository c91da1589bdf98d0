//! A broken rule is noticed: a checker that cannot fail proves nothing.

use protocol::member::{Config, Mutation};

use super::*;

/// Whether something else than a lack of progress is noticed within 400 seeds.
fn caught(options: &Options) -> bool {
    let wrong = |failure: &Failure| !matches!(failure.wrong, Wrong::NotLive { .. });
    (0..400).any(|seed| run(seed, options).is_err_and(|failure| wrong(&failure)))
}

/// The lies that a rule of voting or proposing is there for.
const LIES: Lies = Lies::Only(&[
    Behaviour::DoubleVote,
    Behaviour::DoubleProposal,
    Behaviour::DoubleContribution,
    Behaviour::ForgedRow,
    Behaviour::IgnoredReceipt,
    Behaviour::BadDecision,
    Behaviour::BadOutcome,
    Behaviour::Stuffed,
    Behaviour::Stale,
    Behaviour::Hasty,
    Behaviour::WrongParent,
]);

fn broken(rule: Mutation) -> bool {
    let mut options = Options::new(
        4,
        Faults {
            crashes: 6,
            deaths: Deaths::None,
            lies: LIES,
            ..Faults::all()
        },
    );
    options.alter = Some(Arc::new(move |config: Config| config.breaking(rule)));
    caught(&options)
}

#[test]
fn a_broken_rule_of_voting_is_noticed() {
    assert!(broken(Mutation::QuorumMinusOne));
    assert!(broken(Mutation::VotesForgotten));
    assert!(broken(Mutation::FinalizeAfterNullify));
    assert!(broken(Mutation::NotarizeTwice));
}

#[test]
fn a_broken_rule_of_proposing_is_noticed() {
    assert!(broken(Mutation::SkippedWithoutProof));
    assert!(broken(Mutation::InclusionMissing));
    assert!(broken(Mutation::ForgedScore));
    assert!(broken(Mutation::ReceiptIgnored));
    assert!(broken(Mutation::RoundFromNotarised));
}

#[test]
fn a_rule_that_the_surroundings_break_is_noticed() {
    let mut late = Options::new(
        4,
        Faults {
            inside: 0.03,
            crashes: 6,
            ..Faults::all()
        },
    );
    late.persist_last = true;
    let mut forget = late.clone();
    (forget.persist_last, forget.forget) = (false, true);
    assert!(caught(&late) && caught(&forget));
}
