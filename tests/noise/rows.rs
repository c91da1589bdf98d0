//! Tables of text, with rows that fit and rows of every kind that do not.

use rota::task::schema::{ReadCells, Schema, TargetColumn};

/// A small generator (SplitMix64).
pub(crate) struct TableRandom(pub(crate) u64);

impl TableRandom {
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % below
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Cells that hold something else than they should, or the same in another way.
const ODD: [&str; 16] = [
    "",
    "NA",
    "abc",
    "-",
    "1e300",
    "-7",
    "1.0",
    "01",
    "12 %",
    "(3)",
    "1,5",
    "\"2\"",
    "\" 2",
    "\u{e9}",
    "0x1f",
    "99999999999999999999",
];

/// Lines that are no rows.
const BROKEN: [&[u8]; 10] = [
    b"1,2",
    b"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24",
    b"\"1,2,3,4,5",
    b"\"1\" 2,3,4,5,6",
    b"\xff\xfe\xff",
    b"1,\0,3,4,5,6",
    b",,,,,",
    b"total,,,,,",
    b"Mittelwert,54.2,3.1,1,train,1",
    b",mean: 0.5,1,1,train,2",
];

/// One row of a table.
#[derive(Debug, Clone)]
pub(crate) struct TextRow {
    /// Person whose row it is.
    pub(crate) person: u8,
    line: Vec<u8>,
}

impl TextRow {
    /// A row of this person that follows from a number; one in four does not fit.
    pub(crate) fn new(schema: &Schema, person: u8, seed: u64) -> Self {
        let mut random = TableRandom(seed);
        if random.below(16) == 0 {
            // A line without a person is one of nobody.
            let line = random.one_of(&BROKEN).to_vec();
            return Self { person, line };
        }
        let mut cells = Vec::new();
        for (_, feature) in schema.columns() {
            cells.push(match feature.kind.cells() {
                ReadCells::Levels(levels) => {
                    let level = random.below(levels.listed.len() as u64) as usize;
                    levels.listed[level].clone()
                }
                ReadCells::Days(days) => number(&mut random, days.range()),
                ReadCells::Numbers { agreed, .. } => number(&mut random, agreed.range),
            });
        }
        for _ in schema.target.name.iter() {
            cells.push(target(&mut random, &schema.target));
        }
        cells.push(format!("p{person}"));
        cells.push(
            random
                .one_of(&["train", "Train", "test", "train", "validation"])
                .into(),
        );
        cells.push(random.below(9).to_string());
        if random.below(4) == 0 {
            let at = random.below(cells.len() as u64) as usize;
            // The test has to know whose a row is.
            let odd = random.one_of(&ODD);
            cells[at] = if at == cells.len() - 3 { "" } else { odd }.into();
        }
        let line = cells.join(",").into_bytes();
        Self { person, line }
    }
}

fn number(random: &mut TableRandom, range: Option<[f64; 2]>) -> String {
    let [low, high] = range.unwrap_or([-3.0, 3.0]);
    let part = random.below(1000) as f64 / 999.0;
    format!("{:.3}", low + part * (high - low))
}

fn target(random: &mut TableRandom, target: &TargetColumn) -> String {
    let Some(classes) = &target.classes else {
        return number(random, target.range);
    };
    let class = random.below(classes.len() as u64) as usize;
    classes[class].values()[0].clone()
}

/// The file of these rows.
pub(crate) fn file<'a>(schema: &Schema, rows: impl IntoIterator<Item = &'a TextRow>) -> Vec<u8> {
    let names = schema.names().chain(schema.target.name.iter());
    let names: Vec<_> = names.chain(["patient", "part", "day"]).collect();
    let mut file = names.join(",").into_bytes();
    for row in rows {
        file.push(b'\n');
        file.extend_from_slice(&row.line);
    }
    file
}
