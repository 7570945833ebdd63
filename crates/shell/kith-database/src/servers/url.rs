//! Parses the address of a database on a server, as callers name it: `mysql://USER@HOST:PORT/DATABASE`. Who may use which
//! server, and how to log in, is not part of it: the configuration says that (`mod.rs`).

use std::{fmt, net::IpAddr, str::FromStr};
use thiserror::Error;
use url::Url;

/// The port of MySQL, if the address contains none.
const PORT_DEFAULT: u16 = 3306;
/// The longest address, in bytes. It is kept in a document that every process loads; names of servers have 253 characters at
/// most, names of MySQL's users and databases far fewer.
const ADDRESS_BYTES_MAX: usize = 1_024;

/// A database on a server. Contains no secret, so it can be stored and printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// The host and port of the server.
    pub server: ServerAddress,
    /// The user that the caller named. It never selects credentials of another user than the configuration has.
    pub user: Option<String>,
    /// The name of the database.
    pub database: String,
}

/// The host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// A name in lower case, or an IP address.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The reason why an address is malformed. The message does not repeat the address, which may contain a password by
/// mistake.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum AddressError {
    /// The text is no address.
    #[error("the address of the database {detail}")]
    Malformed { detail: String },
    /// The address has parameters, such as `?tls=off` or `?ca=FILE`.
    #[error(
        "the address of the database has parameters: what a server needs, such as `tls` and `ca`, is taken only from \
         its [[database-server]] in the configuration"
    )]
    Parameters,
}

fn wrong(detail: &str) -> AddressError {
    AddressError::Malformed { detail: detail.to_owned() }
}

impl ServerAddress {
    fn new(host: &str, port: Option<u16>) -> Option<Self> {
        let host = host.trim_matches(['[', ']']);
        let is_host =
            !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && !"%/@?#\\".contains(c));
        let host = host.parse().map_or_else(|_| host.to_ascii_lowercase(), |ip: IpAddr| ip.to_string());
        let port = port.unwrap_or(PORT_DEFAULT);
        (is_host && port != 0).then_some(Self { host, port })
    }

    /// Whether the server is on this machine, by an address that no name server can change.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let invalid = || wrong("is not of the form HOST:PORT");
        let url = Url::parse(&format!("mysql://{text}")).map_err(|_| invalid())?;
        let rest = [url.path(), url.username(), url.query().unwrap_or(""), url.fragment().unwrap_or("")];
        let is_plain = rest.iter().all(|part| part.is_empty()) && url.password().is_none();
        let host = url.host_str().filter(|_| is_plain).ok_or_else(invalid)?;
        Self::new(host, url.port()).ok_or_else(invalid)
    }
}

impl FromStr for ServerUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(wrong(&format!("has {} bytes; it may have {ADDRESS_BYTES_MAX}", text.len())));
        }
        let url = Url::parse(text)
            .ok()
            .filter(|url| url.scheme() == "mysql")
            .ok_or_else(|| wrong("is not of the form mysql://USER@HOST:PORT/DATABASE"))?;
        if url.password().is_some() {
            return Err(wrong("contains a password: put it into a file that the configuration names"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError::Parameters);
        }
        let invalid =
            |name: &str| wrong(&format!("has no valid {name}: use mysql://USER@HOST:PORT/DATABASE"));
        let host = url.host_str().unwrap_or_default();
        let server = ServerAddress::new(host, url.port()).ok_or_else(|| invalid("host"))?;
        let user = match url.username() {
            "" => None,
            user => Some(decoded(user).ok_or_else(|| invalid("user"))?),
        };
        let database = decoded(url.path().trim_start_matches('/')).ok_or_else(|| invalid("database"))?;
        Ok(Self { server, user, database })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mysql://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", encoded(user))?;
        }
        write!(f, "{}/{}", self.server, encoded(&self.database))
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

/// The opposite of [`decoded`].
fn encoded(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let spell =
        |byte: u8| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(address: &str) -> ServerUrl {
        address.parse().expect("the address is valid")
    }

    fn refusal(address: &str) -> String {
        address.parse::<ServerUrl>().expect_err("the address is invalid").to_string()
    }

    #[test]
    fn names_of_users_and_databases_may_be_escaped() {
        for (address, user, database, shown) in [
            ("mysql://kith%40srv@h/social", "kith@srv", "social", "mysql://kith%40srv@h:3306/social"),
            ("mysql://root@h/a%20b", "root", "a b", "mysql://root@h:3306/a%20b"),
            ("mysql://a+b%3a@h/%c3%A9%25", "a+b:", "é%", "mysql://a%2Bb%3A@h:3306/%C3%A9%25"),
        ] {
            let url = parsed(address);
            assert_eq!((url.user.as_deref(), url.database.as_str()), (Some(user), database), "{address}");
            assert_eq!((url.to_string(), parsed(shown)), (shown.to_owned(), url));
        }
        for wrong in ["k%4", "k%zz", "k%00", "k%ff", "a/b"] {
            assert!(refusal(&format!("mysql://kith@h/{wrong}")).contains("no valid database"), "{wrong}");
        }
    }

    #[test]
    fn one_server_has_one_spelling() {
        for (text, spelling) in [
            ("DB.Example", "db.example:3306"),
            ("db.example:3307", "db.example:3307"),
            ("[::1]:1", "[::1]:1"),
            ("[0:0:0:0:0:0:0:1]", "[::1]:3306"),
            ("127.0.0.1", "127.0.0.1:3306"),
        ] {
            let address: ServerAddress = text.parse().expect("an address");
            assert_eq!(address.to_string(), spelling);
            assert_eq!(parsed(&format!("mysql://{text}/x")).server, address);
        }
        for wrong in ["", "h:0", "h/x", "u@h", "h?x", "h#x", "a%2eb", "a b", "u:p@h"] {
            assert!(wrong.parse::<ServerAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_with_what_is_wrong() {
        assert_eq!(parsed("mysql://h/social").user, None);
        assert!(refusal("mysql://").contains("no valid host"));
        assert!(refusal("mysql://kith@h").contains("no valid database"));
        assert!(refusal("postgres://kith@h/social").contains("is not of the form"));
        let long = refusal(&format!("mysql://kith@h/{}", "x".repeat(1 << 20)));
        assert!(long.contains("has 1048591 bytes"), "{long}");
        for parameters in ["?tls=off", "?ca=/etc/shadow", "?", "?x", "#x"] {
            let message = refusal(&format!("mysql://kith@h/social{parameters}"));
            assert!(message.contains("has parameters") && !message.contains("shadow"), "{message}");
        }
    }

    #[test]
    fn a_password_is_neither_taken_from_an_address_nor_repeated() {
        let refusal = refusal("mysql://kith:secret@h/social");
        assert!(refusal.contains("contains a password") && !refusal.contains("secret"), "{refusal}");
    }
}
