//! `rota verify` on the state of real nodes: as they left it, and with one thing changed in it. What is
//! changed here is written with the silo's own key, so that nothing but the agreement gives it away.

#![allow(clippy::unwrap_used)]

mod audit;
mod evidence;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::nodes::{Demo, TestNodes, good, nowhere, output, overwrite, scenario, text};
use rota::node::institution::Institution;
use rota::node::store::{DiskJournal, Owner};
use rota::protocol::certificate::{Certificate, Checked, Vote};
use rota::protocol::identity::Signature;
use rota::protocol::message::{Block, Body, Content, Learning};
use rota::protocol::{self, Hash, envelope};
use rota::silo::{Adopted, Journal, JournalRecord};
use serde_json::Value;

/// Rounds of the federation. The models of the last three are kept.
const ROUNDS: u64 = 5;

/// The state folders of a federation of four silos that has ended.
static ENDED: LazyLock<Demo> = LazyLock::new(|| {
    let text = fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let text = text.replace("heartbeat = \"5s\"", "heartbeat = \"100ms\"");
    let file = scenario("verify", &text);
    let rounds = ROUNDS.to_string();
    let file = file.to_str().unwrap();
    let options = ["--silos", "4", "--rounds", &rounds, "--scenario", file];
    let demo = Demo::new("verify", &options);
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    for node in 0..4 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    demo
});

fn state(node: usize) -> PathBuf {
    ENDED.configs[node].with_file_name("state")
}

/// A copy of the state of a silo in a new folder.
fn copied(name: &str) -> PathBuf {
    let to = nowhere(&format!("verify-{name}"));
    fs::create_dir_all(to.join("blobs")).unwrap();
    for part in ["", "blobs"] {
        for entry in fs::read_dir(state(1).join(part)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), to.join(part).join(entry.file_name())).unwrap();
            }
        }
    }
    to
}

/// Exit code and standard error of `rota verify`.
fn verified(folder: &Path) -> (i32, String) {
    let done = output(&["verify", "--state", folder.to_str().unwrap()]);
    (done.status.code().unwrap(), text(&done.stderr))
}

/// Returns what `rota verify` says about a copy of which the records were changed and written again.
fn changed(name: &str, change: impl FnMut(&mut JournalRecord)) -> String {
    let folder = copied(name);
    let institution = Institution::load(&ENDED.configs[1]).unwrap();
    let owner = Owner {
        federation: institution.agreement.epoch.federation,
        me: institution.me,
        key: institution.key.clone(),
    };
    let mut journal = DiskJournal::open(&folder, &owner).unwrap();
    let mut records = journal.load().unwrap();
    let before = records.clone();
    records.iter_mut().for_each(change);
    assert_ne!(records, before, "{name} changes something");
    journal.replace(0, records).unwrap();
    drop(journal);
    let (code, said) = verified(&folder);
    assert_eq!(code, 1, "{name}: {said}");
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The block and the certificate of a round, where a record has them.
fn of_round(record: &mut JournalRecord, round: u64) -> Option<(&mut Block, &mut Certificate)> {
    let JournalRecord::Protocol(protocol::Record::Final { blocks, proof }) = record else {
        return None;
    };
    let last = blocks.last_mut()?;
    let is = last.learning().is_some_and(|own| own.round == round);
    is.then_some((last, proof))
}

fn learning(block: &mut Block) -> &mut Learning {
    match &mut block.content {
        Content::Learning(learning) => learning,
        _ => panic!("a round of learning"),
    }
}

#[test]
fn the_state_of_every_silo_is_verified_and_kept_rounds_are_computed_again() {
    for node in 0..4 {
        let folder = state(node);
        let folder = folder.to_str().unwrap();
        let found: Value =
            serde_json::from_str(&good(&["verify", "--json", "--state", folder])).unwrap();
        assert_eq!(found["federation"], ENDED.id, "{found:#}");
        assert_eq!(found["rounds"], ROUNDS, "{found:#}");
        assert!(found["certificates"].as_u64() >= Some(1), "{found:#}");
        assert!(found["signed"].as_u64() >= Some(1), "{found:#}");
        // Of three rounds the models are kept: the second and third can be computed from the one before.
        assert_eq!(found["computed"], serde_json::json!([4, 5]), "{found:#}");
        assert_eq!(found["not_computed"][0]["from"], 1, "{found:#}");
        let said = good(&["verify", "--state", folder]);
        assert!(said.contains("4 to 5 computed again"), "{said}");
        assert!(said.contains("is not kept here any more"), "{said}");
    }
}

#[test]
fn a_change_in_a_block_a_certificate_or_a_signature_is_named_with_its_round() {
    let block = changed("block", |record| {
        if let Some((block, _)) = of_round(record, 3) {
            learning(block).decision[0] ^= 1;
        }
    });
    let place = "round 3 (view ";
    assert!(block.contains(place), "{block}");
    assert!(
        block.contains("is not the one that its certificate makes final"),
        "{block}"
    );
    let certificate = changed("certificate", |record| {
        if let Some((_, proof)) = of_round(record, 2) {
            let mut votes = proof.votes.to_vec();
            let mut bytes = votes[0].signature.to_bytes();
            bytes[7] ^= 1;
            votes[0].signature = Signature::from_bytes(&bytes);
            proof.votes = votes.into();
        }
    });
    assert!(certificate.contains("round 2 (view "), "{certificate}");
    assert!(
        certificate.contains("the certificate is not valid"),
        "{certificate}"
    );
    let few = changed("few", |record| {
        if let Some((_, proof)) = of_round(record, 2) {
            proof.votes = proof.votes[1..].into();
        }
    });
    assert!(few.contains("has 2 votes by distinct members"), "{few}");
    let vote = changed("vote", |record| {
        if let JournalRecord::Protocol(protocol::Record::Vote(message)) = record {
            message.view += 1;
        }
    });
    assert!(
        vote.contains("the signature is not that of member"),
        "{vote}"
    );
    let adopted = changed("adopted", |record| {
        if let JournalRecord::Adopted(adopted) = record
            && adopted.round == 4
        {
            adopted.outcome[0] ^= 1;
        }
    });
    assert!(adopted.contains("round 4: agreed outcome"), "{adopted}");
}

#[test]
fn a_changed_model_outcome_or_file_is_named() {
    let agreed = changed_blob("entry", "contributed model of entry", |document, _| {
        // Of one that is alone, the entry is the model of its coalition.
        let mut entries = document.entries.iter();
        *entries
            .find(|entry| !document.models.contains(entry))
            .unwrap()
    });
    assert!(agreed.contains("round 4: "), "{agreed}");
    changed_blob("outcome", "the outcome is damaged", |_, adopted| {
        Hash(adopted.outcome)
    });
    changed_blob("model", "the model of coalition 1", |document, _| {
        document.models[0]
    });
    let manifest = changed_blob("sheet", "the sheet is damaged", |document, adopted| {
        let known = |hash: &Hash| {
            let model = document.models.contains(hash) || document.entries.contains(hash);
            model || hash.0 == adopted.outcome
        };
        let blobs = adopted.blobs.iter().map(|hash| Hash(*hash));
        let mut other: Vec<_> = blobs.filter(|hash| !known(hash)).collect();
        assert_eq!(other.len(), 1);
        other.remove(0)
    });
    assert!(manifest.contains("has the hash"), "{manifest}");
    // The file of the journal itself, without its key.
    let folder = copied("file");
    overwrite(&folder.join("journal.redb"), |bytes| {
        let middle = bytes.len() / 3;
        bytes[middle..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    });
    let (code, said) = verified(&folder);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("journal.redb is damaged"), "{said}");
    let (code, said) = verified(&nowhere("verify-nothing"));
    assert_eq!(code, 1, "{said}");
}

/// Returns what `rota verify` says about a copy in which one byte of this blob of round 4 is another.
fn changed_blob(
    name: &str,
    expected: &str,
    which: impl Fn(&rota::silo::outcome::Document, &Adopted) -> Hash,
) -> String {
    let folder = copied(name);
    let records = rota::node::store::snapshot(&folder).unwrap().records;
    let adopted = records.into_iter().find_map(|record| match record {
        JournalRecord::Adopted(adopted) if adopted.round == 4 => Some(adopted),
        _ => None,
    });
    let adopted = adopted.unwrap();
    let document = rota::node::store::blob(&folder, &Hash(adopted.outcome)).unwrap();
    let document = rota::silo::outcome::Document::read(&document).unwrap();
    let hash = which(&document, &adopted);
    let file = folder.join("blobs").join(format!("{hash:#}"));
    overwrite(&file, |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    let (code, said) = verified(&folder);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code, 1, "{name}: {said}");
    assert!(said.contains(expected), "{name}: {said}");
    said
}

/// All members together can agree on anything; that it does not follow from the models shows only when
/// it is computed again.
#[test]
fn an_outcome_that_all_members_agreed_on_and_that_does_not_follow_from_the_models_is_named() {
    let institutions = ENDED.configs.iter();
    let all: Vec<_> = institutions
        .map(|config| Institution::load(config).unwrap())
        .collect();
    let epoch = &all[0].agreement.epoch;
    let (mut before, mut wrong) = (None, None);
    let said = changed("agreed", |record| {
        if let Some((block, _)) = of_round(record, ROUNDS - 1) {
            before = Some(learning(block).outcome);
        }
        if let Some((block, proof)) = of_round(record, ROUNDS) {
            learning(block).outcome = before.unwrap();
            let block = block.hash();
            wrong = Some(block);
            let mut votes: Vec<_> = all
                .iter()
                .map(|silo| {
                    let (me, view) = (silo.me, proof.view);
                    let body = Body::Finalize { block };
                    let (vote, _) = envelope::sign(epoch, &silo.key, 0, view, me, body);
                    Vote {
                        member: me,
                        checked: Checked::Structure,
                        signature: vote.signature,
                    }
                })
                .collect();
            votes.sort_by_key(|vote| vote.member);
            votes.truncate(epoch.roster.quorum());
            proof.votes = votes.into();
            proof.verdict = protocol::certificate::Verdict::Final(block);
        }
        if let JournalRecord::Adopted(adopted) = record
            && adopted.round == ROUNDS
        {
            adopted.block = wrong.unwrap().0;
            adopted.outcome = before.unwrap().0;
            // The manifest of the round is found among its blobs.
        }
    });
    assert!(said.contains("round 5: agreed outcome"), "{said}");
    assert!(said.contains("recomputed"), "{said}");
}

#[test]
fn the_chain_says_who_was_left_out_by_whom() {
    let text = "name = 'left'
rounds = 4
silos = 4
task = { constant = { parameters = 10 } }
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
[protocol]
heartbeat = '100ms'
straggler-timeout = 5
";
    let file = scenario("verify-left", text);
    let demo = Demo::new("verify-left", &["--scenario", file.to_str().unwrap()]);
    let mut nodes = TestNodes::new(&demo.configs[..3], &["--until-done", "--grace", "1s"]);
    (0..3).for_each(|node| nodes.start(node));
    for node in 0..3 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    let state = demo.configs[0].with_file_name("state");
    let state = state.to_str().unwrap();
    let chain: Value = serde_json::from_str(&good(&["chain", "--json", "--state", state])).unwrap();
    let rounds = chain["blocks"].as_array().unwrap().iter();
    for round in rounds.filter(|block| !block["round"].is_null()) {
        assert_eq!(
            round["left_out"],
            serde_json::json!(["silo 4"]),
            "{round:#}"
        );
    }
    let by = chain["left_out"].as_array().unwrap();
    let rounds = by
        .iter()
        .map(|by| by["members"][0]["rounds"].as_array().unwrap().len());
    assert_eq!(rounds.sum::<usize>(), 4, "{chain:#}");
    assert!(
        by.iter().all(|by| by["members"][0]["member"] == "silo 4"),
        "{by:?}"
    );
    let said = good(&["chain", "--state", state]);
    assert!(said.contains("left out by silo "), "{said}");
    assert!(said.contains(": silo 4 "), "{said}");
}
