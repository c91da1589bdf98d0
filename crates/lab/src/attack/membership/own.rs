//! The loss of a node's local model on its own rows: those that it learned from, and those that were held out.

use serde::Serialize;

use super::super::AttackEstimate;
use super::super::scored::{RowScore, RowScores};

/// Limits of this attack.
const NOT_TRIED: &str = "shadows, of which only a simulation can train enough; the models of earlier rounds; \
                         rows of other institutions";

/// Separation by the loss of one model of the rows that it learned from and rows that were held out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct OwnMembership {
    /// Name of the model.
    pub model: String,
    /// Training rows.
    pub train: usize,
    /// Held-out rows.
    pub held_out: usize,
    /// The area under the ROC curve of a low loss as the sign of a training row, with an interval from rows drawn
    /// again.
    pub auc: AttackEstimate,
    /// Mean loss of the training rows.
    pub train_loss: f64,
    /// Mean loss of the held-out rows.
    pub held_out_loss: f64,
    /// Attacks that were not tried.
    pub not_tried: String,
}

impl OwnMembership {
    /// Of the losses of one model. `None` where one of the parts has no rows, or losses are not finite.
    pub fn of(model: &str, train: &[f64], held_out: &[f64]) -> Option<Self> {
        let rows = train.len() + held_out.len();
        let each = train.iter().map(|loss| (loss, true));
        let each = each.chain(held_out.iter().map(|loss| (loss, false)));
        let scores = (0_u32..).zip(each).map(|(row, (loss, member))| RowScore {
            row,
            score: -loss,
            member,
        });
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        let (train_loss, held_out_loss) = (mean(train), mean(held_out));
        if !train_loss.is_finite() || !held_out_loss.is_finite() {
            return None;
        }
        Some(Self {
            model: model.to_owned(),
            train: train.len(),
            held_out: held_out.len(),
            auc: RowScores::new(scores.collect(), rows).estimate(1)?,
            train_loss,
            held_out_loss,
            not_tried: NOT_TRIED.into(),
        })
    }

    /// Returns what was found, as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let verdict = if self.auc.low > 0.5 {
            "The model has lower losses on its training rows than on the held-out rows: it has memorised some of \
             them, or the held-out rows are of another kind, such as later ones."
        } else {
            "The losses of this model alone do not distinguish its training rows from the held-out rows."
        };
        vec![
            self.model.clone(),
            String::new(),
            format!(
                "  {:45} {}",
                "low loss as the sign of a training row (AUC)",
                self.auc.words(3)
            ),
            format!("  {:45} 0.500", "guessing"),
            format!(
                "  {:45} {:.4} of {} rows, {:.4} of {}",
                "mean loss: training, held-out",
                self.train_loss,
                self.train,
                self.held_out_loss,
                self.held_out
            ),
            String::new(),
            format!(
                "{verdict} This is the weakest attack: the attacker has only the model and the rows. Where it \
                 finds nothing, a stronger attack still may; only differential privacy bounds all of them. Not \
                 tried: {}.",
                self.not_tried
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_model_that_remembers_is_told_from_one_that_does_not() {
        let held_out: Vec<_> = (0..60).map(|row| 0.5 + f64::from(row) / 60.0).collect();
        let remembered: Vec<_> = held_out.iter().map(|loss| loss - 0.5).collect();
        let found = OwnMembership::of("m", &remembered, &held_out).unwrap();
        assert!(found.auc.value > 0.8 && found.auc.low > 0.5, "{found:?}");
        assert!(found.lines().join("\n").contains("memorised"));
        let same = OwnMembership::of("m", &held_out, &held_out).unwrap();
        assert_eq!(same.auc.value, 0.5);
        assert!(same.lines().join("\n").contains("do not distinguish"));
        assert_eq!(OwnMembership::of("m", &held_out, &[]), None);
    }
}
