//! Merges sorted partial unions at the caller (Moolle §IV-C.2: the client unites the unions of the nodes). All lists are
//! available at the start. Dense ids go through the bitmap, one window after the other; sparse ids are merged pairwise.

use super::Scratch;
use super::bitmap::{Bitmap, SPAN};
use crate::sets::pair::{merge_two, seek};

/// Windows are worthwhile with at least one id per this span of ids.
const SPAN_PER_ID: u64 = 1_024;

/// Appends to `out` every id of any of the sorted, distinct `lists`, ascending and distinct.
pub fn merge(lists: &[&[u64]], scratch: &mut Scratch, out: &mut Vec<u64>) {
    let lists: Vec<&[u64]> = lists.iter().copied().filter(|list| !list.is_empty()).collect();
    match lists.as_slice() {
        [] => {}
        [only] => out.extend_from_slice(only),
        many if is_dense(many) => by_windows(many, scratch.union.bitmap(), out),
        many => pairwise(many, out),
    }
}

fn is_dense(lists: &[&[u64]]) -> bool {
    let ids: u64 = lists.iter().map(|list| list.len() as u64).sum();
    let least = lists.iter().map(|list| list[0]).min().unwrap_or(0);
    let greatest = lists.iter().map(|list| list[list.len() - 1]).max().unwrap_or(0);
    (greatest - least) / SPAN_PER_ID <= ids
}

fn by_windows(lists: &[&[u64]], bitmap: &mut Bitmap, out: &mut Vec<u64>) {
    let mut rests = lists.to_vec();
    while let Some(base) = rests.iter().filter_map(|rest| rest.first()).min().copied() {
        for rest in &mut rests {
            let within = match rest.last() {
                Some(&last) if last - base < SPAN => rest.len(),
                _ => seek(rest, 0, base.saturating_add(SPAN)),
            };
            let (now, later) = rest.split_at(within);
            bitmap.insert(base, now);
            *rest = later;
        }
        bitmap.drain_into(base, out);
    }
}

/// Splits the lists into halves, merges each half, and merges the two results. Every id is moved once per level.
fn pairwise(lists: &[&[u64]], out: &mut Vec<u64>) {
    match lists {
        [] => {}
        [only] => out.extend_from_slice(only),
        [a, b] => merge_two(a, b, out),
        many => {
            let (left, right) = many.split_at(many.len() / 2);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            pairwise(left, &mut a);
            pairwise(right, &mut b);
            merge_two(&a, &b, out);
        }
    }
}
