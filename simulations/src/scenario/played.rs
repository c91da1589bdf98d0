//! Faults of a scenario's file, played by the bare simulator.

#![allow(clippy::unwrap_used)]

use bare::{BareOptions, Ended, Faults, run};

use super::faults;

fn scripted(members: usize, text: &str) -> Ended {
    let mut options = BareOptions::new(members, Faults::none());
    options.script = faults("faults.toml", text).unwrap();
    let faults = options.script.len() as u64;
    let ended = run(1, &options).unwrap_or_else(|failure| panic!("{text}: {failure}"));
    // The end of all faults is one, too.
    assert!(ended.faults > faults, "{text}: {ended:?}");
    ended
}

#[test]
fn a_lead_killed_in_any_phase_restarts_and_all_members_finish() {
    for phase in [
        "collecting",
        "scoring",
        "including",
        "deciding",
        "voting",
        "notarised",
    ] {
        for back in [
            "restart-after = '2s'",
            "restart-after = '9s'\njournal = 'lost'",
            "",
        ] {
            let text = format!("[[fault]]\nkill = 'lead'\nphase = '{phase}'\nround = 2\n{back}");
            let mut options = BareOptions::new(4, Faults::none());
            options.cross_evaluate = Some(true);
            options.script = faults("faults.toml", &text).unwrap();
            let ended = run(3, &options).unwrap_or_else(|failure| panic!("{text}: {failure}"));
            assert_eq!(ended.faults, 2, "{text}: {ended:?}");
            assert_eq!(ended.dead, u64::from(back.is_empty()), "{text}");
        }
    }
}

#[test]
fn silos_are_killed_at_times_and_commits_and_cut_off() {
    scripted(
        4,
        "[[fault]]\nkill = '2'\nat = '500ms'\nrestart-after = '3s'",
    );
    scripted(4, "[[fault]]\nkill = 'lead'\nat = '1s'");
    scripted(
        4,
        "[[fault]]\nkill = '1'\ncommit = 4\ncut = 'before'\nrestart-after = '1s'",
    );
    scripted(
        4,
        "[[fault]]\nkill = '1'\ncommit = 4\ncut = 'persisted'\nrestart-after = '1s'",
    );
    for one_way in [true, false] {
        let text = format!(
            "[[fault]]\nsplit = ['0', 'silo 1']\nat = '300ms'\nlasts = '20s'\none-way = {one_way}"
        );
        let whole = run(1, &BareOptions::new(4, Faults::none())).unwrap();
        let ended = scripted(4, &text);
        assert!(ended.time > whole.time, "{text}: nobody was cut off");
    }
}

#[test]
fn behaviours_that_a_scenario_can_name_are_played() {
    for behaviour in ["double-vote", "silent-lead", "partial-lead", "bad-outcome"] {
        let text = format!("[[fault]]\nmember = '3'\nbehaviour = '{behaviour}'");
        let mut options = BareOptions::new(4, Faults::none());
        options.script = faults("faults.toml", &text).unwrap();
        let misdeeds: u64 = (0..8)
            .map(|seed| run(seed, &options).unwrap_or_else(|failure| panic!("{text}: {failure}")))
            .map(|ended| ended.faults - 1)
            .sum();
        assert!(misdeeds > 0, "{behaviour} does nothing");
    }
}
