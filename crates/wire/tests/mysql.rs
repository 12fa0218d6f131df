//! MySQL: what is written is read back; what is cut or mangled is an error, never a panic.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::mysql::*;
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

fn handshake() -> Handshake {
    Handshake {
        server_version: "8.4.0".into(),
        connection_id: 77,
        nonce: *b"0123456789abcdefghij",
        capabilities: capability::PROTOCOL_41 | capability::PLUGIN_AUTH | capability::SECURE_CONNECTION,
        collation: collation::UTF8MB4_GENERAL_CI,
        status: status::AUTOCOMMIT,
        plugin: auth::NATIVE_PASSWORD.into(),
        mariadb_capabilities: 5,
    }
}

fn response(more: u32) -> HandshakeResponse {
    let with = |flag: u32| more & flag != 0;
    HandshakeResponse {
        capabilities: capability::PROTOCOL_41 | more,
        max_packet: 1 << 24,
        collation: 45,
        user: "älice#tenant".into(),
        auth: Bytes::from_static(b"01234567890123456789"),
        database: with(capability::CONNECT_WITH_DB).then(|| "test".into()),
        plugin: with(capability::PLUGIN_AUTH).then(|| "mysql_native_password".into()),
        attributes: if with(capability::CONNECT_ATTRS) {
            vec![("program_name".into(), "x".into())]
        } else {
            vec![]
        },
    }
}

fn column(kind: u8, flags: u16) -> ColumnDefinition {
    ColumnDefinition {
        schema: "test".into(),
        table: "t".into(),
        original_table: "t1".into(),
        name: "c".into(),
        original_name: "c1".into(),
        collation: 63,
        length: 20,
        kind,
        flags,
        decimals: 0,
    }
}

/// The greeting of a MySQL 5.5 server as its manual prints it.
const GREETING_5_5: &[u8] =
    b"\x0a5.5.2-m2\x00\x0b\x00\x00\x00\x64\x76\x48\x40\x49\x2d\x43\x4a\x00\xff\xf7\x08\x02\x00\
\x0f\x80\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x2a\x34\x64\x7c\x63\x5a\x77\x6b\x34\x5e\x5d\x3a\x00";

#[test]
fn a_documented_greeting_is_read() {
    let greeting = Handshake::parse(GREETING_5_5).unwrap();
    assert_eq!((greeting.server_version.as_str(), greeting.connection_id), ("5.5.2-m2", 11));
    assert_eq!(greeting.nonce, *b"dvH@I-CJ*4d|cZwk4^]:");
    assert_eq!(greeting.capabilities & 0xFFFF, 0xF7FF);
}

#[test]
fn the_connection_phase_reads_back() {
    assert_eq!(Handshake::parse(&handshake().encode()), Ok(handshake()));
    for more in [
        0,
        capability::SECURE_CONNECTION,
        capability::SECURE_CONNECTION | capability::CONNECT_WITH_DB | capability::PLUGIN_AUTH,
        capability::PLUGIN_AUTH_LENENC_DATA | capability::PLUGIN_AUTH | capability::CONNECT_ATTRS,
    ] {
        let written = response(more);
        assert_eq!(HandshakeResponse::parse(&written.encode()), Ok(written));
    }
    let switch = AuthSwitch { plugin: "caching_sha2_password".into(), nonce: Bytes::from_static(b"nonce") };
    assert_eq!(AuthSwitch::parse(&switch.encode()), Ok(switch));
}

#[test]
fn answers_read_back() {
    let ok = OkPacket {
        affected_rows: 70_000,
        last_insert_id: u64::MAX,
        status: 3,
        warnings: 2,
        info: b"x".to_vec(),
    };
    assert_eq!(OkPacket::parse(&ok.encode()), Ok(ok.clone()));
    assert_eq!(OkPacket::parse(&ok.encode_as_eof()), Ok(ok));
    let err = ErrPacket { code: 1213, sqlstate: "40001".into(), message: "Deadlock".into() };
    assert_eq!(ErrPacket::parse(&err.encode()), Ok(err));
    let early = ErrPacket { code: 1040, sqlstate: String::new(), message: "Too many connections".into() };
    assert_eq!(ErrPacket::parse(&early.encode()), Ok(early));
    let prepared = PrepareOk { statement_id: 9, columns: 2, parameters: 300, warnings: 1 };
    assert_eq!(PrepareOk::parse(&prepared.encode()), Ok(prepared));
    let definition = column(column_type::LONGLONG, 32);
    assert_eq!(ColumnDefinition::parse(&definition.encode()), Ok(definition));
}

#[test]
fn commands_read_back() {
    let commands = [
        Command::Quit,
        Command::InitDb(Bytes::from("db")),
        Command::Query(Bytes::from("SELECT 1")),
        Command::Ping,
        Command::Statistics,
        Command::ResetConnection,
        Command::SetOption(1),
        Command::Prepare(Bytes::from("SELECT ?")),
        encode_execute(7, &[Value::Int(1), Value::Null]),
        Command::LongData { statement_id: 7, parameter: 1, data: Bytes::from("piece") },
        Command::CloseStatement(7),
        Command::ResetStatement(7),
        Command::Fetch { statement_id: 7, rows: 10 },
        Command::Other(0x0D),
    ];
    for command in commands {
        assert_eq!(Command::parse(&Bytes::from(command.encode())), Ok(command));
    }
    assert!(Command::parse(&Bytes::new()).is_err());
}

fn parameters(command: &Command) -> Bytes {
    match command {
        Command::Execute { parameters, .. } => parameters.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_keep_value_and_type() {
    let values = [
        Value::Int(i64::MIN),
        Value::UInt(u64::MAX),
        Value::Null,
        Value::Double(0.1),
        Value::Float(0.5),
        Value::Bytes(Bytes::from("grün")),
        Value::Null,
        Value::Null,
        Value::Bytes(Bytes::from(vec![b'x'; 70_000])),
    ];
    let command = encode_execute(1, &values);
    let mut types = Vec::new();
    let none = HashMap::new();
    assert_eq!(decode_parameters(&parameters(&command), 9, &mut types, &none), Ok(values.to_vec()));
    // The next execution leaves the types out: no nulls, no new types, the value.
    let again = b"\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00";
    let mut one = vec![ParameterType { kind: column_type::LONGLONG, unsigned: false }];
    assert_eq!(decode_parameters(again, 1, &mut one, &none), Ok(vec![Value::Int(5 << 8)]));
    assert!(decode_parameters(&[0, 0], 1, &mut Vec::new(), &none).is_err());
    let long = HashMap::from([(0, Bytes::from("sent before"))]);
    let text = encode_execute(1, &[Value::Bytes(Bytes::new())]);
    assert_eq!(
        decode_parameters(&parameters(&text), 1, &mut Vec::new(), &long),
        Ok(vec![Value::Bytes(Bytes::from("sent before"))])
    );
}

#[test]
fn rows_read_back() {
    let columns = [
        column(column_type::LONGLONG, 0),
        column(column_type::DOUBLE, 0),
        column(column_type::VAR_STRING, 0),
    ];
    let row = [Value::Int(-5), Value::Null, Value::Bytes(Bytes::from("abc"))];
    let binary = encode_binary_row(&row, &columns).unwrap();
    assert_eq!(decode_binary_row(&binary, &columns), Ok(row.to_vec()));
    assert_eq!(
        decode_text_row(&encode_text_row(&row), 3),
        Ok(vec![Some(Bytes::from("-5")), None, Some(Bytes::from("abc"))])
    );
    assert!(encode_binary_row(&[Value::Double(1.0)], &columns).is_err());
    let dates = [column(column_type::DATETIME, 0)];
    for (text, read) in [
        ("2024-02-29 12:30:05", "2024-02-29 12:30:05"),
        ("2024-02-29 12:30:05.000250", "2024-02-29 12:30:05.000250"),
        ("2024-02-29", "2024-02-29 00:00:00"),
    ] {
        let binary = encode_binary_row(&[Value::Temporal(text.into())], &dates).unwrap();
        assert_eq!(decode_binary_row(&binary, &dates), Ok(vec![Value::Temporal(read.into())]));
    }
}

#[test]
fn packets_arrive_whole_however_they_are_cut() {
    let mut wire = BytesMut::new();
    let mut sequence = 250;
    let payloads = [vec![], b"abc".to_vec(), vec![7; 0xFF_FFFF], vec![8; 0xFF_FFFF + 5]];
    for payload in &payloads {
        write(&mut wire, &mut sequence, payload);
    }
    assert_eq!(sequence, 0);
    let mut buffer = BytesMut::new();
    let mut read = Vec::new();
    for piece in wire.chunks(1_000_003) {
        buffer.extend_from_slice(piece);
        while let Some(packet) = parse(&mut buffer, MESSAGE_CEILING_BYTES).unwrap() {
            read.push(packet.payload.to_vec());
        }
    }
    assert!(read == payloads.to_vec() && buffer.is_empty());
}

#[test]
fn a_length_above_the_ceiling_is_refused_from_its_header() {
    let mut buffer = BytesMut::from(&b"\x01\x04\x00\x00"[..]);
    assert_eq!(
        parse(&mut buffer, 1024),
        Err(Error::TooLong { what: "packet length", length: 1025, ceiling: 1024 })
    );
    let mut buffer = BytesMut::from(&b"\x00\x04\x00\x00"[..]);
    assert_eq!(parse(&mut buffer, 1024), Ok(None));
}

/// Feeds an answer and gives what each packet was; the last one must complete it.
fn events(shape: Shape, capabilities: u32, packets: &[Vec<u8>]) -> Vec<Event> {
    let mut reader = ResponseReader::new(shape, capabilities);
    let mut events = Vec::new();
    for packet in packets {
        assert!(!reader.is_complete());
        events.push(reader.next(packet).unwrap());
    }
    assert!(reader.is_complete());
    events
}

#[test]
fn the_end_of_an_answer_is_found() {
    let ok = OkPacket { status: 2, ..OkPacket::default() };
    let more = OkPacket { status: 2 | status::MORE_RESULTS, ..OkPacket::default() };
    let eof = EofPacket { warnings: 0, status: 2 };
    let definition = column(column_type::LONGLONG, 0).encode();
    let row = encode_text_row(&[Value::Int(1)]);
    let failed = ErrPacket { code: 1064, sqlstate: "42000".into(), message: "no".into() };

    let old =
        events(Shape::Generic, 0, &[vec![1], definition.clone(), eof.encode(), row.clone(), eof.encode()]);
    assert_eq!(old[0], Event::Columns(1));
    assert_eq!(old[3], Event::Row);
    let modern = events(
        Shape::Generic,
        capability::DEPRECATE_EOF,
        &[vec![1], definition.clone(), row.clone(), more.encode_as_eof(), ok.encode()],
    );
    assert_eq!(modern.last(), Some(&Event::Done(ok.clone())));
    assert_eq!(events(Shape::Generic, 0, &[failed.encode()]), [Event::Failed(failed.clone())]);
    let broken = [vec![1], definition.clone(), eof.encode(), row, failed.encode()];
    assert_eq!(events(Shape::Generic, 0, &broken).last(), Some(&Event::Failed(failed)));

    for (parameters, columns) in [(0, 0), (2, 0), (0, 3), (2, 3)] {
        let head = PrepareOk { statement_id: 1, columns, parameters, warnings: 0 };
        let (mut old, mut modern) = (vec![head.encode()], vec![head.encode()]);
        for count in [parameters, columns] {
            for _ in 0..count {
                old.push(definition.clone());
                modern.push(definition.clone());
            }
            if count > 0 {
                old.push(eof.encode());
            }
        }
        assert_eq!(events(Shape::Prepare, 0, &old)[0], Event::Prepared(head));
        assert_eq!(events(Shape::Prepare, capability::DEPRECATE_EOF, &modern)[0], Event::Prepared(head));
    }
    assert_eq!(events(Shape::Line, 0, &[b"Uptime: 5".to_vec()]), [Event::Line]);
    assert!(ResponseReader::new(Shape::Generic, 0).next(&[0xFC, 0xFF, 0xFF]).is_err());
}

/// xorshift64: enough to mangle bytes.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn cut_and_mangled_packets_never_panic() {
    let columns =
        [column(column_type::LONGLONG, 0), column(column_type::DATETIME, 0), column(column_type::TIME, 0)];
    let samples = [
        handshake().encode(),
        response(!capability::SSL).encode(),
        column(8, 0).encode(),
        encode_execute(1, &[Value::Int(1), Value::Null, Value::Bytes(Bytes::from("abc"))]).encode(),
        OkPacket::default().encode(),
        ErrPacket { code: 1, sqlstate: "HY000".into(), message: "m".into() }.encode(),
        encode_text_row(&[Value::Int(1), Value::Null]),
        b"\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x0b\xe8\x07\x02\x1d\x0c\x1e\x05\xfa\x00\x00\x00\x0c\x01\x02\x00\x00\x00\x03\x04\x05\x06\x00\x00\x00".to_vec(),
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for round in 0..20_000 {
        let mut bytes = samples[round % samples.len()].clone();
        for _ in 0..random(&mut state) % 4 {
            let at = random(&mut state) as usize % bytes.len();
            bytes[at] = random(&mut state) as u8;
        }
        bytes.truncate(random(&mut state) as usize % (bytes.len() + 1));
        let _ = Handshake::parse(&bytes);
        let _ = HandshakeResponse::parse(&bytes);
        let _ = AuthSwitch::parse(&bytes);
        let _ = ColumnDefinition::parse(&bytes);
        let _ = OkPacket::parse(&bytes);
        let _ = ErrPacket::parse(&bytes);
        let _ = PrepareOk::parse(&bytes);
        let _ = decode_text_row(&bytes, 3);
        let _ = decode_binary_row(&bytes, &columns);
        let _ = decode_parameters(&bytes, 3, &mut Vec::new(), &HashMap::new());
        for shape in [Shape::Generic, Shape::Prepare, Shape::Rows, Shape::Definitions] {
            let _ = ResponseReader::new(shape, 0).next(&bytes);
        }
        let _ = is_tls_request(&bytes);
        let shared = Bytes::from(bytes);
        let _ = Command::parse(&shared);
        let mut buffer = BytesMut::from(&shared[..]);
        while let Ok(Some(_)) = parse(&mut buffer, 1 << 16) {}
    }
}
