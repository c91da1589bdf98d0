//! Pictures of what a strategy knows of the silos: who is similar to whom, who counts how much, by what
//! groups were formed, and who was with whom.
//!
//! Each is drawn only where the strategy has it. All are SVG without a script, with a sentence for those
//! who cannot see them and the numbers as CSV.

pub(crate) mod course;
mod losses;
mod merges;
mod regions;
mod topology;
mod weights;

use maud::{Markup, html};
use serde_json::Value;

use super::story::Story;

/// The most silos whose names are written beside what is drawn of them.
const NAMED: usize = 32;

/// All sections that the story has something for.
pub(crate) fn sections(story: &Story) -> Markup {
    html! {
        (topology::section(story))
        (weights::section(story))
        (losses::section(story))
        (merges::section(story))
    }
}

/// Returns what the strategy keeps under a name that ends so, for example `.lambda`.
fn kept<'a>(memory: &'a std::collections::BTreeMap<String, Value>, end: &str) -> Option<&'a Value> {
    let mut found = memory.iter().filter(|(name, _)| name.ends_with(end));
    found.next().map(|(_, value)| value)
}

/// Numbers of all members in roster order; `None` for a list of another length.
fn of_members(value: &Value, members: usize) -> Option<Vec<f64>> {
    let numbers: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
    numbers.filter(|numbers| numbers.len() == members)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture;

    /// The attributes of that name, as numbers.
    pub(crate) fn numbers_of(svg: &str, attribute: &str) -> Vec<f64> {
        let start = format!(" {attribute}=\"");
        let parts = svg.split(start.as_str()).skip(1);
        let texts = parts.filter_map(|part| part.split('"').next());
        texts.filter_map(|text| text.parse().ok()).collect()
    }

    /// Asserts that all that has a place in these drawings is inside of their view boxes.
    pub(crate) fn assert_inside(page: &str) {
        for svg in page.split("<svg ").skip(1) {
            let svg = svg.split("</svg>").next().unwrap_or_default();
            let view = svg.split("viewBox=\"0 0 ").nth(1).unwrap_or_default();
            let view = view.split('"').next().unwrap_or_default();
            let size: Vec<f64> = view
                .split(' ')
                .filter_map(|side| side.parse().ok())
                .collect();
            let [width, height] = size[..] else {
                panic!("no view box in {svg}")
            };
            let most = [
                (width, ["x", "x1", "x2", "cx"].as_slice()),
                (height, ["y", "y1", "y2", "cy"].as_slice()),
            ];
            for (most, attributes) in most {
                for attribute in attributes {
                    for at in numbers_of(svg, attribute) {
                        assert!((0.0..=most).contains(&at), "{attribute} {at} of {most}");
                    }
                }
            }
            // Paths are of absolute places only.
            for path in svg.split(" d=\"").skip(1) {
                let path = path.split('"').next().unwrap_or_default();
                assert!(!path.contains("NaN") && !path.contains("inf"), "{path}");
            }
        }
    }

    #[test]
    fn a_story_without_topology_losses_and_merges_has_no_picture() {
        for silos in [1, 6, 139] {
            let page = sections(&fixture::story(silos, 2, 3)).into_string();
            assert_eq!(page, "");
        }
    }
}
