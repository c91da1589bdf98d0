//! A change that no node can live under, or that none may accept, is in force: all nodes come back, say why
//! they only vote, and another change undoes it.

use ::rota::agreement::Agreement;
use ::rota::node::institution::{Institution, protocol_records};
use ::rota::node::store::Owner;
use ::rota::protocol::Record as Protocol;
use ::rota::protocol::certificate::{Certificate, Checked, Verdict, Vote};
use ::rota::protocol::envelope::sign;
use ::rota::protocol::message::{Amendment, Approval, Block, Body, Change, Content};
use ::rota::protocol::parameters::Checkpoint;

use super::amended::{Heard, id, says};
use super::*;

/// The amendment that gives a key of this agreement another value, whatever may change: the seed that no
/// amendment may change, or a limit that no model fits, as a person mistypes 39 for 396.
pub(super) fn by_hand(agreement: &Agreement, key: &str, value: &str) -> Amendment {
    let text = with(&agreement.to_toml().unwrap(), key, value);
    let new = Agreement::parse("by-hand.toml", &text).unwrap();
    Amendment {
        format: new.epoch.format,
        silos: new.epoch.roster.silos().to_vec(),
        protocol: new.epoch.protocol.clone(),
        text: text.into_bytes(),
        stolen: Vec::new(),
    }
}

/// A text with another value of a key.
pub(super) fn with(text: &str, key: &str, value: &str) -> String {
    let start = format!("{key} = ");
    let line = text.lines().find(|line| line.starts_with(&start)).unwrap();
    text.replace(line, &format!("{key} = {value}"))
}

/// Puts this amendment into force in the journals of all members, which have ended: with the signatures
/// of a quorum, as programs have made them that try no change.
fn brought_into_force(configs: &[PathBuf], amendment: &Amendment) {
    let all: Vec<_> = configs
        .iter()
        .map(|config| Institution::load(config).unwrap())
        .collect();
    let epoch = &all[0].agreement.epoch;
    let signed = |by: usize, view: u64, body: Body| {
        let (me, key) = (all[by].me, &all[by].key);
        sign(epoch, key, 0, view, me, body).0.signature
    };
    let approval = Body::Approval {
        amendment: amendment.hash(),
        number: 1,
        stands: true,
    };
    let mut quorum: Vec<usize> = (0..epoch.roster.quorum()).collect();
    quorum.sort_by_key(|by| all[*by].me);
    let approvals: Vec<_> = quorum
        .iter()
        .map(|by| Approval {
            by: all[*by].me,
            number: 1,
            signature: signed(*by, 0, approval.clone()),
        })
        .collect();
    let records = store::snapshot(&all[0].state).unwrap().records;
    let records = protocol_records(records).filter_map(|record| match record {
        Protocol::Final { blocks, .. } => Some(blocks),
        _ => None,
    });
    let chain: Vec<Block> = records.flatten().collect();
    let learning = chain.iter().rev().find_map(|block| match &block.content {
        Content::Learning(learning) => Some((learning, block.hash())),
        _ => None,
    });
    let (learning, last) = learning.unwrap();
    let tip = chain.last().unwrap();
    let view = tip.view + 1;
    let block = Block {
        epoch: epoch.id,
        view,
        parent: tip.hash(),
        content: Content::Change(Box::new(Change {
            amendment: amendment.clone(),
            after: Checkpoint {
                round: learning.round,
                block: last,
                outcome: learning.outcome,
            },
            approvals: approvals.into(),
        })),
    };
    let (verdict, checked) = (Verdict::Final(block.hash()), Checked::Structure);
    let votes: Vec<_> = quorum
        .iter()
        .map(|by| Vote {
            member: all[*by].me,
            checked,
            signature: signed(*by, view, Body::vote(verdict, checked)),
        })
        .collect();
    let proof = Certificate {
        view,
        verdict,
        votes: votes.into(),
    };
    for one in &all {
        let owner = Owner {
            federation: epoch.federation,
            me: one.me,
            key: one.key.clone(),
        };
        let mut journal = store::open(&one.state, &owner, 1 << 20).unwrap().journal;
        let (blocks, proof) = (vec![block.clone()], proof.clone());
        let record = JournalRecord::Protocol(Protocol::Final { blocks, proof });
        ::rota::silo::Journal::commit(&mut journal, vec![record]).unwrap();
    }
}

#[test]
fn all_nodes_come_back_under_a_limit_that_no_model_fits_and_a_change_undoes_it() {
    let why = &["the charter allows 39"];
    undone("run-undone", ("blob-limit", "39"), why);
}

#[test]
fn all_nodes_come_back_under_a_seed_that_none_may_accept_and_a_change_undoes_it() {
    let why = &["cannot change", "`seed`"];
    undone("run-undone-seed", ("seed", "4711"), why);
}

/// Brings another value of a key into force, and undoes that. All nodes say why they only vote.
fn undone(name: &str, (key, value): (&str, &str), because: &[&str]) {
    let demo = quick(name, 4);
    let mut nodes = Heard::of(&demo.configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        nodes.until(node, "finished");
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
    }
    let agreement = Institution::load(&demo.configs[0])
        .unwrap()
        .configured
        .agreement;
    brought_into_force(&demo.configs, &by_hand(&agreement, key, value));
    // Twice, because whoever sees it restarts the node first.
    for again in [true, false] {
        for node in 0..4 {
            nodes.nodes.start(node);
        }
        for node in 0..4 {
            assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
            let said = nodes.until(node, "waiting");
            let why = said["why"].as_str().unwrap();
            for part in ["votes on changes", "federation change"]
                .iter()
                .chain(because)
            {
                assert!(why.contains(part), "{why}");
            }
        }
        for node in (0..4).filter(|_| again) {
            nodes.nodes.terminate(node);
            assert_eq!(nodes.nodes.code(node), 0);
        }
    }
    // The correction reaches all of them, and a round more follows.
    let text = agreement.to_toml().unwrap();
    let right = demo.folder.join("right.toml");
    fs::write(&right, text.replace("\nrounds = 3", "\nrounds = 4")).unwrap();
    let said = says(&demo.configs[0], &["change", right.to_str().unwrap()]);
    let correction = id(&said).to_owned();
    for node in 1..3 {
        while nodes.until(node, "amendment")["amendment"] != correction.as_str() {}
        says(&demo.configs[node], &["approve", &correction]);
    }
    for node in 0..4 {
        while nodes.until(node, "epoch")["epoch"] != 2 {}
        let done = nodes.until(node, "finished");
        assert_eq!(done["rounds"].as_u64().unwrap_or(4), 4, "{done}");
    }
    let state = demo.configs[3].with_file_name("state");
    let chain = good(&["chain", "--state", state.to_str().unwrap()]);
    assert!(chain.contains("round    4"), "{chain}");
}
