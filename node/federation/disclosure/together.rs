//! What noise bounds, in sentences: of all that an institution contributed and of the rounds to come.

use agreement::Agreement;
use formatting::numbers::{plain, plural};
use privacy::accountant::{Bound, Delta};
use protocol::parameters::{Noise, Unit};

use crate::spending::{SoFar, Spending};

/// δ of an agreement on noise.
pub(super) fn delta(noise: &Noise) -> Option<Delta> {
    // A parameter set with another one is refused.
    Delta::new(noise.delta.value()).ok()
}

/// The sentences, without full stops: both numbers for all rounds first, then what is among them and what is
/// beside them.
pub(super) fn together(agreement: &Agreement, noise: &Noise, spending: &Spending) -> Vec<String> {
    let Some(delta) = delta(noise) else {
        return Vec::new();
    };
    let (what, bound) = (all_rounds(spending), spending.together(delta));
    let for_one = unit(&noise.unit);
    let first = match why_no_bound(spending, &bound) {
        None => format!("{what}: {}, for {for_one}", both(&bound)),
        Some(why) => format!("{what}: no bound for {for_one}, because {why}"),
    };
    let so_far = spending.so_far.as_ref();
    let before = so_far.is_some_and(|so_far| so_far.contributions > 0);
    let more = before && spending.to_come > 0 && !spending.is_of_agreed_rounds();
    let alone = more.then(|| {
        let bound = spending.alone(delta);
        format!("{} alone: {}", to_come(spending.to_come), both(&bound))
    });
    let beside = beside(agreement, spending).into_iter();
    let unlisted = so_far.map_or(0, |so_far| so_far.unlisted);
    let unlisted = (unlisted > 0).then(|| {
        format!(
            "the ledger here has no line of {} of these, so what it says is too little",
            plural(unlisted as usize, "contribution")
        )
    });
    let all = [first].into_iter().chain(alone);
    let all = all.chain(beside).chain(unlisted);
    all.chain(does_not_hold(agreement)).collect()
}

/// Why the numbers do not hold, in an agreement of a time when that was not known.
pub(super) fn does_not_hold(agreement: &Agreement) -> Option<String> {
    let (key, what) = agreement.split_fault()?;
    Some(format!(
        "these numbers do not hold under this agreement, and nobody can say which ones do: `{key}` {what}. Continue \
         in a new federation (`rota federation continue` writes it)"
    ))
}

/// The numbers of the institution's own ledger, for its pages.
pub(super) fn by_ledger(spending: &Spending) -> Option<String> {
    let numbers = ledger_numbers(spending)?;
    Some(format!(
        "the ledger here, over all federations of these rows: {numbers}"
    ))
}

/// Returns what the institution's own ledger counts so far, and after the rounds to come.
pub(super) fn ledger_numbers(spending: &Spending) -> Option<String> {
    let bounds = spending.by_ledger()?;
    let then = match spending.to_come {
        0 => String::new(),
        more => {
            let (epsilon, alone) = (bounds.then.epsilon(), bounds.then.alone());
            format!(
                ", and epsilon {epsilon} and epsilon_alone {alone} after {}",
                to_come(more)
            )
        }
    };
    Some(format!("{} so far{then}", both(&bounds.now)))
}

/// `epsilon 1.0000 and epsilon_alone 1.4652, both at delta 1e-5`.
fn both(bound: &Bound) -> String {
    format!(
        "epsilon {} and epsilon_alone {}, both at delta {}",
        bound.epsilon(),
        bound.alone(),
        bound.delta()
    )
}

/// Why nothing bounds what is told, in words; `None` if something does.
pub(super) fn why_no_bound(spending: &Spending, bound: &Bound) -> Option<String> {
    if bound.epsilon().is_bound() {
        return None;
    }
    let so_far = spending.so_far.as_ref();
    Some(match so_far.map_or(0, |so_far| so_far.without_noise) {
        0 => "the noise of a round is too little".into(),
        some => format!(
            "{} so far had no noise",
            plural(some as usize, "contribution")
        ),
    })
}

/// The rounds that a bound is for, in words.
fn all_rounds(spending: &Spending) -> String {
    let so_far = match &spending.so_far {
        Some(so_far) if !spending.is_of_agreed_rounds() => so_far,
        _ => {
            return match spending.agreed {
                1 => "the only round".into(),
                more => format!("all {} together", plural(more as usize, "round")),
            };
        }
    };
    let done = contributions(so_far);
    match (so_far.contributions, spending.to_come) {
        (0, more) => to_come(more),
        (_, 0) => format!("{done} together"),
        (_, more) => format!("{done} and {} together", to_come(more)),
    }
}

/// `at most 5 contributions so far (3 of them under earlier agreements)`.
fn contributions(so_far: &SoFar) -> String {
    let most = if so_far.assumed > 0 { "at most " } else { "" };
    let among = [
        (so_far.continued.unwrap_or(0), "to an earlier federation"),
        (so_far.earlier, "before the last change of the agreement"),
        (so_far.without_noise, "without noise"),
    ];
    let among = among.into_iter().filter(|(some, _)| *some > 0);
    let among: Vec<_> = among
        .map(|(some, what)| format!("{some} of them {what}"))
        .collect();
    let among = match among.len() {
        0 => String::new(),
        _ => format!(" ({})", among.join(", ")),
    };
    let all = plural(so_far.contributions as usize, "contribution");
    format!("{most}{all} so far{among}")
}

fn to_come(rounds: u64) -> String {
    match rounds {
        1 => "the round to come".into(),
        more => format!("the {} to come", plural(more as usize, "round")),
    }
}

/// Returns what the numbers do not count, as far as it is known.
fn beside(agreement: &Agreement, spending: &Spending) -> Option<String> {
    let Some(so_far) = &spending.so_far else {
        return Some(
            "these are the rounds under this agreement only: rounds before a change of it, rounds that are done \
             again, and a federation that it continues add to them (`rota check` of a node counts them)"
                .into(),
        );
    };
    let earlier = agreement.continues.as_ref()?;
    let name = plain(&earlier.name);
    Some(match so_far.continued {
        Some(lines) => format!(
            "among them are {} to the federation {name}, which this one continues; what that one continued itself, if \
             it did, is beside this",
            plural(lines as usize, "contribution")
        ),
        None if spending.by_ledger().is_some() => format!(
            "this is beside what the federation {name}, which this one continues, told of rows here: the ledger \
             here has no line of it"
        ),
        None => format!(
            "this is beside what the federation {name}, which this one continues, told of rows here: only a \
             ledger of these rows counts it"
        ),
    })
}

/// Returns what one bound holds for.
fn unit(unit: &Unit) -> String {
    match unit {
        Unit::Row => "one row".into(),
        Unit::Person(column) => format!(
            "one person with all rows that have the same value in the column {}",
            plain(column)
        ),
    }
}
