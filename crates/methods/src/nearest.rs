//! "Did you mean …?" for names that are nearly right.

/// `; did you mean "age"?` for the known name that is most like this one, or nothing if none is.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let simple = |text: &str| -> String {
        let letters = text.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let wanted = simple(name);
    let scored = known.into_iter().map(|known| {
        let score = strsim::jaro_winkler(&wanted, &simple(known));
        (score, known)
    });
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, known)) if score >= 0.87 => format!("; did you mean {known:?}?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_most_similar_name_is_offered_and_none_that_is_not() {
        let known = ["time_in_hospital", "num_procedures", "age"];
        assert_eq!(nearest("Age", known), "; did you mean \"age\"?");
        assert_eq!(
            nearest("TimeInHospital", known),
            "; did you mean \"time_in_hospital\"?"
        );
        assert_eq!(nearest("glucose", known), "");
    }
}
