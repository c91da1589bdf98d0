//! The records of a journal that a silo still needs.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Hash;
use protocol::message::Block;

use crate::record::JournalRecord;

/// Void rounds whose secrets are kept: a group is suspended after as many.
pub(crate) const VOID_KEPT: usize = 3;

/// A void round whose secret is kept, by the positions of its records.
struct VoidRecords {
    adopted: usize,
    prepared: usize,
}

/// The last void rounds among these records: a secret stands behind the adoption of its round.
fn void(records: &[JournalRecord]) -> Vec<VoidRecords> {
    let mut adopted = BTreeMap::new();
    let mut void = Vec::new();
    for (at, record) in records.iter().enumerate() {
        match record {
            JournalRecord::Adopted(of) => {
                adopted.insert(of.round, at);
            }
            JournalRecord::Prepared { round, .. } => {
                let adopted = adopted.get(round).copied();
                void.extend(adopted.map(|adopted| VoidRecords {
                    adopted,
                    prepared: at,
                }));
            }
            JournalRecord::Lost => {
                adopted.clear();
                void.clear();
            }
            // A later epoch may have the same round again.
            other if ends_epoch(other) => adopted.clear(),
            _ => {}
        }
    }
    let earlier = void.len().saturating_sub(VOID_KEPT);
    void.split_off(earlier)
}

/// The blobs of each void round whose secret is kept, oldest first; the secret is among them.
pub(crate) fn void_blobs(records: &[JournalRecord]) -> Vec<Vec<Hash>> {
    let blobs = void(records).into_iter().map(|round| {
        let named = match &records[round.adopted] {
            JournalRecord::Adopted(adopted) => &adopted.blobs[..],
            _ => &[],
        };
        let secret = secret(&records[round.prepared]);
        named.iter().copied().map(Hash).chain(secret).collect()
    });
    blobs.collect()
}

/// The blob with the silo's secret that a record names.
pub(crate) fn secret(record: &JournalRecord) -> Option<Hash> {
    match record {
        JournalRecord::Prepared { blob, .. } => Some(Hash(*blob)),
        _ => None,
    }
}

/// Takes the names of secrets of epochs that are over out of the records. Gives whether there were any.
pub(crate) fn forget_secrets(records: &mut Vec<JournalRecord>) -> bool {
    let over = records.iter().rposition(ends_epoch).map_or(0, |at| at + 1);
    let (before, mut at) = (records.len(), 0);
    records.retain(|record| {
        at += 1;
        at > over || secret(record).is_none()
    });
    records.len() < before
}

/// The records that a restart needs, in order; all others are superseded by later ones (see
/// [`current`]).
///
/// If the silo lost its journal or is new, and has not acted since, only that record is needed, and what it
/// prepared for a secure-aggregation round: it may not know yet whether voting is safe, and asks others for the chain
/// again. A silo that has adopted
/// the last of all `rounds` has nothing to sign any more. Of what was before a loss, only the final
/// blocks are needed.
pub(crate) fn needed(
    mut records: Vec<JournalRecord>,
    keep: usize,
    rounds: u64,
) -> Vec<JournalRecord> {
    if let Some(at) = records.iter().rposition(is_beginning) {
        let since = records.split_off(at + 1);
        let done = |record: &JournalRecord| matches!(record, JournalRecord::Adopted(last) if last.round >= rounds);
        if !since.iter().any(|record| acts(record) || done(record)) {
            // That an epoch is over stays true, and what is sent in a secure-aggregation round is drawn once only.
            let over = since.iter().rposition(ends_epoch).map_or(0, |at| at + 1);
            let prepares = |record: &_| matches!(record, JournalRecord::Prepared { .. });
            let kept = since
                .into_iter()
                .enumerate()
                .filter(|(at, record)| ends_epoch(record) || *at >= over && prepares(record));
            let kept = kept.map(|(_, record)| record);
            return records.pop().into_iter().chain(kept).collect();
        }
        records.retain(is_final);
        records.extend(since);
    }
    let current = current(&records, keep);
    retain_current(&mut records, current);
    records
}

/// Removes the records that are not `current`.
pub(crate) fn retain_current(records: &mut Vec<JournalRecord>, current: Vec<bool>) {
    let mut flags = current.into_iter();
    records.retain(|_| flags.next().unwrap_or(true));
}

/// For each of these records, all of a journal or its end: whether no later record supersedes it. The
/// records before them must be final blocks.
///
/// | kept | because |
/// |---|---|
/// | every `Final` | they are the chain, which other members ask for and which can be verified again |
/// | `Block`, `Certified`, `Vote`, `Proposed` of views above the last final block | a member never goes back to an earlier view |
/// | those about the outcome of the last final secure-aggregation round | empty blocks may be final after it before its outcome is certified, and others remind a member of its vote |
/// | `Contributed` of the round under way, `Trained` and `Prepared` of a round not adopted yet | earlier ones ended with their round |
/// | `Standing`, `Outdated` of the present epoch | a member that signed a Standing does nothing more in this epoch, and one whose journal is outdated votes, proposes and contributes nothing more |
/// | the last `keep` `Adopted`, the last `Applied` | the last holds the silo's state, the others name the blobs to keep |
/// | `Adopted`, and `Prepared` behind it, of the last void rounds | from the secret others can see who corrupted the sum |
/// | `Begun`, `Lost`, until the silo has acted since | a restart without such a record takes it for one that took part |
///
/// Of an epoch that is over only its `Final` records and adoptions are needed, and secrets until they are
/// [forgotten](forget_secrets) at the start in the next one.
pub(crate) fn current(records: &[JournalRecord], keep: usize) -> Vec<bool> {
    // Nothing that was signed in an epoch that is over counts any more.
    let over = records.iter().rposition(ends_epoch).map_or(0, |at| at + 1);
    let (mut tip, mut learned, mut adopted) = (0, 0, 0);
    // View of the last final secure-aggregation round.
    let mut masked = 0;
    let mut adoptions = 0;
    for (at, record) in records.iter().enumerate() {
        match record {
            JournalRecord::Protocol(protocol::Record::Final { blocks, .. }) if at < over => {
                // A recovery may go on from an earlier round than the silo has adopted.
                let after = blocks.iter().find_map(goes_on_after);
                adopted = after.map_or(adopted, |after| adopted.min(after));
            }
            JournalRecord::Protocol(protocol::Record::Final { blocks, proof }) => {
                tip = tip.max(proof.view);
                let of_masked = blocks.iter().filter(|block| block.masked().is_some());
                masked = of_masked.fold(masked, |last, block| last.max(block.view));
                let rounds = blocks.iter().filter_map(|block| block.learning());
                learned = rounds.fold(learned, |last, learning| last.max(learning.round));
            }
            JournalRecord::Adopted(of) => (adopted, adoptions) = (of.round, adoptions + 1),
            _ => {}
        }
    }
    let applied = records.iter().rposition(|record| {
        matches!(
            record,
            JournalRecord::Protocol(protocol::Record::Applied { .. })
        )
    });
    // What shows that the silo took part is superseded some time; by then these records must be gone.
    let acted = records.iter().rposition(acts);
    let void = void(records);
    let void = void.iter().flat_map(|void| [void.adopted, void.prepared]);
    let void: BTreeSet<_> = void.collect();
    let mut passed = 0;
    let is_current = |(at, record): (usize, &JournalRecord)| match record {
        JournalRecord::Lost | JournalRecord::Begun => acted.is_none_or(|acted| acted < at),
        JournalRecord::Trained { round, .. } | JournalRecord::Prepared { round, .. } => {
            at >= over && *round > adopted || void.contains(&at)
        }
        JournalRecord::Adopted(_) => {
            passed += 1;
            passed + keep > adoptions || void.contains(&at)
        }
        JournalRecord::Protocol(record) => match record {
            protocol::Record::Final { .. } => true,
            protocol::Record::Applied { .. } => Some(at) == applied,
            protocol::Record::Circle(_) => true,
            _ if at < over => false,
            protocol::Record::Block(block) => block.view > tip,
            protocol::Record::Certified(certificate) => {
                let outcome = certificate.verdict.is_outcome();
                certificate.view > tip || outcome && certificate.view >= masked
            }
            protocol::Record::Vote(message) | protocol::Record::Proposed(message) => {
                let outcome = matches!(message.body, protocol::message::Body::Outcome { .. });
                message.view > tip || outcome && message.view >= masked
            }
            // A secure-aggregation round is under way until its outcome is known, also after its block.
            protocol::Record::Contributed(message) => message.round > learned.max(adopted),
            protocol::Record::Standing(_)
            | protocol::Record::Confirmed(_)
            | protocol::Record::Outdated(_) => true,
        },
    };
    records.iter().enumerate().map(is_current).collect()
}

/// Returns whether this record says how the journal began.
fn is_beginning(record: &JournalRecord) -> bool {
    matches!(record, JournalRecord::Lost | JournalRecord::Begun)
}

/// Returns whether this record has final blocks.
pub(crate) fn is_final(record: &JournalRecord) -> bool {
    matches!(
        record,
        JournalRecord::Protocol(protocol::Record::Final { .. })
    )
}

/// Returns whether a record proves that an epoch is over.
pub(crate) fn ends_epoch(record: &JournalRecord) -> bool {
    matches!(record, JournalRecord::Protocol(record) if record.ends_epoch())
}

/// The round that the next epoch goes on from, if this block ends one.
fn goes_on_after(block: &Block) -> Option<u64> {
    let changed = block.change().map(|change| change.after);
    let after = changed.or_else(|| block.recovery().map(|recovery| recovery.after));
    after.map(|after| after.round)
}

/// Returns whether this record shows that the silo took part, and so had found out that it is safe.
pub(crate) fn acts(record: &JournalRecord) -> bool {
    use protocol::Record::{Contributed, Outdated, Proposed, Standing, Vote};
    matches!(
        record,
        JournalRecord::Protocol(Vote(_) | Proposed(_) | Contributed(_) | Standing(_) | Outdated(_))
    )
}

#[cfg(test)]
mod tests {
    use protocol::Hash;
    use protocol::certificate::{Certificate, Verdict};
    use protocol::identity::Signature;
    use protocol::message::{Body, Content, MaskedRound, Message, Recovery};

    use super::*;
    use crate::testing::{adopted, applied};

    fn trained(round: u64) -> JournalRecord {
        JournalRecord::Trained {
            round,
            blob: [1; 32],
            personal: [2; 32],
        }
    }

    #[test]
    fn superseded_records_are_not_needed() {
        let rounds = |round| [trained(round), adopted(round), applied(round)];
        let mut all: Vec<_> = (1..=5).flat_map(rounds).collect();
        all.push(trained(6));
        let expected = [adopted(4), adopted(5), applied(5), trained(6)];
        assert_eq!(needed(all.clone(), 2, 9), expected);
        // Nothing more is dropped from the result.
        assert_eq!(needed(expected.to_vec(), 2, 9), expected);
        // Nothing before a loss matters, and nothing after it until the silo acts.
        for began in [JournalRecord::Lost, JournalRecord::Begun] {
            let mut all = all.clone();
            all.push(began.clone());
            all.extend(rounds(1));
            assert_eq!(needed(all.clone(), 2, 9), std::slice::from_ref(&began));
            // What it prepared since is sent as it is.
            let prepared = JournalRecord::Prepared {
                round: 1,
                blob: [3; 32],
                personal: [2; 32],
            };
            let mut prepares = all.clone();
            prepares.push(prepared.clone());
            assert_eq!(needed(prepares, 2, 9), [began.clone(), prepared]);
            // Unless there is nothing left to do: then it keeps what it has.
            assert_eq!(needed(all, 2, 1), [adopted(1), applied(1)]);
        }
    }

    /// A final block of a view, alone: of a secure-aggregation round, or an empty one.
    fn final_block(view: u64, round: Option<u64>) -> JournalRecord {
        let content = match round {
            Some(round) => Content::Masked(MaskedRound {
                round,
                plan: Hash([1; 32]),
                state: Hash([2; 32]),
                list: Hash([3; 32]),
                ready: Vec::new(),
                manifest: Hash([4; 32]),
                inclusions: [].into(),
            }),
            None => Content::Empty,
        };
        let block = Block {
            epoch: Hash([9; 32]),
            view,
            parent: Hash([8; 32]),
            content,
        };
        let verdict = Verdict::Final(block.hash());
        JournalRecord::Protocol(protocol::Record::Final {
            blocks: vec![block],
            proof: certificate(view, verdict),
        })
    }

    fn certificate(view: u64, verdict: Verdict) -> Certificate {
        Certificate {
            view,
            verdict,
            votes: Default::default(),
        }
    }

    /// A vote for the outcome of the secure-aggregation round of a view, and its certificate.
    fn outcome(view: u64) -> [JournalRecord; 2] {
        let (block, outcome) = (Hash([view as u8; 32]), Hash([7; 32]));
        let vote = Message {
            round: 0,
            view,
            sender: protocol::MemberIndex(0),
            body: Body::Outcome { block, outcome },
            signature: Signature::from_bytes(&[0; 64]),
        };
        let certified = certificate(view, Verdict::Outcome { block, outcome });
        let records = [
            protocol::Record::Vote(vote),
            protocol::Record::Certified(certified),
        ];
        records.map(JournalRecord::Protocol)
    }

    /// A member whose journal lost its vote would be taken for one with an older copy of it.
    #[test]
    fn the_vote_for_the_outcome_of_the_last_masked_round_stays_while_empty_blocks_follow_it() {
        let last = [
            final_block(3, Some(2)),
            final_block(4, None),
            final_block(5, None),
        ];
        let before = [final_block(1, Some(1)), final_block(2, None)];
        let mut all = before.to_vec();
        all.extend(outcome(1));
        all.extend(last.clone());
        all.extend(outcome(3));
        let expected: Vec<_> = before.into_iter().chain(last).chain(outcome(3)).collect();
        assert_eq!(needed(all, 2, 9), expected);
    }

    /// A member that was declared lost comes back behind the recovery. A second contribution, or a second draw,
    /// to the round that is done again would follow from forgetting the first.
    #[test]
    fn what_is_prepared_for_a_round_that_is_done_again_stays() {
        let checkpoint = protocol::Checkpoint {
            round: 2,
            block: Hash([5; 32]),
            outcome: Hash([6; 32]),
        };
        let recovery = Block {
            epoch: Hash([9; 32]),
            view: 4,
            parent: Hash([8; 32]),
            content: Content::Recovery(Box::new(Recovery {
                lost: Vec::new(),
                after: checkpoint,
                head: Vec::new(),
                standings: Vec::new(),
            })),
        };
        let ends = JournalRecord::Protocol(protocol::Record::Final {
            blocks: vec![recovery],
            proof: certificate(4, Verdict::Final(Hash([7; 32]))),
        });
        for again in [trained(3), prepared(3)] {
            let all = [adopted(2), adopted(3), applied(3), ends.clone(), again];
            assert_eq!(needed(all.to_vec(), 2, 9), all);
        }
    }

    fn prepared(round: u64) -> JournalRecord {
        JournalRecord::Prepared {
            round,
            blob: [round as u8; 32],
            personal: [2; 32],
        }
    }

    /// A round whose sum was void, as a silo writes it down.
    fn void_round(round: u64) -> [JournalRecord; 4] {
        [
            prepared(round),
            adopted(round),
            applied(round),
            prepared(round),
        ]
    }

    #[test]
    fn secrets_of_the_last_void_rounds_stay_with_their_adoptions_and_no_others() {
        let good = |round| [prepared(round), adopted(round), applied(round)];
        let mut all = Vec::new();
        all.extend(void_round(1));
        all.extend(good(2));
        for round in 3..=5 {
            all.extend(void_round(round));
        }
        all.extend(good(6));
        all.push(prepared(7));
        let of_void = |round| [adopted(round), prepared(round)];
        let expected = [
            &of_void(3)[..],
            &of_void(4),
            &of_void(5),
            &[adopted(6), applied(6), prepared(7)],
        ];
        let expected = expected.concat();
        assert_eq!(needed(all, 1, 99), expected);
        // Nothing more is dropped from the result.
        assert_eq!(needed(expected.clone(), 1, 99), expected);
        let kept = void_blobs(&expected);
        let secret = |round: u8| vec![Hash([round; 32])];
        assert_eq!(kept, [secret(3), secret(4), secret(5)]);
        let mut same = expected.clone();
        assert!(!forget_secrets(&mut same));
        assert_eq!(same, expected);
        // A journal that was lost says nothing of what was before.
        let mut lost = expected;
        lost.extend([JournalRecord::Lost, prepared(5)]);
        assert!(void_blobs(&lost).is_empty());
    }
}
