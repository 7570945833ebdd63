//! The client: what `kith.Client` and `kith.aio.Client` ask through.

use crate::{
    batch::{Batch, Values, footer},
    call::{Call, Ended, Reply},
    graph,
    keys::Keys,
    options::options,
    plan::{self, Plan},
    security::{self, Files},
    stream::Stream,
    value,
};
use kith_client::{
    AggregateQuery, Failover, QueryError, QueryOptions, Service, Session, SessionSettings, StoreShape,
    TransportKind,
};
use kith_schema::{ValueType, compute::GroupBy};
use parking_lot::{Mutex, MutexGuard};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyList},
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long what a router said of a store's types holds: they change only if the store is dropped and made anew.
const SHAPE_AGE_MAX: Duration = Duration::from_secs(10);
/// More stores than a program reads; beyond, all are asked about anew.
const SHAPES_MAX: usize = 1_024;

/// Connections to one cluster.
#[pyclass(frozen, module = "kith._kith")]
pub struct Client {
    shared: Arc<Shared>,
}

/// What all questions of a client go through, also those that outlive it.
pub struct Shared {
    service: Box<dyn Service>,
    /// By store, and since when it is known.
    shapes: Mutex<HashMap<String, (Instant, StoreShape)>>,
}

/// Connects to the first of `addresses` that answers: to routers, or with `direct` to the nodes behind any of them; over TLS if
/// `files` (authorities, certificate, key, token) say so.
#[pyo3::pyfunction]
#[pyo3(signature = (addresses, direct, transport, files))]
pub fn connect(
    py: Python<'_>,
    addresses: Vec<String>,
    direct: bool,
    transport: &str,
    files: Files,
) -> PyResult<Call> {
    let transport = match transport {
        "framed" => TransportKind::Framed,
        "framed-tcp" => TransportKind::FramedTcp,
        "grpc" => TransportKind::Grpc,
        other => return Err(crate::options::wrong("transport", other, "framed, framed-tcp or grpc")),
    };
    let secured = py.detach(|| security::open(files))?;
    Ok(Call::new(async move {
        let dialer = secured.dialer.clone();
        let service: Box<dyn Service> = if direct {
            let settings = SessionSettings { transport, dialer, ..SessionSettings::default() };
            Box::new(Session::connect(addresses, settings).await?)
        } else {
            Box::new(Failover::connect_by(addresses, transport, dialer).await?)
        };
        let shared = Arc::new(Shared { service, shapes: Mutex::default() });
        secured.follow(Arc::downgrade(&shared));
        reply(move |py| Client { shared }.into_py_any(py))
    }))
}

#[pymethods]
impl Client {
    /// Reads keys of a store: a `Batch`.
    #[pyo3(signature = (store, keys, given=None))]
    fn multi_get(
        &self,
        store: String,
        keys: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.read(store, Keys::of(keys)?, options(given)?)
    }

    /// Begins to read keys of a store whose records are handed on as they arrive.
    #[pyo3(signature = (store, keys, given=None))]
    fn stream(
        &self,
        store: String,
        keys: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        Stream::begin(Arc::clone(&self.shared), store, Keys::of(keys)?, None, options(given)?)
    }

    /// Begins to work out a plan, without `top_k`, over the records of keys, and hands results on as they arrive.
    #[pyo3(signature = (store, plan, keys, given=None))]
    fn compute_stream(
        &self,
        store: String,
        plan: &Plan,
        keys: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        let query = plan.query();
        if query.plan.top_k.is_some() {
            return Err(PyTypeError::new_err(
                "a plan with top_k has no stream: which records are the best is known when all are there; execute it",
            ));
        }
        Stream::begin(Arc::clone(&self.shared), store, Keys::of(keys)?, Some(query), options(given)?)
    }

    /// Reads one key: a `Batch` of one.
    #[pyo3(signature = (store, key, given=None))]
    fn get(
        &self,
        store: String,
        key: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.read(store, Keys::one(key)?, options(given)?)
    }

    /// What a plan makes of the records of keys: a `Batch`, best first if the plan wants the best.
    #[pyo3(signature = (store, plan, keys, given=None))]
    fn compute(
        &self,
        store: String,
        plan: &Plan,
        keys: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        let (shared, keys, options) = (Arc::clone(&self.shared), Keys::of(keys)?, options(given)?);
        let query = plan.query();
        Ok(Call::new(async move {
            let computed = shared.service.read_compute(&store, &keys.batch, &query, &options).await?;
            let batch =
                Batch::new(store, keys, Values::Records(computed.result), computed.answer, computed.best);
            reply(move |py| batch.into_py_any(py))
        }))
    }

    /// Counts values of a field over the records of keys: `([(value or bucket, count)], distinct or None, truncated, footer)`.
    #[pyo3(signature = (store, field, keys, top=None, buckets=None, at="nodes", given=None))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn aggregate(
        &self,
        store: String,
        field: String,
        keys: &Bound<'_, PyAny>,
        top: Option<u32>,
        buckets: Option<&Bound<'_, PyDict>>,
        at: &str,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        let (shared, keys, options) = (Arc::clone(&self.shared), Keys::of(keys)?, options(given)?);
        let query = AggregateQuery { plan: plan::aggregate(field, top, buckets)?, at: plan::at(at)? };
        Ok(Call::new(async move { counted(&shared, &store, &keys, &query, &options).await }))
    }

    /// Asks a graph; operations and fields as in `docs/queries.md`.
    #[pyo3(signature = (name, op, fields, given=None))]
    fn graph(
        &self,
        name: String,
        op: &str,
        fields: &Bound<'_, PyDict>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        let (shared, options) = (Arc::clone(&self.shared), options(given)?);
        if options.partial {
            return Err(PyTypeError::new_err(
                "answers of graphs are whole: `partial` goes with reads by key",
            ));
        }
        let query = graph::question(op, fields, options.workflow)?;
        Ok(Call::new(async move {
            let answered = shared.service.query(&name, &query, &options).await?;
            reply(move |py| graph::answer(py, answered.answer))
        }))
    }

    /// What the keys and values of a store are: `(key type, value type)`.
    fn shape(&self, store: String) -> Call {
        let shared = Arc::clone(&self.shared);
        Call::new(async move {
            let shape = shared.service.shape(&store).await?;
            reply(move |py| (shape.key.name(), shape.value.name()).into_py_any(py))
        })
    }
}

impl Client {
    fn read(&self, store: String, keys: Keys, options: QueryOptions) -> PyResult<Call> {
        let shared = Arc::clone(&self.shared);
        Ok(Call::new(async move {
            let read = read(&shared, &store, &keys, &options).await;
            if read.is_err() {
                shared.forget(&store);
            }
            let (answer, values) = read?;
            let batch = Batch::new(store, keys, values, answer, None);
            reply(move |py| batch.into_py_any(py))
        }))
    }
}

async fn read(
    shared: &Shared,
    store: &str,
    keys: &Keys,
    options: &QueryOptions,
) -> Result<(kith_client::BatchAnswer, Values), QueryError> {
    let value = shared.shape(store).await?.value;
    let answer = shared.service.multi_get(store, &keys.batch, options).await?;
    let values = match (value, answer.schema, answer.served.first()) {
        (ValueType::Record, Some(id), Some((_, version))) => {
            match shared.service.schema(store, *version, id).await {
                Ok(schema) => Values::Records(schema),
                // There is nothing to decode by it: what is not there is known all the same.
                Err(_) if answer.counts().found == 0 => Values::Plain(value),
                Err(error) => return Err(error),
            }
        }
        _ => Values::Plain(value),
    };
    Ok((answer, values))
}

async fn counted(
    shared: &Shared,
    store: &str,
    keys: &Keys,
    query: &AggregateQuery,
    options: &QueryOptions,
) -> Ended {
    let answer = shared.service.read_aggregate(store, &keys.batch, query, options).await?;
    let query = query.clone();
    reply(move |py| {
        let counts = PyList::empty(py);
        let mut distinct = None;
        match &query.plan.by {
            GroupBy::Bucket(buckets) => {
                for (bucket, count) in buckets.iter().zip(&answer.counts) {
                    counts.append((bucket.name.as_str(), *count))?;
                }
            }
            GroupBy::Value { .. } => {
                distinct = Some(answer.counts.len());
                let mut outcome = Ok(());
                let top = answer.top(&query.plan, |value, count| {
                    let appended = value::scalar(py, value).and_then(|value| counts.append((value, count)));
                    if outcome.is_ok() {
                        outcome = appended;
                    }
                });
                top.map_err(|error| crate::error::raised(&error))?;
                outcome?;
            }
        }
        let versions: Vec<u64> = answer.answer.served.iter().map(|(_, version)| *version).collect();
        let footer = footer(py, &answer.answer.records, &versions, &answer.answer.missing_partitions)?;
        (counts, distinct, answer.truncated, footer).into_py_any(py)
    })
}

impl Shared {
    /// Whom to ask.
    pub fn service(&self) -> &dyn Service {
        self.service.as_ref()
    }

    /// What a store's keys and values are, as a router said lately.
    ///
    /// # Errors
    /// If there is no such store, or nobody answers.
    pub async fn shape(&self, store: &str) -> Result<StoreShape, QueryError> {
        let known = self.lock().get(store).copied();
        if let Some((_, shape)) = known.filter(|(since, _)| since.elapsed() < SHAPE_AGE_MAX) {
            return Ok(shape);
        }
        let shape = self.service.shape(store).await?;
        let mut shapes = self.lock();
        if SHAPES_MAX <= shapes.len() {
            shapes.clear();
        }
        shapes.insert(store.to_owned(), (Instant::now(), shape));
        Ok(shape)
    }

    /// Whatever failed, the store may be another one by now.
    pub fn forget(&self, store: &str) {
        self.lock().remove(store);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, StoreShape)>> {
        self.shapes.lock()
    }
}

/// What makes the answer's Python objects.
pub fn reply(make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static) -> Ended {
    let make: Reply = Box::new(make);
    Ok(make)
}
