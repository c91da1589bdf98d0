#![allow(clippy::unwrap_used)]

use methods::strategy::{Method, NoisedUse, STRATEGIES, StrategyView};
use toml::{Table, Value};

use super::*;
use crate::agreement::Agreement;

const EXAMPLE: &str = include_str!("../../../../examples/federation.toml");

/// The strategies of secure-aggregation rounds.
const SUMS: [&str; 12] = [
    "fedavg",
    "fedprox",
    "fedadam",
    "fedyogi",
    "fedadagrad",
    "fedper",
    "fedrep",
    "fedbn",
    "ditto",
    "apfl",
    "pfedme",
    "fedala",
];

/// Four institutions, and these edits: a path and its value in TOML, or nothing to remove the key.
pub(crate) fn text(edits: &[(&str, &str)]) -> String {
    let mut file: Table = toml::from_str(EXAMPLE).unwrap();
    file.insert("format".into(), Value::Integer(3));
    for (path, value) in edits {
        let (tables, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = &mut file;
        for part in tables.split('.').filter(|part| !part.is_empty()) {
            let next = table
                .entry(part)
                .or_insert_with(|| Value::Table(Table::new()));
            table = next.as_table_mut().unwrap();
        }
        match *value {
            "" => drop(table.remove(key)),
            value => {
                let mut one: Table = toml::from_str(&format!("x = {value}")).unwrap();
                table.insert(key.into(), one.remove("x").unwrap());
            }
        }
    }
    toml::to_string(&file).unwrap()
}

fn strategy(name: &str) -> String {
    let weight = match name {
        _ if SUMS.contains(&name) => "weight = \"equal\", ",
        _ => "",
    };
    format!(
        "{{ name = \"{name}\", {weight}training = {{ epochs = 1, batch = 8, \
         optimiser = {{ name = \"sgd\", rate = 0.02 }} }} }}"
    )
}

/// A masked agreement that can be read, and these edits.
fn masked(edits: &[(&str, &str)]) -> String {
    let fedavg = strategy("fedavg");
    let base = [
        ("privacy.mode", "\"secure-aggregation\""),
        ("strategy", &*fedavg),
        ("task.table.standardise", "\"silo\""),
        ("protocol.max-model-norm", ""),
    ];
    text(&[&base[..], edits].concat())
}

fn read(edits: &[(&str, &str)]) -> Agreement {
    let text = masked(edits);
    Agreement::parse("f.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn why(edits: &[(&str, &str)]) -> String {
    match Agreement::parse("f.toml", &masked(edits)) {
        Ok(_) => panic!("{edits:?} was accepted"),
        Err(why) => why.to_string(),
    }
}

#[test]
fn every_method_works_on_sums_or_is_refused_with_a_remedy() {
    for info in STRATEGIES {
        let edit = ("strategy", &*strategy(info.name));
        if SUMS.contains(&info.name) {
            assert!(read(&[edit]).epoch.protocol.privacy.masked().is_some())
        } else {
            let why = why(&[edit]);
            let named = format!("`name` is \"{}\", which cannot be used", info.name);
            assert!(why.contains(&named), "{why}");
            assert!(why.contains("choose fedavg, fedprox"), "{why}");
        }
    }
}

#[test]
fn sums_of_statistics_need_agreed_steps_and_one_equal_group() {
    let hierarchical =
        strategy("hierarchical").replace("\", training", "\", exponent = 0, training");
    let edit = ("strategy", &*hierarchical);
    let members =
        |weight: u64| format!("[{{ north = 1, south = 1, east = 1, \"west coast\" = {weight} }}]");
    read(&[edit]);
    read(&[edit, ("privacy.group", &members(1))]);
    let unequal = why(&[edit, ("privacy.group", &members(2))]);
    let said = "must give all members the same weight: hierarchical counts every silo once";
    assert!(unequal.contains(said), "{unequal}");
    let two = "[{ north = 1, south = 1 }, { east = 1, \"west coast\" = 1 }]";
    let two = why(&[edit, ("privacy.group", two)]);
    assert!(
        two.contains("one sum of all its silos, and there are 2 groups"),
        "{two}"
    );
    let without = why(&[("strategy", &strategy("hierarchical"))]);
    assert!(
        without.contains("`exponent = 0` in [strategy]"),
        "{without}"
    );
}

#[test]
fn secure_aggregation_has_defaults_and_its_groups_are_written() {
    let agreement = read(&[("protocol.min-contributions", "")]);
    let protocol = &agreement.epoch.protocol;
    let names: Vec<_> = agreement.epoch.roster.silos().iter().collect();
    let mut authors: Vec<_> = names.iter().map(|silo| (silo.name.clone(), 1)).collect();
    authors.sort();
    let expected = Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: 3,
        sums: Sums::Groups(vec![Group { authors }]),
    };
    assert_eq!(protocol.privacy, Privacy::Masked(expected));
    assert_eq!((protocol.min_contributions, agreement.epoch.format), (3, 3));
    let written = agreement.to_toml().unwrap();
    assert!(written.contains("[[privacy.group]]"), "{written}");
    let again = Agreement::parse("again", &written).unwrap();
    assert_eq!(again.epoch.id, agreement.epoch.id);
}

#[test]
fn groups_are_read_with_their_weights() {
    let groups = "[{ \"west coast\" = 1, north = 2, east = 1 }]";
    let found = read(&[("privacy.group", groups)]);
    let found = found.epoch.protocol.privacy.masked().unwrap().groups();
    let authors = [("east", 1), ("north", 2), ("west coast", 1)];
    let authors = authors.map(|(name, weight)| (name.to_owned(), weight));
    assert_eq!(found[0].authors, authors);
}

#[test]
fn a_table_that_states_clear_changes_no_id() {
    let id = |edits| {
        let read = Agreement::parse("f.toml", &text(edits)).unwrap();
        (read.epoch.id, read.to_toml().unwrap())
    };
    assert_eq!(id(&[("privacy.mode", "\"clear\"")]), id(&[]));
    for (key, value) in [
        ("privacy.colluders", "1"),
        ("privacy.min-sum-size", "3"),
        ("privacy.group", "[{ north = 1 }]"),
    ] {
        let text = text(&[("privacy.mode", "\"clear\""), (key, value)]);
        let why = Agreement::parse("f.toml", &text).err().unwrap().to_string();
        assert!(
            why.contains("is for secure-aggregation rounds only"),
            "{why}"
        );
    }
}

#[test]
fn what_secure_aggregation_cannot_do_is_refused_with_a_remedy() {
    let network = "{ network = { layers = [{ dense = 4 }, \"norm\", \"relu\"] } }";
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("protocol.names", "\"shown\"")],
            "`names` must be \"removed\"",
        ),
        (
            &[("protocol.max-model-norm", "9.0")],
            "nobody sees a single model",
        ),
        (&[("protocol.max-weight", "0.5")], "is for weights by rows"),
        (
            &[("task.table.standardise", "\"federation\"")],
            "must be \"silo\" or \"none\"",
        ),
        (
            &[("strategy.weight", "\"exact\"")],
            "`weight` must be \"equal\"",
        ),
        (
            &[("strategy.aggregation", "{ name = \"coordinate-median\" }")],
            "only sums",
        ),
        (
            &[("strategy.encoding", "\"bf16\"")],
            "`encoding` must be \"f32\"",
        ),
        (
            &[("strategy.participation", "3")],
            "`participation` must be left out",
        ),
        (
            &[("strategy.stop", "{ patience = 3 }")],
            "`stop` must be left out",
        ),
        (
            &[("task.table.model", network)],
            "choose the strategy fedbn",
        ),
        (
            &[("format", "2")],
            "secure-aggregation rounds need message format 3",
        ),
        (&[("protocol.verification", "\"inclusion\"")], "verif"),
        (
            &[("protocol.min-contributions", "2")],
            "min-contributions is 2",
        ),
        (&[("privacy.colluders", "2")], "colluders is 2"),
        (&[("privacy.min-sum-size", "2")], "min-sum-size is 2"),
        (
            &[("privacy.group", "[{ north = 1, south = 1 }]")],
            "north, south",
        ),
    ];
    for (edits, said) in cases {
        let why = why(edits);
        assert!(why.contains(said), "{edits:?}: {why}");
    }
    // The same network goes with statistics that stay at home.
    read(&[
        ("task.table.model", network),
        ("strategy", &strategy("fedbn")),
    ]);
}

#[test]
fn fewer_than_four_members_cannot_mask() {
    let mut file: Table = toml::from_str(&masked(&[("task.table.domains", "")])).unwrap();
    file["member"].as_array_mut().unwrap().truncate(3);
    let text = toml::to_string(&file).unwrap();
    let why = Agreement::parse("f.toml", &text).err().unwrap().to_string();
    assert!(
        why.contains("secure-aggregation rounds need at least 4 members"),
        "{why}"
    );
}

#[test]
fn what_opens_more_comes_first_among_the_changes_and_is_marked() {
    let changes = |before: &Agreement, after: &Agreement| {
        let changes = before.difference(after).changes;
        let of = |change: crate::Changed| (change.key, change.weaker.is_some());
        changes.into_iter().map(of).collect::<Vec<_>>()
    };
    let (masked, open) = (read(&[]), {
        let text = text(&[
            ("strategy", &*strategy("fedavg")),
            ("task.table.standardise", "\"silo\""),
        ]);
        Agreement::parse("f.toml", &text).unwrap()
    });
    let found = changes(&masked, &open);
    assert!(
        found[0].0.starts_with("privacy.") && found[0].1,
        "{found:?}"
    );
    assert!(found.contains(&("privacy.mode".into(), true)), "{found:?}");
    let found = changes(&open, &masked);
    assert!(found.contains(&("privacy.mode".into(), false)), "{found:?}");
    let marked = |(key, weaker): &(String, bool)| *weaker && key.starts_with("privacy.");
    assert!(!found.iter().any(marked), "{found:?}");
    let more = read(&[("privacy.min-sum-size", "4")]);
    assert_eq!(
        changes(&more, &masked),
        [("privacy.min-sum-size".to_owned(), true)]
    );
    assert_eq!(
        changes(&masked, &more),
        [("privacy.min-sum-size".to_owned(), false)]
    );
}

#[test]
fn what_to_choose_names_all_strategies_that_declare_to_fit() {
    let named = |text: &str, name: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
        words.any(|word| word == name)
    };
    for strategy in STRATEGIES {
        let (name, method) = (strategy.name, Method::named(strategy.name).unwrap());
        let sums = matches!(method.sees(), StrategyView::Sums(_));
        assert_eq!(named(refusals::CHOOSE, name), sums, "{name}");
        let noised = method.noised() == NoisedUse::Steps;
        assert_eq!(named(noised::CHOOSE, name), noised, "{name}");
        assert!(sums || !noised, "{name}: noise is added to sums");
    }
}
