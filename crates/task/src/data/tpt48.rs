//! TPT-48: monthly mean temperatures of the 48 contiguous states of the US, 2008 to 2019, as in TFL's
//! regression (Ma et al. 2024, Table 4). Six months predict the next six.

use crate::data::RawFile;
use std::collections::BTreeMap;
use std::path::Path;

use methods::learner::Split;
use serde::{Deserialize, Serialize};

use super::public::PublicFolder;
use super::{DataError, DataSet, Moments, Table, Target, number};

const FILES: PublicFolder = PublicFolder {
    source: "tpt48",
    name: "tpt48",
    hint: "The temperatures are public: published with the code of Variational Domain Index, \
github.com/Wang-ML-Lab/VDI, folder TPT-48 (MIT licence). Put them as CSV into the folder tpt48 under the data folder: \
month_temp_data.csv with the columns state, 2008-01, ..., 2019-12, \
longitude-latitude-normalize.csv with state, latitude and longitude, and splits.json with the states of N_to_S; `rota data verify tpt48` compares them. Their SHA-256: \
month_temp_data.csv 7b1c184b899233201c4b0b98b6bd19439ef34613fd4cca70612cbcac89a2afaf, \
longitude-latitude-normalize.csv fade81a3626372b2dd787f64404d1ff349cbd3980698a4e6e86f9ec6ca063f1a, \
splits.json f5fd2a2f271a2cf6ce88d927e2c242bc22c489c31209636c4f95aca56dd55994",
};

/// Months of a row: of the features, and of the targets.
const HALF: usize = 6;
/// Months of a year.
const YEAR: usize = 2 * HALF;
/// Years of the series.
const YEARS: usize = 12;

/// Half of the 48 states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tpt48Region {
    /// The 24 easternmost, by longitude.
    East,
    /// The 24 westernmost, by longitude.
    West,
    /// The 24 that `splits.json` names as northern.
    North,
    /// The 24 that it names as southern.
    South,
}

impl Tpt48Region {
    fn name(self) -> &'static str {
        match self {
            Self::East => "east",
            Self::West => "west",
            Self::North => "north",
            Self::South => "south",
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::East => Self::West,
            Self::West => Self::East,
            Self::North => Self::South,
            Self::South => Self::North,
        }
    }
}

/// Which states of TPT-48 learn, and which are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tpt48Config {
    /// The states that take part in the federation.
    pub from: Tpt48Region,
    /// The states that are predicted: the opposite half, whose states stay outside of the federation and
    /// have test rows only; or the same half, where the last years are predicted.
    pub to: Tpt48Region,
    /// Number of years at the end of the series that the states of `from` do not learn from, but test
    /// on. Default 0 where `to` is the opposite half, and 3 where it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 11), extend("x-unit" = "years"))]
    pub test_years: Option<usize>,
}

#[derive(Deserialize)]
struct Splits {
    #[serde(rename = "N_to_S")]
    north_to_south: NorthToSouth,
}

#[derive(Deserialize)]
struct NorthToSouth {
    source: Vec<String>,
}

/// One state's temperatures, month by month.
type Series<'a> = (&'a str, Vec<f64>);

/// Names of the features: the months from which the next are predicted.
pub fn tpt48_columns() -> Vec<String> {
    (1..=HALF).map(|month| format!("month {month}")).collect()
}

/// The target: the next six months.
pub fn tpt48_target() -> Target {
    Target::Numbers {
        unit: "standard deviations".into(),
        count: HALF,
    }
}

/// The states of both halves, from `tpt48/` under `folder`. A state of `from` trains on every window
/// of 12 months in its training years (133 windows where it trains on all twelve). Test rows are whole
/// years: those held out at the end, and in an opposite half all twelve. One mean and one deviation, of
/// all training months and the first halves of the test years, standardise all temperatures.
///
/// # Errors
/// [`DataError`], saying where the files can be had; halves that are neither opposite nor the same.
pub fn tpt48(config: Tpt48Config, folder: Option<&Path>) -> Result<DataSet, DataError> {
    let Tpt48Config { from, to, .. } = config;
    if to != from && to != from.opposite() {
        return Err(DataError::Config(format!(
            "`tpt48`: `from` is {:?} and `to` is {:?}, which share states: `to` must be {:?} or {:?}",
            from.name(),
            to.name(),
            from.opposite().name(),
            from.name()
        )));
    }
    let same = from == to;
    let held = config.test_years.unwrap_or(if same { 3 } else { 0 });
    let least = usize::from(same);
    if !(least..YEARS).contains(&held) {
        return Err(DataError::Config(format!(
            "`tpt48`: `test-years` is {held}, it must be between {least} and {}",
            YEARS - 1
        )));
    }
    let raw = FILES.table(folder, "month_temp_data.csv")?;
    let series = series(&raw)?;
    let here = half(from, &series, folder)?;
    let (inside, outside): (Vec<_>, Vec<_>) =
        series.iter().zip(&here).partition(|(_, here)| **here);
    let outside = if same { Vec::new() } else { outside };
    let learned = (YEARS - held) * YEAR;
    let mut seen = Vec::new();
    for ((_, months), _) in &inside {
        seen.extend_from_slice(&months[..learned]);
        seen.extend(first_halves(months, YEARS - held));
    }
    for ((_, months), _) in &outside {
        seen.extend(first_halves(months, 0));
    }
    let scale = Moments::of(seen.into_iter());
    let table = |months: &[f64], region: Tpt48Region, member: bool| {
        let mut table = Table::new(tpt48_columns());
        table.group = Some(region.name().into());
        table.span = YEAR as f64;
        let held = if member { held } else { YEARS };
        windows(&mut table, months, held, scale);
        table
    };
    let members = inside
        .iter()
        .map(|((state, months), _)| ((*state).to_owned(), table(months, from, true)));
    let others = outside
        .iter()
        .map(|((state, months), _)| ((*state).to_owned(), table(months, to, false)));
    Ok(DataSet {
        target: tpt48_target(),
        silos: members.chain(others).collect(),
        schema: None,
        notes: Vec::new(),
        subgroups: Vec::new(),
    })
}

/// The months of every state.
fn series(raw: &RawFile) -> Result<Vec<Series<'_>>, DataError> {
    let mut series: Vec<Series<'_>> = Vec::new();
    let state_at = raw.place("state")?;
    for row in &raw.rows {
        let mut months = Vec::with_capacity(YEARS * YEAR);
        for (at, text) in row.cells.iter().enumerate() {
            if at != state_at {
                months.push(number(text).ok_or_else(|| DataError::Cell {
                    path: raw.path.clone(),
                    at: row.at,
                    column: raw.header[at].clone(),
                    text: text.into(),
                    expected: "a temperature is needed".into(),
                })?);
            }
        }
        series.push((row.cells.get(state_at).unwrap_or_default(), months));
    }
    if series.len() != 48 || series.iter().any(|(_, all)| all.len() != YEARS * YEAR) {
        return Err(DataError::File {
            path: raw.path.clone(),
            reason: format!(
                "expected 48 states with {} months each, found {} rows with {} columns",
                YEARS * YEAR,
                raw.rows.len(),
                raw.header.len()
            ),
            hint: format!(". {}", FILES.hint),
        });
    }
    Ok(series)
}

/// Returns where years begin in the series of a state, from a year on.
fn years(from: usize) -> impl Iterator<Item = usize> {
    (from..YEARS).map(|year| year * YEAR)
}

/// The months of the first halves of years, from a year on: what a model sees of test years.
fn first_halves(months: &[f64], from: usize) -> Vec<f64> {
    let halves = years(from).flat_map(|at| &months[at..at + HALF]);
    halves.copied().collect()
}

/// Adds a state's windows of a year to its table: half of a window predicts the other half. The last
/// `held` years are test windows, one for each; before them a training window begins with every month.
fn windows(table: &mut Table, months: &[f64], held: usize, scale: Moments) {
    let (mean, deviation) = (scale.mean, scale.deviation());
    let mut push = |at: usize, part: Split| {
        let window = months[at..at + YEAR].iter();
        let window: Vec<f64> = window.map(|value| (value - mean) / deviation).collect();
        table.push_all(&window[..HALF], &window[HALF..]);
        table.times.push(at as f64);
        table.parts.push(part);
    };
    let learned = (YEARS - held) * YEAR;
    let starts = (learned + 1).saturating_sub(YEAR);
    (0..starts).for_each(|at| push(at, Split::Train));
    years(YEARS - held).for_each(|at| push(at, Split::Test));
}

/// For each state, whether it is of this half.
fn half(
    region: Tpt48Region,
    series: &[Series<'_>],
    folder: Option<&Path>,
) -> Result<Vec<bool>, DataError> {
    let chosen: Vec<String> = match region {
        Tpt48Region::North | Tpt48Region::South => {
            let text = FILES.text(folder, "splits.json")?;
            let splits: Splits = serde_json::from_str(&text).map_err(|error| {
                DataError::Config(format!("`tpt48`: splits.json: {error}. {}", FILES.hint))
            })?;
            splits.north_to_south.source
        }
        Tpt48Region::East | Tpt48Region::West => {
            let raw = FILES.table(folder, "longitude-latitude-normalize.csv")?;
            let mut east = BTreeMap::new();
            for [state, longitude] in raw.cells(["state", "longitude"])? {
                east.insert(state.to_owned(), number(longitude).unwrap_or(f64::NAN));
            }
            let place = |state: &str| east.get(state).copied().unwrap_or(f64::NAN);
            let mut order: Vec<&str> = series.iter().map(|(state, _)| *state).collect();
            order.sort_by(|a, b| place(b).total_cmp(&place(a)));
            order.truncate(24);
            order.into_iter().map(str::to_owned).collect()
        }
    };
    let first = matches!(region, Tpt48Region::North | Tpt48Region::East);
    let is_in = |(state, _): &Series<'_>| chosen.iter().any(|one| one == state) == first;
    let all: Vec<bool> = series.iter().map(is_in).collect();
    match all.iter().filter(|here| **here).count() {
        24 => Ok(all),
        found => Err(DataError::Config(format!(
            "`tpt48`: expected 24 states in the {}, found {found}. {}",
            region.name(),
            FILES.hint
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn real() -> Option<std::path::PathBuf> {
        let folder = std::env::var_os("ROTA_DATA").map(Into::into);
        if folder.is_none() {
            crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        }
        folder
    }

    fn config(from: Tpt48Region, to: Tpt48Region) -> Tpt48Config {
        Tpt48Config {
            from,
            to,
            test_years: None,
        }
    }

    #[test]
    fn without_the_files_the_error_states_where_they_can_be_had() {
        let east = config(Tpt48Region::East, Tpt48Region::West);
        let error = tpt48(east, None).unwrap_err().to_string();
        assert!(
            error.starts_with("the tpt48 data are read from files"),
            "{error}"
        );
        let error = tpt48(east, Some(Path::new("/nowhere")))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("Wang-ML-Lab/VDI") && error.contains("7b1c184b"),
            "{error}"
        );
        let crossed = config(Tpt48Region::East, Tpt48Region::North);
        let error = tpt48(crossed, None).unwrap_err().to_string();
        assert!(
            error.contains("`to` must be \"west\" or \"east\""),
            "{error}"
        );
    }

    #[test]
    fn transfers_have_the_windows_and_the_scale_of_the_paper() {
        let Some(folder) = real() else { return };
        let data = tpt48(config(Tpt48Region::East, Tpt48Region::West), Some(&folder)).unwrap();
        let shape = |data: &DataSet| -> Vec<(usize, usize)> {
            let count =
                |table: &Table, part| table.parts.iter().filter(|own| **own == part).count();
            let each = data.silos.iter();
            let each =
                each.map(|(_, table)| (count(table, Split::Train), count(table, Split::Test)));
            each.collect()
        };
        assert_eq!(
            shape(&data),
            [vec![(133, 0); 24], vec![(0, 12); 24]].concat()
        );
        assert_eq!(data.silos[0].0, "AL");
        // Mean 51.634992283950616 and deviation 17.54120222618917, computed apart in Python.
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let alabama = &data.silos[0].1;
        assert!(close(alabama.row(0)[0], -0.492_269_125_719_245));
        assert!(close(alabama.targets(0)[5], -0.110_311_269_375_918_42));
        let arizona = data.silos.iter().find(|(state, _)| state == "AZ").unwrap();
        assert!(close(arizona.1.row(11)[0], -0.526_474_306_884_319_1));
        assert_eq!(arizona.1.group.as_deref(), Some("west"));
        let south = tpt48(
            config(Tpt48Region::North, Tpt48Region::South),
            Some(&folder),
        )
        .unwrap();
        assert_eq!(shape(&south), shape(&data));
        assert!(south.silos[..24].iter().any(|(state, _)| state == "ND"));
        let (_, georgia) = south.silos.iter().find(|(state, _)| state == "GA").unwrap();
        assert_eq!(georgia.parts.len(), 12);
    }

    #[test]
    fn within_a_half_no_test_month_is_trained_on() {
        let Some(folder) = real() else { return };
        let data = tpt48(config(Tpt48Region::East, Tpt48Region::East), Some(&folder)).unwrap();
        assert_eq!(data.silos.len(), 24);
        for (_, table) in &data.silos {
            let times = |part| {
                let rows = table.times.iter().zip(&table.parts);
                let times = rows.filter(move |(_, own)| **own == part);
                times.map(|(time, _)| *time).collect::<Vec<f64>>()
            };
            assert_eq!(times(Split::Train).len(), 97);
            assert_eq!(times(Split::Test), [108.0, 120.0, 132.0]);
            assert!(times(Split::Train).iter().all(|time| time + 12.0 <= 108.0));
        }
    }
}
