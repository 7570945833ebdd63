//! The ids of all vertices of a graph, read page by page as they are needed.

use super::{fan_outs::FanOuts, rows::unexpected};
use kith_gremlin::GremlinError;
use kith_operators::{Operator, Value as Evaluated};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The fewest and the most ids of a page. Pages grow, so that a traversal with a limit moves few ids, and a scan takes few
/// fan-outs.
const PAGE_MIN: usize = 64;
const PAGE_MAX: usize = 1 << 20;
const PAGE_GROWTH: usize = 8;

/// Ids of a graph, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct IdPage {
    pub ids: Arc<[u64]>,
    /// Whether the graph has no greater ids.
    pub is_last: bool,
}

/// The page that was read last.
#[derive(Default)]
pub(super) struct IdPages(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    page: Option<IdPage>,
    /// The least id that the page can have.
    from: u64,
    /// The number of ids that were asked for last.
    asked: usize,
    /// How many bytes are charged for pages.
    charged: u64,
}

impl IdPages {
    /// Forgets the page, after a vertex is added or removed.
    pub async fn forget(&self) {
        self.0.lock().await.page = None;
    }

    /// Ids of which some are at least `from`: as many of these as `least`, or all that there are. `O(1)` if they are known, else
    /// one broadcast. The graph has no ids between `from` and the first of these ids that is not less.
    pub async fn from(
        &self,
        from: u64,
        least: usize,
        fan_outs: &FanOuts<'_>,
    ) -> Result<IdPage, GremlinError> {
        let mut pages = self.0.lock().await;
        if let Some(page) = pages.page.as_ref().filter(|_| pages.from <= from) {
            let left = page.ids.len() - page.ids.partition_point(|id| *id < from);
            if page.is_last || least <= left {
                return Ok(page.clone());
            }
        }
        let count = pages.asked.saturating_mul(PAGE_GROWTH).clamp(PAGE_MIN, PAGE_MAX).max(least);
        let plan = Operator::Limit { input: Box::new(Operator::Members { from }), count: count as u64 };
        let ids = match fan_outs.ask_everyone("ids", plan).await? {
            Evaluated::Set(ids) => ids,
            other => return Err(unexpected(&other)),
        };
        // A page is kept until another takes its place.
        let bytes = size_of_val(&ids[..]) as u64;
        fan_outs.meter().charge(bytes.saturating_sub(pages.charged))?;
        pages.charged = pages.charged.max(bytes);
        let page = IdPage { is_last: ids.len() < count, ids: ids.into() };
        (pages.from, pages.asked) = (from, count);
        Ok(pages.page.insert(page).clone())
    }
}
