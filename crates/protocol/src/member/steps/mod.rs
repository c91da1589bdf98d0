//! In which order consensus, rounds and governance act on each other. Only here does one of them learn what
//! happened to another.
//!
//! | file | holds |
//! |---|---|
//! | `judging` | proposals: the first one of a view is kept, and judged |
//! | `leading` | leading a view: gathering for a block, or a change of the agreement, and proposing it |

mod judging;
mod leading;
