//! The ports of the first router of a development cluster: well-known ones, if they are free.

use super::HOST;
use std::net::{SocketAddr, TcpListener};

/// The usual port for queries.
pub const PORT: u16 = 7000;
/// The usual port for HTTP.
pub const PORT_HTTP: u16 = 7080;
/// The usual port for Redis clients.
pub const PORT_RESP: u16 = 7379;
/// The usual port for Gremlin drivers.
pub const PORT_GREMLIN: u16 = 7182;

/// Usual ports, and those of the previous run, that were free. They stay bound until this is dropped, because nodes start before
/// routers, and others may listen meanwhile.
#[derive(Debug, Default)]
pub(super) struct ReservedPorts(Vec<TcpListener>);

impl ReservedPorts {
    /// Returns the address to listen on. If `asked` is 0, that is `before` or a free port; another number is the port
    /// itself. If it is `None`, that is the `usual` port if it is free, else the same as for 0.
    pub fn choose(&mut self, asked: Option<u16>, usual: u16, before: Option<&str>) -> SocketAddr {
        let usual = match asked {
            Some(0) => None,
            Some(port) => return SocketAddr::new(HOST, port),
            None => Some(SocketAddr::new(HOST, usual)),
        };
        let wanted = usual.into_iter().chain([previous(before)]).filter(|addr| addr.port() != 0);
        let listener = wanted.map(TcpListener::bind).find_map(Result::ok);
        let addr = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        self.0.extend(listener);
        addr.unwrap_or(SocketAddr::new(HOST, 0))
    }
}

/// Returns the previous address, which may be taken. If there is none, the port is 0.
pub(super) fn previous(addr: Option<&str>) -> SocketAddr {
    addr.and_then(|addr| addr.parse().ok()).unwrap_or(SocketAddr::new(HOST, 0))
}

/// Returns the address if its port is free now, else one with port 0.
pub(super) fn if_free(addr: SocketAddr) -> SocketAddr {
    match TcpListener::bind(addr) {
        Ok(_) => addr,
        Err(_) => SocketAddr::new(HOST, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a port that was free a moment ago, and a listener on an address that is taken.
    fn free_and_taken() -> (u16, TcpListener) {
        let bind = || TcpListener::bind((HOST, 0)).unwrap();
        let port = bind().local_addr().unwrap().port();
        (port, bind())
    }

    #[test]
    fn the_usual_port_is_taken_while_it_is_free_and_kept_from_others() {
        let (free, _) = free_and_taken();
        let mut first = ReservedPorts::default();
        assert_eq!(first.choose(None, free, None), SocketAddr::new(HOST, free));
        assert_eq!(ReservedPorts::default().choose(None, free, None).port(), 0);
        drop(first);
        assert_eq!(ReservedPorts::default().choose(None, free, None).port(), free);
    }

    #[test]
    fn a_usual_port_that_is_taken_leaves_the_one_before_or_a_free_one() {
        let (free, taken) = free_and_taken();
        let taken = taken.local_addr().unwrap();
        let before = format!("{HOST}:{free}");
        let mut reserved = ReservedPorts::default();
        assert_eq!(reserved.choose(None, taken.port(), Some(&taken.to_string())).port(), 0);
        assert_eq!(reserved.choose(None, taken.port(), Some(&before)).port(), free);
        assert!(TcpListener::bind((HOST, free)).is_err(), "nobody else gets it before the router starts");
        drop(reserved);
        let mut reserved = ReservedPorts::default();
        assert_eq!(reserved.choose(Some(0), taken.port(), Some(&before)).port(), free);
        assert_eq!(
            ReservedPorts::default().choose(Some(0), taken.port(), Some(&before)).port(),
            0,
            "it is taken"
        );
    }

    #[test]
    fn a_port_that_is_asked_for_is_used_as_it_is() {
        let (free, taken) = free_and_taken();
        let taken = taken.local_addr().unwrap().port();
        let mut reserved = ReservedPorts::default();
        assert_eq!(
            reserved.choose(Some(taken), free, None).port(),
            taken,
            "the router tells that it is taken"
        );
        assert_eq!(reserved.choose(Some(0), free, None).port(), 0, "not the usual one");
    }
}
