//! Wrong inputs, and what Rota answers: the table in `cases.toml`, case by case; and tables as people have
//! them, and how Rota reads them: the table in `files.toml`.
//!
//! A case starts from a federation that runs, and changes one thing. `ROTA_GOLDEN=write` prints the
//! answers as they are now, to be read and copied.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputCases {
    case: Vec<InputCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputCase {
    /// Fault of the input.
    input: String,
    /// The command; by default it simulates the scenario.
    #[serde(default)]
    command: Vec<String>,
    /// File, text in it, and the text that takes its place.
    #[serde(default)]
    change: Vec<[String; 3]>,
    /// Files that are written whole, with a byte for each character up to U+00FF.
    #[serde(default)]
    write: BTreeMap<String, String>,
    /// Files that are written in another way; see [`turned`].
    #[serde(default)]
    turn: BTreeMap<String, Vec<String>>,
    /// Text that goes to standard error.
    #[serde(default)]
    answer: String,
    /// Texts that standard output must have, with single spaces.
    #[serde(default)]
    says: Vec<String>,
    /// The exit code.
    #[serde(default = "wrong_configuration")]
    code: i32,
}

fn wrong_configuration() -> i32 {
    2
}

const SCENARIO: &str = include_str!("scenario.toml");

/// Patients of a hospital.
fn rows(shift: usize) -> String {
    let mut text = String::from("age,pulse,ward,outcome\n");
    for row in 0..24 {
        let ward = ["general", "intensive"][row % 2];
        let outcome = ["home", "died"][usize::from((row + shift).is_multiple_of(3))];
        let (age, pulse) = (40 + row + shift, 60 + 2 * row);
        writeln!(text, "{age},{pulse},{ward},{outcome}").unwrap();
    }
    text
}

/// A file with these bytes, written in another way.
fn turned(bytes: Vec<u8>, how: &str) -> Vec<u8> {
    let text = || String::from_utf8(bytes.clone()).unwrap();
    let wide = |own: fn(u16) -> [u8; 2]| text().encode_utf16().flat_map(own).collect::<Vec<u8>>();
    let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
    match how {
        "gzip" => {
            let mut packed =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            packed.write_all(&bytes).unwrap();
            packed.finish().unwrap()
        }
        "zeros behind" => [&bytes[..], &[0; 300]].concat(),
        // As pandas writes an index.
        "labelled" => {
            let lines = text();
            let label = |(at, line): (usize, &str)| match at {
                0 => format!(",{line}\n"),
                at => format!("{},{line}\n", at % 7),
            };
            lines
                .lines()
                .enumerate()
                .map(label)
                .collect::<String>()
                .into_bytes()
        }
        "xlsx" => workbook(&text()),
        "half" => bytes[..bytes.len() / 2].to_vec(),
        "semicolons" => text().replace(',', ";").into_bytes(),
        "tabs" => text().replace(',', "\t").into_bytes(),
        "decimal commas" => text().replace('.', ",").into_bytes(),
        "two commas" => text().replace('\n', ",,\n").into_bytes(),
        "carriage returns" => text().replace('\n', "\r").into_bytes(),
        "dos" => text().replace('\n', "\r\n").into_bytes(),
        "blank lines" => text().replace('\n', "\n\n").into_bytes(),
        "utf-8 mark" => marked(&[0xEF, 0xBB, 0xBF], &bytes),
        "utf-16le" => wide(u16::to_le_bytes),
        "utf-16be" => wide(u16::to_be_bytes),
        "utf-16le mark" => marked(&[0xFF, 0xFE], &wide(u16::to_le_bytes)),
        "utf-16be mark" => marked(&[0xFE, 0xFF], &wide(u16::to_be_bytes)),
        "latin1" => text().chars().map(|c| u8::try_from(c).unwrap()).collect(),
        "cp850" => {
            let byte = |letter: char| match letter {
                'ü' => 0x81,
                'ß' => 0xE1,
                letter => u8::try_from(letter).unwrap(),
            };
            text().chars().map(byte).collect()
        }
        "decomposed" => {
            let parts = [('ü', "u\u{308}"), ('å', "a\u{30A}"), ('ñ', "n\u{303}")];
            let apart = |text: String, (letter, two): &(char, &str)| text.replace(*letter, two);
            parts.iter().fold(text(), apart).into_bytes()
        }
        "quoted" => {
            let line = |line: &str| format!("\"{}\"\n", line.replace(',', "\",\""));
            text().lines().map(line).collect::<String>().into_bytes()
        }
        other => panic!("no file is written {other:?}"),
    }
}

/// A workbook with one sheet, "Stays", that has these cells.
fn workbook(csv: &str) -> Vec<u8> {
    let cell = |text: &str| match text.parse::<f64>() {
        Ok(_) => format!("<c><v>{text}</v></c>"),
        Err(_) => format!("<c t=\"inlineStr\"><is><t>{text}</t></is></c>"),
    };
    let row = |line: &str| {
        format!(
            "<row>{}</row>",
            line.split(',').map(cell).collect::<String>()
        )
    };
    let rows: String = csv.lines().map(row).collect();
    zipped(&[
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name=\"Stays\" r:id=\"a\" xmlns:r=\"r\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"a\" Type=\"x/worksheet\" Target=\"sheet.xml\"/></Relationships>",
        ),
        (
            "xl/sheet.xml",
            &format!("<worksheet><sheetData>{rows}</sheetData></worksheet>"),
        ),
    ])
}

/// A zip archive of these parts, stored.
fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in parts {
        let mut sum = flate2::Crc::new();
        sum.update(content.as_bytes());
        let size = (content.len() as u32).to_le_bytes();
        let middle = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &sum.sum().to_le_bytes(),
            &size,
            &size,
            &(name.len() as u16).to_le_bytes(),
            &[0, 0],
        ]
        .concat();
        let at = (bytes.len() as u32).to_le_bytes();
        directory.extend(
            [
                b"PK\x01\x02\x14\x00",
                &middle[..],
                &[0; 10],
                &at,
                name.as_bytes(),
            ]
            .concat(),
        );
        bytes.extend(
            [
                b"PK\x03\x04",
                &middle[..],
                name.as_bytes(),
                content.as_bytes(),
            ]
            .concat(),
        );
    }
    let count = (parts.len() as u16).to_le_bytes();
    let (size, at) = (directory.len() as u32, bytes.len() as u32);
    bytes.extend(directory);
    bytes.extend(
        [
            b"PK\x05\x06\0\0\0\0",
            &count[..],
            &count,
            &size.to_le_bytes(),
            &at.to_le_bytes(),
            &[0, 0],
        ]
        .concat(),
    );
    bytes
}

/// Exit code, standard error and standard output of a case.
fn answer(folder: &Path, case: &InputCase) -> (i32, String, String) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("scenario.toml"), SCENARIO).unwrap();
    fs::write(folder.join("north.csv"), rows(0)).unwrap();
    fs::write(folder.join("south.csv"), rows(1)).unwrap();
    for (file, text) in &case.write {
        let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
        fs::write(folder.join(file), bytes).unwrap();
    }
    for [file, from, to] in &case.change {
        let file = folder.join(file);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{}: no {from:?}", case.input);
        fs::write(&file, text.replace(from, to)).unwrap();
    }
    for (file, ways) in &case.turn {
        let file = folder.join(file);
        let bytes = fs::read(&file).unwrap();
        let bytes = ways.iter().fold(bytes, |bytes, how| turned(bytes, how));
        fs::write(&file, bytes).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.current_dir(folder).env_remove("ROTA_DATA");
    match case.command.as_slice() {
        [] => command.args(["simulate", "scenario.toml", "--no-references", "--quiet"]),
        words => command.args(words),
    };
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let code = output.status.code().unwrap();
    (code, said.trim().to_owned(), shown.join(" "))
}

/// Tries all cases of a table, at least so many.
fn every_case_of(table: &str, name: &str, least: usize) {
    let cases: InputCases = toml::from_str(table).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let write = std::env::var_os("ROTA_GOLDEN").is_some();
    let mut wrong = String::new();
    for case in &cases.case {
        let (code, said, shown) = answer(&folder, case);
        let lacking = case.says.iter().find(|says| !shown.contains(*says));
        if write {
            println!("# {}\nanswer = {said:?}\ncode = {code}\n", case.input);
        } else if let (Some(says), true) = (lacking, code == case.code) {
            writeln!(
                wrong,
                "{}\n  does not say: {says}\n  but: {shown}",
                case.input
            )
            .unwrap();
        } else if (code, said.as_str()) != (case.code, case.answer.trim()) {
            let (expected, answer) = (case.code, &case.answer);
            writeln!(
                wrong,
                "{}\n  expected {expected}: {answer}\n  found    {code}: {said}",
                case.input
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases.case.len() >= least, "{} cases", cases.case.len());
}

#[test]
fn every_wrong_input_is_answered_with_what_where_and_what_to_do() {
    every_case_of(include_str!("cases.toml"), "inputs", 40);
}

#[test]
fn tables_as_they_come_are_read_or_refused_with_the_reason() {
    every_case_of(include_str!("files.toml"), "inputs-files", 40);
}

#[test]
fn the_federation_that_the_cases_change_runs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inputs-good");
    let case = InputCase {
        input: String::new(),
        command: Vec::new(),
        change: Vec::new(),
        write: BTreeMap::new(),
        turn: BTreeMap::new(),
        says: Vec::new(),
        answer: String::new(),
        code: 0,
    };
    let (code, said, _) = answer(&folder, &case);
    assert_eq!((code, said.as_str()), (0, ""));
}
