//! Finds out in which encoding a text is written that is no UTF-8.
//!
//! Bytes tell nothing of an encoding but by the words that they make in it. So a file is read in every usual
//! one, and kept are those in which its words are of one script, with capital letters where they may be, and, of
//! western letters, with those of one language; in Chinese, Japanese and Korean with letters that are frequent.

use std::collections::BTreeSet;

use super::Charset;
use super::words::{Western, are_signs, eastern, is_foreign, languages, odd, russian};

/// Knowledge of the encoding of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncodingGuess {
    /// This one, and a word of the text in it.
    Found(Charset, String),
    /// Several, and in each a word of the text that the others read otherwise.
    Open(Vec<(Charset, String)>),
    /// None in which the text has words.
    Unknown,
}

/// Usual encodings, by how usual they are.
const USUAL: [&str; 16] = [
    "windows-1252",
    "windows-1250",
    "windows-1254",
    "windows-1257",
    "windows-1251",
    "koi8-r",
    "ibm866",
    "windows-1253",
    "iso-8859-2",
    "macintosh",
    "cp850",
    "shift_jis",
    "gb18030",
    "euc-kr",
    "euc-jp",
    "big5",
];

/// Those of Cyrillic letters.
const CYRILLIC: [&str; 3] = ["windows-1251", "koi8-r", "ibm866"];

/// Most lines that are looked at.
const LINES: usize = 2000;
/// Fewest different Chinese letters by which a text is told from a Korean one.
const MANY: usize = 8;

/// A text, read in one encoding.
struct TextReading {
    charset: Charset,
    /// Its words with letters that are not ASCII, in the order of the lines.
    words: Vec<String>,
    western: Option<Western>,
}

/// In which encoding these bytes, which are no UTF-8, are a text.
pub fn encoding_of(bytes: &[u8]) -> EncodingGuess {
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let lines: BTreeSet<&[u8]> = lines.filter(|line| !line.is_ascii()).take(LINES).collect();
    let mut found: Vec<TextReading> = Vec::new();
    for charset in USUAL.into_iter().filter_map(Charset::of) {
        let Some(reading) = read(charset, &lines) else {
            continue;
        };
        // The same letters have the same bytes in several encodings.
        if found.iter().all(|own| own.words != reading.words) {
            found.push(reading);
        }
    }
    leave_hardly_any_out(&mut found);
    match found.as_slice() {
        [] => EncodingGuess::Unknown,
        [one] => EncodingGuess::Found(one.charset, one.example(None)),
        _ => {
            let other = |at: usize| found.get(usize::from(at == 0));
            let each = found.iter().enumerate();
            let each = each.map(|(at, own)| (own.charset, own.example(other(at))));
            EncodingGuess::Open(each.collect())
        }
    }
}

/// Returns what to do about bytes that are no text in the encoding that they are read in.
pub(super) fn hint(bytes: &[u8]) -> String {
    let named = match encoding_of(bytes) {
        EncodingGuess::Found(found, _) => format!("{:?}", found.label()),
        EncodingGuess::Open(each) => {
            let each = each.iter().map(|(own, _)| format!("{:?}", own.label()));
            each.collect::<Vec<_>>().join(" or ")
        }
        EncodingGuess::Unknown => "\"windows-1252\"".into(),
    };
    format!(": say in `format` which `encoding` it has, for example {named}")
}

/// Returns how lines read; `None` where they are no text, or have no words.
fn read(charset: Charset, lines: &BTreeSet<&[u8]>) -> Option<TextReading> {
    let mut words = Vec::new();
    let mut frequent = (0, 0);
    for line in lines {
        let text = charset.text(line)?;
        for word in text.split(|letter: char| letter.is_ascii() && !letter.is_ascii_alphanumeric())
        {
            for word in word.split_whitespace().filter(|word| !word.is_ascii()) {
                words.push(word.to_owned());
            }
        }
        frequent = counted(charset, line, frequent);
    }
    let plain = words.iter().filter(|word| !odd(word)).count();
    // A few words may be damaged.
    if words.is_empty() || 10 * plain < 9 * words.len() {
        return None;
    }
    // Of letters that need two bytes only some are frequent.
    if 10 * frequent.0 < 8 * frequent.1 || !is_like_its_texts(charset, &words, lines) {
        return None;
    }
    let western = match words.iter().any(|word| is_foreign(word)) {
        true => None,
        false => Some(languages(&words)?),
    };
    Some(TextReading {
        charset,
        words,
        western,
    })
}

/// Returns true if a text has the signs of texts in an encoding of many letters, several of these: Japanese
/// ones syllables, and those of Taiwan letters whose second byte is an ASCII one.
fn is_like_its_texts(charset: Charset, words: &[String], lines: &BTreeSet<&[u8]>) -> bool {
    let letters = eastern(words);
    match &*charset.label() {
        "euc-jp" => letters
            .iter()
            .any(|letter| matches!(letter, '\u{3041}'..='\u{30FF}')),
        "big5" => {
            let plain = |pair: &[u8]| pair[0] >= 0x80 && matches!(pair[1], 0x40..=0x7E);
            letters.len() > 2 && lines.iter().any(|line| line.windows(2).any(plain))
        }
        "shift_jis" | "gb18030" | "euc-kr" => !letters.is_empty(),
        _ => true,
    }
}

/// Adds the pairs of bytes of a line, those of frequent letters first and all second.
fn counted(charset: Charset, line: &[u8], before: (usize, usize)) -> (usize, usize) {
    let Charset::Standard(encoding) = charset else {
        return before;
    };
    let frequent: fn(u8, u8) -> bool = match encoding.name() {
        "gb18030" => |lead, trail| matches!(lead, 0xA1..=0xA3 | 0xB0..=0xD7) && trail >= 0xA1,
        "EUC-KR" => |lead, trail| matches!(lead, 0xA1..=0xA3 | 0xB0..=0xC8) && trail >= 0xA1,
        "EUC-JP" => |lead, trail| matches!(lead, 0xA1..=0xA5 | 0xB0..=0xCF) && trail >= 0xA1,
        "Shift_JIS" => |lead, _| matches!(lead, 0x81..=0x83 | 0x88..=0x97),
        "Big5" => |lead, _| matches!(lead, 0xA1..=0xC6),
        _ => return before,
    };
    let (mut some, mut all) = before;
    let mut at = 0;
    while at < line.len() {
        match (line[at], line.get(at + 1)) {
            (0x80.., Some(trail)) => {
                some += usize::from(frequent(line[at], *trail));
                all += 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    (some, all)
}

/// Leaves readings out that are hardly any beside the others.
fn leave_hardly_any_out(found: &mut Vec<TextReading>) {
    // Signs of units and of print alone.
    if found
        .first()
        .is_some_and(|own| own.is_of(&["windows-1252"]) && are_signs(&own.words))
    {
        found.truncate(1);
    }
    // Western letters: rather of one language than of several, and rather of a widespread one.
    for kind in [Western::Usual, Western::Rare] {
        if found.iter().any(|own| own.western == Some(kind)) {
            found.retain(|own| own.western.is_none_or(|own| own == kind));
            break;
        }
    }
    // Russian: the frequent pairs of letters.
    let pairs = |own: &TextReading| match own.is_of(&CYRILLIC) {
        true => russian(&own.words),
        false => 0,
    };
    if let Some(most) = found.iter().map(pairs).max().filter(|most| *most > 1) {
        found.retain(|own| !own.is_of(&CYRILLIC) || 2 * pairs(own) > most);
    }
    // Chinese whose letters are all among those that are Korean, too: of Chinese ones many are not.
    let korean = found.iter().any(|own| own.is_of(&["euc-kr"]));
    found.retain(|own| {
        let letters: BTreeSet<char> = own.words.iter().flat_map(|word| word.chars()).collect();
        let few = letters.iter().filter(|letter| !letter.is_ascii()).count() < MANY;
        !(korean && own.is_of(&["gb18030"])) || few
    });
}

impl TextReading {
    /// Returns whether it is in one of these encodings.
    fn is_of(&self, names: &[&str]) -> bool {
        names.contains(&&*self.charset.label())
    }

    /// A word of the text, one that another reading has otherwise.
    fn example(&self, other: Option<&Self>) -> String {
        let differs =
            |at: &usize| other.is_none_or(|other| other.words.get(*at) != self.words.get(*at));
        let at = (0..self.words.len()).find(differs).unwrap_or(0);
        self.words.get(at).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(name: &str, text: &str) -> Vec<u8> {
        let charset = Charset::of(name).expect("a known encoding");
        charset.bytes(text).expect("a text of this encoding")
    }

    /// The encoding that is found, or those that are open.
    fn of(name: &str, text: &str) -> String {
        let text = format!("age,ward\n40,{}\n", text.replace(", ", "\n50,"));
        match encoding_of(&bytes(name, &text)) {
            EncodingGuess::Found(found, _) => found.label(),
            EncodingGuess::Open(all) => {
                let all: Vec<String> = all.into_iter().map(|(own, _)| own.label()).collect();
                format!("open: {}", all.join(" "))
            }
            EncodingGuess::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn encodings_are_found_by_the_words_that_they_make() {
        for (name, text) in [
            ("windows-1252", "Süd, Nord"),
            ("windows-1252", "général, chirurgie"),
            ("windows-1252", "männlich, weiblich"),
            ("windows-1252", "Genève, Zürich, Köln, Peña, Sørensen"),
            ("windows-1252", "Straße, Gasse"),
            ("windows-1252", "Málaga, Cádiz"),
            ("cp850", "Süd, Köln, Straße"),
            ("cp850", "général, hôpital"),
            ("cp850", "Bjørn, Åse, Håkon"),
            ("windows-1250", "Łódź, Gdańsk"),
            ("windows-1250", "Plzeň, Ústí, město, řeka"),
            ("windows-1251", "Север, Юг, Восток"),
            ("windows-1251", "мужской, женский"),
            ("koi8-r", "Север, Юг, Восток"),
            ("koi8-r", "Хирургия, Терапия"),
            ("koi8-r", "СЕВЕР, ВОСТОК"),
            ("ibm866", "Север, Юг, Восток"),
            ("windows-1253", "Βορράς, Νότος, Ανατολή"),
            ("windows-1254", "Doğu, Batı, Güney"),
            ("shift_jis", "東京, 大阪, 名古屋"),
            ("shift_jis", "内科, 外科, リハビリ"),
            ("gb18030", "北京, 上海, 广州, 急诊科, 外科"),
            ("gb18030", "男, 女, 心脏内科"),
            ("euc-kr", "서울, 부산, 대구, 인천, 광주"),
            ("windows-1252", "Orléans, Besançon, Nîmes"),
            ("windows-1252", "Östersund, Skellefteå"),
            ("windows-1252", "Überwachung"),
            ("windows-1252", "Ávila"),
            ("cp850", "Coruña, Gijón, Logroño"),
            ("windows-1250", "Příbram, Třebíč, Žďár"),
            ("windows-1251", "Казань, Самара, Уфа"),
            ("koi8-r", "палата, отделение, приёмная"),
            ("ibm866", "Казань, Самара, Пермь"),
            ("windows-1253", "καρδιολογία, χειρουργική"),
            ("windows-1254", "Beşiktaş, Kadıköy, Üsküdar"),
            ("shift_jis", "札幌, 仙台, 循環器科"),
            ("gb18030", "杭州, 南京, 内分泌科, 住院部"),
            ("euc-kr", "소아과, 응급실, 내과, 외과"),
        ] {
            assert_eq!(of(name, text), name, "{text}");
        }
    }

    #[test]
    fn what_reads_well_in_two_encodings_is_open() {
        let found = of("euc-kr", "서울, 부산");
        assert!(
            found.contains("euc-kr") && found.contains("gb18030"),
            "{found}"
        );
        let EncodingGuess::Open(each) = encoding_of(&bytes("cp850", "x\nStraße\n")) else {
            panic!("a sharp s or an a with an accent");
        };
        let words: Vec<&str> = each.iter().map(|(_, word)| word.as_str()).collect();
        assert_eq!(words, ["Straáe", "Straße"]);
    }

    #[test]
    fn bytes_without_words_are_of_no_encoding() {
        assert_eq!(
            encoding_of(b"a\n\x81\xFF\x8F\x9D\xFE\n"),
            EncodingGuess::Unknown
        );
    }
}
