//! The guarantees of a network for blobs.

use super::*;

/// A blob is delivered whole, from any holder.
pub(crate) async fn a_blob_is_fetched_from_any_holder<L: Lab>() {
    let (_lab, mut all) = whole::<L>(4, ROOM).await;
    for (seed, size) in (0..).zip([0, 1, 1000, 262_144, 262_145, 5_000_000]) {
        let blob = bytes(size, seed);
        let hash = Hash::of(&blob);
        let [asker, without, holder, other] = &mut all[..] else {
            unreachable!()
        };
        asker.fetch(hash, size as u64, &[1, 2, 0, 3]).await;
        let give = |by, of| (by == 0 && of == hash).then(|| blob.clone());
        let came = tokio::select! {
            came = asker.fetched_one() => came,
            never = without.serve(|_, _| None) => match never {},
            never = holder.serve(give) => match never {},
            never = other.serve(give) => match never {},
        };
        assert_eq!(came, Some(blob.clone()), "{size} bytes");
    }
}

/// Of many blobs requested together each is answered once: some come from one holder, some from
/// another, and those that no holder has are missing.
pub(crate) async fn each_blob_of_a_batch_is_answered_once<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let sizes = (0..60).map(|number| {
        if number % 20 == 7 {
            700_000
        } else {
            100 * number
        }
    });
    let blobs: Vec<_> = (0..)
        .zip(sizes)
        .map(|(seed, size)| bytes(size, seed))
        .collect();
    let wish = |blob: &Bytes| BlobRequest {
        hash: Hash::of(blob),
        limit: 1 << 20,
    };
    let [asker, first, second] = &mut all[..] else {
        unreachable!()
    };
    let from = vec![MemberIndex(1), MemberIndex(2)];
    asker
        .say(Command::Fetch {
            blobs: blobs.iter().map(wish).collect(),
            from,
        })
        .await;
    let place = |hash| {
        blobs
            .iter()
            .position(|blob| Hash::of(blob) == hash)
            .unwrap()
    };
    let give = |part: usize, hash| {
        let place = place(hash);
        (place % 3 == part).then(|| blobs[place].clone())
    };
    let came = tokio::select! {
        came = asker.fetched(blobs.len()) => came,
        never = first.serve(|_, hash| give(0, hash)) => match never {},
        never = second.serve(|_, hash| give(1, hash)) => match never {},
    };
    for (hash, blob) in &came {
        assert_eq!(*blob, blobs[place(*hash)]);
    }
    let expected: BTreeSet<_> = (0..60).filter(|place| place % 3 < 2).collect();
    assert_eq!(
        came.into_keys().map(place).collect::<BTreeSet<_>>(),
        expected
    );
}

/// A blob that no member has is missing.
pub(crate) async fn an_unknown_hash_is_missing<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let hash = Hash::of(b"no member has this");
    let [asker, first, second] = &mut all[..] else {
        unreachable!()
    };
    // Neither this member itself nor a position outside the roster is asked.
    asker.fetch(hash, 1000, &[0, 1, 2, 77]).await;
    assert_eq!(first.serve_once(|_, _| None).await, 0);
    assert_eq!(second.serve_once(|_, _| None).await, 0);
    assert_eq!(asker.fetched_one().await, None);
    asker.fetch(hash, 1000, &[]).await;
    assert_eq!(asker.fetched_one().await, None);
}

/// A blob of one byte more than the limit is missing; one of exactly the limit is delivered.
pub(crate) async fn a_blob_over_its_limit_is_refused<L: Lab>() {
    let (_lab, mut all) = whole::<L>(2, ROOM).await;
    let blob = bytes(600_000, 1);
    let [asker, holder] = &mut all[..] else {
        unreachable!()
    };
    for (limit, comes) in [(599_999, false), (0, false), (600_000, true)] {
        asker.fetch(Hash::of(&blob), limit, &[1]).await;
        let came = tokio::select! {
            came = asker.fetched_one() => came,
            never = holder.serve(|_, _| Some(blob.clone())) => match never {},
        };
        assert_eq!(came, comes.then(|| blob.clone()), "limit {limit}");
    }
}

/// Bytes with another hash are never delivered; another holder is asked instead.
pub(crate) async fn wrong_bytes_are_never_delivered<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    for size in [1_000_000, 1000] {
        let blob = bytes(size, 1);
        let mut wrong = blob.to_vec();
        wrong[size * 7 / 10] ^= 1;
        let wrong = Bytes::from(wrong);
        let [asker, liar, holder] = &mut all[..] else {
            unreachable!()
        };
        for honest in [false, true] {
            asker.fetch(Hash::of(&blob), 1 << 20, &[1, 2]).await;
            let came = tokio::select! {
                came = asker.fetched_one() => came,
                never = liar.serve(|_, _| Some(wrong.clone())) => match never {},
                never = holder.serve(|_, _| honest.then(|| blob.clone())) => match never {},
            };
            assert_eq!(came, honest.then(|| blob.clone()));
        }
    }
}

/// A fetch continues when its holder ends in the middle of a blob: from another holder, or from the
/// same one after it returns.
pub(crate) async fn a_fetch_continues_after_its_holder_ends<L: Lab>() {
    let (mut lab, mut all) = whole::<L>(3, ROOM).await;
    let blob = bytes(20_000_000, 1);
    let hash = Hash::of(&blob);
    let give = |_, of| (of == hash).then(|| blob.clone());
    all[0].fetch(hash, blob.len() as u64, &[2, 1]).await;
    // The first holder ends as soon as it has granted the blob, the second sends the rest.
    assert_eq!(all[2].serve_once(give).await, 0);
    let gone = all.remove(2);
    lab.stop(2, gone).await;
    let [asker, other] = &mut all[..] else {
        unreachable!()
    };
    let came = tokio::select! {
        came = asker.fetched_one() => came,
        never = other.serve(give) => match never {},
    };
    assert_eq!(came, Some(blob.clone()));
    // After a holder has ended and returned, a new fetch is answered by it.
    let mut back = lab.start(2, ROOM).await;
    asker.up(2).await;
    back.up(0).await;
    asker.fetch(hash, blob.len() as u64, &[2]).await;
    let came = tokio::select! {
        came = asker.fetched_one() => came,
        never = back.serve(give) => match never {},
    };
    assert_eq!(came, Some(blob.clone()));
}

/// An author decides for every request whether the member may have its blob: only the lead, until
/// the contribution list is published.
pub(crate) async fn the_author_decides_who_may_have_its_blob<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let blob = bytes(300_000, 1);
    let [lead, curious, author] = &mut all[..] else {
        unreachable!()
    };
    lead.fetch(Hash::of(&blob), 1 << 20, &[2]).await;
    curious.fetch(Hash::of(&blob), 1 << 20, &[2]).await;
    let (to_lead, to_curious) = tokio::select! {
        came = async { (lead.fetched_one().await, curious.fetched_one().await) } => came,
        never = author.serve(|by, _| (by == 0).then(|| blob.clone())) => match never {},
    };
    assert_eq!(to_lead, Some(blob));
    assert_eq!(to_curious, None);
}
