#![allow(clippy::unwrap_used)]

use protocol::message::{Block, Change, Content};
use protocol::{MemberIndex, SecretKey};

use super::*;

const EXAMPLE: &str = include_str!("../../../../examples/federation.toml");

fn agreement() -> Agreement {
    Agreement::parse("federation.toml", EXAMPLE).unwrap()
}

/// An amendment whose text was edited by hand, with the roster and the parameter set that the text gives,
/// whatever the commands think of it.
fn by_hand(text: &str) -> Amendment {
    let new = Agreement::parse("by hand", text).unwrap_or_else(|error| panic!("{error}"));
    Amendment {
        format: new.epoch.format,
        silos: new.epoch.roster.silos().to_vec(),
        protocol: new.epoch.protocol.clone(),
        text: text.into(),
        stolen: Vec::new(),
    }
}

fn edited(edits: &[(&str, &str)]) -> String {
    let mut text = EXAMPLE.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "the example has no {from:?}");
        text = text.replacen(from, to, 1);
    }
    text
}

fn refused(old: &Agreement, amendment: &Amendment) -> String {
    match old.examine(amendment, learn::stand_in) {
        Ok(_) => panic!("it was accepted"),
        Err(why) => why.to_string(),
    }
}

/// An edit that may be made: one round more.
const MORE: (&str, &str) = ("rounds = 6", "rounds = 7");

/// Edits of what has to stay, and a part of the reason why they are refused.
const FIXED: &[((&str, &str), &str)] = &[
    (
        ("loss = \"absolute\"", "loss = \"squared\""),
        "`task.table.model.linear.loss`: \"absolute\" before, \"squared\" after",
    ),
    (
        ("label-cost = 1.0", "label-cost = 2.0"),
        "`task.table.robust.label-cost`: 1.0 before",
    ),
    (
        ("metric = \"mae\"", "metric = \"mse\""),
        "`task.table.metric`",
    ),
    (("test = 0.3", "test = 0.4"), "`task.table.split.test`"),
    (
        ("domains = [0, 0, 1, 1]", "domains = [0, 1, 0, 1]"),
        "`task.table.domains`",
    ),
    (
        ("min-rows = 10", "min-rows = 2"),
        "`task.table.schema.min-rows`",
    ),
    (
        ("missing = \"mean\"", "missing = \"drop\""),
        "`task.table.schema.feature[1].missing`",
    ),
    (
        ("levels = [\"general\"", "levels = [\"local\""),
        "`task.table.schema.feature[2].levels`",
    ),
    (
        ("seed = 1", "seed = 2"),
        "the seed (`seed`: 1 before, 2 after)",
    ),
    (
        ("personal = []", "personal = [\"intercept\"]"),
        "which layers stay with each silo",
    ),
    (
        ("personal = []", "trained = [\"intercept\"]"),
        "which layers are trained",
    ),
    (
        ("personal = []", "stop = { patience = 3 }"),
        "whether the federation may end early",
    ),
];

/// Checks that an edit is refused, with this in the reason.
fn stays(edit: (&str, &str), said: &str) {
    // As it was done: what is shown is one round more.
    let why = refused(&agreement(), &by_hand(&edited(&[edit, MORE])));
    assert!(
        why.starts_with("an amendment cannot change"),
        "{edit:?}: {why}"
    );
    assert!(why.contains(said), "{edit:?}: {why}");
}

#[test]
fn what_has_to_stay_is_refused_by_name_whoever_wrote_the_amendment() {
    for (edit, said) in FIXED {
        stays(*edit, said);
    }
    let continues = format!(
        "[continues]\nname = \"x\"\nround = 1\nfederation = \"{0}\"\nblock = \"{0}\"\nmodel = \"{0}\"\n[protocol]",
        "0".repeat(64)
    );
    stays(
        ("[protocol]", &continues),
        "the federation that it continues",
    );
    let old = agreement();
    let own = ["coalitions = 2", "freeze = 1", "folds = 5"];
    let edits: Vec<_> = own.iter().map(|own| (*own, "")).collect();
    let text = edited(
        &[
            &edits[..],
            &[("name = \"cs-rcfl\"", "name = \"fedavg\""), MORE],
        ]
        .concat(),
    );
    let why = refused(&old, &by_hand(&text));
    assert!(
        why.contains("the strategy (`strategy.name`: \"cs-rcfl\" before, \"fedavg\" after)"),
        "{why}"
    );
    let why = refused(
        &old,
        &by_hand(&edited(&[("start = \"cfac", "start = \"cfad"), MORE])),
    );
    assert!(why.contains("starts from another state"), "{why}");
}

#[test]
fn rules_rounds_members_and_options_may_change() {
    let old = agreement();
    let text = edited(&[
        ("rounds = 6", "rounds = 3001"),
        ("heartbeat = \"5s\"", "heartbeat = \"6s\""),
        ("verification = \"full\"", "verification = \"inclusion\""),
        ("coalitions = 2", "coalitions = 3"),
        ("epochs = 10", "epochs = 11"),
        ("personal = []", "encoding = \"bf16\""),
        ("rota.north.example/udp", "elsewhere.example/udp"),
    ]);
    let new = old.examine(&by_hand(&text), learn::stand_in).unwrap();
    assert_eq!(new.epoch.protocol.rounds, 3001);
    let key = SecretKey::from_bytes(&[9; 32]).public();
    let text = old.rekeyed("south", key).unwrap();
    assert!(old.examine(&by_hand(&text), learn::stand_in).is_ok());
    // A stop that is there may get other numbers.
    let with = |stop: &str| {
        edited(&[
            ("personal = []", stop),
            ("blob-limit = 392", "blob-limit = 999"),
        ])
    };
    let stops = Agreement::parse("f", &with("stop = { patience = 3 }")).unwrap();
    assert!(
        stops
            .examine(&by_hand(&with("stop = { patience = 4 }")), learn::stand_in)
            .is_ok()
    );
    let why = refused(&stops, &by_hand(EXAMPLE));
    assert!(
        why.contains("whether the federation may end early"),
        "{why}"
    );
}

#[test]
fn a_text_that_says_something_else_than_what_is_signed_is_refused() {
    let old = agreement();
    let text = edited(&[("rounds = 6", "rounds = 7")]);
    let wrong = |change: &dyn Fn(&mut Amendment)| {
        let mut amendment = by_hand(&text);
        change(&mut amendment);
        let why = refused(&old, &amendment);
        assert!(why.contains("gives other members or rules"), "{why}");
    };
    wrong(&|amendment| amendment.protocol.rounds = 8);
    wrong(&|amendment| amendment.protocol.work.push(0));
    wrong(&|amendment| amendment.silos.swap(0, 1));
    wrong(&|amendment| amendment.silos[0].name = "elsewhere".into());
    wrong(&|amendment| amendment.silos[0].key = SecretKey::from_bytes(&[9; 32]).public());
    let mut amendment = by_hand(&text);
    amendment.text = vec![0xff; 10];
    assert!(refused(&old, &amendment).contains("is not UTF-8"));
    // Nothing but one member that goes may have no text.
    amendment.text = Vec::new();
    let why = refused(&old, &amendment);
    assert!(why.contains("gives other members or rules"), "{why}");
    assert!(
        old.examine(&old.leaving(MemberIndex(1)), learn::stand_in)
            .is_ok()
    );
}

#[test]
fn a_text_that_can_be_read_in_two_ways_is_refused() {
    let old = agreement();
    let whole = by_hand(&edited(&[("rounds = 6", "rounds = 7")]));
    let with = |from: &str, to: &str| {
        let text = String::from_utf8(whole.text.clone()).unwrap();
        assert!(text.contains(from), "{from}");
        let text = text.replacen(from, to, 1).into_bytes();
        refused(
            &old,
            &Amendment {
                text,
                ..whole.clone()
            },
        )
    };
    for (from, to) in [
        ("rounds = 7", "rounds = 7\nrounds = 7"),
        ("rounds = 7", "rounds = 7\n\"rounds\" = 7"),
        ("blob-limit = 392", "blob-limit = 392\nblob-limit = 392"),
        ("[protocol]", "protocol.blob-limit = 392\n[protocol]"),
        ("freeze = 1", "freeze = 1\nfreeze = 1"),
        ("epochs = 10,", "epochs = 10, epochs = 10,"),
        ("[strategy]", "[protocol]\n[strategy]"),
        ("rounds = 7", "rounds = 7\nRounds = 3"),
    ] {
        let why = with(from, to);
        assert!(why.starts_with("the amendment, line "), "{to}: {why}");
    }
    for odd in [
        "\u{202e}",
        "\u{200b}",
        "\u{feff}",
        "\u{1b}[8m",
        "\u{a0}",
        "\r",
        "\u{2028}",
        "\u{8}",
    ] {
        let why = with("rounds = 7", &format!("rounds = 7 # as before{odd} or not"));
        assert!(
            why.contains("of the text has the character U+"),
            "{odd:?}: {why}"
        );
    }
    let dos = EXAMPLE
        .replace('\n', "\r\n")
        .replace("rounds = 6 ", "rounds = 7\t");
    assert!(old.examine(&by_hand(&dos), learn::stand_in).is_ok());
    let escaped = edited(&[("rota.north.example/udp", "rota.north\\u202E.example/udp")]);
    let why = refused(&old, &by_hand(&escaped));
    assert!(
        why.contains("the value of `member.north.addresses` has a character"),
        "{why}"
    );
}

#[test]
fn a_limit_below_the_contributions_of_the_agreed_model_is_refused() {
    let old = agreement();
    let why = refused(
        &old,
        &by_hand(&edited(&[("blob-limit = 392", "blob-limit = 31")])),
    );
    assert!(
        why.starts_with(
            "`protocol.blob-limit` is 31, and a contribution under this agreement has 392 bytes"
        ),
        "{why}"
    );
    assert!(why.contains("set it to 392 or more"), "{why}");
    let wider = edited(&[("blob-limit = 392", "blob-limit = 1000")]);
    assert!(old.examine(&by_hand(&wider), learn::stand_in).is_ok());
}

/// The block with which an amendment comes into force.
fn final_block(old: &Agreement, amendment: Amendment) -> Block {
    Block {
        epoch: old.epoch.id,
        parent: old.epoch.id,
        view: 1,
        content: Content::Change(Box::new(Change {
            amendment,
            after: old.epoch.began,
            approvals: Vec::new().into(),
        })),
    }
}

fn brought_into_force(old: &Agreement, amendment: Amendment) -> Agreement {
    let genesis = Genesis {
        silos: amendment.silos.clone(),
        protocol: amendment.protocol.clone(),
    };
    let epoch = Epoch::first_in(amendment.format, &genesis).unwrap();
    let block = final_block(old, amendment);
    old.following(&block, Arc::new(epoch), learn::stand_in)
        .unwrap()
}

#[test]
fn what_is_final_is_in_force_says_what_is_wrong_and_can_be_undone() {
    let old = agreement();
    let good = brought_into_force(&old, by_hand(&edited(&[("rounds = 6", "rounds = 7")])));
    assert!(good.unfit.is_none());
    assert_eq!(good.epoch.protocol.rounds, 7);

    let small = by_hand(&edited(&[("blob-limit = 392", "blob-limit = 31")]));
    let bad = brought_into_force(&old, small);
    let why = &bad.unfit.as_ref().unwrap().why;
    assert!(why.starts_with("`protocol.blob-limit` is 31"), "{why}");
    assert_eq!(bad.epoch.protocol.blob_limit, 31);
    // Another change leaves it unfit, and the right one mends it.
    let more = edited(&[
        ("blob-limit = 392", "blob-limit = 31"),
        ("rounds = 6", "rounds = 9"),
    ]);
    let still = brought_into_force(&bad, by_hand(&more));
    assert!(still.unfit.is_some());
    assert!(still.examine(&by_hand(EXAMPLE), learn::stand_in).is_ok());
    assert!(brought_into_force(&still, by_hand(EXAMPLE)).unfit.is_none());

    // Another task: only the old one can follow.
    let squared = by_hand(&edited(&[("loss = \"absolute\"", "loss = \"squared\"")]));
    let other = brought_into_force(&old, squared.clone());
    assert!(
        other
            .unfit
            .as_ref()
            .unwrap()
            .why
            .contains("cannot change the task")
    );
    let squared_again = edited(&[
        ("loss = \"absolute\"", "loss = \"squared\""),
        ("rounds = 6", "rounds = 8"),
    ]);
    assert!(
        other
            .examine(&by_hand(&squared_again), learn::stand_in)
            .is_err()
    );
    assert!(other.examine(&by_hand(EXAMPLE), learn::stand_in).is_ok());
}

#[test]
fn a_text_that_cannot_be_read_leaves_the_rest_as_it_was() {
    let old = agreement();
    let mut amendment = by_hand(&edited(&[("rounds = 6", "rounds = 7")]));
    amendment.text = b"zeal = 7".to_vec();
    amendment.silos.remove(0);
    amendment.protocol = old.epoch.protocol.for_members(4, 3);
    amendment.protocol.work.push(7);
    let bad = brought_into_force(&old, amendment);
    assert!(bad.unfit.is_some());
    assert_eq!(bad.addresses, old.addresses[1..]);
    assert_eq!(bad.epoch.roster.len(), 3);
    // A member that leaves, or a recovery, mends nothing.
    let still = brought_into_force(&bad, bad.leaving(MemberIndex(0)));
    assert!(still.unfit.is_some());
    let right = old.without("north").unwrap();
    assert!(brought_into_force(&bad, by_hand(&right)).unfit.is_none());
}

/// The example with secure-aggregation rounds and these groups.
fn masked(groups: &str) -> String {
    let mut text = edited(&[
        ("format = 1", "format = 3"),
        (
            "name = \"cs-rcfl\"",
            "name = \"fedavg\"\nweight = \"equal\"",
        ),
        ("coalitions = 2", ""),
        ("freeze = 1", ""),
        ("folds = 5", ""),
        ("max-model-norm = 1000.0", ""),
        ("standardise = \"federation\"", "standardise = \"silo\""),
    ]);
    let at = text.find("[[member]]").unwrap();
    text.insert_str(
        at,
        &format!("[privacy]\nmode = \"secure-aggregation\"\n{groups}\n"),
    );
    text
}

fn group(names: &[(&str, u64)]) -> String {
    let names = names
        .iter()
        .map(|(name, weight)| format!("{name:?} = {weight}\n"));
    format!("[[privacy.group]]\n{}", names.collect::<String>())
}

#[test]
fn an_institution_is_added_up_with_the_same_ones_for_good() {
    let names: Vec<_> = agreement()
        .epoch
        .roster
        .silos()
        .iter()
        .map(|silo| silo.name.clone())
        .collect();
    let mut before = names[..3].to_vec();
    before.sort();
    let before = before.join(", ");
    let [a, b, c, d] = [0, 1, 2, 3].map(|at: usize| names[at].as_str());
    let three = group(&[(a, 1), (b, 2), (c, 2)]);
    let old = Agreement::parse("f.toml", &masked(&three)).unwrap();
    let examined = |groups: &str| {
        let text = masked(groups).replacen("rounds = 6", "rounds = 7", 1);
        old.examine(&by_hand(&text), learn::stand_in)
    };
    // The same, also with proportional weights.
    examined(&three).unwrap();
    examined(&group(&[(a, 2), (b, 4), (c, 4)])).unwrap();
    for other in [
        group(&[(a, 1), (b, 2), (c, 2), (d, 1)]),
        group(&[(a, 1), (b, 1), (c, 1)]),
        group(&[(b, 1), (c, 1), (d, 1)]),
    ] {
        let why = examined(&other).err().unwrap().to_string();
        assert!(why.contains("with others than before"), "{why}");
        assert!(why.contains(&format!("({before} before)")), "{why}");
    }
    // With consent, which is asked for by name.
    let without = group(&[(b, 1), (c, 1), (d, 1)]);
    let why = examined(&without).err().unwrap().to_string();
    let mut shown = [a, d];
    shown.sort_unstable();
    let shows = format!("shows = {shown:?}");
    assert!(why.contains(&shows), "{why}");
    // The table stands before the groups.
    examined(&format!("{shows}\n{without}")).unwrap();
    let too_few = format!("shows = {:?}", &shown[1..]);
    assert!(examined(&format!("{too_few}\n{without}")).is_err());
}
