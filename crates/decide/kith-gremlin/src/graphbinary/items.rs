//! Reads a long list one item at a time.

use super::{Reader, code::TypeCode};
use crate::{
    error::{GremlinError, Result},
    value::Value,
};
use kith_types::ErrorCode;
use std::sync::Arc;

/// The most results that are sent one by one, even if they are equal.
pub const RESULTS_MAX: u64 = 10_000_000;

/// The items of a list, which are read as they are asked for. After an error there are no more.
#[derive(Debug)]
pub struct Items<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Items<'a> {
    /// The items of the list that `bytes` hold.
    ///
    /// # Errors
    ///
    /// The bytes are not a list.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        if reader.byte()? != TypeCode::List as u8 || reader.flag()? {
            return Err(reader.error_at(0, "the value is not a list"));
        }
        let left = reader.count(2)?;
        Ok(Self { reader, left })
    }

    /// The number of items that are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The number of bytes read so far.
    pub fn offset(&self) -> usize {
        self.reader.offset()
    }

    fn read(&mut self) -> Result<Value> {
        let value = self.reader.value()?;
        if self.left == 0 {
            self.reader.finish()?;
        }
        Ok(value)
    }
}

impl Iterator for Items<'_> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        self.left = self.left.checked_sub(1)?;
        let item = self.read();
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

/// The value of a traverser, and how often it occurs.
pub fn counted(traverser: Value) -> (Value, u64) {
    match traverser {
        Value::Traverser { bulk, value } => (Arc::unwrap_or_clone(value), bulk.max(0).unsigned_abs()),
        value => (value, 1),
    }
}

/// Checks that results, a list of traversers, are few enough to be sent one by one after `before` others. A traverser may stand
/// for more than 2⁵⁰. Returns how many there are together.
///
/// # Errors
///
/// There are more than [`RESULTS_MAX`], or the bytes are not a list.
pub fn check_count(results: &[u8], before: u64) -> Result<u64> {
    let mut count = before;
    for item in Items::new(results)? {
        count = count.saturating_add(counted(item?).1);
    }
    if count <= RESULTS_MAX {
        return Ok(count);
    }
    Err(GremlinError::new(
        ErrorCode::TooLarge,
        format!(
            "the traversal has {count} results or more; at most {RESULTS_MAX} are sent one by one (end it with count(), dedup() or \
             limit(), or send it as bytecode, whose results say how often they occur)"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::{super::write_value, *};

    #[test]
    fn a_list_is_read_item_by_item_and_to_its_end() {
        let list = Value::list([Value::Int(1), Value::text("a")]);
        let mut bytes = write_value(&list).expect("short");
        let mut items = Items::new(&bytes).expect("a list");
        assert_eq!((items.left(), items.next()), (2, Some(Ok(Value::Int(1)))));
        assert_eq!((items.next(), items.left()), (Some(Ok(Value::text("a"))), 0));
        assert_eq!((items.next(), items.offset()), (None, bytes.len()));
        bytes.push(0);
        assert!(Items::new(&bytes).expect("a list").last().expect("items").is_err());
        assert!(Items::new(&write_value(&Value::Int(1)).expect("short")).is_err());
    }
}
