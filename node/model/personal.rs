//! The personal state that a backup put back: parts of a model, or of a strategy, that never leave the
//! silo, so that no other member can give them again.

use std::path::Path;
use std::sync::Arc;

use methods::params::Gate;
use methods::{Layout, Params};
use protocol::Hash;

use super::ModelError;
use crate::store::{self, StoreOpenError};

/// Name of its file in the state folder.
pub const PERSONAL: &str = "personal.safetensors";
/// Name of the file with its hash.
const HASH: &str = "personal.hash";

/// Notes the hash of the personal state that a backup puts back. The journal begins anew, and knows of none.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub(crate) fn keep_personal_hash(state: &Path, personal: &[u8]) -> Result<(), StoreOpenError> {
    let hash = format!("{:#}\n", Hash::of(personal));
    store::keep_file(state, HASH, hash.as_bytes())
}

/// The personal state in a state folder, if a backup put one there that has this layout. A silo begins
/// with it where its journal holds none.
///
/// # Errors
/// [`ModelError::PutBack`]: it is not what the backup put there.
pub fn kept_personal(state: &Path, layout: &Arc<Layout>) -> Result<Option<Params>, ModelError> {
    let unusable = |why: String| ModelError::PutBack {
        path: state.join(PERSONAL),
        hash: HASH,
        why,
    };
    let read = |name| store::kept_file(state, name).map_err(|why| unusable(why.to_string()));
    // A backup of an earlier version of the program put no hash there.
    let hash = read(HASH)?;
    let bytes = match (read(PERSONAL)?, hash) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(unusable("it is gone".into())),
        (Some(bytes), Some(hash)) if hash != format!("{:#}\n", Hash::of(&bytes)).as_bytes() => {
            return Err(unusable(format!("it does not have the hash in {HASH}")));
        }
        (Some(bytes), _) => bytes,
    };
    let gate = Gate {
        layout: layout.clone(),
        norm: f64::INFINITY,
    };
    match gate.admit(bytes.into()) {
        Ok(personal) => Ok(Some(personal)),
        // It is of an agreement before the one in force.
        Err(why) => {
            tracing::warn!("the personal state of the backup is not used: {why}");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use methods::{Role, TensorSpec};

    use super::*;

    #[test]
    fn a_personal_state_that_changed_since_its_restore_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let layout = Layout::new(vec![TensorSpec::new("w", [2], Role::Weight)]).unwrap();
        assert_eq!(kept_personal(state, &layout).unwrap(), None);
        let personal = Params::from_values(&layout, &[1.0, 2.0]);
        let bytes = personal.document().to_vec();
        fs::write(state.join(PERSONAL), &bytes).unwrap();
        // As an earlier version of the program left it.
        assert_eq!(
            kept_personal(state, &layout).unwrap(),
            Some(personal.clone())
        );
        keep_personal_hash(state, &bytes).unwrap();
        assert_eq!(kept_personal(state, &layout).unwrap(), Some(personal));
        let mut flipped = bytes.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in [&flipped[..], &bytes[..bytes.len() - 4], &[]] {
            fs::write(state.join(PERSONAL), damaged).unwrap();
            let why = kept_personal(state, &layout).unwrap_err().to_string();
            assert!(
                why.contains("personal.safetensors") && why.contains("rota restore"),
                "{why}"
            );
        }
        fs::remove_file(state.join(PERSONAL)).unwrap();
        assert!(kept_personal(state, &layout).is_err());
    }
}
