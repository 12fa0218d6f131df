//! Column definitions and rows.

use bytes::Bytes;

use super::{Value, column_type, put_length_encoded_bytes};
use crate::reader::{Reader, text};
use crate::{Error, Result};

/// The unsigned flag of a column.
const UNSIGNED_FLAG: u16 = 32;

/// Protocol::ColumnDefinition41, also of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// The database.
    pub schema: String,
    /// The table, by its alias.
    pub table: String,
    /// The table's own name.
    pub original_table: String,
    /// The column, by its alias.
    pub name: String,
    /// The column's own name.
    pub original_name: String,
    /// Collation id.
    pub collation: u16,
    /// Most characters that its text has.
    pub length: u32,
    /// A `column_type`.
    pub kind: u8,
    /// Flags such as NOT NULL and UNSIGNED.
    pub flags: u16,
    /// Digits after the point.
    pub decimals: u8,
}

impl ColumnDefinition {
    /// Reads the payload.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("column definition", payload);
        reader.length_encoded_bytes()?;
        let schema = text(reader.length_encoded_bytes()?);
        let table = text(reader.length_encoded_bytes()?);
        let original_table = text(reader.length_encoded_bytes()?);
        let name = text(reader.length_encoded_bytes()?);
        let original_name = text(reader.length_encoded_bytes()?);
        reader.length_encoded()?;
        Ok(Self {
            schema,
            table,
            original_table,
            name,
            original_name,
            collation: reader.u16_le()?,
            length: reader.u32_le()?,
            kind: reader.u8()?,
            flags: reader.u16_le()?,
            decimals: reader.u8()?,
        })
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for name in ["def", &self.schema, &self.table, &self.original_table, &self.name, &self.original_name]
        {
            put_length_encoded_bytes(&mut out, name.as_bytes());
        }
        out.push(0x0C);
        out.extend(self.collation.to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.push(self.kind);
        out.extend(self.flags.to_le_bytes());
        out.push(self.decimals);
        out.extend([0, 0]);
        out
    }

    /// Whether its integers have no sign.
    pub fn is_unsigned(&self) -> bool {
        self.flags & UNSIGNED_FLAG != 0
    }
}

/// Reads a row of the text protocol: one string or NULL a column.
pub fn decode_text_row(payload: &[u8], columns: usize) -> Result<Vec<Option<Bytes>>> {
    let mut reader = Reader::new("text row", payload);
    let mut row = Vec::with_capacity(columns.min(payload.len()));
    for _ in 0..columns {
        if reader.peek() == Some(0xFB) {
            reader.take(1)?;
            row.push(None);
        } else {
            row.push(Some(Bytes::copy_from_slice(reader.length_encoded_bytes()?)));
        }
    }
    Ok(row)
}

/// The payload of a text row.
pub fn encode_text_row(row: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in row {
        match value.to_text() {
            Some(text) => put_length_encoded_bytes(&mut out, &text),
            None => out.push(0xFB),
        }
    }
    out
}

/// Reads a row of the binary protocol.
pub fn decode_binary_row(payload: &[u8], columns: &[ColumnDefinition]) -> Result<Vec<Value>> {
    let mut reader = Reader::new("binary row", payload);
    if reader.u8()? != 0 {
        return reader.malformed();
    }
    let nulls = reader.take((columns.len() + 2).div_ceil(8))?;
    let mut row = Vec::with_capacity(columns.len());
    for (position, column) in columns.iter().enumerate() {
        let bit = position + 2;
        row.push(if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            Value::Null
        } else {
            Value::read(&mut reader, column.kind, column.is_unsigned())?
        });
    }
    Ok(row)
}

/// The payload of a binary row. Each value must be of its column's kind: LONGLONG for integers, DOUBLE,
/// FLOAT, DATETIME for temporal values, and a string type for the others; Error otherwise.
pub fn encode_binary_row(row: &[Value], columns: &[ColumnDefinition]) -> Result<Vec<u8>> {
    let mut out = vec![0];
    let mut nulls = vec![0u8; (row.len() + 2).div_ceil(8)];
    let mut values = Vec::new();
    for (position, (value, column)) in row.iter().zip(columns).enumerate() {
        let fits = match value {
            Value::Null => {
                nulls[(position + 2) / 8] |= 1 << ((position + 2) % 8);
                true
            }
            Value::Int(_) | Value::UInt(_) => column.kind == column_type::LONGLONG,
            Value::Float(_) => column.kind == column_type::FLOAT,
            Value::Double(_) => column.kind == column_type::DOUBLE,
            Value::Bytes(_) => column.kind >= column_type::JSON || column.kind == column_type::VARCHAR,
            Value::Temporal(_) => column.kind == column_type::DATETIME,
        };
        if !fits {
            return Err(Error::Malformed("row: a value that its column's type does not hold"));
        }
        match value {
            Value::Temporal(text) => write_datetime(&mut values, text)?,
            other => other.write(&mut values),
        }
    }
    out.extend(nulls);
    out.extend(values);
    Ok(out)
}

/// From "YYYY-MM-DD[ HH:MM:SS[.ffffff]]".
fn write_datetime(out: &mut Vec<u8>, text: &str) -> Result<()> {
    let fields: Option<Vec<u32>> =
        text.split(['-', ' ', ':', '.', 'T']).map(|part| part.parse().ok()).collect();
    let Some(fields) = fields.filter(|fields| matches!(fields.len(), 3 | 6 | 7)) else {
        return Err(Error::Malformed("timestamp: it must be YYYY-MM-DD or YYYY-MM-DD HH:MM:SS[.ffffff]"));
    };
    out.push([4, 7, 11][fields.len().saturating_sub(5).min(2)]);
    out.extend((fields[0] as u16).to_le_bytes());
    out.extend(fields[1..].iter().take(5).map(|field| *field as u8));
    if let Some(micros) = fields.get(6) {
        out.extend(micros.to_le_bytes());
    }
    Ok(())
}
