//! Sheets of boosted trees: the fit, the loss by the number of trees, and the importance of columns.

use super::{PrintedCell, PrintedTable};
use crate::kinds::trees::TreesOutcome;

/// Lines of the learning curve at most.
const LINES: usize = 21;

/// Boosted trees.
pub(super) fn boosted(found: &TreesOutcome) -> [PrintedTable; 3] {
    [fit(found), curve(found), importance(found)]
}

/// The name of the loss for programs, and its word for people.
fn loss(found: &TreesOutcome) -> [&'static str; 2] {
    match found.is_probability {
        true => ["log_loss", "log loss"],
        false => ["root_mean_squared_error", "RMSE"],
    }
}

fn fit(found: &TreesOutcome) -> PrintedTable {
    let of = match (found.is_probability, found.classes.is_empty()) {
        (true, true) => "the log odds of ",
        (true, false) => "the levels of ",
        (false, _) => "",
    };
    let title = format!("Gradient-boosted trees for {of}{}", found.outcome);
    let columns = [
        ("rows", "rows"),
        ("held_out_rows", "held out"),
        ("trees", "trees"),
        ("leaves", "leaves"),
    ];
    let mut sheet = PrintedTable::new("fit", &title, &columns);
    let nodes = found.trees.iter().flat_map(|tree| &tree.nodes);
    let leaves = nodes.filter(|node| node.split.is_none()).count();
    let mut row = vec![
        PrintedCell::Count(found.rows),
        PrintedCell::Count(found.held_out_rows),
        PrintedCell::Count(found.trees.len() as f64),
        PrintedCell::Count(leaves as f64),
    ];
    let [name, word] = loss(found);
    if let Some(last) = found.losses.last() {
        sheet.column(name, word);
        row.push(PrintedCell::Number(last.trained));
        if let Some(loss) = last.held_out {
            sheet.column(&format!("held_out_{name}"), &format!("{word} held out"));
            row.push(PrintedCell::Number(loss));
        }
    }
    sheet.rows.push(row);
    sheet
        .notes
        .push("rows with missing values are used: a split sends them to its right".to_owned());
    if !found.classes.is_empty() {
        sheet.notes.push(format!(
            "{} trees of each of {} levels: {}",
            found.count(),
            found.classes.len(),
            found.classes.join(", ")
        ));
    }
    if found.count() < found.asked {
        sheet.notes.push(format!(
            "it ended before {} trees: no further split lowers the loss",
            found.asked
        ));
    }
    sheet
}

fn curve(found: &TreesOutcome) -> PrintedTable {
    let [name, word] = loss(found);
    let trees = match found.classes.is_empty() {
        true => "trees",
        false => "trees of each level",
    };
    let columns = [("trees", trees), (name, "in training")];
    let title = format!(
        "{}{} by the number of trees",
        word[..1].to_uppercase(),
        &word[1..]
    );
    let mut sheet = PrintedTable::new("learning_curve", &title, &columns);
    let held_out = found.losses.iter().any(|loss| loss.held_out.is_some());
    if held_out {
        sheet.column(&format!("held_out_{name}"), "held out");
    }
    let last = found.losses.len().saturating_sub(1);
    let step = last.div_ceil(LINES - 1).max(1);
    let best = found.best();
    for (trees, loss) in found.losses.iter().enumerate() {
        if trees % step != 0 && trees != last && Some(trees) != best {
            continue;
        }
        let mut row = vec![
            PrintedCell::Count(trees as f64),
            PrintedCell::Number(loss.trained),
        ];
        if held_out {
            row.push(PrintedCell::number(loss.held_out));
        }
        sheet.rows.push(row);
    }
    if step > 1 {
        sheet.notes.push(format!("every {step} trees"));
    }
    match best {
        Some(0) => sheet
            .notes
            .push("no number of trees is better than none for the held-out rows".to_owned()),
        Some(best) if best < last => sheet.notes.push(format!(
            "the loss of the held-out rows is least with {best} of {last} trees: ask for as many"
        )),
        Some(_) => sheet.notes.push(
            "the loss of the held-out rows is least with all trees: more may be better".to_owned(),
        ),
        None => sheet.notes.push(
            "the loss of rows in training falls with every tree; with `held-out = 0.2` that of others is measured"
                .to_owned(),
        ),
    }
    sheet
}

fn importance(found: &TreesOutcome) -> PrintedTable {
    let columns = [
        ("column", "column"),
        ("splits", "splits"),
        ("share", "share of gain"),
    ];
    let mut sheet = PrintedTable::new("importance", "Importance of columns", &columns);
    for column in found.importance() {
        sheet.rows.push(vec![
            PrintedCell::Text(column.column),
            PrintedCell::Count(column.splits as f64),
            PrintedCell::Number(column.share),
        ]);
    }
    let unused = found.columns.len() - sheet.rows.len();
    if unused > 0 {
        sheet
            .notes
            .push(format!("{unused} of the columns have no split"));
    }
    sheet
}
