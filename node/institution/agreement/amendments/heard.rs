//! Keeps and prints what the silo hears of amendments.

use std::time::SystemTime;

use protocol::{Report, Time};
use silo::Notice;

use super::super::short_id::shown;
use super::{AmendmentFolder, KnownAmendment};
use crate::events::NodeEvent;
use crate::institution::config::Institution;
use crate::institution::report::output::OutputLines;

/// Keeps and prints what the silo hears of amendments.
pub(in crate::institution) struct HeardOf {
    pub(in crate::institution) amendments: AmendmentFolder,
    pub(in crate::institution) institution: Institution,
    pub(in crate::institution) output: OutputLines,
}

impl HeardOf {
    pub(in crate::institution) fn observe(&mut self, at: Time, notice: &Notice) {
        let (amendment, approved, needed, awaits, objection) = match notice {
            Notice::Protocol(Report::Amendment {
                amendment,
                approved,
                needed,
                awaits,
                objection,
            }) => (amendment, approved, needed, awaits, objection),
            Notice::Protocol(Report::AmendmentForgotten { amendment }) => {
                return self.amendments.forget(amendment);
            }
            _ => return,
        };
        let agreement = &self.institution.agreement;
        let known = KnownAmendment {
            epoch: agreement.epoch.id,
            amendment: (**amendment).clone(),
            approved: approved.clone(),
            needed: *needed as u64,
        };
        if let Err(error) = self.amendments.keep(&known) {
            tracing::warn!("an amendment cannot be kept: {error}");
        }
        let hash = known.hash();
        let id = shown(&hash);
        let names: Vec<_> = approved
            .iter()
            .map(|member| agreement.epoch.roster.name(*member).to_owned())
            .collect();
        let own = approved.contains(&self.institution.me);
        let unspoken = known.unspoken();
        let advice = match (own || approved.len() >= *needed, unspoken) {
            (_, Some(why)) => format!("; {why}"),
            (_, None) if objection.is_some() => format!(
                "; this node cannot accept it, so it neither approves it nor votes for it: {}",
                objection.as_deref().unwrap_or_default()
            ),
            (true, None) => String::new(),
            (false, None) => format!(
                "; `rota federation changes` shows it, `rota federation approve {id}` approves it"
            ),
        };
        let new: Vec<_> = awaits.iter().map(ToString::to_string).collect();
        let waits = match new.as_slice() {
            [] => String::new(),
            [key] => format!(
                "; they are signed as soon as the node with the new key {key} has connected"
            ),
            keys => format!(
                "; they are signed as soon as the nodes with the new keys {} have connected",
                keys.join(", ")
            ),
        };
        let unheard = known.unheard(&agreement.epoch);
        let group = if unheard.is_empty() {
            String::new()
        } else {
            format!(
                "; it also needs the approval of {}, whose aggregation group changes",
                unheard.join(", ")
            )
        };
        let by = match names.is_empty() {
            true => String::new(),
            false => format!(" ({})", names.join(", ")),
        };
        let line = format!(
            "amendment {id}: {} of {needed} approvals{by}{group}{waits}{advice}",
            approved.len(),
        );
        let event = NodeEvent::Amendment {
            amendment: format!("{hash:#}"),
            approved: names,
            needed: *needed,
            awaits: new,
            objection: objection.clone(),
        };
        let at = at.elapsed().as_secs_f64();
        self.output.print(SystemTime::now(), at, event, &line);
    }
}
