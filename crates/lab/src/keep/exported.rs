//! Models of a simulated federation with their cards: files that `rota model` shows and predicts with.

use learn::StudySilo;
use learn::export::{Card, CardParts, Coalition, ExportError, Origin, safetensors};
use methods::serving::members_of;
use simulations::{Federation, Scenario};
use task::{TableTask, TaskConfig};

use crate::summary::AdoptedModel;

/// Text in a simulation in place of a time, of an id, and of signed values: equal runs have equal files.
const SIMULATED: &str = "none: simulated";

/// Common parts of all models of a run.
pub(super) struct CardSource<'a> {
    scenario: &'a Scenario,
    federation: &'a Federation,
    task: Box<TableTask>,
}

impl<'a> CardSource<'a> {
    /// That of this run.
    ///
    /// # Errors
    /// [`ExportError`]: the task has no table, or no schema, so that nobody knows what its models take.
    pub(super) fn of(
        scenario: &'a Scenario,
        federation: &'a Federation,
    ) -> Result<Self, ExportError> {
        let TaskConfig::Table(task) = scenario.task_of_rows()? else {
            return Err(ExportError::NoTable);
        };
        task.agreed_schema()?.ok_or(ExportError::NoSchema)?;
        Ok(Self {
            scenario,
            federation,
            task,
        })
    }

    /// The file of the model that a silo has in the end, with its personal parts and its own scaling.
    ///
    /// # Errors
    /// [`ExportError`]: nothing that predicts, such as a scale before the first training.
    pub(super) fn file(
        &self,
        silo: &StudySilo,
        adopted: &AdoptedModel,
    ) -> Result<Vec<u8>, ExportError> {
        let learner = &self.federation.members[adopted.silo].learner;
        let (model, personal) = &adopted.model;
        let model = learner.deployed(model, personal);
        let (Some(model), Some(preparation)) = (model, &silo.preparation) else {
            return Err(ExportError::NoTable);
        };
        let card = Card::new(CardParts {
            task: &self.task,
            preparation,
            model: &model,
            origin: self.origin(silo, adopted),
            created: SIMULATED.into(),
        })?;
        Ok(safetensors(&card, &model))
    }

    fn origin(&self, silo: &StudySilo, adopted: &AdoptedModel) -> Origin {
        let epoch = &self.federation.epoch;
        let number = adopted.coalition + 1;
        let coalitions = adopted.assignment.iter().max().map_or(1, |last| last + 1);
        Origin {
            which: "coalition".into(),
            about: format!(
                "The model that {} has after round {} of a simulation, that of its coalition ({number} of \
                 {coalitions}), with its personal parts where the strategy has any",
                silo.name, adopted.round
            ),
            federation: self.scenario.name.clone(),
            id: format!("{:#}", epoch.federation),
            members: epoch.roster.len(),
            strategy: self.scenario.strategy.name().into(),
            round: adopted.round,
            rounds: self.scenario.rounds,
            coalition: Some(Coalition {
                number,
                of: coalitions as usize,
                contributions: members_of(&adopted.assignment, adopted.coalition),
            }),
            block: SIMULATED.into(),
            outcome: SIMULATED.into(),
            certificate: SIMULATED.into(),
            silo: silo.name.clone(),
            continues: None,
        }
    }
}
