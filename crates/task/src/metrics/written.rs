//! Metrics as files have them: a known one by its name, another one with what is better.

use std::borrow::Cow;
use std::fmt;

use methods::learner::OwnMetric;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MetricName;

impl Serialize for MetricName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self::Own(own) = self else {
            return serializer.serialize_str(self.key());
        };
        own.serialize(serializer)
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
        let own = OwnMetric::deserialize(MapAccessDeserializer::new(map))?;
        match MetricName::of(own.name()) {
            Some(known) => {
                let known = known.key();
                Err(A::Error::custom(format!(
                    "the metric {known:?} is known: write it as a text"
                )))
            }
            None => Ok(MetricName::Own(own)),
        }
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
        let own = generator.subschema_for::<OwnMetric>();
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
    fn a_metric_of_ones_own_states_what_is_better() {
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
