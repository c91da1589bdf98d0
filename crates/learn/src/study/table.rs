//! The study of a task on tables of rows.

use std::sync::Arc;

use task::{Source, TableTask};

use super::family::family;
use super::lifetimes::Lifetimes;
use super::{RowCounts, Study, StudySilo, findings, pool};
use crate::data::{DataError, DataSet, Prepared, Rows, Standardise, Target};
use crate::learners::TableLearner;

/// The learners of silos with these rows, which are split by `seed`; the notes are those of `data` and
/// what is noticed about single columns.
///
/// # Errors
/// [`DataError`]: rows of another kind than the task's, a model that does not fit the target.
pub fn study_of(task: &TableTask, data: DataSet, seed: u64) -> Result<Study, DataError> {
    let DataSet {
        target,
        silos: tables,
        mut notes,
        subgroups,
        ..
    } = data;
    let metric = task.primary_metric(&target)?;
    let scaling = task.scaling();
    let silos = tables.len();
    let (mut built, mut learners) = (Vec::with_capacity(silos), Vec::new());
    // With noise no row decides whether a silo can learn.
    if !task.is_noised() {
        findings::classes(&target, &tables, &mut notes)?;
    }
    let prepare = match task.is_noised() {
        true => Prepared::row_by_row,
        false => Prepared::new,
    };
    let (mut constant, mut absent) = <(findings::NotedColumns, findings::NotedColumns)>::default();
    let mut far = findings::Far::default();
    let mut survival = Lifetimes::default();
    for (place, (name, table)) in tables.into_iter().enumerate() {
        let domain = task.domain(place, silos)?.or_else(|| table.domain());
        let target = target.clone();
        let data = prepare(&name, &table, target, &task.split, scaling, seed)?;
        constant.add(&data.constant);
        absent.add(&data.absent);
        // Test rows alone may be of another season or population on purpose.
        if !data.train.is_empty() {
            far.add(&name, &table.columns, &data.columns);
        }
        survival.add(&name, &data);
        let rows = counts(&data);
        let (model, loss) = family(&task.model, data.features, &data.target)?;
        let preparation = Some(Arc::new(data.preparation.clone()));
        let learner = TableLearner::new(data, model, loss, scaling, task.robust);
        let learner = Arc::new(learner.within(domain));
        learners.push(learner.clone());
        built.push(StudySilo {
            name,
            learner: learner.clone(),
            rows,
            preparation,
            group: table.group,
            table: Some(learner),
        });
    }
    notes.extend(survival.notes()?);
    // Pixels at the edge are alike in all rows, and domains differ by nature.
    if !matches!(task.data, Some(Source::Images(_))) {
        notes.extend(constant.note("a single value", silos));
        notes.extend(absent.note("no value, which counts as average,", silos));
        notes.extend(far.note());
    }
    let numbers = matches!(target, Target::Number { .. } | Target::Numbers { .. });
    if numbers && scaling == Standardise::Silo {
        notes.push(
            "every silo scales the target by its own mean and deviation (`standardise = \
             \"silo\"`): errors are in the target's units, but of models that are told each \
             silo's mean"
                .into(),
        );
    }
    let classes = match target {
        Target::Classes(names) => names,
        _ => Vec::new(),
    };
    Ok(Study {
        silos: built,
        metric,
        pooled: pool(learners),
        notes,
        proposed: None,
        classes,
        subgroups,
    })
}

pub(super) fn counts(data: &Prepared) -> RowCounts {
    let of = |rows: &Rows| rows.len();
    RowCounts {
        train: of(&data.train),
        validation: of(&data.validation),
        test: of(&data.test),
    }
}
