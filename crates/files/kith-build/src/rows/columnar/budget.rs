//! Computes how many rows of a Parquet file can be decoded at a time within a number of bytes. The computation uses the
//! headers of the pages, whose decoded size may be much larger than the file.

/// The numbers of rows that are tried, beginning with one whose cost per batch does not matter.
const BATCHES: [usize; 6] = [1_024, 256, 64, 16, 4, 1];
/// The bytes that a value takes in addition to itself, for its levels, its null flag and its end offset.
const VALUE_BYTES: u64 = 16;

/// A page, as its header describes it.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// Whether it holds values that later pages refer to by number.
    pub(super) is_dictionary: bool,
    /// Whether its values refer to others, so that they may be longer than the page.
    pub(super) repeats: bool,
    pub(super) encoding: i64,
    /// The decompressed size.
    pub(super) bytes: u64,
    /// The number of values, including nulls.
    pub(super) values: u64,
    /// The number of rows that begin in it; `None` if the header does not say. In a column without lists, it equals the
    /// number of values.
    pub(super) rows: Option<u64>,
}

/// The length of the values of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    Fixed(u64),
    /// The greatest length of values that refer to others. All other values lie in their pages.
    Text {
        longest: u64,
    },
}

/// A column of a row group.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) width: Width,
    /// Whether a row can have any number of values.
    pub(super) is_nested: bool,
    /// The most values of any row, if that is known.
    pub(super) row_values: Option<u64>,
    pub(super) pages: Vec<Page>,
}

/// The most rows that can be decoded at a time.
///
/// # Errors
/// The number of bytes that even one row may need.
pub(super) fn batch_rows(columns: &[Column], bytes_max: u64) -> Result<usize, u64> {
    let needed =
        |rows: usize| columns.iter().fold(0u64, |sum, column| sum.saturating_add(column.bytes(rows)));
    let fits = BATCHES.into_iter().find(|rows| needed(*rows) <= bytes_max);
    fits.ok_or_else(|| needed(1))
}

impl Column {
    /// Whether inspecting its pages gives more information than their headers.
    pub(super) fn needs_look(&self) -> bool {
        let has_dictionary = self.pages.iter().any(|page| page.is_dictionary);
        matches!(self.width, Width::Text { .. }) && has_dictionary || self.is_nested
    }

    /// The most bytes that the column takes while this many rows are decoded: the dictionary, a page in compressed and
    /// decompressed form, and the values.
    fn bytes(&self, rows: usize) -> u64 {
        let largest = |is_dictionary: bool| {
            let pages = self.pages.iter().filter(|page| page.is_dictionary == is_dictionary);
            pages.map(|page| page.bytes).max().unwrap_or(0)
        };
        // Buffers grow by doubling.
        let pages = largest(true).saturating_add(largest(false)).saturating_mul(2);
        pages.saturating_add(self.values_bytes(rows as u64).saturating_mul(2))
    }

    /// The size of the values of this many rows, wherever they begin.
    fn values_bytes(&self, rows: u64) -> u64 {
        let pages: Vec<&Page> = self.pages.iter().filter(|page| !page.is_dictionary).collect();
        let (mut most, mut sum, mut whole, mut end) = (0u64, 0u64, 0u64, 0);
        for start in 0..pages.len() {
            // Adds as many further pages as the rows can extend into: the pages between have fewer rows in total than that.
            while end < pages.len() && (end <= start + 1 || whole < rows) {
                sum = sum.saturating_add(self.page_bytes(pages[end], rows));
                if start < end {
                    whole = whole.saturating_add(self.rows(pages[end]));
                }
                end += 1;
            }
            most = most.max(sum);
            sum = sum.saturating_sub(self.page_bytes(pages[start], rows));
            if let Some(next) = pages.get(start + 1) {
                whole = whole.saturating_sub(self.rows(next));
            }
        }
        most
    }

    fn rows(&self, page: &Page) -> u64 {
        match page.rows {
            _ if !self.is_nested => page.values,
            // The whole page may belong to one row that began before it.
            rows => rows.or(self.row_values.map(|most| page.values / most.max(1))).unwrap_or(0),
        }
    }

    /// The size of the values that one page can contribute to this many rows.
    fn page_bytes(&self, page: &Page, rows: u64) -> u64 {
        let of_row = if self.is_nested { self.row_values.unwrap_or(page.values) } else { 1 };
        let values = page.values.min(rows.saturating_mul(of_row));
        let each = match self.width {
            Width::Fixed(bytes) => bytes,
            Width::Text { longest } if page.repeats => longest,
            Width::Text { .. } => return page.bytes.saturating_add(values.saturating_mul(VALUE_BYTES)),
        };
        values.saturating_mul(each.saturating_add(VALUE_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn page(bytes: u64, values: u64) -> Page {
        Page { is_dictionary: false, repeats: false, encoding: 0, bytes, values, rows: None }
    }

    #[test]
    fn ordinary_columns_are_decoded_many_rows_at_a_time() {
        let numbers = Column {
            width: Width::Fixed(8),
            is_nested: false,
            row_values: None,
            pages: vec![page(MIB, 131_072); 100],
        };
        let text = Column {
            width: Width::Text { longest: 0 },
            is_nested: false,
            row_values: None,
            pages: vec![page(MIB, 20_000); 100],
        };
        assert_eq!(batch_rows(&[numbers, text], 64 * MIB), Ok(1_024));
    }

    #[test]
    fn long_values_are_decoded_a_few_rows_at_a_time() {
        // Each value has its own page.
        let text = Column {
            width: Width::Text { longest: 0 },
            is_nested: false,
            row_values: None,
            pages: vec![page(4 * MIB, 1); 2_000],
        };
        assert_eq!(batch_rows(&[text], 256 * MIB), Ok(16));
        // All rows refer to one value.
        let dictionary = Page { is_dictionary: true, ..page(4 * MIB, 1) };
        let named = Page { repeats: true, ..page(100, 1_000_000) };
        let text = Column {
            width: Width::Text { longest: 4 * MIB },
            is_nested: false,
            row_values: None,
            pages: vec![dictionary, named],
        };
        assert_eq!(batch_rows(&[text], 256 * MIB), Ok(16));
    }

    #[test]
    fn what_cannot_be_decoded_at_all_is_refused() {
        let huge = Column {
            width: Width::Fixed(8),
            is_nested: false,
            row_values: None,
            pages: vec![page(2_048 * MIB, 10)],
        };
        assert!(batch_rows(&[huge], 256 * MIB).is_err());
        // A single row may extend over all thousand pages.
        let list = Column {
            width: Width::Fixed(4),
            is_nested: true,
            row_values: None,
            pages: vec![page(MIB, 1_000_000); 1_000],
        };
        assert!(batch_rows(std::slice::from_ref(&list), 256 * MIB).is_err());
        let known = list.pages.iter().map(|page| Page { rows: Some(10_000), ..page.clone() }).collect();
        assert_eq!(batch_rows(&[Column { pages: known, ..list }], 256 * MIB), Ok(1_024));
    }
}
