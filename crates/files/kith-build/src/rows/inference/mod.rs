//! Infers a schema from data if none is declared. The same rows in the same order give the same schema.
//!
//! Fields have the order in which they first occur. Whole numbers are `i64`, or `u64` if one is above `i64::MAX`; together
//! with floating-point numbers they become `f64`. A field that is null or missing in any row is nullable. Incompatible
//! types are an error that names both rows, because a guess would permanently determine what the store holds. Lists are
//! lists, whatever their length: a vector must be declared.

mod error;
mod guess;
mod json;

pub use error::{InferError, JsonFault};

use guess::{Guess, join};
use kith_schema::{Field, FieldType, Schema};
use std::collections::HashMap;
use std::fmt::{Debug, Display};

/// The observations so far. `P` is the place (file and row) for messages; it is cloned when a field's type changes.
pub struct Inference<P> {
    fields: Vec<Seen<P>>,
    by_name: HashMap<String, usize>,
    rows: u64,
}

struct Seen<P> {
    name: String,
    guess: Guess,
    /// The row that determined the current guess.
    location: P,
    /// The number of rows that had the field, null or not.
    rows: u64,
    /// The last row that had the field, to detect a repetition within one row.
    last_row: u64,
    null_seen: bool,
    /// Whether a cell of a text file was empty. That means null, unless the field turns out to be text.
    empty_seen: bool,
    /// Whether the field occurred only in text tables. Different types then make it text.
    spelled: bool,
}

impl<P: Clone> Default for Inference<P> {
    fn default() -> Self {
        Inference { fields: Vec::new(), by_name: HashMap::new(), rows: 0 }
    }
}

impl<P: Clone + Debug + Display> Inference<P> {
    /// Creates an inference without observations.
    pub fn new() -> Self {
        Inference::default()
    }

    /// The number of observed rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Observes one row, a JSON object; the member `but` (the row's key) is skipped.
    ///
    /// # Errors
    /// [`InferError::Json`] if the row is invalid; [`InferError::Conflict`] if its types are incompatible with earlier
    /// ones.
    pub fn observe_json(
        &mut self,
        location: &P,
        object: &str,
        but: Option<&str>,
    ) -> Result<(), InferError<P>> {
        let members =
            json::members(object).map_err(|fault| InferError::Json { location: location.clone(), fault })?;
        self.rows += 1;
        for (name, guess) in members {
            if Some(&*name) == but {
                continue;
            }
            let index = self.seen(&name, location);
            if self.fields[index].last_row == self.rows {
                let fault = JsonFault { detail: format!("field {name:?} is there twice"), column: 0 };
                return Err(InferError::Json { location: location.clone(), fault });
            }
            self.fields[index].last_row = self.rows;
            self.saw(index, 1, guess, location)?;
        }
        Ok(())
    }

    /// Observes one row of a text table: names and cells in the order of the columns. A cell that reads as a number, `true`
    /// or `false` counts as one until another cell of its column does not. Then the column is text.
    ///
    /// # Errors
    /// [`InferError::Conflict`] if a row of another kind of file is incompatible.
    pub fn observe_cells<'c>(
        &mut self,
        location: &P,
        cells: impl IntoIterator<Item = (&'c str, &'c str)>,
    ) -> Result<(), InferError<P>> {
        self.rows += 1;
        for (name, cell) in cells {
            let index = self.seen(name, location);
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
            self.saw(index, 1, Some(if as_text { guess::TEXT } else { guess }), location)?;
            self.fields[index].spelled = spelled;
        }
        Ok(())
    }

    /// Observes `rows` rows of a table whose columns declare their types and whether they are nullable.
    ///
    /// # Errors
    /// [`InferError::Conflict`] if another table is incompatible.
    pub fn observe_columns<'c>(
        &mut self,
        location: &P,
        rows: u64,
        columns: impl IntoIterator<Item = (&'c str, Option<FieldType>, bool)>,
    ) -> Result<(), InferError<P>> {
        self.rows += rows;
        for (name, field_type, nullable) in columns {
            let index = self.seen(name, location);
            self.fields[index].null_seen |= nullable;
            let guess = field_type.map(Guess::declared);
            self.saw(index, rows, guess, location)?;
        }
        Ok(())
    }

    /// Observes text fields that are the same in all rows since the first `before`: their names, and whether they are null.
    ///
    /// # Errors
    /// [`InferError::Conflict`] if other rows have them with another type.
    pub fn observe_constants<'c>(
        &mut self,
        location: &P,
        before: u64,
        constants: impl IntoIterator<Item = (&'c str, bool)>,
    ) -> Result<(), InferError<P>> {
        for (name, is_null) in constants {
            let index = self.seen(name, location);
            self.fields[index].null_seen |= is_null;
            self.saw(index, self.rows - before, Some(guess::TEXT), location)?;
        }
        Ok(())
    }

    /// The schema of all observed rows.
    ///
    /// # Errors
    /// [`InferError`] if there are no rows or no fields, the type of a field is unknown, or a name is invalid in a schema.
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

    fn seen(&mut self, name: &str, location: &P) -> usize {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        self.by_name.insert(name.to_owned(), self.fields.len());
        self.fields.push(Seen {
            name: name.to_owned(),
            guess: Guess::Unknown,
            location: location.clone(),
            rows: 0,
            last_row: 0,
            null_seen: false,
            empty_seen: false,
            spelled: false,
        });
        self.fields.len() - 1
    }

    /// Adds an observation; `guess` is `None` for a null. The field does not come only from text tables then.
    fn saw(
        &mut self,
        index: usize,
        rows: u64,
        guess: Option<Guess>,
        location: &P,
    ) -> Result<(), InferError<P>> {
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
                first_place: field.location.clone(),
                then: guess.to_string().into(),
                then_place: location.clone(),
            });
        };
        if joined != field.guess {
            field.guess = joined;
            field.location = location.clone();
        }
        Ok(())
    }
}
