#![allow(clippy::unwrap_used)]
use std::io::Write;

use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::*;

/// An archive of these parts.
fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut bytes);
    for (name, content) in parts {
        let file = archive.new_file(name);
        let file = file.compression_method(CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().unwrap();
        let deflate = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::best());
        let mut writer = config.wrap(deflate);
        writer.write_all(content.as_bytes()).unwrap();
        let (deflate, descriptor) = writer.finish().unwrap();
        deflate.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes
}

const RELATIONS: &str = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
    <Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
        Target="worksheets/sheet1.xml"/>
    <Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
        Target="/xl/worksheets/sheet2.xml"/>
    <Relationship Id="rId3" Type="http://purl.oclc.org/ooxml/officeDocument/relationships/sharedStrings"
        Target="sharedStrings.xml"/>
    <Relationship Id="rId4" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles"
        Target="styles.xml"/>
    </Relationships>"#;
const STYLES: &str = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/>
    <numFmt numFmtId="165" formatCode="00000"/></numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs>
    <cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="22"/><xf numFmtId="9"/><xf numFmtId="165"/></cellXfs>
    </styleSheet>"#;
const STRINGS: &str = r#"<sst><si><t>age</t></si><si><r><t>wa</t></r><r><t xml:space="preserve">rd</t></r></si>
    <si><t>S&#252;d &amp; Nord</t><rPh><t>x</t></rPh></si><si><t>a_x000A_b</t></si></sst>"#;

/// A workbook with two sheets, of which the first has these rows.
fn xlsx(rows: &str) -> Vec<u8> {
    let workbook = r#"<workbook xmlns:r="r"><workbookPr/><sheets><sheet name="Data" sheetId="1" r:id="rId1"/>
        <sheet name="Notes" sheetId="2" r:id="rId2"/></sheets></workbook>"#;
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    zipped(&[
        ("[Content_Types].xml", "<Types/>"),
        ("xl/workbook.xml", workbook),
        ("xl/_rels/workbook.xml.rels", RELATIONS),
        ("xl/styles.xml", STYLES),
        ("xl/SharedStrings.xml", STRINGS),
        ("xl/worksheets/sheet1.xml", &sheet),
        (
            "xl/worksheets/sheet2.xml",
            "<worksheet><sheetData><row><c t=\"inlineStr\"><is><t>z</t></is></c></row><row><c><v>7</v></c></row>\
             </sheetData></worksheet>",
        ),
    ])
}

/// A document of sheets, with this first and a second one.
fn ods(rows: &str) -> Vec<u8> {
    let content = format!(
        r#"<office:document-content><office:body><office:spreadsheet>
        <table:table table:name="Data"><table:table-column table:number-columns-repeated="16384"/>{rows}</table:table>
        <table:table table:name="Notes"><table:table-row><table:table-cell office:value-type="string"><text:p>z</text:p>
        </table:table-cell></table:table-row></table:table>
        </office:spreadsheet></office:body></office:document-content>"#
    );
    zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("META-INF/manifest.xml", "<manifest/>"),
        ("content.xml", &content),
    ])
}

fn opened(bytes: &[u8], format: &Format) -> Result<RawFile, String> {
    read(Path::new("a.xlsx"), bytes, format, None).map_err(|error| error.to_string())
}

fn table(file: &RawFile) -> Vec<String> {
    let rows = file.rows.iter();
    let rows = rows.map(|row| row.cells.iter().collect::<Vec<_>>().join("|"));
    std::iter::once(file.header.join("|")).chain(rows).collect()
}

/// Cells of a row of a workbook: texts, or numbers.
fn cells(at: u64, values: &[&str]) -> String {
    let cell = |value: &&str| match value.parse::<f64>() {
        Ok(_) => format!("<c><v>{value}</v></c>"),
        Err(_) => format!("<c t=\"inlineStr\"><is><t>{value}</t></is></c>"),
    };
    let all: String = values.iter().map(cell).collect();
    format!("<row r=\"{at}\">{all}</row>")
}

#[test]
fn cells_of_every_kind_are_read_as_text() {
    let rows = r#"<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>when</t>
        </is></c><c r="D1" t="str"><f>1</f><v>yes</v></c><c r="E1" t="inlineStr"><is><t>code</t></is></c>
        <c r="F1" t="inlineStr"><is><t>share</t></is></c></row>
        <row r="3"><c r="A3"><v>37.5</v></c><c r="B3" t="s"><v>2</v></c><c r="C3" s="1"><v>45443</v></c>
        <c r="D3" t="b"><v>1</v></c><c r="E3" s="4"><v>123</v></c><c r="F3" s="3"><v>0.12</v></c></row>
        <row r="4"><c r="A4"><v>2.5499999999999998</v></c><c r="B4" t="s"><v>3</v></c><c r="C4" s="2">
        <v>45443.604166666664</v></c><c r="D4" t="b"><v>0</v></c><c r="E4" t="e"><v>#N/A</v></c></row>
        <row r="5" hidden="1"><c r="A5"><v>1E-3</v></c><c r="C5" t="d"><v>2024-05-31T08:00:00</v></c><c r="E5"><f>A1</f></c>
        </row><row r="6"/>"#;
    let file = opened(&xlsx(rows), &Format::default()).unwrap();
    assert_eq!(
        table(&file),
        [
            "age|ward|when|yes|code|share",
            "37.5|Süd & Nord|2024-05-31|TRUE|00123|0.12",
            "2.55|a\nb|2024-05-31 14:30:00|FALSE||",
            "0.001||2024-05-31 08:00:00|||",
        ]
    );
    assert_eq!(file.rows.row(1).at.to_string(), "row 4");
    assert_eq!(
        file.notes,
        [
            "its first sheet, \"Data\", is read, and not \"Notes\": another one with --sheet, or `sheet` in `format`",
            "1 cell holds an error of a formula, such as #N/A: read as missing",
            "1 cell holds a formula whose value is not in the file: read as missing; open the file in a spreadsheet \
             program and save it",
            "1 cell is shown as per cent: 12 % is read as 0.12, as it is stored",
            "1 row is hidden in the sheet and read like the others",
        ]
    );
    let rows = r#"<table:table-row><table:table-cell office:value-type="string"><text:p>age</text:p></table:table-cell>
        <table:table-cell office:value-type="string"><text:p>ward</text:p></table:table-cell>
        <table:table-cell office:value-type="string"><text:p>when</text:p></table:table-cell>
        <table:table-cell office:value-type="string"><text:p>yes</text:p></table:table-cell>
        <table:table-cell table:number-columns-repeated="16380"/></table:table-row>
        <table:table-row table:number-rows-repeated="2"><table:table-cell/></table:table-row>
        <table:table-row table:number-rows-repeated="2"><table:table-cell office:value-type="float" office:value="37.50">
        <text:p>37,5</text:p></table:table-cell><table:table-cell office:value-type="string"><office:annotation><text:p>no
        </text:p></office:annotation><text:p>S&#252;d<text:s/>&amp;</text:p><text:p>Nord</text:p></table:table-cell>
        <table:table-cell office:value-type="date" office:date-value="2024-05-31T14:30:00"><text:p>x</text:p>
        </table:table-cell><table:table-cell office:value-type="boolean" office:boolean-value="true"/></table:table-row>
        <table:table-row><table:table-cell table:number-columns-repeated="2" office:value-type="float" office:value="1"/>
        <table:table-cell office:value-type="time" office:time-value="PT08H05M00S"/><table:table-cell
        office:value-type="string" calcext:value-type="error"><text:p>#N/A</text:p></table:table-cell></table:table-row>
        <table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/>
        </table:table-row>"#;
    let file = opened(&ods(rows), &Format::default()).unwrap();
    assert_eq!(
        table(&file),
        [
            "age|ward|when|yes",
            "37.5|Süd &\nNord|2024-05-31 14:30:00|TRUE",
            "37.5|Süd &\nNord|2024-05-31 14:30:00|TRUE",
            "1|1|08:05:00|",
        ]
    );
    assert_eq!(file.rows.row(1).at.to_string(), "row 5");
    assert_eq!(file.notes.len(), 2, "{:?}", file.notes);
}

#[test]
fn names_are_found_below_titles_beside_margins_and_above_totals() {
    let names = ["age", "lab", "ward", "died"];
    let values = [
        ["37", "2.5", "north", "no"],
        ["52", "6.8", "south", "yes"],
        ["68", "5.1", "north", "no"],
    ];
    let ahead: [&[&[&str]]; 6] = [
        &[],
        &[&["Stays of 2024"]],
        &[&["", "Stays of 2024"], &["draft"]],
        &[&["Hospital", "North"], &["Date", "2024"]],
        &[&["# exported"]],
        &[&["Stays"], &[], &["Hospital:", "North"]],
    ];
    for (margin, ahead) in [0, 2]
        .into_iter()
        .flat_map(|margin| ahead.map(|ahead| (margin, ahead)))
    {
        let mut at = 0;
        let mut row = |own: &[&str]| {
            at += 1;
            cells(at, &[&vec![""; margin][..], own].concat())
        };
        let mut rows: String = ahead.iter().map(|own| row(own)).collect();
        rows += &row(&names);
        rows.extend(values.iter().map(|own| row(own)));
        rows += &row(&["Total", "14.4"]);
        let file = opened(&xlsx(&rows), &Format::default()).unwrap();
        assert_eq!(
            table(&file),
            [
                "age|lab|ward|died",
                "37|2.5|north|no",
                "52|6.8|south|yes",
                "68|5.1|north|no"
            ],
            "{ahead:?}"
        );
        let said = |part: &str| file.notes.iter().any(|note| note.contains(part));
        assert_eq!(
            said("before the table"),
            !ahead.is_empty(),
            "{:?}",
            file.notes
        );
        assert!(said("begins with \"Total\""), "{:?}", file.notes);
    }
}

#[test]
fn a_sheet_is_read_by_its_name() {
    let book = xlsx(&cells(1, &["a", "b"]));
    let named = |sheet: &str| {
        let sheet = Some(sheet.to_owned());
        opened(
            &book,
            &Format {
                sheet,
                ..Format::default()
            },
        )
    };
    assert_eq!(table(&named("Notes").unwrap()), ["z", "7"]);
    assert_eq!(named("Notes").unwrap().notes, [""; 0]);
    assert_eq!(
        named("Note").err().unwrap(),
        "cannot read a.xlsx: it has no sheet \"Note\"; its sheets are \"Data\", \"Notes\"; did you mean \"Notes\"?"
    );
    let sheet = Some("Notes".to_owned());
    let notes = opened(
        &ods(""),
        &Format {
            sheet,
            ..Format::default()
        },
    )
    .unwrap();
    assert_eq!(table(&notes), ["z"]);
}

#[test]
fn numbers_have_the_decimal_mark_of_the_format() {
    let rows = cells(1, &["age", "text"]) + &cells(2, &["37.5", "a.b"]);
    let format = Format {
        decimal: ',',
        ..Format::default()
    };
    assert_eq!(
        table(&opened(&xlsx(&rows), &format).unwrap())[1],
        "37,5|a.b"
    );
}

#[test]
fn row_by_row_the_first_row_has_names_and_rows_are_independent() {
    let rows = cells(2, &["age", "ward \"a, b\""])
        + &cells(4, &["37", "no\nrth"])
        + &cells(5, &["Total", "x"]);
    let file = read_row_by_row(Path::new("a.xlsx"), &xlsx(&rows), &Format::default()).unwrap();
    assert_eq!(table(&file), ["age|ward \"a, b\"", "37|no rth"]);
    assert_eq!(file.rows.row(0).at.to_string(), "line 4");
    assert_eq!(file.unreadable.len(), 1);
}

#[test]
fn what_is_decoded_is_bounded_before_it_takes_memory() {
    let refused = |bytes: &[u8], limit| {
        let file = read_within(Path::new("a.xlsx"), bytes, &Format::default(), None, limit);
        file.err().map(|error| error.to_string())
    };
    // Texts of blanks, in a few hundred bytes; the same in attributes, in texts that cells share, in other parts.
    let blanks = " ".repeat(300_000);
    let bomb = xlsx(&format!(
        "<row><c t=\"inlineStr\"><is><t>{blanks}</t></is></c></row>"
    ));
    assert!(bomb.len() < 5000);
    let large = |bytes: &[u8]| {
        let error = refused(bytes, 100_000).unwrap();
        assert!(
            error.contains("there is more in it than") && error.contains("split it"),
            "{error}"
        );
    };
    large(&bomb);
    large(&xlsx(&format!("<row><c t=\"{blanks}\"><v>1</v></c></row>")));
    large(&ods(&format!(
        "<table:table-row><table:table-cell>{blanks}</table:table-cell></table:table-row>"
    )));
    // Rows and cells that stand for many.
    let many = |rows: u64, columns: u64| {
        ods(&format!(
            "<table:table-row table:number-rows-repeated=\"{rows}\"><table:table-cell office:value-type=\"float\" \
             office:value=\"1\" table:number-columns-repeated=\"{columns}\"/></table:table-row>"
        ))
    };
    large(&many(1_000_000, 1));
    large(&many(100, 16_000));
    for bytes in [
        many(1, 1_000_000_000),
        many(9_000_000_000_000, 1),
        many(1, u64::MAX),
    ] {
        assert!(
            refused(&bytes, 1 << 30).unwrap().contains("more than"),
            "a million columns or rows"
        );
    }
    let column = xlsx("<row r=\"1\"><c r=\"ZZZZZ1\"><v>1</v></c></row>");
    assert!(
        refused(&column, 1 << 30)
            .unwrap()
            .contains("more than 16384 columns")
    );
    let row = xlsx("<row r=\"4000000000\"><c r=\"A1\"><v>1</v></c></row>");
    assert!(
        refused(&row, 1 << 30)
            .unwrap()
            .contains("more than 1048576 rows")
    );
    assert_eq!(
        refused(
            &xlsx(&(cells(1, &["a", "b"]) + &cells(2, &["1", "2"]))),
            1 << 20
        ),
        None
    );
}

#[test]
fn damaged_and_other_archives_are_named() {
    let whole = xlsx(&cells(1, &["a", "b"]));
    let cut = opened(&whole[..whole.len() / 2], &Format::default())
        .err()
        .unwrap();
    assert!(cut.contains("the spreadsheet is damaged"), "{cut}");
    let wrong = [
        ("<row><c t=\"s\"><v>99</v></c></row>", "there is no text 99"),
        (
            "<row><c t=\"inlineStr\"><is><t>&unknown;</t></is></c></row>",
            "unknown reference &unknown;",
        ),
        ("<row><c>", "damaged"),
        (
            "<row r=\"2\"><c><v>1</v></c></row><row r=\"1\"><c><v>1</v></c></row>",
            "row 1 comes after row 2",
        ),
    ];
    for (rows, why) in wrong {
        let error = opened(&xlsx(rows), &Format::default()).err().unwrap();
        assert!(error.contains(why), "{error}");
    }
    let others: [(&[(&str, &str)], &str); 6] = [
        (
            &[("xl/workbook.bin", "")],
            "a binary spreadsheet (.xlsb): save it as .xlsx",
        ),
        (
            &[("Index/Document.iwa", "")],
            "a document of Numbers: export",
        ),
        (
            &[("word/document.xml", "<x/>")],
            "a document without sheets",
        ),
        (
            &[
                ("mimetype", "application/vnd.oasis.opendocument.text"),
                ("content.xml", "<x/>"),
            ],
            "a document without sheets",
        ),
        (
            &[
                ("META-INF/manifest.xml", "<x encryption-data=''/>"),
                ("content.xml", ""),
            ],
            "a spreadsheet with a password: save it without one",
        ),
        (&[("north.csv", "a,b\n1,2\n")], "an archive: unpack it"),
    ];
    for (parts, what) in others {
        let error = opened(&zipped(parts), &Format::default()).err().unwrap();
        assert!(error.contains(&format!("it is {what}")), "{error}");
    }
    let rows = cells(1, &["a", "b"]) + &cells(2, &["1", "2", "", "remark"]);
    let beside = opened(&xlsx(&rows), &Format::default()).err().unwrap();
    assert!(
        beside.starts_with(
            "a.xlsx, row 2: column \"4\" holds \"remark\", but a name is needed above it"
        ),
        "{beside}"
    );
    let empty = opened(&xlsx(""), &Format::default()).err().unwrap();
    assert!(empty.contains("it is empty"), "{empty}");
}
