//! Downloads of the page: a plot as an SVG file, its data as a CSV file.
//!
//! The CSV is in the link itself, so that it needs no script. The SVG is made from the drawing by the
//! page's script, which shows the button; the file has the colours that the page shows.

use maud::{Markup, html};

/// Bytes that stand for themselves in a data URL.
fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~,;:".contains(&byte)
}

/// A table as CSV (RFC 4180): quoted where needed, lines end with `\n`.
pub(crate) fn csv<R: IntoIterator<Item = String>>(
    head: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> String {
    let cell = |text: &str| {
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let mut text = head.join(",") + "\n";
    for row in rows {
        let cells: Vec<String> = row.into_iter().map(|text| cell(&text)).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// A number in a CSV: with all its digits; empty where there is none.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// A link that saves this text as `NAME.csv`.
pub(crate) fn data(name: &str, csv: &str) -> Markup {
    let mut url = String::from("data:text/csv;charset=utf-8,");
    for &byte in csv.as_bytes() {
        if plain(byte) {
            url.push(char::from(byte))
        } else {
            url.push_str(&format!("%{byte:02X}"))
        }
    }
    html! { a.save href=(url) download={ (name) ".csv" } { "Data as CSV" } }
}

/// Both downloads of a plot, which stands beside them in one `figure`.
pub(crate) fn plot(name: &str, csv: &str) -> Markup {
    html! {
        div.saves {
            button.save type="button" data-svg={ (name) ".svg" } hidden { "Plot as SVG" }
            (data(name, csv))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        let rows = [
            vec!["a, \"b\"".to_owned(), number(Some(0.5))],
            vec![String::new(), number(None)],
        ];
        assert_eq!(
            csv(&["silo", "value"], rows),
            "silo,value\n\"a, \"\"b\"\"\",0.5\n,\n"
        );
    }

    #[test]
    fn the_link_holds_the_bytes_of_the_text() {
        let link = data("curves", "silo\nZürich <1>\n").into_string();
        assert!(link.contains("download=\"curves.csv\""), "{link}");
        assert!(link.contains("silo%0AZ%C3%BCrich%20%3C1%3E%0A"), "{link}");
    }
}
