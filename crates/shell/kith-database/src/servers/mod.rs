//! The database servers that the configuration lists, and which graphs may be stored on them. A caller chooses a server and
//! a database, but neither the credentials nor how the connection is protected.

mod target;
mod url;

pub use target::{MysqlTarget, PasswordSource, Tls};
pub use url::{AddressError, ServerAddress, ServerUrl};

#[cfg(feature = "mysql")]
use crate::PASSWORD_VARIABLE;
use kith_net::server::security::{is_pattern, matches};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::path::PathBuf;
use thiserror::Error;

/// A `[[database-server]]` of the configuration. Contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DatabaseServer {
    /// The host and port.
    pub address: ServerAddress,
    /// The user to log in as.
    pub user: String,
    /// The graphs that may be stored there: names, or prefixes of names that end in `*`.
    #[serde(default = "every_graph")]
    pub graphs: Vec<String>,
    /// The file whose first line is the password of the user.
    pub password_file: Option<PathBuf>,
    /// Whether connections use TLS. Without this key, they do unless the server is on this machine.
    pub tls: Option<TlsKey>,
    /// The file with the authorities to trust (PEM). Without it, the public authorities are trusted.
    pub ca: Option<PathBuf>,
}

/// The key `tls` of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsKey {
    /// Connections are not encrypted.
    Off,
    /// Connections use TLS.
    Required,
}

/// The reason why this program cannot use any server; `None` if it can.
const NOT_BUILT: Option<&str> = match cfg!(feature = "mysql") {
    true => None,
    false => Some("this program was built without MySQL; `make build` builds one that has it"),
};

fn every_graph() -> Vec<String> {
    vec!["*".to_owned()]
}

impl Serialize for ServerAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ServerAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl DatabaseServer {
    /// Checks what the types of the keys do not say.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("[[database-server]] {}: {what}", self.address));
        if let Some(why) = NOT_BUILT {
            return wrong(why);
        }
        if self.user.is_empty() {
            return wrong("`user` is empty");
        }
        if self.graphs.is_empty() || !self.graphs.iter().all(|pattern| is_pattern(pattern)) {
            return wrong("`graphs` lists names of graphs, or prefixes of names followed by `*`");
        }
        if self.tls == Some(TlsKey::Off) && self.ca.is_some() {
            return wrong("`ca` has no use with `tls = \"off\"`");
        }
        Ok(())
    }

    #[cfg(feature = "mysql")]
    fn tls(&self) -> Tls {
        let is_default = self.ca.is_some() || !self.address.is_loopback();
        match self.tls.map_or(is_default, |tls| tls == TlsKey::Required) {
            true => Tls::Required(self.ca.clone()),
            false => Tls::Off,
        }
    }
}

/// The servers that a process may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseServers {
    /// The servers that the configuration lists. The first one with the address and for the graph counts.
    pub listed: Vec<DatabaseServer>,
    /// Whether any server on a loopback address may be named, with any user, as in `kith dev`.
    pub loopback: bool,
    /// The file with the password for servers that have no file of their own. Without it, the environment variable
    /// [`PASSWORD_VARIABLE`] is used if it is set.
    pub password_file: Option<PathBuf>,
}

/// The reason why a graph may not be stored in the database that a caller names. No connection was made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ServerRefused {
    /// The configuration does not list the server for the graph.
    #[error("the configuration lists no database server {server} for graph {graph:?}")]
    NotListed { server: String, graph: String },
    /// The address names another user than the configuration.
    #[error(
        "graph {graph:?} may use the database server {server} only as the user whom the configuration names"
    )]
    OtherUser { server: String, graph: String },
    /// The address names no user, and neither does the configuration.
    #[error("the address of the database on {server} has no user: use mysql://USER@HOST:PORT/DATABASE")]
    NoUser { server: String },
    /// The program was built without the feature `mysql`.
    #[error("the database server {server} cannot be used: {why}")]
    NotBuilt { server: String, why: &'static str },
}

/// The terms on which a database may be used.
enum Allowed<'a> {
    /// As the configuration says.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code, reason = "only connections read it"))]
    As(&'a DatabaseServer),
    /// As this user, because the server is on a loopback address.
    Loopback(String),
}

impl DatabaseServers {
    /// Returns the database for the graph `graph`, as a graph's document stores its address: with a user only if the
    /// configuration has none.
    ///
    /// # Errors
    /// [`ServerRefused`].
    pub fn admit(&self, graph: &str, url: &ServerUrl) -> Result<ServerUrl, ServerRefused> {
        let user = match self.allowed(graph, url)? {
            Allowed::As(_) => None,
            Allowed::Loopback(user) => Some(user),
        };
        Ok(ServerUrl { user, ..url.clone() })
    }

    /// Returns how to connect to the database of the graph `graph`.
    ///
    /// # Errors
    /// [`ServerRefused`].
    #[cfg(feature = "mysql")]
    pub(crate) fn target(&self, graph: &str, url: &ServerUrl) -> Result<MysqlTarget, ServerRefused> {
        let url = url.clone();
        Ok(match self.allowed(graph, &url)? {
            Allowed::As(server) => {
                let own = server.password_file.clone().map(PasswordSource::File);
                let password = own.or_else(|| self.password());
                MysqlTarget { url, user: server.user.clone(), tls: server.tls(), password }
            }
            Allowed::Loopback(user) => MysqlTarget { url, user, tls: Tls::Off, password: self.password() },
        })
    }

    fn allowed(&self, graph: &str, url: &ServerUrl) -> Result<Allowed<'_>, ServerRefused> {
        let (server, graph_name) = (url.server.to_string(), graph.to_owned());
        if let Some(why) = NOT_BUILT {
            return Err(ServerRefused::NotBuilt { server, why });
        }
        let is_listed = |it: &&DatabaseServer| {
            it.address == url.server && it.graphs.iter().any(|pattern| matches(pattern, graph))
        };
        match self.listed.iter().find(is_listed) {
            Some(listed) if url.user.as_ref().is_some_and(|user| *user != listed.user) => {
                Err(ServerRefused::OtherUser { server, graph: graph_name })
            }
            Some(listed) => Ok(Allowed::As(listed)),
            // A server that is listed for other graphs only is not open to this one.
            None if self.loopback
                && url.server.is_loopback()
                && self.listed.iter().all(|it| it.address != url.server) =>
            {
                url.user.clone().map(Allowed::Loopback).ok_or(ServerRefused::NoUser { server })
            }
            None => Err(ServerRefused::NotListed { server, graph: graph_name }),
        }
    }

    #[cfg(feature = "mysql")]
    fn password(&self) -> Option<PasswordSource> {
        let variable = || std::env::var_os(PASSWORD_VARIABLE).map(|_| PASSWORD_VARIABLE.to_owned());
        match &self.password_file {
            Some(file) => Some(PasswordSource::File(file.clone())),
            None => variable().map(PasswordSource::Variable),
        }
    }
}

#[cfg(all(test, not(feature = "mysql")))]
mod tests {
    use super::*;

    #[test]
    fn without_mysql_servers_are_neither_configured_nor_used() {
        let entry = "address = \"db:1\"\nuser = \"kith\"\n";
        let listed: DatabaseServer = toml::from_str(entry).expect("an entry");
        assert!(listed.check().expect_err("no server").contains("without MySQL"));
        for loopback in [false, true] {
            let servers = DatabaseServers { listed: vec![listed.clone()], loopback, password_file: None };
            for url in ["mysql://db:1/a", "mysql://root@127.0.0.1/a"] {
                let refused = servers.admit("social", &url.parse().expect("an address")).expect_err(url);
                assert!(refused.to_string().contains("without MySQL"), "{refused}");
            }
        }
    }
}

#[cfg(all(test, feature = "mysql"))]
mod tests {
    use super::*;

    fn listed(address: &str, graphs: &[&str], user: &str) -> DatabaseServer {
        DatabaseServer {
            address: address.parse().expect("an address"),
            user: user.to_owned(),
            graphs: graphs.iter().map(|graph| (*graph).to_owned()).collect(),
            password_file: Some(PathBuf::from(format!("/etc/kith/{user}"))),
            tls: None,
            ca: None,
        }
    }

    fn servers() -> DatabaseServers {
        let listed = vec![
            listed("db.example", &["social", "ads-*"], "kith"),
            listed("db.example", &["*"], "rest"),
            listed("127.0.0.1:3307", &["social"], "local"),
        ];
        DatabaseServers { listed, loopback: false, password_file: None }
    }

    fn target(servers: &DatabaseServers, graph: &str, url: &str) -> Result<MysqlTarget, ServerRefused> {
        servers.target(graph, &url.parse().expect("an address"))
    }

    #[test]
    fn a_graph_gets_the_credentials_that_its_server_lists_for_it() {
        let servers = servers();
        for (graph, url, user) in [
            ("social", "mysql://db.example/a", "kith"),
            ("social", "mysql://DB.EXAMPLE:3306/a", "kith"),
            ("social", "mysql://kith@db.example/a", "kith"),
            ("ads-7", "mysql://db.example/a", "kith"),
            ("people", "mysql://db.example/a", "rest"),
        ] {
            let target = target(&servers, graph, url).expect("listed");
            let password = Some(PasswordSource::File(format!("/etc/kith/{user}").into()));
            assert_eq!((target.user.as_str(), target.password), (user, password), "{graph} {url}");
            assert_eq!(target.tls, Tls::Required(None));
            let stored = servers.admit(graph, &url.parse().expect("an address")).expect("listed");
            assert_eq!(stored.to_string(), "mysql://db.example:3306/a", "the configuration has the user");
        }
        let ca = DatabaseServer { ca: Some("/etc/ca.pem".into()), ..servers.listed[2].clone() };
        assert_eq!(
            (servers.listed[2].tls(), ca.tls()),
            (Tls::Off, Tls::Required(Some("/etc/ca.pem".into())))
        );
    }

    #[test]
    fn what_is_not_listed_is_refused() {
        let servers = servers();
        for (graph, url, why) in [
            ("social", "mysql://kith@db.example:3307/a", "lists no database server db.example:3307"),
            ("social", "mysql://kith@db.example.evil/a", "lists no database server"),
            ("social", "mysql://kith@10.0.0.1/a", "lists no database server"),
            ("social", "mysql://kith@127.0.0.1/a", "lists no database server"),
            ("people", "mysql://local@127.0.0.1:3307/a", "for graph \"people\""),
            ("social", "mysql://rest@db.example/a", "only as the user"),
            ("people", "mysql://kith@db.example/a", "only as the user"),
            ("social", "mysql://kith@localhost:3307/a", "lists no database server"),
        ] {
            let refused = target(&servers, graph, url).expect_err(url).to_string();
            assert!(refused.contains(why), "{graph} {url}: {refused}");
        }
    }

    #[test]
    fn a_development_cluster_takes_unlisted_servers_on_loopback_only() {
        let servers = DatabaseServers { loopback: true, ..servers() };
        for url in ["mysql://root@127.0.0.1:1/a", "mysql://root@localhost/a", "mysql://root@[::1]/a"] {
            let target = target(&servers, "people", url).expect("loopback");
            assert_eq!((target.user.as_str(), target.tls), ("root", Tls::Off));
            let stored = servers.admit("people", &target.url).expect("loopback");
            assert_eq!(stored.user.as_deref(), Some("root"));
        }
        for url in [
            "mysql://root@10.0.0.1/a",
            "mysql://root@localhost.evil/a",
            "mysql://root@127.1/a",
            "mysql://127.0.0.1/a",
            "mysql://root@127.0.0.1:3307/a",
        ] {
            assert!(target(&servers, "people", url).is_err(), "{url}");
        }
    }

    #[test]
    fn wrong_entries_are_refused() {
        let entry = |text: &str| match toml::from_str::<DatabaseServer>(text) {
            Ok(server) => server.check(),
            Err(error) => Err(error.to_string()),
        };
        let good = "address = \"db:1\"\nuser = \"kith\"\n";
        assert_eq!(entry(good), Ok(()));
        for (more, why) in [
            ("graphs = []", "graphs"),
            ("graphs = [\"*a\"]", "graphs"),
            ("tls = \"off\"\nca = \"f\"", "no use"),
            ("tls = \"on\"", "required"),
            ("pasword-file = \"f\"", "password-file"),
        ] {
            let message = entry(&format!("{good}{more}")).expect_err(more);
            assert!(message.contains(why), "{message}");
        }
        assert!(entry("address = \"db:1\"\nuser = \"\"\n").is_err());
        assert!(entry("address = \"mysql://db\"\nuser = \"kith\"\n").is_err());
    }
}
