//! Free ports, for tests of servers whose address must be known before they start.

use std::{
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
};

/// Below the range from which Linux assigns ports to outgoing connections and to listeners that ask for any port (32768 and
/// above). The system could assign a port of that range to somebody else before the server listens.
const PORTS: Range<u16> = 10_240..32_768;

/// Returns `count` distinct loopback addresses on which nobody listens. Ports are drawn at random, because other tests may
/// look for ports at the same time.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    let drawn =
        || PORTS.start + (RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start)) as u16;
    let listeners = std::iter::repeat_with(|| TcpListener::bind((Ipv4Addr::LOCALHOST, drawn()))).flatten();
    // All are held until the last one is found, so that no two are the same.
    let held: Vec<TcpListener> = listeners.take(count).collect();
    held.iter().map(|listener| listener.local_addr().expect("it is bound")).collect()
}

/// Returns an address on loopback on which nobody listens.
pub fn free_address() -> SocketAddr {
    free_addresses(1)[0]
}
