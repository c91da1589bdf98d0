//! What a network between silos promises, run on the simulated network and on libp2p.

#![allow(clippy::unwrap_used)]

mod libp2p;
mod promises;
mod simulated;

/// Tests of these promises on one kind of network.
macro_rules! tests {
    ($name:ident, $kind:ty: $($promise:ident),* $(,)?) => {
        mod $name {
            use crate::promises::Lab;
            $(
                #[test]
                fn $promise() {
                    <$kind>::run(crate::promises::$promise::<$kind>());
                }
            )*
        }
    };
}

/// Tests of all promises on one kind of network.
macro_rules! all_promises {
    ($name:ident, $kind:ty) => {
        tests! {
            $name, $kind:
            members_come_up_with_a_round_trip,
            sent_frames_arrive_unchanged,
            a_frame_over_the_limit_is_lost,
            frames_of_one_member_stay_in_order,
            nothing_comes_that_was_not_said,
            published_frames_arrive_at_most_once,
            published_frames_are_passed_on_only_when_accepted,
            a_muted_member_is_not_heard_until_its_mute_ends,
            a_slow_reader_loses_nothing,
            one_that_does_not_read_holds_up_nobody,
            a_member_that_returns_is_reached_again,
            a_blob_comes_from_whoever_has_it,
            each_blob_of_a_batch_is_answered_once,
            an_unknown_hash_is_missing,
            a_blob_over_its_limit_is_refused,
            wrong_bytes_never_arrive,
            a_blob_survives_the_end_of_its_holder,
            the_author_decides_who_may_have_its_blob,
        }
    };
}

all_promises!(simulation, crate::simulated::Simulated);
all_promises!(quic, crate::libp2p::Quic);
all_promises!(tcp, crate::libp2p::Tcp);

// Where messages are lost and doubled, less is promised of them; of blobs as much as ever.
tests! {
    rough_simulation, crate::simulated::Rough:
    members_come_up_with_a_round_trip,
    nothing_comes_that_was_not_said,
    a_blob_comes_from_whoever_has_it,
    each_blob_of_a_batch_is_answered_once,
    an_unknown_hash_is_missing,
    a_blob_over_its_limit_is_refused,
    wrong_bytes_never_arrive,
    a_blob_survives_the_end_of_its_holder,
    the_author_decides_who_may_have_its_blob,
}
