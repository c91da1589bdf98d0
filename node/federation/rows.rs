//! Declared training rows in words: who declared none, and what an institution's own rows are beside
//! what it declared.

use agreement::Agreement;
use learn::TaskStudy;
use protocol::MemberIndex;
use task::TaskConfig;

use super::start::{FirstError, first_of, first_under};
use formatting::numbers::{count, plural};

/// Returns whether models, or the sums of a common scale, are averaged by the rows that members claim. Where that
/// cannot be computed without the data of a task, it is assumed.
pub fn weighs_by_rows(agreement: &Agreement) -> bool {
    let (task, strategy) = (&agreement.task, &agreement.strategy_config);
    if strategy.standardise {
        return true;
    }
    let found = match (first_under(agreement), task) {
        // The plan does not depend on the values of the initial model.
        (Err(FirstError::Programs), TaskConfig::External(task)) => {
            let study = task
                .stand_ins(&["0".into()], agreement.seed)
                .map_err(FirstError::Data);
            study.and_then(|mut study| {
                first_of(study.silos.swap_remove(0).learner, strategy, agreement.seed)
            })
        }
        (found, _) => found,
    };
    found.map_or(true, |first| first.plan.weights)
}

/// The members that may claim any number of rows although models are weighed by rows, and what that means, in
/// one sentence; none where all have declared their rows, or none weighs more than half.
pub fn undeclared(agreement: &Agreement) -> Option<String> {
    let roster = &agreement.epoch.roster;
    let names = roster.undeclared();
    let bounded = agreement.max_weight.is_some_and(|share| share <= 0.5);
    if names.is_empty() || roster.len() < 2 || bounded || !weighs_by_rows(agreement) {
        return None;
    }
    let who = if names.len() == roster.len() {
        "no member declares its training rows".to_owned()
    } else {
        format!("{} declared no training rows", names.join(", "))
    };
    let any = match names.len() {
        1 => "it",
        _ => "any of them",
    };
    Some(format!(
        "{who}, although models are weighted by them: {any} could determine the model alone by claiming many \
         (`rows` in [[member]] limits what a member may claim, `max-weight` in [protocol] the weight of one model)"
    ))
}

/// Returns what an institution's own training rows are beside what it declared, where they are more, or fewer than
/// half.
pub fn beyond(agreement: &Agreement, me: MemberIndex, own: u64) -> Option<String> {
    let declared = agreement.epoch.roster.silos().get(me.at())?.rows?;
    if own > 0 && own < declared.div_ceil(2) {
        return Some(format!(
            "this institution has {} and declared {}: were all of its rows read? If so, propose the right \
             number (`rows` in [[member]], `rota federation change`)",
            plural(own as usize, "training row"),
            count(declared),
        ));
    }
    let follows = if exceeds(agreement, me, own) {
        "with noise no sum may tell that there are more, so its node takes part with all of them, and its part of a \
         sum is cut to what so many rows can add"
            .to_owned()
    } else {
        format!("its models weigh as much as {declared}")
    };
    (own > declared).then(|| {
        format!(
            "this institution has {} and declared {}: {follows}, until the members approve another number \
             (`rows` in [[member]], `rota federation change`)",
            plural(own as usize, "training row"),
            count(declared),
        )
    })
}

/// Whether an institution has more training rows than it declared to a federation with noise. Its node takes part
/// all the same; people should know before they sign.
pub fn exceeds(agreement: &Agreement, me: MemberIndex, own: u64) -> bool {
    let silo = agreement.epoch.roster.silos().get(me.at());
    let declared = silo.and_then(|silo| silo.rows);
    let noised = agreement.epoch.protocol.privacy.is_noised();
    noised && declared.is_some_and(|declared| own > declared)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::North;

    const EXAMPLE: &str = include_str!("../../examples/federation.toml");

    fn agreement(change: impl Fn(&str) -> String) -> Agreement {
        Agreement::parse("federation.toml", &change(EXAMPLE)).unwrap()
    }

    /// The example with declared rows of the first members.
    fn declaring(text: &str, rows: &[u64]) -> String {
        let mut parts = text.split("[[member]]\n");
        let mut said = parts.next().unwrap().to_owned();
        for (at, part) in parts.enumerate() {
            said += "[[member]]\n";
            if let Some(rows) = rows.get(at) {
                said += &format!("rows = {rows}\n");
            }
            said += part;
        }
        said
    }

    #[test]
    fn members_without_declared_rows_are_named_where_models_are_weighed_by_them() {
        let none = undeclared(&agreement(str::to_owned)).unwrap();
        assert!(
            none.starts_with("no member declares its training rows, although models are weighted")
        );
        let n = agreement(str::to_owned).epoch.roster.len();
        let but_the_last = vec![40; n - 1];
        let one = agreement(|text| declaring(text, &but_the_last));
        let last = one.epoch.roster.name(MemberIndex(n as u16 - 1));
        let said = undeclared(&one).unwrap();
        assert!(
            said.starts_with(&format!("{last} declared no training rows")),
            "{said}"
        );
        assert!(
            said.contains(": it could determine the model alone"),
            "{said}"
        );
        assert_eq!(
            undeclared(&agreement(|text| declaring(text, &vec![40; n]))),
            None
        );
        // Nobody can weigh more than all others.
        let bound = |share: &str| {
            let line = format!("max-weight = {share}\nmax-model-norm = ");
            undeclared(&agreement(|text| text.replace("max-model-norm = ", &line)))
        };
        assert_eq!(bound("0.5"), None);
        assert!(bound("0.51").is_some());
    }

    #[test]
    fn rows_do_not_matter_where_neither_models_nor_a_scale_are_weighed_by_them() {
        let equal =
            |text: &str| text.replace("standardise = \"federation\"", "standardise = \"silo\"");
        // The strategy of the example compares models, and averages them with equal weights.
        assert!(!weighs_by_rows(&agreement(equal)));
        assert_eq!(undeclared(&agreement(equal)), None);
        let by_rows = |text: &str| {
            let text = equal(text).replace("name = \"cs-rcfl\"", "name = \"fedavg\"");
            let own = ["coalitions = 2", "freeze = 1", "folds = 5"];
            own.iter().fold(text, |text, line| text.replace(line, ""))
        };
        assert!(weighs_by_rows(&agreement(by_rows)));
    }

    #[test]
    fn with_noise_more_rows_than_declared_are_said_and_keep_nobody_out() {
        let keys = "epsilon = 1.0\nmin-authors = 3\ncolluders = 1\n";
        let noised = North::read(&North::noised(keys));
        let masked = North::masked("").replace("[[member]]\n", "[[member]]\nrows = 120\n");
        let masked = North::read(&masked);
        let me = MemberIndex(0);
        assert!(!exceeds(&noised, me, 120) && exceeds(&noised, me, 121));
        assert!(!exceeds(&masked, me, 121));
        let said = beyond(&noised, me, 121).unwrap();
        assert!(said.contains("takes part with all of them"), "{said}");
        let said = beyond(&masked, me, 121).unwrap();
        assert!(said.contains("its models weigh as much as 120"), "{said}");
    }

    #[test]
    fn other_own_rows_than_declared_are_said_with_what_follows() {
        let one = agreement(|text| declaring(text, &[40]));
        assert_eq!(beyond(&one, MemberIndex(0), 40), None);
        assert_eq!(beyond(&one, MemberIndex(1), 40_000), None);
        let said = beyond(&one, MemberIndex(0), 41).unwrap();
        assert!(
            said.starts_with("this institution has 41 training rows and declared 40: "),
            "{said}"
        );
        // So are far fewer.
        assert_eq!(beyond(&one, MemberIndex(0), 20), None);
        let said = beyond(&one, MemberIndex(0), 19).unwrap();
        assert!(
            said.starts_with("this institution has 19 training rows and declared 40: were all"),
            "{said}"
        );
    }
}
