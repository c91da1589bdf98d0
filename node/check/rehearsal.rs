//! Lets every other member mask a known vector, and compares.

use protocol::parameters::RoundMode;
use protocol::{Epoch, Roster};

use super::{AddressOutcome, CheckedPeer, Finding};

/// The word before each finding.
const TOPIC: &str = "rehearsal";

/// A challenge of fresh random bytes, if rounds are masked.
pub(super) fn challenge(epoch: &Epoch) -> Result<Option<[u8; 32]>, getrandom::Error> {
    match epoch.protocol.privacy.mode() {
        RoundMode::Clear | RoundMode::Named => Ok(None),
        RoundMode::Masked(_) | RoundMode::Noised(..) => {
            let mut challenge = [0; 32];
            getrandom::fill(&mut challenge).map(|()| Some(challenge))
        }
    }
}

/// Returns what is said of each member that was tried with a challenge.
pub(super) fn rehearsal(
    challenge: Option<[u8; 32]>,
    roster: &Roster,
    peers: &[CheckedPeer],
) -> Vec<Finding> {
    let Some(challenge) = challenge else {
        let text = "nothing to test: rounds are in clear, without masks";
        return vec![Finding::note(TOPIC, text)];
    };
    let of = |peer: &CheckedPeer| of_member(&challenge, roster, peer);
    let mut findings: Vec<_> = peers.iter().map(of).collect();
    let wrong = findings.iter().filter(|one| one.remedy.is_some()).count();
    let answered = peers
        .iter()
        .filter(|peer| answer(peer).is_some_and(|one| one.is_some()));
    if wrong > 1 && wrong == answered.count() {
        let text = "every member that answered computes other masks than this program: probably this one is wrong";
        findings.push(Finding::bad(TOPIC, text));
    }
    findings
}

/// Returns what the member made of the challenge; `None` if it was not met.
fn answer(peer: &CheckedPeer) -> Option<Option<[u8; 32]>> {
    let mut met = peer
        .addresses
        .iter()
        .filter_map(|tried| match &tried.outcome {
            AddressOutcome::Met(met) => Some(met.rehearsal),
            AddressOutcome::Failed(_) => None,
        });
    met.next()
}

fn of_member(challenge: &[u8; 32], roster: &Roster, peer: &CheckedPeer) -> Finding {
    let (name, members) = (&peer.member, roster.len() as u16);
    let position = roster.members().find(|of| roster.name(*of) == name);
    let right = position.map(|position| privacy::masks::rehearse(challenge, position.0, members));
    let Some(Ok(right)) = right else {
        return Finding::note(TOPIC, format!("{name} could not be tested: try again"));
    };
    match answer(peer) {
        None => Finding::waiting(TOPIC, format!("{name} was not tested: its node does not answer")),
        Some(None) => Finding::note(
            TOPIC,
            format!("{name} cannot test masks: its program is older than this one"),
        ),
        Some(Some(answer)) if answer == right => {
            Finding::good(TOPIC, format!("{name} computes the same mask of a known vector as this program"))
        }
        Some(Some(_)) => Finding::bad(
            TOPIC,
            format!(
                "{name} computes another mask of a known vector than this program: a sum with it would be void, \
                 and in a real round nobody could see why"
            ),
        )
        .remedy(format!("compare version, build and machine with {name} before the first round")),
    }
}
