//! The status of all nodes as lines of text, for `rota status --federation`.

use super::{NodeStatus, Nodes};
use crate::status::text::short;
use formatting::numbers::{bytes, plain};

/// Columns of a line; what is longer goes on below.
const WIDTH: usize = 100;

/// All lines, with a line break at the end.
pub fn text(nodes: &Nodes) -> String {
    let federation = &nodes.federation;
    let mut lines = vec![
        format!(
            "{} ({}), {} members, as the node of {} sees them; a round needs {}",
            federation.name,
            short(&federation.id),
            federation.members,
            nodes.silo,
            federation.quorum
        ),
        String::new(),
    ];
    let rows: Vec<_> = nodes.nodes.iter().map(|node| (node, cells(node))).collect();
    let titles = ["node", "round", "adopted", "disk free", "version"];
    let width = |column: usize| {
        let of =
            |cells: &Option<[String; 5]>| cells.as_ref().map_or(0, |cells| chars(&cells[column]));
        let widest = rows.iter().map(|(_, cells)| of(cells)).max();
        widest.unwrap_or(0).max(chars(titles[column]))
    };
    let names = nodes.nodes.iter().map(|node| chars(&label(node)));
    let name = names.max().unwrap_or(0).max(chars(titles[0]));
    let widths = [name, width(1), width(2), width(3), width(4)];
    let padded = |cells: &[String; 5]| {
        let each = cells.iter().zip(widths).map(|(cell, width)| {
            let room = " ".repeat(width.saturating_sub(chars(cell)));
            format!("{cell}{room}")
        });
        each.collect::<Vec<_>>().join("  ")
    };
    let head = padded(&titles.map(str::to_owned));
    let indent = " ".repeat(chars(&head) + 4);
    lines.push(format!("  {head}  now"));
    for (node, cells) in &rows {
        match (cells, &node.status) {
            (Some(cells), Some(doing)) => {
                let start = format!("  {}  ", padded(cells));
                lines.extend(wrapped(&doing.doing(), &start, &indent));
                if let Some(trouble) = node.trouble() {
                    lines.extend(wrapped(&trouble, &indent, &indent));
                }
            }
            _ => {
                let start = format!("  {:name$}  ", label(node));
                let why = node.why.as_deref().unwrap_or_default();
                lines.extend(wrapped(why, &start, &" ".repeat(name + 4)));
            }
        }
    }
    if let Some(hint) = nodes.hint() {
        lines.push(String::new());
        lines.extend(wrapped(hint, "", ""));
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(plain(&line).trim_end());
        text.push('\n');
    }
    text
}

/// Lines of at most [`WIDTH`] columns; at least forty of them are for the text.
fn wrapped(text: &str, start: &str, indent: &str) -> Vec<String> {
    let width = WIDTH.max(chars(indent) + 40);
    let options = textwrap::Options::new(width)
        .initial_indent(start)
        .subsequent_indent(indent);
    let lines = textwrap::wrap(text, options);
    lines.into_iter().map(|line| line.into_owned()).collect()
}

/// The name, with a mark at the node that was asked.
fn label(node: &NodeStatus) -> String {
    if node.own {
        format!("{} *", node.name)
    } else {
        node.name.clone()
    }
}

/// The columns of a node that answers.
fn cells(node: &NodeStatus) -> Option<[String; 5]> {
    let doing = node.status.as_ref()?;
    Some([
        label(node),
        round(doing),
        doing.adopted(),
        doing.free.map_or_else(|| "?".to_owned(), bytes),
        doing.version.clone(),
    ])
}

/// The round under way.
pub(super) fn round(doing: &super::Doing) -> String {
    if doing.complete {
        "done".to_owned()
    } else {
        doing.round.to_string()
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::all::fixture;

    #[test]
    fn every_node_has_a_line_with_its_activity_and_its_trouble() {
        let expected = "\
stays (76ea7cfc), 4 members, as the node of north sees them; a round needs 3

  node          round  adopted     disk free  version  now
  north *       3      2, 30s ago  120.0 GB   0.1.0    training
                                                       not connected to east
  south         3      2, 30s ago  80.0 MB    0.1.1    waiting for the lead, west <coast>
                                                       takes no part; not connected to east, west
                                                       <coast>
  east          not connected: east at 192.0.2.3:4001 does not answer over UDP
  west <coast>  its program is older
";
        assert_eq!(text(&fixture::nodes()), expected);
        let mut hidden = fixture::nodes();
        hidden.shown = false;
        assert!(text(&hidden).contains("status = \"members\""));
    }
}
