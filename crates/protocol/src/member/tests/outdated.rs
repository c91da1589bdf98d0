//! Members whose journal lacks something that their key has signed: an older copy was put back.

use super::one::*;
use super::prelude::*;
use super::sync::{answers, chain, proof, up};
use super::table::epoch;
use crate::certificate::Verdict;
use crate::evidence::Evidence;
use crate::forgotten::Forgotten;
use crate::message::{Content, Reminder, SyncResponse};

/// A member of four, restarted with these records.
fn kept(records: Vec<Record>) -> (One, Vec<Effect>) {
    let epoch = epoch(4, 5);
    let me = epoch.lead(0);
    One::restart(epoch, me, records)
}

fn vote(kind: Kind, view: u64) -> Forgotten {
    let round = 0;
    Forgotten { kind, round, view }
}

fn of_round(kind: Kind, round: u64) -> Forgotten {
    let view = 0;
    Forgotten { kind, round, view }
}

/// Effects: the member under test notices that its journal is an older copy.
fn notices(what: Forgotten) -> [Effect; 2] {
    let record = Record::Outdated(what);
    [
        Effect::Persist(record),
        Effect::Report(Report::Outdated(what)),
    ]
}

/// Asserts that the member signs nothing that binds it in round 1 and its first view: it neither votes
/// nor contributes.
fn signs_nothing(one: &mut One) {
    one.plan();
    assert_eq!(one.train(), []);
    one.hold_all();
    assert_eq!(one.hear_lead(1, one.contribution_list(&one.all())), []);
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    one.check(&proposal, Ok(()));
    assert_eq!(one.settle(&proposal, Ok(outcome())), []);
    let notarised = one.certificate(1, Verdict::Notarised(proposal.block.hash()));
    assert_eq!(one.add_certificate(&notarised), one.leaves_by(&notarised));
    let silent = one.pass(90_000);
    let signed = |effect: &Effect| matches!(effect, Effect::Persist(_) | Effect::Publish { .. });
    assert!(!silent.iter().any(signed), "{silent:?}");
}

#[test]
fn a_reminder_of_a_vote_or_a_contribution_shows_that_a_journal_is_an_older_copy() {
    let (block, checked) = (Hash::of(b"a block"), CHECKED);
    let contribution = |one: &One| Body::Contribution(one.contribution(one.me));
    let (one, _) = kept(vec![]);
    let said = [
        (0, 1, Body::Notarize { block, checked }),
        (0, 9, Body::Finalize { block }),
        (0, 1, Body::Nullify),
        (1, 0, contribution(&one)),
        (2, 0, contribution(&one)),
    ];
    for (round, view, body) in said {
        let (mut one, _) = kept(vec![]);
        let kind = body.kind();
        let x = one.others()[0];
        up(&mut one, x);
        let (own, _) = one.sealed(one.me, round, view, body);
        let answer = SyncResponse {
            yours: Reminder::of(&own),
            ..one.answer(1)
        };
        let expected = notices(Forgotten { kind, round, view });
        assert_eq!(answers(&mut one, x, answer), expected);
        signs_nothing(&mut one);
    }
}

#[test]
fn a_reminder_counts_even_if_a_later_block_is_final_by_now() {
    let (mut one, _) = kept(vec![]);
    let x = one.others()[0];
    up(&mut one, x);
    let blocks = chain(&one, 1);
    let (own, _) = one.sealed(one.me, 0, 1, Body::Nullify);
    let answer = SyncResponse {
        proof: Some(proof(&one, &blocks[0])),
        blocks,
        yours: Reminder::of(&own),
        ..one.answer(1)
    };
    let effects = answers(&mut one, x, answer);
    assert_eq!(effects[..2], notices(vote(Kind::Nullify, 1)));
    assert_eq!(one.member.round(), 2, "it continues to follow the chain");
}

#[test]
fn an_own_vote_in_a_certificate_shows_that_a_journal_is_an_older_copy() {
    let block = Hash::of(b"a block");
    for (verdict, kind) in [
        (Verdict::Nullified, Kind::Nullify),
        (Verdict::Notarised(block), Kind::Notarize),
        (Verdict::Final(block), Kind::Finalize),
    ] {
        let (mut one, _) = kept(vec![]);
        let x = one.others()[0];
        let certificate = one.certificate_by(1, verdict, &one.without(x));
        let effects = one.add_certificate(&certificate);
        assert_eq!(effects[..2], notices(vote(kind, 1)), "{kind:?}");
        assert_eq!(effects[2..4], one.passes_on(&certificate), "{kind:?}");
        let votes = |effect: &Effect| matches!(effect, Effect::Persist(Record::Vote(_)));
        assert!(!effects.iter().any(votes), "{kind:?}");
    }
    // A vote that its journal holds shows nothing, another one of the same kind and view does.
    for other in [false, true] {
        let (one, _) = kept(vec![]);
        let cast = Hash::of(if other { b"another" } else { b"a block" });
        let (own, _) = one.sealed(one.me, 0, 1, Body::Finalize { block: cast });
        let (mut one, _) = kept(vec![Record::Vote(own)]);
        let x = one.others()[0];
        let certificate = one.certificate_by(1, Verdict::Final(block), &one.without(x));
        let effects = one.add_certificate(&certificate);
        assert_eq!(
            effects.starts_with(&notices(vote(Kind::Finalize, 1))),
            other
        );
        assert_eq!(one.member.consensus.participation.outdated(), other);
    }
}

#[test]
fn an_own_signature_in_a_final_block_shows_that_a_journal_is_an_older_copy() {
    for kind in ["inclusion", "vote", "neither"] {
        let (mut one, _) = kept(vec![]);
        let x = one.others()[0];
        up(&mut one, x);
        let mut blocks = chain(&one, 2);
        if kind == "inclusion" {
            let manifest = one.manifest(&one.all());
            let Content::Learning(learning) = &mut blocks[0].content else {
                panic!("a round")
            };
            learning.manifest = manifest.root();
            learning.inclusions = one.inclusions(&manifest, &one.all());
            blocks[1].parent = blocks[0].hash();
        }
        let voters = match kind {
            "vote" => one.without(x),
            _ => one.others(),
        };
        let proof = one.certificate_by(2, Verdict::Final(blocks[1].hash()), &voters);
        let answer = SyncResponse {
            blocks,
            proof: Some(proof),
            ..one.answer(1)
        };
        let effects = answers(&mut one, x, answer);
        let expected = match kind {
            "inclusion" => Some(notices(of_round(Kind::Inclusion, 1))),
            "vote" => Some(notices(vote(Kind::Finalize, 2))),
            _ => None,
        };
        assert_eq!(
            one.member.consensus.participation.outdated(),
            expected.is_some()
        );
        for effect in expected.iter().flatten() {
            assert!(effects.contains(effect), "{kind}: {effects:?}");
        }
    }
}

/// With its whole journal a member knows what it signed in the blocks that became final while it was
/// away.
#[test]
fn own_signatures_that_the_journal_holds_show_nothing() {
    let mut one = One::follower(4).contributed();
    let contributed = one.sealed(one.me, 1, 0, Body::Contribution(one.contribution(one.me)));
    let authors = one.all();
    one.hold_all();
    one.hear_lead(1, one.contribution_list(&authors));
    let proposal = one.proposal(1, &authors);
    let block = proposal.block.hash();
    let finalized = one.sealed(one.me, 0, 1, Body::Finalize { block });
    let (mut one, _) = kept(vec![
        Record::Contributed(contributed.0),
        Record::Block(proposal.block.clone()),
        Record::Vote(finalized.0),
    ]);
    let x = one.others()[0];
    let proof = one.certificate_by(1, Verdict::Final(block), &one.without(x));
    one.add_certificate(&proof);
    assert_eq!(one.member.round(), 2);
    assert!(!one.member.consensus.participation.listening());
}

#[test]
fn a_message_under_its_key_from_outside_shows_that_a_journal_is_an_older_copy() {
    let mut one = One::follower(4).contributed();
    let me = one.me;
    // Its own messages, passed on by others, show nothing.
    let own = Body::Contribution(one.contribution(me));
    assert_eq!(one.hear(me, 1, 0, own), []);
    let (phase, counter) = (crate::message::Phase::Collecting, 1);
    let lead = one.epoch.lead(1);
    assert_eq!(one.hear(lead, 0, 1, Body::Progress { phase, counter }), []);
    let expected = notices(vote(Kind::Nullify, 1));
    assert_eq!(one.hear(me, 0, 1, Body::Nullify), expected);
    assert_eq!(one.hear(me, 0, 1, Body::Nullify), [], "it is reported once");
    // Another contribution to this round.
    let mut one = One::follower(4).contributed();
    let mut other = one.contribution(me);
    other.fields.coalition = Some(1);
    let said = one.hear(me, 1, 0, Body::Contribution(other));
    assert_eq!(said, notices(of_round(Kind::Contribution, 1)));
    // Its own vote, and then another one of the same kind and view.
    let mut one = One::follower(4);
    one.pass(3000);
    assert_eq!(one.hear(me, 0, 1, Body::Nullify), []);
    let block = Hash::of(b"a block");
    let said = one.hear(me, 0, 1, Body::Finalize { block });
    assert_eq!(said, notices(vote(Kind::Finalize, 1)));
}

#[test]
fn evidence_against_itself_shows_that_a_journal_is_an_older_copy() {
    let mut one = One::follower(4);
    one.pass(3000);
    let me = one.me;
    let (nullify, _) = one.sealed(me, 0, 1, Body::Nullify);
    let block = Hash::of(b"a block");
    let (finalize, _) = one.sealed(me, 0, 1, Body::Finalize { block });
    let evidence = Evidence::of(&nullify, &finalize).unwrap();
    let effects = one.read(&envelope::sign_evidence(&one.epoch, &evidence));
    let expected = [
        &notices(vote(Kind::Finalize, 1))[..],
        &one.accuses(&nullify, &finalize),
    ];
    assert_eq!(effects, expected.concat());
    // Evidence against others shows nothing.
    let mut one = One::follower(4);
    let x = one.others()[0];
    let (nullify, _) = one.sealed(x, 0, 1, Body::Nullify);
    let (finalize, _) = one.sealed(x, 0, 1, Body::Finalize { block });
    let evidence = Evidence::of(&nullify, &finalize).unwrap();
    let effects = one.read(&envelope::sign_evidence(&one.epoch, &evidence));
    assert_eq!(effects, one.accuses(&nullify, &finalize));
}

#[test]
fn a_member_with_an_outdated_journal_repeats_nothing_and_does_not_sign_for_sheets() {
    // It waits for the models of a manifest for which it would sign, and repeats its contribution.
    let mut one = One::follower(4).contributed();
    assert_ne!(one.hear_lead(1, one.contribution_list(&one.all())), []);
    let me = one.me;
    let block = Hash::of(b"a block");
    one.hear(me, 0, 1, Body::Finalize { block });
    assert_eq!(one.hold_all(), []);
    let contribution = one.contributes(one.epoch.lead(1));
    let mut again = One::follower(4).contributed();
    assert!(again.at(1000).contains(&contribution));
    assert!(!one.at(1000).contains(&contribution));
    // It repeats its vote against the view, until it learns of another one.
    let mut one = One::follower(4);
    one.pass(3000);
    let vote = one.publishes(0, 1, Body::Nullify);
    let Effect::Publish { frame } = vote else {
        panic!("a vote")
    };
    let to = one.others()[0];
    let repeated = Effect::Send { to, frame };
    assert!(one.at(4000).contains(&repeated));
    one.hear(me, 0, 1, Body::Finalize { block });
    assert!(!one.at(5000).contains(&repeated));
}

#[test]
fn a_lead_with_an_outdated_journal_stops_leading() {
    let mut one = One::leading(4, 1);
    assert!(one.member.consensus.lead.is_some());
    let me = one.me;
    one.hear(me, 0, 1, Body::Nullify);
    assert!(one.member.consensus.lead.is_none());
    let signed = |effect: &Effect| matches!(effect, Effect::Persist(_) | Effect::Publish { .. });
    assert!(!one.pass(90_000).iter().any(signed));
}

#[test]
fn an_outdated_journal_stays_outdated_after_a_restart() {
    let what = vote(Kind::Finalize, 3);
    let (mut one, effects) = kept(vec![Record::Outdated(what)]);
    assert_eq!(effects[0], Effect::Report(Report::Outdated(what)));
    assert_eq!(effects[1], one.entered(1, 1));
    // It asks others only for what it missed, and no number of answers lets it take part.
    for (nth, by) in (1..).zip(one.others()) {
        one.at(nth * 1000);
        let answer = one.answer(nth);
        assert_eq!(answers(&mut one, by, answer), []);
    }
    let blocks = chain(&one, 4);
    for block in &blocks {
        one.member.consensus.chain.keep(block.hash(), block.clone());
    }
    let effects = one.add_certificate(&proof(&one, &blocks[3]));
    assert_eq!(one.member.round(), 5);
    assert!(!effects.contains(&Effect::Report(Report::TakingPart)));
    assert!(one.member.consensus.participation.outdated());
    let (mut one, _) = kept(vec![Record::Outdated(what)]);
    signs_nothing(&mut one);
}

#[test]
fn a_member_whose_key_another_process_uses_signs_nothing_more_and_says_so_once() {
    let (mut one, _) = kept(vec![]);
    let told = one.step(Input::KeyElsewhere);
    assert_eq!(told, [Effect::Report(Report::KeyElsewhere)]);
    assert_eq!(one.step(Input::KeyElsewhere), []);
    assert!(one.member.consensus.lead.is_none());
    signs_nothing(&mut one);
    // Nothing of it is written down, because after a restart the journal says what was signed.
    let (mut one, effects) = kept(vec![Record::Outdated(vote(Kind::Finalize, 3))]);
    assert_eq!(
        effects[0],
        Effect::Report(Report::Outdated(vote(Kind::Finalize, 3)))
    );
    assert_eq!(one.step(Input::KeyElsewhere), []);
}
