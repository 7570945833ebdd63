//! Parses the address of a database on a server: `mysql://USER@HOST:PORT/DATABASE?tls=required&ca=FILE`. Makes no
//! connection.

use mysql_async::{OptsBuilder, SslOpts};
use std::{io, net::IpAddr, path::PathBuf};
use thiserror::Error;
use url::Url;

/// The port of MySQL, if the address contains none.
const PORT_DEFAULT: u16 = 3306;

/// The source of a password. It is read for each new connection, so the password can be changed while processes run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordSource {
    /// The first line of a file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
}

/// A database on a server, and how to log in. Contains no secret, so it can be stored and printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlTarget {
    host: String,
    port: u16,
    user: String,
    database: String,
    tls: Tls,
    password: Option<PasswordSource>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tls {
    Off,
    /// TLS is required. The file contains the trusted authorities as PEM; `None` means the public authorities.
    Required(Option<PathBuf>),
}

/// Why an address is malformed, or why its password cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TargetError {
    /// The message does not repeat the address, which may contain a password by mistake.
    #[error("the address of the database {detail}")]
    Address { detail: String },
    /// The password file cannot be read.
    #[error("read the password of the database from {path}")]
    PasswordFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The environment variable of the password is not set.
    #[error(
        "the environment variable {variable}, which should hold the password of the database, is not set"
    )]
    PasswordVariable { variable: String },
}

impl MysqlTarget {
    /// Parses an address. Without `tls=off` or `tls=required`, connections use TLS unless the host is this machine.
    ///
    /// # Errors
    /// [`TargetError::Address`].
    pub fn parse(address: &str, password: Option<PasswordSource>) -> Result<Self, TargetError> {
        let wrong = |detail: &str| TargetError::Address { detail: detail.to_owned() };
        let url = Url::parse(address)
            .ok()
            .filter(|url| url.scheme() == "mysql")
            .ok_or_else(|| wrong("is not of the form mysql://USER@HOST:PORT/DATABASE"))?;
        if url.password().is_some() {
            return Err(wrong("contains a password: put it into a file or an environment variable"));
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let invalid =
            |name: &str| wrong(&format!("has no valid {name}: use mysql://USER@HOST:PORT/DATABASE"));
        if host.is_empty() || host.contains(['%', '/']) {
            return Err(invalid("host"));
        }
        let user = decoded(url.username()).ok_or_else(|| invalid("user"))?;
        let database = decoded(url.path().trim_start_matches('/')).ok_or_else(|| invalid("database"))?;
        let (mut tls, mut ca) = (None, None);
        for (name, value) in url.query_pairs() {
            match (&*name, &*value) {
                ("tls", "off") => tls = Some(false),
                ("tls", "required") => tls = Some(true),
                ("ca", file) if !file.is_empty() => ca = Some(PathBuf::from(file)),
                _ => {
                    return Err(wrong(&format!(
                        "has an unknown parameter {name}={value}: use tls=required, tls=off or ca=FILE"
                    )));
                }
            }
        }
        let tls = match tls.unwrap_or(ca.is_some() || !is_this_machine(&host)) {
            true => Tls::Required(ca),
            false if ca.is_some() => return Err(wrong("has ca=FILE, which has no use with tls=off")),
            false => Tls::Off,
        };
        Ok(Self { host, port: url.port().unwrap_or(PORT_DEFAULT), user, database, tls, password })
    }

    /// Returns the same target with a password.
    #[must_use]
    pub fn with_password(self, password: Option<PasswordSource>) -> Self {
        Self { password, ..self }
    }

    /// Returns the name of the database for messages.
    pub fn place(&self) -> String {
        format!("{} at {}:{}", self.database, self.host, self.port)
    }

    /// Returns the options for a connection, with the current password.
    pub(super) fn options(&self) -> Result<OptsBuilder, TargetError> {
        let tls = match &self.tls {
            Tls::Off => None,
            Tls::Required(None) => Some(SslOpts::default()),
            Tls::Required(Some(ca)) => {
                let roots = vec![ca.clone().into()];
                Some(SslOpts::default().with_root_certs(roots).with_disable_built_in_roots(true))
            }
        };
        Ok(OptsBuilder::default()
            .ip_or_hostname(&self.host)
            .tcp_port(self.port)
            .user(Some(&self.user))
            .pass(self.password()?)
            .db_name(Some(&self.database))
            .ssl_opts(tls)
            // A row that a statement matches but does not change also counts, as it does in SQLite.
            .client_found_rows(true)
            .prefer_socket(false)
            .stmt_cache_size(0))
    }

    fn password(&self) -> Result<Option<String>, TargetError> {
        match &self.password {
            None => Ok(None),
            Some(PasswordSource::Variable(variable)) => match std::env::var(variable) {
                Ok(password) => Ok(Some(password)),
                Err(_) => Err(TargetError::PasswordVariable { variable: variable.clone() }),
            },
            Some(PasswordSource::File(path)) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(text.lines().next().map(str::to_owned)),
                Err(source) => Err(TargetError::PasswordFile { path: path.clone(), source }),
            },
        }
    }
}

/// The name that a part of an address spells, with each `%` and two hexadecimal digits as one byte. `None` if it is empty or
/// contains `/`, a control character, an incomplete escape or bytes that are not UTF-8.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        (bytes, rest) = match (first, after) {
            (b'/', _) => return None,
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                (bytes, after)
            }
            (b'%', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                (bytes, after)
            }
        };
    }
    let name = String::from_utf8(bytes).ok()?;
    let is_name = !name.is_empty() && !name.contains(|character: char| character.is_control());
    is_name.then_some(name)
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(address: &str) -> String {
        MysqlTarget::parse(address, None).expect_err("the address is invalid").to_string()
    }

    #[test]
    fn other_machines_are_reached_over_tls() {
        let tls = |address: &str| MysqlTarget::parse(address, None).expect("the address is valid").tls;
        assert_eq!(tls("mysql://kith@db.example/social"), Tls::Required(None));
        assert_eq!(tls("mysql://kith@db.example/social?tls=off"), Tls::Off);
        assert_eq!(tls("mysql://kith@127.0.0.1:3307/social"), Tls::Off);
        assert_eq!(tls("mysql://kith@[::1]/social"), Tls::Off);
        let ca = "mysql://kith@localhost/social?ca=/etc/ca.pem";
        assert_eq!(tls(ca), Tls::Required(Some(PathBuf::from("/etc/ca.pem"))));
    }

    #[test]
    fn names_of_users_and_databases_may_be_escaped() {
        let parsed = |address: &str| MysqlTarget::parse(address, None).expect("the address is valid");
        for (address, user, database) in [
            ("mysql://kith%40srv@h/social", "kith@srv", "social"),
            ("mysql://root@h/a%20b", "root", "a b"),
            ("mysql://a+b%3a@h/%c3%A9%25", "a+b:", "é%"),
        ] {
            let target = parsed(address);
            assert_eq!((target.user.as_str(), target.database.as_str()), (user, database), "{address}");
        }
        for wrong in ["k%4", "k%zz", "k%00", "k%ff", "a/b"] {
            assert!(refusal(&format!("mysql://kith@h/{wrong}")).contains("no valid database"), "{wrong}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_with_what_is_wrong() {
        assert!(refusal("mysql://h/social").contains("no valid user"));
        assert!(refusal("mysql://kith@h").contains("no valid database"));
        assert!(refusal("postgres://kith@h/social").contains("is not of the form"));
        assert!(refusal("mysql://kith@h/social?ssl=1").contains("unknown parameter ssl=1"));
        assert!(refusal("mysql://kith@h/social?tls=off&ca=f").contains("no use"));
    }

    #[test]
    fn a_password_is_neither_taken_from_an_address_nor_repeated() {
        let refusal = refusal("mysql://kith:secret@h/social");
        assert!(refusal.contains("contains a password") && !refusal.contains("secret"), "{refusal}");
    }
}
