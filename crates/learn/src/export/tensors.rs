//! Reads the tensors of a safetensors file: first its header, which says how large they are, then each number to the
//! place where it stays. Of a file that is wrong nothing else is held.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Read, Seek, SeekFrom};

use methods::{Layout, Params, Role, TensorSpec};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use crate::machine_memory::machine_memory;

/// Largest header, in bytes: the most that the format's own library writes and reads.
const HEADER: u64 = 100_000_000;
/// Numbers that are read at once.
const BLOCK: usize = 1 << 14;

/// A file whose header was read.
pub(super) struct TensorFile<S> {
    source: S,
    /// Position at which the tensors begin.
    begin: u64,
    header: Metadata,
}

impl<S: Read + Seek> TensorFile<S> {
    /// Reads the header of a source of this many bytes.
    ///
    /// # Errors
    /// A description of the fault in the file.
    pub(super) fn of(mut source: S, size: u64) -> Result<Self, String> {
        let no = |why: &dyn Display| {
            format!(
                "it is no safetensors file ({why}): give a model that `rota model export` wrote"
            )
        };
        let mut length = [0; 8];
        source.read_exact(&mut length).map_err(|why| no(&why))?;
        let length = u64::from_le_bytes(length);
        let begin = length.saturating_add(8);
        if length > HEADER || begin > size {
            return Err(no(&"its header does not fit into it"));
        }
        let mut header = vec![0; length as usize];
        source.read_exact(&mut header).map_err(|why| no(&why))?;
        let header: Metadata = serde_json::from_slice(&header).map_err(|why| no(&why))?;
        if begin.checked_add(header.data_len() as u64) != Some(size) {
            return Err(no(&"its header speaks of a file of another size"));
        }
        Ok(Self {
            source,
            begin,
            header,
        })
    }

    /// The texts that stand in the header.
    pub(super) fn metadata(&self) -> HashMap<String, String> {
        self.header.metadata().clone().unwrap_or_default()
    }

    /// Bytes of all tensors.
    pub(super) fn size(&self) -> u64 {
        self.header.data_len() as u64
    }

    /// Names and shapes of the tensors, in the order of their names.
    pub(super) fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let tensors = self.header.tensors().into_iter();
        let mut shapes: Vec<_> = tensors
            .map(|(name, tensor)| (name, tensor.shape.clone()))
            .collect();
        shapes.sort();
        shapes
    }

    /// Reads all tensors, which are of single precision.
    ///
    /// # Errors
    /// Another precision; numbers that are not finite; more of them than this machine can hold; an error of the
    /// system.
    pub(super) fn model(mut self) -> Result<Params, String> {
        let (size, memory) = (self.size(), machine_memory());
        if size > memory {
            return Err(format!(
                "its tensors have {size} bytes, and the memory of this machine {memory}"
            ));
        }
        let tensors = self.header.tensors();
        let mut specs = Vec::with_capacity(tensors.len());
        for (name, shape) in self.shapes() {
            let dtype = tensors[&name].dtype;
            if dtype != Dtype::F32 {
                return Err(format!(
                    "its tensor {name:?} has numbers of type {dtype:?}, expected F32"
                ));
            }
            specs.push(TensorSpec::new(name, shape, Role::Weight));
        }
        let layout = Layout::new(specs).map_err(|error| error.to_string())?;
        let mut done = Ok(());
        let model = Params::build(&layout, |values| {
            let (source, begin) = (&mut self.source, self.begin);
            let mut all = layout.tensors().iter().enumerate();
            done = all.try_for_each(|(at, spec)| {
                let values = &mut values[layout.range(at)];
                read_tensor(source, begin, tensors[&spec.name], values)
            });
        });
        done.map_err(|error| error.to_string())?;
        match model.values().iter().position(|value| !value.is_finite()) {
            Some(at) => Err(format!("number {at} of its tensors is not finite")),
            None => Ok(model),
        }
    }
}

/// Reads one tensor of a source whose tensors begin there.
fn read_tensor(
    source: &mut (impl Read + Seek),
    begin: u64,
    tensor: &TensorInfo,
    values: &mut [f32],
) -> io::Result<()> {
    source.seek(SeekFrom::Start(begin + tensor.data_offsets.0 as u64))?;
    let mut bytes = vec![0; 4 * BLOCK.min(values.len())];
    for block in values.chunks_mut(BLOCK) {
        let bytes = &mut bytes[..4 * block.len()];
        source.read_exact(bytes)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        for (value, number) in block.iter_mut().zip(numbers) {
            *value = f32::from_le_bytes(*number);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::Cell;
    use std::io::Cursor;

    use super::*;

    /// A file with this header and as many zeros as `size` bytes need, of which none is held; counts what is read.
    struct ZeroFile<'a> {
        header: Cursor<Vec<u8>>,
        read: &'a Cell<usize>,
    }

    impl Read for ZeroFile<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = match self.header.read(buffer)? {
                0 => {
                    buffer.fill(0);
                    buffer.len()
                }
                read => read,
            };
            self.read.set(self.read.get() + read);
            Ok(read)
        }
    }

    impl Seek for ZeroFile<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.header.seek(to)
        }
    }

    /// Returns the result of reading a file with this header, whose tensors have `size` bytes, and the bytes that were
    /// read of it.
    fn found(header: &str, size: u64) -> (Result<Params, String>, usize) {
        let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
        let (all, read) = (bytes.len() as u64 + size, Cell::new(0));
        let source = ZeroFile {
            header: Cursor::new(bytes),
            read: &read,
        };
        let model = TensorFile::of(source, all).and_then(TensorFile::model);
        (model, read.get())
    }

    #[test]
    fn tensors_are_read_to_their_place_in_the_order_of_names() {
        let values: Vec<f32> = (0..40_000).map(|at| at as f32 / 8.0).collect();
        let header = r#"{"z":{"dtype":"F32","shape":[39998],"data_offsets":[0,159992]},
            "a":{"dtype":"F32","shape":[1,2],"data_offsets":[159992,160000]},"__metadata__":{"k":"v"}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let size = bytes.len() as u64;
        let file = TensorFile::of(Cursor::new(&bytes), size).unwrap();
        assert_eq!((file.size(), &*file.metadata()["k"]), (160_000, "v"));
        assert_eq!(
            file.shapes(),
            [("a".into(), vec![1, 2]), ("z".into(), vec![39_998])]
        );
        let model = file.model().unwrap();
        assert_eq!(model.tensor("a").unwrap(), &values[39_998..]);
        assert_eq!(model.tensor("z").unwrap(), &values[..39_998]);
        // Shorter than it was when it was opened.
        bytes.truncate(100_000);
        let cut = TensorFile::of(Cursor::new(&bytes), size).unwrap();
        assert!(cut.model().is_err());
    }

    #[test]
    fn nothing_is_read_of_tensors_that_cannot_be_held() {
        let one = |dtype: &str, many: u64, end: u64| {
            format!(
                "{{\"w\":{{\"dtype\":\"{dtype}\",\"shape\":[{many}],\"data_offsets\":[0,{end}]}}}}"
            )
        };
        let huge = 1_u64 << 56;
        for (header, size, why) in [
            (
                one("F32", huge, 4 * huge),
                4 * huge,
                "the memory of this machine",
            ),
            (one("F32", huge, 4 * huge), 400, "another size"),
            (one("F32", 100, 400), 4 * huge, "another size"),
            (one("F32", 100, 4 * huge), 4 * huge, "no safetensors file"),
            (one("F16", 200, 400), 400, "type F16, expected F32"),
            ("{\"w\":".into(), 400, "no safetensors file"),
        ] {
            let (model, read) = found(&header, size);
            let said = model.unwrap_err();
            assert!(said.contains(why), "{said}");
            assert_eq!(read, 8 + header.len());
        }
        let (model, _) = found(&one("F32", 100, 400), 400);
        assert_eq!(model.unwrap().values(), [0.0; 100]);
        // A header as long as nothing has.
        for length in [u64::MAX, HEADER + 1, 100] {
            let source = Cursor::new(length.to_le_bytes());
            let said = TensorFile::of(source, 8).err().unwrap();
            assert!(said.contains("its header does not fit into it"), "{said}");
        }
    }
}
