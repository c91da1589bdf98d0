//! The contract of a network between silos, run on the libp2p mesh over loopback.

#![allow(clippy::unwrap_used)]

mod loopback;
mod network;

/// Tests of these promises on one kind of network.
macro_rules! tests {
    ($kind:ty: $($promise:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $promise() {
            crate::network::$promise::<$kind>().await;
        }
    )*};
}

/// Tests of all promises on one kind of network.
macro_rules! all_promises {
    ($name:ident, $kind:ty) => {
        mod $name {
            tests! {
                $kind:
                members_come_up_with_a_round_trip,
                sent_frames_arrive_unchanged,
                frames_of_one_member_stay_in_order,
                published_frames_arrive_at_most_once,
                a_slow_reader_loses_nothing,
                a_member_that_returns_is_reached_again,
                a_blob_comes_from_whoever_has_it,
                each_blob_of_a_batch_is_answered_once,
                an_unknown_hash_is_missing,
                a_blob_over_its_limit_is_refused,
                wrong_bytes_never_arrive,
                the_author_decides_who_may_have_its_blob,
            }
        }
    };
}

all_promises!(quic, crate::loopback::Quic);
all_promises!(tcp, crate::loopback::Tcp);
