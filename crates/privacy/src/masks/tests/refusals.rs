//! Everything that must be refused, one test each.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::{RistrettoPoint, Scalar};
use proptest::prelude::*;

use super::golden::setting;
use super::reference::{Rules, bytes};
use super::world::{BLOCK, EPOCH, ROUND, World, listed, model, secret, shape};
use crate::masks::testing::ORDER;
use crate::masks::{
    BlockHash, CombineError, DealError, Fixed, Listed, Mask, MaskError, MemberKeys, Opening,
    OpeningError, OwnKeysError, PointError, ReadyError, ReadyList, Root, Secret, Seeds, SeedsError,
    Shape, ShapeError, SumAuthors, SumError, Transcript, TranscriptError, Transcripts,
    TranscriptsError, UnlockError, UnmaskError, VectorError, Void, Width, Word,
};

const ALL: [u16; 4] = [0, 1, 2, 3];

/// Bytes of a point with another sign, which is no canonical point.
fn corrupted(mut point: [u8; 32]) -> [u8; 32] {
    point[0] ^= 1;
    point
}

fn put(bytes: &mut [u8], at: usize, piece: [u8; 32]) {
    bytes[at * 32..][..32].copy_from_slice(&piece);
}

fn check(world: &World, author: u16, bytes: &[u8]) -> TranscriptError {
    Transcript::check(&world.ready, author, bytes).unwrap_err()
}

fn check_opening(world: &World, transcripts: &Transcripts, bytes: &[u8]) -> OpeningError {
    Opening::check(&world.ready, transcripts, BLOCK, 1, bytes).unwrap_err()
}

#[test]
fn a_changed_share_in_a_transcript_is_refused() {
    let world = World::full(4);
    for at in 0..4 {
        let mut bytes = world.deal(2);
        put(&mut bytes, at, crate::masks::group::generator().bytes());
        assert_eq!(check(&world, 2, &bytes), TranscriptError::Proof(2));
    }
}

#[test]
fn a_changed_share_in_an_opening_is_refused() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    for at in 0..4 {
        let mut bytes = world.unlock(&transcripts, 1);
        put(&mut bytes, at, crate::masks::group::generator().bytes());
        assert_eq!(
            check_opening(&world, &transcripts, &bytes),
            OpeningError::Proof(1)
        );
    }
}

#[test]
fn a_changed_proof_is_refused() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    for at in 4..8 {
        let mut bytes = world.deal(2);
        put(&mut bytes, at, Scalar::from(5_u64).to_bytes());
        assert_eq!(check(&world, 2, &bytes), TranscriptError::Proof(2));
    }
    for at in 4..6 {
        let mut bytes = world.unlock(&transcripts, 1);
        put(&mut bytes, at, Scalar::from(5_u64).to_bytes());
        assert_eq!(
            check_opening(&world, &transcripts, &bytes),
            OpeningError::Proof(1)
        );
    }
}

#[test]
fn a_copied_transcript_is_refused_for_another_author() {
    let world = World::full(4);
    let bytes = world.deal(2);
    assert!(Transcript::check(&world.ready, 2, &bytes).is_ok());
    for author in [0, 1, 3] {
        assert_eq!(
            check(&world, author, &bytes),
            TranscriptError::Proof(author)
        );
    }
}

#[test]
fn a_transcript_for_another_list_or_decision_is_refused() {
    let world = World::full(4);
    let bytes = World::new(4, &ALL, b"another decision").deal(2);
    assert_eq!(check(&world, 2, &bytes), TranscriptError::Proof(2));
}

/// A dealer with a polynomial of degree t, who makes the proof as well as it can.
#[test]
fn a_degree_too_high_is_refused_with_either_length_of_proof() {
    let world = World::full(7);
    let setting = setting(&world, Rules::RIGHT);
    let mut polynomial = setting.polynomial(3);
    let fitting = setting.deal_with(3, polynomial.clone());
    assert!(Transcript::check(&world.ready, 3, &fitting.bytes()).is_ok());
    polynomial.push(Scalar::from(9_u64));
    let long = setting.deal_with(3, polynomial).bytes();
    let error = TranscriptError::Length {
        found: long.len(),
        expected: world.ready.transcript_bytes(),
        ready: 7,
        threshold: 5,
    };
    assert_eq!(check(&world, 3, &long), error, "t + 1 coefficients");
    let short = &long[..long.len() - 32];
    assert_eq!(
        check(&world, 3, short),
        TranscriptError::Proof(3),
        "the first t of them"
    );
}

#[test]
fn points_that_are_not_canonical_are_refused_everywhere() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    let why = PointError::Point;
    for at in 0..4_u16 {
        let place = usize::from(at);
        let mut bytes = world.deal(2);
        let share = transcripts.all()[2].share(place).bytes();
        put(&mut bytes, place, corrupted(share));
        let refused = TranscriptError::Share { position: at, why };
        assert_eq!(check(&world, 2, &bytes), refused);
        let mut bytes = world.unlock(&transcripts, 1);
        put(&mut bytes, place, [0xff; 32]);
        let refused = OpeningError::Share { author: at, why };
        assert_eq!(check_opening(&world, &transcripts, &bytes), refused);
    }
    assert_eq!(
        with_key(|one| one.share = corrupted(one.share)),
        Err(ReadyError::Key { position: 2, why })
    );
    let exchange = with_key(|one| one.exchange = corrupted(one.exchange));
    assert_eq!(exchange, Err(ReadyError::Key { position: 2, why }));
}

/// The list of four with something changed at position 2.
fn with_key(change: impl Fn(&mut Listed)) -> Result<(), ReadyError> {
    let mut list = World::full(4).list;
    change(&mut list[2]);
    ReadyList::new(Root([1; 32]), 4, 3, &list).map(|_| ())
}

#[test]
fn scalars_that_are_not_canonical_are_refused_everywhere() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    for at in 0..4 {
        let mut bytes = world.deal(2);
        put(&mut bytes, 4 + at, ORDER);
        assert_eq!(check(&world, 2, &bytes), TranscriptError::Scalar(at));
    }
    for at in 4..6 {
        let mut bytes = world.unlock(&transcripts, 1);
        put(&mut bytes, at, ORDER);
        assert_eq!(
            check_opening(&world, &transcripts, &bytes),
            OpeningError::Scalar
        );
    }
}

/// The order added to a right scalar would be a second encoding of the same transcript.
#[test]
fn a_second_encoding_of_a_right_transcript_is_refused() {
    let world = World::full(4);
    let mut bytes = world.deal(2);
    let mut carry = 0;
    let last = bytes.len() - 32;
    for (byte, order) in bytes[last..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(check(&world, 2, &bytes), TranscriptError::Scalar(3));
}

#[test]
fn the_identity_is_refused_as_a_key() {
    let why = PointError::Identity;
    let refused = Err(ReadyError::Key { position: 2, why });
    assert_eq!(with_key(|one| one.share = [0; 32]), refused);
    assert_eq!(with_key(|one| one.exchange = [0; 32]), refused);
}

#[test]
fn the_identity_is_refused_as_a_share() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    let mut bytes = world.unlock(&transcripts, 1);
    put(&mut bytes, 3, [0; 32]);
    let why = PointError::Identity;
    let refused = OpeningError::Share { author: 3, why };
    assert_eq!(check_opening(&world, &transcripts, &bytes), refused);
}

/// A polynomial that is zero at the place of position 1, with a proof that holds.
#[test]
fn the_identity_is_refused_as_a_locked_share() {
    let world = World::full(4);
    let setting = setting(&world, Rules::RIGHT);
    let polynomial = vec![-Scalar::from(2_u64), Scalar::ONE, Scalar::ZERO];
    let deal = setting.deal_with(2, polynomial);
    assert_eq!(deal.locked[1], RistrettoPoint::default());
    let why = PointError::Identity;
    let refused = TranscriptError::Share { position: 1, why };
    assert_eq!(check(&world, 2, &deal.bytes()), refused);
}

#[test]
fn transcripts_and_openings_of_another_length_are_refused() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    let (dealt, opened) = (world.deal(2), world.unlock(&transcripts, 1));
    assert_eq!((dealt.len(), opened.len()), (32 * 8, 32 * 6));
    let lengths = |bytes: &[u8]| {
        let (short, one) = (
            bytes[..bytes.len() - 32].to_vec(),
            bytes[..bytes.len() - 1].to_vec(),
        );
        let longer = [bytes, &[0; 32]].concat();
        [Vec::new(), one, short, longer]
    };
    for bytes in lengths(&dealt) {
        let refused = check(&world, 2, &bytes);
        assert!(
            matches!(refused, TranscriptError::Length { expected: 256, .. }),
            "{refused:?}"
        );
    }
    for bytes in lengths(&opened) {
        let refused = check_opening(&world, &transcripts, &bytes);
        assert!(
            matches!(refused, OpeningError::Length { expected: 192, .. }),
            "{refused:?}"
        );
    }
}

#[test]
fn an_opening_of_another_block_is_refused() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    let bytes = world.unlock(&transcripts, 1);
    let other = BlockHash([0xb2; 32]);
    let refused = Opening::check(&world.ready, &transcripts, other, 1, &bytes);
    assert_eq!(refused, Err(OpeningError::Proof(1)));
}

#[test]
fn an_opening_of_another_member_is_refused() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    let bytes = world.unlock(&transcripts, 1);
    let check = |from| Opening::check(&world.ready, &transcripts, BLOCK, from, &bytes);
    assert_eq!(check(2), Err(OpeningError::Proof(2)));
    assert_eq!(check(9), Err(OpeningError::Sender(9)));
}

#[test]
fn an_opening_for_other_authors_is_refused() {
    let world = World::full(4);
    let (some, others) = (world.transcripts(&[0, 1, 2]), world.transcripts(&[0, 1, 3]));
    let bytes = world.unlock(&some, 1);
    let refused = Opening::check(&world.ready, &others, BLOCK, 1, &bytes);
    assert_eq!(refused, Err(OpeningError::Proof(1)));
}

#[test]
fn openings_that_do_not_belong_together_or_are_too_few_are_refused() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    let [a, b, c] = [0, 1, 2].map(|from| world.opening(&transcripts, from));
    let recover = |openings: &[&Opening]| Seeds::recover(&world.ready, &transcripts, openings);
    let few = SeedsError::Few {
        found: 2,
        threshold: 3,
    };
    assert_eq!(recover(&[&a, &b]), Err(few));
    assert_eq!(recover(&[&a, &b, &a, &b]), Err(few), "two members, twice");
    let right = recover(&[&a, &b, &c]);
    assert_eq!(recover(&[&c, &a, &a, &b]), right);
    let other = BlockHash([0xb2; 32]);
    let bytes = Opening::unlock(&world.ready, &world.keys[&3], &transcripts, other).unwrap();
    let foreign = Opening::check(&world.ready, &transcripts, other, 3, &bytes).unwrap();
    assert_eq!(
        recover(&[&a, &b, &c, &foreign]),
        Err(SeedsError::Foreign(3))
    );
    // Fewer authors; then as many, but others.
    let three = [0, 1, 2].map(|from| world.opening(&world.transcripts(&[0, 1, 3]), from));
    let three = three.each_ref();
    for authors in [&[0, 1][..], &[0, 1, 2]] {
        let transcripts = world.transcripts(authors);
        let foreign = Seeds::recover(&world.ready, &transcripts, &three);
        assert_eq!(foreign, Err(SeedsError::Foreign(0)));
    }
}

#[test]
fn lists_that_are_no_lists_are_refused() {
    let list = World::full(4).list;
    let new = |members, quorum, list: &[Listed]| {
        let refused = ReadyList::new(Root([1; 32]), members, quorum, list);
        refused.unwrap_err()
    };
    let few = ReadyError::Few {
        ready: 2,
        quorum: 3,
    };
    assert_eq!(new(4, 3, &list[..2]), few);
    let twice = [list[0], list[1], list[1]];
    assert_eq!(new(4, 3, &twice), ReadyError::Order(1));
    let back = [list[0], list[2], list[1]];
    assert_eq!(new(4, 3, &back), ReadyError::Order(1));
    let absent = ReadyError::Position {
        position: 3,
        members: 3,
    };
    assert_eq!(new(3, 3, &list), absent);
    for quorum in [0, 2, 5] {
        assert_eq!(
            new(4, quorum, &list),
            ReadyError::Quorum { quorum, members: 4 }
        );
    }
    assert_eq!(new(1001, 700, &list), ReadyError::Members(1001));
}

#[test]
fn a_list_with_other_keys_for_oneself_is_refused() {
    let world = World::full(4);
    let transcripts = world.transcripts(&ALL);
    let keys = MemberKeys::derive(Secret::new([9; 32]), &EPOCH, ROUND, 1).unwrap();
    let foreign = OwnKeysError::Foreign(1);
    assert_eq!(
        Transcript::deal(&world.ready, &keys),
        Err(DealError::Keys(foreign))
    );
    let unlocked = Opening::unlock(&world.ready, &keys, &transcripts, BLOCK);
    assert_eq!(unlocked, Err(UnlockError::Keys(foreign)));
    let masked = Mask::derive(&world.ready, &keys, &world.sum(&ALL)).map(|_| ());
    assert_eq!(masked, Err(MaskError::Keys(foreign)));
    let absent = MemberKeys::derive(Secret::new(secret(4)), &EPOCH, ROUND, 4).unwrap();
    let error = DealError::Keys(OwnKeysError::Absent(4));
    assert_eq!(Transcript::deal(&world.ready, &absent), Err(error));
    assert_eq!(listed(&world.keys[&1]), world.list[1]);
}

#[test]
fn transcripts_that_do_not_make_a_set_are_refused() {
    let (world, other) = (World::full(4), World::new(4, &ALL, b"another"));
    let checked = |world: &World, author| {
        Transcript::check(&world.ready, author, &world.deal(author)).unwrap()
    };
    let new = |list| {
        Transcripts::new(&world.ready, list)
            .map(|_| ())
            .unwrap_err()
    };
    assert_eq!(new(vec![]), TranscriptsError::Empty);
    let [a, b] = [0, 1].map(|author| checked(&world, author));
    assert_eq!(new(vec![b.clone(), a.clone()]), TranscriptsError::Order(0));
    assert_eq!(new(vec![a.clone(), a.clone()]), TranscriptsError::Order(0));
    assert_eq!(new(vec![a, checked(&other, 1)]), TranscriptsError::List(1));
    let foreign = other.transcripts(&ALL);
    let unlocked = Opening::unlock(&world.ready, &world.keys[&1], &foreign, BLOCK);
    assert_eq!(unlocked, Err(UnlockError::List));
    let refused = Opening::check(&world.ready, &foreign, BLOCK, 1, &[]);
    assert_eq!(refused, Err(OpeningError::List));
    let absent = Transcript::check(&world.ready, 4, &world.deal(1));
    assert_eq!(absent, Err(TranscriptError::Author(4)));
}

#[test]
fn sums_that_show_one_member_or_name_others_than_the_ready_are_refused() {
    let world = World::new(4, &[0, 2, 3], b"one sum");
    let sum = |authors: &[u16]| SumAuthors::new(&world.ready, authors).map(|_| ());
    assert_eq!(sum(&[]), Err(SumError::Alone(0)));
    assert_eq!(sum(&[2]), Err(SumError::Alone(1)));
    assert_eq!(sum(&[2, 2]), Err(SumError::Order(2)));
    assert_eq!(sum(&[0, 1, 2]), Err(SumError::Author(1)));
    let two = world.sum(&[0, 2]);
    let masked = Mask::derive(&world.ready, &world.keys[&3], &two).map(|_| ());
    assert_eq!(masked, Err(MaskError::NoAuthor(3)));
}

#[test]
fn vectors_of_another_size_or_width_are_refused() {
    let world = World::full(4);
    let (sum, shape) = (world.sum(&ALL), shape(8, &[1; 4]));
    let seeds = world.seeds(&world.transcripts(&ALL), &[0, 1, 2]);
    let vectors = ALL.map(|author| world.vector::<u32>(author, &sum, shape, 1, &model(author, 8)));
    let combine = |vectors: &[&[u8]]| seeds.combine::<u32>(shape, &sum, vectors).unwrap_err();
    let mut slices: Vec<_> = vectors.iter().map(Vec::as_slice).collect();
    let missing = CombineError::Vectors {
        found: 3,
        expected: 4,
    };
    assert_eq!(combine(&slices[..3]), missing);
    slices[2] = &slices[2][..47];
    let short = CombineError::Length {
        author: 2,
        found: 47,
        expected: 48,
    };
    assert_eq!(combine(&slices), short);
    let (found, expected) = (Width::Bits64, Width::Bits32);
    let wide = seeds.combine::<u64>(shape, &sum, &slices).unwrap_err();
    assert_eq!(wide, CombineError::Width { found, expected });
    let whole: Vec<_> = vectors.iter().map(Vec::as_slice).collect();
    let chunk = |at, words: &mut [u32]| seeds.combine_chunk(shape, &sum, at, &whole, words);
    assert_eq!(chunk(0, &mut [0; 12]), Ok(None));
    let beyond = CombineError::Chunk {
        at: 1,
        words: 12,
        expected: 12,
    };
    assert_eq!(chunk(1, &mut [0; 12]), Err(beyond));
    let short = CombineError::Length {
        author: 0,
        found: 48,
        expected: 44,
    };
    assert_eq!(chunk(0, &mut [0; 11]), Err(short));
    let mask = world.mask(0, &sum);
    let masked = mask.vector::<u64>(shape, Fixed::MODEL, 1, &[0.0; 8], &[0.0; 8]);
    assert_eq!(masked, Err(VectorError::Width { found, expected }));
    let masked = mask.vector::<u32>(shape, Fixed::MODEL, 1, &[0.0; 8], &[0.0; 7]);
    assert_eq!(
        masked,
        Err(VectorError::Coordinates {
            found: 7,
            expected: 8
        })
    );
    let few = world.seeds(&world.transcripts(&[0, 1]), &[0, 1, 2]);
    let unmasked = few.unmask(&sum, 0, &mut [0_u32; 3]);
    assert_eq!(unmasked, Err(UnmaskError::Author(2)));
    let error = ShapeError {
        coordinates: usize::MAX,
    };
    assert_eq!(
        Shape::new(usize::MAX, crate::masks::Reach::new(1).unwrap()),
        Err(error)
    );
}

/// Returns what is wrong with a sum, if author 1 changes its vector like this.
fn corrupt(change: impl Fn(&mut [u8])) -> Option<Void> {
    let world = World::full(4);
    let (sum, shape) = (world.sum(&ALL), shape(8, &[1; 4]));
    let seeds = world.seeds(&world.transcripts(&ALL), &[0, 1, 2]);
    let mut vectors =
        ALL.map(|author| world.vector::<u32>(author, &sum, shape, 1, &model(author, 8)));
    change(&mut vectors[1]);
    world.combine::<u32>(&seeds, &sum, shape, &vectors).void
}

#[test]
fn a_sum_with_streams_that_do_not_cancel_is_void() {
    assert_eq!(corrupt(|_| ()), None);
    let void = corrupt(|bytes| {
        bytes
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_mul(3))
    });
    assert!(void.is_some());
    let void = corrupt(|bytes| bytes[8 * 4 + 2 * 4] ^= 1);
    assert_eq!(void, Some(Void::Check(2)));
}

#[test]
fn a_sum_beyond_reach_is_void() {
    // 2³⁰ more in the last coordinate, where four authors reach 2²³.
    let void = corrupt(|bytes| bytes[7 * 4 + 3] ^= 0x40).unwrap();
    assert!(
        matches!(
            void,
            Void::BeyondReach {
                at: 7,
                reach: 8_388_608,
                ..
            }
        ),
        "{void:?}"
    );
    let shape = shape(2, &[1, 1]);
    let judge = |number: i64| shape.judge(0, &[u32::wrap(number)]);
    let reach = 1 << 22;
    assert_eq!((judge(reach), judge(-reach)), (None, None));
    assert!(judge(reach + 1).is_some() && judge(-reach - 1).is_some());
    assert_eq!(
        shape.judge(1, &[0_u32, 0, 1]),
        Some(Void::Check(1)),
        "from word 1 on"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// One wrong bit anywhere: nothing of what comes from outside has two encodings.
    #[test]
    fn any_flipped_bit_is_refused(bit in 0_usize..256 * 8, opened in 0_usize..192 * 8) {
        let world = World::full(4);
        let transcripts = world.transcripts(&ALL);
        let mut bytes = world.deal(2);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Transcript::check(&world.ready, 2, &bytes).is_err());
        let mut bytes = world.unlock(&transcripts, 1);
        bytes[opened / 8] ^= 1 << (opened % 8);
        prop_assert!(Opening::check(&world.ready, &transcripts, BLOCK, 1, &bytes).is_err());
    }

    #[test]
    fn any_bytes_are_refused_without_panic(bytes: Vec<u8>, full in proptest::collection::vec(any::<u8>(), 256)) {
        let world = World::full(4);
        let transcripts = world.transcripts(&ALL);
        prop_assert!(Transcript::check(&world.ready, 2, &bytes).is_err());
        prop_assert!(Transcript::check(&world.ready, 2, &full).is_err());
        prop_assert!(Opening::check(&world.ready, &transcripts, BLOCK, 1, &full[..192]).is_err());
    }
}

/// The sentence of an error names what was expected and what came.
#[test]
fn errors_are_sentences() {
    let world = World::full(4);
    let error = check(&world, 2, &[0; 31]);
    assert_eq!(
        error.to_string(),
        "a transcript of 31 bytes, expected 256 for 4 ready members and 3 shares"
    );
    assert_eq!(bytes(&G), crate::masks::group::generator().bytes());
}
