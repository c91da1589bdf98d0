//! The file of a question: what is asked, and the sites that play it.

use std::path::Path;

use agreement::TomlText;
use questions::disclosure::AnswerRules;
use questions::table::Condition;
use questions::{AgreedColumns, FederatedQuestion, Kind, QuestionMode, QuestionRules};
use serde::Deserialize;
use task::data::{Format, RowsFile};

use super::CommandError;

/// The sites that play a question in this process.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SitesTable {
    /// Files of rows. Without `site-column` each is a site.
    #[serde(default)]
    pub(super) files: Vec<RowsFile>,
    /// The column that names each row's site, if sites share files.
    pub(super) site_column: Option<String>,
    /// Format of the cells, in files without a format of their own.
    #[serde(default)]
    pub(super) format: Format,
    /// A scenario whose silos are the sites, instead of files: a built-in one, or a file.
    pub(super) scenario: Option<String>,
    /// Number of silos of the scenario.
    pub(super) silos: Option<usize>,
    /// Rules of each institution.
    #[serde(default)]
    pub(super) rules: AnswerRules,
}

/// A question and its sites.
#[derive(Debug)]
pub(super) struct QuestionFile {
    pub(super) question: FederatedQuestion,
    pub(super) sites: SitesTable,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RawQuestion {
    /// Reason of the question: for the nodes of a federation, whose institutions approve it.
    #[serde(default, rename = "reason")]
    _reason: Option<String>,
    #[serde(default)]
    filter: Vec<Condition>,
    #[serde(default)]
    mode: QuestionMode,
    #[serde(default)]
    exponent: i32,
    #[serde(default)]
    rules: QuestionRules,
    #[serde(default)]
    ranges: std::collections::BTreeMap<String, [f64; 2]>,
    #[serde(default)]
    levels: std::collections::BTreeMap<String, Vec<String>>,
    sites: SitesTable,
    /// The kind with its columns and options: all other keys.
    #[serde(flatten)]
    kind: Kind,
}

impl QuestionFile {
    /// Reads a question. Paths in it are relative to its folder.
    pub(super) fn read(path: &Path) -> Result<Self, CommandError> {
        let file = path.display().to_string();
        let text = task::file::read_text(path, task::file::CONFIGURATION)
            .map_err(|error| CommandError::usage(format!("cannot read {file}: {error}")))?;
        let mut read = Self::parse(&file, &text)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in &mut read.sites.files {
            file.path = folder.join(&file.path);
        }
        if let Some(scenario) = read
            .sites
            .scenario
            .as_mut()
            .filter(|name| name.ends_with(".toml"))
        {
            *scenario = folder.join(&*scenario).display().to_string();
        }
        Ok(read)
    }

    fn parse(file: &str, text: &str) -> Result<Self, CommandError> {
        let source = TomlText { file, text };
        let raw: RawQuestion = toml::from_str(text)
            .map_err(|error| CommandError::usage(source.toml(&error).to_string()))?;
        let sites = raw.sites;
        let both = sites.scenario.is_some() != sites.files.is_empty();
        if both {
            let what = "needs either `files`, one table a site, or a `scenario`";
            return Err(CommandError::usage(
                source.key_of("sites", what).to_string(),
            ));
        }
        let agreed = AgreedColumns {
            ranges: raw.ranges,
            levels: raw.levels,
        };
        let question = FederatedQuestion {
            filter: raw.filter,
            rules: raw.rules,
            mode: raw.mode,
            exponent: raw.exponent,
            ..FederatedQuestion::new(raw.kind, agreed)
        };
        let inputs = question.inputs();
        inputs.map_err(|error| CommandError::usage(format!("{file}: {error}")))?;
        Ok(Self { question, sites })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const WHOLE: &str = "kind = \"glm\"\nfamily = \"binomial\"\noutcome = \"ill = 1\"\nterms = [\"age\", \"sex = f\"]\nridge = 1\n\
                         filter = [\"age >= 18\"]\n[ranges]\nage = [0, 120]\n[sites]\nfiles = [{ path = \"a.csv\" }]\n";

    #[test]
    fn a_file_has_the_question_and_its_sites() {
        let read = QuestionFile::parse("q.toml", WHOLE).unwrap();
        assert_eq!(read.question.filter.len(), 1);
        assert_eq!(read.question.kind.name(), "glm");
        assert_eq!(read.sites.files.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |from: &str, to: &str| {
            QuestionFile::parse("q.toml", &WHOLE.replace(from, to))
                .unwrap_err()
                .to_string()
        };
        for (from, to, says) in [
            ("\"glm\"", "\"gml\"", "gml"),
            ("ridge = 1", "rigde = 1", "rigde"),
            ("age >= 18", "age>=18", "spaces"),
            ("age = [0, 120]", "", "[ranges]"),
            ("files = [{ path = \"a.csv\" }]", "", "scenario"),
            ("files =", "scenario = \"diabetes\"\nfiles =", "either"),
            ("[0, 120]", "[120, 0]", "least first"),
        ] {
            let text = wrong(from, to);
            assert!(text.starts_with("q.toml") && text.contains(says), "{text}");
        }
    }
}
