//! Compares what a test computed with a golden file. Shared by the tests of several crates.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// One line per value: its name and its bytes in hexadecimal digits.
pub(crate) fn lines<'a>(values: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> String {
    let mut text = String::new();
    for (name, bytes) in values {
        let _ = write!(text, "{name}: ");
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

/// Fails unless the golden file at `path`, relative to the crate's folder, holds `text`. With
/// `ROTA_GOLDEN=write` in the environment the file is written instead.
pub(crate) fn check(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var("ROTA_GOLDEN").is_ok_and(|value| value == "write") {
        let folder = file.parent().expect("a golden file is in a folder");
        fs::create_dir_all(folder).expect("the folder of golden files can be created");
        fs::write(&file, text).expect("the golden file can be written");
        return;
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    if golden != text {
        let differs = |(golden, now): &(&str, &str)| golden != now;
        let mut pairs = golden.lines().zip(text.lines());
        let (golden, now) = pairs
            .find(differs)
            .unwrap_or(("other lines", "other lines"));
        panic!(
            "{path} differs from what the program computes now.\n golden: {golden}\n    now: {now}\n\
             If the change is meant, run this test with ROTA_GOLDEN=write in the environment, look \
             at the difference, and raise the format's version once there are users."
        );
    }
}
