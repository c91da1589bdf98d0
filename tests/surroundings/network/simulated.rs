//! The simulated network in virtual time, as a [`Lab`].

use protocol::MemberIndex;
use simulations::network::{LinkConfig, SimulatedNetwork};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::network::promises::{Lab, MemberEnds};

fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    LocalSet::new().block_on(&runtime.unwrap(), test);
}

macro_rules! kinds {
    ($($kind:ident, $faithful:literal, $links:expr;)*) => {$(
        pub(crate) struct $kind(SimulatedNetwork);

        impl Lab for $kind {
            // Small messages overtake large ones.
            const ORDERED: bool = false;
            const FAITHFUL: bool = $faithful;

            fn run(test: impl Future<Output = ()>) {
                run(test);
            }

            async fn new(members: u16) -> Self {
                Self(SimulatedNetwork::alone($links, members.into(), 1))
            }

            async fn start(&mut self, member: u16, events: usize) -> MemberEnds {
                let silo::Network { commands, events } =
                    self.0.connect(MemberIndex(member), events);
                MemberEnds { commands, events }
            }

            async fn line() -> (Self, Vec<MemberEnds>) {
                let mut lab = Self::new(3).await;
                let mut all = Vec::new();
                for member in 0..3 {
                    all.push(lab.start(member, 64).await);
                }
                for (me, ends) in (0..).zip(&mut all) {
                    ends.all_up((0..3).filter(|&other| other != me)).await;
                }
                lab.0.cut(&[(0, 2), (2, 0)]);
                (lab, all)
            }

            async fn stop(&mut self, member: u16, ends: MemberEnds) {
                drop(ends);
                self.0.disconnect(MemberIndex(member));
            }
        }
    )*};
}

kinds! {
    Simulated, true, LinkConfig::default();
    Rough, false, LinkConfig { loss: 0.3, duplication: 0.3, ..LinkConfig::default() };
}
