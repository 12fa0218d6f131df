//! The SQL texts of a program, numbered. Constant texts have their number from the compiler; texts with
//! integers in them get theirs when they are first used. One table belongs to one event loop: a number is
//! the same for all its connections, which keep their own prepared statements by it.

use std::collections::HashMap;

use super::fault::{Class, Fault, fault};
use super::sql::{StatementKind, multi_row, parameter_positions, row_group, statement_kind};

/// Texts that one program may use (language.md).
pub const TEXT_LIMIT: usize = 4096;
/// A text's integer below that is looked up by index.
const DIRECT: usize = 4096;
const ABSENT: u32 = u32::MAX;

/// One SQL text.
#[derive(Debug, Clone)]
pub struct Text {
    /// The statement, with `?` for parameters.
    pub sql: String,
    /// What it does.
    pub kind: StatementKind,
    /// Number of its parameters.
    pub parameters: u32,
    /// Whether it is an INSERT that can be given several rows.
    pub(crate) repeatable: bool,
}

impl Text {
    pub(crate) fn new(sql: String) -> Self {
        let parameters = parameter_positions(&sql).len() as u32;
        Self { kind: statement_kind(&sql), parameters, repeatable: row_group(&sql).is_some(), sql }
    }
}

/// A piece of a text that is made at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    /// An integer, in decimal, with zeros up to that many characters.
    Integer(u32),
    /// That many parameter marks.
    Marks,
}

/// The numbers of a template's texts by its integers.
#[derive(Debug, Default)]
struct Known {
    direct: Vec<u32>,
    others: HashMap<Box<[i64]>, u32>,
}

/// All texts seen so far by one event loop.
#[derive(Debug)]
pub struct Texts {
    texts: Vec<Text>,
    templates: Vec<Known>,
    by_sql: HashMap<String, u32>,
    multi: HashMap<(u32, u32), u32>,
}

impl Texts {
    pub(crate) fn new(constants: &[String], templates: usize) -> Self {
        let texts: Vec<Text> = constants.iter().cloned().map(Text::new).collect();
        let by_sql = texts.iter().enumerate().map(|(id, text)| (text.sql.clone(), id as u32)).collect();
        Self {
            texts,
            templates: (0..templates).map(|_| Known::default()).collect(),
            by_sql,
            multi: HashMap::new(),
        }
    }

    /// The text of that number.
    #[inline]
    pub fn get(&self, id: u32) -> &Text {
        &self.texts[id as usize]
    }

    /// How many there are; numbers run from 0.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The number of a template's text with that one integer, if it is known and small.
    #[inline]
    pub(crate) fn known(&self, template: usize, hole: i64) -> Option<u32> {
        let id = *self.templates.get(template)?.direct.get(usize::try_from(hole).ok()?)?;
        (id != ABSENT).then_some(id)
    }

    /// The number of a template's text with these integers.
    pub(crate) fn resolve(&mut self, template: usize, pieces: &[Piece], holes: &[i64]) -> Result<u32, Fault> {
        if let Some(id) = self.templates[template].others.get(holes) {
            return Ok(*id);
        }
        if let [hole] = holes {
            if let Some(id) = self.known(template, *hole) {
                return Ok(id);
            }
        }
        let id = self.intern(render(pieces, holes)?)?;
        let known = &mut self.templates[template];
        match holes {
            [hole] if (0..DIRECT as i64).contains(hole) => {
                let at = *hole as usize;
                if known.direct.len() <= at {
                    known.direct.resize(at + 1, ABSENT);
                }
                known.direct[at] = id;
            }
            _ => {
                known.others.insert(holes.into(), id);
            }
        }
        Ok(id)
    }

    /// The number of the multi-row form of text `id`.
    pub(crate) fn multi_row(&mut self, id: u32, rows: usize) -> Result<u32, Fault> {
        if let Some(found) = self.multi.get(&(id, rows as u32)) {
            return Ok(*found);
        }
        let sql = multi_row(&self.get(id).sql, rows).unwrap_or_default();
        let found = self.intern(sql)?;
        self.multi.insert((id, rows as u32), found);
        Ok(found)
    }

    fn intern(&mut self, sql: String) -> Result<u32, Fault> {
        if let Some(id) = self.by_sql.get(&sql) {
            return Ok(*id);
        }
        if self.texts.len() >= TEXT_LIMIT {
            return fault(
                Class::Limit,
                format!("more than {TEXT_LIMIT} different SQL texts; give what varies as a parameter (?)"),
            );
        }
        let id = self.texts.len() as u32;
        self.by_sql.insert(sql.clone(), id);
        self.texts.push(Text::new(sql));
        Ok(id)
    }
}

/// How many parameters the texts of a template have; None when that depends on its integers.
pub(crate) fn parameters_of(pieces: &[Piece]) -> Option<usize> {
    if pieces.contains(&Piece::Marks) {
        return None;
    }
    let holes = vec![0; pieces.len()];
    render(pieces, &holes).ok().map(|sql| parameter_positions(&sql).len())
}

fn render(pieces: &[Piece], holes: &[i64]) -> Result<String, Fault> {
    let mut sql = String::new();
    let mut holes = holes.iter();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => sql.push_str(text),
            Piece::Integer(width) => {
                let (value, width) = (holes.next().copied().unwrap_or_default(), *width as usize);
                sql.push_str(&format!("{value:0width$}"));
            }
            Piece::Marks => {
                let n = holes.next().copied().unwrap_or_default();
                if n < 1 {
                    return fault(
                        Class::Value,
                        format!("marks({n}) has no parameter; at least one is needed"),
                    );
                }
                let n = usize::try_from(n).unwrap_or(usize::MAX).min(super::value::TEXT_CEILING);
                sql.push('?');
                sql.extend(std::iter::repeat_n(", ?", n - 1));
            }
        }
    }
    Ok(sql)
}
