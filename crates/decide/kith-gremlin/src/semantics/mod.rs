//! The meaning of values: when they are equal, how they are ordered, what predicates say of them, and their arithmetic.
//!
//! Gremlin compares values in four ways, and TinkerPop's provider documentation names them:
//!
//! | name | used by | here |
//! |---|---|---|
//! | equality | `eq`, `neq`, `within`, `without` | [`equal`] |
//! | comparability | `lt`, `lte`, `gt`, `gte`, `between`, `inside`, `outside` | [`compare`] |
//! | orderability | `order()` | [`order`] |
//! | equivalence | `dedup()`, `group()`, keys of maps, sets | `==` of [`Value`](crate::value::Value) |
//!
//! Nothing here knows graphs or traversals.

mod compare;
mod equality;
mod extremes;
pub mod lists;
pub mod number;
mod operator;
mod order;
mod predicate;
mod relation;
mod types;

pub use compare::compare;
pub use equality::equal;
pub use extremes::{greatest, least};
pub use operator::apply;
pub use order::order;
pub use predicate::Test;
pub use relation::{LastTest, Relation};
pub use types::type_of;
