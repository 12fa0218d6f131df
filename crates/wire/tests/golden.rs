//! Conversations recorded from real servers (tests/golden/*.json, made by record.py there) are understood, value
//! by value. MySQL 5.7, 8.0 and OceanBase clusters are not among them: they could not be had for recording.

use bytes::{Bytes, BytesMut};
use dbdyno_wire::MESSAGE_CEILING_BYTES;
use dbdyno_wire::mysql::{
    self, AuthSwitch, ColumnDefinition, Command, ErrPacket, Event, Handshake, HandshakeResponse, PrepareOk,
    ResponseReader, Shape, auth, decode_binary_row, decode_text_row,
};
use dbdyno_wire::postgresql::{self, Authentication, BackendMessage, Field, FrontendMessage, Startup};
use serde_json::Value;

/// A recorded server: its file's name and content.
fn golden(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn exchanges(golden: &Value) -> &Vec<Value> {
    golden["exchanges"].as_array().unwrap()
}

fn said(exchange: &Value, side: &str) -> BytesMut {
    let turns = exchange["turns"].as_array().unwrap().iter();
    let digits: String = turns.filter(|turn| turn[0] == side).map(|turn| turn[1].as_str().unwrap()).collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn packets(mut bytes: BytesMut) -> Vec<Bytes> {
    let mut packets = Vec::new();
    while let Some(packet) = mysql::parse(&mut bytes, MESSAGE_CEILING_BYTES).unwrap() {
        packets.push(packet.payload);
    }
    assert!(bytes.is_empty());
    packets
}

fn expected_rows(rows: &Value) -> Vec<Vec<String>> {
    let word = |cell: &Value| cell.as_str().unwrap_or("NULL").to_owned();
    rows.as_array().unwrap().iter().map(|row| row.as_array().unwrap().iter().map(word).collect()).collect()
}

/// Bytes as record.py writes them: text, or `\x` and digits where they are no text.
fn shown(value: Option<&Bytes>) -> String {
    let Some(bytes) = value else { return "NULL".to_owned() };
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(|c: char| c.is_control()) => text.to_owned(),
        _ => format!("\\x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

fn mysql_login(golden: &Value, exchange: &Value) {
    let (server, client) = (packets(said(exchange, "server")), packets(said(exchange, "client")));
    let greeting = Handshake::parse(&server[0]).unwrap();
    assert_eq!(greeting.server_version, golden["server"].as_str().unwrap());
    assert_eq!(Handshake::parse(&greeting.encode()).as_ref(), Ok(&greeting));
    assert!(greeting.nonce.iter().all(|byte| *byte != 0));
    let response = HandshakeResponse::parse(&client[0]).unwrap();
    assert_eq!((response.user.as_str(), response.database.as_deref()), ("golden", Some("dbdyno")));
    assert_eq!(client[0], response.encode());
    let password = exchange["password"].as_str().unwrap().as_bytes();
    if response.plugin.as_deref() == Some(auth::NATIVE_PASSWORD) {
        assert_eq!(response.auth, auth::native_password(password, &greeting.nonce));
    }
    let mut answers = client[1..].iter();
    for reply in &server[1..] {
        match reply[0] {
            0xFE => {
                let switch = AuthSwitch::parse(reply).unwrap();
                assert_eq!(switch.plugin, golden["plugin"].as_str().unwrap());
                assert_eq!(reply, &switch.encode());
                let answer = answers.next().unwrap();
                if switch.plugin == auth::NATIVE_PASSWORD {
                    let nonce = switch.nonce.as_ref().try_into().unwrap();
                    assert_eq!(answer, &auth::native_password(password, nonce));
                }
            }
            0x01 => assert!(matches!(reply[1..], [3] | [4] | [b'-', ..]), "caching_sha2_password's words"),
            0x00 => assert_eq!(exchange["accepted"], true),
            _ => {
                let error = ErrPacket::parse(reply).unwrap();
                // the OceanBase engine's own SQLSTATE for it
                let state = if greeting.server_version == "5.7.25" { "42000" } else { "28000" };
                assert_eq!((error.code, error.sqlstate.as_str()), (1045, state));
                assert!(error.message.starts_with("Access denied for user 'golden'"), "{}", error.message);
                assert_eq!(exchange["accepted"], false);
            }
        }
    }
}

fn mysql_command(exchange: &Value) {
    let name = exchange["name"].as_str().unwrap();
    let command = packets(said(exchange, "client")).remove(0);
    assert_eq!(Command::parse(&command).unwrap().encode(), command, "{name}");
    let shape = if exchange["ask"] == "prepare" { Shape::Prepare } else { Shape::Generic };
    let mut reader = ResponseReader::new(shape, exchange["capabilities"].as_u64().unwrap() as u32);
    let (mut columns, mut answer) = (Vec::new(), None);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for payload in packets(said(exchange, "server")) {
        assert!(!reader.is_complete(), "{name}");
        match reader.next(&payload).unwrap() {
            Event::Columns(_) => columns.clear(),
            Event::Definition => {
                let definition = ColumnDefinition::parse(&payload).unwrap();
                assert_eq!(definition.encode(), payload, "{name}");
                columns.push(definition);
            }
            Event::Row if exchange["ask"] == "execute" => {
                let row = decode_binary_row(&payload, &columns).unwrap();
                rows.push(row.iter().map(|value| format!("{value:?}")).collect());
            }
            Event::Row => {
                let row = decode_text_row(&payload, columns.len()).unwrap();
                rows.push(row.iter().map(|value| shown(value.as_ref())).collect());
            }
            Event::Prepared(prepared) => {
                let PrepareOk { columns, parameters, .. } = prepared;
                assert_eq!(exchange["columns"], u64::from(columns));
                assert_eq!(exchange["parameters"], u64::from(parameters));
                assert_eq!(prepared.encode(), payload);
            }
            other => answer = Some(other),
        }
    }
    assert!(reader.is_complete(), "{name}");
    for kind in ["text", "binary"] {
        if !exchange[kind].is_null() {
            assert_eq!(rows, expected_rows(&exchange[kind]), "{name}");
        }
    }
    match (&exchange["error"], answer) {
        (Value::Null, Some(Event::Done(ok))) => {
            if let Some(open) = exchange["in_transaction"].as_bool() {
                assert_eq!(ok.status & mysql::status::IN_TRANSACTION != 0, open, "{name}");
            }
        }
        (Value::Null, answer) => assert!(answer.is_none() || shape == Shape::Prepare, "{name}: {answer:?}"),
        (error, Some(Event::Failed(failed))) => {
            assert_eq!(error[0], u64::from(failed.code), "{name}");
            assert_eq!(error[1], failed.sqlstate, "{name}");
        }
        (_, other) => panic!("{name}: {other:?}"),
    }
}

fn mysql_server(name: &str) {
    let golden = golden(name);
    assert!(exchanges(&golden).len() > 30);
    for exchange in exchanges(&golden) {
        match exchange["ask"].as_str() {
            Some("login") => mysql_login(&golden, exchange),
            _ => mysql_command(exchange),
        }
    }
}

#[test]
fn mariadb_10_11_is_understood() {
    mysql_server("mariadb-10.11");
}

#[test]
fn mysql_9_7_is_understood() {
    mysql_server("mysql-9.7");
    let golden = golden("mysql-9.7");
    let words: Vec<Vec<u8>> = exchanges(&golden)
        .iter()
        .filter(|exchange| exchange["ask"] == "login" && exchange["accepted"] == true)
        .map(|exchange| {
            let replies = packets(said(exchange, "server"));
            replies.iter().filter(|reply| reply[0] == 1).map(|reply| reply[1]).collect()
        })
        .collect();
    // full authentication with the server's public key ("-----BEGIN"), then the fast path, also after a switch
    assert_eq!(words, [vec![4, b'-'], vec![3], vec![3]]);
}

#[test]
fn seekdb_is_understood() {
    mysql_server("seekdb-1.4");
}

#[test]
fn postgresql_18_is_understood() {
    let golden = golden("postgresql-18");
    for exchange in exchanges(&golden) {
        if exchange["ask"] == "login" {
            postgresql_login(&golden, exchange);
        } else {
            postgresql_answer(exchange);
        }
    }
}

fn messages(mut bytes: BytesMut) -> Vec<BackendMessage> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let before = bytes.clone();
        let message = BackendMessage::parse(&mut bytes, MESSAGE_CEILING_BYTES).unwrap().unwrap();
        let mut written = BytesMut::new();
        message.write(&mut written);
        assert_eq!(written, before[..before.len() - bytes.len()], "{message:?}");
        messages.push(message);
    }
    messages
}

fn postgresql_login(golden: &Value, exchange: &Value) {
    let (name, user) = (exchange["name"].as_str().unwrap(), exchange["user"].as_str().unwrap());
    let mut client = said(exchange, "client");
    let Some(Startup::Start { version, parameters }) = postgresql::parse_startup(&mut client).unwrap() else {
        panic!("{name}");
    };
    assert_eq!(version, 3 << 16);
    assert_eq!(parameters[0], ("user".to_owned(), user.to_owned()));
    let password = exchange["password"].as_str().unwrap();
    let mut asked = Vec::new();
    let (mut settings, mut key, mut ready) = (Vec::new(), false, false);
    for message in messages(said(exchange, "server")) {
        match message {
            BackendMessage::Authentication(Authentication::Ok) => {}
            BackendMessage::Authentication(request) => {
                let answer = if matches!(request, Authentication::SaslFinal(_)) {
                    None
                } else {
                    FrontendMessage::parse(&mut client, MESSAGE_CEILING_BYTES).unwrap()
                };
                let sent = match &answer {
                    Some(FrontendMessage::Password(sent)) => sent.clone(),
                    _ => Bytes::new(),
                };
                match &request {
                    Authentication::Md5 { salt } => {
                        assert_eq!(sent, postgresql::auth::md5_password(user, password, *salt) + "\0");
                    }
                    Authentication::Cleartext => assert_eq!(sent, format!("{password}\0")),
                    Authentication::Sasl(mechanisms) => assert_eq!(mechanisms, &["SCRAM-SHA-256"]),
                    Authentication::SaslContinue(data) => assert!(data.starts_with(b"r=fyko")),
                    Authentication::SaslFinal(data) => assert!(data.starts_with(b"v=")),
                    other => panic!("{name}: {other:?}"),
                }
                asked.push(request);
            }
            BackendMessage::ParameterStatus(parameter, value) => settings.push((parameter, value)),
            BackendMessage::BackendKeyData { process_id, secret } => {
                assert_eq!((process_id, &secret[..]), (1, &b"ZZZZ"[..])); // as record.py hides them
                key = true;
            }
            BackendMessage::ReadyForQuery(state) => ready = state == b'I',
            BackendMessage::ErrorResponse(fields) => {
                let code = if user == "golden_nobody" { "28000" } else { "28P01" };
                assert_eq!(postgresql::error_field(&fields, b'C'), Some(code), "{name}");
                assert_eq!(postgresql::error_field(&fields, b'V'), Some("FATAL"), "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let accepted = exchange["accepted"] == true;
    assert_eq!((key, ready), (accepted, accepted), "{name}");
    if accepted {
        let version = ("server_version".to_owned(), golden["server"].as_str().unwrap().to_owned());
        assert!(settings.contains(&version), "{settings:?}");
    }
    assert!(!asked.is_empty() || user == "golden_nobody");
}

fn postgresql_answer(exchange: &Value) {
    let name = exchange["name"].as_str().unwrap();
    let mut client = said(exchange, "client");
    while !client.is_empty() {
        let before = client.clone();
        let message = FrontendMessage::parse(&mut client, MESSAGE_CEILING_BYTES).unwrap().unwrap();
        let mut written = BytesMut::new();
        message.write(&mut written);
        assert_eq!(written, before[..before.len() - client.len()], "{name}: {message:?}");
    }
    let (mut fields, mut rows, mut error): (Vec<Field>, Vec<Vec<String>>, _) = (Vec::new(), Vec::new(), None);
    let mut states = Vec::new();
    for message in messages(said(exchange, "server")) {
        match message {
            BackendMessage::RowDescription(known) => fields = known,
            BackendMessage::DataRow(body) => {
                let row = postgresql::decode_data_row(&body).unwrap();
                let format = i16::from(exchange["ask"] == "binary");
                let cells = row.iter().enumerate().map(|(position, value)| {
                    let oid = fields.get(position).map_or(0, |field| field.type_oid);
                    format!("{:?}", postgresql::decode(oid, format, value.as_ref()).unwrap())
                });
                rows.push(cells.collect());
            }
            BackendMessage::ErrorResponse(fields) => {
                error = postgresql::error_field(&fields, b'C').map(str::to_owned);
            }
            BackendMessage::NoticeResponse(fields) => {
                assert_eq!(postgresql::error_field(&fields, b'M'), exchange["notice"].as_str(), "{name}");
            }
            BackendMessage::ParameterStatus(parameter, value) => {
                assert_eq!(exchange["parameter"], serde_json::json!([parameter, value]), "{name}");
            }
            BackendMessage::ReadyForQuery(state) => states.push(state),
            _ => {}
        }
    }
    assert_eq!(error.as_deref(), exchange["error"].as_str(), "{name}");
    if !exchange["values"].is_null() {
        assert_eq!(rows, expected_rows(&exchange["values"]), "{name}");
    }
    let open = exchange["in_transaction"].as_bool().unwrap_or(false);
    assert_eq!(states.iter().map(|state| *state != b'I').collect::<Vec<_>>(), [open], "{name}");
}
