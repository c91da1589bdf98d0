//! What leaves an institution where sums are masked and noised, and what others could learn from it.

use agreement::Agreement;
use formatting::numbers::{self, plural};
use protocol::charter::{Noise, Unit};
use protocol::privacy::Masked;

use super::masked::EXPERIMENTAL;
use crate::federation::FederationStart;

/// What leaves in a round.
pub(super) fn leaves(
    agreement: &Agreement,
    (masked, noise): (&Masked, &Noise),
    first: Option<&FederationStart>,
) -> Vec<String> {
    let rounds = plural(agreement.epoch.charter.rounds as usize, "round");
    let size = match first {
        Some(first) => format!(" of {} numbers", numbers::count(first.parameters as u64)),
        None => String::new(),
    };
    vec![
        format!(
            "  in each of {rounds}, one gradient{size}: the sum over its training rows, that of each {} clipped to \
             norm {}, with noise of its own, masked: to every member it looks like random numbers, with this \
             institution's name",
            unit(noise),
            noise.clip.value()
        ),
        format!(
            "  one sum a round of all institutions that are ready, of at least {}, once a quorum has agreed on \
             exactly these authors: every member",
            plural(usize::from(masked.smallest_sum), "institution")
        ),
        "  that it is ready for a round, and when: every member. No loss and no metric leaves, and no number of \
         rows but the agreed one"
            .into(),
    ]
}

/// What others could learn.
pub(super) fn learned(agreement: &Agreement, (masked, noise): (&Masked, &Noise)) -> Vec<String> {
    let mut lines = Vec::new();
    let charter = &agreement.epoch.charter;
    if let Some(bound) = agreement::bound(charter) {
        lines.push(format!(
            "  with or without one {}, all that {} open is as likely up to a factor e^epsilon, but for a \
             probability of about delta: {bound}",
            unit(noise),
            plural(charter.rounds as usize, "round")
        ));
        lines.push(format!(
            "  epsilon {} holds as long as at most {} pool what they know, leads among them. If more do, masks \
             give nothing, only this institution's own noise is left, and epsilon is {}",
            bound.epsilon(),
            plural(usize::from(masked.colluders), "member"),
            bound.alone()
        ));
    }
    lines.extend(
        [
            "  a patient treated in two institutions counts twice",
            "  the agreed numbers of rows, and who takes part when, are known to all members",
            "  settings that were chosen by trying them on these rows are not counted",
        ]
        .map(str::to_owned),
    );
    lines.push(format!(
        "  on this machine's disk: the clipped gradients with their noise and the secret of the round under way, \
         until it is adopted; masked vectors and sums of {}. Old pages of a disk, backups and snapshots keep what \
         was deleted",
        plural(charter.keep_rounds as usize, "round")
    ));
    lines.push(format!("  {EXPERIMENTAL}"));
    lines
}

/// One of what the noise hides.
fn unit(noise: &Noise) -> String {
    match &noise.unit {
        Unit::Row => "row".into(),
        Unit::Person(column) => format!("person (column {})", numbers::plain(column)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::federation::disclosure;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    #[test]
    fn every_sentence_is_said_and_epsilon_alone_stands_beside_epsilon() {
        let mut text = EXAMPLE
            .replace("format = 1 ", "format = 3 ")
            .replace(
                "name = \"cs-rcfl\"",
                "name = \"fedavg\"\nweight = \"equal\"",
            )
            .replace("standardise = \"federation\"", "standardise = \"none\"")
            .replace("missing = \"mean\"", "missing = \"drop\"")
            .replace("rounds = 6 ", "rounds = 40 ");
        for line in [
            "coalitions = 2",
            "freeze = 1",
            "folds = 5",
            "max-model-norm = 1000.0",
            "min-contributions = 3",
        ] {
            text = text.replace(line, "");
        }
        let (head, _) = text.split_once("[[silo]]").unwrap();
        let mut head: toml::Table = toml::from_str(head).unwrap();
        let training = "epochs = 1\nbatch = 0\noptimiser = { name = \"sgd\", rate = 0.5 }";
        head["strategy"]["training"] = toml::from_str(training).unwrap();
        let head = toml::to_string(&head).unwrap();
        let silo = |i: usize| {
            let key = protocol::SecretKey::from_bytes(&[i as u8 + 1; 32]).public();
            format!("[[silo]]\nname = \"clinic {i}\"\nkey = \"{key}\"\nrows = 300\n\n")
        };
        let silos: String = (0..4).map(silo).collect();
        let privacy = "[privacy]\nmode = \"masked+noised\"\nepsilon = 1.0\n";
        let text = format!("{head}{privacy}{silos}");
        let agreement = Agreement::parse("federation.toml", &text);
        let agreement = agreement.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let page = disclosure(&agreement, None).join("\n");
        for said in [
            "that of each row clipped to norm 1, with noise of its own",
            "of at least 3 institutions",
            "epsilon 1.0000 (1.4652 if all others pool what they know), delta 1e-5",
            "epsilon 1.0000 holds as long as at most 1 member pool",
            "and epsilon is 1.4652",
            "a patient treated in two institutions counts twice",
            "the agreed numbers of rows, and who takes part when, are known",
            "settings that were chosen by trying them on these rows are not counted",
            EXPERIMENTAL,
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
        assert!(!page.contains("bound nothing about patients"), "{page}");
    }
}
