//! The command that the user typed, as pages repeat it.

use std::env;
use std::ffi::OsString;
use std::path::Path;

/// The command of this process as a shell takes it: program and arguments as they were typed. A path
/// inside the current folder is given from there, and values that look like secrets are not repeated.
pub fn typed() -> String {
    let here = env::current_dir().unwrap_or_default();
    of(env::args_os(), &here)
}

fn of(arguments: impl IntoIterator<Item = OsString>, here: &Path) -> String {
    let mut arguments = arguments.into_iter();
    let mut words = vec![program(arguments.next(), here)];
    for argument in arguments {
        let word = hidden(&relative(&argument.to_string_lossy(), here));
        words.push(quoted(&word));
    }
    words.join(" ")
}

/// The program, such as `target/release/rota` where that was typed; `rota` where the path would say
/// nothing elsewhere.
fn program(typed: Option<OsString>, here: &Path) -> String {
    let typed = typed.unwrap_or_default();
    let word = relative(&typed.to_string_lossy(), here);
    if word.is_empty() || Path::new(&word).is_absolute() {
        "rota".to_owned()
    } else {
        quoted(&word)
    }
}

/// A path inside the folder `here` as it is called there; any other word as it is.
fn relative(word: &str, here: &Path) -> String {
    let (option, path) = match word.split_once('=') {
        Some((option, path)) if option.starts_with("--") => (format!("{option}="), path),
        _ => (String::new(), word),
    };
    match Path::new(path).strip_prefix(here) {
        // Without a current folder nothing is inside of it.
        _ if here.as_os_str().is_empty() => word.to_owned(),
        Ok(below) if below.as_os_str().is_empty() => format!("{option}."),
        Ok(below) => option + &below.to_string_lossy(),
        Err(_) => word.to_owned(),
    }
}

/// The word without values that look like secrets: `token=…`, `--password …`, `//name:password@`.
/// The arguments of a program that trains models may hold some.
fn hidden(word: &str) -> String {
    const NAMES: [&str; 5] = ["token", "password", "passwd", "secret", "api-key"];
    const MARK: &str = "HIDDEN";
    let names_one = |name: &str| {
        let name = name.to_lowercase().replace('_', "-");
        NAMES.iter().any(|known| name.ends_with(known))
    };
    let mut next = false;
    let part = |part: &str| {
        if std::mem::take(&mut next) {
            return MARK.to_owned();
        }
        if let Some((name, value)) = part.split_once('=')
            && names_one(name)
            && !value.is_empty()
        {
            return format!("{name}={MARK}");
        }
        next = part.starts_with('-') && names_one(part);
        if let Some((before, rest)) = part.split_once("://")
            && let Some((user, host)) = rest.split_once('@')
            && let Some((name, _)) = user.split_once(':')
            && !user.contains('/')
        {
            return format!("{before}://{name}:{MARK}@{host}");
        }
        part.to_owned()
    };
    word.split(' ').map(part).collect::<Vec<_>>().join(" ")
}

/// A word that a shell takes as it is.
pub fn quoted(word: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || "-_./:,+@%".contains(c);
    // An equals sign at the start is an expansion in some shells.
    let equal = |(at, c): (usize, char)| at > 0 && c == '=';
    if !word.is_empty()
        && word
            .char_indices()
            .all(|(at, c)| harmless(c) || equal((at, c)))
    {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(arguments: &[&str]) -> String {
        called("rota", arguments)
    }

    fn called(program: &str, arguments: &[&str]) -> String {
        let words = std::iter::once(&program)
            .chain(arguments)
            .map(OsString::from);
        of(words, Path::new("/home/me/study"))
    }

    #[test]
    fn the_command_is_what_was_typed() {
        for (arguments, expected) in [
            (&["simulate"][..], "rota simulate"),
            (
                &[
                    "compare",
                    "heart",
                    "--strategies",
                    "local,fedavg",
                    "--seeds=3",
                    "-q",
                ],
                "rota compare heart --strategies local,fedavg --seeds=3 -q",
            ),
            (
                &[
                    "simulate",
                    "my runs/it's.toml",
                    "--learner",
                    "python3 a.py $X",
                ],
                r"rota simulate 'my runs/it'\''s.toml' --learner 'python3 a.py $X'",
            ),
            (
                &["simulate", "", "*", "a\nb", "=x"],
                "rota simulate '' '*' 'a\nb' '=x'",
            ),
        ] {
            assert_eq!(command(arguments), expected);
        }
    }

    #[test]
    fn the_program_is_what_was_typed_unless_it_is_elsewhere() {
        for (program, expected) in [
            ("rota", "rota simulate"),
            ("target/release/rota", "target/release/rota simulate"),
            ("/home/me/study/bin/rota", "bin/rota simulate"),
            ("/usr/local/bin/rota", "rota simulate"),
            ("", "rota simulate"),
        ] {
            assert_eq!(called(program, &["simulate"]), expected);
        }
    }

    #[test]
    fn a_path_inside_the_current_folder_is_given_from_there() {
        assert_eq!(
            command(&[
                "simulate",
                "/home/me/study/a b.toml",
                "--out=/home/me/study/out"
            ]),
            "rota simulate 'a b.toml' --out=out"
        );
        assert_eq!(
            command(&[
                "simulate",
                "--data",
                "/home/me/study",
                "--out",
                "/home/me/study2"
            ]),
            "rota simulate --data . --out /home/me/study2"
        );
    }

    #[test]
    fn secrets_are_not_repeated() {
        let said = command(&[
            "simulate",
            "--learner",
            "a.py --token s3cret API_KEY=s3cret --epochs 3",
        ]);
        assert_eq!(
            said,
            "rota simulate --learner 'a.py --token HIDDEN API_KEY=HIDDEN --epochs 3'"
        );
        let said = command(&[
            "simulate",
            "--learner",
            "a.py https://me:s3cret@example.org/x",
        ]);
        assert_eq!(
            said,
            "rota simulate --learner 'a.py https://me:HIDDEN@example.org/x'"
        );
    }
}
