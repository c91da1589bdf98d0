//! `rota blame`: a member corrupts the sum of one round, and is named from what the authors of this round
//! disclose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use ::rota::agreement::Agreement;
use ::rota::mesh;
use ::rota::node::equipment::Equipment;
use ::rota::node::institution::Institution;
use ::rota::node::pool::Workers;
use ::rota::node::store::{DiskBlobs, Owner};
use ::rota::protocol::{envelope, member};
use ::rota::silo::{
    self, Blobs, Checks, Network, SeededSecrets, SiloConfig, SiloEnvironment, Site, StoreError,
};
use bytes::Bytes;
use learn::TaskStudy;
use tokio::sync::oneshot;

use super::masked::SUMS;
use super::*;

/// The round that is corrupted.
const CORRUPTED: u64 = 2;
/// The node that corrupts it.
const FAULTY: usize = 3;

/// The blobs of a node that changes the last byte of the vector that it masks for one round.
struct CorruptingDisk {
    kept: DiskBlobs,
    /// Bytes of a masked vector.
    vector: usize,
    /// Rounds for which the silo has prepared.
    prepared: AtomicU64,
}

impl Blobs for CorruptingDisk {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        self.kept.get(hash)
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        self.kept.put(hash, blob)
    }

    fn to_file(&self, blob: Bytes) -> Bytes {
        if blob.starts_with(b"rota prepared") {
            self.prepared.fetch_add(1, Ordering::Relaxed);
        }
        if blob.len() != self.vector || self.prepared.load(Ordering::Relaxed) != CORRUPTED {
            return blob;
        }
        let mut changed = blob.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        changed.into()
    }

    fn mark(&self) -> u64 {
        self.kept.mark()
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        self.kept.retain(keep, mark)
    }
}

/// The silo of an institution, as its node would run it.
fn silo_config(institution: &Institution) -> SiloConfig {
    let agreement = &institution.agreement;
    let members = agreement.epoch.roster.len();
    let study = agreement
        .task
        .study(Some(members), None, agreement.seed)
        .unwrap();
    let silo = study.silos.into_iter().nth(institution.me.at()).unwrap();
    let radius = Default::default();
    let equipment = Equipment::new(agreement, silo, study.metric, None, &radius).unwrap();
    let (epoch, key) = (agreement.epoch.clone(), institution.key.clone());
    SiloConfig {
        member: member::Config::new(epoch, institution.me, key, [7; 32]),
        learner: equipment.equipped,
        strategy: Arc::clone(&agreement.strategy),
        initial_seed: agreement.seed,
        max_model_norm: f64::INFINITY,
        max_weight: None,
        encoding: agreement.strategy_config.encoding,
        radius,
        seed: 1,
        journal_lost: false,
        personal: None,
        former: Vec::new(),
        past: Vec::new(),
    }
}

/// A node in this process whose vectors are wrong in one round. It runs until `end` is heard.
fn corrupting_node(config: &Path, end: oneshot::Receiver<()>) -> JoinHandle<()> {
    let institution = Institution::load(config).unwrap();
    thread::spawn(move || {
        let epoch = institution.agreement.epoch.clone();
        let owner = Owner {
            federation: epoch.federation,
            me: institution.me,
            key: institution.key.clone(),
        };
        let opened = store::open(&institution.state, &owner, 64 << 20).unwrap();
        let agreed = institution.agreement.to_toml().unwrap();
        store::keep_agreement(&institution.state, &agreed).unwrap();
        let network = tokio::runtime::Runtime::new().unwrap();
        let mut config = mesh::Config::new(epoch.federation, institution.listen.clone());
        config.epoch = epoch.id;
        config.frame = envelope::limit(&epoch);
        config.spool = Some(opened.blobs.spool());
        let (key, roster) = (institution.key.to_bytes(), institution.roster.clone());
        let handle = network.handle();
        let mesh = mesh::spawn(handle, config, key, roster);
        let mesh = network.block_on(mesh).unwrap();
        let config = silo_config(&institution);
        let vector = 4 * (config.learner.layout().len() + 4);
        let inner = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        silo::block_on(inner, async move {
            let environment = SiloEnvironment {
                network: Network {
                    commands: mesh.commands,
                    events: mesh.events,
                },
                journal: Box::new(opened.journal),
                blobs: Arc::new(CorruptingDisk {
                    kept: opened.blobs,
                    vector,
                    prepared: AtomicU64::new(0),
                }),
                pool: Workers::new(1),
                checks: Checks::new(false),
                feed: Box::new(|_, _| {}),
                origin: tokio::time::Instant::now(),
                site: Site::default(),
                secrets: Box::new(SeededSecrets::new(&[7; 32])),
            };
            let mut silo = silo::spawn(config, environment).unwrap();
            let _ = end.await;
            silo.stop();
            silo.stopped().await;
        });
    })
}

/// The files that a node keeps to itself.
fn secrets(state: &Path) -> usize {
    let files = fs::read_dir(state.join("blobs")).unwrap();
    let files = files.map(|file| fs::read(file.unwrap().path()).unwrap_or_default());
    files
        .filter(|file| file.starts_with(b"rota prepared"))
        .count()
}

/// A federation whose second round was void, and the names of its members.
fn corrupted_federation() -> (Demo, Vec<String>) {
    let file = scenario("blamed", SUMS);
    let demo = Demo::new("blamed", &["--scenario", file.to_str().unwrap()]);
    let (end, ended) = oneshot::channel();
    let corrupting = corrupting_node(&demo.configs[FAULTY], ended);
    let mut nodes = TestNodes::new(&demo.configs[..FAULTY], &["--until-done"]);
    (0..FAULTY).for_each(|node| nodes.start(node));
    for node in 0..FAULTY {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    end.send(()).unwrap();
    corrupting.join().unwrap();
    let names = demo.configs.iter().map(|config| {
        let institution = Institution::load(config).unwrap();
        let Agreement { epoch, .. } = &institution.agreement;
        epoch.roster.name(institution.me).to_owned()
    });
    let names = names.collect();
    (demo, names)
}

/// Returns what a command says, without line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn who_spoiled_a_sum_is_named_from_what_its_authors_disclose_and_no_other_round_is_opened() {
    let (demo, names) = corrupted_federation();
    let state = |node: usize| demo.configs[node].with_file_name("state");
    let file = |node: usize| demo.folder.join(format!("disclosed-{node}.json"));
    let blame = |node: usize, round: u64, options: &[&str]| {
        let (round, state) = (round.to_string(), state(node));
        let base = ["blame", &round, "--state", state.to_str().unwrap()];
        output(&[&base[..], options].concat())
    };
    (0..4).for_each(|node| assert_eq!(secrets(&state(node)), 1, "node {node}"));
    let chain = good(&["chain", "--state", state(0).to_str().unwrap()]);
    assert_eq!(chain.matches("void: the sum of").count(), 1, "{chain}");
    // Everybody sees that it was void, and computes it again.
    let said = words(&text(&blame(1, CORRUPTED, &[]).stdout));
    assert!(said.contains("were void and left out"), "{said}");
    assert!(
        said.contains("the masks of an author do not cancel"),
        "{said}"
    );
    let verified = good(&["verify", "--state", state(1).to_str().unwrap()]);
    assert!(
        verified.contains("rounds    3 to 4 computed again"),
        "{verified}"
    );

    // Nothing is disclosed without consent to this very round, and nothing of any other.
    let place = file(0);
    let place = place.to_str().unwrap();
    let asked = blame(0, CORRUPTED, &["--disclose", place]);
    assert_eq!(asked.status.code(), Some(2));
    let said = words(&text(&asked.stdout));
    assert!(
        said.contains("What this discloses: the secret of"),
        "{said}"
    );
    assert!(said.contains("whether it discloses or not"), "{said}");
    let said = words(&text(&asked.stderr));
    let (_, block) = said.split_once("--consent ").unwrap();
    let block = block.trim().to_owned();
    let other = blame(
        0,
        CORRUPTED,
        &["--disclose", place, "--consent", &"0".repeat(32)],
    );
    assert_eq!(other.status.code(), Some(2));
    for (round, why) in [
        (3, "its sum was opened and adopted"),
        (1, "is not kept here"),
        (9, "is not in the chain"),
    ] {
        let refused = blame(0, round, &["--disclose", place, "--consent", &block]);
        assert_eq!(refused.status.code(), Some(1));
        let said = words(&text(&refused.stderr));
        assert!(said.contains(why), "{said}");
    }
    assert!(!file(0).exists());

    for node in 0..4 {
        let place = file(node);
        let options = ["--disclose", place.to_str().unwrap(), "--consent", &block];
        let done = blame(node, CORRUPTED, &options);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    }
    let with = |node: usize, files: &[PathBuf], more: &[&str]| {
        let files = files.iter().map(|file| file.to_str().unwrap());
        let options: Vec<_> = ["--with"].into_iter().chain(files).collect();
        blame(node, CORRUPTED, &[&options[..], more].concat())
    };
    // Three disclose, the faulty one among them; any node can look.
    let said = with(2, &[file(0), file(1), file(FAULTY)], &[]);
    let said = words(&text(&said.stdout));
    let wrong = format!(
        "WRONG {}: its mask is right, and its check coordinate 3 is",
        names[FAULTY]
    );
    assert!(said.contains(&wrong), "{said}");
    for right in &names[..2] {
        let right = format!("right {right}: all that it sent follows from its secret");
        assert!(said.contains(&right), "{said}");
    }
    let unknown = format!("not examined, because they disclosed nothing: {}", names[2]);
    assert!(
        said.contains(&unknown) && !said.contains("corrupted it"),
        "{said}"
    );
    // If all others are right, it is the one that discloses nothing.
    let said = with(0, &[file(0), file(1), file(2)], &[]);
    let left = format!("so {} corrupted it", names[FAULTY]);
    assert!(words(&text(&said.stdout)).contains(&left));
    // Who writes another name into a file blames nobody.
    let forged = demo.folder.join("forged.json");
    let disclosed = fs::read_to_string(file(FAULTY)).unwrap();
    fs::write(&forged, disclosed.replace(&names[FAULTY], &names[1])).unwrap();
    let json = text(&with(0, std::slice::from_ref(&forged), &["--json"]).stdout);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["examined"][0]["finding"]["kind"], "refused", "{json}");
    assert_eq!(json["not_looked_at"].as_array().unwrap().len(), 4, "{json}");
    fs::write(&forged, disclosed.replace("\"round\": 2", "\"round\": 3")).unwrap();
    let other = with(0, &[forged], &[]);
    assert_eq!(other.status.code(), Some(2), "{}", text(&other.stderr));
    // What is disclosed says no more than the secret: no number of a model.
    assert!(disclosed.len() < 500, "{disclosed}");
}
