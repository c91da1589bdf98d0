//! `rota strategies`: lists the strategies with their options.

use std::io::{self, Write};

use methods::strategy::{Names, StrategyOptions, described};
use serde_json::{Map, Value, json};

use super::CommandError;
use crate::cli::Strategies;

/// Prints the strategies with their options, as text or as one JSON document.
pub(crate) fn run(strategies: &Strategies) -> Result<(), CommandError> {
    let all = described();
    let mut out = io::stdout().lock();
    if strategies.json {
        let all: Vec<Value> = all.iter().map(document).collect();
        return Ok(writeln!(out, "{:#}", Value::Array(all))?);
    }
    for one in &all {
        let names = match one.names {
            Names::Removed => "",
            Names::Shown => "; needs names = \"shown\"",
        };
        writeln!(out, "{}", one.info.name)?;
        writeln!(out, "    {}", one.info.about)?;
        writeln!(out, "    {}{names}", one.info.paper)?;
        let option = |(key, value): &(String, Value)| format!("{key} = {}", toml(value));
        lines(
            &mut out,
            &one.options.iter().map(option).collect::<Vec<_>>(),
        )?;
    }
    writeln!(
        out,
        "\nAll strategies also have `training`, `personal` and, where models are averaged, \
         `aggregation`.\n\
         Every simulation also trains one model on all rows together (\"centralised\"), for comparison."
    )?;
    Ok(())
}

/// Options with their defaults, in lines of at most a hundred columns.
fn lines(out: &mut impl Write, options: &[String]) -> io::Result<()> {
    const WIDTH: usize = 96;
    let mut line = String::new();
    for option in options {
        if !line.is_empty() && line.len() + option.len() + 2 > WIDTH {
            writeln!(out, "    {line},")?;
            line.clear();
        }
        if !line.is_empty() {
            line += ", ";
        }
        line += option;
    }
    if line.is_empty() {
        Ok(())
    } else {
        writeln!(out, "    {line}")
    }
}

/// A value as it is written in a TOML file.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let set = table.iter().filter(|(_, value)| !value.is_null());
            let pairs: Vec<_> = set
                .map(|(key, value)| format!("{key} = {}", toml(value)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        value => value.to_string(),
    }
}

fn document(one: &StrategyOptions) -> Value {
    let options: Map<_, _> = one.options.iter().cloned().collect();
    json!({
        "name": one.info.name,
        "about": one.info.about,
        "paper": one.info.paper,
        "options": options,
        "names": one.names,
    })
}
