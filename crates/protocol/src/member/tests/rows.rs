//! Rows that contributions claim: bounded by what their authors declared in the agreement.

use super::judge::checks;
use super::one::*;
use super::prelude::*;
use super::table::{epoch_declaring, key};
use crate::certificate::Verdict;
use crate::message::{ContributionList, Entry, EntryFields, RoundManifest};
use crate::parameters::{Epoch, Genesis, Privacy, ProtocolParameters};
use crate::roster::MOST_ROWS;

/// Four members that declare 100, 200, 300 and 400 rows.
fn declaring(change: impl FnOnce(&mut ProtocolParameters)) -> Arc<Epoch> {
    epoch_declaring(4, 5, &[100, 200, 300, 400], change)
}

/// A member of it that has trained in a round that weighs by rows, and claims this many itself.
fn trained(epoch: Arc<Epoch>, me: MemberIndex, claims: u64) -> One {
    let mut one = One::of(epoch, me);
    one.plan_with(|plan| plan.weights = true);
    let mut trained = one.trained(me);
    trained.fields.weight = Some(claims);
    let (round, result) = (1, Ok(trained));
    one.step(Input::Done(Answer::Trained { round, result }));
    one.hold_all();
    one
}

/// The fields of a member's contribution that claims this many rows.
fn claims(one: &One, by: MemberIndex, rows: u64) -> EntryFields {
    EntryFields {
        weight: Some(rows),
        ..one.trained(by).fields
    }
}

/// The entries of these members with their claims.
fn entries(one: &One, claimed: &[(MemberIndex, u64)]) -> Vec<Entry> {
    let entry = |&(by, rows): &(MemberIndex, u64)| {
        let mut contribution = one.contribution(by);
        contribution.fields = claims(one, by, rows);
        contribution.entry(&one.epoch.federation, 1)
    };
    let mut entries: Vec<_> = claimed.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.id);
    entries
}

fn members(rows: [u64; 4]) -> Vec<(MemberIndex, u64)> {
    (0..4).map(MemberIndex).zip(rows).collect()
}

#[test]
pub(super) fn a_contribution_that_claims_more_rows_than_its_author_declared_is_refused() {
    let cases = [
        (Some(100), 100, None),
        (Some(100), 101, Some(100)),
        (Some(100), 9_000_000_000_000_000, Some(100)),
        (Some(100), u64::MAX, Some(100)),
        (None, MOST_ROWS, None),
        (None, MOST_ROWS + 1, Some(MOST_ROWS)),
        (None, u64::MAX, Some(MOST_ROWS)),
    ];
    for (declared, got, most) in cases {
        let declared = declared.map_or(vec![], |rows| vec![rows; 4]);
        let epoch = epoch_declaring(4, 5, &declared, |_| {});
        let me = epoch.lead(1);
        let mut one = trained(epoch, me, 1);
        let by = one.others()[0];
        let mut contribution = one.contribution(by);
        contribution.fields = claims(&one, by, got);
        let fields = contribution.fields.clone();
        let effects = one.hear(by, 1, 0, Body::Contribution(contribution));
        let (round, from) = (1, by);
        let expected = match most {
            None => Effect::Work(Request::Admit {
                round,
                fields,
                from,
            }),
            Some(most) => refused(by, 1, Refusal::TooManyRows { got, most }),
        };
        assert_eq!(effects, [expected], "{got} of {declared:?}");
    }
}

/// A follower hears a contribution list with these claims, without names.
fn hears(rows: [u64; 4]) -> (One, Vec<Effect>) {
    let epoch = declaring(|_| {});
    let me = epoch.lead(0);
    let mut one = trained(epoch, me, rows[me.at()]);
    let entries = entries(&one, &members(rows));
    let effects = one.hear_lead(1, Body::ContributionList(ContributionList { entries }));
    (one, effects)
}

#[test]
pub(super) fn a_bundle_that_claims_more_rows_than_the_participants_declared_is_refused() {
    // Whose entry is whose is not known: only the order of sizes counts.
    for fits in [[100, 200, 300, 400], [1, 1, 1, 400], [100, 200, 300, 1]] {
        let (one, effects) = hears(fits);
        let manifest = RoundManifest {
            entries: entries(&one, &members(fits)),
            scores: None,
        };
        let manifest = manifest.root();
        let signs = one.sends(one.epoch.lead(1), 1, 0, Body::Inclusion { manifest });
        assert_eq!(effects, [signs], "{fits:?}");
    }
    let misfits = [
        ([100, 200, 300, 401], 401, 400),
        ([1, 1, 1, u64::MAX], u64::MAX, 400),
        ([1, 1, 301, 301], 301, 300),
        ([101, 101, 101, 101], 101, 100),
    ];
    for (rows, got, most) in misfits {
        let (one, effects) = hears(rows);
        let reason = Refusal::ImpossibleRows { got, most };
        assert_eq!(effects, one.refuses_lead(1, reason), "{rows:?}");
    }
}

#[test]
pub(super) fn a_sheet_that_claims_more_rows_than_its_signers_declared_is_refused() {
    // Without the member that declared most, nobody can have claimed 400 rows. All four members take
    // part, so the contribution list alone does not show it.
    let largest = MemberIndex(3);
    for (claim, most) in [(300, None), (400, Some(300))] {
        let epoch = declaring(|_| {});
        // One that has sent its entry itself, and neither is the first lead nor declared most.
        let member = |view| epoch.lead(view);
        let me = [0, 2, 3].map(member).into_iter().find(|me| *me != largest);
        let me = me.unwrap();
        let mut one = trained(epoch, me, 1);
        let authors = one.without(largest);
        let mut claimed: Vec<_> = authors.iter().map(|&by| (by, 1)).collect();
        let another = claimed.iter_mut().find(|(by, _)| *by != me).unwrap();
        another.1 = claim;
        let manifest = RoundManifest {
            entries: entries(&one, &claimed),
            scores: None,
        };
        let body = Body::ContributionList(ContributionList {
            entries: manifest.entries.clone(),
        });
        one.hear_lead(1, body);
        // One of four may be missing.
        let proposal = one.proposal_of(1, &manifest, &authors);
        let effects = one.propose(1, &proposal);
        match most {
            None => assert_eq!(effects, [checks(one.case(&proposal), one.holders(1))]),
            Some(most) => {
                let reason = Refusal::ImpossibleRows { got: claim, most };
                assert_eq!(effects, one.refuses_lead(1, reason));
            }
        }
    }
}

#[test]
pub(super) fn an_entry_with_a_name_is_held_against_what_that_member_declared() {
    // Sorted by size these claims would fit.
    for (rows, refusal) in [([100, 200, 300, 400], None), ([101, 1, 1, 1], Some(101))] {
        let epoch = declaring(|protocol| protocol.privacy = Privacy::ClearWithNames);
        let me = epoch.lead(0);
        let mut one = trained(epoch, me, rows[me.at()]);
        let entries = entries(&one, &members(rows));
        let effects = one.hear_lead(1, Body::ContributionList(ContributionList { entries }));
        match refusal {
            None => assert_eq!(effects.len(), 1, "{effects:?}"),
            Some(got) => {
                let reason = Refusal::TooManyRows { got, most: 100 };
                assert_eq!(effects, one.refuses_lead(1, reason));
            }
        }
    }
}

#[test]
fn an_entry_with_more_than_half_of_the_weight_is_reported_when_its_round_is_final() {
    for (rows, heavy) in [([1, 1, 1, 3], false), ([1, 1, 1, 4], true)] {
        let (mut one, _) = hears(rows);
        let manifest = RoundManifest {
            entries: entries(&one, &members(rows)),
            scores: None,
        };
        let proposal = one.proposal_of(1, &manifest, &one.all());
        one.propose(1, &proposal);
        let block = proposal.block.hash();
        let proof = one.certificate(1, Verdict::Final(block));
        one.has_cast(&proof);
        let effects = one.add_certificate(&proof);
        let reported = effects.contains(&Effect::Report(Report::HeavyEntry {
            round: 1,
            rows: 4,
            total: 7,
            member: None,
        }));
        assert_eq!(reported, heavy, "{effects:?}");
        let any = |effect: &Effect| matches!(effect, Effect::Report(Report::HeavyEntry { .. }));
        assert_eq!(effects.iter().any(any), heavy);
    }
}

#[test]
fn sums_of_the_largest_claims_do_not_overflow() {
    let (one, _) = hears([1; 4]);
    let manifest = |rows: u64| RoundManifest {
        entries: entries(&one, &members([rows; 4])),
        scores: None,
    };
    assert_eq!(manifest(u64::MAX).heaviest(), None);
    assert_eq!(manifest(0).heaviest(), None);
    let mut one_of_them = manifest(u64::MAX);
    one_of_them.entries[1..]
        .iter_mut()
        .for_each(|entry| entry.fields.weight = Some(1));
    let (entry, total) = one_of_them.heaviest().unwrap();
    assert_eq!(entry, &one_of_them.entries[0]);
    assert_eq!(total, u128::from(u64::MAX) + 3);
    one_of_them.entries.truncate(1);
    assert_eq!(one_of_them.heaviest(), None, "one entry alone");
}

#[test]
fn declared_rows_are_part_of_the_ids_and_without_any_the_ids_are_as_before() {
    let ids = |rows: &[u64]| {
        let epoch = epoch_declaring(4, 5, rows, |_| {});
        (epoch.federation, epoch.id)
    };
    let all = [
        ids(&[]),
        ids(&[1]),
        ids(&[2]),
        ids(&[1, 1]),
        ids(&[1, 1, 1, 1]),
    ];
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            assert!(one.0 != other.0 && one.1 != other.1);
        }
    }
    for rows in [&[][..], &[7], &[1, 1, 1, 1]] {
        let epoch = epoch_declaring(4, 5, rows, |_| {});
        let genesis = Genesis {
            silos: epoch.roster.silos().to_vec(),
            protocol: epoch.protocol.clone(),
        };
        let bytes = genesis.encode(epoch.format);
        assert_eq!(
            Genesis::decode(&bytes),
            Ok((epoch.format.into(), genesis.clone()))
        );
        let longer = [&bytes[..], &crate::codec::encode(&vec![None::<u64>; 4])].concat();
        assert!(
            Genesis::decode(&longer).is_err(),
            "rows that declare nothing"
        );
        let few = [&bytes[..], &crate::codec::encode(&vec![Some(1_u64); 3])].concat();
        assert!(Genesis::decode(&few).is_err(), "too few rows, or twice");
        assert!(Genesis::decode(&bytes[..bytes.len() - 1]).is_err());
    }
    // The bytes of members without declared rows are those of names and keys.
    let silos: Vec<_> = (0..2)
        .map(|i| (format!("silo {i}"), key(i).public()))
        .collect();
    let epoch = epoch_declaring(2, 5, &[], |_| {});
    let bytes = crate::codec::encode(&(u32::from(epoch.format), silos, &epoch.protocol));
    assert_eq!(epoch.federation, Hash::labelled("rota genesis", &[&bytes]));
}
