//! Options of `rota lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use rota::agreement::Span;

/// Experiments with a federation's protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Run a federation under several rotations of leads, with the same faults and seeds, in virtual
    /// time
    Rotation(Box<LabRotation>),
}

/// Options of `rota lab rotation`.
#[derive(Debug, Args)]
pub(crate) struct LabRotation {
    /// A built-in scenario or a TOML file [default: rotation, eight silos and 20 rounds]
    pub(crate) scenario: Option<String>,
    /// Rotations, separated by commas: every-round, every-K-rounds (every-k: K = 5), on-failure,
    /// reliability, fixed; the others are compared with the first
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "every-round,every-k,on-failure,reliability,fixed"
    )]
    pub(crate) policies: Vec<String>,
    /// TOML file of [[fault]] tables, as in a scenario [default: those of the scenario; if it has
    /// none, five leads stop in the middle of rounds, up to two of them for good]
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Number of seeds, from the scenario's on
    #[arg(long, value_name = "K", default_value_t = 5)]
    pub(crate) seeds: usize,
    /// Number of silos [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) silos: Option<usize>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// Virtual time after which a run is given up, such as 20m [default: twice what the first rotation
    /// takes without faults, and for every fault its pause, the patience and forty beats]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) limit: Option<Duration>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Folder for results, table and page [default: rota-lab/NAME; none with --json]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide the progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl LabRotation {
    /// The command that runs the same again.
    pub(crate) fn again(&self) -> String {
        let mut words = vec!["rota lab rotation".to_owned()];
        words.extend(self.scenario.as_deref().map(super::quoted));
        words.push(format!(
            "--policies {}",
            super::quoted(&self.policies.join(","))
        ));
        let file = |path: &PathBuf| super::quoted(&path.to_string_lossy());
        words.extend(
            self.faults
                .as_ref()
                .map(|faults| format!("--faults {}", file(faults))),
        );
        words.push(format!("--seeds {}", self.seeds));
        words.extend(self.silos.map(|silos| format!("--silos {silos}")));
        words.extend(self.rounds.map(|rounds| format!("--rounds {rounds}")));
        let limit = self
            .limit
            .map(|limit| format!("--limit {}ms", limit.as_millis()));
        words.extend(limit);
        words.extend(
            self.data
                .as_ref()
                .map(|data| format!("--data {}", file(data))),
        );
        words.join(" ")
    }
}

fn span(text: &str) -> Result<Duration, String> {
    Span::try_from(text.to_owned()).map(|span| span.0)
}

/// Options of `rota report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Files with what nodes printed: `rota run --json > LOG` at every institution
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// File for the HTML page
    #[arg(long, value_name = "FILE", default_value = "history.html")]
    pub(crate) out: PathBuf,
    /// Overwrite that file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON document instead, and write no page
    #[arg(long)]
    pub(crate) json: bool,
}
