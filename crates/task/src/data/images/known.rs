//! Public data sets of pictures by name, read from the data folder.

use std::path::Path;

use super::config::ImagesFrom;
use super::formats::npz::Npz;
use super::formats::refused;
use super::pool::{Labelled, PicturePool};
use super::read::{arrays, cifar_file, given_domains, idx_pair, jpegs};
use crate::data::DataError;
use crate::random::{shuffle, stream};

/// The domains of Office-Caltech, and their files.
const OFFICE: [(&str, &str); 4] = [
    ("amazon", "amazon.npz"),
    ("caltech", "caltech10.npz"),
    ("dslr", "dslr.npz"),
    ("webcam", "webcam.npz"),
];
/// The classes of Office-Caltech in the order of their numbers (Gong et al. 2012).
const OBJECTS: [&str; 10] = [
    "backpack",
    "bike",
    "calculator",
    "headphones",
    "keyboard",
    "laptop",
    "monitor",
    "mouse",
    "mug",
    "projector",
];
/// The classes of Fashion-MNIST in the order of their numbers (Xiao et al. 2017).
const CLOTHES: [&str; 10] = [
    "T-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
];

/// Defaults of a data set, where the configuration gives no value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Defaults {
    /// Silos of each domain.
    pub(super) silos: usize,
    /// Most rows of a silo to train on.
    pub(super) rows: Option<usize>,
    /// Height and width.
    pub(super) size: Option<usize>,
}

impl ImagesFrom {
    /// Name and folder of a public data set; `None` for files of one's own.
    pub(super) fn known(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Digits => Some(("digits", "mnist, usps and mnist_m")),
            Self::FashionMnist => Some(("fashion-mnist", "fashion_mnist")),
            Self::Cifar10 => Some(("cifar10", "cifar10_jpeg or cifar-10-batches-bin")),
            Self::Pacs => Some(("pacs", "pacs")),
            Self::OfficeCaltech => Some(("office-caltech", "office_caltech10_surf")),
            Self::Files(_) => None,
        }
    }

    pub(super) fn defaults(&self) -> Defaults {
        match self {
            // HCCT's digits: two clients for every data set, with 185 rows on average.
            Self::Digits => Defaults {
                silos: 2,
                rows: Some(185),
                size: Some(28),
            },
            // TFL: five clients for every domain.
            Self::Pacs => Defaults {
                silos: 5,
                ..Defaults::default()
            },
            _ => Defaults {
                silos: 1,
                ..Defaults::default()
            },
        }
    }

    /// The rows of a public data set under `folder`.
    ///
    /// # Errors
    /// [`DataError`]: a file that is absent or damaged.
    pub(super) fn read_known(&self, folder: &Path) -> Result<PicturePool, DataError> {
        let pool = match self {
            Self::Digits => digits(folder),
            Self::FashionMnist => fashion(&folder.join("fashion_mnist")),
            Self::Cifar10 => cifar10(folder),
            Self::Pacs => pacs(&folder.join("pacs").join("pacs_32x32.npz")),
            Self::OfficeCaltech => office(&folder.join("office_caltech10_surf")),
            Self::Files(files) => super::read::files(files),
        };
        pool.map_err(|error| self.hinted(error))
    }

    /// Says of a file that cannot be read where it can be had.
    fn hinted(&self, error: DataError) -> DataError {
        match (error, self.known()) {
            (DataError::File { path, reason, hint }, Some((name, folder))) => DataError::File {
                path,
                reason,
                hint: format!(
                    "{hint}. The {name} images are read from the data folder, there {folder}: \
                     `rota data list` says where the files can be had, and `rota data verify` \
                     whether they are right"
                ),
            },
            (other, _) => other,
        }
    }
}

fn digits(folder: &Path) -> Result<PicturePool, DataError> {
    let mut pool = PicturePool::default();
    let mnist = folder.join("mnist");
    if is_published(&mnist) {
        published(&mnist, Some("MNIST"), &mut pool)?;
    } else {
        pool.add(reordered(&mnist, "train")?, Some("MNIST"), false);
        let test = idx_pair(
            &mnist.join("t10k-images-idx3-ubyte.gz"),
            &mnist.join("t10k-labels-idx1-ubyte.gz"),
        )?;
        pool.add(test, Some("MNIST"), true);
    }
    let usps = Npz::open(&folder.join("usps").join("usps.npz"))?;
    pool.add(arrays(&usps, "x_train", "y_train")?, Some("USPS"), false);
    pool.add(arrays(&usps, "x_test", "y_test")?, Some("USPS"), true);
    let mnist_m = Npz::open(&folder.join("mnist_m").join("mnist_m.npz"))?;
    let set = arrays(&mnist_m, "x", "y")?;
    let mut order: Vec<u32> = (0..set.labels.len() as u32).collect();
    // Always the same split, so that results with different seeds are about the same test rows.
    shuffle(&mut stream(0, "test rows of MNIST-M"), &mut order);
    let test = order.split_off(order.len() - order.len() / 3);
    let (trains, tests) = (order.len(), test.len());
    pool.add_parts(set, Some("MNIST-M"), &order, &test);
    pool.notes.push(format!(
        "digits: MNIST and USPS have the test rows of their authors; of MNIST-M there are {} pictures \
         without a split, of which a fixed draw gives {trains} for training and {tests} for testing",
        trains + tests
    ));
    Ok(pool)
}

/// The four files of a set in the form of MNIST, as its authors publish them.
fn published(folder: &Path, domain: Option<&str>, pool: &mut PicturePool) -> Result<(), DataError> {
    for (part, test) in [("train", false), ("t10k", true)] {
        let images = folder.join(format!("{part}-images-idx3-ubyte.gz"));
        let labels = folder.join(format!("{part}-labels-idx1-ubyte.gz"));
        pool.add(idx_pair(&images, &labels)?, domain, test);
    }
    Ok(())
}

/// A pair of files in another order than the published one.
fn reordered(folder: &Path, part: &str) -> Result<Labelled, DataError> {
    idx_pair(
        &folder.join(format!("{part}-images-reordered-idx3-ubyte.gz")),
        &folder.join(format!("{part}-labels-reordered-idx1-ubyte.gz")),
    )
}

/// Returns whether a folder has the published training pictures of a set in the form of MNIST.
fn is_published(folder: &Path) -> bool {
    folder.join("train-images-idx3-ubyte.gz").exists()
}

fn fashion(folder: &Path) -> Result<PicturePool, DataError> {
    let mut pool = PicturePool::default();
    if is_published(folder) {
        published(folder, None, &mut pool)?;
    } else {
        for (part, test) in [("train", false), ("mixed", false), ("test", true)] {
            pool.add(reordered(folder, part)?, None, test);
        }
        let tests = pool.rows.iter().filter(|row| row.test).count();
        pool.notes.push(format!(
            "fashion-mnist: the 70,000 pictures in another order and with another split than \
             Zalando's: {} for training and {tests} for testing",
            pool.rows.len() - tests
        ));
    }
    rename(&mut pool, folder, CLOTHES)?;
    Ok(pool)
}

fn cifar10(data: &Path) -> Result<PicturePool, DataError> {
    let mut pool = PicturePool::default();
    let original = data.join("cifar-10-batches-bin");
    if original.is_dir() {
        for batch in 1..=5 {
            let set = cifar_file(&original.join(format!("data_batch_{batch}.bin")))?;
            pool.add(set, None, false);
        }
        pool.add(cifar_file(&original.join("test_batch.bin"))?, None, true);
        return Ok(pool);
    }
    let folder = data.join("cifar10_jpeg");
    for (file, test) in [("train.npz", false), ("test.npz", true)] {
        pool.add(jpegs(&Npz::open(&folder.join(file))?)?, None, test);
    }
    pool.notes.push(
        "cifar10: the pictures are JPEG re-encodings of CIFAR-10, which lose a little: results are not \
         those of the original pixels"
            .into(),
    );
    Ok(pool)
}

fn pacs(path: &Path) -> Result<PicturePool, DataError> {
    let archive = Npz::open(path)?;
    let mut set = arrays(&archive, "x", "y")?;
    given_domains(&archive, "domain", &mut set)?;
    for name in &mut set.domains {
        // Names of silos have to fit into tables.
        if name == "art_painting" {
            *name = "art".into();
        }
    }
    let mut pool = PicturePool::default();
    pool.add(set, None, false);
    pool.notes
        .push("pacs: reduced to 32×32 pixels; the papers' pictures have 224×224".into());
    Ok(pool)
}

fn office(folder: &Path) -> Result<PicturePool, DataError> {
    let mut pool = PicturePool::default();
    for (domain, file) in OFFICE {
        let archive = Npz::open(&folder.join(file))?;
        let set = arrays(&archive, "x", "y")?;
        pool.add(set, Some(domain), false);
    }
    rename(&mut pool, folder, OBJECTS)?;
    pool.notes
        .push("office-caltech: histograms of SURF features, each divided by its sum".into());
    Ok(pool)
}

/// Gives the classes, which are numbers so far, these names.
///
/// # Errors
/// [`DataError::File`]: other classes than 0 to 9.
fn rename(pool: &mut PicturePool, folder: &Path, names: [&str; 10]) -> Result<(), DataError> {
    let numbers: Vec<String> = (0..names.len()).map(|number| number.to_string()).collect();
    if pool.classes != numbers {
        return Err(refused(
            folder,
            format!(
                "expected the classes 0 to 9, found {}",
                pool.classes.join(", ")
            ),
        ));
    }
    pool.classes = names.map(str::to_owned).to_vec();
    Ok(())
}
