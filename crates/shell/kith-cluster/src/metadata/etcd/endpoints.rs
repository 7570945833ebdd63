//! Connections to etcd's members. One member is asked; the next one is asked if it does not answer.

use super::{
    Security,
    failure::{CallError, Fate, NextAttempt, Repeat},
};
use crate::metadata::TargetError;
use kith_wire::etcd::{AuthenticateRequest, auth_client::AuthClient};
use std::{
    future::Future,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tonic::{
    Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};

/// The time limit of a connection to a running member.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// The time limit of a call, including an election.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval of keep-alive pings. etcd closes connections that are pinged more often than every 5 s.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(6);
/// A connection that does not answer a ping within this time is broken.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(3);
/// The header with the authentication token.
const TOKEN: &str = "token";

/// The members of etcd.
pub(super) struct Endpoints {
    channels: Vec<Channel>,
    /// The index of the member that is asked.
    current: AtomicUsize,
    user: Option<(String, String)>,
    /// The token of `user`; `None` until it is needed. A call whose token was refused clears it.
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

/// The channel to one member, and the token to send.
#[derive(Clone)]
pub(super) struct Line {
    pub channel: Channel,
    member: usize,
    token: Option<MetadataValue<Ascii>>,
}

impl Line {
    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert(TOKEN, token.clone());
        }
        request
    }
}

impl Endpoints {
    pub fn new(hosts: &[String], security: Security) -> Result<Self, TargetError> {
        let channels = hosts.iter().map(|host| channel(host, &security)).collect::<Result<_, _>>()?;
        Ok(Self { channels, current: AtomicUsize::new(0), user: security.user, token: Mutex::new(None) })
    }

    /// Makes a call, at one member after the other if needed. A call that may have been carried out is repeated only if
    /// `repeat` says that this is safe.
    pub async fn call<R, F>(&self, repeat: Repeat, call: impl Fn(Line) -> F) -> Result<R, CallError>
    where
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let mut others = self.channels.len() - 1;
        let mut may_renew = self.user.is_some();
        loop {
            let line = self.line().await?;
            let status = match answered(call(line.clone())).await {
                Ok(reply) => return Ok(reply.into_inner()),
                Err(status) => status,
            };
            let fate = Fate::of(&status);
            if matches!(fate, Fate::NotSent | Fate::Unknown) {
                self.leave(&line);
            }
            match fate.next(repeat, 0 < others, may_renew) {
                NextAttempt::OtherMember => others -= 1,
                NextAttempt::NewToken => {
                    may_renew = false;
                    self.forget(&line);
                }
                NextAttempt::End if matches!(fate, Fate::NotSent | Fate::Unknown) => {
                    return Err(CallError::Unavailable(reason(&status)));
                }
                NextAttempt::End => return Err(CallError::Refused(status)),
            }
        }
    }

    /// Returns the member to ask, with a token if there is a user.
    pub async fn line(&self) -> Result<Line, CallError> {
        let mut others = self.channels.len() - 1;
        loop {
            let member = self.current.load(Ordering::Relaxed);
            let mut line = Line { channel: self.channels[member].clone(), member, token: self.token() };
            let (None, Some((name, password))) = (&line.token, &self.user) else { return Ok(line) };
            let request = AuthenticateRequest { name: name.clone(), password: password.clone() };
            let status = match answered(AuthClient::new(line.channel.clone()).authenticate(request)).await {
                Ok(reply) => {
                    let token = MetadataValue::try_from(reply.into_inner().token)
                        .map_err(|_| CallError::Unavailable("etcd's token is not valid text".to_owned()))?;
                    line.token = Some(token.clone());
                    *self.lock() = Some(token);
                    return Ok(line);
                }
                Err(status) => status,
            };
            if Fate::of(&status) == Fate::Refused || Fate::of(&status) == Fate::TokenRefused {
                return Err(CallError::Refused(status));
            }
            self.leave(&line);
            if others == 0 {
                return Err(CallError::Unavailable(reason(&status)));
            }
            others -= 1;
        }
    }

    /// Switches to the next member, unless another call has switched already.
    pub fn leave(&self, line: &Line) {
        let next = (line.member + 1) % self.channels.len();
        let _ = self.current.compare_exchange(line.member, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Drops the token, unless another call has replaced it already.
    fn forget(&self, line: &Line) {
        let mut token = self.lock();
        if *token == line.token {
            *token = None;
        }
    }

    fn token(&self) -> Option<MetadataValue<Ascii>> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<MetadataValue<Ascii>>> {
        self.token.lock().expect("no holder of this lock panics")
    }
}

async fn answered<R>(call: impl Future<Output = Result<Response<R>, Status>>) -> Result<Response<R>, Status> {
    let late = |_| Err(Status::deadline_exceeded(format!("etcd did not answer within {CALL_TIMEOUT:?}")));
    tokio::time::timeout(CALL_TIMEOUT, call).await.unwrap_or_else(late)
}

/// Returns the message with its causes. `tcp connect error` alone says neither where it failed nor why.
fn reason(status: &Status) -> String {
    let mut reason = status.message().to_owned();
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        let text = error.to_string();
        if !reason.contains(&text) {
            reason.push_str(": ");
            reason.push_str(&text);
        }
        source = error.source();
    }
    reason
}

fn channel(host: &str, security: &Security) -> Result<Channel, TargetError> {
    let bad = |error: tonic::transport::Error| {
        let mut detail = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            detail.push_str(&format!(": {source}"));
        }
        TargetError::Address { address: host.to_owned(), detail }
    };
    let scheme = if security.ca.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{host}"))
        .map_err(bad)?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    if let Some(ca) = &security.ca {
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
        if let Some((cert, key)) = &security.identity {
            tls = tls.identity(Identity::from_pem(cert, key));
        }
        endpoint = endpoint.tls_config(tls).map_err(bad)?;
    }
    Ok(endpoint.connect_lazy())
}
