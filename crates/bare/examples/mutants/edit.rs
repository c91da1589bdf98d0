//! Applies edits to a source text. It has to be formatted by rustfmt: a function ends with the first line
//! that closes a brace at its own indentation.

use std::iter;
use std::ops::Range;

use super::entries::Edit;

/// The text with all these edits.
///
/// # Errors
/// A sentence: the lines of an edit are not found, or found more than once, or two edits overlap.
pub(crate) fn apply(text: &str, edits: &[&Edit]) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let places = edits.iter().map(|edit| Ok((place(&lines, edit)?, *edit)));
    let mut places = places.collect::<Result<Vec<_>, String>>()?;
    places.sort_by_key(|(place, _)| place.start);
    let (mut all, mut next) = (Vec::new(), 0);
    for (place, edit) in places {
        if place.start < next {
            return Err(format!("two edits of {} overlap at line {next}", edit.file));
        }
        all.extend(&lines[next..place.start]);
        all.extend(edit.new.iter().map(String::as_str));
        next = place.end;
    }
    all.extend(&lines[next..]);
    Ok(all.join("\n") + "\n")
}

/// The lines that an edit replaces.
fn place(lines: &[&str], edit: &Edit) -> Result<Range<usize>, String> {
    let within = match &edit.function {
        Some(name) => functions(lines, name),
        None => iter::once(0..lines.len()).collect(),
    };
    let long = edit.old.len();
    let starts = within
        .into_iter()
        .flat_map(|of| of.start..(of.end + 1).saturating_sub(long));
    let found: Vec<_> = starts
        .filter(|at| lines[*at..*at + long] == edit.old[..])
        .collect();
    match found[..] {
        [at] => Ok(at..at + long),
        _ => Err(format!(
            "{}, {}: these lines are there {} times instead of once:\n{}",
            edit.file,
            edit.function.as_deref().unwrap_or("the whole file"),
            found.len(),
            edit.old.join("\n")
        )),
    }
}

/// The functions of that name, each from its first line to its last.
fn functions(lines: &[&str], name: &str) -> Vec<Range<usize>> {
    let begins = |line: &str| {
        let after = line
            .split_once("fn ")
            .and_then(|(_, rest)| rest.strip_prefix(name));
        after.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let all = (0..lines.len()).filter(|at| begins(lines[*at]));
    all.map(|at| {
        let closes = |line: &&str| {
            indentation(line) == indentation(lines[at]) && line.trim_start().starts_with('}')
        };
        let last = lines[at..].iter().position(closes);
        at..last.map_or(lines.len(), |last| at + last + 1)
    })
    .collect()
}
