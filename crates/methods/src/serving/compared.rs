//! The candidates of a silo after its comparison, of which one is chosen.

use std::collections::BTreeMap;

use super::{Candidate, ComparedOn, Measured, PersonalParts, Served, choose};
use crate::params::Params;

/// A silo's candidates, compared.
#[derive(Debug, Clone)]
pub struct ComparedModels {
    /// Rows that they were compared on.
    pub on: ComparedOn,
    /// The comparison, the local model first; empty where the silo has too few rows to compare.
    pub measured: Vec<Measured>,
    /// Every measured model with its personal state.
    pub(super) models: BTreeMap<Candidate, (Params, Params)>,
    /// The model of its coalition, and the personal state.
    pub(super) coalition: (Params, Params),
    /// Origin of the personal parts of the coalition's model.
    pub(super) parts: PersonalParts,
}

impl ComparedModels {
    /// That of a silo that compares nothing, and serves the model of its coalition, with personal parts of this origin.
    pub fn none(coalition: (Params, Params), parts: PersonalParts) -> Self {
        Self {
            on: ComparedOn::Nothing,
            measured: Vec::new(),
            models: BTreeMap::new(),
            coalition,
            parts,
        }
    }

    /// Returns whether it compared other models than its local one.
    pub fn compares(&self) -> bool {
        let mut others = self.measured.iter();
        others.any(|one| one.candidate != Candidate::Local)
    }

    /// Returns what the silo serves where it chooses by its own rows alone.
    pub fn alone(self) -> Served {
        let candidate = choose(&self.measured);
        self.serve(candidate)
    }

    /// Serves this candidate; the model of its coalition where nothing was compared, or where the candidate was
    /// not.
    pub fn serve(mut self, candidate: Candidate) -> Served {
        let model = self.models.remove(&candidate);
        let candidate = model.as_ref().map_or(Candidate::Coalition, |_| candidate);
        let personal = match candidate {
            Candidate::Coalition | Candidate::OwnIntercept | Candidate::Shrunken => self.parts,
            _ => PersonalParts::Trained,
        };
        Served {
            candidate,
            on: self.on,
            measured: self.measured,
            model: model.unwrap_or(self.coalition),
            personal,
        }
    }
}
