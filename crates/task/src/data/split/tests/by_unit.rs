//! Splits in which the part of a row depends on its own unit alone.

use super::*;
use crate::data::GroupId;

fn split(text: &str) -> SplitConfig {
    let split: SplitConfig = toml::from_str(text).unwrap();
    split.check().unwrap();
    split
}

/// The part of every row; `None` where it is left out.
fn sides(parts: &Parts, rows: usize) -> Vec<Option<Split>> {
    let mut sides = vec![None; rows];
    let all = [
        (&parts.train, Split::Train),
        (&parts.validation, Split::Validation),
        (&parts.test, Split::Test),
    ];
    for (rows, part) in all {
        rows.iter().for_each(|&row| sides[row] = Some(part));
    }
    sides
}

fn sides_of(split: &SplitConfig, table: &Table) -> Vec<Option<Split>> {
    let classes: Vec<usize> = table.target.iter().map(|&class| class as usize).collect();
    sides(
        &split.parts(table, &classes, 5, "north").unwrap(),
        table.len(),
    )
}

#[test]
fn one_row_more_moves_no_other_row() {
    let moved = |split: &SplitConfig, rows: usize| {
        let classes: Vec<usize> = (0..=rows).map(|row| row * 7 % 2).collect();
        let (without, with) = (table(&classes[..rows]), table(&classes));
        let (without, with) = (sides_of(split, &without), sides_of(split, &with));
        without.iter().zip(&with).filter(|(a, b)| a != b).count()
    };
    let (drawn, keyed) = (SplitConfig::default(), split("keyed = true"));
    for rows in [50, 303, 1000] {
        assert!(moved(&drawn, rows) > 10, "of {rows}");
        assert_eq!(moved(&keyed, rows), 0, "of {rows}");
    }
}

/// A row: its cells, its target, its person, when it was, and the part that the data give.
#[derive(Debug, Clone)]
struct DatedLine {
    cells: [f64; 2],
    target: f64,
    person: u8,
    time: f64,
    part: Split,
}

fn lines() -> impl Strategy<Value = Vec<DatedLine>> {
    let cell = prop_oneof![Just(f64::NAN), Just(-0.0), Just(0.0), -3.0..3.0f64];
    let part = prop_oneof![
        Just(Split::Train),
        Just(Split::Validation),
        Just(Split::Test)
    ];
    let line = ([cell.clone(), cell], 0..3u8, 0..12u8, 0..40u8, part);
    let line = line.prop_map(|(cells, target, person, time, part)| DatedLine {
        cells,
        target: target.into(),
        person,
        time: time.into(),
        part,
    });
    proptest::collection::vec(line, 2..40)
}

/// Facts about rows, beside their cells, that a split uses.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Rows,
    Groups,
    Column,
    Dates,
    DatesOfGroups,
}

impl Kind {
    fn split(self) -> SplitConfig {
        split(match self {
            Self::Rows => "keyed = true\nvalidation = 0.2",
            Self::Groups => "keyed = true\nvalidation = 0.2\ngroup = 'person'",
            Self::Column => "keyed = true\nvalidation = 0.2\ncolumn = 'part'",
            Self::Dates => "time = 'day'\ntest-from = '1970-01-31'\nvalidation-from = '20'",
            Self::DatesOfGroups => {
                "time = 'day'\ntest-from = '30'\nvalidation-from = '20'\ngroup = 'person'"
            }
        })
    }

    fn has_groups(self) -> bool {
        matches!(self, Self::Groups | Self::DatesOfGroups)
    }

    /// A table of these rows, as it is read from a file.
    fn table(self, lines: &[DatedLine]) -> Table {
        let mut table = Table::new(vec!["a".into(), "b".into()]);
        for line in lines {
            table.push(&line.cells, line.target);
            if self.has_groups() {
                let id = GroupId(format!("person {}", line.person));
                let known = table.group_ids.iter().position(|own| *own == id);
                let number = known.unwrap_or(table.group_ids.len());
                if known.is_none() {
                    table.group_ids.push(id);
                }
                table.groups.push(number as u32);
            }
            if self == Self::Column {
                table.parts.push(line.part);
            }
            if matches!(self, Self::Dates | Self::DatesOfGroups) {
                table.times.push(line.time);
                table.span = 2.0;
            }
        }
        table
    }
}

proptest! {
    #[test]
    fn one_unit_more_or_less_moves_no_other_row(
        lines in lines(),
        at in any::<prop::sample::Index>(),
        secret in prop::option::of(any::<[u8; 32]>()),
        kind in prop::sample::select(&[
            Kind::Rows, Kind::Groups, Kind::Column, Kind::Dates, Kind::DatesOfGroups,
        ][..]),
    ) {
        let split = kind.split();
        prop_assert!(split.is_by_unit());
        let sides = |lines: &[DatedLine]| {
            let mut table = kind.table(lines);
            if let Some(secret) = secret {
                table.drawn = SplitKey::new(secret).draws(&table);
            }
            sides_of(&split, &table)
        };
        let at = at.index(lines.len());
        let gone = |row: usize| match kind.has_groups() {
            true => lines[row].person == lines[at].person,
            false => row == at,
        };
        let rest: Vec<usize> = (0..lines.len()).filter(|&row| !gone(row)).collect();
        prop_assume!(!rest.is_empty());
        let all = sides(&lines);
        let kept: Vec<DatedLine> = rest.iter().map(|&row| lines[row].clone()).collect();
        let expected: Vec<_> = rest.iter().map(|&row| all[row]).collect();
        prop_assert_eq!(sides(&kept), expected.clone());
        // Nor does the order of the rows.
        let turned: Vec<DatedLine> = kept.into_iter().rev().collect();
        let mut turned = sides(&turned);
        turned.reverse();
        prop_assert_eq!(turned, expected);
    }
}

#[test]
fn equal_rows_stay_together_and_another_key_or_name_splits_anew() {
    let keyed = split("keyed = true");
    let mut table = Table::new(vec!["a".into(), "b".into()]);
    for row in 0..200 {
        let cell = f64::from(row % 100);
        let missing = if row < 100 { f64::NAN } else { -f64::NAN };
        let zero = if row < 100 { 0.0 } else { -0.0 };
        table.push(&[cell, missing], zero);
    }
    let base = sides_of(&keyed, &table);
    assert_eq!(base[..100], base[100..]);
    let other = keyed.parts(&table, &[0; 200], 5, "south").unwrap();
    assert_ne!(sides(&other, 200), base);
    table.drawn = SplitKey::new([7; 32]).draws(&table);
    let own = sides_of(&keyed, &table);
    assert_ne!(own, base);
    // Neither seed nor name is hashed with it.
    let other = keyed.parts(&table, &[0; 200], 6, "south").unwrap();
    assert_eq!(sides(&other, 200), own);
}

#[test]
fn fractions_hold_roughly_and_training_rows_give_the_validation() {
    let rows = table(&vec![0; 10_000]);
    let size = |split: &SplitConfig| {
        let parts = split.parts(&rows, &[], 1, "a").unwrap();
        [parts.train.len(), parts.validation.len(), parts.test.len()]
    };
    let counts = size(&split("keyed = true\nvalidation = 0.2\ntest = 0.3"));
    for (found, wanted) in counts.into_iter().zip([5000, 2000, 3000]) {
        assert!(found.abs_diff(wanted) < 150, "{counts:?}");
    }
    let without = size(&split("keyed = true\ntest = 0.3"));
    assert_eq!(without[2], counts[2], "the test rows are the same");
}

#[test]
fn any_part_may_be_empty() {
    let keyed = split("keyed = true\nvalidation = 0.3\ntest = 0.3");
    let mut seen = std::collections::BTreeSet::new();
    for secret in 0..20 {
        let mut one = table(&[1]);
        one.drawn = SplitKey::new([secret; 32]).draws(&one);
        let parts = keyed.parts(&one, &[1], 1, "a").unwrap();
        seen.insert([parts.train.len(), parts.validation.len(), parts.test.len()]);
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[test]
fn groups_and_rows_from_a_date_on_are_never_trained_on() {
    // Patient 0 comes at 0 and 9, patient 1 at 1 and 2, patient 2 at 5 and 8.
    let mut table = grouped_table(&[0; 6], &[0, 0, 1, 1, 2, 2]);
    table.times = vec![0.0, 9.0, 1.0, 2.0, 5.0, 8.0];
    let dated = split("time = 'day'\ntest-from = '8'\nvalidation-from = '4'\ngroup = 'patient'");
    let parts = dated.parts(&table, &[0; 6], 1, "a").unwrap();
    assert_eq!(
        (parts.train, parts.validation, parts.test),
        (vec![0, 2, 3], vec![4], vec![])
    );
}

#[test]
fn keys_that_contradict_each_other_are_refused_with_a_remedy() {
    let text = |text: &str| toml::from_str::<SplitConfig>(text).unwrap().check();
    for (wrong, said) in [
        ("keyed = true\ntime = 'day'", "write `test-from`"),
        ("test-from = '2024-05-31'", "needs `time`"),
        (
            "time = 'day'\ntest-from = '31.5.2024'",
            "must be a number or a date",
        ),
        ("time = 'day'\nvalidation-from = '3'", "write both"),
        (
            "time = 'day'\ntest-from = '3'\nvalidation-from = '3'",
            "must be before",
        ),
        (
            "time = 'day'\ntest-from = '3'\nvalidation = 0.2",
            "write `validation-from`",
        ),
        (
            "time = 'day'\ntest-from = '3'\ncolumn = 'part'",
            "exclude each other",
        ),
    ] {
        let error = text(wrong).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_a_hash_makes_of_a_unit_never_changes() {
    // A silo whose rows moved would train on those that it had measured with.
    let key = SplitKey::new([1; 32]);
    let mut rows = table(&[0, 1]);
    let of_rows = key.draws(&rows);
    rows.groups = vec![0, 0];
    rows.group_ids = vec![GroupId("patient 1".into())];
    let found = [of_rows, key.draws(&rows)].concat();
    let of_group = 1_457_186_752_691_491_553;
    assert_eq!(
        found,
        [
            4_507_484_159_869_729_539,
            2_060_553_428_551_657_786,
            of_group,
            of_group
        ]
    );
}
