//! The section on traffic: bytes that each silo sent, as messages and as models.

use super::story::{SiloStory, Story};
use maud::{Markup, html};

use super::{download, many, numbers};

/// Bars of many silos.
const MOST: usize = 20;

/// The section; `sent` are bytes of messages and of models in all.
pub(crate) fn section(story: &Story, sent: (u64, u64)) -> Markup {
    let total = |(messages, blobs): (u64, u64)| messages + blobs;
    let most = story
        .silos
        .iter()
        .map(|silo| total(silo.sent))
        .max()
        .unwrap_or(0)
        .max(1) as f64;
    let share = |bytes: u64| format!("width:{:.2}%", 100.0 * bytes as f64 / most);
    html! {
        section {
            h2 { "What was sent" }
            p.note {
                (numbers::bytes(total(sent))) " in all: " (numbers::bytes(sent.0))
                " of signed messages, " (numbers::bytes(sent.1)) " of models and outcome documents."
            }
            ul.legend.inline {
                li { span.swatch.messages {} "signed messages" }
                li { span.swatch.blobs {} "models and outcomes" }
            }
            div.scroll.tall tabindex="0" role="region" aria-label="Traffic per silo" {
                table.bars {
                    thead.hidden { tr {
                        th scope="col" { "Silo" } th scope="col" { "Share" } th scope="col" { "Sent" }
                    } }
                    tbody { @for silo in listed(story) {
                        @let (messages, blobs) = silo.sent;
                        tr title={
                            (numbers::bytes(messages)) " of signed messages, " (numbers::bytes(blobs))
                            " of models and outcomes"
                        } {
                            th scope="row" { (silo.name) }
                            td.bar {
                                span.messages style=(share(messages)) {}
                                span.blobs style=(share(blobs)) {}
                            }
                            td.number { (numbers::bytes(total(silo.sent))) }
                        }
                    } }
                }
            }
            div.saves { (download::data(&format!("{}-traffic", story.scenario), &csv(story))) }
        }
    }
}

/// The silos with a bar: of many those that sent most.
fn listed(story: &Story) -> Vec<&SiloStory> {
    let mut silos: Vec<&SiloStory> = story.silos.iter().collect();
    if many::are_many(story) {
        silos.sort_by_key(|silo| std::cmp::Reverse(silo.sent.0 + silo.sent.1));
        silos.truncate(MOST);
    }
    silos
}

fn csv(story: &Story) -> String {
    let rows = story.silos.iter().map(|silo| {
        let (messages, blobs) = silo.sent;
        vec![silo.name.clone(), messages.to_string(), blobs.to_string()]
    });
    download::csv(&["silo", "bytes of messages", "bytes of models"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_longest_bar_is_the_silo_that_sent_most() {
        let mut story = fixture::story(2, 1, 1);
        story.silos[0].sent = (300, 100);
        story.silos[1].sent = (100, 0);
        let page = section(&story, (0, 0)).into_string();
        for width in ["width:75.00%", "width:25.00%", "width:0.00%"] {
            assert!(page.contains(width), "{width}");
        }
    }

    #[test]
    fn a_silo_that_sent_nothing_is_drawn() {
        let mut story = fixture::story(1, 1, 1);
        story.silos[0].sent = (0, 0);
        assert!(!section(&story, (0, 0)).into_string().contains("NaN"));
    }
}
