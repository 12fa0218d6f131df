//! What can go wrong in a program, named as Python names it.

use crate::BadValue;

/// Kind of a fault. The names are Python's, so that both lives of a workload fail alike; the last three are
/// dbdyno's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Class {
    Type,
    Value,
    ZeroDivision,
    Index,
    /// An integer beyond 64 bits, a decimal beyond 28 digits.
    Overflow,
    UnboundLocal,
    /// `db` used against its rules.
    WrongUse,
    /// A limit of the language: a million instructions, 10,000 elements, 4,096 texts.
    Limit,
    /// The drive broke the protocol of `resume`.
    Internal,
}

impl Class {
    /// The name that Python gives such an exception.
    pub fn name(self) -> &'static str {
        match self {
            Class::Type => "TypeError",
            Class::Value => "ValueError",
            Class::ZeroDivision => "ZeroDivisionError",
            Class::Index => "IndexError",
            Class::Overflow => "OverflowError",
            Class::UnboundLocal => "UnboundLocalError",
            Class::WrongUse => "WrongUse",
            Class::Limit => "LimitError",
            Class::Internal => "InternalError",
        }
    }
}

/// A fault without its place in the source; boxed, because it is rare and results are passed often.
#[derive(Debug)]
pub(crate) struct Fault(pub Box<(Class, String)>);

#[cold]
pub(crate) fn fault<T>(class: Class, message: String) -> Result<T, Fault> {
    Err(Fault(Box::new((class, message))))
}

impl Fault {
    /// A fault of ours.
    #[cold]
    pub fn internal(sentence: &str) -> Self {
        Fault(Box::new((Class::Internal, sentence.to_owned())))
    }
}

impl From<BadValue> for Fault {
    fn from(error: BadValue) -> Self {
        Fault(Box::new((Class::Value, error.0)))
    }
}
