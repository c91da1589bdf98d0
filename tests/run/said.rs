//! Facts that others learn, and the paragraph for the data protection officer: they are the same wherever they are
//! stated, before the first round, by a running node, and in the history of a federation.

use super::heard::Heard;
use super::noised::{NOISED, flat};
use super::status::get;
use super::*;

/// Everything that is said of an agreement, each text without line breaks and marks of a page.
struct SaidTexts {
    check: String,
    status: [String; 2],
    report: [String; 2],
}

/// One node of a federation of this scenario says what it says, alone.
fn said(name: &str, agreed: &str) -> SaidTexts {
    let file = scenario(name, agreed);
    let demo = Demo::new(name, &["--scenario", file.to_str().unwrap()]);
    let config = demo.configs[0].to_str().unwrap();
    let check = output(&["check", "--offline", "--config", config]);
    let mut nodes = Heard::of(&demo.configs[..1], &["--http", "127.0.0.1:0"]);
    nodes.nodes.start(0);
    let page = nodes.until(0, "http")["url"].as_str().unwrap().to_owned();
    let page = get(&page, "/");
    let status = good(&["status", "--config", config]);
    nodes.nodes.kill(0);
    let lines = demo.configs[0].with_file_name("lines");
    let history = demo.folder.join("history.html");
    let (lines, out) = (lines.to_str().unwrap(), history.to_str().unwrap());
    let report = good(&["report", lines, "--out", out]);
    SaidTexts {
        check: flat(&text(&check.stdout)),
        status: [flat(&status), flat(&page)],
        report: [flat(&report), flat(&fs::read_to_string(history).unwrap())],
    }
}

/// The paragraph as `rota check` has it.
fn officer(check: &str) -> &str {
    let (_, after) = check
        .split_once("For the data protection officer: ")
        .unwrap();
    let end = "nor our own copies and staff.";
    &after[..after.find(end).unwrap() + end.len()]
}

/// That the paragraph of the check is in the report, has these parts, and that these sentences are in the status
/// and in the report.
fn compare(texts: &SaidTexts, parts: &[&str], sentences: &[&str]) {
    let paragraph = officer(&texts.check);
    for part in parts {
        assert!(paragraph.contains(part), "{part}: {paragraph}");
    }
    for report in &texts.report {
        assert!(report.contains(paragraph), "{paragraph}: {report}");
    }
    for said in texts.status.iter().chain(&texts.report) {
        for sentence in sentences {
            assert!(said.contains(sentence), "{sentence}: {said}");
        }
    }
}

const ALWAYS_THERE: &str = "sums hide the updates of institutions that are always there, and give no bound on \
                            what is learned about a patient";
const NO_REVIEW: &str = "experimental: not reviewed by a cryptographer";
const NO_NOISE: &str = "There is no noise, and so no bound on what all published results together tell about one \
                        patient.";

/// So many silos whose rounds are masked, in these groups.
fn masked(silos: usize, groups: &str) -> String {
    let masked =
        format!("[privacy]\nmode = 'secure-aggregation'\n{groups}[strategy]\nweight = 'equal'\n");
    let text = QUICK.replace("[strategy]\n", &masked);
    text.replace("silos = 4", &format!("silos = {silos}"))
}

#[test]
fn one_group_and_two_groups_are_in_check_status_and_report() {
    let one = said("said-one", &masked(4, ""));
    let group = "silo 1, silo 2, silo 3, silo 4";
    let (sum, down) = group_sentences(group);
    let sentences = [ALWAYS_THERE, NO_REVIEW, &sum, &down];
    compare(
        &one,
        &["over at least 4 institutions", NO_NOISE],
        &sentences,
    );
    let groups = "colluders = 1
[[privacy.group]]
'silo 1' = 1
'silo 2' = 1
'silo 3' = 1
[[privacy.group]]
'silo 4' = 1
'silo 5' = 1
'silo 6' = 1
'silo 7' = 1
";
    let two = said("said-two", &masked(7, groups));
    let [first, second] = ["silo 1, silo 2, silo 3", "silo 4, silo 5, silo 6, silo 7"];
    let ((sum, down), (other_sum, other_down)) = (group_sentences(first), group_sentences(second));
    let sentences = [
        ALWAYS_THERE,
        NO_REVIEW,
        &sum,
        &down,
        &other_sum,
        &other_down,
    ];
    compare(
        &two,
        &["over at least 3 institutions", NO_NOISE],
        &sentences,
    );
    for (texts, groups) in [(&one, &[group][..]), (&two, &[first, second])] {
        for of in groups {
            for said in [
                format!("one sum a round of {of}, once a quorum has agreed"),
                format!("of {of}: if one institution is down, the sum is not opened"),
            ] {
                assert!(texts.check.contains(&said), "{said}: {}", texts.check);
            }
        }
        for said in [
            "sums hide the updates of institutions that are always there; they give no bound on what is learned about a patient",
            NO_REVIEW,
        ] {
            assert!(texts.check.contains(said), "{said}: {}", texts.check);
        }
    }
}

/// Returns what is said of a group in short.
fn group_sentences(group: &str) -> (String, String) {
    (
        format!("every member learns one sum per round: that of {group}"),
        format!("if one institution of {group} is down, their sum is not opened"),
    )
}

#[test]
fn noise_is_stated_with_both_numbers_and_clear_rounds_with_none() {
    let noised = said("said-noised", NOISED);
    let together = noised
        .check
        .find("all 6 rounds together: epsilon ")
        .unwrap();
    let together = &noised.check[together..];
    let together = &together[..together.find(" for one row").unwrap()];
    let numbers: Vec<_> = together
        .split([' ', ','])
        .filter(|word| word.starts_with(char::is_numeric))
        .collect();
    let [_, epsilon, alone, delta] = numbers[..] else {
        panic!("{together}");
    };
    assert_eq!(delta, "1e-5");
    compare(
        &noised,
        &[
            "over at least 3 institutions",
            &format!(
                " (e^{epsilon}) times as likely, except with probability about 1 in 100,000, as long as at most 1 \
                 institution is curious"
            ),
            &format!(" (e^{alone}): epsilon is {epsilon}, and epsilon_alone is {alone}."),
        ],
        &[
            together,
            "one sum a round, with noise, of at least 3 institutions",
            "if one institution is down, rounds continue without it, as long as at least 3 institutions are ready",
            NO_REVIEW,
        ],
    );
    let clear = said("said-clear", QUICK);
    compare(&clear, &["every member sees it.", NO_NOISE], &[]);
    for text in clear.status.iter().chain(&clear.report) {
        assert!(
            !text.to_lowercase().contains("disclosed to others"),
            "{text}"
        );
    }
}
