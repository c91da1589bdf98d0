//! Whole data sets from small files that the tests make, and the public ones where they are.

mod known;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use methods::Split;
use png::ColorType;
use serde::Deserialize;

use super::formats::idx::tests::idx;
use super::formats::npy::tests::npy;
use super::formats::npz::tests::npz;
use super::formats::picture::tests::{flat_jpeg, png_file};
use super::*;
use crate::data::{DataSet, Table, Target};

/// A folder that is removed in the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rota-images-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the folders above it, and returns where it is.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn config(text: &str) -> ImagesConfig {
    #[derive(Deserialize)]
    struct Document {
        images: ImagesConfig,
    }
    toml::from_str::<Document>(text).unwrap().images
}

/// The silos, and the shape of pictures.
struct ReadPictures {
    data: DataSet,
    picture: Option<[usize; 3]>,
}

impl std::ops::Deref for ReadPictures {
    type Target = DataSet;
    fn deref(&self) -> &DataSet {
        &self.data
    }
}

fn read(text: &str, folder: &Path) -> Result<ReadPictures, String> {
    let mut config = config(text);
    config.resolve(folder);
    let found = config.read_shaped(None, 4, Some(folder), 1);
    let (data, picture) = found.map_err(|error| error.to_string())?;
    Ok(ReadPictures { data, picture })
}

fn classes(data: &DataSet) -> Vec<&str> {
    match &data.target {
        Target::Classes(names) => names.iter().map(String::as_str).collect(),
        other => panic!("{other:?}"),
    }
}

/// Number of rows for training and for testing.
fn sizes(table: &Table) -> (usize, usize) {
    let tests = table
        .parts
        .iter()
        .filter(|&&part| part == Split::Test)
        .count();
    (table.len() - tests, tests)
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn arrays_with_domains_become_silos_of_scaled_pixels() {
    let scratch = Scratch::new();
    let count = 12usize;
    // Row i has the pixels i and 255 in two rows of one column.
    let pixels: Vec<u8> = (0..count as u8).flat_map(|row| [row, 255]).collect();
    let labels: Vec<u8> = (0..count as u8).map(|row| row % 2).collect();
    let domain: Vec<u8> = (0..count as u8).map(|row| row / 6).collect();
    let words: Vec<u8> = ["no\0", "yes"]
        .iter()
        .flat_map(|word| {
            word.chars()
                .flat_map(|letter| u32::from(letter).to_le_bytes())
        })
        .collect();
    let arrays = [
        ("x", npy("|u1", false, &[count, 2, 1, 1], &pixels)),
        ("y", npy("|u1", false, &[count], &labels)),
        ("domain", npy("|u1", false, &[count], &domain)),
        ("class_names", npy("<U3", false, &[2], &words)),
    ];
    scratch.write("a.npz", &npz(&arrays, true));
    let text = "[images]\nfrom = { files = [{ path = 'a.npz', domains = 'domain' }] }\n";
    let data = read(text, scratch.path()).unwrap();
    assert_eq!(classes(&data), ["no", "yes"]);
    assert_eq!(data.picture, Some([1, 2, 1]));
    let silos: Vec<_> = data
        .silos
        .iter()
        .map(|(name, table)| (name.as_str(), table.len()))
        .collect();
    assert_eq!(silos, [("0", 6), ("1", 6)]);
    let (_, second) = &data.silos[1];
    assert_eq!(second.columns, ["y1 x1", "y2 x1"]);
    assert_eq!(second.row(0), [f64::from(6u8) / 127.5 - 1.0, 1.0]);
    assert_eq!(second.target, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(second.domains, [1; 6]);
    assert!(second.parts.is_empty(), "nothing is given for testing");
    let error = read(&text.replace("'domain'", "'domian'"), scratch.path())
        .err()
        .unwrap();
    assert!(error.ends_with("did you mean \"domain\"?"), "{error}");
}

#[test]
fn a_test_file_gives_every_silo_its_test_rows() {
    let scratch = Scratch::new();
    scratch.write("train.gz", &gz(&idx(&[40, 2, 2], &[9; 160])));
    scratch.write(
        "train-labels.gz",
        &gz(&idx(
            &[40],
            &(0..40).map(|row| row % 4).collect::<Vec<u8>>(),
        )),
    );
    scratch.write("test", &idx(&[8, 2, 2], &[7; 32]));
    scratch.write("test-labels", &idx(&[8], &[0, 1, 2, 3, 0, 1, 2, 3]));
    let text = "[images]\nfrom = { files = [{ path = 'train.gz', labels = 'train-labels.gz' }, \
                { path = 'test', labels = 'test-labels', test = true }] }\n";
    let all = |text: &str| {
        let data = read(text, scratch.path()).unwrap();
        data.silos
            .iter()
            .map(|(_, table)| sizes(table))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(text), [(10, 2); 4]);
    assert_eq!(
        all(&format!("{text}rows = 3\ntest-rows = 1\n")),
        [(3, 1); 4]
    );
    assert_eq!(all(&format!("{text}fraction = 0.3\n")), [(3, 2); 4]);
    assert_eq!(all(&format!("{text}test-part = 'unused'\n")), [(10, 0); 4]);
    assert_eq!(all(&format!("{text}test-part = 'pooled'\n")), [(12, 0); 4]);
    let data = read(text, scratch.path()).unwrap();
    let (_, table) = &data.silos[0];
    for (row, part) in table.parts.iter().enumerate() {
        let pixel = if *part == Split::Test { 7.0 } else { 9.0 };
        assert_eq!(table.row(row)[0], pixel / 127.5 - 1.0);
    }
    let error = read(
        "[images]\nfrom = { files = [{ path = 'test' }] }",
        scratch.path(),
    )
    .err()
    .unwrap();
    assert!(
        error.ends_with("needs `labels`, the file of their labels"),
        "{error}"
    );
}

#[test]
fn folders_of_pictures_of_any_size_and_colour_get_one_shape() {
    let scratch = Scratch::new();
    for (domain, side, level) in [("Art", 2, 40), ("Photo", 6, 200)] {
        for class in ["mug", "pen"] {
            for number in 0..2 {
                let pixels = vec![level; 3 * side * side];
                let file = png_file(ColorType::Rgb, side as u32, side as u32, &pixels);
                scratch.write(&format!("o/{domain}/{class}/{number}.png"), &file);
            }
        }
    }
    scratch.write("o/Photo/pen/grey.jpg", &flat_jpeg(true));
    let text = "[images]\nfrom = { files = [{ path = 'o' }] }\nsize = 4\n";
    let data = read(text, scratch.path()).unwrap();
    assert_eq!(classes(&data), ["mug", "pen"]);
    assert_eq!(data.picture, Some([3, 4, 4]));
    let silos: Vec<_> = data
        .silos
        .iter()
        .map(|(name, table)| (name.as_str(), table.len()))
        .collect();
    assert_eq!(silos, [("Art", 4), ("Photo", 5)]);
    let (_, photo) = &data.silos[1];
    assert_eq!(photo.columns[17], "green y1 x2");
    let flat = |row: &[f64], level: f64| {
        row.iter()
            .all(|value| (value - (level / 127.5 - 1.0)).abs() < 1e-5)
    };
    assert!(flat(photo.row(0), 200.0));
    assert!(
        (0..5).any(|row| flat(photo.row(row), 184.0)),
        "the grey JPEG in three channels"
    );
    let grey = read(&format!("{text}grey = true\n"), scratch.path()).unwrap();
    assert_eq!(grey.picture, Some([1, 4, 4]));
    let error = read(
        "[images]\nfrom = { files = [{ path = 'o' }] }\n",
        scratch.path(),
    )
    .err()
    .unwrap();
    assert!(
        error.contains("expected pictures of one size (3×2×2, as the first), found 3×6×6"),
        "{error}"
    );
    scratch.write("o/Art/mug/0.png", b"damaged");
    let error = read(text, scratch.path()).err().unwrap();
    assert!(
        error.contains("mug/0.png: expected a PNG or JPEG picture"),
        "{error}"
    );
}

#[test]
fn slices_with_masks_are_silos_by_institution() {
    // As FeTS in slices: four channels become one here; the domain is the institution.
    let scratch = Scratch::new();
    let mut masks = vec![0; 6 * 16];
    // In picture 4 the left half.
    for row in 0..4 {
        masks[4 * 16 + 4 * row] = 2;
        masks[4 * 16 + 4 * row + 1] = 1;
    }
    let arrays = [
        ("x", npy("|u1", false, &[6, 4, 4], &[100; 96])),
        ("y", npy("|u1", false, &[6, 4, 4], &masks)),
        ("institution", npy("|u1", false, &[6], &[0, 0, 0, 1, 1, 1])),
    ];
    scratch.write("fets.npz", &npz(&arrays, true));
    let text = "[images]\nfrom = { files = [{ path = 'fets.npz', domains = 'institution' }] }\n";
    let data = read(text, scratch.path()).unwrap();
    assert_eq!(data.target, Target::Mask { pixels: 16 });
    let (_, second) = &data.silos[1];
    assert_eq!(second.targets(0), [0.0; 16]);
    assert_eq!(second.targets(1), [1.0, 1.0, 0.0, 0.0].repeat(4));
    let smaller = read(&format!("{text}size = 2\n"), scratch.path()).unwrap();
    assert_eq!(smaller.target, Target::Mask { pixels: 4 });
    assert_eq!(smaller.silos[1].1.targets(1), [1.0, 0.0, 1.0, 0.0]);
    let wrong = [
        ("x", arrays[0].1.clone()),
        ("y", npy("|u1", false, &[6, 2, 2], &[0; 24])),
    ];
    scratch.write("fets.npz", &npz(&wrong, true));
    let error = read(text, scratch.path()).err().unwrap();
    assert!(
        error.contains("masks of the pictures' 4×4 pixels, found the shape [6, 2, 2]"),
        "{error}"
    );
}

#[test]
fn users_of_leaf_are_silos_and_celeba_names_its_pictures() {
    let scratch = Scratch::new();
    let rows = |value: f64, count: usize| vec![vec![value; 4]; count];
    let femnist = serde_json::json!({
        "users": ["a", "b", "c"],
        "num_samples": [6, 5, 2],
        "user_data": {
            "a": { "x": rows(0.5, 6), "y": [0, 1, 2, 10, 1, 0] },
            "b": { "x": rows(1.0, 5), "y": [0, 1, 2, 10, 1] },
            "c": { "x": rows(0.0, 2), "y": [0, 1] },
        },
    });
    scratch.write("femnist.json", femnist.to_string().as_bytes());
    let data = read(
        "[images]\nfrom = { files = [{ path = 'femnist.json' }] }",
        scratch.path(),
    )
    .unwrap();
    let silos: Vec<_> = data
        .silos
        .iter()
        .map(|(name, table)| (name.as_str(), table.len()))
        .collect();
    assert_eq!(silos, [("a", 6), ("b", 5)], "c has fewer than 5 rows");
    assert_eq!(classes(&data), ["0", "1", "2", "10"]);
    assert_eq!(data.picture, Some([1, 2, 2]));
    assert_eq!(data.silos[0].1.row(0), [0.5; 4], "numbers stay as they are");
    let celeba = serde_json::json!({
        "users": ["7"],
        "user_data": { "7": { "x": ["1.png", "2.png"], "y": [1, 0] } },
    });
    scratch.write("celeba/train.json", celeba.to_string().as_bytes());
    for name in ["1.png", "2.png"] {
        scratch.write(
            &format!("celeba/img/{name}"),
            &png_file(ColorType::Rgb, 1, 1, &[255, 0, 0]),
        );
    }
    let text = "[images]\nfrom = { files = [{ path = 'celeba', images = 'img' }] }\n\
                partition = { users = { rows = 2 } }";
    let data = read(text, scratch.path()).unwrap();
    assert_eq!(data.silos[0].1.row(1), [1.0, -1.0, -1.0]);
}

#[test]
fn svhn_and_syn_beside_mnist_are_domains_of_one_size() {
    // SVHN and SYN as arrays of colour pictures, MNIST as IDX.
    let scratch = Scratch::new();
    for (name, side) in [("svhn", 4usize), ("syn", 5)] {
        let arrays = [
            (
                "images",
                npy(
                    "|u1",
                    false,
                    &[4, side, side, 3],
                    &vec![80; 12 * side * side],
                ),
            ),
            (
                "labels",
                npy(
                    "<i8",
                    false,
                    &[4],
                    &[0u8, 1, 2, 3]
                        .map(|label| i64::from(label).to_le_bytes())
                        .concat(),
                ),
            ),
        ];
        scratch.write(&format!("{name}.npz"), &npz(&arrays, false));
    }
    scratch.write("mnist", &idx(&[4, 3, 3], &[80; 36]));
    scratch.write("mnist-labels", &idx(&[4], &[3, 2, 1, 0]));
    let text = "[images]\nsize = 2\nfrom = { files = [\
        { path = 'svhn.npz', images = 'images', labels = 'labels', domain = 'SVHN' },\
        { path = 'syn.npz', images = 'images', labels = 'labels', domain = 'SYN' },\
        { path = 'mnist', labels = 'mnist-labels', domain = 'MNIST' }] }\n";
    let data = read(text, scratch.path()).unwrap();
    let silos: Vec<_> = data.silos.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(silos, ["SVHN", "SYN", "MNIST"]);
    assert_eq!(data.picture, Some([3, 2, 2]));
    let mixed = format!("{text}partition = {{ mixed = {{ alpha = 1.0 }} }}\n");
    let mixed = read(&mixed, scratch.path()).unwrap();
    assert!(
        mixed
            .silos
            .iter()
            .all(|(_, table)| table.domains.len() == table.len())
    );
}

#[test]
fn a_written_configuration_is_read_back_unchanged() {
    #[derive(Debug, Deserialize, serde::Serialize)]
    struct Document {
        images: ImagesConfig,
    }
    for text in [
        "from = 'digits'",
        "from = 'cifar10'\npartition = { dirichlet = { alpha = 0.1 } }\ntest-part = 'pooled'\nseed = 3",
        "from = 'cifar10'\npartition = { shards = {} }\nrows = 950",
        "from = 'pacs'\npartition = { mixed = { given = [[0.1, 0.2, 0.3, 0.4]] } }",
        "from = 'pacs'\npartition = { domains = { silos = 8 } }\ngrey = true\nsize = 16",
        "from = 'fashion-mnist'\npartition = { three-clients = { a = 0.1, b = 0.2 } }",
        "from = 'fashion-mnist'\npartition = 'iid'",
        "from = { files = [{ path = 'a.json' }] }\npartition = { users = {} }",
    ] {
        let document: Document = toml::from_str(&format!("[images]\n{text}")).unwrap();
        let written = toml::to_string(&document).unwrap();
        let again: Document = toml::from_str(&written).unwrap();
        assert_eq!(again.images, document.images, "{written}");
    }
    let error = toml::from_str::<Document>("[images]\nfrom = 'digits'\nrow = 3").unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
}
