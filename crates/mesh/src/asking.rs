//! Questions between members: what a node says of itself.
//!
//! The question is a stream that a member opens; nothing is written on it. The answer is a document of
//! the crates above, which the mesh does not look into:
//!
//! ```text
//! length 4, big-endian, 0 for nothing │ document, at most 64 KiB
//! ```

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use protocol::MemberIndex;
use tokio::time::{Instant, timeout};

use crate::members::Members;
use crate::streams::{StreamKind, StreamOpenError, StreamOpener};
use crate::tells::{DOCUMENT, Tells};

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Shortest time until a member may ask again. One that asks sooner gets no answer.
const AGAIN: Duration = Duration::from_millis(500);

/// Reason for which a member does not report its state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// There is no connection to it.
    #[error("not connected")]
    Unconnected,
    /// The member's program does not know the question, or its node is in another epoch.
    #[error(
        "its program is older and cannot say, or it has not followed the last change of the agreement"
    )]
    Unsupported,
    /// The member tells this node nothing.
    #[error("it gives this node no answer")]
    Nothing,
    /// No answer in time.
    #[error("no answer in {} s", .0.as_secs())]
    Silent(Duration),
    /// The connection failed, or the answer cannot be read.
    #[error("the answer did not arrive: {0}")]
    Failed(String),
}

/// Asks other members what they say of themselves.
#[derive(Debug, Clone)]
pub struct Asker {
    pub(crate) members: Arc<Members>,
    pub(crate) opener: StreamOpener,
}

impl Asker {
    /// The document of a member. A member that was asked less than half a second ago does not answer.
    ///
    /// # Errors
    /// [`AskError`]: why there is none.
    pub async fn ask(&self, member: MemberIndex) -> Result<Vec<u8>, AskError> {
        let peer = self.members.at(member).filter(|peer| !peer.guest);
        let peer = peer.ok_or(AskError::Unconnected)?;
        let failed = |error: io::Error| AskError::Failed(error.to_string());
        let asked = async {
            let opened = self.opener.open(peer.id, StreamKind::Question).await;
            let mut stream = opened.map_err(|error| match error {
                StreamOpenError::Unconnected => AskError::Unconnected,
                StreamOpenError::Unsupported => AskError::Unsupported,
                StreamOpenError::Failed(why) => AskError::Failed(why),
            })?;
            let document = read(&mut stream).await.map_err(failed);
            let _ = stream.close().await;
            document
        };
        let answer = timeout(PATIENCE, asked).await;
        let document = answer.map_err(|_| AskError::Silent(PATIENCE))??;
        document.ok_or(AskError::Nothing)
    }
}

/// Answers the questions of other members. Remembers when each was answered last.
#[derive(Debug)]
pub(crate) struct Answerer {
    tells: Tells,
    last: BTreeMap<MemberIndex, Instant>,
}

impl Answerer {
    pub(crate) fn new(tells: Tells) -> Self {
        Self {
            tells,
            last: BTreeMap::new(),
        }
    }

    /// Answers a member, which has opened this stream. `None` if it asks too often: its stream is closed.
    pub(crate) fn answer<S>(
        &mut self,
        member: MemberIndex,
        stream: S,
    ) -> Option<impl Future<Output = ()> + Send + use<S>>
    where
        S: AsyncWrite + Unpin + Send,
    {
        let now = Instant::now();
        let last = self.last.get(&member);
        if last.is_some_and(|last| now - *last < AGAIN) {
            return None;
        }
        self.last.insert(member, now);
        let tells = self.tells.clone();
        Some(async move {
            let document = tells.to(member);
            if let Ok(Err(error)) = timeout(PATIENCE, write(stream, document)).await {
                tracing::debug!(%member, "an answer was not sent: {error}");
            }
        })
    }
}

async fn write(mut to: impl AsyncWrite + Unpin, document: Option<Vec<u8>>) -> io::Result<()> {
    // One that nobody could read is none.
    let document = document.filter(|document| document.len() <= DOCUMENT);
    let document = document.unwrap_or_default();
    let mut bytes = (document.len() as u32).to_be_bytes().to_vec();
    bytes.extend(document);
    to.write_all(&bytes).await?;
    to.close().await
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > DOCUMENT {
        let what = format!("a document of {length} bytes, and {DOCUMENT} are allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut document = vec![0; length];
    from.read_exact(&mut document).await?;
    Ok((length > 0).then_some(document))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::io::Cursor;

    use super::*;

    async fn answered(told: &mut Answerer, member: u16) -> Option<Vec<u8>> {
        let (ours, mut theirs) = tokio::io::duplex(2 * DOCUMENT);
        let ours = tokio_util::compat::TokioAsyncReadCompatExt::compat(ours);
        told.answer(MemberIndex(member), ours)?.await;
        let mut bytes = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut theirs, &mut bytes)
            .await
            .unwrap();
        Some(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_gets_its_own_answer_at_most_twice_a_second() {
        let mut told = Answerer::new(Tells::new(|member| match member {
            MemberIndex(1) => Some(b"well".to_vec()),
            MemberIndex(2) => Some(vec![0; DOCUMENT + 1]),
            _ => None,
        }));
        let well = answered(&mut told, 1).await.unwrap();
        assert_eq!(well, b"\0\0\0\x04well");
        assert_eq!(read(&mut &well[..]).await.unwrap(), Some(b"well".to_vec()));
        // Too often; others are not held up by it.
        assert_eq!(answered(&mut told, 1).await, None);
        // What is too large, and nothing.
        assert_eq!(answered(&mut told, 2).await.unwrap(), [0; 4]);
        assert_eq!(answered(&mut told, 3).await.unwrap(), [0; 4]);
        assert_eq!(read(&mut &[0; 4][..]).await.unwrap(), None);
        tokio::time::advance(AGAIN).await;
        assert_eq!(answered(&mut told, 1).await.unwrap(), well);
    }

    #[tokio::test]
    async fn too_large_and_cut_off_answers_are_refused_before_reading() {
        let large = ((DOCUMENT + 1) as u32).to_be_bytes();
        let error = read(&mut Cursor::new(large)).await.unwrap_err();
        assert!(error.to_string().contains("65537 bytes"), "{error}");
        let cut = [0, 0, 0, 5, b'w'];
        assert!(read(&mut Cursor::new(cut)).await.is_err());
    }
}
