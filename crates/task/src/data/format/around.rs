//! Text around the number of a cell that is no part of it: a unit, or the sign of a bound.

use super::Format;
use super::grammar::{folded, is_space};

/// A bound in place of a number: what was measured is below or above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSide {
    /// `<0.5`: less than could be measured.
    Below,
    /// `>100`, `90+`.
    Above,
}

/// A number with something around it.
#[derive(Debug, Clone, PartialEq)]
pub struct AroundNumber {
    /// The number itself.
    pub value: f64,
    /// The side of the limit, if it is a bound.
    pub bound: Option<LimitSide>,
    /// The text before or behind the digits, such as `mg`.
    pub unit: Option<String>,
}

/// Signs that stand before a bound. Longer ones first, because the shorter are their beginnings.
const BOUNDS: [(&str, LimitSide); 20] = [
    ("<=", LimitSide::Below),
    ("=<", LimitSide::Below),
    (">=", LimitSide::Above),
    ("=>", LimitSide::Above),
    ("<", LimitSide::Below),
    (">", LimitSide::Above),
    ("\u{2264}", LimitSide::Below),
    ("\u{2265}", LimitSide::Above),
    ("\u{2A7D}", LimitSide::Below),
    ("\u{2A7E}", LimitSide::Above),
    ("\u{FF1C}", LimitSide::Below),
    ("\u{FF1E}", LimitSide::Above),
    ("less than ", LimitSide::Below),
    ("more than ", LimitSide::Above),
    ("below ", LimitSide::Below),
    ("above ", LimitSide::Above),
    ("under ", LimitSide::Below),
    ("over ", LimitSide::Above),
    ("unter ", LimitSide::Below),
    ("\u{FC}ber ", LimitSide::Above),
];

/// Most characters of a cell that is looked at: what is longer is a text.
const LONGEST: usize = 40;

/// A text without the sign of a bound, which stands before it, or is a plus behind it; and the bound.
fn without_bound(text: &str) -> (&str, Option<LimitSide>) {
    let ahead = BOUNDS.iter().find_map(|(sign, bound)| {
        let start = text.get(..sign.len())?;
        let rest = &text[sign.len()..];
        start
            .eq_ignore_ascii_case(sign)
            .then_some((rest.trim_start(), Some(*bound)))
    });
    let behind = || {
        let rest = text.strip_suffix('+')?;
        Some((rest.trim_end(), Some(LimitSide::Above)))
    };
    ahead.or_else(behind).unwrap_or((text, None))
}

/// A unit as it is compared: one letter for the two of micro, and no spaces around.
fn folded_unit(unit: &str) -> String {
    let fold = |letter: char| match letter {
        '\u{B5}' => '\u{3BC}',
        letter if is_space(letter) => ' ',
        letter => letter,
    };
    unit.trim().chars().map(fold).collect()
}

/// Letters of which a number goes on.
fn of_number(letter: char) -> bool {
    letter.is_ascii_digit() || matches!(letter, '.' | ',' | '\'' | '_' | '\u{B7}')
}

impl Format {
    /// The number of a cell that has a unit around it, or is a bound. `None` for a plain number and for any
    /// other text: `T1` and `v1.2` are codes, `2024-05-31` is a date.
    pub fn around(&self, text: &str) -> Option<AroundNumber> {
        let digits = text.contains(char::is_numeric);
        if !digits || text.chars().count() > LONGEST || self.number(text).is_some() {
            return None;
        }
        let text = folded_unit(&folded(text));
        let (rest, bound) = without_bound(&text);
        if bound.is_some()
            && let Some(value) = self.number(rest)
        {
            let unit = None;
            return Some(AroundNumber { value, bound, unit });
        }
        let (value, unit) = self.number_first(rest).or_else(|| self.number_last(rest))?;
        let unit = unit.trim();
        // Groups of digits that this format does not know, unless it is a power, as in 10*9/L.
        let power = unit
            .strip_prefix("10")
            .is_some_and(|rest| rest.starts_with(['*', '^']));
        if unit.starts_with(of_number) && !power {
            return None;
        }
        let unit = Some(unit.to_owned());
        Some(AroundNumber { value, bound, unit })
    }

    /// A number and what stands behind it.
    fn number_first<'a>(&self, text: &'a str) -> Option<(f64, &'a str)> {
        let ends = text.char_indices().rev();
        ends.filter(|(end, _)| text[..*end].ends_with(of_number))
            .find_map(|(end, next)| {
                let number = self.number(&text[..end])?;
                let goes_on = of_number(next) || matches!(next, '-' | '/' | ':' | '+');
                (!goes_on).then_some((number, &text[end..]))
            })
    }

    /// A number and what stands before it, which is no letter right before the digits.
    fn number_last<'a>(&self, text: &'a str) -> Option<(f64, &'a str)> {
        let mut starts = text.char_indices().skip(1);
        starts.find_map(|(start, _)| {
            let before = text[..start].chars().next_back()?;
            let joined = before.is_alphanumeric()
                || of_number(before)
                || matches!(before, '-' | '/' | ':' | '+' | '(' | '#');
            let number = self.number(&text[start..])?;
            (!joined).then_some((number, &text[..start]))
        })
    }

    /// The number of a cell that has one of these units around it, or none; and whether it is a bound.
    pub fn with_units<'u>(
        &self,
        text: &str,
        units: impl Iterator<Item = &'u str>,
    ) -> Option<(f64, Option<LimitSide>)> {
        let text = folded_unit(&folded(text));
        let (rest, bound) = without_bound(&text);
        let plain = bound.and_then(|_| self.number(rest));
        let value = plain.or_else(|| {
            units
                .map(folded_unit)
                .filter(|unit| !unit.is_empty())
                .find_map(|unit| {
                    let inner = rest.strip_suffix(&*unit).or(rest.strip_prefix(&*unit))?;
                    self.number(inner)
                })
        });
        value.map(|value| (value, bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(text: &str) -> Option<(f64, Option<LimitSide>, Option<String>)> {
        let found = Format::default().around(text);
        found.map(|found| (found.value, found.bound, found.unit))
    }

    #[test]
    fn units_stand_before_or_behind_a_number() {
        for (text, value, unit) in [
            ("2.55 mg", 2.55, "mg"),
            ("2.55mg", 2.55, "mg"),
            ("037Y", 37.0, "Y"),
            ("mg 2.55", 2.55, "mg"),
            ("37.5 \u{B0}C", 37.5, "\u{B0}C"),
            ("24.1 kg/m2", 24.1, "kg/m2"),
            ("5.1 x10^9/L", 5.1, "x10^9/L"),
            ("12 \u{B5}g", 12.0, "\u{3BC}g"),
            ("-3 dB", -3.0, "dB"),
            ("\"7 bpm\"", 7.0, "bpm"),
            ("~5", 5.0, "~"),
            ("ca. 5", 5.0, "ca."),
            ("1e5 copies", 1e5, "copies"),
        ] {
            assert_eq!(
                around(text),
                Some((value, None, Some(unit.into()))),
                "{text}"
            );
        }
        for code in [
            "T1",
            "v1.2",
            "P0001",
            "2024-05-31",
            "12:30",
            "10.0.0.1",
            "120/80",
            "general",
            "30-40",
            "1.2.3",
            "5",
            "(5 mg)",
            "1 234 kg",
            "",
            "mg",
            "#12",
            "12.03.2024",
        ] {
            assert_eq!(around(code), None, "{code}");
        }
    }

    #[test]
    fn bounds_stand_before_a_number_or_are_a_plus_behind_it() {
        for (text, value, bound, unit) in [
            ("<0.5", 0.5, LimitSide::Below, None),
            ("< 0.5", 0.5, LimitSide::Below, None),
            ("\u{2264}5", 5.0, LimitSide::Below, None),
            ("=<5", 5.0, LimitSide::Below, None),
            ("Less than 5", 5.0, LimitSide::Below, None),
            (">100", 100.0, LimitSide::Above, None),
            (">=100", 100.0, LimitSide::Above, None),
            ("> 89", 89.0, LimitSide::Above, None),
            ("90+", 90.0, LimitSide::Above, None),
            ("<0.5 mg/l", 0.5, LimitSide::Below, Some("mg/l")),
        ] {
            let unit = unit.map(str::to_owned);
            assert_eq!(around(text), Some((value, Some(bound), unit)), "{text}");
        }
    }

    #[test]
    fn a_known_unit_is_left_out_and_another_is_not() {
        let read = |text: &str| Format::default().with_units(text, ["\u{B5}g"].into_iter());
        assert_eq!(read("5 \u{3BC}g"), Some((5.0, None)));
        assert_eq!(read("5\u{B5}g"), Some((5.0, None)));
        assert_eq!(read("\u{B5}g 5"), Some((5.0, None)));
        assert_eq!(read("<5 \u{B5}g"), Some((5.0, Some(LimitSide::Below))));
        assert_eq!(read("<5"), Some((5.0, Some(LimitSide::Below))));
        assert_eq!(read("5 mg"), None);
        assert_eq!(read("5"), None);
    }
}
