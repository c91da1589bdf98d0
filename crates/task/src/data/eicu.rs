//! Common parts of the two tasks on the demo of the eICU Collaborative Research Database: its files, its
//! hospitals.

use std::collections::BTreeMap;
use std::path::Path;

use super::public::PublicFolder;
use super::{DataError, RawFile, Table, number};

const HINT: &str = "The files are public (ODbL 1.0): eICU Collaborative Research Database Demo 2.0, \
physionet.org/content/eicu-crd-demo; put them into the folder eicu_demo under the data folder, or let `rota data get eicu-demo` download them. Their SHA-256: \
patient.csv.gz a719233f4592ecf99ab1327a4d1ae610adacfb9e52232cc28c7187afcfcff8af, \
medication.csv.gz 0cc9b24feae11310822a1a4543922edea822eb6f2300697efb4e204849cd462f, \
apachepatientresult.csv.gz 33237a04b2402ed3eb954f3296a4e1b840745cf9e33f512df3e7d3005d5f6666, \
apacheapsvar.csv.gz 781629f2e3d4ccfe880f9a036cdafc8e3959c600191b04ea33047cd50e98f85d, \
hospital.csv.gz c6b694109c9bf7e255820db15d8323145495e55b3a7063bc64c8b5bc9e766301";

/// Reads files of the demo.
pub(super) struct Eicu<'a> {
    files: PublicFolder,
    data: Option<&'a Path>,
}

impl<'a> Eicu<'a> {
    /// For this source, from `eicu_demo/` under `data`.
    pub(super) fn new(source: &'static str, data: Option<&'a Path>) -> Self {
        Self {
            files: PublicFolder {
                source,
                name: "eicu_demo",
                hint: HINT,
            },
            data,
        }
    }

    /// A table of the demo, by name without `.csv.gz`.
    pub(super) fn table(&self, name: &str) -> Result<RawFile, DataError> {
        self.files.table(self.data, &format!("{name}.csv.gz"))
    }

    /// The region of every hospital for which it is known: Midwest, Northeast, South or West.
    pub(super) fn regions(&self) -> Result<BTreeMap<String, String>, DataError> {
        let raw = self.table("hospital")?;
        let known = raw
            .cells(["hospitalid", "region"])?
            .filter(|[_, region]| !region.is_empty());
        Ok(known
            .map(|[hospital, region]| (hospital.to_owned(), region.to_owned()))
            .collect())
    }
}

/// A number of hours in minutes.
pub(super) fn hours(hours: u32) -> f64 {
    60.0 * f64::from(hours)
}

/// Returns whether a drug was started in the first minutes of a stay.
pub(super) fn started_within(offset: &str, minutes: f64) -> bool {
    number(offset).is_some_and(|offset| (0.0..minutes).contains(&offset))
}

/// The rows of hospitals, in the order of their numbers.
#[derive(Default)]
pub(super) struct HospitalTables(BTreeMap<u64, Table>);

impl HospitalTables {
    /// The table of a hospital; the first time the one that `new` makes.
    pub(super) fn table(&mut self, hospital: &str, new: impl FnOnce() -> Table) -> &mut Table {
        let number = hospital.parse().unwrap_or_default();
        self.0.entry(number).or_insert_with(new)
    }

    /// The hospitals with at least this number of rows, by name.
    pub(super) fn with_rows(self, least: usize) -> Vec<(String, Table)> {
        let enough = self.0.into_iter().filter(|(_, table)| table.len() >= least);
        enough
            .map(|(number, table)| (format!("hospital {number}"), table))
            .collect()
    }
}
