//! Evidence in an envelope.

use super::*;

#[test]
fn evidence_against_an_accused_member_is_not_verified() {
    let epoch = epoch("a");
    let mut evidence = evidence(&epoch);
    let known = Known {
        accused: BTreeSet::from([MemberIndex(1)]),
        ..Known::default()
    };
    // A second one is not verified, even if it is forged.
    evidence.second.signature = evidence.first.signature;
    let bytes = sign_evidence(&epoch, &evidence);
    assert_eq!(open_known(&epoch, &known, &bytes), Ok(Opened::Known));
}

#[test]
fn evidence_without_a_conflict_is_refused() {
    let epoch = epoch("a");
    let vote = |block: &[u8]| {
        let checked = Checked::Structure;
        let body = Body::Notarize {
            block: Hash::of(block),
            checked,
        };
        sign(&epoch, &key(1), 0, 5, MemberIndex(1), body).0
    };
    let evidence = Evidence::of(&vote(b"a"), &vote(b"b")).unwrap();
    let open = |evidence: &Evidence| read(&epoch, &sign_evidence(&epoch, evidence));
    assert_eq!(
        open(&evidence),
        Ok(Opened::Evidence(Box::new(evidence.clone())))
    );
    assert_eq!(evidence.charge(), "two Notarize votes in view 5");
    assert_eq!(Evidence::of(&vote(b"a"), &vote(b"a")), None);
    // Another accused member, and twice the same vote.
    let mut framed = evidence.clone();
    framed.member = MemberIndex(2);
    assert_eq!(
        open(&framed),
        Err(EvidenceError::Signature(MemberIndex(2)).into())
    );
    let mut harmless = evidence;
    harmless.second = harmless.first.clone();
    assert_eq!(
        open(&harmless),
        Err(EvidenceError::NoConflict(MemberIndex(1)).into())
    );
    // An honest member may sign Notarize and Nullify of one view.
    let nullify = sign(&epoch, &key(1), 0, 5, MemberIndex(1), Body::Nullify).0;
    assert_eq!(Evidence::of(&vote(b"a"), &nullify), None);
}

proptest! {
    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let epoch = epoch("a");
        prop_assert!(read(&epoch, &bytes).is_err());
    }

    #[test]
    fn a_message_with_a_flipped_bit_is_refused(at in 0usize..10_000, bit in 0u8..8) {
        let epoch = epoch("a");
        let (_, bytes) = sign(&epoch, &key(2), 0, 4, MemberIndex(2), body());
        let mut bytes = bytes.to_vec();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(read(&epoch, &bytes).is_err());
    }
}
