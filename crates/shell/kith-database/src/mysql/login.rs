//! The options of connections to a server, with the password that is current when they are made.

use crate::{MysqlTarget, PasswordSource, Tls};
use kith_net::security::secret;
use mysql_async::{OptsBuilder, SslOpts};
use std::{io, path::PathBuf};
use thiserror::Error;

/// The most bytes of one packet that a server may send. The longest rows that Kith stores have about 1 MiB, and no packet of
/// its statements is longer than 3 MiB. Before the login, the driver reads packets of at most 4 MiB.
const PACKET_BYTES_MAX: usize = 16 << 20;

/// The time after which the driver assumes that a server has closed an idle connection. Kith finds that out by itself.
const WAIT_TIMEOUT_SECONDS: usize = 28_800;

/// The reason why the password of a server cannot be read.
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

/// Returns the options for a connection, with the current password.
pub(super) fn options(target: &MysqlTarget) -> Result<OptsBuilder, PasswordError> {
    let tls = match &target.tls {
        Tls::Off => None,
        Tls::Required(None) => Some(SslOpts::default()),
        Tls::Required(Some(ca)) => {
            // The driver does not find the first certificate behind a byte order mark. It reports a file that cannot be read.
            let text = std::fs::read(ca).ok();
            let text = text.and_then(|text| {
                let mark = kith_types::byte_order_mark(&text).ok()?;
                Some(text[mark..].to_vec())
            });
            let roots = vec![text.map_or_else(|| ca.clone().into(), Into::into)];
            Some(SslOpts::default().with_root_certs(roots).with_disable_built_in_roots(true))
        }
    };
    Ok(OptsBuilder::default()
        .ip_or_hostname(&target.url.server.host)
        .tcp_port(target.url.server.port)
        .user(Some(&target.user))
        .pass(password(target)?)
        .db_name(Some(&target.url.database))
        .ssl_opts(tls)
        .max_allowed_packet(Some(PACKET_BYTES_MAX))
        // Otherwise the driver asks the server for it, and reads whatever the server answers.
        .wait_timeout(Some(WAIT_TIMEOUT_SECONDS))
        // A row that a statement matches but does not change also counts, as it does in SQLite.
        .client_found_rows(true)
        .prefer_socket(false)
        .stmt_cache_size(0))
}

fn password(target: &MysqlTarget) -> Result<Option<String>, PasswordError> {
    match &target.password {
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
