//! The types and functions that follow from the lists of operations and of kinds of answers in `mod.rs`.

use super::{AnswerPage, Effort, Operation, PageStart, Pages};
use kith_wire::v1::query_request::Operand;

/// Makes the enum of all operations from one line for each: its variant, its folder and fields, and its name in requests,
/// preceded by the description of its subcommand.
macro_rules! operations {
    ($(
        #[doc = $about:literal]
        $(#[$attribute:meta])*
        $variant:ident($module:ident::$fields:ident) = $name:literal;
    )*) => {
        $(pub use $module::$fields;)*

        /// The operation of a query of a graph, with its own fields. Names of operations and fields are a contract:
        /// `docs/queries.md`.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "flags", derive(clap::Subcommand))]
        pub enum Operation {
            $(
                #[doc = $about]
                $(#[$attribute])*
                #[serde(rename = $name)]
                $variant($fields),
            )*
        }

        impl Operation {
            /// The names of all operations of graphs, in the order of declaration.
            pub const NAMES: &[OperationName] = &[$($fields::NAME),*];

            /// The name of the operation: `op` of a request line.
            pub fn name(&self) -> OperationName {
                match self {
                    $(Self::$variant(_) => $fields::NAME,)*
                }
            }

            /// All operations as functions, in the order of declaration.
            pub fn signatures() -> Vec<Signature> {
                vec![$(Signature::of::<$fields>($fields::NAME, $about)),*]
            }

            /// The fields that hold ids in a request line of this operation; none if there is no such operation.
            pub fn id_fields(operation: &str) -> &'static [&'static str] {
                match operation {
                    $($name => $fields::id_fields(),)*
                    _ => &[],
                }
            }

            /// The examples of all operations, in the order of declaration.
            #[cfg(feature = "testing")]
            pub fn examples() -> Vec<(OperationName, Vec<Example>)> {
                vec![$(($fields::NAME, $fields::examples())),*]
            }

            /// The answer as it is printed: its JSON and its text.
            ///
            /// # Errors
            /// If the answer is of another kind than the operation's.
            pub fn view(&self, answer: GraphAnswer) -> Result<AnswerView, WrongAnswer> {
                match self {
                    $(Self::$variant(fields) => fields.view(answer).map(AnswerView::$variant),)*
                }
            }

            /// The state machine that answers.
            ///
            /// # Errors
            /// Those of [`HasMachine::machine`].
            #[cfg(feature = "nodes")]
            pub(crate) fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
                match self {
                    $(Self::$variant(fields) => fields.machine(names),)*
                }
            }

            fn fields(&self) -> &dyn Fields {
                match self {
                    $(Self::$variant(fields) => fields,)*
                }
            }

            fn fields_mut(&mut self) -> &mut dyn Fields {
                match self {
                    $(Self::$variant(fields) => fields,)*
                }
            }

            /// Decodes an operation.
            ///
            /// # Errors
            /// If a field is invalid.
            pub(crate) fn from_message(operand: Operand) -> Result<Self, ConvertError> {
                $(
                    let operand = match $fields::from_message(operand) {
                        Decoded::Here(fields) => return fields.map(Self::$variant),
                        Decoded::Elsewhere(operand) => operand,
                    };
                )*
                drop(operand);
                Err(ConvertError::Missing("operand"))
            }
        }

        /// The answer to an operation as it is printed. It serializes as the JSON object that `docs/queries.md` describes.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[allow(missing_docs, reason = "each variant is the answer to the operation that names it")]
        pub enum AnswerView {
            $($variant(<$fields as Presentation>::View),)*
        }

        impl AnswerView {
            /// The text for people.
            pub fn text(&self) -> Vec<Block> {
                match self {
                    $(Self::$variant(view) => view.text(),)*
                }
            }
        }

        $(
            impl $fields {
                /// The name of the operation.
                pub const NAME: OperationName = OperationName::new($name);
            }

            impl From<$fields> for Operation {
                fn from(fields: $fields) -> Self {
                    Self::$variant(fields)
                }
            }
        )*
    };
}

/// Makes the enum of all kinds of answers from one line for each: its variant and its contents.
macro_rules! answers {
    ($($(#[$attribute:meta])* $variant:ident($contents:ty);)*) => {
        /// One answer. The variant follows from the operation and its fields.
        #[derive(Clone, Debug, PartialEq)]
        pub enum GraphAnswer {
            $($(#[$attribute])* $variant($contents),)*
        }

        impl GraphAnswer {
            /// Encodes a whole answer.
            pub(crate) fn to_message(&self) -> AnswerMessage {
                match self {
                    $(Self::$variant(answer) => answer.to_message(),)*
                }
            }

            /// Roughly how many bytes the variable part of the answer takes.
            pub fn bytes(&self) -> usize {
                match self {
                    $(Self::$variant(answer) => answer.bytes(),)*
                }
            }

            /// Decodes an answer. The pieces of a stream must have been joined.
            ///
            /// # Errors
            /// If it is malformed.
            pub(crate) fn from_message(message: AnswerMessage, ids_wanted: bool) -> Result<Self, ConvertError> {
                $(
                    let message = match <$contents>::from_message(message, ids_wanted) {
                        Decoded::Here(answer) => return answer.map(Self::$variant),
                        Decoded::Elsewhere(message) => message,
                    };
                )*
                drop(message);
                Err(ConvertError::Missing("answer"))
            }
        }
    };
}

pub(super) use answers;
pub(super) use operations;

impl Operation {
    /// The ids of members, entities or objects that the fields name.
    pub fn ids(&self) -> Vec<u64> {
        self.fields().ids()
    }

    /// How the answer is divided into pages.
    pub fn pages(&self) -> Pages {
        self.fields().pages()
    }

    /// The page that the fields ask for; `None` if the page of the answer is an option of the query, not a field.
    pub fn page(&self) -> Option<AnswerPage> {
        self.fields().page()
    }

    /// Asks for a page, if the page is a field.
    pub fn set_page(&mut self, page: AnswerPage) {
        self.fields_mut().set_page(page);
    }

    /// Checks that the answer has such a page, and that the page goes together with the fields.
    ///
    /// # Errors
    /// The reason if not.
    pub fn check_page(&self, page: &AnswerPage) -> Result<(), &'static str> {
        if let Some(reason) = self.fields().conflict(page) {
            return Err(reason);
        }
        match (self.pages(), page.after) {
            (Pages::First, Some(_)) => {
                Err("this operation has no `after`: `limit` is the most ids that it returns")
            }
            (Pages::Ids, Some(PageStart::Cursor(_) | PageStart::Place(_))) => {
                Err("`after` is the last id of the previous page")
            }
            (Pages::Edges, Some(PageStart::Id(_) | PageStart::Place(_))) => {
                Err("`after` is the cursor of the previous page")
            }
            (Pages::Associations, Some(PageStart::Id(_) | PageStart::Cursor(_))) => {
                Err("`after` is the last association of the previous page: [time, id2]")
            }
            (Pages::Times, Some(_)) => {
                Err("this operation has no `after`: give the last time of the previous page as `high`")
            }
            (Pages::None, _) if *page != AnswerPage::default() => {
                Err("`limit` and `after` need an answer that has pages: a set of ids, edges or associations")
            }
            _ => Ok(()),
        }
    }

    /// Whether the query asks for objects or associations, which only live graphs have.
    pub fn needs_live_graph(&self) -> bool {
        self.fields().needs_live_graph()
    }

    /// Whether the answer consists of ids, so that it can be too large for one message.
    pub fn wants_ids(&self) -> bool {
        self.fields().wants_ids()
    }

    /// The member whose network the operation reads through the cache.
    pub fn cached_member(&self) -> Option<u64> {
        self.fields().cached_member()
    }

    /// How much the process that asks the nodes computes and keeps in memory.
    pub fn effort(&self) -> Effort {
        self.fields().effort()
    }

    pub(crate) fn to_message(&self) -> Operand {
        self.fields().to_message()
    }
}
