//! The modules of a crate and which of them name which, read from the text of its source files.
//!
//! Only what a module circle can be made of is read: `use` declarations, and paths that begin with
//! `crate`, `super`, `self` or an imported name. A name counts for the module that defines it, not
//! for one that re-exports it. Test modules are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module of a crate, as the segments of its path below the crate's root.
pub(crate) type Module = Vec<String>;

/// Every module of a crate with the modules that it names.
pub(crate) type ModuleGraph = BTreeMap<Module, BTreeSet<Module>>;

/// Source of one module, as far as it was read.
#[derive(Default)]
struct ModuleSource {
    /// Paths that it names, from `use` declarations and from code.
    paths: Vec<Vec<String>>,
    /// Paths that it imports, by the name they get; `*` for globs.
    imports: Vec<(String, Vec<String>)>,
    /// Imported paths that the module re-exports.
    exports: Vec<(String, Vec<String>)>,
    /// Names that it defines.
    defines: BTreeSet<String>,
}

/// The modules of the crate whose root lies in `folder`, and what each of them names.
pub(crate) fn read(folder: &Path) -> ModuleGraph {
    let mut sources = BTreeMap::new();
    collect(folder, &mut Vec::new(), &mut |module, text| {
        let source = sources.entry(module).or_insert_with(ModuleSource::default);
        scan(&tokens(text), source);
    });
    graph(&sources)
}

/// The modules of files that are given as pairs of module and text, for tests.
pub(crate) fn parse(files: &[(&str, &str)]) -> ModuleGraph {
    let mut sources = BTreeMap::new();
    for (module, text) in files {
        let module: Module = module.split("::").map(str::to_owned).collect();
        let module = if module == ["crate"] {
            Module::new()
        } else {
            module
        };
        scan(
            &tokens(text),
            sources.entry(module).or_insert_with(ModuleSource::default),
        );
    }
    graph(&sources)
}

/// Calls `found` with every module below `folder` and its text.
fn collect(folder: &Path, module: &mut Module, found: &mut dyn FnMut(Module, &str)) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    paths.sort();
    for path in paths {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if stem == "tests" || stem == "bin" {
            continue;
        }
        if path.is_dir() {
            module.push(stem);
            collect(&path, module, found);
            module.pop();
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source file is text");
            let mut own = module.clone();
            // `lib.rs` and `main.rs` of one folder are read as one root.
            let root = module.is_empty() && (stem == "lib" || stem == "main");
            if stem != "mod" && !root {
                own.push(stem);
            }
            found(own, &text);
        }
    }
}

/// Words, `::`, and single signs of a source text, without comments, strings and lifetimes.
fn tokens(text: &str) -> Vec<String> {
    let signs: Vec<char> = text.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    let next = |at: usize| signs.get(at).copied().unwrap_or('\0');
    while at < signs.len() {
        match signs[at] {
            '/' if next(at + 1) == '/' => {
                while at < signs.len() && signs[at] != '\n' {
                    at += 1;
                }
            }
            '/' if next(at + 1) == '*' => {
                at += 2;
                while at < signs.len() && !(signs[at] == '*' && next(at + 1) == '/') {
                    at += 1;
                }
                at += 2;
            }
            'r' if raw_hashes(&signs, at).is_some() => {
                let hashes = raw_hashes(&signs, at).unwrap_or(0);
                at += hashes + 2;
                let ends =
                    |at: usize| signs[at] == '"' && (1..=hashes).all(|hash| next(at + hash) == '#');
                while at < signs.len() && !ends(at) {
                    at += 1;
                }
                at += hashes + 1;
            }
            '"' => {
                at += 1;
                while at < signs.len() && signs[at] != '"' {
                    at += 1 + usize::from(signs[at] == '\\');
                }
                at += 1;
            }
            '\'' if next(at + 1) == '\\' => {
                at += 3;
                while at < signs.len() && signs[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if next(at + 2) == '\'' => at += 3,
            sign if sign.is_alphanumeric() || sign == '_' => {
                let from = at;
                while next(at).is_alphanumeric() || next(at) == '_' {
                    at += 1;
                }
                tokens.push(signs[from..at].iter().collect());
            }
            ':' if next(at + 1) == ':' => {
                tokens.push("::".into());
                at += 2;
            }
            sign => {
                if !sign.is_whitespace() {
                    tokens.push(sign.into());
                }
                at += 1;
            }
        }
    }
    tokens
}

/// Returns how many `#` a raw string has that begins here, if one does.
fn raw_hashes(signs: &[char], at: usize) -> Option<usize> {
    let within_word =
        at > 0 && (signs[at - 1].is_alphanumeric() && signs[at - 1] != 'b' || signs[at - 1] == '_');
    let hashes = signs[at + 1..]
        .iter()
        .take_while(|sign| **sign == '#')
        .count();
    (!within_word && signs.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// Words that are followed by the name of what they define.
const DEFINING: [&str; 9] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "const",
    "static",
    "union",
    "macro_rules",
];

/// Reads the tokens of one file.
fn scan(tokens: &[String], source: &mut ModuleSource) {
    let word = |at: usize| tokens.get(at).map_or("", String::as_str);
    let mut at = 0;
    while at < tokens.len() {
        match word(at) {
            "#" if (1..7)
                .map(|next| word(at + next))
                .eq(["[", "cfg", "(", "test", ")", "]"]) =>
            {
                at = after_item(tokens, at + 7);
            }
            // Not the `use<..>` of a returned `impl Trait`.
            "use" if word(at + 1) != "<" => {
                let exported = at > 0 && (word(at - 1) == "pub" || word(at - 1) == ")");
                let mut paths = Vec::new();
                at = use_tree(tokens, at + 1, &[], &mut paths);
                for (name, path) in paths {
                    if exported {
                        source.exports.push((name.clone(), path.clone()));
                    }
                    source.imports.push((name, path));
                }
            }
            first if is_word(first) && word(at + 1) == "::" => {
                // In `pub(in crate::a)`, and after `::`, no path begins.
                let begins = !["in", "::"].contains(&word(at.wrapping_sub(1)));
                let mut path = vec![first.to_owned()];
                while word(at + 1) == "::" && is_word(word(at + 2)) {
                    path.push(word(at + 2).to_owned());
                    at += 2;
                }
                source.paths.extend(begins.then_some(path));
                at += 1;
            }
            defining if DEFINING.contains(&defining) => {
                let name = at + 1 + usize::from(word(at + 1) == "!");
                source.defines.insert(word(name).to_owned());
                at += 1;
            }
            _ => at += 1,
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|sign: char| sign.is_alphabetic() || sign == '_')
}

/// The place after the item that begins here: after its `;`, or the end of its braces.
fn after_item(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
        if depth == 0 && tokens[at - 1] == "}" {
            break;
        }
    }
    at
}

/// Reads a tree of `use` below `prefix`; the place after it comes back.
fn use_tree(
    tokens: &[String],
    mut at: usize,
    prefix: &[String],
    paths: &mut Vec<(String, Vec<String>)>,
) -> usize {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.as_str() {
            "::" => {}
            "{" => {
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = use_tree(tokens, at, &path, paths);
                    if tokens.get(at).is_some_and(|token| token == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                let name = tokens.get(at).cloned().unwrap_or_default();
                paths.push((name, path));
                return at + 1;
            }
            ";" | "," | "}" => {
                at -= 1;
                break;
            }
            // `self` in braces is what stands before them.
            "self" if !path.is_empty() => {}
            _ => path.push(token.clone()),
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    paths.push((name, path));
    at
}

/// Returns who names whom, every name resolved to the module that defines it.
fn graph(sources: &BTreeMap<Module, ModuleSource>) -> ModuleGraph {
    let named = |(module, source): (&Module, &ModuleSource)| {
        let imports = || source.imports.iter();
        let imported = |path: &Vec<String>| {
            let (_, import) = imports().find(|(name, _)| *name == path[0])?;
            Some([import, &path[1..]].concat())
        };
        let paths = source.paths.iter();
        let paths = paths.map(|path| imported(path).unwrap_or_else(|| path.clone()));
        let targets: BTreeSet<_> = imports()
            .map(|(_, path)| path.clone())
            .chain(paths)
            .filter_map(|path| resolve(sources, module, &path, 0))
            .filter(|target| target != module)
            .collect();
        (module.clone(), targets)
    };
    sources.iter().map(named).collect()
}

/// The module that a path leads to from `module`; none if it leaves the crate.
fn resolve(
    sources: &BTreeMap<Module, ModuleSource>,
    module: &[String],
    path: &[String],
    depth: usize,
) -> Option<Module> {
    let child = |module: &[String], name: &String| {
        let mut child = module.to_vec();
        child.push(name.clone());
        sources.contains_key(&child).then_some(child)
    };
    let mut here = module.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            here.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|first| first == "super") {
                here.pop()?;
                rest = &rest[1..];
            }
        }
        _ => {
            child(module, &path[0])?;
        }
    }
    // Re-exports that lead to each other in a loop do not compile; eight are more than there are.
    while let Some((name, after)) = rest.split_first().filter(|_| depth < 8) {
        if let Some(child) = child(&here, name) {
            (here, rest) = (child, after);
            continue;
        }
        let Some(source) = sources.get(&here) else {
            break;
        };
        let exports = || source.exports.iter();
        if let Some((_, path)) = exports().find(|(export, _)| export == name) {
            return resolve(sources, &here, path, depth + 1).or(Some(here));
        }
        let globs = exports().filter(|(export, _)| export == "*");
        let defining = globs.filter_map(|(_, path)| resolve(sources, &here, path, depth + 1));
        let defines = |module: &Module| {
            let source = sources.get(module);
            source.is_some_and(|source| source.defines.contains(name))
        };
        return Some({ defining }.find(defines).unwrap_or(here));
    }
    Some(here)
}
