//! Masking and adding need no second model in memory.

#![allow(clippy::unwrap_used)]

use peak_alloc::PeakAlloc;
use privacy::masks::{
    BLOCK, BlockHash, Fixed, Listed, Mask, MemberKeys, Opening, Reach, ReadyList, Root, Secret,
    Seeds, Shape, SumAuthors, Transcript, Transcripts, Word,
};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Bytes that `work` has allocated at most at a time, beyond what there was before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let result = work();
    (result, ALLOCATED.peak_usage() - before)
}

/// One test in this program, so nothing else allocates meanwhile.
#[test]
fn masking_allocates_the_vector_alone_and_adding_the_sum_alone() {
    let parameters = 1_000_000;
    let keys = [0_u16, 1, 2, 3].map(|position| {
        MemberKeys::derive(Secret::new([position as u8; 32]), &[1; 32], 1, position).unwrap()
    });
    let list: Vec<_> = keys
        .iter()
        .map(|keys| Listed {
            position: keys.position(),
            exchange: keys.public().exchange.bytes(),
            share: keys.public().share.bytes(),
        })
        .collect();
    let ready = ReadyList::new(Root([2; 32]), 4, 3, &list).unwrap();
    let sum = SumAuthors::new(&ready, &[0, 1, 2, 3]).unwrap();
    let shape = Shape::new(parameters, Reach::of(&[1; 4], Fixed::MODEL).unwrap()).unwrap();
    let (start, model) = (vec![0.0; parameters], vec![0.5; parameters]);
    let (few, block) = (16 * 1024, size_of::<u32>() * BLOCK);

    let vectors = keys.each_ref().map(|keys| {
        let mask = Mask::derive(&ready, keys, &sum).unwrap();
        let (masked, most) = peak(|| {
            mask.vector::<u32>(shape, Fixed::MODEL, 1, &start, &model)
                .unwrap()
        });
        assert!(
            most < shape.bytes() + block + few,
            "{most} bytes for a vector of {}",
            shape.bytes()
        );
        let ((), most) = peak(|| mask.apply(0, &mut [0_u32; 100]).unwrap());
        assert!(most < few, "{most} bytes for masking in place");
        masked.bytes
    });

    let transcripts = (0..).zip(&keys).map(|(author, keys)| {
        Transcript::check(&ready, author, &Transcript::deal(&ready, keys).unwrap()).unwrap()
    });
    let transcripts = Transcripts::new(&ready, transcripts.collect()).unwrap();
    let of = BlockHash([3; 32]);
    let openings = (0..3).zip(&keys).map(|(from, keys)| {
        let bytes = Opening::unlock(&ready, keys, &transcripts, of).unwrap();
        Opening::check(&ready, &transcripts, of, from, &bytes).unwrap()
    });
    let openings: Vec<_> = openings.collect();
    let openings: Vec<_> = openings.iter().collect();
    let seeds = Seeds::recover(&ready, &transcripts, &openings).unwrap();
    let vectors = vectors.each_ref().map(Vec::as_slice);
    let (opened, most) = peak(|| seeds.combine::<u32>(shape, &sum, &vectors).unwrap());
    assert!(
        most < shape.bytes() + few,
        "{most} bytes for a sum of {}",
        shape.bytes()
    );
    assert_eq!(opened.void, None);
    assert_eq!(opened.words[0].signed(), 4 << 17);
}
