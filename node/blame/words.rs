//! What is said of a void round and its authors, as text.

use std::io::{self, Write};

use formatting::numbers::plain;

use crate::institution::short_id::DIGITS;

use super::{AuthorFinding, Blame, CorruptedSum, DisclosureFile, ExaminedAuthor};

impl Blame {
    /// The round and its sums, as lines of text.
    pub fn head(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{}, round {} (block {}): these of its sums were void and left out of the outcome",
            plain(&self.federation_name),
            self.round,
            &self.block[..DIGITS.min(self.block.len())]
        )];
        for sum in &self.sums {
            lines.push(format!(
                "void      the sum of {}: {}",
                names(&sum.authors),
                sum.why
            ));
        }
        lines
    }

    /// Returns what the disclosures show, as lines of text.
    pub fn findings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for author in &self.examined {
            let member = plain(&author.member);
            lines.push(match &author.finding {
                AuthorFinding::Right => {
                    format!("right     {member}: all that it sent follows from its secret")
                }
                AuthorFinding::Deviates(what) => format!("WRONG     {member}: {}", plain(what)),
                AuthorFinding::Refused(why) => format!("refused   {member}: {}", plain(why)),
            });
        }
        if !self.not_looked_at.is_empty() {
            lines.push(format!(
                "unknown   not examined, because they disclosed nothing: {}",
                names(&self.not_looked_at)
            ));
        }
        lines.extend(self.sums.iter().filter_map(|sum| self.left_over(sum)));
        lines
    }

    /// Returns what follows for a sum of which no author was found to deviate.
    fn left_over(&self, sum: &CorruptedSum) -> Option<String> {
        let deviates = |author: &&ExaminedAuthor| {
            matches!(author.finding, AuthorFinding::Deviates(_))
                && sum.authors.contains(&author.member)
        };
        if self.examined.iter().any(|author| deviates(&author)) {
            return None;
        }
        let left = sum.authors.iter();
        let left: Vec<_> = left
            .filter(|author| self.not_looked_at.contains(author))
            .collect();
        match left[..] {
            [] => Some(format!(
                "All authors of the sum of {} disclosed, and each is right: so the sum should not be void. Compare \
                 this program with those of the members that opened it.",
                names(&sum.authors)
            )),
            [one] => Some(format!(
                "All other authors of the sum are right, so {} corrupted it, whether it discloses or not.",
                plain(one)
            )),
            _ => None,
        }
    }

    /// Writes all of it, each line as `wrapped` makes it.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, out: &mut impl Write, wrapped: fn(&str) -> String) -> io::Result<()> {
        let mut lines = self.head();
        if self.examined.is_empty() {
            lines.push(format!(
                "Each of these institutions can disclose its secret of this round with `rota blame {} --disclose \
                 FILE`. With these files, `rota blame {} --with FILE...` finds out who corrupted the sum.",
                self.round, self.round
            ));
        } else {
            lines.extend(self.findings());
        }
        lines
            .iter()
            .try_for_each(|line| writeln!(out, "{}", wrapped(line)))
    }
}

impl DisclosureFile {
    /// Returns what an institution gives away with this file, before it agrees.
    pub fn warning(&self) -> Vec<String> {
        let (member, round) = (plain(&self.member), self.round);
        vec![
            format!(
                "What this discloses: the secret of {member} in round {round}. Every member that has the file can \
                 remove the mask from what {member} sent in this round, and sees by how much its model differed \
                 from the one before. There is no bound on what that discloses about a single patient, and it \
                 cannot be taken back."
            ),
            "What it does not disclose: any other round. Every round has its own secret, and this one opens no \
             adopted sum."
                .into(),
            "If all authors of the sum but one disclose their secrets, the vector of the last one is known as \
             well, whether it discloses or not."
                .into(),
            format!(
                "What it is for: everybody can check whether what {member} sent follows from its secret, and so \
                 find out who corrupted the sum."
            ),
        ]
    }
}

/// Names, for people.
fn names(all: &[String]) -> String {
    let all: Vec<_> = all.iter().map(|name| plain(name)).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blame(findings: &[(&str, AuthorFinding)], left: &[&str]) -> Blame {
        let examined = findings.iter().map(|(member, finding)| ExaminedAuthor {
            member: (*member).into(),
            finding: finding.clone(),
        });
        Blame {
            federation_name: "sums".into(),
            round: 2,
            block: "0123456789abcdef0123".into(),
            sums: vec![CorruptedSum {
                authors: vec!["A".into(), "B".into(), "C".into()],
                why: "the masks of an author do not cancel".into(),
            }],
            examined: examined.collect(),
            not_looked_at: left.iter().map(|name| (*name).into()).collect(),
        }
    }

    #[test]
    fn who_is_left_over_is_named_only_where_all_others_are_right() {
        let right = || AuthorFinding::Right;
        let said = |blame: &Blame| blame.findings().join("\n");
        let last = said(&blame(&[("A", right()), ("B", right())], &["C"]));
        assert!(last.contains("are right, so C corrupted it"), "{last}");
        let two = said(&blame(&[("A", right())], &["B", "C"]));
        assert!(!two.contains("corrupted it"), "{two}");
        assert!(two.contains("disclosed nothing: B, C"), "{two}");
        let named = blame(
            &[("A", AuthorFinding::Deviates("x".into())), ("B", right())],
            &["C"],
        );
        let named = said(&named);
        assert!(
            named.contains("WRONG     A: x") && !named.contains("so it was"),
            "{named}"
        );
        let all = [("A", right()), ("B", right()), ("C", right())];
        assert!(said(&blame(&all, &[])).contains("Compare this program"));
    }
}
