//! Nodes outside the roster, restarts, fetches that go on, bad input.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mesh::{BlobRequest, Command, Config, Event, Handle, Transport};
use protocol::{Hash, MemberIndex};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::common::{PATIENCE, config, contact, down, end, listening, spawn, started, up, wait};

fn frame(event: Event) -> Option<Bytes> {
    match event {
        Event::Received { frame, .. } => Some(frame),
        _ => None,
    }
}

fn port(mesh: &Handle) -> u16 {
    let parts: Vec<_> = mesh.addresses[0].split('/').collect();
    parts[4].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_outside_the_roster_is_not_connected() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(config(transport), 0, &members).await;
        // Member 2 is in its own roster alone.
        let known = contact(0, &host.addresses);
        let roster = [known.clone(), contact(2, &[])];
        let mut stranger = spawn(config(transport), 2, &roster).await;
        let to = MemberIndex(0);
        stranger
            .commands
            .send(Command::Send {
                to,
                frame: "in".into(),
            })
            .await
            .unwrap();
        let hash = Hash::of(b"secret");
        let (blobs, from) = (vec![BlobRequest { hash, limit: 10 }], vec![to]);
        stranger
            .commands
            .send(Command::Fetch { blobs, from })
            .await
            .unwrap();
        wait(&mut stranger, |event| {
            matches!(event, Event::Missing { .. }).then_some(())
        })
        .await;
        // A member connects after it. No event of the outside node came before.
        let mut member = spawn(config(transport), 1, &[known, contact(1, &[])]).await;
        wait(&mut member, up).await;
        let first = timeout(PATIENCE, host.events.recv())
            .await
            .unwrap()
            .unwrap();
        assert!(
            matches!(
                first,
                Event::Up {
                    peer: MemberIndex(1),
                    ..
                }
            ),
            "{first:?}"
        );
        assert!(stranger.events.try_recv().is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_node_at_its_old_port_is_found_by_waiting_members() {
    for transport in [Transport::Quic, Transport::Tcp, Transport::Both] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(config(transport), 0, &members).await;
        let port = port(&host);
        let addresses = transport.addresses("127.0.0.1", port);
        let roster = [contact(0, &addresses), contact(1, &[])];
        let mut waiting = spawn(config(transport), 1, &roster).await;
        wait(&mut waiting, up).await;
        wait(&mut host, up).await;
        end(host).await;
        wait(&mut waiting, down).await;
        let one = match transport {
            Transport::Both => Transport::Quic,
            one => one,
        };
        let mut host = spawn(listening(one, port), 0, &members).await;
        wait(&mut waiting, up).await;
        wait(&mut host, up).await;
        let to = MemberIndex(1);
        host.commands
            .send(Command::Send {
                to,
                frame: "again".into(),
            })
            .await
            .unwrap();
        assert_eq!(wait(&mut waiting, frame).await, "again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_is_used_when_quic_does_not_connect() {
    let members = [contact(0, &[]), contact(1, &[])];
    let host = spawn(config(Transport::Tcp), 0, &members).await;
    // No socket is bound to the UDP port of this number.
    let addresses = Transport::Both.addresses("127.0.0.1", port(&host));
    let roster = [contact(0, &addresses), contact(1, &[])];
    let mut other = spawn(config(Transport::Both), 1, &roster).await;
    assert_eq!(wait(&mut other, up).await, MemberIndex(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_over_the_limit_ends_its_stream_and_a_second_mutes() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let small = Config {
            frame: 1000,
            ..config(transport)
        };
        let members = [contact(0, &[]), contact(1, &[])];
        let mut reader = spawn(small, 0, &members).await;
        let roster = [contact(0, &reader.addresses), contact(1, &[])];
        let writer = spawn(config(transport), 1, &roster).await;
        let say = async |length: usize| {
            let (to, frame) = (MemberIndex(0), vec![1; length].into());
            let send = Command::Send { to, frame };
            writer.commands.send(send).await.unwrap();
        };
        say(1000).await;
        assert_eq!(wait(&mut reader, frame).await.len(), 1000);
        // Measures the time until its frames arrive again. It sends all the time.
        let mut pauses = Vec::new();
        for _ in 0..3 {
            let began = Instant::now();
            say(5_000_000).await;
            let speak = async {
                loop {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    say(999).await;
                }
            };
            // Frames in transit before the large one may still arrive.
            let silent = async {
                loop {
                    let length = wait(&mut reader, frame).await.len();
                    assert_eq!(length, 999);
                    if began.elapsed() > Duration::from_millis(700) {
                        return began.elapsed();
                    }
                }
            };
            tokio::select! {
                pause = silent => pauses.push(pause),
                () = speak => unreachable!(),
            }
        }
        assert!(
            pauses.is_sorted() && pauses[2] > Duration::from_secs(2),
            "{pauses:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_sent_before_the_first_connection_arrive_after_it() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let host = spawn(config(transport), 0, &members).await;
        for number in 0..10u8 {
            let (to, frame) = (MemberIndex(1), vec![number].into());
            host.commands
                .send(Command::Send { to, frame })
                .await
                .unwrap();
        }
        let frame_for_all = Command::Publish {
            frame: "to all".into(),
        };
        host.commands.send(frame_for_all).await.unwrap();
        let roster = [contact(0, &host.addresses), contact(1, &[])];
        let mut late = spawn(config(transport), 1, &roster).await;
        for number in 0..10u8 {
            assert_eq!(wait(&mut late, frame).await, vec![number]);
        }
        assert_eq!(wait(&mut late, frame).await, "to all");
    }
}

/// Answers every request with this blob, until `until` ends.
async fn hold(holder: &mut Handle, blob: &Bytes, until: impl Future<Output = ()>) {
    let answer = async {
        while let Some(event) = holder.events.recv().await {
            if let Event::Wanted { ticket, .. } = event {
                let blobs = vec![Some(blob.clone())];
                let serve = Command::Serve { ticket, blobs };
                holder.commands.send(serve).await.unwrap();
            }
        }
    };
    tokio::select! {
        () = answer => panic!("the mesh ended"),
        () = until => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_resumes_after_its_holder_restarts() {
    const LENGTH: usize = 200_000_000;
    /// Bytes that may be in transit when the holder ends, and are sent again.
    const AHEAD: usize = 16 << 20;
    let blob = Bytes::from(vec![5; LENGTH]);
    let hash = Hash::of(&blob);
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut holder = spawn(config(transport), 0, &members).await;
        let at = port(&holder);
        let roster = [contact(0, &holder.addresses), contact(1, &[])];
        let mut asker = spawn(config(transport), 1, &roster).await;
        wait(&mut asker, up).await;
        let (limit, from) = (LENGTH as u64, vec![MemberIndex(0)]);
        let blobs = vec![BlobRequest { hash, limit }];
        let fetch = Command::Fetch { blobs, from };
        asker.commands.send(fetch).await.unwrap();
        let served = holder.served.clone();
        let some = async {
            let mut look = tokio::time::interval(Duration::from_millis(1));
            while served.load(Ordering::Relaxed) < 3 * AHEAD as u64 {
                look.tick().await;
            }
        };
        timeout(PATIENCE, hold(&mut holder, &blob, some))
            .await
            .unwrap();
        end(holder).await;
        let first = served.load(Ordering::Relaxed) as usize;
        assert!(
            first < LENGTH,
            "the blob was complete before the holder ended"
        );

        let mut holder = spawn(listening(transport, at), 0, &members).await;
        let served = holder.served.clone();
        let came = async {
            let fetched = |event| match event {
                Event::Fetched { blobs } => Some(blobs),
                Event::Missing { .. } => panic!("the fetch ended without the blob"),
                _ => None,
            };
            assert_eq!(wait(&mut asker, fetched).await, [(hash, blob.clone())]);
        };
        timeout(PATIENCE, hold(&mut holder, &blob, came))
            .await
            .unwrap();
        let second = served.load(Ordering::Relaxed) as usize;
        assert!(
            (LENGTH - first..=LENGTH - first + AHEAD).contains(&second),
            "{first} and {second}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_a_handshake_are_harmless() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(config(transport), 0, &members).await;
        let at = ("127.0.0.1", port(&host));
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut streams = Vec::new();
        for number in 0..20u8 {
            let garbage = vec![number.wrapping_mul(37); 1 + 60 * usize::from(number)];
            match transport {
                Transport::Quic => drop(socket.send_to(&garbage, at).await.unwrap()),
                _ => {
                    let mut stream = TcpStream::connect(at).await.unwrap();
                    // The node may close the connection at any byte.
                    let _ = stream.write_all(&garbage).await;
                    streams.push(stream);
                }
            }
        }
        let roster = [contact(0, &host.addresses), contact(1, &[])];
        let mut member = spawn(config(transport), 1, &roster).await;
        assert_eq!(wait(&mut member, up).await, MemberIndex(0));
        assert_eq!(wait(&mut host, up).await, MemberIndex(1));
    }
}

/// The log of this thread. Waits for lines with given words.
#[derive(Clone, Default)]
struct ThreadLog {
    text: Arc<Mutex<String>>,
    grown: Arc<Notify>,
}

impl ThreadLog {
    /// Records the log until the guard is dropped.
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// The first line with these words.
    async fn line(&self, words: &str) -> String {
        let found = async {
            loop {
                let grown = self.grown.notified();
                let text = self.text.lock().unwrap().clone();
                if let Some(line) = text.lines().find(|line| line.contains(words)) {
                    return line.to_owned();
                }
                grown.await;
            }
        };
        let line = timeout(PATIENCE, found).await;
        line.unwrap_or_else(|_| panic!("no {words:?} in\n{}", self.text.lock().unwrap()))
    }
}

impl std::io::Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.text.lock().unwrap().push_str(&text);
        self.grown.notify_one();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// One thread, so that the log of all nodes is recorded.
#[tokio::test]
async fn problems_with_a_peer_or_its_address_are_logged() {
    let log = ThreadLog::default();
    let _guard = log.listen();
    for transport in [Transport::Quic, Transport::Tcp] {
        log.text.lock().unwrap().clear();
        let members = [contact(0, &[]), contact(1, &[])];
        let host = spawn(config(transport), 0, &members).await;
        let here = &host.addresses;

        // A node that is only in its own roster.
        let roster = [contact(0, here), contact(9, &[])];
        let stranger = spawn(config(transport), 9, &roster).await;
        let line = log.line("not in the roster was refused").await;
        assert!(line.contains("key=12D3Koo"), "{line}");
        let line = log.line("is this node in its roster?").await;
        assert!(line.contains("member=#0"), "{line}");
        drop(stranger);

        // Members whose address belongs to another node, or does not resolve.
        let unused = transport.addresses("127.0.0.1", 1);
        let nowhere = transport.addresses("nowhere.invalid", 4400);
        for (addresses, words) in [
            (here, "has another key than the roster"),
            (&nowhere, "nowhere.invalid does not resolve"),
            (&unused, "at 127.0.0.1:1 "),
        ] {
            let roster = [contact(1, &[]), contact(5, addresses)];
            let hopeful = spawn(config(transport), 1, &roster).await;
            let line = log.line(words).await;
            assert!(line.contains("cannot reach the member, which"), "{line}");
            assert!(
                line.contains("member=#5") && line.contains("next attempt"),
                "{line}"
            );
            drop(hopeful);
        }
    }
}

#[tokio::test]
async fn bad_input_is_refused_with_a_hint() {
    let roster = [contact(0, &[]), contact(1, &[])];
    let error = started(config(Transport::Both), 7, &roster)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not in the roster"), "{error}");

    for transport in [Transport::Quic, Transport::Tcp] {
        let first = spawn(config(transport), 0, &roster).await;
        let second = started(listening(transport, port(&first)), 1, &roster).await;
        let error = second.unwrap_err().to_string();
        assert!(error.contains("choose another port"), "{error}");
    }
    let elsewhere = Config::new(Hash::of(b"mesh"), Transport::Tcp.addresses("192.0.2.1", 0));
    let error = started(elsewhere, 0, &roster)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("/ip4/0.0.0.0"), "{error}");

    let named = Config::new(Hash::of(b"mesh"), Transport::Tcp.addresses("localhost", 0));
    let error = started(named, 0, &roster).await.unwrap_err().to_string();
    assert!(error.contains("not at a name"), "{error}");

    let wrong = Config {
        listen: Transport::Tcp.addresses("127.0.0.1", 0),
        ..config(Transport::Quic)
    };
    let error = started(wrong, 0, &roster).await.unwrap_err().to_string();
    assert!(error.contains("Quic alone"), "{error}");

    let lost = [
        contact(0, &[]),
        contact(1, &["node.example.org:4400".into()]),
    ];
    let error = started(config(Transport::Both), 0, &lost)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"node.example.org:4400\" is not an address"),
        "{error}"
    );
}

/// Sends a frame to a member, and waits until it arrives.
async fn say(from: &Handle, to: &mut Handle, member: u16, word: &'static str) {
    let frame_of_it = Bytes::from_static(word.as_bytes());
    let send = Command::Send {
        to: MemberIndex(member),
        frame: frame_of_it.clone(),
    };
    from.commands.send(send).await.unwrap();
    while wait(to, frame).await != frame_of_it {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_a_member_in_a_new_process_arrive_at_once() {
    // For both orders of the two in the roster.
    for (stays, dies) in [(0, 1), (1, 0)] {
        let quic = || config(Transport::Quic);
        let no_addresses = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(quic(), stays, &no_addresses).await;
        let roster = [contact(stays, &host.addresses), contact(dies, &[])];
        let process = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let key = [dies as u8; 32];
        let mut first = mesh::spawn(process.handle(), quic(), key, roster.to_vec())
            .await
            .unwrap();
        assert_eq!(wait(&mut host, up).await, MemberIndex(dies));
        say(&host, &mut first, dies, "before").await;
        // Like SIGKILL: connections are not closed.
        process.shutdown_background();
        let then = Instant::now();
        let mut second = spawn(quic(), dies, &roster).await;
        assert_eq!(wait(&mut host, up).await, MemberIndex(dies));
        say(&host, &mut second, dies, "after").await;
        say(&second, &mut host, stays, "back").await;
        // A dead connection is detected by its silence only after ten seconds.
        assert!(then.elapsed() < Duration::from_secs(6), "{stays} stays");
    }
}
