//! Changes of the agreement: approvals, proposals of a change, and the end of the epoch.

use super::one::*;
use super::prelude::*;
use super::table::{epoch, key};
use crate::certificate::{Checked, Verdict};
use crate::change::{ChangeError, PassageError};
use crate::envelope::OpenError;
use crate::epochs::Epochs;
use crate::identity::Strict;
use crate::message::{Amendment, Approval, Block, Change, Content, Passage, Proposal};
use crate::parameters::Epoch;
use crate::roster::Silo;

/// An amendment that keeps the parameter set and admits another member behind the others.
pub(super) fn admitting(epoch: &Epoch, name: &str) -> Amendment {
    let mut silos = epoch.roster.silos().to_vec();
    silos.push(Silo {
        name: name.into(),
        key: key(99).public(),
        rows: None,
    });
    Amendment {
        format: epoch.format,
        protocol: epoch.protocol.for_members(epoch.roster.len(), silos.len()),
        silos,
        text: b"text".to_vec(),
        stolen: Vec::new(),
    }
}

/// One round more.
pub(super) fn longer(epoch: &Epoch) -> Amendment {
    let mut protocol = epoch.protocol.clone();
    protocol.rounds += 1;
    Amendment {
        format: epoch.format,
        silos: epoch.roster.silos().to_vec(),
        protocol,
        text: b"longer".to_vec(),
        stolen: Vec::new(),
    }
}

pub(super) fn approval(amendment: &Amendment) -> Body {
    word(amendment, 1, true)
}

/// What a member says of an amendment.
pub(super) fn word(amendment: &Amendment, number: u64, stands: bool) -> Body {
    Body::Approval {
        amendment: amendment.hash(),
        number,
        stands,
    }
}

/// The institution approves an amendment for the first time.
pub(super) fn approve(amendment: &Amendment) -> Input {
    Input::Approve {
        amendment: Box::new(amendment.clone()),
        number: 1,
    }
}

impl One {
    fn approvals(&self, amendment: &Amendment, by: &[MemberIndex]) -> Arc<[Approval]> {
        let mut by = by.to_vec();
        by.sort_unstable();
        let sign = |by: MemberIndex| Approval {
            by,
            number: 1,
            signature: self.sealed(by, 0, 0, approval(amendment)).0.signature,
        };
        by.into_iter().map(sign).collect()
    }

    /// A proposal of a change that these members approve.
    pub(super) fn changing(
        &self,
        view: u64,
        amendment: &Amendment,
        by: &[MemberIndex],
    ) -> Proposal {
        let tip = &self.member.consensus.chain.tip;
        let change = Change {
            amendment: amendment.clone(),
            after: self.member.consensus.chain.checkpoint(),
            approvals: self.approvals(amendment, by),
        };
        Proposal {
            block: self.block(view, tip.hash, Content::Change(Box::new(change))),
            parent: tip.proof.clone(),
            skipped: Vec::new(),
        }
    }

    pub(super) fn knows(&self, amendment: &Amendment, by: &[MemberIndex]) -> Effect {
        let mut approved = by.to_vec();
        approved.sort_unstable();
        let objection = amendment.is_spoken(self.member.config.formats).err();
        let objection = objection.map(|why| why.to_string());
        Effect::Report(Report::Amendment {
            amendment: Box::new(amendment.clone()),
            approved,
            needed: amendment.needed(&self.epoch),
            awaits: amendment.new_keys(&self.epoch),
            objection,
        })
    }

    /// The network is asked to report the new keys of an amendment.
    pub(super) fn awaits(&self, amendment: &Amendment) -> Effect {
        let mut keys = amendment.new_keys(&self.epoch);
        keys.sort_unstable();
        Effect::Await { keys }
    }
}

fn change(proposal: &mut Proposal) -> &mut Change {
    match &mut proposal.block.content {
        Content::Change(change) => change,
        _ => panic!("a change"),
    }
}

#[test]
fn an_approved_amendment_is_sent_to_all_and_again_every_four_beats() {
    let mut one = One::follower(4);
    let amendment = longer(&one.epoch);
    let text = Body::Amendment(Box::new(amendment.clone()));
    let to_all = |one: &One| -> Vec<Effect> {
        let both = |to| [text.clone(), approval(&amendment)].map(|body| one.sends(to, 0, 0, body));
        one.others().into_iter().flat_map(both).collect()
    };
    let mut expected = to_all(&one);
    expected.push(one.knows(&amendment, &[one.me]));
    assert_eq!(one.step(approve(&amendment)), expected);
    // Once.
    assert_eq!(one.step(approve(&amendment)), []);
    let of_it = to_all(&one);
    let sent = |effects: &[Effect]| {
        effects
            .iter()
            .filter(|effect| of_it.contains(effect))
            .count()
    };
    assert_eq!(sent(&one.pass(3_900)), 0);
    let others = one.others();
    let again = one.pass(4_000);
    assert_eq!(sent(&again), 2 * others.len());
    // Whoever approved it has the text.
    one.hear(others[0], 0, 0, approval(&amendment));
    let again = one.pass(8_000);
    assert_eq!(sent(&again), 2 * others.len() - 1);
    // A member that comes back gets it at once.
    let back = one.step(Input::Up {
        peer: others[1],
        round_trip: Duration::from_millis(20),
    });
    assert_eq!(sent(&back), 2);
}

#[test]
fn a_lead_proposes_what_a_quorum_approves_before_any_round() {
    for approves_last in [false, true] {
        let mut one = One::leading(4, 1);
        let amendment = longer(&one.epoch);
        let others = one.others();
        let text = Body::Amendment(Box::new(amendment.clone()));
        // In any order: an approval may come before the text.
        let effects = one.hear(others[0], 0, 0, approval(&amendment));
        assert_eq!(effects, []);
        let effects = one.hear(others[0], 0, 0, text.clone());
        assert_eq!(effects, [one.knows(&amendment, &others[..1])]);
        let effects = one.hear(others[1], 0, 0, approval(&amendment));
        assert_eq!(effects, [one.knows(&amendment, &others[..2])]);
        let (effects, by) = if approves_last {
            let by = [others[0], others[1], one.me];
            (one.step(approve(&amendment)), by)
        } else {
            let by = [others[0], others[1], others[2]];
            (one.hear(others[2], 0, 0, approval(&amendment)), by)
        };
        let proposal = one.changing(1, &amendment, &by);
        let mut expected = one.proposes(1, &proposal);
        let at = effects.iter().position(|effect| *effect == expected[0]);
        let at = at.expect("a durable proposal");
        assert_eq!(effects[at..at + 2], expected);
        expected = one.notarizes(&proposal.block, Checked::Structure);
        expected.retain(|effect| !matches!(effect, Effect::Send { to, .. } if *to == one.me));
        for vote in expected {
            assert!(effects.contains(&vote), "{vote:?} in {effects:?}");
        }
        // Contributions change nothing any more.
        one.plan();
        assert_eq!(one.take_in(others[0]), []);
    }
}

#[test]
fn a_change_with_enough_approvals_is_voted_for_without_a_model() {
    let mut one = One::follower(4);
    let amendment = admitting(&one.epoch, "new");
    let by = one.others();
    let proposal = one.changing(1, &amendment, &by);
    let effects = one.propose(1, &proposal);
    // It learns of the approvals from the block.
    let mut expected = vec![one.awaits(&amendment), one.knows(&amendment, &by)];
    expected.extend(one.notarizes(&proposal.block, Checked::Structure));
    assert_eq!(effects, expected);
    assert_eq!(one.propose(1, &proposal), []);
}

#[test]
pub(super) fn a_change_that_breaks_a_rule_is_refused() {
    let refuses = |change: &dyn Fn(&One, &mut Proposal), reason: Refusal| {
        let mut one = One::follower(4);
        let amendment = admitting(&one.epoch, "new");
        let mut proposal = one.changing(1, &amendment, &one.others());
        change(&one, &mut proposal);
        assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, reason));
    };
    let approvals = |got, needed| Refusal::Change(ChangeError::Approvals { got, needed });
    refuses(
        &|one, proposal| {
            let of = &one.others()[..2];
            change(proposal).approvals = one.approvals(&change(proposal).amendment.clone(), of);
        },
        approvals(2, 3),
    );
    refuses(
        &|_, proposal| {
            let mut twice = change(proposal).approvals.to_vec();
            twice[1] = twice[0];
            change(proposal).approvals = twice.into();
        },
        approvals(0, 3),
    );
    refuses(
        &|_, proposal| change(proposal).after.round = 1,
        Refusal::Change(ChangeError::After { got: 1, now: 0 }),
    );
    let amended = |one: &One, proposal: &mut Proposal, by: &dyn Fn(&mut Amendment)| {
        let change = change(proposal);
        by(&mut change.amendment);
        change.approvals = one.approvals(&change.amendment.clone(), &one.others());
    };
    refuses(
        &|one, proposal| {
            amended(one, proposal, &|new| {
                new.protocol.start = Hash::of(b"other")
            })
        },
        Refusal::Change(ChangeError::Start),
    );
    refuses(
        &|one, proposal| amended(one, proposal, &|new| new.text = vec![b' '; 300_000]),
        Refusal::Change(ChangeError::Text { got: 300_000 }),
    );
    refuses(
        &|_, proposal| proposal.block.parent = outcome(),
        Refusal::ParentNotFinal,
    );
}

#[test]
fn a_change_may_not_end_before_rounds_that_are_final() {
    let mut one = One::follower(4).signed();
    one.finish_round(&one.all());
    let mut amendment = admitting(&one.epoch, "new");
    amendment.protocol.rounds = 1;
    let view = one.member.view();
    let mut proposal = one.changing(view, &amendment, &one.others());
    let (round, after) = (1, one.member.consensus.chain.checkpoint());
    assert_eq!((after.round, after.outcome), (round, outcome()));
    // Round 1 is final, so it may be the last one.
    assert_eq!(change(&mut proposal).check(&one.epoch, &after), Ok(()));
    change(&mut proposal).after.round = 2;
    let after = crate::Checkpoint { round: 2, ..after };
    let why = change(&mut proposal).check(&one.epoch, &after);
    assert_eq!(why, Err(ChangeError::Rounds { last: 1, now: 2 }));
}

#[test]
fn an_approval_that_its_member_did_not_sign_does_not_open() {
    let one = One::follower(4);
    let amendment = admitting(&one.epoch, "new");
    let mut proposal = one.changing(1, &amendment, &one.others());
    let mut approvals = change(&mut proposal).approvals.to_vec();
    approvals[1].signature = approvals[0].signature;
    change(&mut proposal).approvals = approvals.into();
    let lead = one.epoch.lead(1);
    let (_, frame) = one.sealed(lead, 0, 1, Body::Proposal(Box::new(proposal)));
    let opened = envelope::open(&one.epoch, &Strict, &one.member.known(), &frame);
    assert_eq!(opened, Err(OpenError::Approvals));
}

#[test]
pub(super) fn an_amendment_that_cannot_come_into_force_is_refused() {
    let mut one = One::follower(4);
    let mut amendment = admitting(&one.epoch, "new");
    amendment.protocol.start = Hash::of(b"other");
    let from = one.others()[0];
    let why = || Refusal::Change(ChangeError::Start);
    let text = Body::Amendment(Box::new(amendment.clone()));
    assert_eq!(one.hear(from, 0, 0, text), [refused(from, 0, why())]);
    let own = one.step(approve(&amendment));
    assert_eq!(own, [refused(one.me, 0, why())]);
}

#[test]
fn a_member_leaves_by_itself_except_where_protection_would_be_lost() {
    for (n, alone) in [
        (2, true),
        (3, true),
        (4, false),
        (5, true),
        (6, true),
        (7, false),
        (8, true),
        (10, false),
        (100, false),
    ] {
        let epoch = epoch(n, 5);
        for at in [0, n - 1] {
            let member = MemberIndex(at);
            let amendment = Amendment::leaving(&epoch, member);
            assert_eq!(amendment.silos.len(), usize::from(n) - 1);
            let leaver = amendment.leaver(&epoch);
            assert_eq!(leaver, alone.then_some(member), "{at} of {n}");
            let needed = if alone { 1 } else { epoch.roster.quorum() };
            assert_eq!(amendment.needed(&epoch), needed);
        }
        // Not with anything else besides.
        let mut more = Amendment::leaving(&epoch, MemberIndex(0));
        more.protocol.rounds += 1;
        assert_eq!(more.leaver(&epoch), None);
        let mut text = Amendment::leaving(&epoch, MemberIndex(0));
        text.text = b"text".to_vec();
        assert_eq!(text.leaver(&epoch), None);
        let mut newer = Amendment::leaving(&epoch, MemberIndex(0));
        newer.format += 1;
        assert_eq!(newer.leaver(&epoch), None);
        let mut two = Amendment::leaving(&epoch, MemberIndex(0));
        two.silos.pop();
        assert_eq!(two.leaver(&epoch), None);
    }
    // The approval of another member counts for nothing.
    let mut one = One::follower(5);
    let leaver = one.others()[0];
    let amendment = Amendment::leaving(&one.epoch, leaver);
    let proposal = one.changing(1, &amendment, &[one.others()[1]]);
    let why = ChangeError::Approvals { got: 0, needed: 1 };
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, why.into()));
    let mut one = One::follower(5);
    let proposal = one.changing(1, &amendment, &[leaver]);
    let votes = one.notarizes(&proposal.block, Checked::Structure);
    assert!(one.propose(1, &proposal).ends_with(&votes));
}

/// The block of a change in view 1, and the proof that it is final: at once, or with an empty
/// block after it.
fn final_change(one: &One, amendment: &Amendment, with_empty: bool) -> Passage {
    let block = one.changing(1, amendment, &one.others()).block;
    let blocks: Vec<Block> = if with_empty {
        let empty = one.block(2, block.hash(), Content::Empty);
        vec![block, empty]
    } else {
        vec![block]
    };
    let last = blocks.last().unwrap();
    let proof = one.certificate(last.view, Verdict::Final(last.hash()));
    Passage { blocks, proof }
}

#[test]
fn a_final_change_ends_the_epoch() {
    for with_empty in [false, true] {
        let mut one = One::follower(4).contributed();
        let amendment = admitting(&one.epoch, "new");
        let passage = final_change(&one, &amendment, with_empty);
        let proposal = one.changing(1, &amendment, &one.others());
        one.propose(1, &proposal);
        if with_empty {
            let notarised = one.certificate(1, Verdict::Notarised(proposal.block.hash()));
            one.add_certificate(&notarised);
            let empty = one.empty(2, &notarised);
            assert_eq!(empty.block, passage.blocks[1]);
            one.propose(2, &empty);
        }
        let effects = one.add_certificate(&passage.proof);
        let end = [
            Effect::Persist(Record::Final {
                blocks: passage.blocks.clone(),
                proof: passage.proof.clone(),
            }),
            Effect::EpochOver(Box::new(passage)),
        ];
        assert!(effects.ends_with(&end), "{effects:?}");
        // Nothing follows, whatever happens.
        assert!(one.member.epoch_over());
        assert_eq!(one.member.deadline(), None);
        assert_eq!(one.skip(2), []);
        assert_eq!(one.at(1_000_000), []);
    }
}

#[test]
fn a_passage_ends_the_epoch_of_a_member_that_was_away() {
    let mut one = One::follower(4);
    let amendment = admitting(&one.epoch, "new");
    let passage = final_change(&one, &amendment, true);
    let effects = one.read(&envelope::sign_passage(&one.epoch, &passage));
    let expected = [
        Effect::Persist(Record::Final {
            blocks: passage.blocks.clone(),
            proof: passage.proof.clone(),
        }),
        Effect::EpochOver(Box::new(passage)),
    ];
    assert_eq!(effects, expected);
    assert!(one.member.epoch_over());
}

#[test]
fn a_passage_is_checked_part_by_part() {
    let one = One::follower(4);
    let amendment = admitting(&one.epoch, "new");
    let refused = |change: &dyn Fn(&mut Passage)| {
        let mut passage = final_change(&one, &amendment, true);
        change(&mut passage);
        passage.verify(&one.epoch, &Strict).unwrap_err()
    };
    assert_eq!(
        refused(&|passage| passage.blocks.clear()),
        PassageError::Blocks
    );
    assert_eq!(
        refused(&|passage| drop(passage.blocks.pop())),
        PassageError::Blocks
    );
    assert_eq!(
        refused(&|passage| drop(passage.blocks.remove(0))),
        ChangeError::NoChange.into()
    );
    assert!(matches!(
        refused(&|passage| passage.proof.votes = passage.proof.votes[1..].into()),
        PassageError::Certificate(_)
    ));
    // Blocks after the change are empty ones of this epoch.
    let other_second = |change: &dyn Fn(&mut Block)| {
        refused(&|passage| {
            change(&mut passage.blocks[1]);
            let last = &passage.blocks[1];
            passage.proof = one.certificate(2, Verdict::Final(last.hash()));
        })
    };
    let elsewhere = Hash::of(b"another epoch");
    assert_eq!(
        other_second(&|block| block.epoch = elsewhere),
        PassageError::Blocks
    );
    let again = one.changing(2, &amendment, &one.others()).block.content;
    assert_eq!(
        other_second(&|block| block.content = again.clone()),
        PassageError::Blocks
    );
    // Nor does a change of another epoch begin the next one.
    let mut foreign = one.changing(1, &amendment, &one.others()).block;
    foreign.epoch = elsewhere;
    assert_eq!(one.epoch.next(&foreign).unwrap_err(), ChangeError::NoChange);
    // A certificate of members that vote for a block without approvals.
    let mut unapproved = one.changing(1, &amendment, &one.others()[..2]);
    let view = unapproved.block.view;
    let proof = |block: &Block| one.certificate(view, Verdict::Final(block.hash()));
    let passage = Passage {
        proof: proof(&unapproved.block),
        blocks: vec![unapproved.block.clone()],
    };
    let why = ChangeError::Approvals { got: 2, needed: 3 };
    assert_eq!(passage.verify(&one.epoch, &Strict).unwrap_err(), why.into());
    let forged = {
        let signed = one.approvals(&amendment, &one.others());
        let mut forged = signed.to_vec();
        forged[2].signature = forged[1].signature;
        forged
    };
    change(&mut unapproved).approvals = forged.into();
    let passage = Passage {
        proof: proof(&unapproved.block),
        blocks: vec![unapproved.block],
    };
    let error = passage.verify(&one.epoch, &Strict).unwrap_err();
    assert_eq!(error, PassageError::Approvals);
}

#[test]
fn the_next_epoch_goes_on_from_the_last_outcome_with_views_from_1() {
    let mut one = One::follower(4).signed();
    let effects = one.finish_round(&one.all());
    let mut journal: Vec<_> = effects.iter().filter_map(persisted).collect();
    journal.push(Record::Applied { round: 1 });
    let view = one.member.view();
    let amendment = admitting(&one.epoch, "new");
    let block = one.changing(view, &amendment, &one.others()).block;
    let proof = one.certificate(view, Verdict::Final(block.hash()));
    let passage = Passage {
        blocks: vec![block.clone()],
        proof,
    };
    let effects = one.read(&envelope::sign_passage(&one.epoch, &passage));
    journal.extend(effects.iter().filter_map(persisted));
    let epochs = Epochs::replay(one.epoch.clone(), journal).unwrap();
    let next = &epochs.now;
    assert_eq!(
        (next.number, next.id, next.federation),
        (1, block.hash(), one.epoch.federation)
    );
    assert_eq!(next.roster.silos(), amendment.silos);
    assert_eq!(next.began, one.member.consensus.chain.checkpoint());
    assert_eq!(epochs.records, [Record::Applied { round: 1 }]);
    assert_eq!(epochs.former.len(), 1);
    assert_eq!(epochs.former[0].1, passage);
    // A member that adopted round 1 asks the others where they are, and plans round 2 at once.
    let me = next.roster.position(&key(one.me.0).public()).unwrap();
    let (mut two, effects) = One::start(next.clone(), me, Start::Kept(epochs.records.clone()));
    assert_eq!((two.member.view(), two.member.round()), (1, 2));
    assert!(effects.contains(&two.plans(2, outcome())), "{effects:?}");
    // Votes of the epoch before do not open in this one, and are answered with the passage.
    let (_, old) = one.sealed(one.others()[0], 0, view, Body::Nullify);
    let opened = envelope::open(next, &Strict, &two.member.known(), &old);
    assert_eq!(opened, Err(OpenError::Epoch));
    let of_old = envelope::epoch_of(&old).unwrap();
    let answers = epochs.answers();
    let (_, frame) = answers.iter().find(|(id, _)| *id == of_old).unwrap();
    let opened = envelope::open(&one.epoch, &Strict, &Default::default(), frame);
    assert_eq!(opened, Ok(Opened::Passage(Box::new(passage))));
    // One that has adopted nothing fetches the outcome of round 1 first.
    let newcomer = next.roster.position(&key(99).public()).unwrap();
    let mut effects = Vec::new();
    let config = Config::new(next.clone(), newcomer, key(99), SEED);
    Member::new(config, Start::Kept(Vec::new()), two.now, &mut effects);
    let fetches = |effect: &Effect| {
        matches!(effect, Effect::Work(Request::Apply { rounds, .. })
            if rounds.len() == 1 && rounds[0].round == 1 && rounds[0].outcome == outcome())
    };
    assert!(effects.iter().any(fetches), "{effects:?}");
    assert!(two.step(Input::Time).is_empty());
}

fn persisted(effect: &Effect) -> Option<Record> {
    match effect {
        Effect::Persist(record) => Some(record.clone()),
        _ => None,
    }
}
