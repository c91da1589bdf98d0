//! An institution that reads its file and adds to a sum with noise.

use std::fs;
use std::path::PathBuf;

use rota::agreement::silo_seed;
use rota::node::identity;
use rota::node::institution::Institution;
use rota::node::split_key;
use rota::protocol::{SecretKey, member};
use rota::silo::SiloConfig;
use rota::silo::outcome::genesis;
use rota::silo::rounds::{RoundBase, noised_part};
use rota::task::TaskConfig;
use rota::task::data::SplitKey;
use rota::task::schema::Schema;
use tempfile::TempDir;

/// Agreement of the members of a federation.
#[derive(Debug, Clone)]
pub(crate) struct AgreedCase {
    /// The table `[task.table]`, without its split.
    pub(crate) task: String,
    /// The table `split`.
    pub(crate) split: &'static str,
    /// Keys of `[privacy]`.
    pub(crate) privacy: String,
    /// Rows that every member declares.
    pub(crate) declared: u64,
}

fn key(member: u8) -> SecretKey {
    SecretKey::from_bytes(&[member + 1; 32])
}

impl AgreedCase {
    fn text(&self) -> String {
        let Self {
            task,
            split,
            privacy,
            declared,
        } = self;
        let rounds = if privacy.contains("sufficient-statistics") {
            1
        } else {
            6
        };
        let silos = (0..4).map(|member| {
            let key = key(member).public();
            format!("[[member]]\nname = \"clinic {member}\"\nkey = \"{key}\"\nrows = {declared}\n")
        });
        format!(
            "format = 3\nname = \"one unit\"\nrounds = {rounds}\nseed = 5\nstart = \"{start}\"\n\
             [protocol]\nheartbeat = \"5s\"\nstraggler-timeout = 12\nview-timeout = 29\nkeep-rounds = 3\n\
             blob-limit = 100000\nnames = \"removed\"\nrotation = \"every-round\"\nverification = \"full\"\n\
             [task.table]\nsplit = {split}\n{task}\n\
             [privacy]\nmode = \"differential-privacy\"\nnoise-multiplier = 20.0\nmin-authors = 3\ncolluders = 1\n{privacy}\n\
             [strategy]\nname = \"fedavg\"\nweight = \"equal\"\n\
             training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.5 }} }}\n{silos}",
            start = "0".repeat(64),
            silos = silos.collect::<String>(),
        )
    }
}

/// The first of four members, with a folder of its own.
pub(crate) struct Clinic {
    folder: TempDir,
    institution: Institution,
}

impl Clinic {
    pub(crate) fn new(agreed: &AgreedCase) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("federation.toml"), agreed.text()).unwrap();
        identity::write(&at("identity.key"), &key(0)).unwrap();
        split_key::write(&at("identity.key"), &SplitKey::new([9; 32])).unwrap();
        let silo = "federation = \"federation.toml\"\nidentity = \"identity.key\"\nstate = \"state\"\n\
                    listen = [\"/ip4/127.0.0.1/tcp/4001\"]\n[data.rows]\nfiles = [\"rows.csv\"]\n\
                    [data.rows.names]\nignore = [\"patient\", \"part\", \"day\"]\n";
        fs::write(at("node.toml"), silo).unwrap();
        let institution = Institution::load(&at("node.toml"));
        let institution = institution.unwrap_or_else(|error| panic!("{error}\n{}", agreed.text()));
        Self {
            folder,
            institution,
        }
    }

    /// The schema by which its rows are read.
    pub(crate) fn schema(&self) -> Schema {
        let task = self.institution.agreement.task_of_rows().unwrap();
        let TaskConfig::Table(task) = task else {
            panic!("a task with tables");
        };
        task.agreed_schema().unwrap().unwrap()
    }

    fn rows(&self) -> PathBuf {
        self.folder.path().join("rows.csv")
    }

    /// Returns what it adds to the sum of the first round before its noise, where its file holds this. It always adds
    /// something.
    pub(crate) fn adds(&self, file: &[u8]) -> Vec<i64> {
        fs::write(self.rows(), file).unwrap();
        let institution = &self.institution;
        let text = || String::from_utf8_lossy(file).into_owned();
        let equipment = institution.equipment(None);
        let equipment = equipment.unwrap_or_else(|error| panic!("{error}\n{}", text()));
        let agreement = &institution.agreement;
        let epoch = agreement.epoch.clone();
        let config = SiloConfig {
            member: member::Config::new(epoch, institution.me, key(0), [0; 32]),
            learner: equipment.equipped.clone(),
            strategy: agreement.strategy.clone(),
            initial_seed: agreement.seed,
            max_model_norm: f64::INFINITY,
            max_weight: None,
            encoding: agreement.strategy_config.encoding,
            radius: institution.radius.clone().into(),
            seed: silo_seed(institution.seed, institution.me),
            journal_lost: false,
            personal: None,
            former: Vec::new(),
            past: Vec::new(),
        };
        let genesis = genesis(&*config.strategy, &*config.learner, config.initial_seed);
        let base = RoundBase::new(&config, &genesis);
        let part = noised_part(&config, &base, [7; 32]);
        part.unwrap_or_else(|error| panic!("{error}\n{}", text()))
            .units
    }
}
