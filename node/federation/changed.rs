//! Differences of another agreement, as text, for those who approve it.

use agreement::{Agreement, Changed, Difference};
use protocol::message::Amendment;
use protocol::name::printable;

use super::disclosure::OwnSide;
use super::words::words_for;
use formatting::numbers;

/// Begins the line of a change that protects less than before.
const WEAKER: &str = "weaker: ";

/// Returns what another agreement changes, one line each: first how many members may break the rules before and
/// after, then every key that changes, those that protect less first and marked with `weaker:`, then
/// what follows for the agreement in words, `-` before what goes and `+` before what comes.
pub fn changed_words(old: &Agreement, new: &Agreement) -> Vec<String> {
    let nobody = OwnSide::default();
    changed_words_for((old, &nobody), (new, &nobody))
}

/// The same for an institution, with what is known of its own side before and after the change.
pub fn changed_words_for(
    (old, before): (&Agreement, &OwnSide),
    (new, after): (&Agreement, &OwnSide),
) -> Vec<String> {
    let difference = old.difference(new);
    let mut lines = protection(&difference);
    if difference.is_empty() {
        lines.push(
            "no key changes: the texts differ at most in comments, order or spacing".to_owned(),
        );
        return lines;
    }
    lines.extend(difference.changes.iter().map(sentence));
    lines.extend(consequences((old, before), (new, after)));
    lines
}

/// Returns how many members there are, how many of them may break the rules, and how many votes are needed,
/// before and after a change.
pub fn protection(difference: &Difference) -> Vec<String> {
    let (before, after) = (difference.before, difference.after);
    let number = |before: usize, after: usize| {
        if before == after {
            before.to_string()
        } else {
            format!("{before} → {after}")
        }
    };
    let mut lines = vec![format!(
        "members, n: {}; of these may break the rules, f: {}; votes needed (quorum), q: {}",
        number(before.members, after.members),
        number(before.faulty, after.faulty),
        number(before.quorum, after.quorum),
    )];
    if difference.lowers_protection() {
        lines.push(format!(
            "{WEAKER}of {} {}; before it was {} of {}",
            numbers::plural(after.members, "member"),
            match after.faulty {
                0 => "none may break the rules any more".to_owned(),
                1 => "only one may break the rules".to_owned(),
                f => format!("only {f} may break the rules"),
            },
            before.faulty,
            before.members,
        ));
    }
    lines
}

/// A changed key in a line: its path, both values, what it says, and why it protects less, if it does.
pub fn sentence(change: &Changed) -> String {
    let Changed {
        key,
        before,
        after,
        words,
        weaker,
        ..
    } = change;
    let values = match (before, after) {
        (None, Some(after)) if is_member(key) => format!("{key} comes in: {after}"),
        (Some(before), None) if is_member(key) => format!("{key} goes: {before}"),
        (before, after) => {
            let set = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
            format!("{key}: {} → {}", set(before), set(after))
        }
    };
    let words = match words {
        Some(words) => format!(" ({words})"),
        None => String::new(),
    };
    match weaker {
        Some(why) => format!("{WEAKER}{values}{words}: {why}"),
        None => format!("{values}{words}"),
    }
}

/// Returns whether the path is that of a member as a whole, whose name may be in quotation marks.
fn is_member(key: &str) -> bool {
    key.strip_prefix("member.")
        .is_some_and(|name| match name.strip_prefix('"') {
            Some(quoted) => quoted.ends_with('"'),
            None => !name.contains('.'),
        })
}

/// The lines of the agreement in words that go and come.
fn consequences(old: (&Agreement, &OwnSide), new: (&Agreement, &OwnSide)) -> Vec<String> {
    let shown = |(agreement, own): (&Agreement, &OwnSide)| -> Vec<String> {
        let lines = words_for(agreement, own).into_iter();
        let lines = lines.filter(|line| !line.trim().is_empty() && !line.starts_with("id "));
        lines.map(|line| visible(line.trim())).collect()
    };
    let (before, after) = (shown(old), shown(new));
    let gone = before.iter().filter(|line| !after.contains(line));
    let come = after.iter().filter(|line| !before.contains(line));
    let gone = gone.map(|line| format!("- {line}"));
    gone.chain(come.map(|line| format!("+ {line}"))).collect()
}

/// The whole text that members approve with an amendment of `agreement`, line by line. What is invisible
/// or would steer a terminal is shown by its number; no text that has it can be approved.
///
/// # Errors
/// It is no text.
pub fn whole_text(agreement: &Agreement, amendment: &Amendment) -> Result<Vec<String>, String> {
    let text = agreement.amendment_text(amendment);
    let text = text.map_err(|error| error.to_string())?;
    Ok(text.lines().map(visible).collect())
}

/// A line in which every character can be seen.
fn visible(line: &str) -> String {
    let shown = |c: char| {
        if c == '\t' || printable(c) {
            c.to_string()
        } else {
            format!("\\u{{{:04X}}}", u32::from(c))
        }
    };
    line.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::SecretKey;

    use super::*;

    const EXAMPLE: &str = include_str!("../../examples/federation.toml");

    fn example() -> Agreement {
        Agreement::parse("f.toml", EXAMPLE).unwrap()
    }

    fn edited(edits: &[(&str, &str)]) -> Agreement {
        let mut text = EXAMPLE.to_owned();
        for (from, to) in edits {
            assert!(text.contains(from), "the example has no {from:?}");
            text = text.replacen(from, to, 1);
        }
        Agreement::parse("f.toml", &text).unwrap()
    }

    fn shown(edits: &[(&str, &str)]) -> Vec<String> {
        changed_words(&example(), &edited(edits))
    }

    #[test]
    fn changes_that_no_sentence_mentions_are_shown_all_the_same() {
        for (from, to, said) in [
            (
                "blob-limit = 392",
                "blob-limit = 400",
                "weaker: protocol.blob-limit: 392 → 400 (the largest size of a contribution, in bytes): \
                 members accept",
            ),
            (
                "max-model-norm = 1000.0",
                "",
                "weaker: protocol.max-model-norm: 1000.0 → not set (the largest ℓ2 norm",
            ),
            (
                "view-timeout = 29",
                "view-timeout = 40",
                "protocol.view-timeout: 29 → 40 (the heartbeats after which a lead is replaced)",
            ),
            (
                "discovery = false",
                "discovery = true",
                "weaker: protocol.discovery: not set → true (whether nodes find each other on a local \
                 network by multicast DNS): every node opens a port",
            ),
            (
                "epochs = 10",
                "epochs = 11",
                "strategy.training.epochs: 10 → 11 (",
            ),
            (
                "rate = 0.02",
                "rate = 0.03",
                "strategy.training.optimiser.rate: 0.02 → 0.03 (",
            ),
            ("batch = 8", "batch = 9", "strategy.training.batch: 8 → 9 ("),
            (
                "coalitions = 2",
                "coalitions = 3",
                "strategy.coalitions: 2 → 3 (",
            ),
            (
                "freeze = 1",
                "gap = 0.5",
                "weaker: strategy.gap: 0.25 → 0.5 (",
            ),
            (
                "personal = []",
                "encoding = \"int8\"",
                "strategy.encoding: not set → \"int8\" (",
            ),
            (
                "name = \"stays\"",
                "name = \"days\"",
                "name: \"stays\" → \"days\" (",
            ),
            (
                "rota.north.example/udp",
                "elsewhere.example/udp",
                "weaker: member.north.addresses: [\"/dns/rota.north.example/udp/4001/quic-v1\", ",
            ),
        ] {
            let lines = shown(&[(from, to)]);
            let found = lines.iter().any(|line| line.starts_with(said));
            assert!(found, "{said}: {lines:#?}");
        }
        let nothing = changed_words(&example(), &example());
        assert_eq!(nothing.len(), 2, "{nothing:#?}");
        assert!(nothing[1].starts_with("no key changes"));
    }

    #[test]
    fn member_indices_come_first_then_what_protects_less() {
        let lines = shown(&[
            ("rounds = 6", "rounds = 3001"),
            ("verification = \"full\"", "verification = \"inclusion\""),
            ("names = \"removed\"", "names = \"shown\""),
        ]);
        assert_eq!(
            lines[0],
            "members, n: 4; of these may break the rules, f: 1; votes needed (quorum), q: 3"
        );
        assert!(lines[1].starts_with("weaker: protocol.names: \"removed\" → \"shown\""));
        assert!(lines[2].starts_with("weaker: protocol.verification: \"full\" → \"inclusion\""));
        assert_eq!(lines[3], "rounds: 6 → 3001 (the number of rounds)");
        assert!(lines[4].starts_with("- "), "{lines:#?}");
        assert!(lines.contains(
            &"+ nobody computes the models again: members trust the lead of a round".to_owned()
        ));
    }

    #[test]
    fn a_change_shows_how_many_may_be_byzantine_before_and_after() {
        let old = example();
        let after = |text: String| {
            let new = Agreement::parse("f.toml", &text).unwrap();
            changed_words(&old, &new)
        };
        let lines = after(old.without("east").unwrap());
        assert_eq!(
            lines[..2],
            [
                "members, n: 4 → 3; of these may break the rules, f: 1 → 0; votes needed (quorum), q: 3 → 2",
                "weaker: of 3 members none may break the rules any more; before it was 1 of 4",
            ]
        );
        assert!(
            lines[2..]
                .iter()
                .any(|line| line.starts_with("member.east goes: { key = "))
        );
        let key = SecretKey::from_bytes(&[9; 32]).public();
        let lines = after(old.admitting("a.b", key, None, Vec::new()).unwrap());
        assert!(
            lines[0].starts_with("members, n: 4 → 5; of these may break the rules, f: 1; votes")
        );
        assert!(
            !lines.iter().any(|line| line.starts_with(WEAKER)),
            "{lines:#?}"
        );
        let come =
            format!("member.\"a.b\" comes in: {{ key = \"{key}\", name = \"a.b\" }} (a member)");
        assert!(lines.contains(&come), "{lines:#?}");
        // Seven members become six: two may break the rules, then one.
        let mut seven = old.clone();
        for digit in 10..13 {
            let key = SecretKey::from_bytes(&[digit; 32]).public();
            let text = seven
                .admitting(&format!("new {digit}"), key, None, Vec::new())
                .unwrap();
            seven = Agreement::parse("f.toml", &text).unwrap();
        }
        let six = Agreement::parse("f.toml", &seven.without("south").unwrap()).unwrap();
        let lines = changed_words(&seven, &six);
        assert_eq!(
            lines[1],
            "weaker: of 6 members only one may break the rules; before it was 2 of 7"
        );
    }

    #[test]
    fn a_name_that_looks_like_another_one_is_shown_with_both_keys() {
        let old = example();
        let key = SecretKey::from_bytes(&[9; 32]).public();
        // No command makes it, so somebody wrote the text by hand.
        let text = old.admitting("newcomer", key, None, Vec::new()).unwrap();
        let text = text.replace("\"newcomer\"", "\"n0rth\"");
        let new = Agreement::parse("f.toml", &text).unwrap();
        let lines = changed_words(&old, &new);
        let warning = lines
            .iter()
            .find(|line| line.contains("looks like"))
            .unwrap();
        let of_north = old
            .epoch
            .roster
            .silos()
            .iter()
            .find(|silo| silo.name == "north");
        assert!(warning.starts_with("+ warning"), "{warning}");
        assert!(warning.contains(&key.to_string()), "{warning}");
        assert!(
            warning.contains(&of_north.unwrap().key.to_string()),
            "{warning}"
        );
    }

    #[test]
    fn the_whole_text_is_shown_and_nothing_in_it_is_invisible() {
        let old = example();
        let text = EXAMPLE.replacen("rounds = 6", "rounds = 7", 1);
        let mut amendment = old.amended("new.toml", &text, learn::stand_in).unwrap();
        let lines = whole_text(&old, &amendment).unwrap();
        assert_eq!(lines, text.lines().collect::<Vec<_>>());
        let odd = text.replacen("rounds = 7", "rounds = 7 # \u{1b}[2J\u{202e}", 1);
        amendment.text = odd.into();
        let lines = whole_text(&old, &amendment).unwrap();
        let found = lines.iter().find(|line| line.starts_with("rounds = 7"));
        assert!(
            found
                .unwrap()
                .starts_with("rounds = 7 # \\u{001B}[2J\\u{202E}"),
            "{found:?}"
        );
        assert!(lines.iter().all(|line| line.chars().all(printable)));
        amendment.text = vec![0xff];
        assert!(whole_text(&old, &amendment).unwrap_err().contains("UTF-8"));
        // An address is part of what follows in words, too.
        let odd = ("rota.north.example/udp", "rota.north\\u202E.example/udp");
        let lines = shown(&[odd]);
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("+ at /dns/rota.north\\u{202E}"))
        );
        assert!(
            lines.iter().all(|line| line.chars().all(printable)),
            "{lines:#?}"
        );
    }
}
