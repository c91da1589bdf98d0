//! Questions to a person, asked again until the answer can be used.

use std::io::{self, BufRead, Write};

/// Asks a person.
pub struct Prompt<'a> {
    /// Where the answers come from.
    pub input: &'a mut dyn BufRead,
    /// Where the questions go.
    pub output: &'a mut dyn Write,
}

impl Prompt<'_> {
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
        loop {
            match default {
                Some(default) => write!(self.output, "{question} [{default}]: ")?,
                None => write!(self.output, "{question}: ")?,
            }
            self.output.flush()?;
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let answer = match line.trim() {
                "" => default.unwrap_or(""),
                answer => answer,
            };
            match check(answer) {
                Ok(value) => return Ok(value),
                Err(why) => writeln!(self.output, "  {why}")?,
            }
        }
    }
}
