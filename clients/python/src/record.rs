//! A record inside the bytes of an answer. Its fields are decoded when they are read, except vectors, which Python sees
//! without a copy.

use crate::{error, value};
use bytes::Bytes;
use kith_schema::{ElementType, FieldView, ListView, MapView, RecordError, RecordView, Schema, VectorView};
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyKeyError, PyTypeError},
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};

/// A mapping from the names of fields to their values. It keeps the whole answer that contains it in memory.
#[pyclass(frozen, mapping, module = "kith")]
pub struct Record {
    store: String,
    schema: Schema,
    bytes: Bytes,
}

impl Record {
    /// Returns the record in `bytes`, which was written under `schema`.
    ///
    /// # Errors
    /// `kith.KithError` if the bytes are not a record.
    pub fn new(store: &str, schema: &Schema, bytes: Bytes) -> PyResult<Self> {
        RecordView::new(schema, &bytes).map_err(|why| error::damaged(store, why))?;
        Ok(Self { store: store.to_owned(), schema: schema.clone(), bytes })
    }

    fn view(&self) -> PyResult<RecordView<'_>> {
        RecordView::new(&self.schema, &self.bytes).map_err(|why| self.damaged(&why))
    }

    fn damaged(&self, why: &RecordError) -> PyErr {
        error::damaged(&self.store, why)
    }

    fn field(&self, name: &str) -> PyResult<Option<FieldView<'_>>> {
        self.view()?.field(name).map_err(|why| match why {
            RecordError::UnknownField { .. } => PyKeyError::new_err(why.to_string()),
            why => self.damaged(&why),
        })
    }

    fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.schema.fields().iter().map(|field| field.name())
    }

    fn python<'py>(&self, py: Python<'py>, field: Option<FieldView<'_>>) -> PyResult<Bound<'py, PyAny>> {
        match field {
            None => Ok(py.None().into_bound(py)),
            Some(FieldView::Scalar(scalar)) => value::scalar(py, scalar),
            Some(FieldView::Vector(vector)) => self.vector(py, vector),
            Some(FieldView::List(items)) => Ok(self.list(py, items)?.into_any()),
            Some(FieldView::Map(entries)) => Ok(self.map(py, entries)?.into_any()),
        }
    }

    /// Returns the elements of a vector without a copy. Elements of half precision are converted to single precision,
    /// because memoryviews do not support them.
    fn vector<'py>(&self, py: Python<'py>, vector: VectorView<'_>) -> PyResult<Bound<'py, PyAny>> {
        match vector.element() {
            ElementType::F32 => value::numbers(py, self.bytes.slice_ref(vector.bytes()), "f"),
            ElementType::I8 => value::numbers(py, self.bytes.slice_ref(vector.bytes()), "b"),
            ElementType::F16 => {
                let widened: Vec<u8> = vector.iter().flat_map(f32::to_le_bytes).collect();
                value::numbers(py, widened.into(), "f")
            }
        }
    }

    fn list<'py>(&self, py: Python<'py>, items: ListView<'_>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for item in items.iter() {
            let item = item.map_err(|why| error::damaged(&self.store, why))?;
            list.append(value::scalar(py, item)?)?;
        }
        Ok(list)
    }

    fn map<'py>(&self, py: Python<'py>, entries: MapView<'_>) -> PyResult<Bound<'py, PyDict>> {
        let map = PyDict::new(py);
        for entry in entries.iter() {
            let (key, item) = entry.map_err(|why| error::damaged(&self.store, why))?;
            map.set_item(key, value::scalar(py, item)?)?;
        }
        Ok(map)
    }
}

#[pymethods]
impl Record {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.python(py, self.field(name)?)
    }

    fn __len__(&self) -> usize {
        self.schema.fields().len()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.extract::<String>().is_ok_and(|name| self.schema.index_of(&name).is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    /// The value of the field, or `default` if the record's schema has no such field.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.schema.index_of(name) {
            Some(_) => self.__getitem__(py, name),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The names of the fields, in the order of the schema.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names())
    }

    /// The values of all fields, in the order of the schema.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for name in self.names() {
            list.append(self.__getitem__(py, name)?)?;
        }
        Ok(list)
    }

    /// The names and values of all fields, in the order of the schema.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for name in self.names() {
            list.append(PyTuple::new(py, [name.into_bound_py_any(py)?, self.__getitem__(py, name)?])?)?;
        }
        Ok(list)
    }

    /// A copy that does not keep the answer in memory. Vectors are lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let view = self.view()?;
        let dict = PyDict::new(py);
        for (index, name) in self.names().enumerate() {
            let item = match view.at(index).map_err(|why| self.damaged(&why))? {
                Some(FieldView::Vector(vector)) if vector.element() == ElementType::I8 => {
                    PyList::new(py, vector.iter().map(|number| number as i8))?.into_any()
                }
                Some(FieldView::Vector(vector)) => PyList::new(py, vector.iter())?.into_any(),
                other => self.python(py, other)?,
            };
            dict.set_item(name, item)?;
        }
        Ok(dict)
    }

    /// The record as one line of JSON.
    fn to_json(&self) -> PyResult<String> {
        self.view()?.to_result_json().map_err(|why| self.damaged(&why))
    }

    /// A vector field as a read-only numpy array over the bytes of the answer; `None` if the field is null.
    fn numpy<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let vector = match self.field(name)? {
            None => return Ok(py.None().into_bound(py)),
            Some(FieldView::Vector(vector)) => vector,
            Some(_) => {
                let message = format!("field {name:?} is not a vector; read it as record[{name:?}]");
                return Err(PyTypeError::new_err(message));
            }
        };
        let dtype = dtype(vector.element());
        let bytes = value::numbers(py, self.bytes.slice_ref(vector.bytes()), "B")?;
        py.import("numpy")?.call_method1("frombuffer", (bytes, dtype))
    }

    /// The record's bytes without a copy. `docs/formats/record.md` describes their format.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value::numbers(py, self.bytes.clone(), "B")
    }

    /// The schema under which the record was written, as text.
    #[getter]
    fn schema(&self) -> &str {
        self.schema.canonical()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Record>() {
            Ok(other) => {
                let other = other.get();
                Ok(self.schema == other.schema && self.bytes == other.bytes)
            }
            Err(_) => self.to_dict(py)?.eq(other),
        }
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("Record({})", self.to_json()?))
    }
}

/// Returns numpy's name of an element type.
pub fn dtype(element: ElementType) -> &'static str {
    match element {
        ElementType::F32 => "<f4",
        ElementType::F16 => "<f2",
        ElementType::I8 => "i1",
    }
}
