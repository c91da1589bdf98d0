//! Federations put together from options and answers.
#![allow(clippy::unwrap_used)]
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const SCHEMA: &str = "[task.table.schema]
min-rows = 10
target = { name = 'outcome', classes = ['home', 'died'] }
[[task.table.schema.feature]]
name = 'age'
";

/// A file of its own for each call: tests run beside each other.
fn file(name: &str, text: &str) -> String {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let (process, nth) = (std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
    let file = std::env::temp_dir().join(format!("rota-compose-{process}-{nth}-{name}"));
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Returns what is put together with these answers, and what was asked.
fn asked(wanted: &InitRequest, answers: &str) -> (Result<Composed, ComposeError>, String) {
    let mut output = Vec::new();
    let plan = compose(wanted, Some(&mut Prompt::scripted(answers, &mut output)));
    (plan, String::from_utf8(output).unwrap())
}

#[test]
fn what_a_file_lacks_is_asked_for_until_it_is_right() {
    let wanted = InitRequest {
        scenario: Some(file("schema.toml", SCHEMA)),
        name: Some("stays".into()),
        ..InitRequest::default()
    };
    let (scenario, said) = asked(&wanted, "none\n7\nfedavgg\n\nforest\nlogistic\n\n");
    let scenario = scenario.unwrap().plan;
    assert_eq!((scenario.name.as_str(), scenario.rounds), ("stays", 7));
    assert_eq!(scenario.strategy.name(), "fedavg");
    assert!(said.contains("a whole number of at least 1"), "{said}");
    assert!(said.contains("did you mean \"fedavg\"?"), "{said}");
    assert!(said.contains("\"forest\" is no model"), "{said}");
    // The same with options, and nobody to ask.
    let options = InitRequest {
        rounds: Some(7),
        strategy: Some("fedavg".into()),
        model: Some("logistic".into()),
        ..wanted.clone()
    };
    assert_eq!(compose(&options, None).unwrap().plan, scenario);
    for (taken, option) in [
        ("rounds", "--rounds N"),
        ("strategy", "--strategy"),
        ("model", "--model"),
    ] {
        let mut less = options.clone();
        match taken {
            "rounds" => less.rounds = None,
            "strategy" => less.strategy = None,
            _ => less.model = None,
        }
        let error = compose(&less, None).unwrap_err().to_string();
        assert!(error.contains(option), "{error}");
    }
}

#[test]
fn one_table_is_enough_and_the_terminal_is_asked_about_it() {
    let rows: String = (0..40)
        .map(|row| {
            format!(
                "{},{},{}\n",
                20 + row,
                ["a", "b"][row % 2],
                ["home", "died"][row % 2]
            )
        })
        .collect();
    let table = file("rows.csv", &format!("age,ward,outcome\n{rows}"));
    let (scenario, said) = asked(
        &InitRequest::default(),
        &format!("nowhere\n{table}\n\n\nstays\n\n4\n\n"),
    );
    let scenario = scenario.unwrap().plan;
    assert!(said.contains("there is no file \"nowhere\""), "{said}");
    assert!(said.contains("Column to predict [outcome]"), "{said}");
    assert_eq!((scenario.name.as_str(), scenario.rounds), ("stays", 4));
    let wanted = InitRequest {
        tables: vec![table.into()],
        ..InitRequest::default()
    };
    let alone = compose(&wanted, None).unwrap().plan;
    assert_eq!((alone.name.as_str(), alone.rounds), ("outcome", 10));
    assert_eq!(alone.task, scenario.task);
}

#[test]
fn a_draft_of_dates_is_read_again_and_learns_from_days() {
    let rows: String = (0..40)
        .map(|row| {
            format!(
                "2020-{:02}-{:02},{}\n",
                1 + row % 12,
                1 + row % 28,
                ["home", "died"][row / 3 % 2]
            )
        })
        .collect();
    let table = file("dates.csv", &format!("admitted,outcome\n{rows}"));
    let first: task::schema::Day = "2020-01-01".parse().unwrap();
    let wanted = InitRequest {
        tables: vec![table.into()],
        wishes: Wishes {
            dates: vec![("admitted".into(), first)],
            ..Wishes::default()
        },
        ..InitRequest::default()
    };
    let plan = compose(&wanted, None).unwrap().plan;
    let TaskConfig::Table(task) = &plan.task else {
        panic!("a table");
    };
    let kinds = task.schema.iter().flat_map(|schema| &schema.features);
    let kinds: Vec<String> = kinds.map(|feature| feature.kind.to_string()).collect();
    assert_eq!(kinds, ["a date, as days since 2020-01-01"]);
}

#[test]
fn a_terminal_that_closes_ends_the_questions() {
    let (scenario, _) = asked(&InitRequest::default(), "");
    assert!(matches!(scenario, Err(ComposeError::Terminal(_))));
    let error = compose(&InitRequest::default(), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("what is learned is missing: give --scenario"),
        "{error}"
    );
}

/// A table in which most rows miss something, and some patients have several rows.
fn gaps() -> String {
    let mut text = String::from("patient,age,lactate,creatinine,ward,stay,outcome\n");
    for row in 0..240_usize {
        let draw = |salt: usize, of: usize| (row * (2 * salt + 31) + salt * 17) / 3 % of;
        let lab = |salt: usize, scale: f64| match draw(salt, 5) {
            0 | 1 => String::new(),
            _ => format!("{:.2}", scale * (1 + draw(salt + 1, 40)) as f64 / 20.0),
        };
        text += &format!(
            "P{:03},{},{},{},{},{},{}\n",
            row / 2,
            30 + draw(3, 50),
            lab(5, 1.0),
            lab(9, 55.0),
            ["a", "b", "c"][draw(11, 3)],
            1 + draw(13, 20),
            ["home", "died"][draw(17, 2)]
        );
    }
    text
}

fn of_table(protection: Protection, target: &str) -> InitRequest {
    InitRequest {
        tables: vec![file(&format!("gaps-{target}.csv"), &gaps()).into()],
        wishes: Wishes {
            target: Some(target.into()),
            ..Wishes::default()
        },
        protection: Some(protection),
        ..InitRequest::default()
    }
}

/// Whatever is drafted from a table fits, and no row is lost because something is missing in it.
#[test]
fn masks_and_noise_are_drafted_from_a_table_not_made_for_them() {
    for protection in [Protection::masked(), Protection::Noised(1.0)] {
        for target in ["outcome", "stay"] {
            let Composed {
                plan, protected, ..
            } = compose(&of_table(protection.clone(), target), None).unwrap();
            assert_eq!(plan.checked().privacy_faults(), [], "{target}");
            let agreed =
                crate::draft::agreement(&plan, &[]).unwrap_or_else(|error| panic!("{error}"));
            let mode = match protection {
                Protection::Noised(_) => "mode = \"differential-privacy\"",
                _ => "mode = \"secure-aggregation\"",
            };
            assert!(agreed.text.contains(mode), "{}", agreed.text);
            let said = protected.join("\n");
            assert!(said.contains("weight = \"equal\""), "{said}");
            let TaskConfig::Table(task) = &plan.task else {
                panic!("a table");
            };
            let rules = task.schema.iter().flat_map(|schema| &schema.features);
            let mut rules = rules.map(|feature| feature.missing);
            assert!(!rules.any(|rule| rule == MissingRule::Drop));
        }
    }
}

#[test]
fn noise_protects_persons_and_states_what_it_needs() {
    let composed = compose(&of_table(Protection::Noised(0.5), "outcome"), None).unwrap();
    let text = crate::draft::agreement(&composed.plan, &[]).unwrap().text;
    for line in [
        "keyed = true",
        "group = \"patient\"",
        "person = \"patient\"",
        "epsilon = 0.5",
        "delta = ",
        "clipping-norm = 0.5",
        "rounds = 20",
        "standardise = \"ranges\"",
        "missing = \"middle-indicator\"",
        "weight = \"equal\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let said = composed.protected.join("\n");
    for word in [
        "ranges: proposed from this table",
        "for all 20 rounds together, of every person that the column \"patient\"",
        "delta: enough for",
        "min-authors",
        "--new-ledger",
        "rota advise",
    ] {
        assert!(said.contains(word), "{word}\n{said}");
    }
}

#[test]
fn without_a_choice_disclosure_is_stated_and_a_terminal_asks() {
    let silent = InitRequest {
        protection: None,
        ..of_table(Protection::Clear, "outcome")
    };
    let composed = compose(&silent, None).unwrap();
    assert_eq!(composed.plan.privacy, None);
    let said = composed.protected.join("\n");
    assert!(
        said.contains("every member can read every model") && said.contains("--epsilon"),
        "{said}"
    );
    for (answer, mode) in [
        ("secure-aggregation", "mode = \"secure-aggregation\""),
        ("1", "mode = \"differential-privacy\""),
        ("none\n0.25", "epsilon = 0.25"),
    ] {
        let (composed, asked) = asked(&silent, &format!("{answer}\n\n\n\n\n"));
        let plan = composed.unwrap().plan;
        assert!(asked.contains("What may the other members read"), "{asked}");
        let table = toml::to_string(&plan.privacy.unwrap()).unwrap();
        assert!(table.contains(mode), "{table}");
    }
    let chosen = compose(&of_table(Protection::Clear, "outcome"), None).unwrap();
    assert_eq!(chosen.protected, [""; 0]);
}

#[test]
fn all_that_does_not_fit_is_reported_at_once() {
    let text = format!(
        "name = 'x'\nrounds = 4\n{}\n[protocol]\nmax-weight = 0.5\n[strategy]\nname = 'scaffold'\n\
         encoding = 'bf16'\ntraining = {{ epochs = 1, batch = 0, optimiser = {{ name = 'sgd', rate = 0.1 }} }}\n",
        SCHEMA
            .replace(
                "min-rows",
                "model = 'logistic'\n[task.table.schema]\nmin-rows"
            )
            .replacen("[task.table.schema]", "[task.table]", 1)
    );
    let wanted = InitRequest {
        scenario: Some(file("unfit.toml", &text)),
        protection: Some(Protection::Noised(1.0)),
        ..InitRequest::default()
    };
    let plan = compose(&wanted, None).unwrap().plan;
    let error = crate::draft::agreement(&plan, &[])
        .err()
        .unwrap()
        .to_string();
    for key in [
        "`strategy.name`",
        "`protocol.max-weight`",
        "`strategy.encoding`",
    ] {
        assert!(error.contains(key), "{key}\n{error}");
    }
}

/// `rota init` and `rota federation new` make the same of one choice.
#[test]
fn a_scenario_with_noise_is_read_as_it_was_fitted() {
    let table = file("gaps-init.csv", &gaps());
    let wishes = Wishes {
        target: Some("outcome".into()),
        numbers: vec!["stay".into()],
        pretend_silos: Some(4),
        ..Wishes::default()
    };
    for protection in [Protection::masked(), Protection::Noised(2.0)] {
        let drafted = crate::draft::draft(
            &[table.clone().into()],
            &wishes,
            Path::new("s.toml"),
            &protection,
            None,
        )
        .unwrap();
        let text = &drafted.text;
        let plan =
            FederationPlan::parse("s.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(plan.privacy.is_some());
        let mut again = plan.clone();
        let changed = protect::fitted(&mut again, &protection, Some(240));
        assert_eq!(again, plan, "{changed:?}\n{text}");
        assert_eq!(
            text.contains("keyed = true"),
            matches!(protection, Protection::Noised(_))
        );
    }
}

#[test]
fn an_event_that_was_found_is_taken_with_its_time() {
    let mut text = String::from("age,lab,died,days\n");
    for row in 0..80 {
        let (lab, event) = ((row * 7919 % 61) as f64 / 4.0, row * 40_503 / 32 % 3 % 2);
        text += &format!(
            "{},{lab},{event},{}\n",
            30 + row * 17 % 50,
            5 + row * 37 % 71
        );
    }
    let wanted = InitRequest {
        tables: vec![file("times.csv", &text).into()],
        name: Some("times".into()),
        rounds: Some(5),
        strategy: Some("fedavg".into()),
        protection: Some(Protection::Clear),
        ..InitRequest::default()
    };
    let (found, said) = asked(&wanted, "\ncox\n");
    let plan = found.unwrap().plan;
    assert!(
        said.contains("with the time until it in \"days\""),
        "{said}"
    );
    let TaskConfig::Table(task) = &plan.task else {
        panic!("{plan:?}");
    };
    let target = &task.schema.as_ref().unwrap().target;
    assert_eq!(target.name.iter().collect::<Vec<_>>(), ["died", "days"]);
    // With noise it is refused at once.
    let noised = InitRequest {
        protection: Some(Protection::Noised(1.0)),
        ..wanted
    };
    let why = asked(&noised, "\n").0.err().unwrap().to_string();
    assert!(why.contains("does not go with a time to an event"), "{why}");
}
