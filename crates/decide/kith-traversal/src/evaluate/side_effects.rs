//! Side effects: what steps put aside while the traversers pass.

use super::{group::count_all, weight, work::Work};
use crate::{error::Result, plan::Label, value::Value};
use indexmap::IndexMap;
use parking_lot::Mutex;
use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Weak},
};

/// The members of a bulk set.
type Bulks = Vec<(Value, i64)>;

/// The number and the bytes of earlier values that are not worth looking at.
const EARLIER_MIN: (usize, u64) = (16, 1 << 20);

/// All side effects of an evaluation.
pub(super) struct SideEffects(Mutex<KeptValues>);

/// The side effects in the forms in which they grow.
struct KeptValues {
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
        Self(Mutex::new(KeptValues::new(values)))
    }

    /// A side effect. What is read stays as it is, whatever is added later.
    ///
    /// # Errors
    /// It has to be written out, and there is no memory for it.
    pub fn get(&self, key: &str, work: &Work) -> Result<Option<Value>> {
        self.0.lock().get(key, work)
    }

    /// Changes a side effect; `change` gets its value, if it has one, and can let it grow where it is.
    pub fn change(
        &self,
        key: &Label,
        work: &Work,
        change: impl FnOnce(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        let mut all = self.0.lock();
        let before = match all.take(key, work)? {
            Some(Kept::Counted { counts, .. }) => {
                work.charge_places(counts.len())?;
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
    pub fn add(
        &self,
        key: &Label,
        work: &Work,
        count: usize,
        added: impl Iterator<Item = (Value, i64)>,
    ) -> Result<()> {
        let mut all = self.0.lock();
        let after = match all.take(key, work)? {
            Some(Kept::Value(Value::List(mut members))) => {
                work.count_traversers(count)?;
                work.count_bytes((count as u64).saturating_mul(weight::VALUE_BYTES))?;
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
                        work.charge_places(members.len())?;
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
}

impl KeptValues {
    fn new(values: HashMap<Label, Value>) -> Self {
        let all = values.into_iter().map(|(key, value)| (key, Kept::Value(value))).collect();
        Self { all, earlier: Vec::new(), earlier_bytes: 0, earlier_max: EARLIER_MIN }
    }

    /// Keeps count of the memory of a value that has been read, now that the side effect is another one.
    fn leave<T: Send + Sync + 'static>(&mut self, read: &Arc<T>, bytes: u64, work: &Work) {
        let read: Weak<T> = Arc::downgrade(read);
        self.earlier.push((read, bytes));
        self.earlier_bytes += bytes;
        let (count_max, bytes_max) = self.earlier_max;
        if count_max < self.earlier.len() || bytes_max < self.earlier_bytes {
            self.earlier.retain(|(read, _)| 0 < read.strong_count());
            let held = self.earlier.iter().map(|(_, bytes)| bytes).sum();
            work.meter.give_back(self.earlier_bytes - held);
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
        work: &Work,
    ) -> Result<Arc<T>> {
        if Arc::strong_count(&members) == 1 {
            return Ok(members);
        }
        let bytes = work.charge_places(count)?;
        let own = Arc::new(T::clone(&members));
        self.leave(&members, bytes, work);
        Ok(own)
    }

    fn own_value(&mut self, value: Value, work: &Work) -> Result<Value> {
        Ok(match value {
            Value::List(members) => {
                let count = members.len();
                Value::List(self.own(members, count, work)?)
            }
            Value::Set(members) => {
                let count = members.len();
                Value::Set(self.own(members, count, work)?)
            }
            Value::Map(entries) => {
                let count = entries.len();
                Value::Map(self.own(entries, count.saturating_mul(2), work)?)
            }
            other => other,
        })
    }

    fn get(&mut self, key: &str, work: &Work) -> Result<Option<Value>> {
        match self.all.get_mut(key) {
            None => Ok(None),
            Some(Kept::Value(value)) => Ok(Some(value.clone())),
            Some(Kept::Counted { shown: Some(shown), .. }) => Ok(Some(Value::BulkSet(Arc::clone(shown)))),
            Some(Kept::Counted { counts, shown }) => {
                work.charge_places(counts.len())?;
                let all: Bulks = counts.iter().map(|(value, bulk)| (value.clone(), *bulk)).collect();
                Ok(Some(Value::BulkSet(Arc::clone(shown.insert(Arc::new(all))))))
            }
        }
    }

    /// Takes a side effect out, to be put back when it has changed.
    fn take(&mut self, key: &str, work: &Work) -> Result<Option<Kept>> {
        let mut kept = self.all.remove(key);
        if let Some(Kept::Counted { shown, .. }) = &mut kept
            && let Some(shown) = shown.take()
        {
            self.leave(&shown, weight::of_places(shown.len()), work);
        }
        match kept {
            Some(Kept::Value(value)) => Ok(Some(Kept::Value(self.own_value(value, work)?))),
            kept => Ok(kept),
        }
    }
}

fn times(bulk: i64) -> usize {
    usize::try_from(bulk).unwrap_or(0)
}
