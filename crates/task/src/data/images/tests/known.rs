//! Public sets of pictures: made-up files in their formats, and the sets themselves where they are.

use std::path::Path;

use super::super::formats::idx::tests::idx;
use super::super::formats::npy::tests::npy;
use super::super::formats::npz::tests::npz;
use super::super::formats::picture::tests::flat_jpeg;
use super::{Scratch, classes, config, gz, read, sizes};

/// Data folders with a few made-up pictures in the public sets' files.
fn known_sets() -> Scratch {
    let scratch = Scratch::new();
    let labels = |count: usize| (0..count).map(|row| (row % 10) as u8).collect::<Vec<u8>>();
    let pair = |folder: &str, images: &str, names: &str, count: usize| {
        let pixels = vec![3; count * 28 * 28];
        scratch.write(
            &format!("{folder}/{images}"),
            &gz(&idx(&[count as u32, 28, 28], &pixels)),
        );
        scratch.write(
            &format!("{folder}/{names}"),
            &gz(&idx(&[count as u32], &labels(count))),
        );
    };
    let reordered = |part: &str, what: &str| {
        let axes = if what == "images" { 3 } else { 1 };
        format!("{part}-{what}-reordered-idx{axes}-ubyte.gz")
    };
    pair(
        "mnist",
        &reordered("train", "images"),
        &reordered("train", "labels"),
        60,
    );
    pair(
        "mnist",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
        20,
    );
    for (part, count) in [("train", 30), ("mixed", 5), ("test", 10)] {
        pair(
            "fashion_mnist",
            &reordered(part, "images"),
            &reordered(part, "labels"),
            count,
        );
    }
    let array = |shape: &[usize]| npy("|u1", false, shape, &vec![5; shape.iter().product()]);
    let numbers = |count: usize| npy("|u1", false, &[count], &labels(count));
    let usps = [
        ("x_train", array(&[40, 16, 16])),
        ("y_train", numbers(40)),
        ("x_test", array(&[20, 16, 16])),
        ("y_test", numbers(20)),
    ];
    scratch.write("usps/usps.npz", &npz(&usps, true));
    let mnist_m = [("x", array(&[30, 32, 32, 3])), ("y", numbers(30))];
    scratch.write("mnist_m/mnist_m.npz", &npz(&mnist_m, true));
    let jpeg = flat_jpeg(true);
    let (header, rest) = jpeg.split_at(jpeg.len() - 3);
    for (file, count) in [("train", 20), ("test", 10)] {
        let lengths: Vec<u8> = (0..count).flat_map(|_| 3u16.to_le_bytes()).collect();
        let arrays = [
            ("header", npy("|u1", false, &[header.len()], header)),
            ("blob", npy("|u1", false, &[3 * count], &rest.repeat(count))),
            ("length", npy("<u2", false, &[count], &lengths)),
            ("y", numbers(count)),
        ];
        scratch.write(&format!("cifar10_jpeg/{file}.npz"), &npz(&arrays, false));
    }
    let domain: Vec<u8> = (0..40).map(|row| row / 10).collect();
    let pacs = [
        ("x", array(&[40, 32, 32, 3])),
        ("y", npy("|u1", false, &[40], &[1; 40])),
        ("domain", npy("|u1", false, &[40], &domain)),
    ];
    scratch.write("pacs/pacs_32x32.npz", &npz(&pacs, true));
    for file in ["amazon", "caltech10", "dslr", "webcam"] {
        let arrays = [
            ("x", npy("|u1", true, &[20, 800], &[4; 16_000])),
            ("y", numbers(20)),
        ];
        scratch.write(
            &format!("office_caltech10_surf/{file}.npz"),
            &npz(&arrays, true),
        );
    }
    scratch
}

#[test]
fn public_sets_are_read_by_name() {
    let scratch = known_sets();
    let found = |text: &str| {
        let data = read(&format!("[images]\n{text}"), scratch.path()).unwrap();
        let silos = data
            .silos
            .iter()
            .map(|(name, table)| (name.clone(), sizes(table)));
        (data.picture, silos.collect::<Vec<_>>(), data.notes.clone())
    };
    let silo = |name: &str, train, test| (name.to_owned(), (train, test));
    let (picture, silos, notes) = found("from = 'digits'");
    assert_eq!(picture, Some([3, 28, 28]));
    let expected = [
        silo("MNIST 1", 30, 10),
        silo("MNIST 2", 30, 10),
        silo("USPS 1", 20, 10),
        silo("USPS 2", 20, 10),
        silo("MNIST-M 1", 10, 5),
        silo("MNIST-M 2", 10, 5),
    ];
    assert_eq!(silos, expected);
    assert!(
        notes[0].contains("gives 20 for training and 10 for testing"),
        "{notes:?}"
    );
    assert_eq!(
        found("from = 'digits'\nsize = 16\ngrey = true").0,
        Some([1, 16, 16])
    );
    let (picture, silos, notes) = found("from = 'fashion-mnist'");
    assert_eq!((picture, silos.len()), (Some([1, 28, 28]), 4));
    assert!(
        notes[0].contains("35 for training and 10 for testing"),
        "{notes:?}"
    );
    let (picture, silos, notes) = found("from = 'cifar10'");
    assert_eq!((picture, &silos[0].1), (Some([1, 8, 8]), &(5, 3)));
    assert!(notes[0].contains("JPEG re-encodings"), "{notes:?}");
    let (picture, silos, _) = found("from = 'pacs'");
    assert_eq!(
        (picture, silos.len(), silos[19].1),
        (Some([3, 32, 32]), 20, (2, 0))
    );
    let (picture, silos, _) = found("from = 'office-caltech'");
    assert_eq!((picture, &silos[1]), (None, &silo("caltech", 20, 0)));
}

#[test]
fn published_files_are_read_in_place_of_repacked_ones() {
    let scratch = known_sets();
    let labels: Vec<u8> = (0..20).map(|row| row % 10).collect();
    for folder in ["mnist", "fashion_mnist"] {
        for (part, count) in [("train", 20u32), ("t10k", 10)] {
            let pixels = vec![200; 784 * count as usize];
            let images = gz(&idx(&[count, 28, 28], &pixels));
            scratch.write(&format!("{folder}/{part}-images-idx3-ubyte.gz"), &images);
            let labels = gz(&idx(&[count], &labels[..count as usize]));
            scratch.write(&format!("{folder}/{part}-labels-idx1-ubyte.gz"), &labels);
        }
    }
    for batch in [
        "data_batch_1",
        "data_batch_2",
        "data_batch_3",
        "data_batch_4",
        "data_batch_5",
        "test_batch",
    ] {
        let picture = [[7].as_slice(), &[200; 3072]].concat();
        scratch.write(
            &format!("cifar-10-batches-bin/{batch}.bin"),
            &picture.repeat(4),
        );
    }
    for (from, rows) in [
        ("digits", (10, 5)),
        ("fashion-mnist", (5, 3)),
        ("cifar10", (5, 1)),
    ] {
        let found = read(&format!("[images]\nfrom = '{from}'"), scratch.path()).unwrap();
        let (_, table) = &found.silos[0];
        assert_eq!(sizes(table), rows, "{from}");
        assert_eq!(table.row(0)[0], 200.0 / 127.5 - 1.0, "{from}");
        assert!(
            !found
                .notes
                .iter()
                .any(|note| note.contains("another order")),
            "{:?}",
            found.notes
        );
    }
}

#[test]
fn an_absent_set_states_how_to_get_it() {
    let scratch = Scratch::new();
    let config = config("[images]\nfrom = 'pacs'");
    let error = config.read(None, 8, None, 1).err().unwrap().to_string();
    assert!(
        error.contains("--data DIR or ROTA_DATA. `rota data list`"),
        "{error}"
    );
    let error = config
        .read(None, 8, Some(scratch.path()), 1)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("pacs_32x32.npz: No such file") && error.contains("`rota data list`"),
        "{error}"
    );
}

/// The public sets themselves, where they are.
#[test]
fn the_public_sets_have_their_known_sizes() {
    let Some(folder) = std::env::var_os("ROTA_DATA") else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    let folder = Path::new(&folder);
    if !folder.join("pacs").is_dir() {
        crate::skipped::skipped(format!("the images are not in {}", folder.display()));
        return;
    }
    let found = |text: &str| {
        let data = read(&format!("[images]\n{text}"), folder).unwrap();
        let silos = data
            .silos
            .iter()
            .map(|(name, table)| (name.clone(), sizes(table)));
        (classes(&data).len(), silos.collect::<Vec<_>>())
    };
    let (count, silos) = found("from = 'digits'\nsize = 8\ngrey = true\ntest-rows = 50");
    assert_eq!((count, silos.len()), (10, 6));
    assert!(
        silos.iter().all(|(_, sizes)| *sizes == (185, 50)),
        "{silos:?}"
    );
    let (count, silos) = found("from = 'office-caltech'");
    assert_eq!(count, 10);
    let sizes: Vec<usize> = silos.iter().map(|(_, (rows, _))| *rows).collect();
    assert_eq!(sizes, [958, 1123, 157, 295]);
    let (count, silos) = found("from = 'pacs'\nsize = 2");
    assert_eq!(silos[0].0, "art 1");
    assert_eq!((count, silos.len()), (7, 20));
    assert_eq!(silos.iter().map(|(_, (rows, _))| rows).sum::<usize>(), 9991);
    let (count, silos) = found("from = 'fashion-mnist'\nsize = 2\ntest-rows = 10\nrows = 10");
    assert_eq!((count, silos.len()), (10, 4));
    // Decodes JPEG pictures: 40 of 60,000.
    let (_, silos) = found("from = 'cifar10'\ntest-rows = 5\nrows = 5");
    assert_eq!(silos[0].1, (5, 5));
}

#[test]
fn keys_that_do_not_fit_are_refused_with_the_reason() {
    let scratch = known_sets();
    let error = |text: &str| {
        read(&format!("[images]\n{text}"), scratch.path())
            .err()
            .unwrap()
    };
    assert!(error("from = 'office-caltech'\nsize = 8").contains("the rows are features"));
    assert!(error("from = 'pacs'\nsize = 0").contains("`size` must be from 1 to 1024"));
    assert!(
        error("from = 'cifar10'\npartition = { domains = { silos = 2 } }")
            .contains("the rows have none")
    );
    assert!(error("from = 'pacs'\nfraction = 1.5").contains("`fraction` above 0 and at most 1"));
    assert!(error("from = { files = [] }").contains("is empty"));
    let text = "from = { files = [{ path = 'pacs', labels = 'y' }] }";
    assert!(
        error(text).contains("`labels` does not go with a folder of pictures"),
        "{}",
        error(text)
    );
    let config = config("[images]\nfrom = 'pacs'");
    let error = config
        .read(Some(21), 8, Some(scratch.path()), 1)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "21 silos were asked for, but the pacs data have 20"
    );
    let three = config.read(Some(3), 8, Some(scratch.path()), 1).unwrap();
    assert_eq!(three.silos.len(), 3);
}
