//! Reads files of one's own, by what they are.

use std::path::{Path, PathBuf};

use super::config::ImageFile;
use super::formats::npy::{Array, NpyValues};
use super::formats::{cifar, folder, idx, leaf, npz::Npz, numbered, refused, same_count};
use super::pictures::{Grid, PictureStorage, Pictures};
use super::pool::{Labelled, PicturePool};
use crate::data::DataError;

/// The rows of all these files.
///
/// # Errors
/// [`DataError`]: no files, a file that cannot be read, or a key that does not go with its format.
pub(super) fn files(files: &[ImageFile]) -> Result<PicturePool, DataError> {
    if files.is_empty() {
        return Err(DataError::Config(
            "`files` of images is empty: name at least one file or folder".into(),
        ));
    }
    let mut pool = PicturePool::default();
    for file in files {
        let set = file.read()?;
        pool.add(set, file.domain.as_deref(), file.test);
    }
    Ok(pool)
}

/// The formats, as far as the keys of a file differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PictureFormat {
    Npz,
    Cifar,
    Leaf,
    Folder,
    Idx,
}

impl PictureFormat {
    fn of(path: &Path) -> Self {
        let end = path
            .extension()
            .map(|end| end.to_string_lossy().to_ascii_lowercase());
        match end.as_deref() {
            _ if path.is_dir() && leaf::is_leaf(path) => Self::Leaf,
            _ if path.is_dir() => Self::Folder,
            Some("npz") => Self::Npz,
            Some("bin") => Self::Cifar,
            Some("json") => Self::Leaf,
            _ => Self::Idx,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Npz => "an archive of arrays (.npz)",
            Self::Cifar => "a binary file of CIFAR (.bin)",
            Self::Leaf => "a file of LEAF (.json)",
            Self::Folder => "a folder of pictures",
            Self::Idx => "an IDX file",
        }
    }

    /// Returns whether `images`, `labels` and `domains` say something about it.
    fn takes(self) -> [bool; 3] {
        match self {
            Self::Npz => [true, true, true],
            Self::Leaf => [true, false, false],
            Self::Idx => [false, true, false],
            Self::Cifar | Self::Folder => [false; 3],
        }
    }
}

impl ImageFile {
    /// Rows of the file.
    fn read(&self) -> Result<Labelled, DataError> {
        let format = PictureFormat::of(&self.path);
        let given = [
            ("images", &self.images),
            ("labels", &self.labels),
            ("domains", &self.domains),
        ];
        for ((key, value), takes) in given.into_iter().zip(format.takes()) {
            if value.is_some() && !takes {
                return Err(DataError::Config(format!(
                    "{}: `{key}` does not go with {}: leave it out",
                    self.path.display(),
                    format.name()
                )));
            }
        }
        match format {
            PictureFormat::Npz => {
                let archive = Npz::open(&self.path)?;
                let images = self.images.as_deref().unwrap_or("x");
                let labels = self.labels.as_deref().unwrap_or("y");
                let mut set = arrays(&archive, images, labels)?;
                if let Some(domains) = &self.domains {
                    given_domains(&archive, domains, &mut set)?;
                }
                Ok(set)
            }
            PictureFormat::Cifar => cifar_file(&self.path),
            PictureFormat::Leaf => leaf_files(&self.path, self.images.as_deref()),
            PictureFormat::Folder => class_folders(&self.path),
            PictureFormat::Idx => {
                let labels = self.labels.as_ref().ok_or_else(|| {
                    DataError::Config(format!(
                        "{}: an IDX file of pictures needs `labels`, the file of their labels",
                        self.path.display()
                    ))
                })?;
                let beside = self.path.parent().unwrap_or(Path::new(""));
                idx_pair(&self.path, &beside.join(labels))
            }
        }
    }
}

/// Pictures and labels in two arrays of an archive.
pub(super) fn arrays(archive: &Npz, images: &str, labels: &str) -> Result<Labelled, DataError> {
    let path = archive.path();
    let wrong = |name: &str, reason: String| refused(path, format!("array {name:?}: {reason}"));
    let found = archive.array(labels)?;
    if found.shape.len() > 1 {
        return with_masks(archive, images, (labels, found));
    }
    let (classes, numbers) = match &found.values {
        NpyValues::Texts(names) => {
            let classes = super::pool::ordered(names.iter().map(String::as_str));
            let place = |name| classes.iter().position(|class| class == name).unwrap_or(0) as u32;
            let numbers = names.iter().map(place).collect();
            (classes, numbers)
        }
        _ => {
            let numbers = found.counts().map_err(|reason| wrong(labels, reason))?;
            (named(archive, "class_names", &numbers)?, numbers)
        }
    };
    let found = archive.array(images)?;
    let pictures = Pictures::of_array(path.to_owned(), &found.shape, found.values)?;
    same_count(path, pictures.len(), numbers.len())?;
    Ok(Labelled::new(pictures, classes, numbers))
}

/// Pictures with masks of the same height and width, in two arrays of an archive.
fn with_masks(
    archive: &Npz,
    images: &str,
    (name, masks): (&str, Array),
) -> Result<Labelled, DataError> {
    let path = archive.path();
    let found = archive.array(images)?;
    let pictures = Pictures::of_array(path.to_owned(), &found.shape, found.values)?;
    let shape = masks.shape.clone();
    let masks = Pictures::of_array(path.to_owned(), &shape, masks.values)?;
    let sides = |set: &Pictures| -> Result<[usize; 3], DataError> { Ok(set.picture(0)?.shape) };
    let ([_, height, width], mask) = (sides(&pictures)?, sides(&masks)?);
    if mask != [1, height, width] || !pictures.are_pictures() {
        return Err(refused(
            path,
            format!(
                "array {name:?}: expected labels along one axis, or masks of the pictures' {height}×{width} \
                 pixels, found the shape {shape:?}"
            ),
        ));
    }
    same_count(path, pictures.len(), masks.len())?;
    let labels = vec![0; masks.len()];
    let mut set = Labelled::new(pictures, vec!["mask".into()], labels);
    set.masks = Some(masks);
    Ok(set)
}

/// Names for numbers: those in an array of the archive if it is there, and otherwise the numbers
/// themselves.
pub(super) fn named(archive: &Npz, array: &str, numbers: &[u32]) -> Result<Vec<String>, DataError> {
    let counted = numbered(archive.path(), numbers)?;
    match archive.find(array)?.map(|found| found.values) {
        Some(NpyValues::Texts(names)) if names.len() >= counted.len() => Ok(names),
        Some(NpyValues::Texts(names)) => Err(refused(
            archive.path(),
            format!(
                "array {array:?}: expected at least {} names, found {}",
                counted.len(),
                names.len()
            ),
        )),
        _ => Ok(counted),
    }
}

/// The domains of the rows, in another array of the archive.
pub(super) fn given_domains(
    archive: &Npz,
    array: &str,
    set: &mut Labelled,
) -> Result<(), DataError> {
    let found = archive.array(array)?.counts();
    let domain =
        found.map_err(|reason| refused(archive.path(), format!("array {array:?}: {reason}")))?;
    same_count(archive.path(), set.labels.len(), domain.len())?;
    set.domains = named(archive, "domain_names", &domain)?;
    set.domain = domain;
    Ok(())
}

/// Pictures and labels in two IDX files.
pub(super) fn idx_pair(images: &Path, labels: &Path) -> Result<Labelled, DataError> {
    let (shape, values) = idx::read(labels)?;
    if shape.len() != 1 {
        return Err(refused(
            labels,
            format!("expected labels along one axis, found the shape {shape:?}"),
        ));
    }
    let numbers: Vec<u32> = values.into_iter().map(u32::from).collect();
    let (shape, values) = idx::read(images)?;
    let pictures = Pictures::of_array(images.to_owned(), &shape, NpyValues::Bytes(values))?;
    same_count(images, pictures.len(), numbers.len())?;
    let classes = numbered(labels, &numbers)?;
    Ok(Labelled::new(pictures, classes, numbers))
}

/// A binary file of CIFAR.
pub(super) fn cifar_file(path: &Path) -> Result<Labelled, DataError> {
    let found = cifar::read(path)?;
    let shape = [found.labels.len(), 3, 32, 32];
    let pictures = Pictures::of_array(path.to_owned(), &shape, NpyValues::Bytes(found.pixels))?;
    Ok(Labelled::new(pictures, found.classes, found.labels))
}

fn class_folders(path: &Path) -> Result<Labelled, DataError> {
    let found = folder::list(path)?;
    let pictures = Pictures {
        path: path.to_owned(),
        kept: PictureStorage::Files(found.files),
    };
    let mut set = Labelled::new(pictures, found.classes, found.labels);
    (set.domains, set.domain) = (found.domains, found.domain);
    Ok(set)
}

fn leaf_files(path: &Path, images: Option<&str>) -> Result<Labelled, DataError> {
    let found = leaf::read(path)?;
    let own: PathBuf = if path.is_dir() {
        path.to_owned()
    } else {
        path.parent().unwrap_or(Path::new("")).to_owned()
    };
    let kept = match found.rows {
        leaf::LeafRows::Numbers { width, values } => {
            PictureStorage::Floats(Grid::square(width), values)
        }
        leaf::LeafRows::Files(names) => {
            let folder = own.join(images.unwrap_or_default());
            PictureStorage::Files(names.iter().map(|name| folder.join(name)).collect())
        }
    };
    let pictures = Pictures {
        path: path.to_owned(),
        kept,
    };
    same_count(path, pictures.len(), found.labels.len())?;
    let mut set = Labelled::new(pictures, found.classes, found.labels);
    (set.users, set.user) = (found.users, found.user);
    Ok(set)
}

/// CIFAR-10 as JPEG files that share their first bytes (`header`), one after the other in `blob`, each
/// of a `length`.
pub(super) fn jpegs(archive: &Npz) -> Result<Labelled, DataError> {
    let path = archive.path();
    let bytes = |name: &str| match archive.array(name)?.values {
        NpyValues::Bytes(values) => Ok(values),
        _ => Err(refused(
            path,
            format!("array {name:?}: expected bytes, found other values"),
        )),
    };
    let counts = |name: &str| {
        let found = archive.array(name)?.counts();
        found.map_err(|reason| refused(path, format!("array {name:?}: {reason}")))
    };
    let (header, blob, labels) = (bytes("header")?, bytes("blob")?, counts("y")?);
    let mut ends = Vec::with_capacity(labels.len());
    let mut end = 0usize;
    for length in counts("length")? {
        end = end.saturating_add(length as usize);
        ends.push(end);
    }
    if end != blob.len() {
        return Err(refused(
            path,
            format!(
                "expected a blob of {end} bytes, as the lengths of its pictures add up to, found {}",
                blob.len()
            ),
        ));
    }
    let classes = named(archive, "class_names", &labels)?;
    let pictures = Pictures {
        path: path.to_owned(),
        kept: PictureStorage::Jpegs { header, blob, ends },
    };
    same_count(path, pictures.len(), labels.len())?;
    Ok(Labelled::new(pictures, classes, labels))
}
