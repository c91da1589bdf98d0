//! Rules that turn the cells of a target column into classes.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::composed;

/// When a row counts as positive: an operator (`>`, `>=`, `<`, `<=`, `=`, `!=`) and a value, as in
/// `"> 0"` or `"= yes"`. Orders compare numbers; `=` and `!=` compare numbers where both are, and
/// text otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Rule {
    operator: Operator,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Greater,
    AtLeast,
    Less,
    AtMost,
    Equal,
    Unequal,
}

impl Operator {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
        }
    }
}

/// Longer symbols first, because the shorter are their beginnings.
const OPERATORS: [(&str, Operator); 6] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("!=", Operator::Unequal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("=", Operator::Equal),
];

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let help = || format!("{text:?} is not a rule such as \"> 0\" or \"= yes\"");
        let (symbol, operator) = OPERATORS
            .into_iter()
            .find(|(symbol, _)| text.starts_with(symbol))
            .ok_or_else(help)?;
        let value = text[symbol.len()..].trim().to_owned();
        let needs_number = !matches!(operator, Operator::Equal | Operator::Unequal);
        let symbols = value.starts_with(['>', '<', '=', '!']);
        if value.is_empty() || symbols || needs_number && number(&value).is_none() {
            return Err(help());
        }
        Ok(Self { operator, value })
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        let symbol = OPERATORS
            .iter()
            .find(|(_, operator)| *operator == rule.operator);
        let (symbol, _) = symbol.expect("every operator has a symbol");
        format!("{symbol} {}", rule.value)
    }
}

impl Rule {
    /// Returns whether a cell is positive; `None` where it is text but a number is needed.
    pub fn holds(&self, cell: &str) -> Option<bool> {
        let order = match (number(cell), number(&self.value)) {
            (Some(cell), Some(value)) => cell.partial_cmp(&value)?,
            _ => match self.operator {
                Operator::Equal => return Some(cell == self.value),
                Operator::Unequal => return Some(cell != self.value),
                _ => return None,
            },
        };
        Some(self.operator.holds(order))
    }

    /// Returns whether the rule compares numbers by size: `>`, `>=`, `<` or `<=`.
    pub fn is_order(&self) -> bool {
        !matches!(self.operator, Operator::Equal | Operator::Unequal)
    }

    /// Returns whether a finite number is positive.
    pub fn holds_for(&self, value: f64) -> bool {
        let order = number(&self.value).and_then(|own| value.partial_cmp(&own));
        order.is_some_and(|order| self.operator.holds(order))
    }
}

/// A finite number, if the text is one.
pub fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A whole number that is written with zeros behind the point or comma, without them: `1` for `1.0`.
/// `None` for any other text: `1`, `1.5`, `01.0` and `4E2` among them.
pub fn without_zeros(text: &str) -> Option<&str> {
    let (whole, zeros) = text.split_once(['.', ','])?;
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    let fine = plain && !digits.is_empty() && !zeros.is_empty();
    (fine && zeros.bytes().all(|byte| byte == b'0')).then_some(whole)
}

/// Returns whether all numbers among the cells of a column are whole and written with zeros behind the point.
/// Programs write them so where some values of the column are missing, and such codes are the same as
/// without the zeros. Where only some are, as in `250` and `250.0`, they are different codes.
pub fn are_with_zeros<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let mut some = false;
    for cell in cells {
        match without_zeros(cell) {
            Some(_) => some = true,
            None if number(&cell.replacen(',', ".", 1)).is_some() => return false,
            None => {}
        }
    }
    some
}

/// Returns whether two texts name one class: the same text, however its accents are written, or the same whole number
/// with zeros behind the point in one of them.
pub fn same_class(a: &str, b: &str) -> bool {
    let same = |a: &str, b: &str| without_zeros(a).unwrap_or(a) == without_zeros(b).unwrap_or(b);
    a == b || same(&composed(a), &composed(b))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn rules_compare_numbers_and_text() {
        assert_eq!(rule("> 0").holds("0"), Some(false));
        assert_eq!(rule("> 0").holds("4"), Some(true));
        assert_eq!(rule(">=2").holds("2.0"), Some(true));
        assert_eq!(rule("<= 2").holds("many"), None);
        assert_eq!(rule("= yes").holds("yes"), Some(true));
        assert_eq!(rule("= 1").holds("1.0"), Some(true));
        assert_eq!(rule("!= no").holds("yes"), Some(true));
        assert_eq!(String::from(rule("!=no")), "!= no");
    }

    #[test]
    fn codes_are_texts_and_lose_zero_decimals_only_if_all_have_them() {
        for (text, without) in [("1.0", "1"), ("12,00", "12"), ("-9.0", "-9"), ("0.0", "0")] {
            assert_eq!(without_zeros(text), Some(without));
        }
        for text in [
            "1", "1.5", "01.0", "4E2", "400", "1.", ".0", "1.0.0", "a.0", "",
        ] {
            assert_eq!(without_zeros(text), None, "{text}");
        }
        let are = |cells: &[&str]| are_with_zeros(cells.iter().copied());
        assert!(are(&["1.0", "2.0", "unknown"]));
        // Different codes of a catalogue of diseases.
        assert!(!are(&["250", "250.0"]));
        assert!(!are(&["250.0", "250.1"]));
        assert!(!are(&["a", "b"]));
        assert!(same_class("1", "1.0") && same_class("01", "01"));
        assert!(!same_class("01", "1") && !same_class("4E2", "400"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "0", "> many", "=", "=> 18", "== yes"] {
            let error = Rule::try_from(text.to_owned()).unwrap_err();
            assert_eq!(
                error,
                format!("{text:?} is not a rule such as \"> 0\" or \"= yes\"")
            );
        }
    }
}
