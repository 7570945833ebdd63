//! Blocking access to an object store.

#[cfg(feature = "cloud")]
use crate::objects::clients::client;
use crate::objects::listed::ListedObject;
use crate::objects::{Access, Location, ObjectsError};
use futures::{StreamExt, TryStreamExt};
use kith_engine::MANIFEST_NAME;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use url::Url;

/// The number of objects that are removed at a time.
const REMOVALS: usize = 16;

/// A prefix of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) prefix: Path,
    location: Location,
    access: Arc<Access>,
}

impl Remote {
    pub(crate) fn open(location: &Location, url: &Url, access: &Access) -> Result<Self, ObjectsError> {
        let failed =
            |source| ObjectsError::Settings { location: location.to_string(), source: Box::new(source) };
        let store = client(url, access).map_err(failed)?;
        let prefix = Path::from_url_path(url.path()).map_err(|error| failed(error.into()))?;
        Ok(Self { store, prefix, location: location.clone(), access: Arc::new(access.clone()) })
    }

    pub(crate) fn join(&self, name: &str) -> Self {
        let prefix = self.at(name);
        Self { prefix, location: self.location.join(name), ..self.clone() }
    }

    /// See [`crate::objects::Objects::repeating_for`].
    pub(crate) fn repeating_for(&self, timeout: Duration) -> Self {
        let Location::Bucket(url) = &self.location else { return self.clone() };
        let access = Access { retry_for: timeout.min(self.access.retry_for), ..Access::clone(&self.access) };
        // The settings worked for the first client, so they also work for this one.
        client(url, &access).map_or_else(|_| self.clone(), |store| Self { store, ..self.clone() })
    }

    /// Whether both are prefixes of one bucket.
    pub(crate) fn is_of_store(&self, other: &Self) -> bool {
        let bucket = |remote: &Self| match &remote.location {
            Location::Bucket(url) => Some((url.scheme().to_owned(), url.host_str()?.to_owned())),
            Location::Folder(_) => None,
        };
        bucket(self).is_some() && bucket(self) == bucket(other)
    }

    /// Returns the place that contains this one.
    pub(crate) fn around(&self, location: &Location) -> Self {
        let mut parts: Vec<_> = self.prefix.parts().collect();
        parts.pop();
        let prefix = Path::from_iter(parts);
        Self { prefix, location: location.clone(), ..self.clone() }
    }

    /// Returns the path of an object below the prefix.
    pub(crate) fn at(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Returns the name of an object below the prefix for messages.
    pub(crate) fn named(&self, name: &str) -> String {
        self.location.join(name).to_string()
    }

    /// See [`kith_engine::Source::read`].
    pub(crate) fn read(&self, name: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectsError> {
        if into.is_empty() {
            return Ok(0);
        }
        block_on(async {
            match self.read_range(name, offset, into).await {
                // A range that begins after the end is an error of the store, but means here that there is nothing to
                // read.
                Err(error)
                    if error.is_out_of_range() && self.size(name).await.is_ok_and(|size| size <= offset) =>
                {
                    Ok(0)
                }
                other => other,
            }
        })
    }

    async fn read_range(&self, name: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectsError> {
        let failed = |error| ObjectsError::of(self.named(name), error);
        let range = GetRange::Bounded(offset..offset.saturating_add(into.len() as u64));
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        let answer = self.store.get_opts(&self.at(name), options).await.map_err(failed)?;
        let expected =
            into.len().min(usize::try_from(answer.meta.size.saturating_sub(offset)).unwrap_or(usize::MAX));
        let mut stream = answer.into_stream();
        let mut done = 0;
        while let Some(piece) = stream.try_next().await.map_err(failed)? {
            let Some(index) = into[..expected].get_mut(done..done + piece.len()) else {
                return Err(
                    self.odd(name, format!("more than {expected} bytes arrived from offset {offset}"))
                );
            };
            index.copy_from_slice(&piece);
            done += piece.len();
        }
        if done < expected {
            return Err(
                self.odd(name, format!("only {done} of {expected} bytes arrived from offset {offset}"))
            );
        }
        Ok(done)
    }

    /// Returns the error for an answer that does not match the request.
    fn odd(&self, name: &str, what: String) -> ObjectsError {
        ObjectsError::Failed { object: self.named(name), source: what.into() }
    }

    pub(crate) async fn size(&self, name: &str) -> Result<u64, ObjectsError> {
        let meta = self.store.head(&self.at(name)).await;
        meta.map(|meta| meta.size).map_err(|error| ObjectsError::of(self.named(name), error))
    }

    pub(crate) fn list(&self) -> Result<Vec<ListedObject>, ObjectsError> {
        let failed = |error| ObjectsError::of(self.location.to_string(), error);
        block_on(async {
            let listed = self.store.list(Some(&self.prefix)).map_err(failed);
            let listed = listed.try_filter_map(async |meta| {
                let name = self.relative(&meta.location);
                Ok(name.map(|name| ListedObject {
                    name,
                    bytes: meta.size,
                    modified: meta.last_modified.into(),
                }))
            });
            listed.try_collect().await
        })
    }

    pub(crate) fn children(&self) -> Result<BTreeSet<String>, ObjectsError> {
        let failed = |error| ObjectsError::of(self.location.to_string(), error);
        let listed = block_on(self.store.list_with_delimiter(Some(&self.prefix))).map_err(failed)?;
        let objects = listed.objects.iter().map(|meta| &meta.location);
        Ok(listed.common_prefixes.iter().chain(objects).filter_map(|path| self.relative(path)).collect())
    }

    fn relative(&self, path: &Path) -> Option<String> {
        let parts: Vec<_> = path.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
        Some(parts.join("/")).filter(|name| !name.is_empty())
    }

    pub(crate) fn remove_all(&self) -> Result<(), ObjectsError> {
        let listed = self.list()?;
        let (manifests, others): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|listed| listed.name.rsplit('/').next() == Some(MANIFEST_NAME));
        for names in [manifests, others] {
            let removals = futures::stream::iter(names).map(async |listed| {
                match self.store.delete(&self.at(&listed.name)).await {
                    Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
                    Err(error) => Err(ObjectsError::of(self.named(&listed.name), error)),
                }
            });
            block_on(removals.buffer_unordered(REMOVALS).try_for_each(async |()| Ok(())))?;
        }
        Ok(())
    }
}

/// Refuses, because this program was built without clients.
#[cfg(not(feature = "cloud"))]
fn client(_url: &Url, _access: &Access) -> object_store::Result<Arc<dyn ObjectStore>> {
    let source = "this program was built without object stores; `make build` builds one that has them".into();
    Err(object_store::Error::NotSupported { source })
}

/// Waits for a future on a small runtime of this crate. Callers are blocking threads of fetches, builds and commands,
/// with or without a surrounding runtime. A surrounding multi-threaded runtime continues its other tasks meanwhile. A
/// surrounding single-threaded runtime could not, so the call panics there.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    // Behind a pointer, the code of the runtime is compiled once for each type of result, not for each future.
    let future: Pin<&mut dyn Future<Output = T>> = pin!(future);
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("object-store").enable_all().build();
        runtime.expect("two threads can be started")
    });
    match Handle::try_current().map(|around| around.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(|| runtime.block_on(future)),
        _ => runtime.block_on(future),
    }
}
