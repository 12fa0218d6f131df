//! What is written is read back, whatever it holds, and it makes no difference where the network cuts the bytes.

use std::collections::HashMap;
use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::mysql::{self, ColumnDefinition, Command, column_type};
use dbdyno_wire::postgresql::{self, BackendMessage, FrontendMessage, Startup, type_oid};
use dbdyno_wire::{MESSAGE_CEILING_BYTES, Result};
use proptest::collection::vec;
use proptest::prelude::*;

fn raw(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

/// Text without the byte that ends it.
fn text() -> impl Strategy<Value = String> {
    "[^\0]{0,12}"
}

fn name() -> impl Strategy<Value = String> {
    "[^\0]{1,12}"
}

fn mysql_value() -> impl Strategy<Value = mysql::Value> {
    prop_oneof![
        Just(mysql::Value::Null),
        any::<i64>().prop_map(mysql::Value::Int),
        any::<u64>().prop_map(mysql::Value::UInt),
        any::<f32>().prop_map(mysql::Value::Float),
        any::<f64>().prop_map(mysql::Value::Double),
        raw(300).prop_map(mysql::Value::Bytes),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        Just(Command::Quit),
        Just(Command::Ping),
        Just(Command::Statistics),
        Just(Command::ResetConnection),
        raw(40).prop_map(Command::InitDb),
        raw(400).prop_map(Command::Query),
        raw(400).prop_map(Command::Prepare),
        raw(40).prop_map(Command::ChangeUser),
        raw(40).prop_map(Command::FieldList),
        any::<u16>().prop_map(Command::SetOption),
        any::<u32>().prop_map(Command::CloseStatement),
        any::<u32>().prop_map(Command::ResetStatement),
        (any::<u32>(), any::<u32>()).prop_map(|(statement_id, rows)| Command::Fetch { statement_id, rows }),
        (any::<u32>(), any::<u8>(), raw(90)).prop_map(|(statement_id, cursor, parameters)| {
            Command::Execute { statement_id, cursor, parameters }
        }),
        (any::<u32>(), any::<u16>(), raw(90)).prop_map(|(statement_id, parameter, data)| Command::LongData {
            statement_id,
            parameter,
            data
        }),
    ]
}

/// A column that holds such a value in the binary protocol.
fn column_of(value: &mysql::Value) -> ColumnDefinition {
    let (kind, flags) = match value {
        mysql::Value::UInt(_) => (column_type::LONGLONG, 32),
        mysql::Value::Int(_) => (column_type::LONGLONG, 0),
        mysql::Value::Float(_) => (column_type::FLOAT, 0),
        mysql::Value::Double(_) => (column_type::DOUBLE, 0),
        _ => (column_type::VAR_STRING, 0),
    };
    ColumnDefinition {
        schema: "s".into(),
        table: "t".into(),
        original_table: "t".into(),
        name: "c".into(),
        original_name: "c".into(),
        collation: 63,
        length: 20,
        kind,
        flags,
        decimals: 0,
    }
}

fn error_fields() -> impl Strategy<Value = Vec<(u8, String)>> {
    vec((1..=255u8, text()), 0..6)
}

fn backend() -> impl Strategy<Value = BackendMessage> {
    use postgresql::Authentication as A;
    let field = (name(), any::<u32>(), any::<i16>(), any::<u32>(), any::<i16>(), any::<i32>(), 0..2i16)
        .prop_map(|(name, table_oid, column, type_oid, type_size, type_modifier, format)| {
            postgresql::Field { name, table_oid, column, type_oid, type_size, type_modifier, format }
        });
    prop_oneof![
        Just(BackendMessage::Authentication(A::Ok)),
        any::<[u8; 4]>().prop_map(|salt| BackendMessage::Authentication(A::Md5 { salt })),
        vec(name(), 0..3).prop_map(|all| BackendMessage::Authentication(A::Sasl(all))),
        raw(90).prop_map(|data| BackendMessage::Authentication(A::SaslContinue(data))),
        (text(), text()).prop_map(|(one, two)| BackendMessage::ParameterStatus(one, two)),
        (any::<u32>(), raw(40))
            .prop_map(|(process_id, secret)| BackendMessage::BackendKeyData { process_id, secret }),
        any::<u8>().prop_map(BackendMessage::ReadyForQuery),
        vec(field, 0..6).prop_map(BackendMessage::RowDescription),
        vec(proptest::option::of(raw(60)), 0..6).prop_map(|row| BackendMessage::data_row(&row)),
        text().prop_map(BackendMessage::CommandComplete),
        error_fields().prop_map(BackendMessage::ErrorResponse),
        error_fields().prop_map(BackendMessage::NoticeResponse),
        vec(any::<u32>(), 0..9).prop_map(BackendMessage::ParameterDescription),
        raw(90).prop_map(BackendMessage::CopyData),
        Just(BackendMessage::ParseComplete),
        Just(BackendMessage::NoData),
        Just(BackendMessage::EmptyQueryResponse),
    ]
}

fn frontend() -> impl Strategy<Value = FrontendMessage> {
    let values = vec(proptest::option::of(raw(60)), 0..6);
    prop_oneof![
        raw(60).prop_map(FrontendMessage::Password),
        text().prop_map(FrontendMessage::Query),
        (text(), text(), vec(any::<u32>(), 0..4)).prop_map(|(name, sql, types)| FrontendMessage::Parse {
            name,
            sql,
            types
        }),
        (text(), text(), vec(0..2i16, 0..3), values, vec(0..2i16, 0..3)).prop_map(
            |(portal, statement, formats, values, result_formats)| FrontendMessage::Bind {
                portal,
                statement,
                formats,
                values,
                result_formats,
            }
        ),
        Just(FrontendMessage::Sync),
        Just(FrontendMessage::Terminate),
    ]
}

/// Every message of `wire`, which arrives in the pieces that `cuts` make.
fn in_pieces<T: Debug>(
    wire: &[u8],
    cuts: &[usize],
    parse: impl Fn(&mut BytesMut) -> Result<Option<T>>,
) -> Vec<T> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
    places.extend([0, wire.len()]);
    places.sort_unstable();
    let (mut buffer, mut read) = (BytesMut::new(), Vec::new());
    for ends in places.windows(2) {
        buffer.extend_from_slice(&wire[ends[0]..ends[1]]);
        while let Some(message) = parse(&mut buffer).unwrap() {
            read.push(message);
        }
    }
    assert!(buffer.is_empty());
    read
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_command_reads_back(command in command()) {
        prop_assert_eq!(Command::parse(&Bytes::from(command.encode())), Ok(command));
    }

    #[test]
    fn parameters_and_rows_read_back(values in vec(mysql_value(), 1..12)) {
        let Command::Execute { parameters, .. } = mysql::encode_execute(1, &values) else { unreachable!() };
        let read = mysql::decode_parameters(&parameters, values.len(), &mut Vec::new(), &HashMap::new());
        prop_assert_eq!(read.as_ref(), Ok(&values));
        let columns: Vec<ColumnDefinition> = values.iter().map(column_of).collect();
        let binary = mysql::encode_binary_row(&values, &columns).unwrap();
        let read = mysql::decode_binary_row(&binary, &columns);
        prop_assert_eq!(read.as_ref(), Ok(&values));
        let text = mysql::encode_text_row(&values);
        let expected: Vec<Option<Bytes>> = values.iter().map(mysql::Value::to_text).collect();
        prop_assert_eq!(mysql::decode_text_row(&text, values.len()), Ok(expected));
        for length in 0..binary.len() {
            prop_assert!(mysql::decode_binary_row(&binary[..length], &columns).is_err(), "cut at {}", length);
        }
    }

    #[test]
    fn packets_survive_any_cut(payloads in vec(raw(300), 1..6), cuts in vec(any::<usize>(), 0..20)) {
        let (mut wire, mut sequence) = (BytesMut::new(), 0);
        payloads.iter().for_each(|payload| mysql::write(&mut wire, &mut sequence, payload));
        let parse = |buffer: &mut BytesMut| mysql::parse(buffer, MESSAGE_CEILING_BYTES);
        let read = in_pieces(&wire, &cuts, parse);
        prop_assert_eq!(read.into_iter().map(|packet| packet.payload).collect::<Vec<_>>(), payloads);
    }

    #[test]
    fn server_messages_survive_any_cut(messages in vec(backend(), 1..6), cuts in vec(any::<usize>(), 0..20)) {
        let mut wire = BytesMut::new();
        messages.iter().for_each(|message| message.write(&mut wire));
        let parse = |buffer: &mut BytesMut| BackendMessage::parse(buffer, MESSAGE_CEILING_BYTES);
        prop_assert_eq!(in_pieces(&wire, &cuts, parse), messages);
    }

    #[test]
    fn client_messages_survive_any_cut(messages in vec(frontend(), 1..6), cuts in vec(any::<usize>(), 0..20)) {
        let mut wire = BytesMut::new();
        messages.iter().for_each(|message| message.write(&mut wire));
        let parse = |buffer: &mut BytesMut| FrontendMessage::parse(buffer, MESSAGE_CEILING_BYTES);
        prop_assert_eq!(in_pieces(&wire, &cuts, parse), messages);
    }

    #[test]
    fn a_startup_message_survives_any_cut(
        parameters in vec((name(), text()), 0..5),
        cuts in vec(any::<usize>(), 0..9),
    ) {
        let startup = Startup::version_3(parameters);
        let mut wire = BytesMut::new();
        startup.write(&mut wire);
        prop_assert_eq!(in_pieces(&wire, &cuts, postgresql::parse_startup), vec![startup]);
    }

    #[test]
    fn a_decimal_keeps_every_digit_in_its_binary_form(
        minus in any::<bool>(),
        whole in "0|[1-9][0-9]{0,30}",
        fraction in "[0-9]{0,20}",
    ) {
        let point = if fraction.is_empty() { "" } else { "." };
        let sign = if minus { "-" } else { "" };
        let text = format!("{sign}{whole}{point}{fraction}");
        let binary = postgresql::encode_binary(type_oid::NUMERIC, &text).unwrap();
        let read = postgresql::decode(type_oid::NUMERIC, 1, Some(&binary));
        prop_assert_eq!(read, Ok(postgresql::Value::Text(text)));
    }
}
