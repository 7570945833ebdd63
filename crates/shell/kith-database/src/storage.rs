//! The storage of a live graph, which the graph's document names: a database process of the cluster, or a server that
//! speaks the MySQL protocol.

use crate::{
    AddressError, Database, DatabaseError, DatabaseProcesses, DatabaseServers, GraphIdentity, ProcessLocator,
    RemoteDatabase, RemoteOptions, RemoteTarget, ServerRefused, ServerUrl,
};
#[cfg(feature = "mysql")]
use crate::{MysqlDatabase, MysqlOptions, MysqlTarget};
use kith_net::{frames::Frames, security::Dialer, transport::TransportKind};
use std::{fmt, str::FromStr, sync::Arc};
use thiserror::Error;

/// The environment variable with the password for servers, used if the configuration names no password file.
pub const PASSWORD_VARIABLE: &str = "KITH_DATABASE_PASSWORD";

/// The prefix of the storage in a database process.
const PROCESS: &str = "database:";
/// The prefix of the storage on a server.
const SERVER: &str = "mysql://";

/// The place where the rows of a live graph are stored. It contains no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// `database:ID`: the database process of the cluster with this id.
    Process(u32),
    /// `mysql://USER@HOST:PORT/DATABASE`: a database on a server. The user may be left out.
    Server(ServerUrl),
}

/// The reason why a text is not a valid [`Storage`]. The message does not repeat the text, which may contain a password
/// by mistake.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The text begins with neither prefix.
    #[error("the storage of a live graph is database:ID, or mysql://USER@HOST:PORT/DATABASE")]
    Kind,
    /// The text after `database:` is not the id of a process.
    #[error(
        "the storage of a live graph has {id:?} after database:, which is not the id of a database process"
    )]
    Id {
        /// The text after the prefix.
        id: String,
    },
    /// The address of the server is malformed.
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// The connections of a process of the cluster to databases.
#[derive(Clone)]
pub struct Reach {
    processes: Arc<DatabaseProcesses>,
    servers: Arc<DatabaseServers>,
}

impl FromStr for Storage {
    type Err = StorageError;

    fn from_str(text: &str) -> Result<Self, StorageError> {
        if let Some(id) = text.strip_prefix(PROCESS) {
            let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
            let number = id.parse().ok().filter(|_| is_number);
            return number.map(Storage::Process).ok_or_else(|| StorageError::Id { id: id.to_owned() });
        }
        if !text.starts_with(SERVER) {
            return Err(StorageError::Kind);
        }
        Ok(Storage::Server(text.parse()?))
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Process(database) => write!(f, "{PROCESS}{database}"),
            Storage::Server(url) => write!(f, "{url}"),
        }
    }
}

/// The database of a graph that was created or opened.
pub type OpenResult = Result<Arc<dyn Database>, DatabaseError>;

impl Storage {
    /// Creates the database of the graph `name`. Does nothing if it exists.
    ///
    /// # Errors
    /// [`DatabaseError::OtherGraph`] or [`DatabaseError::OtherPartitions`] if another graph is stored there; any other
    /// [`DatabaseError`] if the database cannot be used.
    pub async fn create(&self, name: &str, identity: GraphIdentity, reach: &Reach) -> OpenResult {
        Ok(match self {
            Storage::Process(database) => {
                Arc::new(RemoteDatabase::create(reach.process(*database, name), identity).await?)
            }
            #[cfg(not(feature = "mysql"))]
            Storage::Server(url) => return Err(reach.not_built(name, url)),
            #[cfg(feature = "mysql")]
            Storage::Server(url) => {
                let target = reach.target(name, url)?;
                Arc::new(MysqlDatabase::create(target, identity, MysqlOptions::default()).await?)
            }
        })
    }

    /// Opens the database of the graph `name`.
    ///
    /// # Errors
    /// [`DatabaseError::NoGraph`] if the database has not been created; [`DatabaseError::OtherGraph`] or
    /// [`DatabaseError::OtherPartitions`] if another graph is stored there; any other [`DatabaseError`] if it cannot be
    /// used.
    pub async fn open(&self, name: &str, identity: GraphIdentity, reach: &Reach) -> OpenResult {
        Ok(match self {
            Storage::Process(database) => {
                Arc::new(RemoteDatabase::open(reach.process(*database, name), identity).await?)
            }
            #[cfg(not(feature = "mysql"))]
            Storage::Server(url) => return Err(reach.not_built(name, url)),
            #[cfg(feature = "mysql")]
            Storage::Server(url) => {
                let target = reach.target(name, url)?;
                Arc::new(MysqlDatabase::open(target, identity, MysqlOptions::default()).await?)
            }
        })
    }

    /// Removes the rows of the graph `name` permanently: its file, or its tables on a server. Does nothing if they do
    /// not exist.
    ///
    /// # Errors
    /// [`DatabaseError::OtherGraph`] or [`DatabaseError::OtherPartitions`] if another graph is stored there; any other
    /// [`DatabaseError`] if the rows cannot be removed.
    pub async fn remove(
        &self,
        name: &str,
        identity: GraphIdentity,
        reach: &Reach,
    ) -> Result<(), DatabaseError> {
        match self {
            Storage::Process(database) => {
                RemoteDatabase::remove(reach.process(*database, name), identity).await
            }
            #[cfg(not(feature = "mysql"))]
            Storage::Server(url) => Err(reach.not_built(name, url)),
            #[cfg(feature = "mysql")]
            Storage::Server(url) => {
                MysqlDatabase::remove(reach.target(name, url)?, identity, MysqlOptions::default()).await
            }
        }
    }
}

impl Reach {
    /// Returns a reach that has no connections yet. It finds database processes by `locate` and connects to them with
    /// `dialer`. Of all servers, it connects only to `servers`.
    pub fn new(locate: ProcessLocator, dialer: Dialer, servers: DatabaseServers) -> Self {
        let frames = Arc::new(Frames::new(dialer, TransportKind::default().is_local()));
        Self { processes: Arc::new(DatabaseProcesses::new(locate, frames)), servers: Arc::new(servers) }
    }

    /// Returns the storage of the graph `name` as its document names it, if the graph may be stored there. Makes no
    /// connection.
    ///
    /// # Errors
    /// [`ServerRefused`].
    pub fn admit(&self, name: &str, storage: Storage) -> Result<Storage, ServerRefused> {
        match storage {
            Storage::Server(url) => self.servers.admit(name, &url).map(Storage::Server),
            process @ Storage::Process(_) => Ok(process),
        }
    }

    fn process(&self, database: u32, graph: &str) -> RemoteTarget {
        RemoteTarget {
            database,
            graph: graph.to_owned(),
            processes: Arc::clone(&self.processes),
            options: RemoteOptions::default(),
        }
    }

    /// The refusal of a program that cannot use servers.
    #[cfg(not(feature = "mysql"))]
    fn not_built(&self, graph: &str, url: &ServerUrl) -> DatabaseError {
        let refused = self.servers.admit(graph, url).expect_err("no server is admitted");
        DatabaseError::Refused { reason: refused.to_string() }
    }

    #[cfg(feature = "mysql")]
    fn target(&self, graph: &str, url: &ServerUrl) -> Result<MysqlTarget, DatabaseError> {
        self.servers
            .target(graph, url)
            .map_err(|refused| DatabaseError::Refused { reason: refused.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_survives_its_text() {
        for text in ["database:0", "database:17", "mysql://kith@db.example:3307/social", "mysql://h:1/s"] {
            assert_eq!(text.parse::<Storage>().unwrap().to_string(), text);
        }
        assert_eq!("database:17".parse::<Storage>().unwrap(), Storage::Process(17));
    }

    #[test]
    fn other_texts_are_refused_and_passwords_are_not_repeated() {
        let refusal = |text: &str| text.parse::<Storage>().unwrap_err().to_string();
        for text in ["", "people", "postgres://kith:secret@h/social", "mysql://kith:secret@h/social"] {
            assert!(!refusal(text).contains("secret"), "{}", refusal(text));
        }
        for text in ["database:", "database:+1", "database:-1", "database:4294967296", "database:a"] {
            assert!(refusal(text).contains("not the id"), "{}", refusal(text));
        }
        assert!(refusal("mysql://kith:secret@h/social").contains("contains a password"));
    }
}
