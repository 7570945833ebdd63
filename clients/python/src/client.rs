//! The connection behind `kith.Client` and `kith.aio.Client`.

use crate::{
    answered::Values,
    ask::{counted, read},
    batch::Batch,
    call::{Call, reply},
    fields::Fields,
    graph,
    keys::Keys,
    live,
    options::options,
    plan::{self, Plan},
    security::{self, Files},
    shared::SharedConnection,
    stream::Stream,
    to_python,
};
use kith_client::{AggregateQuery, ComputeAt, Failover, QueryOptions, Service, TransportKind};
use kith_live::Mutation;
use kith_schema::compute::AggregatePlan;
use kith_session::{Session, SessionSettings};
use pyo3::{IntoPyObjectExt, exceptions::PyTypeError, prelude::*, types::PyDict};
use std::sync::Arc;

/// Connections to one cluster.
#[pyclass(frozen, module = "kith._kith")]
pub struct Client {
    shared: Arc<SharedConnection>,
}

/// Connects to the first of the router `addresses` that answers, or with `direct` to the nodes behind them. `files` are the
/// authorities, certificate, key and token; with them, connections use TLS.
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
        let shared = Arc::new(SharedConnection::new(service));
        secured.follow(Arc::downgrade(&shared));
        reply(move |py| Client { shared }.into_py_any(py))
    }))
}

#[pymethods]
impl Client {
    /// Reads keys of a store. The answer is a `Batch`.
    #[pyo3(signature = (store, keys, given=None))]
    fn multi_get(
        &self,
        store: String,
        keys: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.read(store, Keys::of(keys)?, options(given)?)
    }

    /// Begins to read keys of a store, and passes records on as they arrive.
    #[pyo3(signature = (store, keys, given=None))]
    fn stream(
        &self,
        store: String,
        keys: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Stream> {
        Stream::begin(Arc::clone(&self.shared), store, Keys::of(keys)?, None, options(given)?)
    }

    /// Begins to execute a plan without `top_k` over the records of keys, and passes results on as they arrive.
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
                "a plan with top_k cannot be streamed, because the best records are known only at the end; use `execute`",
            ));
        }
        Stream::begin(Arc::clone(&self.shared), store, Keys::of(keys)?, Some(query), options(given)?)
    }

    /// Reads one key. The answer is a `Batch` with one entry.
    #[pyo3(signature = (store, key, given=None))]
    fn get(
        &self,
        store: String,
        key: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.read(store, Keys::one(key)?, options(given)?)
    }

    /// Executes a plan over the records of keys. The answer is a `Batch`, best first if the plan has `top_k`.
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
            let computed = shared.service().read_compute(&store, &keys.batch, &query, &options).await?;
            let batch =
                Batch::new(store, keys, Values::Records(computed.result), computed.answer, computed.best);
            reply(move |py| batch.into_py_any(py))
        }))
    }

    /// Counts the values of a field over the records of keys. The answer is `([(value, count)], distinct, truncated,
    /// footer)`.
    #[pyo3(signature = (store, field, keys, top, given=None))]
    fn count_by_value(
        &self,
        store: String,
        field: String,
        keys: &Bound<'_, PyAny>,
        top: u32,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.count(store, plan::by_value(field, top), keys, given)
    }

    /// Counts the values of a field in each bucket. The answer is `([(bucket, count)], None, truncated, footer)`.
    #[pyo3(signature = (store, field, keys, buckets, given=None))]
    fn count_by_bucket(
        &self,
        store: String,
        field: String,
        keys: &Bound<'_, PyAny>,
        buckets: &Bound<'_, PyDict>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        self.count(store, plan::by_bucket(field, buckets)?, keys, given)
    }

    /// Sends a query to a graph. `docs/queries.md` describes the operations. `given` has options only; `arguments` has the
    /// fields, and options that take precedence over those in `given`.
    fn graph(
        &self,
        name: String,
        op: &str,
        arguments: &Bound<'_, PyDict>,
        given: &Bound<'_, PyDict>,
    ) -> PyResult<Call> {
        let shared = Arc::clone(&self.shared);
        let (query, options) = graph::query(op, arguments, given)?;
        if options.partial {
            return Err(PyTypeError::new_err(
                "answers of graphs are always complete; `partial` is an option only of reads of stores",
            ));
        }
        Ok(Call::new(async move {
            let answered = shared.service().query(&name, &query, &options).await?;
            let view = graph::view(&query.operation, answered.answer)?;
            reply(move |py| to_python::answer(py, &view))
        }))
    }

    /// Writes to a live graph. `docs/live-graph.md` describes the operations and fields, except that `data` is JSON text
    /// here.
    #[pyo3(signature = (name, op, fields, given=None))]
    fn write(
        &self,
        name: String,
        op: &str,
        fields: &Bound<'_, PyDict>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        let (shared, options) = (Arc::clone(&self.shared), options(given)?);
        let write = live::write(op, &Fields(fields))?;
        let is_new_object = matches!(write.mutation, Mutation::AddObject { .. });
        Ok(Call::new(async move {
            let written = shared.service().write(&name, &write, &options).await?;
            reply(move |py| live::written(py, &written, is_new_object))
        }))
    }

    /// Returns the types of a store: `(key type, value type)`.
    fn shape(&self, store: String) -> Call {
        let shared = Arc::clone(&self.shared);
        Call::new(async move {
            let shape = shared.service().shape(&store).await?;
            reply(move |py| (shape.key.name(), shape.value.name()).into_py_any(py))
        })
    }
}

impl Client {
    fn count(
        &self,
        store: String,
        plan: AggregatePlan,
        keys: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Call> {
        let (shared, keys, options) = (Arc::clone(&self.shared), Keys::of(keys)?, options(given)?);
        let query = AggregateQuery { plan, at: ComputeAt::Nodes };
        Ok(Call::new(async move { counted(&shared, &store, &keys, &query, &options).await }))
    }

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
