//! Standard error of a program: passed on in lines that are marked as its own, at a bounded rate and in a bounded
//! amount, and its end kept for messages.

use std::time::{Duration, Instant};

/// Bytes of its end that are kept for messages.
const KEPT: usize = 4096;
/// Longest line that is passed on, in bytes; what is behind it is left out.
const LINE: usize = 1024;
/// Bytes that are passed on at once.
const BURST: u64 = 64 << 10;
/// Bytes that are passed on in every second after that.
const RATE: u64 = 4 << 10;
/// Bytes that are passed on of one program in all.
const MOST: u64 = 16 << 20;

/// Beginning of every line: a program must not be able to write what looks like a line of the node.
const MARK: &str = "learner: ";

/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

/// The standard error of one program.
pub(super) struct ProgramStderr {
    /// Last bytes of the output.
    end: Vec<u8>,
    /// The line that it has begun, up to [`LINE`].
    line: Vec<u8>,
    /// True if the last byte was a carriage return, which a line feed may follow.
    returned: bool,
    /// Bytes of that line that are left out.
    cut: u64,
    /// Bytes that may be passed on now.
    free: u64,
    /// Time at which that was counted.
    counted: Instant,
    /// Bytes passed on in all.
    passed: u64,
    /// Lines and bytes left out since that was last said.
    left_out: (u64, u64),
    /// True if a line has said that nothing more is passed on.
    over: bool,
}

impl ProgramStderr {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            end: Vec::new(),
            line: Vec::new(),
            returned: false,
            cut: 0,
            free: BURST,
            counted: now,
            passed: 0,
            left_out: (0, 0),
            over: false,
        }
    }

    /// The last line of the output that says something, of its last [`KEPT`] bytes.
    pub(super) fn last_line(&self) -> Option<String> {
        let mut lines = self.end.rsplit(|&byte| byte == b'\n' || byte == b'\r');
        let last = lines.find(|line| !line.trim_ascii().is_empty())?;
        Some(harmless(&last[..last.len().min(LINE)]).trim().to_owned())
    }

    /// The program has written these bytes; what of it is passed on now, in whole lines.
    pub(super) fn hear(&mut self, now: Instant, bytes: &[u8]) -> Vec<u8> {
        let last = &bytes[bytes.len().saturating_sub(KEPT)..];
        self.end.extend(last);
        let beyond = self.end.len().saturating_sub(KEPT);
        self.end.drain(..beyond);
        let mut out = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n' || byte == b'\r') {
            let whole = part.ends_with(b"\n") || part.ends_with(b"\r");
            let text = &part[..part.len() - usize::from(whole)];
            let room = LINE - self.line.len();
            self.line.extend(&text[..text.len().min(room)]);
            self.cut += text.len().saturating_sub(room) as u64;
            let ends = std::mem::replace(&mut self.returned, part.ends_with(b"\r"));
            // Both together end one line; a bar that shows progress becomes lines.
            if whole && !(ends && part == b"\n") {
                self.pass(now, &mut out);
            }
        }
        out
    }

    /// Nothing more comes: the rest of it.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.pass(now, &mut out);
        }
        self.say_what_is_left_out(&mut out);
        out
    }

    /// Passes a whole line on, or leaves it out.
    fn pass(&mut self, now: Instant, out: &mut Vec<u8>) {
        let line = MARK.to_owned() + &harmless(&std::mem::take(&mut self.line));
        let line = line.trim_end();
        let cut = std::mem::take(&mut self.cut);
        let since = now.saturating_duration_since(self.counted);
        // Whole bytes, and the time that they take: no part of a second is lost or counted twice.
        let more = since.as_nanos() * u128::from(RATE) / SECOND;
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let takes = (u128::from(more) * SECOND).div_ceil(u128::from(RATE));
        self.free = self.free.saturating_add(more).min(BURST);
        self.counted += Duration::from_nanos(takes as u64).min(since);
        let len = line.len() as u64 + 1;
        // After a flood not before there is room for more than what is said about it.
        let needed = match self.left_out.0 {
            0 => len,
            _ => RATE,
        };
        if self.over || needed > self.free {
            self.left_out.0 += 1;
            self.left_out.1 += len + cut;
            return;
        }
        let before = out.len();
        self.say_what_is_left_out(out);
        out.extend(line.bytes());
        if cut > 0 {
            out.extend(format!(" … ({cut} more bytes of this line are left out)").bytes());
        }
        out.push(b'\n');
        let passed = (out.len() - before) as u64;
        self.free = self.free.saturating_sub(passed);
        self.passed += passed;
        if self.passed >= MOST {
            self.over = true;
            let mib = MOST >> 20;
            out.extend(
                format!(
                    "rota: this learner has written {mib} MiB to its standard error; nothing more of \
                     it is shown\n"
                )
                .bytes(),
            );
        }
    }

    fn say_what_is_left_out(&mut self, out: &mut Vec<u8>) {
        let (lines, bytes) = std::mem::take(&mut self.left_out);
        if lines > 0 {
            out.extend(
                format!(
                    "rota: {lines} lines of the learner's standard error, {bytes} bytes, are left out: \
                     it writes more than {RATE} bytes a second\n"
                )
                .bytes(),
            );
        }
    }
}

/// The text of a line, with characters that would move the cursor, or turn the direction of writing, as escapes.
fn harmless(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for c in String::from_utf8_lossy(line).chars() {
        match c {
            '\t' => text.push(' '),
            ' '..='~' => text.push(c),
            // Behind a letter, a mark that combines with it stays.
            c => text.extend(format!("a{c}").escape_debug().skip(1)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn whole_lines_are_passed_on_and_marked() {
        let now = Instant::now();
        let mut said = ProgramStderr::new(now);
        let heard = |said: &mut ProgramStderr, bytes: &[u8]| text(said.hear(now, bytes));
        assert_eq!(heard(&mut said, b"Epoch 1\nEpo"), "learner: Epoch 1\n");
        assert_eq!(
            heard(&mut said, b"ch 2\n\n50 %\r"),
            "learner: Epoch 2\nlearner:\nlearner: 50 %\n"
        );
        assert_eq!(heard(&mut said, b"\n70 %\r\n"), "learner: 70 %\n");
        assert_eq!(heard(&mut said, b"the end"), "");
        assert_eq!(said.last_line().as_deref(), Some("the end"));
        assert_eq!(text(said.finish(now)), "learner: the end\n");
        assert_eq!(text(said.finish(now)), "");
    }

    #[test]
    fn no_line_looks_like_one_of_the_node_or_moves_the_cursor() {
        let now = Instant::now();
        for forged in [
            "2026-11-29T10:00:00Z  WARN the others have seen evidence\n",
            "x\rwarning: east is Byzantine\r\n",
            "x\n{\"event\": \"adopted\", \"round\": 3}\n",
            "\x1b[2K\x1b[1A\x1b]0;title\x07rota: all is well\n",
            "\u{9b}31mred\u{202e}desrever\u{2028}next\u{85}line\x0bdown\x0c\x08\x7f\n",
        ] {
            let mut said = ProgramStderr::new(now);
            let shown = text(said.hear(now, forged.as_bytes()));
            assert!(
                shown.lines().all(|line| line.starts_with("learner: ")),
                "{shown:?}"
            );
            let moves = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{2028}".contains(c));
            assert!(!shown.contains(moves), "{shown:?}");
            assert!(
                !said.last_line().unwrap().contains(moves),
                "{said:?}",
                said = said.last_line()
            );
        }
        // Bytes that are no text.
        let mut said = ProgramStderr::new(now);
        assert_eq!(
            text(said.hear(now, b"\xff\xfe\n")),
            "learner: \u{fffd}\u{fffd}\n"
        );
        assert_eq!(
            text(said.hear(now, "süß \"x\" \\ y\n".as_bytes())),
            "learner: süß \"x\" \\ y\n"
        );
    }

    #[test]
    fn long_lines_are_cut_and_the_rest_is_counted() {
        let now = Instant::now();
        let mut said = ProgramStderr::new(now);
        let long = [vec![b'x'; LINE + 7], b"\nnext\n".to_vec()].concat();
        let expected = format!(
            "learner: {} … (7 more bytes of this line are left out)\nlearner: next\n",
            "x".repeat(LINE)
        );
        assert_eq!(text(said.hear(now, &long)), expected);
        // A line without an end takes no memory.
        for _ in 0..100 {
            assert!(said.hear(now, &[b'y'; 100_000]).is_empty());
        }
        assert!(said.line.len() <= LINE && said.end.len() <= KEPT);
        assert!(text(said.finish(now)).contains("(9998976 more bytes of this line"));
    }

    #[test]
    fn a_flood_is_counted_not_shown_and_the_next_line_passed_on() {
        let mut now = Instant::now();
        let mut said = ProgramStderr::new(now);
        let line = [b'z'; 100];
        let mut passed = 0;
        for _ in 0..100_000 {
            let out = said.hear(now, &[&line[..], b"\n"].concat());
            passed += out.len();
        }
        let long = 101 + MARK.len();
        let lines = BURST as usize / long;
        assert_eq!(passed, lines * long);
        now += Duration::from_secs(1);
        let out = text(said.hear(now, b"well again\n"));
        let left = 100_000 - lines;
        let expected = format!(
            "rota: {left} lines of the learner's standard error, {} bytes, are left out: it writes \
             more than 4096 bytes a second\nlearner: well again\n",
            left * long
        );
        assert_eq!(out, expected);
        // The end says what is left out as well.
        said.hear(now, &[&line[..], b"\n"].concat().repeat(1_000));
        assert!(text(said.finish(now)).starts_with("rota: 9"));
    }

    #[test]
    fn the_rate_and_the_amount_are_bounded_over_any_time() {
        let began = Instant::now();
        let mut said = ProgramStderr::new(began);
        let mut passed = 0;
        let flood = b"0123456789012345678\n".repeat(50);
        // A thousand bytes every tenth of a second, for an hour.
        for tenth in 0..36_000 {
            let now = began + Duration::from_millis(100 * tenth);
            passed += said.hear(now, &flood).len() as u64;
        }
        let rate = BURST + RATE * 3_600;
        assert!(passed <= rate + 1_000, "{passed}");
        assert!(passed > rate / 2, "{passed}");
        let later = began + Duration::from_secs(100_000);
        let mut at = later;
        while !said.over {
            at += Duration::from_secs(60);
            said.hear(at, &flood.repeat(60));
        }
        assert!(said.passed <= MOST + 2 * LINE as u64);
        at += Duration::from_secs(60);
        assert!(said.hear(at, b"again\n").is_empty());
    }
}
