//! `rota recover`: goes on without members that are gone for good, where no quorum is left; or does a masked
//! round again whose outcome no quorum certifies.

use std::io::{self, BufWriter, Write};

use crate::federation::told;
use crate::institution::{Institution, WishFile, present, protocol_records};
use crate::store;
use protocol::effects::Record;
use protocol::recovery::remaining;
use protocol::{Epoch, MemberIndex};

use super::amend::agreed;
use super::{NodeCommandError, wrapped};
use crate::cli::Recover;

/// Shows what it means, asks, and leaves the wish beside the journal, where the node finds it.
pub(crate) fn recover(options: &Recover) -> Result<(), NodeCommandError> {
    let institution = present(&options.here.node.file()?)?;
    let epoch = &institution.agreement.epoch;
    let usage = |why: String| NodeCommandError::Usage(why);
    if let Some(round) = options.give_up {
        return give_up(options, &institution, round);
    }
    let mut names = options.lost.clone();
    names.sort();
    names.dedup();
    // Whether the agreement can go on with so few, before anything is signed.
    let rest = institution.agreement.without_all(&names);
    rest.map_err(|why| usage(why.to_string()))?;
    let silos = epoch.roster.silos();
    let members = epoch.roster.members();
    let lost: Vec<MemberIndex> = members
        .filter(|member| names.contains(&silos[member.at()].name))
        .collect();
    if lost.contains(&institution.me) {
        let why = "an institution cannot declare itself lost; `rota federation leave` leaves";
        return Err(usage(why.into()));
    }
    let rest = remaining(epoch, &lost).map_err(|why| usage(why.to_string()))?;
    let newest = newest(&institution.state, epoch)?;
    explain(epoch, (&rest, &lost), newest)?;
    if options.abandon {
        let mut out = io::stdout().lock();
        let text = "--abandon: this node revokes what it has confirmed. If a member whose confirmation it lacks is \
                    not gone, that member may have continued, and there are two federations.";
        writeln!(out, "{}", wrapped(text))?;
    }
    if !agreed(&options.here, "Sign it")? {
        return Ok(());
    }
    WishFile::of(&institution.state, epoch).ask(&names, options.abandon)?;
    let mut out = io::stdout().lock();
    let next = next(rest.len(), &names);
    let me = epoch.roster.name(institution.me);
    writeln!(
        out,
        "{}",
        wrapped(&format!(
            "{me} continues without {}. {next}",
            said(epoch, &lost)
        ))
    )?;
    Ok(())
}

/// Shows what giving a round up means, asks, and leaves the wish beside the journal.
fn give_up(
    options: &Recover,
    institution: &Institution,
    round: u64,
) -> Result<(), NodeCommandError> {
    let epoch = &institution.agreement.epoch;
    let failed = |why: String| NodeCommandError::Failed(why);
    let all = remaining(epoch, &[]);
    let all = all.map_err(|_| {
        let why = "only a secure-aggregation round (secure aggregation) can be given up";
        NodeCommandError::Usage(why.into())
    })?;
    let (newest, view) = newest(&institution.state, epoch)?;
    if newest != round {
        return Err(failed(format!(
            "only the last final round can be given up, which is round {newest} (view {view}) as far as this node \
             knows"
        )));
    }
    let text = format!(
        "{}: round {round} is final, but its sums are not opened, or their outcome is not certified. `rota status` \
         shows who is missing: the round completes as soon as enough running members compute the same. Give it up \
         only if that will not happen, because vectors were lost on too many disks or machines compute different \
         outcomes. All {} members have to sign ({}); if one of them has the outcome, it signs too, and then all \
         continue from it. Otherwise the round is repeated in a new membership epoch, with new masks{}. Once it \
         has signed, this node does nothing more in the present epoch, and that cannot be undone; if a member is \
         gone that would have to sign, name it with `rota recover --lost`.",
        epoch.protocol.name,
        all.len(),
        said(epoch, &all),
        told(&epoch.protocol.privacy).made_anew()
    );
    writeln!(io::stdout().lock(), "{}", wrapped(&text))?;
    if !agreed(&options.here, "Sign it")? {
        return Ok(());
    }
    WishFile::of(&institution.state, epoch).give_up(round)?;
    let me = epoch.roster.name(institution.me);
    let text = format!(
        "{me} gives up round {round}. Its node signs after the agreed `straggler-timeout`, unless the outcome is certified \
         before. The others sign with `rota recover --abort-round {round}`."
    );
    Ok(writeln!(io::stdout().lock(), "{}", wrapped(&text))?)
}

/// The names of members, for people.
fn said(epoch: &Epoch, members: &[MemberIndex]) -> String {
    let names: Vec<_> = members
        .iter()
        .map(|member| epoch.roster.name(*member))
        .collect();
    names.join(", ")
}

/// Prints what a recovery means, before it is signed: who goes on, from which round, and what can go
/// wrong.
fn explain(
    epoch: &Epoch,
    (rest, lost): (&[MemberIndex], &[MemberIndex]),
    (round, view): (u64, u64),
) -> Result<(), NodeCommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let line = |out: &mut BufWriter<_>, text: &str| writeln!(out, "{}", wrapped(text));
    line(
        &mut out,
        &format!(
            "{}: continue with {} of {} members ({}), without {}",
            epoch.protocol.name,
            rest.len(),
            epoch.roster.len(),
            said(epoch, rest),
            said(epoch, lost)
        ),
    )?;
    line(
        &mut out,
        &format!(
            "The last final round that this node knows is {round} of {} (view {view}). The remaining members \
             compare theirs and continue from the newest round that one of them has adopted.",
            epoch.protocol.rounds
        ),
    )?;
    line(
        &mut out,
        "What can be lost: a round that became final and that only lost members have. What can go wrong: if the \
         lost members are not gone and are enough for a quorum, they continue as well, and the federation is split \
         in two for good. Nothing protects against a member that lies here. Call the others, the lost ones too, \
         before you sign.",
    )?;
    line(
        &mut out,
        "All remaining members have to sign the same. Once it has signed, this node does nothing more in the \
         present membership epoch, and that cannot be undone. To correct wrong names, run this command again with \
         the right ones, also while the node runs: the last one counts, until all have signed the same and their \
         nodes have confirmed it.",
    )?;
    if rest.len() >= epoch.roster.quorum() {
        line(
            &mut out,
            "note: the remaining members are a quorum. If they all take part, `rota federation evict` does this \
             without these risks; use a recovery only if one of them just listens, because it lost its journal.",
        )?;
    }
    Ok(out.flush()?)
}

/// Returns what the other members and the node do next, where so many members remain.
fn next(rest: usize, lost: &[String]) -> String {
    match rest {
        1 => "Its node continues alone as soon as it runs; `rota federation admit` admits others again."
            .to_owned(),
        _ => {
            let lost: String = lost.iter().map(|name| format!(" --lost {name}")).collect();
            format!(
                "Its node signs at once if it runs, otherwise when it starts. The other remaining members sign \
                 with `rota recover{lost}`; when all have, their nodes confirm it to each other and continue."
            )
        }
    }
}

/// The last final round in the journal, and the view of the last final block of the epoch.
fn newest(state: &std::path::Path, epoch: &Epoch) -> Result<(u64, u64), NodeCommandError> {
    let (mut round, mut view) = (epoch.began.round, 0);
    if !store::has_journal(state) {
        return Ok((round, view));
    }
    let records =
        store::snapshot(state).map_err(|why| NodeCommandError::Failed(why.to_string()))?;
    for record in protocol_records(records.records) {
        let Record::Final { blocks, .. } = record else {
            continue;
        };
        for block in blocks.iter().filter(|block| block.epoch == epoch.id) {
            view = view.max(block.view);
            round = round.max(block.round().map_or(0, |of| of.round));
        }
    }
    Ok((round, view))
}
