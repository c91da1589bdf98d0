//! Votes, certificates made of them, and evidence (R1–R3, R5).

use super::one::*;
use super::prelude::*;
use super::table::epoch;
use crate::certificate::{Checked, Verdict};
use crate::evidence::Evidence;
use crate::message::{Block, Proposal};

fn block(name: &[u8]) -> Hash {
    Hash::of(name)
}

fn notarize(block: Hash) -> Body {
    let checked = CHECKED;
    Body::Notarize { block, checked }
}

/// A vote of another member arrives.
fn votes(one: &mut One, by: MemberIndex, view: u64, body: Body) -> Vec<Effect> {
    one.hear(by, 0, view, body)
}

#[test]
fn a_notarisation_is_passed_on_answered_with_finalize_and_ends_the_view() {
    let mut one = One::follower(4).contributed();
    let block = block(b"a block");
    let notarised = one.certificate(1, Verdict::Notarised(block));
    let mut expected = one.passes_on(&notarised);
    expected.extend(one.finalizes(1, block));
    expected.push(Effect::Persist(Record::Certified(notarised.clone())));
    expected.push(one.entered(2, 1));
    // The contribution is not sent to a lead that waits for finality.
    assert_eq!(one.add_certificate(&notarised), expected);
    assert_eq!(one.add_certificate(&notarised), []);
}

#[test]
fn a_nullification_is_passed_on_and_ends_the_view() {
    let mut one = One::follower(4).contributed();
    let nullified = one.certificate(1, Verdict::Nullified);
    let mut expected = one.leaves_by(&nullified);
    expected.push(one.contributes(one.epoch.lead(2)));
    assert_eq!(one.add_certificate(&nullified), expected);
    assert_eq!(one.add_certificate(&nullified), []);
}

#[test]
fn a_certificate_of_an_earlier_view_does_not_change_the_view() {
    let mut one = One::follower(4);
    one.skip(2);
    let late = one.certificate(1, Verdict::Nullified);
    assert_eq!(one.add_certificate(&late), one.passes_on(&late));
    assert_eq!(one.member.view(), 3);
}

#[test]
fn after_nullify_there_is_no_finalize() {
    let mut one = One::follower(4);
    one.at(3000);
    assert!(one.member.consensus.ballots.has_nullified(1));
    let notarised = one.certificate(1, Verdict::Notarised(block(b"a block")));
    assert_eq!(one.add_certificate(&notarised), one.leaves_by(&notarised));
}

#[test]
fn after_finalize_there_is_no_nullify() {
    let one = One::follower(4);
    let block = block(b"a block");
    let (vote, _) = one.sealed(one.me, 0, 1, Body::Finalize { block });
    let kept = Start::Kept(vec![Record::Vote(vote)]);
    let (one, _) = One::start(one.epoch, one.me, kept);
    let mut one = one;
    assert_eq!(one.member.view(), 1);
    // The lead is silent for long: the vote is sent again, and nothing else.
    let body = Body::Finalize { block };
    for view in [1, 2] {
        let lead = one.epoch.lead(view);
        let sent = one.sends(lead, 0, 1, body.clone());
        let at = 100_000 * view;
        assert!(one.at(at).contains(&sent));
    }
    assert!(!one.member.consensus.ballots.has_nullified(1));
}

#[test]
fn a_late_notarisation_is_answered_with_finalize_without_going_back() {
    let mut one = One::follower(4);
    one.skip(1);
    let block = block(b"a block");
    let notarised = one.certificate(1, Verdict::Notarised(block));
    let expected = [one.passes_on(&notarised), one.finalizes(1, block)].concat();
    assert_eq!(one.add_certificate(&notarised), expected);
    assert_eq!(one.member.view(), 2);
    // Only once, also after a restart: the vote was recorded, the certificate was not.
    let (vote, _) = one.sealed(one.me, 0, 1, Body::Finalize { block });
    let skipped = one.certificate(1, Verdict::Nullified);
    let kept = vec![Record::Certified(skipped), Record::Vote(vote)];
    let (mut one, _) = One::start(one.epoch, one.me, Start::Kept(kept));
    assert_eq!(one.add_certificate(&notarised), one.passes_on(&notarised));
}

#[test]
fn only_the_first_vote_of_a_kind_by_a_member_counts() {
    let mut one = One::follower(4);
    let (a, b) = (block(b"one"), block(b"another"));
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    votes(&mut one, x, 1, notarize(a));
    votes(&mut one, x, 1, notarize(b));
    votes(&mut one, y, 1, notarize(b));
    assert_eq!(votes(&mut one, z, 1, notarize(b)), []);
}

#[test]
fn a_quorum_of_votes_for_one_block_makes_a_certificate() {
    let mut one = One::follower(4);
    let (a, b) = (block(b"one"), block(b"another"));
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    assert_eq!(votes(&mut one, x, 1, notarize(a)), []);
    assert_eq!(votes(&mut one, x, 1, notarize(a)), []);
    assert_eq!(votes(&mut one, y, 1, notarize(b)), []);
    assert_eq!(votes(&mut one, z, 1, Body::Nullify), []);
    // A Nullify does not take the Notarize back.
    assert_eq!(votes(&mut one, z, 1, notarize(a)), []);
    // Its own is the third one for that block.
    let own = one.sealed(one.me, 0, 1, notarize(a)).0;
    one.member.out.deliver_to_self(own);
    let mut voters = vec![one.me, x, z];
    voters.sort_unstable();
    let notarised = one.certificate_by(1, Verdict::Notarised(a), &voters);
    one.has_cast(&notarised);
    let mut expected = one.passes_on(&notarised);
    expected.extend(one.finalizes(1, a));
    expected.push(Effect::Persist(Record::Certified(notarised)));
    expected.push(one.entered(2, 1));
    assert_eq!(one.step(Input::Time), expected);
}

#[test]
fn a_quorum_against_a_view_nullifies_it() {
    let mut one = One::follower(7);
    // The lead's own vote against its view would be followed at once.
    let mut others = one.without(one.epoch.lead(1));
    others.retain(|&by| by != one.me);
    for &by in &others[..4] {
        assert_eq!(votes(&mut one, by, 1, Body::Nullify), []);
    }
    let nullified = one.certificate_by(1, Verdict::Nullified, &others);
    let expected = one.leaves_by(&nullified);
    assert_eq!(votes(&mut one, others[4], 1, Body::Nullify), expected);
}

#[test]
fn a_quorum_of_finalize_makes_the_block_final() {
    let (mut one, proposal) = notarised();
    let hash = proposal.block.hash();
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let finalize = Body::Finalize { block: hash };
    assert_eq!(votes(&mut one, x, 1, finalize.clone()), []);
    assert_eq!(votes(&mut one, y, 1, finalize.clone()), []);
    let proof = one.certificate_by(1, Verdict::Final(hash), &[x, y, z]);
    let mut expected = one.passes_on(&proof);
    expected.push(Effect::Persist(Record::Final {
        blocks: vec![proposal.block.clone()],
        proof: proof.clone(),
    }));
    expected.push(Effect::Report(Report::Final {
        round: 1,
        view: 1,
        lead: one.epoch.lead(1),
        block: hash,
        authors: one.all(),
    }));
    let own = one.manifest(&one.all()).position(&one.entry(one.me).id);
    // Voters are asked first.
    let holders = one.others();
    expected.push(Effect::Work(Request::Apply {
        rounds: vec![crate::effects::FinalRound {
            round: 1,
            block: hash,
            outcome: outcome(),
            position: own,
        }],
        holders,
    }));
    assert_eq!(votes(&mut one, z, 1, finalize), expected);
    let (round, result) = (1, Ok(()));
    let applied = one.step(Input::Done(Answer::Applied {
        round,
        ends: false,
        result,
    }));
    assert_eq!(applied, [one.plans(2, outcome())]);
}

/// A member in view 2, with a proposal of view 1 that is notarised.
fn notarised() -> (One, Proposal) {
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    one.add_certificate(&one.certificate(1, Verdict::Notarised(proposal.block.hash())));
    (one, proposal)
}

#[test]
fn votes_of_past_and_distant_views_are_not_kept() {
    let mut one = One::follower(4);
    let x = one.others()[0];
    for view in [1 + 2 * 4, 1 + 2 * 4 + 1] {
        assert_eq!(votes(&mut one, x, view, Body::Nullify), []);
    }
    assert!(one.member.consensus.ballots.voters(9).contains(&x));
    assert!(!one.member.consensus.ballots.voters(10).contains(&x));
}

#[test]
fn two_votes_of_one_kind_and_nullify_with_finalize_are_evidence() {
    let (a, b) = (block(b"one"), block(b"another"));
    let finalize = |block| Body::Finalize { block };
    let pairs = [
        (notarize(a), notarize(b), "two Notarize votes in view 1"),
        (finalize(a), finalize(b), "two Finalize votes in view 1"),
        (Body::Nullify, finalize(a), "Nullify and Finalize in view 1"),
        (finalize(a), Body::Nullify, "Nullify and Finalize in view 1"),
    ];
    for (first, second, charge) in pairs {
        let mut one = One::follower(4);
        // Not the lead of view 1 or 2, whose Nullify would be followed.
        let by = one.epoch.lead(3);
        let message = |body: &Body| one.sealed(by, 0, 1, body.clone()).0;
        let expected = one.accuses(&message(&first), &message(&second));
        let evidence = Evidence::of(&message(&first), &message(&second)).unwrap();
        assert_eq!(evidence.charge(), charge);
        assert_eq!(votes(&mut one, by, 1, first.clone()), []);
        assert_eq!(votes(&mut one, by, 1, second.clone()), expected);
        // Further evidence against the same member is ignored.
        assert_eq!(votes(&mut one, by, 1, second.clone()), []);
        assert_eq!(votes(&mut one, by, 2, first), []);
        assert_eq!(votes(&mut one, by, 2, second), []);
        assert_eq!(
            one.read(&envelope::sign_evidence(&one.epoch, &evidence)),
            []
        );
    }
}

#[test]
fn evidence_is_published_once_for_each_accused_member() {
    let mut one = One::follower(4);
    for by in one.others() {
        for view in [1, 2] {
            let vote = |name| one.sealed(by, 0, view, notarize(block(name))).0;
            let (first, second) = (vote(b"one"), vote(b"another"));
            let expected = match view {
                1 => one.accuses(&first, &second),
                _ => vec![],
            };
            let evidence = Evidence::of(&first, &second).unwrap();
            let input = Input::Opened(Opened::Evidence(Box::new(evidence)));
            assert_eq!(one.step(input), expected);
        }
    }
}

#[test]
fn notarize_and_nullify_of_one_view_are_allowed_in_either_order() {
    for both in [
        [notarize(block(b"one")), Body::Nullify],
        [Body::Nullify, notarize(block(b"one"))],
    ] {
        let mut one = One::follower(4);
        // Not the lead of view 1 or 2, whose Nullify would be followed.
        let by = one.epoch.lead(3);
        for body in both {
            assert_eq!(votes(&mut one, by, 1, body), []);
        }
    }
}

/// Sends of a certificate to one member.
fn answers(one: &One, to: MemberIndex, view: u64, verdict: Verdict) -> Effect {
    let certificate = one.certificate(view, verdict);
    let frame = envelope::sign_certificate(&one.epoch, &certificate);
    Effect::Send { to, frame }
}

#[test]
fn a_late_vote_is_answered_with_the_certificate() {
    let mut one = One::follower(4);
    let by = one.others()[0];
    let a = block(b"one");
    one.skip(1);
    let nullified = answers(&one, by, 1, Verdict::Nullified);
    // Within half a heartbeat of the certificate a vote is not answered.
    one.now = Time::since_start(Duration::from_millis(500));
    assert_eq!(votes(&mut one, by, 1, Body::Nullify), []);
    one.now = Time::since_start(Duration::from_millis(501));
    let late = [Body::Nullify, notarize(a), Body::Finalize { block: a }];
    for body in late {
        let mut one = One::follower(4);
        one.skip(1);
        one.now = Time::since_start(Duration::from_millis(501));
        assert_eq!(votes(&mut one, by, 1, body), [nullified.clone()]);
    }
    // A Finalize still counts when its block is notarised.
    let (mut one, proposal) = notarised();
    let hash = proposal.block.hash();
    one.now = Time::since_start(Duration::from_millis(501));
    let notarised = answers(&one, by, 1, Verdict::Notarised(hash));
    let finalize = Body::Finalize { block: hash };
    assert_eq!(votes(&mut one, by, 1, finalize.clone()), []);
    assert_eq!(votes(&mut one, by, 1, notarize(hash)), [notarised]);
    let other = one.others()[1];
    let notarised = answers(&one, other, 1, Verdict::Notarised(hash));
    assert_eq!(votes(&mut one, other, 1, Body::Nullify), [notarised]);
    // Once a block is final, its certificate answers all votes up to its view at once.
    one.add_certificate(&one.certificate(1, Verdict::Final(hash)));
    let proof = answers(&one, by, 1, Verdict::Final(hash));
    for body in [Body::Nullify, notarize(a), finalize] {
        assert_eq!(votes(&mut one, by, 1, body), [proof.clone()]);
    }
}

#[test]
fn votes_are_sent_again_with_every_beat_until_a_certificate_answers_them() {
    let mut one = One::follower(4).signed();
    let entry = one.entry(one.me).id;
    one.hear_lead(1, Body::Receipt { entry });
    let proposal = one.proposal(1, &one.all());
    let hash = proposal.block.hash();
    one.propose(1, &proposal);
    one.check(&proposal, Ok(()));
    one.settle(&proposal, Ok(outcome()));
    let leads = [1, 2, 3].map(|view| one.epoch.lead(view));
    let again = |one: &One, body: &Body, to: &[MemberIndex]| -> Vec<_> {
        let send = |&to: &MemberIndex| one.sends(to, 0, 1, body.clone());
        to.iter().map(send).collect()
    };
    assert_eq!(one.at(1000), again(&one, &notarize(hash), &leads[..2]));
    // The certificate answers the vote for the block; the Finalize is not answered yet. The lead
    // of the current view gets it too.
    one.add_certificate(&one.certificate(1, Verdict::Notarised(hash)));
    one.skip(2);
    one.hear_lead(3, Body::Receipt { entry });
    let finalize = Body::Finalize { block: hash };
    assert_eq!(one.at(2000), again(&one, &finalize, &leads));
    one.add_certificate(&one.certificate(1, Verdict::Final(hash)));
    assert_eq!(one.at(3000), []);
}

#[test]
fn nullify_is_sent_again_to_all_with_the_best_certificates() {
    let mut one = One::follower(4);
    one.skip(1);
    one.at(3000);
    assert!(one.member.consensus.ballots.has_nullified(2));
    let others = one.others();
    let nullify = others.iter().map(|&to| one.sends(to, 0, 2, Body::Nullify));
    let way = others
        .iter()
        .map(|&to| answers(&one, to, 1, Verdict::Nullified));
    let expected: Vec<_> = nullify.chain(way).collect();
    assert_eq!(one.at(4000), expected);
    // Together with the notarisation that waits for finality.
    let block = block(b"a block");
    one.add_certificate(&one.certificate(1, Verdict::Notarised(block)));
    let said = one.at(5000);
    for &to in &others {
        assert!(said.contains(&answers(&one, to, 1, Verdict::Notarised(block))));
    }
    // Answered by a certificate, it is not sent again.
    one.skip(2);
    let nullify = one.sends(others[0], 0, 2, Body::Nullify);
    assert!(!one.at(6000).contains(&nullify));
}

#[test]
fn the_collectors_are_the_leads_of_the_view_and_the_next_other_one() {
    // Where one member leads a view and the next, the lead after that collects too.
    let epoch = epoch(4, 5);
    let twice = (4..400).find(|&view| epoch.lead(view) == epoch.lead(view + 1));
    let view = twice.unwrap();
    let me = epoch.roster.members();
    let mut me = me.filter(|&m| m != epoch.lead(view) && m != epoch.lead(view + 2));
    let mut one = One::of(epoch.clone(), me.next().unwrap());
    one.skip(view - 1);
    let block = block(b"a block");
    let notarised = one.certificate(view, Verdict::Notarised(block));
    let body = Body::Finalize { block };
    let mut expected = one.passes_on(&notarised);
    expected.push(one.persists_vote(view, body.clone()));
    expected.push(one.sends(epoch.lead(view), 0, view, body.clone()));
    expected.push(one.sends(epoch.lead(view + 2), 0, view, body));
    expected.push(Effect::Persist(Record::Certified(notarised.clone())));
    expected.push(one.entered(view + 1, 1));
    assert_eq!(one.add_certificate(&notarised), expected);
}

#[test]
fn missing_ancestors_are_asked_for_once_a_block_is_final() {
    let mut one = One::follower(4);
    let hash = block(b"never seen");
    let proof = one.certificate(3, Verdict::Final(hash));
    let mut expected = one.passes_on(&proof);
    expected.push(one.asks_for(2, one.others()[1], (0, 1), Some(hash)));
    expected.push(Effect::Persist(Record::Certified(proof.clone())));
    expected.push(one.entered(4, 1));
    assert_eq!(one.add_certificate(&proof), expected);
    // An earlier final certificate does not replace a later one.
    one.add_certificate(&one.certificate(2, Verdict::Final(block(b"earlier"))));
    let waiting = one.member.consensus.chain.unresolved.as_ref();
    assert_eq!(waiting.map(|proof| proof.view), Some(3));
    // With every heartbeat the next member is asked.
    let said = one.at(1000);
    assert!(said.contains(&one.asks_for(2, one.others()[2], (0, 1), Some(hash))));
}

#[test]
fn a_block_that_arrives_after_its_final_certificate_is_final_at_once() {
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    let hash = proposal.block.hash();
    one.add_certificate(&one.certificate(1, Verdict::Final(hash)));
    assert_eq!(
        (one.member.view(), one.member.consensus.chain.tip.view),
        (2, 0)
    );
    // View 1 is not proposed again; its block arrives with an empty block after it, or by a sync
    // response.
    let mut answer = one.answer(2);
    answer.blocks = vec![proposal.block.clone()];
    answer.proof = Some(one.certificate(1, Verdict::Final(hash)));
    let from = one.others()[1];
    let effects = one.hear(from, 0, 0, Body::SyncResponse(Box::new(answer)));
    let kept = Effect::Persist(Record::Final {
        blocks: vec![proposal.block],
        proof: one.certificate(1, Verdict::Final(hash)),
    });
    assert_eq!(effects[0], kept);
    assert!(one.member.consensus.chain.unresolved.is_none());
}

#[test]
fn an_empty_block_that_is_final_makes_its_parent_final() {
    let (mut one, proposal) = notarised();
    let hash = proposal.block.hash();
    let empty = one.empty(2, &one.certificate(1, Verdict::Notarised(hash)));
    one.propose(2, &empty);
    let (second, proof) = (empty.block.hash(), Verdict::Final(empty.block.hash()));
    one.add_certificate(&one.certificate(2, Verdict::Notarised(second)));
    let proof = one.certificate(2, proof);
    let effects = one.add_certificate(&proof);
    let blocks: Vec<Block> = vec![proposal.block, empty.block];
    let kept = Effect::Persist(Record::Final { blocks, proof });
    assert_eq!(effects[2], kept);
    assert_eq!(
        (one.member.round(), one.member.consensus.chain.learned.view),
        (2, 1)
    );
    // D counts views since the learning block: empty blocks do not reset it.
    assert_eq!(one.member.view(), 3);
    assert_eq!(one.member.timing().phase(), Duration::from_secs(1));
}

#[test]
fn votes_with_different_checks_count_for_the_same_block() {
    let mut one = One::follower(4);
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let a = block(b"one");
    let checked = Checked::Structure;
    votes(&mut one, x, 1, Body::Notarize { block: a, checked });
    votes(&mut one, y, 1, notarize(a));
    assert!(!votes(&mut one, z, 1, notarize(a)).is_empty());
    assert_eq!(one.member.view(), 2);
}
