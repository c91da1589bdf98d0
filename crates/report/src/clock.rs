//! The axis of time of a drawing, on which long pauses are cut short.

use maud::{Markup, html};

use super::numbers;
use super::svg::{AxisScale, px, tick_text};

/// Time as coordinates: linear, but for long pauses, which are cut short, and for a wait at the end,
/// which does not squeeze what came before.
pub(crate) struct TimeAxis {
    /// Ends of each stretch, in seconds and as coordinates, and whether it is a pause cut short.
    stretches: Vec<(f64, f64, AxisScale, bool)>,
}

impl TimeAxis {
    /// Times the usual length of a view from which on a stretch without events is cut to that.
    const LONG: f64 = 8.0;
    /// The most views among which none is usual.
    const FEW: usize = 4;
    /// The longest wait at the end that is drawn to scale, as a part of all that came before.
    const WAIT: f64 = 0.25;
    /// The least distance of two ticks, whose texts are about as wide.
    const APART: f64 = 44.0;

    /// The clock from 0 to `end`, for these views (begin and end) and other events. `waiting`: the
    /// last view was under way at the end, so that its bar only shows how long it was waited.
    pub(crate) fn new(
        views: &[(f64, f64)],
        others: &[f64],
        (end, waiting): (f64, bool),
        (left, right): (f64, f64),
    ) -> Self {
        // A single view has nothing to leave room for.
        let several = views.len() > 1;
        let events = views.iter().flat_map(|view| [view.0, view.1]);
        let last = views.iter().map(|view| view.0).fold(0.0, f64::max);
        // Events during the wait must not cut it into pieces.
        let others = others.iter().copied().filter(|at| !waiting || *at <= last);
        let events = events.chain(others);
        let mut times: Vec<f64> = events.filter(|at| (0.0..end).contains(at)).collect();
        times.extend([0.0, end]);
        times.sort_by(f64::total_cmp);
        times.dedup_by(|a, b| *a - *b < 1e-9);
        let lengths: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let views = views.iter().map(|view| view.1 - view.0);
        let mut sorted: Vec<f64> = views.filter(|length| *length > 1e-9).collect();
        sorted.sort_by(f64::total_cmp);
        let long = match sorted.get(sorted.len() / 2) {
            Some(usual) if sorted.len() > Self::FEW => Self::LONG * usual,
            _ => f64::INFINITY,
        };
        let before = lengths.split_last().map_or(&[][..], |(_, before)| before);
        let before: f64 = before.iter().map(|length| length.min(long)).sum();
        let wait = if several && waiting && before > 0.0 {
            long.min(Self::WAIT * before)
        } else {
            long
        };
        let most = |at: usize| if at + 1 == lengths.len() { wait } else { long };
        let drawn = |at: usize| lengths[at].min(most(at));
        let total: f64 = (0..lengths.len()).map(drawn).sum();
        let mut at = left;
        let mut stretches: Vec<(f64, f64, AxisScale, bool)> = Vec::new();
        let mut begun: Option<(f64, f64)> = None;
        for (nth, pair) in times.windows(2).enumerate() {
            let wide = (right - left) * drawn(nth) / total.max(1e-12);
            let (from, start) = begun.unwrap_or((pair[0], at));
            if lengths[nth] > most(nth) {
                if begun.is_some() {
                    let scale = AxisScale::new((from, pair[0]), (start, at));
                    stretches.push((from, pair[0], scale, false));
                }
                let scale = AxisScale::new((pair[0], pair[1]), (at, at + wide));
                stretches.push((pair[0], pair[1], scale, true));
                begun = None;
            } else {
                begun = Some((from, start));
            }
            at += wide;
        }
        if let Some((from, start)) = begun {
            stretches.push((
                from,
                end,
                AxisScale::new((from, end), (start, right)),
                false,
            ));
        }
        Self { stretches }
    }

    /// The coordinate of a time.
    pub(crate) fn at(&self, time: f64) -> f64 {
        let found = self.stretches.iter().find(|(_, to, ..)| time <= *to);
        let found = found.or(self.stretches.last());
        found.map_or(0.0, |(_, _, scale, _)| scale.at(time))
    }

    /// The long pauses: where they are drawn, and how long they are.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        let cut = self.stretches.iter().filter(|(.., cut)| *cut);
        cut.map(|(from, to, scale, _)| (scale.at(*from), scale.at(*to), to - from))
    }

    /// Times to be written below, each with its text.
    fn ticks(&self) -> Vec<(f64, String)> {
        let linear = || self.stretches.iter().filter(|(.., cut)| !*cut);
        let wide =
            |(from, to, scale, _): &(f64, f64, AxisScale, bool)| scale.at(*to) - scale.at(*from);
        let all: f64 = linear().map(wide).sum();
        let of = |stretch: &(f64, f64, AxisScale, bool)| {
            let wanted = (8.0 * wide(stretch) / all.max(1e-9)).round() as usize;
            let scale = stretch.2;
            if wanted == 0 {
                return Vec::new();
            }
            let ticks = scale.ticks(wanted);
            let tick = |tick: &f64| (scale.at(*tick), tick_text(&ticks, *tick));
            ticks.iter().map(tick).collect()
        };
        let all: Vec<(f64, String)> = linear().flat_map(of).collect();
        // Of two that would overlap the first stays.
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for tick in all {
            if ticks
                .last()
                .is_none_or(|last| tick.0 - last.0 >= Self::APART)
            {
                ticks.push(tick);
            }
        }
        ticks
    }

    /// The pauses, each with whether there is room for its text.
    fn texts(&self) -> Vec<(f64, f64, f64, bool)> {
        let mut free = f64::NEG_INFINITY;
        let pause = |(from, to, lasts): (f64, f64, f64)| {
            let middle = (from + to) / 2.0;
            let room = middle - free >= 2.0 * Self::APART;
            if room {
                free = middle;
            }
            (from, to, lasts, room)
        };
        self.pauses().map(pause).collect()
    }

    /// Grid, ticks and pauses of a drawing between these edges; its texts take 30 units below.
    pub(crate) fn axis(&self, (left, right): (f64, f64), (top, bottom): (f64, f64)) -> Markup {
        html! {
            @for (at, text) in self.ticks() {
                line.grid x1=(at) x2=(at) y1=(top) y2=(px(bottom)) {}
                text.tick x=(at) y=(px(bottom + 16.0)) text-anchor="middle" { (text) " s" }
            }
            line.axis x1=(left) x2=(right) y1=(px(bottom)) y2=(px(bottom)) {}
            @for (from, to, lasts, text) in self.texts() {
                rect.pause x=(from) y=(top) width=(px(to - from)) height=(px(bottom - top)) {
                    title { (numbers::seconds(lasts)) ", drawn shorter" }
                }
                @if text {
                    text.tick x=(px((from + to) / 2.0)) y=(px(bottom + 30.0)) text-anchor="middle" { "⋯ " (numbers::seconds(lasts)) " ⋯" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_at_the_end_takes_a_fifth_at_most() {
        // Two seconds of views, and one that is under way for seventeen.
        let views = [(0.0, 0.5), (0.5, 1.2), (1.2, 2.0), (2.0, 19.0)];
        let clock = |waiting| TimeAxis::new(&views, &[], (19.0, waiting), (0.0, 100.0));
        let waited = clock(true);
        assert_eq!((waited.at(2.0), waited.at(19.0)), (80.0, 100.0));
        assert_eq!(waited.at(1.2), 48.0);
        let pauses: Vec<_> = waited.pauses().collect();
        assert_eq!(pauses, [(80.0, 100.0, 17.0)]);
        let stopped = TimeAxis::new(&views, &[11.0], (19.0, true), (0.0, 100.0));
        assert_eq!(stopped.at(2.0), 80.0);
        assert!(
            waited
                .axis((0.0, 100.0), (0.0, 9.0))
                .into_string()
                .contains("⋯ 17.0 s ⋯")
        );
        // A view that ended is drawn to scale: four views have no usual length.
        assert!(clock(false).at(2.0) < 11.0 && clock(false).pauses().count() == 0);
    }

    #[test]
    fn texts_of_ticks_do_not_overlap() {
        let mut views: Vec<(f64, f64)> = Vec::new();
        for length in [1.0, 2.0, 1.0, 90.0, 1.0, 2.0, 60.0, 1.0, 1.0, 80.0, 1.0] {
            let from = views.last().map_or(0.0, |view| view.1);
            views.push((from, from + length));
        }
        let clock = TimeAxis::new(&views, &[], (240.0, false), (0.0, 800.0));
        assert_eq!(clock.pauses().count(), 3);
        let ticks = clock.ticks();
        assert!(
            ticks
                .windows(2)
                .all(|pair| pair[1].0 - pair[0].0 >= TimeAxis::APART)
                && ticks.len() > 3,
            "{ticks:?}"
        );
    }

    #[test]
    fn a_short_wait_is_drawn_to_scale() {
        let views = [(0.0, 4.0), (4.0, 8.0), (8.0, 10.0)];
        let clock = TimeAxis::new(&views, &[], (10.0, true), (0.0, 100.0));
        assert_eq!((clock.at(8.0), clock.pauses().count()), (80.0, 0));
    }

    #[test]
    fn one_view_that_waits_fills_the_drawing() {
        let clock = TimeAxis::new(&[(0.0, 30.0)], &[], (30.0, true), (0.0, 100.0));
        assert_eq!((clock.at(15.0), clock.pauses().count()), (50.0, 0));
        // Also where it began a little later than the clock.
        let clock = TimeAxis::new(&[(0.03, 30.0)], &[], (30.0, true), (0.0, 100.0));
        assert_eq!((clock.at(15.0), clock.pauses().count()), (50.0, 0));
    }

    #[test]
    fn other_events_do_not_make_views_look_long() {
        let views: Vec<(f64, f64)> = (0..6)
            .map(|at| (f64::from(at), f64::from(at + 1)))
            .collect();
        let others: Vec<f64> = (0..40).map(|at| 2.0 + f64::from(at) / 100.0).collect();
        let clock = TimeAxis::new(&views, &others, (6.0, false), (0.0, 60.0));
        assert_eq!((clock.at(5.0), clock.pauses().count()), (50.0, 0));
    }
}
