//! Parses TOML into declared types. The code walks over values that have their positions in the text, so that each error can
//! name a line.

use super::declared::{DeclaredAssociation, DeclaredInverse, DeclaredObject, DeclaredTypes, inverse_label};
use super::fault::{TypeKind, TypePart, TypesError, TypesFault};
use super::index::check_indexable;
use super::open::name_fault;
use super::{AssociationType, CAP_MAX, TEXT_BYTES_MAX, TYPES_MAX};
use kith_schema::{Field, FieldType, Schema, nearest};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const TOP_KEYS: &[&str] = &["open", "object", "association"];
const OBJECT_KEYS: &[&str] = &["fields", "open", "ids"];
const ASSOCIATION_KEYS: &[&str] = &["fields", "inverse", "symmetric", "cap", "adjacency", "open"];
const FIELD_KEYS: &[&str] = &["type", "nullable", "default", "index", "unique"];

impl FromStr for DeclaredTypes {
    type Err = TypesError;

    /// Parses a text of the form that `kith schema apply` takes (`docs/formats/graph-types.md`).
    fn from_str(text: &str) -> Result<Self, TypesError> {
        if TEXT_BYTES_MAX < text.len() {
            return Err(TypesError::whole(TypesFault::TooLong { bytes: text.len() }));
        }
        let table = DeTable::parse(text).map_err(|error| TypesError {
            line: error.span().map(|span| line_of(text, span)),
            subject: None,
            fault: Box::new(TypesFault::Syntax { detail: error.message().to_owned() }),
        })?;
        Reader { text }.types(table.get_ref())
    }
}

/// One key of a table, its position in the text, and its value.
struct Entry<'a> {
    key: &'a str,
    span: Range<usize>,
    value: &'a DeValue<'a>,
}

/// The table of an association type as it is in the text, before tables of inverses are joined with those of their forward
/// types.
struct Table {
    name: String,
    span: Range<usize>,
    open: bool,
    fields: Option<Schema>,
    inverse: Option<(String, Range<usize>)>,
    symmetric: bool,
    cap: Option<u32>,
    adjacency: Option<bool>,
    /// The keys of the table that only a forward type may have, and their positions in the text.
    decides: Vec<(&'static str, Range<usize>)>,
}

/// The fields of a type, and which of them have an index: by field, whether its values are unique.
type Fields = (Option<Schema>, BTreeMap<String, bool>);

/// The keys `index` and `unique` of a field.
#[derive(Default)]
struct IndexFlags {
    index: Option<bool>,
    unique: bool,
}

impl IndexFlags {
    /// Returns whether the values of a field are unique; `None` if it has no index.
    fn unique_of(&self, kind: TypeKind, field: &Field) -> Result<Option<bool>, TypesFault> {
        match (self.unique, self.index) {
            (true, Some(false)) => return Err(TypesFault::UniqueWithoutIndex),
            (false, None | Some(false)) => return Ok(None),
            _ => {}
        }
        if kind == TypeKind::Association {
            let key = if self.unique { "unique" } else { "index" };
            return Err(TypesFault::IndexOfAssociation { key });
        }
        check_indexable(field.field_type())?;
        Ok(Some(self.unique))
    }
}

struct Reader<'a> {
    text: &'a str,
}

fn line_of(text: &str, span: Range<usize>) -> usize {
    text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count() + 1
}

/// The entries of a table in the order of the text.
fn entries<'a>(table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
        let name: &'a std::borrow::Cow<'a, str> = key.get_ref();
        Entry { key: name, span: key.span(), value: value.get_ref() }
    };
    let mut entries: Vec<Entry<'a>> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.span.start);
    entries
}

impl Reader<'_> {
    fn types(&self, table: &DeTable<'_>) -> Result<DeclaredTypes, TypesError> {
        let mut declared = DeclaredTypes::default();
        let mut tables = Vec::new();
        for top in entries(table) {
            self.check_key(None, &top, TOP_KEYS)?;
            if top.key == "open" {
                declared.open = self.truth(None, &top)?;
                continue;
            }
            for entry in entries(self.table(None, &top)?) {
                if top.key == "object" {
                    declared.objects.push(self.object(&entry)?);
                } else {
                    tables.push(self.association(&entry)?);
                }
            }
        }
        declared.associations = self.joined(tables)?;
        let inverses =
            declared.associations.iter().filter(|it| matches!(it.inverse, DeclaredInverse::Named { .. }));
        let got = declared.objects.len() + declared.associations.len() + inverses.count();
        if TYPES_MAX < got {
            return Err(TypesError::whole(TypesFault::TooMany { got }));
        }
        Ok(declared)
    }

    fn object(&self, entry: &Entry<'_>) -> Result<DeclaredObject, TypesError> {
        let subject = TypePart::shortened(TypeKind::Object, entry.key);
        let (mut fields, mut indexes, mut fields_at, mut open) = (None, BTreeMap::new(), None, false);
        let mut ids_at = None;
        for part in entries(self.table(Some(&subject), entry)?) {
            self.check_key(Some(&subject), &part, OBJECT_KEYS)?;
            match part.key {
                "fields" => {
                    (fields, indexes) = self.schema(&subject, &part)?;
                    fields_at = Some(part.span);
                }
                "ids" if self.text(&subject, &part)? == "text" => ids_at = Some(part.span),
                "ids" => return Err(self.at(part.span, Some(&subject), TypesFault::Ids)),
                _ => open = self.truth(Some(&subject), &part)?,
            }
        }
        self.check_name(&subject, (entry.key, &entry.span), open, None)?;
        self.check_no_fields(&subject, open, fields_at)?;
        let text_ids = ids_at.is_some();
        match ids_at {
            Some(span) if open => Err(self.at(span, Some(&subject), TypesFault::OpenWithIds)),
            _ => Ok(DeclaredObject { name: entry.key.to_owned(), fields, indexes, open, text_ids }),
        }
    }

    fn association(&self, entry: &Entry<'_>) -> Result<Table, TypesError> {
        let subject = TypePart::shortened(TypeKind::Association, entry.key);
        let mut table = Table {
            name: entry.key.to_owned(),
            span: entry.span.clone(),
            open: false,
            fields: None,
            inverse: None,
            symmetric: false,
            cap: None,
            adjacency: None,
            decides: Vec::new(),
        };
        for part in entries(self.table(Some(&subject), entry)?) {
            self.check_key(Some(&subject), &part, ASSOCIATION_KEYS)?;
            let mut decides = |key| table.decides.push((key, part.span.clone()));
            match part.key {
                "fields" => {
                    decides("fields");
                    (table.fields, _) = self.schema(&subject, &part)?;
                }
                "inverse" => {
                    decides("inverse");
                    table.inverse = Some((self.text(&subject, &part)?.to_owned(), part.span));
                }
                "symmetric" => {
                    decides("symmetric");
                    table.symmetric = self.truth(Some(&subject), &part)?;
                }
                "open" => {
                    decides("open");
                    table.open = self.truth(Some(&subject), &part)?;
                }
                "cap" => table.cap = Some(self.cap(&subject, &part)?),
                _ => table.adjacency = Some(self.truth(Some(&subject), &part)?),
            }
        }
        let fields_at = table.decides.iter().find(|(key, _)| *key == "fields");
        self.check_no_fields(&subject, table.open, fields_at.map(|(_, span)| span.clone()))?;
        if table.open && table.inverse.is_none() && !table.symmetric {
            table.inverse = Some((inverse_label(&table.name), table.span.clone()));
        }
        Ok(table)
    }

    /// Joins the tables of inverses with those of their forward types.
    fn joined(&self, tables: Vec<Table>) -> Result<Vec<DeclaredAssociation>, TypesError> {
        let mut forward_of: BTreeMap<&str, &Table> = BTreeMap::new();
        for table in &tables {
            let Some((inverse, span)) = &table.inverse else { continue };
            let wrong = |fault| {
                let subject = TypePart::new(TypeKind::Association, table.name.as_str());
                Err(self.at(span.clone(), Some(&subject), fault))
            };
            if table.symmetric {
                return wrong(TypesFault::SymmetricWithInverse);
            }
            if *inverse == table.name {
                return wrong(TypesFault::OwnInverse);
            }
            if let Some(forward) = forward_of.insert(inverse, table) {
                let (inverse, forward) = (inverse.clone(), forward.name.clone());
                return wrong(TypesFault::InverseTaken { inverse, forward });
            }
        }
        self.check_names(&tables, &forward_of)?;
        let of_inverse: BTreeMap<&str, &Table> =
            tables.iter().map(|table| (table.name.as_str(), table)).collect();
        let mut declared = Vec::new();
        for table in &tables {
            if let Some(forward) = forward_of.get(table.name.as_str()) {
                self.check_inverse(table, &forward.name)?;
                continue;
            }
            let cap = table.cap.unwrap_or(AssociationType::CAP_DEFAULT);
            let adjacency = table.adjacency.unwrap_or(true);
            let inverse = match &table.inverse {
                Some((name, _)) => {
                    let own = of_inverse.get(name.as_str());
                    DeclaredInverse::Named {
                        name: name.clone(),
                        cap: own.and_then(|own| own.cap).unwrap_or(cap),
                        adjacency: own.and_then(|own| own.adjacency).unwrap_or(adjacency),
                    }
                }
                None if table.symmetric => DeclaredInverse::Symmetric,
                None => DeclaredInverse::None,
            };
            let (name, fields, open) = (table.name.clone(), table.fields.clone(), table.open);
            declared.push(DeclaredAssociation { name, fields, cap, adjacency, inverse, open });
        }
        Ok(declared)
    }

    /// Checks the names of association types and of their inverses.
    fn check_names(&self, tables: &[Table], forward_of: &BTreeMap<&str, &Table>) -> Result<(), TypesError> {
        for table in tables {
            let forward = forward_of.get(table.name.as_str());
            let open = forward.map_or(table.open, |forward| forward.open);
            let forward = forward.map(|forward| forward.name.as_str());
            let subject = |name: &str| TypePart::shortened(TypeKind::Association, name);
            self.check_name(&subject(&table.name), (&table.name, &table.span), open, forward)?;
            if let Some((inverse, span)) = &table.inverse {
                self.check_name(&subject(inverse), (inverse, span), table.open, Some(&table.name))?;
            }
        }
        Ok(())
    }

    fn check_name(
        &self,
        subject: &TypePart,
        (name, span): (&str, &Range<usize>),
        open: bool,
        forward: Option<&str>,
    ) -> Result<(), TypesError> {
        match name_fault(name, open, forward) {
            Some(fault) => Err(self.at(span.clone(), Some(subject), fault)),
            None => Ok(()),
        }
    }

    /// Checks that an open type declares no fields. `fields_at` is the position of its key `fields`.
    fn check_no_fields(
        &self,
        subject: &TypePart,
        open: bool,
        fields_at: Option<Range<usize>>,
    ) -> Result<(), TypesError> {
        match fields_at {
            Some(span) if open => Err(self.at(span, Some(subject), TypesFault::OpenWithFields)),
            _ => Ok(()),
        }
    }

    /// Checks that the table of an inverse has only keys that may differ from the forward type.
    fn check_inverse(&self, table: &Table, forward: &str) -> Result<(), TypesError> {
        let Some((key, span)) = table.decides.first() else { return Ok(()) };
        let subject = TypePart::new(TypeKind::Association, table.name.as_str());
        let fault = TypesFault::InverseDeclares { forward: forward.to_owned(), key };
        Err(self.at(span.clone(), Some(&subject), fault))
    }

    /// Reads fields, and which of them have an index: by field, whether its values are unique.
    fn schema(&self, subject: &TypePart, entry: &Entry<'_>) -> Result<Fields, TypesError> {
        let (mut fields, mut indexes) = (Vec::new(), BTreeMap::new());
        for part in entries(self.table(Some(subject), entry)?) {
            let (field, unique) = self.field(subject, &part)?;
            indexes.extend(unique.map(|unique| (field.name().to_owned(), unique)));
            fields.push(field);
        }
        if fields.is_empty() {
            return Ok((None, indexes));
        }
        let wrong = |source| self.at(entry.span.clone(), Some(subject), TypesFault::Schema(source));
        Ok((Some(Schema::new(fields).map_err(wrong)?), indexes))
    }

    /// Reads a field. If it has an index, also returns whether its values are unique.
    fn field(&self, owner: &TypePart, entry: &Entry<'_>) -> Result<(Field, Option<bool>), TypesError> {
        let subject = TypePart { field: Some(entry.key.to_owned()), ..owner.clone() };
        let DeValue::Table(table) = entry.value else {
            return Ok((Field::new(entry.key, self.field_type(&subject, entry)?), None));
        };
        let (mut field_type, mut nullable, mut default) = (None, false, None);
        let mut flags = IndexFlags::default();
        for part in entries(table) {
            self.check_key(Some(&subject), &part, FIELD_KEYS)?;
            match part.key {
                "type" => field_type = Some(self.field_type(&subject, &part)?),
                "nullable" => nullable = self.truth(Some(&subject), &part)?,
                "index" => flags.index = Some(self.truth(Some(&subject), &part)?),
                "unique" => flags.unique = self.truth(Some(&subject), &part)?,
                _ => {
                    let wrong =
                        |found| self.at(part.span.clone(), Some(&subject), TypesFault::Default { found });
                    default = Some(json(part.value).map_err(wrong)?);
                }
            }
        }
        let missing = || self.at(entry.span.clone(), Some(&subject), TypesFault::NoFieldType);
        let mut field = Field::new(entry.key, field_type.ok_or_else(missing)?);
        if nullable {
            field = field.nullable();
        }
        if let Some(default) = default {
            field = field.with_default(default);
        }
        let wrong = |fault| self.at(entry.span.clone(), Some(&subject), fault);
        let unique = flags.unique_of(subject.kind, &field).map_err(wrong)?;
        Ok((field, unique))
    }

    fn field_type(&self, subject: &TypePart, entry: &Entry<'_>) -> Result<FieldType, TypesError> {
        let wrong = |source| self.at(entry.span.clone(), Some(subject), TypesFault::FieldType(source));
        self.text(subject, entry)?.parse().map_err(wrong)
    }

    fn text<'a>(&self, subject: &TypePart, entry: &Entry<'a>) -> Result<&'a str, TypesError> {
        entry.value.as_str().ok_or_else(|| self.kind(Some(subject), entry, "a string"))
    }

    fn truth(&self, subject: Option<&TypePart>, entry: &Entry<'_>) -> Result<bool, TypesError> {
        entry.value.as_bool().ok_or_else(|| self.kind(subject, entry, "true or false"))
    }

    fn cap(&self, subject: &TypePart, entry: &Entry<'_>) -> Result<u32, TypesError> {
        let number = entry.value.as_integer();
        let cap = number.and_then(|it| u32::from_str_radix(it.as_str(), it.radix()).ok());
        let wrong = || self.at(entry.span.clone(), Some(subject), TypesFault::Cap);
        cap.filter(|cap| (1..=CAP_MAX).contains(cap)).ok_or_else(wrong)
    }

    fn table<'a>(
        &self,
        subject: Option<&TypePart>,
        entry: &Entry<'a>,
    ) -> Result<&'a DeTable<'a>, TypesError> {
        match entry.value {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.kind(subject, entry, "a table")),
        }
    }

    fn check_key(
        &self,
        subject: Option<&TypePart>,
        entry: &Entry<'_>,
        known: &'static [&'static str],
    ) -> Result<(), TypesError> {
        if known.contains(&entry.key) {
            return Ok(());
        }
        let near = nearest(entry.key, known.iter().copied());
        let key = entry.key.chars().take(128).collect();
        Err(self.at(entry.span.clone(), subject, TypesFault::UnknownKey { key, known, near }))
    }

    fn kind(&self, subject: Option<&TypePart>, entry: &Entry<'_>, expected: &'static str) -> TypesError {
        let fault = TypesFault::Kind { key: entry.key.to_owned(), expected, found: found(entry.value) };
        self.at(entry.span.clone(), subject, fault)
    }

    fn at(&self, span: Range<usize>, subject: Option<&TypePart>, fault: TypesFault) -> TypesError {
        let subject = subject.cloned().map(Box::new);
        TypesError { line: Some(line_of(self.text, span)), subject, fault: Box::new(fault) }
    }
}

/// Returns the TOML type of a value, for messages.
fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Converts a default to JSON. The error says what the default contains that no field can hold.
fn json(value: &DeValue<'_>) -> Result<Value, &'static str> {
    Ok(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Integer(digits) => {
            let (text, radix) = (digits.as_str(), digits.radix());
            let signed = i64::from_str_radix(text, radix).map(Value::from);
            signed
                .or_else(|_| u64::from_str_radix(text, radix).map(Value::from))
                .map_err(|_| "a number above 2^64")?
        }
        DeValue::Float(digits) => {
            let number = digits.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            Value::Number(number.ok_or("a number that is not finite")?)
        }
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| json(item.get_ref())).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let member = |entry: Entry<'_>| Ok((entry.key.to_owned(), json(entry.value)?));
            Value::Object(entries(table).into_iter().map(member).collect::<Result<_, &'static str>>()?)
        }
        DeValue::Datetime(_) => return Err("a date (write milliseconds since 1970 instead)"),
    })
}
