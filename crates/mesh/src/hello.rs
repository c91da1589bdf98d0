//! The greeting that two nodes exchange on every new connection.
//!
//! Each side says the federation that it belongs to, its version, its clock, and the key with which
//! it checks addresses while its node runs. The protocol's name is the same in every federation, so
//! that two members with different agreements learn that, and from each other. The dialling side
//! opens the stream and speaks first.
//!
//! ```text
//! format 1 │ probing 1 │ federation 32 │ key for checks 32 │ clock 8, little-endian, Unix ms │
//! length of the version 1 │ version, at most 32
//! ```

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::{PeerId, Stream};
use protocol::{Hash, PublicKey, SecretKey};
use tokio::time::timeout;

use crate::streams::{Kind, OpenError, Opener};

/// The format of a greeting.
const FORMAT: u8 = 1;
/// Bytes before the version.
const FIXED: usize = 75;
/// Most bytes of a version.
const VERSION: usize = 32;
/// How long a greeting may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The id of its federation.
    pub federation: Hash,
    /// The key with which its institution checks addresses while its node runs.
    pub probe: PublicKey,
    /// Whether it only checks its addresses, and leaves again.
    pub probing: bool,
    /// Its clock.
    pub clock: SystemTime,
    /// Version of its program.
    pub version: String,
}

/// The secret key with which an institution checks addresses while its node runs, derived from its
/// own. With its own key, the others would take the check for the node itself.
pub fn probe_key(secret: &[u8; 32]) -> [u8; 32] {
    SecretKey::from_bytes(secret).derive("mesh: key for checking addresses", &[])
}

/// What this node says in every greeting.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    pub(crate) federation: Hash,
    probe: PublicKey,
    probing: bool,
}

impl Card {
    /// Of the node with this secret key.
    pub(crate) fn new(federation: Hash, secret: &[u8; 32]) -> Self {
        let probe = SecretKey::from_bytes(&probe_key(secret)).public();
        Self {
            federation,
            probe,
            probing: false,
        }
    }

    /// As [`new`](Self::new), of a program that only checks its addresses.
    pub(crate) fn probing(federation: Hash, secret: &[u8; 32]) -> Self {
        Self {
            probing: true,
            ..Self::new(federation, secret)
        }
    }

    /// With the present time.
    fn now(&self) -> Hello {
        Hello {
            federation: self.federation,
            probe: self.probe,
            probing: self.probing,
            clock: SystemTime::now(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// A finished greeting.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) peer: PeerId,
    pub(crate) hello: Hello,
}

/// Greets the node at the other end of the newest connection. Also returns the round trip.
pub(crate) async fn ask(
    opener: Opener,
    peer: PeerId,
    card: Card,
) -> Result<(Greeted, Duration), OpenError> {
    let failed = |error: io::Error| OpenError::Failed(error.to_string());
    let exchange = async {
        let mut stream = opener.open(peer, Kind::Hello).await?;
        let began = Instant::now();
        write(&mut stream, &card.now()).await.map_err(failed)?;
        let hello = read(&mut stream).await.map_err(failed)?;
        let round_trip = began.elapsed();
        let _ = stream.close().await;
        Ok((Greeted { peer, hello }, round_trip))
    };
    let late = || OpenError::Failed("no answer in time".into());
    timeout(PATIENCE, exchange).await.map_err(|_| late())?
}

/// Answers a greeting; `None` if what came was none.
pub(crate) async fn answer(peer: PeerId, mut stream: Stream, card: Card) -> Option<Greeted> {
    let exchange = async {
        let hello = read(&mut stream).await?;
        write(&mut stream, &card.now()).await?;
        let _ = stream.close().await;
        Ok::<_, io::Error>(Greeted { peer, hello })
    };
    match timeout(PATIENCE, exchange).await {
        Ok(Ok(greeted)) => Some(greeted),
        Ok(Err(error)) => {
            tracing::debug!(%peer, "a greeting failed: {error}");
            None
        }
        Err(_) => None,
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), hello: &Hello) -> io::Result<()> {
    to.write_all(&encode(hello)).await?;
    to.flush().await
}

fn encode(hello: &Hello) -> Vec<u8> {
    let clock = hello.clock.duration_since(UNIX_EPOCH).unwrap_or_default();
    let version = &hello.version.as_bytes()[..hello.version.len().min(VERSION)];
    let mut bytes = vec![FORMAT, u8::from(hello.probing)];
    bytes.extend_from_slice(&hello.federation.0);
    bytes.extend_from_slice(&hello.probe.0);
    bytes.extend_from_slice(&(clock.as_millis() as u64).to_le_bytes());
    bytes.push(version.len() as u8);
    bytes.extend_from_slice(version);
    bytes
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Hello> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut fixed = [0; FIXED];
    from.read_exact(&mut fixed).await?;
    let (start, rest) = fixed.split_at(2);
    if start[0] != FORMAT {
        return Err(wrong("a greeting of another format"));
    }
    let array = |bytes: &[u8]| <[u8; 32]>::try_from(bytes).expect("32 bytes were taken");
    let clock = <[u8; 8]>::try_from(&rest[64..72]).expect("8 bytes were taken");
    let length = usize::from(rest[72]);
    if length > VERSION {
        return Err(wrong("a version of too many bytes"));
    }
    let mut version = vec![0; length];
    from.read_exact(&mut version).await?;
    let version = String::from_utf8(version).ok();
    let version = version.filter(|text| text.chars().all(|c| c.is_ascii_graphic()));
    // A clock that no `SystemTime` can hold is no clock.
    let clock = Duration::from_millis(u64::from_le_bytes(clock));
    Ok(Hello {
        federation: Hash(array(&rest[..32])),
        probe: PublicKey(array(&rest[32..64])),
        probing: start[1] == 1,
        clock: UNIX_EPOCH
            .checked_add(clock)
            .ok_or_else(|| wrong("no time"))?,
        version: version.ok_or_else(|| wrong("a version that is no text"))?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_greeting_is_read_as_it_was_written_and_other_bytes_are_refused() {
        let card = Card::probing(Hash::of(b"federation"), &[7; 32]);
        let hello = Hello {
            clock: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            ..card.now()
        };
        let bytes = encode(&hello);
        assert_eq!(read(&mut &bytes[..]).await.unwrap(), hello);
        assert_eq!(
            hello.probe,
            SecretKey::from_bytes(&probe_key(&[7; 32])).public()
        );
        let mut other = bytes.clone();
        other[0] = 2;
        assert!(read(&mut &other[..]).await.is_err());
        other[0] = FORMAT;
        other[FIXED - 1] = 200;
        assert!(read(&mut &other[..]).await.is_err());
        assert!(read(&mut &bytes[..FIXED]).await.is_err());
    }
}
