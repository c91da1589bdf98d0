//! Checks of the institution's rows.

use protocol::MemberIndex;

use super::Finding;
use crate::federation::{beyond, exceeds};
use crate::institution::{
    Configured, Data, PASTE, fit, misfits, names_that_fit, signed_profile, surveyed,
};
use crate::split_key;
use task::questions::{AskedAt, RowQuestion};

/// Result of looking at the rows.
pub(super) struct LookedAtRows {
    /// The training rows, where that is known.
    pub(super) train: Option<usize>,
    /// Questions that only a person can answer about them, and has not answered.
    pub(super) questions: Vec<RowQuestion>,
    /// Findings about the rows.
    pub(super) findings: Vec<Finding>,
}

impl LookedAtRows {
    fn unread(findings: Vec<Finding>) -> Self {
        Self {
            train: None,
            questions: Vec::new(),
            findings,
        }
    }
}

/// The rows: whether they fit the schema, how many there are, and of which classes.
pub(super) fn rows(configured: &Configured, me: Option<MemberIndex>) -> LookedAtRows {
    let rows = match &configured.data {
        Data::Rows(rows) => rows,
        Data::Share { .. } => {
            let what = "this silo learns on a share of the data that the task names, to try it out";
            return LookedAtRows::unread(vec![Finding::note("rows", what)]);
        }
        Data::Program => {
            let what = "this silo's program reads its own rows; `rota learner describe` starts it";
            return LookedAtRows::unread(vec![Finding::note("rows", what)]);
        }
    };
    let agreement = &configured.agreement;
    let name = me.map_or("silo", |me| agreement.epoch.roster.name(me));
    let (task, folder) = (&agreement.task, &configured.folder);
    let survey = surveyed(agreement, rows, folder);
    let key = split_key::is_needed(task).then(|| split_key::read(&configured.identity));
    let key = match key.transpose() {
        Ok(key) => key,
        Err(why) => return LookedAtRows::unread(vec![Finding::bad("rows", why.to_string())]),
    };
    let found = match fit(
        agreement,
        rows,
        name,
        folder,
        (configured.seed, key.as_ref()),
    ) {
        Ok(found) => found,
        Err(error) => {
            let bad = Finding::bad("rows", error.to_string()).remedy(
                "correct the file, or translate names and codes in [data.rows.names] of node.toml",
            );
            let all = survey.iter().flat_map(misfits);
            let all = all.map(|line| Finding::note("rows", line.trim_start().to_owned()));
            let names: Vec<String> = survey.iter().flat_map(names_that_fit).collect();
            let paste = (!names.is_empty()).then(|| Finding::note("rows", PASTE).paste(names));
            return LookedAtRows::unread([bad].into_iter().chain(all).chain(paste).collect());
        }
    };
    let survey = survey.unwrap_or_default();
    let columns = survey.columns.iter();
    let mut findings: Vec<_> = columns
        .map(|(name, what)| Finding::good("rows", format!("{name}: {what}")))
        .collect();
    let asked = found.questions.iter();
    findings.extend(asked.map(|question| Finding::bad("rows", question.at(AskedAt::Node))));
    let signed = signed_profile(&configured.state).unwrap_or_default();
    let differences = signed.differences(&found.profile).into_iter();
    findings.extend(differences.map(|line| {
        let line = format!("otherwise than in the rows that were signed for: {line}");
        Finding::note("rows", line).remedy("if that is right, sign again: rota federation sign")
    }));
    let counts = found.lines().into_iter().enumerate().map(|(at, line)| {
        if at > 0 && found.is_unbalanced() {
            Finding::note("rows", line).remedy("a class without rows is not learned here")
        } else {
            Finding::good("rows", line)
        }
    });
    findings.extend(counts);
    findings.extend(
        survey
            .doubts
            .into_iter()
            .map(|line| Finding::note("rows", line)),
    );
    findings.extend(
        found
            .notes
            .iter()
            .map(|note| Finding::note("rows", note.clone())),
    );
    let own = found.split.train as u64;
    let more = me.and_then(|me| beyond(agreement, me, own));
    let exceeds = me.is_some_and(|me| exceeds(agreement, me, own));
    findings.extend(more.map(|line| match exceeds {
        true => Finding::bad("rows", line),
        false => Finding::note("rows", line),
    }));
    LookedAtRows {
        train: Some(found.split.train),
        questions: found.questions,
        findings,
    }
}
