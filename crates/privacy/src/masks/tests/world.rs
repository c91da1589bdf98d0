//! A secure-aggregation round without messages: members with their keys, a list, and what they compute.

use std::collections::BTreeMap;

use crate::masks::{
    BlockHash, Fixed, Listed, Mask, MemberKeys, OpenedSum, Opening, Reach, ReadyList, Root, Secret,
    Seeds, Shape, SumAuthors, Transcript, Transcripts, Word,
};

pub(crate) const EPOCH: [u8; 32] = [0xe0; 32];
pub(crate) const ROUND: u64 = 7;
pub(crate) const BLOCK: BlockHash = BlockHash([0xb1; 32]);

/// The secret of the member at this position.
pub(crate) fn secret(position: u16) -> [u8; 32] {
    blake3::derive_key("rota masks test secret", &position.to_le_bytes())
}

/// n − f, for f = ⌊(n − 1)/3⌋.
pub(crate) fn quorum(members: u16) -> u16 {
    members - (members - 1) / 3
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) members: u16,
    pub(crate) keys: BTreeMap<u16, MemberKeys>,
    pub(crate) list: Vec<Listed>,
    pub(crate) ready: ReadyList,
}

pub(crate) fn listed(keys: &MemberKeys) -> Listed {
    Listed {
        position: keys.position(),
        exchange: keys.public().exchange.bytes(),
        share: keys.public().share.bytes(),
    }
}

/// The bytes that stand for a list in these tests.
pub(crate) fn list_bytes(list: &[Listed]) -> Vec<u8> {
    let bytes = list.iter().flat_map(|one| {
        let position = one.position.to_le_bytes();
        [&position[..], &one.exchange, &one.share].concat()
    });
    bytes.collect()
}

impl World {
    /// A world in which the members at the positions `ready` are ready, out of `members`.
    pub(crate) fn new(members: u16, ready: &[u16], decision: &[u8]) -> Self {
        let keys = ready.iter().map(|position| {
            let secret = Secret::new(secret(*position));
            (
                *position,
                MemberKeys::derive(secret, &EPOCH, ROUND, *position).unwrap(),
            )
        });
        let keys: BTreeMap<_, _> = keys.collect();
        let list: Vec<_> = keys.values().map(listed).collect();
        let root = Root::of(&list_bytes(&list), decision);
        let ready = ReadyList::new(root, members, quorum(members), &list).unwrap();
        Self {
            members,
            keys,
            list,
            ready,
        }
    }

    /// All of `members` are ready.
    pub(crate) fn full(members: u16) -> Self {
        let all: Vec<_> = (0..members).collect();
        Self::new(members, &all, b"one sum")
    }

    pub(crate) fn deal(&self, author: u16) -> Vec<u8> {
        Transcript::deal(&self.ready, &self.keys[&author]).unwrap()
    }

    pub(crate) fn transcripts(&self, authors: &[u16]) -> Transcripts {
        let checked = authors
            .iter()
            .map(|author| Transcript::check(&self.ready, *author, &self.deal(*author)).unwrap());
        Transcripts::new(&self.ready, checked.collect()).unwrap()
    }

    pub(crate) fn unlock(&self, transcripts: &Transcripts, from: u16) -> Vec<u8> {
        Opening::unlock(&self.ready, &self.keys[&from], transcripts, BLOCK).unwrap()
    }

    pub(crate) fn opening(&self, transcripts: &Transcripts, from: u16) -> Opening {
        let bytes = self.unlock(transcripts, from);
        Opening::check(&self.ready, transcripts, BLOCK, from, &bytes).unwrap()
    }

    /// From the openings of these.
    pub(crate) fn seeds(&self, transcripts: &Transcripts, from: &[u16]) -> Seeds {
        let openings: Vec<_> = from
            .iter()
            .map(|one| self.opening(transcripts, *one))
            .collect();
        let openings: Vec<_> = openings.iter().collect();
        Seeds::recover(&self.ready, transcripts, &openings).unwrap()
    }

    pub(crate) fn sum(&self, authors: &[u16]) -> SumAuthors {
        SumAuthors::new(&self.ready, authors).unwrap()
    }

    pub(crate) fn mask(&self, author: u16, sum: &SumAuthors) -> Mask {
        Mask::derive(&self.ready, &self.keys[&author], sum).unwrap()
    }

    /// The bytes of the masked vector of a model that starts at zero.
    pub(crate) fn vector<W: Word>(
        &self,
        author: u16,
        sum: &SumAuthors,
        shape: Shape,
        weight: u64,
        model: &[f32],
    ) -> Vec<u8> {
        let start = vec![0.0; model.len()];
        let mask = self.mask(author, sum);
        let masked = mask.vector::<W>(shape, Fixed::MODEL, weight, &start, model);
        masked.unwrap().bytes
    }

    /// Adds the vectors of a sum.
    pub(crate) fn combine<W: Word>(
        &self,
        seeds: &Seeds,
        sum: &SumAuthors,
        shape: Shape,
        vectors: &[Vec<u8>],
    ) -> OpenedSum<W> {
        let vectors: Vec<_> = vectors.iter().map(Vec::as_slice).collect();
        seeds.combine(shape, sum, &vectors).unwrap()
    }
}

/// The model of an author with so many coordinates: some are beyond the bound, some are ties.
pub(crate) fn model(author: u16, coordinates: usize) -> Vec<f32> {
    let numbers = (0..coordinates).map(|at| {
        let bytes = [author.to_le_bytes(), (at as u16).to_le_bytes()].concat();
        let hash = blake3::hash(&bytes);
        let small = f32::from(i16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]]));
        match at % 7 {
            0 => small / 4096.0,
            1 => small / 65_536.0,
            2 => small / (1 << 19) as f32,
            _ => small / 32_768.0 * 3.0,
        }
    });
    numbers.collect()
}

/// Vectors of so many coordinates, for these weights.
pub(crate) fn shape(coordinates: usize, weights: &[u64]) -> Shape {
    Shape::new(coordinates, Reach::of(weights, Fixed::MODEL).unwrap()).unwrap()
}
