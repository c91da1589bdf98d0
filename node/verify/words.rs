//! Result of verifying a state folder, as text.

use std::io::{self, Write};

use super::state::Verified;
use formatting::numbers::{plain, plural, verb};

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
            "chain     {}, {}, each after the one before it{but}; the authors of every round signed its manifest",
            plural(*blocks, "final block"),
            plural(*rounds, "round"),
        )?;
        for missing in &self.missing {
            writeln!(out, "missing   {}", missing.sentence())?;
        }
        writeln!(
            out,
            "quorum    {}, all signatures verified; {}, signed by it",
            plural(*certificates, "certificate"),
            plural(*signed, "message") + " of this silo",
        )?;
        for (round, lost) in &self.recoveries {
            let lost: Vec<_> = lost.iter().map(|member| plain(member)).collect();
            let lost = lost.join(", ");
            writeln!(
                out,
                "recovery  after round {round} the other members continued without {lost} and without a quorum; \
                 all of them signed that"
            )?;
        }
        let missing = match missing_blobs {
            0 => String::new(),
            some => format!(
                "; of those that the journal names, {some} {} not here",
                verb(*some, "is", "are")
            ),
        };
        writeln!(
            out,
            "blobs     {} (models, outcomes and manifests) with the agreed {}{missing}",
            plural(*blobs, "file"),
            verb(*blobs, "hash", "hashes"),
        )?;
        let computed = spans(&self.computed);
        if self.computed.is_empty() {
            writeln!(out, "rounds    none was computed again")?
        } else {
            writeln!(
                out,
                "rounds    {computed} computed again: plan, decision and outcome are as agreed"
            )?
        }
        for not in &self.not_computed {
            let which: Vec<_> = (not.from..=not.to).collect();
            writeln!(
                out,
                "          {} not computed again: {}",
                spans(&which),
                plain(&not.why)
            )?;
        }
        for (round, members) in self.left_out.iter().filter(|(_, left)| !left.is_empty()) {
            let were = verb(members.len(), "contribution was", "contributions were");
            let members: Vec<_> = members.iter().map(|member| plain(member)).collect();
            let members = members.join(", ");
            writeln!(
                out,
                "          round {round} was finished without {members}, whose {were} asked for"
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
