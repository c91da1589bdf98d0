//! The personal state that a backup put back: parts of a model, or of a strategy, that never leave the
//! silo, so that no other member can give them again.

use std::path::Path;
use std::sync::Arc;

use methods::params::Gate;
use methods::{Layout, Params};

use crate::store;

/// Name of its file in the state folder.
pub const PERSONAL: &str = "personal.safetensors";

/// The personal state in a state folder, if a backup put one there that has this layout. A silo begins
/// with it where its journal holds none.
pub fn kept_personal(state: &Path, layout: &Arc<Layout>) -> Option<Params> {
    let bytes = match store::kept_file(state, PERSONAL) {
        Ok(bytes) => bytes?,
        Err(why) => {
            tracing::warn!("the personal state of the backup is not used: {why}");
            return None;
        }
    };
    let gate = Gate {
        layout: layout.clone(),
        norm: f64::INFINITY,
    };
    match gate.admit(bytes.into()) {
        Ok(personal) => Some(personal),
        Err(why) => {
            tracing::warn!("the personal state of the backup is not used: {why}");
            None
        }
    }
}
