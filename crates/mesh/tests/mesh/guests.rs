//! Former members that go, and what they say of themselves.

use super::common::{config, contact, end, notice, of, public, spawn, up, wait};
use mesh::{Config, Notice, Transport};
use protocol::{Hash, MemberIndex};

/// Nine former members: one more than may be there at the same time.
const FORMER: std::ops::Range<u16> = 20..29;

fn host() -> Config {
    Config {
        guests: FORMER.map(public).collect(),
        ..config(Transport::Tcp)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_member_that_left_is_not_counted_as_present() {
    let host = spawn(host(), 0, &[contact(0, &[])]).await;
    let here = contact(0, &host.addresses);
    // All of them, one after the other, and the first one again.
    for key in FORMER.chain([FORMER.start]) {
        let roster = [here.clone(), contact(key, &[])];
        let mut former = spawn(config(Transport::Tcp), key, &roster).await;
        assert_eq!(wait(&mut former, up).await, MemberIndex(0));
        end(former).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_that_a_former_member_has_another_agreement() {
    let mut host = spawn(host(), 0, &[contact(0, &[]), contact(1, &[])]).await;
    let here = contact(0, &host.addresses);
    let other = || of(Hash::of(b"another federation"), Transport::Tcp);
    let roster = [here.clone(), contact(FORMER.start, &[])];
    let mut former = spawn(other(), FORMER.start, &roster).await;
    assert_eq!(wait(&mut former, up).await, MemberIndex(0));
    // The same of a member is what the host says first.
    let _member = spawn(other(), 1, &[here, contact(1, &[])]).await;
    let said = notice(&mut host).await;
    let Notice::OtherAgreement { member, .. } = said else {
        panic!("{said:?}");
    };
    assert_eq!(member, MemberIndex(1));
}
