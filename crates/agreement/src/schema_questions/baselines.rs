//! The error of the best constant, from sums over all institutions: what a model has to be better than.

use task::schema::ClassValues;

use super::answers::{ColumnLevels, ColumnMean, LevelRows};
use super::digits::short;

/// The mean squared error of the mean, over the rows that it is of.
pub(super) fn of_number(name: &str, found: &ColumnMean) -> String {
    let n = found.known as f64;
    // The deviation has n − 1.
    let error = found.deviation * found.deviation * (n - 1.0) / n;
    format!(
        "a constant, the mean {} of {name}, has a mean squared error of {} (root {}) over {} rows at {} sites ({}): a \
         model is worth something where it has less",
        short(found.mean),
        short(error),
        short(error.sqrt()),
        found.known,
        found.of.sites,
        found.of.source,
    )
}

/// The log-loss of the shares of classes, and the accuracy of the most frequent one; `None` where counts are
/// suppressed.
pub(super) fn of_classes(
    name: &str,
    classes: &[ClassValues],
    found: &ColumnLevels,
) -> Option<String> {
    let total = |value: &String| match found.levels.get(value)? {
        LevelRows::Total(rows) => Some(*rows as f64),
        LevelRows::AtLeast(_) | LevelRows::Hidden => None,
    };
    let rows = |class: &ClassValues| class.values().iter().map(total).sum::<Option<f64>>();
    let rows: Vec<f64> = classes.iter().map(rows).collect::<Option<_>>()?;
    let all: f64 = rows.iter().sum();
    if all == 0.0 {
        return None;
    }
    let shares = rows
        .iter()
        .map(|rows| rows / all)
        .filter(|share| *share > 0.0);
    let loss: f64 = shares.map(|share| -share * share.ln()).sum();
    let (at, most) = rows
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
    Some(format!(
        "a constant, the shares of the classes of {name}, has a log-loss of {}, and its most frequent class {:?} is \
         right in {} % of {all} rows at {} sites ({}): a model is worth something where it is better",
        short(loss),
        classes[at].name(),
        short(100.0 * most / all),
        found.of.sites,
        found.of.source,
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::answers::AnsweredRowCounts;
    use super::*;

    fn of() -> AnsweredRowCounts {
        AnsweredRowCounts {
            source: "question 1".into(),
            sites: 4,
            rows: 100,
            outside: 0,
        }
    }

    #[test]
    fn the_error_of_a_mean_is_the_variance_of_its_rows() {
        // 1, 2, 3: variance 2/3 with n, 1 with n − 1.
        let found = ColumnMean {
            of: of(),
            known: 3,
            mean: 2.0,
            deviation: 1.0,
        };
        let said = of_number("days", &found);
        assert!(
            said.contains("the mean 2 of days") && said.contains("error of 0.6667 "),
            "{said}"
        );
    }

    #[test]
    fn the_loss_of_shares_is_their_entropy() {
        let one = |name: &str| ClassValues::One(name.into());
        let both = ClassValues::Several {
            name: "died".into(),
            values: vec!["dead".into(), "1".into()],
        };
        let levels = [("home", 75), ("dead", 20), ("1", 5)];
        let levels = levels.map(|(name, rows)| (name.to_owned(), LevelRows::Total(rows)));
        let mut found = ColumnLevels {
            of: of(),
            asked: "end".into(),
            levels: levels.into(),
            missing: LevelRows::Total(0),
        };
        let classes = [both, one("home")];
        let said = of_classes("end", &classes, &found).unwrap();
        // −¾ ln ¾ − ¼ ln ¼.
        assert!(said.contains("log-loss of 0.5623,"), "{said}");
        assert!(
            said.contains("\"home\" is right in 75 % of 100 rows"),
            "{said}"
        );
        found.levels.insert("1".into(), LevelRows::Hidden);
        assert_eq!(of_classes("end", &classes, &found), None);
    }
}
