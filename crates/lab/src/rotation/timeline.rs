//! Every view with its lead, from what members report.

use std::collections::BTreeMap;

use protocol::certificate::Verdict;
use protocol::{MemberIndex, Report, Time};
use serde::Serialize;

/// One view and its lead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimelineView {
    /// The view.
    pub view: u64,
    /// Lead of the view, by position in the roster.
    pub lead: usize,
    /// Time at which the first member entered it, in seconds.
    pub from: f64,
    /// Time at which the first member entered the next one, or the run ended.
    pub to: f64,
    /// The round that it worked on.
    pub round: u64,
    /// `"final"`, `"empty"`, `"nullified"`, or `"open"` if the run ended first.
    pub result: &'static str,
}

/// The views of a run that ended after `end` seconds.
pub fn timeline<'a>(
    reports: impl Iterator<Item = (Time, MemberIndex, &'a Report)>,
    end: f64,
) -> Vec<TimelineView> {
    let mut views = BTreeMap::<u64, TimelineView>::new();
    let mut results = BTreeMap::<u64, (&'static str, Option<MemberIndex>)>::new();
    let mut finals = BTreeMap::<u64, u64>::new();
    for (at, _, report) in reports {
        match report {
            Report::Entered { view, lead, round } => {
                let entered = views.entry(*view).or_insert_with(|| TimelineView {
                    view: *view,
                    lead: lead.at(),
                    from: at.elapsed().as_secs_f64(),
                    to: end,
                    round: *round,
                    result: "open",
                });
                if *round > entered.round {
                    // A round became final within the view, which may give it another lead.
                    (entered.lead, entered.round) = (lead.at(), *round);
                }
            }
            Report::Final {
                view, lead, round, ..
            } => {
                finals.insert(*view, *round);
                results.insert(*view, ("final", Some(*lead)));
            }
            Report::Certified(certificate) => {
                let result = match certificate.verdict {
                    Verdict::Nullified => "nullified",
                    Verdict::Final(_) => "empty",
                    Verdict::Notarised(_) | Verdict::Outcome { .. } => continue,
                };
                let known = results.entry(certificate.view).or_insert((result, None));
                if known.0 != "final" {
                    *known = (result, None);
                }
            }
            _ => {}
        }
    }
    for (view, (result, lead)) in results {
        if let Some(view) = views.get_mut(&view) {
            view.result = result;
            view.lead = lead.map_or(view.lead, MemberIndex::at);
        }
    }
    // A view worked on the first round that became final in it or later: members may have entered it
    // before they knew that the round before was final.
    for view in views.values_mut() {
        let next = finals.range(view.view..).next();
        view.round = next.map_or(view.round, |(_, round)| *round);
    }
    let starts: Vec<f64> = views.values().map(|view| view.from).collect();
    let mut all: Vec<TimelineView> = views.into_values().collect();
    for (view, next) in all.iter_mut().zip(starts.into_iter().skip(1)) {
        view.to = next;
    }
    all
}
