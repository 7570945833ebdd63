//! The types that tests use. Objects have the type `user`, or `account`, whose field `a` has an index and whose field `b` is
//! unique. The association types `likes` and `blocks` are one-sided, and
//! `friend` and `rival` are symmetric. `followed_by` is the inverse of `follows`, and `hired_by` is the inverse of `hires`.

use crate::{AssociationType, GraphTypes, Index, IndexId, Inverse, ObjectType, TypeId};
use kith_schema::Schema;

/// The type of most objects.
pub const USER: TypeId = TypeId(1);
/// A one-sided type.
pub const LIKES: TypeId = TypeId(2);
/// A one-sided type.
pub const BLOCKS: TypeId = TypeId(3);
/// A symmetric type.
pub const FRIEND: TypeId = TypeId(4);
/// A symmetric type.
pub const RIVAL: TypeId = TypeId(5);
/// The inverse of [`FOLLOWED_BY`].
pub const FOLLOWS: TypeId = TypeId(6);
/// The inverse of [`FOLLOWS`].
pub const FOLLOWED_BY: TypeId = TypeId(7);
/// The inverse of [`HIRED_BY`].
pub const HIRES: TypeId = TypeId(8);
/// The inverse of [`HIRES`].
pub const HIRED_BY: TypeId = TypeId(9);

/// The type of objects with indexes.
pub const ACCOUNT: TypeId = TypeId(10);
/// The index on the field `a` of [`ACCOUNT`].
pub const ACCOUNT_A: IndexId = IndexId(1);
/// The index on the field `b` of [`ACCOUNT`], whose values are unique.
pub const ACCOUNT_B: IndexId = IndexId(2);

/// The names of the association types, in the order of their numbers.
pub const NAMES: [&str; 8] =
    ["likes", "blocks", "friend", "rival", "follows", "followed_by", "hires", "hired_by"];

/// Returns the types of the fixture.
pub fn types() -> GraphTypes {
    let named = |kind, forward| Inverse::Named { kind, forward };
    let inverses = [
        (LIKES, Inverse::None),
        (BLOCKS, Inverse::None),
        (FRIEND, Inverse::Symmetric),
        (RIVAL, Inverse::Symmetric),
        (FOLLOWS, named(FOLLOWED_BY, true)),
        (FOLLOWED_BY, named(FOLLOWS, false)),
        (HIRES, named(HIRED_BY, true)),
        (HIRED_BY, named(HIRES, false)),
    ];
    let schema = |fields: &str| -> Schema {
        format!("{{\"fields\":[{fields}]}}").parse().expect("the text is a schema")
    };
    let number = |name| format!(r#"{{"name":"{name}","type":"i64","nullable":true}}"#);
    let mut types = GraphTypes { identity: 7, revision: 1, ..GraphTypes::default() };
    let fields = schema(&format!("{},{}", number("a"), number("b")));
    let object = |name: &str, indexes| ObjectType {
        name: name.to_owned(),
        schemas: vec![fields.clone()],
        indexes,
        open: false,
        text_ids: false,
    };
    let index = |number, field: &str, unique| Index { number, field: field.to_owned(), unique };
    let indexes = vec![index(ACCOUNT_A, "a", false), index(ACCOUNT_B, "b", true)];
    types.indexes_made = 2;
    types.objects.insert(USER, object("user", Vec::new()));
    types.objects.insert(ACCOUNT, object("account", indexes));
    for ((kind, inverse), name) in inverses.into_iter().zip(NAMES) {
        let kind_of = AssociationType {
            name: name.to_owned(),
            schemas: vec![schema(&number("n"))],
            inverse,
            cap: AssociationType::CAP_DEFAULT,
            adjacency: false,
            open: false,
        };
        types.associations.insert(kind, kind_of);
    }
    types
}
