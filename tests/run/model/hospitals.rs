//! Three hospitals with rows of their own, and their federation.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::nodes::{TestNodes, base_port, sign};
use super::*;

/// Scenario of the hospitals, by model, strategy and target.
pub(crate) fn scenario(model: &str, strategy: &str, target: &str, more: &str) -> String {
    format!(
        "name = 'stays'
rounds = 3
[task.table]
model = {model}
{more}
[task.table.schema]
min-rows = 20
only = ['age >= 18']
target = {target}
[[task.table.schema.feature]]
name = ['age', 'pulse']
range = [0, 300]
missing = 'median'
[[task.table.schema.feature]]
name = 'weight'
missing = 'drop'
[[task.table.schema.feature]]
name = 'ward'
type = 'category'
levels = ['general', 'intensive', 'children']
missing = 'indicator'
[strategy]
{strategy}
training = {{ epochs = 2, batch = 8, optimiser = {{ name = 'sgd', rate = 0.1 }} }}
[protocol]
heartbeat = '100ms'
straggler-timeout = 50
"
    )
}

/// Outcomes of a hospital stay.
pub(crate) const OUTCOME: &str = "{ name = 'outcome', classes = ['home', 'died'] }";
/// Days of one.
pub(crate) const DAYS: &str = "{ name = 'days', unit = 'days' }";

/// 60 rows as CSV, with the columns of both targets.
pub(crate) fn rows(hospital: usize) -> String {
    let row = |row: usize| {
        let age = 20 + (row * 37 + hospital * 11) % 70;
        let pulse = 60 + (row * 17 + hospital * 5) % 60;
        let weight = 50 + (row * 29 + hospital * 3) % 50;
        let ward = (row * 7 + hospital) % 3;
        let died = usize::from(age + 20 * usize::from(ward == 1) > 65);
        let days = age as f64 / 10.0 + 3.0 * ward as f64 + (row % 4) as f64 / 4.0;
        let ward = ["general", "intensive", "children"][ward];
        let outcome = ["home", "died"][died];
        format!("{row},{age},{pulse},{weight},{ward},{outcome},{days}\n")
    };
    let rows: String = (0..60).map(row).collect();
    format!("patient,age,pulse,weight,ward,outcome,days\n{rows}")
}

/// The hospitals, with keys, configurations and an agreement.
pub(crate) struct TestHospitals {
    pub(crate) folder: PathBuf,
    pub(crate) configs: Vec<PathBuf>,
    pub(crate) keys: Vec<String>,
    /// The target's column; the other one is ignored.
    ignored: &'static str,
    port: u16,
}

pub(crate) const NAMES: [&str; 3] = ["north", "south", "east"];

impl TestHospitals {
    /// In a folder of that name, which learn by this scenario.
    pub(crate) fn new(name: &str, scenario: &str) -> Self {
        let folder = nowhere(name);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("scenario.toml");
        fs::write(&file, scenario).unwrap();
        let mut keys = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            let own = folder.join(name);
            fs::create_dir_all(&own).unwrap();
            let key = own.join("identity.key");
            let key = good(&["identity", "new", "--out", key.to_str().unwrap()]);
            keys.push(key.trim().to_owned());
            fs::write(own.join("rows.csv"), rows(at)).unwrap();
        }
        let mut made = Self {
            folder,
            configs: Vec::new(),
            keys,
            ignored: if scenario.contains("'outcome'") {
                "days"
            } else {
                "outcome"
            },
            port: base_port(),
        };
        let out = made.folder.join("federation.toml");
        let members: Vec<String> = NAMES
            .iter()
            .zip(&made.keys)
            .map(|(name, key)| format!("{name}={key}=1000"))
            .collect();
        let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
        let mut arguments = vec!["federation", "new", "--scenario", file, "--out", out];
        for member in &members {
            arguments.extend(["--member", member]);
        }
        good(&arguments);
        made.configs = made.configured("node.toml", "federation.toml", "state", &["", "", ""]);
        made
    }

    /// Configurations of these names for an agreement, with more lines for each.
    pub(crate) fn configured(
        &self,
        file: &str,
        agreement: &str,
        state: &str,
        more: &[&str; 3],
    ) -> Vec<PathBuf> {
        let config = |at: usize| {
            let peers = (0..3).filter(|other| *other != at).map(|other| {
                let (name, port) = (NAMES[other], self.port + other as u16);
                format!("[[peer]]\nname = '{name}'\naddresses = ['/ip4/127.0.0.1/tcp/{port}']\n")
            });
            let peers: String = peers.collect();
            let consent = agreement.replace('/', "-").replace("federation", "consent");
            let text = format!(
                "federation = '../{agreement}'\nidentity = 'identity.key'\nstate = '{state}'\n\
                 consent = '{consent}'\nlisten = ['/ip4/127.0.0.1/tcp/{}']\nseed = 3\n{}\n[data.rows]\nfiles = ['rows.csv']\n\
                 [data.rows.names]\nignore = ['patient', '{}']\n{peers}",
                self.port + at as u16,
                more[at],
                self.ignored
            );
            let path = self.folder.join(NAMES[at]).join(file);
            fs::write(&path, text).unwrap();
            path
        };
        (0..3).map(config).collect()
    }

    /// Runs all nodes to their end, and returns the lines of each.
    pub(crate) fn run(configs: &[PathBuf]) -> Vec<Vec<Value>> {
        configs.iter().for_each(|config| sign(config));
        let mut nodes = TestNodes::new(configs, &["--until-done"]);
        (0..configs.len()).for_each(|node| nodes.start(node));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
        let mut lines = vec![Vec::new(); configs.len()];
        let mut ended = 0;
        while ended < configs.len() {
            let said = nodes.next(end);
            let said = said.unwrap_or_else(|| panic!("not done\n{}", nodes.tails()));
            if said.line.is_null() {
                ended += 1
            } else {
                lines[said.node].push(said.line)
            }
        }
        for (node, config) in configs.iter().enumerate() {
            let code = nodes.code(node);
            assert_eq!(code, 0, "{}", fs::read_to_string(log(config)).unwrap());
        }
        lines
    }

    /// The path of a file in the folder, as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }
}

/// The path of a configuration as text.
pub(crate) fn config(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The lines of one event.
pub(crate) fn events<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}
