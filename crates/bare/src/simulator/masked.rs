//! The work of secure-aggregation rounds, and what must hold for it whatever goes wrong: P2, P5, P6, P7
//! and L5.

use std::sync::Arc;

use protocol::effects::{Answer, FinalMasked, MaskedList, Request, WorkError};
use protocol::message::{MaskedManifest, PublicKeys};
use protocol::parameters::RoundMode;
use protocol::privacy::Sum;
use protocol::{Hash, Member, MemberIndex, Record, Time};

use super::super::draws::DrawPlace;
use super::super::masks::{BareMasks, BareSecret, BrokenMasks};
use super::super::symbolic::NO_NOISE;
use super::{FailureKind, HEARTBEAT, PATIENCE, Simulator};

/// A secure-aggregation round that is final for a node and whose outcome is not certified there.
pub(super) struct Unsettled {
    node: usize,
    epoch: usize,
    round: u64,
    since: Time,
}

impl Simulator<'_> {
    /// Performs a piece of work of a secure-aggregation round; `None` if it is none.
    pub(super) fn masked_work(
        &mut self,
        at: usize,
        request: &Request,
    ) -> Result<Option<Answer>, FailureKind> {
        let answer = match request {
            &Request::Prepare { round } => Answer::Prepared {
                round,
                // What is prepared too late is not kept: its round may be adopted by now (M8).
                result: if round > self.adopted(at) {
                    self.prepare(at, round)
                } else {
                    Err("the round has ended".into())
                },
            },
            &Request::CheckKeys { round, from, .. } => Answer::KeysChecked {
                round,
                from,
                result: Ok(()),
            },
            Request::Mask { list } => self.mask(at, list)?,
            Request::Verify {
                list,
                manifest,
                holders,
            } => Answer::Verified {
                manifest: manifest.root(),
                result: self.verify(at, list, manifest, holders),
            },
            Request::Unmask { of, holders } => {
                let result = self.unmask(at, of, holders);
                if result.is_ok() {
                    let by = self.first_of(at);
                    self.symbolic.unmasked(of.round.list, by);
                }
                let block = of.block;
                Answer::Unmasked { block, result }
            }
            Request::Combine {
                of,
                unmaskings,
                holders,
            } => self.combine(at, of, unmaskings, holders)?,
            _ => return Ok(None),
        };
        // P2, after each event. Where more members collude than agreed, nothing is promised. With noise a sum may
        // have one author beside the colluders, whom its own noise covers.
        let colluders = match self.options.fewest_authors {
            Some(fewest) => self.options.colluders.min(usize::from(fewest) - 2),
            None => self.options.colluders,
        };
        let known = (self.symbolic).check_news(self.nodes.len(), colluders);
        known.map_err(|what| FailureKind::Masks(format!("P2 (what colluders know): {what}")))?;
        Ok(Some(answer))
    }

    /// The keys of a node's secret for a round. With noise the draw has its line in the ledger first.
    fn prepare(&mut self, at: usize, round: u64) -> Result<PublicKeys, String> {
        let secret = self.secret(at, round);
        if let Some(place) = self.draw_place(at, round) {
            let noted = self.draws.line(place, secret.draw);
            if self.options.broken_masks != Some(BrokenMasks::LedgerIgnored) {
                noted?;
            }
        }
        Ok(secret.public())
    }

    /// Returns where a node draws noise for a round; `None` without noise.
    fn draw_place(&self, at: usize, round: u64) -> Option<DrawPlace> {
        let epoch = self.epoch_of(at);
        match epoch.protocol.privacy.mode() {
            RoundMode::Noised(..) => Some((self.first_of(at), epoch.id, round)),
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => None,
        }
    }

    /// A node's secret for a round of its epoch, drawn when it is first asked for.
    fn secret(&mut self, at: usize, round: u64) -> BareSecret {
        let epoch = self.epoch_of(at).id;
        let drawn = self.random.bytes();
        let secrets = &mut self.nodes[at].store.secrets;
        let mut new = BareSecret::new(drawn, at, &epoch, round);
        if self.options.broken_masks == Some(BrokenMasks::DrawKept) {
            let mut former = secrets.iter().filter(|((_, of), _)| *of == round);
            new.draw = former.next().map_or(new.draw, |(_, former)| former.draw);
        }
        *secrets.entry((epoch, round)).or_insert(new)
    }

    fn mask(&mut self, at: usize, list: &Arc<MaskedList>) -> Result<Answer, FailureKind> {
        let (me, epoch) = (self.me(at), self.epoch_of(at).id);
        let secret = self.nodes[at]
            .store
            .secrets
            .get(&(epoch, list.round))
            .copied();
        let own = list.keys.ready.iter().find(|ready| ready.member == me);
        let own = own.map(|own| own.keys.public);
        let lost = || WorkError::Refused("the secret behind these keys is lost".into());
        let byzantine = self.nodes[at].byzantine.as_ref();
        let corrupted = byzantine.is_some_and(|liar| liar.corrupts_masks(list.round));
        let redrawn = self.options.broken_masks == Some(BrokenMasks::SecretNotDurable);
        let secret = secret.filter(|secret| redrawn || Some(secret.public()) == own);
        let result = match secret {
            Some(secret) => {
                let masked = self.masks.mask(&secret, me, list, corrupted);
                let blobs = [masked.vector.hash, masked.transcript.hash];
                self.nodes[at].store.blobs.extend(blobs);
                self.record_vector(at, list, secret.draw)?;
                Ok(masked)
            }
            None => Err(lost()),
        };
        Ok(Answer::Masked {
            list: list.root,
            result,
        })
    }

    /// A node's vector for a list will be sent, with this draw where there is noise: P7, and what is known of
    /// it, for P2.
    fn record_vector(
        &mut self,
        at: usize,
        list: &MaskedList,
        mut draw: Hash,
    ) -> Result<(), FailureKind> {
        let place = self.draw_place(at, list.round);
        if let Some(place) = place {
            let again = self.options.broken_masks == Some(BrokenMasks::DrawnAgain);
            if again && self.draws.has_sent(place) {
                draw = Hash::labelled("drawn again", &[&draw.0, &list.root.0]);
            }
            let sent = self.draws.send(place, draw);
            sent.map_err(|what| FailureKind::Masks(format!("P7 (one draw): {what}")))?;
        }
        let nodes = &self.epochs[self.nodes[at].epoch].nodes;
        let node = |member: MemberIndex| nodes[member.at()];
        let ready = list.keys.ready.iter().map(|ready| node(ready.member));
        let sums = list.sums.iter().map(|sum| {
            let authors = sum.authors.iter();
            authors.map(|(by, weight)| (node(*by), *weight)).collect()
        });
        let sums = sums.collect();
        let author = node(self.me(at));
        self.symbolic.list(list.root, ready, list.threshold, sums);
        let draw = place.map_or(NO_NOISE, |_| draw);
        self.symbolic.vector(list.root, author, draw);
        Ok(())
    }

    /// Fetches a blob; an error if no holder serves it.
    fn get(&mut self, at: usize, blob: Hash, holders: &[MemberIndex]) -> Result<(), WorkError> {
        let here = self.nodes[at].store.blobs.contains(&blob);
        if !here && !holders.iter().any(|&holder| self.serves(holder, at, &blob)) {
            return Err(WorkError::Unavailable);
        }
        self.nodes[at].store.blobs.insert(blob);
        Ok(())
    }

    fn verify(
        &mut self,
        at: usize,
        list: &Arc<MaskedList>,
        manifest: &Arc<MaskedManifest>,
        holders: &[MemberIndex],
    ) -> Result<(), WorkError> {
        for entry in &manifest.entries {
            self.get(at, entry.vector.hash, holders)?;
            self.get(at, entry.transcript.hash, holders)?;
        }
        if !self.masks.verify(list, manifest) {
            return Err(WorkError::Refused("a transcript is wrong".into()));
        }
        let root = manifest.root();
        self.nodes[at].store.blobs.extend([list.root, root]);
        self.masks.lists.insert(list.root, list.clone());
        self.masks.manifests.insert(root, manifest.clone());
        Ok(())
    }

    /// The list and the manifest of a final round, fetched if they are not here.
    fn of(
        &mut self,
        at: usize,
        of: &FinalMasked,
        holders: &[MemberIndex],
    ) -> Result<(Arc<MaskedList>, Arc<MaskedManifest>), WorkError> {
        let (list, manifest) = (of.round.list, of.round.manifest);
        self.get(at, list, holders)?;
        self.get(at, manifest, holders)?;
        let list = self.masks.lists.get(&list).cloned();
        let manifest = self.masks.manifests.get(&manifest).cloned();
        list.zip(manifest).ok_or(WorkError::Unavailable)
    }

    fn unmask(
        &mut self,
        at: usize,
        of: &FinalMasked,
        holders: &[MemberIndex],
    ) -> Result<Vec<u8>, WorkError> {
        let (list, manifest) = self.of(at, of, holders)?;
        let run = &self.epochs[self.nodes[at].epoch];
        let key = (run.epoch.id, of.round.round);
        // A share is locked for its owner, who needs its own secret to unlock it.
        let lost = || WorkError::Refused("the secret of this round is lost".into());
        let mine = |node: usize| self.nodes[node].store.secrets.contains_key(&key);
        if !mine(at) {
            return Err(lost());
        }
        let secret = |member: MemberIndex| self.masks.secret_of(&list, member);
        BareMasks::unlock(&list, &manifest, self.me(at), secret).ok_or_else(lost)
    }

    fn combine(
        &mut self,
        at: usize,
        of: &FinalMasked,
        unmaskings: &[(MemberIndex, Vec<u8>)],
        holders: &[MemberIndex],
    ) -> Result<Answer, FailureKind> {
        let block = of.block;
        let failed = |unproven, error| Answer::Combined {
            block,
            unproven,
            result: Err(error),
        };
        let (list, manifest) = match self.of(at, of, holders) {
            Ok(both) => both,
            Err(error) => return Ok(failed(Vec::new(), error)),
        };
        if let Err(error) = self.verify(at, &list, &manifest, holders) {
            return Ok(failed(Vec::new(), error));
        }
        let (unproven, sums) = self.masks.combine(&list, &manifest, unmaskings);
        let Some(sums) = sums else {
            return Ok(failed(unproven, WorkError::Unavailable));
        };
        self.check_sums(at, &list, &manifest, &sums)?;
        // Void sums are left out. If all are, the models stay as they are.
        let opened = sums.iter().flatten();
        let words: Vec<_> = opened.flat_map(|sum| sum.to_le_bytes()).collect();
        let round = of.round.round.to_le_bytes();
        let mut outcome = Hash::labelled("outcome", &[&of.round.state.0, &round, &words]);
        if at < self.options.strange_machines && self.nodes[at].epoch == 0 {
            outcome = Hash::labelled("strange", &[&outcome.0, &[at as u8]]);
        } else {
            self.count_void(at, &list, outcome, &sums);
        }
        self.nodes[at].store.outcomes.insert(outcome);
        Ok(Answer::Combined {
            block,
            unproven,
            result: Ok(outcome),
        })
    }

    /// P5: each sum is the plain one, unless a Byzantine author has corrupted it.
    fn check_sums(
        &self,
        at: usize,
        list: &MaskedList,
        manifest: &MaskedManifest,
        sums: &[Option<u64>],
    ) -> Result<(), FailureKind> {
        let plain = self.masks.plain_sums(list, manifest);
        let nodes = &self.epochs[self.nodes[at].epoch].nodes;
        let liar = |author: MemberIndex| self.nodes[nodes[author.at()]].byzantine.is_some();
        let corrupted = |sum: &Sum| sum.authors.iter().any(|(author, _)| liar(*author));
        let right = |((opened, plain), sum): ((&Option<u64>, &u64), &Sum)| match opened {
            Some(opened) => opened == plain,
            None => corrupted(sum),
        };
        if sums.iter().zip(&plain).zip(&list.sums).all(right) {
            return Ok(());
        }
        let round = list.round;
        let what = format!("round {round}: opened {sums:?}, the plain sums are {plain:?}");
        Err(FailureKind::Masks(format!("P5 (plain sums): {what}")))
    }

    fn count_void(&mut self, at: usize, list: &MaskedList, outcome: Hash, sums: &[Option<u64>]) {
        let epoch = self.epoch_of(at).clone();
        let opened = list.sums.iter().zip(sums);
        let opened = opened.map(|(sum, opened)| (sum, opened.is_none()));
        let new = self.voids.add(&epoch, (outcome, &list.state), opened);
        self.ended.void += new.void;
        self.ended.suspended += new.suspended;
        let nodes = &self.epochs[self.nodes[at].epoch].nodes;
        let alone = new.alone.map(|member| nodes[member.at()]);
        self.ended.alone.extend(alone);
    }

    /// M8: what a node has adopted is forgotten in the same transaction.
    pub(super) fn forget(&mut self, at: usize, adopted: u64) {
        if self.options.broken_masks != Some(BrokenMasks::SecretKept) {
            let secrets = &mut self.nodes[at].store.secrets;
            secrets.retain(|(_, round), _| *round > adopted);
        }
    }

    /// A node stopped: what rules that are broken on purpose do not make durable is lost.
    pub(super) fn lose_undurable(&mut self, at: usize) {
        let secret = match self.options.broken_masks {
            Some(BrokenMasks::SecretNotDurable) => true,
            Some(BrokenMasks::VectorNotDurable) => false,
            _ => return,
        };
        let drawn = self.random.bytes();
        let secrets = self.nodes[at].store.secrets.values_mut();
        secrets.for_each(|of| of.forgotten(drawn, secret));
    }

    /// The last round that a node has adopted; 0 if none.
    fn adopted(&self, at: usize) -> u64 {
        let records = self.nodes[at].journal.iter().rev();
        let mut adopted = records.filter_map(|record| match record {
            Record::Applied { round } => Some(*round),
            _ => None,
        });
        adopted.next().unwrap_or(0)
    }

    /// P6: no journal holds the secret of an adopted round, after each step of its member. A round that
    /// an earlier epoch adopted may be under way again, after a recovery.
    pub(super) fn check_secrets(&self, at: usize) -> Result<(), FailureKind> {
        let node = &self.nodes[at];
        let Some(member) = node
            .member
            .as_ref()
            .filter(|_| !node.store.secrets.is_empty())
        else {
            return Ok(());
        };
        let adopted = self.adopted(at).min(member.round().saturating_sub(1));
        let mut rounds = node.store.secrets.keys().map(|(_, round)| *round);
        match rounds.find(|round| *round <= adopted) {
            Some(round) => Err(FailureKind::Masks(format!(
                "P6 (secrets are forgotten): node {at} has adopted round {adopted} and has the secret of round {round}"
            ))),
            None => Ok(()),
        }
    }

    /// A secure-aggregation round is final for a node.
    pub(super) fn note_final(&mut self, at: usize, round: u64) {
        self.forget_final(at);
        let since = self.now;
        self.unsettled.push(Unsettled {
            node: at,
            epoch: self.nodes[at].epoch,
            round,
            since,
        });
    }

    /// No round is final for a node any more, as far as outcomes are waited for.
    pub(super) fn forget_final(&mut self, at: usize) {
        self.unsettled.retain(|open| open.node != at);
    }

    /// L5: once links are good, a final block's outcome is certified within patience.
    pub(super) fn check_settling(&self) -> Result<(), FailureKind> {
        let promised = self.options.faults.beyond == 0;
        let Some(healed) = self.healed.filter(|_| promised) else {
            return Ok(());
        };
        let late = |open: &&Unsettled| {
            let node = &self.nodes[open.node];
            // The next round begins with the outcome.
            let waits = |member: &Member| member.round() == open.round;
            let waits = node.epoch == open.epoch && node.member.as_ref().is_some_and(waits);
            let late = self.now > open.since.max(healed) + HEARTBEAT * PATIENCE;
            late && waits && node.must_finish() && !self.ends_without_quorum(node.epoch)
        };
        match self.unsettled.iter().find(late) {
            Some(open) => Err(FailureKind::Masks(format!(
                "L5 (outcomes are certified): node {} has no outcome of round {} yet",
                open.node, open.round
            ))),
            None => Ok(()),
        }
    }

    /// Whether members of an epoch are gone for good, or have signed that others are, or that nobody is: who has
    /// signed does nothing more in its epoch, and the recovery goes on without the outcome.
    fn ends_without_quorum(&self, epoch: usize) -> bool {
        let mut members = self.epochs[epoch].nodes.iter().map(|at| &self.nodes[*at]);
        self.options.gives_up && epoch == 0
            || members.any(|node| {
                let wish = node.wish.as_ref();
                node.given_up || wish.is_some_and(|wish| wish.holds_in(epoch))
            })
    }
}
