//! Sheets of survival curves and of their comparison.

use super::tables::test;
use super::{LEVEL, PrintedCell, PrintedTable};
use crate::kinds::km::{KmCurve, KmOutcome, KmPoint};
use crate::kinds::logrank::LogrankOutcome;

/// A curve is printed while this many rows are at risk.
const AT_RISK: f64 = 10.0;

/// A printed point of a curve: steps with few events are joined with the next.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedPoint {
    /// The point at the end of the joined steps.
    pub point: KmPoint,
    /// Rows at risk before the joined steps.
    pub at_risk: f64,
    /// Events of each cause in the joined steps.
    pub events: Vec<f64>,
}

/// The points of a curve that are printed: at least `smallest` events of each cause that has any lie between two, and at
/// least 10 rows are at risk before the last step.
pub fn joined(curve: &KmCurve, smallest: u64) -> Vec<JoinedPoint> {
    let mut points = Vec::new();
    let mut open: Option<(f64, Vec<f64>)> = None;
    for point in curve
        .points
        .iter()
        .take_while(|point| point.at_risk >= AT_RISK)
    {
        let causes = point.events.len();
        let (at_risk, events) = open.get_or_insert_with(|| (point.at_risk, vec![0.0; causes]));
        events
            .iter_mut()
            .zip(&point.events)
            .for_each(|(sum, events)| *sum += events);
        let enough = |events: &f64| *events == 0.0 || *events >= smallest as f64;
        if events.iter().any(|events| *events > 0.0) && events.iter().all(enough) {
            points.push(JoinedPoint {
                point: point.clone(),
                at_risk: *at_risk,
                events: events.clone(),
            });
            open = None;
        }
    }
    points
}

/// One sheet for each curve, and one with medians.
pub(super) fn survival(found: &KmOutcome, smallest: u64) -> Vec<PrintedTable> {
    let mut groups = PrintedTable::new(
        "groups",
        "Groups",
        &[
            ("group", "group"),
            ("n", "n"),
            ("events", "events"),
            ("median", "median survival"),
        ],
    );
    let mut sheet = PrintedTable::new(
        "survival",
        "Survival (Kaplan–Meier), by group",
        &[
            ("group", "group"),
            ("time", "time"),
            ("at_risk", "at risk"),
            ("events", "events"),
            ("survival", "survival"),
            ("error", "SE"),
            ("low", "95 % from"),
            ("high", "to"),
        ],
    );
    if found.causes > 1 {
        for cause in 1..=found.causes {
            sheet.column(&format!("incidence_{cause}"), &format!("incidence {cause}"));
            sheet.column(&format!("incidence_{cause}_error"), "SE");
        }
    }
    for curve in &found.curves {
        let name = PrintedCell::Text(curve.group.clone().unwrap_or_else(|| "all".to_owned()));
        let few = |count: f64| count > 0.0 && count < smallest as f64;
        let count = |count: f64| {
            if few(count) {
                PrintedCell::Suppressed
            } else {
                PrintedCell::Count(count)
            }
        };
        let points = joined(curve, smallest);
        let median = points
            .iter()
            .find(|point| point.point.survival <= 0.5)
            .map(|point| point.point.time);
        groups.rows.push(vec![
            name.clone(),
            count(curve.rows),
            count(curve.events),
            median.map_or(PrintedCell::Nothing, PrintedCell::Exact),
        ]);
        for JoinedPoint {
            point,
            at_risk,
            events,
        } in points
        {
            let interval = point.interval(LEVEL);
            let mut row = vec![
                name.clone(),
                PrintedCell::Exact(point.time),
                PrintedCell::Count(at_risk),
                PrintedCell::Count(events.iter().sum()),
                PrintedCell::Number(point.survival),
                PrintedCell::Number(point.error),
                PrintedCell::number(interval.map(|interval| interval[0])),
                PrintedCell::number(interval.map(|interval| interval[1])),
            ];
            row.extend(
                point
                    .incidence
                    .iter()
                    .flatten()
                    .map(|number| PrintedCell::Number(*number)),
            );
            sheet.rows.push(row);
        }
    }
    sheet.notes.push(format!(
        "times are rounded up to the grid; steps with fewer than {smallest} events are joined with the next, at risk is \
         counted before the joined steps, and a curve ends where fewer than {AT_RISK} rows are at risk"
    ));
    if found.events_beyond > 0.0 {
        let few = found.events_beyond < smallest as f64;
        let events = if few {
            format!("fewer than {smallest}")
        } else {
            found.events_beyond.to_string()
        };
        sheet.notes.push(format!(
            "{events} events after the grid's end count as censored: choose more cells to see them"
        ));
    }
    vec![groups, sheet]
}

/// Observed less expected events, and the test.
pub(super) fn logrank(found: &LogrankOutcome) -> Vec<PrintedTable> {
    let mut sheet = PrintedTable::new(
        "groups",
        "Groups",
        &[
            ("group", "group"),
            ("n", "n"),
            ("excess", "observed − expected events"),
        ],
    );
    for (at, group) in found.groups.iter().enumerate() {
        sheet.rows.push(vec![
            PrintedCell::Text(group.clone()),
            PrintedCell::Count(found.rows[at]),
            PrintedCell::Number(found.excess[at]),
        ]);
    }
    if let Some(noise) = found.noise {
        sheet.notes.push(format!(
            "noise is {:.0} % of the variance of observed − expected events; cells count up to time {}, while more rows \
             are at risk than noise hides",
            100.0 * noise.share, noise.until
        ));
    }
    let title = if found.by_site {
        "Log-rank test, stratified by site"
    } else {
        "Log-rank test of all rows, times rounded up to the grid"
    };
    vec![
        sheet,
        test("logrank", title, found.statistic, found.freedom),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time: f64, at_risk: f64, events: f64) -> KmPoint {
        KmPoint {
            time,
            at_risk,
            events: vec![events],
            censored: 0.0,
            survival: 0.9,
            error: 0.1,
            incidence: Vec::new(),
        }
    }

    #[test]
    fn steps_with_few_events_are_joined_and_the_tail_is_left_out() {
        let points = vec![
            point(0.0, 50.0, 0.0),
            point(1.0, 50.0, 2.0),
            point(2.0, 48.0, 4.0),
            point(3.0, 44.0, 6.0),
            point(4.0, 38.0, 1.0),
            point(5.0, 9.0, 8.0),
        ];
        let curve = KmCurve {
            group: None,
            rows: 50.0,
            events: 21.0,
            points,
        };
        let printed = joined(&curve, 5);
        let short: Vec<_> = printed
            .iter()
            .map(|joined| (joined.point.time, joined.at_risk, joined.events[0]))
            .collect();
        assert_eq!(short, [(2.0, 50.0, 6.0), (3.0, 44.0, 6.0)]);
    }
}
