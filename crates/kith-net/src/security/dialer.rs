//! Connections to others: the one place that knows whether they are TLS, whom to believe and what to show.

use super::{GrpcChannel, SecurityError, SecurityOptions, TlsFailure, pem};
use crate::{Budget, endpoint::endpoint};
use arc_swap::ArcSwap;
use futures::{FutureExt, future::BoxFuture};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use rustls::{ClientConfig, crypto::ring, pki_types::ServerName};
use std::{
    collections::HashMap,
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{
    Status,
    codegen::{
        Service,
        http::{HeaderValue, Uri},
    },
    transport::Channel,
};

/// The protocol of gRPC, as TLS names it.
const HTTP2: &[u8] = b"h2";

/// Connects to others. Cheap to clone; clones share their certificates. `Default` connects in the clear.
#[derive(Clone, Default)]
pub struct Dialer {
    secured: Option<Arc<Secured>>,
    /// What long replies are charged to while they come in frames.
    replies: Option<Arc<Budget>>,
}

/// What it takes to connect over TLS.
pub(crate) struct Secured {
    options: SecurityOptions,
    /// Swapped whole when files change.
    now: ArcSwap<Credentials>,
    /// Why there is no TLS, by address; none where there is. Written when a connection ends so, or a byte comes.
    failures: Mutex<HashMap<String, TlsFailure>>,
}

/// As the files said when they were read last.
struct Credentials {
    grpc: Arc<ClientConfig>,
    frames: Arc<ClientConfig>,
    token: Option<Token>,
}

/// A token, as frames and gRPC show it.
#[derive(Clone)]
struct Token {
    text: Arc<str>,
    header: HeaderValue,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the token or the key.
        f.debug_tuple("Dialer").field(&self.secured.as_ref().map(|secured| &secured.options)).finish()
    }
}

impl PartialEq for Dialer {
    fn eq(&self, other: &Self) -> bool {
        let secured = |dialer: &Self| dialer.secured.as_ref().map(Arc::as_ptr);
        secured(self) == secured(other) && self.replies == other.replies
    }
}

impl Dialer {
    /// As the options say; without any, in the clear.
    ///
    /// # Errors
    /// [`SecurityError`]: a file cannot be used, or an option lacks another.
    pub fn open(options: SecurityOptions) -> Result<Self, SecurityError> {
        let lacks = |option, detail| Err(SecurityError::Option { option, detail });
        let SecurityOptions { ca, cert, key, token } = &options;
        match (ca, cert, key, token) {
            (None, None, None, None) => return Ok(Self::default()),
            (None, _, _, Some(_)) => {
                return lacks("token-file", "needs tls-ca: a token is not sent in the clear");
            }
            (None, ..) => return lacks("tls-cert", "needs tls-ca: without it nothing is encrypted"),
            (_, Some(_), None, _) => return lacks("tls-cert", "needs tls-key"),
            (_, None, Some(_), _) => return lacks("tls-key", "needs tls-cert"),
            _ => {}
        }
        let now = ArcSwap::from_pointee(Credentials::read(&options)?);
        let secured = Secured { options, now, failures: Mutex::default() };
        Ok(Self { secured: Some(Arc::new(secured)), replies: None })
    }

    /// The same, with a budget that long replies are charged to while they come in frames; one that does not fit is `overloaded`.
    #[must_use]
    pub fn with_reply_budget(self, replies: Arc<Budget>) -> Self {
        Self { replies: Some(replies), ..self }
    }

    /// What long replies are charged to while they come in frames.
    pub(crate) fn replies(&self) -> Option<&Arc<Budget>> {
        self.replies.as_ref()
    }

    /// Reads the files again: connections from now on are made by what they say.
    ///
    /// # Errors
    /// [`SecurityError`]; what was read before stays then.
    pub fn reload(&self) -> Result<(), SecurityError> {
        let Some(secured) = &self.secured else { return Ok(()) };
        secured.now.store(Arc::new(Credentials::read(&secured.options)?));
        Ok(())
    }

    /// A channel to `addr` (`host:port`) that connects when it is first used.
    ///
    /// # Errors
    /// If `addr` is no address.
    pub fn channel(&self, addr: &str) -> Result<GrpcChannel, Status> {
        let endpoint = endpoint(addr)?;
        let channel = match self.connector(addr)? {
            Some(connector) => endpoint.connect_with_connector_lazy(connector),
            None => endpoint.connect_lazy(),
        };
        Ok(self.bearing(channel))
    }

    /// A channel to `addr` that is connected.
    ///
    /// # Errors
    /// `Unavailable` with the reason.
    pub async fn connect(&self, addr: &str) -> Result<GrpcChannel, Status> {
        let endpoint = endpoint(addr)?;
        let connected = match self.connector(addr)? {
            Some(connector) => endpoint.connect_with_connector(connector).await,
            None => endpoint.connect().await,
        };
        connected.map(|channel| self.bearing(channel)).map_err(|error| match self.failure_at(addr) {
            Some(failure) => Status::unavailable(failure.reason),
            None => Status::unavailable(cause(&error)),
        })
    }

    /// A channel that is there already, with this process's token.
    pub fn bearing(&self, channel: Channel) -> GrpcChannel {
        GrpcChannel::new(channel, self.clone())
    }

    /// What a call over gRPC shows, if anything.
    pub(super) fn token_header(&self) -> Option<HeaderValue> {
        Some(self.secured.as_ref()?.now.load().token.as_ref()?.header.clone())
    }

    /// Why there is no TLS with a peer, as the last connection to it ended; `None` if there is, or need be none.
    pub fn failure_at(&self, addr: &str) -> Option<TlsFailure> {
        self.secured.as_ref()?.failures().get(addr).cloned()
    }

    /// What it takes to connect over TLS; `None`: nothing.
    pub(crate) fn secured(&self) -> Option<&Arc<Secured>> {
        self.secured.as_ref()
    }

    fn connector(&self, addr: &str) -> Result<Option<Connector>, Status> {
        let Some(secured) = &self.secured else { return Ok(None) };
        let name = server_name(addr).map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Some(Connector { secured: Arc::clone(secured), addr: addr.to_owned(), name }))
    }
}

impl Secured {
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

impl Credentials {
    fn read(options: &SecurityOptions) -> Result<Self, SecurityError> {
        let roots = match &options.ca {
            Some(path) => pem::authorities("tls-ca", path)?,
            None => rustls::RootCertStore::empty(),
        };
        let tls = |option| move |source| SecurityError::Tls { option, source };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(tls("tls-ca"))?
            .with_root_certificates(roots);
        let config = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => config
                .with_client_auth_cert(
                    pem::certificates("tls-cert", cert)?,
                    pem::private_key("tls-key", key)?,
                )
                .map_err(|source| pem::unusable("tls-cert", cert, source))?,
            _ => config.with_no_client_auth(),
        };
        let mut grpc = config.clone();
        grpc.alpn_protocols = vec![HTTP2.to_vec()];
        let token = options.token.as_deref().map(Token::read).transpose()?;
        Ok(Self { grpc: Arc::new(grpc), frames: Arc::new(config), token })
    }
}

impl Token {
    fn read(path: &std::path::Path) -> Result<Self, SecurityError> {
        const OPTION: &str = "token-file";
        let bad = |detail: &str| SecurityError::Content {
            option: OPTION,
            path: path.to_owned(),
            detail: detail.to_owned(),
        };
        let text = std::fs::read_to_string(path).map_err(|source| SecurityError::File {
            option: OPTION,
            path: path.to_owned(),
            source,
        })?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("holds no token: one line of printable characters without spaces"));
        }
        let header = format!("Bearer {text}").parse();
        let mut header: HeaderValue = header.map_err(|_| bad("holds what no header can"))?;
        header.set_sensitive(true);
        Ok(Self { text: text.into(), header })
    }
}

/// The host of an address, as a certificate names it.
fn server_name(addr: &str) -> io::Result<ServerName<'static>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, format!("bad address {addr:?}"));
    let (host, _) = addr.rsplit_once(':').ok_or_else(bad)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).map_err(|_| bad())
}

/// The innermost reason.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Makes the connections of one channel.
#[derive(Clone)]
struct Connector {
    secured: Arc<Secured>,
    addr: String,
    name: ServerName<'static>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Noted>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Noted>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { secured, addr, name } = self.clone();
        async move {
            let config = Arc::clone(&secured.now.load().grpc);
            let stream = secured.shake_hands(&addr, name, config).await?;
            Ok(TokioIo::new(Noted { stream, secured, addr, is_open: false, broken: None }))
        }
        .boxed()
    }
}

/// A connection that notes why it ended: a peer that refuses a certificate says so only after the handshake (TLS 1.3), where HTTP/2
/// makes "broken" of it.
struct Noted {
    stream: TlsStream<TcpStream>,
    secured: Arc<Secured>,
    addr: String,
    /// Whether a byte came: then both sides are content.
    is_open: bool,
    /// What a write failed with, while it is heard why.
    broken: Option<io::Error>,
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        match &read {
            Err(error) => {
                if let Some(failure) = TlsFailure::of(error) {
                    self.secured.note(&self.addr, failure);
                }
            }
            Ok(()) if !self.is_open && before < buffer.filled().len() => {
                self.is_open = true;
                self.secured.forget(&self.addr);
            }
            Ok(()) => {}
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.broken.take() {
            Some(error) => Err(error),
            None => ready!(Pin::new(&mut self.stream).poll_write(cx, bytes)),
        };
        self.hear_out(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match self.broken.take() {
            Some(error) => Err(error),
            None => ready!(Pin::new(&mut self.stream).poll_flush(cx)),
        };
        self.hear_out(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Noted {
    /// A peer that refuses says why and closes: a write may fail on that before the reason was read, and nobody reads after a write
    /// that failed. So the failure is told when what came has been read, which a connection that is closed does not keep waiting for.
    fn hear_out<T>(&mut self, cx: &mut Context<'_>, done: io::Result<T>) -> Poll<io::Result<T>> {
        let error = match done {
            Err(error) if !self.is_open && is_closed(&error) => error,
            done => return Poll::Ready(done),
        };
        let mut byte = [0];
        match Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Pending => {
                self.broken = Some(error);
                return Poll::Pending;
            }
            Poll::Ready(Err(why)) => {
                if let Some(failure) = TlsFailure::of(&why) {
                    self.secured.note(&self.addr, failure);
                }
            }
            Poll::Ready(Ok(())) => {}
        }
        Poll::Ready(Err(error))
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;
    use std::{fs, path::Path};

    #[test]
    fn an_option_that_lacks_another_is_refused() {
        let file = || Some("x".into());
        for (ca, cert, key, token, told) in [
            (None, None, None, file(), "in the clear"),
            (None, file(), file(), None, "needs tls-ca"),
            (None, None, file(), None, "needs tls-ca"),
            (file(), file(), None, None, "needs tls-key"),
            (file(), None, file(), None, "needs tls-cert"),
        ] {
            let error = Dialer::open(SecurityOptions { ca, cert, key, token }).unwrap_err();
            assert!(error.to_string().contains(told) && error.code() == ErrorCode::Usage, "{error}");
        }
        assert!(Dialer::open(SecurityOptions::default()).unwrap().secured().is_none());
    }

    #[test]
    fn hosts_are_named_as_certificates_name_them() {
        for (addr, name) in [("a.b:1", "a.b"), ("127.0.0.1:7", "127.0.0.1"), ("[::1]:7", "::1")] {
            assert_eq!(server_name(addr).unwrap().to_str(), name);
        }
        assert!(server_name("a").is_err() && server_name(":1").is_err());
    }

    #[test]
    fn a_token_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            Token::read(&file).map(|token| token.text.to_string())
        };
        assert_eq!(read("s3cret\n").unwrap(), "s3cret");
        for bad in ["", "\n", "two words", "two\nlines\n", "é"] {
            assert_eq!(read(bad).unwrap_err().code(), ErrorCode::BadSecurityFile, "{bad:?}");
        }
        assert!(Token::read(Path::new("/nowhere/token")).is_err());
    }
}
