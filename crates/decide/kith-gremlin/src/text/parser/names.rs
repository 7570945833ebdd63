//! Values that begin with a name: variables, constants, constructors, predicates and anonymous traversals.

use super::{Parser, Result, predicates::PredicateParser};
use crate::{
    bytecode::{Bytecode, Instruction},
    text::{
        error::unknown,
        tokens::shortened,
        words::{self, STEPS},
    },
    value::{Cardinality, Symbol, Value, Vertex, time},
};
use uuid::{Builder, Uuid};

/// Multiples of this odd number are all different modulo 2¹²⁸, and far from each other.
const STRIDE: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

impl Parser<'_> {
    /// A value that begins with this name, which is the current token.
    pub(super) fn named(&mut self, name: &str) -> Result<Value> {
        let at = self.at;
        if name == "new" && !self.is_before('(') {
            self.advance()?;
            let at = self.at;
            let class = self.name("Vertex or ReferenceVertex")?;
            return match class {
                "Vertex" | "ReferenceVertex" => self.vertex(at),
                _ => Err(self.error(at, format!("only a Vertex can be made with new here, not a {class}"))),
            };
        }
        let is_call = self.is_before('(');
        let is_qualifier = self.is_before('.');
        self.advance()?;
        if is_call {
            self.call(at, name)
        } else if is_qualifier && !self.is_variable(name) {
            self.qualified(at, name)
        } else {
            self.word(at, name)
        }
    }

    fn is_variable(&self, name: &str) -> bool {
        self.inputs.bindings.contains_key(&Value::text(name))
    }

    /// A variable or a constant.
    fn word(&self, at: usize, name: &str) -> Result<Value> {
        if let Some(value) = self.inputs.bindings.get(&Value::text(name)) {
            return Ok(value.clone());
        }
        if let Some(value) = words::bare_word(name) {
            return Ok(value);
        }
        if name == "it" {
            return Err(self.unsupported(at, "a lambda"));
        }
        if STEPS.contains(&name) {
            return Err(self.error(at, format!("the step {name} needs parentheses: {name}()")));
        }
        let bindings = self.inputs.bindings.keys().filter_map(Value::as_text);
        let constants = words::bare_words().map(|word| -> &str { word });
        let message = unknown("name", &shortened(name), bindings.chain(constants));
        Err(self.error(at, format!("{message}; it is neither a constant nor a variable of the request")))
    }

    /// A name before a dot.
    fn qualified(&mut self, at: usize, name: &str) -> Result<Value> {
        match name {
            "__" => self.anonymous(Bytecode::default()),
            "P" | "TextP" => PredicateParser(self).qualified_predicate(),
            "it" | "Lambda" => Err(self.unsupported(at, "a lambda")),
            "VertexProperty" | "SackFunctions" => {
                self.expect('.')?;
                let class = self.name("Cardinality or Barrier")?;
                self.constant(at, class)
            }
            _ => self.constant(at, name),
        }
    }

    /// A constant of a class, such as `Order.desc`, whose class has been taken.
    fn constant(&mut self, at: usize, class: &str) -> Result<Value> {
        if !words::is_class(class) {
            let message = match class {
                "g" => "a nested traversal begins with __, not with g".to_owned(),
                _ => format!("unknown name {:?} before a dot", shortened(class)),
            };
            return Err(self.error(at, message));
        }
        self.expect('.')?;
        let at = self.at;
        let name = self.name("the name of a constant")?;
        let Some(value) = words::member(class, name) else {
            return Err(self.error(at, unknown(&format!("constant of {class}"), name, words::members(class))));
        };
        match value {
            Value::Symbol(Symbol::Cardinality(cardinality)) if self.is('(') => {
                self.cardinality(at, cardinality)
            }
            value => Ok(value),
        }
    }

    /// `list("a")`: a value and how it is added to those that a key has.
    fn cardinality(&mut self, at: usize, cardinality: Cardinality) -> Result<Value> {
        match <[Value; 1]>::try_from(self.arguments()?) {
            Ok([value]) => Ok(Value::CardinalityValue { cardinality, value: value.into() }),
            Err(_) => Err(self.error(at, format!("{cardinality}() takes one value"))),
        }
    }

    /// A name before a parenthesis.
    fn call(&mut self, at: usize, name: &str) -> Result<Value> {
        match name {
            "datetime" | "DateTime" => return self.date(at),
            "UUID" => return self.uuid(at),
            "Vertex" | "ReferenceVertex" => return self.vertex(at),
            _ => {}
        }
        if let Ok(cardinality) = name.parse::<Cardinality>() {
            return self.cardinality(at, cardinality);
        }
        let is_predicate = words::operands(name).is_some();
        if !is_predicate && !STEPS.contains(&name) {
            let predicates = words::PREDICATES.iter().map(|(name, _)| *name);
            let message = unknown("step or predicate", name, STEPS.iter().copied().chain(predicates));
            return Err(self.error(at, message));
        }
        let arguments = self.arguments()?;
        let is_step = name == "not" && !matches!(arguments[..], [Value::Predicate(_)]);
        if is_predicate && !is_step {
            return PredicateParser(self).predicate(at, name, arguments);
        }
        self.take_instruction()?;
        let first = Instruction::new(name, arguments);
        self.anonymous(Bytecode { sources: Vec::new(), steps: vec![first] })
    }

    /// `datetime("2024-05-01T12:00:00Z")`, or `datetime()` for now.
    fn date(&mut self, at: usize) -> Result<Value> {
        let arguments = self.arguments()?;
        let date = match arguments.as_slice() {
            [] => Some(self.inputs.now),
            [Value::String(text)] => time::parse_date_time(text),
            _ => None,
        };
        let error = || {
            self.error(
                at,
                "datetime() takes a date and time in the form of ISO 8601, such as \"2024-05-01T12:00:00Z\"",
            )
        };
        date.map(Value::DateTime).ok_or_else(error)
    }

    /// `UUID("…")`, or `UUID()` for a new one.
    fn uuid(&mut self, at: usize) -> Result<Value> {
        let arguments = self.arguments()?;
        let uuid = match arguments.as_slice() {
            [] => {
                self.uuids += 1;
                let bits = self.inputs.entropy.wrapping_add(self.uuids.wrapping_mul(STRIDE));
                Some(Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
            }
            [Value::String(text)] => Uuid::parse_str(text).ok(),
            _ => None,
        };
        let error = || self.error(at, "UUID() takes the text of a UUID, 8-4-4-4-12 hexadecimal digits");
        uuid.map(Value::Uuid).ok_or_else(error)
    }

    /// The id of a vertex and its label.
    fn vertex(&mut self, at: usize) -> Result<Value> {
        let arguments = self.arguments()?;
        let (id, label) = match arguments.as_slice() {
            [id] => (id, "vertex"),
            [id, Value::String(label)] => (id, &**label),
            _ => return Err(self.error(at, "Vertex() takes an id and a label")),
        };
        Ok(Value::Vertex(Vertex::reference(id.clone(), label).into()))
    }
}
