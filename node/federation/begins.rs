//! Whether a federation can begin with an agreement: asked at every door, before anything is sent or signed.

use std::fmt;

use agreement::{Agreement, DeltaDoubt};
use protocol::Hash;

use super::start::{FirstError, first_under, too_large};
use crate::model::{GivenStart, START};

/// Why no node can begin under an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeginFault {
    /// Keys do not follow from task, strategy and seed, which somebody changed since they were written.
    Stale(StaleKeys),
    /// Something else is wrong, in a sentence without a full stop.
    Other(String),
}

/// Keys of an agreement that are not what its task, strategy and seed give.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaleKeys {
    /// The `start` that is written, and the one that follows.
    start: Option<(Hash, Hash)>,
    /// The `blob-limit` that is written, and the bytes of a contribution.
    limit: Option<(u64, u64)>,
}

impl StaleKeys {
    /// The lines with which the agreement would begin, in place of those with the same keys.
    pub fn lines(&self) -> Vec<String> {
        let start = self
            .start
            .map(|(_, start)| format!("start = \"{start:#}\""));
        let limit = self.limit.map(|(_, size)| format!("blob-limit = {size}"));
        start.into_iter().chain(limit).collect()
    }
}

impl BeginFault {
    /// The lines that mend it, in place of those with the same keys; none where lines do not.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Stale(keys) => keys.lines(),
            Self::Other(_) => Vec::new(),
        }
    }
}

impl fmt::Display for BeginFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = match self {
            Self::Other(why) => return f.write_str(why),
            Self::Stale(keys) => keys,
        };
        let start = keys.start.map(|(agreed, found)| {
            format!("`start` is {agreed}, and task, strategy and seed give {found}")
        });
        let limit = keys.limit.map(|(limit, size)| {
            format!("`blob-limit` is {limit}, and a contribution has {size} bytes")
        });
        let why: Vec<String> = start.into_iter().chain(limit).collect();
        write!(
            f,
            "{}: the agreement was changed by hand, or another version of Rota wrote it. If the change is meant, \
             whoever drafted it writes these lines in place of those with the same keys, and invites all members \
             anew:\n{}",
            why.join("; "),
            keys.lines().join("\n")
        )
    }
}

/// Whether nodes can begin with an agreement, as far as can be told without anybody's rows. The text says what its
/// `start` follows from.
///
/// # Errors
/// [`BeginFault`]: the first thing that is wrong, with what mends it.
pub fn begins(agreement: &Agreement) -> Result<String, BeginFault> {
    let other = |why: &dyn fmt::Display| BeginFault::Other(why.to_string());
    agreement.may_begin().map_err(|why| other(&why))?;
    if let Some((key, what)) = agreement.split_fault() {
        return Err(BeginFault::Other(format!(
            "in this agreement `{key}` {what}"
        )));
    }
    if let Some(doubt) = DeltaDoubt::of(&agreement.epoch).filter(DeltaDoubt::is_refused) {
        return Err(other(&doubt));
    }
    follows(agreement)
}

/// Returns whether `start` and `blob-limit` follow from task, strategy and seed.
///
/// # Errors
/// [`BeginFault`]: as of [`begins`].
pub fn follows(agreement: &Agreement) -> Result<String, BeginFault> {
    let protocol = &agreement.epoch.protocol;
    let start = protocol.start;
    if let Some(continues) = &agreement.continues {
        return Ok(format!(
            "`start` is {start}; it follows from the model of round {} of {}, and a node that has the \
             model computes it again",
            continues.round, continues.name
        ));
    }
    if let Some(why) = too_large(agreement) {
        return Err(BeginFault::Other(why));
    }
    match first_under(agreement) {
        Ok(first) => {
            let limit = protocol.blob_limit;
            let stale = StaleKeys {
                start: (first.start != start).then_some((start, first.start)),
                limit: (first.largest > limit).then_some((limit, first.largest)),
            };
            match stale == StaleKeys::default() {
                false => Err(BeginFault::Stale(stale)),
                true => Ok(format!(
                    "`start` is {start}, and computing it again gives the same: a model of {} numbers",
                    first.parameters
                )),
            }
        }
        Err(FirstError::Programs) if GivenStart::of(agreement).is_some() => Ok(format!(
            "`start` is {start}; it follows from the values that the proposer's program held, and a node \
             that has the file {START} computes it again"
        )),
        Err(FirstError::Programs) => Ok(format!(
            "`start` is {start}; every node computes it from the initial model of its program"
        )),
        Err(FirstError::OwnData | FirstError::Data(_)) => Ok(format!(
            "`start` is {start}; it is computed when the node reads the task's own data"
        )),
        Err(error) => Err(BeginFault::Other(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::North;

    /// The text with these lines in place of those with the same keys.
    fn mended(text: &str, lines: &[String]) -> String {
        let key = |line: &str| line.split('=').next().map(|key| key.trim().to_owned());
        let new = |line: &str| {
            lines
                .iter()
                .find(|new| line.contains('=') && key(new) == key(line))
        };
        let lines = text
            .lines()
            .map(|line| new(line).map_or(line, String::as_str));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_start_of_the_example_is_computed_again() {
        let said = begins(&North::agreement(&[]));
        assert!(said.is_ok_and(|said| said.contains("gives the same")));
    }

    /// Edits after which no node could begin, each mended by the lines that are printed.
    #[test]
    fn an_edit_that_nothing_follows_from_is_refused_with_the_lines_that_mend_it() {
        for (from, to) in [
            ("start = \"cfac", "start = \"cfad"),
            ("blob-limit = 392", "blob-limit = 64"),
            (
                "\"general\", \"intensive\"]",
                "\"general\", \"intensive\", \"icu\"]",
            ),
            (
                "[\"age\", \"severity\"]",
                "[\"age\", \"severity\", \"pulse\"]",
            ),
            ("name = [\"age\", \"severity\"]", "name = \"age\""),
            ("other = false", "other = true"),
        ] {
            let text = North::text(&[(from, to)]);
            let fault = begins(&North::read(&text)).expect_err(to);
            let lines = fault.lines();
            assert!(!lines.is_empty(), "{to}: {fault}");
            let said = fault.to_string();
            assert!(lines.iter().all(|line| said.contains(line)), "{said}");
            let again = begins(&North::read(&mended(&text, &lines)));
            assert!(again.is_ok(), "{to}: {again:?}");
        }
    }

    #[test]
    fn what_does_not_hold_is_refused_too() {
        let noised = North::beginning(&North::noised("noise-multiplier = 20.0\nmin-authors = 3\n"));
        assert!(begins(&North::read(&noised)).is_ok());
        let dealt = noised.replacen(", keyed = true", "", 1);
        for text in [dealt, noised.replace("rows = 120", "rows = 40000")] {
            let fault = begins(&North::read(&text));
            assert!(matches!(fault, Err(BeginFault::Other(_))), "{fault:?}");
        }
    }
}
