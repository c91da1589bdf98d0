//! Agreements, scenarios and configurations of nodes as TOML; invitations and consents.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::{fs, str};

use data_encoding::BASE64URL_NOPAD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rota::agreement::{Agreement, Consent, Draft, InForce, Invitation};
use rota::node::institution::Configured;
use rota::protocol::{Hash, codec};
use rota::simulations::{Scenario, scenario};

use super::engine::{FuzzTarget, fuzz, gist};
use super::world::{file, key};

/// A parsed document with the places of its values, and what is made of it.
fn memory(length: usize) -> usize {
    (4 << 20) + 2000 * length
}

/// Parts of which TOML is made, and numbers at which something goes wrong.
pub(crate) const WORDS: &[&str] = &[
    "\n[",
    "]\n",
    "[[",
    "]]\n",
    " = ",
    "\"",
    "'",
    "\"\"\"",
    "{ ",
    " }",
    ", ",
    "true",
    "nan",
    "-inf",
    "1e400",
    "-1",
    "0",
    "9223372036854775807",
    "18446744073709551615",
    "1e-320",
    "0x",
    "\\u0000",
    "\u{feff}",
    "é",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "\"0s\"",
    "\"10000h\"",
    "\n[[fault]]\n",
    "rounds = ",
    "silos = ",
    "hidden = [",
    "= [0",
    "99999999, ",
];

fn texts(paths: &[&str]) -> Vec<Vec<u8>> {
    paths
        .iter()
        .map(|path| fs::read(file(path)).unwrap())
        .collect()
}

/// The example of an agreement, with a key that is known here.
pub(crate) fn own_agreement() -> String {
    let text = fs::read_to_string(file("examples/federation.toml")).unwrap();
    let of_north = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
    assert!(text.contains(of_north));
    text.replace(of_north, &key(0).public().to_string())
}

#[test]
fn agreements() {
    let mut run = |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else {
            return "no text".into();
        };
        let draft = Draft::parse("federation.toml", text).is_ok();
        let agreement = match Agreement::parse("federation.toml", text) {
            Ok(agreement) => agreement,
            Err(error) => return format!("{draft} {}", gist(&error.to_string())),
        };
        // It is written again with the same meaning.
        let Ok(again) = agreement.to_toml() else {
            return "cannot be written".into();
        };
        let again = Agreement::parse("federation.toml", &again);
        let again = again.unwrap_or_else(|error| panic!("written by to_toml: {error}\n{text}"));
        assert_eq!(again.epoch.federation, agreement.epoch.federation, "{text}");
        format!("{draft} fine {}", agreement.epoch.roster.len())
    };
    fuzz(FuzzTarget {
        name: "federation",
        examples: texts(&["examples/federation.toml"]),
        words: WORDS,
        inputs: 400,
        memory,
        run: &mut run,
    });
}

#[test]
fn scenarios() {
    let mut run = |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else {
            return "no text".into();
        };
        let faults = scenario::faults("faults.toml", text).is_ok();
        match Scenario::parse("scenario.toml", text) {
            Ok(scenario) => format!("{faults} {}", scenario.faults.len().min(4)),
            Err(error) => format!("{faults} {}", gist(&error.to_string())),
        }
    };
    fuzz(FuzzTarget {
        name: "scenario",
        examples: texts(&[
            "examples/scenario.toml",
            "examples/faults.toml",
            "simulations/scenarios/diabetes.toml",
            "simulations/scenarios/digits20.toml",
            "simulations/scenarios/rotation.toml",
        ]),
        words: WORDS,
        inputs: 800,
        memory,
        run: &mut run,
    });
}

#[test]
fn configurations_of_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    fs::write(path("federation.toml"), own_agreement()).unwrap();
    let silo = path("node.toml");
    let mut run = |bytes: &[u8]| {
        fs::write(&silo, bytes).unwrap();
        match Configured::load(&silo) {
            Ok(configured) => format!("fine {}", configured.listen.len()),
            Err(error) => gist(&error.to_string()),
        }
    };
    fuzz(FuzzTarget {
        name: "silo",
        examples: texts(&["examples/node.toml"]),
        words: WORDS,
        inputs: 400,
        memory,
        run: &mut run,
    });
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

/// A token around a payload: with the right checksum, so that changes get as far as the payload.
fn token(payload: &[u8]) -> String {
    let sum = Hash::labelled("rota invitation", &[payload]);
    let bytes = [&sum.0[..8], payload].concat();
    format!("rota-invite-1-{}", BASE64URL_NOPAD.encode(&bytes))
}

#[test]
fn invitations() {
    let invitation = Invitation {
        in_force: None,
        to: Some("north".into()),
        text: own_agreement(),
    };
    let right = invitation.token().unwrap();
    let bytes = right.strip_prefix("rota-invite-1-").unwrap();
    let bytes = BASE64URL_NOPAD.decode(bytes.as_bytes()).unwrap();
    let (payload, agreement) = (&bytes[8..], own_agreement());
    // The first byte says what the others are: a token, its payload, or a text to pack, which may be
    // as long as it wants to be.
    let running = Invitation {
        in_force: Some(InForce {
            changes: 2,
            text: invitation.text.replacen("rounds = ", "rounds = 1", 1),
        }),
        ..invitation
    };
    let running = running.token().unwrap();
    let examples = [
        (0, right.as_bytes()),
        (0, running.as_bytes()),
        (1, payload),
        (2, agreement.as_bytes()),
    ];
    let examples = examples.map(|(mode, bytes)| [&[mode], bytes].concat());
    let mut run = |bytes: &[u8]| {
        let (Some(mode), rest) = (bytes.first(), bytes.get(1..).unwrap_or_default()) else {
            return "nothing".into();
        };
        let token = match mode % 4 {
            0 => String::from_utf8_lossy(rest).into_owned(),
            1 => token(rest),
            mode => {
                // Up to 64 MiB of text.
                let times = if mode == 3 { 1024 } else { 1 };
                let hash = Hash::of(rest);
                token(&codec::encode(&(
                    None::<String>,
                    hash,
                    packed(&rest.repeat(times)),
                )))
            }
        };
        match Invitation::read(&token) {
            Ok(read) => format!("fine {}", read.to.is_some()),
            Err(error) => format!("{} {}", mode % 4, gist(&error.to_string())),
        }
    };
    fuzz(FuzzTarget {
        name: "invitation",
        examples: examples.into(),
        words: &["rota-invite-1-", "rota-invite-2-", "-"],
        inputs: 150,
        // The text that this test packs, and a text of 4 MiB with what is parsed of it.
        memory: |length| (64 << 20) + 2048 * length,
        run: &mut run,
    });
}

#[test]
fn consents() {
    let agreement = Agreement::parse("federation.toml", &own_agreement()).unwrap();
    let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let consent = Consent::sign(&agreement, &key(0), at).unwrap();
    let example = consent.to_toml().unwrap();
    let mut held = BTreeSet::new();
    let mut run = |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else {
            return "no text".into();
        };
        match Consent::parse("consent.toml", text) {
            Err(error) => gist(&error.to_string()),
            Ok(read) => match read.check(&agreement) {
                Err(error) => gist(&error.to_string()),
                Ok(_) => {
                    held.insert(read.time());
                    "holds".into()
                }
            },
        }
    };
    fuzz(FuzzTarget {
        name: "consent",
        examples: vec![example.into_bytes()],
        words: WORDS,
        inputs: 800,
        memory,
        run: &mut run,
    });
    // No other time or content can be put under this signature.
    assert_eq!(held.len(), 1, "{held:?}");
}
