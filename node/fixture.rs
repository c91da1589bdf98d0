//! Keys, members and agreements of tests.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use agreement::Agreement;
use protocol::certificate::{Certificate, Verdict};
use protocol::identity::Signature;
use protocol::message::{Amendment, Approval, Block, Change, Content, Passage};
use protocol::parameters::{Genesis, Privacy, ProtocolParameters, Rotation, Verification};
use protocol::roster::Silo;
use protocol::{Epoch, Epochs, Hash, SecretKey};
use task::data::SplitKey;
use tempfile::TempDir;

use crate::identity;
use crate::institution::Institution;
use crate::split_key;

/// The key of this number.
pub(crate) fn key(number: u8) -> SecretKey {
    SecretKey::from_bytes(&[number; 32])
}

/// `n` members, `silo 0` and on, with the keys from number `first` on.
pub(crate) fn silos(n: u8, first: u8) -> Vec<Silo> {
    let silo = |member: u8| Silo {
        name: format!("silo {member}"),
        key: key(first + member).public(),
        rows: None,
    };
    (0..n).map(silo).collect()
}

/// A parameter set with heartbeats of a second and a patience of 4, under which every member of four contributes.
pub(crate) fn protocol() -> ProtocolParameters {
    ProtocolParameters {
        name: "test".into(),
        work: Vec::new(),
        start: Hash([0; 32]),
        rounds: 1,
        heartbeat_ms: 1000,
        patience: 4,
        view_timeout: 20,
        min_contributions: 4,
        rotation: Rotation::EveryRound,
        verification: Verification::Full,
        privacy: Privacy::Clear,
        blob_limit: 1,
        keep_rounds: 1,
        discovery: false,
    }
}

/// The first epoch of these members.
pub(crate) fn epoch(silos: Vec<Silo>, protocol: ProtocolParameters) -> Epoch {
    Epoch::first(&Genesis { silos, protocol }).unwrap()
}

/// The epochs of a journal after these amendments, which came into force before any round, with
/// signatures of nobody.
pub(crate) fn amended(
    first: &Arc<Epoch>,
    amendments: impl IntoIterator<Item = Amendment>,
) -> Epochs {
    let mut epochs = Epochs {
        former: Vec::new(),
        now: first.clone(),
        records: Vec::new(),
    };
    for amendment in amendments {
        let epoch = epochs.now;
        let quorum = epoch.roster.members().take(epoch.roster.quorum());
        let approval = |by| Approval {
            by,
            number: 1,
            signature: Signature::from_bytes(&[0; 64]),
        };
        let change = Change {
            amendment,
            after: epoch.began,
            approvals: quorum.map(approval).collect::<Vec<_>>().into(),
        };
        let block = Block {
            epoch: epoch.id,
            view: 1,
            parent: epoch.id,
            content: Content::Change(Box::new(change)),
        };
        let proof = Certificate {
            view: 1,
            verdict: Verdict::Final(block.hash()),
            votes: Vec::new().into(),
        };
        epochs.now = Arc::new(epoch.next(&block).unwrap());
        let blocks = vec![block];
        epochs.former.push((epoch, Passage { blocks, proof }));
    }
    epochs
}

/// The agreement of four clinics.
pub(crate) const EXAMPLE: &str = include_str!("../examples/federation.toml");
/// The key of north in the example.
const NORTH: &str = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";

/// North of the example, with rows of its own, whose node has not run yet.
pub(crate) struct North {
    /// Holds its files; `rows.csv` are the rows.
    pub(crate) folder: TempDir,
    pub(crate) institution: Institution,
}

impl North {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("federation.toml"), Self::text(&[])).unwrap();
        let mut rows = "age,severity,ward,days\n".to_owned();
        for row in 0..40 {
            let ward = ["general", "intensive"][row % 2];
            let (age, severity) = (20 + row, row % 5);
            writeln!(rows, "{age},{severity},{ward},{}", 3 + row % 7).unwrap();
        }
        fs::write(at("rows.csv"), rows).unwrap();
        identity::write(&at("identity.key"), &key(9)).unwrap();
        split_key::write(&at("identity.key"), &SplitKey::new([9; 32])).unwrap();
        let silo = "federation = \"federation.toml\"\nidentity = \"identity.key\"\nstate = \"state\"\n\
                    listen = [\"/ip4/127.0.0.1/tcp/4001\"]\n[data.rows]\nfiles = [\"rows.csv\"]\n";
        fs::write(at("node.toml"), silo).unwrap();
        let institution = Institution::load(&at("node.toml")).unwrap();
        Self {
            folder,
            institution,
        }
    }

    /// The text of the example with north's key and these edits.
    pub(crate) fn text(edits: &[(&str, &str)]) -> String {
        let mut text = EXAMPLE.replace(NORTH, &key(9).public().to_string());
        for (from, to) in edits {
            assert!(text.contains(from), "the example has no {from:?}");
            text = text.replacen(from, to, 1);
        }
        text
    }

    /// The example with steps of gradient descent from equal members, and this table of privacy.
    fn sums(scale: &str, privacy: &str) -> String {
        let scale = format!("standardise = \"{scale}\"");
        let text = Self::text(&[
            ("format = 1 ", "format = 3 "),
            (
                "name = \"cs-rcfl\"",
                "name = \"fedavg\"\nweight = \"equal\"",
            ),
            ("standardise = \"federation\"", &scale),
            ("epochs = 10, batch = 8", "epochs = 1, batch = 0"),
        ]);
        let removed = [
            "coalitions = 2",
            "freeze = 1",
            "folds = 5",
            "max-model-norm = 1000.0",
            "min-contributions = 3",
        ];
        let text = removed
            .iter()
            .fold(text, |text, line| text.replace(line, ""));
        text.replacen(
            "[[member]]",
            &format!("[privacy]\n{privacy}\n\n[[member]]"),
            1,
        )
    }

    /// The text of the example with secure-aggregation rounds, and these further keys of privacy.
    pub(crate) fn masked(keys: &str) -> String {
        Self::sums("silo", &format!("mode = \"secure-aggregation\"\n{keys}"))
    }

    /// The text of the example with differentially private rounds, and these further keys of privacy.
    pub(crate) fn noised(keys: &str) -> String {
        Self::sums("none", &format!("mode = \"differential-privacy\"\n{keys}"))
            .replace("missing = \"mean\"", "missing = \"drop\"")
            .replace(
                "split = { validation = 0.0, test = 0.3 }",
                "split = { validation = 0.0, test = 0.3, keyed = true }",
            )
            .replace("[[member]]\n", "[[member]]\nrows = 120\n")
    }

    /// A text whose `start` and `blob-limit` follow from the rest of it.
    pub(crate) fn beginning(text: &str) -> String {
        let fault = crate::federation::begins(&Self::read(text)).err();
        let lines = fault.map(|fault| fault.lines()).unwrap_or_default();
        let key = |line: &str| line.split(" = ").next().map(str::to_owned);
        let line = |line: &str| {
            let new = lines.iter().find(|new| key(new) == key(line));
            new.cloned().unwrap_or_else(|| line.to_owned())
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The agreement of a text.
    pub(crate) fn read(text: &str) -> Agreement {
        Agreement::parse("f.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The agreement of this text, as it is read.
    pub(crate) fn agreement(edits: &[(&str, &str)]) -> Agreement {
        Self::read(&Self::text(edits))
    }
}
