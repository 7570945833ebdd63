//! What routers and nodes say to each other: operators, and the values that nodes return.

mod edges;
mod live;
mod live_plans;
mod operator;
mod value;

pub use operator::{operator_from_wire, operator_to_wire};
pub use value::{value_from_wire, value_of_reply, value_to_wire};
