//! `rota check` against everything that goes wrong in practice.

use std::net::{TcpListener, UdpSocket};

use super::*;

/// The first bad finding of a topic.
fn bad(document: &Value, topic: &str) -> String {
    let found = findings(document, topic);
    let bad = found.iter().find(|(level, _)| level == "bad");
    bad.unwrap_or_else(|| panic!("nothing bad about {topic}: {document:#}"))
        .1
        .clone()
}

#[test]
#[cfg(unix)]
fn wrong_keys_rows_and_ports_are_named_with_their_remedies() {
    use std::os::unix::fs::PermissionsExt;
    let hospitals = JoiningHospitals::joined("join-doctor");
    let config: PathBuf = hospitals.path(0, "node.toml").into();
    let look = || checked(&config, &["--offline"]);
    let mode = |file: &str, mode: u32| {
        let file = hospitals.path(0, file);
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("rows.csv", 0o600);
    let (code, found, error) = look();
    assert_eq!(code, 0, "{error} {found:#}");
    assert_eq!(findings(&found, "permissions")[0].0, "good");
    assert!(
        findings(&found, "consent")[0]
            .1
            .contains("north signed this agreement on")
    );
    assert!(findings(&found, "disk")[0].1.contains("are free at"));

    mode("rows.csv", 0o644);
    let (code, found, _) = look();
    assert_eq!(code, 0);
    let rows = &findings(&found, "permissions")[0];
    assert!(
        rows.0 == "note" && rows.1.contains("→ chmod 600"),
        "{rows:?}"
    );

    mode("identity.key", 0o644);
    let (code, found, error) = look();
    assert_eq!(code, 1, "{error}");
    let key = bad(&found, "key");
    assert!(
        key.contains("can be read by others") && key.contains("→ chmod 600"),
        "{key}"
    );
    mode("identity.key", 0o600);

    // Both ports are taken, by another program.
    let at = ("0.0.0.0", hospitals.port);
    let taken = (UdpSocket::bind(at).unwrap(), TcpListener::bind(at).unwrap());
    let (code, found, _) = look();
    assert_eq!(code, 1);
    let port = bad(&found, "ports");
    assert!(
        port.contains("cannot listen at") && port.contains("another program uses this port"),
        "{port}"
    );
    drop(taken);

    let file = hospitals.path(0, "rows.csv");
    let rows = fs::read_to_string(&file).unwrap();
    fs::write(&file, rows.replacen("pulse", "puls", 1)).unwrap();
    let (code, found, _) = look();
    assert_eq!(code, 1);
    let column = bad(&found, "rows");
    assert!(
        column.contains("there is no column \"pulse\"") && column.contains("[data.rows.names]"),
        "{column}"
    );
    fs::write(
        &file,
        rows.lines()
            .take(10)
            .map(|line| line.to_owned() + "\n")
            .collect::<String>(),
    )
    .unwrap();
    let few = bad(&look().1, "rows");
    assert!(few.contains('9') && few.contains("20"), "{few}");
    fs::write(&file, rows).unwrap();

    // A configuration that cannot be read is another kind of failure.
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("identity = ", "identiti = ")).unwrap();
    let (code, _, error) = look();
    assert_eq!(code, 2);
    assert!(error.contains("did you mean \"identity\"?"), "{error}");
}

#[test]
fn a_peer_that_is_down_is_named_with_what_to_ask() {
    let hospitals = JoiningHospitals::joined("join-down");
    let config: PathBuf = hospitals.path(0, "node.toml").into();
    let (code, found, _) = checked(&config, &[]);
    assert_eq!((code, &found["verdict"]), (3, &"waiting".into()));
    let peers = findings(&found, "peers");
    let tcp = peers
        .iter()
        .find(|(_, said)| said.contains("(TCP)"))
        .unwrap();
    assert!(
        tcp.1.contains("south at") && tcp.1.contains("nothing listens at this port"),
        "{tcp:?}"
    );
    let udp = peers
        .iter()
        .find(|(_, said)| said.contains("(QUIC over UDP)"))
        .unwrap();
    assert!(udp.0 == "waiting" && udp.1.contains("→ is"), "{udp:?}");
    let text = output(&[
        "check",
        "--timeout",
        "1s",
        "--config",
        config.to_str().unwrap(),
    ]);
    let text = crate::nodes::text(&text.stdout);
    assert!(
        text.contains("wait  peers")
            && text.contains(
                "This node is ready. The nodes of 2 of 2 other members do not answer yet"
            ),
        "{text}"
    );
}

#[test]
fn two_agreements_are_named_on_both_sides() {
    let hospitals = JoiningHospitals::joined("join-other");
    // The first has an older draft, with the same members.
    let agreed = hospitals.path(0, "federation.toml");
    let text = fs::read_to_string(&agreed).unwrap();
    fs::write(&agreed, text.replace("rounds = 3", "rounds = 4")).unwrap();
    let configs = hospitals.configs();
    good(&[
        "federation",
        "sign",
        "--yes",
        "--config",
        configs[0].to_str().unwrap(),
    ]);
    let mut nodes = TestNodes::new(&configs, &[]);
    nodes.start(1);
    nodes.until(1, "start", 60);
    let (code, found, _) = checked(&configs[0], &[]);
    assert_eq!(code, 1);
    let own = found["id"].as_str().unwrap();
    let other = bad(&found, "peers");
    assert!(
        other.contains("south answers at") && other.contains("has another agreement"),
        "{other}"
    );
    let said = nodes.until(1, "other-agreement", 30);
    assert_eq!(
        (&said["member"], &said["checking"]),
        (&"north".into(), &true.into()),
        "{said}"
    );
    assert_eq!(said["federation"], own);
    // A key that is in no agreement.
    let stranger = hospitals.path(0, "other.key");
    good(&["identity", "new", "--out", &stranger]);
    let public = good(&["identity", "show", &stranger]);
    let draft = hospitals.draft(3);
    let text = fs::read_to_string(&draft).unwrap();
    let old = hospitals.lines[0].split(' ').nth(1).unwrap();
    fs::write(&agreed, text.replace(old, public.trim())).unwrap();
    let text = fs::read_to_string(&configs[0]).unwrap();
    let text = text.replace("identity = \"identity.key\"", "identity = \"other.key\"");
    fs::write(&configs[0], text).unwrap();
    let (code, found, _) = checked(&configs[0], &[]);
    assert_eq!(code, 1);
    let away = bad(&found, "peers");
    assert!(
        away.contains("refuses this institution's: its agreement does not have that key"),
        "{away}"
    );
    let said = nodes.until(1, "stranger", 30);
    assert_eq!(said["key"], public.trim(), "{said}");
}
