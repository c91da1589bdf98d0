//! What was verified in a state folder, as text.

use std::io::{self, Write};

use super::state::Verified;
use formatting::numbers::plain;

impl Verified {
    /// Writes what was verified, as text.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            federation_name,
            federation,
            silo,
            blocks,
            rounds,
            certificates,
            signed,
            blobs,
            missing_blobs,
            ..
        } = self;
        let (name, silo) = (plain(federation_name), plain(silo));
        writeln!(out, "{silo} in the federation {name} ({federation})")?;
        let but = if self.missing.is_empty() {
            ""
        } else {
            ", except where blocks are missing"
        };
        writeln!(
            out,
            "chain     {blocks} final blocks with {rounds} rounds, each after the one before it{but}; the \
             authors of every round signed for its sheet"
        )?;
        for missing in &self.missing {
            writeln!(out, "missing   {}", missing.sentence())?;
        }
        writeln!(
            out,
            "quorum    {certificates} certificates, all signatures verified; {signed} messages of this silo, \
             signed by it"
        )?;
        for (round, lost) in &self.recoveries {
            let lost: Vec<_> = lost.iter().map(|member| plain(member)).collect();
            let lost = lost.join(", ");
            writeln!(
                out,
                "recovery  after round {round} the other members went on without {lost} and without a \
                 quorum; all of them signed for it"
            )?;
        }
        let missing = match missing_blobs {
            0 => String::new(),
            some => format!("; {some} that the journal names are not here"),
        };
        writeln!(
            out,
            "blobs     {blobs} models, outcomes and sheets have the hashes that were agreed on{missing}"
        )?;
        let computed = spans(&self.computed);
        if self.computed.is_empty() {
            writeln!(out, "rounds    none could be computed again")?
        } else {
            writeln!(
                out,
                "rounds    {computed} computed again: plan, decision and outcome are what was agreed on"
            )?
        }
        for not in &self.not_computed {
            let which: Vec<_> = (not.from..=not.to).collect();
            writeln!(out, "          {} not: {}", spans(&which), plain(&not.why))?;
        }
        for (round, members) in self.left_out.iter().filter(|(_, left)| !left.is_empty()) {
            let members: Vec<_> = members.iter().map(|member| plain(member)).collect();
            let members = members.join(", ");
            writeln!(
                out,
                "          round {round} was asked of, and is without: {members}"
            )?;
        }
        Ok(())
    }
}

/// Ascending numbers, as `1 to 4, 6`.
fn spans(rounds: &[u64]) -> String {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for &round in rounds {
        match spans.last_mut() {
            Some((_, to)) if *to + 1 == round => *to = round,
            _ => spans.push((round, round)),
        }
    }
    let words = spans.iter().map(|(from, to)| {
        if from == to {
            from.to_string()
        } else {
            format!("{from} to {to}")
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_joined_to_spans() {
        assert_eq!(spans(&[1, 2, 3, 5, 7, 8]), "1 to 3, 5, 7 to 8");
        assert_eq!(spans(&[]), "");
    }
}
