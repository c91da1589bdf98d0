//! Recognition of words among letters: of one script, with capitals where they may be, and of a language.

use std::collections::BTreeSet;

/// The script of a letter, as far as encodings are told apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LetterScript {
    Latin,
    Cyrillic,
    Greek,
    /// Chinese, Japanese and Korean letters.
    Eastern,
    /// Of none that is looked for.
    Other,
}

fn script(letter: char) -> Option<LetterScript> {
    Some(match letter {
        'a'..='z' | 'A'..='Z' | '\u{B5}' | '\u{C0}'..='\u{24F}' => LetterScript::Latin,
        '\u{400}'..='\u{52F}' => LetterScript::Cyrillic,
        '\u{370}'..='\u{3FF}' => LetterScript::Greek,
        '\u{3005}'
        | '\u{3041}'..='\u{30FF}'
        | '\u{3400}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}' => LetterScript::Eastern,
        // Full-width letters, and the points of Chinese and Japanese texts.
        '\u{3000}'..='\u{303F}' | '\u{FF01}'..='\u{FF5E}' => LetterScript::Eastern,
        letter if letter.is_alphabetic() => LetterScript::Other,
        _ => return None,
    })
}

/// Signs that stand right before a letter of a word.
const OPENING: &str = "\u{A1}\u{BF}«»“„‘’‹°";
/// Quotation marks.
const QUOTES: &str = "“”„‘’‚«»‹›";
/// Signs of which a western text has some, and is no less one for them.
const SIGNS: &str = "€°µ²³½¼¾±–—‘’“”…§£©®·«»×™•";

/// Returns whether all that is not ASCII are signs that western texts have.
pub(super) fn are_signs(words: &[String]) -> bool {
    let mut letters = words.iter().flat_map(|word| word.chars());
    letters.all(|letter| letter.is_ascii() || SIGNS.contains(letter))
}

/// Accented Greek letters.
const ACCENTS: &str = "άέήίόύώΐΰΆΈΉΊΌΎΏ";

/// Returns whether a word is none that anybody writes.
pub(super) fn odd(word: &str) -> bool {
    let letters: Vec<char> = word.chars().collect();
    let scripts: Vec<Option<LetterScript>> = letters.iter().map(|letter| script(*letter)).collect();
    let known = || scripts.iter().flatten();
    let unseen = |letter: &char| {
        letter.is_control()
            || matches!(
                letter,
                '\u{AD}' | '\u{2500}'..='\u{25FF}' | '\u{E000}'..='\u{F8FF}' | '\u{FFFD}' | '\u{FF5F}'..='\u{FFEF}'
            )
    };
    if letters.iter().any(unseen) || scripts.contains(&Some(LetterScript::Other)) {
        return true;
    }
    let digits = letters.iter().any(char::is_ascii_digit);
    let signs = letters.iter().zip(&scripts).filter(|(letter, script)| {
        script.is_none() && !letter.is_ascii() && !QUOTES.contains(**letter)
    });
    let many = signs.count() > known().count();
    let quote = |letter: &char| matches!(letter, '\u{201A}' | '\u{201E}');
    if (many && letters.len() > 1 && !digits) || letters.iter().skip(1).any(quote) {
        return true;
    }
    let Some(first) = known()
        .find(|own| **own != LetterScript::Latin)
        .or(known().next())
    else {
        return letters.len() > 1 && !digits;
    };
    if known().any(|own| own != first) {
        // `X` and the like go with Chinese letters, others with their own only.
        let capital = |letter: &char| !letter.is_ascii_lowercase();
        let latin = known().all(|own| own == first || *own == LetterScript::Latin);
        if *first != LetterScript::Eastern || !latin || !letters.iter().all(capital) {
            return true;
        }
    }
    sign_within(&letters, &scripts) || capitals(&letters) || of_its_script(*first, &letters)
}

/// Returns whether a sign stands in front of a letter.
fn sign_within(letters: &[char], scripts: &[Option<LetterScript>]) -> bool {
    (1..letters.len()).any(|at| {
        let (sign, before) = (
            letters[at - 1],
            at.checked_sub(2).and_then(|at| scripts[at]),
        );
        let is_sign = scripts[at - 1].is_none() && !sign.is_ascii();
        let dash = sign == '\u{2013}' && letters[at].is_uppercase();
        let between = before.is_some() && sign != '\u{2019}';
        let catalan = sign == '\u{B7}' && letters[at] == 'l' && at > 1 && letters[at - 2] == 'l';
        // In another encoding they are the capitals of many words.
        let opens = match sign {
            '\u{A1}' | '\u{BF}' => letters[at].is_uppercase(),
            '‹' => letters.contains(&'›'),
            sign => OPENING.contains(sign),
        };
        let fine = dash || catalan || (!between && opens);
        is_sign && scripts[at].is_some() && !fine
    })
}

/// Returns whether a capital letter stands behind a small one.
fn capitals(letters: &[char]) -> bool {
    let big = |letter: char| letter.is_uppercase();
    let two = |pair: &[char]| pair[0].is_lowercase() && big(pair[1]);
    let plain = |pair: &&[char]| !(pair[0].is_ascii() && pair[1].is_ascii());
    letters.windows(2).filter(plain).any(two)
        // A small one between capitals.
        || letters
            .windows(3)
            .any(|three| big(three[0]) && big(three[1]) && three[2].is_lowercase())
}

/// Returns whether letters of one script make no word of its languages.
fn of_its_script(script: LetterScript, letters: &[char]) -> bool {
    let small: Vec<char> = letters
        .iter()
        .flat_map(|letter| letter.to_lowercase())
        .collect();
    let all: Vec<char> = small
        .iter()
        .copied()
        .filter(|letter| letter.is_alphabetic())
        .collect();
    match script {
        LetterScript::Latin => {
            let accents = all.iter().filter(|letter| !letter.is_ascii()).count();
            let vowel = |letter: char| "aeiouyäöüàâéèêëîïôûáíóúå".contains(letter);
            // A sharp s follows a vowel, the Portuguese õ stands before an e.
            let sharp = |at: usize| all[at] == 'ß' && (at == 0 || !vowel(all[at - 1]));
            let most = 4 * accents > 3 * all.len() || (accents > 3 && 4 * accents == 3 * all.len());
            (accents >= 3 && most) || (0..all.len()).any(sharp)
        }
        LetterScript::Greek => {
            let capital = !letters.iter().any(|letter| letter.is_lowercase());
            let ends = |at: usize| all[at] == 'ς' && at + 1 < all.len();
            let accents = letters
                .iter()
                .filter(|letter| ACCENTS.contains(**letter))
                .count();
            (0..all.len()).any(ends) || (all.len() > 2 && !capital && accents != 1)
        }
        LetterScript::Cyrillic | LetterScript::Eastern | LetterScript::Other => false,
    }
}

/// Returns whether a word has letters that are not western.
pub(super) fn is_foreign(word: &str) -> bool {
    let known = word.chars().filter_map(script);
    known.into_iter().any(|own| own != LetterScript::Latin)
}

/// The different Chinese, Japanese and Korean letters of words.
pub(super) fn eastern(words: &[String]) -> BTreeSet<char> {
    let letters = words.iter().flat_map(|word| word.chars());
    letters
        .filter(|letter| script(*letter) == Some(LetterScript::Eastern))
        .collect()
}

/// Of which languages western words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Western {
    /// Of one that many write in western encodings.
    Usual,
    /// Of another one.
    Rare,
    /// Of several usual ones.
    Mixed,
}

/// The letters beside ASCII of languages that many write in western encodings.
const USUAL: [&str; 9] = [
    "äöüß",
    "àâæçéèêëîïôœùûüÿ",
    "áéíñóúü",
    "ãáâàçéêíóôõú",
    "àèéìòù",
    "æøåéóò",
    "åäöé",
    "ëïéèöüê",
    "àçéèíïóòúü",
];

/// Those of others: of Iceland, Turkey, Poland, Czechia and Slovakia, Hungary, Croatia and Slovenia, Romania,
/// Lithuania, Latvia, Estonia.
const RARE: [&str; 11] = [
    "áðéíóúýþæö",
    "çğıöşüâîiİ\u{307}",
    "ąćęłńóśźż",
    "áčďéěíňóřšťúůýž",
    "áäčďéíĺľňóôŕšťúýž",
    "áéíóöőúüű",
    "čćđšž",
    "ăâîşţșț",
    "ąčęėįšųūž",
    "āčēģīķļņšūž",
    "äöõüšž",
];

/// Of which languages these words are; `None` where they are of none.
pub(super) fn languages(words: &[String]) -> Option<Western> {
    let mut letters: Vec<char> = words
        .iter()
        .flat_map(|word| word.chars())
        .flat_map(char::to_lowercase)
        .filter(|letter| !letter.is_ascii() && script(*letter).is_some())
        .collect();
    letters.sort_unstable();
    letters.dedup();
    letters.retain(|letter| *letter != 'µ');
    let of = |language: &str| letters.iter().all(|letter| language.contains(*letter));
    // In Portuguese the õ stands before an e.
    let portuguese = !words.iter().any(|word| {
        let small = word.to_lowercase();
        small.replace("õe", "").contains('õ')
    });
    let known = |language: &str| of(language) && (portuguese || !language.contains('ã'));
    if USUAL.iter().any(|language| known(language)) {
        return Some(Western::Usual);
    }
    if RARE.iter().any(|language| of(language)) {
        return Some(Western::Rare);
    }
    let all = |letter: &char| USUAL.iter().any(|language| language.contains(*letter));
    (portuguese && letters.iter().all(all)).then_some(Western::Mixed)
}

/// Pairs of letters that are frequent in Russian.
const RUSSIAN: &str = "ст но то на ен ов ни ра во ко ет ал ли ор ро ер ол от ос ть пр ре та ка ит го по ая ий ый \
                       ск ки ой ан ес ла ле ло ма не нн нс ог од ом се ве ев те ти ви ва ар ам ат их ых ия ие ру \
                       рг ги ур хи ин из за же уж му";

/// Returns the number of pairs of letters of that these words are frequent in Russian.
pub(super) fn russian(words: &[String]) -> usize {
    let pairs: Vec<Vec<char>> = RUSSIAN
        .split(' ')
        .map(|pair| pair.chars().collect())
        .collect();
    let count = |word: &String| {
        let small: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
        let known = |pair: &&[char]| pairs.iter().any(|own| own == pair);
        small.windows(2).filter(known).count()
    };
    words.iter().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_of_one_script_with_capitals_at_their_beginning() {
        for word in [
            "Süd",
            "général",
            "KÖLN",
            "Łódź",
            "été",
            "İşçi",
            "µg",
            "m²",
            "¿Qué",
            "col·lecció",
            "l’été",
            "5°",
            "Север",
            "ЮГ",
            "Νότος",
            "東京",
            "X線",
            "リハビリ",
            "서울",
        ] {
            assert!(!odd(word), "{word}");
        }
        for word in [
            "SÜd",
            "S³d",
            "S\u{81}d",
            "Sьd",
            "яЕБЕП",
            "Ñåâåð",
            "£ódŸ",
            "Ρεβεπ",
            "Βορςξκ",
            "Mßlaga",
            "г—н",
            "S黛d",
            "gＮal",
            "±±",
            "┬┴",
            "M·laga",
            "ｱｲｳ",
        ] {
            assert!(odd(word), "{word}");
        }
    }

    #[test]
    fn western_words_are_of_a_language() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            languages(&words)
        };
        assert_eq!(of(&["Süd", "Straße"]), Some(Western::Usual));
        assert_eq!(of(&["opções"]), Some(Western::Usual));
        assert_eq!(of(&["mõnnlich"]), Some(Western::Rare));
        assert_eq!(of(&["Doğu", "Batı", "Güney"]), Some(Western::Rare));
        assert_eq!(of(&["Zürich", "Peña", "Sørensen"]), Some(Western::Mixed));
        assert_eq!(of(&["Doðu", "Güney"]), None);
    }
}
