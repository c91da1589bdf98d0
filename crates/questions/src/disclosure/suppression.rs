//! Suppression of cells of a table of counts that are not printed.
//!
//! Cells of 1 to m−1 rows, and for each of them further cells, so that row and column sums do not determine it: a
//! rectangle of nonzero cells that leaves the hidden counts a range of m or more.

/// Returns which cells are hidden, row by row. What may be printed of row and column sums says [`totals`].
pub fn hidden(counts: &[Vec<f64>], smallest: u64) -> Vec<Vec<bool>> {
    let small = |count: f64| count > 0.0 && count < smallest as f64;
    let mut hidden: Vec<Vec<bool>> = counts
        .iter()
        .map(|row| row.iter().map(|count| small(*count)).collect())
        .collect();
    let primary: Vec<(usize, usize)> = (0..counts.len())
        .flat_map(|row| (0..counts[row].len()).map(move |column| (row, column)))
        .filter(|(row, column)| small(counts[*row][*column]))
        .collect();
    for (row, column) in primary {
        match rectangle(counts, &hidden, (row, column), smallest as f64) {
            Some((other, beside)) => {
                for (r, c) in [(row, beside), (other, column), (other, beside)] {
                    hidden[r][c] = true;
                }
            }
            None => hide_row(&mut hidden, counts, row),
        }
    }
    hidden
}

/// Sums of rows and of columns. Where one is 1 to m−1, none of its kind may be printed: the others and the number of
/// all rows would determine it.
pub fn totals(counts: &[Vec<f64>], smallest: u64) -> [Option<Vec<f64>>; 2] {
    let rows: Vec<f64> = counts.iter().map(|row| row.iter().sum()).collect();
    let width = counts.first().map_or(0, Vec::len);
    let columns: Vec<f64> = (0..width)
        .map(|at| counts.iter().map(|row| row[at]).sum())
        .collect();
    let small = |sum: &f64| *sum > 0.0 && *sum < smallest as f64;
    [rows, columns].map(|sums| (!sums.iter().any(small)).then_some(sums))
}

/// The opposite corner of the rectangle that hides the fewest further rows.
fn rectangle(
    counts: &[Vec<f64>],
    hidden: &[Vec<bool>],
    (i, j): (usize, usize),
    smallest: f64,
) -> Option<(usize, usize)> {
    let mut best: Option<(f64, (usize, usize))> = None;
    for l in (0..counts.len()).filter(|l| *l != i) {
        for k in (0..counts[i].len()).filter(|k| *k != j) {
            let corners = [counts[i][k], counts[l][j], counts[l][k]];
            if corners.contains(&0.0) {
                continue;
            }
            let range = counts[i][k].min(counts[l][j]) + counts[i][j].min(counts[l][k]);
            if range < smallest {
                continue;
            }
            let cost = |row: usize, column: usize| {
                if hidden[row][column] {
                    0.0
                } else {
                    counts[row][column]
                }
            };
            let rows = cost(i, k) + cost(l, j) + cost(l, k);
            if best.is_none_or(|(least, _)| rows < least) {
                best = Some((rows, (l, k)));
            }
        }
    }
    best.map(|(_, corner)| corner)
}

/// Hides a whole row and the smallest other one, because column sums would reveal a single hidden row.
fn hide_row(hidden: &mut [Vec<bool>], counts: &[Vec<f64>], row: usize) {
    hidden[row].fill(true);
    let total = |at: usize| counts[at].iter().sum::<f64>();
    let others = (0..counts.len()).filter(|at| *at != row && total(*at) > 0.0);
    if let Some(other) = others.min_by(|left, right| total(*left).total_cmp(&total(*right))) {
        hidden[other].fill(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The range that row and column sums leave for a hidden cell, by trying all tables of small counts.
    fn range(counts: &[Vec<f64>], hidden: &[Vec<bool>], of: (usize, usize)) -> (f64, f64) {
        let cells: Vec<(usize, usize)> = (0..counts.len())
            .flat_map(|row| (0..counts[row].len()).map(move |column| (row, column)))
            .filter(|(row, column)| hidden[*row][*column])
            .collect();
        let mut found = (f64::INFINITY, f64::NEG_INFINITY);
        let mut guess = counts.to_vec();
        try_all(counts, &cells, 0, &mut guess, &mut |table| {
            let value = table[of.0][of.1];
            found = (found.0.min(value), found.1.max(value));
        });
        found
    }

    fn try_all(
        counts: &[Vec<f64>],
        cells: &[(usize, usize)],
        at: usize,
        guess: &mut Vec<Vec<f64>>,
        seen: &mut impl FnMut(&[Vec<f64>]),
    ) {
        let row_sum = |table: &[Vec<f64>], row: usize| table[row].iter().sum::<f64>();
        let column_sum =
            |table: &[Vec<f64>], column: usize| table.iter().map(|row| row[column]).sum::<f64>();
        if at == cells.len() {
            let rows = (0..counts.len()).all(|row| row_sum(guess, row) == row_sum(counts, row));
            let columns = (0..counts[0].len())
                .all(|column| column_sum(guess, column) == column_sum(counts, column));
            if rows && columns {
                seen(guess);
            }
            return;
        }
        let (row, column) = cells[at];
        let most = row_sum(counts, row).min(column_sum(counts, column)) as u32;
        for value in 0..=most {
            guess[row][column] = f64::from(value);
            try_all(counts, cells, at + 1, guess, seen);
        }
        guess[row][column] = counts[row][column];
    }

    #[test]
    fn a_small_cell_is_not_the_row_sum_less_the_others() {
        let counts = vec![vec![2.0, 9.0, 8.0], vec![7.0, 6.0, 8.0]];
        let only = |row: usize, column: usize| -> Vec<Vec<bool>> {
            (0..2)
                .map(|r| (0..3).map(|c| (r, c) == (row, column)).collect())
                .collect()
        };
        // The attack: with the small cell alone hidden, its row's sum tells it.
        assert_eq!(range(&counts, &only(0, 0), (0, 0)), (2.0, 2.0));
        let hidden = hidden(&counts, 5);
        let (least, most) = range(&counts, &hidden, (0, 0));
        assert!(most - least >= 5.0, "{least} to {most}: {hidden:?}");
    }

    #[test]
    fn tables_without_small_cells_are_printed_whole() {
        let counts = vec![vec![0.0, 9.0], vec![7.0, 5.0]];
        assert!(!hidden(&counts, 5).concat().contains(&true));
    }

    #[test]
    fn small_sums_hide_all_sums_of_their_kind() {
        let counts = vec![vec![2.0, 0.0], vec![10.0, 30.0]];
        let [rows, columns] = totals(&counts, 5);
        assert_eq!((rows, columns), (None, Some(vec![12.0, 30.0])));
    }

    #[test]
    fn without_a_rectangle_whole_rows_are_hidden() {
        let counts = vec![vec![2.0, 0.0], vec![0.0, 30.0]];
        let hidden = hidden(&counts, 5);
        assert!(hidden[0][0] && hidden[0][1] && hidden[1][0]);
    }
}
