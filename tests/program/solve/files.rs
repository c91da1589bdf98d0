//! Invalid and unusual input files.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::nodes::{rota, text};
use crate::solve::{LOSSES, SolveFiles, close, refused, solved};

/// Name and text of a file, and a part of the error.
const WRONG: [(&str, &str, &str); 18] = [
    (
        "short.csv",
        "1,2,3\n4,5\n7,8,9\n",
        "short.csv, row 2, column 3: a value is missing",
    ),
    (
        "long.csv",
        "1,2\n4,5,6\n",
        "long.csv, row 2, column 3: this value is one too many",
    ),
    (
        "far.csv",
        "1,2\n\n\n4,5,6\n",
        "far.csv, row 4, column 3: this value is one too many",
    ),
    (
        "dos.csv",
        "1,2\r\n\r\n4,x\r\n",
        "dos.csv, row 3, column 2: \"x\" is not a number",
    ),
    (
        "text.csv",
        "1,2\n3,four\n",
        "text.csv, row 2, column 2: \"four\" is not a number",
    ),
    (
        "hole.csv",
        "1,2\n,4\n",
        "hole.csv, row 2, column 1: a number is missing",
    ),
    (
        "nan.csv",
        "1,NaN\n3,4\n",
        "nan.csv, row 1, column 2: NaN is not a finite number",
    ),
    (
        "inf.csv",
        "1,2\n-inf,4\n",
        "inf.csv, row 2, column 1: -inf is not a finite number",
    ),
    (
        "huge.csv",
        "1,1e400\n3,4\n",
        "huge.csv, row 1, column 2: 1e400 is not a finite number",
    ),
    (
        "large.csv",
        "1,2\n3,1e80\n",
        "large.csv, row 2, column 2: 1e80 is beyond 1e45",
    ),
    ("empty.csv", "", "empty.csv has no rows"),
    ("blank.csv", "\n\n", "blank.csv has no rows"),
    (
        "head.csv",
        "a,b\n1,2\n3,4\n",
        "row 1, column 1: \"a\" is not a number; a header line is not allowed",
    ),
    (
        "semi.csv",
        "1;2\n3;4\n",
        "\"1;2\" is not a number: separate numbers by commas",
    ),
    (
        "tabs.csv",
        "1\t2\n3\t4\n",
        "is not a number: separate numbers by commas",
    ),
    (
        "quote.csv",
        "1,\"2\n3,4\n5,6",
        "quote.csv, row 1, column 2: \"2\u{fffd}3,4\u{fffd}5,6\" is not a number",
    ),
    (
        "wide.csv",
        "1,2,3\n4,5,6\n",
        "wide.csv has 2 rows and 3 columns: one row and one column per silo",
    ),
    (
        "steer.csv",
        "1,\u{1b}[31m\n3,4\n",
        "\"\u{fffd}[31m\" is not a number",
    ),
];

#[test]
fn invalid_files_are_refused_with_file_row_and_column() {
    let files = SolveFiles::new();
    for (name, text, said) in WRONG {
        let file = files.put(name, text);
        let error = refused(&["coalitions", &file, "-k", "1"]);
        assert!(
            error.starts_with("error: ") && error.contains(said),
            "{name}: {error}"
        );
    }
    let missing = files.path("missing.csv");
    let error = refused(&["coalitions", &missing, "-k", "1"]);
    assert!(
        error.contains("cannot read ") && error.contains("missing.csv: No such file"),
        "{error}"
    );
    let folder = files.0.path().to_str().unwrap();
    let error = refused(&["coalitions", folder, "-k", "1"]);
    assert!(error.contains("cannot read "), "{error}");
    let latin = files.path("latin.csv");
    fs::write(&latin, b"1,\xe9\n").unwrap();
    let error = refused(&["coalitions", &latin, "-k", "1"]);
    assert!(error.contains("UTF-8"), "{error}");
}

#[test]
fn spaces_quotes_byte_order_marks_and_windows_lines_are_read() {
    let files = SolveFiles::new();
    let losses = files.put(
        "losses.csv",
        "\u{feff} 0.2 ,\"0.3\"\r\n\r\n+0.35,2.5e-1\r\n",
    );
    let answer = solved(&["coalitions", &losses, "-k", "2"]);
    close(&answer["objective"], 0.45);
}

#[test]
fn a_dash_reads_standard_input() {
    let mut child = rota(&["solve", "coalitions", "-", "-k", "3", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(LOSSES.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    close(&answer["objective"], 1.7);
    // Empty standard input.
    let mut child = rota(&["solve", "coalitions", "-", "-k", "3"]);
    let output = child.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("standard input has no rows"));
}
