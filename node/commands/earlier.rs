//! Check that an agreement continues the federation that the institution knows from its own node there.

use agreement::Agreement;
use protocol::Epochs;

use super::NodeCommandError;
use crate::institution::{Institution, PresentError, SetupError, agreements, protocol_records};
use crate::store::{self, AGREEMENT};

/// Compares the agreement with the journal of the earlier node, where `start-model` names its state folder.
///
/// # Errors
/// [`NodeCommandError::Failed`]: they differ in what members saw, or in which models were added up; or the journal
/// cannot be read.
pub(super) fn compare(institution: &Institution) -> Result<(), NodeCommandError> {
    let now = &institution.agreement;
    let folder = institution.start_model.as_ref();
    let folder = folder.filter(|folder| store::has_journal(folder));
    let (Some(continues), Some(folder)) = (&now.continues, folder) else {
        return Ok(());
    };
    let first = Agreement::load_kept(&folder.join(AGREEMENT)).map_err(SetupError::from)?;
    if first.epoch.federation != continues.federation {
        return Ok(());
    }
    let records = store::snapshot(folder).map_err(PresentError::from)?.records;
    let epochs = Epochs::replay(first.epoch.clone(), protocol_records(records));
    let epochs = epochs.map_err(PresentError::from)?;
    if now.continues_rightly(&agreements(&first, &epochs)) {
        return Ok(());
    }
    Err(NodeCommandError::Failed(format!(
        "nothing was signed: by the journal in {}, this agreement does not say rightly what members of the federation \
         that it continues saw of each other's contributions, or whose were added up ([continues]). Ask for one that \
         `rota federation continue` has written at a node",
        folder.display()
    )))
}
