//! Every key refuses and allows.
#![allow(clippy::unwrap_used)]

mod statistics;

use std::path::Path;

use agreement::Agreement;
use ledger::{Contribution, Cost, Ledger, LedgerFile, Place, Source, SourceUnit};
use privacy::accountant::{Accountant, Delta};
use privacy::noise::{Authors, Multiplier};
use protocol::Hash;
use task::schema::LocalNames;

use super::refusals::PolicyRefusal;
use super::rounds::RoundRules;
use super::*;
use crate::fixture::{North, key};

/// The policy of a table beside a folder.
fn policy(beside: &Path, text: &str) -> SitePolicy {
    let table: PolicyTable = toml::from_str(text).unwrap_or_else(|why| panic!("{why}"));
    SitePolicy::new(table, beside, &beside.join("state")).unwrap_or_else(|why| panic!("{why:?}"))
}

/// Returns what of a policy refuses rounds of north under an agreement.
fn all(policy: &SitePolicy, agreement: &Agreement) -> Vec<PolicyRefusal> {
    policy.refusals(&ProposedRounds {
        agreement,
        me: agreement.epoch.roster.position(&key(9).public()),
        rows: Some(30),
        bytes: 400,
        names: None,
    })
}

/// The keys of a policy that refuse them.
fn keys(policy: &SitePolicy, agreement: &Agreement) -> Vec<&'static str> {
    let refusals = all(policy, agreement).into_iter();
    refusals.map(|refusal| refusal.key).collect()
}

/// Returns the reasons for which a policy refuses them.
fn refusals(policy: &SitePolicy, agreement: &Agreement) -> Vec<String> {
    let refusals = all(policy, agreement).into_iter();
    refusals.map(|refusal| refusal.why).collect()
}

/// The keys that refuse the example.
fn refused(text: &str) -> Vec<&'static str> {
    keys(&policy(Path::new("/house"), text), &North::agreement(&[]))
}

/// The example with secure-aggregation rounds of all its members.
fn masked() -> Agreement {
    North::read(&North::masked(""))
}

/// The example with noise for these rounds, sums of three authors or more, and one colluder.
fn noised(rounds: u64, more: &str) -> Agreement {
    let text = North::noised(&format!("noise-multiplier = 20.0\nmin-authors = 3\n{more}"));
    North::read(&text.replace("rounds = 6 ", &format!("rounds = {rounds} ")))
}

#[test]
fn an_empty_table_refuses_no_example_and_no_secure_aggregation() {
    assert_eq!(refused(""), [""; 0]);
    assert_eq!(keys(&SitePolicy::default(), &masked()), [""; 0]);
    assert_eq!(keys(&policy(Path::new("/house"), ""), &masked()), [""; 0]);
}

#[test]
fn private_rounds_need_a_ledger_or_a_person_who_waives_it() {
    let without = [SitePolicy::default(), policy(Path::new("/house"), "")];
    for policy in &without {
        assert_eq!(keys(policy, &noised(6, "")), ["ledger"]);
        let why = refusals(policy, &noised(6, "")).concat();
        assert!(why.contains("`rota federation sign` makes one"), "{why}");
        assert_eq!(policy.uncounted(&noised(6, "")), None);
    }
    let declined = policy(Path::new("/house"), "ledger = false");
    assert_eq!(keys(&declined, &noised(6, "")), [""; 0]);
    let said = declined.uncounted(&noised(6, "")).unwrap();
    assert!(said.contains("`ledger = false`"), "{said}");
    assert!(said.contains("that of this federation alone"), "{said}");
    // Without noise there is nothing to count.
    assert_eq!(declined.uncounted(&masked()), None);
    let folder = tempfile::tempdir().unwrap();
    let there = with_ledger(folder.path(), "");
    assert_eq!(keys(&there, &noised(6, "")), [""; 0]);
    assert_eq!(there.uncounted(&noised(6, "")), None);
    let table: PolicyTable = toml::from_str("ledger = true").unwrap();
    let house = Path::new("/house");
    let wrong = SitePolicy::new(table, house, &house.join("state")).unwrap_err();
    assert_eq!(wrong.0, "policy.ledger");
}

#[test]
fn modes() {
    assert_eq!(
        refused("allowed-modes = [\"secure-aggregation\", \"differential-privacy\"]"),
        ["allowed-modes"]
    );
    assert_eq!(
        refused("allowed-modes = [\"secure-aggregation\", \"clear\"]"),
        [""; 0]
    );
    let only = policy(
        Path::new("/house"),
        "allowed-modes = [\"secure-aggregation\"]\nledger = false",
    );
    assert_eq!(keys(&only, &masked()), [""; 0]);
    let none = policy(Path::new("/house"), "allowed-modes = [\"clear\"]");
    assert_eq!(keys(&none, &masked()), ["allowed-modes"]);
    // Masks alone are not noise, and the other way round.
    assert_eq!(keys(&only, &noised(6, "")), ["allowed-modes"]);
    let noise = policy(
        Path::new("/house"),
        "allowed-modes = [\"differential-privacy\"]\nledger = false",
    );
    assert_eq!(keys(&noise, &noised(6, "")), [""; 0]);
    assert_eq!(keys(&noise, &masked()), ["allowed-modes"]);
}

#[test]
fn strategies() {
    assert_eq!(
        refused("allowed-strategies = [\"fedavg\"]"),
        ["allowed-strategies"]
    );
    assert_eq!(
        refused("allowed-strategies = [\"fedavg\", \"cs-rcfl\"]"),
        [""; 0]
    );
}

#[test]
fn peers() {
    let agreement = North::agreement(&[]);
    let own = key(9).public();
    let silos = agreement.epoch.roster.silos().iter().map(|silo| silo.key);
    let others: Vec<_> = silos.filter(|key| *key != own).collect();
    let named = |keys: &[protocol::PublicKey]| {
        let keys: Vec<_> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        format!("allowed-peers = [{}]", keys.join(", "))
    };
    assert_eq!(refused(&named(&others)), [""; 0]);
    assert_eq!(refused(&named(&others[1..])), ["allowed-peers"]);
    assert_eq!(refused("allowed-peers = []"), ["allowed-peers"]);
}

#[test]
fn fewest_rows() {
    assert_eq!(refused("min-rows = 31"), ["min-rows"]);
    assert_eq!(refused("min-rows = 30"), [""; 0]);
    // 20 where there is a table, no limit where there is none.
    assert_eq!(toml::from_str::<PolicyTable>("").unwrap().fewest_rows, 20);
    assert_eq!(PolicyTable::default().fewest_rows, 0);
}

/// North has 30 rows and declares 120: one row of its own must not decide whether it takes part.
#[test]
fn with_noise_declared_rows_count_and_own_rows_are_only_noted() {
    let house = Path::new("/house");
    let agreement = noised(6, "");
    for (fewest, expected) in [(31, vec![]), (120, vec![]), (121, vec!["min-rows"])] {
        let policy = policy(house, &format!("min-rows = {fewest}\nledger = false"));
        assert_eq!(keys(&policy, &agreement), expected);
        let said = policy.few_rows(&agreement, 30).unwrap();
        assert!(said.contains("takes part all the same"), "{said}");
        assert_eq!(policy.few_rows(&masked(), 30), None);
    }
    let policy = policy(house, "min-rows = 121\nledger = false");
    let why = refusals(&policy, &agreement).concat();
    assert!(
        why.starts_with("this institution has declared 120 rows, and"),
        "{why}"
    );
    assert_eq!(policy.few_rows(&agreement, 121), None);
}

#[test]
fn smallest_sum() {
    let all = masked().epoch.roster.len();
    for (fewest, expected) in [(all, vec![]), (all + 1, vec!["min-sum-size"])] {
        let policy = policy(Path::new("/house"), &format!("min-sum-size = {fewest}"));
        assert_eq!(keys(&policy, &masked()), expected);
    }
    // With noise, as many authors as are agreed at least.
    for (fewest, expected) in [(3, vec![]), (4, vec!["min-sum-size"])] {
        let text = format!("min-sum-size = {fewest}\nledger = false");
        let policy = policy(Path::new("/house"), &text);
        assert_eq!(keys(&policy, &noised(6, "")), expected);
    }
}

#[test]
fn colluders() {
    let agreed = masked().epoch.protocol.privacy.masked().unwrap().colluders;
    for (withstood, expected) in [(agreed, vec![]), (agreed + 1, vec!["colluders"])] {
        let text = format!("colluders = {withstood}\nledger = false");
        let policy = policy(Path::new("/house"), &text);
        assert_eq!(keys(&policy, &masked()), expected);
        assert_eq!(keys(&policy, &noised(6, "")), expected);
    }
    assert_eq!(refused("colluders = 1"), ["colluders"]);
}

#[test]
fn never_leave() {
    for column in ["age", "days", "ward"] {
        assert_eq!(
            refused(&format!("forbidden-columns = [\"{column}\"]")),
            ["forbidden-columns"]
        );
    }
    assert_eq!(refused("forbidden-columns = [\"name\"]"), [""; 0]);
    // By the name in the institution's own files, too.
    let mut names = LocalNames::default();
    names.columns.insert("age".into(), "alter".into());
    let agreement = North::agreement(&[]);
    let refusals =
        policy(Path::new("/house"), "forbidden-columns = [\"alter\"]").refusals(&ProposedRounds {
            agreement: &agreement,
            me: None,
            rows: None,
            bytes: 1,
            names: Some(&names),
        });
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].why.contains("the column age"), "{refusals:?}");
}

#[test]
fn bytes_a_round() {
    assert_eq!(
        refused("max-bytes-per-round = 399"),
        ["max-bytes-per-round"]
    );
    assert_eq!(refused("max-bytes-per-round = 400"), [""; 0]);
    let rules = RoundRules {
        hours: Vec::new(),
        bytes: Some(400),
    };
    assert!(rules.at(0, 400).is_ok() && rules.at(0, 401).is_err());
}

#[test]
fn hours() {
    let rules = |hours: &str| RoundRules {
        hours: vec![hours.parse().unwrap()],
        bytes: None,
    };
    let night = rules("22:00-06:00");
    for (minute, allowed) in [
        (0, true),
        (359, true),
        (360, false),
        (1319, false),
        (1320, true),
    ] {
        assert_eq!(night.at(minute, 1).is_ok(), allowed, "{minute}");
    }
    let day = rules("08:30-24:00");
    for (minute, allowed) in [(509, false), (510, true), (1439, true), (0, false)] {
        assert_eq!(day.at(minute, 1).is_ok(), allowed, "{minute}");
    }
    let why = night.at(750, 1).unwrap_err();
    assert!(
        why.contains("22:00-06:00 UTC") && why.contains("12:30"),
        "{why}"
    );
    for wrong in [
        "",
        "22-6",
        "25:00-01:00",
        "08:60-09:00",
        "09:00-09:00",
        "24:00-01:00",
        "+9:00-10:00",
    ] {
        assert!(wrong.parse::<super::hours::Hours>().is_err(), "{wrong}");
    }
}

/// A new ledger of rows, and the policy that names it with these further keys.
fn with_ledger(folder: &Path, more: &str) -> SitePolicy {
    let file = folder.join("patients.ledger");
    if !file.exists() {
        let source = Source {
            name: "patients".into(),
            unit: SourceUnit::Row,
        };
        LedgerFile::create(&file, &source, &[1; 16]).unwrap();
    }
    policy(folder, &format!("ledger = \"patients.ledger\"\n{more}"))
}

#[test]
fn ledger() {
    let folder = tempfile::tempdir().unwrap();
    let agreement = North::agreement(&[]);
    let missing = policy(folder.path(), "ledger = \"patients.ledger\"");
    assert_eq!(keys(&missing, &agreement), ["ledger"]);
    let there = with_ledger(folder.path(), "");
    assert_eq!(keys(&there, &agreement), [""; 0]);
    std::fs::write(folder.path().join("patients.ledger"), "damaged").unwrap();
    assert_eq!(keys(&there, &agreement), ["ledger"]);
}

#[test]
fn a_ledger_in_use_refuses_and_is_asked_again_in_every_round() {
    let folder = tempfile::tempdir().unwrap();
    let policy = with_ledger(folder.path(), "");
    let file = std::fs::File::open(folder.path().join("patients.ledger")).unwrap();
    file.lock().unwrap();
    let agreement = North::agreement(&[]);
    assert_eq!(keys(&policy, &agreement), ["ledger"]);
    let refused = all(&policy, &agreement);
    assert!(refused.iter().all(|refusal| refusal.passes), "{refused:?}");
    drop(file);
    assert_eq!(keys(&policy, &agreement), [""; 0]);
}

#[test]
fn a_ledger_of_another_unit_than_the_agreement_protects() {
    let folder = tempfile::tempdir().unwrap();
    let of_rows = with_ledger(folder.path(), "");
    assert_eq!(keys(&of_rows, &noised(6, "")), [""; 0]);
    let mut text =
        North::noised("noise-multiplier = 20.0\nprivacy-unit = { person = \"patient\" }");
    text = text.replacen("split = { ", "split = { group = \"patient\", ", 1);
    let of_persons = North::read(&text);
    let why = refusals(&of_rows, &of_persons);
    assert_eq!(why.len(), 1, "{why:?}");
    assert!(
        why[0].contains("counts the unit row, and the agreement protects the unit person:patient"),
        "{why:?}"
    );
}

#[test]
fn epsilon_and_epsilon_alone_refuse_rounds_without_noise() {
    let folder = tempfile::tempdir().unwrap();
    for (limit, key) in [
        ("epsilon = 1", "epsilon"),
        ("epsilon-all-collude = 1.5", "epsilon-all-collude"),
    ] {
        let policy = with_ledger(folder.path(), limit);
        for agreement in [North::agreement(&[]), masked()] {
            assert_eq!(keys(&policy, &agreement), [key], "{limit}");
        }
    }
    let policy = with_ledger(folder.path(), "delta = 1e-6");
    assert_eq!(keys(&policy, &North::agreement(&[])), [""; 0]);
    assert_eq!(policy.room(&North::agreement(&[])), None);
}

/// Returns what holds after so many of the differentially private rounds, at this δ: ε and ε_alone.
fn after(rounds: u64, delta: f64) -> (f64, f64) {
    let cost = Cost::of(&noised(rounds, "").epoch.protocol.privacy).unwrap();
    let mut accountant = Accountant::new();
    cost.spend(&mut accountant, rounds);
    let bound = accountant.bound(Delta::new(delta).unwrap());
    (bound.epsilon().value(), bound.alone().value())
}

#[test]
fn a_model_solved_at_once_costs_one_round_which_fits_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let keys_of_once = "mechanism = \"sufficient-statistics\"\nmax-row-norm = 2.0\nmax-target = 1.0\nnoise-multiplier = 20.0\nmin-authors = 3\n";
    let text = North::noised(keys_of_once).replace("rounds = 6 ", "rounds = 1 ");
    let once = North::read(&text.replace("loss = \"absolute\"", "loss = \"squared\""));
    let (epsilon, _) = after(1, 1e-5);
    let policy = with_ledger(folder.path(), &format!("epsilon = {epsilon:?}"));
    assert_eq!(keys(&policy, &once), [""; 0]);
    assert_eq!(policy.room(&once), Some(LedgerRoom { left: 1, fits: 1 }));
    let policy = with_ledger(folder.path(), &format!("epsilon = {:?}", epsilon / 2.0));
    assert_eq!(keys(&policy, &once), ["epsilon"]);
    let why = refusals(&policy, &once).concat();
    assert!(
        why.starts_with("after the round to come of this agreement"),
        "{why}"
    );
    assert!(why.ends_with(": it does not fit"), "{why}");
    assert_eq!(policy.room(&once), Some(LedgerRoom { left: 1, fits: 0 }));
}

#[test]
fn both_epsilons_at_delta_refuse_more_private_rounds_than_fit() {
    let folder = tempfile::tempdir().unwrap();
    let ((epsilon, alone), (at_less, _)) = (after(25, 1e-5), after(25, 1e-6));
    assert!(epsilon < alone && epsilon < at_less);
    for (limits, key) in [
        (format!("epsilon = {epsilon:?}"), "epsilon"),
        (
            format!("epsilon-all-collude = {alone:?}"),
            "epsilon-all-collude",
        ),
        (format!("epsilon = {at_less:?}\ndelta = 1e-6"), "epsilon"),
        (
            format!("epsilon = 100.0\nepsilon-all-collude = {alone:?}"),
            "epsilon-all-collude",
        ),
    ] {
        let policy = with_ledger(folder.path(), &limits);
        assert_eq!(keys(&policy, &noised(25, "")), [""; 0], "{limits}");
        for rounds in [26, 40, 1000] {
            let agreement = noised(rounds, "");
            assert_eq!(keys(&policy, &agreement), [key], "{limits}, {rounds}");
            let why = refusals(&policy, &agreement).concat();
            let rounds_more = formatting::numbers::plural(rounds as usize, "round");
            let more = format!("after {rounds_more} more of this agreement the ledger");
            assert!(why.starts_with(&more), "{why}");
            assert!(why.ends_with(": 25 of them would fit"), "{why}");
            let room = LedgerRoom {
                left: rounds,
                fits: 25,
            };
            assert_eq!(policy.room(&agreement), Some(room));
        }
    }
    // A smaller δ leaves room for fewer rounds.
    let less = with_ledger(
        folder.path(),
        &format!("epsilon = {epsilon:?}\ndelta = 1e-6"),
    );
    assert_eq!(keys(&less, &noised(25, "")), ["epsilon"]);
}

#[test]
fn the_ledger_leaves_less_room_and_own_rounds_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let (epsilon, _) = after(25, 1e-5);
    let policy = with_ledger(
        folder.path(),
        &format!("epsilon = {:?}", epsilon * 1.000_001),
    );
    let agreement = noised(25, "");
    let record = |federation, epoch, round| {
        let place = Place {
            federation,
            epoch,
            round,
        };
        let contribution = Contribution {
            place,
            commitment: Hash::of(&[epoch as u8, round as u8]),
            cost: Cost::of(&agreement.epoch.protocol.privacy).unwrap(),
        };
        let file = policy.source.as_ref().unwrap().file();
        file.record(&contribution).unwrap();
    };
    let own = agreement.epoch.federation;
    for round in 1..=3 {
        record(own, 0, round);
    }
    assert_eq!(keys(&policy, &agreement), [""; 0]);
    let room = |left, fits| Some(LedgerRoom { left, fits });
    assert_eq!(policy.room(&agreement), room(22, 22));
    // Another federation of the same source has spent two rounds.
    record(Hash([9; 32]), 0, 1);
    record(Hash([9; 32]), 0, 2);
    assert_eq!(keys(&policy, &agreement), ["epsilon"]);
    assert_eq!(policy.room(&agreement), room(22, 20));
    // An epoch that goes on from an earlier round does the later ones again.
    let mut again = agreement.clone();
    let mut epoch = (*agreement.epoch).clone();
    (epoch.number, epoch.began.round) = (1, 2);
    again.epoch = epoch.into();
    assert_eq!(policy.room(&again), room(23, 20));
}

#[test]
fn a_ledger_beyond_epsilon_or_epsilon_alone_at_delta_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let open = with_ledger(folder.path(), "").source.unwrap().file();
    let spend = |round| Contribution {
        place: Place {
            federation: Hash([1; 32]),
            epoch: 0,
            round,
        },
        commitment: Hash([round as u8; 32]),
        cost: Cost::Noised {
            z: Multiplier::new(4.0).unwrap(),
            authors: Authors::new(7, 3).unwrap(),
            unit: SourceUnit::Row,
        },
    };
    open.record(&spend(1)).unwrap();
    // noise-multiplier = 4 once: epsilon 0.927 at delta 1e-5, 1.061 at 1e-6.
    let spent = |more: &str| {
        let policy = with_ledger(folder.path(), more);
        keys(&policy, &North::agreement(&[])).contains(&"ledger")
    };
    for (more, expected) in [
        ("epsilon = 1", false),
        ("epsilon = 0.9", true),
        ("epsilon = 1\ndelta = 1e-6", true),
        ("epsilon-all-collude = 1", true),
        ("epsilon-all-collude = 3", false),
    ] {
        assert_eq!(spent(more), expected, "{more}");
    }
}

#[test]
fn keys_that_cannot_be_right_are_refused_when_the_file_is_read() {
    let wrong = |text: &str| {
        let table: PolicyTable = toml::from_str(text).unwrap();
        let house = Path::new("/house");
        SitePolicy::new(table, house, &house.join("state"))
            .unwrap_err()
            .0
    };
    assert_eq!(wrong("epsilon = 1"), "policy.epsilon");
    assert_eq!(
        wrong("epsilon-all-collude = 1"),
        "policy.epsilon-all-collude"
    );
    assert_eq!(wrong("delta = 1e-5"), "policy.delta");
    assert_eq!(wrong("ledger = \"l\"\nepsilon = 0"), "policy.epsilon");
    assert_eq!(wrong("ledger = \"l\"\nepsilon = nan"), "policy.epsilon");
    assert_eq!(wrong("ledger = \"l\"\ndelta = 0.5"), "policy.delta");
    assert_eq!(wrong("ledger = \"x/../state/l\""), "policy.ledger");
    for unknown in [
        "allowed-modes = [\"open\"]",
        "training-hours-utc = [\"noon\"]",
        "epsilons = 1",
    ] {
        assert!(toml::from_str::<PolicyTable>(unknown).is_err(), "{unknown}");
    }
}

#[test]
fn a_ledger_line_has_both_epsilons_their_limits_and_delta() {
    let folder = tempfile::tempdir().unwrap();
    let policy = with_ledger(folder.path(), "epsilon = 2.0\nepsilon-all-collude = 3.5");
    let source = policy.source.as_ref().unwrap();
    let text = || LedgerStatus::of(source, &source.read().unwrap()).text();
    assert_eq!(
        text(),
        "patients (unit row): 0 contributions; epsilon 0.00000000 of 2, epsilon_alone 0.00000000 of 3.5 if all \
         others collude, delta 1e-5"
    );
    let agreement = noised(6, "");
    let contribution = |round, cost| Contribution {
        place: Place {
            federation: agreement.epoch.federation,
            epoch: 0,
            round,
        },
        commitment: Hash::of(&[round as u8]),
        cost,
    };
    let cost = Cost::of(&agreement.epoch.protocol.privacy).unwrap();
    source.file().record(&contribution(1, cost)).unwrap();
    let bound = source.read().unwrap().bound(source.limits.delta);
    assert_eq!(
        text(),
        format!(
            "patients (unit row): 1 contribution; epsilon {} of 2, epsilon_alone {} of 3.5 if all others \
             collude, delta 1e-5",
            bound.epsilon(),
            bound.alone()
        )
    );
    let open = with_ledger(folder.path(), "");
    let source = open.source.as_ref().unwrap();
    source
        .file()
        .record(&contribution(2, Cost::NoBound))
        .unwrap();
    assert_eq!(
        LedgerStatus::of(source, &source.read().unwrap()).text(),
        "patients (unit row): 2 contributions, 1 of them without noise; epsilon no bound, epsilon_alone no bound \
         if all others collude, delta 1e-5"
    );
}
