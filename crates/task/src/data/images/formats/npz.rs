//! Archives of arrays, as NumPy writes them (`.npz`): a zip file with an array in every entry.

use std::io::Read;
use std::path::{Path, PathBuf};

use rawzip::{CompressionMethod, ZipArchive};

use super::npy::Array;
use super::refused;
use crate::data::{DataError, nearest};
use crate::file;

/// An archive in memory, compressed as in its file.
pub(crate) struct Npz {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Npz {
    /// Reads a file.
    ///
    /// # Errors
    /// [`DataError::File`].
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let bytes =
            file::read(path, file::DATA).map_err(|error| refused(path, error.to_string()))?;
        let archive = Self {
            path: path.to_owned(),
            bytes,
        };
        archive.names()?;
        Ok(archive)
    }

    /// The path that the archive was read from.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn archive(&self) -> Result<rawzip::ZipSliceArchive<&[u8]>, DataError> {
        ZipArchive::from_slice(self.bytes.as_slice()).map_err(|error| self.damaged(&error))
    }

    fn damaged(&self, error: &rawzip::Error) -> DataError {
        refused(
            &self.path,
            format!("expected an archive of NumPy (.npz): {error}"),
        )
    }

    /// Names of its arrays, without `.npy`.
    pub(crate) fn names(&self) -> Result<Vec<String>, DataError> {
        let archive = self.archive()?;
        let mut entries = archive.entries();
        let mut names = Vec::new();
        while let Some(entry) = entries.next_entry().map_err(|error| self.damaged(&error))? {
            let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
            names.extend(name.strip_suffix(".npy").map(str::to_owned));
        }
        Ok(names)
    }

    /// The array of that name.
    ///
    /// # Errors
    /// [`DataError::File`]: no such array, a damaged one, or one over the largest size of a data file.
    pub(crate) fn array(&self, name: &str) -> Result<Array, DataError> {
        match self.find(name)? {
            Some(array) => Ok(array),
            None => {
                let names = self.names()?;
                let near = nearest(name, names.iter().map(String::as_str));
                let there = names.join(", ");
                Err(refused(
                    &self.path,
                    format!("expected an array {name:?}, found {there}{near}"),
                ))
            }
        }
    }

    /// The array of that name, if there is one.
    ///
    /// # Errors
    /// [`DataError::File`]: a damaged one, or one over the largest size of a data file.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Array>, DataError> {
        let archive = self.archive()?;
        let mut entries = archive.entries();
        let wanted = format!("{name}.npy");
        while let Some(entry) = entries.next_entry().map_err(|error| self.damaged(&error))? {
            if entry.file_path().as_bytes() != wanted.as_bytes() {
                continue;
            }
            let method = entry.compression_method();
            let content = archive.get_entry(entry.wayfinder());
            let content = content.map_err(|error| self.damaged(&error))?;
            let array = |reason: String| refused(&self.path, format!("array {name:?}: {reason}"));
            let mut bytes = Vec::new();
            let read = match method {
                CompressionMethod::STORE => content
                    .verifying_reader(content.data())
                    .take(file::DATA + 1)
                    .read_to_end(&mut bytes),
                CompressionMethod::DEFLATE => content
                    .verifying_reader(flate2::bufread::DeflateDecoder::new(content.data()))
                    .take(file::DATA + 1)
                    .read_to_end(&mut bytes),
                other => {
                    return Err(array(format!(
                        "expected it stored or deflated, found the method {}",
                        other.as_u16()
                    )));
                }
            };
            read.map_err(|error| array(format!("it is damaged: {error}")))?;
            if bytes.len() as u64 > file::DATA {
                let most = file::DATA >> 20;
                return Err(array(format!(
                    "it has more than {most} MiB, the most that it may have"
                )));
            }
            return Array::parse(&bytes).map(Some).map_err(array);
        }
        Ok(None)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use std::io::Write;

    use super::super::npy::NpyValues;
    use super::super::npy::tests::npy;
    use super::*;

    /// An archive as NumPy writes it: `savez_compressed` deflates, `savez` stores.
    pub(crate) fn npz(arrays: &[(&str, Vec<u8>)], deflated: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
        for (name, content) in arrays {
            let name = format!("{name}.npy");
            let method = if deflated {
                CompressionMethod::DEFLATE
            } else {
                CompressionMethod::STORE
            };
            let (mut entry, config) = archive
                .new_file(&name)
                .compression_method(method)
                .start()
                .unwrap();
            let descriptor = if deflated {
                let encoder =
                    flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast());
                let mut writer = config.wrap(encoder);
                writer.write_all(content).unwrap();
                let (encoder, descriptor) = writer.finish().unwrap();
                encoder.finish().unwrap();
                descriptor
            } else {
                let mut writer = config.wrap(&mut entry);
                writer.write_all(content).unwrap();
                writer.finish().unwrap().1
            };
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap();
        bytes
    }

    fn opened(bytes: &[u8]) -> Npz {
        Npz {
            path: "a.npz".into(),
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn arrays_are_read_by_name_stored_or_deflated() {
        for deflated in [false, true] {
            let arrays = [
                ("x", npy("|u1", false, &[3, 2], &[1, 2, 3, 4, 5, 6])),
                ("labels", npy("<f4", false, &[1], &1.5f32.to_le_bytes())),
            ];
            let archive = opened(&npz(&arrays, deflated));
            assert_eq!(archive.names().unwrap(), ["x", "labels"]);
            let x = archive.array("x").unwrap();
            assert_eq!(
                (x.shape, x.values),
                (vec![3, 2], NpyValues::Bytes(vec![1, 2, 3, 4, 5, 6]))
            );
            assert_eq!(
                archive.array("labels").unwrap().values,
                NpyValues::Floats(vec![1.5])
            );
            assert_eq!(archive.find("z").unwrap(), None);
            let error = archive.array("lables").unwrap_err().to_string();
            assert_eq!(
                error,
                "cannot read a.npz: expected an array \"lables\", found x, labels; did you mean \"labels\"?"
            );
        }
    }

    #[test]
    fn a_damaged_archive_is_refused() {
        let array = npy("|u1", false, &[64], &[7; 64]);
        for deflated in [false, true] {
            let mut bytes = npz(&[("x", array.clone())], deflated);
            // A byte of the content, which the checksum covers.
            let at = if deflated { 60 } else { 150 };
            bytes[at] ^= 1;
            let error = opened(&bytes).array("x").unwrap_err().to_string();
            assert!(
                error.starts_with("cannot read a.npz: array \"x\": "),
                "{error}"
            );
        }
        let error = opened(b"no archive").array("x").unwrap_err().to_string();
        assert!(
            error.contains("expected an archive of NumPy (.npz)"),
            "{error}"
        );
        let cut = &npz(&[("x", array)], true)[..120];
        assert!(opened(cut).array("x").is_err());
    }
}
