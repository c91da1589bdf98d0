//! Completion scripts and manual pages, read by the programs that they are for.

use std::fs;
use std::process::Command;

use crate::skipped::skipped;

use super::cli::{folder, good};

/// Returns whether a program is installed.
fn is_installed(program: &str) -> bool {
    let installed = Command::new(program).arg("--version").output().is_ok();
    if !installed {
        skipped(format!("{program} is not installed"));
    }
    installed
}

#[test]
fn bash_accepts_its_script_and_completes_commands_and_options() {
    if !is_installed("bash") {
        return;
    }
    let file = folder("completions").join("rota.bash");
    fs::write(&file, good(&["completions", "bash"])).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&file).output().unwrap();
    assert!(
        checked.status.success() && checked.stderr.is_empty(),
        "{checked:?}"
    );
    let completed = |words: &[&str]| {
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let script = format!(
            "source {}; COMP_WORDS=({}); COMP_CWORD={}; _rota rota '{last}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.join(" "),
            words.len() - 1,
        );
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(completed(&["rota", "simul"]), "simulate");
    assert_eq!(completed(&["rota", "federation", "jo"]), "join");
    assert_eq!(completed(&["rota", "check", "--conf"]), "--config");
    assert_eq!(
        completed(&["rota", "simulate", "--mesh", "loop"]),
        "loopback"
    );
}

#[test]
fn every_shell_gets_a_script_that_names_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = good(&["completions", shell]);
        assert!(
            script.contains("simulate") && script.contains("federation"),
            "{shell}"
        );
    }
}

#[test]
fn manual_pages_render_without_a_warning() {
    let pages = folder("pages");
    let said = good(&["man", "--to", pages.to_str().unwrap()]);
    let files: Vec<_> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(files.len() > 50 && said.starts_with(&format!("written: {} pages", files.len())));
    assert_eq!(
        fs::read_to_string(pages.join("rota.1")).unwrap(),
        good(&["man"])
    );
    if !is_installed("groff") {
        return;
    }
    for file in &files {
        let shown = Command::new("groff")
            .args(["-man", "-Tutf8", "-P-cbu", "-ww", "-rLL=100n"])
            .arg(file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&shown.stderr).into_owned();
        assert!(
            shown.status.success() && said.is_empty(),
            "{}: {said}",
            file.display()
        );
        let page = String::from_utf8_lossy(&shown.stdout);
        assert!(page.contains("EXIT STATUS"), "{page}");
    }
}
