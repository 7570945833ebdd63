//! A database on a server with what a connection needs: user, password and TLS. Makes no connection.

use super::url::{AddressError, ServerUrl};
use std::path::PathBuf;

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
    pub fn address(&self) -> String {
        format!("{} at {}", self.url.database, self.url.server)
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
