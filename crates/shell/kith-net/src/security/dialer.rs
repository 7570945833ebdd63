//! Opens connections to other processes. This is the one place that decides whether they use TLS, which authorities are
//! trusted, and which credentials are sent.

use super::{
    GrpcChannel, SecurityError, SecurityOptions, TlsFailure,
    channel::lost,
    connector::Connector,
    secured::{TlsDialer, server_name},
};
use crate::{Budget, endpoint::endpoint};
use std::{fmt, sync::Arc};
use tonic::{Status, transport::Channel};

/// Opens connections to other processes. Cheap to clone; clones share their certificates. `Default` connects without TLS.
#[derive(Clone, Default)]
pub struct Dialer {
    secured: Option<Arc<TlsDialer>>,
    /// The budget that long replies over frames are charged to while they are received and held.
    replies: Option<Arc<Budget>>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token and the key are never printed.
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
    /// Returns a dialer with these options. Without any option it connects without TLS.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be used, or an option requires another one that is missing.
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
        Ok(Self { secured: Some(Arc::new(TlsDialer::open(options)?)), replies: None })
    }

    /// Returns this dialer with a budget that long replies over frames are charged to. A reply that does not fit into the
    /// budget fails with `overloaded`.
    #[must_use]
    pub fn with_reply_budget(self, replies: Arc<Budget>) -> Self {
        Self { replies: Some(replies), ..self }
    }

    /// The budget that long replies over frames are charged to.
    pub(crate) fn replies(&self) -> Option<&Arc<Budget>> {
        self.replies.as_ref()
    }

    /// Reads the files again. Connections that are opened from now on use their new content.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be used; the previous credentials stay in use then.
    pub fn reload(&self) -> Result<(), SecurityError> {
        self.secured.as_ref().map_or(Ok(()), |secured| secured.reload())
    }

    /// Returns a channel to `addr` (`host:port`) that connects when it is first used.
    ///
    /// # Errors
    /// `InvalidArgument` if `addr` is not `host:port`.
    pub fn channel(&self, addr: &str) -> Result<GrpcChannel, Status> {
        let endpoint = endpoint(addr)?;
        let channel = match self.connector(addr)? {
            Some(connector) => endpoint.connect_with_connector_lazy(connector),
            None => endpoint.connect_lazy(),
        };
        Ok(self.bearing(channel))
    }

    /// Connects to `addr` and returns the channel.
    ///
    /// # Errors
    /// `Unavailable` with the reason if the connection cannot be opened; `InvalidArgument` if `addr` is not `host:port`.
    pub async fn connect(&self, addr: &str) -> Result<GrpcChannel, Status> {
        let endpoint = endpoint(addr)?;
        let connected = match self.connector(addr)? {
            Some(connector) => endpoint.connect_with_connector(connector).await,
            None => endpoint.connect().await,
        };
        connected.map(|channel| self.bearing(channel)).map_err(|error| match self.failure_at(addr) {
            Some(failure) => Status::unavailable(failure.reason),
            None => lost(&error),
        })
    }

    /// Wraps an existing channel so that its calls send this process's token.
    pub fn bearing(&self, channel: Channel) -> GrpcChannel {
        GrpcChannel::new(channel, self.secured.clone())
    }

    /// Why the last connection to a peer failed at TLS. `None` if it did not fail, or if TLS is not used.
    pub fn failure_at(&self, addr: &str) -> Option<TlsFailure> {
        self.secured.as_ref()?.failure_at(addr)
    }

    /// The TLS state of this dialer; `None` if it connects without TLS.
    pub(crate) fn secured(&self) -> Option<&Arc<TlsDialer>> {
        self.secured.as_ref()
    }

    fn connector(&self, addr: &str) -> Result<Option<Connector>, Status> {
        let Some(secured) = &self.secured else { return Ok(None) };
        let name = server_name(addr).map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Some(Connector::new(Arc::clone(secured), addr, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    #[test]
    fn an_option_that_lacks_another_is_refused() {
        let file = || Some("x".into());
        for (ca, cert, key, token, expected) in [
            (None, None, None, file(), "in the clear"),
            (None, file(), file(), None, "needs tls-ca"),
            (None, None, file(), None, "needs tls-ca"),
            (file(), file(), None, None, "needs tls-key"),
            (file(), None, file(), None, "needs tls-cert"),
        ] {
            let error = Dialer::open(SecurityOptions { ca, cert, key, token }).unwrap_err();
            assert!(error.to_string().contains(expected) && error.code() == ErrorCode::Usage, "{error}");
        }
        assert!(Dialer::open(SecurityOptions::default()).unwrap().secured().is_none());
    }
}
