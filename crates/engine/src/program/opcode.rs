//! The instructions of a program, with what their fields mean. The verifier and the decoder read this table.

/// What a field of an instruction refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// Not used: 0.
    No,
    /// A register that is written.
    Dest,
    /// A register that is written, or `NOWHERE`.
    OptDest,
    /// A register or, with the top bit, a constant.
    Source,
    /// A `Source`, or `NOWHERE`.
    OptSource,
    /// The first of that many registers.
    Registers(u16),
    /// The first of as many registers as the field `Count` says.
    Base,
    Count,
    /// A later instruction.
    Forward,
    /// Any instruction; the only way back.
    Back,
    Number,
    Name,
    State,
    Stream,
    Statement,
    Batch,
    Template,
    Fstring,
    /// A range of constants: only made on load.
    Range,
}

/// No register.
pub(crate) const NOWHERE: u16 = 0x7FFF;
/// The top bit of a source: the rest is the number of a constant.
pub(crate) const CONSTANT: u16 = 0x8000;

/// One instruction, 8 bytes: `s` is a small field, `a`, `b` and `c` the operands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instruction {
    pub op: Op,
    pub s: u8,
    pub a: u16,
    pub b: u16,
    pub c: u16,
}

macro_rules! opcodes {
    ($($name:ident $word:literal ($s:expr; $a:expr, $b:expr, $c:expr))*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Op { $($name),* }

        /// Every instruction with its word in a serialised program and its fields s, a, b, c.
        pub(crate) const OPCODES: &[(Op, &str, [Field; 4])] = {
            use Field::*;
            &[$((Op::$name, $word, [$s, $a, $b, $c])),*]
        };
    };
}

opcodes! {
    Move "move" (No; Dest, Source, No)
    Unset "unset" (No; Dest, No, No)
    Bound "bound" (No; Source, Name, No)

    // s = 1: in place, as += and *= change a list
    Add "add" (Number; Dest, Source, Source)
    Sub "sub" (No; Dest, Source, Source)
    Mul "mul" (Number; Dest, Source, Source)
    Div "div" (No; Dest, Source, Source)
    FloorDiv "floordiv" (No; Dest, Source, Source)
    Mod "mod" (No; Dest, Source, Source)
    Pow "pow" (No; Dest, Source, Source)
    And "and" (No; Dest, Source, Source)
    Or "or" (No; Dest, Source, Source)
    Xor "xor" (No; Dest, Source, Source)
    Shl "shl" (No; Dest, Source, Source)
    Shr "shr" (No; Dest, Source, Source)
    Neg "neg" (No; Dest, Source, No)
    Pos "pos" (No; Dest, Source, No)
    Invert "invert" (No; Dest, Source, No)
    Not "not" (No; Dest, Source, No)

    Eq "eq" (No; Dest, Source, Source)
    Ne "ne" (No; Dest, Source, Source)
    Lt "lt" (No; Dest, Source, Source)
    Le "le" (No; Dest, Source, Source)
    Gt "gt" (No; Dest, Source, Source)
    Ge "ge" (No; Dest, Source, Source)
    IsNone "is_none" (No; Dest, Source, No)
    IsNotNone "is_not_none" (No; Dest, Source, No)
    // s = 1: not in
    Contains "contains" (Number; Dest, Source, Source)

    Jump "jump" (No; Forward, No, No)
    JumpIf "jump_if" (No; Source, Forward, No)
    JumpUnless "jump_unless" (No; Source, Forward, No)
    // b = how many instructions one turn has, charged against the budget
    Loop "loop" (No; Back, Number, No)
    RangeInit "range_init" (No; Registers(3), No, No)
    RangeNext "range_next" (No; Dest, Registers(3), Forward)
    IterInit "iter_init" (No; Registers(2), Source, No)
    IterNext "iter_next" (No; Dest, Registers(2), Forward)

    List "list" (No; Dest, Base, Count)
    Tuple "tuple" (No; Dest, Base, Count)
    Append "append" (No; Source, Source, No)
    Extend "extend" (No; Source, Source, No)
    Index "index" (No; Dest, Source, Source)
    SetIndex "set_index" (No; Source, Source, Source)
    Slice "slice" (No; Dest, Source, Registers(2))
    Unpack "unpack" (No; Base, Count, Source)

    Len "len" (No; Dest, Source, No)
    // s = 1: descending
    Sorted "sorted" (Number; Dest, Source, No)
    Min "min" (No; Dest, Base, Count)
    Max "max" (No; Dest, Base, Count)
    MinOf "min_of" (No; Dest, Source, No)
    MaxOf "max_of" (No; Dest, Source, No)
    Sum "sum" (No; Dest, Source, No)
    Abs "abs" (No; Dest, Source, No)
    Int "int" (No; Dest, Source, No)
    Float "float" (No; Dest, Source, No)
    Str "str" (No; Dest, Source, No)
    Round "round" (No; Dest, Source, OptSource)
    Decimal "decimal" (No; Dest, Source, Source)
    Fstring "fstring" (No; Dest, Fstring, No)
    Text "text" (No; Dest, Template, No)

    Uniform "uniform" (Stream; Dest, Source, Source)
    Pick "pick" (Stream; Dest, Source, Source)
    Real "real" (Stream; Dest, No, No)
    Chance "chance" (Stream; Dest, Source, No)
    Exponential "exponential" (Stream; Dest, Source, No)
    Nurand "nurand" (Stream; Dest, Registers(4), No)
    RandText "rand_text" (Stream; Dest, Registers(3), No)
    RandTemplate "rand_template" (Stream; Dest, Source, No)
    Permute "permute" (Stream; Dest, Source, Source)
    // s = the stream that becomes that of unit c of table b of stream a
    At "at" (Stream; Number, Name, Source)

    Terminal "terminal" (No; Dest, No, No)
    Now "now" (No; Dest, No, No)
    StateGet "state_get" (No; Dest, State, No)
    StateSet "state_set" (No; State, Source, No)
    Begin "begin" (No; No, No, No)
    Commit "commit" (No; No, No, No)
    PipelineBegin "pipeline_begin" (No; No, No, No)
    PipelineEnd "pipeline_end" (No; No, No, No)
    Statement "statement" (No; OptDest, Statement, No)
    Batch "batch" (No; OptDest, Batch, No)
    Ack "ack" (No; Base, Count, No)
    Return "return" (No; No, No, No)
    Rollback "rollback" (No; No, No, No)

    // uniform and pick between constants, made on load
    UniformFixed "uniform_fixed" (Stream; Dest, Range, No)
    PickFixed "pick_fixed" (Stream; Dest, Range, No)
}
