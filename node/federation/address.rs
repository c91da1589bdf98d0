//! Addresses of nodes as people write them.

use std::net::{IpAddr, Ipv6Addr};

use mesh::Transport;

/// The addresses that a text means at which others reach a node: an address as libp2p writes it, or
/// `HOST:PORT`, which is QUIC over that UDP port and TCP at the same number.
///
/// # Errors
/// The fault of the address, and what would be right.
pub fn addresses(text: &str) -> Result<Vec<String>, String> {
    let text = text.trim();
    if text.starts_with('/') {
        mesh::check(text).map_err(|error| error.to_string())?;
        return reachable(text, vec![text.to_owned()]);
    }
    let wrong = || {
        format!(
            "{text:?} is not an address: write HOST:PORT, such as rota.example.org:4001 or \
             192.0.2.7:4001"
        )
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port
        .parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(wrong)?;
    let host = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(inside) => match inside.parse::<Ipv6Addr>() {
            Ok(_) => inside,
            Err(_) => return Err(wrong()),
        },
        None => host,
    };
    let is_name = host
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if host.is_empty() || (host.parse::<IpAddr>().is_err() && !is_name) {
        return Err(wrong());
    }
    let all = Transport::Both.addresses(host, port);
    for address in &all {
        mesh::check(address).map_err(|_| wrong())?;
    }
    reachable(text, all)
}

/// Refuses an address that means every interface of a machine.
fn reachable(text: &str, addresses: Vec<String>) -> Result<Vec<String>, String> {
    let unspecified = |address: &String| {
        let ip = mesh::port(address).and_then(|(ip, _)| ip);
        ip.is_some_and(|ip| ip.is_unspecified())
    };
    if addresses.iter().any(unspecified) {
        Err(format!(
            "{text:?} is where a node listens, and not where others reach it: give its name or IP \
             address in the network"
        ))
    } else {
        Ok(addresses)
    }
}

/// Returns whether an address is of this machine only.
pub fn is_loopback(address: &str) -> bool {
    let ip = mesh::port(address).and_then(|(ip, _)| ip);
    ip.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_host_and_a_port_become_addresses_of_both_transports() {
        assert_eq!(
            addresses("rota.example.org:4001").unwrap(),
            [
                "/dns/rota.example.org/udp/4001/quic-v1",
                "/dns/rota.example.org/tcp/4001"
            ]
        );
        assert_eq!(
            addresses("[2001:db8::7]:4001").unwrap()[0],
            "/ip6/2001:db8::7/udp/4001/quic-v1"
        );
        let one = "/ip4/192.0.2.7/tcp/4001";
        assert_eq!(addresses(one).unwrap(), [one]);
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for wrong in [
            "north",
            "north:",
            "north:0",
            ":4001",
            "a b:4001",
            "north:99999",
            "[x]:1",
        ] {
            let error = addresses(wrong).unwrap_err();
            assert!(error.contains("write HOST:PORT"), "{wrong}: {error}");
        }
        assert!(
            addresses("/ip4/1.2.3/tcp/1")
                .unwrap_err()
                .contains("is not an address of a node")
        );
        for all in ["0.0.0.0:4001", "/ip4/0.0.0.0/tcp/4001", "[::]:4001"] {
            assert!(addresses(all).unwrap_err().contains("where a node listens"));
        }
    }
}
