//! The libp2p mesh on this machine's own loopback device.

use std::collections::BTreeMap;

use mesh::{Config, Contact, Transport};
use protocol::{Hash, MemberIndex, SecretKey};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

use crate::network::promises::{Lab, MemberEnds};

/// A mesh over libp2p on 127.0.0.1. A member that starts knows the addresses of those that started
/// before it.
pub(crate) struct LoopbackMesh {
    transport: Transport,
    members: u16,
    there: BTreeMap<u16, (Vec<String>, Option<JoinHandle<()>>)>,
    /// Pairs of members that do not know each other's addresses.
    apart: Vec<(u16, u16)>,
}

fn key(member: u16) -> [u8; 32] {
    let mut key = [7; 32];
    key[..2].copy_from_slice(&member.to_le_bytes());
    key
}

impl LoopbackMesh {
    fn new(transport: Transport, members: u16) -> Self {
        // Logs to standard error, as RUST_LOG sets.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let log = tracing_subscriber::fmt().with_env_filter(filter);
        let _ = log.with_writer(std::io::stderr).with_ansi(false).try_init();
        let there = BTreeMap::new();
        let apart = Vec::new();
        Self {
            transport,
            members,
            there,
            apart,
        }
    }

    async fn start(&mut self, member: u16, events: usize) -> MemberEnds {
        // A member that starts again uses its old address, which the others know.
        let listen = match self.there.get(&member) {
            Some((before, _)) => before.clone(),
            None => self.transport.addresses("127.0.0.1", 0),
        };
        let apart = |other| self.apart.contains(&(other, member));
        let contact = |other| Contact {
            member: MemberIndex(other),
            key: SecretKey::from_bytes(&key(other)).public(),
            addresses: self
                .there
                .get(&other)
                .filter(|_| !apart(other))
                .map_or(Vec::new(), |(known, _)| known.clone()),
        };
        let roster = (0..self.members).map(contact).collect();
        let mut config = Config::new(Hash::of(b"contract"), listen);
        (config.transport, config.events) = (self.transport, events);
        let mesh = mesh::spawn(&Handle::current(), config, key(member), roster)
            .await
            .unwrap();
        self.there
            .insert(member, (mesh.addresses, Some(mesh.ended)));
        let (commands, events) = (mesh.commands, mesh.events);
        MemberEnds { commands, events }
    }

    async fn stop(&mut self, member: u16, ends: MemberEnds) {
        drop(ends);
        let (_, ended) = self.there.get_mut(&member).unwrap();
        ended.take().unwrap().await.unwrap();
    }
}

macro_rules! kinds {
    ($($kind:ident),*) => {$(
        pub(crate) struct $kind(LoopbackMesh);

        impl Lab for $kind {
            const ORDERED: bool = true;
            const FAITHFUL: bool = true;

            fn run(test: impl Future<Output = ()>) {
                let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
                runtime.unwrap().block_on(test);
            }

            async fn new(members: u16) -> Self {
                Self(LoopbackMesh::new(Transport::$kind, members))
            }

            async fn start(&mut self, member: u16, events: usize) -> MemberEnds {
                self.0.start(member, events).await
            }

            async fn line() -> (Self, Vec<MemberEnds>) {
                let mut lab = Self::new(3).await;
                lab.0.apart = vec![(0, 2)];
                let mut all = Vec::new();
                for member in 0..3 {
                    all.push(lab.start(member, 64).await);
                }
                all[0].up(1).await;
                all[1].all_up([0, 2]).await;
                all[2].up(1).await;
                // Waits until both know the other's gossip subscription; before that, frames arrive directly.
                for (from, to) in [(0, 1), (1, 2)] {
                    for number in 0u32.. {
                        let frame = format!("is gossip there? {from} {number}").into();
                        all[from].say(mesh::Command::Publish { frame }).await;
                        let gossiped = |event| match event {
                            mesh::Event::Received { ticket, .. } => Some(ticket.is_some()),
                            _ => None,
                        };
                        if all[to].next(gossiped).await {
                            break;
                        }
                    }
                }
                (lab, all)
            }

            async fn stop(&mut self, member: u16, ends: MemberEnds) {
                self.0.stop(member, ends).await;
            }
        }
    )*};
}

kinds!(Quic, Tcp);
