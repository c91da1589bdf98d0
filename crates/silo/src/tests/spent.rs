//! Why did this round take so long? One slow trainer, one slow line and one slow disk give three answers.

use std::sync::Arc;
use std::time::Duration;

use protocol::MemberIndex;
use tokio::time::sleep;

use crate::testing::*;
use crate::{Activity, Checks, Spent, spawn};

/// Returns what took longest: work of a kind, or the disk.
fn longest(spent: &Spent) -> (Option<Activity>, Duration) {
    let work = spent.work.iter().map(|(of, took)| (Some(*of), *took));
    let all = work.chain([(None, spent.disk)]);
    all.max_by_key(|(_, took)| *took).unwrap()
}

#[test]
fn a_slow_trainer_a_slow_line_and_a_slow_disk_are_told_apart() {
    let all = virtually(async {
        let (epoch, hub, checks) = (epoch(4, 2), Hub::default(), Checks::new(true));
        let mut silos = Vec::new();
        for i in 0..4 {
            let rig = Rig::new(checks.clone());
            let (mut environment, ends) = rig.environment();
            match i {
                0 => environment.pool = Arc::new(TestPool(Duration::from_secs(2))),
                1 => hub.slow(MemberIndex(1), Duration::from_millis(700)),
                // By the clock of the machine, which has to be above the virtual times of its work.
                2 => rig.journal.slow(Duration::from_millis(60)),
                _ => {}
            }
            hub.join(MemberIndex(i), ends);
            silos.push((spawn(config(&epoch, i), environment).unwrap(), rig));
        }
        while silos.iter().any(|(_, rig)| rig.adopted().len() < 2) {
            sleep(Duration::from_millis(100)).await;
        }
        let spent = silos.iter().map(|(silo, _)| silo.activities().take_spent());
        spent.collect::<Vec<Spent>>()
    });
    let [trainer, line, disk, well] = &all[..] else {
        panic!("four silos")
    };
    assert_eq!(longest(trainer).0, Some(Activity::Train), "{trainer:?}");
    assert!(longest(trainer).1 >= Duration::from_secs(4), "{trainer:?}");
    // Its models come and go slowly, and are not trained slowly.
    let fetched = [
        Activity::Hold,
        Activity::Keep,
        Activity::Apply,
        Activity::Admit,
    ];
    assert!(fetched.map(Some).contains(&longest(line).0), "{line:?}");
    assert!(longest(line).1 >= Duration::from_millis(700), "{line:?}");
    assert!(
        longest(line).1 > 2 * line.work[&Activity::Train],
        "{line:?}"
    );
    assert!(disk.disk > 10 * well.disk, "{disk:?}, {well:?}");
    assert!(disk.disk >= Duration::from_millis(600), "{disk:?}");
    // Whoever is well waits for the others.
    let waits = well.whole.saturating_sub(well.busy);
    assert!(
        waits > well.busy && waits >= Duration::from_secs(2),
        "{well:?}"
    );
}
