//! The status of all nodes as an HTML page that loads itself again every few seconds, without scripts.

use maud::{Markup, html};

use super::text::round;
use super::{Doing, NodeStatus, Nodes};
use crate::status::page::{moment, whole};
use crate::status::text::short;
use formatting::numbers::{bytes, plain};

/// Seconds after which the page loads itself again.
const AGAIN: u32 = 5;

/// The page.
pub fn page(nodes: &Nodes) -> String {
    let federation = &nodes.federation;
    let title = format!("All nodes · {}", plain(&federation.name));
    let answer = nodes.nodes.iter().filter(|node| node.status.is_some());
    whole(
        &title,
        AGAIN,
        html! {
            header {
                p.kicker { "Federation " (short(&federation.id)) }
                h1 { (plain(&federation.name)) }
                p.lead {
                    (answer.count()) " of " (federation.members) " nodes report their state; a round needs "
                    (federation.quorum) "."
                }
            }
            section {
                h2 { "Nodes" }
                div.scroll { table.nodes {
                    thead { tr {
                        th { "Node" } th.number { "Round" } th { "Now" } th { "Adopted" }
                        th.number.wide { "Disk free" } th.wide { "Version" }
                    } }
                    tbody { @for node in &nodes.nodes { (row(node)) } }
                } }
                @if let Some(hint) = nodes.hint() { p.note { (hint) } }
            }
            footer { p.note {
                "As of " (moment(&nodes.time)) ", as the node of " (plain(&nodes.silo))
                " sees them. The state of a node is self-reported. This page reloads every "
                (AGAIN) " seconds. " a href="/" { "This node" }
            } }
        },
    )
}

fn row(node: &NodeStatus) -> Markup {
    let name = html! {
        th scope="row" { (plain(&node.name)) @if node.own { span.muted { ", this node" } } }
    };
    match &node.status {
        Some(doing) => html! {
            tr {
                (name)
                td.number { (round(doing)) }
                td { (state(node, doing)) }
                td { (plain(&doing.adopted())) }
                td.number.wide { (doing.free.map(bytes).unwrap_or_default()) }
                td.wide { (plain(&doing.version)) }
            }
        },
        None => html! {
            tr { (name) td colspan="5" { span.bad { (plain(node.why.as_deref().unwrap_or_default())) } } }
        },
    }
}

fn state(node: &NodeStatus, doing: &Doing) -> Markup {
    html! {
        (plain(&doing.doing()))
        @if let Some(trouble) = node.trouble() { br; span.bad { (plain(&trouble)) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::all::fixture;

    #[test]
    fn the_page_has_every_node_and_escapes_names() {
        let said = page(&fixture::nodes());
        for text in [
            "2 of 4 nodes report their state",
            "waiting for the lead, west &lt;coast&gt;",
            "takes no part; not connected to east, west &lt;coast&gt;",
            "east at 192.0.2.3:4001 does not answer over UDP",
            "80.0 MB",
            "<meta http-equiv=\"refresh\" content=\"5\">",
            // On a phone its rows are blocks, of which nothing is beyond the edge.
            "<table class=\"nodes\">",
            ".nodes tr { display: grid;",
        ] {
            assert!(said.contains(text), "{text}\n{said}");
        }
        assert!(!said.contains("<coast>") && !said.contains("<script"));
    }
}
