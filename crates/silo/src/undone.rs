//! Rounds that a silo adopted and that a recovery has undone.
//!
//! A recovery goes on from the newest round that one of its signers has adopted. A member that was declared
//! lost may have adopted a later one, which the others do again with another block. When it comes back, what
//! it adopted there counts no more.

use protocol::{Epoch, Record};

use crate::record::Adopted;

/// Takes the adoptions out that are on no way to the present epoch: of rounds behind its beginning that no
/// block of it holds, and of another block of the round that it goes on from. Gives whether there were some.
/// `records` are those of the journal.
pub(crate) fn forget_undone(adopted: &mut Vec<Adopted>, epoch: &Epoch, records: &[Record]) -> bool {
    let began = epoch.began;
    let before = adopted.len();
    adopted.retain(|of| match of.round {
        _ if epoch.number == 0 => true,
        round if round < began.round => true,
        round if round == began.round => of.block == began.block.0,
        _ => records.iter().any(|record| holds(record, of, epoch)),
    });
    adopted.len() < before
}

/// Returns whether a record has the final block of an adopted outcome, in this epoch.
fn holds(record: &Record, adopted: &Adopted, epoch: &Epoch) -> bool {
    let Record::Final { blocks, .. } = record else {
        return false;
    };
    let mut blocks = blocks.iter().filter(|block| block.epoch == epoch.id);
    blocks.any(|block| {
        let of = block.round();
        of.is_some_and(|of| of.round == adopted.round) && block.hash().0 == adopted.block
    })
}
