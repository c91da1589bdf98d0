#![allow(clippy::unwrap_used)]
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Opens a file of this name with these bytes.
fn opened(name: &str, bytes: &[u8]) -> Result<RawFile, String> {
    opened_by(name, bytes, |path| open(path, &Format::default()))
}

/// Opens it by `how`.
fn opened_by(
    name: &str,
    bytes: &[u8],
    how: impl Fn(PathBuf) -> Result<RawFile, DataError>,
) -> Result<RawFile, String> {
    let folder = std::env::temp_dir().join(format!("rota-open-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    let file = how(path).map_err(|error| error.to_string());
    std::fs::remove_dir_all(&folder).unwrap();
    file
}

const TABLE: &[u8] = b"a,b\n1,2\n3,4\n";

#[test]
fn gzip_is_known_by_its_first_bytes() {
    let packed = gzip(TABLE);
    let padded = [&packed[..], &[0; 512]].concat();
    let parts = [gzip(b"a,b\n1,2\n"), gzip(b"3,4\n")].concat();
    for name in ["a.csv.gz", "b.csv", "c.txt", "d.GZ", "e"] {
        for bytes in [&packed, &padded, &parts] {
            let file = opened(name, bytes).unwrap();
            assert_eq!((file.rows.len(), file.notes.len()), (2, 0), "{name}");
        }
    }
    let plain = opened("f.csv.gz", TABLE).unwrap();
    assert_eq!(plain.rows.len(), 2);
    assert_eq!(
        plain.notes,
        ["its name ends in .gz, and it is not compressed: it is read as it is"]
    );
}

#[test]
fn damaged_gzip_is_refused_with_the_reason() {
    let packed = gzip(TABLE);
    let broken = opened("a1.csv.gz", &packed[..packed.len() - 6])
        .err()
        .unwrap();
    assert!(broken.contains("it breaks off"), "{broken}");
    let more = opened("a2.csv.gz", &[&packed[..], b"hello"].concat())
        .err()
        .unwrap();
    assert!(more.contains("5 bytes follow its gzip content"), "{more}");
    let mut wrong = packed.clone();
    let at = wrong.len() - 5;
    wrong[at] ^= 1;
    let wrong = opened("a3.csv.gz", &wrong).err().unwrap();
    assert!(wrong.contains("damaged"), "{wrong}");
    let within = |bytes: &[u8], limit: u64| {
        let mut content = Vec::new();
        let read = Gunzip::new(bytes, limit).read_to_end(&mut content);
        read.map(|_| content)
            .map_err(|error| failed(Path::new("a4.csv.gz"), &error).to_string())
    };
    let large = within(&packed, 5).unwrap_err();
    assert!(
        large.contains("more than 5 bytes when decompressed") && large.contains("split it"),
        "{large}"
    );
    let large = within(&gzip(&[b'1'; 100_000]), 10).unwrap_err();
    assert!(large.contains("more than 10 bytes"), "{large}");
    assert_eq!(within(&packed, TABLE.len() as u64).unwrap(), TABLE);
}

#[test]
fn a_file_over_the_limit_is_refused_with_what_to_do() {
    let path = std::env::temp_dir().join(format!("rota-large-{}.csv", std::process::id()));
    // Very large, without bytes on the disk.
    std::fs::File::create(&path)
        .unwrap()
        .set_len(file::DATA + 1)
        .unwrap();
    let error = open(path.clone(), &Format::default())
        .err()
        .unwrap()
        .to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(
        error.contains("more than 1024 MiB") && error.contains("split it into several files"),
        "{error}"
    );
}

#[test]
fn files_that_are_no_tables_are_named() {
    let encrypted: Vec<u8> = b"\xD0\xCF\x11\xE0\xA1...."
        .iter()
        .copied()
        .chain("EncryptedPackage".bytes().flat_map(|byte| [byte, 0]))
        .collect();
    let portable = [&[b'0'; 456][..], b"SPSSPORT"].concat();
    let cases: [(&[u8], &str); 50] = [
        (b"PK\x05\x06\x00\x00", "an empty archive: save the sheet as CSV"),
        (
            b"\xD0\xCF\x11\xE0\xA1",
            "an old spreadsheet (.xls): open it in a spreadsheet program and save it as .xlsx or CSV",
        ),
        (&encrypted, "a spreadsheet with a password"),
        (b"BZh91AY", "compressed with bzip2"),
        (b"\xFD7zXZ\x00", "compressed with xz"),
        (b"\x28\xB5\x2F\xFD\x00", "compressed with zstd"),
        (b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive"),
        (b"%PDF-1.7", "a PDF"),
        (b"Rar!\x1A\x07", "a RAR archive"),
        (b"SQLite format 3\0", "a database of SQLite: export the table: sqlite3 -header -csv \"other"),
        (b"$FL2@(#) SPSS", "a file of SPSS: convert it: Rscript -e 'write.csv(haven::as_factor(haven::read_sav(\"other"),
        (b"$FL3@(#) SPSS", "a file of SPSS"),
        (&portable, "a portable file of SPSS: convert it: Rscript"),
        (b"<stata_dta><header>", "a file of Stata: convert it: python3 -c \"import pandas; pandas.read_stata('other"),
        (b"\x73\x02\x01\x00\x05\x00", "a file of Stata"),
        (b"\x72\x01\x01\x00\x05\x00", "a file of Stata"),
        (
            b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!",
            "a transport file of SAS: convert it: python3 -c \"import pandas; pandas.read_sas(",
        ),
        (b"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!", "a transport file of SAS"),
        (
            b"\0\0\0\0\0\0\0\0\0\0\0\0\xC2\xEA\x81\x60\xB3\x14",
            "a table of SAS: convert it",
        ),
        (b"RDX3\nX\n", "a workspace of R: convert it: Rscript"),
        (b"X\n\0\0\0\x03", "an object of R: convert it: Rscript -e 'write.csv(readRDS("),
        (b"\x80\x04\x95\x10", "a pickle of Python"),
        (b"ARROW1\0\0", "a file of Arrow"),
        (b"MSH|^~\\&|LAB|NORTH|||202405", "messages of HL7: make a table of their observations: tr"),
        (b"\x0BMSH|^~\\&|LAB\rPID|1\r", "messages of HL7"),
        (b"FHS|^~\\&|LAB", "messages of HL7"),
        (
            b"{\n  \"resourceType\": \"Bundle\",\n  \"entry\": []}",
            "FHIR resources: make a table of them",
        ),
        (
            b"{\"resourceType\":\"Patient\"}\n{\"resourceType\":\"Patient\"}\n",
            "FHIR resources, one in each line: make a table of them: python3",
        ),
        (
            b"<?xml version=\"1.0\"?><Bundle xmlns=\"http://hl7.org/fhir\">",
            "FHIR resources in XML",
        ),
        (b"<ClinicalDocument xmlns=\"urn:hl7-org:v3\">", "a document of HL7"),
        (
            b"<?xml version=\"1.0\"?><office:document>",
            "a spreadsheet in XML: open it",
        ),
        (
            b"-- PostgreSQL database dump\n\nSET x = 0;\n\nCREATE TABLE public.stays (\n    age int\n);\n",
            "a dump of a database (SQL): load it and export the table: in psql \\copy TABLE to",
        ),
        (
            b"/*!40101 SET NAMES utf8 */;\nDROP TABLE IF EXISTS `stays`;\nCREATE TABLE `stays` (\n",
            "a dump of a database (SQL)",
        ),
        (b"INSERT INTO stays VALUES (37, 2.5),\n(52, 6.8);\n", "a dump of a database (SQL)"),
        (
            b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t(a, b);\n",
            "a dump of a database (SQL)",
        ),
        (b"COPY stays (age, lab) FROM stdin;\n37\t2.5\n", "a dump of a database (SQL)"),
        (
            b" age | lab \n-----+-----\n  37 | 2.5\n(1 row)\n",
            "what a database prints on the screen: export the table: psql --csv",
        ),
        (b"+-----+-----+\n| age | lab |\n+-----+-----+\n", "what a database prints"),
        (b"| age | lab |\n|-----|:---:|\n| 37 | 2.5 |\n", "what a database prints"),
        (b"age lab\n--- ---\n 37 2.5\n", "what a database prints"),
        (b"-[ RECORD 1 ]--\nage | 37\n", "what a database prints"),
        (
            b"  age lab ward\n1  37 2.5 north\n2  52 6.8 south\n3  68 5.1 north\n",
            "a table as R or pandas prints it: write it: in R write.csv(x, \"other",
        ),
        (b"   age  lab\n0   37  2.5\n1   52  6.8\n", "a table as R or pandas prints it"),
        (b"# A tibble: 2 x 2\n    age   lab\n", "a table as R or pandas prints it"),
        (b"   age lab\n1:  37 2.5\n2:  52 6.8\n", "a table as R or pandas prints it"),
        (b"     age lab\n[1,]  37 2.5\n[2,]  52 6.8\n", "a table as R or pandas prints it"),
        (b"\n <!DOCTYPE html><html>", "a web page"),
        (b"<?xml version='1.0'?>", "XML"),
        (b"{\"a\": 1}", "JSON"),
        (b"[{\"a\": 1}]", "JSON"),
    ];
    for (at, (bytes, what)) in cases.into_iter().enumerate() {
        let error = opened(&format!("other{at}.csv"), bytes).err().unwrap();
        assert!(error.contains(&format!("it is {what}")), "{error}");
    }
}

#[test]
fn every_encoding_of_unicode_is_read() {
    let text = "ward,y\nSüd,1\n";
    let wide = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
    let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
    let all = [
        text.as_bytes().to_vec(),
        marked(&[0xEF, 0xBB, 0xBF], text.as_bytes()),
        marked(&[0xFF, 0xFE], &little),
        marked(&[0xFE, 0xFF], &big),
        little,
        big,
        gzip(text.as_bytes()),
    ];
    for (at, bytes) in all.iter().enumerate() {
        let file = opened(&format!("text{at}.csv"), bytes).unwrap();
        assert_eq!(file.header, ["ward", "y"], "{at}");
        assert_eq!(file.rows.row(0).cells.get(0), Some("Süd"), "{at}");
        assert_eq!(file.notes, [""; 0]);
    }
}

#[test]
fn row_by_row_no_row_shows_what_the_file_is() {
    let names = vec!["a".to_owned(), "b".to_owned()];
    let bare = Format {
        columns: Some(names.clone()),
        ..Format::default()
    };
    let rows: [&[u8]; 9] = [
        b"PAR1",
        b"BZh",
        b"%PDF",
        b"{\"a\":1}",
        b"<table>",
        b"\x1f\x8b",
        b"sep=;",
        b"\xFF\xFE",
        b"S\xFCd",
    ];
    for (at, row) in rows.into_iter().enumerate() {
        let bytes = [row, b"\n1,2\n3,4\n"].concat();
        for name in [format!("rows{at}.csv"), format!("rows{at}.xls")] {
            let file = opened_by(&name, &bytes, |path| open_row_by_row(path, &bare)).unwrap();
            assert_eq!((&file.header, file.rows.len()), (&names, 2), "{name}");
            assert_eq!(file.unreadable.len(), 1, "{name}");
            // Behind a line of names no row is asked, either.
            let bytes = [b"a,b\n1,2\n", row, b"\n3,4\n"].concat();
            let usual = Format::default();
            let file = opened_by(&name, &bytes, |path| open_row_by_row(path, &usual)).unwrap();
            assert_eq!((file.rows.len(), file.unreadable.len()), (2, 1), "{name}");
        }
    }
    // An encoding that is named stays, and the name says that the file is compressed.
    let latin = Format {
        encoding: "windows-1252".into(),
        ..bare
    };
    let packed = gzip(b"\xEF\xBB\xBF,2\nS\xFCd,4\n");
    let file = opened_by("p.csv.gz", &packed, |path| open_row_by_row(path, &latin)).unwrap();
    let first: Vec<_> = file.rows.iter().map(|row| row.cells.get(0)).collect();
    assert_eq!(first, [Some("\u{EF}\u{BB}\u{BF}"), Some("S\u{FC}d")]);
}
