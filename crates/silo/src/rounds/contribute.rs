//! What a silo contributes to a round.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use methods::{Params, Progress};
use protocol::Hash;
use protocol::message::EntryFields;

use super::{Personal, RoundBase, participant};
use crate::config::SiloConfig;
use crate::environment::Blobs;

/// A trained model, ready to be contributed.
pub struct Contributed {
    /// The coalition that its entry names.
    pub coalition: u32,
    /// The bytes that are sent.
    pub document: Bytes,
    /// Hash of the bytes.
    pub blob: Hash,
    /// What rounding left out of the bytes.
    pub rest: Option<Params>,
    /// Personal state after the training.
    pub personal: Params,
    /// Training rows.
    pub samples: u64,
    /// Training metrics by name.
    pub metrics: BTreeMap<String, f64>,
    /// The model as it passed the gate: in the memory of `document`, unless the encoding rounds.
    pub admitted: Params,
}

impl Contributed {
    /// This contribution with its bytes where they will be stored, see [`Blobs::to_file`].
    pub(crate) fn in_files(mut self, base: &RoundBase, blobs: &dyn Blobs) -> Self {
        self.document = blobs.to_file(self.document);
        if base.encoding.is_exact() {
            self.admitted = self.admitted.read_from(self.document.clone());
        }
        let personal = blobs.to_file(self.personal.document());
        self.personal = self.personal.read_from(personal);
        self
    }

    /// The entry as all members see it; with the number of training rows where the plan asks for
    /// `weights`.
    pub fn fields(&self, config: &SiloConfig, weights: bool) -> EntryFields {
        let (epoch, me) = (&config.member.epoch, config.member.me);
        // Others would refuse more than was declared.
        let claimed = self.samples.min(epoch.roster.rows(me));
        EntryFields {
            blob: self.blob,
            size: self.document.len() as u64,
            coalition: Some(self.coalition),
            weight: weights.then_some(claimed),
            member: epoch.protocol.shows_names().then_some(me),
        }
    }

    /// Mean training loss of the last epoch; not a number if the learner gives none.
    pub fn loss(&self) -> f64 {
        self.metrics.get("loss").copied().unwrap_or(f64::NAN)
    }

    /// Training metrics besides the loss.
    pub fn further(&self) -> BTreeMap<String, f64> {
        let others = self.metrics.iter().filter(|(name, _)| *name != "loss");
        others.map(|(name, value)| (name.clone(), *value)).collect()
    }
}

/// Trains from the model of a coalition, and checks that other members will accept the result. `rest`
/// is what rounding left out of the contribution before.
///
/// # Errors
/// Why the silo has nothing to contribute.
pub fn contribute(
    config: &SiloConfig,
    base: &RoundBase,
    coalition: u32,
    personal: &Personal,
    rest: Option<&Params>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Contributed, String> {
    let (plan, round) = (base.plan(config), base.next());
    let participant = participant(config, round, coalition, personal);
    let trained = config
        .strategy
        .contribute(&base.state, plan, round, participant, progress);
    let (coalition, update) = trained.map_err(|error| error.to_string())?;
    if update.personal.layout() != personal.params.layout() {
        return Err("the learner returned a personal state of another layout".into());
    }
    let sent = base.send(coalition, &update.shared, rest);
    let (sent, admitted) =
        sent.map_err(|error| format!("the trained model cannot be contributed: {error}"))?;
    // Hashed here rather than on the actor; the models cache their hashes.
    update.personal.hash();
    let blob = if base.encoding.is_exact() {
        Hash(update.shared.hash())
    } else {
        Hash::of(&sent.document)
    };
    Ok(Contributed {
        coalition,
        document: sent.document,
        blob,
        rest: sent.rest,
        personal: update.personal,
        samples: update.samples,
        metrics: update.metrics.values,
        admitted,
    })
}
