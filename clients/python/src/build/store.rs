//! Builds versions of stores.

use super::{
    Given, check_rows, dropped, interruptible, open_objects, raised,
    rows::{BATCH_BYTES, BATCH_ROWS, Cell, parts},
};
use kith_build::{
    BuiltVersion, Destination, DroppedRows, Duplicates, Failure, FieldTimes, Format, FormatChoice,
    HeaderMode, Objects, RowSettings, Rows, SchemaFrom, Shape, StoreBuilder, Target, Workshop, WrongTimes,
    next_version, publish_version, version_dir,
};
use kith_schema::{KeyType, Schema, ValueType};
use kith_types::StoreVersion;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};
use std::path::PathBuf;

/// The description of a version, without its rows.
struct Plan {
    store: String,
    version: Option<StoreVersion>,
    objects: Objects,
    shape: Shape,
    settings: RowSettings,
}

/// Version, location, records, bytes, duplicates, dropped rows and the hash of the manifest.
type BuiltStore = (u64, String, u64, u64, u64, Vec<(String, u64, Vec<String>)>, String);

/// Builds a version of `store` into `out`, either from `rows` or from `files`. Rows are pairs of a key and a value, with
/// JSON and records as JSON text.
#[pyfunction]
#[pyo3(signature = (store, out, given, rows, files))]
pub fn build_store(
    py: Python<'_>,
    store: &str,
    out: &str,
    given: &Bound<'_, PyDict>,
    rows: Option<&Bound<'_, PyAny>>,
    files: Option<Vec<String>>,
) -> PyResult<BuiltStore> {
    let plan = Plan::of(store, out, &Given(given))?;
    let built = match (rows, files) {
        (Some(rows), None) => plan.build_rows(py, rows)?,
        (None, Some(files)) => interruptible(py, &plan.settings.stop, || plan.build_files(&files))?,
        _ => return Err(PyTypeError::new_err("a store is built from rows or from files; give one of them")),
    };
    let version = built.manifest.version;
    let location = plan.objects.join(&version.0.to_string()).location().to_string();
    let dropped = dropped(DroppedRows::of_rows(&built.report.errors));
    let counts = (built.records(), built.bytes(), built.duplicates);
    Ok((version.0, location, counts.0, counts.1, counts.2, dropped, built.manifest.hash()))
}

impl Plan {
    fn of(store: &str, out: &str, given: &Given<'_, '_>) -> PyResult<Self> {
        let (key, value) = (given.word::<KeyType>("key")?, given.word::<ValueType>("value")?);
        Ok(Self {
            store: store.to_owned(),
            version: given.version()?,
            objects: open_objects(out)?,
            shape: Shape::stated(key, value, given.partitions()?),
            settings: settings(given)?,
        })
    }

    fn build_files(&self, files: &[String]) -> Result<BuiltVersion, Failure> {
        let rows = Rows::open(files, &self.settings, &self.shape, false)?;
        let into = Destination { store: &self.store, version: self.version, objects: &self.objects };
        rows.build_into(&into, None, &mut |_| {})
    }

    fn build_rows(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<BuiltVersion> {
        check_rows(rows)?;
        let begin = || {
            let version = self.version.map_or_else(|| next_version(&self.objects), Ok)?;
            let workshop = Workshop::of(&self.objects)?;
            let target = Target { store: &self.store, version, out_dir: workshop.folder().to_owned() };
            let builder = StoreBuilder::new(&target, &self.shape, &self.settings)?;
            Ok((version, workshop, builder))
        };
        let (version, workshop, mut builder) = py.detach(begin).map_err(raised)?;
        let is_json = matches!(self.shape.value, ValueType::Json | ValueType::Record);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for row in rows.try_iter()? {
            let (key, value) = pair(&row?)?;
            bytes += key.bytes() + value.bytes();
            batch.push((key, value));
            if BATCH_ROWS <= batch.len() || BATCH_BYTES <= bytes {
                py.detach(|| put(&mut builder, &mut batch, is_json)).map_err(raised)?;
                bytes = 0;
                py.check_signals()?;
            }
        }
        interruptible(py, &self.settings.stop, || {
            put(&mut builder, &mut batch, is_json)?;
            let built = builder.finish(&mut |_| {})?;
            let folder = version_dir(workshop.folder(), version);
            publish_version(None, &folder, &self.objects.join(&version.0.to_string()), &mut |_| {})?;
            Ok(built)
        })
    }
}

fn put(builder: &mut StoreBuilder, batch: &mut Vec<(Cell, Cell)>, is_json: bool) -> Result<(), Failure> {
    batch.drain(..).try_for_each(|(key, value)| builder.put(key.key(), value.value(is_json)))
}

fn pair(row: &Bound<'_, PyAny>) -> PyResult<(Cell, Cell)> {
    let (mut key, mut value, mut count) = (None, None, 0);
    parts(row, |part| {
        count += 1;
        match count {
            1 => key = Some(Cell::of(part)?),
            2 => value = Some(Cell::of(part)?),
            _ => {}
        }
        Ok(())
    })?;
    match (key, value) {
        (Some(key), Some(value)) if count == 2 => Ok((key, value)),
        _ => Err(PyTypeError::new_err(format!(
            "a row must be a pair of a key and a value, but has {count} parts"
        ))),
    }
}

fn times(named: &[String]) -> PyResult<Vec<FieldTimes>> {
    let parsed: Result<Vec<FieldTimes>, _> = named.iter().map(|text| text.parse()).collect();
    parsed.map_err(|error: WrongTimes| PyValueError::new_err(error.to_string()))
}

fn settings(given: &Given<'_, '_>) -> PyResult<RowSettings> {
    let usual = RowSettings::default();
    let schema = match (given.get::<PathBuf>("schema_file")?, given.word::<Schema>("schema")?) {
        (Some(file), _) => Some(SchemaFrom::File(file)),
        (None, schema) => schema.map(SchemaFrom::Given),
    };
    let compress = given.get::<i32>("compress")?;
    if compress.is_some_and(|level| !(1..=19).contains(&level)) {
        return Err(PyValueError::new_err("compress must be a level from 1 to 19"));
    }
    Ok(RowSettings {
        format: given.word::<Format>("format")?.map_or(FormatChoice::Detect, FormatChoice::Given),
        header: match given.get::<bool>("header")? {
            None => HeaderMode::Detect,
            Some(true) => HeaderMode::Present,
            Some(false) => HeaderMode::Absent,
        },
        delimiter: given.delimiter()?,
        dimensions: given.get("dims")?,
        key_field: given.get("key_field")?,
        value_field: given.get("value_field")?,
        schema,
        duplicates: match given.get::<String>("duplicates")?.as_deref() {
            None | Some("refuse") => Duplicates::Refuse,
            Some("first") => Duplicates::First,
            Some("last") => Duplicates::Last,
            Some(other) => return Err(crate::options::wrong("duplicates", other, "refuse, first or last")),
        },
        compress,
        errors_max: given.get("max_errors")?.unwrap_or_default(),
        fill_missing: given.get("fill_missing")?.unwrap_or_default(),
        times: times(&given.get::<Vec<String>>("times")?.unwrap_or_default())?,
        memory_bytes: given.memory()?.unwrap_or(usual.memory_bytes),
        unpacked_max: given.get("unpacked_max")?,
        threads: given.threads()?.unwrap_or(usual.threads),
        stop: usual.stop,
    })
}
