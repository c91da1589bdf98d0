//! The levels of a category: which are listed, and which are folded into `other`.

use super::cells::Cells;
use super::personal::may_be_level;
use super::{ColumnUse, Wishes};
use crate::counted::counted;
use crate::schema::{ColumnType, FeatureColumns, Levels, MissingRule};
use crate::typed::typed_pair;

/// Most levels that a category keeps; rarer ones become `other`.
const LEVELS: usize = 20;

/// A column of texts. A level of fewer rows than [`Wishes::rare`] is not listed, because whoever reads
/// the list learns that there is somebody with that value; unless the person keeps it by name.
pub(super) fn category(cells: &Cells<'_>, wishes: &Wishes, codes: bool, asked: bool) -> ColumnUse {
    let (distinct, present) = (cells.values.len(), cells.present());
    if 2 * distinct > present && distinct > LEVELS && !asked {
        return ColumnUse::LeftOut(format!(
            "{distinct} different texts in {present} rows: names, dates or free text"
        ));
    }
    let kept = |level: &str| wishes.keeps(cells.name, level);
    let mut by_count: Vec<(&str, usize)> = cells
        .values
        .iter()
        .map(|(value, &times)| (value.as_str(), times))
        .collect();
    by_count.sort_by(|a, b| {
        let known = kept(b.0).cmp(&kept(a.0));
        known.then_with(|| b.1.cmp(&a.1)).then_with(|| a.0.cmp(b.0))
    });
    let may = |(level, times): &&(&str, usize)| {
        may_be_level(level) && (*times >= wishes.rare() || kept(level))
    };
    let (may, rare): (Vec<_>, Vec<_>) = by_count.iter().copied().partition(|level| may(&level));
    // A level of less than half a percent is a column of almost nothing but zeros.
    let frequent = |(level, times): &&(&str, usize)| 200 * times >= present || kept(level);
    let frequent = may.iter().filter(frequent).count();
    let listed = if may.len() <= LEVELS && (frequent + 1 >= may.len()) {
        may.len()
    } else {
        frequent
            .clamp(may.len().min(2), LEVELS.max(wishes.keep.len()))
            .min(may.len())
    };
    let other = listed < distinct;
    if listed == 0 || listed + usize::from(other) < 2 {
        return ColumnUse::LeftOut(format!(
            "{distinct} different texts, none of which is in {} rows (--rare)",
            wishes.rare()
        ));
    }
    let covered: usize = may.iter().take(listed).map(|(_, times)| times).sum();
    if 4 * covered < present && !asked {
        return ColumnUse::LeftOut(format!(
            "{distinct} different texts, none of which is frequent: names, dates or free text"
        ));
    }
    let levels: Vec<String> = may
        .iter()
        .take(listed)
        .map(|(level, _)| (*level).to_owned())
        .collect();
    let all_others = other.then_some(present - covered);
    let what = said(cells, &may[..listed], all_others, codes);
    let notes = not_listed(cells, &rare, wishes).into_iter().collect();
    let feature = FeatureColumns {
        name: cells.name.into(),
        kind: ColumnType::Category(Levels {
            listed: levels,
            other,
        }),
        missing: match cells.missing {
            0 => MissingRule::Refuse,
            _ => MissingRule::Indicator,
        },
    };
    ColumnUse::Category(feature, cells.with_missing(what), notes)
}

/// Returns what the column holds, in one phrase: its listed levels, and how many rows have any other.
fn said(cells: &Cells<'_>, listed: &[(&str, usize)], others: Option<usize>, codes: bool) -> String {
    let each: Vec<String> = listed
        .iter()
        .map(|(level, times)| format!("{level} {times}"))
        .collect();
    let (distinct, each) = (cells.values.len(), each.join(", "));
    let kind = if codes { "codes" } else { "texts" };
    let what = match others {
        Some(rows) => format!(
            "{kind}, {} of {distinct}: {each}; all others together {rows}",
            listed.len()
        ),
        None => format!("{distinct} {kind}: {each}"),
    };
    let share = 100 * cells.numeric / cells.present();
    if (50..100).contains(&share) {
        format!("{what}; {share} % are numbers: to read them as such, see `codes`")
    } else {
        what
    }
}

/// Returns what became of rare levels, as a sentence; `None` where there are none.
fn not_listed(cells: &Cells<'_>, rare: &[(&str, usize)], wishes: &Wishes) -> Option<String> {
    let (first, _) = rare.first()?;
    let some: Vec<String> = rare
        .iter()
        .filter(|(level, _)| may_be_level(level))
        .take(5)
        .map(|(level, _)| format!("{level:?}"))
        .collect();
    let rows: usize = rare.iter().map(|(_, times)| times).sum();
    Some(format!(
        "{}: {} with {} in all {} listed, because fewer than {} rows have it: {}{}; to list one all the \
         same, say --keep {}",
        cells.name,
        counted(rare.len(), "rare level"),
        counted(rows, "row"),
        if rare.len() == 1 { "is not" } else { "are not" },
        wishes.rare(),
        some.join(", "),
        if rare.len() > some.len() { ", …" } else { "" },
        typed_pair(cells.name, first),
    ))
}
