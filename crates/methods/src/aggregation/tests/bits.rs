//! Every rule gives the same bits with any number of threads and on every machine.

use super::*;

/// Models of several tensors, large enough for several blocks and threads, that end between lanes.
fn large(count: usize) -> Vec<Params> {
    let specs = [
        ("a", 3, Role::Bias),
        ("b", 70_001, Role::Weight),
        ("c", 65, Role::Buffer),
        ("d", 300_007, Role::Weight),
    ];
    let specs = specs.map(|(name, len, role)| TensorSpec::new(name, [len], role));
    let layout = Layout::new(specs.to_vec()).unwrap();
    let fill = |model: usize| {
        Params::build(&layout, |values| {
            let mut state = (model as u32 + 1).wrapping_mul(2_654_435_761);
            for value in values {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                // Exact in f32 on every machine.
                *value = (state >> 8) as f32 / 8_388_608.0 - 1.0;
            }
        })
    };
    (0..count).map(fill).collect()
}

#[test]
fn every_rule_has_the_same_bits_on_all_threads_and_machines() {
    let all = large(9);
    let references = ReferenceModels {
        start: Some(&all[0]),
        trusted: Some(&all[1]),
    };
    let rules = [
        vec![Aggregation::Mean, Aggregation::TrustWeighted],
        robust(2, 9),
    ]
    .concat();
    let weights: Vec<f64> = (0..9).map(|row| 1.0 + f64::from(row) / 3.0).collect();
    let mut digests = blake3::Hasher::new();
    for rule in rules {
        for with in [equally(&all), weighted(&all, &weights)] {
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                pool.install(|| rule.combine(&with, references)).unwrap()
            };
            let alone = on(1);
            assert_eq!(alone.hash(), on(5).hash(), "{}", rule.name());
            digests.update(&alone.hash());
        }
    }
    // Computed once; any machine on which this fails would leave the federation's agreement.
    let known = "129d8416ffac52e54ee50333959fd7d65a521a9caf91d247eaabfd750d8520a1";
    assert_eq!(digests.finalize().to_string(), known);
}
