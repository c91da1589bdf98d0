//! The colours of pages and drawings, for light and dark mode.

/// Name, colour in light mode, colour in dark mode.
const COLOURS: [(&str, &str, &str); 22] = [
    ("ground", "#f6f7f9", "#12161b"),
    ("paper", "#ffffff", "#1a2027"),
    ("ink", "#1b1f24", "#e6eaee"),
    ("muted", "#59636e", "#9ea9b5"),
    ("line", "#d8dde3", "#36404b"),
    ("grid", "#e8ebef", "#28313a"),
    ("accent", "#0b5c8f", "#7cc0ee"),
    ("best", "#d9efe3", "#163f2c"),
    ("best-ink", "#0c5132", "#8fe0b4"),
    ("bad", "#b3261e", "#ff8a80"),
    ("bad-ground", "#fbe4e2", "#45201e"),
    ("messages", "#0072b2", "#5aa9e6"),
    ("blobs", "#c27c00", "#e69f00"),
    ("on", "#ffffff", "#12161b"),
    ("k0", "#0072b2", "#5aa0ee"),
    ("k1", "#c27c00", "#e69f00"),
    ("k2", "#008f68", "#2bb88f"),
    ("k3", "#b5578f", "#dc93c3"),
    ("k4", "#c84f00", "#f0763a"),
    ("k5", "#3391c9", "#8fd6f7"),
    ("k6", "#6b6b6b", "#b0b0b0"),
    ("none", "#a8b0b9", "#5d6975"),
];

/// The media query of dark mode: on screens, never on paper.
const DARK: &str = "@media screen and (prefers-color-scheme: dark)";

/// All colours as variables of a style sheet.
pub fn variables() -> String {
    let block = |scheme: &str, colour: fn(&(&str, &str, &str)) -> String| {
        let all: String = COLOURS.iter().map(colour).collect();
        format!(":root {{ color-scheme: {scheme}; {all}}}\n")
    };
    let light = block("light", |(name, light, _)| format!("--{name}: {light}; "));
    let dark = block("dark", |(name, _, dark)| format!("--{name}: {dark}; "));
    format!("{light}{DARK} {{ {dark}}}\n")
}

/// The rules with every variable replaced by its colour, for programs that draw an SVG file and do
/// not know variables. Programs without dark mode use the light colours.
pub fn inlined(rules: &str) -> String {
    let (mut light, mut dark) = (rules.to_owned(), rules.to_owned());
    for (name, on_light, on_dark) in COLOURS {
        let variable = format!("var(--{name})");
        light = light.replace(&variable, on_light);
        dark = dark.replace(&variable, on_dark);
    }
    format!("{light}{DARK} {{\n{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_is_there_on_light_and_on_dark_pages() {
        assert_eq!(variables().matches("--paper: ").count(), 2);
    }

    #[test]
    fn inlined_rules_have_the_light_colours_first_and_no_variables() {
        let rules = inlined(".a { fill: var(--k1); stroke: var(--paper); }\n");
        assert_eq!(
            rules,
            ".a { fill: #c27c00; stroke: #ffffff; }\n\
             @media screen and (prefers-color-scheme: dark) {\n\
             .a { fill: #e69f00; stroke: #1a2027; }\n}\n"
        );
    }
}
