//! Sheets of losses of local and global models, with what they say in a sentence.

use super::{LEVEL, PrintedCell, PrintedTable};
use crate::kinds::baselines::{BaselinesOutcome, TogetherOrAlone};

/// With fewer sites the interval of their mean is wide: Student's t has four degrees of freedom or fewer.
const FEW: f64 = 6.0;

/// The losses, and the gain of learning together.
pub(super) fn compared(found: &BaselinesOutcome) -> [PrintedTable; 2] {
    [losses(found), gain(found)]
}

fn losses(found: &BaselinesOutcome) -> PrintedTable {
    let [name, word] = match found.is_probability {
        true => ["log_loss", "log loss"],
        false => ["mean_squared_error", "mean squared error"],
    };
    let title = format!(
        "{}{} of {}, in rows that a model has not seen",
        word[..1].to_uppercase(),
        &word[1..],
        found.outcome
    );
    let columns = [
        ("model", "model"),
        ("of", "fitted to rows of"),
        (name, word),
    ];
    let mut sheet = PrintedTable::new("losses", &title, &columns);
    for (model, of, loss) in [
        ("constant", "the site", found.local_constant),
        ("linear model", "the site", found.local_model),
        ("constant", "all sites", found.global_constant),
        ("linear model", "all sites", found.global_model),
    ] {
        sheet.rows.push(vec![
            PrintedCell::Text(model.to_owned()),
            PrintedCell::Text(of.to_owned()),
            PrintedCell::Number(loss),
        ]);
    }
    sheet.notes.push(format!(
        "means over sites, each of which counts once, in {} folds; a site chooses the penalty of its local model by folds inside \
         its other rows",
        found.folds
    ));
    if found.global_model >= found.global_constant {
        sheet.notes.push(
            "the global model is no better than the constant of all sites: the terms tell nothing that holds for all"
                .to_owned(),
        );
    }
    sheet
}

fn gain(found: &BaselinesOutcome) -> PrintedTable {
    let columns = [
        ("model", "model"),
        ("effect", "gain"),
        ("error", "SE"),
        ("low", "95 % from"),
        ("high", "to"),
        ("p_value", "p"),
        ("sites", "sites"),
        ("gaining", "that gain"),
    ];
    let mut sheet = PrintedTable::new("gain", "Gain of learning together", &columns);
    let [low, high] = found.gain.interval(LEVEL);
    sheet.rows.push(vec![
        PrintedCell::Text("global instead of local".to_owned()),
        PrintedCell::Number(found.gain.value),
        PrintedCell::Number(found.gain.error),
        PrintedCell::Number(low),
        PrintedCell::Number(high),
        PrintedCell::Probability(found.gain.p()),
        PrintedCell::Count(found.sites),
        PrintedCell::Count(found.gaining),
    ]);
    sheet.notes.push(
        match found.says(LEVEL) {
            TogetherOrAlone::Together => {
                "together: at sites like these a global linear model loses less than their local ones, on average"
            }
            TogetherOrAlone::Alone => {
                "alone: at sites like these their local linear models lose less than a global one, on average; ask whether \
                 models that keep something of their own help (`rota advise`)"
            }
            TogetherOrAlone::CannotTell if found.sites < FEW => {
                "cannot tell: either may be better, and the interval of so few sites is wide; ask more sites"
            }
            TogetherOrAlone::CannotTell => {
                "cannot tell: either may be better at sites like these, or it depends on the site"
            }
        }
        .to_owned(),
    );
    sheet
}
