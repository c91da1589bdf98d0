//! Tests of the worker without the other actors.

use bytes::Bytes;
use methods::Params;
use protocol::effects::{Case, FinalRound, WorkError};
use protocol::message::EntryFields;
use protocol::work::{Answer, Request};
use protocol::{Hash, MemberIndex};

use super::bench::*;
use crate::JournalRecord;
use crate::actors::messages::{Fetched, WorkResult};
use crate::environment::Blobs;
use crate::outcome::{Document, manifest_blob, read_manifest};
use crate::testing::*;

#[test]
fn blobs_are_fetched_once_and_pass_the_gate() {
    virtually(async {
        let bench = Bench::new(10.0);
        let (near, far) = (model(3.0), model(11.0));
        // Two requests, one fetch; member 0 does not ask itself.
        assert!(bench.ask(admit(fields(&near))).await.is_empty());
        assert!(bench.ask(evaluate(&[&near, &far])).await.is_empty());
        let from: Vec<_> = bench
            .received
            .fetches
            .borrow()
            .iter()
            .map(|fetch| fetch.from.clone())
            .collect();
        assert_eq!(from, [[MemberIndex(3)], [MemberIndex(1)]]);
        assert_eq!(bench.fetched(), [Hash(near.hash()), Hash(far.hash())]);
        bench.arrive(&near.document());
        let answer = one(bench.run_until_idle().await).answer.unwrap();
        assert!(
            matches!(
                answer,
                Answer::Admitted {
                    round: 1,
                    result: Ok(()),
                    ..
                }
            ),
            "{answer:?}"
        );
        bench.arrive(&far.document());
        let answer = one(bench.run_until_idle().await).answer.unwrap();
        let Answer::Evaluated {
            result: Err(WorkError::Refused(reason)),
            ..
        } = answer
        else {
            panic!("{answer:?}")
        };
        assert!(reason.contains("norm"), "{reason}");
        // Now they are here.
        let Answer::Evaluated { result, .. } = bench.input(evaluate(&[&near])).await else {
            panic!()
        };
        assert_eq!(result, Ok(vec![(Hash(near.hash()), 4.5)]));
        assert!(bench.fetched().is_empty());
    });
}

#[test]
fn a_blob_that_no_member_has_is_unavailable_and_fetched_again_on_request() {
    virtually(async {
        let bench = Bench::new(f64::INFINITY);
        let fields = fields(&model(3.0));
        for _ in 0..2 {
            assert!(bench.ask(admit(fields.clone())).await.is_empty());
            assert_eq!(bench.fetched(), [fields.blob]);
            bench.worker.do_send(Fetched {
                blobs: Vec::new(),
                missing: vec![fields.blob],
            });
            let answer = one(bench.run_until_idle().await).answer.unwrap();
            let Answer::Admitted { result, .. } = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(result, Err(WorkError::Unavailable));
        }
    });
}

#[test]
fn invalid_fields_are_refused_without_fetching() {
    virtually(async {
        let bench = Bench::new(f64::INFINITY);
        let good = fields(&model(3.0));
        let bad = [
            EntryFields {
                size: good.size + 4,
                ..good.clone()
            },
            EntryFields {
                coalition: Some(1),
                ..good.clone()
            },
            EntryFields {
                weight: Some(9),
                member: None,
                ..good
            },
        ];
        for fields in bad {
            let Answer::Admitted { result, .. } = bench.input(admit(fields)).await else {
                panic!()
            };
            assert!(matches!(result, Err(WorkError::Refused(_))), "{result:?}");
        }
        assert!(bench.fetched().is_empty());
    });
}

#[test]
fn a_panic_is_a_refusal_and_the_worker_continues() {
    virtually(async {
        let bench = Bench::new(f64::INFINITY);
        let (trap, fine) = (model(5000.0), model(1.0));
        bench
            .rig
            .blobs
            .put(Hash(trap.hash()), trap.document())
            .unwrap();
        bench
            .rig
            .blobs
            .put(Hash(fine.hash()), fine.document())
            .unwrap();
        let Answer::Evaluated { result, .. } = bench.input(evaluate(&[&trap])).await else {
            panic!()
        };
        let panicked = "a job panicked: a value is above the limit".to_owned();
        assert_eq!(result, Err(WorkError::Refused(panicked)));
        let Answer::Evaluated { result, .. } = bench.input(evaluate(&[&fine])).await else {
            panic!()
        };
        assert_eq!(result, Ok(vec![(Hash(fine.hash()), 0.5)]));
    });
}

/// The training of the first round, which gives the weight 0.
async fn train(bench: &Bench) {
    let trained = bench.input(Request::Train { round: 1 }).await;
    let Answer::Trained {
        result: Ok(trained),
        ..
    } = trained
    else {
        panic!()
    };
    assert_eq!(trained.fields.blob, Hash(model(0.0).hash()));
}

/// Computes the outcome of a case, whose models are put there. Its hash, and its blob.
async fn settle(bench: &Bench, case: &Case, models: &[Params]) -> (Hash, Bytes) {
    let blobs = &bench.rig.blobs;
    for model in models {
        blobs.put(Hash(model.hash()), model.document()).unwrap();
    }
    let settle = Request::Settle {
        case: case.clone(),
        holders: vec![MemberIndex(1)],
    };
    let Answer::Settled {
        result: Ok(hash), ..
    } = bench.input(settle).await
    else {
        panic!()
    };
    (hash, blobs.get(&hash).unwrap())
}

/// An outcome that was asked for arrives: the document, then its model; asking again meanwhile changes
/// nothing.
async fn fetched(bench: &Bench, apply: &Request, hash: Hash, blob: &Bytes) -> Vec<WorkResult> {
    assert_eq!(bench.fetched(), [hash]);
    assert!(bench.ask(apply.clone()).await.is_empty());
    bench.arrive(blob);
    assert!(bench.run_until_idle().await.is_empty());
    assert_eq!(bench.fetched(), [Hash(model(3.0).hash())]);
    bench.arrive(&model(3.0).document());
    bench.run_until_idle().await
}

#[test]
fn a_computed_and_a_fetched_outcome_are_adopted_once_with_the_same_result() {
    virtually(async {
        let mut kept = Vec::new();
        let models = [1.0, 2.0, 6.0].map(model);
        let case = case(&models);
        let manifest = Hash::of(&manifest_blob(&case.manifest));
        let mut outcome = None;
        for settles in [true, false] {
            let bench = Bench::new(f64::INFINITY);
            train(&bench).await;
            if settles {
                outcome = Some(settle(&bench, &case, &models).await);
            }
            let (hash, blob) = outcome.clone().unwrap();
            let rounds = vec![FinalRound {
                round: 1,
                block: Hash::of(b"block"),
                outcome: hash,
                position: None,
            }];
            let holders = vec![MemberIndex(1)];
            let apply = Request::Apply { rounds, holders };
            let mut answers = bench.ask(apply.clone()).await;
            if !settles {
                assert!(answers.is_empty());
                answers = fetched(&bench, &apply, hash, &blob).await;
            }
            let answer = one(answers);
            let [
                JournalRecord::Adopted(adopted),
                JournalRecord::Protocol(protocol::Record::Applied { round: 1 }),
            ] = &answer.records[..]
            else {
                panic!("{:?}", answer.records)
            };
            assert_eq!((adopted.round, adopted.outcome), (1, hash.0));
            assert_eq!(adopted.block, Hash::of(b"block").0);
            // The training is not part of the outcome, so the personal state does not change.
            assert_eq!(adopted.personal, crate::testing::trained(0.0).hash());
            if settles {
                // Who computed it also keeps the manifest.
                let manifest = bench.rig.blobs.get(&manifest).unwrap();
                assert_eq!(read_manifest(&manifest).as_ref(), Some(&*case.manifest));
            }
            let mut records = answer.records;
            if let JournalRecord::Adopted(adopted) = &mut records[0] {
                let before = adopted.blobs.len();
                adopted.blobs.retain(|blob| *blob != manifest.0);
                assert_eq!(before - adopted.blobs.len(), usize::from(settles));
            }
            kept.push(records);
            // A second adoption changes nothing.
            let again = one(bench.ask(apply).await);
            assert!(again.records.is_empty());
            assert!(matches!(
                again.answer,
                Ok(Answer::Applied {
                    round: 1,
                    ends: false,
                    result: Ok(())
                })
            ));
        }
        assert_eq!(kept[0], kept[1]);
        let document = Document::read(&outcome.unwrap().1).unwrap();
        assert_eq!(document.models, [Hash(model(3.0).hash())]);
        assert_eq!(document.entries.len(), 3);
    });
}

#[test]
fn a_silo_without_an_entry_joins_the_coalition_of_least_loss() {
    virtually(async {
        let bench = Bench::new(f64::INFINITY);
        let models = [model(4.0), model(-2.0), model(900.0)];
        let document = Document {
            round: 2,
            entries: Vec::new(),
            assignment: vec![0, 1, 2],
            models: models.iter().map(|model| Hash(model.hash())).collect(),
            memory: Default::default(),
            tables: Default::default(),
            masked: None,
        };
        let blob = document.encode();
        for model in &models {
            bench
                .rig
                .blobs
                .put(Hash(model.hash()), model.document())
                .unwrap();
        }
        bench.rig.blobs.put(Hash::of(&blob), blob.clone()).unwrap();
        let rounds =
            [(1, Hash::of(b"passed over")), (2, Hash::of(&blob))].map(|(round, outcome)| {
                FinalRound {
                    round,
                    block: Hash::of(b"block"),
                    outcome,
                    position: None,
                }
            });
        let apply = Request::Apply {
            rounds: rounds.to_vec(),
            holders: Vec::new(),
        };
        let answer = one(bench.ask(apply).await);
        let JournalRecord::Adopted(adopted) = &answer.records[0] else {
            panic!()
        };
        assert_eq!((adopted.round, adopted.coalition), (2, 1));
    });
}

#[test]
fn work_of_a_later_round_is_unavailable_and_of_an_earlier_one_dropped() {
    virtually(async {
        let bench = Bench::new(f64::INFINITY);
        let mut ahead = case(&[model(1.0)]);
        ahead.round = 2;
        let check = Request::Check {
            case: ahead.clone(),
            holders: vec![MemberIndex(1)],
        };
        let Answer::Checked { case, result } = bench.input(check).await else {
            panic!()
        };
        assert_eq!((case, result), (ahead.id(), Err(WorkError::Unavailable)));
        assert!(bench.ask(Request::Train { round: 0 }).await.is_empty());
        // A plan on another outcome than the adopted one is a defect.
        let plan = Request::Plan {
            round: 1,
            state: Hash::of(b"something else"),
        };
        assert!(one(bench.ask(plan).await).answer.is_err());
    });
}
