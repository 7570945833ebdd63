//! The graphs of a database process: a folder with one SQLite file per graph.

use crate::{Database, DatabaseError, GraphIdentity, SCHEMA_VERSION, SqliteDatabase, SqliteOptions};
use kith_types::check_store_name;
use parking_lot::RwLock;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{sync::Mutex, task::spawn_blocking};

/// The suffix of a graph's file, after the name of the graph. SQLite keeps two further files next to it.
const SUFFIX: &str = ".sqlite";
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];
/// The suffix that is added to a file when it is renamed for removal.
const DROPPED: &str = ".dropped";

/// The graphs in a folder. Each graph is opened when it is first used.
pub struct GraphFiles {
    folder: PathBuf,
    options: SqliteOptions,
    open: RwLock<BTreeMap<String, Arc<SqliteDatabase>>>,
    /// The lock that is held while files are created, opened or removed. It is true once everything is closed.
    closed: Mutex<bool>,
}

/// The database of a graph that is open.
type OpenedFile = Result<Arc<SqliteDatabase>, DatabaseError>;

impl GraphFiles {
    /// Returns the graphs in `folder`, which must exist. Finishes removals that were interrupted. Blocks.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file cannot be removed.
    pub fn new(folder: PathBuf, options: SqliteOptions) -> io::Result<Self> {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(&format!("{SUFFIX}{DROPPED}")) {
                fs::remove_file(&path)?;
            }
        }
        Ok(Self { folder, options, open: RwLock::default(), closed: Mutex::new(false) })
    }

    /// Creates a graph. Does nothing if it exists.
    pub(super) async fn create(&self, name: &str, identity: GraphIdentity) -> Result<(), DatabaseError> {
        let closed = self.closed.lock().await;
        check_open(*closed)?;
        if self.known(name, identity)?.is_some() {
            return Ok(());
        }
        let (file, options) = (self.file(name)?, self.options);
        let created = blocking(move || SqliteDatabase::create(&file, identity, options)).await?;
        self.open.write().insert(name.to_owned(), Arc::new(created));
        Ok(())
    }

    /// Returns the database of a graph, and opens it if necessary.
    pub(super) async fn get(&self, name: &str, identity: GraphIdentity) -> OpenedFile {
        if let Some(known) = self.known(name, identity)? {
            return Ok(known);
        }
        let closed = self.closed.lock().await;
        check_open(*closed)?;
        self.opened(name, identity).await
    }

    /// Removes a graph. Does nothing if it does not exist.
    pub(super) async fn remove(&self, name: &str, identity: GraphIdentity) -> Result<(), DatabaseError> {
        let closed = self.closed.lock().await;
        check_open(*closed)?;
        let database = match self.opened(name, identity).await {
            Err(DatabaseError::NoGraph { .. }) => return Ok(()),
            opened => opened?,
        };
        self.open.write().remove(name);
        database.close().await;
        let (file, folder) = (self.file(name)?, self.folder.clone());
        blocking(move || {
            remove_file(&file, &folder).map_err(|error| DatabaseError::unavailable(error.to_string()))
        })
        .await
    }

    /// Waits for transactions under way, and closes all files. Later calls fail as unavailable.
    pub async fn close(&self) {
        *self.closed.lock().await = true;
        let open = std::mem::take(&mut *self.open.write());
        for database in open.into_values() {
            database.close().await;
        }
    }

    /// Returns the database of a graph if it is open. Returns an error if it has another identity.
    fn known(
        &self,
        name: &str,
        identity: GraphIdentity,
    ) -> Result<Option<Arc<SqliteDatabase>>, DatabaseError> {
        let Some(known) = self.open.read().get(name).cloned() else { return Ok(None) };
        let found = known.identity();
        identity.check(SCHEMA_VERSION, found.graph, found.partitions.get().into())?;
        Ok(Some(known))
    }

    /// Returns the database of a graph, and opens it if necessary. The caller must hold [`GraphFiles::closed`].
    async fn opened(&self, name: &str, identity: GraphIdentity) -> OpenedFile {
        if let Some(known) = self.known(name, identity)? {
            return Ok(known);
        }
        let (file, options) = (self.file(name)?, self.options);
        let opened = Arc::new(blocking(move || SqliteDatabase::open(&file, identity, options)).await?);
        self.open.write().insert(name.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    fn file(&self, name: &str) -> Result<PathBuf, DatabaseError> {
        check_store_name(name).map_err(|error| DatabaseError::Invalid { detail: error.to_string() })?;
        Ok(self.folder.join(format!("{name}{SUFFIX}")))
    }
}

fn check_open(closed: bool) -> Result<(), DatabaseError> {
    if closed { Err(DatabaseError::unavailable("the process is ending")) } else { Ok(()) }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T, DatabaseError> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(DatabaseError::unavailable("the process is ending")))
}

/// Removes a file. The removal is decided once the file is renamed; it is completed after a restart if necessary.
fn remove_file(file: &Path, folder: &Path) -> io::Result<()> {
    let with = |end: &str| PathBuf::from(format!("{}{end}", file.display()));
    let dropped = with(DROPPED);
    fs::rename(file, &dropped)?;
    fs::File::open(folder)?.sync_all()?;
    // These files exist only if the database could not be closed cleanly. A new file of the same name ignores them.
    for companion in COMPANIONS {
        match fs::remove_file(with(companion)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_file(dropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::PartitionCount;

    fn identity(graph: u64) -> GraphIdentity {
        GraphIdentity { graph, partitions: PartitionCount::new(2).unwrap() }
    }

    fn files(folder: &Path) -> GraphFiles {
        GraphFiles::new(folder.to_owned(), SqliteOptions::default()).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_graph_is_created_once_and_another_one_of_its_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = files(folder.path());
        assert!(matches!(first.get("people", identity(1)).await, Err(DatabaseError::NoGraph { .. })));
        first.create("people", identity(1)).await.unwrap();
        first.create("people", identity(1)).await.unwrap();
        let other = Err(DatabaseError::OtherGraph { found: 1, expected: 2 });
        assert_eq!(first.create("people", identity(2)).await, other);
        first.close().await;
        assert_eq!(names(folder.path()), ["people.sqlite"]);
        let second = files(folder.path());
        assert_eq!(second.get("people", identity(2)).await.map(|_| ()), other);
        assert!(second.get("people", identity(1)).await.is_ok());
        assert_eq!(second.remove("people", identity(2)).await, other);
    }

    #[tokio::test]
    async fn a_removed_graph_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let graphs = files(folder.path());
        graphs.create("people", identity(1)).await.unwrap();
        let used = graphs.get("people", identity(1)).await.unwrap();
        graphs.remove("people", identity(1)).await.unwrap();
        graphs.remove("people", identity(1)).await.unwrap();
        let late = used.points(vec![]).await;
        assert!(matches!(late, Err(DatabaseError::Unavailable { .. })), "{late:?}");
        assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
        graphs.create("people", identity(2)).await.unwrap();
        fs::write(folder.path().join("pages.sqlite.dropped"), "half removed").unwrap();
        graphs.close().await;
        drop(files(folder.path()));
        assert_eq!(names(folder.path()), ["people.sqlite"]);
    }

    #[tokio::test]
    async fn a_name_stays_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let graphs = files(folder.path());
        for name in ["", "../people", "/people", "a/b", ".people"] {
            let refused = graphs.create(name, identity(1)).await;
            assert!(matches!(refused, Err(DatabaseError::Invalid { .. })), "{name}: {refused:?}");
        }
        graphs.close().await;
        let ended = graphs.create("people", identity(1)).await;
        assert!(matches!(ended, Err(DatabaseError::Unavailable { .. })), "{ended:?}");
    }
}
