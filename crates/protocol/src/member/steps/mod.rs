//! In which order consensus, rounds and governance act on each other. Only here does one of them learn what
//! happened to another.
//!
//! | file | holds |
//! |---|---|
//! | `certificates` | votes, certificates and final blocks (R3, R4) |
//! | `views` | entering and leaving views |
//! | `leading` | leading a view: gathering for a block, or a change of the agreement, and proposing it |
//! | `judging` | proposals: the first one of a view is kept, and judged |
//! | `clock` | the heartbeat, and when a member has to look again |
//! | `resting` | whether anything is left to do |
//! | `own_key` | what is under this member's own key, and evidence, in bounded number |
//! | `catching_up` | members that can be reached, and what their answers prove |
//! | `lending` | what is lent to the structs of consensus |

mod catching_up;
mod certificates;
mod clock;
mod judging;
mod leading;
mod lending;
mod own_key;
mod resting;
mod views;
