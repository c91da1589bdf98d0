//! Authors that disclose their secrets: nothing is said of an honest one, and every kind of deviation is
//! told apart.

use super::world::{EPOCH, ROUND, World, model, secret, shape};
use crate::masks::words::Sign;
use crate::masks::{
    ExamineError, Fixed, Mask, MaskDeviation, MaskError, MemberKeys, OwnKeysError, Secret,
    SentParts, StreamFault, SumAuthors, Word, examine, stream,
};

const COORDINATES: usize = 40;

/// A round of four authors with these weights.
struct Corrupted {
    world: World,
    sum: SumAuthors,
    weights: [u64; 4],
}

impl Corrupted {
    fn new(weights: [u64; 4]) -> Self {
        let world = World::full(4);
        let sum = world.sum(&[0, 1, 2, 3]);
        Self {
            world,
            sum,
            weights,
        }
    }

    /// The words of an author's vector, masked as they have to be.
    fn words<W: Word>(&self, author: u16) -> Vec<W> {
        let (weight, model) = (
            self.weights[usize::from(author)],
            model(author, COORDINATES),
        );
        let shape = shape(COORDINATES, &self.weights);
        let mask = self.world.mask(author, &self.sum);
        let start = vec![0.0; COORDINATES];
        let masked = mask.vector::<W>(shape, Fixed::MODEL, weight, &start, &model);
        let mut words = vec![W::default(); shape.words()];
        W::add_bytes(&mut words, &masked.unwrap().bytes);
        words
    }

    /// Returns what is found of an author that sent these words.
    fn found<W: Word>(&self, author: u16, words: &[W]) -> Option<MaskDeviation> {
        let mut vector = Vec::new();
        W::write(words, &mut vector);
        let transcript = self.world.deal(author);
        self.examined(author, &transcript, &vector, &self.world.keys[&author])
            .unwrap()
    }

    fn examined(
        &self,
        author: u16,
        transcript: &[u8],
        vector: &[u8],
        keys: &MemberKeys,
    ) -> Result<Option<MaskDeviation>, ExamineError> {
        let weight = self.weights[usize::from(author)];
        let sent = SentParts {
            weight,
            transcript,
            vector,
        };
        let shape = (shape(COORDINATES, &self.weights), Fixed::MODEL);
        examine(&self.world.ready, &self.sum, shape, keys, sent)
    }

    /// Adds the nth stream of an author's mask to words, or subtracts it.
    fn stream<W: Word>(&self, author: u16, nth: usize, times: i32, words: &mut [W]) {
        let mask = self.world.mask(author, &self.sum);
        let (key, sign) = &mask.streams()[nth];
        let sign = if times < 0 { sign.other() } else { *sign };
        for _ in 0..times.abs() {
            stream::apply(std::iter::once((key, sign)), 0, words).unwrap();
        }
    }
}

#[test]
fn nothing_is_said_of_an_honest_author() {
    let small = Corrupted::new([1, 2, 3, 4]);
    let large = Corrupted::new([1 << 20, 2 << 20, 3, 4]);
    for author in 0..4 {
        assert_eq!(small.found::<u32>(author, &small.words(author)), None);
        assert_eq!(large.found::<u64>(author, &large.words(author)), None);
    }
}

/// In both widths: the position of each stream in the mask of author 2 is that of its partner.
#[test]
fn a_wrong_stream_is_named_with_the_author_that_shares_it() {
    fn each<W: Word>(round: &Corrupted) {
        for (nth, with) in [(0, None), (1, Some(0)), (2, Some(1)), (3, Some(3))] {
            for (times, fault) in [
                (-1, StreamFault::Missing),
                (-2, StreamFault::Reversed),
                (1, StreamFault::Twice),
            ] {
                let mut words = round.words::<W>(2);
                round.stream(2, nth, times, &mut words);
                let expected = MaskDeviation::Stream { with, fault };
                assert_eq!(round.found(2, &words), Some(expected), "{nth} {times}");
            }
        }
    }
    each::<u32>(&Corrupted::new([1, 1, 1, 1]));
    each::<u64>(&Corrupted::new([1 << 20, 1 << 20, 1 << 20, 1 << 20]));
}

#[test]
fn streams_of_another_list_or_secret_and_several_wrong_ones_are_another_mask() {
    let round = Corrupted::new([1, 1, 1, 1]);
    let mut two = round.words::<u32>(1);
    round.stream(1, 0, -1, &mut two);
    round.stream(1, 2, -1, &mut two);
    assert_eq!(round.found(1, &two), Some(MaskDeviation::Mask));
    // The mask of another list.
    let other = World::new(4, &[0, 1, 2, 3], b"another decision");
    let mask = Mask::derive(&other.ready, &other.keys[&1], &other.sum(&[0, 1, 2, 3])).unwrap();
    let mut words = vec![0_u32; COORDINATES + 4];
    mask.apply(0, &mut words).unwrap();
    assert_eq!(round.found(1, &words), Some(MaskDeviation::Mask));
}

#[test]
fn numbers_that_no_honest_vector_has_are_named() {
    let round = Corrupted::new([1, 2, 3, 4]);
    let with = |author: u16, at: usize, number: i64| {
        let mut words = round.words::<u32>(author);
        // The number in the place of the one that is there.
        let mut plain = words.clone();
        let mask = round.world.mask(author, &round.sum);
        mask.take_off(0, &mut plain).unwrap();
        words[at] = words[at].plus(u32::wrap(number - plain[at].signed()));
        round.found(author, &words)
    };
    let most = 1 << 21;
    assert_eq!(with(1, 7, 2 * most), None);
    let (at, value, weight) = (7, 2 * most + 2, 2);
    let beyond = MaskDeviation::Reach {
        at,
        value,
        most: 2 * most as u64,
    };
    assert_eq!(with(1, 7, value), Some(beyond));
    let value = 3;
    let expected = MaskDeviation::Weight { at, value, weight };
    assert_eq!(with(1, 7, value), Some(expected));
    assert_eq!(with(2, 7, value), None);
    for check in 0..4 {
        let expected = MaskDeviation::Check {
            at: check,
            value: -5,
        };
        assert_eq!(with(3, COORDINATES + check, -5), Some(expected));
    }
}

#[test]
fn a_transcript_a_size_and_a_secret_are_compared_first() {
    let round = Corrupted::new([1, 1, 1, 1]);
    let keys = &round.world.keys[&0];
    let (mut vector, transcript) = (Vec::new(), round.world.deal(0));
    u32::write(&round.words(0), &mut vector);
    assert_eq!(round.examined(0, &transcript, &vector, keys), Ok(None));
    // The one of another author is a good transcript, and not its own.
    let foreign = round.world.deal(1);
    let found = round.examined(0, &foreign, &vector, keys);
    assert_eq!(found, Ok(Some(MaskDeviation::Transcript)));
    let (found, expected) = (vector.len() - 4, vector.len());
    let short = round.examined(0, &transcript, &vector[..found], keys);
    assert_eq!(short, Ok(Some(MaskDeviation::Length { found, expected })));
    // Another secret, another round, and somebody else's place give other keys than the list has.
    let foreign = ExamineError::Mask(MaskError::Keys(OwnKeysError::Foreign(0)));
    for (bytes, round_of) in [([9; 32], ROUND), (secret(0), ROUND + 1), (secret(1), ROUND)] {
        let keys = MemberKeys::derive(Secret::new(bytes), &EPOCH, round_of, 0).unwrap();
        let refused = round.examined(0, &transcript, &vector, &keys);
        assert_eq!(refused, Err(foreign));
    }
}

#[test]
fn every_deviation_is_a_sentence_with_the_names_of_members() {
    let name = |position: u16| format!("silo {position}");
    let stream = MaskDeviation::Stream {
        with: Some(3),
        fault: StreamFault::Reversed,
    };
    assert_eq!(
        stream.sentence(name),
        "the stream that it shares with silo 3 is there with the wrong sign in its mask"
    );
    let own = MaskDeviation::Stream {
        with: None,
        fault: StreamFault::Missing,
    };
    assert_eq!(
        own.sentence(name),
        "the stream of its own is missing in its mask"
    );
    assert_eq!(Sign::Plus.other().other(), Sign::Plus);
}

/// What a disclosure gives away, also of those that do not agree to it: if all others of a sum disclose,
/// nothing is left that hides the vector of the last one.
#[test]
fn if_all_others_disclose_the_vector_of_the_last_author_is_known() {
    let round = Corrupted::new([1, 1, 1, 1]);
    let seeds = round
        .world
        .seeds(&round.world.transcripts(&[0, 1, 2, 3]), &[0, 1, 2]);
    let mut last = round.words::<u32>(3);
    // Its own stream was opened to all; the others know the streams that they share with it.
    let own = seeds
        .keys()
        .iter()
        .find(|(author, _)| *author == 3)
        .unwrap();
    stream::apply(std::iter::once((&own.1, Sign::Minus)), 0, &mut last).unwrap();
    for author in 0..3 {
        let mask = round.world.mask(author, &round.sum);
        let (key, sign) = &mask.streams()[3];
        stream::apply(std::iter::once((key, *sign)), 0, &mut last).unwrap();
    }
    let plain = model(3, COORDINATES)
        .into_iter()
        .map(|number| Fixed::MODEL.integer(f64::from(number)).0);
    let known = last.iter().take(COORDINATES).map(|word| word.signed());
    assert!(known.eq(plain));
}
