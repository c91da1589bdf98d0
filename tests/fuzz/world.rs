//! A small federation, and examples of its messages.

use std::fs;
use std::path::{Path, PathBuf};

use rota::protocol::identity::{SignatureClaim, Verifier};
use rota::protocol::parameters::ProtocolParameters;
use rota::protocol::roster::Silo;
use rota::protocol::{Epoch, Genesis, Hash, SecretKey};

/// Says that every signature holds, so that inputs get past them.
pub(crate) struct Anyone;

impl Verifier for Anyone {
    fn verify(&self, _: &SignatureClaim<'_>) -> bool {
        true
    }

    fn verify_all(&self, _: &[SignatureClaim<'_>]) -> bool {
        true
    }
}

/// A file of the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub(crate) fn key(member: u16) -> SecretKey {
    SecretKey::from_bytes(&[member as u8 + 1; 32])
}

/// The federation of `crates/protocol/tests/golden`: four members, with fixed ids.
pub(crate) fn epoch() -> Epoch {
    let silo = |member| Silo {
        name: format!("silo {member}"),
        key: key(member).public(),
        rows: None,
    };
    let protocol = ProtocolParameters {
        work: "none".into(),
        start: Hash([3; 32]),
        ..ProtocolParameters::small("golden")
    };
    let silos = (0..4).map(silo).collect();
    let mut epoch = Epoch::first_in(1, &Genesis { silos, protocol }).unwrap();
    (epoch.federation, epoch.id) = (Hash([1; 32]), Hash([2; 32]));
    epoch
}

/// The byte strings of the lines `name: hexadecimal digits` of a golden file.
pub(crate) fn golden(path: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(path).unwrap();
    let digits = text.lines().filter_map(|line| line.rsplit_once(": "));
    let bytes = digits.map(|(_, digits)| {
        let pair = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).unwrap();
            u8::from_str_radix(pair, 16).unwrap()
        };
        digits.as_bytes().chunks(2).map(pair).collect()
    });
    bytes.collect()
}

/// A sealed message of every kind, several of some.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let folder = fs::read_dir(file("crates/protocol/tests/golden")).unwrap();
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &PathBuf| {
        path.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    let of = |path: &PathBuf, what: &str| name(path).is_some_and(|name| name.ends_with(what));
    paths.retain(|path| path.extension().is_some_and(|of| of == "hex"));
    paths.retain(|path| !of(path, "hashes") && !of(path, "records"));
    paths.iter().flat_map(|path| golden(path)).collect()
}
