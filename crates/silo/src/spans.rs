//! Spans for traces: one per round, per view of it, and per phase of a view.
//!
//! A phase is a piece of work that the member asked for, from the request to its answer, or a phase of
//! the lead. Spans are closed when the next of their kind begins.

use std::cell::RefCell;
use std::collections::BTreeMap;

use protocol::Report;
use protocol::message::Phase;
use tracing::{Span, info_span};

use crate::activity::Activity;

/// The open spans of a silo.
pub(crate) struct Spans {
    silo: Span,
    open: RefCell<OpenSpans>,
}

struct OpenSpans {
    round: (u64, Span),
    view: Span,
    /// The lead's phase.
    leading: Span,
    work: BTreeMap<Activity, Span>,
}

impl Spans {
    /// Spans inside that of the silo.
    pub(crate) fn new(silo: Span) -> Self {
        let none = Span::none;
        let open = OpenSpans {
            round: (0, none()),
            view: none(),
            leading: none(),
            work: BTreeMap::new(),
        };
        Self {
            silo,
            open: RefCell::new(open),
        }
    }

    /// The innermost span that events belong to: that of the view, or of the silo before the first.
    pub(crate) fn current(&self) -> Span {
        self.inside(&self.open.borrow().view)
    }

    fn inside(&self, view: &Span) -> Span {
        if view.is_disabled() {
            self.silo.clone()
        } else {
            view.clone()
        }
    }

    /// Opens and closes spans of rounds, views and the lead's phases.
    pub(crate) fn follow(&self, report: &Report) {
        let mut open = self.open.borrow_mut();
        match report {
            Report::Entered { view, lead, round } => {
                open.leading = Span::none();
                open.work.clear();
                if open.round.0 != *round || open.round.1.is_disabled() {
                    // The inner span is closed before the outer one.
                    open.view = Span::none();
                    open.round = (*round, info_span!(parent: &self.silo, "round", round));
                }
                open.view = info_span!(parent: &open.round.1, "view", view, %lead);
            }
            Report::Leading { phase, .. } => {
                let view = &self.inside(&open.view);
                open.leading = match phase {
                    Phase::Waiting => info_span!(parent: view, "lead: waiting"),
                    Phase::Collecting => info_span!(parent: view, "lead: collecting"),
                    Phase::Scoring => info_span!(parent: view, "lead: scoring"),
                    Phase::Including => info_span!(parent: view, "lead: including"),
                    Phase::Deciding => info_span!(parent: view, "lead: deciding"),
                    Phase::Voting => info_span!(parent: view, "lead: voting"),
                    Phase::Masking => info_span!(parent: view, "lead: masking"),
                };
            }
            Report::Complete { .. } => {
                open.leading = Span::none();
                open.work.clear();
                open.view = Span::none();
                open.round = (0, Span::none());
            }
            _ => {}
        }
    }

    /// Opens the span of a piece of work, unless one of that kind is open.
    pub(crate) fn begin(&self, activity: Activity) {
        let mut open = self.open.borrow_mut();
        let view = self.inside(&open.view);
        open.work
            .entry(activity)
            .or_insert_with(|| span(&view, activity));
    }

    /// Closes the span of a piece of work.
    pub(crate) fn end(&self, activity: Activity) {
        self.open.borrow_mut().work.remove(&activity);
    }
}

macro_rules! define_span {
    ($($(#[$doc:meta])* $request:ident, $answer:ident: $name:literal, $text:literal;)*) => {
        /// The span of a piece of work. The name of a span is a literal.
        fn span(view: &Span, activity: Activity) -> Span {
            match activity {
                $(Activity::$request => info_span!(parent: view, $name),)*
            }
        }
    };
}

protocol::work_kinds!(define_span);
