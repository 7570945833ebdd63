//! The clients that are connected, for `CLIENT LIST`.

use super::{resp_rights::RespRights, tracking::Tracking};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    fmt::Write,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The connections of one endpoint.
#[derive(Debug)]
pub(super) struct Clients {
    started: Instant,
    connections: AtomicU64,
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
}

/// One connection, as `CLIENT LIST` shows it.
#[derive(Debug)]
pub(crate) struct Client {
    pub id: u64,
    peer: SocketAddr,
    local: SocketAddr,
    since: Duration,
    /// When it last sent something, in milliseconds since the endpoint started.
    asked: AtomicU64,
    said: Mutex<ClientFacts>,
    /// The client's identity; written when the client authenticates.
    rights: Mutex<RespRights>,
}

/// The facts that a client states about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientFacts {
    pub name: String,
    pub library: String,
    pub library_version: String,
    /// The version of RESP: 2 or 3.
    pub protocol: i64,
    /// Whether it keeps values, and wants a message when they change.
    pub tracking: Tracking,
}

/// Keeps a connection in the list until it is dropped.
#[derive(Debug)]
pub(super) struct ListedConnection {
    clients: Arc<Clients>,
    pub client: Arc<Client>,
}

impl Clients {
    /// An empty list.
    pub fn new(now: Instant) -> Self {
        Self { started: now, connections: AtomicU64::new(0), connected: Mutex::default() }
    }

    /// Adds a connection.
    pub fn connect(self: &Arc<Self>, peer: SocketAddr, local: SocketAddr) -> ListedConnection {
        let id = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let since = self.started.elapsed();
        let asked = AtomicU64::new(since.as_millis() as u64);
        let said = Mutex::new(ClientFacts { protocol: 2, ..ClientFacts::default() });
        let rights = Mutex::new(RespRights::anybody());
        let client = Arc::new(Client { id, peer, local, since, asked, said, rights });
        self.lock().insert(id, Arc::clone(&client));
        ListedConnection { clients: Arc::clone(self), client }
    }

    /// The number of connections now.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// The number of connections since the endpoint started.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// The time since the endpoint started.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// One line for each connection, or for each of those with these ids, in the format of Redis.
    pub fn list(&self, ids: Option<&[u64]>) -> String {
        let now = self.uptime();
        let connected = self.lock();
        let asked = connected.values().filter(|client| ids.is_none_or(|ids| ids.contains(&client.id)));
        asked.map(|client| client.line(now) + "\n").collect()
    }

    /// The line of one connection.
    pub fn line(&self, client: &Client) -> String {
        client.line(self.uptime())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.connected.lock()
    }
}

impl ListedConnection {
    /// Notes that the client has sent something.
    pub fn asks(&self) {
        let now = self.clients.uptime().as_millis() as u64;
        self.client.asked.store(now, Ordering::Relaxed);
    }
}

impl Drop for ListedConnection {
    fn drop(&mut self) {
        self.clients.lock().remove(&self.client.id);
    }
}

impl Client {
    /// The client's address.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The facts that the client states about itself, locked for reading or changing.
    pub(super) fn said(&self) -> MutexGuard<'_, ClientFacts> {
        self.said.lock()
    }

    /// Sets the client's identity.
    pub(super) fn is(&self, rights: RespRights) {
        *self.rights.lock() = rights;
    }

    /// The client's name in the access file, as one word: programs split the lines at spaces.
    fn user(&self) -> Option<String> {
        let name = self.rights.lock().name()?;
        let word = |letter: char| if letter.is_whitespace() || letter.is_control() { '_' } else { letter };
        Some(name.chars().map(word).collect())
    }

    fn line(&self, now: Duration) -> String {
        let ClientFacts { name, library, library_version, protocol, .. } = self.said().clone();
        let asked = Duration::from_millis(self.asked.load(Ordering::Relaxed));
        let (age, idle) = (now.saturating_sub(self.since), now.saturating_sub(asked));
        let mut line = format!("id={} addr={} laddr={}", self.id, self.peer, self.local);
        let (age, idle) = (age.as_secs(), idle.as_secs());
        let user = self.user().map(|user| format!(" user={user}")).unwrap_or_default();
        let rest = write!(
            line,
            " name={name} age={age} idle={idle} db=0{user} resp={protocol} lib-name={library} lib-ver={library_version}"
        );
        rest.expect("writing to a string cannot fail");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_listed_while_they_are_connected() {
        let clients = Arc::new(Clients::new(Instant::now()));
        let peer = SocketAddr::from(([127, 0, 0, 1], 5));
        let local = SocketAddr::from(([127, 0, 0, 1], 6));
        let one = clients.connect(peer, local);
        one.client.said().name = "feeds".to_owned();
        let two = clients.connect(peer, local);
        let list = clients.list(None);
        assert!(list.starts_with("id=1 addr=127.0.0.1:5 laddr=127.0.0.1:6 name=feeds age=0 "), "{list}");
        assert_eq!((list.lines().count(), clients.count()), (2, 2));
        drop(one);
        assert!(clients.list(None).starts_with("id=2 "));
        drop(two);
        assert_eq!((clients.count(), clients.connections()), (0, 2));
    }
}
