//! Finds out what the pages of a Parquet file need to be decoded: from their headers, and if these do not suffice by
//! inspecting one page at a time.

use super::budget::{Column, Page, Width};
use super::thrift::Compact;
use arrow_schema::ArrowError;
use parquet::basic::Type;
use parquet::column::page::{Page as Decoded, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The first and the largest number of bytes that are read for a page header, which may contain statistics.
const HEADER_BYTES: usize = 4 << 10;
const HEADER_BYTES_MAX: usize = 16 << 20;
/// The size of the end of a Parquet file: the length of its metadata, and its magic.
const TAIL_BYTES: u64 = 8;

// The numbers of the Parquet format.
const DICTIONARY_PAGE: i64 = 2;
const KINDS: [i64; 3] = [0, DICTIONARY_PAGE, 3];
const DELTA_BYTE_ARRAY: i64 = 7;
/// The encodings whose values refer to others: two for dictionaries, and one for common prefixes.
const REPEATING: [i64; 3] = [2, 8, DELTA_BYTE_ARRAY];

fn damaged(what: &str) -> ArrowError {
    ArrowError::ParquetError(what.to_owned())
}

/// Refuses metadata that state more elements than they contain, because decoders allocate memory for the stated number.
pub(super) fn check_footer(file: &File) -> Result<(), ArrowError> {
    let length = file.metadata()?.len();
    let mut tail = [0; TAIL_BYTES as usize];
    let end = length.checked_sub(TAIL_BYTES).ok_or_else(|| damaged("it is too short"))?;
    file.read_exact_at(&mut tail, end)?;
    let claimed = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let start = end.checked_sub(claimed.into()).ok_or_else(|| damaged("its metadata are cut off"))?;
    let mut metadata = vec![0; claimed as usize];
    file.read_exact_at(&mut metadata, start)?;
    Compact::new(&metadata).pass_struct().ok_or_else(|| damaged("its metadata make no sense"))
}

/// The columns of a row group, as the headers of their pages describe them.
pub(super) fn columns(file: &File, group: &RowGroupMetaData) -> Result<Vec<Column>, ArrowError> {
    group.columns().iter().map(|column| column_of(file, column)).collect()
}

fn column_of(file: &File, column: &ColumnChunkMetaData) -> Result<Column, ArrowError> {
    let pages = pages(file, column)?;
    let described = column.column_descr();
    let width = match column.column_type() {
        Type::BOOLEAN => Width::Fixed(1),
        Type::INT32 | Type::FLOAT => Width::Fixed(4),
        Type::INT64 | Type::DOUBLE | Type::INT96 => Width::Fixed(12),
        Type::FIXED_LEN_BYTE_ARRAY => {
            Width::Fixed(u64::try_from(described.type_length()).unwrap_or(u64::MAX))
        }
        Type::BYTE_ARRAY => {
            // A value of such a page may repeat parts of earlier values of the page.
            let repeats = |page: &Page| page.is_dictionary || page.encoding == DELTA_BYTE_ARRAY;
            let longest = pages.iter().filter(|page| repeats(page)).map(|page| page.bytes).max();
            Width::Text { longest: longest.unwrap_or(0) }
        }
    };
    let is_nested = 0 < described.max_rep_level();
    Ok(Column { width, is_nested, row_values: None, pages })
}

fn pages(file: &File, column: &ColumnChunkMetaData) -> Result<Vec<Page>, ArrowError> {
    let (start, length) = column.byte_range();
    let end = start.checked_add(length).filter(|end| file.metadata().is_ok_and(|file| *end <= file.len()));
    let end = end.ok_or_else(|| damaged("a column is cut off"))?;
    let (mut pages, mut at, mut values) = (Vec::new(), start, 0u64);
    while at < end {
        let Some((page, bytes)) = header(file, at, end)? else {
            // Bytes after the last page do not matter.
            if u64::try_from(column.num_values()).is_ok_and(|all| all <= values) {
                break;
            }
            return Err(damaged("a page makes no sense"));
        };
        at = at.saturating_add(bytes);
        let data = page.as_ref().filter(|page| !page.is_dictionary);
        values = values.saturating_add(data.map_or(0, |page| page.values));
        pages.extend(page);
    }
    Ok(pages)
}

/// Reads the header of the page at an offset. Returns the page, unless it is of a kind that is skipped, and its size with
/// the header.
fn header(file: &File, at: u64, end: u64) -> io::Result<Option<(Option<Page>, u64)>> {
    let mut length = HEADER_BYTES;
    loop {
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(left)];
        file.read_exact_at(&mut bytes, at)?;
        let found = parse(&bytes);
        if found.is_some() || left <= length || HEADER_BYTES_MAX <= length {
            return Ok(found);
        }
        length *= 16;
    }
}

fn parse(bytes: &[u8]) -> Option<(Option<Page>, u64)> {
    let mut all = Compact::new(bytes);
    let (mut kind, mut unpacked, mut packed) = (0, 0, 0);
    let (mut values, mut rows, mut encoding) = (0, None, 0);
    all.fields(|id, field| {
        match id {
            1 => kind = field.number()?,
            2 => unpacked = field.number()?,
            3 => packed = field.number()?,
            // The headers of data pages, dictionary pages and data pages of version 2.
            5 | 7 | 8 => field.fields(|inner, field| {
                match (id, inner) {
                    (_, 1) => values = field.number()?,
                    (8, 3) => rows = Some(field.number()?),
                    (5 | 7, 2) | (8, 4) => encoding = field.number()?,
                    _ => return Some(false),
                }
                Some(true)
            })?,
            _ => return Some(false),
        }
        Some(true)
    })?;
    let (unpacked, packed) = (u64::try_from(unpacked).ok()?, u64::try_from(packed).ok()?);
    let page = Page {
        is_dictionary: kind == DICTIONARY_PAGE,
        repeats: REPEATING.contains(&encoding),
        encoding,
        bytes: unpacked.max(packed),
        values: u64::try_from(values).ok()?,
        rows: rows.and_then(|rows| u64::try_from(rows).ok()),
    };
    Some((KINDS.contains(&kind).then_some(page), packed + all.at() as u64))
}

/// Inspects the pages of a column for facts that their headers do not state: the longest value of a dictionary, and the
/// number of values per row. One page at a time is in memory, and none is larger than allowed.
pub(super) fn look(
    file: &File,
    column: &ColumnChunkMetaData,
    rows: usize,
    known: &mut Column,
) -> Result<(), ArrowError> {
    let reader = SerializedPageReader::new(Arc::new(file.try_clone()?), column, rows, None)?;
    let is_text = matches!(known.width, Width::Text { .. });
    let has_delta = known.pages.iter().any(|page| page.encoding == DELTA_BYTE_ARRAY);
    look_at(reader, is_text && !has_delta, column.column_descr().max_rep_level(), known)
        .map_err(ArrowError::from)
}

fn look_at(
    mut reader: impl PageReader,
    has_dictionary: bool,
    level_max: i16,
    known: &mut Column,
) -> Result<(), ParquetError> {
    let mut levels = Levels::of(level_max);
    while let Some(page) = reader.get_next_page()? {
        let measured = match page {
            Decoded::DictionaryPage { buf, .. } => {
                if has_dictionary {
                    known.width = Width::Text { longest: longest(&buf) };
                }
                Some(())
            }
            _ if !known.is_nested => return Ok(()),
            Decoded::DataPage { buf, num_values, .. } => {
                buf.split_first_chunk().and_then(|(length, rest)| {
                    levels.read(rest.get(..u32::from_le_bytes(*length) as usize)?, num_values.into())
                })
            }
            Decoded::DataPageV2 { buf, num_values, rep_levels_byte_len, .. } => buf
                .get(..rep_levels_byte_len as usize)
                .and_then(|bytes| levels.read(bytes, num_values.into())),
        };
        if measured.is_none() {
            return Err(ParquetError::General("a page ends before its levels do".to_owned()));
        }
    }
    if known.is_nested {
        known.row_values = Some(levels.longest);
    }
    Ok(())
}

/// The length of the longest value. Each value follows its length.
fn longest(mut values: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((length, rest)) = values.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(length.into());
        values = rest.get(length as usize..).unwrap_or_default();
    }
    longest
}

/// Counts the values of rows from the repetition levels of all pages: level 0 begins a row.
struct Levels {
    bits: u32,
    longest: u64,
    /// The number of values of the current row so far.
    row: u64,
}

impl Levels {
    fn of(level_max: i16) -> Self {
        Self { bits: u16::BITS - level_max.unsigned_abs().leading_zeros(), longest: 0, row: 0 }
    }

    fn add(&mut self, begins: bool, count: u64) {
        self.row = if begins { 1 } else { self.row.saturating_add(count) };
        self.longest = self.longest.max(self.row);
    }

    /// Reads the levels of a page: runs of one level, and packed levels.
    fn read(&mut self, levels: &[u8], values: u64) -> Option<()> {
        let (mut reader, mut seen) = (Compact::new(levels), 0u64);
        while seen < values {
            let head = reader.varint()?;
            let left = values - seen;
            if head & 1 == 0 {
                let level = *levels.get(reader.at())?;
                reader.pass(1)?;
                self.add(level == 0, (head >> 1).min(left));
                seen = seen.checked_add((head >> 1).max(1))?;
                continue;
            }
            let count = (head >> 1).checked_mul(8)?;
            let start = reader.at();
            reader.pass(usize::try_from((head >> 1).checked_mul(self.bits.into())?).ok()?)?;
            let packed = &levels[start..reader.at()];
            for index in 0..count.min(left) {
                let bits = u64::from(self.bits);
                let begins = (0..bits).all(|bit| !is_set(packed, index * bits + bit));
                self.add(begins, 1);
            }
            seen = seen.checked_add(count.max(1))?;
        }
        Some(())
    }
}

fn is_set(bytes: &[u8], bit: u64) -> bool {
    bytes.get((bit / 8) as usize).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
}
