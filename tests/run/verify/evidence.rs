//! A running node writes the evidence that it gets into its state folder, and anybody can check it.

use std::time::{Duration, Instant};

use rota::mesh::{self, Command, Config};
use rota::node::verify::EVIDENCE;
use rota::protocol::envelope::sign;

use super::*;

const SCENARIO: &str = "name = 'accused'
rounds = 100000
silos = 4
task = { constant = { parameters = 10 } }
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
[protocol]
heartbeat = '200ms'
straggler-timeout = 1
";

/// Sends the other members two votes of this member that the rules do not allow together, in many
/// views, until the evidence file is there.
async fn contradict(institution: Institution, until: &Path) {
    let epoch = institution.agreement.epoch.clone();
    let (me, key) = (institution.me, institution.key.clone());
    let mut config = Config::new(epoch.federation, institution.listen.clone());
    config.epoch = epoch.id;
    let handle = tokio::runtime::Handle::current();
    let mesh = mesh::spawn(&handle, config, key.to_bytes(), institution.roster.clone());
    let mesh = mesh.await.unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let block = Hash::of(b"any");
    let mut view = 0;
    while !until.exists() {
        assert!(Instant::now() < end, "no evidence within 30 s");
        view += 1;
        for body in [Body::Nullify, Body::Finalize { block }] {
            let (_, frame) = sign(&epoch, &key, 0, view, me, body);
            for to in epoch.roster.members().filter(|&to| to != me) {
                let frame = frame.clone();
                let _ = mesh.commands.send(Command::Send { to, frame }).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_node_keeps_evidence_that_proves_itself() {
    let file = scenario("verify-accused", SCENARIO);
    let demo = Demo::new("verify-accused", &["--scenario", file.to_str().unwrap()]);
    let mut nodes = TestNodes::new(&demo.configs[..3], &[]);
    (0..3).for_each(|node| nodes.start(node));
    nodes.until(0, "adopted", 30);
    let state = demo.configs[0].with_file_name("state");
    let accused = Institution::load(&demo.configs[3]).unwrap();
    let name = format!("{}-nullify-and-finalize.json", accused.key.public());
    let evidence = state.join(EVIDENCE).join(name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(contradict(accused, &evidence));
    let line = nodes.until(0, "fault", 10);
    assert_eq!(line["member"], "silo 4");
    assert_eq!(line["evidence"], evidence.to_str().unwrap());
    drop(nodes);
    let path = evidence.to_str().unwrap();
    let said = |done: String| done.split_whitespace().collect::<Vec<_>>().join(" ");
    let proof = said(good(&["verify", path]));
    assert!(proof.starts_with("silo 4 broke the rules"), "{proof}");
    assert!(proof.contains("Nullify and Finalize in view"), "{proof}");
    // Elsewhere, with an agreement and without one.
    let alone = nowhere("verify-evidence");
    fs::create_dir_all(&alone).unwrap();
    let copy = alone.join("evidence.json");
    fs::copy(&evidence, &copy).unwrap();
    let copy = copy.to_str().unwrap();
    let agreed = demo.folder.join("federation.toml");
    let agreed = agreed.to_str().unwrap();
    let proof: Value =
        serde_json::from_str(&good(&["verify", copy, "--json", "--federation", agreed])).unwrap();
    assert_eq!(
        (&proof["member"], &proof["by_agreement"]),
        (&"silo 4".into(), &true.into())
    );
    let proof = said(good(&["verify", copy]));
    assert!(proof.contains("give it with --federation"), "{proof}");
    // Against another federation, and changed.
    let other = Demo::new("verify-other", &["--silos", "4"])
        .folder
        .join("federation.toml");
    let refused = output(&["verify", copy, "--federation", other.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("proves nothing"),
        "{}",
        text(&refused.stderr)
    );
    let changed = fs::read_to_string(copy).unwrap();
    let mut changed: Value = serde_json::from_str(&changed).unwrap();
    let message = changed["messages"][0].as_str().unwrap();
    // The view in the header.
    let other = match &message[146..147] {
        "0" => "1",
        _ => "0",
    };
    let message = format!("{}{other}{}", &message[..146], &message[147..]);
    changed["messages"][0] = message.into();
    fs::write(copy, changed.to_string()).unwrap();
    let refused = output(&["verify", copy, "--federation", agreed]);
    assert_eq!(refused.status.code(), Some(1));
    let why = said(text(&refused.stderr));
    assert!(
        why.contains("message 1 is not signed with the key of silo 4"),
        "{why}"
    );
}
