//! Metrics as files have them: a known one by its name, another one with what is better.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MetricName;

/// A metric that programs measure, and that Rota does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnMetric {
    name: &'static str,
    higher: bool,
}

impl OwnMetric {
    /// The metric of this name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Whether larger is better.
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
    /// Which values are better.
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

impl TryFrom<WrittenOwn> for OwnMetric {
    type Error = String;

    fn try_from(written: WrittenOwn) -> Result<Self, String> {
        let name = &written.own;
        if MetricName::of(name).is_some() {
            return Err(format!("the metric {name:?} is known: write it as a text"));
        }
        if name.is_empty() || name.len() > LONGEST || name.chars().any(char::is_control) {
            return Err(format!(
                "a metric has a name of at most {LONGEST} bytes without control characters"
            ));
        }
        Ok(Self {
            name: lasting(name),
            higher: written.better == Better::Larger,
        })
    }
}

impl Serialize for MetricName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self::Own(own) = self else {
            return serializer.serialize_str(self.key());
        };
        let written = WrittenOwn {
            own: own.name.to_owned(),
            better: if own.higher {
                Better::Larger
            } else {
                Better::Smaller
            },
        };
        written.serialize(serializer)
    }
}

struct WrittenMetric;

impl<'de> Visitor<'de> for WrittenMetric {
    type Value = MetricName;

    fn expecting(&self, into: &mut fmt::Formatter<'_>) -> fmt::Result {
        into.write_str("the name of a metric, or { own = \"NAME\", better = \"larger\" } with \"larger\" or \"smaller\"")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<MetricName, E> {
        MetricName::of(name).ok_or_else(|| {
            let known = MetricName::ALL.map(MetricName::key).join(", ");
            E::custom(format!(
                "unknown metric `{name}`, expected one of {known}; one of your own is {{ own = {name:?}, better = \
                 \"larger\" }}, or \"smaller\""
            ))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MetricName, A::Error> {
        let written = WrittenOwn::deserialize(MapAccessDeserializer::new(map))?;
        OwnMetric::try_from(written)
            .map(MetricName::Own)
            .map_err(A::Error::custom)
    }
}

impl<'de> Deserialize<'de> for MetricName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenMetric)
    }
}

impl schemars::JsonSchema for MetricName {
    fn schema_name() -> Cow<'static, str> {
        "MetricName".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let known = Self::ALL.map(Self::key);
        let own = generator.subschema_for::<WrittenOwn>();
        schemars::json_schema!({
            "description": "A metric that reports compare: a known one by its name, or one of the programs' own.",
            "anyOf": [{ "type": "string", "enum": known }, own],
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_metric_of_ones_own_says_what_is_better() {
        let read = |text: &str| serde_json::from_str::<MetricName>(text);
        let f1 = read(r#"{"own": "f1", "better": "larger"}"#).unwrap();
        assert_eq!((f1.key(), f1.higher_is_better()), ("f1", true));
        let cost = read(r#"{"own": "cost", "better": "smaller"}"#).unwrap();
        assert_eq!((cost.key(), cost.higher_is_better()), ("cost", false));
        for metric in [f1, cost, MetricName::RocAuc, MetricName::LogLoss] {
            let written = serde_json::to_string(&metric).unwrap();
            assert_eq!(read(&written).unwrap(), metric, "{written}");
        }
        assert_eq!(
            serde_json::to_string(&MetricName::RocAuc).unwrap(),
            "\"roc-auc\""
        );
        assert_eq!(f1.over(&[]), None);
    }

    #[test]
    fn what_is_no_metric_is_refused_with_how_to_write_one() {
        let refused = |text: &str| {
            serde_json::from_str::<MetricName>(text)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(r#""f1""#).contains(r#"{ own = "f1", better = "larger" }"#));
        assert!(refused(r#""acuracy""#).contains("accuracy, balanced-accuracy"));
        assert!(refused(r#"{"own": "f1"}"#).contains("better"));
        assert!(refused(r#"{"own": "mae", "better": "smaller"}"#).contains("is known"));
        assert!(refused(r#"{"own": "", "better": "smaller"}"#).contains("64 bytes"));
        assert!(refused("3").contains("the name of a metric"));
    }
}
