//! Tables of what papers report, beside what was measured.

use lab::compare::{PaperData, PaperFigure, PaperTable, PaperVerdict, VariantTable};

use super::super::numbers;
use super::cells::{OPEN, TextTable, decimals, interval_words};

/// A table for every table of a paper.
pub(super) fn tables(variant: &VariantTable) -> impl Iterator<Item = TextTable> {
    variant.papers.iter().map(table)
}

fn table(paper: &PaperTable) -> TextTable {
    let (there, here) = paper.reference;
    let of = |of: &dyn Fn(&PaperFigure) -> Option<f64>, reference: Option<f64>| {
        let values = paper.figures.iter().filter_map(of);
        decimals(values.chain(reference))
    };
    let places = (of(&|one| Some(one.there), there), of(&|one| one.here, here));
    let cell = |value: Option<f64>, places| {
        value.map_or_else(String::new, |value| numbers::value(value, places))
    };
    let line = |label: &str, values: (Option<f64>, Option<f64>), gain: String, verdict: &str| {
        vec![
            label.to_owned(),
            cell(values.0, places.0),
            cell(values.1, places.1),
            gain,
            verdict.to_owned(),
        ]
    };
    let first = there.map(|_| line(&paper.over, (there, here), String::new(), ""));
    let figure = |one: &PaperFigure| {
        let mark = if one.unfinished { OPEN } else { "" };
        let gain = one.gain.map(|gain| interval_words(&gain, places.1) + mark);
        let values = (Some(one.there), one.here);
        line(
            &one.label,
            values,
            gain.unwrap_or_default(),
            verdict(one.verdict),
        )
    };
    let gain = format!("gain here over {} (95 %)", paper.over);
    let columns = ["", "there", "here", &gain, "the paper's gain"];
    TextTable {
        title: format!("beside {}", paper.source),
        note: note(paper),
        columns: columns.map(str::to_owned).to_vec(),
        rows: first
            .into_iter()
            .chain(paper.figures.iter().map(figure))
            .collect(),
        ..TextTable::default()
    }
}

/// Returns how near the data are, what is not known, and what the words mean.
fn note(paper: &PaperTable) -> String {
    let how = &paper.how;
    let data = match paper.data {
        PaperData::Same => format!("The same data: {how}."),
        PaperData::Reduced => format!("Reduced here: {how}."),
        PaperData::Other => format!("Other data here: {how}."),
    };
    let claim = paper
        .note
        .as_ref()
        .map(|claim| format!(" Not comparable: {claim}."));
    let words = match (paper.figures.is_empty(), paper.data) {
        (true, _) | (_, PaperData::Other) => "",
        _ => {
            " reached: a significant gain. beaten: in addition, relative to the reference's value, a larger gain \
             than the paper's."
        }
    };
    let mut figures = paper.figures.iter();
    let open = match figures.any(|one| one.unfinished && one.gain.is_some()) {
        true => " *: it, or what it is over, is not finished here, so its gain may change.",
        false => "",
    };
    data + claim.as_deref().unwrap_or_default() + words + open
}

fn verdict(verdict: PaperVerdict) -> &'static str {
    match verdict {
        PaperVerdict::Reached => "reached",
        PaperVerdict::Beaten => "beaten",
        PaperVerdict::NotReached => "not reached",
        PaperVerdict::NoGain => "the paper has none",
        PaperVerdict::NotComparable => "not comparable",
        PaperVerdict::NotMeasured => "not measured",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::between;
    use super::*;

    /// The cells of a figure whose gain is finished or not, and the note of its table.
    fn shown(unfinished: bool) -> (Vec<String>, String) {
        let paper = PaperTable {
            source: "a paper".into(),
            data: PaperData::Same,
            how: "all rows".into(),
            note: None,
            over: "fedavg".into(),
            reference: (Some(0.5), Some(0.4)),
            figures: vec![PaperFigure {
                label: "tfl".into(),
                there: 0.6,
                here: Some(0.6),
                gain: Some(between(0.1, 0.3)),
                unfinished,
                verdict: PaperVerdict::Reached,
            }],
        };
        let table = table(&paper);
        (table.rows[1].clone(), table.note)
    }

    #[test]
    fn a_gain_that_is_not_finished_here_carries_a_mark() {
        let (cells, note) = shown(false);
        assert_eq!(cells[3..], ["+0.200 [+0.100, +0.300]", "reached"]);
        assert!(!note.contains('*'), "{note}");
        let (cells, note) = shown(true);
        assert_eq!(cells[3..], ["+0.200 [+0.100, +0.300] *", "reached"]);
        assert!(note.ends_with("so its gain may change."), "{note}");
    }
}
