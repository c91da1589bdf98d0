//! The picture of the first page.

use std::fs;
use std::process::Command;

use crate::pages::root;

/// `ROTA_GOLDEN=write` writes the picture again; look at it before you commit it.
#[test]
fn the_picture_of_a_take_over_is_what_the_program_draws() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join("takeover.svg");
    let run = Command::new(env!("CARGO_BIN_EXE_rota"))
        .arg("simulate")
        .arg(root().join("examples/takeover.toml"))
        .args(["--quiet", "--json", "--timeline"])
        .arg(&drawn)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let drawn = fs::read_to_string(drawn).unwrap();
    let shown = root().join("docs/takeover.svg");
    if std::env::var("ROTA_GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(&shown, &drawn).unwrap();
    }
    // A dead lead, the view that was nullified, and the next one of the same round.
    for part in ["class=\"killed\"", "class=\"view nullified\"", "Round 3: "] {
        assert!(drawn.contains(part), "no {part} in {drawn}");
    }
    let shown = fs::read_to_string(&shown).unwrap();
    assert!(
        drawn == shown,
        "docs/takeover.svg is not what `rota simulate examples/takeover.toml --timeline` draws now: \
         `just golden` writes it anew"
    );
}
