//! Metrics that programs measure, and that Rota does not know.

use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A metric that programs measure, and that Rota does not know. In TOML: `{ own = "f1", better = "larger" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "WrittenOwn")]
pub struct OwnMetric {
    name: &'static str,
    higher: bool,
}

impl OwnMetric {
    /// The metric of this name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns whether larger is better.
    pub fn higher_is_better(self) -> bool {
        self.higher
    }
}

/// Longest name of a metric, in bytes.
const LONGEST: usize = 64;

/// As it is written: `{ own = "f1", better = "larger" }`.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenOwn {
    /// Its name, as programs give it beside `loss`.
    #[schemars(length(min = 1, max = 64))]
    own: String,
    /// Values that are better.
    better: Better,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Better {
    /// The larger ones.
    Larger,
    /// The smaller ones.
    Smaller,
}

static NAMES: LazyLock<Mutex<BTreeSet<&'static str>>> = LazyLock::new(Mutex::default);

/// The name for as long as the process lives; a few files name a few metrics.
fn lasting(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = names.get(name) {
        return known;
    }
    let name = &*Box::leak(Box::<str>::from(name));
    names.insert(name);
    name
}

impl Serialize for OwnMetric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = WrittenOwn {
            own: self.name.to_owned(),
            better: if self.higher {
                Better::Larger
            } else {
                Better::Smaller
            },
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OwnMetric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenOwn::deserialize(deserializer)?;
        let name = &written.own;
        if name.is_empty() || name.len() > LONGEST || name.chars().any(char::is_control) {
            return Err(D::Error::custom(format!(
                "a metric has a name of at most {LONGEST} bytes without control characters"
            )));
        }
        Ok(Self {
            name: lasting(name),
            higher: written.better == Better::Larger,
        })
    }
}
