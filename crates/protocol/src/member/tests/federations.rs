//! Whole small federations, on the simulated table of `table.rs`.

use super::prelude::*;
use super::table::{TestFederation, key};
use crate::certificate::Checked;
use crate::message::Phase;
use crate::parameters::Epoch;

#[test]
fn a_round_without_faults_takes_one_view_and_no_timer() {
    for (n, cross) in [(1, false), (2, true), (3, false), (4, true), (7, true)] {
        let mut table = TestFederation::new(n, 3, cross);
        table.run();
        assert!(
            table.members.iter().flatten().all(Member::complete),
            "{n} members"
        );
        for i in 0..usize::from(n) {
            assert_eq!(table.finals(i), [(1, 1), (2, 2), (3, 3)]);
        }
        assert_eq!(table.now, Time::ZERO);
        assert_eq!(table.trainings, 3 * usize::from(n));
        table.chains_agree();
    }
}

#[test]
fn a_lead_that_crashes_costs_one_view_and_no_second_training() {
    for phase in [
        Phase::Collecting,
        Phase::Scoring,
        Phase::Including,
        Phase::Deciding,
        Phase::Voting,
    ] {
        let mut table = TestFederation::new(4, 3, true);
        let lead = table.epoch.lead(1).at();
        let reached = |table: &TestFederation| {
            let leading = Report::Leading {
                view: 1,
                round: 1,
                phase,
            };
            table
                .reports
                .iter()
                .any(|(at, report)| *at == lead && *report == leading)
        };
        while !reached(&table) {
            let (to, input) = table.queue.pop_front().expect("the phase is reached");
            table.step(to, input);
        }
        table.members[lead] = None;
        table.pass(200);
        let other = (lead + 1) % 4;
        let views: Vec<_> = table.finals(other).iter().map(|(_, view)| *view).collect();
        assert_eq!(table.finals(other).len(), 3, "{phase:?}");
        assert!(views[0] <= 2, "{phase:?}: {views:?}");
        // The others train once in every round, the lead at most once.
        assert!((9..=10).contains(&table.trainings), "{phase:?}");
        table.chains_agree();
    }
}

#[test]
fn a_member_that_was_away_catches_up_and_takes_part() {
    // More rounds than fit one answer.
    let mut table = TestFederation::new(4, 80, true);
    table.members[2] = None;
    table.pass(2000);
    assert_eq!(table.finals(0).len(), 80);
    table.start(2, Start::Kept(table.journal[2].clone()));
    table.pass(10);
    // Only the newest outcomes are adopted, none twice.
    let applied: Vec<_> = table.journal[2]
        .iter()
        .filter_map(|record| match record {
            Record::Applied { round } => Some(*round),
            _ => None,
        })
        .collect();
    assert!(
        applied.windows(2).all(|pair| pair[0] < pair[1]),
        "{applied:?}"
    );
    assert_eq!(applied.last(), Some(&80));
    table.chains_agree();
}

/// The members that member `i` reported as complete.
fn heard_complete(table: &TestFederation, i: usize) -> Vec<u16> {
    let heard = |(at, report): &(usize, Report)| match report {
        Report::MemberComplete { member } if *at == i => Some(member.0),
        _ => None,
    };
    let mut heard: Vec<_> = table.reports.iter().filter_map(heard).collect();
    heard.sort_unstable();
    heard
}

#[test]
fn every_member_reports_once_that_each_other_is_complete() {
    let mut table = TestFederation::new(4, 2, true);
    table.run();
    assert_eq!(
        heard_complete(&table, 0),
        [],
        "Complete is not sent at once"
    );
    table.pass(1);
    for i in 0..4 {
        let others: Vec<_> = (0..4).filter(|&other| usize::from(other) != i).collect();
        assert_eq!(heard_complete(&table, i), others);
    }
    // Nothing more is sent, except Complete to a member that comes back, and by it.
    table.reports.clear();
    let records = table.journal[2].clone();
    table.start(2, Start::Kept(records));
    table.run();
    assert_eq!(heard_complete(&table, 2), [0, 1, 3]);
    let done =
        |(at, report): &(usize, Report)| *at == 2 && matches!(report, Report::Complete { .. });
    assert_eq!(
        table.reports.iter().filter(|report| done(report)).count(),
        1
    );
}

#[test]
fn a_member_that_arrives_after_the_last_round_catches_up_at_once() {
    let mut table = TestFederation::new(4, 3, true);
    table.members[3] = None;
    table.pass(200);
    let then = table.now;
    table.journal[3].clear();
    table.start(3, Start::New);
    table.run();
    assert!(table.members[3].as_ref().is_some_and(Member::complete));
    assert_eq!(table.now, then, "no member waited for a timer");
    table.pass(1);
    for i in 0..3 {
        assert!(heard_complete(&table, i).contains(&3), "{i}");
    }
    table.chains_agree();
}

#[test]
fn a_restarted_member_keeps_its_votes() {
    let mut table = TestFederation::new(4, 1, false);
    table.run();
    let before: Vec<_> = table.journal[1]
        .iter()
        .filter(|r| matches!(r, Record::Vote(_)))
        .cloned()
        .collect();
    assert_eq!(before.len(), 2, "Notarize and Finalize");
    // Everything but the last two records: the vote is there, its certificate is not.
    let kept: Vec<_> = table.journal[1]
        .iter()
        .take_while(|r| !matches!(r, Record::Certified(_) | Record::Final { .. }))
        .cloned()
        .collect();
    let me = MemberIndex(1);
    let mut effects = Vec::new();
    let config = Config::new(table.epoch.clone(), me, key(1), [0; 32]);
    let mut member = Member::new(config, Start::Kept(kept), Time::ZERO, &mut effects);
    assert_eq!(member.view(), 1);
    let another = Hash::of(b"another block");
    effects.clear();
    member.voting().notarize(another, Checked::Structure);
    assert!(effects.is_empty() && member.out.is_empty());
}

#[test]
fn a_member_without_its_journal_signs_nothing_for_two_cycles() {
    let mut table = TestFederation::new(4, 20, false);
    while table.finals(0).len() < 2 {
        let (to, input) = table.queue.pop_front().unwrap();
        table.step(to, input);
    }
    table.members[3] = None;
    table.journal[3].clear();
    table.start(3, Start::Lost);
    table.pass(3000);
    table.chains_agree();
    let first = table.journal[3].iter().find_map(|record| match record {
        Record::Vote(message) => Some(message.view),
        _ => None,
    });
    // Lost in cycle 0: silent until a block of cycle 2 is final.
    assert!(first.is_some_and(|view| view > 8), "{first:?}");
}

#[test]
fn two_proposals_of_a_view_make_evidence_and_nullify_it() {
    let mut table = TestFederation::new(4, 1, false);
    table.lost = |_, message| matches!(message.body, Body::Notarize { .. });
    table.run();
    let lead = table.epoch.lead(1);
    let other = (lead.at() + 1) % 4;
    let member = table.members[other].as_mut().unwrap();
    let first = member.consensus.view.judged.as_ref().map(|_| ()).is_some();
    assert!(first, "the proposal arrived");
    let mut proposal = match table.journal[lead.at()]
        .iter()
        .find_map(|record| match record {
            Record::Proposed(message) => Some(message.body.clone()),
            _ => None,
        }) {
        Some(Body::Proposal(proposal)) => *proposal,
        _ => panic!("the lead proposed"),
    };
    proposal.block.content = crate::message::Content::Empty;
    let body = Body::Proposal(Box::new(proposal));
    let (message, _) = envelope::sign(&table.epoch, &key(lead.0), 0, 1, lead, body);
    let mut effects = Vec::new();
    member.step(
        Time::ZERO,
        Input::Opened(Opened::Message(message)),
        &mut effects,
    );
    let fault =
        |effect: &Effect| matches!(effect, Effect::Report(Report::Fault(e)) if e.member == lead);
    assert!(effects.iter().any(fault));
    let vote = |effect: &Effect| matches!(effect, Effect::Persist(Record::Vote(m)) if m.body == Body::Nullify);
    assert!(effects.iter().any(vote));
}

/// Runs until the lead of view 1 comes to a phase of round 1.
fn until(table: &mut TestFederation, phase: Phase) -> usize {
    let lead = table.epoch.lead(1).at();
    let leading = Report::Leading {
        view: 1,
        round: 1,
        phase,
    };
    while !table.reports.contains(&(lead, leading.clone())) {
        let (to, input) = table.queue.pop_front().expect("the phase is reached");
        table.step(to, input);
    }
    lead
}

const PHASES: [Phase; 5] = [
    Phase::Collecting,
    Phase::Scoring,
    Phase::Including,
    Phase::Deciding,
    Phase::Voting,
];

#[test]
fn a_lead_that_dies_for_good_in_any_phase_does_not_stop_the_others() {
    for (n, cross) in [(4, true), (4, false), (7, true), (10, false)] {
        for phase in PHASES {
            if phase == Phase::Scoring && !cross {
                continue;
            }
            let mut table = TestFederation::new(n, 3, cross);
            let lead = until(&mut table, phase);
            table.kill(lead);
            table.pass(200);
            let other = (lead + 1) % usize::from(n);
            assert_eq!(table.finals(other).len(), 3, "{n} {phase:?}");
            table.chains_agree();
        }
    }
}

#[test]
fn f_dead_members_do_not_stop_the_others() {
    for (n, f) in [(4, 1), (7, 2), (10, 3)] {
        let mut table = TestFederation::new(n, 6, false);
        for dead in 0..f {
            table.run_to_round(1 + dead);
            table.reports.clear();
            // The lead, right after its proposal.
            let voting = |(_, report): &(usize, Report)| {
                matches!(
                    report,
                    Report::Leading {
                        phase: Phase::Voting,
                        ..
                    }
                )
            };
            table.pass_while(400, |table| !table.reports.iter().any(voting));
            let (lead, _) = *table.reports.iter().find(|report| voting(report)).unwrap();
            table.kill(lead);
        }
        table.pass(1000);
        let living = (0..usize::from(n)).find(|&i| table.members[i].is_some());
        let living = table.members[living.unwrap()].as_ref();
        assert!(living.is_some_and(Member::complete));
        table.chains_agree();
    }
}

#[test]
fn a_lead_that_withholds_its_model_does_not_stop_the_others() {
    for (n, cross) in [(4, true), (4, false), (7, true), (10, false)] {
        for member in 0..usize::from(n) {
            let mut table = TestFederation::new(n, 3, cross);
            table.secretive.insert(member);
            table.pass(400);
            for i in 0..usize::from(n) {
                assert_eq!(
                    table.finals(i).len(),
                    3,
                    "{n} members, {member} is secretive"
                );
            }
            table.chains_agree();
        }
    }
}

#[test]
fn a_dead_member_costs_patience_at_most_once() {
    // With three members none may be missing unless marked absent.
    for n in [3, 4, 7] {
        let mut table = TestFederation::new(n, 8, false);
        table.run_to_round(2);
        let dead = table.epoch.lead(40).at();
        table.members[dead] = None;
        table.pass(2000);
        let patience = table.epoch.protocol.patience;
        let lost = table.epoch.protocol.rounds as u32;
        // Patience once; later rounds take D, and the silence span where the crashed member would lead.
        let most = table.epoch.heartbeat() * (patience + 8 * lost);
        assert!(table.now - Time::ZERO < most, "{n}: {:?}", table.now);
    }
}

#[test]
fn a_slow_member_is_waited_for_less_and_less_often_until_it_contributes() {
    // Of three members, two wait for the third until patience is over.
    let mut table = TestFederation::new(3, 40, false);
    table.lost = |_, message| {
        let leading = message.body.kind().scope().view
            && !matches!(
                message.body,
                Body::Notarize { .. } | Body::Finalize { .. } | Body::Nullify
            );
        let contribution = matches!(message.body, Body::Contribution(_));
        message.sender == MemberIndex(1) && (leading || contribution)
    };
    table.pass(3000);
    let patience = table.epoch.protocol.patience;
    // In rounds 1, 3, 7, 15 and 31; and where it would lead, three heartbeats or a few more.
    let waits = |table: &TestFederation| (table.now - Time::ZERO).as_secs() as u32 / patience;
    assert!((5..=12).contains(&waits(&table)), "{}", waits(&table));
    // A member that is slower than the others, but not too slow, is in every second round at least.
    let mut table = TestFederation::new(3, 12, false);
    table.lost = |_, message| {
        let early = matches!(message.round, 3 | 4);
        early && message.sender == MemberIndex(1) && matches!(message.body, Body::Contribution(_))
    };
    table.pass(3000);
    let authors = |round: u64| {
        table.reports.iter().find_map(|(at, report)| match report {
            Report::Final {
                round: of, authors, ..
            } if (*at, *of) == (0, round) => Some(authors.len()),
            _ => None,
        })
    };
    assert_eq!([1, 2, 12].map(authors), [Some(3); 3]);
}

#[test]
fn a_question_that_is_asked_again_keeps_its_nonce() {
    // So that a round trip may be longer than a heartbeat.
    let mut table = TestFederation::new(4, 2, false);
    table.queue.clear();
    let mut member = table.members[0].take().unwrap();
    let nonces = |epoch: &Epoch, effects: &mut Vec<Effect>| -> Vec<(MemberIndex, u64)> {
        let question = |effect: Effect| match effect {
            Effect::Send { to, frame } => {
                let opened =
                    envelope::open(epoch, &crate::identity::Strict, &Known::default(), &frame);
                match opened.unwrap() {
                    Opened::Message(Message {
                        body: Body::SyncRequest { nonce, .. },
                        ..
                    }) => Some((to, nonce)),
                    _ => None,
                }
            }
            _ => None,
        };
        effects.drain(..).filter_map(question).collect()
    };
    let (mut effects, round_trip) = (Vec::new(), Duration::from_millis(2500));
    for peer in [1, 2].map(MemberIndex) {
        member.step(Time::ZERO, Input::Up { peer, round_trip }, &mut effects);
    }
    let first = nonces(&table.epoch, &mut effects);
    assert_eq!(first.len(), 2);
    assert_eq!(first[0].1, first[1].1, "it is asked, and signed, once");
    for heartbeat in 1..3 {
        member.step(
            Time::ZERO + table.epoch.heartbeat() * heartbeat,
            Input::Time,
            &mut effects,
        );
        let again = nonces(&table.epoch, &mut effects);
        assert!(
            first.iter().all(|question| again.contains(question)),
            "{again:?}"
        );
    }
}

#[test]
fn a_round_whose_only_participants_died_leaves_the_models_as_they_are() {
    let mut table = TestFederation::new(4, 5, false);
    // Round 3 names member 2 alone, which has crashed by then; round 4 names it and another.
    table.participants = |round| match round {
        3 => Some(vec![MemberIndex(2)]),
        4 => Some(vec![MemberIndex(1), MemberIndex(2)]),
        _ => None,
    };
    table.run_to_round(3);
    table.kill(2);
    table.pass(400);
    for i in [0, 1, 3] {
        assert_eq!(table.finals(i).len(), 5);
    }
    let authors: Vec<_> = table
        .reports
        .iter()
        .filter_map(|(at, report)| match report {
            Report::Final { authors, .. } if *at == 0 => Some(authors.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(authors[2], []);
    assert_eq!(authors[3], [MemberIndex(1)]);
    table.chains_agree();
}

#[test]
fn few_participants_are_all_waited_for_until_patience_is_over() {
    let mut table = TestFederation::new(4, 1, false);
    table.participants = |_| Some(vec![MemberIndex(1), MemberIndex(2)]);
    table.members[2] = None;
    table.pass(400);
    assert!(table.now >= Time::ZERO + table.epoch.patience());
    assert_eq!(table.finals(0).len(), 1);
}

#[test]
fn a_proposal_does_not_grow_with_the_views_that_failed() {
    let mut table = TestFederation::new(4, 2, false);
    // Proposals of forty views are lost.
    table.lost = |_, message| {
        message.view < 40 && matches!(message.body, Body::ContributionList(_) | Body::Proposal(_))
    };
    table.pass(60_000);
    assert!(table.finals(0)[0].1 >= 40);
    let largest = table
        .journal
        .iter()
        .flatten()
        .filter_map(|record| match record {
            Record::Proposed(message) => match &message.body {
                Body::Proposal(proposal) => Some(proposal.skipped.len()),
                _ => None,
            },
            _ => None,
        });
    assert!(largest.max().unwrap() <= 8);
}

#[test]
fn a_member_that_missed_many_failed_views_fetches_their_nullifications() {
    let mut table = TestFederation::new(4, 3, false);
    let asleep = 3;
    table.lost = |to, message| {
        let of_lead = matches!(message.body, Body::ContributionList(_) | Body::Proposal(_));
        message.view < 60 && (to == 3 || of_lead)
    };
    table.pass(100_000);
    assert_eq!(table.finals(asleep).len(), 3);
    table.chains_agree();
}
