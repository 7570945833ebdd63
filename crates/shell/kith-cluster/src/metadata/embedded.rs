//! The embedded store: an ordered map in memory, whose file is rewritten at each commit. Commits are rare (loads, restarts),
//! so rewriting a few kilobytes is the simplest way to be atomic.

use super::{
    CommitOutcome, Condition, Entry, LeaseId, MetadataError, MetadataFuture, MetadataStore, Snapshot, Write,
    covers,
};
use futures::{FutureExt, StreamExt, stream::BoxStream};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

/// The format of the file. Other formats are refused.
const FILE_FORMAT: u32 = 1;

/// The metadata of a cluster on one machine.
pub struct EmbeddedMetadata {
    shared: Arc<Shared>,
    /// The file; `None` keeps everything in memory, for tests and temporary clusters.
    file: Option<PathBuf>,
}

struct Shared {
    state: Mutex<State>,
    /// Publishes the latest revision to watchers.
    revision: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    revision: u64,
    entries: BTreeMap<String, Kept>,
    leases: BTreeMap<LeaseId, Lease>,
    lease_last: u64,
}

struct Kept {
    value: Vec<u8>,
    revision: u64,
    lease: Option<LeaseId>,
}

struct Lease {
    ttl: Duration,
    ends: Instant,
}

#[derive(Serialize, Deserialize)]
struct FileDocument {
    format: u32,
    revision: u64,
    entries: Vec<FileEntry>,
}

/// The member that the file has in every format.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

#[derive(Serialize, Deserialize)]
struct FileEntry {
    key: String,
    value: String,
    revision: u64,
}

impl EmbeddedMetadata {
    /// Returns a store that lives only in memory.
    pub fn in_memory() -> Self {
        Self::with_state(State::default(), None)
    }

    /// Opens the store in `file`, or creates an empty one.
    ///
    /// # Errors
    /// If the file exists but is not a metadata file that this release can read.
    pub fn open(file: &Path) -> Result<Self, MetadataError> {
        let damaged = |detail: String| MetadataError::Damaged { path: file.to_owned(), detail };
        let state = match fs::read(file) {
            Ok(bytes) => read_state(&bytes).map_err(damaged)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(damaged(error.to_string())),
        };
        Ok(Self::with_state(state, Some(file.to_owned())))
    }

    fn with_state(state: State, file: Option<PathBuf>) -> Self {
        let (revision, _) = watch::channel(state.revision);
        Self { shared: Arc::new(Shared { state: Mutex::new(state), revision }), file }
    }

    fn commit_now(
        &self,
        conditions: &[Condition],
        writes: Vec<Write>,
    ) -> Result<CommitOutcome, MetadataError> {
        let mut state = self.shared.lock();
        state.end_leases(Instant::now());
        if !conditions.iter().all(|condition| state.revision_of(&condition.key) == condition.revision) {
            return Ok(CommitOutcome::Conflict);
        }
        if let Some(lease) =
            writes.iter().filter_map(|write| write.lease).find(|id| !state.leases.contains_key(id))
        {
            return Err(MetadataError::LeaseEnded(lease.0));
        }
        let revision = state.revision + 1;
        if let Some(file) = &self.file
            && writes.iter().any(|write| write.lease.is_none())
        {
            write_file(file, &state.file_document(revision, &writes))
                .map_err(|source| MetadataError::Write { path: file.clone(), source })?;
        }
        state.apply(revision, writes);
        drop(state);
        self.shared.revision.send_replace(revision);
        Ok(CommitOutcome::At(revision))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn snapshot(&self, prefix: &str) -> Snapshot {
        let mut state = self.lock();
        if state.end_leases(Instant::now()) {
            self.revision.send_replace(state.revision);
        }
        let entries = state.entries.range(prefix.to_owned()..).take_while(|(key, _)| covers(prefix, key));
        let entries = entries
            .map(|(key, kept)| Entry { key: key.clone(), value: kept.value.clone(), revision: kept.revision })
            .collect();
        Snapshot { revision: state.revision, entries }
    }
}

impl State {
    fn revision_of(&self, key: &str) -> u64 {
        self.entries.get(key).map_or(0, |kept| kept.revision)
    }

    fn apply(&mut self, revision: u64, writes: Vec<Write>) {
        self.revision = revision;
        for write in writes {
            match write.value {
                Some(value) => self.entries.insert(write.key, Kept { value, revision, lease: write.lease }),
                None => self.entries.remove(&write.key),
            };
        }
    }

    /// Drops ended leases with their keys. Returns whether any key was dropped.
    fn end_leases(&mut self, now: Instant) -> bool {
        self.leases.retain(|_, lease| now < lease.ends);
        let before = self.entries.len();
        let leases = &self.leases;
        self.entries.retain(|_, kept| kept.lease.is_none_or(|id| leases.contains_key(&id)));
        let changed = self.entries.len() < before;
        self.revision += u64::from(changed);
        changed
    }

    /// Returns the file's content after applying `writes` at `revision`.
    fn file_document(&self, revision: u64, writes: &[Write]) -> FileDocument {
        let mut kept: BTreeMap<&str, (&[u8], u64)> = self
            .entries
            .iter()
            .filter(|(_, kept)| kept.lease.is_none())
            .map(|(key, kept)| (key.as_str(), (kept.value.as_slice(), kept.revision)))
            .collect();
        for write in writes.iter().filter(|write| write.lease.is_none()) {
            match &write.value {
                Some(value) => kept.insert(&write.key, (value, revision)),
                None => kept.remove(write.key.as_str()),
            };
        }
        let entries = kept
            .into_iter()
            .map(|(key, (value, revision))| FileEntry {
                key: key.to_owned(),
                value: String::from_utf8_lossy(value).into_owned(),
                revision,
            })
            .collect();
        FileDocument { format: FILE_FORMAT, revision, entries }
    }
}

fn read_state(bytes: &[u8]) -> Result<State, String> {
    let AnyFormat { format } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if format != FILE_FORMAT {
        return Err(format!("it has format {format}, this release reads format {FILE_FORMAT}"));
    }
    let document: FileDocument = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let entries = document.entries.into_iter().map(|entry| {
        (entry.key, Kept { value: entry.value.into_bytes(), revision: entry.revision, lease: None })
    });
    Ok(State { revision: document.revision, entries: entries.collect(), ..State::default() })
}

/// Writes to a staged file, syncs and renames it, and syncs the folder, so that the file is always complete.
fn write_file(file: &Path, document: &FileDocument) -> std::io::Result<()> {
    let staged = file.with_extension("json.staged");
    let mut out = fs::File::create(&staged)?;
    out.write_all(&serde_json::to_vec_pretty(document)?)?;
    out.sync_all()?;
    fs::rename(&staged, file)?;
    match file.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

impl MetadataStore for EmbeddedMetadata {
    fn read<'a>(&'a self, prefix: &'a str) -> MetadataFuture<'a, Snapshot> {
        async move { Ok(self.shared.snapshot(prefix)) }.boxed()
    }

    fn commit(&self, conditions: Vec<Condition>, writes: Vec<Write>) -> MetadataFuture<'_, CommitOutcome> {
        async move { self.commit_now(&conditions, writes) }.boxed()
    }

    fn watch(&self, prefix: &str, from_revision: u64) -> BoxStream<'static, Snapshot> {
        let (shared, prefix) = (Arc::clone(&self.shared), prefix.to_owned());
        WatchStream::new(self.shared.revision.subscribe())
            .filter(move |&revision| futures::future::ready(from_revision < revision))
            .map(move |_| shared.snapshot(&prefix))
            .boxed()
    }

    fn lease(&self, ttl: Duration) -> MetadataFuture<'_, LeaseId> {
        let mut state = self.shared.lock();
        state.lease_last += 1;
        let id = LeaseId(state.lease_last);
        state.leases.insert(id, Lease { ttl, ends: Instant::now() + ttl });
        futures::future::ready(Ok(id)).boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> MetadataFuture<'_, ()> {
        let now = Instant::now();
        let mut state = self.shared.lock();
        if state.end_leases(now) {
            self.shared.revision.send_replace(state.revision);
        }
        let kept = match state.leases.get_mut(&lease) {
            Some(kept) => {
                kept.ends = now + kept.ttl;
                Ok(())
            }
            None => Err(MetadataError::LeaseEnded(lease.0)),
        };
        futures::future::ready(kept).boxed()
    }
}
