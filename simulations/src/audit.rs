//! After a run: whether the members that live have one chain, and every outcome on it follows from
//! its sheet and its decision.

use bytes::Bytes;
use protocol::message::Block;
use protocol::{Hash, MemberIndex};
use silo::{Record, Replay};

use crate::disk::Disk;
use crate::federation::Federation;
use crate::recorder::Ear;

/// Compares the chains of all members, and computes the longest of them again.
///
/// # Errors
/// The first thing that is wrong, in a sentence.
pub(crate) fn audit(federation: &Federation, disks: &[Disk], ear: &Ear) -> Result<u64, String> {
    let chains: Vec<_> = disks.iter().map(chain).collect();
    let Some(longest) = chains.iter().max_by_key(|chain| chain.len()) else {
        return Ok(0);
    };
    for (member, chain) in chains.iter().enumerate() {
        if let Some(at) = (0..chain.len()).find(|&at| chain[at] != longest[at]) {
            let name = federation.epoch.roster.name(MemberIndex(member as u16));
            return Err(format!("{name} has another block {at} than others"));
        }
    }
    let honest = |member: &MemberIndex| !federation.faulty.contains(member);
    let me = federation.epoch.roster.members().find(honest);
    let me = me.ok_or("nobody is honest")?;
    let mut replay = Replay::new(&federation.members[me.at()]);
    let stores: Vec<_> = disks.iter().map(Disk::blobs).collect();
    let blob = |hash: &Hash| -> Option<Bytes> { stores.iter().find_map(|store| store.get(hash)) };
    let mut rounds = 0;
    for learning in longest.iter().filter_map(Block::learning) {
        let sheet = ear.sheet(&learning.sheet);
        let sheet = sheet.ok_or_else(|| format!("nobody sent the sheet of {}", learning.round))?;
        replay.round(learning, &sheet, blob)?;
        rounds += 1;
    }
    Ok(rounds)
}

/// The final blocks that a disk holds, oldest first.
fn chain(disk: &Disk) -> Vec<Block> {
    let blocks = |record| match record {
        Record::Protocol(protocol::Record::Final { blocks, .. }) => blocks,
        _ => Vec::new(),
    };
    disk.records().into_iter().flat_map(blocks).collect()
}
