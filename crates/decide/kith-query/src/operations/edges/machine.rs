//! The edges of one member with their columns, in a given order, page by page. The node that holds the member sorts and
//! cuts them.

use super::{EdgeColumn, EdgesAnswer, EdgesQuery};
use crate::{
    EdgeCursor, GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::{
        limits::EDGES_MAX,
        machine::{
            HasMachine, Machine,
            ask::ask,
            range::within,
            resolve::{Resolver, column_of},
        },
    },
};
use kith_operators::{EdgePosition, EdgesEntry, EdgesPlan, Operator, Value};
use kith_schema::{Column, ColumnKind, EdgeSelector, KindRole, KindSchema};
use kith_types::{Direction, FanOutKind, StoreVersion, fmix64};

const EDGES: &str = "edges";

/// A query of edges under way.
#[derive(Clone, Debug)]
pub(crate) struct Edges {
    id: u64,
    plan: EdgesPlan,
    /// The kinds of the columns that are returned.
    kinds: Vec<ColumnKind>,
    version: StoreVersion,
    question: u32,
}

impl Edges {
    pub(super) fn new(query: &EdgesQuery, names: &Resolver<'_>) -> Result<Self, OperationError> {
        let edge = names.edge()?;
        let kind = names.kind(&edge)?;
        if (kind.role, edge.direction) == (KindRole::Directed, Direction::Both) {
            return Err(OperationError::BothDirections { name: kind.name.clone() });
        }
        let columns = match &query.columns {
            Some(names) => chosen(kind, names)?,
            None => kind.columns.clone(),
        };
        if let Some(name) = &query.order_by {
            column_of(kind, name)?;
        }
        let edge = names.filtered(edge, query.filter.as_ref())?;
        let question = checksum(query, &edge);
        if let Some(cursor) = &query.after {
            if cursor.question != question {
                return Err(OperationError::OtherCursor);
            }
            if cursor.version != kind.version {
                let (name, version) = (kind.name.clone(), cursor.version);
                return Err(OperationError::CursorExpired { name, version, current: kind.version });
            }
        }
        let plan = EdgesPlan {
            edge,
            columns: columns.iter().map(|column| column.name.clone()).collect(),
            order_by: query.order_by.clone(),
            descending: query.descending,
            after: query.after.map(|cursor| cursor.position),
            limit: query.limit.unwrap_or(EDGES_MAX),
        };
        within("the limit", plan.limit, 1, EDGES_MAX, "1 to 100000")?;
        let kinds = columns.iter().map(|column| column.kind).collect();
        Ok(Self { id: query.id, plan, kinds, version: kind.version, question })
    }

    fn answer(
        &self,
        ids: Vec<u64>,
        mut stored: Vec<Vec<u64>>,
        next: Option<EdgePosition>,
    ) -> Result<GraphAnswer, OperationError> {
        stored.resize(self.kinds.len(), Vec::new());
        if stored.iter().any(|values| values.len() != ids.len()) {
            return Err(OperationError::WrongValue);
        }
        let columns = self.plan.columns.iter().zip(&self.kinds).zip(stored);
        let columns = columns.map(|((name, kind), stored)| EdgeColumn {
            name: name.clone(),
            is_time: *kind == ColumnKind::Time,
            numbers: stored.into_iter().map(|stored| kind.value(stored)).collect(),
        });
        let after =
            next.map(|position| EdgeCursor { version: self.version, question: self.question, position });
        Ok(GraphAnswer::Edges(EdgesAnswer { ids, columns: columns.collect(), after }))
    }
}

impl HasMachine for EdgesQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(Edges::new(self, names)?))
    }
}

impl Machine for Edges {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match input {
            Input::Start => {
                let plan = Operator::Edges(Box::new(self.plan.clone()));
                Ok(ask(EDGES, FanOutKind::SingleKey, vec![self.id], plan))
            }
            Input::Value(Value::Edges(entries)) => match <[EdgesEntry; 1]>::try_from(entries) {
                Ok([EdgesEntry::NotInGraph]) => Err(OperationError::MemberNotFound { id: self.id }),
                Ok([EdgesEntry::Unanswered]) => {
                    Ok(OperationStep::Done(self.answer(Vec::new(), Vec::new(), None)?))
                }
                Ok([EdgesEntry::Page(page)]) => {
                    Ok(OperationStep::Done(self.answer(page.ids, page.columns, page.next)?))
                }
                Err(_) => Err(OperationError::WrongValue),
            },
            _ => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        vec![Outline { purpose: EDGES, kind: Some(FanOutKind::SingleKey), reach: "the member", when: "" }]
    }
}

fn chosen(kind: &KindSchema, names: &[String]) -> Result<Vec<Column>, OperationError> {
    if let Some(name) =
        names.iter().enumerate().find_map(|(index, name)| names[..index].contains(name).then_some(name))
    {
        return Err(OperationError::RepeatedColumn { column: name.clone() });
    }
    names.iter().map(|name| column_of(kind, name).cloned()).collect()
}

/// A checksum over everything that determines the edges and their order. Columns and limits may change from page to page.
fn checksum(query: &EdgesQuery, edge: &EdgeSelector) -> u32 {
    let direction = match edge.direction {
        Direction::Out => 1,
        Direction::In => 2,
        Direction::Both => 3,
    };
    let filter = edge.filter.as_ref();
    let words = [query.id, direction, u64::from(query.descending)];
    let range = filter.map_or([0; 2], |range| [range.low, range.high]);
    let names =
        [Some(edge.kind.as_str()), query.order_by.as_deref(), filter.map(|range| range.column.as_str())];
    let mut hash = 0u64;
    let mut add = |word: u64| hash = fmix64(hash.rotate_left(5) ^ word);
    words.into_iter().chain(range).for_each(&mut add);
    for name in names {
        let bytes = name.unwrap_or_default().as_bytes();
        add(name.map_or(u64::MAX, |_| bytes.len() as u64));
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            add(u64::from_le_bytes(word));
        }
    }
    (hash >> 32) as u32
}
