//! Content of a file that is compressed with gzip.

use std::fmt;
use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::limits::{SPLIT, most};

/// The first bytes of a gzip file.
pub(super) const GZIP: &[u8] = &[0x1F, 0x8B];

/// Reason for the refusal of a content, with a remedy.
#[derive(Debug)]
pub(super) struct GzipRefused {
    pub(super) reason: String,
    pub(super) hint: String,
}

impl fmt::Display for GzipRefused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for GzipRefused {}

fn refused(reason: String, hint: &str) -> io::Error {
    let hint = hint.to_owned();
    io::Error::other(GzipRefused { reason, hint })
}

/// Decompresses no more bytes than a limit. A file may have several parts; zero bytes behind the last, as tapes have
/// them, mean nothing. Its errors hold a [`GzipRefused`].
pub(super) struct Gunzip<R> {
    part: Option<GzipPart<R>>,
    limit: u64,
    left: u64,
}

enum GzipPart<R> {
    /// Possible begin of a part.
    Begin(R),
    Within(Box<GzDecoder<R>>),
}

impl<R: BufRead> Gunzip<R> {
    pub(super) fn new(source: R, limit: u64) -> Self {
        Self {
            part: Some(GzipPart::Begin(source)),
            limit,
            left: limit,
        }
    }

    /// Counts what follows the last part, which is nothing or zero bytes.
    fn end(mut source: R) -> io::Result<()> {
        let (mut count, mut zero) = (0, true);
        loop {
            let bytes = source.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            count += bytes.len();
            zero &= bytes.iter().all(|byte| *byte == 0);
            let length = bytes.len();
            source.consume(length);
        }
        match zero {
            true => Ok(()),
            false => Err(refused(
                format!("{count} bytes follow its gzip content that are none"),
                ": was the file put together from others? Compress it again",
            )),
        }
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.part.take() {
                None => return Ok(0),
                Some(GzipPart::Begin(mut source)) => {
                    if source.fill_buf()?.first() != Some(&GZIP[0]) {
                        Self::end(source)?;
                        return Ok(0);
                    }
                    self.part = Some(GzipPart::Within(Box::new(GzDecoder::new(source))));
                }
                Some(GzipPart::Within(mut decoder)) => {
                    let read = decoder.read(into).map_err(|error| match error.kind() {
                        ErrorKind::UnexpectedEof => refused(
                            "it breaks off: its gzip content is not complete".into(),
                            ": copy it again",
                        ),
                        _ => refused(format!("its gzip content is damaged: {error}"), ""),
                    })?;
                    if read == 0 && !into.is_empty() {
                        self.part = Some(GzipPart::Begin(decoder.into_inner()));
                        continue;
                    }
                    self.part = Some(GzipPart::Within(decoder));
                    let Some(left) = self.left.checked_sub(read as u64) else {
                        return Err(refused(
                            format!(
                                "it has more than {} when decompressed, the most that such a file may have",
                                most(self.limit)
                            ),
                            SPLIT,
                        ));
                    };
                    self.left = left;
                    return Ok(read);
                }
            }
        }
    }
}
