//! A rehearsal: a member masks a known vector with known secrets, so that others can do the same and
//! compare. It finds a program that masks otherwise than others do, before a real sum is corrupted by it.
//!
//! In a real round nobody can tell who corrupted a sum: all secrets stay at home. In a rehearsal all of them
//! follow from one challenge, which whoever asks has drawn, so nothing in it is secret. No real secret, key
//! or vector is used, and the answer is a hash.

use super::kdf::{Kdf, Label};
use super::{
    Fixed, Listed, Mask, MemberKeys, Reach, ReadyList, Root, Secret, Shape, SumAuthors, Transcript,
    Word,
};

/// Members of a rehearsal at most. Streams of more are no others, and every member answers in
/// milliseconds, however large the federation is.
const MOST: u16 = 16;

/// Coordinates of the vector: more than one block of the stream, and no multiple of it.
const COORDINATES: u16 = 77;

/// The secrets of a challenge cannot be used, which happens once in 2²⁵² challenges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this challenge gives a key that is zero: ask again with another one")]
pub struct RehearsalError;

/// The answer to a challenge of the member at `position` of a federation of `members`, at least four: a
/// hash over its transcript and its masked vector in both widths, where all secrets and the vector follow
/// from the challenge. Of more than 16 members those take part whose position has the same remainder.
///
/// # Errors
/// The challenge cannot be used.
pub fn rehearse(
    challenge: &[u8; 32],
    position: u16,
    members: u16,
) -> Result<[u8; 32], RehearsalError> {
    let members = members.clamp(4, MOST);
    let position = position % members;
    let keys = (0..members).map(|of| {
        let secret = Kdf::new(Label::Rehearsal).part(challenge).position(of);
        MemberKeys::derive(Secret::new(*secret.key()), challenge, 0, of)
    });
    let keys: Vec<_> = keys.collect::<Result<_, _>>().map_err(|_| RehearsalError)?;
    let list = keys.iter().map(|keys| Listed {
        position: keys.position(),
        exchange: keys.public().exchange.bytes(),
        share: keys.public().share.bytes(),
    });
    let list: Vec<_> = list.collect();
    let root = Root::of(b"rehearsal", challenge);
    let quorum = members - (members - 1) / 3;
    let ready = ReadyList::new(root, members, quorum, &list).map_err(|_| RehearsalError)?;
    let all: Vec<_> = (0..members).collect();
    let sum = SumAuthors::new(&ready, &all).map_err(|_| RehearsalError)?;
    let own = &keys[usize::from(position)];
    let transcript = Transcript::deal(&ready, own).map_err(|_| RehearsalError)?;
    let mask = Mask::derive(&ready, own, &sum).map_err(|_| RehearsalError)?;
    let mut answer = Kdf::new(Label::Rehearsal).part(&transcript);
    answer = answer.part(&masked::<u32>(&mask, members)?);
    answer = answer.part(&masked::<u64>(&mask, members)?);
    Ok(*answer.key())
}

/// A known vector, masked.
fn masked<W: Word>(mask: &Mask, members: u16) -> Result<Vec<u8>, RehearsalError> {
    // A weight of many bits makes words of 64 bits.
    let weight = if W::WIDTH == super::Width::Bits32 {
        1
    } else {
        1 << 20
    };
    let weights = vec![weight; usize::from(members)];
    let reach = Reach::of(&weights, Fixed::MODEL).map_err(|_| RehearsalError)?;
    let shape = Shape::new(usize::from(COORDINATES), reach).map_err(|_| RehearsalError)?;
    let start: Vec<f32> = (0..COORDINATES).map(|at| f32::from(at) / 64.0).collect();
    // Signs, halves of a step, and numbers that are clipped.
    let model = (0..COORDINATES).map(|at| f32::from(at * at) / 128.0 - 9.0);
    let model: Vec<f32> = model.collect();
    let masked = mask.vector::<W>(shape, Fixed::MODEL, weight, &start, &model);
    Ok(masked.map_err(|_| RehearsalError)?.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::testing::hex;

    #[test]
    fn an_answer_is_known_and_depends_on_challenge_and_position() {
        let known = rehearse(&[7; 32], 1, 4).unwrap();
        let golden = "71a33d3b02efcd78cdb6826a2265935229f4f916930c5fccbe38190b79e6ed89";
        assert_eq!(known.to_vec(), hex(golden));
        let mut all = vec![known, rehearse(&[8; 32], 1, 4).unwrap()];
        all.extend((0..16).map(|at| rehearse(&[7; 32], at, 16).unwrap()));
        all.extend(
            (0..4)
                .filter(|at| *at != 1)
                .map(|at| rehearse(&[7; 32], at, 4).unwrap()),
        );
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn large_federations_try_a_dry_run_as_sixteen() {
        assert_eq!(
            rehearse(&[7; 32], 997, 1000),
            rehearse(&[7; 32], 997 % 16, 16)
        );
    }
}
