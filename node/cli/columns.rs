//! What a person knows of the columns of a table that nobody has described yet.

use clap::Args;

use task::propose::{RARE, Wishes};

use super::NumberMarks;

/// Options about columns, of `rota init` and `rota federation new --table`.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Columns of the tables")]
pub struct Columns {
    /// Column to predict [default: the last]
    #[arg(long, value_name = "COLUMN")]
    pub target: Option<String>,
    /// Positive value of the target [default: "yes", "1" and the like, or the rarer]
    #[arg(long, value_name = "VALUE")]
    pub positive: Option<String>,
    /// Column that identifies the person or unit of a row, such as the patient, whose rows are all trained on
    /// or all tested on [default: what looks like one]
    #[arg(long, value_name = "COLUMN")]
    pub group: Option<String>,
    /// Column to leave out; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub drop: Vec<String>,
    /// Column of numbers that looks like codes; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub number: Vec<String>,
    /// Column of codes that looks like numbers, or of names that become levels; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub category: Vec<String>,
    /// Fewest rows of a listed level, at least 5; rarer levels are merged into `other` [default: 5]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(RARE as i64..))]
    pub rare: Option<u32>,
    /// Level that is listed however few rows have it, rare class that others may see, or number that looks as if it
    /// stood for a missing value and was measured; may be repeated
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = level)]
    pub keep: Vec<(String, String)>,
    /// Text for a missing value, beside the usual ones, in all columns or in one; may be repeated
    #[arg(long, value_name = "[COLUMN=]TEXT", allow_hyphen_values = true)]
    pub missing_mark: Vec<String>,
    /// Column in which similar values, such as True and TRUE, are merged; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub same: Vec<String>,
    /// Column in which similar values stay different; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub different: Vec<String>,
    /// What the files leave open.
    #[command(flatten)]
    pub marks: NumberMarks,
}

impl Columns {
    /// The options as wishes for a proposal.
    pub fn wishes(&self) -> Wishes {
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
            marks: self.marks.clone().into(),
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
