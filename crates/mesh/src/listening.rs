//! Check that a node can listen at an address.

use std::io;

use libp2p::multiaddr::Multiaddr;

use crate::config::socket;

/// Checks that a node can listen at an address. libp2p's own errors hide the system's message, and it
/// shares a TCP port with any process that allows it.
pub(crate) fn listening(address: &Multiaddr) -> Result<(), String> {
    let Some((ip, port, udp)) = socket(address) else {
        let why = "a node listens at an IP address, not at a name: /ip4/0.0.0.0/... is all of them";
        return Err(why.into());
    };
    let bound = if udp {
        std::net::UdpSocket::bind((ip, port)).map(drop)
    } else {
        std::net::TcpListener::bind((ip, port)).map(drop)
    };
    let Err(error) = bound else { return Ok(()) };
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses this port; stop it, or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; /ip4/0.0.0.0/... listens at all it has"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 need privileges; choose a higher one",
        _ => return Err(error.to_string()),
    };
    Err(format!("{error}: {advice}"))
}
