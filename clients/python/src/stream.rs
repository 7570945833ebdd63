//! Streams: pieces of a batch as they arrive, and then the footer that accounts for every key.

use crate::{
    answered::Values,
    batch::Batch,
    call::{self, Call, reply},
    footer::stream_footer,
    keys::Keys,
    shared::SharedConnection,
};
use futures::StreamExt;
use kith_client::{ComputeQuery, QueryError, QueryOptions, StreamFooter, StreamItem};
use kith_schema::{Schema, ValueType};
use pyo3::{IntoPyObjectExt, exceptions::PyRuntimeError, prelude::*};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};
use tokio::{
    sync::{Mutex, mpsc},
    task::AbortHandle,
};

/// The number of pieces that are ready for the reader. Each layer below holds one more; the rest stays on the nodes.
const PIECES_AHEAD: usize = 1;

/// A piece of the answer, or the footer at the end.
enum Taken {
    Piece(Batch),
    Footer(Box<StreamFooter>),
}

type Item = Result<Taken, QueryError>;

/// A read in progress, in a task of its own. The task ends when the stream is closed or dropped.
#[pyclass(frozen, module = "kith._kith")]
pub struct Stream {
    /// The items from the task. A caller that waits for an item holds the lock.
    items: Arc<Mutex<mpsc::Receiver<Item>>>,
    end: Arc<End>,
    task: AbortHandle,
}

/// The end of a stream.
#[derive(Default)]
struct End {
    /// The footer, which is set once when the last item is taken.
    footer: OnceLock<Box<StreamFooter>>,
    is_closed: AtomicBool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream {
    /// Begins to read `keys`, or to execute `query` over their records.
    ///
    /// # Errors
    /// `RuntimeError` in a child process that was forked after the first use.
    pub fn begin(
        shared: Arc<SharedConnection>,
        store: String,
        keys: Keys,
        query: Option<ComputeQuery>,
        options: QueryOptions,
    ) -> PyResult<Self> {
        let (sender, items) = mpsc::channel(PIECES_AHEAD);
        let task = call::spawn(async move {
            let keys = Arc::new(keys);
            if let Err(error) = read(&shared, &store, &keys, query.as_ref(), &options, &sender).await {
                // The store may have been replaced. If the reader is gone, nobody needs the error.
                shared.forget(&store);
                let _ = sender.send(Err(error)).await;
            }
        })?;
        Ok(Self { items: Arc::new(Mutex::new(items)), end: Arc::default(), task })
    }
}

#[pymethods]
impl Stream {
    /// The next `Batch`, with the entries of some keys; `None` after the last one.
    fn next(&self) -> Call {
        let (items, end) = (Arc::clone(&self.items), Arc::clone(&self.end));
        Call::new(async move {
            let piece = match end.is_closed.load(Ordering::Acquire) {
                true => None,
                false => {
                    let mut items = items.lock().await;
                    match items.recv().await.transpose()? {
                        Some(Taken::Piece(piece)) => Some(piece),
                        Some(Taken::Footer(footer)) => {
                            // The footer is set while the lock is held, because several threads may share a stream.
                            let _ = end.footer.set(footer);
                            None
                        }
                        None => None,
                    }
                }
            };
            reply(move |py| match piece {
                Some(piece) => piece.into_py_any(py),
                None if end.footer.get().is_some() => Ok(py.None()),
                None => Err(PyRuntimeError::new_err(
                    "this stream has ended without its footer, because it was closed, its loop was left, a wait for it was \
                     cancelled, or it failed; keys that have not arrived have no answer, so send the request again",
                )),
            })
        })
    }

    /// Ends the read if it has not ended yet.
    fn close(&self) {
        self.end.is_closed.store(true, Ordering::Release);
        self.task.abort();
    }

    /// The counts for all keys: `kith.StreamFooter`; `None` until the stream has ended.
    #[getter]
    fn footer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.end.footer.get().map(|footer| stream_footer(py, footer)).transpose()
    }
}

/// Reads pieces and the footer, and passes them on as fast as the reader takes them.
async fn read(
    shared: &SharedConnection,
    store: &str,
    keys: &Arc<Keys>,
    query: Option<&ComputeQuery>,
    options: &QueryOptions,
    sender: &mpsc::Sender<Item>,
) -> Result<(), QueryError> {
    let value = shared.shape(store).await?.value;
    let mut items = match query {
        None => shared.service().multi_get_stream(store, &keys.batch, options),
        Some(query) => shared.service().read_compute_stream(store, &keys.batch, query, options),
    };
    let mut values = Arc::new(Values::Plain(value));
    while let Ok(room) = sender.reserve().await {
        let taken = match items.next().await.transpose()? {
            None => break,
            Some(StreamItem::Footer(footer)) => Taken::Footer(footer),
            Some(StreamItem::Piece(piece)) => {
                if let (Values::Plain(ValueType::Record), Some(id)) = (values.as_ref(), piece.schema) {
                    // A single version answers, so its schema applies to all pieces.
                    let schema = match &piece.result {
                        Some(result) => Schema::clone(result),
                        None => shared.service().schema(store, piece.version, id).await?,
                    };
                    values = Arc::new(Values::Records(schema));
                }
                Taken::Piece(Batch::piece(store, keys, &values, piece))
            }
        };
        room.send(Ok(taken));
    }
    Ok(())
}
