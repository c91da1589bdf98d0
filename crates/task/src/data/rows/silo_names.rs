//! Names of silos that nobody has named.

use std::path::Path;

/// The name of the silo whose rows are in a file: that of the file, without `.gz` and its extension.
pub fn silo_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let end = name.rfind('.').filter(|&at| at > 0).unwrap_or(name.len());
    name[..end].to_owned()
}

/// The name of a synthetic silo, counted from 0.
pub fn pretend_silo(at: usize) -> String {
    format!("part {}", at + 1)
}
