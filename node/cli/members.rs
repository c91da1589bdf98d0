//! Members on the command line.

use protocol::PublicKey;

/// `NAME=KEY` or `NAME=KEY=ROWS`: the key as 64 hexadecimal digits, and the most training rows that the member's
/// models may claim.
///
/// # Errors
/// A sentence: what it must look like.
pub(super) fn member(text: &str) -> Result<(String, PublicKey, Option<u64>), String> {
    let rows = text.rsplit_once('=').and_then(|(member, rows)| {
        // A key may be of decimal digits alone.
        let rows = Some(rows.trim()).filter(|rows| rows.len() < 64)?;
        Some((member, rows.parse::<u64>().ok()?))
    });
    let (text, rows) = match rows {
        Some((_, rows)) if !(1..=protocol::roster::MOST_ROWS).contains(&rows) => {
            return Err(format!(
                "the rows in {text:?} must be between 1 and {}",
                protocol::roster::MOST_ROWS
            ));
        }
        Some((member, rows)) => (member, Some(rows)),
        None => (text, None),
    };
    let wrong = || {
        format!(
            "{text:?} must be NAME=KEY, with the 64 hexadecimal digits that `rota identity` prints, or NAME=KEY=ROWS"
        )
    };
    let (name, key) = text.rsplit_once('=').ok_or_else(wrong)?;
    let key = agreement::public_key(key.trim()).ok_or_else(wrong)?;
    match name.trim() {
        "" => Err(wrong()),
        name => Ok((name.to_owned(), key, rows)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_member_that_joins_may_declare_its_rows() {
        let key = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
        let read = |text: String| member(&text);
        let (name, known, rows) = read(format!("a = b={key}=120")).unwrap();
        assert_eq!((&*name, rows), ("a = b", Some(120)));
        let without = read(format!("a={key}")).unwrap();
        assert_eq!(without, ("a".into(), known, None));
        for wrong in [format!("a={key}=0"), format!("a={key}=x"), "a=12".into()] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
