//! Metadata in etcd: one transaction per commit, watches, leases; a prefix per cluster (docs/design/0007-etcd.md).
//!
//! Follows etcd's published v3 API. It does not cache: a read returns what a majority of etcd's members agreed on.

mod endpoints;
mod failure;
mod watch;

use self::{
    endpoints::{Endpoints, Line},
    failure::{CallError, Repeat},
    watch::WatchState,
};
use super::{
    CommitOutcome, Condition, Entry, LeaseId, MetadataError, MetadataFuture, MetadataStore, Snapshot,
    TargetError, Write, keys,
};
use futures::{FutureExt, stream::BoxStream};
use kith_wire::{
    MESSAGE_BYTES_MAX,
    etcd::{
        Compare, DeleteRangeRequest, KeyValue, LeaseGrantRequest, LeaseKeepAliveRequest, PutRequest,
        RangeRequest, RequestOp, ResponseHeader, TxnRequest,
        compare::{CompareResult, CompareTarget, TargetUnion},
        kv_client::KvClient,
        lease_client::LeaseClient,
        request_op::Request as Op,
    },
};
use std::{sync::Arc, time::Duration};
use tonic::{Code, Status, transport::Channel};

/// The security of connections to etcd.
#[derive(Clone, Default)]
pub(super) struct Security {
    /// The PEM of the certificate authorities to trust. If there is one, TLS is used.
    pub ca: Option<String>,
    /// The PEM of this client's certificate and of its private key.
    pub identity: Option<(String, String)>,
    /// The user name and password.
    pub user: Option<(String, String)>,
}

/// Shows which secrets are set but not their values, because the output ends up in logs.
impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.user.as_ref().map(|(user, _)| user);
        let (ca, identity) = (self.ca.is_some(), self.identity.is_some());
        f.debug_struct("Security").field("ca", &ca).field("identity", &identity).field("user", &user).finish()
    }
}

/// The metadata of one cluster in etcd.
pub struct EtcdMetadata {
    root: Arc<Root>,
}

/// The keys of etcd that belong to this cluster.
struct Root {
    endpoints: Endpoints,
    /// The prefix of every key: `/kith/<cluster>/`.
    prefix: String,
}

impl EtcdMetadata {
    /// Returns a store on the etcd members at `hosts` (`host:port` each). `cluster` must be a checked name. It connects when
    /// it is first used.
    pub(super) fn connect(hosts: &[String], cluster: &str, security: Security) -> Result<Self, TargetError> {
        let endpoints = Endpoints::new(hosts, security)?;
        Ok(Self { root: Arc::new(Root { endpoints, prefix: format!("/kith/{cluster}/") }) })
    }
}

impl Root {
    fn key(&self, key: &str) -> Vec<u8> {
        format!("{}{key}", self.prefix).into_bytes()
    }

    /// Returns the end of the range of keys that a prefix covers. Keys that are set apart sort after all others.
    fn end(&self, prefix: &str) -> Vec<u8> {
        match prefix.is_empty() {
            true => self.key(&keys::APART.to_string()),
            false => range_end(&self.key(prefix)),
        }
    }

    async fn read(&self, prefix: &str) -> Result<Snapshot, MetadataError> {
        let key = self.key(prefix);
        let request = RangeRequest { range_end: self.end(prefix), key };
        let reply = self.endpoints.call(Repeat::Safe, |line| {
            let request = line.request(request.clone());
            async move { kv(&line).range(request).await }
        });
        let reply = reply.await?;
        let entries: Result<Vec<Entry>, _> = reply.kvs.into_iter().map(|kv| self.entry(kv)).collect();
        Ok(Snapshot { revision: revision_of(reply.header)?, entries: entries? })
    }

    fn entry(&self, kv: KeyValue) -> Result<Entry, MetadataError> {
        let key = String::from_utf8(kv.key).ok();
        let key = key.as_deref().and_then(|key| key.strip_prefix(&self.prefix));
        let Some(key) = key else {
            return Err(MetadataError::Refused {
                reason: format!("a key under {} is not one of Kith's: it is not valid text", self.prefix),
            });
        };
        Ok(Entry { key: key.to_owned(), value: kv.value, revision: kv.mod_revision.unsigned_abs() })
    }

    async fn commit(
        &self,
        conditions: Vec<Condition>,
        writes: Vec<Write>,
    ) -> Result<CommitOutcome, MetadataError> {
        let lease = writes.iter().find_map(|write| write.lease);
        let compare = conditions.into_iter().map(|condition| Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Mod.into(),
            key: self.key(&condition.key),
            // etcd uses 0 for a key that does not exist, as the trait does.
            target_union: Some(TargetUnion::ModRevision(signed(condition.revision))),
        });
        let success = writes.into_iter().map(|write| RequestOp { request: Some(self.operation(write)) });
        let request = TxnRequest { compare: compare.collect(), success: success.collect() };
        let reply = self.endpoints.call(Repeat::Never, |line| {
            let request = line.request(request.clone());
            async move { kv(&line).txn(request).await }
        });
        match reply.await {
            Ok(reply) if reply.succeeded => Ok(CommitOutcome::At(revision_of(reply.header)?)),
            Ok(_) => Ok(CommitOutcome::Conflict),
            Err(CallError::Refused(status)) if is_lease_gone(&status) => {
                Err(MetadataError::LeaseEnded(lease.map_or(0, |lease| lease.0)))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn operation(&self, write: Write) -> Op {
        let key = self.key(&write.key);
        match write.value {
            Some(value) => {
                let lease = write.lease.map_or(0, |lease| signed(lease.0));
                Op::RequestPut(PutRequest { key, value, lease })
            }
            None => Op::RequestDeleteRange(DeleteRangeRequest { key, range_end: Vec::new() }),
        }
    }

    async fn lease(&self, ttl: Duration) -> Result<LeaseId, MetadataError> {
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() != 0);
        let request = LeaseGrantRequest { ttl: signed(seconds).max(1), id: 0 };
        // If the lease is granted twice, the unused one expires.
        let reply = self.endpoints.call(Repeat::Safe, |line| {
            let request = line.request(request);
            async move { LeaseClient::new(line.channel).lease_grant(request).await }
        });
        let reply = reply.await?;
        if !reply.error.is_empty() {
            return Err(MetadataError::Refused { reason: reply.error });
        }
        Ok(LeaseId(reply.id.unsigned_abs()))
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<(), MetadataError> {
        let message = LeaseKeepAliveRequest { id: signed(lease.0) };
        let reply = self.endpoints.call(Repeat::Safe, |line| {
            let request = line.request(futures::stream::once(std::future::ready(message)));
            async move {
                let mut replies =
                    LeaseClient::new(line.channel).lease_keep_alive(request).await?.into_inner();
                let reply = replies.message().await?;
                let reply = reply.ok_or_else(|| Status::unavailable("etcd ended a keep-alive unanswered"))?;
                Ok(tonic::Response::new(reply))
            }
        });
        if reply.await?.ttl <= 0 { Err(MetadataError::LeaseEnded(lease.0)) } else { Ok(()) }
    }
}

impl MetadataStore for EtcdMetadata {
    fn read<'a>(&'a self, prefix: &'a str) -> MetadataFuture<'a, Snapshot> {
        self.root.read(prefix).boxed()
    }

    fn commit(&self, conditions: Vec<Condition>, writes: Vec<Write>) -> MetadataFuture<'_, CommitOutcome> {
        self.root.commit(conditions, writes).boxed()
    }

    fn watch(&self, prefix: &str, from_revision: u64) -> BoxStream<'static, Snapshot> {
        WatchState::new(Arc::clone(&self.root), prefix.to_owned(), from_revision).stream()
    }

    fn lease(&self, ttl: Duration) -> MetadataFuture<'_, LeaseId> {
        self.root.lease(ttl).boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> MetadataFuture<'_, ()> {
        self.root.keep_alive(lease).boxed()
    }
}

fn kv(line: &Line) -> KvClient<Channel> {
    KvClient::new(line.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

/// Returns the end of the range of keys that begin with `prefix`: the prefix with its last byte below 0xff incremented, and
/// the bytes after it removed.
fn range_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    // In etcd this stands for the end of all keys.
    vec![0]
}

fn revision_of(header: Option<ResponseHeader>) -> Result<u64, MetadataError> {
    let missing = || MetadataError::Refused { reason: "an answer of etcd lacks its header".to_owned() };
    header.map(|header| header.revision.unsigned_abs()).ok_or_else(missing)
}

fn is_lease_gone(status: &Status) -> bool {
    status.code() == Code::NotFound && status.message().contains("lease")
}

/// Converts a revision or lease id. In etcd they are positive `int64`s, so a larger number names nothing.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_a_prefix_and_nothing_else() {
        assert_eq!(range_end(b"/kith/c/"), b"/kith/c0");
        assert_eq!(range_end(b"a\xff\xff"), b"b");
        assert_eq!(range_end(b"\xff"), b"\0");
        assert_eq!(range_end(b""), b"\0");
    }

    #[test]
    fn secrets_stay_out_of_logs() {
        let user = Some(("kith".to_owned(), "hunter2".to_owned()));
        let identity = Some(("CERT".to_owned(), "PRIVATE".to_owned()));
        let text = format!("{:?}", Security { ca: None, identity, user });
        assert!(text.contains("kith") && !text.contains("hunter2") && !text.contains("PRIVATE"), "{text}");
    }
}
