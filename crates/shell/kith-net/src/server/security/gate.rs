//! The access control of a process: TLS handshakes, authentication and rights. The content of the files is one snapshot,
//! which is replaced as a whole when they change.

use super::{
    access::{Access, tls_required},
    audit::{self, RefusedCall},
    caller::{Caller, CallerIdentity},
    names::names_of,
    need::Need,
    subject::{CallingSubject, Subject},
};
use crate::security::{SecurityError, pem};
use arc_swap::ArcSwap;
use rustls::{ServerConfig, crypto::ring, server::WebPkiClientVerifier};
use sha2::{Digest, Sha256};
use std::{
    fmt, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tonic::Status;

/// The files of a gate.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub cert: PathBuf,
    pub key: PathBuf,
    pub client_ca: Option<PathBuf>,
    pub access: Option<PathBuf>,
}

/// How long a rejected caller may take to read the reason.
const DISMISSAL: Duration = Duration::from_secs(1);

/// Accepts callers over TLS, identifies them, and checks their rights.
pub struct Gate {
    files: Files,
    now: ArcSwap<Snapshot>,
}

/// The content of the files as of the last time that they were read.
struct Snapshot {
    tls: Arc<ServerConfig>,
    /// The rights; `None` if every caller that passes the handshake may do everything.
    access: Option<Access>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Gate {
    /// Reads the files.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be read or used.
    pub(crate) fn open(files: Files) -> Result<Self, SecurityError> {
        let now = ArcSwap::from_pointee(Snapshot::read(&files)?);
        Ok(Self { files, now })
    }

    /// Reads the files again. If they cannot be used, their previous content stays in effect.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be read or used.
    pub fn reload(&self) -> Result<(), SecurityError> {
        self.now.store(Arc::new(Snapshot::read(&self.files)?));
        Ok(())
    }

    /// Checks that other processes of the cluster, which are taken to have the same access file, will let this one do what
    /// nodes and routers do. Every certificate that passes the handshake may, if there is no access file.
    ///
    /// # Errors
    /// [`SecurityError::Content`] if they will not.
    pub(super) fn check_own_right(&self) -> Result<(), SecurityError> {
        let path = &self.files.cert;
        let own = pem::certificates("tls-cert", path)?;
        let names = own.first().map(|own| names_of(own)).unwrap_or_default();
        let caller = Caller::new(CallerIdentity::Certificate(names.into()));
        self.check(&caller, &Need::Cluster).map(drop).map_err(|status| {
            let detail = format!(
                "is not the certificate of a subject with `cluster = true` in the access file: {}",
                status.message()
            );
            SecurityError::Content { option: "tls-cert", path: path.clone(), detail }
        })
    }

    /// The files with certificates, by the option that names them.
    pub(super) fn certificate_files(&self) -> Vec<(&'static str, PathBuf)> {
        let Files { cert, client_ca, .. } = &self.files;
        let client_ca = client_ca.iter().map(|path| ("tls-client-ca", path.clone()));
        [("tls-cert", cert.clone())].into_iter().chain(client_ca).collect()
    }

    /// The modification time and length of each file. A change of the result means that a file has changed.
    pub fn state_of_files(&self) -> Vec<Option<(SystemTime, u64)>> {
        let Files { cert, key, client_ca, access } = &self.files;
        let all = [Some(cert), Some(key), client_ca.as_ref(), access.as_ref()];
        let state = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        all.into_iter().flatten().map(state).collect()
    }

    /// Performs the TLS handshake with a caller. Returns the stream, and the caller as its certificate identifies it. A
    /// rejected caller has a second to read why.
    ///
    /// # Errors
    /// Errors of the socket and of the handshake.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Caller)> {
        let peer = stream.peer_addr().ok();
        let acceptor = TlsAcceptor::from(Arc::clone(&self.now.load().tls));
        let stream = match acceptor.accept(stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                tokio::spawn(dismiss(stream));
                return Err(error);
            }
        };
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let identity = match certificate {
            Some(certificate) => CallerIdentity::Certificate(names_of(certificate).into()),
            None => CallerIdentity::Nobody,
        };
        Ok((stream, Caller::new(identity).at(peer)))
    }

    /// Whether callers must authenticate: by a certificate of a known authority, or as the access file requires.
    pub fn knows_callers(&self) -> bool {
        self.files.client_ca.is_some() || self.files.access.is_some()
    }

    /// Whether there is an access file. Without one, every caller that passes the handshake may do everything, and tokens
    /// have no effect.
    pub fn has_rights(&self) -> bool {
        self.files.access.is_some()
    }

    /// The caller that sends this token over `connection`. An empty token identifies nobody.
    pub fn bearer(&self, token: &[u8], connection: &Caller) -> Caller {
        if token.trim_ascii().is_empty() {
            return Caller::new(CallerIdentity::Nobody).at(connection.peer);
        }
        Caller::new(CallerIdentity::Token(Sha256::digest(token).into())).at(connection.peer)
    }

    /// Like [`Gate::check`], for a call: a refusal is also written to the audit log.
    ///
    /// # Errors
    /// As [`Gate::check`].
    pub fn admit(
        &self,
        caller: &Caller,
        need: &Need,
        method: &str,
    ) -> Result<Option<CallingSubject>, Status> {
        self.check(caller, need).inspect_err(|status| {
            let now = self.now.load();
            let subject = now.access.as_ref().and_then(|access| access.subject(&caller.identity).ok());
            let subject =
                subject.map_or_else(|| caller.identity.to_string(), |subject| subject.name.to_string());
            audit::refused(&RefusedCall {
                subject: &subject,
                method,
                store: need.store(),
                code: kith_wire::code_of(status),
                reason: status.message(),
                peer: caller.peer,
            });
        })
    }

    /// Checks that a caller may do what `need` says. Returns the subject, if there is an access file.
    ///
    /// # Errors
    /// `tls_required`, `unauthenticated` or `permission_denied`.
    pub fn check(&self, caller: &Caller, need: &Need) -> Result<Option<CallingSubject>, Status> {
        match &self.now.load().access {
            None if caller.identity == CallerIdentity::Plain => Err(tls_required()),
            None => Ok(None),
            Some(access) => {
                let subject: &Arc<Subject> = access.subject(&caller.identity)?;
                subject.check(need)?;
                Ok(Some(subject.subject()))
            }
        }
    }
}

impl Snapshot {
    fn read(files: &Files) -> Result<Self, SecurityError> {
        let access = match &files.access {
            None => None,
            Some(path) => {
                let text = std::fs::read(path).and_then(kith_types::without_mark);
                let text = text.map_err(|source| SecurityError::File {
                    option: "access",
                    path: path.clone(),
                    source,
                })?;
                let bad = |detail| SecurityError::Content { option: "access", path: path.clone(), detail };
                Some(Access::parse(&text).map_err(bad)?)
            }
        };
        let has_tokens = access.as_ref().is_some_and(Access::has_tokens);
        Ok(Self { tls: Arc::new(config(files, has_tokens)?), access })
    }
}

/// Closes the connection of a rejected caller, after the caller has closed its end or [`DISMISSAL`] has passed. If it were
/// closed with bytes of the caller unread, the caller's system would discard the alert that says why.
async fn dismiss(mut stream: TcpStream) {
    let mut unread = [0; 1024];
    let drain = async {
        stream.shutdown().await?;
        while 0 < stream.read(&mut unread).await? {}
        Ok::<_, io::Error>(())
    };
    // Nobody is left who could receive an error.
    let _ = tokio::time::timeout(DISMISSAL, drain).await;
}

/// Returns the TLS settings. If callers may send a token instead, certificates are optional, so that a caller with neither
/// gets an error that says so.
fn config(files: &Files, has_tokens: bool) -> Result<ServerConfig, SecurityError> {
    let tls = |option| move |source| SecurityError::Tls { option, source };
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(tls("tls-cert"))?;
    let config = match &files.client_ca {
        None => config.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(pem::authorities("tls-client-ca", path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = if has_tokens { verifier.allow_unauthenticated() } else { verifier };
            let verifier = verifier.build().map_err(|error| SecurityError::Content {
                option: "tls-client-ca",
                path: path.clone(),
                detail: error.to_string(),
            });
            config.with_client_cert_verifier(verifier?)
        }
    };
    let chain = pem::certificates("tls-cert", &files.cert)?;
    let key = pem::private_key("tls-key", &files.key)?;
    let config = config.with_single_cert(chain, key);
    let mut config = config.map_err(|source| pem::unusable("tls-cert", &files.cert, source))?;
    // Tools for gRPC negotiate this protocol. Clients that negotiate none are accepted as well.
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
