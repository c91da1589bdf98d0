//! Files and decisions of an institution that joins, and its consent.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::federation::{Join, Joined, begins, keep_consent, own_rows, undeclared};
use crate::institution::{RowsFit, keep_profile};
use crate::split_key::{self, OwnSplitKey};
use agreement::{Agreement, Consent};
use protocol::MemberIndex;
use task::data::DataError;
use task::data::{OwnFile, OwnRows, SplitKey};
use task::propose::Marks;
use task::questions::RowsProfile;

use super::NodeCommandError;
use super::answered::{AnsweredRows, add_kept};
use super::counted::LedgerPlan;
use super::refused::say_refused;
use super::rows::{Doubts, say};
use crate::cli::{JoinFederation, config_in};
use crate::prompt::Prompt;

/// The institution's rows, read as an earlier `node.toml` in the folder says, if there is one.
pub(super) fn own_rows_of(options: &JoinFederation) -> Result<OwnRows, NodeCommandError> {
    let kept = rows_before(&options.out);
    if options.data.is_empty() && kept.is_none() {
        return Err(NodeCommandError::Usage(
            "--data FILE is missing: the file of this institution's rows, which stays where it is"
                .into(),
        ));
    }
    for address in &options.listen {
        mesh::check(address).map_err(|error| NodeCommandError::Usage(error.to_string()))?;
    }
    let mut rows = match kept {
        None => own_rows(&options.data, &options.ignore, options.marks.clone().into())?,
        Some(kept) => {
            say(&["The rows are read as [data.rows] of the node.toml that is there says.".into()])?;
            kept.with(&options.data, &options.ignore, options.marks.clone().into())?
        }
    };
    options.names.add_to(&mut rows.names);
    Ok(rows)
}

/// The agreement that an institution joins by, the text of its `federation.toml`, and its place.
pub(super) struct JoiningAgreement<'a> {
    /// The agreement that is signed.
    pub(super) agreement: &'a Agreement,
    /// The text of the first agreement.
    pub(super) text: &'a str,
    /// The institution's place in the agreement.
    pub(super) me: MemberIndex,
    /// True if the institution was a member before, with another key.
    pub(super) again: bool,
}

impl JoiningAgreement<'_> {
    /// Says what the rows of the institution are by the agreement, asks whether it consents, and writes
    /// its files. Nothing is signed. The inner error says that the rows do not fit.
    pub(super) fn prepare(
        &self,
        options: &JoinFederation,
        rows: &OwnRows,
    ) -> Result<(Joined, Result<RowsFit, DataError>), NodeCommandError> {
        let agreement = self.agreement;
        let name = agreement.epoch.roster.name(self.me);
        let secret = SigningSecret::of(agreement, &options.identity, self.again)?;
        let place = (Path::new(""), secret.key());
        let mut rows = rows.clone();
        add_kept(agreement, &options.keep, &mut rows)?;
        let mut ask = Prompt::at_terminal();
        let (name_here, doubts) = (Some(name), Doubts::Refuse);
        let AnsweredRows { rows, fits } =
            AnsweredRows::of(agreement, &rows, name_here, place, doubts, ask.as_mut())?;
        let ledger = LedgerPlan::of_new(&options.out, agreement, &options.counted, self.again)?;
        if !consents(options.yes, name)? {
            return Err(NodeCommandError::Failed(
                "nothing was signed, and nothing was written".into(),
            ));
        }
        // Nothing is signed if rows do not fit, and whoever signs later has the secret and the ledger made.
        let policy = match &ledger {
            LedgerPlan::Make { unnamed: true, .. } if fits.is_err() => {
                LedgerPlan::Keep.policy_in(&options.out)
            }
            ledger => ledger.policy_in(&options.out),
        };
        let joined = Join {
            agreement,
            text: self.text,
            me: self.me,
            identity: &options.identity,
            rows: &rows,
            policy,
            listen: options.listen.clone(),
            folder: &options.out,
            force: options.force,
        }
        .write()?;
        writeln!(
            io::stdout().lock(),
            "written: {} and {}",
            joined.federation.display(),
            joined.config.display()
        )?;
        if let Ok(fit) = &fits {
            secret.keep()?;
            keep_signed(&options.out.join("state"), &fit.profile)?;
            ledger.carry_out()?;
            let train = fit.split.train as u64;
            say_refused(
                &joined.config,
                (agreement, self.me),
                Some(train),
                Some(&rows.names),
            )?;
        }
        Ok((joined, fits))
    }
}

/// Checks that an institution should sign an agreement: one under which no federation can begin is refused, unless it
/// is `in_force` for the institution. A member that stays away from that would not mend it, so it is said only.
///
/// # Errors
/// The reason for which no federation can begin with it, or for which members could determine the model by the rows
/// that they claim.
pub(super) fn signable_where(
    agreement: &Agreement,
    in_force: bool,
) -> Result<(), NodeCommandError> {
    let why = begins(agreement).err().map(|fault| fault.to_string());
    match why.or_else(|| undeclared(agreement)) {
        Some(why) if in_force => {
            let lines = format!("warning: {why}");
            say(&lines.lines().map(str::to_owned).collect::<Vec<_>>())
        }
        Some(why) => Err(NodeCommandError::Failed(format!(
            "nothing was signed: {why}"
        ))),
        None => Ok(()),
    }
}

/// The secret by which an institution that signs holds out rows, where the agreement needs one.
pub(super) struct SigningSecret<'a> {
    identity: &'a Path,
    own: Option<OwnSplitKey>,
}

impl<'a> SigningSecret<'a> {
    /// That of the institution with this key file. Where there is none one is drawn, unless it `had` one.
    ///
    /// # Errors
    /// [`NodeCommandError::Failed`]: it cannot be read, or is lost.
    pub(super) fn of(
        agreement: &Agreement,
        identity: &'a Path,
        had: bool,
    ) -> Result<Self, NodeCommandError> {
        let own = split_key::is_needed(&agreement.task)
            .then(|| split_key::read_or_draw(identity, had))
            .transpose()
            .map_err(|why| NodeCommandError::Failed(format!("nothing was signed: {why}")))?;
        Ok(Self { identity, own })
    }

    pub(super) fn key(&self) -> Option<&SplitKey> {
        self.own.as_ref().map(|own| &own.key)
    }

    /// Writes it, if it was drawn, and says so.
    ///
    /// # Errors
    /// [`NodeCommandError::Failed`]: it cannot be written.
    pub(super) fn keep(&self) -> Result<(), NodeCommandError> {
        let Some(own) = self.own.as_ref().filter(|own| own.is_new) else {
            return Ok(());
        };
        split_key::write(self.identity, &own.key)
            .map_err(|why| NodeCommandError::Failed(format!("nothing was signed: {why}")))?;
        say(&[format!(
            "made: {}, the secret by which this institution holds out rows in all federations. If it had one \
             before, put that in its place; `rota backup` keeps it",
            split_key::beside(self.identity).display()
        )])
    }
}

/// Keeps how the rows are spread that are signed for, in the state folder of the institution alone.
pub(super) fn keep_signed(state: &Path, profile: &RowsProfile) -> Result<(), NodeCommandError> {
    let kept = keep_profile(state, profile);
    kept.map_err(|error| NodeCommandError::Failed(format!("nothing was signed: {error}")))
}

/// Keeps a consent and says where it is, and what is `next`.
pub(super) fn keep(consent: &Consent, file: &Path, next: &str) -> Result<(), NodeCommandError> {
    keep_consent(consent, file)?;
    Ok(writeln!(
        io::stdout().lock(),
        "signed as {} on {}: {}{next}",
        consent.name,
        consent.time(),
        file.display()
    )?)
}

/// That rows do not fit, and what to do.
pub(super) fn unfit(why: &DataError, config: &str, again: &str) -> NodeCommandError {
    NodeCommandError::Failed(format!(
        "{why}. Nothing was signed. Correct the file, or say in {config} how it is written (`format`) and \
         what its names and codes mean ([data.rows.names]); then, or if all is right as it is: {again}"
    ))
}

/// Returns how rows were read before, by the configuration of an earlier time in a folder, if there is one.
fn rows_before(folder: &Path) -> Option<FormerRows> {
    let text = agreement::read_configuration(&config_in(folder)).ok()?;
    let table: toml::Table = text.parse().ok()?;
    let rows: OwnRows = table.get("data")?.get("rows")?.clone().try_into().ok()?;
    let own = |file: &OwnFile| OwnFile::new(folder.join(file.path()), file.format().cloned());
    let files = rows.files.iter().map(own).collect();
    Some(FormerRows(OwnRows { files, ..rows }))
}

/// Rows as they were read before.
struct FormerRows(OwnRows);

impl FormerRows {
    /// Applies the former names, codes and format to `files`, where some are given, without the columns in
    /// `ignore`.
    fn with(
        mut self,
        files: &[PathBuf],
        ignore: &[String],
        marks: Marks,
    ) -> Result<OwnRows, NodeCommandError> {
        if !files.is_empty() {
            // Another file may be written in another way.
            let known = |file: &PathBuf| self.0.files.iter().any(|own| own.path() == file);
            if !files.iter().all(known) {
                let found = own_rows(files, &[], marks)?;
                (self.0.files, self.0.format) = (found.files, found.format);
            }
        }
        let known = &mut self.0.names.ignore;
        known.extend(
            ignore
                .iter()
                .filter(|name| !known.contains(name))
                .cloned()
                .collect::<Vec<_>>(),
        );
        Ok(self.0)
    }
}

/// Returns whether the institution consents: by `--yes`, or by an answer.
pub(super) fn consents(yes: bool, name: &str) -> Result<bool, NodeCommandError> {
    if yes {
        return Ok(true);
    }
    let mut ask = Prompt::at_terminal().ok_or_else(|| {
        NodeCommandError::Usage(format!(
            "nothing was signed: run this in a terminal to be asked, or add --yes to sign as {name}"
        ))
    })?;
    Ok(ask.says_yes(&format!("Sign this agreement as {name}?"))?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::North;

    #[test]
    fn an_unsignable_agreement_is_refused_by_newcomers_alone() {
        let noised = North::beginning(&North::noised("noise-multiplier = 20.0\nmin-authors = 3\n"));
        let dealt = noised.replacen(", keyed = true", "", 1);
        assert_ne!(noised, dealt);
        let large = "model = { mlp = { hidden = [100000, 215000] } }";
        let large = North::text(&[("model = { linear = { loss = \"absolute\" } }", large)]);
        let many = noised.replace("rows = 120", "rows = 40000");
        // Nobody declares rows, one does not, or a single model may weigh more than all others.
        let declared = North::text(&[]).replace("[[member]]\n", "[[member]]\nrows = 120\n");
        let one = declared.replacen("rows = 120\n", "", 1);
        let heavy = "max-weight = 0.51\nmax-model-norm = ";
        let heavy = North::text(&[("max-model-norm = ", heavy)]);
        for text in [dealt, many, large, North::text(&[]), one, heavy] {
            let agreement = North::read(&text);
            let said = signable_where(&agreement, false).unwrap_err().to_string();
            assert!(said.starts_with("nothing was signed: "), "{said}");
            signable_where(&agreement, true).unwrap();
        }
        let bounded = "max-weight = 0.5\nmax-model-norm = ";
        let bounded = North::text(&[("max-model-norm = ", bounded)]);
        for text in [&noised, &declared, &bounded] {
            signable_where(&North::read(text), false).unwrap();
        }
        let edited = North::read(&noised.replace("\"intensive\"]", "\"intensive\", \"icu\"]"));
        let said = signable_where(&edited, false).unwrap_err().to_string();
        assert!(said.contains("\nstart = \""), "{said}");
    }
}
