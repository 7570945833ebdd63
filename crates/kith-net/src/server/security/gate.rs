//! The way into a process: handshakes, and who comes in. What was read of the files is one snapshot, swapped whole when they change.

use super::{
    access::{Access, tls_required},
    audit::{self, Refused},
    caller::{Caller, Identity},
    names::names_of,
    need::Need,
    subject::{Asker, Subject},
};
use crate::security::{SecurityError, pem};
use arc_swap::ArcSwap;
use rustls::{ServerConfig, crypto::ring, server::WebPkiClientVerifier};
use sha2::{Digest, Sha256};
use std::{fmt, io, path::PathBuf, sync::Arc, time::SystemTime};
use tokio::net::TcpStream;
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

/// Lets callers in over TLS, and says who they are and what they may.
pub struct Gate {
    files: Files,
    now: ArcSwap<Snapshot>,
}

/// As the files said when they were read last.
struct Snapshot {
    tls: Arc<ServerConfig>,
    /// `None`: whoever gets in may do everything.
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
    /// [`SecurityError`].
    pub(crate) fn open(files: Files) -> Result<Self, SecurityError> {
        let now = ArcSwap::from_pointee(Snapshot::read(&files)?);
        Ok(Self { files, now })
    }

    /// Reads the files again; what was read before stays if they cannot be used.
    ///
    /// # Errors
    /// [`SecurityError`].
    pub fn reload(&self) -> Result<(), SecurityError> {
        self.now.store(Arc::new(Snapshot::read(&self.files)?));
        Ok(())
    }

    /// Something that changes when a file does.
    pub fn state_of_files(&self) -> Vec<Option<(SystemTime, u64)>> {
        let Files { cert, key, client_ca, access } = &self.files;
        let all = [Some(cert), Some(key), client_ca.as_ref(), access.as_ref()];
        let state = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        all.into_iter().flatten().map(state).collect()
    }

    /// Shakes hands with a caller; who they are, as far as their certificate says.
    ///
    /// # Errors
    /// The socket's, and those of TLS.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream<TcpStream>, Caller)> {
        let peer = stream.peer_addr().ok();
        let acceptor = TlsAcceptor::from(Arc::clone(&self.now.load().tls));
        let stream = acceptor.accept(stream).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let identity = match certificate {
            Some(certificate) => Identity::Certificate(names_of(certificate).into()),
            None => Identity::Nobody,
        };
        Ok((stream, Caller::new(identity).at(peer)))
    }

    /// Whether callers must show who they are: by a certificate of a known authority, or as the file of rights asks.
    pub fn knows_callers(&self) -> bool {
        self.files.client_ca.is_some() || self.files.access.is_some()
    }

    /// Whether it is written down who may do what; else whoever gets in may do everything, and tokens mean nothing.
    pub fn has_rights(&self) -> bool {
        self.files.access.is_some()
    }

    /// Whoever shows this token over `connection`: nobody, if it is empty.
    pub fn bearer(&self, token: &[u8], connection: &Caller) -> Caller {
        if token.trim_ascii().is_empty() {
            return Caller::new(Identity::Nobody).at(connection.peer);
        }
        Caller::new(Identity::Token(Sha256::digest(token).into())).at(connection.peer)
    }

    /// As [`Gate::check`], for a call: one that is refused is a line of the audit log.
    ///
    /// # Errors
    /// As [`Gate::check`].
    pub fn admit(&self, caller: &Caller, need: &Need, method: &str) -> Result<Option<Asker>, Status> {
        self.check(caller, need).inspect_err(|status| {
            let now = self.now.load();
            let subject = now.access.as_ref().and_then(|access| access.subject(&caller.identity).ok());
            let subject =
                subject.map_or_else(|| caller.identity.to_string(), |subject| subject.name.to_string());
            audit::refused(&Refused {
                subject: &subject,
                method,
                store: need.store(),
                code: kith_wire::code_of(status),
                reason: status.message(),
                peer: caller.peer,
            });
        })
    }

    /// Lets somebody do something; who they are, where that is written down.
    ///
    /// # Errors
    /// `tls_required`, `unauthenticated`, `permission_denied`.
    pub fn check(&self, caller: &Caller, need: &Need) -> Result<Option<Asker>, Status> {
        match &self.now.load().access {
            None if caller.identity == Identity::Plain => Err(tls_required()),
            None => Ok(None),
            Some(access) => {
                let subject: &Arc<Subject> = access.subject(&caller.identity)?;
                subject.check(need)?;
                Ok(Some(subject.asker()))
            }
        }
    }
}

impl Snapshot {
    fn read(files: &Files) -> Result<Self, SecurityError> {
        let access = match &files.access {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| SecurityError::File {
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

/// How hands are shaken. Callers need no certificate where they may show a token instead: who shows neither is told so by name.
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
    // gRPC tools ask for it; who asks for nothing is let in as well.
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
