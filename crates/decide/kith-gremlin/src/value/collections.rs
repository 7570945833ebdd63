//! Maps and sets of any values, which keep the order in which entries were added.

use super::Value;
use indexmap::{IndexMap, IndexSet};

/// A map. Two maps are equal if they have the same entries, in whatever order.
pub type Map = IndexMap<Value, Value>;

/// A set. Two sets are equal if they have the same values, in whatever order.
pub type Set = IndexSet<Value>;
