//! The answers to the work that this member asked for, and what follows from them.

use crate::member::Member;
use crate::member::rounds::own::TrainingState;
use crate::work::Answer;

impl Member {
    /// Work was done, or failed.
    pub(in crate::member) fn done(&mut self, answer: Answer) {
        match answer {
            Answer::Planned(planned) => self.adopting().planned(planned),
            Answer::Trained { round, result } => {
                let result = result.map(TrainingState::Finished);
                self.contributing().trained(round, result);
            }
            Answer::Prepared { round, result } => {
                let result = result.map(TrainingState::Prepared);
                self.contributing().trained(round, result);
            }
            Answer::KeysChecked {
                round,
                from,
                result,
            } => self.leading().keys_checked(round, from, result),
            Answer::Masked { list, result } => self.masking().masked(list, result),
            Answer::Verified { manifest, result } => {
                self.rounds.round.masks.checked(manifest, result)
            }
            Answer::Unmasked { block, result } => self.settling().unmasked(block, result),
            Answer::Combined {
                block,
                unproven,
                result,
            } => self.settling().combined(block, unproven, result),
            Answer::Admitted {
                round,
                from,
                fields,
                result,
            } => self.leading().admitted(round, from, &fields, result),
            Answer::Evaluated { round, result } => {
                let kept = self.signing().evaluated(round, result);
                self.against_lead(round, kept);
            }
            Answer::Held {
                round,
                blobs,
                result,
            } => self.signing().held(round, &blobs, result),
            Answer::Decided { manifest, result } => {
                if let Err(reason) = self.leading().decided(manifest, result) {
                    self.fail_as_lead(reason);
                }
            }
            Answer::Checked { case, result } => {
                let kept = self.judging().checked(case, result);
                self.against_lead(self.rounds.round.number, kept);
            }
            Answer::Settled { case, result } => self.judging().settled(case, result),
            Answer::Kept {
                round,
                outcome,
                result,
            } => {
                let kept = self.judging().kept(round, outcome, result);
                self.against_lead(round, kept);
            }
            Answer::Applied {
                round,
                ends,
                result,
            } => self.adopting().applied(round, ends, result),
        }
    }
}
