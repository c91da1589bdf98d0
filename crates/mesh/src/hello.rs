//! The handshake that two nodes exchange on every new connection.
//!
//! Each side says the federation that it belongs to, its version, the message formats that it speaks,
//! its clock, and the key with which it checks addresses while its node runs. The protocol's name is the same in every federation, so
//! that two members with different agreements learn that, and from each other. The dialling side
//! opens the stream and speaks first.
//!
//! ```text
//! layout 1 │ flags 1 │ federation 32 │ key for checks 32 │ clock 8, little-endian, Unix ms │
//! length of the version 1 │ version, at most 32 │ length of the rest 1 │ rest
//! rest: oldest format 1 │ newest format 1 │ format in force 1, 0 if unknown │
//!       number of the process 8 │ two numbers heard under the other's key 8 + 8 │
//!       challenge, or answer to one, 32, 0 for none │ anything newer
//! ```
//!
//! The first flag says that the program only checks addresses, the second that the length and the rest
//! are there. So that any two versions can tell each other what they speak, the layout stays the same
//! for ever: what is new is added to the end of the rest, and what a program does not know there is
//! passed over. A handshake without the rest is that of a program which speaks format 1.
//!
//! The numbers, little-endian and 0 for none, show two processes with one key ([`Twins`](crate::twins)).
//!
//! A program that only checks addresses may put a challenge into its handshake. The handshake that answers
//! has what the node makes of it ([`Rehearsal`]); the mesh does not know what that is.

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::{Multiaddr, PeerId};
use protocol::{Formats, Hash, PublicKey, SecretKey};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::rehearsal::Rehearsal;
use crate::streams::{Inbound, StreamKind, StreamOpenError, StreamOpener};
use crate::twins::ProcessPair;

/// The layout of a handshake.
const LAYOUT: u8 = 1;
/// Flag: it only checks addresses.
const PROBING: u8 = 1;
/// Flag: the formats are there.
const FORMATS: u8 = 2;
/// Bytes before the version.
const FIXED: usize = 75;
/// Most bytes of a version.
const VERSION: usize = 32;
/// What a program speaks that does not say it.
const FIRST: Formats = Formats {
    oldest: 1,
    newest: 1,
};
/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The id of its federation.
    pub federation: Hash,
    /// The key with which its institution checks addresses while its node runs.
    pub probe: PublicKey,
    /// True if the handshake node only checks its addresses, and leaves again.
    pub probing: bool,
    /// Clock of the handshake node.
    pub clock: SystemTime,
    /// Program of the handshake node.
    pub program: Program,
    /// The number of its process; 0 if it has none.
    pub instance: u64,
    /// The numbers of two processes that it has met under the key of the node it greets; 0 for none.
    pub twins: (u64, u64),
    /// A challenge, or what the handshake node made of one.
    pub rehearsal: Option<[u8; 32]>,
}

/// The program of a node: what others need to know to tell whether they understand each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Version of the program.
    pub version: String,
    /// The message formats that it speaks.
    pub formats: Formats,
    /// The format of the agreement in force there; `None` where it does not say.
    pub in_force: Option<u8>,
}

impl Program {
    /// This program, where the agreement in force has this format.
    pub fn this(in_force: Option<u8>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            formats: Formats::SPOKEN,
            in_force,
        }
    }

    /// Returns whether both speak the formats of both agreements in force.
    pub fn understands(&self, other: &Self) -> bool {
        let speaks = |one: &Self, format: Option<u8>| {
            format.is_none_or(|format| one.formats.contains(format))
        };
        speaks(self, other.in_force) && speaks(other, self.in_force)
    }
}

/// The secret key with which an institution checks addresses while its node runs, derived from its
/// own. With its own key, the others would take the check for the node itself.
pub fn probe_key(secret: &[u8; 32]) -> [u8; 32] {
    SecretKey::from_bytes(secret).derive("mesh: key for checking addresses", &[])
}

/// What this node says in every handshake.
#[derive(Debug, Clone)]
pub(crate) struct OwnHandshake {
    pub(crate) federation: Hash,
    pub(crate) program: Program,
    probe: PublicKey,
    probing: bool,
    pub(crate) instance: u64,
    twins: ProcessPair,
    rehearsal: Option<[u8; 32]>,
}

impl OwnHandshake {
    /// Of the node with this secret key, in the process with this number.
    pub(crate) fn new(
        federation: Hash,
        program: Program,
        secret: &[u8; 32],
        instance: u64,
    ) -> Self {
        let probe = SecretKey::from_bytes(&probe_key(secret)).public();
        Self {
            federation,
            program,
            probe,
            probing: false,
            instance,
            twins: (0, 0),
            rehearsal: None,
        }
    }

    /// With a challenge, or what this node made of one.
    pub(crate) fn rehearsing(self, rehearsal: Option<[u8; 32]>) -> Self {
        Self { rehearsal, ..self }
    }

    /// For a node under whose key these two processes were met.
    pub(crate) fn telling(&self, twins: Option<ProcessPair>) -> Self {
        Self {
            twins: twins.unwrap_or_default(),
            ..self.clone()
        }
    }

    /// As [`new`](Self::new), of a program that only checks its addresses. `instance` if that is a
    /// running node.
    pub(crate) fn probing(federation: Hash, secret: &[u8; 32], instance: u64) -> Self {
        Self {
            probing: true,
            ..Self::new(federation, Program::this(None), secret, instance)
        }
    }

    /// With the present time.
    fn now(&self) -> Hello {
        Hello {
            federation: self.federation,
            probe: self.probe,
            probing: self.probing,
            clock: SystemTime::now(),
            program: self.program.clone(),
            instance: self.instance,
            twins: self.twins,
            rehearsal: self.rehearsal,
        }
    }
}

/// A finished handshake.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) peer: PeerId,
    pub(crate) hello: Hello,
    /// A time at which the connection was already made, and before which the handshake was not sent.
    pub(crate) since: Instant,
    /// Where the other end is.
    pub(crate) remote: Multiaddr,
}

/// Greets the node at the other end of the newest connection. Also returns the round trip.
pub(crate) async fn ask(
    opener: StreamOpener,
    (peer, remote): (PeerId, Multiaddr),
    card: OwnHandshake,
) -> Result<(Greeted, Duration), StreamOpenError> {
    let since = Instant::now();
    let failed = |error: io::Error| StreamOpenError::Failed(error.to_string());
    let exchange = async {
        let mut stream = opener.open(peer, StreamKind::Hello).await?;
        let began = Instant::now();
        write(&mut stream, &card.now()).await.map_err(failed)?;
        let hello = read(&mut stream).await.map_err(failed)?;
        let round_trip = began.elapsed();
        let _ = stream.close().await;
        let greeted = Greeted {
            peer,
            hello,
            since,
            remote,
        };
        Ok((greeted, round_trip))
    };
    let late = || StreamOpenError::Failed("no answer in time".into());
    timeout(PATIENCE, exchange).await.map_err(|_| late())?
}

/// Answers a handshake; `None` if what came was none.
pub(crate) async fn answer(
    inbound: Inbound,
    card: OwnHandshake,
    rehearsal: Rehearsal,
) -> Option<Greeted> {
    let Inbound {
        peer,
        mut stream,
        remote,
        since,
        ..
    } = inbound;
    let exchange = async {
        let hello = read(&mut stream).await?;
        let challenge = hello.rehearsal.filter(|_| hello.probing);
        let answer = match challenge {
            // It computes.
            Some(challenge) => spawn_blocking(move || rehearsal.answer(challenge)).await?,
            None => None,
        };
        write(&mut stream, &card.rehearsing(answer).now()).await?;
        let _ = stream.close().await;
        Ok::<_, io::Error>(hello)
    };
    match timeout(PATIENCE, exchange).await {
        Ok(Ok(hello)) => Some(Greeted {
            peer,
            hello,
            since,
            remote,
        }),
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
    let program = &hello.program;
    let version = &program.version.as_bytes()[..program.version.len().min(VERSION)];
    let flags = FORMATS | if hello.probing { PROBING } else { 0 };
    let mut bytes = vec![LAYOUT, flags];
    bytes.extend_from_slice(&hello.federation.0);
    bytes.extend_from_slice(&hello.probe.0);
    bytes.extend_from_slice(&(clock.as_millis() as u64).to_le_bytes());
    bytes.push(version.len() as u8);
    bytes.extend_from_slice(version);
    let formats = program.formats;
    let mut rest = vec![
        formats.oldest,
        formats.newest,
        program.in_force.unwrap_or(0),
    ];
    let (one, other) = hello.twins;
    for number in [hello.instance, one, other] {
        rest.extend_from_slice(&number.to_le_bytes());
    }
    rest.extend_from_slice(&hello.rehearsal.unwrap_or_default());
    bytes.push(rest.len() as u8);
    bytes.extend_from_slice(&rest);
    bytes
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Hello> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut fixed = [0; FIXED];
    from.read_exact(&mut fixed).await?;
    let (start, rest) = fixed.split_at(2);
    if start[0] != LAYOUT {
        return Err(wrong("a greeting of another layout"));
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
    let version = version.ok_or_else(|| wrong("a version that is no text"))?;
    let (mut formats, mut in_force, mut numbers) = (FIRST, None, [0; 3]);
    let mut rehearsal = None;
    if start[1] & FORMATS != 0 {
        let mut length = [0];
        from.read_exact(&mut length).await?;
        let mut rest = vec![0; usize::from(length[0])];
        from.read_exact(&mut rest).await?;
        let [oldest, newest, now, ref rest @ ..] = rest[..] else {
            return Err(wrong("a greeting without message formats"));
        };
        // An older program says fewer of these.
        let said = rest.as_chunks().0.iter();
        for (number, said) in numbers.iter_mut().zip(said) {
            *number = u64::from_le_bytes(*said);
        }
        let said = rest.get(24..).and_then(|rest| rest.first_chunk());
        rehearsal = said.copied().filter(|said| *said != [0; 32]);
        formats = Formats { oldest, newest };
        in_force = Some(now).filter(|now| *now != 0);
    }
    // A clock that no `SystemTime` can hold is no clock.
    let clock = Duration::from_millis(u64::from_le_bytes(clock));
    Ok(Hello {
        federation: Hash(array(&rest[..32])),
        probe: PublicKey(array(&rest[32..64])),
        probing: start[1] & PROBING != 0,
        clock: UNIX_EPOCH
            .checked_add(clock)
            .ok_or_else(|| wrong("no time"))?,
        program: Program {
            version,
            formats,
            in_force,
        },
        instance: numbers[0],
        twins: (numbers[1], numbers[2]),
        rehearsal,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_greeting_is_read_as_it_was_written_and_other_bytes_are_refused() {
        let card =
            OwnHandshake::probing(Hash::of(b"federation"), &[7; 32], 9).telling(Some((9, 10)));
        let card = card.rehearsing(Some([6; 32]));
        let hello = Hello {
            clock: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            ..card.now()
        };
        let bytes = encode(&hello);
        assert_eq!(read(&mut &bytes[..]).await.unwrap(), hello);
        assert_eq!((hello.instance, hello.twins), (9, (9, 10)));
        assert_eq!(hello.rehearsal, Some([6; 32]));
        assert_eq!(
            hello.probe,
            SecretKey::from_bytes(&probe_key(&[7; 32])).public()
        );
        let mut other = bytes.clone();
        other[0] = 2;
        assert!(read(&mut &other[..]).await.is_err());
        other[0] = LAYOUT;
        other[FIXED - 1] = 200;
        assert!(read(&mut &other[..]).await.is_err());
        assert!(read(&mut &bytes[..FIXED]).await.is_err());
        assert!(read(&mut &bytes[..bytes.len() - 1]).await.is_err());
    }

    #[tokio::test]
    async fn greetings_of_older_and_newer_programs_are_read() {
        let card = OwnHandshake::new(Hash::of(b"federation"), Program::this(Some(1)), &[7; 32], 9);
        let hello = Hello {
            clock: UNIX_EPOCH,
            ..card.now()
        };
        let bytes = encode(&hello);
        // An older program ends with its version, and does not close the stream.
        let at = bytes.len() - 60;
        let mut older = bytes[..at].to_vec();
        older[1] = 0;
        let read_older = read(&mut &older[..]).await.unwrap();
        assert_eq!(read_older.program.formats, FIRST);
        assert_eq!(read_older.program.in_force, None);
        assert_eq!(read_older.program.version, hello.program.version);
        // One that has no numbers.
        let mut older = bytes[..at + 4].to_vec();
        older[at] = 3;
        let read_older = read(&mut &older[..]).await.unwrap();
        assert_eq!(read_older.program, hello.program);
        assert_eq!((read_older.instance, read_older.twins), (0, (0, 0)));
        // One that knows no rehearsals.
        let mut older = bytes[..at + 28].to_vec();
        older[at] = 27;
        assert_eq!(read(&mut &older[..]).await.unwrap(), hello);
        // A newer one says more.
        let mut newer = bytes.clone();
        newer[at] = 61;
        newer.extend_from_slice(&[8, 9]);
        let mut rest = &newer[..];
        assert_eq!(read(&mut rest).await.unwrap(), hello);
        assert!(rest.is_empty());
    }

    #[test]
    fn programs_understand_each_other_if_each_speaks_what_is_in_force_at_the_other() {
        let program = |oldest, newest, in_force| Program {
            version: "1".into(),
            formats: Formats { oldest, newest },
            in_force,
        };
        let old = program(1, 1, Some(1));
        assert!(old.understands(&program(1, 2, Some(1))));
        assert!(old.understands(&program(1, 2, None)));
        assert!(!old.understands(&program(1, 2, Some(2))));
        assert!(!program(1, 2, Some(2)).understands(&old));
        assert!(program(1, 2, Some(2)).understands(&program(2, 3, Some(2))));
    }
}
