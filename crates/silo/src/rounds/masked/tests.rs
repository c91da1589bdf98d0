//! Vectors and unmaskings that are wrong: what becomes of the sum, and of its group.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use protocol::Epoch;
use protocol::message::{Blob, KeyList, Keys, MaskedRound, Ready};
use protocol::privacy::{Group, Masked, Privacy, Sums, threshold};

use super::*;
use crate::outcome::{MaskedNote, Nothing, Settled, VoidSum};
use crate::testing::{config, epoch_with, key, model};
use methods::Params;
use methods::learner::QuadraticLearner;
use privacy::masks::{BLOCK, Fixed, MaskDeviation, Secret};

/// Members whose models are 1, 2, 3 and so on, in a round on the state before it.
struct OpenedRound {
    config: SiloConfig,
    base: RoundBase,
    round: OpeningRound,
    vectors: Vec<Bytes>,
    unmaskings: Vec<(MemberIndex, Vec<u8>)>,
    /// List, manifest, transcripts and vectors.
    blobs: Vec<Bytes>,
}

fn epoch() -> Arc<Epoch> {
    epoch_of(1)
}

/// Groups of four.
fn epoch_of(groups: u16) -> Arc<Epoch> {
    let four = |group: u16| Group {
        authors: (4 * group..4 * group + 4)
            .map(|i| (format!("silo {i}"), 1))
            .collect(),
    };
    epoch_with(4 * groups, 9, |protocol| {
        // A quorum of eight.
        protocol.min_contributions = protocol.min_contributions.max(3 * groups);
        protocol.privacy = Privacy::Masked(Masked {
            colluders: 1,
            shows: Vec::new(),
            smallest_sum: 3,
            sums: Sums::Groups((0..groups).map(four).collect()),
        });
    })
}

/// A silo whose models have so many numbers.
fn config_of(numbers: usize, epoch: &Arc<Epoch>, me: u16) -> SiloConfig {
    let mut config = config(epoch, me);
    config.learner = Arc::new(QuadraticLearner::new(&vec![0.0; numbers]));
    config
}

fn genesis_of(config: &SiloConfig) -> Settled {
    crate::outcome::genesis(&*config.strategy, &*config.learner, config.initial_seed)
}

impl OpenedRound {
    /// The round after this outcome; `change` changes a masked vector before it is named.
    fn after(before: &Settled, change: impl Fn(usize, &mut Vec<u8>)) -> Self {
        let epoch = epoch();
        let configs = (0..4).map(|i| config(&epoch, i)).collect();
        Self::of(configs, before, change)
    }

    /// The first round of groups of four with models of so many numbers.
    fn first(numbers: usize, groups: u16, change: impl Fn(usize, &mut Vec<u8>)) -> Self {
        let epoch = epoch_of(groups);
        let configs = (0..4 * groups).map(|i| config_of(numbers, &epoch, i));
        let configs: Vec<_> = configs.collect();
        let genesis = genesis_of(&configs[0]);
        Self::of(configs, &genesis, change)
    }

    fn of(
        configs: Vec<SiloConfig>,
        before: &Settled,
        change: impl Fn(usize, &mut Vec<u8>),
    ) -> Self {
        let epoch = configs[0].member.epoch.clone();
        let members = epoch.roster.len();
        let base = RoundBase::new(&configs[0], before);
        let model = |of: f32| {
            Params::build(&base.gate.layout, |numbers| {
                for (at, number) in numbers.iter_mut().enumerate() {
                    *number = of - (at % 7) as f32 / 8.0;
                }
            })
        };
        let (round, plan) = (base.next(), Hash::of(b"plan"));
        let prepared = |i: u16| PreparedRound {
            round,
            secret: Secret::new([i as u8 + 1; 32]),
            input: PreparedInput::Model(model(f32::from(i) + 1.0)),
        };
        let prepared: Vec<_> = (0..members as u16).map(prepared).collect();
        let ready = |(i, prepared): (usize, &PreparedRound)| Ready {
            member: MemberIndex(i as u16),
            keys: Keys {
                plan,
                public: public(prepared.keys(&configs[i]).unwrap().public()),
            },
            signature: key(i as u16).sign(b"not read here"),
        };
        let keys = KeyList {
            ready: prepared.iter().enumerate().map(ready).collect(),
        };
        let all: Vec<_> = (0..members as u16).map(MemberIndex).collect();
        let masked = epoch.protocol.privacy.masked().unwrap();
        let threshold = threshold(&epoch.roster, members);
        let document = ListDocument {
            federation: epoch.federation,
            epoch: epoch.id,
            round,
            plan,
            state: base.outcome,
            keys,
            sums: masked.sums(&base.voids, &epoch.roster, &all),
        };
        let list = MaskedList::new(document, threshold);
        let (mut vectors, mut transcripts, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for (i, prepared) in prepared.iter().enumerate() {
            let sent = mask(&configs[i], &base, &list, prepared).unwrap();
            let mut vector = sent.vector.to_vec();
            change(i, &mut vector);
            let name = |blob: &[u8]| Blob {
                hash: Hash::of(blob),
                size: blob.len() as u64,
            };
            entries.push(MaskedEntry {
                member: MemberIndex(i as u16),
                vector: name(&vector),
                transcript: name(&sent.transcript),
            });
            vectors.push(Bytes::from(vector));
            transcripts.push(sent.transcript);
        }
        let manifest = MaskedManifest {
            list: list.root,
            entries,
        };
        let of = FinalMasked {
            block: Hash::of(b"block"),
            round: MaskedRound {
                round,
                plan,
                state: base.outcome,
                list: list.root,
                ready: all,
                manifest: manifest.root(),
                inclusions: Vec::new().into(),
            },
            threshold,
        };
        let blobs = [list.document(&epoch).blob(), manifest.blob()];
        let blobs: Vec<_> = blobs.into_iter().chain(transcripts).collect();
        let blob = |hash: &Hash| blobs.iter().find(|blob| Hash::of(blob) == *hash).cloned();
        let held = HeldTranscripts::default();
        let opening = OpeningRound::read(&configs[0], of, &held, blob).unwrap();
        let unlock = |(i, prepared): (usize, &PreparedRound)| {
            let keys = prepared.keys(&configs[i]).unwrap();
            (MemberIndex(i as u16), opening.unlock(&keys).unwrap())
        };
        let unmaskings = prepared.iter().enumerate().map(unlock).collect();
        let blobs = blobs.iter().chain(&vectors).cloned().collect();
        Self {
            config: configs.into_iter().next().unwrap(),
            base,
            round: opening,
            vectors,
            unmaskings,
            blobs,
        }
    }

    fn blob(&self, hash: &Hash) -> Option<Bytes> {
        let mut blobs = self.blobs.iter();
        blobs.find(|blob| Hash::of(blob) == *hash).cloned()
    }

    /// Returns what this round says of an author and a secret, if its sum tells nothing.
    fn blamed(
        &self,
        author: u16,
        secret: u8,
    ) -> Result<Result<Option<MaskDeviation>, String>, NotVoid> {
        let document = self.combine().result.unwrap().document;
        let epoch = &self.config.member.epoch;
        let blob = |hash: &Hash| self.blob(hash);
        let void = VoidRound::read(epoch, &self.round.of, &document, blob)?;
        assert_eq!(void.sums().len(), 1);
        Ok(void.examine(MemberIndex(author), &Secret::new([secret; 32]), blob))
    }

    fn combine(&self) -> Combined {
        let vector = |entry: &MaskedEntry| Some(self.vectors[entry.member.at()].clone());
        let (config, base, round) = (&self.config, &self.base, &self.round);
        combine(config, base, round, &self.unmaskings, vector, |bytes| bytes)
    }
}

fn genesis() -> Settled {
    genesis_of(&config(&epoch(), 0))
}

/// Returns whether no sum of the first group is opened any more.
fn suspended(base: &RoundBase) -> bool {
    base.voids.suspended(0, 4)
}

fn note(settled: &Settled) -> &MaskedNote {
    settled.document.masked.as_ref().unwrap()
}

#[test]
fn the_mean_of_all_is_opened_with_any_three_unmaskings_and_kept_in_the_document() {
    let mut opened = OpenedRound::after(&genesis(), |_, _| {});
    let whole = opened.combine();
    assert!(whole.unproven.is_empty());
    let whole = whole.result.unwrap();
    assert!((whole.state.models[0].values()[0] - 2.5).abs() < 1e-5);
    assert_eq!(
        (note(&whole).nothing, &note(&whole).void[..]),
        (None, &[0][..])
    );
    let read = crate::outcome::Document::read(&whole.blob).unwrap();
    assert_eq!(read, whole.document);
    for absent in 0..4 {
        let all = opened.unmaskings.clone();
        opened.unmaskings.remove(absent);
        assert_eq!(opened.combine().result.unwrap().hash, whole.hash);
        opened.unmaskings = all;
    }
    opened.unmaskings.truncate(2);
    assert_eq!(opened.combine().result.err(), Some(WorkError::Unavailable));
}

#[test]
fn models_around_the_blocks_of_the_sum_are_opened_whole() {
    for numbers in [BLOCK - 4, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 100] {
        let opened = OpenedRound::first(numbers, 1, |_, _| {}).combine();
        let state = opened.result.unwrap().state;
        let expected = |at: usize| 2.5 - (at % 7) as f32 / 8.0;
        let mut values = state.models[0].values().iter().enumerate();
        assert!(
            values.all(|(at, value)| *value == expected(at)),
            "{numbers}"
        );
        // A check behind the last coordinate is looked at too.
        let corrupted = OpenedRound::first(numbers, 1, |i, vector: &mut Vec<u8>| {
            let check = vector.len() - 1 - 4 * (numbers % 4);
            vector[check] ^= u8::from(i == 2);
        });
        let settled = corrupted.combine().result.unwrap();
        assert_eq!(note(&settled).sums[0].void, Some(VoidSum::Streams));
    }
}

#[test]
fn a_void_sum_leaves_the_others_as_they_are() {
    let corrupted = |whose: &'static [usize]| {
        let round = OpenedRound::first(BLOCK + 9, 2, move |i, vector: &mut Vec<u8>| {
            *vector.last_mut().unwrap() ^= u8::from(whose.contains(&i));
        });
        round.combine().result.unwrap()
    };
    // The models are 1 to 8.
    for (whose, mean, void) in [
        (&[][..], 4.5, [None, None]),
        (&[1], 6.5, [Some(VoidSum::Streams), None]),
        (&[7], 2.5, [None, Some(VoidSum::Streams)]),
    ] {
        let settled = corrupted(whose);
        let values = settled.state.models[0].values();
        assert_eq!(
            (values[0], values[BLOCK]),
            (mean, mean - (BLOCK % 7) as f32 / 8.0)
        );
        let found: Vec<_> = note(&settled).sums.iter().map(|sum| sum.void).collect();
        assert_eq!((found, note(&settled).nothing), (void.to_vec(), None));
    }
    let both = corrupted(&[0, 4]);
    assert_eq!(note(&both).nothing, Some(Nothing::Void));
    assert!(
        both.state.models[0]
            .values()
            .iter()
            .all(|value| *value == 0.0)
    );
}

#[test]
fn a_false_unmasking_is_named_and_another_one_takes_its_place() {
    let mut opened = OpenedRound::after(&genesis(), |_, _| {});
    let whole = opened.combine().result.unwrap().hash;
    let last = opened.unmaskings[1].1.len() - 1;
    opened.unmaskings[1].1[last] ^= 1;
    let found = opened.combine();
    assert_eq!(found.unproven, [MemberIndex(1)]);
    assert_eq!(found.result.unwrap().hash, whole);
}

#[test]
fn wrong_streams_void_the_sum_the_models_stay_and_after_three_rounds_the_group_is_suspended() {
    // The last word is a check coordinate.
    let corrupted = |i: usize, vector: &mut Vec<u8>| {
        if i == 2 {
            *vector.last_mut().unwrap() ^= 1;
        }
    };
    let mut before = genesis();
    for round in 1..=3 {
        let opened = OpenedRound::after(&before, corrupted);
        assert!(!suspended(&opened.base));
        let settled = opened.combine().result.unwrap();
        assert_eq!(settled.state, before.state);
        let note = note(&settled);
        assert_eq!(
            (&note.void[..], note.nothing),
            (&[round][..], Some(Nothing::Void))
        );
        assert_eq!(note.sums[0].void, Some(VoidSum::Streams));
        assert_eq!(note.left_out, [true; 4]);
        before = settled;
    }
    let config = config(&epoch(), 0);
    assert!(suspended(&RoundBase::new(&config, &before)));
    // Another epoch begins anew.
    let mut other = Epoch::clone(&epoch());
    other.id = Hash::of(b"another epoch");
    let other = crate::testing::config(&Arc::new(other), 0);
    assert!(!suspended(&RoundBase::new(&other, &before)));
}

/// Void, void, good: whoever spares a sum from time to time would corrupt the others for ever.
#[test]
fn a_good_sum_between_void_ones_gives_no_new_budget_of_voids() {
    let mut before = genesis();
    for (corrupts, counted) in [(true, 1), (true, 2), (false, 2), (false, 2), (true, 3)] {
        let opened = OpenedRound::after(&before, |i, vector| {
            if i == 2 && corrupts {
                *vector.last_mut().unwrap() ^= 1;
            }
        });
        assert!(!suspended(&opened.base));
        before = opened.combine().result.unwrap();
        assert_eq!(note(&before).void, [counted]);
    }
    let config = config(&epoch(), 0);
    assert!(suspended(&RoundBase::new(&config, &before)));
}

#[test]
fn a_number_beyond_reach_voids_the_sum() {
    let far = |i: usize, vector: &mut Vec<u8>| {
        if i == 0 {
            vector[3] ^= 0x40;
        }
    };
    let settled = OpenedRound::after(&genesis(), far)
        .combine()
        .result
        .unwrap();
    assert_eq!(note(&settled).sums[0].void, Some(VoidSum::Reach));
}

#[test]
fn public_keys_that_are_no_points_or_the_identity_are_refused() {
    let good = OpenedRound::after(&genesis(), |_, _| {});
    let keys = good.round.list.keys.ready[0].keys.public;
    assert_eq!(check_keys(&keys), Ok(()));
    for bad in [[0; 32], [255; 32]] {
        let exchange = PublicKeys {
            exchange: bad,
            ..keys
        };
        let share = PublicKeys { share: bad, ..keys };
        assert!(
            check_keys(&exchange)
                .unwrap_err()
                .starts_with("its exchange key")
        );
        assert!(check_keys(&share).unwrap_err().starts_with("its share key"));
    }
}

#[test]
fn masked_rounds_do_not_begin_with_numbers_beyond_8() {
    let reach = |value: f32| Fixed::MODEL.check_start(model(value).values());
    assert!(reach(-8.0).is_ok());
    for bad in [8.5, f32::NAN] {
        assert!(reach(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_author_that_spoiled_a_sum_is_named_from_its_secret_and_no_other_is() {
    let corrupted = |i: usize, vector: &mut Vec<u8>| {
        if i == 2 {
            *vector.last_mut().unwrap() ^= 1;
        }
    };
    let round = OpenedRound::after(&genesis(), corrupted);
    let value = 1 << 24;
    for author in 0..4 {
        let found = round.blamed(author, author as u8 + 1).unwrap().unwrap();
        match found {
            None => assert_ne!(author, 2),
            Some(MaskDeviation::Check {
                at: 3,
                value: found,
            }) => {
                assert_eq!((author, found.abs()), (2, value));
            }
            other => panic!("{author}: {other:?}"),
        }
    }
    let foreign = round.blamed(1, 9).unwrap().unwrap_err();
    assert!(foreign.starts_with("this is not the secret of silo 1 in round 1"));
}

#[test]
fn nobody_is_blamed_for_a_round_whose_sum_was_adopted() {
    let round = OpenedRound::after(&genesis(), |_, _| {});
    assert_eq!(round.blamed(1, 2), Err(NotVoid::Adopted));
}

#[test]
fn sums_are_opened_again_one_by_one_from_what_is_kept() {
    let round = OpenedRound::after(&genesis(), |_, _| {});
    let vector = |entry: &MaskedEntry| round.blob(&entry.vector.hash);
    let (config, base) = (&round.config, &round.base);
    let opened = open_sums(config, base, &round.round, &round.unmaskings, vector).unwrap();
    // The models are 1, 2, 3 and 4, and the start is 0.
    assert_eq!(opened.len(), 1);
    assert_eq!(opened[0].values.as_ref().unwrap()[0], 10 << 18);
    assert_eq!((opened[0].authors.len(), opened[0].sigma), (4, None));
    let few = open_sums(config, base, &round.round, &round.unmaskings[..2], vector);
    assert_eq!(few, Err(WorkError::Unavailable));
}

#[test]
fn a_transcript_that_holds_is_checked_once_for_its_list_author_and_bytes() {
    let [first, second] = [3, 5].map(|numbers| OpenedRound::first(numbers, 1, |_, _| ()));
    let entries = &first.round.manifest.entries;
    let named = |at: usize| (entries[at].member, entries[at].transcript.hash);
    let bytes = first.blob(&named(0).1).unwrap();
    let other = Bytes::from_static(b"no transcript");
    let held = HeldTranscripts::default();
    let check = |round: &OpenedRound, (author, hash), bytes: &Bytes| {
        let checked = held.check(&round.round.ready, author, hash, bytes);
        checked.is_ok()
    };
    assert!(!check(&first, named(0), &other));
    assert!(check(&first, named(0), &bytes));
    // Not even looked at.
    assert!(check(&first, named(0), &other));
    for others in [named(1), (named(1).0, named(0).1), (named(0).0, named(1).1)] {
        assert!(!check(&first, others, &other));
    }
    assert!(!check(&second, named(0), &other));
    // A list takes the place of another.
    let (author, hash) = (
        MemberIndex(0),
        second.round.manifest.entries[0].transcript.hash,
    );
    assert!(check(&second, (author, hash), &second.blob(&hash).unwrap()));
    assert!(!check(&first, named(0), &other));
}
