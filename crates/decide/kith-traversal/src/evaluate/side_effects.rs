//! Side effects: what steps put aside while the traversers pass.

use super::{context::Context, group::count_all, weight};
use crate::{
    error::Result,
    plan::Label,
    value::{Operator, Value},
};
use indexmap::IndexMap;
use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Weak},
};

/// The members of a bulk set.
type Bulks = Vec<(Value, i64)>;

/// How many earlier values are not worth looking at, and how many bytes of them.
const EARLIER_MIN: (usize, u64) = (16, 1 << 20);

/// All side effects of an evaluation.
pub(super) struct SideEffects {
    all: HashMap<Label, Kept>,
    /// The side effects as they were read, as long as somebody has them: their memory and its size.
    earlier: Vec<(Weak<dyn Any + Send + Sync>, u64)>,
    /// The bytes of all of these.
    earlier_bytes: u64,
    /// Once there are more of them, or they take more bytes, those that nobody has any more are sorted out.
    earlier_max: (usize, u64),
}

/// A side effect in the form in which it grows.
enum Kept {
    Value(Value),
    /// A bulk set. It is written out when it is read, and not again until it has changed.
    Counted {
        counts: IndexMap<Value, i64>,
        shown: Option<Arc<Bulks>>,
    },
}

impl SideEffects {
    pub fn new(values: HashMap<Label, Value>) -> Self {
        let all = values.into_iter().map(|(key, value)| (key, Kept::Value(value))).collect();
        Self { all, earlier: Vec::new(), earlier_bytes: 0, earlier_max: EARLIER_MIN }
    }

    /// Keeps count of the memory of a value that has been read, now that the side effect is another one.
    fn leave<T: Send + Sync + 'static>(&mut self, read: &Arc<T>, bytes: u64, context: &Context<'_>) {
        let read: Weak<T> = Arc::downgrade(read);
        self.earlier.push((read, bytes));
        self.earlier_bytes += bytes;
        let (count_max, bytes_max) = self.earlier_max;
        if count_max < self.earlier.len() || bytes_max < self.earlier_bytes {
            self.earlier.retain(|(read, _)| 0 < read.strong_count());
            let held = self.earlier.iter().map(|(_, bytes)| bytes).sum();
            context.meter.give_back(self.earlier_bytes - held);
            self.earlier_bytes = held;
            let (count_min, bytes_min) = EARLIER_MIN;
            self.earlier_max = (count_min.max(2 * self.earlier.len()), bytes_min.max(2 * held));
        }
    }

    /// The same members in a memory of their own, so that they can grow where they are. They are copied if somebody has read
    /// them, and the copy is charged.
    fn own<T: Clone + Send + Sync + 'static>(
        &mut self,
        members: Arc<T>,
        count: usize,
        context: &Context<'_>,
    ) -> Result<Arc<T>> {
        if Arc::strong_count(&members) == 1 {
            return Ok(members);
        }
        let bytes = context.charge_places(count)?;
        let own = Arc::new(T::clone(&members));
        self.leave(&members, bytes, context);
        Ok(own)
    }

    fn own_value(&mut self, value: Value, context: &Context<'_>) -> Result<Value> {
        Ok(match value {
            Value::List(members) => {
                let count = members.len();
                Value::List(self.own(members, count, context)?)
            }
            Value::Set(members) => {
                let count = members.len();
                Value::Set(self.own(members, count, context)?)
            }
            Value::Map(entries) => {
                let count = entries.len();
                Value::Map(self.own(entries, count.saturating_mul(2), context)?)
            }
            other => other,
        })
    }

    fn get(&mut self, key: &str, context: &Context<'_>) -> Result<Option<Value>> {
        match self.all.get_mut(key) {
            None => Ok(None),
            Some(Kept::Value(value)) => Ok(Some(value.clone())),
            Some(Kept::Counted { shown: Some(shown), .. }) => Ok(Some(Value::BulkSet(Arc::clone(shown)))),
            Some(Kept::Counted { counts, shown }) => {
                context.charge_places(counts.len())?;
                let all: Bulks = counts.iter().map(|(value, bulk)| (value.clone(), *bulk)).collect();
                Ok(Some(Value::BulkSet(Arc::clone(shown.insert(Arc::new(all))))))
            }
        }
    }

    /// Takes a side effect out, to be put back when it has changed.
    fn take(&mut self, key: &str, context: &Context<'_>) -> Result<Option<Kept>> {
        let mut kept = self.all.remove(key);
        if let Some(Kept::Counted { shown, .. }) = &mut kept
            && let Some(shown) = shown.take()
        {
            self.leave(&shown, places(shown.len()), context);
        }
        match kept {
            Some(Kept::Value(value)) => Ok(Some(Kept::Value(self.own_value(value, context)?))),
            kept => Ok(kept),
        }
    }
}

/// The bytes of the places of members in a collection.
fn places(count: usize) -> u64 {
    (count as u64).saturating_mul(2 * weight::VALUE_BYTES)
}

impl Context<'_> {
    /// Charges the places of members that are copied, and counts the work.
    fn charge_places(&self, count: usize) -> Result<u64> {
        let bytes = places(count);
        self.count_bytes(bytes)?;
        self.note_effort(count as u64);
        Ok(bytes)
    }

    /// A side effect. What is read stays as it is, whatever is added later.
    ///
    /// # Errors
    /// It has to be written out, and there is no memory for it.
    pub fn side_effect(&self, key: &str) -> Result<Option<Value>> {
        self.side_effects.lock().get(key, self)
    }

    /// Changes a side effect; `change` gets its value, if it has one, and can let it grow where it is.
    pub fn change_side_effect(
        &self,
        key: &Label,
        change: impl FnOnce(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        let mut all = self.side_effects.lock();
        let before = match all.take(key, self)? {
            Some(Kept::Counted { counts, .. }) => {
                self.charge_places(counts.len())?;
                Some(Value::BulkSet(Arc::new(counts.into_iter().collect())))
            }
            Some(Kept::Value(value)) => Some(value),
            None => None,
        };
        all.all.insert(Arc::clone(key), Kept::Value(change(before)?));
        Ok(())
    }

    /// Adds values to a side effect that is a collection, each as often as its number says, which is `count` times in all. One
    /// that is not a collection becomes a bulk set.
    pub fn add_to_side_effect(
        &self,
        key: &Label,
        count: usize,
        added: impl Iterator<Item = (Value, i64)>,
    ) -> Result<()> {
        let mut all = self.side_effects.lock();
        let after = match all.take(key, self)? {
            Some(Kept::Value(Value::List(mut members))) => {
                self.count_traversers(count)?;
                self.count_bytes((count as u64).saturating_mul(weight::VALUE_BYTES))?;
                let each = |(value, bulk): (Value, i64)| std::iter::repeat_n(value, times(bulk));
                Arc::make_mut(&mut members).extend(added.flat_map(each));
                Kept::Value(Value::List(members))
            }
            Some(Kept::Value(Value::Set(mut members))) => {
                Arc::make_mut(&mut members).extend(added.map(|(value, _)| value));
                Kept::Value(Value::Set(members))
            }
            before => {
                let mut counts = match before {
                    Some(Kept::Counted { counts, .. }) => counts,
                    Some(Kept::Value(Value::BulkSet(members))) => {
                        self.charge_places(members.len())?;
                        members.iter().cloned().collect()
                    }
                    Some(Kept::Value(Value::Null)) | None => IndexMap::new(),
                    Some(Kept::Value(other)) => IndexMap::from_iter([(other, 1)]),
                };
                count_all(&mut counts, added);
                Kept::Counted { counts, shown: None }
            }
        };
        all.all.insert(Arc::clone(key), after);
        Ok(())
    }

    /// The operator by which further values are added to a side effect, if the source names one.
    pub fn operator_of(&self, key: &str) -> Option<Operator> {
        let mut known = self.source.side_effects.iter();
        known.find(|(name, _, _)| &**name == key).and_then(|(_, _, operator)| *operator)
    }
}

fn times(bulk: i64) -> usize {
    usize::try_from(bulk).unwrap_or(0)
}
