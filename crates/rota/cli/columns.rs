//! What a person knows of the columns of a table that nobody has described yet.

use clap::Args;

use task::propose::{RARE, Wishes};

use node::cli::NumberMarks;

/// Options about columns, of `rota init` and `rota federation new --table`.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Columns of the tables")]
pub(crate) struct Columns {
    /// Column to predict [default: the last]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target: Option<String>,
    /// Value of the target that counts as positive [default: "yes", "1" and the like, or the rarer]
    #[arg(long, value_name = "VALUE")]
    pub(crate) positive: Option<String>,
    /// Column that says whose a row is, such as the patient: all rows of one are trained on, or tested on
    /// [default: what looks so]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) group: Option<String>,
    /// Column to leave out; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) drop: Vec<String>,
    /// Column of numbers that looks like codes; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) number: Vec<String>,
    /// Column of codes that looks like numbers, or of names that are to be levels; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) category: Vec<String>,
    /// Fewest rows of a level that is listed, at least 5: rarer ones count as one level, `other`
    /// [default: 5]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(RARE as i64..))]
    pub(crate) rare: Option<u32>,
    /// Level that is listed however few rows have it, or rare class that others may read of; may be
    /// repeated
    #[arg(long, value_name = "COLUMN=LEVEL", value_parser = level)]
    pub(crate) keep: Vec<(String, String)>,
    /// Text that means a missing value, beside the usual ones; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) missing_mark: Vec<String>,
    /// Column in which values that look alike are the same, such as True and TRUE; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) same: Vec<String>,
    /// Column in which they are different; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) different: Vec<String>,
    /// What the files leave open.
    #[command(flatten)]
    pub(crate) marks: NumberMarks,
}

impl Columns {
    /// The options as wishes for a proposal.
    pub(crate) fn wishes(&self) -> Wishes {
        Wishes {
            target: self.target.clone(),
            positive: self.positive.clone(),
            group: self.group.clone(),
            drop: self.drop.clone(),
            numbers: self.number.clone(),
            categories: self.category.clone(),
            rare: self.rare.map(|rows| rows as usize),
            keep: self.keep.clone(),
            missing: self.missing_mark.clone(),
            marks: self.marks.into(),
            same: self.same.clone(),
            different: self.different.clone(),
            ..Wishes::default()
        }
    }
}

/// COLUMN=LEVEL; the level may contain further equals signs.
fn level(text: &str) -> Result<(String, String), String> {
    let (column, level) = text.split_once('=').ok_or("COLUMN=LEVEL is needed")?;
    Ok((column.to_owned(), level.to_owned()))
}
