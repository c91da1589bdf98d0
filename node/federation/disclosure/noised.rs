//! What leaves an institution where sums are noised, what others could learn from it, and when it stops.

use agreement::Agreement;
use formatting::numbers::{self, plural};
use protocol::parameters::{Noise, Real, Release, Unit};
use protocol::privacy::Masked;

use super::masked::EXPERIMENTAL;
use super::together::{by_ledger, together};
use super::{ToldOfMode, officer};
use crate::federation::FederationStart;
use crate::policy::LedgerRoom;
use crate::spending::Spending;

/// Rounds that open a sum with noise of all that are ready.
pub(super) struct NoisedSum<'a>(pub(super) &'a Masked, pub(super) &'a Noise);

impl ToldOfMode for NoisedSum<'_> {
    fn leaves(&self, agreement: &Agreement, first: Option<&FederationStart>) -> Vec<String> {
        leaves(agreement, (self.0, self.1), first)
    }

    fn learned(
        &self,
        agreement: &Agreement,
        _: Option<&FederationStart>,
        _: Option<usize>,
        spending: &Spending,
    ) -> Vec<String> {
        learned(agreement, (self.0, self.1), spending)
    }

    fn further(&self, agreement: &Agreement, room: Option<LedgerRoom>) -> Vec<String> {
        let mut lines = vec![String::new(), "When it stops:".into()];
        lines.extend(stops(agreement, self.0, room));
        lines.extend([String::new(), "Whether it is worth it:".into()]);
        lines.extend(worth(agreement));
        lines
    }

    fn brief(&self, agreement: &Agreement, spending: &Spending) -> Vec<String> {
        brief(agreement, (self.0, self.1), spending)
    }

    fn officer(&self, agreement: &Agreement, spending: &Spending) -> Vec<String> {
        let bound = officer::with_noise(agreement, (self.0, self.1), spending);
        officer::of_sums(self.0, bound)
    }

    fn waits(&self, missing: &str) -> String {
        let fewest = self.0.fewest_authors();
        format!("a sum with noise needs {fewest} institutions, and {missing} is not ready")
    }

    fn made_anew(&self) -> &'static str {
        " and new noise, which every ledger counts again"
    }
}

/// Returns what leaves in a round.
fn leaves(
    agreement: &Agreement,
    (masked, noise): (&Masked, &Noise),
    first: Option<&FederationStart>,
) -> Vec<String> {
    let parameters = first.map(|first| first.parameters as u64);
    let sent = match noise.release {
        Release::Steps => gradient(agreement, noise, parameters),
        Release::Once {
            rows_norm,
            targets_within,
            ..
        } => products(noise, (rows_norm, targets_within), parameters),
    };
    let (each, solved) = match noise.release {
        Release::Steps => (" a round", ""),
        Release::Once { .. } => ("", ", which solves the model from it"),
    };
    vec![
        format!(
            "  {sent}, with noise of its own, masked: to every member it looks like random numbers, with this \
             institution's name"
        ),
        format!(
            "  one sum{each} of all institutions that are ready, of at least {}, once a quorum has agreed on exactly \
             these authors: every member{solved}",
            plural(usize::from(masked.smallest_sum), "institution")
        ),
        "  that it is ready for a round, and when: every member. It sends no loss, no metric, and no number of \
         rows but the agreed one"
            .into(),
    ]
}

/// The gradient of every round, of models with so many numbers.
fn gradient(agreement: &Agreement, noise: &Noise, parameters: Option<u64>) -> String {
    let size = parameters.map(|of| format!(" of {} numbers", numbers::count(of)));
    format!(
        "in each of {}, one gradient{}: the sum over its training rows, that of each {} clipped to norm {}",
        plural(agreement.epoch.protocol.rounds as usize, "round"),
        size.unwrap_or_default(),
        match noise.unit {
            Unit::Row => "row",
            Unit::Person(_) => "person",
        },
        noise.clip.value()
    )
}

/// The sums of products that a model with so many numbers is solved from.
fn products(noise: &Noise, (rows, targets): (Real, Real), parameters: Option<u64>) -> String {
    // Of every two of them, of each with itself, and of each with the target.
    let size = parameters.map(|of| format!(" of {} numbers", numbers::count(of * (of + 3) / 2)));
    let person = match noise.unit {
        Unit::Row => String::new(),
        Unit::Person(_) => format!(
            ", what all rows of a person add clipped to norm {}",
            noise.clip.value()
        ),
    };
    format!(
        "in the only round, one list{}: the sums over its training rows of the products of every two columns, and of \
         every column with the target, each row shortened to norm {} with a 1 for the intercept, each target brought \
         within ±{}{person}",
        size.unwrap_or_default(),
        rows.value(),
        targets.value()
    )
}

/// Returns what others could learn.
fn learned(
    agreement: &Agreement,
    (masked, noise): (&Masked, &Noise),
    spending: &Spending,
) -> Vec<String> {
    let protocol = &agreement.epoch.protocol;
    let said = together(agreement, noise, spending).into_iter();
    let said = said.chain(by_ledger(spending));
    let mut lines: Vec<_> = said.map(|said| format!("  {said}")).collect();
    lines.extend([
        "  a bound means: with or without it, nothing that is published becomes more than e^epsilon times as likely, \
         except with probability about delta; if all others collude, e^epsilon_alone times"
            .to_owned(),
        format!(
            "  epsilon assumes that at most {}. Nobody can check this assumption; epsilon_alone holds \
             without it",
            officer::colluding(masked.colluders, "member")
        ),
        "  a patient treated in two institutions counts twice, because both of them disclose something about this \
         patient"
            .into(),
    ]);
    if noise.unit == Unit::Row {
        lines.push("  a patient with several rows here counts once for each row".into());
    }
    lines.extend([
        "  the agreed numbers of rows (`rows` in [[member]]), and who takes part when, are public: all members know \
         them"
            .into(),
        "  settings that were tuned on private rows, such as learning rates and norms, also disclose something \
         about these rows, which is not counted"
            .into(),
        "  other federations that learn from the same rows add to it: only a ledger of the institution counts them \
         all"
            .into(),
        "  whoever gets the global model learns no more than the members, because it is computed from the sums alone"
            .into(),
        format!(
            "  on this machine's disk: the {} with their noise and the secret of the round under way, until it is \
             adopted; masked vectors and sums of {}. Old pages of a disk, backups and snapshots keep what was \
             deleted",
            match noise.release {
                Release::Steps => "clipped gradients",
                Release::Once { .. } => "sums of products",
            },
            plural(protocol.keep_rounds as usize, "round")
        ),
        format!("  {EXPERIMENTAL}"),
    ]);
    lines
}

/// Returns what others learn, in a few sentences.
fn brief(
    agreement: &Agreement,
    (masked, noise): (&Masked, &Noise),
    spending: &Spending,
) -> Vec<String> {
    let fewest = plural(usize::from(masked.smallest_sum), "institution");
    let (sum, go_on) = match noise.release {
        Release::Steps => ("one sum a round", "rounds continue"),
        Release::Once { .. } => ("one sum", "the round continues"),
    };
    let learned = format!(
        "every member learns who takes part, and when, and {sum}, with noise, of at least {fewest}"
    );
    let down = format!(
        "if one institution is down, {go_on} without it, as long as at least {fewest} are ready"
    );
    let bound = together(agreement, noise, spending).into_iter();
    let bound = bound.chain(by_ledger(spending));
    let said = [learned].into_iter().chain(bound).chain([down]);
    said.chain([EXPERIMENTAL.into()]).collect()
}

/// Returns when nothing more leaves; `room` is what the institution's own ledger has room for, where it has one.
fn stops(agreement: &Agreement, masked: &Masked, room: Option<LedgerRoom>) -> Vec<String> {
    let after = match agreement.epoch.protocol.rounds {
        1 => "the only round that is agreed on".to_owned(),
        more => format!("the {} that are agreed on", plural(more as usize, "round")),
    };
    let mut lines = vec![format!(
        "  after {after}, or before, when a limit of the institution's ledger ([policy] in node.toml) is reached, \
         whichever comes first"
    )];
    lines.extend(room.map(|LedgerRoom { left, fits }| {
        let what = match (left, fits) {
            (1, 0) => "no room for the round to come".to_owned(),
            (1, _) => "room for the round to come".to_owned(),
            (left, fits) if fits < left => {
                let of = plural(left as usize, "round");
                format!("room for {fits} of the {of} to come")
            }
            (left, _) => {
                let of = plural(left as usize, "round");
                format!("room for all of the {of} to come")
            }
        };
        format!("  the ledger here has {what}")
    }));
    lines.push("  from then on this node contributes nothing, but still votes".into());
    lines.push(corrupted(agreement, masked));
    lines
}

/// Returns what becomes of sums that a member corrupts.
fn corrupted(agreement: &Agreement, masked: &Masked) -> String {
    let then = if masked.may_search(agreement.epoch.roster.len()) {
        "rounds then open two sums, each of half of those that are ready, until one suspect is left, which is in no \
         sum until the agreement changes; they end if more than one corrupts them"
    } else {
        "after three such rounds they end until the agreement changes, and nobody is searched, because \
         `min-authors` is more than half of the members"
    };
    format!("  sums that an institution corrupts (void) tell nothing and cost as much: {then}")
}

/// Returns whether joining is worth it, as far as the agreement tells.
fn worth(agreement: &Agreement) -> Vec<String> {
    let silos = agreement.epoch.roster.silos();
    let rows = silos.iter().filter_map(|silo| silo.rows).sum();
    vec![
        format!(
            "  noise makes the global model less accurate, the more so the fewer institutions and rows take part: \
             here {} with {} rows in all",
            plural(silos.len(), "institution"),
            numbers::count(rows)
        ),
        "  joining is worth it only if that model is still better than one that this institution trains alone. \
         This page cannot tell: before the first round `rota advise` simulates such a federation with its noise on \
         public or synthetic rows, and advises to join or not"
            .into(),
    ]
}
