//! Traversals as values, for crates that link Gremlin: what a door has decoded is compiled without being coded in between.

use crate::{DecodedTraversal, GremlinTraversal, LinkedTraversal, QueryError};
use bytes::Bytes;
use kith_gremlin::{GremlinError, Room, bytecode::Bytecode, graphbinary, value::Value};
use std::sync::Arc;

/// Bytecode, and what it took to decode it.
#[derive(Debug)]
pub struct Traversal {
    /// The bytecode.
    pub bytecode: Arc<Bytecode>,
    /// About how many bytes of memory it takes.
    pub bytes: usize,
    /// The number of its instructions, those of nested traversals included.
    pub instructions: usize,
}

impl LinkedTraversal for Traversal {
    fn encode(&self) -> Result<Bytes, QueryError> {
        let bytes = graphbinary::write_value(&Value::Traversal(Arc::clone(&self.bytecode)));
        let wrong = |error: GremlinError| QueryError::BadRequest { detail: error.message };
        Ok(bytes.map_err(wrong)?.into())
    }
}

impl GremlinTraversal {
    /// A traversal that was decoded within this room.
    pub fn decoded(bytecode: Arc<Bytecode>, room: &Room) -> Self {
        let (bytes, instructions) = (room.taken(), room.instructions());
        Self::Decoded(DecodedTraversal::new(Traversal { bytecode, bytes, instructions }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_gremlin::bytecode::Instruction;

    #[test]
    fn a_decoded_traversal_is_coded_only_for_another_process() {
        let steps = vec![Instruction::new("V", vec![Value::Int(7)])];
        let bytecode = Arc::new(Bytecode { sources: Vec::new(), steps });
        let mut room = Room::alone();
        room.take(100).expect("there is room");
        let GremlinTraversal::Decoded(decoded) = GremlinTraversal::decoded(Arc::clone(&bytecode), &room)
        else {
            panic!("it is decoded");
        };
        let value: &Traversal = decoded.value().expect("a value of this crate");
        assert_eq!((value.bytes, &value.bytecode), (100, &bytecode));
        let bytes = decoded.encode().expect("it is short");
        assert_eq!(graphbinary::read_value(&bytes), Ok(Value::Traversal(bytecode)));
    }
}
