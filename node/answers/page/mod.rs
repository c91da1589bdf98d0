//! The HTML page of answered questions: how many rows and sites each answer is of, survival curves with numbers at
//! risk, a forest plot or the loss of boosted trees, the tables, what was opened, and what proves it.

mod curve;
mod forest;
mod trees;

use agreement::bytes_of_round;
use formatting::numbers;
use formatting::page::document;
use maud::{Markup, html};
use questions::outcome::{PrintedCell, PrintedTable};
use questions::{FederatedQuestion, FirstCounts, Outcome, QuestionMode};

use super::certificate::AnswerCertificate;

/// Content of the page for a question.
#[derive(Debug, Clone, Copy)]
pub struct QuestionStory<'a> {
    /// Name of the question, such as its file.
    pub name: &'a str,
    /// First sentence: who answered, or why there is no answer.
    pub lead: &'a str,
    /// The question.
    pub question: &'a FederatedQuestion,
    /// The counts of its first round and the answer; none where it has no answer.
    pub found: Option<(&'a FirstCounts, &'a Outcome)>,
    /// Its tables, after suppression.
    pub sheets: &'a [PrintedTable],
    /// Sites that the answer is without, as sentences, none of which is named.
    pub left_out: &'a [String],
    /// Numbers that were opened.
    pub opened: AnswerCost,
    /// The command that prints the answer again.
    pub command: &'a str,
}

/// Cost of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerCost {
    /// Rounds; 0 where an answer was stored.
    pub rounds: usize,
    /// Numbers that the rounds opened.
    pub numbers: u64,
    /// Bytes that each site sent.
    pub bytes: u64,
}

impl AnswerCost {
    /// That of rounds which opened so many numbers each, where members see sums in this way.
    pub fn of(mode: QuestionMode, opened: impl Iterator<Item = usize>) -> Self {
        let mut cost = Self::default();
        for numbers in opened {
            cost.rounds += 1;
            cost.numbers += numbers as u64;
            cost.bytes += bytes_of_round(mode, numbers);
        }
        cost
    }

    /// Returns the cost in one line of text.
    pub fn text(&self) -> String {
        format!(
            "{} in {}, {} sent by each site",
            numbers::plural(
                usize::try_from(self.numbers).unwrap_or(usize::MAX),
                "number"
            ),
            numbers::plural(self.rounds, "round"),
            numbers::bytes(self.bytes),
        )
    }
}

/// The page of one question that one process has played, as one HTML document.
pub fn page(story: &QuestionStory<'_>) -> String {
    document(
        &format!("{} · question", story.name),
        "",
        html! {
            header {
                p.kicker { "Rota · question" }
                h1 { (story.name) }
                p.lead { (story.lead) }
            }
            (answer(story))
        },
    )
}

/// The page of the questions of a federation, with what proves their answers.
pub(crate) fn page_of_federation(
    stories: &[QuestionStory<'_>],
    certificate: &AnswerCertificate,
) -> String {
    let name = numbers::plain(&certificate.federation);
    document(
        &format!("{name} · questions"),
        "",
        html! {
            header {
                p.kicker { "Rota · questions of a federation" }
                h1 { (name) }
                p.lead {
                    "Answered by the members' nodes. Every member has checked each sum and computed the same answer from it."
                }
            }
            @for story in stories {
                article style="margin-top:3rem" {
                    header {
                        h1 { (story.name) }
                        p.lead { (story.lead) }
                    }
                    (answer(story))
                }
            }
            (proof(certificate))
        },
    )
}

fn answer(story: &QuestionStory<'_>) -> Markup {
    let explanation = story.question.explain(&bytes_of_round);
    let explanation = explanation.unwrap_or_default();
    html! {
        (cards(story))
        @if !story.left_out.is_empty() {
            section {
                h2 { "Left out" }
                ul { @for sites in story.left_out { li { (sites) } } }
            }
        }
        (picture(story))
        @for sheet in story.sheets { (table(sheet)) }
        section {
            h2 { "What was opened" }
            pre tabindex="0" { (explanation) }
            p {
                @match (story.opened.rounds, story.found) {
                    (0, Some(_)) => { "Opened: nothing; this is the stored answer of an identical question." }
                    (0, None) => { "Nothing." }
                    _ => { "Opened: " (story.opened.text()) "." }
                }
            }
        }
        @if !story.command.is_empty() {
            section {
                h2 { "Ask again" }
                pre tabindex="0" { (story.command) }
            }
        }
    }
}

/// Whom the answer is of, and what it has cost.
fn cards(story: &QuestionStory<'_>) -> Markup {
    let Some((counts, outcome)) = story.found else {
        return html! {};
    };
    let missing = counts.rows - counts.complete - counts.outside;
    let cells = story.sheets.iter().flat_map(|sheet| &sheet.rows).flatten();
    let suppressed = cells
        .filter(|cell| **cell == PrintedCell::Suppressed)
        .count();
    let whole = |count: f64| PrintedCell::Count(count).text();
    let mut cards = match outcome {
        // They use rows with missing values, too.
        Outcome::Trees(found) => vec![
            (whole(found.rows), "rows in training"),
            (whole(found.held_out_rows), "rows held out"),
        ],
        _ => vec![(whole(counts.complete), "rows (n)")],
    };
    cards.extend([
        (whole(counts.sites), "sites"),
        (whole(missing), "rows with missing values"),
        (whole(counts.outside), "rows out of range"),
        (suppressed.to_string(), "cells suppressed"),
        (story.opened.rounds.to_string(), "rounds"),
        (numbers::bytes(story.opened.bytes), "sent by each site"),
    ]);
    html! {
        ul.cards { @for (value, label) in cards { li { b { (value) } span { (label) } } } }
    }
}

fn picture(story: &QuestionStory<'_>) -> Markup {
    let smallest = story.question.rules.smallest_cell;
    match story.found.map(|(_, outcome)| outcome) {
        Some(Outcome::Km(found)) => curve::section(found, smallest),
        Some(Outcome::Cox(found)) => {
            let lines = found
                .coefficients
                .iter()
                .map(|one| (one.term.clone(), one.value, one.estimate));
            forest::section("Hazard ratios", true, lines)
        }
        Some(Outcome::Glm(found)) => {
            let ratios = found.family != questions::kinds::glm::GlmFamily::Gaussian;
            let title = if ratios { "Ratios" } else { "Coefficients" };
            let lines = found
                .coefficients
                .iter()
                .map(|one| (one.term.clone(), one.value, one.estimate));
            forest::section(title, ratios, lines)
        }
        Some(Outcome::Mixed(found)) => {
            let lines = found
                .coefficients
                .iter()
                .map(|one| (one.term.clone(), one.estimate.value, Some(one.estimate)));
            forest::section("Common coefficients", false, lines)
        }
        Some(Outcome::Meta(found)) => {
            let lines = [
                ("one effect for all sites", found.fixed),
                ("effects differ between sites", found.random),
                ("the same, Hartung and Knapp", found.hartung_knapp),
            ];
            let lines = lines.map(|(name, one)| (name.to_owned(), one.value, Some(one)));
            forest::section("Effects", false, lines.into_iter())
        }
        Some(Outcome::Trees(found)) => trees::sections(found),
        Some(Outcome::Baselines(found)) => {
            let name = "global model instead of local".to_owned();
            let line = (name, found.gain.value, Some(found.gain));
            forest::section("Gain of learning together", false, [line].into_iter())
        }
        _ => html! {},
    }
}

fn table(sheet: &PrintedTable) -> Markup {
    html! {
        section {
            h2 { (sheet.title) }
            div.scroll tabindex="0" role="region" aria-label=(sheet.title) {
                table.stuck {
                    thead { tr { @for (at, name) in sheet.header.iter().enumerate() {
                        @if is_text(sheet, at) { th scope="col" { (name) } } @else { th.number scope="col" { (name) } }
                    } } }
                    tbody { @for row in &sheet.rows { tr { @for cell in row {
                        @match cell {
                            PrintedCell::Text(text) => { td { (text) } }
                            other => { td.number { (other.text()) } }
                        }
                    } } } }
                }
            }
            @for note in &sheet.notes { p.note { (note) } }
        }
    }
}

fn is_text(sheet: &PrintedTable, at: usize) -> bool {
    sheet
        .rows
        .first()
        .is_some_and(|row| matches!(row.get(at), Some(PrintedCell::Text(_))))
}

/// Proof that the answers are those of the federation, and how to check it.
fn proof(certificate: &AnswerCertificate) -> Markup {
    let AnswerCertificate {
        round,
        quorum,
        members,
        ..
    } = certificate;
    let hashes = [
        ("federation", Some(&certificate.federation_id)),
        ("final block", Some(&certificate.block)),
        (
            "outcome, with the sums of all questions",
            Some(&certificate.outcome),
        ),
        ("certificate", certificate.certificate.as_ref()),
    ];
    html! {
        section {
            h2 { "Certificate" }
            p {
                "These answers are in the state of round " (round) ", the last one that this node has adopted. "
                "It is final by the signatures of a quorum: " (quorum) " of " (members) " members."
            }
            div.scroll tabindex="0" role="region" aria-label="Hashes" {
                table {
                    thead { tr { th scope="col" { "what" } th scope="col" { "hash" } } }
                    tbody { @for (what, hash) in hashes { tr {
                        td { (what) }
                        td { @match hash { Some(hash) => { code { (hash) } }, None => { "not in this node's journal" } } }
                    } } }
                }
            }
            p.note {
                "`rota verify` checks the signatures, and computes each step of the answers again from the sums."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use questions::outcome::sheets;
    use questions::table::RowTable;
    use questions::{AgreedColumns, Kind, ask};

    use super::*;

    const COX: &str =
        "kind = \"cox\"\ntime = \"t\"\nevent = \"e\"\nterms = [\"x\", \"<b>\"]\nstrata = []";
    const KM: &str = "kind = \"km\"\ntime = \"t\"\nevent = \"e\"\ngrid = { step = 5, cells = 10 }";
    const BASELINES: &str = "kind = \"baselines\"\noutcome = \"e = 1\"\nterms = [\"x\", \"<b>\"]";
    const TREES: &str = "kind = \"trees\"\noutcome = \"e = 1\"\ncolumns = [\"t\"]\nedges = { t = [10, 30] }\n\
                         trees = 2\nheld-out = 0.25";

    /// The page of a question of this kind to three sites, and that of a federation which has asked it.
    fn pages(kind: &str) -> [String; 2] {
        let kind: Kind = toml::from_str(&kind.replace("strata = []", "")).unwrap();
        let range = |name: &str| (name.to_owned(), [0.0, 1.0]);
        let agreed = AgreedColumns {
            ranges: ["x", "<b>"].map(range).into(),
            ..AgreedColumns::default()
        };
        let question = FederatedQuestion::new(kind, agreed);
        let part = |at: usize, by: usize| ((at * by) % 7) as f64 / 7.0;
        let table = |site: usize| {
            let of = |value: &dyn Fn(usize) -> f64| (0..60).map(value).collect::<Vec<_>>();
            RowTable::new(60)
                .with("t", &of(&|at| 1.0 + ((at * 7 + site) % 45) as f64))
                .with("e", &of(&|at| f64::from(at % 3 > 0)))
                .with("x", &of(&|at| part(at, 3 + site)))
                .with("<b>", &of(&|at| part(at / 7, 5)))
        };
        let asked = ask(&question, &[0, 1, 2].map(table), |_, _, _| Ok(())).unwrap();
        let (counts, outcome) = (asked.counts.unwrap(), asked.end.unwrap());
        let sheets = sheets(&question, &counts, &outcome);
        let story = QuestionStory {
            name: "question 1",
            lead: "<script>",
            question: &question,
            found: Some((&counts, &outcome)),
            sheets: &sheets,
            left_out: &[],
            opened: AnswerCost {
                rounds: 2,
                numbers: 99,
                bytes: 952,
            },
            command: "",
        };
        let waiting = QuestionStory {
            name: "question 2",
            lead: "no answer yet, after 1 round",
            found: None,
            sheets: &[],
            ..story
        };
        let certificate = AnswerCertificate {
            federation: "wards <i>".to_owned(),
            federation_id: "f0".repeat(32),
            round: 7,
            block: "b1".repeat(32),
            outcome: "c2".repeat(32),
            certificate: Some("d3".repeat(32)),
            quorum: 3,
            members: 4,
        };
        [
            page(&story),
            page_of_federation(&[story, waiting], &certificate),
        ]
    }

    #[test]
    fn pages_have_counts_curves_and_what_was_opened() {
        for page in pages(KM) {
            for part in [
                "<b>180</b><span>rows (n)</span>",
                "<b>3</b><span>sites</span>",
                "cells suppressed",
                "<h2>Survival</h2>",
                "at risk",
                "Opened: 99 numbers in 2 rounds, 952 B sent by each site.",
            ] {
                assert!(page.contains(part), "{part}: {page}");
            }
        }
    }

    #[test]
    fn the_cards_of_trees_have_rows_in_training_and_held_out() {
        let [page, _] = pages(TREES);
        let card = |label: &str| {
            let (before, _) = page.split_once(&format!("</b><span>{label}</span>"))?;
            before.rsplit_once("<b>")?.1.parse::<u32>().ok()
        };
        let [trained, held_out] = ["rows in training", "rows held out"].map(card);
        // All 180 rows are complete, and some of each side.
        assert_eq!(trained.zip(held_out).map(|(a, b)| a + b), Some(180));
        assert!(held_out > Some(20) && trained > held_out, "{page}");
        assert_eq!(card("rows (n)"), None);
        assert_eq!(card("sites"), Some(3));
    }

    #[test]
    fn the_page_of_baselines_draws_the_gain_and_says_what_follows() {
        for page in pages(BASELINES) {
            assert!(
                page.contains("<h2>Gain of learning together</h2>"),
                "{page}"
            );
            assert!(page.contains("global model instead of local"), "{page}");
            assert!(page.contains("in rows that a model has not seen"), "{page}");
            let says = [
                "together: at sites",
                "alone: at sites",
                "cannot tell: either",
            ];
            let said = says.iter().filter(|said| page.contains(*said));
            assert_eq!(said.count(), 1, "{page}");
        }
    }

    #[test]
    fn the_page_of_a_federation_has_the_quorum_and_hashes() {
        let [played, asked] = pages(COX);
        assert!(!played.contains("Certificate"));
        assert!(asked.contains("<h2>Hazard ratios</h2>"));
        assert!(asked.contains("a quorum: 3 of 4 members"));
        assert!(asked.contains("the state of round 7"));
        for hash in ["f0", "b1", "c2", "d3"] {
            assert!(asked.contains(&hash.repeat(32)), "{hash}");
        }
        assert!(asked.contains("no answer yet, after 1 round"));
    }

    #[test]
    fn names_and_reasons_on_the_page_are_escaped() {
        for page in pages(COX) {
            assert_eq!(page.matches("<script").count(), 1, "{page}");
            assert!(page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;"));
            assert!(!page.contains("<i>"));
        }
    }
}
