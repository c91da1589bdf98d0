//! Times to an event in files.

use super::*;

const SURVIVAL: &str = "files = [{ path = 'a.csv' }]\n[columns]\n";

fn target(more: &str) -> String {
    format!("{SURVIVAL}target = {{ event = 'died', time = 'days'{more} }}\n")
}

#[test]
fn a_row_has_its_event_its_time_and_its_entry() {
    let folder = Folder::with(&[(
        "a.csv",
        "x,died,days,from\n1,1,30,0\n2,0,400.5,10\n3,,7,0\n",
    )]);
    let data = folder
        .read(&target(", entry = 'from', at = [30, 90]"))
        .unwrap();
    assert_eq!(
        data.target,
        Target::Survival {
            unit: "days".into(),
            at: vec![30.0, 90.0]
        }
    );
    let (_, table) = &data.silos[0];
    assert_eq!(table.columns, ["x"]);
    assert_eq!(
        (table.targets(0), table.targets(1)),
        (&[1.0, 30.0, 0.0][..], &[0.0, 400.5, 10.0][..])
    );
    assert_eq!(table.len(), 2, "a row without its event is left out");
    // Without the column all rows are observed from the beginning, and it is a feature like others.
    let data = folder.read(&target("")).unwrap();
    let (_, table) = &data.silos[0];
    assert_eq!(table.columns, ["x", "from"]);
    assert_eq!(table.targets(1), [0.0, 400.5, 0.0]);
}

#[test]
fn what_is_no_time_to_an_event_is_refused_by_line_and_column() {
    let rows = |row: &str| format!("x,died,days,from\n1,1,30,0\n2,{row}\n");
    for (row, more, expected) in [
        (
            "2,30,0",
            "",
            "a.csv, line 3: column \"died\" holds \"2\", but an event is 1 where it was observed and 0 where \
             observation ended without it; other words for them go into `codes`",
        ),
        (
            "yes,30,0",
            "",
            "a.csv, line 3: column \"died\" holds \"yes\", but ",
        ),
        (
            "0,0,0",
            "",
            "a.csv, line 3: column \"days\" holds \"0\", but a time to an event or to the end of observation is above \
             0: correct it; an agreement can leave such rows out by a condition in `only`",
        ),
        (
            "1,-3,0",
            "",
            "a.csv, line 3: column \"days\" holds \"-3\", but a time to an event",
        ),
        (
            "1,soon,0",
            "",
            "a.csv, line 3: column \"days\" holds \"soon\", but ",
        ),
        (
            "1,30,30",
            ", entry = 'from'",
            "a.csv, line 3: column \"from\" holds \"30\", but a row is observed from its entry on, which has to be before \
             its time, 30: correct one of them",
        ),
    ] {
        let folder = Folder::with(&[("a.csv", &rows(row))]);
        let error = folder.error(&target(more));
        assert!(error.starts_with(expected), "{row}: {error}");
    }
}

#[test]
fn rows_without_a_time_can_be_left_out_by_agreement() {
    let folder = Folder::with(&[("a.csv", "x,died,days\n1,1,30\n2,0,0\n3,0,9\n")]);
    let config = format!("{}only = ['days > 0']\n", target(""));
    let data = folder.read(&config).unwrap();
    assert_eq!(data.silos[0].1.len(), 2);
    let said = |note: &String| note.contains("1 of 3 rows is left out");
    assert!(data.notes.iter().any(said), "{:?}", data.notes);
}

#[test]
fn codes_say_what_an_event_is() {
    let folder = Folder::with(&[("a.csv", "x,died,days\n1,dead,30\n2,alive,40\n")]);
    let config = "files = [{ path = 'a.csv', names = { codes = { died = { dead = '1', alive = '0' } } } }]\n\
                  [columns]\ntarget = { event = 'died', time = 'days' }\n";
    let data = folder.read(config).unwrap();
    assert_eq!(data.silos[0].1.target, [1.0, 30.0, 0.0, 0.0, 40.0, 0.0]);
}
