//! Prints what is proposed, what it changes, and who approves it.

use std::io::{self, BufWriter, Write};

use crate::federation::{OwnSide, examined, newcomers, whole_text};
use crate::institution::KnownAmendment;
use crate::institution::short_id::shown;
use crate::spending::ContributionHistory;
use agreement::{Agreement, bound, bytes_of_round};
use formatting::numbers;
use protocol::member::KEPT;
use silo::threads::caught;

use super::{AgreementInForce, NodeCommandError, failed, wrapped};

/// Stands before the names of those whose approval is needed besides that of a quorum.
pub(super) const UNHEARD: &str =
    "the change affects their aggregation group, so it also needs the approval of";

impl AgreementInForce {
    /// Prints all known changes of the agreement in force. One that cannot be read hides no other.
    pub(super) fn changes(&self, text: bool) -> Result<(), NodeCommandError> {
        let epoch = &self.agreement.epoch;
        let mut out = BufWriter::new(io::stdout().lock());
        let so_far = numbers::plural(epoch.number as usize, "change");
        let line = format!("{}: {so_far} of the agreement so far", epoch.protocol.name);
        writeln!(out, "{}", wrapped(&line))?;
        let known = self.known();
        if known.is_empty() {
            writeln!(out, "no change is proposed")?;
        }
        let own = known.iter().filter(|known| self.stands(known));
        let own: Vec<String> = own.map(|known| shown(&known.hash())).collect();
        if own.len() >= KEPT {
            let line = format!(
                "this institution approves {} changes, and may approve {KEPT} at a time: before it proposes or \
                 approves another, withdraw one of {} (rota federation withdraw ID)",
                own.len(),
                own.join(", ")
            );
            writeln!(out, "{}", wrapped(&line))?;
        }
        let mut unreadable = 0;
        for known in &known {
            unreadable += usize::from(self.show(&mut out, known, text)?.is_err());
            writeln!(out, "  {}", self.own_word(known))?;
        }
        for unused in &self.found.unused {
            unreadable += 1;
            writeln!(
                out,
                "{}",
                wrapped(&format!("unreadable: {}", unused.line()))
            )?;
        }
        out.flush()?;
        match unreadable {
            0 => Ok(()),
            1 => Err(failed(
                "one amendment cannot be read: see above, where the others are shown as well",
            )),
            more => Err(failed(format!(
                "{more} amendments or files cannot be read: see above, where the others are shown as well"
            ))),
        }
    }

    /// Returns what this institution says to an amendment, and what it can say.
    fn own_word(&self, known: &KnownAmendment) -> String {
        let hash = known.hash();
        let id = shown(&hash);
        let word = self.found.word(&hash);
        match self.stands(known) {
            true => format!("approved here: rota federation withdraw {id} takes it back"),
            false if word.is_some() => format!("withdrawn here: rota federation approve {id}"),
            false => format!("not approved here: rota federation approve {id}"),
        }
    }

    /// Returns whether this institution approves it.
    fn stands(&self, known: &KnownAmendment) -> bool {
        let word = self.found.word(&known.hash());
        let me = &self.institution.me;
        word.map_or(known.approved.contains(me), |word| word.stands)
    }

    /// Prints an amendment; fails if it cannot be read.
    pub(super) fn print(&self, known: &KnownAmendment, text: bool) -> Result<(), NodeCommandError> {
        let mut out = BufWriter::new(io::stdout().lock());
        let shown = self.show(&mut out, known, text)?;
        out.flush()?;
        shown.map_err(failed)
    }

    /// Returns what is known of the institution's own side under an agreement, with what it contributed by then.
    fn own(
        &self,
        agreement: &Agreement,
        by_then: impl Fn(&ContributionHistory) -> ContributionHistory,
    ) -> OwnSide {
        let contributed = self.contributed.as_ref().map(by_then);
        let site = &self.institution.site;
        OwnSide {
            spending: contributed.map(|history| site.spending(agreement, &history)),
            ..OwnSide::default()
        }
    }

    /// Returns what an amendment changes, one line each.
    ///
    /// # Errors
    /// The reason for which it cannot be read.
    fn described(&self, known: &KnownAmendment) -> Result<Vec<String>, String> {
        let amendment = &known.amendment;
        // Its text may be one that only newer programs read.
        let unspoken = known.unspoken();
        let mut lines = match &unspoken {
            Some(why) => vec![why.clone()],
            None => {
                let own = self.own(&self.agreement, Clone::clone);
                let after =
                    |new: &Agreement| self.own(new, |history| history.after_change(&new.epoch));
                known.lines(&self.agreement, &own, after)?
            }
        };
        lines.extend(newcomers(&self.agreement, amendment));
        if unspoken.is_none() {
            match examined(&self.agreement, amendment) {
                Ok(new) => {
                    lines.extend(self.institution.site.uncounted(&new));
                    lines.extend(asked(&self.agreement, &new));
                }
                Err(why) => lines.push(format!("cannot be accepted: {why}")),
            }
        }
        Ok(lines)
    }

    /// Prints what an amendment changes, and who approves it. The inner error says why it cannot be read, which
    /// is printed as well: whatever a member sent, the others are shown.
    fn show(
        &self,
        out: &mut impl Write,
        known: &KnownAmendment,
        text: bool,
    ) -> io::Result<Result<(), String>> {
        writeln!(out, "amendment {:#}", known.hash())?;
        let failed = |why: String| format!("this program fails on it ({why})");
        let read = caught(|| self.described(known)).map_err(failed).flatten();
        let (lines, read) = match read {
            Ok(lines) => (lines, Ok(())),
            Err(why) => (vec![format!("unreadable: {why}")], Err(why)),
        };
        for line in lines {
            writeln!(out, "{}", wrapped(&format!("  {line}")))?;
        }
        let roster = &self.agreement.epoch.roster;
        let names: Vec<_> = known.approved.iter().map(|by| roster.name(*by)).collect();
        let by = if names.is_empty() {
            "nobody yet, as far as this node knows".to_owned()
        } else {
            names.join(", ")
        };
        let line = match known.approved.len() as u64 >= known.needed {
            true => format!("  approved by {by}: enough"),
            false => format!("  approved by {by}; {} needed", known.needed),
        };
        writeln!(out, "{}", wrapped(&line))?;
        let unheard = known.unheard(&self.agreement.epoch).join(", ");
        if !unheard.is_empty() {
            let line = format!("  {UNHEARD} {unheard}");
            writeln!(out, "{}", wrapped(&line))?;
        }
        if text {
            writeln!(out, "  the whole new text:")?;
            match whole_text(&self.agreement, &known.amendment) {
                Ok(lines) => {
                    for line in lines {
                        writeln!(out, "    {line}")?;
                    }
                }
                Err(why) => writeln!(out, "{}", wrapped(&format!("    unreadable: {why}")))?,
            }
        }
        Ok(read)
    }
}

/// Returns what the noise of all agreed rounds bounds with the new questions, and without them.
fn cost(before: &Agreement, agreement: &Agreement) -> Option<String> {
    let [before, now] = [before, agreement].map(|of| bound(&of.epoch.protocol));
    let now = now?;
    let before = before.map(|before| format!("; without the question {before:.2}"));
    Some(format!(
        "  all agreed rounds together: {now:.2}{}. Rounds that the question does not take cost nothing",
        before.unwrap_or_default()
    ))
}

/// Returns what a question waits for where sums alone are opened.
fn waits(agreement: &Agreement) -> Option<String> {
    let masked = agreement.epoch.protocol.privacy.masked()?;
    (!masked.groups().is_empty()).then(|| {
        "  a sum is opened if all of its institutions take part: once this is in force, rounds wait until each of them \
         has approved the question, has signed the new agreement, or lets its policy answer"
            .to_owned()
    })
}

/// Returns what each site would compute for the questions that are new, and what is opened of it.
fn asked(before: &Agreement, agreement: &Agreement) -> Vec<String> {
    let known = before.questions.len();
    let new = agreement.questions.iter().enumerate().skip(known);
    new.flat_map(|(at, question)| {
        let reason = format!("question {}: {}", at + 1, numbers::plain(&question.reason));
        let privacy = &agreement.epoch.protocol.privacy;
        let explained = question.question(privacy).explain(&bytes_of_round);
        let explained = explained.unwrap_or_default();
        let lines = explained
            .lines()
            .map(|line| format!("  {}", numbers::plain(line)));
        let impossible = question.impossible(privacy);
        let impossible = impossible.map(|why| format!("  it will not be answered: {why}"));
        let lines: Vec<_> = lines
            .chain(impossible)
            .chain(cost(before, agreement))
            .chain(waits(agreement))
            .collect();
        std::iter::once(reason).chain(lines)
    })
    .collect()
}
