//! Four institutions agreed to decide together which model each serves: their nodes wait for each other's comparison, open
//! the same sums, and choose by them.

use ::rota::agreement::Agreement;
use ::rota::methods::serving::Candidate;
use ::rota::methods::strategy::{LAST_QUESTION, QuestionState};
use ::rota::node::model::{DecisionNote, HeldRounds, ServedNote, served_note};

use super::heard::Heard;
use super::*;

const ALIKE: &str = "name = 'decided'
rounds = 4
silos = 4
[task.table]
data = 'diabetes'
standardise = 'silo'
model = { linear = { loss = 'squared' } }
[strategy]
name = 'fedavg'
weight = 'equal'
training = { epochs = 5, batch = 16, optimiser = { name = 'sgd', rate = 0.05 } }
[protocol]
heartbeat = '100ms'
straggler-timeout = 20
";

/// Rounds beside those that learn: the sums, and as many of waiting and repetition as are agreed on.
const BESIDE: u64 = 206;

/// Returns what is opened of a number that silos measured, in steps of 2⁻³⁰.
fn steps(of: impl Iterator<Item = f64>) -> u64 {
    let steps = of.map(|number| (number * f64::from(1 << 30)).round() as i64);
    steps.sum::<i64>().cast_unsigned()
}

#[test]
fn nodes_decide_together_which_model_each_serves() {
    let file = scenario("run-decided", ALIKE);
    let demo = Demo::new("run-decided", &["--scenario", file.to_str().unwrap()]);
    let federation = demo.folder.join("federation.toml");
    let table = "[serving]\ntogether = true\nwaiting-rounds = 200\n\n[[member]]";
    edit(&federation, "[[member]]", table);
    edit(&federation, "blob-limit = ", "blob-limit = 4000 # was ");
    // The rounds that it takes have to be agreed on, too.
    let show = ["federation", "show", federation.to_str().unwrap()];
    let refused = good(&show);
    let refused = refused.split_whitespace().collect::<Vec<_>>().join(" ");
    let most = format!("must be more than {BESIDE}, which `[serving]` takes");
    assert!(refused.contains(&most), "{refused}");
    let rounds = format!("rounds = {}", 4 + BESIDE);
    edit(&federation, "rounds = 4", &rounds);
    let said = good(&show);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "in 4 rounds",
        "deciding together which model each serves, afterwards, in at most 206 rounds",
        "and the standard error of that: every member, without a name",
    ] {
        assert!(said.contains(sentence), "{sentence}: {said}");
    }
    let mut nodes = Heard::of(&demo.configs, &["--until-done"]);
    for (node, config) in demo.configs.iter().enumerate() {
        fs::remove_file(config.with_file_name("consent.toml")).unwrap();
        sign(config);
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        let serves = nodes.until(node, "serves");
        assert_eq!(serves["decided"]["together"]["silos"], 4, "{serves}");
    }
    for node in 0..4 {
        assert_eq!(nodes.nodes.code(node), 0, "{}", nodes.nodes.tails());
    }

    // All have the same sums, which are those of what each has measured, and choose by them.
    let agreement = Agreement::load(&federation).unwrap();
    let states: Vec<PathBuf> = demo
        .configs
        .iter()
        .map(|config| config.with_file_name("state"))
        .collect();
    let notes: Vec<ServedNote> = states.iter().map(|one| served_note(one).unwrap()).collect();
    let of = |candidate: Candidate| {
        let all = notes.iter().flat_map(|note| &note.measured);
        all.filter(move |one| one.candidate == candidate)
    };
    for (state, note) in states.iter().zip(&notes) {
        let held = HeldRounds::read(state, &agreement).unwrap();
        let question = QuestionState::of(&held.round(None).unwrap().memory, LAST_QUESTION);
        let [waiting @ .., sums] = &question.opened[..] else {
            panic!("no sums are opened");
        };
        assert_eq!(waiting.last().unwrap(), &[0], "all had compared");
        assert_eq!((sums[4], sums[12]), (4, 4));
        let common = of(Candidate::Coalition).map(|one| one.advantage);
        let tuned = of(Candidate::FineTuned).map(|one| one.advantage);
        assert_eq!((sums[5], sums[13]), (steps(common), steps(tuned)));
        let serving = agreement.serving.as_ref().unwrap();
        let together = serving.rounds().decided(&question).unwrap();
        assert_eq!(note.candidate, together.choose(&note.measured));
        assert_eq!(note.decided, Some(DecisionNote::Together { silos: 4 }));
        let said = good(&["verify", "--state", state.to_str().unwrap()]);
        assert!(said.contains("computed again"), "{said}");
    }
    let config = demo.configs[1].to_str().unwrap();
    let said = good(&["model", "list", "--config", config]);
    assert!(
        said.contains("decided together, by the sums of 4 silos"),
        "{said}"
    );
}
