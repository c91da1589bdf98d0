//! Breast cancer patients of The Cancer Genome Atlas in six regions, as in Fed-TCGA-BRCA of FLamby (Ogier du Terrail et
//! al. 2022).

use std::path::Path;

use methods::learner::Split;
use serde::{Deserialize, Serialize};

use super::public::PublicFolder;
use super::{DataError, DataSet, RawFile, Table, Target, number};

const FILES: PublicFolder = PublicFolder {
    source: "tcga-brca",
    name: "tcga_brca",
    hint: "The rows are public (clinical data of TCGA-BRCA, National Cancer Institute; nobody may try to identify a \
           patient) and were packed again from FLamby's Fed-TCGA-BRCA: its columns with `region`, `fold`, `event` and \
           `days`; put the file into the folder tcga_brca under the data folder. Its SHA-256: tcga_brca.csv \
           92728b504c212fe70e1bd39b91a50b6807f16d77130c4fb959ce531dc8570521",
};

/// The regions, by the names of the file.
const REGIONS: [(&str, &str); 6] = [
    ("northeast", "Northeast"),
    ("south", "South"),
    ("west", "West"),
    ("midwest", "Midwest"),
    ("europe", "Europe"),
    ("canada", "Canada"),
];

/// Columns that are no features.
const BESIDE: [&str; 4] = ["region", "fold", "event", "days"];

/// Which rows of TCGA-BRCA are tested on.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TcgaBrcaConfig {
    /// True if rows are trained and tested on as in FLamby, whose test rows have 32 of the 151 deaths. By default false:
    /// `split` divides them.
    pub flamby_split: bool,
}

/// Returns the regions, from `tcga_brca/` under `folder`: the time to death from 39 columns, age as a rank from 0 to 90
/// and indicators. Rows with 0 days are left out; none of them has an event, so no other row's risk set has them.
///
/// # Errors
/// [`DataError`], saying where the file can be had.
pub fn tcga_brca(config: TcgaBrcaConfig, folder: Option<&Path>) -> Result<DataSet, DataError> {
    let file = FILES.table(folder, "tcga_brca.csv")?;
    let names = file.header.iter().map(String::as_str);
    let features: Vec<&str> = names.filter(|name| !BESIDE.contains(name)).collect();
    let places = |names: &[&str]| -> Result<Vec<usize>, DataError> {
        names.iter().map(|name| file.place(name)).collect()
    };
    let (columns, beside) = (places(&features)?, places(&BESIDE)?);
    let mut silos = REGIONS.map(|(_, name)| {
        let columns = features.iter().map(|&name| name.to_owned());
        (name.to_owned(), Table::new(columns.collect()))
    });
    let mut without_time = 0;
    for row in &file.rows {
        let cell = |place: usize| row.cells.get(place).unwrap_or_default();
        let value = |place: usize| {
            let text = cell(place);
            number(text).ok_or_else(|| wrong(&file, place, text, "a number is needed"))
        };
        let [region, fold, event, days] = beside[..] else {
            unreachable!("four columns beside the features");
        };
        let (event, days) = (value(event)?, value(days)?);
        if days <= 0.0 {
            without_time += 1;
            continue;
        }
        let place = REGIONS.iter().position(|(name, _)| *name == cell(region));
        let Some(place) = place else {
            return Err(wrong(
                &file,
                region,
                cell(region),
                "one of the six regions is needed",
            ));
        };
        let (_, table) = &mut silos[place];
        let values = columns.iter().map(|&place| value(place));
        table.push_all(&values.collect::<Result<Vec<_>, _>>()?, &[event, days, 0.0]);
        if config.flamby_split {
            table.parts.push(match cell(fold) {
                "train" => Split::Train,
                "test" => Split::Test,
                other => return Err(wrong(&file, fold, other, "\"train\" or \"test\" is needed")),
            });
        }
    }
    Ok(DataSet {
        target: Target::Survival {
            unit: "days".into(),
            at: Vec::new(),
        },
        silos: Vec::from(silos),
        schema: None,
        notes: vec![format!(
            "{without_time} rows with 0 days of observation are left out"
        )],
        subgroups: Vec::new(),
    })
}

fn wrong(file: &RawFile, place: usize, text: &str, what: &str) -> DataError {
    DataError::Config(format!(
        "{}: column {:?} holds {text:?}, but {what}",
        file.path.display(),
        file.header[place]
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn without_a_folder_the_error_says_what_the_file_is() {
        let error = tcga_brca(TcgaBrcaConfig::default(), None).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("the tcga-brca data are read from files"),
            "{error}"
        );
        assert!(
            error.contains("Fed-TCGA-BRCA") && error.contains("SHA-256"),
            "{error}"
        );
    }

    #[test]
    fn counts_are_those_of_fed_tcga_brca() {
        let Some(folder) = std::env::var_os("ROTA_DATA") else {
            crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
            return;
        };
        let config = TcgaBrcaConfig { flamby_split: true };
        let data = tcga_brca(config, Some(Path::new(&folder))).unwrap();
        let count = |table: &Table, part: Split| {
            let rows = (0..table.len()).filter(|&row| table.parts[row] == part);
            let events = rows.clone().filter(|&row| table.targets(row)[0] == 1.0);
            (rows.count(), events.count())
        };
        let counts: Vec<_> = data
            .silos
            .iter()
            .map(|(_, table)| (count(table, Split::Train), count(table, Split::Test)))
            .collect();
        // Of Europe nine and of Canada three rows have 0 days.
        assert_eq!(
            counts,
            [
                ((248, 45), (63, 14)),
                ((156, 35), (40, 4)),
                ((164, 14), (42, 8)),
                ((129, 16), (33, 3)),
                ((122, 7), (31, 2)),
                ((39, 2), (9, 1)),
            ]
        );
        assert_eq!(data.silos[0].1.columns.len(), 39);
        assert_eq!(data.silos[0].1.row(0)[0], 90.0, "age as a rank");
        assert_eq!(data.silos[0].1.targets(0), [0.0, 538.0, 0.0]);
    }
}
