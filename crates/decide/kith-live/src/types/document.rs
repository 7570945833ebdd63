//! The types of a graph as the metadata store keeps them: a part of the graph's document (`docs/formats/graph-types.md`).

use super::fault::{TypeKind, TypePart, TypesError, TypesFault};
use super::open::name_fault;
use super::{AssociationType, CAP_MAX, GraphTypes, Index, IndexId, Inverse, ObjectType, TypeId};
use kith_schema::Schema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The types of a graph in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TypesDocument {
    /// [`GraphTypes::identity`], in 16 hexadecimal digits.
    pub identity: String,
    /// [`GraphTypes::revision`].
    pub revision: u64,
    /// [`GraphTypes::open`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// The object types, in ascending order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectDocument>,
    /// The association types, in ascending order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub associations: Vec<AssociationDocument>,
    /// [`GraphTypes::indexes_made`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub indexes_made: u32,
}

/// An object type in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectDocument {
    /// The number of the type.
    pub number: u16,
    /// The name of the type.
    pub name: String,
    /// The schemas of the type in canonical form, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<String>,
    /// The indexes of the type, in ascending order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<IndexDocument>,
    /// [`ObjectType::open`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// [`ObjectType::text_ids`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text_ids: bool,
}

/// An index in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexDocument {
    /// The number of the index.
    pub number: u32,
    /// The name of the field.
    pub field: String,
    /// Whether the values are unique.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
}

/// An association type in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssociationDocument {
    /// The number of the type.
    pub number: u16,
    /// The name of the type.
    pub name: String,
    /// The schemas of the type, as in [`ObjectDocument::schemas`]. Empty for an inverse, which has the schemas of its
    /// forward type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schemas: Vec<String>,
    /// Whether the type is its own inverse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub symmetric: bool,
    /// The number of the inverse, if this is the forward type of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inverse: Option<u16>,
    /// The number of the forward type, if this type is its inverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inverse_of: Option<u16>,
    /// [`AssociationType::cap`].
    pub cap: u32,
    /// [`AssociationType::adjacency`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adjacency: bool,
    /// [`AssociationType::open`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

impl From<&GraphTypes> for TypesDocument {
    fn from(types: &GraphTypes) -> Self {
        let object = |(number, kind): (&TypeId, &ObjectType)| ObjectDocument {
            number: number.0,
            name: kind.name.clone(),
            schemas: canonical(&kind.schemas),
            indexes: kind.indexes.iter().map(index_document).collect(),
            open: kind.open,
            text_ids: kind.text_ids,
        };
        let association = |(number, kind): (&TypeId, &AssociationType)| {
            let (inverse, inverse_of) = match kind.inverse {
                Inverse::Named { kind, forward: true } => (Some(kind.0), None),
                Inverse::Named { kind, forward: false } => (None, Some(kind.0)),
                Inverse::None | Inverse::Symmetric => (None, None),
            };
            AssociationDocument {
                number: number.0,
                name: kind.name.clone(),
                schemas: if inverse_of.is_some() { Vec::new() } else { canonical(&kind.schemas) },
                symmetric: kind.inverse == Inverse::Symmetric,
                inverse,
                inverse_of,
                cap: kind.cap,
                adjacency: kind.adjacency,
                open: kind.open,
            }
        };
        TypesDocument {
            identity: format!("{:016x}", types.identity),
            revision: types.revision,
            open: types.open,
            objects: types.objects.iter().map(object).collect(),
            associations: types.associations.iter().map(association).collect(),
            indexes_made: types.indexes_made,
        }
    }
}

impl TryFrom<TypesDocument> for GraphTypes {
    type Error = TypesError;

    fn try_from(document: TypesDocument) -> Result<Self, TypesError> {
        let identity = u64::from_str_radix(&document.identity, 16);
        let identity = identity.map_err(|_| damaged("the identity is not a hexadecimal number"))?;
        let (revision, indexes_made) = (document.revision, document.indexes_made);
        let mut types =
            GraphTypes { identity, revision, indexes_made, open: document.open, ..Self::default() };
        let mut index_numbers = BTreeSet::from([0]);
        let mut numbers = BTreeSet::from([0]);
        let mut names = BTreeSet::new();
        for it in document.objects {
            check(TypeKind::Object, it.number, &it.name, (&mut numbers, &mut names))?;
            check_name(&it.name, it.open, None, &it.schemas)?;
            let schemas = parsed(TypeKind::Object, &it.name, &it.schemas)?;
            let indexed =
                it.indexes.into_iter().map(|it| index(it, &schemas, indexes_made, &mut index_numbers));
            let indexes = indexed.collect::<Result<_, _>>()?;
            if it.open && it.text_ids {
                return Err(damaged("an open type declares its ids"));
            }
            let kind = ObjectType { name: it.name, schemas, indexes, open: it.open, text_ids: it.text_ids };
            types.objects.insert(TypeId(it.number), kind);
        }
        for it in document.associations {
            check(TypeKind::Association, it.number, &it.name, (&mut numbers, &mut names))?;
            types.associations.insert(TypeId(it.number), association(it)?);
        }
        check_associations(&types.associations)?;
        share_schemas(&mut types.associations)?;
        Ok(types)
    }
}

fn index_document(index: &Index) -> IndexDocument {
    IndexDocument { number: index.number.0, field: index.field.clone(), unique: index.unique }
}

/// Reads an index of a type with these schemas. `numbers` are those of the indexes so far, and no index has a greater number
/// than `made`.
fn index(
    it: IndexDocument,
    schemas: &[Schema],
    made: u32,
    numbers: &mut BTreeSet<u32>,
) -> Result<Index, TypesError> {
    if made < it.number || !numbers.insert(it.number) {
        return Err(damaged("the number of an index is 0, too large or used twice"));
    }
    if schemas.last().is_none_or(|schema| schema.index_of(&it.field).is_none()) {
        return Err(damaged("an index is on a field that does not exist"));
    }
    Ok(Index { number: IndexId(it.number), field: it.field, unique: it.unique })
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn association(it: AssociationDocument) -> Result<AssociationType, TypesError> {
    let inverse = match (it.symmetric, it.inverse, it.inverse_of) {
        (false, None, None) => Inverse::None,
        (true, None, None) => Inverse::Symmetric,
        (false, Some(kind), None) => Inverse::Named { kind: TypeId(kind), forward: true },
        (false, None, Some(kind)) => Inverse::Named { kind: TypeId(kind), forward: false },
        _ => return Err(damaged("a type has more than one inverse")),
    };
    if !(1..=CAP_MAX).contains(&it.cap) {
        return Err(damaged("a cap is 0 or too large"));
    }
    let schemas = parsed(TypeKind::Association, &it.name, &it.schemas)?;
    let (cap, adjacency, open) = (it.cap, it.adjacency, it.open);
    Ok(AssociationType { name: it.name, schemas, inverse, cap, adjacency, open })
}

/// Gives each inverse the schemas of its forward type, and checks that the two name each other.
fn share_schemas(associations: &mut BTreeMap<TypeId, AssociationType>) -> Result<(), TypesError> {
    let mut shared = Vec::new();
    for (number, kind) in &*associations {
        let Inverse::Named { kind: other, forward } = kind.inverse else { continue };
        let found = associations.get(&other).ok_or_else(|| damaged("an inverse does not exist"))?;
        if found.inverse != (Inverse::Named { kind: *number, forward: !forward }) || other == *number {
            return Err(damaged("two types are not the inverse of each other"));
        }
        if forward {
            shared.push((other, kind.schemas.clone()));
        }
    }
    for (number, schemas) in shared {
        if let Some(kind) = associations.get_mut(&number) {
            kind.schemas = schemas;
        }
    }
    Ok(())
}

fn check(
    kind: TypeKind,
    number: u16,
    name: &str,
    (numbers, names): (&mut BTreeSet<u16>, &mut BTreeSet<(TypeKind, String)>),
) -> Result<(), TypesError> {
    if !numbers.insert(number) {
        return Err(damaged("a number is 0 or used twice"));
    }
    if !names.insert((kind, name.to_owned())) {
        return Err(damaged("a name is used twice"));
    }
    Ok(())
}

/// Checks the names of association types, and that a type and its inverse are both open or both not.
fn check_associations(associations: &BTreeMap<TypeId, AssociationType>) -> Result<(), TypesError> {
    for kind in associations.values() {
        let forward = match kind.inverse {
            Inverse::Named { kind: other, forward: false } => associations.get(&other),
            Inverse::None if kind.open => return Err(damaged("an open type has no inverse")),
            _ => None,
        };
        if forward.is_some_and(|forward| forward.open != kind.open) {
            return Err(damaged("only one of a type and its inverse is open"));
        }
        check_name(&kind.name, kind.open, forward.map(|forward| forward.name.as_str()), &kind.schemas)?;
    }
    Ok(())
}

/// Checks the name of a type, and that it has no schemas if it is open. `forward` is the name of the forward type of an inverse.
fn check_name<T>(name: &str, open: bool, forward: Option<&str>, schemas: &[T]) -> Result<(), TypesError> {
    if name_fault(name, open, forward).is_some() {
        return Err(damaged("a name is not allowed"));
    }
    if open && !schemas.is_empty() {
        return Err(damaged("an open type has a schema"));
    }
    Ok(())
}

fn parsed(kind: TypeKind, name: &str, schemas: &[String]) -> Result<Vec<Schema>, TypesError> {
    let wrong = |_| TypePart::new(kind, name).is(TypesFault::Document { detail: "a schema cannot be read" });
    schemas.iter().map(|text| text.parse::<Schema>().map_err(wrong)).collect()
}

fn canonical(schemas: &[Schema]) -> Vec<String> {
    schemas.iter().map(|schema| schema.canonical().to_owned()).collect()
}

fn damaged(detail: &'static str) -> TypesError {
    TypesError::whole(TypesFault::Document { detail })
}
