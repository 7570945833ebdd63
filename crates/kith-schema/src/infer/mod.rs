//! A schema from data, when nobody declares one. The same rows in the same order give the same schema.
//!
//! Fields come in the order in which they are first seen. Whole numbers are `i64`, or `u64` once one is above
//! `i64::MAX`; with floating ones they become `f64`. A field that is null or absent in any row is nullable. Types
//! that do not go together are an error naming both rows: a guess would decide for good what the store holds.
//! Lists are lists, whatever their length: a vector must be declared.

mod error;
mod guess;
mod json;

pub use error::{InferError, JsonFault};

use crate::{Field, FieldType, Schema};
use guess::{Guess, join};
use std::collections::HashMap;
use std::fmt::{Debug, Display};

/// What was seen so far. `P` says where (file and row), for messages; it is cloned when a field's type changes.
pub struct Inference<P> {
    fields: Vec<Seen<P>>,
    by_name: HashMap<String, usize>,
    rows: u64,
}

struct Seen<P> {
    name: String,
    guess: Guess,
    /// The row that made the guess what it is.
    place: P,
    /// In how many rows it was there, null or not.
    rows: u64,
    /// The row it was last in, to find it twice in one.
    last_row: u64,
    null_seen: bool,
    /// An empty cell of a text file: null, unless the field turns out to be text.
    empty_seen: bool,
    /// Only ever seen as text that may spell something else: types that differ make it text.
    spelled: bool,
}

impl<P: Clone> Default for Inference<P> {
    fn default() -> Self {
        Inference { fields: Vec::new(), by_name: HashMap::new(), rows: 0 }
    }
}

impl<P: Clone + Debug + Display> Inference<P> {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Inference::default()
    }

    /// How many rows were seen.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes in one row, a JSON object; `but` (the row's key) is passed over.
    ///
    /// # Errors
    /// [`InferError::Json`], [`InferError::Conflict`].
    pub fn observe_json(&mut self, place: &P, object: &str, but: Option<&str>) -> Result<(), InferError<P>> {
        let members =
            json::members(object).map_err(|fault| InferError::Json { place: place.clone(), fault })?;
        self.rows += 1;
        for (name, guess) in members {
            if Some(&*name) == but {
                continue;
            }
            let index = self.seen(&name, place);
            if self.fields[index].last_row == self.rows {
                let fault = JsonFault { detail: format!("field {name:?} is there twice"), column: 0 };
                return Err(InferError::Json { place: place.clone(), fault });
            }
            self.fields[index].last_row = self.rows;
            self.saw(index, 1, guess, place)?;
        }
        Ok(())
    }

    /// Takes in one row of a text table: names and cells, in the order of the columns. A cell that spells a number,
    /// `true` or `false` counts as one until another cell of its column does not; then the column is text.
    ///
    /// # Errors
    /// [`InferError::Conflict`] with a row that was not of a text table.
    pub fn observe_cells<'c>(
        &mut self,
        place: &P,
        cells: impl IntoIterator<Item = (&'c str, &'c str)>,
    ) -> Result<(), InferError<P>> {
        self.rows += 1;
        for (name, cell) in cells {
            let index = self.seen(name, place);
            let field = &mut self.fields[index];
            field.spelled |= field.rows == 0;
            if cell.is_empty() {
                field.empty_seen = true;
                field.rows += 1;
                continue;
            }
            let guess = guess::spelled(cell);
            let as_text = field.spelled && join(field.guess.clone(), guess.clone()).is_none();
            if as_text {
                field.guess = Guess::Unknown;
            }
            let spelled = field.spelled;
            self.saw(index, 1, Some(if as_text { guess::TEXT } else { guess }), place)?;
            self.fields[index].spelled = spelled;
        }
        Ok(())
    }

    /// Takes in `rows` rows of a table whose columns declare their types and whether they may be null.
    ///
    /// # Errors
    /// [`InferError::Conflict`] with another table.
    pub fn observe_columns<'c>(
        &mut self,
        place: &P,
        rows: u64,
        columns: impl IntoIterator<Item = (&'c str, Option<FieldType>, bool)>,
    ) -> Result<(), InferError<P>> {
        self.rows += rows;
        for (name, field_type, nullable) in columns {
            let index = self.seen(name, place);
            self.fields[index].null_seen |= nullable;
            let guess = field_type.map(Guess::declared);
            self.saw(index, rows, guess, place)?;
        }
        Ok(())
    }

    /// The schema of all that was seen.
    ///
    /// # Errors
    /// [`InferError`]: no rows, no fields, a field whose type never showed, a name no schema can have.
    pub fn finish(self) -> Result<Schema, InferError<P>> {
        if self.rows == 0 {
            return Err(InferError::NoRows);
        }
        if self.fields.is_empty() {
            return Err(InferError::NoFields { rows: self.rows });
        }
        let fields = self.fields.into_iter().map(|seen| {
            let guess = if seen.guess == Guess::Unknown && seen.spelled { guess::TEXT } else { seen.guess };
            let field_type =
                guess.field_type().ok_or_else(|| InferError::NoType { field: seen.name.clone() })?;
            let empty_is_null = guess != guess::TEXT;
            let nullable = seen.null_seen || seen.rows < self.rows || (seen.empty_seen && empty_is_null);
            let field = Field::new(seen.name, field_type);
            Ok(if nullable { field.nullable() } else { field })
        });
        Ok(Schema::new(fields.collect::<Result<_, InferError<P>>>()?)?)
    }

    fn seen(&mut self, name: &str, place: &P) -> usize {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        self.by_name.insert(name.to_owned(), self.fields.len());
        self.fields.push(Seen {
            name: name.to_owned(),
            guess: Guess::Unknown,
            place: place.clone(),
            rows: 0,
            last_row: 0,
            null_seen: false,
            empty_seen: false,
            spelled: false,
        });
        self.fields.len() - 1
    }

    /// `guess` is `None` for a null. What is seen so is not spelled.
    fn saw(&mut self, index: usize, rows: u64, guess: Option<Guess>, place: &P) -> Result<(), InferError<P>> {
        let field = &mut self.fields[index];
        field.rows += rows;
        field.spelled = false;
        let Some(guess) = guess else {
            field.null_seen = true;
            return Ok(());
        };
        let Some(joined) = join(field.guess.clone(), guess.clone()) else {
            return Err(InferError::Conflict {
                field: field.name.clone(),
                first: field.guess.to_string().into(),
                first_place: field.place.clone(),
                then: guess.to_string().into(),
                then_place: place.clone(),
            });
        };
        if joined != field.guess {
            field.guess = joined;
            field.place = place.clone();
        }
        Ok(())
    }
}
