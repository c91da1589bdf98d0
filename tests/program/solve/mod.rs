//! `rota solve` as a program: known results, and errors for invalid files and options.

#![allow(clippy::unwrap_used)]

mod coalitions;
mod domains;
mod files;
mod merge;
mod robust_loss;
mod topology;

use std::collections::BTreeSet;
use std::fs;

use crate::nodes::{good, output, text};
use serde_json::Value;
use tempfile::TempDir;

/// A folder for the files of one test.
struct SolveFiles(TempDir);

impl SolveFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file and gives its path.
    fn put(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

/// The output of a solve command as JSON.
fn solved(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(&[&["solve"], arguments, &["--json"]].concat())).unwrap()
}

/// The output of a solve command as text.
fn printed(arguments: &[&str]) -> String {
    good(&[&["solve"], arguments].concat())
}

/// The error, one line, of a run that must exit with 2 and print nothing else.
fn refused(arguments: &[&str]) -> String {
    let output = output(&[&["solve"], arguments].concat());
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    error
}

/// The usage error of a run with a wrong or missing option; exit code 2.
fn misused(arguments: &[&str]) -> String {
    let output = output(&[&["solve"], arguments].concat());
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    text(&output.stderr)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect()
}

fn close(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
}

fn all_close(value: &Value, expected: &[f64]) {
    let values = numbers(value);
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        assert!(
            (value - expected).abs() < 1e-9,
            "{values:?}, not {expected}"
        );
    }
}

/// Losses of six silos in three pairs.
const LOSSES: &str = include_str!("../../../examples/solve/losses.csv");
