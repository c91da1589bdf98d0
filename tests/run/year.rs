//! A year of a federation on real nodes, in one go: a change of rounds, an institution that joins late, a
//! restart and a kill, a disk and a key that are lost, a member that leaves, more rounds. After every step every command
//! is asked at every node, and what each says is what the chain says.

use std::collections::BTreeSet;

use super::amended::{Heard, id, says};
use super::nodes::base_port;
use super::status::get;
use super::stays::{SCENARIO, table};
use super::*;

/// Folder and public key of an institution.
pub(super) fn institution(folder: &Path, name: &str, at: usize) -> (PathBuf, String) {
    let own = folder.join(name);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("stays.csv"), table(at)).unwrap();
    let file = own.join("identity.key");
    let key = good(&["identity", "new", "--out", file.to_str().unwrap()]);
    (own, key.trim().to_owned())
}

/// Runs `rota federation join` with the table `file`; exit code, output and errors.
pub(super) fn join(
    invitation: &str,
    own: &Path,
    file: &str,
    more: &[&str],
) -> (i32, String, String) {
    let (key, out) = (own.join("identity.key"), own.join("node"));
    let (key, out) = (key.to_str().unwrap(), out.to_str().unwrap());
    let data = own.join(file);
    let all = [
        "federation",
        "join",
        invitation,
        "--yes",
        "--identity",
        key,
        "--out",
        out,
        "--data",
        data.to_str().unwrap(),
    ];
    let done = output(&[&all[..], more].concat());
    let code = done.status.code().unwrap();
    (code, text(&done.stdout), text(&done.stderr))
}

/// A federation in the course of time.
struct Year {
    nodes: Heard,
    /// The members' names and nodes, in the order of the agreement in force.
    members: Vec<(&'static str, usize)>,
    rounds: u64,
    changes: u64,
}

impl Year {
    fn config(&self, node: usize) -> PathBuf {
        self.nodes.nodes.configs[node].clone()
    }

    fn state(&self, node: usize) -> String {
        let state = self.config(node).with_file_name("state");
        state.to_str().unwrap().to_owned()
    }

    /// Runs a command of a node, which has to succeed.
    fn good(&self, node: usize, words: &[&str]) -> String {
        let config = self.config(node);
        good(&[words, &["--config", config.to_str().unwrap()]].concat())
    }

    /// The amendment that was proposed at the first of these nodes is approved at the others, and comes
    /// into force at all `nodes`. What approvers are shown.
    fn agree(&mut self, said: &str, at: &[usize], nodes: &[usize]) -> String {
        let begin = said.find("amendment ").unwrap();
        let amendment = id(&said[begin..]).to_owned();
        let mut shown = String::new();
        for node in &at[1..] {
            while self.nodes.until(*node, "amendment")["amendment"] != amendment.as_str() {}
            shown += &says(&self.config(*node), &["approve", &amendment]);
        }
        self.changes += 1;
        self.comes_into_force(nodes);
        shown
    }

    fn comes_into_force(&mut self, nodes: &[usize]) {
        for node in nodes {
            while self.nodes.until(*node, "epoch")["epoch"] != self.changes {}
        }
        for node in nodes {
            self.is_done(*node);
        }
    }

    /// Waits until a node knows that all rounds are done, and has adopted the last or goes on from it: what
    /// the members agreed on may be final before its models are here.
    fn is_done(&mut self, node: usize) {
        let (mut finished, mut adopted) = (false, false);
        while !(finished && adopted) {
            let line = self.nodes.next(node, "finished");
            match line["event"].as_str() {
                Some("finished") => finished = true,
                Some("adopted" | "goes-on") => adopted |= line["round"] == self.rounds,
                _ => {}
            }
        }
    }

    /// Asks every command at every node.
    fn everything(&self, when: &str) {
        let names: BTreeSet<&str> = self.members.iter().map(|(name, _)| *name).collect();
        let (mut chains, mut outcomes) = (BTreeSet::new(), BTreeSet::new());
        for &(name, node) in &self.members {
            let place = format!("{when}, {name}");
            let status = self.good(node, &["status", "--json"]);
            let status: Value = serde_json::from_str(&status).unwrap();
            let federation = &status["federation"];
            assert_eq!(federation["members"], names.len(), "{place}: {status:#}");
            assert_eq!(federation["rounds"], self.rounds, "{place}: {status:#}");
            assert_eq!(
                (&status["member"], &status["complete"]),
                (&name.into(), &true.into()),
                "{place}: {status:#}"
            );
            let peers = status["peers"].as_array().unwrap().iter();
            let mut peers: BTreeSet<&str> =
                peers.map(|peer| peer["name"].as_str().unwrap()).collect();
            assert!(peers.insert(name), "{place}: {status:#}");
            assert_eq!(peers, names, "{place}: {status:#}");
            let rounds = status["rounds"].as_array().unwrap();
            let last = rounds.last().unwrap();
            assert_eq!(last["round"], self.rounds, "{place}: {status:#}");
            assert!(
                last["held_out"]["metrics"]["roc-auc"].is_number(),
                "{place}: {status:#}"
            );
            let said = self.good(node, &["status"]);
            assert!(
                said.contains(&format!("all {} rounds are done", self.rounds)),
                "{place}: {said}"
            );
            self.metrics(&status, &place);
            self.nodes(node, &status, &place);

            let state = self.state(node);
            let chain = good(&["chain", "--json", "--state", &state]);
            let chain: Value = serde_json::from_str(&chain).unwrap();
            let blocks = chain["blocks"].as_array().unwrap();
            // A newcomer has no rounds before its admission, and a restored member none before the present
            // agreement; both have the model of the last one.
            let late = ["archive", "east"].contains(&name);
            let mut learned = blocks.iter().rev();
            let learned = learned.find(|block| block["round"].is_number());
            if let Some(learned) = learned.filter(|block| block["round"] == self.rounds) {
                assert_eq!(learned["outcome"], last["outcome"], "{place}");
                // A member that comes late may take an outcome over before it has the block that names authors.
                if !(late && last["authors"].is_null()) {
                    assert_eq!(learned["included"], last["authors"], "{place}: {status:#}");
                }
            } else {
                assert!(late, "{place}: {chain:#}");
            }
            outcomes.insert(last["outcome"].as_str().unwrap().to_owned());
            let changes = blocks.iter().filter(|block| block["change"].is_array());
            assert_eq!(changes.count() as u64, self.changes, "{place}: {chain:#}");
            let tip = &blocks[blocks.len() - 1];
            chains.insert(tip["block"].as_str().unwrap().to_owned());

            let said = good(&["verify", "--state", &state]);
            let begin = format!("{name} in the federation stays");
            assert!(said.starts_with(&begin), "{place}: {said}");
            assert!(!said.contains("silo was away"), "{place}: {said}");
            let said = good(&["audit", "--state", &state, "--summary"]);
            assert!(said.starts_with(name), "{place}: {said}");
            let said = self.good(node, &["check", "--json", "--offline"]);
            if self.changes > 0 {
                let force = format!(
                    "the agreement in force is that of change {}, with {} members and {} rounds",
                    self.changes,
                    names.len(),
                    self.rounds
                );
                assert!(said.contains(&force), "{place}: {said}");
            }
            let said = self.good(node, &["federation", "changes"]);
            let so_far = match self.changes {
                1 => "1 change of the agreement".to_owned(),
                more => format!("{more} changes of the agreement"),
            };
            assert!(said.contains(&so_far), "{place}: {said}");
            assert!(said.contains("no change is proposed"), "{place}: {said}");
            let page = self.config(node).with_file_name("agreement.html");
            let print = ["federation", "print", "--force", "--out"];
            self.good(node, &[&print[..], &[page.to_str().unwrap()]].concat());
            let page = fs::read_to_string(page).unwrap();
            for name in &names {
                assert!(page.contains(name), "{place}: {page}");
            }
            let after = format!(
                "In force after {so_far}",
                so_far = match self.changes {
                    1 => "1 change".to_owned(),
                    more => format!("{more} changes"),
                }
            );
            assert!(page.contains(&after), "{place}: {page}");
            let said = self.good(node, &["model", "list"]);
            assert!(said.contains(&self.rounds.to_string()), "{place}: {said}");
        }
        assert_eq!(chains.len(), 1, "{when}: {chains:?}");
        assert_eq!(outcomes.len(), 1, "{when}: {outcomes:?}");
    }

    /// A node asks the others how they are doing: every member that it is connected to says so.
    fn nodes(&self, node: usize, status: &Value, place: &str) {
        let said = self.good(node, &["status", "--federation", "--json"]);
        let nodes: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(nodes["shown"], true, "{place}: {said}");
        let all = nodes["nodes"].as_array().unwrap();
        let names: Vec<_> = all
            .iter()
            .map(|node| node["name"].as_str().unwrap())
            .collect();
        let members: Vec<_> = self.members.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, members, "{place}: {said}");
        let peers = status["peers"].as_array().unwrap();
        for node in all {
            let peer = peers.iter().find(|peer| peer["name"] == node["name"]);
            // Or it has ended since, as nodes do when all is done.
            let gone = node["why"].as_str().unwrap_or_default();
            if peer.is_some_and(|peer| peer["connected"] == false)
                || gone.starts_with("not connected")
            {
                continue;
            }
            let doing = &node["status"];
            assert_eq!(doing["complete"], true, "{place}: {said}");
            assert_eq!(doing["adopted"]["round"], self.rounds, "{place}: {said}");
            assert_eq!(
                doing["version"],
                env!("CARGO_PKG_VERSION"),
                "{place}: {said}"
            );
            assert!(doing["free"].as_u64().unwrap() > 0, "{place}: {said}");
        }
        let page = get(status["node"]["http"].as_str().unwrap(), "/federation");
        for name in members {
            assert!(page.contains(name), "{place}: {page}");
        }
        let text = self.good(node, &["status", "--federation"]);
        assert!(text.contains("all rounds are done"), "{place}: {text}");
    }

    /// The metrics are those of the members in force and of nobody else.
    fn metrics(&self, status: &Value, place: &str) {
        let url = status["node"]["http"].as_str().unwrap();
        let said = get(url, "/metrics");
        let n = self.members.len();
        assert_eq!(
            said.matches("rota_peer_up{").count(),
            n - 1,
            "{place}: {said}"
        );
        assert!(!said.contains("peer=\"?\""), "{place}: {said}");
        for line in [
            format!("rota_members {n}.0\n"),
            format!("rota_rounds {}.0\n", self.rounds),
            format!("rota_adopted_round {}.0\n", self.rounds),
            "rota_complete 1.0\n".into(),
            "rota_held_out{metric=\"roc-auc\"} ".into(),
        ] {
            assert!(said.contains(&line), "{place}: {line}: {said}");
        }
    }

    /// Changes the number of rounds: proposed at the first of these nodes, approved at the others.
    fn last(&mut self, rounds: u64, at: &[usize]) {
        let config = self.config(at[0]);
        let file = match self.changes {
            0 => config.with_file_name("federation.toml"),
            _ => config.with_file_name("state").join("in-force.toml"),
        };
        let now = fs::read_to_string(file).unwrap();
        let (old, new) = (
            format!("\nrounds = {}", self.rounds),
            format!("\nrounds = {rounds}"),
        );
        let longer = config.with_file_name("longer.toml");
        // A file that changes nothing is no proposal.
        fs::write(&longer, &now).unwrap();
        let words = ["federation", "change", longer.to_str().unwrap(), "--yes"];
        let same = output(&[&words[..], &["--config", config.to_str().unwrap()]].concat());
        let said = text(&same.stderr);
        assert_eq!(same.status.code(), Some(1), "{said}");
        assert!(
            said.contains("has the same contents as the agreement in force"),
            "{said}"
        );
        fs::write(&longer, now.replace(&old, &new)).unwrap();
        let said = says(&config, &["change", longer.to_str().unwrap()]);
        self.rounds = rounds;
        let nodes: Vec<usize> = self.members.iter().map(|(_, node)| *node).collect();
        self.agree(&said, at, &nodes);
    }
}

#[test]
fn for_a_year_every_command_prints_what_the_chain_states() {
    let folder = nowhere("run-year");
    fs::create_dir_all(&folder).unwrap();
    let scenario = folder.join("scenario.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let port = base_port();
    let address = |at: usize| format!("127.0.0.1:{}", usize::from(port) + at);
    let agreed = folder.join("federation.toml");
    let agreed = agreed.to_str().unwrap();
    let names = ["north", "south", "east", "west"];
    let founders: Vec<_> = (0..4)
        .map(|at| institution(&folder, names[at], at))
        .collect();
    let scenario = scenario.to_str().unwrap();
    good(&["federation", "new", "--scenario", scenario, "--out", agreed]);
    let draft = fs::read_to_string(agreed).unwrap();
    let shown = draft.replacen("# status = \"members\"", "status = \"members\"", 1);
    assert_ne!(shown, draft);
    fs::write(agreed, shown).unwrap();
    for (at, (_, key)) in founders.iter().enumerate() {
        let address = address(at);
        let rows = ["--rows", "1000", "--file"];
        let add = [&["federation", "add", names[at], key, &address], &rows[..]].concat();
        good(&[&add[..], &[agreed]].concat());
    }
    let invitation = good(&["federation", "invite", "--file", agreed]);
    let mut configs = Vec::new();
    for (own, _) in &founders {
        let (code, _, said) = join(invitation.trim(), own, "stays.csv", &[]);
        assert_eq!(code, 0, "{said}");
        configs.push(own.join("node").join("node.toml"));
    }
    let (own, key) = institution(&folder, "archive", 7);
    configs.push(own.join("node").join("node.toml"));
    // The same institution after its key was lost: the new key lies in another folder.
    let (again, new_key) = institution(&folder, "archive-again", 7);
    configs.push(again.join("node").join("node.toml"));
    let options = ["--wait-for-admission", "--http", "127.0.0.1:0"];
    let mut year = Year {
        nodes: Heard::of(&configs, &options),
        members: names.into_iter().zip(0..).collect(),
        rounds: 3,
        changes: 0,
    };
    for node in 0..4 {
        year.nodes.nodes.start(node);
    }
    for node in 0..4 {
        year.is_done(node);
    }
    year.everything("the first day");
    year.last(4, &[0, 1, 2]);
    year.everything("one round more");

    // An institution joins. A table that does not fit is found before anybody hears of it.
    let token = year.good(0, &["federation", "invite", "archive"]);
    let token = token.trim();
    assert!(token.starts_with("rota-invite-2-"), "{token}");
    fs::write(own.join("wrong.csv"), table(7).replace("intensive", "ITS")).unwrap();
    let address = address(9);
    let about = ["--address", &address, "--rows", "60"];
    let (code, said, why) = join(token, &own, "wrong.csv", &about);
    assert_eq!(code, 1, "{said}\n{why}");
    assert!(why.contains("Nothing was signed"), "{why}");
    assert!(!said.contains("rota federation admit"), "{said}");
    assert!(!configs[4].with_file_name("consent.toml").exists());
    fs::remove_file(&configs[4]).unwrap();
    let (code, said, why) = join(token, &own, "stays.csv", &about);
    assert_eq!(code, 0, "{said}\n{why}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "Its agreement in force, after 1 change, with this institution in it:",
        "a federation of 5 members",
        "signed as archive",
    ] {
        assert!(words.contains(expected), "{expected}: {said}");
    }
    let mut lines = said.lines().map(str::trim);
    let request = lines.find_map(|line| line.strip_prefix("rota federation admit "));
    let request = request.unwrap();
    year.nodes.nodes.start(4);
    year.nodes.until(4, "waits-for-admission");
    let said = says(&configs[0], &["admit", request]);
    year.members.push(("archive", 4));
    let approved = year.agree(&said, &[0, 1, 2], &[0, 1, 2, 3, 4]);
    // Whoever proposes and whoever approves sees that it has signed.
    for said in [said, approved] {
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "archive signed this agreement, with itself as a member, on ",
            "and states that its rows fit.",
        ] {
            assert!(words.contains(expected), "{expected}: {said}");
        }
    }
    year.everything("an institution more");
    let said = year.good(4, &["check", "--json", "--offline"]);
    assert!(
        said.contains("archive signed the agreement in force"),
        "{said}"
    );
    // The request is of the agreement as it was: a second use is refused.
    let here = ["--config", configs[1].to_str().unwrap(), "--yes"];
    let twice = output(&[&["federation", "admit", request][..], &here].concat());
    assert_eq!(twice.status.code(), Some(1));
    // A disk is gone, with journal and key: what is put back is a backup, and the rows. Its node only
    // listens, until a change begins in which it has signed nothing.
    let east = folder.join("east");
    let backup = folder.join("east.tar");
    let backup = backup.to_str().unwrap();
    year.good(2, &["backup", backup]);
    year.nodes.nodes.kill(2);
    fs::rename(&east, folder.join("east-gone")).unwrap();
    fs::create_dir_all(&east).unwrap();
    fs::write(east.join("stays.csv"), table(2)).unwrap();
    let node = east.join("node");
    good(&[
        "restore",
        backup,
        "--out",
        node.to_str().unwrap(),
        "--outside",
    ]);
    year.nodes.nodes.start(2);
    year.is_done(2);
    year.everything("a restore from a backup");

    // The newcomer approves like any other, and its models are in the rounds that follow.
    year.last(6, &[4, 0, 1, 3]);
    year.everything("two rounds more");
    let chain = good(&["chain", "--state", &year.state(0)]);
    let with_it = |line: &&str| line.trim().starts_with("in ") && line.contains("archive");
    assert!(chain.lines().any(|line| with_it(&line)), "{chain}");

    // One restarts in order, one is killed.
    year.nodes.nodes.terminate(1);
    assert_eq!(year.nodes.nodes.code(1), 0);
    year.nodes.nodes.kill(2);
    for node in [1, 2] {
        year.nodes.nodes.start(node);
        year.is_done(node);
    }
    year.everything("two restarts");

    // Its key is lost: the same door, by the new key.
    year.nodes.nodes.terminate(4);
    assert_eq!(year.nodes.nodes.code(4), 0);
    let token = year.good(0, &["federation", "invite", "archive"]);
    let (code, said, why) = join(token.trim(), &again, "stays.csv", &[]);
    assert_eq!(code, 0, "{said}\n{why}");
    let rekey = format!("rota federation rekey archive {new_key} --lost");
    assert!(said.contains(&rekey), "{said}");
    assert_ne!(key, new_key);
    year.nodes.nodes.start(5);
    year.nodes.until(5, "waits-for-admission");
    let said = says(&configs[0], &["rekey", "archive", &new_key, "--lost"]);
    year.members[4] = ("archive", 5);
    year.agree(&said, &[0, 1, 2, 3], &[0, 1, 2, 3, 5]);
    year.everything("another key");
    let said = year.good(5, &["check", "--json", "--offline"]);
    assert!(
        said.contains("archive signed the agreement in force"),
        "{said}"
    );

    // One leaves: its own word is enough, and it is told what became of it.
    let said = says(&configs[1], &["leave"]);
    assert!(!said.contains("approvals so far"), "{said}");
    year.members.remove(1);
    year.changes += 1;
    year.nodes.until(1, "left");
    year.comes_into_force(&[0, 2, 3, 5]);
    year.everything("a member less");
    let gone = configs[1].to_str().unwrap();
    let found = output(&["check", "--json", "--offline", "--config", gone]);
    assert_eq!(found.status.code(), Some(1));
    assert!(text(&found.stdout).contains("is no member any more"));
    // The decisions, their times and their members stand on the page for the files.
    let page = configs[0].with_file_name("agreement.html");
    let page = fs::read_to_string(page).unwrap();
    for (what, by) in [
        ("4 rounds", "north, south, east"),
        ("admits archive", "north, south, east"),
        ("another key of archive", "north, south, east, west"),
        ("without south", "south"),
    ] {
        let row = format!("<td>{what}</td><td>{by}");
        assert!(page.contains(&row), "{row}: {page}");
    }
    // And the year after.
    year.last(7, &[0, 2, 3]);
    year.everything("the year after");
}
