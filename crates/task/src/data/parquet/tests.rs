#![allow(clippy::unwrap_used)]
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

/// One column of a file to write, two rows.
enum TestColumn {
    Int(Vec<i32>),
    Long(Vec<i64>),
    Double(Vec<f64>),
    Float(Vec<f32>),
    Bool(Vec<bool>),
    Bytes(Vec<&'static [u8]>),
    Fixed(Vec<Vec<u8>>),
    /// Two values in the first row, one in the second.
    Repeated(Vec<i32>),
}

/// A Parquet file, its columns compressed.
fn written(schema: &str, columns: &[TestColumn], codec: Compression) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(codec).build());
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    for column in columns {
        let mut writer = group.next_column().unwrap().unwrap();
        match column {
            TestColumn::Int(values) => writer.typed::<Int32Type>().write_batch(values, None, None),
            TestColumn::Long(values) => writer.typed::<Int64Type>().write_batch(values, None, None),
            TestColumn::Double(values) => {
                writer.typed::<DoubleType>().write_batch(values, None, None)
            }
            TestColumn::Float(values) => {
                writer.typed::<FloatType>().write_batch(values, None, None)
            }
            TestColumn::Bool(values) => writer.typed::<BoolType>().write_batch(values, None, None),
            TestColumn::Bytes(values) => {
                let values: Vec<ByteArray> = values.iter().map(|own| own.to_vec().into()).collect();
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(&values, None, None)
            }
            TestColumn::Fixed(values) => {
                let values = values.iter().map(|own| ByteArray::from(own.clone()).into());
                let values: Vec<_> = values.collect();
                writer
                    .typed::<FixedLenByteArrayType>()
                    .write_batch(&values, None, None)
            }
            TestColumn::Repeated(values) => {
                writer
                    .typed::<Int32Type>()
                    .write_batch(values, Some(&[1, 1, 1]), Some(&[0, 1, 0]))
            }
        }
        .unwrap();
        writer.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
    bytes
}

fn cells(file: &RawFile) -> Vec<String> {
    let row = |row: crate::data::RawRow<'_>| row.cells.iter().collect::<Vec<_>>().join("|");
    file.rows.iter().map(row).collect()
}

#[test]
fn columns_of_every_usual_type_are_read() {
    let schema = "message table {
        required int32 small; required int64 large; required double real; required float single;
        required boolean yes; required binary text (STRING); required binary old;
        required int32 day (DATE); required int64 milli (TIMESTAMP(MILLIS,true));
        required int64 micro (TIMESTAMP(MICROS,false)); required int64 nano (TIMESTAMP(NANOS,true));
        required int32 price (DECIMAL(9,2)); required int64 sum (DECIMAL(18,3));
        required int64 unsigned (INTEGER(64,false)); required int32 clock (TIME(MILLIS,true)); }";
    let columns = [
        TestColumn::Int(vec![1, -2]),
        TestColumn::Long(vec![9_007_199_254_740_993, i64::MIN]),
        TestColumn::Double(vec![0.0, -1.5e300]),
        TestColumn::Float(vec![0.1, 1e20]),
        TestColumn::Bool(vec![true, false]),
        TestColumn::Bytes(vec![" Süd ".as_bytes(), b"a,b"]),
        TestColumn::Bytes(vec![b"old", b"new"]),
        TestColumn::Int(vec![19_874, -1]),
        TestColumn::Long(vec![1_717_165_800_000, -500]),
        TestColumn::Long(vec![1_717_165_800_250_000, 0]),
        TestColumn::Long(vec![1_717_165_800_000_000_001, 86_399_000_000_000]),
        TestColumn::Int(vec![12_345, -5]),
        TestColumn::Long(vec![1_000_000_000_001, 0]),
        TestColumn::Long(vec![-1, 7]),
        TestColumn::Int(vec![52_200_000, 1]),
    ];
    let bytes = written(schema, &columns, Compression::UNCOMPRESSED);
    let file = read("a.parquet".into(), bytes).unwrap();
    assert_eq!(file.notes, [""; 0]);
    let large = format!("-15{}", "0".repeat(299));
    assert_eq!(
        cells(&file),
        [
            "1|9007199254740993|0|0.1|true|Süd|old|2024-05-31|2024-05-31 14:30:00|2024-05-31 14:30:00.25|\
             2024-05-31 14:30:00.000000001|123.45|1000000000.001|18446744073709551615|14:30:00"
                .to_owned(),
            format!(
                "-2|-9223372036854775808|{large}|100000000000000000000|false|a,b|new|1969-12-31|\
                 1969-12-31 23:59:59.5|1970-01-01 00:00:00|1970-01-01 23:59:59|-0.05|0.000|7|00:00:00.001"
            ),
        ]
    );
}

#[test]
fn every_codec_is_read() {
    let schema = "message table { required int64 n; required binary text (STRING); }";
    let columns = [
        TestColumn::Long((0..500).collect()),
        TestColumn::Bytes(vec![b"the same text in every row"; 500]),
    ];
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ];
    for codec in codecs {
        let bytes = written(schema, &columns, codec);
        let file = read("a.parquet".into(), bytes).unwrap();
        assert_eq!(file.rows.len(), 500, "{codec:?}");
        assert_eq!(
            cells(&file)[499],
            "499|the same text in every row",
            "{codec:?}"
        );
    }
}

#[test]
fn lists_structures_and_bytes_are_left_out_and_reported() {
    let schema = "message table { required int32 age; repeated int32 many; required binary picture;
        required group place { required int32 x; } required fixed_len_byte_array(16) id (UUID); }";
    let columns = [
        TestColumn::Int(vec![40, 50]),
        TestColumn::Repeated(vec![1, 2, 3]),
        TestColumn::Bytes(vec![b"ok", &[0xFF, 0xD8, 0xFF]]),
        TestColumn::Int(vec![1, 2]),
        TestColumn::Fixed(vec![vec![0xAA; 16], vec![0xBB; 16]]),
    ];
    let bytes = written(schema, &columns, Compression::UNCOMPRESSED);
    let file = read("a.parquet".into(), bytes).unwrap();
    assert_eq!(
        (file.header.as_slice(), cells(&file)),
        (&["age".to_owned()][..], vec!["40".into(), "50".into()])
    );
    assert_eq!(
        file.notes,
        [
            "the column \"many\" holds lists and is left out",
            "the column \"place\" holds structures and is left out",
            "the column \"picture\" holds bytes that are no text and is left out",
            "the column \"id\" holds bytes that are no text and is left out",
        ]
    );
    // They are columns of the file: whoever drops one is not told that there is none.
    for column in ["many", "place", "picture", "id"] {
        assert!(file.has(column));
        let error = file.place(column).unwrap_err().to_string();
        assert!(
            error.contains(&format!("the column {column:?} is not read: it holds ")),
            "{error}"
        );
    }
    assert!(!file.has("other"));
    let none = written(
        "message t { repeated int32 many; }",
        &columns[1..2],
        Compression::UNCOMPRESSED,
    );
    let error = read("a.parquet".into(), none).err().unwrap().to_string();
    assert!(
        error.contains("no column of numbers, texts or dates"),
        "{error}"
    );
}

#[test]
fn two_columns_of_one_name_are_refused() {
    for names in [["age", "age"], ["age", "age\u{a0}"]] {
        let column = |name: &str| {
            let column = Type::primitive_type_builder(name, parquet::basic::Type::INT32);
            let column = column.with_repetition(parquet::basic::Repetition::REQUIRED);
            Arc::new(column.build().unwrap())
        };
        let fields = names.map(column).to_vec();
        let schema = Type::group_type_builder("t")
            .with_fields(fields)
            .build()
            .unwrap();
        let mut text = Vec::new();
        parquet::schema::printer::print_schema(&mut text, &schema);
        let properties = Arc::new(WriterProperties::builder().build());
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), properties).unwrap();
        let mut group = file.next_row_group().unwrap();
        for value in [40, 50] {
            let mut writer = group.next_column().unwrap().unwrap();
            writer
                .typed::<Int32Type>()
                .write_batch(&[value], None, None)
                .unwrap();
            writer.close().unwrap();
        }
        group.close().unwrap();
        file.close().unwrap();
        let error = read("a.parquet".into(), bytes).err().unwrap().to_string();
        assert!(
            error.contains("the column \"age\" is there twice"),
            "{error}"
        );
    }
}

#[test]
fn parquet_is_known_by_its_first_bytes_and_its_name() {
    let schema = "message table { required int32 age; }";
    let bytes = written(
        schema,
        &[TestColumn::Int(vec![40, 50])],
        Compression::SNAPPY,
    );
    let folder = std::env::temp_dir().join(format!("rota-parquet-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["a.parquet", "a.pq", "a.PARQUET", "a.dat", "a.csv"] {
        let path = folder.join(name);
        std::fs::write(&path, &bytes).unwrap();
        let file = crate::data::open(path, &crate::data::Format::default()).unwrap();
        assert_eq!(cells(&file), ["40", "50"], "{name}");
    }
    let path = folder.join("b.pq");
    std::fs::write(&path, "age\n40\n").unwrap();
    let error = crate::data::open(path, &crate::data::Format::default())
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("it is not a Parquet file"),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Returns what is said of a file that may take so many bytes in memory.
fn said(bytes: &[u8], most: u64) -> String {
    let read = rows_within(
        Path::new("a.parquet"),
        bytes.to_vec(),
        Unprintable::IsMarked,
        most,
    );
    read.map(drop).unwrap_err().to_string()
}

#[test]
fn a_small_file_of_many_rows_is_refused_before_memory_is_full() {
    let (schema, many) = ("message table { required binary text (STRING); }", 100_000);
    let bytes = written(
        schema,
        &[TestColumn::Bytes(vec![&b"x"[..]; many])],
        Compression::ZSTD(ZstdLevel::default()),
    );
    assert!(bytes.len() < 1_000, "{}", bytes.len());
    assert!(said(&bytes, 2 << 20).contains("more than 2 MiB in memory"));
    let read = rows_within(
        Path::new("a.parquet"),
        bytes,
        Unprintable::IsMarked,
        4 << 20,
    );
    assert_eq!(read.unwrap().rows.len(), many);
}

#[test]
fn a_small_file_of_a_long_text_is_refused_before_decompression() {
    let text: &'static [u8] = vec![b'a'; 4 << 20].leak();
    let columns = [TestColumn::Bytes(vec![text, text])];
    let schema = "message table { required binary text (STRING); }";
    for codec in [
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
    ] {
        let bytes = written(schema, &columns, codec);
        assert!(bytes.len() < 100_000, "{codec:?}: {}", bytes.len());
        assert!(
            said(&bytes, 4 << 20).contains("more than 4 MiB"),
            "{codec:?}"
        );
    }
    // A page that says that it is smaller than it is: 4 MiB and the length before, in four bytes.
    for codec in [
        Compression::BROTLI(BrotliLevel::default()),
        Compression::GZIP(GzipLevel::default()),
    ] {
        let mut bytes = written(schema, &[TestColumn::Bytes(vec![text])], codec);
        let size = 2 * (text.len() + 4);
        let digits: Vec<u8> = (0..4)
            .map(|nth| (size >> (7 * nth)) as u8 & 0x7F | if nth < 3 { 0x80 } else { 0 })
            .collect();
        let at = bytes.windows(4).position(|four| four == digits).unwrap();
        bytes[at..at + 4].copy_from_slice(&[0xA8, 0x80, 0x80, 0]);
        assert!(said(&bytes, 1 << 30).contains("is damaged"), "{codec:?}");
    }
}
