//! Measures the transfer of a blob to one and to eight peers over QUIC and TCP, and over plain sockets.
//!
//! `cargo run --release -p mesh --example blob_speed -- [MEGABYTES] [REPETITIONS]`
//!
//! All nodes are in this process and share its cores. The mesh encrypts, verifies every chunk and
//! delivers a whole blob. The plain socket does none of that and shows the limit of the machine.

use std::time::{Duration, Instant};

use bytes::Bytes;
use mesh::{BlobRequest, Command, Config, Contact, Event, Handle, Transport};
use protocol::{Hash, MemberIndex, SecretKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Fallible<()> {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let mut arguments = std::env::args().skip(1);
    let megabytes: usize = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let repetitions: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let blob: Bytes = (0..megabytes * 1_000_000)
        .map(|i| (i ^ (i >> 11)) as u8)
        .collect();
    println!("{megabytes} MB, best and median of {repetitions}, MB/s summed over the readers");
    for readers in [1, 8] {
        let mut raw = Vec::new();
        let (mut quic, mut tcp) = (Vec::new(), Vec::new());
        for _ in 0..repetitions {
            // All variants in every repetition, so that other load of the machine affects them equally.
            raw.push(plain(&blob, readers).await?);
            quic.push(meshed(&blob, readers, Transport::Quic).await?);
            tcp.push(meshed(&blob, readers, Transport::Tcp).await?);
        }
        let total = (megabytes * readers) as f64;
        let mut reference = 0.0;
        for (name, mut times) in [("plain TCP", raw), ("mesh, QUIC", quic), ("mesh, TCP", tcp)] {
            times.sort();
            let speed = |time: Duration| total / time.as_secs_f64();
            let (best, median) = (speed(times[0]), speed(times[times.len() / 2]));
            if reference == 0.0 {
                reference = median;
            }
            let part = median / reference;
            println!("{readers} readers  {name:<11} {best:7.0} {median:7.0}  {part:.2} of plain");
        }
    }
    Ok(())
}

/// Transfers the same bytes over plain sockets into memory.
async fn plain(blob: &Bytes, readers: usize) -> Fallible<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (mut tasks, length) = (JoinSet::new(), blob.len());
    let begin = Instant::now();
    for _ in 0..readers {
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            let mut bytes = vec![0; length];
            stream.read_exact(&mut bytes).await
        });
        let (mut stream, _) = listener.accept().await?;
        let blob = blob.clone();
        tasks.spawn(async move { stream.write_all(&blob).await.map(|()| blob.len()) });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begin.elapsed())
}

/// Transfers the blob of one author to all readers at the same time.
async fn meshed(blob: &Bytes, readers: usize, transport: Transport) -> Fallible<Duration> {
    let hash = Hash::of(blob);
    let mut author = start(0, readers, transport, &[]).await?;
    let mut others = Vec::new();
    for reader in 1..=readers {
        let mut other = start(reader, readers, transport, &author.addresses).await?;
        while !matches!(other.events.recv().await, None | Some(Event::Up { .. })) {}
        others.push(other);
    }
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    let limit = blob.len() as u64;
    for other in others {
        let from = vec![MemberIndex(0)];
        let blobs = vec![BlobRequest { hash, limit }];
        other.commands.send(Command::Fetch { blobs, from }).await?;
        tasks.spawn(arrival(other, begin));
    }
    let mut last = Duration::ZERO;
    while !tasks.is_empty() {
        tokio::select! {
            Some(done) = tasks.join_next() => last = last.max(done??),
            Some(event) = author.events.recv() => {
                if let Event::Wanted { ticket, .. } = event {
                    let blobs = vec![Some(blob.clone())];
                    author.commands.send(Command::Serve { ticket, blobs }).await?;
                }
            }
        }
    }
    Ok(last)
}

/// Time from `begin` to the delivery of the blob.
async fn arrival(mut reader: Handle, begin: Instant) -> Result<Duration, &'static str> {
    loop {
        match reader.events.recv().await {
            Some(Event::Fetched { .. }) => return Ok(begin.elapsed()),
            Some(Event::Missing { .. }) | None => return Err("the blob was not delivered"),
            Some(_) => {}
        }
    }
}

async fn start(
    me: usize,
    readers: usize,
    transport: Transport,
    author: &[String],
) -> Fallible<Handle> {
    let key = |member: usize| [member as u8 + 1; 32];
    let contact = |member: usize| Contact {
        member: MemberIndex(member as u16),
        key: SecretKey::from_bytes(&key(member)).public(),
        addresses: if member == 0 {
            author.to_vec()
        } else {
            Vec::new()
        },
    };
    let listen = transport.addresses("127.0.0.1", 0);
    let config = Config {
        transport,
        ..Config::new(Hash::of(b"speed"), listen)
    };
    let roster = (0..=readers).map(contact).collect();
    Ok(mesh::spawn(&tokio::runtime::Handle::current(), config, key(me), roster).await?)
}
