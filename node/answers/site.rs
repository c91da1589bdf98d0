//! Answers of one institution, after its own rules of disclosure.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agreement::{Agreement, summed_with};
use methods::learner::{Answers, LearnError, OpenedSums, OwnAnswer};
use protocol::SecretKey;
use questions::disclosure::{AnswerRecord, AnswerRules, OpenedBefore};
use questions::table::RowTable;
use questions::{
    FederatedQuestion, QuestionProgress, QuestionReplay, RefusalRule, SiteRefusal, Step,
};
use silo::rounds::authors_pseudonym;
use task::data::{Format, OwnRows, RowsFile};

use super::pseudonyms::Pseudonyms;
use super::tables::{SiteFiles, numbers_of, of_files};
use crate::paths::folder_of;
use crate::store::{self, StoreOpenError};

/// Name of the record of what was answered, beside the institution's key: it is of its rows, for all
/// federations.
pub(crate) const RECORD: &str = "answered.json";

/// The rows of an institution, and what it lets questions read.
pub(crate) struct SiteAnswers {
    questions: Vec<QuestionReplay>,
    table: RowTable,
    rules: AnswerRules,
    /// The folder of the institution's key, which has the record.
    beside: PathBuf,
    pseudonyms: Pseudonyms,
    /// The pseudonym of the group whose sums it is in; none where there are no groups.
    group: Option<u64>,
    /// Answers are counted one after the other.
    counting: Mutex<()>,
}

/// Reason for which an institution cannot answer.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    /// An error of the file system.
    #[error("the record of answered questions: {0}")]
    File(#[from] StoreOpenError),
    /// The file is another one.
    #[error(
        "{} is no record of answered questions ({_1}): put it back from the backup", _0.display()
    )]
    Form(PathBuf, serde_json::Error),
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
        let privacy = &agreement.epoch.protocol.privacy;
        let questions: Vec<_> = asked.map(|agreed| agreed.question(privacy)).collect();
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
            questions: questions.into_iter().map(QuestionReplay::new).collect(),
            table: table.map_or_else(|| RowTable::new(0), |(_, table)| table),
            rules,
            beside: folder_of(identity).to_owned(),
            pseudonyms: Pseudonyms::of(key),
            group: own_group(agreement, key),
            counting: Mutex::new(()),
        })
    }

    fn read_record(&self) -> Result<AnswerRecord, RecordError> {
        let bytes = store::kept_file(&self.beside, RECORD)?;
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes);
        let found = bytes.map(read).transpose();
        let found = found.map_err(|why| RecordError::Form(self.beside.join(RECORD), why))?;
        Ok(found.unwrap_or_default())
    }

    /// Keeps the record on the disk before anything that it counts leaves.
    fn write_record(&self, record: &AnswerRecord) -> Result<(), RecordError> {
        let bytes = serde_json::to_vec(record);
        let bytes = bytes.map_err(|why| RecordError::Form(self.beside.join(RECORD), why))?;
        Ok(store::keep_file(&self.beside, RECORD, &bytes)?)
    }

    fn computed(&self, asked: &QuestionReplay, of: OpenedSums<'_>) -> Result<OwnAnswer, String> {
        let opened = of.sums;
        let progress = match asked.after(opened) {
            Ok(Step::Next(progress)) => progress,
            Ok(Step::Done(_) | Step::Stopped(_)) => return Err("the question is over".into()),
            Err(error) => return Err(error.to_string()),
        };
        let _counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = self.read_record().map_err(|error| error.to_string())?;
        let numbers = opened.iter().map(|sum| sum.len() as u64).sum();
        let own = of.groups.iter().find(|(by, _)| Some(*by) == self.group);
        if own.is_none() && !of.groups.is_empty() {
            // Its group is in none of the sums, and would open numbers for nothing.
            return Ok(OwnAnswer::Refused(RefusalRule::Numbers.number()));
        }
        let group = own.map(|(_, sum)| asked.question().counts_of(sum));
        let before = OpenedBefore {
            numbers,
            group: group.transpose().map_err(|error| error.to_string())?,
        };
        match self.allowed(&record, asked.question(), (&progress, before)) {
            Ok(words) => {
                record.begin(asked.question(), &self.table, numbers + words.len() as u64);
                let written = self.write_record(&record);
                written.map_err(|error| error.to_string())?;
                Ok(OwnAnswer::Numbers(words))
            }
            Err(why) => {
                let rule = RefusalRule::of(&why);
                tracing::warn!(%rule, "this institution {why}: the others learn the rule, and no more");
                Ok(OwnAnswer::Refused(rule.number()))
            }
        }
    }

    /// Gives `each` the numbers of every row. Only rules that do not depend on rows can refuse them: noise hides rows,
    /// and would not hide a refusal.
    fn by_rows(
        &self,
        asked: &QuestionReplay,
        opened: &[Vec<u64>],
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), String> {
        let Ok(Step::Next(progress)) = asked.after(opened) else {
            return Err("the question is over".into());
        };
        let question = asked.question();
        let refused = |why: SiteRefusal| format!("this institution {why}");
        let _counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record = self.read_record().map_err(|error| error.to_string())?;
        let allowed = record.check(question, &self.table, &self.rules);
        allowed.map_err(refused)?;
        let layout = question
            .layout(&progress)
            .map_err(|error| error.to_string())?;
        let before: u64 = opened.iter().map(|sum| sum.len() as u64).sum();
        record.begin(question, &self.table, before + layout.len() as u64);
        self.write_record(&record)
            .map_err(|error| error.to_string())?;
        let given = question.row_numbers(&self.table, &progress, each);
        given.map_err(refused)
    }

    /// The numbers of a round, if the rules let them leave.
    fn allowed(
        &self,
        record: &AnswerRecord,
        question: &FederatedQuestion,
        (progress, before): (&QuestionProgress, OpenedBefore),
    ) -> Result<Vec<u64>, SiteRefusal> {
        record.check(question, &self.table, &self.rules)?;
        record.check_round(question, &self.table, &self.rules, progress, before)?;
        let numbers = question.answer(&self.table, progress)?;
        let layout = question.layout(progress);
        let layout = layout.map_err(|error| SiteRefusal::Rows(error.to_string()))?;
        layout.encode(&numbers)
    }
}

/// The pseudonym of the group that an institution with this key is in.
fn own_group(agreement: &Agreement, key: &SecretKey) -> Option<u64> {
    let names = summed_with(&agreement.epoch, &key.public());
    (!names.is_empty()).then(|| authors_pseudonym(names.into_iter()))
}

impl Answers for SiteAnswers {
    fn pseudonym(&self, question: usize) -> u64 {
        self.pseudonyms.in_question(question)
    }

    fn answer(&self, question: usize, opened: OpenedSums<'_>) -> Result<OwnAnswer, LearnError> {
        let asked = self.questions.get(question);
        let asked = asked.ok_or_else(|| LearnError::Failed("there is no such question".into()))?;
        self.computed(asked, opened).map_err(LearnError::Failed)
    }

    fn row_answers(
        &self,
        question: usize,
        opened: &[Vec<u64>],
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), LearnError> {
        let asked = self.questions.get(question);
        let asked = asked.ok_or_else(|| LearnError::Failed("there is no such question".into()))?;
        self.by_rows(asked, opened, each)
            .map_err(LearnError::Failed)
    }
}
