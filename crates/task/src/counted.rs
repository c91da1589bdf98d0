//! Counts with their nouns and verbs as text.

/// A number of things: `1 row`, `2 rows`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// Returns what so many things do: `holds` for one, `hold` for none or several.
pub(crate) fn verb(count: usize, of_several: &str) -> String {
    match (count, of_several) {
        (1, "have") => "has".into(),
        (1, "are") => "is".into(),
        (1, verb) => format!("{verb}s"),
        (_, verb) => verb.into(),
    }
}

/// A number of rows and what they do: `1 row holds`, `2 rows have`.
pub(crate) fn rows_that(rows: usize, of_several: &str) -> String {
    format!("{} {}", counted(rows, "row"), verb(rows, of_several))
}
