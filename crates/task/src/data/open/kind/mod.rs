//! Type of a file, by its first bytes: a table that can be read, or something else, with the line that makes a
//! table of it.

use std::path::Path;

use super::{FileContent, ends};
use crate::data::{DataError, Reading, by_zero_bytes};

mod printed;

/// Type of table in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Parquet,
    Sheet,
    Text,
}

/// Description of a file that is no table, and remedy. `FILE` stands for the name of the file, `NAME` for the
/// name without its ending.
pub(super) type Other = (&'static str, &'static str);

/// First bytes of files that are no tables of text.
const OTHERS: [(&[u8], Other); 31] = [
    (b"PK\x05\x06", ("an empty archive", "save the sheet as CSV")),
    (b"BZh", ("compressed with bzip2", UNPACK)),
    (b"\xFD7zXZ", ("compressed with xz", UNPACK)),
    (b"\x28\xB5\x2F\xFD", ("compressed with zstd", UNPACK)),
    (b"7z\xBC\xAF", ("a 7-Zip archive", "unpack it")),
    (b"Rar!", ("a RAR archive", "unpack it")),
    (b"%PDF", ("a PDF", "save the table as CSV")),
    (b"{\\rtf", ("a text document", "save the table as CSV")),
    (
        b"SQLite format 3",
        (
            "a database of SQLite",
            "export the table: sqlite3 -header -csv \"FILE\" \"select * from TABLE\" > \"NAME.csv\"",
        ),
    ),
    (b"$FL2", SPSS),
    (b"$FL3", SPSS),
    (b"<stata_dta>", STATA),
    // Before version 13 of Stata: the version, the order of bytes, a one and a zero.
    (b"\x73\x01\x01\x00", STATA),
    (b"\x73\x02\x01\x00", STATA),
    (b"\x72\x01\x01\x00", STATA),
    (b"\x72\x02\x01\x00", STATA),
    (b"\x71\x01\x01\x00", STATA),
    (b"\x71\x02\x01\x00", STATA),
    (b"HEADER RECORD*******LIB", SAS_TRANSPORT),
    (
        SAS,
        (
            "a table of SAS",
            "convert it: python3 -c \"import pandas; pandas.read_sas('FILE', format='sas7bdat', encoding='latin1').to_csv('NAME.csv', index=False)\"",
        ),
    ),
    (b"ARROW1", ARROW),
    (b"FEA1", ARROW),
    (
        b"\x89HDF",
        (
            "a file of HDF5",
            "convert it: python3 -c \"import pandas; pandas.read_hdf('FILE').to_csv('NAME.csv', index=False)\"",
        ),
    ),
    (
        b"ORC",
        (
            "a file of ORC",
            "convert it: python3 -c \"import pandas; pandas.read_orc('FILE').to_csv('NAME.csv', index=False)\"",
        ),
    ),
    (b"Obj\x01", ("a file of Avro", "write it as Parquet or CSV")),
    (b"RDX2", RDATA),
    (b"RDX3", RDATA),
    (b"X\n\x00\x00\x00", RDS),
    (b"\x80\x04\x95", PICKLE),
    (b"\x80\x05\x95", PICKLE),
    (
        b"\x93NUMPY",
        (
            "an array of NumPy",
            "convert it: python3 -c \"import numpy, pandas; pandas.DataFrame(numpy.load('FILE')).to_csv('NAME.csv', index=False)\"",
        ),
    ),
];

const UNPACK: &str = "decompress it, or compress it with gzip";
const SAS: &[u8] = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xC2\xEA\x81\x60";
const SPSS: Other = (
    "a file of SPSS",
    "convert it: Rscript -e 'write.csv(haven::as_factor(haven::read_sav(\"FILE\")), \"NAME.csv\", row.names = FALSE)'",
);
const SPSS_PORTABLE: Other = (
    "a portable file of SPSS",
    "convert it: Rscript -e 'write.csv(haven::as_factor(haven::read_por(\"FILE\")), \"NAME.csv\", row.names = FALSE)'",
);
const STATA: Other = (
    "a file of Stata",
    "convert it: python3 -c \"import pandas; pandas.read_stata('FILE').to_csv('NAME.csv', index=False)\"",
);
const SAS_TRANSPORT: Other = (
    "a transport file of SAS",
    "convert it: python3 -c \"import pandas; pandas.read_sas('FILE', format='xport', encoding='latin1').to_csv('NAME.csv', index=False)\"",
);
const ARROW: Other = (
    "a file of Arrow",
    "convert it: python3 -c \"import pandas; pandas.read_feather('FILE').to_parquet('NAME.parquet')\"",
);
const RDATA: Other = (
    "a workspace of R",
    "convert it: Rscript -e 'write.csv(get(load(\"FILE\")), \"NAME.csv\", row.names = FALSE)'",
);
const RDS: Other = (
    "an object of R",
    "convert it: Rscript -e 'write.csv(readRDS(\"FILE\"), \"NAME.csv\", row.names = FALSE)'",
);
const PICKLE: Other = (
    "a pickle of Python",
    "convert it: python3 -c \"import pandas; pandas.read_pickle('FILE').to_csv('NAME.csv', index=False)\"",
);
/// Beginning of zip archives that have entries.
const ZIP: &[u8] = b"PK\x03\x04";
/// Beginning of old documents of Microsoft Office, and of new ones with a password.
const COMPOUND: &[u8] = b"\xD0\xCF\x11\xE0";

impl FileKind {
    /// Returns what the name of a file says that it holds.
    pub(super) fn by_name(path: &Path) -> Self {
        let named = |ending: &[&str]| ending.iter().any(|end| ends(path, end));
        if named(&[".parquet", ".parq", ".pq"]) {
            Self::Parquet
        } else if named(&[".xlsx", ".xlsm", ".ods"]) {
            Self::Sheet
        } else {
            Self::Text
        }
    }

    /// This kind of content.
    pub(super) fn with(self, bytes: Vec<u8>) -> FileContent {
        match self {
            Self::Parquet => FileContent::Parquet(bytes),
            Self::Sheet => FileContent::Sheet(bytes),
            Self::Text => FileContent::Text(bytes),
        }
    }

    /// Returns what the first bytes of a file say that it holds. Read row by row, its rows are not asked.
    ///
    /// # Errors
    /// [`DataError::File`]: it is no table; what it is, and what to do.
    pub(super) fn told(path: &Path, head: &[u8], reading: Reading) -> Result<Self, DataError> {
        if head.starts_with(b"PAR1") || Self::by_name(path) == Self::Parquet {
            return Ok(Self::Parquet);
        }
        if head.starts_with(ZIP) {
            return Ok(Self::Sheet);
        }
        match other(head, reading) {
            None => Ok(Self::Text),
            Some(other) => Err(named(path, other)),
        }
    }
}

/// That a file is something else than a table, and what to do.
pub(super) fn named(path: &Path, (what, hint): Other) -> DataError {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    DataError::File {
        path: path.to_owned(),
        reason: format!("it is {what}"),
        hint: format!(": {}", hint.replace("FILE", &file).replace("NAME", &stem)),
    }
}

/// Returns what these first bytes are of, if they are of no table.
fn other(head: &[u8], reading: Reading) -> Option<Other> {
    if let Some((_, other)) = OTHERS.iter().find(|(first, _)| head.starts_with(first)) {
        return Some(*other);
    }
    if head.starts_with(COMPOUND) {
        let wide: Vec<u8> = "EncryptedPackage"
            .bytes()
            .flat_map(|byte| [byte, 0])
            .collect();
        return Some(match head.windows(wide.len()).any(|part| part == wide) {
            true => (
                "a spreadsheet with a password",
                "save it without one, as .xlsx or CSV",
            ),
            false => (
                "an old spreadsheet (.xls)",
                "open it in a spreadsheet program and save it as .xlsx or CSV",
            ),
        });
    }
    // A portable file of SPSS says so behind tables of letters.
    if head.get(456..464) == Some(b"SPSSPORT") {
        return Some(SPSS_PORTABLE);
    }
    let text = match by_zero_bytes(head) {
        Some(encoding) => encoding.decode(head).0,
        None => String::from_utf8_lossy(head),
    };
    let text = text.trim_start_matches(['\u{FEFF}', '\u{B}']).trim_start();
    printed::document(text).or_else(|| match reading {
        Reading::Whole => printed::output(text),
        Reading::RowByRow => None,
    })
}
