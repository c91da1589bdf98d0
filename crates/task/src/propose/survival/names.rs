//! Names of columns that look like an event, or like the time until it.

use crate::propose::personal::words;

/// Words that make a time of follow-up of a column, whatever stands beside them.
const FOLLOW_UP: [&str; 13] = [
    "followup",
    "fup",
    "futime",
    "survtime",
    "survivaltime",
    "survdays",
    "survmonths",
    "tte",
    "time2event",
    "überlebenszeit",
    "ueberlebenszeit",
    "nachbeobachtung",
    "nachbeobachtungszeit",
];
/// Words of spans of time.
const SPANS: [&str; 11] = [
    "time", "times", "days", "weeks", "months", "years", "duration", "zeit", "tage", "monate",
    "jahre",
];
/// Words that say which time is meant: beside a span they make it a time of follow-up, and beside a flag an event.
const ENDPOINTS: [&str; 9] = [
    "survival",
    "surv",
    "os",
    "pfs",
    "dfs",
    "rfs",
    "efs",
    "ttp",
    "observation",
];
/// Words that may stand beside these without meaning something else.
const FILLERS: [&str; 14] = [
    "to",
    "until",
    "till",
    "of",
    "in",
    "since",
    "last",
    "contact",
    "overall",
    "free",
    "disease",
    "progression",
    "the",
    "fu",
];
/// Words of events.
const EVENTS: [&str; 22] = [
    "event",
    "died",
    "dead",
    "death",
    "deceased",
    "fustat",
    "relapse",
    "relapsed",
    "recurrence",
    "recurred",
    "progressed",
    "failure",
    "failed",
    "censored",
    "censoring",
    "censor",
    "cens",
    "verstorben",
    "gestorben",
    "tod",
    "ereignis",
    "rezidiv",
];

/// Kind of time of which a column's name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeName {
    /// It says that it is a time of follow-up.
    FollowUp,
    /// It is a span of time alone, such as `days`, which may be one of follow-up.
    Span,
}

/// Returns whether a column's name is that of a time of follow-up, or of a span of time alone.
pub(super) fn time_name(column: &str) -> Option<TimeName> {
    let words = words(column);
    let is = |known: &[&str], word: &String| known.contains(&word.as_str());
    let follow = words.windows(2).any(|pair| pair == ["follow", "up"]);
    if follow || words.iter().any(|word| is(&FOLLOW_UP, word)) {
        return Some(TimeName::FollowUp);
    }
    let span = words.iter().any(|word| is(&SPANS, word));
    let known = |word: &String| {
        is(&SPANS, word) || is(&ENDPOINTS, word) || is(&FILLERS, word) || is(&EVENTS, word)
    };
    if !span || !words.iter().all(known) {
        return (words == ["t"]).then_some(TimeName::Span);
    }
    let named = |word: &String| is(&ENDPOINTS, word) || is(&EVENTS, word);
    match words.iter().any(named) {
        true => Some(TimeName::FollowUp),
        false => Some(TimeName::Span),
    }
}

/// Returns whether a column's name is that of an event.
pub(super) fn names_event(column: &str) -> bool {
    if time_name(column).is_some() {
        return false;
    }
    let words = words(column);
    let is = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let status = || words.iter().any(|word| word == "status");
    // The status of a person has many meanings, and that of life or of an endpoint one.
    let alone = words.len() == 1;
    is(&EVENTS)
        || status() && (alone || is(&ENDPOINTS) || is(&["vital"]))
        || alone && is(&["e", "os", "pfs", "dfs"])
}

/// Returns whether a column's name says that a value of it may mean that an event was not seen.
pub(super) fn names_censoring(column: &str) -> bool {
    let words = words(column);
    words.iter().any(|word| word.starts_with("cens"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_follow_up_are_known_by_their_names() {
        for name in [
            "follow_up",
            "followUpDays",
            "FUTIME",
            "os_months",
            "OS.time",
            "days_to_death",
            "days_to_last_followup",
            "survival time",
            "time_to_event",
            "Überlebenszeit",
        ] {
            assert_eq!(time_name(name), Some(TimeName::FollowUp), "{name}");
        }
        for name in ["time", "days", "Months", "T", "duration", "Tage"] {
            assert_eq!(time_name(name), Some(TimeName::Span), "{name}");
        }
        for name in [
            "age_years",
            "time_of_day",
            "waiting_time",
            "years_of_school",
            "day",
            "lab",
            "timestamp",
            "os",
            "ventilator_days",
        ] {
            assert_eq!(time_name(name), None, "{name}");
        }
    }

    #[test]
    fn events_are_known_by_their_names() {
        for name in [
            "event",
            "died",
            "vital_status",
            "OS_STATUS",
            "status",
            "E",
            "os",
            "censored",
            "relapse",
            "death.event",
        ] {
            assert!(names_event(name), "{name}");
        }
        for name in [
            "marital_status",
            "smoking status",
            "readmitted",
            "days_to_death",
            "age",
            "study",
            "tumor_stage",
        ] {
            assert!(!names_event(name), "{name}");
        }
        assert!(names_censoring("cens") && names_censoring("is_censored"));
        assert!(!names_censoring("event"));
    }
}
