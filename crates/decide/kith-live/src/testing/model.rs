//! A model of TAO's operations without partitions, logs or pairs, with which tests compare. Its types are those of
//! [`super::fixture`].

use crate::{CompletedWrite, Conditions, Mutation, Outcome, Refusal, Write};
use std::collections::{BTreeMap, BTreeSet};

/// The key of an association: `id1`, the name of the type, and `id2`.
pub type EdgeName = (u64, String, u64);
/// The version, the time and the field `n` of an association.
pub type Edge = (u64, u64, Option<i64>);

/// The stored objects and associations, as TAO's callers see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// The version and the fields `a` and `b` of each object, by id.
    pub objects: BTreeMap<u64, (u64, [Option<i64>; 2])>,
    /// The associations, in each direction that they have.
    pub edges: BTreeMap<EdgeName, Edge>,
    /// The objects of the type `account`.
    accounts: BTreeSet<u64>,
    outcomes: BTreeMap<String, Outcome>,
}

fn other_way(kind: &str) -> Option<&str> {
    Some(match kind {
        "friend" | "rival" => kind,
        "follows" => "followed_by",
        "followed_by" => "follows",
        "hires" => "hired_by",
        "hired_by" => "hires",
        _ => return None,
    })
}

impl Model {
    /// Carries out a write, which gets `version` if it changes something, and returns its outcome.
    pub fn run(&mut self, write: &Write, version: u64, now: u64) -> Outcome {
        if let Some(known) = write.write_id.as_ref().and_then(|id| self.outcomes.get(id.as_str())) {
            return known.clone();
        }
        let outcome = self.run_new(write, version, now);
        if let Some(id) = &write.write_id {
            self.outcomes.insert(id.as_str().to_owned(), outcome.clone());
        }
        outcome
    }

    /// Returns the id that a write is about, and the version of the object or association that it names; `None` if this does
    /// not exist.
    pub fn found(&self, mutation: &Mutation) -> (u64, Option<u64>) {
        match mutation {
            Mutation::AddObject { id, .. } => (id.unwrap(), self.objects.get(&id.unwrap()).map(|it| it.0)),
            Mutation::UpdateObject { id, .. } | Mutation::DeleteObject { id } => {
                (*id, self.objects.get(id).map(|it| it.0))
            }
            Mutation::AddAssociation { id1, kind, id2, .. }
            | Mutation::DeleteAssociation { id1, kind, id2 }
            | Mutation::ChangeType { id1, kind, id2, .. } => {
                (*id1, self.edges.get(&(*id1, kind.clone(), *id2)).map(|it| it.0))
            }
        }
    }

    fn run_new(&mut self, write: &Write, version: u64, now: u64) -> Outcome {
        let (id, found) = self.found(&write.mutation);
        let refused = |refusal| Outcome::Refused(refusal);
        match write.conditions {
            Conditions { if_version: Some(wanted), .. } if wanted != found.unwrap_or(0) => {
                return refused(Refusal::OtherVersion { found: found.unwrap_or(0), wanted });
            }
            Conditions { if_exists: Some(true), .. } if found.is_none() => return refused(Refusal::Absent),
            Conditions { if_exists: Some(false), .. } if found.is_some() => {
                return refused(Refusal::Present { version: found.unwrap() });
            }
            _ => {}
        }
        let existed = found.is_some();
        match &write.mutation {
            Mutation::AddObject { .. } if existed => return refused(Refusal::ObjectExists { id }),
            Mutation::AddAssociation { .. } | Mutation::AddObject { .. } => {}
            _ if !existed => return Outcome::Done(CompletedWrite { id, version: 0, existed: false }),
            _ => {}
        }
        if let Some((value, holder)) = self.taken(&write.mutation) {
            let (field, value) = ("b".to_owned(), value.to_string());
            return refused(Refusal::UniqueTaken { field, value, id: holder });
        }
        self.change(&write.mutation, version, now);
        Outcome::Done(CompletedWrite { id, version, existed })
    }

    /// Returns the value of the unique field that a write gives to an account, and the other account that has it.
    fn taken(&self, mutation: &Mutation) -> Option<(i64, u64)> {
        let (id, data) = match mutation {
            Mutation::AddObject { id, kind, data, .. } if kind == "account" => {
                (id.unwrap(), data.as_deref()?)
            }
            Mutation::UpdateObject { id, data } if self.accounts.contains(id) => (*id, data.as_str()),
            _ => return None,
        };
        let value = object_fields([None, None], data)[1]?;
        let has_it = |other: &&u64| **other != id && self.objects[*other].1[1] == Some(value);
        self.accounts.iter().find(has_it).map(|other| (value, *other))
    }

    fn change(&mut self, mutation: &Mutation, version: u64, now: u64) {
        match mutation {
            Mutation::AddObject { id, data, kind, .. } => {
                if kind == "account" {
                    self.accounts.insert(id.unwrap());
                }
                let fields = object_fields([None, None], data.as_deref().unwrap_or("{}"));
                self.objects.insert(id.unwrap(), (version, fields));
            }
            Mutation::UpdateObject { id, data } => {
                let fields = object_fields(self.objects[id].1, data);
                self.objects.insert(*id, (version, fields));
            }
            Mutation::DeleteObject { id } => {
                self.objects.remove(id);
                self.accounts.remove(id);
            }
            Mutation::AddAssociation { id1, kind, id2, time, data } => {
                let number = data.as_deref().and_then(|data| member(data, "n"));
                self.set(*id1, kind, *id2, Some((version, time.unwrap_or(now), number)));
            }
            Mutation::DeleteAssociation { id1, kind, id2 } => self.set(*id1, kind, *id2, None),
            Mutation::ChangeType { id1, kind, id2, new_kind } => {
                let (_, time, number) = self.edges[&(*id1, kind.clone(), *id2)];
                self.set(*id1, kind, *id2, None);
                self.set(*id1, new_kind, *id2, Some((version, time, number)));
            }
        }
    }

    fn set(&mut self, id1: u64, kind: &str, id2: u64, to: Option<Edge>) {
        let mirror = other_way(kind).map(|other| (id2, other.to_owned(), id1));
        for key in [Some((id1, kind.to_owned(), id2)), mirror].into_iter().flatten() {
            match to {
                Some(to) => drop(self.edges.insert(key, to)),
                None => drop(self.edges.remove(&key)),
            }
        }
    }
}

fn member(json: &str, name: &str) -> Option<i64> {
    serde_json::from_str::<serde_json::Value>(json).unwrap()[name].as_i64()
}

/// Returns the fields `a` and `b` of an object after an update.
pub fn object_fields(mut fields: [Option<i64>; 2], json: &str) -> [Option<i64>; 2] {
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        if json.contains(name) {
            fields[index] = member(json, name);
        }
    }
    fields
}
