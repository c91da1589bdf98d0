//! Every property fails on a minimal violation of it.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use protocol::certificate::Checked;
use protocol::effects::FinalRound;
use protocol::envelope::sign;
use protocol::evidence::Evidence;
use protocol::message::{
    Block, Content, Contribution, ContributionList, EntryFields, Learning, MemberScores, Proposal,
    RoundManifest,
};
use protocol::{Hash, SecretKey};

use super::*;
use crate::genesis::epoch;

struct Four {
    epoch: Arc<Epoch>,
    keys: Vec<SecretKey>,
    monitor: Monitor,
}

const NOW: Time = Time::ZERO;

impl Four {
    fn new(faulty: &[u16]) -> Self {
        let keys: Vec<_> = (1..5u8).map(|i| SecretKey::from_bytes(&[i; 32])).collect();
        let epoch = Arc::new(epoch(&keys, 9, protocol::parameters::Rotation::EveryRound));
        let faulty = faulty.iter().copied().map(MemberIndex).collect();
        let monitor = Monitor::new(epoch.clone(), faulty, Duration::ZERO);
        Self {
            epoch,
            keys,
            monitor,
        }
    }

    fn sends(&mut self, who: u16, round: u64, view: u64, body: Body) -> Result<(), Violation> {
        let me = MemberIndex(who);
        let (_, frame) = sign(&self.epoch, &self.keys[me.at()], round, view, me, body);
        self.monitor.sent(NOW, me, None, &frame)
    }

    fn all(&mut self, voters: &[u16], view: u64, body: &Body) -> Result<(), Violation> {
        voters
            .iter()
            .try_for_each(|&who| self.sends(who, 0, view, body.clone()))
    }

    fn proposes(&mut self, who: u16, view: u64, parent: Hash, content: Content) -> Hash {
        let block = Block {
            epoch: self.epoch.id,
            view,
            parent,
            content,
        };
        let hash = block.hash();
        let proposal = Proposal {
            block,
            parent: None,
            skipped: Vec::new(),
        };
        self.sends(who, 0, view, Body::Proposal(Box::new(proposal)))
            .unwrap();
        hash
    }

    fn contributes(&mut self, who: u16, round: u64) -> Contribution {
        let contribution = self.contribution(who);
        self.sends(who, round, 0, Body::Contribution(contribution.clone()))
            .unwrap();
        contribution
    }

    fn contribution(&self, who: u16) -> Contribution {
        let blob = Hash::of(&[who as u8]);
        let fields = EntryFields {
            blob,
            size: 9,
            coalition: None,
            weight: None,
            member: None,
        };
        let nonce = [who as u8; 32];
        Contribution {
            plan: Hash::of(b"plan"),
            fields,
            nonce,
            metrics: Vec::new(),
        }
    }

    fn learning(&self, manifest: &RoundManifest) -> Content {
        Content::Learning(Learning {
            round: 1,
            plan: Hash::of(b"plan"),
            manifest: manifest.root(),
            inclusions: Default::default(),
            decision: Vec::new(),
            outcome: Hash::of(b"outcome"),
        })
    }
}

fn property(result: Result<(), Violation>) -> &'static str {
    result.unwrap_err().property.split(' ').next().unwrap()
}

fn notarize(block: Hash) -> Body {
    Body::Notarize {
        block,
        checked: Checked::Structure,
    }
}

#[test]
fn s1_fails_on_two_notarised_blocks_of_a_view() {
    // Two of four members are faulty, more than the protocol tolerates.
    let mut four = Four::new(&[2, 3]);
    let epoch = four.epoch.id;
    let first = four.proposes(2, 1, epoch, Content::Empty);
    let second = four.proposes(2, 1, first, Content::Empty);
    four.all(&[0, 2, 3], 1, &notarize(first)).unwrap();
    assert_eq!(property(four.all(&[1, 2, 3], 1, &notarize(second))), "S1");
}

#[test]
fn s2_fails_on_a_view_both_nullified_and_final() {
    let mut four = Four::new(&[2, 3]);
    let epoch = four.epoch.id;
    let block = four.proposes(2, 1, epoch, Content::Empty);
    four.all(&[0, 2, 3], 1, &Body::Finalize { block }).unwrap();
    assert_eq!(property(four.all(&[1, 2, 3], 1, &Body::Nullify)), "S2");
}

#[test]
fn s3_fails_on_final_blocks_that_fork() {
    let mut four = Four::new(&[]);
    let epoch = four.epoch.id;
    let first = four.proposes(0, 1, epoch, Content::Empty);
    let second = four.proposes(1, 2, epoch, Content::Empty);
    four.all(&[0, 1, 2], 1, &Body::Finalize { block: first })
        .unwrap();
    assert_eq!(
        property(four.all(&[0, 1, 2], 2, &Body::Finalize { block: second })),
        "S3"
    );
}

#[test]
fn s4_fails_on_an_honest_member_that_votes_twice() {
    let mut four = Four::new(&[3]);
    let (one, other) = (Hash::of(b"one"), Hash::of(b"other"));
    four.sends(3, 0, 1, notarize(one)).unwrap();
    four.sends(3, 0, 1, notarize(other)).unwrap();
    four.sends(0, 0, 1, notarize(one)).unwrap();
    four.sends(0, 0, 1, Body::Nullify).unwrap();
    assert_eq!(
        property(four.sends(0, 0, 1, Body::Finalize { block: one })),
        "S4"
    );
}

#[test]
fn s5_fails_on_a_round_applied_twice_or_before_it_is_final() {
    let mut four = Four::new(&[]);
    let manifest = RoundManifest {
        entries: Vec::new(),
        scores: None,
    };
    let content = four.learning(&manifest);
    let epoch = four.epoch.id;
    four.sends(0, 1, 1, Body::Manifest(manifest)).unwrap();
    let block = four.proposes(0, 1, epoch, content);
    let round = [FinalRound {
        round: 1,
        block,
        outcome: Hash::of(b"outcome"),
        position: None,
    }];
    assert_eq!(
        property(four.monitor.applied(NOW, MemberIndex(1), &round)),
        "S5",
        "not final yet"
    );
    let mut four = {
        four.monitor = Monitor::new(four.epoch.clone(), BTreeSet::new(), Duration::ZERO);
        four
    };
    let manifest = RoundManifest {
        entries: Vec::new(),
        scores: None,
    };
    four.sends(0, 1, 1, Body::Manifest(manifest.clone()))
        .unwrap();
    let content = four.learning(&manifest);
    assert_eq!(four.proposes(0, 1, epoch, content), block);
    four.all(&[0, 1, 2], 1, &Body::Finalize { block }).unwrap();
    four.monitor.applied(NOW, MemberIndex(1), &round).unwrap();
    assert_eq!(
        property(four.monitor.applied(NOW, MemberIndex(1), &round)),
        "S5"
    );
}

#[test]
fn s6_fails_on_entries_and_rows_that_their_authors_did_not_send() {
    for forged_row in [false, true] {
        let mut four = Four::new(&[3]);
        let federation = four.epoch.federation;
        let mut entries: Vec<_> = (0..3)
            .map(|who| four.contributes(who, 1).entry(&federation, 1))
            .collect();
        entries.sort_by_key(|entry| entry.id);
        let mut losses: Vec<_> = entries
            .iter()
            .map(|entry| (entry.fields.blob, 1.0))
            .collect();
        losses.sort_by_key(|&(blob, _)| blob);
        for who in 0..3 {
            let entry = entries[0].id;
            four.sends(
                who,
                1,
                0,
                Body::Scores(MemberScores {
                    entry,
                    losses: losses.clone(),
                }),
            )
            .unwrap();
        }
        let mut scores = vec![vec![1.0; 3]; 3];
        if forged_row {
            scores[1][1] = 2.0;
        } else {
            // Two entries that no member contributed.
            entries[0].id = Hash::of(b"0");
            entries[1].id = Hash::of(b"1");
        }
        let manifest = RoundManifest {
            entries,
            scores: Some(scores),
        };
        let content = four.learning(&manifest);
        four.sends(3, 1, 1, Body::Manifest(manifest)).unwrap();
        let epoch = four.epoch.id;
        let block = four.proposes(3, 1, epoch, content);
        assert_eq!(
            property(four.all(&[0, 1, 3], 1, &Body::Finalize { block })),
            "S6"
        );
    }
}

#[test]
fn s7_fails_on_evidence_against_an_honest_member() {
    let mut four = Four::new(&[3]);
    let sign = |four: &Four, who: u16, body: Body| {
        sign(
            &four.epoch,
            &four.keys[usize::from(who)],
            0,
            1,
            MemberIndex(who),
            body,
        )
        .0
    };
    let evidence = |four: &Four, who: u16| {
        let (one, other) = (notarize(Hash::of(b"one")), notarize(Hash::of(b"other")));
        Evidence::of(&sign(four, who, one), &sign(four, who, other)).unwrap()
    };
    let (guilty, innocent) = (evidence(&four, 3), evidence(&four, 1));
    let mut report = |evidence| {
        let report = Report::Fault(Box::new(evidence));
        four.monitor.reported(NOW, MemberIndex(0), &report)
    };
    report(guilty).unwrap();
    assert_eq!(property(report(innocent)), "S7");
}

#[test]
fn s8_fails_on_a_vote_for_a_block_without_ones_receipted_entry() {
    for crash in [false, true] {
        let mut four = Four::new(&[]);
        let lead = four.epoch.lead(1);
        let me = MemberIndex((lead.0 + 1) % 4);
        let entry = four
            .contributes(me.0, 1)
            .entry(&four.epoch.federation.clone(), 1);
        let key = &four.keys[lead.at()];
        let (_, receipt) = sign(
            &four.epoch,
            key,
            0,
            1,
            lead,
            Body::Receipt { entry: entry.id },
        );
        four.monitor.delivered(NOW, me, &receipt).unwrap();
        if crash {
            four.monitor.crashed(NOW, me, false).unwrap();
        }
        let manifest = RoundManifest {
            entries: Vec::new(),
            scores: None,
        };
        let content = four.learning(&manifest);
        four.sends(
            lead.0,
            1,
            1,
            Body::ContributionList(ContributionList {
                entries: Vec::new(),
            }),
        )
        .unwrap();
        let epoch = four.epoch.id;
        let block = four.proposes(lead.0, 1, epoch, content);
        let vote = four.sends(me.0, 0, 1, notarize(block));
        if crash {
            vote.unwrap()
        } else {
            assert_eq!(property(vote), "S8")
        }
    }
}

#[test]
fn s9_fails_on_a_round_on_a_block_that_is_not_final() {
    let mut four = Four::new(&[]);
    let epoch = four.epoch.id;
    let parent = four.proposes(0, 1, epoch, Content::Empty);
    four.all(&[0, 1, 2], 1, &notarize(parent)).unwrap();
    let content = four.learning(&RoundManifest {
        entries: Vec::new(),
        scores: None,
    });
    let block = four.proposes(1, 2, parent, content);
    assert_eq!(property(four.all(&[0, 1, 2], 2, &notarize(block))), "S9");
}

/// Sender, round, view and body of a message about a contribution.
type MakeBody<'a> = &'a dyn Fn(&Contribution, &Four) -> (u16, u64, u64, Body);

/// Member 1 contributes in round 1, while member 3 leads; then this message is sent to a member.
fn told(body: MakeBody<'_>, to: u16) -> Result<(), Violation> {
    let mut four = Four::new(&[]);
    let (me, lead) = (MemberIndex(1), MemberIndex(3));
    let entered = Report::Entered {
        view: 1,
        lead,
        round: 1,
    };
    four.monitor.reported(NOW, me, &entered).unwrap();
    let contribution = four.contribution(1);
    let (by, round, view, body) = body(&contribution, &four);
    let of = Body::Contribution(contribution);
    let sign = |by: u16, round, view, body| {
        let key = &four.keys[usize::from(by)];
        sign(&four.epoch, key, round, view, MemberIndex(by), body).1
    };
    let (own, frame) = (sign(1, 1, 0, of), sign(by, round, view, body));
    four.monitor.sent(NOW, me, Some(lead), &own).unwrap();
    let by = MemberIndex(by);
    four.monitor.sent(NOW, by, Some(MemberIndex(to)), &frame)?;
    four.monitor.ended(NOW)
}

/// What member 1, whose entry is in round 1, may be named with in a message of member 0 to member 2,
/// while member 3 leads.
#[test]
fn s10_fails_where_a_message_to_another_than_the_lead_names_an_author_with_its_entry() {
    let contribution = |own: &Contribution, _: &Four| (1, 1, 0, Body::Contribution(own.clone()));
    let scores = |own: &Contribution, four: &Four| {
        let entry = own.entry(&four.epoch.federation, 1).id;
        let losses = Vec::new();
        (1, 1, 0, Body::Scores(MemberScores { entry, losses }))
    };
    let contribution_list = |own: &Contribution, four: &Four, by: u16, member: Option<u16>| {
        let mut entry = own.entry(&four.epoch.federation, 1);
        entry.fields.member = member.map(MemberIndex);
        let entries = vec![entry];
        (
            by,
            1,
            1,
            Body::ContributionList(ContributionList { entries }),
        )
    };
    let proposal = |own: &Contribution, decision: &[u8]| {
        let learning = Learning {
            round: 1,
            plan: own.plan,
            manifest: Hash::of(b"sheet"),
            inclusions: Default::default(),
            decision: decision.to_vec(),
            outcome: Hash::of(b"outcome"),
        };
        let block = Block {
            epoch: Hash::of(b"epoch"),
            view: 1,
            parent: Hash::of(b"parent"),
            content: Content::Learning(learning),
        };
        let (parent, skipped) = (None, Vec::new());
        let proposal = Proposal {
            block,
            parent,
            skipped,
        };
        (3, 0, 1, Body::Proposal(Box::new(proposal)))
    };
    for to in [1, 3] {
        // To the author, and to the lead.
        told(&contribution, to).unwrap();
        told(&|own, four| contribution_list(own, four, 3, Some(1)), to).unwrap();
    }
    assert_eq!(property(told(&contribution, 2)), "S10");
    assert_eq!(property(told(&scores, 2)), "S10");
    // The list of all entries, also where an author signs it as lead.
    told(&|own, four| contribution_list(own, four, 3, None), 2).unwrap();
    told(&|own, four| contribution_list(own, four, 1, None), 2).unwrap();
    let named = told(&|own, four| contribution_list(own, four, 3, Some(1)), 2);
    assert_eq!(property(named), "S10");
    // A decision in which a model's hash stands at any place, beside its author's key or not.
    let blob = |own: &Contribution| [&[9][..], &own.fields.blob.0, &[9]].concat();
    told(&|own, _| proposal(own, &blob(own)), 2).unwrap();
    let keyed = told(
        &|own, four| {
            let key = four.keys[1].public().0;
            proposal(own, &[&blob(own)[..], &key].concat())
        },
        2,
    );
    assert_eq!(property(keyed), "S10");
}
