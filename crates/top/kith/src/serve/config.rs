//! The configuration file that all machines of a cluster share. Every flag of `kith node`, `kith router`, `kith database`
//! and `kith cluster create` is a key of the same name. Flags override the file. Unknown keys are errors
//! (docs/design/0007-etcd.md).

use super::{
    FetchP99, FetchRate, LogFormat, LogRetention, PlacementFlag, ReplyMemory, ScrubRate, WarmBytes,
    metadata::MetadataFlags,
    own::{DatabaseEntry, NodeEntry, ProcessEntry, RouterEntry, choose},
};
use crate::failure::Failure;
use kith_net::server::{connections::ConnectionSettings, hosts::AcceptedHost, security::ServerSecurity};
use kith_node::Labels;
use kith_router::{
    AdmissionSettings, CacheSettings, DatabaseServer, ReadFrom, RouterSettings, SlowLogSettings,
    UploadSettings,
};
use kith_session::SessionSettings;
use kith_types::ErrorCode;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    num::NonZeroU16,
    path::{Path, PathBuf},
    time::Duration,
};

/// The content of a `--config` file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ConfigFile {
    metadata: Option<String>,
    cluster: Option<String>,
    etcd_ca: Option<PathBuf>,
    etcd_cert: Option<PathBuf>,
    etcd_key: Option<PathBuf>,
    etcd_user: Option<String>,
    etcd_password_file: Option<PathBuf>,

    // Keys of every serving process.
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_client_ca: Option<PathBuf>,
    access: Option<PathBuf>,
    insecure_listen: bool,
    insecure_http: bool,
    connections_max: Option<usize>,
    connections_idle_ms: Option<u64>,
    reply_memory: Option<ReplyMemory>,
    accepted_hosts: Vec<AcceptedHost>,
    threads: Option<NonZeroU16>,
    log_format: Option<LogFormat>,

    // Keys of all nodes and routers.
    database_password_file: Option<PathBuf>,
    database_server: Vec<DatabaseServer>,
    database_loopback: Option<bool>,

    // Keys of `kith cluster create`.
    pub placement: Option<PlacementFlag>,
    pub groups: Option<u32>,
    pub nodes: Option<u32>,
    pub partitions: Option<u32>,
    pub object_store: Option<PathBuf>,
    pub zones: Vec<String>,
    pub allow_shared_zones: bool,

    /// The defaults of all nodes, which an entry of `node` can override.
    scrub_rate: Option<ScrubRate>,
    fetch_rate: Option<FetchRate>,
    fetch_p99: Option<FetchP99>,
    warm_bytes: Option<WarmBytes>,
    log_retention: Option<LogRetention>,
    /// The keys of single nodes.
    node: Vec<NodeEntry>,
    /// The keys of single routers.
    router: Vec<RouterEntry>,
    /// The keys of single databases.
    database: Vec<DatabaseEntry>,

    // Keys of all routers.
    session: SessionSettings,
    admission: AdmissionSettings,
    cache: CacheSettings,
    slow_log: SlowLogSettings,
    uploads: UploadSettings,
    read_from: Vec<ReadFrom>,
    record: Option<PathBuf>,
}

impl ConfigFile {
    /// Reads a file. Without a path, returns an empty configuration.
    ///
    /// # Errors
    /// `bad_settings`, with the position in the file.
    pub fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::default()) };
        let bad = |detail: String| {
            Failure::new(
                ErrorCode::BadSettings,
                format!("settings file {}: {detail}", path.display()),
                "see docs/operating/machines.md for the keys",
            )
        };
        let text = fs::read(path).and_then(kith_types::without_mark);
        let text = text.map_err(|error| bad(error.to_string()))?;
        let file: Self = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
        file.router_settings().check().map_err(bad)?;
        Ok(file)
    }

    /// Returns how to reach the metadata store.
    pub fn metadata_flags(&self) -> MetadataFlags {
        MetadataFlags {
            metadata: self.metadata.clone(),
            cluster: self.cluster.clone(),
            etcd_ca: self.etcd_ca.clone(),
            etcd_cert: self.etcd_cert.clone(),
            etcd_key: self.etcd_key.clone(),
            etcd_user: self.etcd_user.clone(),
            etcd_password_file: self.etcd_password_file.clone(),
        }
    }

    /// Returns the TLS and access settings of a serving process. Flags override the file.
    pub fn security(&self, flags: ServerSecurity) -> ServerSecurity {
        let or = |flag: Option<PathBuf>, key: &Option<PathBuf>| flag.or_else(|| key.clone());
        ServerSecurity {
            cert: or(flags.cert, &self.tls_cert),
            key: or(flags.key, &self.tls_key),
            ca: or(flags.ca, &self.tls_ca),
            client_ca: or(flags.client_ca, &self.tls_client_ca),
            access: or(flags.access, &self.access),
            insecure_listen: flags.insecure_listen || self.insecure_listen,
            insecure_http: flags.insecure_http || self.insecure_http,
        }
    }

    /// The format of the lines of the log.
    pub fn log_format(&self) -> Option<LogFormat> {
        self.log_format
    }

    /// Returns the limits on the connections of a serving process. Flags override the file.
    pub fn connections(
        &self,
        open_max: Option<usize>,
        idle_ms: Option<u64>,
        reply_memory: Option<ReplyMemory>,
        accepted_hosts: Vec<AcceptedHost>,
    ) -> ConnectionSettings {
        ConnectionSettings {
            open_max: open_max.or(self.connections_max),
            idle: idle_ms.or(self.connections_idle_ms).map(Duration::from_millis),
            reply_bytes: reply_memory.or(self.reply_memory).map(|memory| memory.0),
            accepted_hosts: match accepted_hosts.is_empty() {
                true => self.accepted_hosts.clone(),
                false => accepted_hosts,
            },
        }
    }

    /// The file with the password for database servers that have no file of their own.
    pub fn database_password_file(&self) -> Option<&Path> {
        self.database_password_file.as_deref()
    }

    /// Returns the settings of routers.
    pub fn router_settings(&self) -> RouterSettings {
        RouterSettings {
            session: self.session.clone(),
            admission: self.admission.clone(),
            cache: self.cache.clone(),
            slow_log: self.slow_log.clone(),
            uploads: self.uploads.clone(),
            read_from: self.read_from.clone(),
            database_server: self.database_server.clone(),
            database_loopback: self.database_loopback,
            accepted_hosts: self.accepted_hosts.clone(),
            record: self.record.clone(),
        }
    }

    /// Returns the labels of the nodes in the file, by node id.
    pub fn labels(&self) -> BTreeMap<u32, Labels> {
        self.node.iter().map(NodeEntry::labels).collect()
    }

    /// Returns the keys of the node with this id, or of the only node if `id` is `None`.
    ///
    /// # Errors
    /// If the file does not have the node, or `id` is `None` and the file has several nodes.
    pub fn node(&self, id: Option<u32>) -> Result<ProcessEntry, Failure> {
        let owns = self.node.iter().cloned().map(ProcessEntry::from).collect();
        let mut own = choose(owns, id, "--node", "[[node]]")?;
        own.threads = own.threads.or(self.threads);
        own.scrub_rate = own.scrub_rate.or(self.scrub_rate);
        own.fetch_rate = own.fetch_rate.or(self.fetch_rate);
        own.fetch_p99 = own.fetch_p99.or(self.fetch_p99);
        own.warm_bytes = own.warm_bytes.or(self.warm_bytes);
        own.log_retention = own.log_retention.or(self.log_retention);
        Ok(own)
    }

    /// Returns the keys of the router with this id, or of the only router if `id` is `None`.
    ///
    /// # Errors
    /// If the file does not have the router, or `id` is `None` and the file has several routers.
    pub fn router(&self, id: Option<u32>) -> Result<ProcessEntry, Failure> {
        self.by_id(self.router.iter().cloned().map(ProcessEntry::from).collect(), id, "[[router]]")
    }

    /// Returns the keys of the database with this id, or of the only database if `id` is `None`.
    ///
    /// # Errors
    /// If the file does not have the database, or `id` is `None` and the file has several databases.
    pub fn database(&self, id: Option<u32>) -> Result<ProcessEntry, Failure> {
        self.by_id(self.database.iter().cloned().map(ProcessEntry::from).collect(), id, "[[database]]")
    }

    fn by_id(
        &self,
        owns: Vec<ProcessEntry>,
        id: Option<u32>,
        section: &str,
    ) -> Result<ProcessEntry, Failure> {
        // Without a file, or if the file has no such section, the cluster has one such process, with id 0.
        let id = if owns.is_empty() { id.or(Some(0)) } else { id };
        let mut own = choose(owns, id, "--id", section)?;
        own.threads = own.threads.or(self.threads);
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn file(text: &str) -> Result<ConfigFile, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kith.toml");
        fs::write(&path, text).unwrap();
        ConfigFile::read(Some(&path)).map_err(|failure| failure.message)
    }

    #[test]
    fn a_process_finds_its_own_by_its_id() {
        let read = file("[[node]]\nnode = 3\nlisten = \"10.0.0.3:7\"\n[[node]]\nnode = 4\ndata = \"/d\"\n");
        let read = read.unwrap();
        assert_eq!(read.node(Some(3)).unwrap().listen, Some("10.0.0.3:7".parse().unwrap()));
        assert_eq!(read.node(Some(4)).unwrap().data, Some("/d".into()));
        assert_eq!(read.node(Some(5)).unwrap_err().help, "it has 3, 4; add one, or check --node");
        assert_eq!(read.node(None).unwrap_err().help, "the file has [[node]] 3, 4");
        assert_eq!(file("[[node]]\nnode = 9\n").unwrap().node(None).unwrap().id, 9);
        let slow =
            file("scrub-rate = \"off\"\n[[node]]\nnode = 1\n[[node]]\nnode = 2\nscrub-rate = \"1MiB/s\"\n");
        let slow = slow.unwrap();
        let alone = file("scrub-rate = \"off\"\nthreads = 3\n").unwrap();
        let (node, router) = (alone.node(Some(7)).unwrap(), alone.router(None).unwrap());
        assert_eq!(node.scrub_rate, Some(ScrubRate(None)));
        assert_eq!([node, router].map(|own| own.threads.map(u16::from)), [Some(3), Some(3)]);
        let rates = [1, 2].map(|id| slow.node(Some(id)).unwrap().scrub_rate);
        assert_eq!(rates, [Some(ScrubRate(None)), Some(ScrubRate(Some(1 << 20)))]);
        let fetches =
            file("fetch-rate = \"50MiB/s\"\n[[node]]\nnode = 1\n[[node]]\nnode = 2\nfetch-rate = \"off\"\n");
        let fetches = fetches.unwrap();
        let rates = [1, 2].map(|id| fetches.node(Some(id)).unwrap().fetch_rate.map(FetchRate::or_zero));
        assert_eq!(rates, [Some(50 << 20), Some(0)]);
        assert!(file("scrub-rate = \"fast\"\n").unwrap_err().contains("10MiB/s"));
        let paced =
            file("fetch-p99 = \"1.5\"\n[[node]]\nnode = 1\n[[node]]\nnode = 2\nfetch-p99 = \"off\"\n");
        let ratios =
            [1, 2].map(|id| paced.as_ref().unwrap().node(Some(id)).unwrap().fetch_p99.unwrap().ratio());
        assert_eq!((ratios, FetchP99::default().ratio()), ([Some(1.5), None], Some(1.2)));
        assert!(file("fetch-p99 = \"0.9\"\n").unwrap_err().contains("or `off`"));
        let threads =
            file("threads = 4\n[[node]]\nnode = 1\n[[node]]\nnode = 2\nthreads = 1\n[[router]]\nid = 1\n");
        let threads = threads.unwrap();
        let counts = [threads.node(Some(1)), threads.node(Some(2)), threads.router(None)];
        assert_eq!(counts.map(|own| own.unwrap().threads.map(u16::from)), [Some(4), Some(1), Some(4)]);
        assert!(file("threads = 0\n").unwrap_err().contains("nonzero"));
        let twice = file("[[node]]\nnode = 9\n[[node]]\nnode = 9\n").unwrap();
        assert_eq!(twice.node(Some(9)).unwrap_err().code, ErrorCode::BadSettings);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_file() {
        assert_eq!(
            file("\u{feff}threads = 3\n").unwrap().node(Some(1)).unwrap().threads.map(std::num::NonZero::get),
            Some(3)
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kith.toml");
        fs::write(&path, b"\xff\xfet\0").unwrap();
        let refused = ConfigFile::read(Some(&path)).unwrap_err();
        assert!(refused.message.ends_with("it is UTF-16 text; write it as UTF-8"), "{}", refused.message);
    }

    #[test]
    fn without_entries_flags_say_everything() {
        let none = ConfigFile::default();
        assert_eq!(none.node(Some(7)).unwrap(), ProcessEntry { id: 7, ..ProcessEntry::default() });
        assert_eq!(none.node(None).unwrap_err().message, "--node is missing");
        assert_eq!([none.router(None), none.database(None)].map(|own| own.unwrap().id), [0, 0]);
    }

    #[test]
    fn every_flag_is_a_key() {
        let all = crate::cli::Cli::command();
        let is_key = |text: &str| match toml::from_str::<ConfigFile>(text) {
            Err(error) => !error.to_string().contains("unknown field"),
            Ok(_) => true,
        };
        assert!(!is_key("lissen = {}") && !is_key("[[node]]\nlissen = {}"));
        let roles = [("node", "[[node]]\n"), ("router", "[[router]]\n"), ("database", "[[database]]\n")];
        for (path, section) in roles.into_iter().chain([("cluster create", "")]) {
            let command = path.split(' ').fold(&all, |command, name| command.find_subcommand(name).unwrap());
            let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
            assert!(flags.contains(&"metadata") && flags.contains(&"etcd-ca"), "{flags:?}");
            for flag in flags.iter().filter(|flag| **flag != "config") {
                let line = format!("{flag} = {{}}\n");
                assert!(is_key(&line) || is_key(&format!("{section}{line}")), "{path} --{flag}");
            }
        }
    }

    #[test]
    fn keys_that_nobody_knows_are_refused_with_those_there_are() {
        for (text, wrong, right) in [
            ("metdata = \"etcd://a:1\"\n", "metdata", "metadata"),
            ("[[node]]\nnode = 1\nlissen = \"a:1\"\n", "lissen", "listen"),
            ("[[router]]\nid = 1\ncache = 1\n", "cache", "listen"),
            ("[[database]]\nid = 1\nresp = \"a:1\"\n", "resp", "listen"),
            ("[cache]\nbites = 3\n", "bites", "bytes"),
        ] {
            let error = file(text).unwrap_err();
            assert!(error.contains(wrong) && error.contains(right), "{error}");
        }
        assert!(file("[session]\npolicy = \"nearest\"\n").unwrap_err().contains("nearest"));
    }
}
