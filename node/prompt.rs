//! Questions to a person at a terminal: the one way in which the program asks.

use std::io::{self, IsTerminal, Write};

/// Reads the next line, as [`io::Stdin::read_line`] does.
type ReadLine<'a> = Box<dyn FnMut(&mut String) -> io::Result<usize> + 'a>;

/// Asks a person, who answers each question with a line.
pub struct Prompt<'a> {
    read: ReadLine<'a>,
    output: Box<dyn Write + 'a>,
}

impl Prompt<'static> {
    /// Asks whoever sits at the terminal; `None` where nobody could read a question or answer it. Questions go to
    /// standard error, so that standard output holds what was asked for alone.
    pub fn at_terminal() -> Option<Self> {
        let somebody = io::stdin().is_terminal() && io::stderr().is_terminal();
        // Nothing is locked between two answers.
        somebody.then(|| Self {
            read: Box::new(|line| io::stdin().read_line(line)),
            output: Box::new(io::stderr()),
        })
    }
}

impl<'a> Prompt<'a> {
    /// Takes the answers from a text, and keeps what is asked.
    #[cfg(test)]
    pub(crate) fn scripted(mut answers: &'a str, asked: &'a mut Vec<u8>) -> Self {
        let read = move |line: &mut String| {
            let end = answers.find('\n').map_or(answers.len(), |end| end + 1);
            line.push_str(&answers[..end]);
            answers = &answers[end..];
            Ok(end)
        };
        Self {
            read: Box::new(read),
            output: Box::new(asked),
        }
    }

    /// Shows a line.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.output, "{line}")
    }

    /// The answer to a question, or `default` if it is empty. Asked again until `check` takes it.
    ///
    /// # Errors
    /// The terminal was closed.
    pub fn ask<T>(
        &mut self,
        question: &str,
        default: Option<&str>,
        check: impl Fn(&str) -> Result<T, String>,
    ) -> io::Result<T> {
        let shown = match default {
            Some(default) => format!("{question} [{default}]: "),
            None => asked(question),
        };
        loop {
            let line = self.line(&shown)?;
            let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
            let answer = match &*line {
                "" => default.unwrap_or(""),
                answer => answer,
            };
            match check(answer) {
                Ok(value) => return Ok(value),
                Err(why) => self.say(&format!("  {why}"))?,
            }
        }
    }

    /// The position of the word that a person answers.
    ///
    /// # Errors
    /// The terminal was closed.
    pub fn one_of(&mut self, question: &str, words: &[&str]) -> io::Result<usize> {
        self.ask(question, None, |answer| {
            let found = words.iter().position(|word| *word == answer);
            found.ok_or_else(|| format!("one of {} is needed", words.join(", ")))
        })
    }

    /// Returns what a person answers, whatever it is; empty also where the terminal was closed.
    ///
    /// # Errors
    /// The terminal cannot be read or written to.
    pub fn answer(&mut self, question: &str) -> io::Result<String> {
        Ok(self.line(&asked(question))?.unwrap_or_default())
    }

    /// Returns whether a person says yes; anything else is no.
    ///
    /// # Errors
    /// The terminal cannot be read or written to.
    pub fn says_yes(&mut self, question: &str) -> io::Result<bool> {
        let answer = self.line(&format!("{question} [y/N] "))?;
        let answer = answer.unwrap_or_default().to_lowercase();
        Ok(matches!(&*answer, "y" | "yes"))
    }

    /// The next line, without the spaces around it; `None` where the terminal was closed.
    fn line(&mut self, shown: &str) -> io::Result<Option<String>> {
        write!(self.output, "{shown}")?;
        self.output.flush()?;
        let mut line = String::new();
        let read = (self.read)(&mut line)?;
        Ok((read > 0).then(|| line.trim().to_owned()))
    }
}

/// A question as it is shown.
fn asked(question: &str) -> String {
    match question.ends_with('?') {
        true => format!("{question} "),
        false => format!("{question}: "),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns what a conversation gives, and what was shown in it.
    fn spoken<T>(answers: &str, with: impl FnOnce(&mut Prompt<'_>) -> T) -> (T, String) {
        let mut shown = Vec::new();
        let found = with(&mut Prompt::scripted(answers, &mut shown));
        (found, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn a_question_is_asked_again_until_its_answer_can_be_used() {
        let number = |text: &str| text.parse::<u8>().map_err(|error| error.to_string());
        let (found, shown) = spoken("many\n 300 \n\n", |ask| ask.ask("Beds", Some("7"), number));
        assert_eq!(
            (found.unwrap(), shown.matches("Beds [7]: ").count()),
            (7, 3)
        );
        let (found, shown) = spoken("no\nmeasured", |ask| {
            ask.one_of("Which", &["missing", "measured"])
        });
        assert_eq!(found.unwrap(), 1);
        assert!(
            shown.contains("one of missing, measured is needed"),
            "{shown}"
        );
    }

    #[test]
    fn a_terminal_that_closes_answers_nothing() {
        let (found, _) = spoken("", |ask| ask.one_of("Which", &["one"]));
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let ((name, yes), _) = spoken("", |ask| {
            (ask.answer("Name").unwrap(), ask.says_yes("Sign?").unwrap())
        });
        assert_eq!((&*name, yes), ("", false));
    }

    #[test]
    fn yes_alone_is_yes() {
        for (answer, yes) in [
            ("y\n", true),
            (" YES \r\n", true),
            ("\n", false),
            ("yeah\n", false),
            ("n\n", false),
        ] {
            let (said, shown) = spoken(answer, |ask| ask.says_yes("Sign it?"));
            assert_eq!((said.unwrap(), &*shown), (yes, "Sign it? [y/N] "));
        }
    }
}
