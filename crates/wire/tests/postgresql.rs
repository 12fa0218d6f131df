//! PostgreSQL: what is written is read back; what is cut or mangled is an error, never a panic.

use bytes::{Bytes, BytesMut};
use dbdyno_wire::postgresql::*;
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

fn frontend() -> Vec<FrontendMessage> {
    use FrontendMessage as M;
    vec![
        M::Password(Bytes::from_static(b"secret\0")),
        M::Query("SELECT 'grün'".into()),
        M::Parse { name: "s1".into(), sql: "SELECT $1".into(), types: vec![type_oid::INT8, 0] },
        M::Bind {
            portal: String::new(),
            statement: "s1".into(),
            formats: vec![1],
            values: vec![Some(Bytes::from_static(&[0; 8])), None, Some(Bytes::new())],
            result_formats: vec![0, 1],
        },
        M::Describe { kind: b'S', name: "s1".into() },
        M::Execute { portal: "p".into(), max_rows: 5 },
        M::Close { kind: b'P', name: "p".into() },
        M::Sync,
        M::Flush,
        M::CopyData(Bytes::from_static(b"1\t2\n")),
        M::CopyDone,
        M::CopyFail("no".into()),
        M::Other(b'F', Bytes::from_static(b"call")),
        M::Terminate,
    ]
}

fn backend() -> Vec<BackendMessage> {
    use BackendMessage as M;
    let field = Field {
        name: "c".into(),
        table_oid: 16_384,
        column: 2,
        type_oid: type_oid::NUMERIC,
        type_size: -1,
        type_modifier: -1,
        format: 1,
    };
    vec![
        M::Authentication(Authentication::Ok),
        M::Authentication(Authentication::Cleartext),
        M::Authentication(Authentication::Md5 { salt: [1, 2, 3, 4] }),
        M::Authentication(Authentication::Sasl(vec!["SCRAM-SHA-256-PLUS".into(), "SCRAM-SHA-256".into()])),
        M::Authentication(Authentication::SaslContinue(Bytes::from_static(b"r=x"))),
        M::Authentication(Authentication::SaslFinal(Bytes::from_static(b"v=x"))),
        M::Authentication(Authentication::Other(7)),
        M::ParameterStatus("server_version".into(), "18.0".into()),
        M::BackendKeyData { process_id: 5, secret: Bytes::from_static(&[9; 32]) },
        M::ReadyForQuery(b'T'),
        M::RowDescription(vec![field]),
        M::data_row(&[Some(Bytes::from_static(b"1")), None]),
        M::CommandComplete("UPDATE 1".into()),
        M::EmptyQueryResponse,
        M::error("ERROR", "40P01", "deadlock detected"),
        M::NoticeResponse(vec![(b'M', "careful".into())]),
        M::NoData,
        M::ParameterDescription(vec![type_oid::INT4, type_oid::TEXT]),
        M::ParseComplete,
        M::BindComplete,
        M::CloseComplete,
        M::PortalSuspended,
        M::CopyIn(Bytes::from_static(&[0, 0, 0])),
        M::CopyOut(Bytes::from_static(&[0, 0, 0])),
        M::CopyData(Bytes::from_static(b"x")),
        M::CopyDone,
        M::Other(b'A', Bytes::from_static(b"notify")),
    ]
}

#[test]
fn messages_read_back_however_they_are_cut() {
    let (mut to_server, mut to_client) = (BytesMut::new(), BytesMut::new());
    frontend().iter().for_each(|message| message.write(&mut to_server));
    backend().iter().for_each(|message| message.write(&mut to_client));
    for cut in [1, 3, 1000] {
        let (mut buffer, mut read) = (BytesMut::new(), Vec::new());
        for piece in to_server.chunks(cut) {
            buffer.extend_from_slice(piece);
            while let Some(message) = FrontendMessage::parse(&mut buffer, MESSAGE_CEILING_BYTES).unwrap() {
                read.push(message);
            }
        }
        assert_eq!(read, frontend());
        let (mut buffer, mut read) = (BytesMut::new(), Vec::new());
        for piece in to_client.chunks(cut) {
            buffer.extend_from_slice(piece);
            while let Some(message) = BackendMessage::parse(&mut buffer, MESSAGE_CEILING_BYTES).unwrap() {
                read.push(message);
            }
        }
        assert_eq!(read, backend());
    }
}

#[test]
fn the_first_message_reads_back() {
    let parameters = vec![("user".to_owned(), "älice".to_owned()), ("database".to_owned(), "d".to_owned())];
    for start in [
        Startup::Tls,
        Startup::Gss,
        Startup::Cancel { process_id: 5, secret: Bytes::from_static(&[1, 2, 3, 4]) },
        Startup::version_3(parameters),
    ] {
        let mut buffer = BytesMut::new();
        start.write(&mut buffer);
        let whole = buffer.clone();
        for length in 0..whole.len() {
            assert_eq!(parse_startup(&mut BytesMut::from(&whole[..length])), Ok(None));
        }
        assert_eq!(parse_startup(&mut buffer), Ok(Some(start)));
    }
    // The bytes of libpq's SSLRequest.
    assert_eq!(
        parse_startup(&mut BytesMut::from(&b"\0\0\0\x08\x04\xd2\x16\x2f"[..])),
        Ok(Some(Startup::Tls))
    );
    // Protocol 2.
    assert!(parse_startup(&mut BytesMut::from(&b"\0\0\0\x08\0\x02\0\0"[..])).is_err());
}

#[test]
fn lengths_above_their_ceiling_are_refused_from_the_header() {
    let mut buffer = BytesMut::from(&b"D\x7f\xff\xff\xff"[..]);
    assert!(matches!(BackendMessage::parse(&mut buffer, MESSAGE_CEILING_BYTES), Err(Error::TooLong { .. })));
    let mut buffer = BytesMut::from(&b"Q\0\0\0\x03"[..]);
    assert_eq!(FrontendMessage::parse(&mut buffer, 1024), Err(Error::Malformed("message length")));
    let mut buffer = BytesMut::from(&b"\0\0\x40\0"[..]);
    assert!(matches!(parse_startup(&mut buffer), Err(Error::TooLong { .. })));
}

#[test]
fn rows_give_their_values() {
    let BackendMessage::DataRow(body) = BackendMessage::data_row(&[Some(Bytes::from_static(b"ab")), None])
    else {
        panic!("not a row");
    };
    assert_eq!(decode_data_row(&body), Ok(vec![Some(Bytes::from_static(b"ab")), None]));
    assert!(decode_data_row(&body.slice(..body.len() - 1)).is_err());
    let BackendMessage::ErrorResponse(all) = BackendMessage::error("ERROR", "40P01", "deadlock detected")
    else {
        panic!("not an error");
    };
    assert_eq!((error_field(&all, b'C'), error_field(&all, b'D')), (Some("40P01"), None));
}

#[test]
fn formats_are_spread_as_the_protocol_abbreviates_them() {
    assert_eq!((format_of(&[], 3), format_of(&[1], 3), format_of(&[0, 1], 1)), (0, 1, 1));
}

/// xorshift64: enough to mangle bytes.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn cut_and_mangled_messages_never_panic() {
    let mut samples = Vec::new();
    for message in frontend() {
        let mut bytes = BytesMut::new();
        message.write(&mut bytes);
        samples.push(bytes.to_vec());
    }
    for message in backend() {
        let mut bytes = BytesMut::new();
        message.write(&mut bytes);
        samples.push(bytes.to_vec());
    }
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for round in 0..40_000 {
        let mut bytes = samples[round % samples.len()].clone();
        for _ in 0..random(&mut state) % 4 {
            let at = random(&mut state) as usize % bytes.len();
            bytes[at] = random(&mut state) as u8;
        }
        bytes.truncate(random(&mut state) as usize % (bytes.len() + 1));
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = FrontendMessage::parse(&mut buffer, 1 << 16) {}
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(message)) = BackendMessage::parse(&mut buffer, 1 << 16) {
            if let BackendMessage::DataRow(body) = message {
                let _ = decode_data_row(&body);
            }
        }
        let _ = parse_startup(&mut BytesMut::from(&bytes[..]));
        let body = Bytes::from(bytes);
        for kind in [16, 17, 20, 21, 23, 25, 700, 701, 1082, 1114, 1184, 1700, 9999] {
            let _ = decode(kind, 1, Some(&body));
            let _ = decode(kind, 0, Some(&body));
        }
    }
}
