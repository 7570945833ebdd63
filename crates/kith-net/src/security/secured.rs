//! Connections over TLS: made with the credentials that hold now, and the reasons why peers had none.

use super::{SecurityError, SecurityOptions, TlsFailure, credentials::Credentials};
use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use rustls::{ClientConfig, pki_types::ServerName};
use std::{collections::HashMap, io, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::codegen::http::HeaderValue;

/// What it takes to connect over TLS.
pub(crate) struct Secured {
    options: SecurityOptions,
    /// Swapped whole when files change.
    now: ArcSwap<Credentials>,
    /// Why there is no TLS, by address; none where there is. Written when a connection ends so, or a byte comes.
    failures: Mutex<HashMap<String, TlsFailure>>,
}

impl Secured {
    /// As the files say that `options` name.
    ///
    /// # Errors
    /// [`SecurityError`].
    pub fn open(options: SecurityOptions) -> Result<Self, SecurityError> {
        let now = ArcSwap::from_pointee(Credentials::read(&options)?);
        Ok(Self { options, now, failures: Mutex::default() })
    }

    /// Reads the files again. What was read before stays if they cannot be used.
    ///
    /// # Errors
    /// [`SecurityError`].
    pub fn reload(&self) -> Result<(), SecurityError> {
        self.now.store(Arc::new(Credentials::read(&self.options)?));
        Ok(())
    }

    /// The files.
    pub fn options(&self) -> &SecurityOptions {
        &self.options
    }

    /// Why there is no TLS with a peer, as the last connection to it ended; `None` if there is.
    pub fn failure_at(&self, addr: &str) -> Option<TlsFailure> {
        self.failures().get(addr).cloned()
    }

    /// Connects for gRPC; `name` is the peer's, as its certificate has it.
    ///
    /// # Errors
    /// The socket's, and those of TLS.
    pub async fn for_grpc(&self, addr: &str, name: ServerName<'static>) -> io::Result<TlsStream<TcpStream>> {
        self.shake_hands(addr, name, Arc::clone(&self.now.load().grpc)).await
    }

    /// What a call over gRPC shows, if anything.
    pub fn token_header(&self) -> Option<HeaderValue> {
        Some(self.now.load().token.as_ref()?.header.clone())
    }

    /// Connects for frames.
    ///
    /// # Errors
    /// The socket's, and those of TLS.
    pub async fn for_frames(&self, addr: &str) -> io::Result<TlsStream<TcpStream>> {
        self.shake_hands(addr, server_name(addr)?, Arc::clone(&self.now.load().frames)).await
    }

    /// What to show before the first request in frames.
    pub fn token(&self) -> Option<Arc<str>> {
        self.now.load().token.as_ref().map(|token| Arc::clone(&token.text))
    }

    /// Remembers why there is no TLS with a peer, and says so once.
    pub fn note(&self, addr: &str, failure: TlsFailure) {
        let mut failures = self.failures();
        if failures.get(addr) != Some(&failure) {
            tracing::warn!(addr, reason = failure.reason, help = failure.help, "no TLS with a peer");
            failures.insert(addr.to_owned(), failure);
        }
    }

    /// There is TLS with a peer.
    pub fn forget(&self, addr: &str) {
        self.failures().remove(addr);
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<String, TlsFailure>> {
        self.failures.lock()
    }

    async fn shake_hands(
        &self,
        addr: &str,
        name: ServerName<'static>,
        config: Arc<ClientConfig>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let shaken = TlsConnector::from(config).connect(name, stream).await;
        if let Err(error) = &shaken
            && let Some(failure) = TlsFailure::of_handshake(error)
        {
            self.note(addr, failure);
        }
        shaken
    }
}

/// The host of an address, as a certificate names it.
pub(super) fn server_name(addr: &str) -> io::Result<ServerName<'static>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, format!("bad address {addr:?}"));
    let (host, _) = addr.rsplit_once(':').ok_or_else(bad)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_as_certificates_name_them() {
        for (addr, name) in [("a.b:1", "a.b"), ("127.0.0.1:7", "127.0.0.1"), ("[::1]:7", "::1")] {
            assert_eq!(server_name(addr).unwrap().to_str(), name);
        }
        assert!(server_name("a").is_err() && server_name(":1").is_err());
    }
}
