//! Signature of an institution under the agreement in force.
//!
//! An institution has signed if its consent names the agreement or its contents, or if it had signed the agreement
//! before, and approved the change that brought it into force, or its own policy lets that change go on without a new
//! signature.
//! Otherwise its node votes as before, and contributes nothing until the institution has signed: an approval of a
//! later change is no signature, unless that change shows all that differs from what the institution followed.

use std::path::PathBuf;

use agreement::{Agreement, Consent, Routine};
use protocol::{Epochs, Hash, PublicKey};
use silo::JournalRecord;
use silo::outcome::Document;

use super::amendments::{AmendmentFolder, AmendmentWord};
use crate::answers::over;
use crate::institution::config::Institution;
use crate::institution::config::consent::consent_in;
use crate::store;

/// State of an institution's signature under the agreement in force.
#[derive(Clone)]
pub enum SignatureState {
    /// The institution signed it.
    Signed(Box<Consent>),
    /// The institution approved the change that brought it into force.
    Approved,
    /// The institution signed or approved an earlier one, and its policy lets all changes since then go on.
    Policy,
    /// The institution has to sign it.
    Owed(Box<Owed>),
}

/// A signature that is missing.
#[derive(Clone)]
pub struct Owed {
    /// File in which the signature is expected.
    file: PathBuf,
    agreement: Agreement,
    key: PublicKey,
    /// Reason for which the institution does not follow the change by itself, in a clause.
    why: String,
    /// Place of the first question that it did not approve, from 0, where nothing else is missing.
    asked: Option<usize>,
}

impl Owed {
    /// Returns whether the signature is there now.
    pub fn is_signed(&self) -> bool {
        consent_in(&self.file, &self.agreement, &self.key).is_ok()
    }

    /// The place, from 0, of the first question that the institution did not approve, where nothing else is missing: once
    /// these questions are over, nothing is asked of its rows, and no signature is owed.
    pub fn asked(&self) -> Option<usize> {
        self.asked
    }

    /// Returns what is missing, in a sentence without a full stop.
    pub fn line(&self) -> String {
        let number = self.agreement.epoch.number;
        let unsigned = match consent_in(&self.file, &self.agreement, &self.key) {
            Err(why) if self.file.exists() => format!(" ({why})"),
            _ => String::new(),
        };
        format!(
            "contributions are paused: change {number} needs this institution's signature{unsigned}, because {}. Read \
             it, then run `rota federation sign`",
            self.why
        )
    }
}

impl Institution {
    /// The file of the consent to the agreement in force after this number of changes: that of the
    /// first agreement is the one that `node.toml` names.
    pub fn consent_file(&self, changes: u64) -> PathBuf {
        if changes == 0 {
            return self.consent.clone();
        }
        let stem = self.consent.file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy();
        self.consent
            .with_file_name(format!("{stem}-{changes}.toml"))
    }
}

/// Returns how an institution with the first agreement stands to the one in force: the last of `past`. Its journal has
/// these records.
pub(super) fn signature(
    institution: &Institution,
    epochs: &Epochs,
    past: &[Agreement],
    records: &[JournalRecord],
) -> SignatureState {
    let words = AmendmentFolder::of(&institution.state).words().words;
    // An institution that is admitted later signs what admits it.
    let mut now = match institution.consented() {
        Ok(consent) => SignatureState::Signed(Box::new(consent)),
        Err(_) => owed(
            institution,
            &institution.agreement,
            "it has not signed the first agreement".into(),
        ),
    };
    let key = institution.key.public();
    // The last agreement that it followed.
    let mut followed = follows(&now).then_some(&institution.agreement);
    for (at, (over, passage)) in epochs.former.iter().enumerate() {
        let (Some(shown), Some(agreement)) = (past.get(at), past.get(at + 1)) else {
            return now;
        };
        let is_in = |agreement: &Agreement| agreement.epoch.roster.position(&key).is_some();
        if !is_in(agreement) {
            continue;
        }
        let file = institution.consent_file(agreement.epoch.number);
        let change = passage.change().map(|change| change.amendment.hash());
        let approves = |word: &AmendmentWord| {
            word.stands && word.epoch == over.id && Some(word.amendment.hash()) == change
        };
        now = if !is_in(shown) {
            admitted(institution, agreement)
        } else if let Ok(consent) = consent_in(&file, agreement, &key) {
            SignatureState::Signed(Box::new(consent))
        } else {
            match (now, followed) {
                // Whoever goes on after a recovery has said so itself.
                (SignatureState::Owed(before), _) if change.is_none() => {
                    owed(institution, agreement, before.why)
                }
                (_, Some(_)) if change.is_none() => SignatureState::Policy,
                // Differences that were not followed before are not by a later change, which builds on them, unless
                // that one shows all that is new.
                (_, Some(old))
                    if words.iter().any(approves)
                        && nothing_else_differs(shown, old, agreement) =>
                {
                    SignatureState::Approved
                }
                (_, Some(_)) if agreement.unfit.is_some() => {
                    let why = "nobody can take part under it";
                    owed(institution, agreement, why.into())
                }
                (_, Some(old)) => match old.needs_signature(agreement, &institution.policy) {
                    None => SignatureState::Policy,
                    Some(why) => match asked_alone(institution, old, agreement) {
                        Some(from) if answered(institution, records, (agreement, from)) => {
                            SignatureState::Policy
                        }
                        asked => owed_for(institution, agreement, why, asked),
                    },
                },
                (SignatureState::Owed(before), None) => owed(institution, agreement, before.why),
                (now, None) => now,
            }
        };
        // Whoever is admitted anew follows nothing of the time before.
        if follows(&now) || !is_in(shown) {
            followed = follows(&now).then_some(agreement);
        }
    }
    now
}

fn follows(state: &SignatureState) -> bool {
    !matches!(state, SignatureState::Owed(_))
}

/// Returns whether every key in which an agreement differs from `old` is one in which it differs from `shown`, too.
fn nothing_else_differs(shown: &Agreement, old: &Agreement, agreement: &Agreement) -> bool {
    let seen = shown.difference(agreement).changes;
    let all = old.difference(agreement).changes;
    all.iter()
        .all(|change| seen.iter().any(|seen| seen.key == change.key))
}

/// Returns how an institution that was just admitted, or whose key was just replaced, stands to the agreement: it
/// signed it when it joined, or has to sign it.
fn admitted(institution: &Institution, agreement: &Agreement) -> SignatureState {
    let key = institution.key.public();
    let number = agreement.epoch.number;
    let mut files = [0, number]
        .map(|changes| institution.consent_file(changes))
        .into_iter();
    let signed = files.find_map(|file| consent_in(&file, agreement, &key).ok());
    match signed {
        Some(consent) => SignatureState::Signed(Box::new(consent)),
        None => owed(
            institution,
            agreement,
            "it has not signed the agreement as it was when it joined".into(),
        ),
    }
}

/// Returns the place of the first new question of an agreement, if an institution that let questions be answered would
/// follow it from the old one.
fn asked_alone(institution: &Institution, old: &Agreement, agreement: &Agreement) -> Option<usize> {
    if old.questions.len() == agreement.questions.len()
        || old.learning_rounds() != agreement.learning_rounds()
    {
        return None;
    }
    let mut routine = institution.policy.clone();
    routine.extend([Routine::Rounds, Routine::Questions]);
    let follows = old.needs_signature(agreement, &routine).is_none();
    follows.then_some(old.questions.len())
}

/// Returns whether the questions from this place on are over, as far as the journal knows.
fn answered(
    institution: &Institution,
    records: &[JournalRecord],
    (agreement, from): (&Agreement, usize),
) -> bool {
    let last = records.iter().rev().find_map(|record| match record {
        JournalRecord::Adopted(adopted) => Some(Hash(adopted.outcome)),
        _ => None,
    });
    let document = last.and_then(|outcome| store::blob(&institution.state, &outcome));
    let document = document.and_then(|blob| Document::read(&blob).ok());
    document.is_some_and(|document| over(&document.memory, agreement, from))
}

fn owed(institution: &Institution, agreement: &Agreement, why: String) -> SignatureState {
    owed_for(institution, agreement, why, None)
}

fn owed_for(
    institution: &Institution,
    agreement: &Agreement,
    why: String,
    asked: Option<usize>,
) -> SignatureState {
    SignatureState::Owed(Box::new(Owed {
        asked,
        file: institution.consent_file(agreement.epoch.number),
        agreement: agreement.clone(),
        key: institution.key.public(),
        why,
    }))
}
