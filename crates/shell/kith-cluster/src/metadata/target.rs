//! Determines which metadata store an address names, from its text alone (docs/design/0007-etcd.md).

use super::target_error::{CLUSTER_NAME_BYTES_MAX, TargetError};
use super::{EtcdMetadata, MetadataStore, RemoteMetadata, etcd::Security};
use kith_net::security::secret;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The prefix of an etcd address.
const ETCD_SCHEME: &str = "etcd://";
/// The name of the cluster if none is given.
const CLUSTER_DEFAULT: &str = "default";

/// The metadata store of a cluster, as flags and files name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataTarget {
    /// `etcd://HOST:PORT,…`, or `HOST:PORT` of a supervisor.
    pub address: String,
    /// The name of the cluster in etcd.
    pub cluster: Option<String>,
    /// For etcd over TLS: the certificate authorities to trust (PEM).
    pub etcd_ca: Option<PathBuf>,
    /// For etcd over TLS: the certificate of this client (PEM).
    pub etcd_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    pub etcd_key: Option<PathBuf>,
    /// The user, if etcd requires one.
    pub etcd_user: Option<String>,
    /// A file with the user's password.
    pub etcd_password_file: Option<PathBuf>,
}

/// The store that an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StoreAddress {
    Supervisor(String),
    Etcd { hosts: Vec<String>, cluster: String },
}

impl MetadataTarget {
    /// Returns a client of the named store. It connects when it is first used, so the store need not be reachable now.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn connect(&self) -> Result<Arc<dyn MetadataStore>, TargetError> {
        match self.address()? {
            StoreAddress::Supervisor(address) => {
                let connected = RemoteMetadata::connect(&address);
                let connected =
                    connected.map_err(|error| TargetError::Address { address, detail: error.to_string() })?;
                Ok(Arc::new(connected))
            }
            StoreAddress::Etcd { hosts, cluster } => {
                Ok(Arc::new(EtcdMetadata::connect(&hosts, &cluster, self.security()?)?))
            }
        }
    }

    fn address(&self) -> Result<StoreAddress, TargetError> {
        let bad =
            |detail: &str| TargetError::Address { address: self.address.clone(), detail: detail.to_owned() };
        let Some(hosts) = self.address.strip_prefix(ETCD_SCHEME) else {
            if self.address.contains("://") {
                return Err(bad("it is etcd://HOST:PORT,HOST:PORT, or HOST:PORT of a supervisor"));
            }
            return match self.option_of_etcd() {
                Some(option) => {
                    Err(TargetError::Option { option, detail: "goes with a metadata address etcd://…" })
                }
                None => Ok(StoreAddress::Supervisor(self.address.clone())),
            };
        };
        let hosts: Vec<String> = hosts.split(',').map(|host| host.trim().to_owned()).collect();
        let is_host = |host: &String| {
            host.rsplit_once(':').is_some_and(|(name, port)| {
                !name.is_empty() && !name.contains(['/', '@', ' ']) && port.parse::<u16>().is_ok()
            })
        };
        if let Some(host) = hosts.iter().find(|host| !is_host(host)) {
            return Err(bad(&format!("{host:?} is not HOST:PORT")));
        }
        let cluster = self.cluster.clone().unwrap_or_else(|| CLUSTER_DEFAULT.to_owned());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if cluster.is_empty() || CLUSTER_NAME_BYTES_MAX < cluster.len() || !cluster.bytes().all(is_plain) {
            return Err(TargetError::ClusterName { name: cluster });
        }
        Ok(StoreAddress::Etcd { hosts, cluster })
    }

    fn option_of_etcd(&self) -> Option<&'static str> {
        [
            ("cluster", self.cluster.is_some()),
            ("etcd-ca", self.etcd_ca.is_some()),
            ("etcd-cert", self.etcd_cert.is_some()),
            ("etcd-key", self.etcd_key.is_some()),
            ("etcd-user", self.etcd_user.is_some()),
            ("etcd-password-file", self.etcd_password_file.is_some()),
        ]
        .into_iter()
        .find_map(|(name, is_there)| is_there.then_some(name))
    }

    fn security(&self) -> Result<Security, TargetError> {
        let needs = |option, detail| Err(TargetError::Option { option, detail });
        match (&self.etcd_ca, &self.etcd_cert, &self.etcd_key) {
            (None, Some(_), _) => {
                return needs("etcd-cert", "needs etcd-ca: without it nothing is encrypted");
            }
            (None, _, Some(_)) => return needs("etcd-key", "needs etcd-ca: without it nothing is encrypted"),
            (_, Some(_), None) => return needs("etcd-cert", "needs etcd-key"),
            (_, None, Some(_)) => return needs("etcd-key", "needs etcd-cert"),
            _ => {}
        }
        match (&self.etcd_user, &self.etcd_password_file) {
            (Some(_), None) => return needs("etcd-user", "needs etcd-password-file"),
            (None, Some(_)) => return needs("etcd-password-file", "needs etcd-user"),
            _ => {}
        }
        let password = read_secret("etcd-password-file", &self.etcd_password_file)?;
        let password = password.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
        Ok(Security {
            ca: read("etcd-ca", &self.etcd_ca)?,
            identity: read("etcd-cert", &self.etcd_cert)?.zip(read_secret("etcd-key", &self.etcd_key)?),
            user: self.etcd_user.clone().zip(password),
        })
    }
}

fn read(option: &'static str, path: &Option<PathBuf>) -> Result<Option<String>, TargetError> {
    read_by(option, path, |path| std::fs::read(path).and_then(kith_types::without_mark))
}

/// Reads a key or a password.
fn read_secret(option: &'static str, path: &Option<PathBuf>) -> Result<Option<String>, TargetError> {
    read_by(option, path, secret::read)
}

fn read_by(
    option: &'static str,
    path: &Option<PathBuf>,
    read: impl FnOnce(&Path) -> io::Result<String>,
) -> Result<Option<String>, TargetError> {
    let Some(path) = path else { return Ok(None) };
    read(path).map(Some).map_err(|source| TargetError::File { option, path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> MetadataTarget {
        MetadataTarget { address: address.to_owned(), ..Default::default() }
    }

    fn refusal(target: &MetadataTarget) -> String {
        match target.address().map(|_| target.security()) {
            Err(error) | Ok(Err(error)) => error.to_string(),
            Ok(Ok(security)) => panic!("{target:?} is taken: {security:?}"),
        }
    }

    #[test]
    fn addresses_name_a_supervisor_or_an_etcd() {
        assert_eq!(target("h:7000").address().unwrap(), StoreAddress::Supervisor("h:7000".to_owned()));
        let etcd =
            MetadataTarget { cluster: Some("social".to_owned()), ..target("etcd://a:2379,[::1]:2380") };
        let hosts = vec!["a:2379".to_owned(), "[::1]:2380".to_owned()];
        assert_eq!(etcd.address().unwrap(), StoreAddress::Etcd { hosts, cluster: "social".to_owned() });
        let hosts = vec!["a:1".to_owned()];
        assert_eq!(
            target("etcd://a:1").address().unwrap(),
            StoreAddress::Etcd { hosts, cluster: CLUSTER_DEFAULT.to_owned() }
        );
    }

    #[test]
    fn what_names_nothing_is_refused_with_what_is_wrong() {
        for address in ["etcd://", "etcd://a", "etcd://a:1,", "etcd://:1", "etcd://a:99999", "etcd://u@a:1"] {
            assert!(refusal(&target(address)).contains("is not HOST:PORT"), "{address}");
        }
        assert!(refusal(&target("https://a:1")).contains("it is etcd://"));
        for cluster in ["", "a/b", "a b", &"x".repeat(65)] {
            let named = MetadataTarget { cluster: Some(cluster.to_owned()), ..target("etcd://a:1") };
            assert!(refusal(&named).contains("cluster name"), "{cluster}");
        }
    }

    #[test]
    fn options_that_would_do_nothing_are_refused() {
        let some = Some(PathBuf::from("/nowhere"));
        let cluster = MetadataTarget { cluster: Some("c".to_owned()), ..target("h:1") };
        assert_eq!(refusal(&cluster), "cluster goes with a metadata address etcd://…");
        let etcd = target("etcd://a:1");
        let cert = MetadataTarget { etcd_cert: some.clone(), etcd_key: some.clone(), ..etcd.clone() };
        assert!(refusal(&cert).contains("nothing is encrypted"));
        let half = MetadataTarget { etcd_ca: some.clone(), etcd_key: some.clone(), ..etcd.clone() };
        assert_eq!(refusal(&half), "etcd-key needs etcd-cert");
        let user = MetadataTarget { etcd_user: Some("kith".to_owned()), ..etcd.clone() };
        assert_eq!(refusal(&user), "etcd-user needs etcd-password-file");
        let absent = MetadataTarget { etcd_ca: some, ..etcd };
        assert_eq!(refusal(&absent), "etcd-ca: read /nowhere");
    }
}
