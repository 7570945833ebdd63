//! The kinds of writes that are tested.

use kith_live::{Conditions, Mutation, Write};

/// A kind of write, with the writes before and after it, which are made without faults.
pub struct Case {
    pub name: &'static str,
    /// The partitions of the two ids. The first id is the smaller one.
    pub partitions: (u32, u32),
    /// Whether the leaders of both partitions take part.
    pub is_split: bool,
    /// The association types that the write may change.
    pub kinds: &'static [&'static str],
    pub before: fn(u64, u64) -> Vec<Mutation>,
    pub write: fn(u64, u64) -> Write,
    pub after: fn(u64, u64) -> Vec<Mutation>,
}

/// Returns the addition of an object.
pub fn object(id: u64, number: u64) -> Mutation {
    let data = Some(format!(r#"{{"a":{number}}}"#));
    Mutation::AddObject { kind: "user".to_owned(), data, id: Some(id), near: None, text_id: None }
}

fn update(id: u64, number: u64) -> Mutation {
    Mutation::UpdateObject { id, data: format!(r#"{{"b":{number}}}"#) }
}

fn add(id1: u64, kind: &str, id2: u64, time: u64) -> Mutation {
    Mutation::AddAssociation { id1, kind: kind.to_owned(), id2, time: Some(time), data: None }
}

/// Returns the addition of a pair.
pub fn friends(one: u64, other: u64) -> Mutation {
    add(one, "friend", other, 1)
}

fn delete(id1: u64, kind: &str, id2: u64) -> Mutation {
    Mutation::DeleteAssociation { id1, kind: kind.to_owned(), id2 }
}

fn change(id1: u64, kind: &str, id2: u64, new_kind: &str) -> Mutation {
    Mutation::ChangeType { id1, kind: kind.to_owned(), id2, new_kind: new_kind.to_owned() }
}

fn always(mutation: Mutation) -> Write {
    Write { mutation, conditions: Conditions::default(), write_id: None }
}

fn if_exists(mutation: Mutation, exists: bool) -> Write {
    let conditions = Conditions { if_exists: Some(exists), if_version: None };
    Write { conditions, ..always(mutation) }
}

pub const CASES: [Case; 14] = [
    Case {
        name: "object_add",
        partitions: (0, 0),
        is_split: false,
        kinds: &[],
        before: |_, _| vec![],
        write: |one, _| always(object(one, 1)),
        after: |one, _| vec![update(one, 2)],
    },
    Case {
        name: "object_update",
        partitions: (0, 0),
        is_split: false,
        kinds: &[],
        before: |one, _| vec![object(one, 1)],
        write: |one, _| always(update(one, 2)),
        after: |one, _| vec![update(one, 3)],
    },
    Case {
        name: "object_delete",
        partitions: (0, 0),
        is_split: false,
        kinds: &[],
        before: |one, _| vec![object(one, 1)],
        write: |one, _| if_exists(Mutation::DeleteObject { id: one }, true),
        after: |one, _| vec![object(one, 2)],
    },
    Case {
        name: "a one-sided assoc_add",
        partitions: (0, 1),
        is_split: false,
        kinds: &["likes"],
        before: |_, _| vec![],
        write: |one, other| if_exists(add(one, "likes", other, 1), false),
        after: |one, other| vec![delete(one, "likes", other)],
    },
    Case {
        name: "a one-sided assoc_delete",
        partitions: (0, 1),
        is_split: false,
        kinds: &["likes"],
        before: |one, other| vec![add(one, "likes", other, 1)],
        write: |one, other| if_exists(delete(one, "likes", other), true),
        after: |one, other| vec![add(one, "likes", other, 2)],
    },
    Case {
        name: "a one-sided assoc_change_type",
        partitions: (0, 1),
        is_split: false,
        kinds: &["likes", "blocks"],
        before: |one, other| vec![add(one, "likes", other, 1)],
        write: |one, other| always(change(one, "likes", other, "blocks")),
        after: |one, other| vec![add(one, "likes", other, 2)],
    },
    Case {
        name: "a pair in one partition",
        partitions: (0, 0),
        is_split: false,
        kinds: &["friend"],
        before: |_, _| vec![],
        write: |one, other| if_exists(add(one, "friend", other, 1), false),
        after: |one, other| vec![delete(one, "friend", other)],
    },
    Case {
        name: "an assoc_add over two partitions",
        partitions: (0, 1),
        is_split: true,
        kinds: &["friend"],
        before: |_, _| vec![],
        write: |one, other| if_exists(add(one, "friend", other, 1), false),
        after: |one, other| vec![delete(one, "friend", other)],
    },
    Case {
        name: "an assoc_add of the inverse, over two partitions",
        partitions: (1, 0),
        is_split: true,
        kinds: &["follows", "followed_by"],
        before: |_, _| vec![],
        write: |one, other| if_exists(add(one, "followed_by", other, 1), false),
        after: |one, other| vec![delete(other, "follows", one)],
    },
    Case {
        name: "an assoc_add that overwrites over two partitions",
        partitions: (0, 1),
        is_split: true,
        kinds: &["friend"],
        before: |one, other| vec![add(one, "friend", other, 1)],
        write: |one, other| always(add(other, "friend", one, 2)),
        after: |one, other| vec![add(one, "friend", other, 3)],
    },
    Case {
        name: "an assoc_delete over two partitions",
        partitions: (0, 1),
        is_split: true,
        kinds: &["follows", "followed_by"],
        before: |one, other| vec![add(one, "follows", other, 1)],
        write: |one, other| if_exists(delete(one, "follows", other), true),
        after: |one, other| vec![add(one, "follows", other, 2)],
    },
    Case {
        name: "an assoc_change_type over two partitions",
        partitions: (1, 0),
        is_split: true,
        kinds: &["friend", "follows", "followed_by"],
        before: |one, other| vec![add(one, "friend", other, 1)],
        write: |one, other| always(change(one, "friend", other, "follows")),
        after: |one, other| vec![delete(one, "follows", other)],
    },
    Case {
        name: "an assoc_change_type to the inverse over two partitions",
        partitions: (0, 1),
        is_split: true,
        kinds: &["follows", "followed_by"],
        before: |one, other| vec![add(one, "follows", other, 1)],
        write: |one, other| always(change(one, "follows", other, "followed_by")),
        after: |one, other| vec![change(one, "followed_by", other, "follows")],
    },
    Case {
        name: "a refused assoc_delete over two partitions",
        partitions: (0, 1),
        is_split: false,
        kinds: &["friend"],
        before: |_, _| vec![],
        write: |one, other| if_exists(delete(one, "friend", other), true),
        after: |one, other| vec![add(one, "friend", other, 1)],
    },
];
