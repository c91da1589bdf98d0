//! `rota check --dry-run` names a member whose program masks otherwise than all others, before a sum is
//! corrupted by it.

use ::rota::mesh::{self, Rehearsal};
use ::rota::node::institution::Institution;

use super::masked::SUMS;
use super::*;

/// A node that is connected like a member, and answers challenges with this.
async fn stand_in(config: &Path, rehearsal: Rehearsal) -> mesh::Handle {
    let institution = Institution::load(config).unwrap();
    let federation = institution.agreement.epoch.federation;
    let mut config = mesh::Config::new(federation, institution.listen.clone());
    config.rehearsal = rehearsal;
    let (key, roster) = (institution.key.to_bytes(), institution.roster.clone());
    let here = tokio::runtime::Handle::current();
    mesh::spawn(&here, config, key, roster).await.unwrap()
}

#[test]
fn a_member_that_masks_otherwise_is_named_before_round_one() {
    let file = scenario("rehearsed", SUMS);
    let demo = Demo::new("rehearsed", &["--scenario", file.to_str().unwrap()]);
    let name = |node: usize| {
        let institution = Institution::load(&demo.configs[node]).unwrap();
        let roster = &institution.agreement.epoch.roster;
        roster.name(institution.me).to_owned()
    };
    // One runs, one masks otherwise, one has an older program, and this one checks.
    let mut nodes = TestNodes::new(&demo.configs[..1], &[]);
    nodes.start(0);
    let event = nodes.next(Instant::now() + Duration::from_secs(60));
    assert_eq!(event.unwrap().line["event"], "start", "{}", nodes.tails());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let wrong = Rehearsal::new(|_| Some([1; 32]));
    let stand_ins = runtime.block_on(async {
        [
            stand_in(&demo.configs[1], wrong).await,
            stand_in(&demo.configs[2], Rehearsal::default()).await,
        ]
    });
    let config = demo.configs[3].to_str().unwrap();
    let done = output(&["check", "--dry-run", "--config", config]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        format!(
            "good rehearsal {} computes the same mask of a known vector as this program",
            name(0)
        ),
        format!(
            "BAD rehearsal {} computes another mask of a known vector than this program",
            name(1)
        ),
        format!(
            "note rehearsal {} cannot test masks: its program is older",
            name(2)
        ),
    ] {
        assert!(said.contains(&sentence), "{sentence}: {said}");
    }
    // A member that has gone is not called right.
    drop(stand_ins);
    drop(runtime);
    let done = output(&["check", "--dry-run", "--config", config]);
    let said = text(&done.stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(done.status.code(), Some(3), "{said}");
    let absent = format!("wait rehearsal {} was not tested", name(1));
    assert!(said.contains(&absent), "{said}");
}

#[test]
fn rounds_in_clear_need_no_dry_run() {
    let demo = Demo::new("rehearsed-clear", &[]);
    let config = demo.configs[0].to_str().unwrap();
    let said = text(&output(&["check", "--dry-run", "--config", config]).stdout);
    assert!(
        said.contains("nothing to test: rounds are in clear, without masks"),
        "{said}"
    );
}
