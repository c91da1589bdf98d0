//! The configuration of image data: where the rows are, how they are partitioned, how they are reduced.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::partition::PartitionConfig;

/// Pictures with classes, or other rows in files of arrays, and how they become silos. In TOML:
/// `[task.table.data.images]` with `from = "digits"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImagesConfig {
    /// A public data set by name (`"digits"`, `"fashion-mnist"`, `"cifar10"`, `"pacs"`,
    /// `"office-caltech"`), or one's own files: `{ files = [{ path = "train.npz" }] }`.
    pub from: ImagesFrom,
    /// How the rows are partitioned into silos. By default each domain is one silo (`"digits"`: two,
    /// `"pacs"`: five) where the data have domains, each user where they have users, and otherwise
    /// `"iid"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionConfig>,
    /// What becomes of the rows that the source itself gives for testing: `"own"` (the default),
    /// `"unused"` or `"pooled"`.
    #[serde(default)]
    pub test_part: TestPart,
    /// Most rows of a silo to train on, chosen at random; where the source gives no test rows, most
    /// rows of a silo altogether, which `split` then divides. All by default (`"digits"`: 185).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-unit" = "rows"))]
    pub rows: Option<usize>,
    /// Fraction of a silo's rows to train on that are used, chosen at random, so that silos keep their
    /// proportions; where the source gives no test rows, of all its rows. 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub fraction: Option<f64>,
    /// Most rows of a silo to test on, chosen at random; all that it has by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-unit" = "rows"))]
    pub test_rows: Option<usize>,
    /// Height and width to which pictures are brought; by default that of the files (`"digits"`: 28),
    /// which must then be equal for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "pixels"))]
    pub size: Option<usize>,
    /// True if colours become grey. By default grey pictures stay grey, and where some have colours all
    /// get three channels.
    #[serde(default)]
    pub grey: bool,
    /// Seed of the partition and of the choice of rows; that of the run by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// Where images come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImagesFrom {
    /// Handwritten digits of three domains, MNIST, USPS and MNIST-M, at 28×28 pixels in three channels,
    /// as in HCCT's experiments (which have five domains).
    Digits,
    /// Fashion-MNIST: clothes in ten classes, 28×28 pixels, grey.
    FashionMnist,
    /// CIFAR-10 as JPEG pictures: ten classes, 32×32 pixels, in colours. The compression loses a little.
    Cifar10,
    /// PACS reduced to 32×32 pixels: seven classes as art paintings, cartoons, photos and sketches.
    Pacs,
    /// Office-Caltech: ten classes of objects in four domains, as histograms of 800 SURF features.
    OfficeCaltech,
    /// Files of one's own.
    Files(Vec<ImageFile>),
}

/// A file of pictures, or a folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImageFile {
    /// An archive of arrays (`.npz`), a binary file of CIFAR-10 or CIFAR-100 (`.bin`), a file of LEAF
    /// (`.json`) or a folder of these, a folder of PNG and JPEG pictures (`class/picture` or
    /// `domain/class/picture`), or else an IDX file (as of MNIST, also `.gz`). Relative to the TOML
    /// file.
    pub path: PathBuf,
    /// npz: the array of pictures, by default `x`. LEAF with names of pictures: their folder, by default
    /// that of the JSON file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<String>,
    /// npz: the array of labels, by default `y`, or of masks of the same height and width as the
    /// pictures. IDX: the file of labels, which is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// npz: the array with the number of every row's domain, whose names are in `domain_names` if there
    /// is such an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<String>,
    /// Name of the domain that all its rows belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// True if its rows are for testing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
}

/// What becomes of the rows that the source gives for testing.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TestPart {
    /// They are partitioned as the others, and silos test on theirs. `split` is not used.
    #[default]
    Own,
    /// They are left out, and `split` divides the rows of every silo.
    Unused,
    /// They are rows as all others, and `split` divides the rows of every silo.
    Pooled,
}

impl ImagesConfig {
    /// Everything by default.
    pub fn new(from: ImagesFrom) -> Self {
        Self {
            from,
            partition: None,
            test_part: TestPart::Own,
            rows: None,
            fraction: None,
            test_rows: None,
            size: None,
            grey: false,
            seed: None,
        }
    }

    /// Makes the paths of its files relative to `folder`.
    pub fn resolve(&mut self, folder: &Path) {
        if let ImagesFrom::Files(files) = &mut self.from {
            for file in files {
                file.path = folder.join(&file.path);
            }
        }
    }

    /// Returns whether its values need no scaling by means and deviations: pixels do not, histograms do.
    pub fn is_scaled(&self) -> bool {
        self.from != ImagesFrom::OfficeCaltech
    }
}
