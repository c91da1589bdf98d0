//! The audit logs of real nodes.

use std::collections::BTreeMap;

use super::*;

/// The lines of a silo's log.
fn lines(state: &Path) -> Vec<Value> {
    let said = good(&["audit", "--json", "--state", state.to_str().unwrap()]);
    let lines = said.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn every_silos_log_is_whole_and_names_leads_as_receivers_only() {
    let state_of = |node: usize| state(node);
    let chain = good(&["chain", "--json", "--state", state_of(0).to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let mut leads: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for block in chain["blocks"].as_array().unwrap() {
        if let Some(round) = block["round"].as_u64() {
            let lead = block["lead"].as_str().unwrap().to_owned();
            leads.entry(round).or_default().push(lead);
        }
    }
    let last = &chain["blocks"].as_array().unwrap().last().unwrap()["view"];
    let failed = last.as_u64() > Some(ROUNDS);
    let mut contributions = 0;
    for node in 0..4 {
        let said = good(&["audit", "--state", state_of(node).to_str().unwrap()]);
        assert!(
            said.contains("each line follows the one before it"),
            "{said}"
        );
        assert!(said.contains(" Contribution "), "{said}");
        // Every line is a sentence before.
        let sentences = said.lines().take_while(|line| !line.is_empty());
        assert_eq!(sentences.count(), lines(&state_of(node)).len());
        assert!(
            said.contains("sent the contribution of its model to "),
            "{said}"
        );
        let short = good(&[
            "audit",
            "--summary",
            "--state",
            state_of(node).to_str().unwrap(),
        ]);
        assert!(said.ends_with(&short), "{short}");
        let lines = lines(&state_of(node));
        assert_eq!(lines[0]["event"], "started");
        assert!(lines.iter().any(|line| line["event"] == "blob"));
        assert!(lines.iter().any(|line| line["to"] == "all"));
        for line in lines.iter().filter(|line| line["kind"] == "Contribution") {
            let round = line["round"].as_u64().unwrap();
            let to = line["to"].as_str().unwrap().to_owned();
            contributions += 1;
            // The next view begins before the round is known to be final, and its lead may need the
            // contribution. Where a view failed, others led the round too.
            let next = leads
                .get(&(round + 1))
                .is_none_or(|leads| leads.contains(&to));
            assert!(failed || next || leads[&round].contains(&to), "{line}");
        }
    }
    assert!(contributions >= 3 * ROUNDS, "{contributions}");
}

#[test]
fn a_line_that_was_changed_or_cut_is_named() {
    let folder = copied("audit");
    let log = folder.join("audit");
    fs::create_dir_all(&log).unwrap();
    let original = fs::read_to_string(state(1).join("audit/000001.jsonl")).unwrap();
    fs::copy(state(1).join("audit/head.json"), log.join("head.json")).unwrap();
    let check = |text: String| {
        fs::write(log.join("000001.jsonl"), text).unwrap();
        let done = output(&["audit", "--state", folder.to_str().unwrap()]);
        (done.status.code().unwrap(), text_of(&done.stderr))
    };
    assert_eq!(check(original.clone()).0, 0);
    let to = original.lines().nth(9).unwrap();
    let receiver = serde_json::from_str::<Value>(to).unwrap()["to"].to_string();
    let changed = to.replace(&receiver, "\"nobody\"");
    let (code, said) = check(original.replace(to, &changed));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("line 11 does not follow line 10"), "{said}");
    let (code, said) = check(original.replace(&format!("{to}\n"), ""));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("line 10 is missing"), "{said}");
    let short: String = original
        .lines()
        .take(20)
        .map(|line| format!("{line}\n"))
        .collect();
    let (code, said) = check(short);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("are cut off at the end"), "{said}");
    // No log at all.
    let (code, _) = verified(&folder);
    assert_eq!(code, 0, "the rest of the state is as it was");
    fs::remove_dir_all(&log).unwrap();
    let done = output(&["audit", "--state", folder.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(1));
    let said = text_of(&done.stderr);
    assert!(said.contains("the journal beside it names it"), "{said}");
    fs::remove_file(folder.join("journal.redb")).unwrap();
    let done = output(&["audit", "--state", folder.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(1));
    let said = text_of(&done.stderr);
    assert!(said.contains("there is no journal in"), "{said}");
}

/// Somebody without the key, who wants a line to be gone.
#[test]
fn an_older_whole_log_beside_the_newest_journal_is_named() {
    let folder = copied("audit-older");
    let log = folder.join("audit");
    fs::create_dir_all(&log).unwrap();
    for name in ["000001.jsonl", "head.json"] {
        fs::copy(state(1).join("audit").join(name), log.join(name)).unwrap();
    }
    let said = good(&["audit", "--state", folder.to_str().unwrap()]);
    assert!(said.contains("the journal beside it names line"), "{said}");
    assert!(said.contains("only other members could tell"), "{said}");
    // The log of the first 20 lines, signed for that many, as it was once.
    let institution = Institution::load(&ENDED.configs[1]).unwrap();
    let text = fs::read_to_string(log.join("000001.jsonl")).unwrap();
    let older: String = text
        .lines()
        .take(20)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(log.join("000001.jsonl"), older).unwrap();
    fs::remove_file(log.join("head.json")).unwrap();
    let federation = institution.agreement.epoch.federation;
    let (key, sizes) = (&institution.key, rota::node::audit::LogSizes::default());
    let signed = rota::node::audit::AuditLog::open(&folder, federation, key, sizes, None).unwrap();
    drop(signed);
    let done = output(&["audit", "--state", folder.to_str().unwrap()]);
    let said = text_of(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("the journal beside it names line"), "{said}");
    // A copy of all of it that has no journal can still be checked.
    fs::remove_file(folder.join("journal.redb")).unwrap();
    let said = good(&["audit", "--state", folder.to_str().unwrap()]);
    assert!(said.contains("there is no journal beside it"), "{said}");
}

fn text_of(bytes: &[u8]) -> String {
    let said = text(bytes);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}
