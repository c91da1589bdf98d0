//! An HTML page as one file that loads nothing. Its one script sorts tables, names lines and saves plots; without
//! it the page is complete.

use data_encoding::BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::palette;

/// The styles of all pages.
pub const STYLE: &str = include_str!("style.css");
/// The script of all pages.
pub const SCRIPT: &str = include_str!("script.js");

/// Returns what the browser may do: use the page's styles and run the script with this very text. Even if a
/// name in the data held HTML, it would load nothing and run nothing else.
pub fn policy() -> String {
    let hash = BASE64.encode(&Sha256::digest(SCRIPT));
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'")
}

/// An HTML document with this title and content, and all that it needs. `styles` are those that it has besides
/// [`STYLE`].
pub fn document(title: &str, styles: &str, content: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy());
                title { (title) }
                style { (PreEscaped(palette::variables())) (PreEscaped(STYLE)) (PreEscaped(styles)) }
            }
            body {
                main { (content) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}
