//! A database on a server with what a connection needs: user, password and TLS. Makes no connection.

use super::url::{AddressError, ServerUrl};
use kith_net::security::secret;
use mysql_async::{OptsBuilder, SslOpts};
use std::{io, path::PathBuf};
use thiserror::Error;

/// The most bytes of one packet that a server may send. The longest rows that Kith stores have about 1 MiB, and no packet of
/// its statements is longer than 3 MiB. Before the login, the driver reads packets of at most 4 MiB.
const PACKET_BYTES_MAX: usize = 16 << 20;

/// When the driver assumes that a server has closed an idle connection. Kith finds that out by itself.
const WAIT_TIMEOUT_SECONDS: usize = 28_800;

/// The source of a password. It is read for each new connection, so the password can be changed while processes run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordSource {
    /// The first line of a file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
}

/// Whether connections use TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// They are not encrypted.
    Off,
    /// TLS is required. The file contains the trusted authorities as PEM; `None` means the public authorities.
    Required(Option<PathBuf>),
}

/// A database on a server, and how to log in. Contains no secret, so it can be stored and printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlTarget {
    /// The database. Its user is ignored.
    pub url: ServerUrl,
    /// The user to log in as.
    pub user: String,
    /// Whether connections use TLS.
    pub tls: Tls,
    /// The password, if there is one.
    pub password: Option<PasswordSource>,
}

/// Why the password of a server cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PasswordError {
    /// The password file cannot be read.
    #[error("read the password of the database from {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The environment variable of the password is not set.
    #[error(
        "the environment variable {variable}, which should hold the password of the database, is not set"
    )]
    Variable { variable: String },
}

impl MysqlTarget {
    /// Returns the database at an address that names its user, without a configuration. Connections use TLS unless the host
    /// is this machine.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn parse(address: &str, password: Option<PasswordSource>) -> Result<Self, AddressError> {
        let url: ServerUrl = address.parse()?;
        let no_user = || AddressError::Malformed { detail: "has no user".to_owned() };
        let user = url.user.clone().ok_or_else(no_user)?;
        let tls = if url.server.is_loopback() { Tls::Off } else { Tls::Required(None) };
        Ok(Self { url, user, tls, password })
    }

    /// Returns the name of the database for messages.
    pub fn place(&self) -> String {
        format!("{} at {}", self.url.database, self.url.server)
    }

    /// Returns the options for a connection, with the current password.
    pub(super) fn options(&self) -> Result<OptsBuilder, PasswordError> {
        let tls = match &self.tls {
            Tls::Off => None,
            Tls::Required(None) => Some(SslOpts::default()),
            Tls::Required(Some(ca)) => {
                let roots = vec![ca.clone().into()];
                Some(SslOpts::default().with_root_certs(roots).with_disable_built_in_roots(true))
            }
        };
        Ok(OptsBuilder::default()
            .ip_or_hostname(&self.url.server.host)
            .tcp_port(self.url.server.port)
            .user(Some(&self.user))
            .pass(self.password()?)
            .db_name(Some(&self.url.database))
            .ssl_opts(tls)
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            // Otherwise the driver asks the server for it, and reads whatever the server answers.
            .wait_timeout(Some(WAIT_TIMEOUT_SECONDS))
            // A row that a statement matches but does not change also counts, as it does in SQLite.
            .client_found_rows(true)
            .prefer_socket(false)
            .stmt_cache_size(0))
    }

    fn password(&self) -> Result<Option<String>, PasswordError> {
        match &self.password {
            None => Ok(None),
            Some(PasswordSource::Variable(variable)) => match std::env::var(variable) {
                Ok(password) => Ok(Some(password)),
                Err(_) => Err(PasswordError::Variable { variable: variable.clone() }),
            },
            Some(PasswordSource::File(path)) => match secret::read(path) {
                Ok(text) => Ok(text.lines().next().map(str::to_owned)),
                Err(source) => Err(PasswordError::File { path: path.clone(), source }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_reached_over_tls() {
        let tls = |address: &str| MysqlTarget::parse(address, None).expect("the address is valid").tls;
        assert_eq!(tls("mysql://kith@db.example/social"), Tls::Required(None));
        assert_eq!(tls("mysql://kith@127.0.0.1:3307/social"), Tls::Off);
        assert_eq!(tls("mysql://kith@[::1]/social"), Tls::Off);
        assert!(MysqlTarget::parse("mysql://db.example/social", None).is_err(), "it has no user");
    }
}
