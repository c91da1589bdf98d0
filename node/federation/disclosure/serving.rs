//! Data that leave an institution where the members decide together which model each serves, and what others could learn
//! from them.

use agreement::Agreement;

/// The models that are compared with the local one.
const MODELS: &str = "its robust local model, the model of its coalition, the mean of all coalitions' models and that of \
                      its coalition tuned on its rows";

/// Returns what leaves in clear; `seen` says who sees an entry.
pub(super) fn in_clear(agreement: &Agreement, seen: &str) -> Option<String> {
    agreement.serving.as_ref().map(|_| {
        format!(
            "  after the last round that learns, whether it has compared models on its own rows yet, and then, once, for \
             each of {MODELS}: by how much its loss on these rows is below that of the local model, and the standard \
             error of that: {seen}"
        )
    })
}

/// Returns what leaves under masks.
pub(super) fn masked(agreement: &Agreement) -> Option<String> {
    agreement.serving.as_ref().map(|_| {
        format!(
            "  after the last round that learns, whether it has compared models on its own rows yet, and then, once, by \
             how much the loss of {MODELS} is below that of the local model, masked: every member learns how many still \
             compare, and of each model four sums: of silos, of these advantages, of their squares, and of the squares \
             of their standard errors"
        )
    })
}

/// Returns what others could learn in clear.
pub(super) fn learned_in_clear(agreement: &Agreement) -> Option<String> {
    agreement.serving.as_ref().map(|_| {
        "  from the comparison of models: whether and by how much the model that this institution makes alone is better \
         or worse on its rows than those of the federation, how sure that is, and with zeros that it has few rows or was too slow"
            .to_owned()
    })
}

/// Returns what others could learn under masks.
pub(super) fn learned_masked(agreement: &Agreement) -> Option<String> {
    agreement.serving.as_ref().map(|_| {
        "  from the sums of the comparison: how much better models of the federation are than local ones on average, how unlike \
         institutions are in that, and how many have rows enough to compare; sums give no bound here either"
            .to_owned()
    })
}

/// Returns what a data protection officer reads of it, in a sentence; `whose` are the numbers that others see.
pub(super) fn officer(agreement: &Agreement, whose: &str) -> Option<String> {
    agreement.serving.as_ref().map(|_| {
        format!(
            "After the last round we compare models on our rows, and every member learns {whose} how much better the \
             models of the federation are than the local one."
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::federation::words;
    use crate::fixture::North;

    /// Returns what is told of the example, with or without this table.
    fn told(serving: &str) -> String {
        let first = "[[member]]\nname = \"north\"";
        let text = North::text(&[
            ("rounds = 6 ", "rounds = 40 "),
            ("blob-limit = 392", "blob-limit = 4000"),
            (first, &format!("{serving}{first}")),
        ]);
        words(&North::read(&text)).join("\n")
    }

    #[test]
    fn who_decides_together_reads_what_every_member_sees() {
        let told = told("[serving]\ntogether = true\n\n");
        for said in [
            "deciding together which model each serves, afterwards, in at most 26 rounds",
            "with the strategy cs-rcfl, in 14 rounds",
            "and the standard error of that: every member, without a name",
            "with zeros that it has few rows or was too slow",
            "every member learns of us how much better the models of the federation are",
        ] {
            assert!(told.contains(said), "{said}: {told}");
        }
    }

    #[test]
    fn who_decides_alone_reads_nothing_of_it() {
        let told = told("");
        for said in ["deciding together", "standard error", "has compared"] {
            assert!(!told.contains(said), "{said}: {told}");
        }
    }
}
