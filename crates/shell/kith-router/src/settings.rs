//! The settings of a router. They are one TOML document, which `kith bench calibrate` can write, and which is passed on to
//! child processes unchanged.

use crate::admin::{DatabaseServer, DatabaseServers, ReadFrom, UploadSettings};
use kith_net::server::hosts::AcceptedHost;
use kith_session::SessionSettings;
use kith_wire::millis;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use thiserror::Error;

/// The settings of a router. Unknown keys are refused; the error lists the known ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RouterSettings {
    /// Routing and deadlines.
    pub session: SessionSettings,
    /// The limit on queries in flight.
    pub admission: AdmissionSettings,
    /// The network cache.
    pub cache: CacheSettings,
    /// The slow-query log.
    pub slow_log: SlowLogSettings,
    /// The time limits of uploads into an object store.
    pub uploads: UploadSettings,
    /// The places from which versions that were built elsewhere may be read, each with its stores. No other place is
    /// allowed.
    pub read_from: Vec<ReadFrom>,
    /// The database servers on which live graphs may be stored. They apply to nodes too.
    pub database_server: Vec<DatabaseServer>,
    /// Whether live graphs may also be stored on any server on a loopback address; `None`: only in `kith dev`. It applies to
    /// nodes too.
    pub database_loopback: Option<bool>,
    /// The hosts whose web pages may send requests. They apply to all processes that are started with this file, not only to
    /// routers.
    pub accepted_hosts: Vec<AcceptedHost>,
    /// The file in which every query is recorded as a line that `kith run` can replay; `None` records nothing.
    pub record: Option<PathBuf>,
}

/// The limit on the queries that a router admits at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AdmissionSettings {
    /// The most queries in flight. Above it a router answers `overloaded` at once instead of queueing. One framed
    /// connection may have as many requests under way.
    pub queries_max: usize,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self { queries_max: 8_192 }
    }
}

/// The sizes and times of the network cache, and the size of the list cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CacheSettings {
    /// Bytes that cached networks may take; 0 turns the cache off.
    pub bytes: u64,
    /// Bytes that cached neighbour lists may take; 0 keeps none.
    pub list_bytes: u64,
    /// The time for which an entry is fresh. Bulk-loaded graphs change only by version, so the default is a year, which
    /// is effectively unlimited.
    #[serde(with = "millis", rename = "fresh-ms")]
    pub fresh: Duration,
    /// The time after that for which an entry may be served stale while it is refreshed.
    #[serde(with = "millis", rename = "stale-ms")]
    pub stale: Duration,
}

/// The choice of the queries that are logged with their plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SlowLogSettings {
    /// Queries that take at least this long are logged.
    #[serde(with = "millis", rename = "threshold-ms")]
    pub threshold: Duration,
    /// The most lines per second, so that the log does not slow a cluster that is already slow.
    pub lines_per_second: u32,
}

impl Default for CacheSettings {
    fn default() -> Self {
        // A year is effectively unlimited, and small enough for any clock arithmetic.
        let year = Duration::from_secs(365 * 24 * 3_600);
        Self { bytes: 256 << 20, list_bytes: 64 << 20, fresh: year, stale: Duration::ZERO }
    }
}

impl Default for SlowLogSettings {
    fn default() -> Self {
        Self { threshold: Duration::from_millis(250), lines_per_second: 10 }
    }
}

/// A settings file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SettingsFileError {
    /// The file cannot be read or written.
    #[error("settings file {path}")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The content is not valid.
    #[error("settings file {path}: {detail}")]
    Malformed {
        path: PathBuf,
        /// The position in the file, and the reason.
        detail: String,
    },
}

impl RouterSettings {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`SettingsFileError`].
    pub fn read(path: &Path) -> Result<Self, SettingsFileError> {
        let text = fs::read(path)
            .and_then(kith_types::without_mark)
            .map_err(|source| SettingsFileError::Io { path: path.to_owned(), source })?;
        let malformed = |detail: String| SettingsFileError::Malformed { path: path.to_owned(), detail };
        let settings: Self = toml::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        settings.check().map_err(malformed)?;
        Ok(settings)
    }

    /// Checks that the named policy and controllers exist and that the numbers are in range.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.session.policy().map_err(|error| error.to_string())?;
        self.session.controllers().map_err(|error| error.to_string())?;
        self.session.check_bounds().map_err(|error| error.to_string())?;
        self.database_server.iter().try_for_each(DatabaseServer::check)?;
        if self.admission.queries_max == 0 {
            return Err("queries-max is 0: every query would be turned away".to_owned());
        }
        if self.uploads.hand_over.is_zero() {
            return Err("hand-over-ms is 0: every push would be refused".to_owned());
        }
        Ok(())
    }

    /// The database servers that a process with these settings may connect to. `password_file` is for those that have no
    /// password file of their own.
    pub fn database_servers(&self, password_file: Option<PathBuf>) -> DatabaseServers {
        let (listed, loopback) = (self.database_server.clone(), self.database_loopback == Some(true));
        DatabaseServers { listed, loopback, password_file }
    }

    /// The settings as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are strings and numbers")
    }

    /// Writes a TOML file.
    ///
    /// # Errors
    /// [`SettingsFileError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), SettingsFileError> {
        fs::write(path, self.to_toml())
            .map_err(|source| SettingsFileError::Io { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_as_they_were_written() {
        let mut settings = RouterSettings { record: Some("queries.jsonl".into()), ..Default::default() };
        settings.session.controllers.insert("sync-union".into(), "minimum".into());
        settings.cache.stale = Duration::from_millis(1_500);
        let back: RouterSettings = toml::from_str(&settings.to_toml()).unwrap();
        assert_eq!(back, settings);
    }

    #[test]
    fn an_unknown_key_is_refused_with_those_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("router.toml");
        fs::write(&file, "[cache]\nbites = 3\n").unwrap();
        let error = RouterSettings::read(&file).unwrap_err().to_string();
        assert!(error.contains("bites") && error.contains("bytes"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_settings() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("router.toml");
        fs::write(&file, "\u{feff}[cache]\nbytes = 3\n").unwrap();
        assert_eq!(RouterSettings::read(&file).unwrap().cache.bytes, 3);
        fs::write(&file, b"\xfe\xff\0[").unwrap();
        assert!(RouterSettings::read(&file).is_err());
    }
}
