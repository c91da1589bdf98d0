//! Texts and files that members and outsiders send to people: requests to be admitted, amendments, backups,
//! evidence, answers to the question how a node is doing, and models with their cards. They are read, checked and
//! put into words as the commands do it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, str};

use rota::agreement::{Agreement, JoinRequest};
use rota::learn::TaskStudy;
use rota::learn::export::{self, Card, CardParts, Origin, Predictor};
use rota::node::backup::{RestoreConsent, restore, save};
use rota::node::federation::{
    OwnSide, changed_words, examined, newcomers, too_large, whole_text, words,
};
use rota::node::identity;
use rota::node::institution::KnownAmendment;
use rota::node::status::all::{Doing, MemberAnswer};
use rota::node::verify::EvidenceFile;
use rota::protocol::accusation::Lineage;
use rota::protocol::envelope;
use rota::protocol::evidence::Evidence;
use rota::protocol::message::{Amendment, Body};
use rota::protocol::{Epochs, Hash, MemberIndex, codec};
use rota::task::TaskConfig;
use tempfile::TempDir;

use super::agreements::{WORDS, own_agreement};
use super::engine::{FuzzTarget, fuzz, gist};
use super::world::{epoch, key};

fn agreed() -> Agreement {
    Agreement::parse("federation.toml", &own_agreement()).unwrap()
}

/// Returns what a text costs that is read as an agreement and put into words: a model that it allows, and its stand-in.
fn memory(length: usize) -> usize {
    (64 << 20) + 4000 * length
}

/// The amendment that somebody makes of a text, whatever it says.
fn amendment(new: &Agreement, text: &str) -> Amendment {
    Amendment {
        format: new.epoch.format,
        silos: new.epoch.roster.silos().to_vec(),
        protocol: new.epoch.protocol.clone(),
        text: text.as_bytes().to_vec(),
        stolen: Vec::new(),
    }
}

#[test]
fn requests() {
    let agreement = agreed();
    let newcomer = key(7);
    let addresses = vec!["/dns/rota.archive.example/udp/4001/quic-v1".to_owned()];
    let admitting = agreement.admitting("archive", newcomer.public(), Some(400), addresses.clone());
    let right = JoinRequest {
        name: "archive".into(),
        key: newcomer.public(),
        addresses,
        rows: Some(400),
        federation: agreement.epoch.federation,
        contents: Agreement::parse("f", &admitting.unwrap())
            .unwrap()
            .contents()
            .unwrap(),
        at: 1_772_366_400,
    };
    let late = JoinRequest {
        at: u64::MAX,
        ..right.clone()
    };
    // The first byte says what the others are: the line, or what its sender signs.
    let examples = [
        [&[0][..], right.token(&newcomer).as_bytes()].concat(),
        [&[1][..], &codec::encode(&right)].concat(),
        [&[1][..], &codec::encode(&late)].concat(),
    ];
    let mut run = |bytes: &[u8]| {
        let (Some(mode), rest) = (bytes.first(), bytes.get(1..).unwrap_or_default()) else {
            return "nothing".into();
        };
        let token = match mode % 2 {
            0 => String::from_utf8_lossy(rest).into_owned(),
            _ => match codec::decode::<JoinRequest>(rest, codec::LIMIT) {
                Ok(request) => {
                    let key = newcomer.public();
                    JoinRequest { key, ..request }.token(&newcomer)
                }
                Err(error) => return gist(&error.to_string()),
            },
        };
        let request = match JoinRequest::read(&token) {
            Ok(request) => request,
            Err(error) => return format!("{} {}", mode % 2, gist(&error.to_string())),
        };
        let time = request.time().len();
        let of_it = match request.text(&agreement) {
            Ok(_) => "fits".into(),
            Err(error) => gist(&error.to_string()),
        };
        // A member proposes it, whatever it is.
        let text = agreement.admitting(&request.name, request.key, request.rows, request.addresses);
        let Ok(text) = text else {
            return format!("{of_it} {time}");
        };
        let text = JoinRequest::beside(&text, &token);
        let Ok(new) = Agreement::parse("f", &text) else {
            return format!("{of_it} {time} unreadable");
        };
        let said = newcomers(&agreement, &amendment(&new, &text)).concat();
        format!("{of_it} {time} {}", gist(&said))
    };
    fuzz(FuzzTarget {
        name: "request",
        examples: examples.into(),
        words: &[
            "rota-join-2-",
            "rota-join-1-",
            "-",
            "/ip4/",
            "/udp/",
            "\u{1b}[2J",
        ],
        inputs: 400,
        memory,
        run: &mut run,
    });
}

#[test]
fn amendments() {
    let old = agreed();
    let mut run = |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else {
            return "no text".into();
        };
        let new = match Agreement::parse("f", text) {
            Ok(new) => new,
            Err(error) => return gist(&error.to_string()),
        };
        // Whoever may send large models has them computed.
        if new.epoch.protocol.blob_limit > 1 << 20 && too_large(&new).is_none() {
            return "large".into();
        }
        let amendment = amendment(&new, text);
        let accepted = match examined(&old, &amendment) {
            Ok(_) => "accepted".into(),
            Err(why) => gist(&why),
        };
        let known = KnownAmendment {
            epoch: old.epoch.id,
            approved: Vec::new(),
            needed: amendment.needed(&old.epoch) as u64,
            amendment,
        };
        let own = OwnSide::default();
        let lines = known.lines(&old, &own, |_| OwnSide::default());
        let shown = whole_text(&old, &known.amendment).map_or(0, |lines| lines.len());
        assert!(shown > 0);
        let said = newcomers(&old, &known.amendment).len();
        match lines {
            Ok(lines) => {
                // The same without what was agreed before, as whoever joins reads it.
                assert!(!words(&new).is_empty() && !changed_words(&old, &new).is_empty());
                format!("{accepted} {} {said}", lines.len().min(40))
            }
            Err(why) => format!("{accepted} {} {}", gist(&why), too_large(&new).is_some()),
        }
    };
    let key = key(7).public();
    let admitting = old.admitting("archive", key, Some(400), Vec::new());
    fuzz(FuzzTarget {
        name: "amendment",
        examples: vec![
            own_agreement().into_bytes(),
            admitting.unwrap().into_bytes(),
        ],
        words: WORDS,
        inputs: 300,
        memory,
        run: &mut run,
    });
}

/// An institution whose backup is read again, and a place for what is put back.
struct BackedUp {
    folder: TempDir,
    silo: String,
}

impl BackedUp {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let silo = "federation = \"federation.toml\"\nidentity = \"identity.key\"\nstate = \"state\"\n\
                    listen = [\"/ip4/127.0.0.1/tcp/4001\"]\n[data.rows]\nfiles = [\"rows.csv\"]\n";
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("federation.toml"), own_agreement()).unwrap();
        fs::write(own.join("node.toml"), silo).unwrap();
        identity::write(&own.join("identity.key"), &key(0)).unwrap();
        save(
            &own.join("node.toml"),
            None,
            &folder.path().join("whole.tar"),
        )
        .unwrap();
        Self {
            folder,
            silo: silo.into(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The backup with another `node.toml`, under right hashes and without a signature.
    fn with_silo(&self, silo: &[u8]) -> Vec<u8> {
        let whole = fs::read(self.path("whole.tar")).unwrap();
        let mut read = tar::Archive::new(&whole[..]);
        let mut tar = tar::Builder::new(Vec::new());
        for entry in read.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            if name == "backup.json" {
                let mut manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                manifest["files"]["node.toml"] = format!("{:#}", Hash::of(silo)).into();
                manifest.as_object_mut().unwrap().remove("signature");
                bytes = serde_json::to_vec(&manifest).unwrap();
            } else if name == "node.toml" {
                bytes = silo.to_vec();
            }
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            tar.append_data(&mut header, name, &bytes[..]).unwrap();
        }
        tar.into_inner().unwrap()
    }

    /// Returns what lies beside the folder that backups are restored into.
    fn around(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut found: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| !path.ends_with("in"));
        found.sort();
        found
    }
}

#[test]
fn backups() {
    let place = BackedUp::new();
    let (file, folder) = (place.path("a.tar"), place.path("in"));
    fs::write(&file, "").unwrap();
    let around = place.around();
    let consent = RestoreConsent {
        outside: false,
        unsigned: true,
    };
    let mut run = |bytes: &[u8]| {
        let (Some(mode), rest) = (bytes.first(), bytes.get(1..).unwrap_or_default()) else {
            return "nothing".into();
        };
        let backup = match mode % 2 {
            0 => rest.to_vec(),
            _ => place.with_silo(rest),
        };
        fs::write(&file, backup).unwrap();
        let said = match restore(&file, &folder, consent) {
            Ok(restored) => format!("restored {}", restored.written.len()),
            Err(error) => gist(&error.to_string()),
        };
        assert_eq!(place.around(), around, "{said}");
        let _ = fs::remove_dir_all(&folder);
        format!("{} {said}", mode % 2)
    };
    let whole = fs::read(place.path("whole.tar")).unwrap();
    fuzz(FuzzTarget {
        name: "backup",
        examples: vec![
            [&[0][..], &whole].concat(),
            [&[1][..], place.silo.as_bytes()].concat(),
        ],
        words: &[
            "../",
            "/",
            "..",
            "\"",
            "state = ",
            "\"/tmp/rota-fuzz-out\"",
            "\"in/../../x\"",
            "ustar",
            "\n",
        ],
        inputs: 300,
        memory: |length| (32 << 20) + 64 * length,
        run: &mut run,
    });
}

#[test]
fn evidence() {
    let now = Arc::new(epoch());
    let epochs = Epochs {
        former: Vec::new(),
        now: now.clone(),
        records: Vec::new(),
    };
    let of = MemberIndex(2);
    let vote = |body| envelope::sign(&now, &key(2), 0, 7, of, body).0;
    let block = Hash([3; 32]);
    let found = Evidence::of(&vote(Body::Nullify), &vote(Body::Finalize { block })).unwrap();
    let lineage = Lineage::of(&epochs);
    let two = EvidenceFile::of(&lineage, &now, &found);
    let receipt = vote(Body::Receipt { entry: block });
    let one = EvidenceFile::of_receipt(&lineage, &now, &receipt);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("e.json");
    let mut run = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let read = match EvidenceFile::read(&file) {
            Ok(read) => read,
            Err(error) => return gist(&error.to_string()),
        };
        match read.check(&file, Some(&now)) {
            Ok(proof) => format!("proves {}", gist(&proof.sentence())),
            Err(error) => gist(&error.to_string()),
        }
    };
    let json = |file| serde_json::to_vec(file).unwrap();
    fuzz(FuzzTarget {
        name: "evidence",
        examples: vec![json(&two), json(&one)],
        words: &[
            "\"",
            ",",
            "[]",
            "null",
            "00",
            "ff",
            "rota evidence 3",
            "18446744073709551615",
        ],
        inputs: 800,
        memory: |length| (8 << 20) + 256 * length,
        run: &mut run,
    });
}

#[test]
fn answers_about_nodes() {
    let names = ["north", "south", "east"].map(str::to_owned);
    let answer = r#"{"said":1,"time":"2026-03-01T10:00:00Z","version":"0.1.0","started":"2026-03-01T09:00:00Z",
        "round":3,"view":4,"lead":1,"phase":"waiting for the lead","takes-part":true,"complete":false,
        "adopted":[2,"2026-03-01T09:59:00Z"],"unconnected":[0,2],"free":80000000}"#;
    let mut run = |bytes: &[u8]| {
        let said = match MemberAnswer::read(bytes) {
            Ok(said) => said,
            Err(error) => return gist(&error.to_string()),
        };
        let doing = Doing::new(said, 1, &names);
        let shown = serde_json::to_string(&doing).unwrap().len();
        // Six texts, and every member once.
        assert!(
            doing.unconnected.len() <= names.len() && shown < 8000,
            "{shown}"
        );
        format!("{} {:?}", doing.unconnected.len(), doing.lead)
    };
    fuzz(FuzzTarget {
        name: "answer",
        examples: vec![answer.as_bytes().to_vec()],
        words: &[
            "\"",
            ",",
            "0,0,0,0,0,0,0,0,",
            "[",
            "]",
            "65535",
            "\\u001b[2J",
            "null",
        ],
        inputs: 2_000,
        memory: |length| (1 << 20) + 64 * length,
        run: &mut run,
    });
}

/// A card, and its model.
fn carded() -> (Card, rota::methods::Params) {
    let agreement = agreed();
    let TaskConfig::Table(task) = &agreement.task else {
        panic!("the example is about a table");
    };
    let mut task = task.clone();
    task.domains = None;
    let study = task.stand_ins(&["north".into()], 1).unwrap();
    let silo = &study.silos[0];
    let model = silo.learner.initial(1);
    let text = |what: &str| what.to_owned();
    let origin = Origin {
        which: text("served"),
        about: text("the model that north serves"),
        federation: text("stays"),
        id: "06".repeat(32),
        members: 4,
        strategy: text("cs-rcfl"),
        round: 3,
        rounds: 6,
        coalition: None,
        block: "07".repeat(32),
        outcome: "08".repeat(32),
        certificate: "09".repeat(32),
        silo: text("north"),
        continues: None,
    };
    let card = Card::new(CardParts {
        task: &task,
        preparation: silo.preparation.as_ref().unwrap(),
        model: &model,
        origin,
        created: text("2026-03-01T12:00:00Z"),
    });
    (card.unwrap(), model)
}

#[test]
fn models_with_their_cards() {
    let (card, model) = carded();
    let folder = tempfile::tempdir().unwrap();
    let file: &Path = &folder.path().join("m.safetensors");
    // The first byte says what the others are: the file, or the card of this model.
    let mut run = |bytes: &[u8]| {
        let (Some(mode), rest) = (bytes.first(), bytes.get(1..).unwrap_or_default()) else {
            return "nothing".into();
        };
        let bytes = match mode % 2 {
            0 => rest.to_vec(),
            _ => match serde_json::from_slice::<Card>(rest) {
                Ok(card) => export::safetensors(&card, &model),
                Err(error) => return gist(&error.to_string()),
            },
        };
        fs::write(file, bytes).unwrap();
        let (card, model) = match export::read(file) {
            Ok(read) => read,
            Err(error) => return gist(&error.to_string()),
        };
        let page = export::markdown(&card, &[]).len();
        let columns = card.columns.len();
        match Predictor::new(card, &model) {
            Ok(predictor) => {
                let rows = vec![vec![f64::NAN; columns]; 2];
                format!("predicts {} {}", predictor.predict(&rows).len(), page > 0)
            }
            Err(error) => gist(&error.to_string()),
        }
    };
    let example = [&[0][..], &export::safetensors(&card, &model)].concat();
    let json = [&[1][..], &serde_json::to_vec(&card).unwrap()].concat();
    fuzz(FuzzTarget {
        name: "card",
        examples: vec![example, json],
        words: &[
            "\"",
            ",",
            "[]",
            "null",
            "{\"mlp\":{\"hidden\":[4294967296,4294967296]}}",
            "1e308",
            "-1",
            "\"classes\"",
            "18446744073709551615",
            "\"logistic\"",
            "levels",
            "0",
        ],
        inputs: 600,
        memory: |length| (32 << 20) + 4000 * length,
        run: &mut run,
    });
}
