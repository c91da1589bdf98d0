//! The Markdown files of the repository, and their links and citations.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders whose Markdown files are read: the book, and the measurements beside it.
const FOLDERS: [&str; 2] = ["docs/", "measurements/"];

/// A Markdown file.
pub(crate) struct Page {
    /// Path of the file from the repository's root.
    pub(crate) name: String,
    /// Text of the file.
    pub(crate) text: String,
}

impl Page {
    /// Returns whether the file is a page of the book.
    pub(crate) fn in_book(&self) -> bool {
        self.name.starts_with("docs/") && self.name != "docs/SUMMARY.md"
    }

    /// Fenced blocks of the page: language and text.
    pub(crate) fn fences(&self) -> Vec<(String, String)> {
        let mut blocks = Vec::new();
        let mut open: Option<(String, String)> = None;
        for line in self.text.lines() {
            match (line.strip_prefix("```"), &mut open) {
                (Some(language), None) => open = Some((language.trim().into(), String::new())),
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (None, Some((_, text))) => {
                    text.push_str(line);
                    text.push('\n');
                }
                (None, None) => {}
            }
        }
        blocks
    }

    /// The number of words outside fenced blocks: what stands between blanks and has a letter or digit.
    pub(crate) fn words(&self) -> usize {
        let word = |text: &&str| text.chars().any(char::is_alphanumeric);
        prose(&self.text).split_whitespace().filter(word).count()
    }

    /// The texts in backticks outside fenced blocks.
    pub(crate) fn code(&self) -> Vec<String> {
        let prose = prose(&self.text);
        let parts = prose.split('`').enumerate();
        let inside = parts.filter(|(at, _)| at % 2 == 1);
        inside.map(|(_, text)| text.to_owned()).collect()
    }
}

/// A text without its fenced blocks.
fn prose(text: &str) -> String {
    let mut inside = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if !inside {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files of the repository but those that are built, as paths from its root.
pub(crate) fn files() -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let from_root = path.strip_prefix(root()).unwrap().to_str().unwrap();
            if path.is_dir() {
                if !["target", ".git", "rota-report"].contains(&name.as_str())
                    && from_root != "data"
                {
                    folders.push(path);
                }
            } else {
                files.push(from_root.to_owned());
            }
        }
    }
    files.sort();
    files
}

/// The pages of the book and of measurements, and the Markdown files at the top of the repository.
pub(crate) fn pages() -> Vec<Page> {
    let names = files()
        .into_iter()
        .filter(|name| name.ends_with(".md"))
        .filter(|name| {
            !name.contains('/') || FOLDERS.iter().any(|folder| name.starts_with(folder))
        });
    names
        .map(|name| Page {
            text: fs::read_to_string(root().join(&name)).unwrap(),
            name,
        })
        .collect()
}

/// The relative links of a text.
pub(crate) fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1);
    targets
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .filter(|link| !link.contains("://") && !link.contains(' '))
        .collect()
}

/// The file that a link of a page names, as a path from the repository's root.
pub(crate) fn target(page: &Page, link: &str) -> PathBuf {
    let from = Path::new(&page.name);
    match link.split('#').next().unwrap_or_default() {
        "" => from.to_owned(),
        path => normal(&from.parent().unwrap().join(path)),
    }
}

/// Returns whether a link of a page leads somewhere.
pub(crate) fn resolve(page: &Page, link: &str) -> Result<(), String> {
    let target = target(page, link);
    let heading = link.split_once('#').map_or("", |(_, heading)| heading);
    if page.in_book() && !FOLDERS.iter().any(|folder| target.starts_with(folder)) {
        return Err("is neither a page of the book nor a measurement".into());
    }
    let whole = root().join(&target);
    if !whole.exists() {
        return Err("does not exist".into());
    }
    if heading.is_empty() {
        return Ok(());
    }
    let text = fs::read_to_string(whole).map_err(|error| error.to_string())?;
    if headings(&text).contains(heading) {
        Ok(())
    } else {
        Err(format!("{} has no such heading", target.display()))
    }
}

/// `a/b/../c` as `a/c`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The anchors of a text's headings, as GitHub and mdBook make them.
fn headings(text: &str) -> BTreeSet<String> {
    let prose = prose(text);
    let titles = prose.lines().filter(|line| line.starts_with('#'));
    titles
        .map(|title| {
            let title = title.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Files that a page names: with a folder, or with the ending of a source file.
pub(crate) fn cited_files(page: &Page) -> Vec<String> {
    const SOURCES: [&str; 4] = [".rs", ".py", ".css", ".toml"];
    // Files that a reader writes, and files of other projects.
    const OTHERS: [&str; 8] = [
        "node.toml",
        "federation.toml",
        "my-scenario.toml",
        "my.toml",
        "identity.key",
        "Cargo.toml",
        "../federation.toml",
        "s.toml",
    ];
    let path = |text: &String| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-{},*".contains(c))
    };
    let source = |text: &String| SOURCES.iter().any(|end| text.ends_with(end));
    let cited = page.code().into_iter().filter(path).filter(source);
    cited
        .flat_map(|text| expanded(&text))
        .filter(|text| !text.contains('*') && !OTHERS.contains(&text.as_str()))
        .collect()
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expanded(text: &str) -> Vec<String> {
    let Some((head, rest)) = text.split_once('{') else {
        return vec![text.to_owned()];
    };
    let Some((middle, tail)) = rest.split_once('}') else {
        return vec![text.to_owned()];
    };
    let parts = middle.split(',');
    parts
        .map(|part| format!("{head}{}{tail}", part.trim()))
        .collect()
}

/// Functions that a page names.
pub(crate) fn cited_functions(page: &Page) -> Vec<String> {
    let word = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let name = |text: &str| text.matches('_').count() >= 3 && word(text);
    let last = |text: String| text.rsplit("::").next().unwrap_or_default().to_owned();
    let all = page.code().into_iter().map(last);
    all.filter(|text| name(text)).collect()
}

/// The names of all functions in files of Rust and Python.
pub(crate) fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files() {
        let word = match file.rsplit_once('.') {
            Some((_, "rs")) => "fn ",
            Some((_, "py")) => "def ",
            _ => continue,
        };
        let text = fs::read_to_string(root().join(&file)).unwrap();
        for rest in text.split(word).skip(1) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            names.insert(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    names
}

/// Files that a page shows whole: the block's first line is `# PATH` of a file in `examples`.
pub(crate) fn shown_files(page: &Page) -> Vec<(String, String)> {
    let blocks = page.fences().into_iter();
    blocks
        .filter_map(|(_, text)| {
            let (first, rest) = text.split_once('\n')?;
            let file = first.strip_prefix("# ")?;
            let is_file = file.starts_with("examples/") && !file.contains(' ');
            is_file.then(|| (file.to_owned(), rest.to_owned()))
        })
        .collect()
}
