//! The types of a store's rows: its definition, and the schema of its records.

use super::{RowSettings, SchemaFrom};
use crate::rows::{KeyType, RowOptions, ValueShape, ValueType, infer_schema};
use crate::{
    VALUES_COMPONENT,
    failure::{self, Failure, chain},
    object_store::partition_count,
    place::{component_place, manifest_at},
};
use kith_engine::Manifest;
use kith_schema::{Changes, Schema, VersionMisfit, compatible, may_follow};
use kith_types::{ErrorCode, PartitionCount};
use kith_wire::documents::{ClusterDocument, HoldsDocument, StoreDocument, TopologyDocument};
use std::{fs, path::Path};

/// The keys and values of a store.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The type of keys, which determines their partition.
    pub key: KeyType,
    /// The type of values.
    pub value: ValueType,
    key_field: Option<String>,
    /// The number of partitions of the cluster that will serve the store.
    pub partitions: PartitionCount,
    /// For a store of records: the schema of the version that is served.
    pub schema: Option<Schema>,
}

impl Shape {
    /// The shape that a program states, without a cluster. Keys and values are text by default.
    pub fn stated(key: Option<KeyType>, value: Option<ValueType>, partitions: PartitionCount) -> Self {
        let (key, value) = (key.unwrap_or(KeyType::String), value.unwrap_or(ValueType::Text));
        Self { key, value, key_field: None, partitions, schema: None }
    }

    /// The shape of a built version.
    ///
    /// # Errors
    /// `other_store` or `bad_schema` if the version does not fit.
    pub fn of_version(store: &str, manifest: &Manifest) -> Result<Self, Failure> {
        let (mut key, mut value) = (KeyType::String, ValueType::Text);
        if let Some(values) = manifest.values() {
            (key, value) = (values.key, values.value);
        }
        let mut shape =
            Self { key, value, key_field: None, partitions: manifest.partition_count, schema: None };
        shape.check(store, manifest, false, false)?;
        let schema = manifest.values().and_then(|values| values.schema.as_deref());
        shape.schema = schema.map(|text| parsed(text, "the version")).transpose()?;
        Ok(shape)
    }

    /// The shape of a store in a cluster. `served` is the schema of the current version, if the caller has it from the
    /// nodes; otherwise it is read from the object store. With `or_none`, a schema that cannot be read is left out: whoever
    /// states the new schema and forces it does not depend on the current one.
    ///
    /// # Errors
    /// `not_values` if the store is a graph; an error if the schema of the current version cannot be read.
    pub fn of(
        store: &StoreDocument,
        topology: &TopologyDocument,
        served: Option<Schema>,
        or_none: bool,
    ) -> Result<Self, Failure> {
        let HoldsDocument::Values { key, value, key_field } = &store.definition.holds else {
            let message = format!("store {:?} is a graph", store.name);
            let help = format!("kith load graph EDGES --graph {}", store.name);
            return Err(Failure::new(ErrorCode::NotValues, message, help));
        };
        let unknown = |error: &dyn std::error::Error| {
            let help = "use a release that knows what this store holds";
            Failure::new(ErrorCode::BadDefinition, format!("store {:?}: {error}", store.name), help)
        };
        let value: ValueType = value.parse().map_err(|error| unknown(&error))?;
        let schema = match value {
            ValueType::Record if served.is_some() => served,
            ValueType::Record => match current_schema(store, &topology.cluster) {
                Err(failure) if !or_none => return Err(failure),
                Err(_) => None,
                Ok(None) => {
                    let text = store.definition.schema.as_deref();
                    text.map(|text| parsed(text, "the store")).transpose()?
                }
                Ok(current) => current,
            },
            ValueType::Text | ValueType::Bytes | ValueType::Json => None,
        };
        Ok(Self {
            key: key.parse().map_err(|error| unknown(&error))?,
            value,
            key_field: key_field.clone(),
            partitions: partition_count(topology)?,
            schema,
        })
    }

    /// The options for reading its rows, and notes about the schema. Records without a known schema cost a pass over the
    /// files.
    ///
    /// # Errors
    /// If the schema cannot be read or inferred, or is not compatible with the current one.
    pub(crate) fn row_options(
        &self,
        settings: &RowSettings,
        files: &[Box<dyn crate::rows::RowSource>],
        force: bool,
    ) -> Result<(RowOptions, Vec<String>), Failure> {
        let mut options = RowOptions::new(self.key, ValueShape::Json);
        options.key_field.clone_from(&self.key_field);
        settings.apply(&mut options);
        if let (Some(schema), false) = (&settings.schema, self.value == ValueType::Record) {
            let file = match schema {
                SchemaFrom::File(path) => format!(" {}", path.display()),
                SchemaFrom::Given(_) => String::new(),
            };
            let message = format!("--schema{file} is for records, values are {}", self.value);
            return Err(Failure::usage(message, "leave it out"));
        }
        let mut notes = Vec::new();
        options.value = match self.value {
            ValueType::Text => ValueShape::Text,
            ValueType::Bytes => ValueShape::Bytes,
            ValueType::Json => ValueShape::Json,
            ValueType::Record => {
                let schema = match (&settings.schema, &self.schema) {
                    (Some(SchemaFrom::File(path)), _) => read_schema(path)?,
                    (Some(SchemaFrom::Given(schema)), _) => schema.clone(),
                    (None, Some(current)) => current.clone(),
                    (None, None) => {
                        // A field of some of the files is a field of all their records.
                        options.fill_missing = true;
                        infer_schema(files, &options, None).map_err(|error| failure::rows(&error))?
                    }
                };
                notes = self.changes(&schema, force)?;
                ValueShape::Record(schema)
            }
        };
        options.check_times().map_err(|error| failure::rows(&error))?;
        Ok((options, notes))
    }

    /// The effects of a version with this schema, as text.
    ///
    /// # Errors
    /// `incompatible_schema` if it is not compatible, unless forced.
    pub fn changes(&self, schema: &Schema, force: bool) -> Result<Vec<String>, Failure> {
        let Some(current) = &self.schema else { return Ok(Vec::new()) };
        match compatible(current, schema) {
            Ok(changes) => Ok(texts(&changes)),
            Err(error) if force => Ok(vec![format!("{error}; forced")]),
            Err(error) => Err(unfit(&error.into())),
        }
    }

    /// Refuses a built version that does not belong to this store, or whose records lack fields of the current ones unless
    /// `fill_missing` or `force` allows that. Returns the changes of the schema.
    ///
    /// # Errors
    /// `other_store` or `incompatible_schema` if it does not fit.
    pub fn check(
        &self,
        store: &str,
        manifest: &Manifest,
        force: bool,
        fill_missing: bool,
    ) -> Result<Vec<String>, Failure> {
        let other = |what: String| {
            let help = "build it again for this store: `kith store build`";
            Failure::new(ErrorCode::OtherStore, format!("the folder holds {what}"), help)
        };
        let Some(values) = manifest.values() else { return Err(other("a graph component".to_owned())) };
        if manifest.component != store {
            return Err(other(format!("a version of store {:?}, not of {store:?}", manifest.component)));
        }
        if manifest.partition_count != self.partitions {
            let (got, expected) = (manifest.partition_count.get(), self.partitions.get());
            return Err(other(format!("{got} partitions, the cluster has {expected}")));
        }
        let (key, value) = (values.key, values.value);
        if (key, value) != (self.key, self.value) {
            return Err(other(format!("{key} to {value}, the store {} to {}", self.key, self.value)));
        }
        let (Some(text), Some(current)) = (&values.schema, &self.schema) else { return Ok(Vec::new()) };
        let schema = parsed(text, "the built version")?;
        match may_follow(current, &schema, fill_missing) {
            Ok(changes) => Ok(texts(&changes)),
            Err(_) if force => self.changes(&schema, force),
            Err(error) => Err(unfit(&error)),
        }
    }
}

fn texts(changes: &Changes) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

/// The error of a version that may not follow the current one.
fn unfit(unfit: &VersionMisfit) -> Failure {
    let mut failure = Failure::new(ErrorCode::IncompatibleSchema, unfit.to_string(), unfit.help());
    if let VersionMisfit::Lacks { changes, .. } = unfit {
        failure.wrong = texts(changes);
    }
    failure
}

/// The schema of the version that is served, from its manifest.
fn current_schema(store: &StoreDocument, cluster: &ClusterDocument) -> Result<Option<Schema>, Failure> {
    let Some(current) = store.current() else { return Ok(None) };
    let Some(component) = current.components.iter().find(|it| it.name == VALUES_COMPONENT) else {
        return Ok(None);
    };
    let objects = component_place(cluster, &store.name, component)?;
    let manifest = manifest_at(&objects).map_err(|failure| {
        let message = format!("read the schema of version {}: {}", current.version, failure.message);
        let help = "run this on a machine that can reach the cluster's object store; if it has lost the version, push as somebody who may read the store, or with --schema and --force";
        Failure::new(ErrorCode::ObjectStoreUnreachable, message, help)
    })?;
    let text = manifest.values().and_then(|values| values.schema.as_deref());
    text.map(|text| parsed(text, "the current version")).transpose()
}

/// Reads the schema in a file.
///
/// # Errors
/// `bad_schema` if the file cannot be read or parsed.
pub fn read_schema(path: &Path) -> Result<Schema, Failure> {
    let text = fs::read(path).and_then(kith_types::without_mark).map_err(|error| {
        let help = "check the path and its permissions";
        Failure::new(ErrorCode::BadSchema, format!("{} cannot be read: {error}", path.display()), help)
    })?;
    parsed(&text, &path.display().to_string())
}

fn parsed(text: &str, whose: &str) -> Result<Schema, Failure> {
    text.parse().map_err(|error| {
        let message = format!("the schema of {whose}: {}", chain(&error));
        Failure::new(ErrorCode::BadSchema, message, "see docs/formats/schema.md for the language")
    })
}
