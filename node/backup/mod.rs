//! Saves what an institution cannot get back from the other members, and puts it back.
//!
//! A backup is one tar file. It holds the key, the agreement with the changes that came into force, the
//! signed consents, `node.toml`, the silo's personal state, its audit log and evidence, and a copy of its
//! model that needs no node.
//!
//! It holds no journal of what the silo has signed. An old one would be worse than none: the silo would
//! not know votes that it has sent since, and could contradict them. So a restored silo begins with a
//! journal that counts as lost, as after `rota run --journal-lost`: it only listens until none of the votes
//! that it may have forgotten counts any more. Everything else that a state folder holds, the other
//! members have.
//!
//! The institution signs it. The key that it is signed with is in it, too, so whoever can read a backup can change
//! it: what it writes is therefore confined to the folder that it is restored into, unless somebody allows more.
//!
//! | file | holds |
//! |---|---|
//! | `archive` | the tar file: names, sizes, hashes |
//! | `save` | writes one |
//! | `restore` | puts one back |
//! | `confined` | where a backup may write |

mod archive;
mod confined;
mod restore;
mod save;
#[cfg(test)]
mod tests;

pub use archive::{ArchiveError, Manifest};
pub use restore::{RestoreConsent, RestoreError, RestoredBackup, restore};
pub use save::{BackupError, Saved, save};
