//! Asks what texts mean that other files have in another encoding.

use super::OpenQuestions;
use crate::data::{Format, Mojibake, RawFile, mojibake};
use crate::typed::typed;

impl OpenQuestions<'_> {
    /// Asks what a text means that another file has in another encoding.
    pub(super) fn encodings(&mut self, raw: &[(RawFile, Format)]) {
        let wishes = self.wishes;
        let known = [&wishes.drop, &wishes.same, &wishes.different];
        let open = |odd: &Mojibake| !known.iter().any(|names| names.contains(&odd.column));
        let files = raw.iter().map(|(file, _)| file);
        let found = mojibake(files).into_iter().filter(|odd| odd.elsewhere);
        let question = |odd: Mojibake| {
            let Mojibake { column, what, .. } = odd;
            let column = typed(&column);
            format!(
                "{what}: say which --encoding the files have that are no UTF-8, or export the file again in \
                 UTF-8; if these values are one, say --same {column}; if not, --different {column}"
            )
        };
        for odd in found.filter(open) {
            self.encodings.push(odd.column.clone());
            self.questions.sentences.push(question(odd));
        }
    }
}
