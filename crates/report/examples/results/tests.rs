//! Pages are written of all runs or not at all, twice with the same numbers, and are known to be older.

#![allow(clippy::unwrap_used)]

use super::*;

/// Two strategies on the built-in patients, over two seeds.
const SMALL: &str = "
name = 'small'
description = 'Patients in four hospitals.'
seeds = 2
served = false

[scenario]
seed = 1
rounds = 2
silos = 4

[scenario.task.table]
data = 'diabetes'
model = { linear = { loss = 'absolute' } }

[training]
epochs = 1
batch = 16
optimiser = { name = 'sgd', rate = 0.01 }

[[strategy]]
name = 'local'

[[strategy]]
name = 'fedavg'
";

/// A repository in a new folder, with one source in every folder that counts.
struct TestRepository {
    root: tempfile::TempDir,
    experiment: Experiment,
}

impl TestRepository {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in stamp::FOLDERS {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("one.rs"), "fn one() {}\n").unwrap();
        }
        let lock = "[[package]]\nname = \"own\"\n\n[[package]]\nname = \"other\"\nsource = \"somewhere\"\n";
        fs::write(root.path().join("Cargo.lock"), lock).unwrap();
        let file = root.path().join("small.toml");
        fs::write(&file, SMALL).unwrap();
        let experiment = Experiment::load(file.to_str().unwrap(), &Choices::default()).unwrap();
        Self { root, experiment }
    }

    fn stamp(&self) -> String {
        stamp::stamp(self.root.path(), SMALL).unwrap()
    }

    /// Measures a part or all, and returns the page, empty where there is none.
    fn page(&self, shard: Option<&str>) -> String {
        let page = self.root.path().join("measurements/results/small.md");
        let shard = shard.map(|shard| shard.parse().unwrap());
        let root = self.root.path();
        measure(root, &self.experiment, &self.stamp(), shard, &page).unwrap();
        fs::read_to_string(page).unwrap_or_default()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.root.path().join(file), text).unwrap();
    }
}

/// The words of a page without seconds, which alone differ from run to run.
fn without_times(page: &str) -> Vec<&str> {
    let words: Vec<&str> = page.split_whitespace().collect();
    let unit = |word: &str| ["s", "ms", "µs"].contains(&word.trim_end_matches([';', '.', ',']));
    let times = words.windows(2).enumerate();
    let times = times.filter(|(_, pair)| pair[0].parse::<f64>().is_ok() && unit(pair[1]));
    let times: Vec<usize> = times.map(|(at, _)| at).collect();
    assert!(times.len() >= 3, "of all, and of every strategy");
    let other = words.into_iter().enumerate();
    let other = other.filter(|(at, _)| !times.contains(at) && !times.contains(&at.wrapping_sub(1)));
    other.map(|(_, word)| word).collect()
}

#[test]
fn a_page_needs_all_parts_and_repeats_with_the_same_numbers() {
    let repository = TestRepository::new();
    assert_eq!(repository.page(Some("1/2")), "");
    assert_eq!(repository.page(Some("2/2")), "");
    let page = repository.page(None);
    let stamp = repository.stamp();
    for said in [
        "# small\n",
        "just results small",
        "1 table over 2 seeds",
        &format!("code {stamp}."),
        "| local |",
        "| fedavg |",
    ] {
        assert!(page.contains(said), "{said} in {page}");
    }
    // Once more of the runs that are there, then of new ones.
    assert_eq!(repository.page(None), page);
    fs::remove_dir_all(repository.root.path().join("target")).unwrap();
    let again = repository.page(None);
    assert_eq!(without_times(&again), without_times(&page));
}

#[test]
fn a_page_is_older_than_code_that_changes_a_result() {
    let repository = TestRepository::new();
    let first = repository.stamp();
    let page = format!("trainings of 1 s in all; code {first}.");
    assert_eq!(state("", &first), "never measured");
    assert_eq!(state(&page, &first), "of this code");

    // Comments, tests, own versions and what stands elsewhere change no result.
    let own = "[[package]]\nname = \"own\"\nversion = \"2\"\n\n[[package]]\nname = \"other\"\nsource = \"somewhere\"\n";
    repository.write("Cargo.lock", own);
    let folder = stamp::FOLDERS[2];
    let one = format!("{folder}/one.rs");
    repository.write(
        &one,
        "// One.\nfn one() {}\n\n#[cfg(test)]\nmod tests {\n    fn two() {}\n}\n",
    );
    repository.write(&format!("{folder}/tests.rs"), "fn three() {}\n");
    repository.write("elsewhere.rs", "fn four() {}\n");
    assert_eq!(repository.stamp(), first);

    // A line of any folder, another file, a library, the experiment.
    let mut stamps = vec![first];
    for folder in stamp::FOLDERS {
        let file = format!("{folder}/one.rs");
        repository.write(&file, "fn two() {}\n");
        stamps.push(repository.stamp());
        repository.write(&file, "fn one() {}\n");
    }
    fs::create_dir_all(repository.root.path().join(folder).join("deep")).unwrap();
    repository.write(&format!("{folder}/deep/more.rs"), "fn more() {}\n");
    stamps.push(repository.stamp());
    repository.write("Cargo.lock", &own.replace("somewhere", "somewhere else"));
    stamps.push(repository.stamp());
    stamps.push(stamp::stamp(repository.root.path(), "another").unwrap());
    for (at, one) in stamps.iter().enumerate() {
        assert!(!stamps[..at].contains(one), "{at}: {stamps:?}");
        assert_eq!(state(&page, one) == "of this code", at == 0);
    }
}

#[test]
fn what_is_not_an_experiment_is_refused() {
    let wanted = |words: &[&str]| WantedPages::of(words.iter().map(|&word| word.to_owned()));
    let all = wanted(&["heart", "--shard", "1/2", "--older"]).unwrap();
    assert_eq!(all.names, ["heart"]);
    assert!(all.older && all.shard.is_some());
    for words in [&["hearts"][..], &["--shard"], &["--shard", "3/2"]] {
        assert!(wanted(words).is_err(), "{words:?}");
    }
}
