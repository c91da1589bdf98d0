//! Members in one coalition over seeds: the share of the seeds in which two members are in one coalition.

use lab::compare::{ComparisonRow, VariantTable};
use maud::{Markup, html};

use super::super::heat::{STEPS, field};
use super::super::svg::{described, px};
use super::super::{download, numbers};

/// Most members for which the shares are written down.
const WRITTEN: usize = 30;
/// Most members that are drawn.
const DRAWN: usize = 400;

/// The groupings of all strategies that form groups; nothing where none does.
pub(super) fn section(name: &str, variant: &VariantTable) -> Markup {
    let grouped = variant
        .strategies
        .iter()
        .filter(|row| row.together.is_some() && row.strategy != "local");
    let rows: Vec<&ComparisonRow> = grouped.collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Members in one coalition" }
            p.note {
                "Share of the seeds in which two members are in one coalition after the chosen round: in percent, or as "
                "a colour, darker for a larger share. Members that are often together stand side by side. The adjusted "
                "Rand index compares the groupings of two seeds: 1 if they are the same, about 0 if they agree no more "
                "than random ones."
            }
            div.pair {
                @for row in rows {
                    figure {
                        figcaption {
                            (row.label)
                            @if let Some(alike) = row.agreement {
                                span.muted { ", adjusted Rand index " (numbers::value(alike, 2)) }
                            }
                        }
                        @if let Some(shares) = &row.together { (shown(name, variant, row, shares)) }
                    }
                }
            }
        }
    }
}

fn shown(name: &str, variant: &VariantTable, row: &ComparisonRow, shares: &[Vec<f64>]) -> Markup {
    let members = &variant.members;
    if shares.iter().flatten().all(|share| *share >= 1.0) {
        return html! { p { "All " (numbers::plural(members.len(), "member")) " are one coalition in every seed." } };
    }
    if members.len() > DRAWN {
        return html! { p.muted {
            "Drawn for up to " (DRAWN) " members. Members in one coalition stands in the JSON of " code { "rota \
             compare --json" } "."
        } };
    }
    let order = order(shares);
    let label = format!("Groupings of {}", row.label);
    if members.len() > WRITTEN {
        return html! {
            (drawn(&label, shares, &order))
            (download::plot(&format!("{name}-{}-together", row.label), &csv(members, shares, &order)))
        };
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table.shares {
                @for &a in &order {
                    tr {
                        th scope="row" { (numbers::short(&members[a], 16)) }
                        @for &b in &order {
                            @let share = shares[a][b];
                            td style=(format!("--share:{share:.2}")) { (format!("{:.0}", 100.0 * share)) }
                        }
                    }
                }
            }
        }
    }
}

/// Members that are often together side by side: from every member alone, the two groups whose members are
/// together most, on average, are joined, and stand one after the other.
fn order(shares: &[Vec<f64>]) -> Vec<usize> {
    let mut groups: Vec<Vec<usize>> = (0..shares.len()).map(|at| vec![at]).collect();
    let mut means = shares.to_vec();
    while groups.len() > 1 {
        let mut most = (0, 1);
        for b in 1..groups.len() {
            for a in 0..b {
                if means[a][b] > means[most.0][most.1] {
                    most = (a, b);
                }
            }
        }
        let (into, from) = most;
        let sizes = [into, from].map(|at| groups[at].len() as f64);
        let other = means.remove(from);
        let pairs = means[into].iter().zip(&other);
        let joint = pairs.map(|(a, b)| (a * sizes[0] + b * sizes[1]) / (sizes[0] + sizes[1]));
        let mut joint: Vec<f64> = joint.collect();
        joint.remove(from);
        for (row, mean) in means.iter_mut().zip(&joint) {
            row.remove(from);
            row[into] = *mean;
        }
        means[into] = joint;
        let joined = groups.remove(from);
        groups[into].extend(joined);
    }
    groups.into_iter().flatten().collect()
}

fn drawn(label: &str, shares: &[Vec<f64>], order: &[usize]) -> Markup {
    let n = order.len();
    let cell = px((480.0 / n as f64).max(1.2));
    let side = cell * n as f64;
    let step = |row: usize, column: usize| {
        (shares[order[row]][order[column]] * (STEPS - 1) as f64).round() as usize
    };
    let said = format!("Shares of the seeds in which two of {n} members are in one coalition.");
    described(
        label,
        &said,
        (side + 2.0, side + 2.0),
        html! { g transform="translate(1 1)" { (field(n, cell, step)) } },
    )
}

fn csv(members: &[String], shares: &[Vec<f64>], order: &[usize]) -> String {
    let names: Vec<&str> = order.iter().map(|&at| members[at].as_str()).collect();
    let head: Vec<&str> = std::iter::once("member").chain(names).collect();
    let rows = order.iter().map(|&a| {
        let cells = order.iter().map(|&b| shares[a][b].to_string());
        std::iter::once(members[a].clone()).chain(cells.collect::<Vec<_>>())
    });
    download::csv(&head, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members are put into groups in turn; those of one group are together in this share of the seeds.
    fn shares(members: usize, groups: usize, often: f64) -> Vec<Vec<f64>> {
        let share = |a: usize, b: usize| match (a == b, a % groups == b % groups) {
            (true, _) => 1.0,
            (_, true) => often,
            _ => 1.0 - often,
        };
        (0..members)
            .map(|a| (0..members).map(|b| share(a, b)).collect())
            .collect()
    }

    #[test]
    fn members_that_are_mostly_together_stand_side_by_side() {
        assert_eq!(order(&shares(6, 2, 0.8)), [0, 2, 4, 1, 3, 5]);
        assert_eq!(order(&shares(4, 4, 1.0)), [0, 1, 2, 3]);
        // Groups that overlap by half of the seeds do not run into each other.
        let mut half = shares(6, 2, 1.0);
        half.iter_mut()
            .flatten()
            .filter(|share| **share == 0.0)
            .for_each(|share| *share = 0.5);
        assert_eq!(order(&half), [0, 2, 4, 1, 3, 5]);
        assert_eq!(order(&[]), Vec::<usize>::new());
    }

    #[test]
    fn many_members_are_a_field_and_their_shares_a_table() {
        let shares = shares(139, 3, 1.0);
        let order = order(&shares);
        let field = drawn("x", &shares, &order).into_string();
        // Three squares of full colour: a run for each member.
        assert_eq!(field.matches('M').count(), 139);
        assert!(field.len() < 10_000, "{}", field.len());
        let names: Vec<String> = (0..139).map(|at| format!("m{at}")).collect();
        assert!(csv(&names, &shares, &order).starts_with("member,m0,m3,m6,"));
    }
}
