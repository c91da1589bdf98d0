#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use agreement::Agreement;
use protocol::message::Amendment;

use super::*;

const EXAMPLE: &str = include_str!("../../../../examples/federation.toml");

/// An amendment of the example with this many rounds, and the epoch that it would end.
fn with_rounds(rounds: u64) -> (Hash, Amendment) {
    let old = Agreement::parse("federation.toml", EXAMPLE).unwrap();
    let now = format!("rounds = {}", old.epoch.protocol.rounds);
    let text = EXAMPLE.replacen(&now, &format!("rounds = {rounds}"), 1);
    let amendment = old.amended("new.toml", &text, learn::stand_in).unwrap();
    assert_eq!(amendment.protocol.rounds, rounds);
    (old.epoch.id, amendment)
}

fn known((epoch, amendment): &(Hash, Amendment)) -> KnownAmendment {
    KnownAmendment {
        epoch: *epoch,
        amendment: amendment.clone(),
        approved: Vec::new(),
        needed: 3,
    }
}

/// An approval of one moment, so that it is the same whenever it is made.
fn word((epoch, amendment): &(Hash, Amendment)) -> AmendmentWord {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    AmendmentWord::after(&[], (*epoch, amendment), true, at)
}

fn file(state: &Path, amendment: &Amendment, kind: &str) -> PathBuf {
    state.join(FOLDER).join(name(&amendment.hash(), kind))
}

#[test]
fn what_was_kept_is_found_under_its_whole_hash() {
    let place = tempfile::tempdir().unwrap();
    let (one, two) = (with_rounds(77), with_rounds(78));
    let amendments = AmendmentFolder::of(place.path());
    assert_eq!(amendments.found(), FoundAmendments::default());
    amendments.keep(&known(&one)).unwrap();
    amendments.keep(&known(&two)).unwrap();
    amendments.say(&word(&two)).unwrap();
    let found = amendments.found();
    assert_eq!((found.known.len(), found.unused.len()), (2, 0));
    assert_eq!(found.words, [word(&two)]);
    assert_eq!(found.word(&two.1.hash()), Some(&word(&two)));
    assert_eq!(found.word(&one.1.hash()), None);
    assert!(file(place.path(), &one.1, KNOWN).exists());
    assert_eq!(name(&one.1.hash(), KNOWN).len(), 64 + 1 + KNOWN.len());
}

#[test]
fn bytes_under_another_amendments_name_are_reported_and_unused() {
    let place = tempfile::tempdir().unwrap();
    let (one, two) = (with_rounds(77), with_rounds(78));
    let amendments = AmendmentFolder::of(place.path());
    amendments.keep(&known(&one)).unwrap();
    amendments.keep(&known(&two)).unwrap();
    amendments.say(&word(&one)).unwrap();
    amendments.say(&word(&two)).unwrap();
    // Somebody puts the other one's bytes under the name of the first, in both files.
    for kind in [KNOWN, WORD] {
        let (from, to) = (
            file(place.path(), &two.1, kind),
            file(place.path(), &one.1, kind),
        );
        fs::rename(from, to).unwrap();
    }
    let found = amendments.found();
    assert_eq!((found.known.len(), found.words.len()), (0, 0));
    assert_eq!(found.unused.len(), 2);
    for unused in &found.unused {
        let (name, holds) = (one.1.hash(), two.1.hash());
        assert!(unused.line().contains(&format!("{name:#}")), "{unused:?}");
        assert!(unused.why.contains(&format!("{holds:#}")), "{unused:?}");
    }
    // A file that is not used stays, and the institution can write its word again.
    amendments.only_of(Hash([7; 32]), &BTreeSet::new());
    assert_eq!(amendments.found().unused.len(), 2);
    amendments.say(&word(&one)).unwrap();
    assert_eq!(amendments.found().words, [word(&one)]);
}

#[test]
fn an_unreadable_file_hides_no_other() {
    let place = tempfile::tempdir().unwrap();
    let (one, two) = (with_rounds(77), with_rounds(78));
    let amendments = AmendmentFolder::of(place.path());
    for change in [&one, &two] {
        amendments.keep(&known(change)).unwrap();
        amendments.say(&word(change)).unwrap();
    }
    let folder = place.path().join(FOLDER);
    // Cut off, empty, of an earlier version with a short name, and a folder.
    let bytes = fs::read(file(place.path(), &one.1, KNOWN)).unwrap();
    fs::write(file(place.path(), &one.1, KNOWN), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(file(place.path(), &one.1, WORD), b"").unwrap();
    fs::write(folder.join("5f0c7a12.approved"), b"").unwrap();
    fs::create_dir(folder.join("more.amendment")).unwrap();
    let found = amendments.found();
    assert_eq!((found.known.len(), found.words.len()), (1, 1));
    assert_eq!(found.known[0].hash(), two.1.hash());
    assert_eq!(found.unused.len(), 4);
    assert_eq!(amendments.words().unused.len(), 2);
}

#[test]
fn only_approvals_of_amendments_in_force_outlive_their_epoch() {
    let place = tempfile::tempdir().unwrap();
    let (one, two) = (with_rounds(77), with_rounds(78));
    let amendments = AmendmentFolder::of(place.path());
    for change in [&one, &two] {
        amendments.keep(&known(change)).unwrap();
        amendments.say(&word(change)).unwrap();
    }
    let in_force = BTreeSet::from([one.1.hash()]);
    amendments.only_of(one.0, &in_force);
    assert_eq!(amendments.found().known.len(), 2, "the epoch is the same");
    amendments.only_of(Hash([7; 32]), &in_force);
    let found = amendments.found();
    assert_eq!((found.known.len(), found.words), (0, vec![word(&one)]));
}

#[test]
fn amendments_and_approvals_of_other_epochs_do_not_count() {
    let epoch = Agreement::parse("federation.toml", EXAMPLE).unwrap().epoch;
    let (one, two, three) = (with_rounds(77), with_rounds(78), with_rounds(79));
    let of_another = |change: &(Hash, Amendment)| (Hash([7; 32]), change.1.clone());
    let found = FoundAmendments {
        known: vec![known(&one), known(&of_another(&two))],
        words: vec![
            word(&one),
            word(&of_another(&two)),
            word(&three),
            word(&of_another(&one)),
        ],
        unused: Vec::new(),
    };
    let mut expected = [one.1.hash(), three.1.hash()];
    expected.sort();
    let hashes: Vec<_> = found.of(&epoch).iter().map(KnownAmendment::hash).collect();
    assert_eq!(hashes, expected);
    let words: Vec<_> = found.words_of(&epoch.id).cloned().collect();
    assert_eq!(words, [word(&one), word(&three)]);
}

#[test]
fn an_amendment_in_a_future_format_names_the_program_for_it() {
    let (epoch, mut amendment) = with_rounds(77);
    assert_eq!(known(&(epoch, amendment.clone())).unspoken(), None);
    amendment.format = protocol::Formats::SPOKEN.newest + 1;
    let why = known(&(epoch, amendment)).unspoken().unwrap();
    assert!(why.contains("format"), "{why}");
}

#[test]
fn approval_numbers_follow_the_clock_and_always_increase() {
    let (change, other) = (with_rounds(77), with_rounds(78));
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let mut said = Vec::new();
    let mut say = |(epoch, amendment): &(Hash, Amendment), stands, now| {
        let word = AmendmentWord::after(&said, (*epoch, amendment), stands, at(now));
        assert_eq!(word.stands, stands);
        said.push(word);
        said.last().unwrap().number
    };
    assert_eq!(say(&change, true, 1_000), 1_000);
    assert_eq!(say(&change, false, 1_000), 1_001);
    // The clock was put back.
    assert_eq!(say(&change, true, 10), 1_002);
    assert_eq!(say(&other, true, 10), 1_003);
    assert_eq!(say(&change, false, 5_000), 5_000);
}

#[test]
fn forgotten_amendments_leave_the_disk_and_restarts_keep_newest() {
    let place = tempfile::tempdir().unwrap();
    let amendments = AmendmentFolder::of(place.path());
    let all: Vec<_> = (71..77).map(with_rounds).collect();
    for (nth, one) in all.iter().enumerate() {
        amendments.keep(&known(one)).unwrap();
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_366_400 + nth as u64);
        let file = file(place.path(), &one.1, KNOWN);
        fs::File::open(file).unwrap().set_modified(written).unwrap();
    }
    let left = || -> Vec<bool> {
        let kept = |one: &(Hash, Amendment)| file(place.path(), &one.1, KNOWN).exists();
        all.iter().map(kept).collect()
    };
    amendments.forget(&all[4].1.hash());
    assert_eq!(left(), [true, true, true, true, false, true]);
    // To the oldest this institution has said something.
    amendments.say(&word(&all[0])).unwrap();
    amendments.at_most(2);
    assert_eq!(left(), [true, false, false, true, false, true]);
    amendments.forget(&all[0].1.hash());
    assert_eq!(amendments.found().words, [word(&all[0])]);
}
