//! What one institution answers, after its own rules of disclosure.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agreement::Agreement;
use methods::learner::{Answers, LearnError};
use protocol::SecretKey;
use questions::disclosure::{AnswerRecord, AnswerRules};
use questions::table::RowTable;
use questions::{FederatedQuestion, QuestionProgress, Step};
use task::data::{Format, OwnRows, RowsFile};
use task::file;

use super::tables::{SiteFiles, numbers_of, of_files};

/// Name of the record of what was answered, beside the institution's key: it is of its rows, for all
/// federations.
pub(crate) const RECORD: &str = "answered.json";
/// Bytes of a secret.
const SECRET: usize = 32;
/// What the secret of pseudonyms is derived for.
const PSEUDONYMS: &str = "rota 2026-11-29 pseudonyms of institutions in questions";

/// The rows of an institution, and what it lets questions read.
pub(crate) struct SiteAnswers {
    questions: Vec<FederatedQuestion>,
    table: RowTable,
    rules: AnswerRules,
    record: PathBuf,
    /// Pseudonyms follow from it, so that nobody else can tell whose they are.
    secret: [u8; SECRET],
    /// Answers are counted one after the other.
    counting: Mutex<()>,
}

/// Why an institution cannot answer.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error("the record of answered questions {} cannot be read ({why}): put it back from a copy", path.display())]
    Read { path: PathBuf, why: String },
    #[error("the record of answered questions {} cannot be written: {why}", path.display())]
    Write { path: PathBuf, why: io::Error },
}

impl SiteAnswers {
    /// Reads all columns of an institution's rows, for the questions of an agreement. `key` is the institution's
    /// secret key, and `identity` the file of it.
    ///
    /// # Errors
    /// [`task::data::DataError`]: a file that cannot be read, or a cell that is no number where a question
    /// needs one.
    pub(crate) fn new(
        agreement: &Agreement,
        (rows, folder): (&OwnRows, &Path),
        rules: AnswerRules,
        (key, identity): (&SecretKey, &Path),
    ) -> Result<Self, task::data::DataError> {
        let asked = agreement.questions.iter();
        let questions: Vec<_> = asked.map(|agreed| agreed.question()).collect();
        let config = rows.of_silo("own", folder);
        let numbers = questions.iter().flat_map(numbers_of).collect();
        let (files, format): (&[RowsFile], &Format) = (&config.files, &config.format);
        let sites = SiteFiles {
            files,
            site_column: None,
            format,
        };
        let tables = of_files(sites, &numbers)?;
        let table = tables.into_iter().next();
        Ok(Self {
            questions,
            table: table.map_or_else(|| RowTable::new(0), |(_, table)| table),
            rules,
            record: identity.with_file_name(RECORD),
            secret: blake3::derive_key(PSEUDONYMS, &key.to_bytes()),
            counting: Mutex::new(()),
        })
    }

    fn read_record(&self) -> Result<AnswerRecord, RecordError> {
        let wrong = |why: String| RecordError::Read {
            path: self.record.clone(),
            why,
        };
        match file::read_text(&self.record, file::DATA) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(AnswerRecord::default()),
            Err(error) => Err(wrong(error.to_string())),
            Ok(text) => serde_json::from_str(&text).map_err(|error| wrong(error.to_string())),
        }
    }

    /// Keeps the record on the disk before anything that it counts leaves.
    fn write_record(&self, record: &AnswerRecord) -> Result<(), RecordError> {
        let write = || -> io::Result<()> {
            let text = serde_json::to_string(record)?;
            let fresh = self.record.with_extension("new");
            let mut file = fs::File::create(&fresh)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(fresh, &self.record)
        };
        write().map_err(|why| RecordError::Write {
            path: self.record.clone(),
            why,
        })
    }

    fn computed(
        &self,
        question: &FederatedQuestion,
        opened: &[Vec<u64>],
    ) -> Result<Vec<u64>, String> {
        let progress = match question.after(opened) {
            Ok(Step::Next(progress)) => progress,
            Ok(Step::Done(_) | Step::Stopped(_)) => return Err("the question is over".into()),
            Err(error) => return Err(error.to_string()),
        };
        let _counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = self.read_record().map_err(|error| error.to_string())?;
        let refused = |why: questions::SiteRefusal| format!("this institution {why}");
        record
            .check(question, &self.table, &self.rules)
            .map_err(refused)?;
        let before = opened.iter().map(|sum| sum.len() as u64).sum();
        record
            .check_round(question, &self.table, &self.rules, &progress, before)
            .map_err(refused)?;
        let words = encoded(question, &self.table, &progress).map_err(refused)?;
        record.begin(question, &self.table, before + words.len() as u64);
        self.write_record(&record)
            .map_err(|error| error.to_string())?;
        Ok(words)
    }
}

fn encoded(
    question: &FederatedQuestion,
    table: &RowTable,
    progress: &QuestionProgress,
) -> Result<Vec<u64>, questions::SiteRefusal> {
    let numbers = question.answer(table, progress)?;
    let layout = question.layout(progress);
    let layout = layout.map_err(|error| questions::SiteRefusal::Rows(error.to_string()))?;
    layout.encode(&numbers)
}

impl Answers for SiteAnswers {
    fn pseudonym(&self, question: usize) -> u64 {
        let mut hash = blake3::Hasher::new_keyed(&self.secret);
        hash.update(b"pseudonym of a question");
        hash.update(&(question as u64).to_le_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.finalize().as_bytes()[..8]);
        u64::from_le_bytes(first)
    }

    fn answer(&self, question: usize, opened: &[Vec<u64>]) -> Result<Vec<u64>, LearnError> {
        let asked = self.questions.get(question);
        let asked = asked.ok_or_else(|| LearnError::Failed("there is no such question".into()))?;
        self.computed(asked, opened).map_err(LearnError::Failed)
    }
}
