//! The checksum of a write, which distinguishes a repeat of the write from another write with the same id.

use super::{Mutation, Write};
use kith_types::delta::put_varint;
use xxhash_rust::xxh3::xxh3_64;

impl Write {
    /// Returns a checksum of the mutation and its conditions. Equal writes have equal checksums. Since checksums are stored,
    /// they are the same in every release.
    pub fn checksum(&self) -> u64 {
        let mut out = Vec::new();
        put_mutation(&mut out, &self.mutation);
        put_number(&mut out, self.conditions.if_version);
        put_number(&mut out, self.conditions.if_exists.map(u64::from));
        xxh3_64(&out)
    }
}

fn put_mutation(out: &mut Vec<u8>, mutation: &Mutation) {
    match mutation {
        Mutation::AddObject { kind, data, id, near, text_id } => {
            out.push(0);
            put_text(out, Some(kind));
            put_text(out, data.as_deref());
            put_number(out, *id);
            put_number(out, *near);
            if let Some(text_id) = text_id {
                out.push(text_id.form().number());
                put_text(out, Some(text_id.as_str()));
            }
        }
        Mutation::UpdateObject { id, data } => {
            out.push(1);
            put_number(out, Some(*id));
            put_text(out, Some(data));
        }
        Mutation::DeleteObject { id } => {
            out.push(2);
            put_number(out, Some(*id));
        }
        Mutation::AddAssociation { id1, kind, id2, time, data } => {
            out.push(3);
            put_association(out, *id1, kind, *id2);
            put_number(out, *time);
            put_text(out, data.as_deref());
        }
        Mutation::DeleteAssociation { id1, kind, id2 } => {
            out.push(4);
            put_association(out, *id1, kind, *id2);
        }
        Mutation::ChangeType { id1, kind, id2, new_kind } => {
            out.push(5);
            put_association(out, *id1, kind, *id2);
            put_text(out, Some(new_kind));
        }
    }
}

fn put_association(out: &mut Vec<u8>, id1: u64, kind: &str, id2: u64) {
    put_number(out, Some(id1));
    put_text(out, Some(kind));
    put_number(out, Some(id2));
}

fn put_number(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(u8::from(number.is_some()));
    put_varint(out, number.unwrap_or_default());
}

fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    put_number(out, text.map(|text| text.len() as u64));
    out.extend(text.unwrap_or_default().as_bytes());
}
