//! Connections to others: the one place that knows whether they are TLS, whom to believe and what to show.

use super::{
    GrpcChannel, SecurityError, SecurityOptions, TlsFailure,
    connector::Connector,
    secured::{Secured, server_name},
};
use crate::{Budget, endpoint::endpoint};
use std::{fmt, sync::Arc};
use tonic::{Status, codegen::http::HeaderValue, transport::Channel};

/// Connects to others. Cheap to clone; clones share their certificates. `Default` connects in the clear.
#[derive(Clone, Default)]
pub struct Dialer {
    secured: Option<Arc<Secured>>,
    /// What long replies are charged to while they come in frames.
    replies: Option<Arc<Budget>>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the token or the key.
        f.debug_tuple("Dialer").field(&self.secured.as_ref().map(|secured| secured.options())).finish()
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
        Ok(Self { secured: Some(Arc::new(Secured::open(options)?)), replies: None })
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
        self.secured.as_ref().map_or(Ok(()), |secured| secured.reload())
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
        self.secured.as_ref()?.token_header()
    }

    /// Why there is no TLS with a peer, as the last connection to it ended; `None` if there is, or need be none.
    pub fn failure_at(&self, addr: &str) -> Option<TlsFailure> {
        self.secured.as_ref()?.failure_at(addr)
    }

    /// What it takes to connect over TLS; `None`: nothing.
    pub(crate) fn secured(&self) -> Option<&Arc<Secured>> {
        self.secured.as_ref()
    }

    fn connector(&self, addr: &str) -> Result<Option<Connector>, Status> {
        let Some(secured) = &self.secured else { return Ok(None) };
        let name = server_name(addr).map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Some(Connector::new(Arc::clone(secured), addr, name)))
    }
}

/// The innermost reason.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

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
}
