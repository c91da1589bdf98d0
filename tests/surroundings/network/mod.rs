//! The guarantees of a network between silos, tested on the simulated network and on libp2p.

#![allow(clippy::unwrap_used)]

mod libp2p;
mod promises;
mod simulated;

/// Defines tests of these guarantees on one kind of network.
macro_rules! tests {
    ($name:ident, $kind:ty: $($promise:ident),* $(,)?) => {
        mod $name {
            use crate::network::promises::Lab;
            $(
                #[test]
                fn $promise() {
                    <$kind>::run(crate::network::promises::$promise::<$kind>());
                }
            )*
        }
    };
}

/// Defines tests of all guarantees on one kind of network.
macro_rules! all_promises {
    ($name:ident, $kind:ty) => {
        tests! {
            $name, $kind:
            members_are_reported_up_with_a_round_trip,
            sent_frames_arrive_unchanged,
            a_frame_over_the_limit_is_lost,
            frames_of_one_member_stay_in_order,
            only_sent_frames_are_delivered,
            published_frames_arrive_at_most_once,
            published_frames_are_passed_on_only_when_accepted,
            no_frame_of_a_muted_member_is_delivered,
            a_slow_reader_loses_nothing,
            a_member_that_does_not_read_delays_no_other,
            a_member_that_returns_is_reached_again,
            a_blob_is_fetched_from_any_holder,
            each_blob_of_a_batch_is_answered_once,
            an_unknown_hash_is_missing,
            a_blob_over_its_limit_is_refused,
            wrong_bytes_are_never_delivered,
            a_fetch_continues_after_its_holder_ends,
            the_author_decides_who_may_have_its_blob,
        }
    };
}

all_promises!(simulation, crate::network::simulated::Simulated);
all_promises!(quic, crate::network::libp2p::Quic);
all_promises!(tcp, crate::network::libp2p::Tcp);

// With lost and duplicated messages, fewer guarantees hold for messages; all hold for blobs.
tests! {
    rough_simulation, crate::network::simulated::Rough:
    members_are_reported_up_with_a_round_trip,
    only_sent_frames_are_delivered,
    a_blob_is_fetched_from_any_holder,
    each_blob_of_a_batch_is_answered_once,
    an_unknown_hash_is_missing,
    a_blob_over_its_limit_is_refused,
    wrong_bytes_are_never_delivered,
    a_fetch_continues_after_its_holder_ends,
    the_author_decides_who_may_have_its_blob,
}
