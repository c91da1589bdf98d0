//! Reads files given by the user: configurations, keys, data. Only regular files up to a size are
//! read. Everything else, such as a pipe, a device or a folder, is refused at once, because reading
//! it could wait or go on forever.

use std::fs::{self, File, Metadata};
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;

/// Largest size of a configuration, in bytes. A federation of a thousand members needs a tenth of it.
pub const CONFIGURATION: u64 = 4 << 20;
/// Largest size of a data file, in bytes. The whole file is held in memory.
pub const DATA: u64 = 1 << 30;
/// Largest size of a file with a model, in bytes: far more than any model that members could send each
/// other, so that a wrong file does not fill the memory.
pub const MODEL: u64 = 64 << 30;

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// An error of the system, not a regular file, or a file over the limit.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open(path, limit)?;
    // Room for all of it, so that no byte is copied while the file is read.
    bounded(Vec::with_capacity(size as usize), file, limit)
}

/// Opens a regular file of at most `limit` bytes, which has that size now.
///
/// # Errors
/// As for [`read`].
pub fn open(path: &Path, limit: u64) -> io::Result<(File, u64)> {
    // Checked before the file is opened, because opening a pipe waits for a writer.
    regular(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    let found = file.metadata()?;
    regular(&found)?;
    if found.len() > limit {
        return Err(large(limit));
    }
    Ok((file, found.len()))
}

/// Reads the text of a regular file of at most `limit` bytes.
///
/// # Errors
/// As for [`read`], or bytes that are not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    io::read_to_string(read(path, limit)?.as_slice())
}

/// Reads text of at most `limit` bytes from any source, such as standard input.
///
/// # Errors
/// An error of the system, more bytes than the limit, or bytes that are not UTF-8.
pub fn read_text_from(source: impl Read, limit: u64) -> io::Result<String> {
    io::read_to_string(bounded(Vec::new(), source, limit)?.as_slice())
}

/// Reads at most the limit, even if the source claims another size.
fn bounded(mut bytes: Vec<u8>, source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    source.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        Err(large(limit))
    } else {
        Ok(bytes)
    }
}

fn large(limit: u64) -> Error {
    let limit = match limit >> 20 {
        0 => format!("{limit} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    };
    let what = format!("it has more than {limit}, the largest size of such a file");
    Error::new(ErrorKind::FileTooLarge, what)
}

fn regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let what = match kind(found) {
        _ if found.is_dir() => "a folder",
        Some(kind) => kind,
        None => "something else",
    };
    let what = format!("it is {what}, expected a regular file");
    Err(Error::new(ErrorKind::InvalidInput, what))
}

#[cfg(unix)]
fn kind(found: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        None
    }
}

#[cfg(not(unix))]
fn kind(_: &Metadata) -> Option<&'static str> {
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn refused(path: &Path, limit: u64) -> String {
        read(path, limit).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let folder = std::env::temp_dir().join(format!("rota-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("text");
        fs::write(&file, "hello").unwrap();
        assert_eq!(read_text(&file, 5).unwrap(), "hello");
        assert!(refused(&file, 4).contains("more than 4 bytes"));
        assert!(refused(&folder, 4).contains("it is a folder"));
        assert!(read(&folder.join("nothing"), 4).is_err());
        // A sparse file: very large, without bytes on the disk.
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert!(refused(&file, DATA).contains("more than 1024 MiB"));
        #[cfg(unix)]
        {
            assert!(refused(Path::new("/dev/zero"), DATA).contains("it is a device"));
            let pipe = folder.join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status();
            assert!(made.unwrap().success());
            assert!(refused(&pipe, DATA).contains("it is a pipe"));
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(read_text_from(io::repeat(b'0'), 1000).is_err());
    }
}
