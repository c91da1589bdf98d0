//! Data: tables from files or built in, partitioned into silos, split, completed and standardised.
//!
//! A source gives one [`Table`] per silo. [`SplitConfig`] splits its rows by seed into training,
//! validation and test rows; missing values are filled with the means of the training rows; and
//! [`Standardise`] chooses the scale. The rest of the crate sees complete rows of `f32` only.

mod breast_cancer;
mod date;
mod diabetes;
mod digits;
mod eicu;
mod eicu_los;
mod eicu_mortality;
mod error;
mod format;
mod heart;
mod images;
mod label;
mod left_out;
mod mojibake;
mod moments;
mod notation;
mod open;
mod parquet;
mod partition;
mod prepare;
mod public;
mod raw;
mod row_by_row;
mod rows;
mod sheets;
mod split;
mod synthetic;
mod table;
mod target;
mod tcga_brca;
mod tpt48;

pub use breast_cancer::{breast_cancer, breast_cancer_silos};
pub(crate) use date::{calendar, date, day_text, days_of, is_leap};
pub use diabetes::{diabetes, diabetes_silos};
pub use eicu_los::{EicuLosConfig, EicuSubgroup, eicu_los};
pub use eicu_mortality::{DrugEncoding, EicuMortalityConfig, eicu_mortality};
pub(crate) use error::key;
pub use error::{DataError, RowPlace};
pub use format::{ColumnMarks, Format};
pub use heart::{heart, heart_config};
pub use images::{ImageFile, ImagesConfig, ImagesFrom, TestPart};
pub use label::Rule;
pub use left_out::LeftOut;
pub use methods::nearest;
pub use partition::{MixedShares, PartitionConfig, ShardShares};
pub(crate) use prepare::without_range;
pub use prepare::{Preparation, Standardise};
pub use rows::{ColumnsConfig, Incomplete, OwnFile, OwnRows, RowsConfig, RowsFile, TargetColumns};
pub use split::{ShiftConfig, SplitConfig, SplitKey};
pub use synthetic::{SyntheticConfig, SyntheticTarget, synthetic};
pub use table::{DataSet, GroupId, Table};
pub use target::Target;
pub use tcga_brca::{TcgaBrcaConfig, tcga_brca};
pub use tpt48::{Tpt48Config, Tpt48Region, tpt48};

pub use digits::{Digits, WIDTHS as DIGITS_WIDTHS, digits};
pub use eicu_los::{eicu_los_columns, eicu_los_target};
pub use format::{AroundNumber, Charset, EncodingGuess, LimitSide, encoding_of};
pub use format::{Negative, RAISED, WrittenNumber, by_zero_bytes, core, grouped};
pub use heart::heart_schema;
pub use label::{are_with_zeros, number, same_class, without_zeros};
pub use mojibake::{Mojibake, mojibake};
pub(crate) use mojibake::{meant, same_bytes};
pub use moments::{Moments, effective};
pub use notation::{missing_notes, notation_notes};
pub use open::{FileContent, bytes, content, open, open_columns, open_row_by_row};
pub use prepare::{ColumnSummary, Prepared};
pub(crate) use raw::composed;
pub use raw::{RawFile, RawRow, RawRows, Wanted, separator};
pub(crate) use rows::Reading;
pub use rows::{number_columns, pretend_silo, read_columns, silo_of};
pub use table::Rows;
pub use tpt48::{tpt48_columns, tpt48_target};
