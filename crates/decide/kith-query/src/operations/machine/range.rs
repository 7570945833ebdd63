//! Refuses numbers that are out of range.

use crate::OperationError;

/// Refuses a number outside of its range.
pub(in crate::operations) fn within(
    what: &'static str,
    got: u64,
    least: u64,
    greatest: u64,
    range: &'static str,
) -> Result<(), OperationError> {
    if (least..=greatest).contains(&got) {
        Ok(())
    } else {
        Err(OperationError::OutOfRange { what, got, range })
    }
}
