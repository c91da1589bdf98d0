//! The bytes of journal records and outcome documents stay the same.

use std::collections::BTreeMap;

use bytes::Bytes;
use methods::State;
use methods::strategy::{Edges, Kept, Memory};
use protocol::privacy::CorrupterSearch;
use protocol::{Hash, MemberIndex, codec};

use crate::outcome::{
    Document, DocumentError, FORMAT, MaskedNote, Nothing, Settled, SumNote, VoidSum,
};
use crate::record::{Adopted, JournalRecord};
use crate::testing::model;

#[path = "../../../../tests/golden/mod.rs"]
mod file;

fn hash(byte: u8) -> Hash {
    Hash([byte; 32])
}

/// One record of every kind; those of the protocol are pinned in `crates/protocol/tests/golden`.
fn records() -> Vec<(&'static str, JournalRecord)> {
    let all = vec![
        JournalRecord::Protocol(protocol::Record::Applied { round: 2 }),
        JournalRecord::Adopted(Adopted {
            round: 2,
            block: [10; 32],
            outcome: [8; 32],
            coalition: 1,
            personal: [13; 32],
            blobs: vec![[8; 32], [11; 32]],
        }),
        JournalRecord::Lost,
        JournalRecord::Trained {
            round: 3,
            blob: [14; 32],
            personal: [15; 32],
        },
        JournalRecord::Begun,
        JournalRecord::Prepared {
            round: 4,
            blob: [16; 32],
            personal: [17; 32],
        },
    ];
    all.into_iter()
        .map(|record| (name(&record), record))
        .collect()
}

/// A new kind of record does not compile without a name here; give it an example above as well.
fn name(record: &JournalRecord) -> &'static str {
    match record {
        JournalRecord::Protocol(_) => "protocol",
        JournalRecord::Adopted(_) => "adopted",
        JournalRecord::Lost => "lost",
        JournalRecord::Trained { .. } => "trained",
        JournalRecord::Begun => "begun",
        JournalRecord::Prepared { .. } => "prepared",
    }
}

#[test]
fn journal_records_have_their_pinned_bytes() {
    let lines = records().into_iter().map(|(name, record)| {
        let bytes = codec::encode(&record);
        assert_eq!(
            codec::decode::<JournalRecord>(&bytes, codec::LIMIT),
            Ok(record)
        );
        (name, bytes)
    });
    file::check("golden/records.hex", &file::lines(lines));
}

/// A state with everything in it: two models, a table, a value of every type.
fn settled() -> Settled {
    let graph = Edges {
        nodes: 3,
        edges: vec![[0, 1], [1, 2]],
    };
    let state = State {
        models: vec![model(1.0), model(2.0)],
        tables: BTreeMap::from([("velocity".into(), vec![model(0.5)])]),
        memory: Memory::from([
            ("rounds", Kept::Count(3)),
            ("rows", Kept::Counts(vec![10, 300])),
            ("effective", Kept::Number(1.5)),
            ("lambda", Kept::Numbers(vec![0.25, 0.75])),
            ("groups", Kept::Assignment(vec![0, 1])),
            ("candidates", Kept::Candidates(vec![vec![0, 0], vec![0, 1]])),
            ("clusters", Kept::Clusters(vec![Some(1), None])),
            ("graph", Kept::Graph(graph)),
        ]),
    };
    Settled::new(3, vec![hash(1), hash(2)], vec![0, 1], state)
}

/// After a secure-aggregation round with everything in it: a void sum, and one that tells something.
fn masked(search: CorrupterSearch) -> Settled {
    let state = State {
        models: vec![model(1.0)],
        tables: BTreeMap::new(),
        memory: Memory::default(),
    };
    let sum = |group, void| SumNote { group, void };
    let note = MaskedNote {
        epoch: hash(3),
        authors: [0, 1, 5, 6].map(MemberIndex).to_vec(),
        left_out: vec![false, false, true, true],
        sums: vec![sum(0, None), sum(1, Some(VoidSum::Reach))],
        void: vec![0, 2],
        nothing: Some(Nothing::Refused),
        search,
    };
    Settled::masked(4, vec![hash(1), hash(2)], vec![0, 0], state, note)
}

#[test]
fn an_outcome_document_has_its_pinned_bytes() {
    let settled = settled();
    assert_eq!(Document::read(&settled.blob), Ok(settled.document.clone()));
    let searched = [
        CorrupterSearch::Idle,
        CorrupterSearch::Among([1, 5].map(MemberIndex).to_vec()),
        CorrupterSearch::Alone(MemberIndex(5)),
        CorrupterSearch::Several,
    ];
    let searched = searched.map(masked);
    for masked in &searched {
        assert_eq!(Document::read(&masked.blob), Ok(masked.document.clone()));
    }
    let blobs = settled.blobs().map(|(_, blob)| blob.to_vec());
    let blobs = blobs.chain(searched.map(|masked| masked.blob.to_vec()));
    let names = [
        "document",
        "model 0",
        "model 1",
        "table velocity 0",
        "document of a masked round",
        "document of a masked round with suspects",
        "document of a masked round with one that is left alone",
        "document of a masked round that several spoiled",
    ];
    file::check(
        "golden/outcome.hex",
        &file::lines(names.into_iter().zip(blobs)),
    );
}

#[test]
fn a_document_of_a_newer_format_is_refused_with_both_formats() {
    let mut blob = settled().blob.to_vec();
    blob[..4].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    let error = Document::read(&Bytes::from(blob)).unwrap_err();
    assert_eq!(error, DocumentError::Newer(FORMAT + 1));
    assert_eq!(
        error.to_string(),
        "outcome document format 4, this program reads format 3: use the program that wrote it, \
         or a newer one"
    );
}
