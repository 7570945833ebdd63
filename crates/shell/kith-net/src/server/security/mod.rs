//! The server side of security: the certificate of this process, the authentication of callers, and their rights
//! (docs/design/0012-protection.md).

mod access;
pub mod audit;
mod caller;
mod expiry;
mod gate;
mod guarded;
mod layer;
mod names;
mod need;
mod rights;
mod subject;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use caller::{Caller, CallerIdentity};
pub use gate::Gate;
pub(crate) use guarded::guard;
pub(crate) use layer::behind;
pub use need::{Need, Right};
pub use subject::{CallingSubject, is_pattern, matches};

use super::{Addresses, http};
use crate::{
    security::{Dialer, SecurityError, SecurityOptions},
    server::ListenError,
};
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How often files are checked for changes. Certificates are renewed days before they expire; a revoked token stops working
/// within this time.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The files with the identity of a serving process, its trusted authorities, and the rights of callers. `Default` has no
/// security.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSecurity {
    /// This process's certificate, as PEM. If it is set, the process accepts TLS only.
    pub cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM.
    pub key: Option<PathBuf>,
    /// The authorities of the certificates of other processes, as PEM. If it is not set, `client_ca` is used.
    pub ca: Option<PathBuf>,
    /// The authorities of callers' certificates, as PEM. If it is set, callers must send a certificate, or a token if
    /// `access` lists tokens.
    pub client_ca: Option<PathBuf>,
    /// The access file, which lists subjects and their rights, as TOML.
    pub access: Option<PathBuf>,
    /// Whether the process may listen on non-loopback addresses without encryption.
    pub insecure_listen: bool,
    /// Whether health and metrics may be served on non-loopback addresses; they are never encrypted.
    pub insecure_http: bool,
}

/// The security of one process. Cheap to clone; clones share their files. `Default` has none, which permits loopback
/// addresses only.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// The access control for callers; `None` if everybody may connect without TLS.
    pub gate: Option<Arc<Gate>>,
    dialer: Dialer,
    insecure_listen: bool,
    insecure_http: bool,
}

impl Security {
    /// Reads the files that the options name.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be used, or an option requires another one that is missing.
    pub fn open(options: ServerSecurity) -> Result<Self, SecurityError> {
        let ServerSecurity { cert, key, ca, client_ca, access, insecure_listen, insecure_http } = options;
        let lacks = |option, detail| Err(SecurityError::Option { option, detail });
        let (Some(cert), Some(key)) = (&cert, &key) else {
            let alone = [
                ("tls-cert", cert.is_some(), "needs tls-key"),
                ("tls-key", key.is_some(), "needs tls-cert"),
                ("tls-client-ca", client_ca.is_some(), "needs tls-cert and tls-key"),
                (
                    "access",
                    access.is_some(),
                    "needs tls-cert and tls-key: tokens are not accepted in the clear",
                ),
                (
                    "tls-ca",
                    ca.is_some(),
                    "needs tls-cert and tls-key: a process uses TLS both ways or not at all",
                ),
            ];
            return match alone.into_iter().find(|(_, is_there, _)| *is_there) {
                Some((option, _, detail)) => lacks(option, detail),
                None => Ok(Self { insecure_listen, insecure_http, ..Self::default() }),
            };
        };
        let Some(ca) = ca.or_else(|| client_ca.clone()) else {
            return lacks(
                "tls-cert",
                "needs tls-ca or tls-client-ca: the authority of the other processes of the cluster",
            );
        };
        let outgoing =
            SecurityOptions { ca: Some(ca), cert: Some(cert.clone()), key: Some(key.clone()), token: None };
        let gate = Gate::open(gate::Files { cert: cert.clone(), key: key.clone(), client_ca, access })?;
        Ok(Self {
            gate: Some(Arc::new(gate)),
            dialer: Dialer::open(outgoing)?,
            insecure_listen,
            insecure_http,
        })
    }

    /// Checks that the certificate of this process has the right `cluster` in its access file. Nodes and routers need it to
    /// call each other.
    ///
    /// # Errors
    /// [`SecurityError`] if it has not.
    pub fn check_own_right(&self) -> Result<(), SecurityError> {
        self.gate.as_ref().map_or(Ok(()), |gate| gate.check_own_right())
    }

    /// The dialer that connects to other processes with this process's certificate.
    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// Refuses to listen on a non-loopback address where connections are not encrypted, or where callers need not
    /// authenticate.
    ///
    /// # Errors
    /// [`ListenError::InsecureListener`], [`ListenError::OpenListener`].
    pub fn check_listen(&self, addr: SocketAddr) -> Result<(), ListenError> {
        if self.insecure_listen || addr.ip().is_loopback() {
            return Ok(());
        }
        match &self.gate {
            None => Err(ListenError::InsecureListener { addr }),
            Some(gate) if !gate.knows_callers() => Err(ListenError::OpenListener { addr }),
            Some(_) => Ok(()),
        }
    }

    /// Refuses to serve health and metrics on a non-loopback address: they name stores and are not encrypted.
    ///
    /// # Errors
    /// [`ListenError::InsecureHttp`].
    pub fn check_http(&self, addr: SocketAddr) -> Result<(), ListenError> {
        match self.insecure_http || self.insecure_listen || addr.ip().is_loopback() {
            true => Ok(()),
            false => Err(ListenError::InsecureHttp { addr }),
        }
    }

    /// Checks all addresses of a process, as [`Security::check_listen`] and [`Security::check_http`] do. `doors` are
    /// further addresses for clients.
    ///
    /// # Errors
    /// As [`Security::check_listen`] and [`Security::check_http`].
    pub fn check_addresses(
        &self,
        at: &Addresses,
        doors: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<(), ListenError> {
        self.check_listen(at.grpc)?;
        self.check_http(at.http)?;
        at.resp.into_iter().chain(at.gremlin).chain(doors).try_for_each(|addr| self.check_listen(addr))
    }

    /// Reloads the files when they change, until `stop`.
    pub fn follow(&self, stop: CancellationToken) {
        let Some(gate) = self.gate.clone() else { return };
        let dialer = self.dialer.clone();
        // The recorder must be installed before anything is recorded.
        http::count();
        for file in ["certificates", "access"] {
            metrics::counter!("kith_server_reload_failures_total", "file" => file).increment(0);
            metrics::gauge!("kith_server_reload_failed", "file" => file).set(0.0);
        }
        expiry::show(&gate.certificate_files());
        tokio::spawn(async move {
            let (mut seen, mut failed) = (gate.state_of_files(), None);
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(LOOK_INTERVAL) => {}
                }
                let now = gate.state_of_files();
                if now == seen {
                    continue;
                }
                match gate.reload().and_then(|()| dialer.reload()) {
                    Ok(()) => {
                        tracing::info!("certificates and rights were reloaded");
                        reload_failed(None);
                        expiry::show(&gate.certificate_files());
                        seen = now;
                        failed = None;
                    }
                    // It is tried again at the next check, because a file may be half written. The same error is
                    // logged once.
                    Err(error) => {
                        reload_failed(Some(&error));
                        let text = error.to_string();
                        if failed.as_ref() != Some(&text) {
                            tracing::error!(%error, "certificates and rights cannot be reloaded: the previous ones stay in use");
                            failed = Some(text);
                        }
                    }
                }
            }
        });
    }
}

/// Records in the metrics whether the files that changed could be reloaded.
fn reload_failed(error: Option<&SecurityError>) {
    let culprit = error.map(|error| if error.option() == "access" { "access" } else { "certificates" });
    for file in ["certificates", "access"] {
        let has_failed = culprit == Some(file);
        metrics::gauge!("kith_server_reload_failed", "file" => file).set(f64::from(u8::from(has_failed)));
        if has_failed {
            metrics::counter!("kith_server_reload_failures_total", "file" => file).increment(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    #[test]
    fn what_lacks_something_is_refused() {
        let file = || Some(PathBuf::from("/nowhere/file"));
        let none = ServerSecurity::default();
        for (options, expected) in [
            (ServerSecurity { cert: file(), ..none.clone() }, "tls-key"),
            (ServerSecurity { key: file(), ..none.clone() }, "tls-cert"),
            (ServerSecurity { client_ca: file(), ..none.clone() }, "tls-cert and tls-key"),
            (ServerSecurity { access: file(), ..none.clone() }, "in the clear"),
            (ServerSecurity { ca: file(), ..none.clone() }, "both ways"),
            (ServerSecurity { cert: file(), key: file(), ..none.clone() }, "tls-ca or tls-client-ca"),
        ] {
            let error = Security::open(options).unwrap_err();
            assert!(error.to_string().contains(expected) && error.code() == ErrorCode::Usage, "{error}");
        }
        let missing = ServerSecurity { cert: file(), key: file(), ca: file(), ..none };
        assert_eq!(Security::open(missing).unwrap_err().code(), ErrorCode::BadSecurityFile);
    }

    #[test]
    fn off_loopback_callers_must_show_who_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let addr: SocketAddr = "10.1.2.3:7100".parse().unwrap();
        let listens = |access, insecure_listen| {
            let gate = Some(testing::gate(folder.path(), access));
            Security { gate, insecure_listen, ..Security::default() }.check_listen(addr)
        };
        assert_eq!(listens(None, false).unwrap_err().code(), ErrorCode::OpenListener);
        listens(None, true).unwrap();
        listens(Some(""), false).unwrap();
        let open = Security { gate: Some(testing::gate(folder.path(), None)), ..Security::default() };
        open.check_listen("127.0.0.1:7100".parse().unwrap()).unwrap();
    }

    #[test]
    fn a_certificate_without_the_right_of_the_cluster_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let check = |access: Option<&str>| {
            let gate = Some(testing::gate(folder.path(), access));
            Security { gate, ..Security::default() }.check_own_right()
        };
        let subject = |name: &str, right: &str| {
            format!("[[subject]]\nname = \"own\"\ncertificate = [\"{name}\"]\n{right}\n")
        };
        // What rcgen calls a certificate without a name.
        let own = "CN=rcgen self signed cert";
        check(None).unwrap();
        check(Some(&subject(own, "cluster = true"))).unwrap();
        for access in [String::new(), subject(own, "admin = [\"*\"]"), subject("CN=kith", "cluster = true")] {
            let error = check(Some(&access)).unwrap_err();
            assert_eq!(error.code(), ErrorCode::BadSecurityFile);
            assert!(error.to_string().contains("`cluster = true`"), "{error}");
        }
    }

    #[test]
    fn only_loopback_is_listened_on_in_the_clear() {
        let security = Security::open(ServerSecurity::default()).unwrap();
        security.check_listen("127.0.0.1:0".parse().unwrap()).unwrap();
        security.check_listen("[::1]:0".parse().unwrap()).unwrap();
        let refused = security.check_listen("10.1.2.3:7100".parse().unwrap()).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InsecureListener);
        let trusted = Security::open(ServerSecurity { insecure_listen: true, ..Default::default() }).unwrap();
        trusted.check_listen("10.1.2.3:7100".parse().unwrap()).unwrap();
    }

    #[test]
    fn health_and_metrics_are_served_off_loopback_by_those_who_say_so() {
        let addr: SocketAddr = "10.1.2.3:7180".parse().unwrap();
        let of = |insecure_listen, insecure_http| {
            let options = ServerSecurity { insecure_listen, insecure_http, ..Default::default() };
            Security::open(options).unwrap()
        };
        assert_eq!(of(false, false).check_http(addr).unwrap_err().code(), ErrorCode::InsecureListener);
        of(false, false).check_http("127.0.0.1:0".parse().unwrap()).unwrap();
        of(true, false).check_http(addr).unwrap();
        of(false, true).check_http(addr).unwrap();
        assert!(of(false, true).check_listen(addr).is_err(), "data is another matter");
    }
}
