//! The serialised program: JSON with sorted keys, so that the same program has the same bytes and hash.
//! Sources are numbers of registers or, from 32768 on, of constants.

use serde::Deserialize;

/// Version of this format.
pub(crate) const FORMAT: u32 = 1;
/// Bytes of a serialised program.
pub(crate) const SIZE_CEILING: usize = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProgram {
    pub format: u32,
    pub name: String,
    pub files: Vec<String>,
    pub names: Vec<String>,
    pub constants: Vec<serde_json::Value>,
    pub state: Vec<RawState>,
    pub texts: Vec<String>,
    pub templates: Vec<Vec<RawPiece>>,
    pub distribution: RawDistribution,
    pub terminals: i64,
    pub multi_row: bool,
    pub pipeline: bool,
    pub max_parameters: u32,
    pub setup: Vec<String>,
    pub reconnect_every: u64,
    pub transactions: Vec<RawTransaction>,
    pub start: Option<RawBlock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawState {
    pub name: String,
    pub default: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum RawPiece {
    Literal(String),
    Hole {
        hole: String,
        #[serde(default)]
        width: u32,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDistribution {
    pub kind: String,
    pub spec_iter: u32,
    pub spec_pct: u32,
    pub spec_res: u32,
    pub pareto_h: f64,
    pub zipfian_exp: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTransaction {
    pub name: String,
    pub weight: f64,
    pub keying_s: f64,
    pub think_s: f64,
    pub writes: bool,
    pub block: RawBlock,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBlock {
    pub registers: u16,
    pub streams: u8,
    pub code: Vec<(String, u8, u16, u16, u16)>,
    /// File and line of each instruction.
    pub lines: Vec<(u16, u32)>,
    pub statements: Vec<RawStatement>,
    pub batches: Vec<RawBatch>,
    pub templates: Vec<RawTemplateSite>,
    pub fstrings: Vec<Vec<RawFragment>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(crate) enum RawText {
    Id(u32),
    Source(u16),
    Template(u32),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStatement {
    pub text: RawText,
    pub params: Vec<u16>,
    pub star: Option<u16>,
    pub want: String,
    pub columns: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBatch {
    pub text: RawText,
    pub rows: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTemplateSite {
    pub template: u32,
    pub holes: Vec<u16>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum RawFragment {
    Literal(String),
    Hole { value: u16, spec: String, n: u32 },
}
