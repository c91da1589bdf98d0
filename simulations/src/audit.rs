//! The audit after a run: all members must hold the same chain, and every outcome on it must follow
//! from its manifest and its decision.

use bytes::Bytes;
use protocol::message::Block;
use protocol::{Hash, MemberIndex};
use silo::{JournalRecord, Replay};

use crate::disk::Disk;
use crate::federation::Federation;
use crate::recorder::Recorder;

/// Compares the chains of all members and recomputes every outcome of the longest. Returns the
/// number of rounds that it recomputed.
///
/// # Errors
/// The first difference, as a sentence.
pub(crate) fn audit(
    federation: &Federation,
    disks: &[Disk],
    recorder: &Recorder,
) -> Result<u64, String> {
    let chains: Vec<_> = disks.iter().map(chain).collect();
    let Some(longest) = chains.iter().max_by_key(|chain| chain.len()) else {
        return Ok(0);
    };
    for (member, chain) in chains.iter().enumerate() {
        if let Some(at) = (0..chain.len()).find(|&at| chain[at] != longest[at]) {
            let name = federation.epoch.roster.name(MemberIndex(member as u16));
            return Err(format!(
                "block {at} of {name} differs from that of the longest chain"
            ));
        }
    }
    let honest = |member: &MemberIndex| !federation.faulty.contains(member);
    let me = federation.epoch.roster.members().find(honest);
    let me = me.ok_or("no member is honest, so there is nothing to audit")?;
    let mut replay = Replay::new(&federation.members[me.at()]);
    let stores: Vec<_> = disks.iter().map(Disk::blobs).collect();
    let blob = |hash: &Hash| -> Option<Bytes> { stores.iter().find_map(|store| store.get(hash)) };
    let mut rounds = 0;
    for learning in longest.iter().filter_map(Block::learning) {
        let manifest = recorder.manifest(&learning.manifest);
        let manifest = manifest
            .ok_or_else(|| format!("the sheet of round {} was never sent", learning.round))?;
        replay.round(learning, &manifest, blob)?;
        rounds += 1;
    }
    Ok(rounds)
}

/// The final blocks that a disk holds, oldest first.
fn chain(disk: &Disk) -> Vec<Block> {
    let blocks = |record| match record {
        JournalRecord::Protocol(protocol::Record::Final { blocks, .. }) => blocks,
        _ => Vec::new(),
    };
    disk.records().into_iter().flat_map(blocks).collect()
}
