//! Equipment with which an institution learns: its rows, its program if it has one, and the agreed strategy.

use std::sync::Arc;

use learn::external::{Programs, external_silo, own_silo};
use learn::{StudySilo, TaskStudy};
use methods::Params;
use task::questions::{RowDoubt, RowQuestion, RowsProfile, questions};
use task::{TaskConfig, data::DataError, metrics::Metric};

use super::rows_fit::{own_domain, own_task};
use crate::answers::{AnsweringLearner, OwnAnswers, ServingAnswers, SiteAnswers};
use crate::comparison::ComparisonSlot;
use crate::equipment::Equipment;
use crate::institution::config::own_learner::OwnLearner;
use crate::institution::config::{Data, Institution};
use crate::split_key;

/// The program that a node learns with, which ends with this: a training under way would go on
/// without anybody who waits for it.
pub(super) struct LearningProgram(Option<Arc<Programs>>);

impl LearningProgram {
    pub(super) fn of(equipment: &Equipment) -> Self {
        Self(equipment.programs.clone())
    }
}

impl Drop for LearningProgram {
    fn drop(&mut self) {
        self.0.iter().for_each(|programs| programs.end());
    }
}

/// The silo of an institution with its own rows.
struct OwnSilo {
    silo: StudySilo,
    metric: Metric,
    /// Warnings about rows that cannot be read and count as nothing.
    unreadable: Vec<String>,
    /// Distribution of the values of rows of files.
    profile: Option<RowsProfile>,
    /// Numbers among them of which nobody has said whether they stand for missing values.
    questions: Vec<RowQuestion>,
}

impl Institution {
    /// Reads the silo's own data: what it learns with, alone and as the agreed strategy equips it. Its
    /// program, where it has one, is started. `start` is the model that the federation
    /// [starts](Self::start) from.
    ///
    /// # Errors
    /// [`DataError`]: data that are not there or not what the task needs, a program that cannot be
    /// started, a model with which the strategy cannot work.
    pub fn equipment(&self, start: Option<&Params>) -> Result<Equipment, DataError> {
        let OwnSilo {
            silo,
            metric,
            unreadable,
            profile,
            questions,
        } = self.silo()?;
        let mut programs = None;
        let silo = match &self.learner {
            None => silo,
            Some(OwnLearner::Here(learner)) => {
                let (task, seed) = (&self.agreement.task, self.agreement.seed);
                own_silo(task, &silo, learner.clone(), seed)?
            }
            Some(OwnLearner::Program(learner)) => {
                let place = (self.me.at(), self.agreement.epoch.roster.len());
                let seeds = (self.seed, self.agreement.seed);
                let learner = learner.with_rounds(self.agreement.epoch.protocol.rounds);
                let programs = programs.insert(Programs::new(&learner, 1)?);
                external_silo(&self.agreement.task, &silo, programs, place, seeds)?
            }
        };
        let comparison = ComparisonSlot::default();
        let equipment = self.equip(self.answering(silo, &comparison)?, metric, start)?;
        Ok(Equipment {
            comparison,
            programs,
            unreadable,
            profile,
            questions,
            ..equipment
        })
    }

    /// The silo with what it answers, where the agreement has questions and its rows are files, and where the members
    /// decide together what they serve.
    fn answering(
        &self,
        silo: StudySilo,
        comparison: &ComparisonSlot,
    ) -> Result<StudySilo, DataError> {
        let asked = match &self.data {
            Data::Rows(rows) if !self.agreement.questions.is_empty() => {
                let rules = self.site.answer_rules().clone();
                let own = (&self.key, self.identity.as_path());
                let answers = SiteAnswers::new(&self.agreement, (rows, &self.folder), rules, own);
                Some(answers?)
            }
            Data::Rows(_) | Data::Share { .. } | Data::Program => None,
        };
        let serving = ServingAnswers::of(&self.agreement, comparison);
        if asked.is_none() && serving.is_none() {
            return Ok(silo);
        }
        let answers = OwnAnswers::new(asked, serving, &self.key);
        let learner = Arc::new(AnsweringLearner::new(silo.learner.clone(), answers));
        Ok(StudySilo { learner, ..silo })
    }

    /// Returns what the silo learns with, for measuring models, so without a program.
    ///
    /// # Errors
    /// As [`equipment`](Self::equipment); [`DataError::Config`] where only a program can measure.
    pub fn measuring(&self, start: Option<&Params>) -> Result<Equipment, DataError> {
        if matches!(self.agreement.task, TaskConfig::External(_)) {
            return Err(DataError::Config(
                "the institution's program measures models, while the node runs".into(),
            ));
        }
        let OwnSilo { silo, metric, .. } = self.silo()?;
        self.equip(silo, metric, start)
    }

    fn equip(
        &self,
        silo: StudySilo,
        metric: Metric,
        start: Option<&Params>,
    ) -> Result<Equipment, DataError> {
        let radius = self.radius.clone().into();
        Equipment::new(&self.agreement, silo, metric, start, &radius)
    }

    /// The silo's data with the agreed model, and the agreed metric.
    fn silo(&self) -> Result<OwnSilo, DataError> {
        let task = &self.agreement.task_of_rows()?;
        let (mut unreadable, mut profile, mut asked) = (Vec::new(), None, Vec::new());
        let (study, silo) = match (&self.data, task) {
            (Data::Share { silo, of, folder }, task)
                if !matches!(task, TaskConfig::External(_)) =>
            {
                let study = task.study(Some(*of), folder.as_deref(), self.seed)?;
                (study, *silo)
            }
            (Data::Rows(rows), TaskConfig::Table(table)) => {
                let roster = &self.agreement.epoch.roster;
                let mut table = own_task(table, rows, roster.name(self.me), &self.folder)?;
                // Only this silo's rows are read, so only its own domain is kept.
                own_domain(&mut table, self.me, roster.len())?;
                let mut set = table.tables(None, None, self.seed)?;
                profile = Some(RowsProfile::of(&set));
                // The question what a column is was answered when the institution signed.
                asked = questions(&set, &rows.answers);
                asked.retain(|one| matches!(one.doubt, RowDoubt::StandIn(_)));
                if table.split.keyed {
                    let key = split_key::read(&self.identity);
                    set.hold_out_by(&key.map_err(|why| DataError::Config(why.to_string()))?);
                }
                let own = set.silos.iter();
                unreadable.extend(own.flat_map(|(_, table)| table.unreadable.clone()));
                (learn::study_of(&table, set, self.seed)?, 1)
            }
            (_, TaskConfig::External(external)) => {
                let name = self.agreement.epoch.roster.name(self.me);
                (external.stand_ins(&[name.to_owned()], self.seed)?, 1)
            }
            (Data::Rows(_) | Data::Program | Data::Share { .. }, _) => {
                return Err(DataError::Config(
                    "the federation's task has no table of rows: write `share = \"1 of 8\"` in [data]"
                        .into(),
                ));
            }
        };
        let device = self.device.open();
        let device = device.map_err(|error| DataError::Config(error.to_string()))?;
        let study = study.on(&device);
        let found = silo.checked_sub(1).and_then(|at| study.silos.get(at));
        let found = found.ok_or_else(|| {
            let has = study.silos.len();
            DataError::Config(format!(
                "there is no silo {silo} in these data, they have {has}"
            ))
        })?;
        Ok(OwnSilo {
            silo: found.clone(),
            metric: study.metric,
            unreadable,
            profile,
            questions: asked,
        })
    }
}
