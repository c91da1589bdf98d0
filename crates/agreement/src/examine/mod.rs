//! Examination of an amendment by an institution: all that can be said of its bytes without anybody's
//! rows. Proposing, showing, approving and voting ask the same questions.

use std::sync::Arc;

use methods::strategy::largest_contribution;
use protocol::message::Amendment;
use protocol::name::printable;
use protocol::privacy::{Group, Masked};
use protocol::{Epoch, Formats, Genesis};
use task::MakeStandIn;

use crate::agreement::Agreement;
use crate::amend::AmendError;

impl Agreement {
    /// The agreement that an amendment of this one would bring into force, if an institution may
    /// accept it: this program speaks its format, it may follow this epoch, its text is plain and says what
    /// roster and parameter set of the amendment say, what has to stay stays, and the largest contribution
    /// is allowed. Whether a node can live under it with its own rows and state is another question. What
    /// models are like, `stand_in` says.
    ///
    /// Values that have to stay are compared with the last agreement under which members could take part, so a
    /// change that was a mistake can be undone.
    ///
    /// # Errors
    /// [`AmendError`]: the first thing that is wrong.
    pub fn examine(
        &self,
        amendment: &Amendment,
        stand_in: MakeStandIn,
    ) -> Result<Self, AmendError> {
        amendment.is_spoken(Formats::SPOKEN)?;
        amendment.check(&self.epoch)?;
        if let Ok(text) = std::str::from_utf8(&amendment.text) {
            plain(text)?;
        }
        let genesis = Genesis {
            silos: amendment.silos.clone(),
            protocol: amendment.protocol.clone(),
        };
        let epoch = Epoch::first_in(amendment.format, &genesis)?;
        let new = self.read(amendment, Arc::new(epoch))?;
        self.accepts(&new, stand_in)?;
        Ok(new)
    }

    /// Returns whether members can go on from this agreement with another one that was read.
    pub(crate) fn accepts(&self, new: &Self, stand_in: MakeStandIn) -> Result<(), AmendError> {
        self.last_fit().may_become(new)?;
        new.allows_its_models(stand_in)
    }

    /// The last agreement under which members could take part: this one, as a rule.
    fn last_fit(&self) -> &Self {
        self.unfit.as_ref().map_or(self, |unfit| &unfit.last)
    }

    /// Returns whether all that has to stay stays, and every value is plain.
    fn may_become(&self, new: &Self) -> Result<(), AmendError> {
        let stops = |agreement: &Self| agreement.strategy_config.stop.is_some();
        if stops(self) != stops(new) {
            let written = |agreement| stops(agreement).then(|| "{ … }".to_owned());
            return Err(AmendError::fixed(
                "whether the federation may end early (`stop`; its numbers may change)",
                "strategy.stop",
                (written(self), written(new)),
            ));
        }
        // What is kept of a question is kept by its place.
        if !new.questions.starts_with(&self.questions) {
            let written =
                |agreement: &Self| Some(format!("{} questions", agreement.questions.len()));
            return Err(AmendError::fixed(
                "the questions that there are; more can stand behind them",
                "question",
                (written(self), written(new)),
            ));
        }
        let difference = self.difference(new);
        if let Some(change) = difference.first_fixed() {
            let unknown = "a key for which this version of Rota has no rule";
            return Err(AmendError::fixed(
                change.words.unwrap_or(unknown),
                &change.key,
                (change.before.clone(), change.after.clone()),
            ));
        }
        if let (None, Some((key, what))) = (self.split_fault(), new.split_fault()) {
            return Err(AmendError::Split(format!("`{key}` {what}")));
        }
        let masked = |of: &Self| of.epoch.protocol.privacy.masked().cloned();
        if let (Some(old), Some(next)) = (masked(self), masked(new)) {
            groups_stay(&old, &next)?;
        }
        let now = masked(self);
        new.sums_stay(now.as_ref().map_or(&[], |masked| masked.groups()))?;
        // Values can have characters that no editor shows, where the text has their escapes.
        let hidden = difference.changes.iter().find(|change| change.hidden);
        match hidden {
            Some(change) => Err(AmendError::HiddenValue {
                key: change.key.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Checks that the protocol parameters allow the sizes of what the agreed model and strategy send. A model that
    /// only a program or data could tell the size of passes.
    fn allows_its_models(&self, stand_in: MakeStandIn) -> Result<(), AmendError> {
        let Some(stand_in) = stand_in(&self.task, self.seed) else {
            return Ok(());
        };
        let learner = match self.strategy.equip(stand_in.learner) {
            Ok(learner) => learner,
            // A program may have what its stand-in lacks.
            Err(_) if !stand_in.complete => return Ok(()),
            Err(error) => return Err(AmendError::Strategy(error.to_string())),
        };
        let size = largest_contribution(&*self.strategy, &*learner);
        let limit = self.epoch.protocol.blob_limit;
        if size > limit {
            Err(AmendError::Limit { size, limit })
        } else {
            Ok(())
        }
    }
}

/// Returns whether every institution that was in a group stays in the same one, with proportional weights, or is in
/// none: its silo answers no other sum, in whatever epoch, unless the agreement shows whose updates become
/// visible.
fn groups_stay(old: &Masked, new: &Masked) -> Result<(), AmendError> {
    let shown = old.shown_by(new);
    if shown.iter().all(|name| new.shows.contains(name)) {
        return Ok(());
    }
    let shown: Vec<_> = shown
        .iter()
        .map(|name| format!("{:?}", plainly(name)))
        .collect();
    for group in new.groups() {
        let shares = |other: &&Group| {
            let authors = group.authors.iter();
            let mut known =
                authors.filter(|(name, _)| other.authors.iter().any(|(of, _)| of == name));
            known.next().is_some()
        };
        if let Some(before) = old
            .groups()
            .iter()
            .filter(shares)
            .find(|other| !alike(group, other))
        {
            let (group, before, shown) = (names(group), names(before), shown.join(", "));
            return Err(AmendError::Group {
                group,
                before,
                shown,
            });
        }
    }
    Ok(())
}

/// The members of a group, for people.
pub(crate) fn names(group: &Group) -> String {
    let names = group.authors.iter().map(|(name, _)| plainly(name));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns whether two groups have the same members with proportional weights.
pub(crate) fn alike(a: &Group, b: &Group) -> bool {
    let pairs = a.authors.iter().zip(&b.authors);
    let named = a.authors.len() == b.authors.len() && pairs.clone().all(|(a, b)| a.0 == b.0);
    let first = pairs
        .clone()
        .next()
        .map(|(a, b)| (u128::from(a.1), u128::from(b.1)));
    let same = |(a, b): (u128, u128)| first.is_none_or(|(x, y)| a * y == b * x);
    named
        && pairs
            .map(|(a, b)| (u128::from(a.1), u128::from(b.1)))
            .all(same)
}

/// A name with nothing in it that steers a terminal.
pub(crate) fn plainly(name: &str) -> String {
    name.chars().filter(|&c| printable(c)).collect()
}

/// Refuses a text with characters that are invisible, or that change how the rest of it is shown.
fn plain(text: &str) -> Result<(), AmendError> {
    let lines = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    for (line, text) in (1..).zip(lines) {
        if let Some(odd) = text.chars().find(|&c| c != '\t' && !printable(c)) {
            let code = odd.into();
            return Err(AmendError::Hidden { line, code });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
