//! The lead of a round in clear: from the contributions to a block.
//!
//! | file | stages |
//! |---|---|
//! | `admit` | what a contributed model must be, and the bundle that closes the set |
//! | `sheet` | scores and inclusions, until all authors signed for the sheet |
//! | `propose` | the decision, its outcome, and the proposed block |

mod admit;
mod propose;
mod sheet;
