//! For tests: free ports of servers whose address must be known before they start, and how much work gives way.

use crate::Share;
use std::{
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
    time::Duration,
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

/// Begins work on the one thread of a runtime. Returns the largest number of turns that it took while another task on this
/// thread did 20 steps and yielded between them. `work` says for which shares its turns count, and what must be kept until the
/// end.
///
/// # Panics
/// If the work takes no turns at all.
pub fn most_turns_beside<T: Send + 'static>(
    work: impl Future<Output = (Vec<Share>, T)> + Send + 'static,
) -> u64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let most = runtime.block_on(async {
        let (shares, kept) = tokio::spawn(work).await.expect("it begins");
        let turns = move || shares.iter().map(Share::turns).sum::<u64>();
        let steps = async move {
            let mut most = 0;
            for _ in 0..10 {
                let before = turns();
                for _ in 0..20 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                most = most.max(turns() - before);
            }
            assert!(0 < turns(), "it takes no turns");
            most
        };
        let most = tokio::spawn(steps).await.expect("it takes turns");
        drop(kept);
        most
    });
    runtime.shutdown_background();
    most
}
