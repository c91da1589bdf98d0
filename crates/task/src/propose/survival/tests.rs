#![allow(clippy::unwrap_used)]
use std::fmt::Write;

use super::*;
use crate::propose::{SchemaProposal, propose};
use crate::schema::Filter;

/// Returns what is proposed for 120 patients of two hospitals, with a header and what a row adds to it.
fn of(
    file: &str,
    header: &str,
    row: impl Fn(usize) -> String,
    wishes: Wishes,
) -> Result<SchemaProposal, String> {
    let folder = std::env::temp_dir().join(format!("rota-survival-{}-{file}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.csv");
    let mut text = format!("hospital,age,lab,{header}\n");
    for at in 0..120 {
        let hospital = ["north", "south"][at % 2];
        let lab = (at * 7919 % 61) as f64 / 4.0;
        writeln!(text, "{hospital},{},{lab},{}", 30 + at * 17 % 50, row(at)).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let wishes = Wishes {
        silo_column: Some("hospital".into()),
        ..wishes
    };
    let proposal = propose(&[path], &wishes).map_err(|error| error.to_string());
    std::fs::remove_dir_all(&folder).unwrap();
    proposal
}

/// A time from 5 to 101, by chance.
fn days(at: usize) -> usize {
    5 + at * 37 % 97
}

fn event(at: usize) -> usize {
    at * 40_503 / 32 % 3 % 2
}

fn named(target: Option<&str>, time: Option<&str>) -> Wishes {
    Wishes {
        target: target.map(Into::into),
        time: time.map(Into::into),
        ..Wishes::default()
    }
}

fn columns(proposal: &SchemaProposal) -> Vec<&str> {
    proposal.schema.target.name.iter().collect()
}

#[test]
fn an_event_and_its_time_are_proposed_where_nothing_is_said() {
    for (at, header) in [
        "died,days",
        "OS_STATUS,os_months",
        "E,T",
        "event,time_to_event",
    ]
    .into_iter()
    .enumerate()
    {
        let row = |at: usize| format!("{},{}", event(at), days(at));
        let found = of(&format!("pair-{at}"), header, row, Wishes::default()).unwrap();
        assert!(found.schema.target.survival, "{header}");
        assert_eq!(columns(&found).join(","), header);
        assert!(
            found
                .notes
                .iter()
                .any(|note| note.contains("survival target"))
        );
        let features: Vec<&str> = found.schema.names().collect();
        assert_eq!(features, ["age", "lab"], "{header}");
        let events = (0..120).filter(|at| event(*at) == 1).count();
        let said = format!("{events} events in 120 rows, and {} censored", 120 - events);
        assert!(found.predicted.starts_with(&said), "{}", found.predicted);
        assert!(found.codes.is_empty());
    }
    let row = |at: usize| format!("{},{}", event(at), days(at));
    let found = of("unit", "died,days", row, Wishes::default()).unwrap();
    assert_eq!(found.schema.target.unit.as_deref(), Some("days"));
}

#[test]
fn a_time_beside_a_named_event_is_asked_about() {
    let row = |at: usize| format!("{},{}", days(at), event(at));
    let header = "days,died";
    let error = of("asked", header, row, named(Some("died"), None)).unwrap_err();
    for part in [
        "looks like the time until \"died\"",
        "--time \"days\"",
        "--drop \"days\"",
        "--number \"days\"",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let taken = of("asked", header, row, named(Some("died"), Some("days"))).unwrap();
    assert!(taken.schema.target.survival);
    let number = Wishes {
        numbers: vec!["days".into()],
        ..named(Some("died"), None)
    };
    let learned = of("asked", header, row, number).unwrap();
    assert!(learned.schema.names().any(|name| name == "days"));
    assert!(learned.schema.target.classes.is_some());
    let dropped = Wishes {
        drop: vec!["days".into()],
        ..named(Some("died"), None)
    };
    let dropped = of("asked", header, row, dropped).unwrap();
    assert!(!dropped.schema.names().any(|name| name == "days"));
    // A stay in days beside a return is none, whatever the target.
    let again = of(
        "asked",
        "days,readmitted",
        row,
        named(Some("readmitted"), None),
    )
    .unwrap();
    assert!(again.schema.names().any(|name| name == "days"));
}

#[test]
fn a_time_of_follow_up_that_is_learned_from_is_said() {
    let row = |at: usize| format!("{},{},{}", days(at), days(at + 5), event(at));
    let wishes = |numbers: &[&str]| Wishes {
        numbers: numbers.iter().map(|name| (*name).to_owned()).collect(),
        ..named(Some("died"), Some("days"))
    };
    let header = "days,days_to_last_followup,died";
    let error = of("left", header, row, wishes(&[])).unwrap_err();
    assert!(error.contains("a further time of follow-up"), "{error}");
    let found = of("left", header, row, wishes(&["days_to_last_followup"])).unwrap();
    let said = |note: &String| note.contains("knows the outcome beforehand");
    assert_eq!(found.notes.iter().filter(|note| said(note)).count(), 1);
}

#[test]
fn a_time_to_be_predicted_beside_an_event_is_asked_about() {
    let row = |at: usize| format!("{},{}", event(at), days(at));
    let error = of("number", "died,days", row, named(Some("days"), None)).unwrap_err();
    assert!(
        error.contains("--target \"died\" --time \"days\"") && error.contains("lower bound"),
        "{error}"
    );
    let number = Wishes {
        numbers: vec!["days".into()],
        ..named(Some("days"), None)
    };
    let found = of("number", "died,days", row, number).unwrap();
    assert!(!found.schema.target.survival);
}

#[test]
fn events_in_other_words_become_codes_or_are_asked_about() {
    let texts = |none: &'static str, one: &'static str| {
        move |at: usize| format!("{},{}", [none, one][event(at)], days(at))
    };
    let wishes = named(Some("status"), Some("time"));
    let dead = of(
        "words",
        "status,time",
        texts("alive", "dead"),
        wishes.clone(),
    )
    .unwrap();
    let expected = [("alive", "0"), ("dead", "1")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(dead.codes["status"], expected.into());
    assert!(
        dead.notes
            .iter()
            .any(|note| note.contains("\"dead\" is taken to mean"))
    );
    // Of 1 and 2 nobody knows, and 1 of a column that is called after censoring may be that.
    for (at, (header, none, one, answer)) in [
        ("status,time", "1", "2", "2"),
        ("status,time", "ongoing", "over", "over"),
        ("censored,time", "1", "0", "0"),
        ("status,time", "1.0", "2.0", "2"),
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("coded-{at}");
        let event = header.split(',').next().unwrap();
        let wishes = named(Some(event), Some("time"));
        let error = of(&file, header, texts(none, one), wishes.clone()).unwrap_err();
        let asked = format!("--positive \"{answer}\"");
        assert!(
            error.contains("which value means that the event happened") && error.contains(&asked),
            "{error}"
        );
        let answered = Wishes {
            positive: Some(answer.into()),
            ..wishes
        };
        let found = of(&file, header, texts(none, one), answered).unwrap();
        let codes = &found.codes[event];
        let code = |text: &str| codes.get(text).cloned().unwrap_or_else(|| text.to_owned());
        assert_eq!(
            (code(one), code(none)),
            ("1".into(), "0".into()),
            "{codes:?}"
        );
    }
}

#[test]
fn of_several_causes_one_is_the_event_and_the_others_are_said() {
    let row = |at: usize| format!("{},{}", at * 40_503 / 32 % 3, days(at));
    let wishes = named(Some("status"), Some("time"));
    let error = of("causes", "status,time", row, wishes.clone()).unwrap_err();
    assert!(
        error.contains("--positive \"1\" or --positive \"2\""),
        "{error}"
    );
    let answered = Wishes {
        positive: Some("1".into()),
        ..wishes
    };
    let found = of("causes", "status,time", row, answered).unwrap();
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("competing events"))
    );
    assert_eq!(found.codes["status"]["2"], "0");
}

#[test]
fn times_of_0_are_asked_about_and_a_condition_leaves_them_out() {
    let row = |at: usize| format!("{},{}", event(at), if at % 40 == 7 { 0 } else { days(at) });
    let wishes = named(Some("died"), Some("days"));
    let error = of("zero", "died,days", row, wishes.clone()).unwrap_err();
    assert!(
        error.contains("3 rows have a time of 0 or less") && error.contains("--only \"days > 0\""),
        "{error}"
    );
    let only = Wishes {
        only: vec![Filter::try_from("days > 0".to_owned()).unwrap()],
        ..wishes
    };
    let found = of("zero", "died,days", row, only).unwrap();
    assert_eq!(found.schema.only.len(), 1);
}

#[test]
fn rows_without_an_event_are_refused_or_said_by_silo() {
    let none = |at: usize| format!("0,{}", days(at));
    let wishes = named(Some("died"), Some("days"));
    let error = of("none", "died,days", none, wishes.clone()).unwrap_err();
    assert!(error.contains("no row has an event"), "{error}");
    let one = |at: usize| {
        format!(
            "{},{}",
            if at.is_multiple_of(2) { event(at) } else { 0 },
            days(at)
        )
    };
    let found = of("one", "died,days", one, wishes).unwrap();
    let said = |note: &&String| note.starts_with("south: none of 60 rows has an event");
    assert_eq!(
        found.notes.iter().filter(said).count(),
        1,
        "{:?}",
        found.notes
    );
}

#[test]
fn what_does_not_go_together_is_refused() {
    let row = |at: usize| format!("{},{},{}", event(at), days(at), days(at + 3));
    let header = "a,b,c";
    let error = of("together", header, row, named(None, Some("b"))).unwrap_err();
    assert!(error.contains("the time until which event"), "{error}");
    let date = |at: usize| format!("{},2024-03-{:02},{}", event(at), 1 + at % 28, days(at));
    let dates = of("together", header, date, named(Some("a"), Some("b"))).unwrap_err();
    assert!(dates.contains("it holds dates"), "{dates}");
    let twice = of("together", header, row, named(Some("a"), Some("a"))).unwrap_err();
    assert!(twice.contains("named twice"), "{twice}");
    let entry = Wishes {
        entry: Some("c".into()),
        ..named(Some("a"), None)
    };
    let entry = of("together", header, row, entry).unwrap_err();
    assert!(entry.contains("--time COLUMN"), "{entry}");
}

#[test]
fn an_entry_is_a_part_of_the_target() {
    let row = |at: usize| format!("{},{},{}", event(at), 1 + days(at) / 2, days(at) + 5);
    let wishes = Wishes {
        entry: Some("start".into()),
        ..named(Some("died"), Some("stop"))
    };
    let found = of("entry", "died,start,stop", row, wishes).unwrap();
    assert_eq!(columns(&found), ["died", "stop", "start"]);
}
