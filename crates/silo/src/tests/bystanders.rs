//! Silos that cannot live under the agreement in force vote on changes, so that it can be put right.

use protocol::MemberIndex;
use protocol::message::Amendment;
use tokio::time::{Instant, sleep};

use super::LONG;
use super::epochs::{epochs, live};
use crate::testing::*;
use crate::{Checks, SpawnError, Stopped, bystand, spawn};

#[test]
fn a_limit_that_no_model_fits_is_taken_back_by_silos_that_only_vote() {
    virtually(async {
        let (first, hub, checks) = (epoch(4, 2), Hub::default(), Checks::new(true));
        let origin = Instant::now();
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        let rigs: Vec<_> = (0..4).map(rig).collect();
        let start = |i: u16| live(&first, &rigs[usize::from(i)], &hub, i);
        let amended = |limit: u64| {
            let mut protocol = first.protocol.clone();
            (protocol.rounds, protocol.blob_limit) = (4, limit);
            Amendment {
                format: first.format,
                silos: first.roster.silos().to_vec(),
                protocol,
                text: Vec::new(),
                stolen: Vec::new(),
            }
        };
        let mut silos: Vec<_> = (0..4).map(start).collect();
        sleep(LONG).await;
        // Somebody mistypes the limit, and a quorum approves it.
        for silo in &silos[..3] {
            silo.approve(amended(1), 1);
        }
        for silo in &mut silos {
            assert_eq!(silo.stopped().await, Stopped::EpochOver);
        }
        // No model fits, so none of them can start as before.
        let stand_by = |i: u16| {
            let rig = &rigs[usize::from(i)];
            let now = epochs(&first, rig);
            let config = config(&now.now, i);
            let (environment, _) = rig.environment();
            let refused = spawn(config.clone(), environment).map(drop);
            assert!(matches!(refused, Err(SpawnError::Limit { limit: 1, .. })));
            let mut member = config.member;
            member.bystander = Some("blob-limit = 1".into());
            let (environment, ends) = rig.environment();
            hub.join(MemberIndex(i), ends);
            bystand(member, false, now.answers(), environment).unwrap()
        };
        let mut silos: Vec<_> = (0..4).map(stand_by).collect();
        sleep(LONG).await;
        // They stop and start, and take it back.
        for silo in &mut silos {
            silo.stop();
            assert_eq!(silo.stopped().await, Stopped::Asked);
        }
        let mut silos: Vec<_> = (0..4).map(stand_by).collect();
        for silo in &silos[1..] {
            silo.approve(amended(first.protocol.blob_limit), 2);
        }
        for silo in &mut silos {
            assert_eq!(silo.stopped().await, Stopped::EpochOver);
        }
        let mut silos: Vec<_> = (0..4).map(start).collect();
        sleep(LONG).await;
        for silo in &mut silos {
            silo.stop();
            silo.stopped().await;
        }
        for rig in &rigs {
            let rounds: Vec<_> = rig.adopted().iter().map(|(round, ..)| *round).collect();
            assert_eq!(rounds, [1, 2, 3, 4]);
        }
    });
}
