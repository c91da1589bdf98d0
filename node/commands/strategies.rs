//! `rota strategies`: the ways to learn together.

use std::io::{self, Write};

use rota::methods::strategy::{Names, StrategyOptions, described};
use serde_json::{Map, Value, json};

use super::CommandError;
use crate::cli::Strategies;

/// Lists the strategies, a line each, or as one JSON document.
pub(crate) fn run(strategies: &Strategies) -> Result<(), CommandError> {
    let all = described();
    let mut out = io::stdout().lock();
    if strategies.json {
        let all: Vec<Value> = all.iter().map(document).collect();
        return Ok(writeln!(out, "{:#}", Value::Array(all))?);
    }
    let width = all.iter().map(|one| one.info.name.len()).max().unwrap_or(0);
    for one in &all {
        let option = |(key, value): &(String, Value)| format!("{key} = {value}");
        let options: Vec<_> = one.options.iter().map(option).collect();
        let options = match options.is_empty() {
            true => String::new(),
            false => format!(" [{}]", options.join(", ")),
        };
        let names = match one.names {
            Names::Removed => "",
            Names::Shown => " (names = \"shown\")",
        };
        let (name, about, paper) = (one.info.name, one.info.about, one.info.paper);
        writeln!(out, "{name:width$}  {about}{options}{names}; from: {paper}")?;
    }
    Ok(())
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
