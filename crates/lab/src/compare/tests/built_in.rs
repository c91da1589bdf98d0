//! The built-in experiments against the data sets.

use std::collections::HashMap;

use simulations::{lies, lying};

use super::*;
use crate::participation::participation;

#[test]
fn the_silos_that_built_in_experiments_name_exist() {
    let Some(data) = std::env::var_os("ROTA_DATA").map(std::path::PathBuf::from) else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    for (name, _) in BUILT_IN {
        let experiment = Experiment::load(name, &Choices::default()).unwrap();
        // Reading pictures takes seconds, and variants of one experiment often have the same.
        let mut read = HashMap::new();
        for variant in &experiment.variants {
            let entry = &experiment.entries[0];
            let scenario = experiment.scenario(variant, entry, &RunSettings::new(), 0);
            let scenario = scenario.unwrap();
            let at = |error: String| format!("{name}, {}: {error}", variant.name);
            let (silos, seed) = (scenario.silos, scenario.seed);
            let task = serde_json::to_string(&(&scenario.task, silos, seed)).unwrap();
            let study = read.entry(task).or_insert_with(|| {
                let study = scenario.task.study(silos, Some(&data), seed);
                study.map_err(|error| at(error.to_string())).unwrap()
            });
            let taking_part = participation(&scenario, study);
            let taking_part = taking_part.map_err(|error| at(error.to_string()));
            let members = taking_part.unwrap().study.silos;
            let learners = lies(&members, &scenario.faults)
                .and_then(|lies| lying(&members, &lies, scenario.seed));
            assert_eq!(learners.map(|all| all.len()).map_err(at), Ok(members.len()));
        }
    }
}
