//! Data: tables from files or built in, partitioned into silos, split, completed and standardised.
//!
//! A source gives one [`Table`] per silo. [`SplitConfig`] splits its rows by seed into training,
//! validation and test rows; missing values are filled with the means of the training rows; and
//! [`Standardise`] chooses the scale. The rest of the crate sees complete rows of `f32` only.

mod csv;
mod diabetes;
mod digits;
mod error;
mod heart;
mod label;
mod prepare;
mod split;
mod table;

pub use csv::{CsvConfig, CsvFile, Incomplete, TargetColumns};
pub use diabetes::{diabetes, diabetes_silos};
pub use error::DataError;
pub use heart::{heart, heart_config};
pub use label::Rule;
pub use prepare::Standardise;
pub use split::SplitConfig;
pub use table::{DataSet, Table, Target};

pub(crate) use digits::{Digits, WIDTHS as DIGITS_WIDTHS, digits};
pub(crate) use prepare::{Moments, Prepared, effective};
pub(crate) use table::Rows;
