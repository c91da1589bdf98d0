//! Models and tables: the gate for received models, safetensors files, CSV.

use std::fs;

use bytes::Bytes;
use rota::learn::export::tensors_of;
use rota::methods::params::Gate;
use rota::methods::{Layout, Params, Role, TensorSpec};
use rota::task::data::{OwnRows, SplitConfig};
use rota::task::propose::{Wishes, propose};

use super::engine::{FuzzTarget, fuzz, gist};
use super::world::file;

#[test]
fn received_models() {
    let tensors = vec![
        TensorSpec::new("hidden.weight", [3, 4], Role::Weight),
        TensorSpec::new("hidden.bias", [4], Role::Bias),
        TensorSpec::new("mean", [2], Role::Buffer),
    ];
    let layout = Layout::new(tensors).unwrap();
    let model = Params::build(&layout, |values| {
        let numbered = (0u8..).zip(values);
        numbered.for_each(|(at, value)| *value = f32::from(at) / 4.0);
    });
    let gate = Gate {
        layout,
        norm: 100.0,
    };
    let mut run = |bytes: &[u8]| {
        let admitted = match gate.admit(Bytes::copy_from_slice(bytes)) {
            Ok(model) => {
                assert!(model.values().iter().all(|value| value.is_finite()));
                assert_eq!(
                    model.document(),
                    bytes,
                    "its bytes are the only ones of this model"
                );
                "admitted".into()
            }
            Err(error) => gist(&error.to_string()),
        };
        let read = match tensors_of(bytes) {
            Ok(model) => format!("{} tensors", model.layout().len().min(4)),
            Err(why) => gist(&why),
        };
        format!("{admitted} {read}")
    };
    fuzz(FuzzTarget {
        name: "safetensors",
        examples: vec![model.document().to_vec()],
        words: &[
            "{",
            "}",
            "[",
            "]",
            "\"",
            ":",
            "\"F32\"",
            "\"F64\"",
            "\"shape\"",
            "\"data_offsets\"",
            "__metadata__",
            "18446744073709551615",
            "4294967296",
            "-1",
            "1e9",
        ],
        inputs: 3_000,
        memory: |length| (1 << 20) + 64 * length,
        run: &mut run,
    });
}

#[test]
fn tables() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table.csv");
    let small = b"age;sex;days\n41,5;F;3\n;M;2\n60;F;NA\n33;?;1\n58;M;4\n47;F;9\n".to_vec();
    let north = fs::read(file("examples/own-data/north.csv")).unwrap();
    let some = north.split(|byte| *byte == b'\n').take(30);
    let some = some.collect::<Vec<_>>().join(&b"\n"[..]);
    let wishes = Wishes {
        alone: true,
        ..Wishes::default()
    };
    let mut run = |bytes: &[u8]| {
        fs::write(&table, bytes).unwrap();
        let proposal = match propose(std::slice::from_ref(&table), &wishes) {
            Ok(proposal) => proposal,
            Err(error) => return gist(&error.to_string()),
        };
        let rows = OwnRows {
            files: vec![table.clone().into()],
            format: proposal.formats[0].clone(),
            names: rota::task::schema::LocalNames::default(),
            answers: rota::task::questions::RowAnswers::default(),
        };
        let rows = rows.of_silo("own", folder.path());
        match rows.read(Some(&proposal.schema), None, &SplitConfig::default()) {
            Ok(read) => format!("{} columns", read.silos[0].1.encoding().len().min(6)),
            Err(error) => format!("proposed, then {}", gist(&error.to_string())),
        }
    };
    fuzz(FuzzTarget {
        name: "csv",
        examples: vec![small, some],
        words: &[
            ",",
            ";",
            "\t",
            "\"",
            "\"\"",
            "\r\n",
            "\n",
            "NaN",
            "inf",
            "1e400",
            "-0",
            "NA",
            "1.234,5",
            "\u{feff}",
            "2026-01-01",
            "é",
            "\0",
            "1e-320",
        ],
        inputs: 400,
        // A column for every byte of the first line, with its name and its counts.
        memory: |length| (16 << 20) + 4000 * length,
        run: &mut run,
    });
}
