//! Hospitals of the eICU demo with few stays each.

use std::path::Path;
use std::sync::Arc;

use lab::compare::MakeRows;
use simulations::random::Random;
use task::data::{DataError, EicuLosConfig, Table, eicu_los};

use super::rows::{data, in_ranges, part};

/// Hospitals of a draw.
const HOSPITALS: usize = 20;

/// Returns whether a stay is longer than a day, at twenty hospitals of the eICU demo. Every seed draws them anew, among
/// those with at least ten stays.
///
/// # Errors
/// The files cannot be read.
pub(crate) fn twenty_hospitals(folder: &Path) -> Result<Arc<MakeRows>, DataError> {
    let all = EicuLosConfig {
        hospitals: 0,
        ..EicuLosConfig::default()
    };
    let silos = in_ranges(eicu_los(all, Some(folder), 0)?.silos);
    Ok(Arc::new(move |seed| {
        let mut drawn: Vec<&(String, Table)> = silos.iter().collect();
        Random::new(seed, "hospitals").shuffle(&mut drawn);
        let silos = drawn.into_iter().take(HOSPITALS).map(|(name, table)| {
            let mut order: Vec<usize> = (0..table.len()).collect();
            Random::new(seed, &format!("rows of {name}")).shuffle(&mut order);
            (name.clone(), part(table, &order))
        });
        Ok(data(["a day or less", "longer"], silos.collect()))
    }))
}
