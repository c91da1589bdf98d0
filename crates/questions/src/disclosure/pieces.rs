//! Rows of a table that the questions distinguish.
//!
//! Two answers over sets of rows that differ in one patient tell that patient's values. So the sets of all answered
//! questions cut the rows into pieces, the atoms of all unions and differences; a piece with few rows is refused.

use std::collections::BTreeMap;

use crate::kinds::baselines::Baselines;
use crate::kinds::trees::Trees;
use crate::question::FederatedQuestion;
use crate::table::{CellValue, Condition, QuestionInput, RowTable};
use crate::{Kind, SiteRefusal};

/// The rows of one sum: membership by row, and the columns that are summed over them.
pub(super) struct RowSet {
    members: Vec<bool>,
    /// The columns, or nothing for the cut of a filter or group alone.
    columns: Vec<String>,
}

/// The sets of rows over which a question has sums.
pub(super) fn sets(
    question: &FederatedQuestion,
    table: &RowTable,
) -> Result<Vec<RowSet>, SiteRefusal> {
    let inputs = question
        .inputs()
        .map_err(|error| SiteRefusal::Rows(error.to_string()))?;
    let filtered = members(table, &question.filter)?;
    let mut cuts = vec![filtered.clone()];
    if let Some(column) = question.kind.group_column() {
        for level in question.agreed.levels.get(column).into_iter().flatten() {
            let mut filter = question.filter.clone();
            filter.push(Condition {
                column: column.to_owned(),
                comparison: crate::table::ConditionSign::Is,
                with: level.clone(),
            });
            cuts.push(members(table, &filter)?);
        }
    }
    let by_column = matches!(question.kind, Kind::Describe(_) | Kind::Quantiles(_));
    let mut sets = Vec::new();
    for cut in cuts {
        sets.push(RowSet {
            members: cut.clone(),
            columns: Vec::new(),
        });
        if by_column {
            for input in &inputs {
                sets.push(summed(&cut, std::slice::from_ref(input), table)?);
            }
        } else if let Kind::Trees(trees) = &question.kind {
            sets.extend(trained(trees, &cut, &inputs, table)?);
        } else {
            sets.push(summed(&cut, &inputs, table)?);
        }
        if let Kind::Baselines(baselines) = &question.kind {
            sets.extend(folded(baselines, &cut, &inputs, table)?);
        }
    }
    Ok(sets)
}

fn members(table: &RowTable, filter: &[Condition]) -> Result<Vec<bool>, SiteRefusal> {
    let mut members = vec![false; table.rows()];
    table
        .filtered(filter)?
        .into_iter()
        .for_each(|row| members[row] = true);
    Ok(members)
}

/// The rows of a cut in which these inputs are known.
fn summed(cut: &[bool], inputs: &[QuestionInput], table: &RowTable) -> Result<RowSet, SiteRefusal> {
    let known = table.known(inputs)?;
    let members = cut
        .iter()
        .zip(known)
        .map(|(cut, known)| *cut && known)
        .collect();
    Ok(RowSet {
        members,
        columns: columns_of(inputs),
    })
}

/// The rows of a cut that trees use, those with missing values among them, and of these the rows that are not held out.
fn trained(
    trees: &Trees,
    cut: &[bool],
    inputs: &[QuestionInput],
    table: &RowTable,
) -> Result<[RowSet; 2], SiteRefusal> {
    let all: Vec<usize> = (0..table.rows()).collect();
    let values = table.values(&all, inputs)?;
    let set = |is_in: &dyn Fn(&[CellValue]) -> bool| {
        let rows = cut.iter().zip(&values);
        RowSet {
            members: rows.map(|(cut, row)| *cut && is_in(row)).collect(),
            columns: columns_of(inputs),
        }
    };
    Ok([set(&Trees::uses), set(&|row| trees.trains_on(row))])
}

/// The complete rows of a cut outside of each fold.
fn folded(
    baselines: &Baselines,
    cut: &[bool],
    inputs: &[QuestionInput],
    table: &RowTable,
) -> Result<Vec<RowSet>, SiteRefusal> {
    let all: Vec<usize> = (0..table.rows()).collect();
    let values = table.values(&all, inputs)?;
    let fold = |row: &Vec<CellValue>| {
        let known = row.iter().map(|value| value.known());
        let known: Option<Vec<f64>> = known.collect();
        known.map(|row| baselines.fold(&row))
    };
    let folds: Vec<Option<usize>> = values.iter().map(fold).collect();
    let outside = |out: usize| RowSet {
        members: cut
            .iter()
            .zip(&folds)
            .map(|(cut, fold)| *cut && fold.is_some_and(|fold| fold != out))
            .collect(),
        columns: columns_of(inputs),
    };
    Ok((0..baselines.folds).map(outside).collect())
}

/// The columns of inputs, each once and in order.
pub(super) fn columns_of(inputs: &[QuestionInput]) -> Vec<String> {
    let columns = inputs.iter().map(|input| input.column().to_owned());
    let mut columns: Vec<String> = columns.collect();
    columns.sort();
    columns.dedup();
    columns
}

/// Returns true if some sets of rows single out 1 to `smallest` − 1 rows: filters and groups with all rows, and
/// sums of one column with each other.
pub(super) fn single_out(sets: &[RowSet], smallest: u64) -> bool {
    let cuts: Vec<&RowSet> = sets.iter().filter(|set| set.columns.is_empty()).collect();
    if smallest_piece(&cuts, true) < smallest {
        return true;
    }
    let mut columns: Vec<&String> = sets.iter().flat_map(|set| &set.columns).collect();
    columns.sort();
    columns.dedup();
    columns.into_iter().any(|column| {
        let of: Vec<&RowSet> = sets
            .iter()
            .filter(|set| set.columns.contains(column))
            .collect();
        smallest_piece(&of, false) < smallest
    })
}

/// Rows of the smallest piece that has any; with or without the rows that are in no set.
fn smallest_piece(sets: &[&RowSet], with_rest: bool) -> u64 {
    let rows = sets.first().map_or(0, |set| set.members.len());
    let mut pieces: BTreeMap<Vec<bool>, u64> = BTreeMap::new();
    for row in 0..rows {
        let piece: Vec<bool> = sets.iter().map(|set| set.members[row]).collect();
        if with_rest || piece.contains(&true) {
            *pieces.entry(piece).or_default() += 1;
        }
    }
    pieces.into_values().min().unwrap_or(u64::MAX)
}
