//! What leaves an institution where sums are noised, what others could learn from it, and when it stops.

use agreement::{Agreement, bound};
use formatting::numbers::{self, plain, plural};
use protocol::charter::{Noise, Unit};
use protocol::privacy::Masked;

use super::masked::EXPERIMENTAL;
use crate::federation::FederationStart;
use crate::policy::LedgerRoom;

/// What leaves in a round.
pub(super) fn leaves(
    agreement: &Agreement,
    (masked, noise): (&Masked, &Noise),
    first: Option<&FederationStart>,
) -> Vec<String> {
    let size = match first {
        Some(first) => format!(" of {} numbers", numbers::count(first.parameters as u64)),
        None => String::new(),
    };
    vec![
        format!(
            "  in each of {}, one gradient{size}: the sum over its training rows, that of each {} clipped to norm {}, \
             with noise of its own, masked: to every member it looks like random numbers, with this institution's name",
            plural(agreement.epoch.charter.rounds as usize, "round"),
            match noise.unit {
                Unit::Row => "row",
                Unit::Person(_) => "person",
            },
            noise.clip.value()
        ),
        format!(
            "  one sum a round of all institutions that are ready, of at least {}, once a quorum has agreed on exactly \
             these authors: every member",
            plural(usize::from(masked.smallest_sum), "institution")
        ),
        "  that it is ready for a round, and when: every member. No loss and no metric leaves, and no number of rows \
         but the agreed one"
            .into(),
    ]
}

/// Both numbers for all agreed rounds, and what they hold for.
pub(super) fn together(agreement: &Agreement) -> Option<String> {
    let charter = &agreement.epoch.charter;
    let (bound, noise) = (bound(charter)?, charter.privacy.masked()?.noise()?);
    Some(format!(
        "all {} together: epsilon {} and epsilon_alone {}, both at delta {}, for {}",
        plural(charter.rounds as usize, "round"),
        bound.epsilon(),
        bound.alone(),
        bound.delta(),
        unit(&noise.unit)
    ))
}

/// What others could learn.
pub(super) fn learned(agreement: &Agreement, (masked, noise): (&Masked, &Noise)) -> Vec<String> {
    let charter = &agreement.epoch.charter;
    let both = together(agreement).map(|both| format!("  {both}"));
    let mut lines: Vec<_> = both.into_iter().collect();
    lines.extend([
        "  that means: with or without this one, all that is published is as likely up to a factor e^epsilon, but \
         for a probability of about delta; if all others pool what they know, up to a factor e^epsilon_alone"
            .to_owned(),
        format!(
            "  epsilon assumes that at most {}. Nobody can check this assumption; epsilon_alone holds \
             without it",
            pooling(masked.colluders, "member")
        ),
        "  a patient treated in two institutions counts twice, because both of them tell something about this patient"
            .into(),
    ]);
    if noise.unit == Unit::Row {
        lines.push("  a patient with several rows here counts once for each row".into());
    }
    lines.extend([
        "  the agreed numbers of rows (`rows` in [[silo]]), and who takes part when, are public: all members know them"
            .into(),
        "  settings that were tuned on private rows, such as rates and norms, tell about these rows, too, and are \
         not counted"
            .into(),
        "  other federations that learn from the same rows add to it: only a ledger of the institution counts them \
         all"
            .into(),
        "  who gets the common model learns no more than the members, because it is computed from the sums alone"
            .into(),
        format!(
            "  on this machine's disk: the clipped gradients with their noise and the secret of the round under way, \
             until it is adopted; masked vectors and sums of {}. Old pages of a disk, backups and snapshots keep what \
             was deleted",
            plural(charter.keep_rounds as usize, "round")
        ),
        format!("  {EXPERIMENTAL}"),
    ]);
    lines
}

/// When nothing more leaves; `room` is what the institution's own ledger has room for, where it has one.
pub(super) fn stops(agreement: &Agreement, room: Option<LedgerRoom>) -> Vec<String> {
    let rounds = plural(agreement.epoch.charter.rounds as usize, "round");
    let mut lines = vec![format!(
        "  after the {rounds} that are agreed on, or before, when a limit of the institution's ledger ([policy] in \
         silo.toml) is reached, whichever comes first"
    )];
    lines.extend(room.map(|LedgerRoom { left, fits }| {
        let of = plural(left as usize, "round");
        if fits < left {
            format!("  the ledger here has room for {fits} of the {of} to come")
        } else {
            format!("  the ledger here has room for all of the {of} to come")
        }
    }));
    lines.push("  from then on this node contributes nothing, and goes on voting".into());
    lines
}

/// So many members or institutions that tell each other what they know.
pub(super) fn pooling(colluders: u16, one: &str) -> String {
    match colluders {
        1 => format!("1 {one} shares what it knows"),
        some => format!("{some} {one}s pool what they know"),
    }
}

/// What one bound holds for.
fn unit(unit: &Unit) -> String {
    match unit {
        Unit::Row => "one row".into(),
        Unit::Person(column) => format!(
            "one person with all rows that have the same value in the column {}",
            plain(column)
        ),
    }
}
