//! The course of a change of the types: the declared types are applied one after the other.

use super::declared::{DeclaredAssociation, DeclaredInverse, DeclaredObject, DeclaredTypes};
use super::fault::{TypeKind, TypePart, TypesError, TypesFault};
use super::index::{IndexChange, Indexing};
use super::{
    AssociationType, GraphTypes, Inverse, ObjectType, TEXT_BYTES_MAX, TYPES_MAX, TypeChange, TypeId,
    TypesDocument,
};
use kith_schema::{Change, Changes, Schema, compatible};

/// The maximum number of schemas of a type: [`crate::Data::schema`] has 16 bits.
const SCHEMAS_MAX: usize = 65_535;

/// The types and their changes so far, while a text is applied.
pub(super) struct Evolution {
    types: GraphTypes,
    changes: Vec<TypeChange>,
}

impl Evolution {
    /// Adds and changes the types of `declared`. The other types stay as they are.
    pub(super) fn apply(
        types: GraphTypes,
        declared: &DeclaredTypes,
    ) -> Result<(GraphTypes, Vec<TypeChange>), TypesError> {
        let mut evolution = Self { types, changes: Vec::new() };
        evolution.open(declared.open);
        for object in &declared.objects {
            evolution.object(object)?;
        }
        for association in &declared.associations {
            evolution.association(association)?;
        }
        let Self { mut types, changes } = evolution;
        if !changes.is_empty() {
            types.revision += 1;
            let document = serde_json::to_vec(&TypesDocument::from(&types)).unwrap_or_default();
            if TEXT_BYTES_MAX < document.len() {
                return Err(TypesError::whole(TypesFault::TooLong { bytes: document.len() }));
            }
        }
        Ok((types, changes))
    }

    fn open(&mut self, now: bool) {
        if std::mem::replace(&mut self.types.open, now) != now {
            self.changes.push(TypeChange::Open { now });
        }
    }

    fn object(&mut self, declared: &DeclaredObject) -> Result<(), TypesError> {
        let subject = TypePart::new(TypeKind::Object, declared.name.as_str());
        let made = &mut self.types.indexes_made;
        let found = self.types.objects.iter_mut().find(|(_, kind)| kind.name == declared.name);
        if let Some((_, kind)) = found {
            check_open(&subject, kind.open, declared.open)?;
            if kind.text_ids != declared.text_ids {
                return Err(subject.is(TypesFault::IdsChanged { were_texts: kind.text_ids }));
            }
            let before = kind.schemas.clone();
            let changes = evolve_fields(&subject, &mut kind.schemas, declared.fields.as_ref())?;
            let indexes = IndexChange { kind, before: Some(&before), made }.apply(&declared.indexes)?;
            self.note_fields(&subject, changes);
            self.note_indexes(&subject, indexes);
            return Ok(());
        }
        let schemas = declared.fields.iter().cloned().collect();
        let (name, open, text_ids) = (declared.name.clone(), declared.open, declared.text_ids);
        let mut kind = ObjectType { name, schemas, open, text_ids, ..ObjectType::default() };
        IndexChange { kind: &mut kind, before: None, made }.apply(&declared.indexes)?;
        let number = self.number()?;
        self.types.objects.insert(number, kind);
        self.note_added(&subject, number);
        Ok(())
    }

    fn association(&mut self, declared: &DeclaredAssociation) -> Result<(), TypesError> {
        let subject = TypePart::new(TypeKind::Association, declared.name.as_str());
        let Some((number, kind)) = self.types.association(&declared.name) else {
            return self.add_association(&subject, declared);
        };
        check_open(&subject, kind.open, declared.open)?;
        let was = self.direction_of(kind);
        let now = declared.inverse.direction();
        if was != now {
            return Err(subject.is(TypesFault::InverseChanged { was, now }));
        }
        let inverse = kind.inverse_of(number).filter(|inverse| *inverse != number);
        if let Some(kind) = self.types.associations.get_mut(&number) {
            let changes = evolve_fields(&subject, &mut kind.schemas, declared.fields.as_ref())?;
            let schemas = kind.schemas.clone();
            self.note_fields(&subject, changes);
            if let Some(kind) = inverse.and_then(|inverse| self.types.associations.get_mut(&inverse)) {
                kind.schemas = schemas;
            }
        }
        self.set_limits(number, declared.cap, declared.adjacency);
        if let (Some(inverse), DeclaredInverse::Named { cap, adjacency, .. }) = (inverse, &declared.inverse) {
            self.set_limits(inverse, *cap, *adjacency);
        }
        Ok(())
    }

    fn add_association(
        &mut self,
        subject: &TypePart,
        declared: &DeclaredAssociation,
    ) -> Result<(), TypesError> {
        let schemas: Vec<Schema> = declared.fields.iter().cloned().collect();
        let mut kind = AssociationType {
            name: declared.name.clone(),
            schemas: schemas.clone(),
            inverse: Inverse::None,
            cap: declared.cap,
            adjacency: declared.adjacency,
            open: declared.open,
        };
        let number = self.number()?;
        match &declared.inverse {
            DeclaredInverse::None => {}
            DeclaredInverse::Symmetric => kind.inverse = Inverse::Symmetric,
            DeclaredInverse::Named { name, cap, adjacency } => {
                let other = TypePart::new(TypeKind::Association, name.as_str());
                if let Some((_, found)) = self.types.association(name) {
                    let was = self.direction_of(found);
                    let now = format!("is the inverse of {:?}", declared.name);
                    return Err(other.is(TypesFault::InverseChanged { was, now }));
                }
                // The inverse gets the number after that of its forward type, so the forward type must be inserted first.
                self.insert(subject, number, kind.clone());
                let inverse_number = self.number()?;
                kind.inverse = Inverse::Named { kind: inverse_number, forward: true };
                self.types.associations.insert(number, kind);
                let inverse = Inverse::Named { kind: number, forward: false };
                let (name, cap, adjacency, open) = (name.clone(), *cap, *adjacency, declared.open);
                let kind = AssociationType { name, schemas, inverse, cap, adjacency, open };
                self.insert(&other, inverse_number, kind);
                return Ok(());
            }
        }
        self.insert(subject, number, kind);
        Ok(())
    }

    fn insert(&mut self, subject: &TypePart, number: TypeId, kind: AssociationType) {
        self.types.associations.insert(number, kind);
        self.note_added(subject, number);
    }

    fn set_limits(&mut self, number: TypeId, cap: u32, adjacency: bool) {
        let Some(kind) = self.types.associations.get_mut(&number) else { return };
        let was = std::mem::replace(&mut kind.cap, cap);
        if was != cap {
            self.changes.push(TypeChange::Cap { name: kind.name.clone(), was, now: cap });
        }
        if std::mem::replace(&mut kind.adjacency, adjacency) != adjacency {
            self.changes.push(TypeChange::Adjacency { name: kind.name.clone(), now: adjacency });
        }
    }

    /// Describes the inverse of an association type, for messages.
    fn direction_of(&self, kind: &AssociationType) -> String {
        let name =
            |id: &TypeId| self.types.associations.get(id).map(|kind| kind.name.as_str()).unwrap_or_default();
        match &kind.inverse {
            Inverse::None => "has no inverse".to_owned(),
            Inverse::Symmetric => "is symmetric".to_owned(),
            Inverse::Named { kind, forward: true } => format!("has the inverse {:?}", name(kind)),
            Inverse::Named { kind, forward: false } => format!("is the inverse of {:?}", name(kind)),
        }
    }

    /// Returns the number after the greatest one. No type is ever removed, so this number was never used.
    fn number(&self) -> Result<TypeId, TypesError> {
        let next = self.types.last_number().0.checked_add(1).map(TypeId);
        next.ok_or_else(|| TypesError::whole(TypesFault::TooMany { got: TYPES_MAX + 1 }))
    }

    fn note_added(&mut self, subject: &TypePart, number: TypeId) {
        self.changes.push(TypeChange::Added { kind: subject.kind, name: subject.name.clone(), number });
    }

    fn note_indexes(&mut self, subject: &TypePart, changes: Vec<(String, Indexing, Indexing)>) {
        let name = &subject.name;
        let change = |(field, was, now)| TypeChange::Index { name: name.clone(), field, was, now };
        self.changes.extend(changes.into_iter().map(change));
    }

    fn note_fields(&mut self, subject: &TypePart, changes: Changes) {
        let (kind, name) = (subject.kind, &subject.name);
        self.changes.extend(changes.into_iter().map(|change| TypeChange::Fields {
            kind,
            name: name.clone(),
            change,
        }));
    }
}

fn check_open(subject: &TypePart, was_open: bool, is_open: bool) -> Result<(), TypesError> {
    match was_open == is_open {
        true => Ok(()),
        false => Err(subject.clone().is(TypesFault::OpenChanged { was_open })),
    }
}

/// Appends `declared` to the schemas of a type if it differs from the last one, and returns the differences.
fn evolve_fields(
    subject: &TypePart,
    schemas: &mut Vec<Schema>,
    declared: Option<&Schema>,
) -> Result<Changes, TypesError> {
    let refuse = |fault| Err(subject.clone().is(fault));
    let changes = match (schemas.as_slice(), declared) {
        ([], None) => return Ok(Changes::new()),
        ([], Some(new)) => match first_fields(new) {
            Ok(changes) => changes,
            Err(field) => return refuse(TypesFault::FirstFields { field }),
        },
        (_, None) => return refuse(TypesFault::NoFieldsLeft),
        ([.., last], Some(new)) if last == new => return Ok(Changes::new()),
        ([earlier @ .., last], Some(new)) => {
            let changes = match compatible(last, new) {
                Ok(changes) => changes,
                Err(incompatible) => return refuse(TypesFault::Incompatible(incompatible)),
            };
            if let Some(incompatible) = earlier.iter().find_map(|old| compatible(old, new).err()) {
                return refuse(TypesFault::IncompatibleEarlier(incompatible));
            }
            changes
        }
    };
    if SCHEMAS_MAX <= schemas.len() {
        return refuse(TypesFault::SchemasUsedUp);
    }
    schemas.extend(declared.cloned());
    Ok(changes)
}

/// Returns the changes that the first fields of a type make. The error is the name of a field that is not nullable and has
/// no default, so that rows without a record have no value for it.
fn first_fields(schema: &Schema) -> Result<Changes, String> {
    let added = |field: &kith_schema::Field| match field.is_nullable() || field.has_default() {
        true => Ok(Change::Added { field: field.name().to_owned(), field_type: field.field_type() }),
        false => Err(field.name().to_owned()),
    };
    schema.fields().iter().map(added).collect()
}

impl DeclaredInverse {
    /// Describes the inverse as [`Evolution::direction_of`] does.
    fn direction(&self) -> String {
        match self {
            DeclaredInverse::None => "has no inverse".to_owned(),
            DeclaredInverse::Symmetric => "is symmetric".to_owned(),
            DeclaredInverse::Named { name, .. } => format!("has the inverse {name:?}"),
        }
    }
}
