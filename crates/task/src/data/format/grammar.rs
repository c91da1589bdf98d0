//! Grammar of numbers: the marks in them, and the text around them.

/// A number as a cell writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenNumber {
    /// Value of the number, finite.
    pub value: f64,
    /// Text beside the digits: a currency, a sign of per cent.
    pub unit: Option<String>,
    /// Mark of a negative number.
    pub negative: Negative,
}

/// Way in which a cell marks a negative number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Negative {
    /// The number is not negative.
    No,
    /// By a sign before the digits.
    Sign,
    /// By brackets, as accountants do: `(123)`.
    Brackets,
    /// By a sign behind the digits: `123-`.
    Behind,
}

/// Currencies that may stand before or behind a number.
const CURRENCIES: [&str; 29] = [
    "US$", "$", "€", "£", "¥", "₹", "₽", "₺", "₩", "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR",
    "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "CAD", "AUD", "Fr.", "SFr.", "kr.", "kr", "zł",
];

/// Spaces that people put between digits.
pub(crate) fn is_space(letter: char) -> bool {
    matches!(
        letter,
        ' ' | '\u{a0}' | '\u{2007}' | '\u{2008}' | '\u{2009}' | '\u{200a}' | '\u{202f}'
    )
}

/// The raised point of British print, which is before decimals wherever it stands. Its like is read as it, and
/// written so.
pub const RAISED: char = '\u{B7}';

/// Digits and marks in ASCII: full-width and Arabic digits, the minus of typesetting, every space and
/// every apostrophe. A dash counts as a minus only before a digit or a mark. Quotation marks around the whole
/// and dashes in the place of decimals, as in `5.-`, are left out.
pub(crate) fn folded(text: &str) -> String {
    let letters: Vec<char> = unquoted(text.trim()).chars().collect();
    let digits = |letter: char| {
        [0xFF10, 0x0660, 0x06F0].into_iter().find_map(|zero: u32| {
            let digit = u32::from(letter)
                .checked_sub(zero)
                .filter(|digit| *digit < 10)?;
            char::from_digit(digit, 10)
        })
    };
    let fold = |(at, &letter): (usize, &char)| match letter {
        '\u{2212}' | '\u{FF0D}' | '\u{FE63}' => '-',
        '\u{2010}'..='\u{2013}'
            if letters
                .get(at + 1)
                .is_some_and(|next| next.is_numeric() || matches!(next, '.' | ',')) =>
        {
            '-'
        }
        '\u{FF0B}' => '+',
        '\u{FF0E}' => '.',
        '\u{FF0C}' => ',',
        '\u{2019}' | '\u{02BC}' | '\u{66C}' => '\'',
        '\u{2219}' | '\u{22C5}' | '\u{30FB}' | '\u{66B}' => RAISED,
        letter if is_space(letter) => ' ',
        letter => digits(letter).unwrap_or(letter),
    };
    without_dashed_decimals(letters.iter().enumerate().map(fold).collect())
}

/// A text without the quotation marks around it, or the apostrophe by which spreadsheets keep it a text.
fn unquoted(text: &str) -> &str {
    let inner = ['"', '\''].into_iter().find_map(|mark| {
        let rest = text.strip_prefix(mark)?;
        rest.strip_suffix(mark)
            .or_else(|| Some(rest).filter(|_| mark == '\''))
    });
    inner.map_or(text, str::trim)
}

/// A number without the dashes that stand in the place of decimals: `5.-`, `CHF 5.--`, `100,\u{2013}`.
fn without_dashed_decimals(text: String) -> String {
    let dash = |letter: char| matches!(letter, '-' | '\u{2010}'..='\u{2015}');
    let found = text.char_indices().find_map(|(at, mark)| {
        let rest = text[at..].strip_prefix(['.', ','])?;
        let behind = rest.trim_start_matches(dash);
        let digit = |letter: char| letter.is_ascii_digit();
        (behind.len() < rest.len() && text[..at].ends_with(digit) && !behind.starts_with(digit))
            .then_some((at, at + mark.len_utf8() + rest.len() - behind.len()))
    });
    match found {
        Some((from, to)) => [&text[..from], &text[to..]].concat(),
        None => text,
    }
}

/// A number in plain form: an optional minus, digits, at most one point, an exponent with `e`. The text
/// is folded already. Zeros stay where they are.
///
/// The grammar is `[+-] digits [decimal digits] [exponent]`, with at least one digit before or behind the
/// decimal mark; an exponent is `e` or `E`, or, behind a decimal mark, the `d` or `D` of Fortran, then
/// an optional sign and digits. With a mark of thousands the digits before the decimal mark are either
/// without marks, or in groups of three, or, as in India, in groups of two before the last three.
pub(crate) fn plain(text: &str, decimal: char, thousands: Option<char>) -> Option<String> {
    let (sign, rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) if text.starts_with('-') => ("-", rest),
        Some(rest) => ("", rest),
        None => ("", text),
    };
    let power = rest.find(['e', 'E', 'd', 'D']);
    let (digits, power) = match power {
        None => (rest, None),
        Some(at) => {
            let fortran = matches!(rest.as_bytes()[at], b'd' | b'D');
            if fortran && !rest[..at].contains([decimal, RAISED]) {
                return None;
            }
            (&rest[..at], Some(&rest[at + 1..]))
        }
    };
    let (whole, part) = match digits.split_once([decimal, RAISED]) {
        Some((whole, part)) => (whole, Some(part)),
        None => (digits, None),
    };
    let all = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = match thousands {
        Some(mark) if whole.contains(mark) => grouped(whole, mark)?,
        _ => whole.to_owned(),
    };
    let any = !whole.is_empty() || part.is_some_and(|part| !part.is_empty());
    if !any || !all(&whole) || !part.is_none_or(all) {
        return None;
    }
    let mut plain = format!("{sign}{whole}");
    if let Some(part) = part {
        plain.push('.');
        plain.push_str(part);
    }
    if let Some(power) = power {
        let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
        if digits.is_empty() || !all(digits) {
            return None;
        }
        plain.push('e');
        plain.push_str(power);
    }
    Some(plain)
}

/// The digits of a number in groups, if the groups are right.
pub fn grouped(text: &str, mark: char) -> Option<String> {
    let groups: Vec<&str> = text.split(mark).collect();
    let digits = |group: &&str| group.bytes().all(|byte| byte.is_ascii_digit());
    let (first, rest) = groups.split_first()?;
    let (last, middle) = rest.split_last()?;
    let western = (1..=3).contains(&first.len()) && middle.iter().all(|group| group.len() == 3);
    let indian = (1..=2).contains(&first.len()) && middle.iter().all(|group| group.len() == 2);
    let right = groups.iter().all(digits)
        && last.len() == 3
        && (western || indian)
        && !first.starts_with('0');
    right.then(|| groups.concat())
}

/// A finite number, with what is written around its digits.
pub(crate) fn written(text: &str, decimal: char, thousands: Option<char>) -> Option<WrittenNumber> {
    let value = |text: &str| {
        let value: Option<f64> = plain(text, decimal, thousands)?.parse().ok();
        value.filter(|value| value.is_finite())
    };
    // Most numbers are digits, a sign and a point.
    let bytes = text.as_bytes();
    let usual = |(at, byte): (usize, &u8)| {
        byte.is_ascii_digit() || (*byte == b'.' && decimal == '.') || (at == 0 && *byte == b'-')
    };
    if bytes.iter().enumerate().all(usual)
        && let Some(value) = text.parse().ok().filter(|value: &f64| value.is_finite())
    {
        return Some(WrittenNumber {
            value,
            unit: None,
            negative: match bytes.first() {
                Some(b'-') => Negative::Sign,
                _ => Negative::No,
            },
        });
    }
    let text = folded(text);
    if let Some(value) = value(&text) {
        return Some(WrittenNumber {
            value,
            unit: None,
            negative: if text.starts_with('-') {
                Negative::Sign
            } else {
                Negative::No
            },
        });
    }
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let brackets = inner.is_some();
    let (rest, mut unit) = bare(inner.unwrap_or(&text).trim());
    // A sign before the currency, as in `-$5`, and one behind the number.
    let (ahead, rest) = match rest.strip_prefix('-').map(str::trim_start) {
        Some(inner) if unit.is_none() => {
            let (inner, found) = bare(inner);
            unit = found;
            (true, inner)
        }
        _ => (false, rest),
    };
    let (behind, rest) = match rest.strip_suffix('-') {
        Some(inner) => (true, inner),
        None => (false, rest),
    };
    let (rest, unit) = match unit {
        None if behind => bare(rest.trim_end()),
        unit => (rest, unit),
    };
    let own = rest.starts_with(['-', '+']);
    let marks = usize::from(brackets) + usize::from(ahead) + usize::from(behind) + usize::from(own);
    if marks > 1 {
        return None;
    }
    let size = value(rest)?;
    let negative = match (brackets, behind) {
        (true, _) => Negative::Brackets,
        (_, true) => Negative::Behind,
        _ if ahead || rest.starts_with('-') => Negative::Sign,
        _ => Negative::No,
    };
    let turned = brackets || behind || ahead;
    Some(WrittenNumber {
        value: if turned { -size } else { size },
        unit,
        negative,
    })
}

/// The digits and marks of what may be a number, without sign, brackets, currency and exponent; and
/// whether there is an exponent. `None` for any other text.
pub fn core(text: &str) -> Option<(String, bool)> {
    let text = folded(text);
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let sign = |letter: char| matches!(letter, '+' | '-' | ' ');
    let text = inner.unwrap_or(&text).trim_matches(sign);
    let text = bare(text).0.trim_matches(sign);
    let (digits, power) = match text.split_once(['e', 'E']) {
        Some((digits, power)) => (digits, Some(power.trim_start_matches(['+', '-']))),
        None => (text, None),
    };
    let all = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let known = |letter: char| {
        letter.is_ascii_digit() || matches!(letter, '.' | ',' | '\'' | ' ' | '_' | RAISED)
    };
    let right = digits.chars().all(known)
        && digits.contains(|letter: char| letter.is_ascii_digit())
        && power.is_none_or(all);
    right.then(|| (digits.to_owned(), power.is_some()))
}

/// A text without the currency or the sign of per cent that it begins or ends with.
fn bare(text: &str) -> (&str, Option<String>) {
    let digit =
        |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',' | '-' | '+' | RAISED);
    for unit in CURRENCIES {
        if let Some(rest) = text.strip_prefix(unit) {
            let rest = rest.trim_start();
            if rest.starts_with(digit) {
                return (rest, Some(unit.to_owned()));
            }
        }
    }
    for unit in CURRENCIES.into_iter().chain(["%", "‰"]) {
        if let Some(rest) = text.strip_suffix(unit) {
            let rest = rest.trim_end();
            if rest.ends_with(digit) {
                return (rest, Some(unit.to_owned()));
            }
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        written(text, '.', None).map(|written| written.value)
    }

    #[test]
    fn numbers_are_digits_with_one_decimal_mark_and_an_exponent() {
        let numbers = [
            ("12", 12.0),
            ("-12.5", -12.5),
            ("+5", 5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e5", 1e5),
            ("1.5E-03", 0.0015),
            ("1.5D+03", 1500.0),
            ("-2.50d-1", -0.25),
            ("007", 7.0),
            ("\u{2212}3.5", -3.5),
            ("\u{2013}3", -3.0),
            ("\u{FF11}\u{FF12}", 12.0),
            ("\u{FF0D}\u{FF11}\u{FF0E}\u{FF15}", -1.5),
            ("\u{0663}\u{0664}", 34.0),
            (" 7\u{a0}", 7.0),
        ];
        for (text, expected) in numbers {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn dashes_in_the_place_of_decimals_are_no_minus() {
        let swiss = |text: &str| written(text, '.', Some('\'')).map(|written| written.value);
        for (text, expected) in [
            ("CHF 1'234'567.-", 1_234_567.0),
            ("CHF 5.--", 5.0),
            ("1'234.\u{2013}", 1234.0),
            ("Fr. 12.\u{2014}", 12.0),
            ("12.- CHF", 12.0),
            ("\u{20AC} 100,-", 100.0),
            ("-5.-", -5.0),
            // Behind digits it is the minus of accountants.
            ("5-", -5.0),
            ("5.50-", -5.5),
        ] {
            assert_eq!(swiss(text), Some(expected), "{text}");
        }
        assert_eq!(
            core("CHF 1'234.-"),
            Some(("1'234".to_owned(), false)),
            "tells thousands, and nothing of decimals"
        );
    }

    #[test]
    fn raised_decimal_points_and_quotation_marks_are_read() {
        for text in [
            "2\u{B7}55",
            "2\u{22C5}55",
            "2\u{2219}55",
            "\u{662}\u{66B}\u{665}\u{665}",
            "\"2.55\"",
            "'2.55'",
            "'2.55",
            "\"2\u{B7}55\"",
        ] {
            assert_eq!(value(text), Some(2.55), "{text}");
            let german = written(&text.replace('.', ","), ',', Some('.'));
            assert_eq!(german.map(|written| written.value), Some(2.55), "{text}");
        }
        assert_eq!(value("2\u{B7}5\u{B7}5"), None);
    }

    #[test]
    fn infinite_hexadecimal_and_other_texts_are_no_numbers() {
        let texts = [
            "", ".", "-", "+", "e5", "1e", "1e+", "inf", "-inf", "Inf", "Infinity", "infinity",
            "nan", "NaN", "1e999", "-1e999", "0x1F", "0b1", "1_000", "1,5", "1.2.3", "4D2", "12a",
            "--5", "+-5", "5 6", "5%%", "$", "%", "()", "(", "\u{221e}", "½", "1/2", "1:30",
            "\u{2013}", "-5-", "(-5)", "(5-)", "$-", "5 $ €",
        ];
        for text in texts {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn currencies_per_cent_and_accounting_minus_are_read() {
        let us = |text: &str| written(text, '.', Some(','));
        let german = |text: &str| written(text, ',', Some('.'));
        let of = |value, unit: Option<&str>, negative| {
            Some(WrittenNumber {
                value,
                unit: unit.map(str::to_owned),
                negative,
            })
        };
        assert_eq!(us("$1,234.00"), of(1234.0, Some("$"), Negative::No));
        assert_eq!(us("-$5.50"), of(-5.5, Some("$"), Negative::Sign));
        assert_eq!(us("$-5.50"), of(-5.5, Some("$"), Negative::Sign));
        assert_eq!(us("($1,234)"), of(-1234.0, Some("$"), Negative::Brackets));
        assert_eq!(us("(123)"), of(-123.0, None, Negative::Brackets));
        assert_eq!(us("123-"), of(-123.0, None, Negative::Behind));
        assert_eq!(us("USD 12"), of(12.0, Some("USD"), Negative::No));
        assert_eq!(german("1.234,50 €"), of(1234.5, Some("€"), Negative::No));
        assert_eq!(
            german("1.234,50- €"),
            of(-1234.5, Some("€"), Negative::Behind)
        );
        assert_eq!(german("12 %"), of(12.0, Some("%"), Negative::No));
        assert_eq!(german("12\u{a0}%"), of(12.0, Some("%"), Negative::No));
        assert_eq!(german("-0,5%"), of(-0.5, Some("%"), Negative::Sign));
    }

    #[test]
    fn thousands_are_in_strict_groups() {
        let read = |text: &str, decimal, mark| {
            written(text, decimal, Some(mark)).map(|written| written.value)
        };
        assert_eq!(read("12,345", '.', ','), Some(12_345.0));
        assert_eq!(read("1,234,567.5", '.', ','), Some(1_234_567.5));
        assert_eq!(read("1,23,456", '.', ','), Some(123_456.0));
        assert_eq!(read("12,34,56,789", '.', ','), Some(123_456_789.0));
        assert_eq!(read("1.234.567,5", ',', '.'), Some(1_234_567.5));
        assert_eq!(read("1'234.5", '.', '\''), Some(1234.5));
        assert_eq!(read("1\u{2019}234", '.', '\''), Some(1234.0));
        for space in [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\u{2007}'] {
            let text = format!("-1{space}234,5");
            assert_eq!(read(&text, ',', ' '), Some(-1234.5), "{space:?}");
        }
        assert_eq!(read("1234", '.', ','), Some(1234.0));
        assert_eq!(read("999", '.', ','), Some(999.0));
        for text in [
            "1,2",
            "1,23",
            "1,2345",
            "0,123",
            "1234,567",
            ",123",
            "1,,234",
            "1,234,",
            "1.234,567",
        ] {
            assert_eq!(read(text, '.', ','), None, "{text}");
        }
    }
}
