//! Connections that say nothing do not keep members out.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::common::{PATIENCE, config, contact, end, public, spawn, up, wait};
use mesh::{Config, Contact, Handle, Notice, Transport};
use protocol::MemberIndex;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Within this time a member is in: less than a silent connection may last.
const SOON: Duration = Duration::from_secs(4);

/// The TCP port of a node.
fn tcp(mesh: &Handle) -> SocketAddr {
    let of = |address: &String| {
        let parts: Vec<_> = address.split('/').collect();
        let tcp = parts[3] == "tcp";
        tcp.then(|| format!("{}:{}", parts[2], parts[4]).parse().unwrap())
    };
    mesh.addresses.iter().find_map(of).unwrap()
}

async fn connect(from: &str, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{from}:0").parse().unwrap())?;
    socket.connect(to).await
}

/// Keeps so many silent connections from here: one that is closed is opened again.
fn besiege(tasks: &mut JoinSet<()>, from: String, to: SocketAddr, connections: usize) {
    for _ in 0..connections {
        let from = from.clone();
        tasks.spawn(async move {
            loop {
                if let Ok(mut stream) = connect(&from, to).await {
                    let _ = stream.read(&mut [0; 1]).await;
                }
                sleep(Duration::from_millis(200)).await;
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_never_keep_a_restarted_member_out() {
    let members = [contact(0, &[]), contact(1, &[])];
    let mut host = spawn(config(Transport::Both), 0, &members).await;
    let at = tcp(&host);
    let mut tasks = JoinSet::new();
    // One address with many connections, a net with many addresses, and many nets.
    besiege(&mut tasks, "127.7.0.1".into(), at, 150);
    for other in 0..60 {
        besiege(&mut tasks, format!("127.7.1.{}", 1 + other), at, 1);
        besiege(&mut tasks, format!("127.8.{other}.1"), at, 1);
    }
    let crowd = async {
        loop {
            if let Some(Notice::Crowd { from, turned_away }) = host.notices.recv().await {
                return (from, turned_away);
            }
        }
    };
    let (from, turned_away) = timeout(PATIENCE, crowd).await.unwrap();
    assert!(
        from.starts_with("127.7.") && from.ends_with("/24"),
        "{from}"
    );
    assert!(turned_away >= 64, "{turned_away}");
    // And silent connections from the member's own address.
    let mut behind = Vec::new();
    for _ in 0..200 {
        behind.extend(connect("127.0.0.1", at).await);
    }
    for transport in [Transport::Tcp, Transport::Quic, Transport::Tcp] {
        let addresses: Vec<_> = host.addresses.clone();
        let began = Instant::now();
        let roster = [contact(0, &addresses), contact(1, &[])];
        let mut member = spawn(config(transport), 1, &roster).await;
        assert_eq!(wait(&mut member, up).await, MemberIndex(0));
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert_eq!(wait(&mut host, up).await, MemberIndex(1));
        end(member).await;
    }
    drop(behind);
}

/// Nodes with keys that nobody knows, which call again and again over QUIC: from many addresses, and from
/// that of the members.
async fn strangers(host: &Handle) -> Vec<Handle> {
    let mut all = Vec::new();
    for number in 0..30 {
        let from = match number % 2 {
            0 => "127.0.0.1".to_owned(),
            _ => format!("127.9.{number}.1"),
        };
        let own = Contact {
            key: public(100 + number),
            ..contact(1, &[])
        };
        let calling = Config {
            listen: Transport::Quic.addresses(&from, 0),
            first_retry: Duration::from_millis(50),
            last_retry: Duration::from_millis(50),
            ..config(Transport::Quic)
        };
        let roster = [contact(0, &host.addresses), own];
        all.push(spawn(calling, 100 + number, &roster).await);
    }
    all
}

/// Datagrams that look like the first of a QUIC connection, each of another one, without end.
fn first_datagrams(tasks: &mut JoinSet<()>, from: String, to: SocketAddr) {
    tasks.spawn(async move {
        let socket = UdpSocket::bind(format!("{from}:0")).await.unwrap();
        for number in 0_u64.. {
            // A long header of version 1, two ids of connections, no token, and a length.
            let mut datagram = vec![0xc0, 0, 0, 0, 1, 8];
            datagram.extend(number.to_be_bytes());
            datagram.push(8);
            datagram.extend(number.to_le_bytes());
            datagram.extend([0, 0x44, 0xb0]);
            datagram.resize(1200, 0x5a);
            let _ = socket.send_to(&datagram, to).await;
            sleep(Duration::from_millis(20)).await;
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_strangers_and_datagrams_keep_no_restarted_member_out() {
    let members = [contact(0, &[]), contact(1, &[])];
    let mut host = spawn(config(Transport::Both), 0, &members).await;
    let of = |address: &String| {
        let parts: Vec<_> = address.split('/').collect();
        let udp = parts[3] == "udp";
        udp.then(|| format!("{}:{}", parts[2], parts[4]).parse().unwrap())
    };
    let at: SocketAddr = host.addresses.iter().find_map(of).unwrap();
    let calling = strangers(&host).await;
    let mut tasks = JoinSet::new();
    for other in 0..50 {
        first_datagrams(&mut tasks, format!("127.10.{other}.1"), at);
    }
    // They are there, and are refused.
    let refused =
        async { while !matches!(host.notices.recv().await, Some(Notice::Stranger { .. })) {} };
    timeout(PATIENCE, refused).await.unwrap();
    for transport in [Transport::Quic, Transport::Tcp, Transport::Quic] {
        let began = Instant::now();
        let roster = [contact(0, &host.addresses), contact(1, &[])];
        let mut member = spawn(config(transport), 1, &roster).await;
        assert_eq!(wait(&mut member, up).await, MemberIndex(0));
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert_eq!(wait(&mut host, up).await, MemberIndex(1));
        end(member).await;
    }
    for stranger in calling {
        end(stranger).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_connection_is_closed_after_a_few_seconds() {
    let members = [contact(0, &[]), contact(1, &[])];
    let host = spawn(config(Transport::Tcp), 0, &members).await;
    let mut silent = connect("127.0.0.1", tcp(&host)).await.unwrap();
    let began = Instant::now();
    let read = async { while silent.read(&mut [0; 100]).await.is_ok_and(|read| read > 0) {} };
    timeout(PATIENCE, read).await.unwrap();
    let lasted = began.elapsed();
    assert!(lasted < Duration::from_secs(8), "{lasted:?}");
}
