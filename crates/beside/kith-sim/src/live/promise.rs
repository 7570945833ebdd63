//! A value that one task provides and another task waits for.

use super::executor::{TaskId, WakeQueue};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

struct Slot<T> {
    value: Option<T>,
    is_closed: bool,
    waits: Option<TaskId>,
}

/// Provides the value. If it is dropped without a value, the waiting task gets `None`.
pub(super) struct Giver<T> {
    slot: Rc<RefCell<Slot<T>>>,
    wakes: WakeQueue,
}

/// Waits for the value. The result is `None` if there will be no value.
pub(super) struct Promise<T> {
    slot: Rc<RefCell<Slot<T>>>,
    wakes: WakeQueue,
}

pub(super) fn promise<T>(wakes: &WakeQueue) -> (Giver<T>, Promise<T>) {
    let slot = Rc::new(RefCell::new(Slot { value: None, is_closed: false, waits: None }));
    (Giver { slot: Rc::clone(&slot), wakes: wakes.clone() }, Promise { slot, wakes: wakes.clone() })
}

impl<T> Giver<T> {
    pub(super) fn give(self, value: T) {
        self.slot.borrow_mut().value = Some(value);
    }
}

impl<T> std::fmt::Debug for Giver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Giver")
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        let mut slot = self.slot.borrow_mut();
        slot.is_closed = true;
        if let Some(task) = slot.waits.take() {
            self.wakes.wake(task);
        }
    }
}

impl<T> Future for Promise<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.slot.borrow_mut();
        match slot.value.take() {
            Some(value) => Poll::Ready(Some(value)),
            None if slot.is_closed => Poll::Ready(None),
            None => {
                slot.waits = Some(self.wakes.current());
                Poll::Pending
            }
        }
    }
}
