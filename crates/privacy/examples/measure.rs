//! Milliseconds of a secure-aggregation round on one core: `cargo run --release -p privacy --example measure`, or with
//! the numbers of members and parameters: `… -- 100 1000000`.

#![allow(clippy::disallowed_types, clippy::unwrap_used)] // an example has a clock

use std::time::Instant;

use privacy::masks::{
    BlockHash, Fixed, Listed, Mask, MemberKeys, Opening, Reach, ReadyList, Root, Secret, Seeds,
    Shape, SumAuthors, Transcript, Transcripts, Word,
};

/// The best of five, in milliseconds; and what came out.
fn best<T>(mut work: impl FnMut() -> T) -> (T, f64) {
    let mut times = [0.0; 5];
    let mut result = None;
    for time in &mut times {
        let from = Instant::now();
        result = Some(work());
        *time = from.elapsed().as_secs_f64() * 1e3;
    }
    (
        result.unwrap(),
        times.into_iter().fold(f64::INFINITY, f64::min),
    )
}

fn ready(members: u16) -> (Vec<MemberKeys>, ReadyList) {
    let keys: Vec<_> = (0..members)
        .map(|position| {
            let secret = blake3::derive_key("rota masks measure", &position.to_le_bytes());
            MemberKeys::derive(Secret::new(secret), &[1; 32], 1, position).unwrap()
        })
        .collect();
    let list: Vec<_> = keys
        .iter()
        .map(|keys| Listed {
            position: keys.position(),
            exchange: keys.public().exchange.bytes(),
            share: keys.public().share.bytes(),
        })
        .collect();
    let quorum = members - (members - 1) / 3;
    let ready = ReadyList::new(Root([2; 32]), members, quorum, &list).unwrap();
    (keys, ready)
}

fn measure(members: u16, parameters: usize) {
    let ((keys, ready), listed) = best(|| ready(members));
    println!(
        "{members} members, {parameters} parameters, {} shares open",
        ready.threshold()
    );
    println!("  derive and read all keys      {listed:10.1} ms");
    let authors: Vec<_> = (0..members).collect();
    let sum = SumAuthors::new(&ready, &authors).unwrap();
    let reach = Reach::of(&vec![1; authors.len()], Fixed::MODEL).unwrap();
    let shape = Shape::new(parameters, reach).unwrap();
    let (start, model) = (vec![0.0; parameters], vec![0.25; parameters]);

    let (_, deal) = best(|| Transcript::deal(&ready, &keys[0]).unwrap());
    let (mask, derive) = best(|| Mask::derive(&ready, &keys[0], &sum).unwrap());
    let (_, encode) = best(|| {
        let mut words = vec![0_u32; parameters];
        Fixed::MODEL.encode(1, &start, &model, &mut words).unwrap()
    });
    let (_, whole) = best(|| {
        mask.vector::<u32>(shape, Fixed::MODEL, 1, &start, &model)
            .unwrap()
    });
    println!(
        "  mask, with transcript         {:10.1} ms",
        deal + derive + whole
    );
    println!(
        "    transcript {deal:.1}, keys {derive:.1}, numbers {encode:.1}, streams {:.1}",
        whole - encode
    );

    let dealt: Vec<_> = keys
        .iter()
        .map(|keys| Transcript::deal(&ready, keys).unwrap())
        .collect();
    let (transcripts, check) = best(|| {
        let checked = authors.iter().zip(&dealt);
        let checked = checked.map(|(author, bytes)| Transcript::check(&ready, *author, bytes));
        Transcripts::new(&ready, checked.collect::<Result<_, _>>().unwrap()).unwrap()
    });
    println!("  check all transcripts         {check:10.1} ms");

    let block = BlockHash([3; 32]);
    let (_, unlock) = best(|| Opening::unlock(&ready, &keys[0], &transcripts, block).unwrap());
    let opened: Vec<_> = keys[..ready.threshold()]
        .iter()
        .map(|keys| Opening::unlock(&ready, keys, &transcripts, block).unwrap())
        .collect();
    let (openings, check) = best(|| {
        let checked = (0..).zip(&opened);
        let checked =
            checked.map(|(from, bytes)| Opening::check(&ready, &transcripts, block, from, bytes));
        checked.collect::<Result<Vec<_>, _>>().unwrap()
    });
    println!("  unmask                        {unlock:10.1} ms");
    println!("  check t Unmaskings            {check:10.1} ms");

    let openings: Vec<_> = openings.iter().collect();
    let (seeds, recover) = best(|| Seeds::recover(&ready, &transcripts, &openings).unwrap());
    let vectors = keys.iter().map(|keys| {
        let mask = Mask::derive(&ready, keys, &sum).unwrap();
        let masked = mask.vector::<u32>(shape, Fixed::MODEL, 1, &start, &model);
        masked.unwrap().bytes
    });
    let combine = combine(&seeds, &sum, shape, &vectors.collect::<Vec<_>>());
    println!(
        "  combine and add               {:10.1} ms",
        recover + combine
    );
    println!("    interpolate {recover:.1}, vectors and streams {combine:.1}");
    let beside: usize = dealt.iter().chain(&opened).map(Vec::len).sum();
    println!("  transcripts and t Unmaskings  {beside:10} bytes");
}

/// Adds vectors of which every coordinate is a quarter, and looks whether the sum is right.
fn combine(seeds: &Seeds, sum: &SumAuthors, shape: Shape, vectors: &[Vec<u8>]) -> f64 {
    let slices: Vec<_> = vectors.iter().map(Vec::as_slice).collect();
    let (total, combine) = best(|| seeds.combine::<u32>(shape, sum, &slices).unwrap());
    assert_eq!(total.void, None);
    let right = (vectors.len() as i64) << 16;
    let mut coordinates = total.words[..shape.coordinates()].iter();
    assert!(coordinates.all(|word| word.signed() == right));
    combine
}

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|argument| {
            argument
                .parse()
                .expect("a number of members, then one of parameters")
        })
        .collect();
    if let [members, parameters] = numbers[..] {
        measure(u16::try_from(members).expect("members"), parameters);
    } else {
        [10, 100]
            .into_iter()
            .for_each(|members| measure(members, 1_000_000));
    }
}
