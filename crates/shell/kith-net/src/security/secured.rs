//! TLS connections, which are opened with the current credentials, and the reasons why TLS with peers failed.

use super::{SecurityError, SecurityOptions, TlsFailure, credentials::Credentials};
use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use rustls::{ClientConfig, pki_types::ServerName};
use std::{collections::HashMap, io, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::codegen::http::HeaderValue;

/// The state of a dialer that uses TLS: its credentials, and the failures of its peers.
pub(crate) struct TlsDialer {
    options: SecurityOptions,
    /// The current credentials. They are replaced as a whole when files change.
    now: ArcSwap<Credentials>,
    /// Why TLS fails, by address; addresses where TLS works have no entry. An entry is set when a connection ends with a
    /// TLS failure, and removed when a byte arrives from the peer.
    failures: Mutex<HashMap<String, TlsFailure>>,
}

impl TlsDialer {
    /// Reads the credentials from the files that `options` name.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be read or used.
    pub fn open(options: SecurityOptions) -> Result<Self, SecurityError> {
        let now = ArcSwap::from_pointee(Credentials::read(&options)?);
        Ok(Self { options, now, failures: Mutex::default() })
    }

    /// Reads the files again. If they cannot be used, the previous credentials stay.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be read or used.
    pub fn reload(&self) -> Result<(), SecurityError> {
        self.now.store(Arc::new(Credentials::read(&self.options)?));
        Ok(())
    }

    /// The options that name the files.
    pub fn options(&self) -> &SecurityOptions {
        &self.options
    }

    /// Why the last connection to a peer failed at TLS; `None` if it did not.
    pub fn failure_at(&self, addr: &str) -> Option<TlsFailure> {
        self.failures().get(addr).cloned()
    }

    /// Connects for gRPC. The peer's certificate must be valid for `name`.
    ///
    /// # Errors
    /// Errors of the socket and of the TLS handshake.
    pub async fn for_grpc(&self, addr: &str, name: ServerName<'static>) -> io::Result<TlsStream<TcpStream>> {
        self.shake_hands(addr, name, Arc::clone(&self.now.load().grpc)).await
    }

    /// The `authorization` header of gRPC calls, if there is a token.
    pub fn token_header(&self) -> Option<HeaderValue> {
        Some(self.now.load().token.as_ref()?.header.clone())
    }

    /// Connects for frames.
    ///
    /// # Errors
    /// Errors of the socket and of the TLS handshake.
    pub async fn for_frames(&self, addr: &str) -> io::Result<TlsStream<TcpStream>> {
        self.shake_hands(addr, server_name(addr)?, Arc::clone(&self.now.load().frames)).await
    }

    /// The token that is sent before the first request over frames, if there is one.
    pub fn token(&self) -> Option<Arc<str>> {
        self.now.load().token.as_ref().map(|token| Arc::clone(&token.text))
    }

    /// Records why TLS with a peer fails, and logs each new reason once.
    pub fn note(&self, addr: &str, failure: TlsFailure) {
        let mut failures = self.failures();
        if failures.get(addr) != Some(&failure) {
            tracing::warn!(addr, reason = failure.reason, help = failure.help, "TLS with a peer failed");
            failures.insert(addr.to_owned(), failure);
        }
    }

    /// Removes the recorded failure of a peer, because TLS works.
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

/// The host of an address, in the form in which certificates name it.
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
